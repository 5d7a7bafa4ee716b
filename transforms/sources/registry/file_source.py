"""What all sources of files share; and how an append decides the types of its columns (`survey_under`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias

import pyarrow as pa

from ...errors import SchemaError
from ...format.batches.rejects import NEW_DATASET
from ...format.columns.keys import is_flat, type_of_document
from ...format.manifest.manifest import ColumnEntry
from ...format.schema.arrow_types import arrow_type_of, common_type, in_unit, meaning, promoted_type, without_nulls
from ...format.schema.column_types import column_type
from ...format.schema.schema import Choice, ColumnRule, Feature, Schema, same_feature
from ...format.wording.printable import printable
from ...inputs.contract.selection import Selection
from ...inputs.contract.source import (
    DatasetSchema,
    Listing,
    ParallelMap,
    Source,
    Survey,
    Traits,
    UnitedFrozen,
    refuse_others,
)
from ...inputs.files.file_names import suffixes_of
from ...inputs.files.listing import list_entries
from ...recipe.recipe import following
from ...recipe.source import RecipeSource, fields_of, in_splits
from ...recipe.step import Column
from ...recipe.steps.columns import Rename
from ...recognise.rules import recognise
from .settings import Settings

if TYPE_CHECKING:
    from .options import Options, TableOptions


@dataclass(frozen=True, slots=True)
class FileSource(Source):
    """A source of files, folders and globs, by the options of their format."""

    options: Options
    settings: Settings

    traits: ClassVar[Traits] = Traits()

    paths_may_be_lists: ClassVar[bool] = False
    """Whether a row may hold a list of paths: columns of paths then have no declared type."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Give a worker the values of the options alone: pydantic would take 0.2 s and 5 MB of each."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        if not isinstance(self.options, SimpleNamespace):
            plain = SimpleNamespace(**dict(self.options), model_fields_set=self.options.model_fields_set)
            values["options"] = plain
        return type(self), tuple(values.values())

    @property
    def rules(self) -> dict[str, ColumnRule]:
        without = self.settings.paths if self.paths_may_be_lists else ()
        return {name: rule for name, rule in self.settings.rules.items() if name not in without}

    @property
    def selection(self) -> Selection:
        return Selection.of(self.options.columns, self.options.exclude_columns)

    def selecting(self, selection: Selection) -> Self:
        columns = None if selection.columns is None else list(selection.columns)
        return self.with_options(columns=columns, exclude_columns=list(selection.exclude))

    def with_rules(self, rules: dict[str, ColumnRule]) -> Self:
        return replace(self, settings=replace(self.settings, rules=rules)) if self.typed else self

    def with_options(self, **changes: Any) -> Self:
        return replace(self, options=self.options.model_copy(update=changes))

    def list_files(self) -> Listing:
        """Return the files to read.

        Raises:
            InputError: a path matches nothing, a file is not what its name says, or it is unclear of which split it is.
        """
        kind, paths = self.options.format, self.options.paths
        listing = list_entries(
            paths,
            self.settings.base,
            suffixes_of(kind),
            file_format=kind,
            traits=self.traits,
            ignore=self.options.ignore,
        )
        return recognise(listing, paths, self.settings.base, self.settings.splits)


@dataclass(frozen=True, slots=True)
class TableSource(FileSource):
    """A source of files whose columns may differ, where `columns_differ` says so; a dataset has those `elsewhere`."""

    options: TableOptions
    elsewhere: tuple[str, ...] = ()

    @property
    def union(self) -> bool:
        return self.options.columns_differ == "union"

    @property
    def selection(self) -> Selection:
        return Selection.of(
            self.options.columns, self.options.exclude_columns, union=self.union, elsewhere=self.elsewhere
        )

    def following(self, dataset: DatasetSchema) -> Self:
        return replace(self, elsewhere=dataset.may_lack) if self.union else self


# Survey a source for a dataset that exists: the source must have the features of the dataset's schema.
#
# What a source may follow the dataset in, where its config leaves it open:
#
#     text         each column is cast to the dataset's type, and not inferred again; cells that do not fit are rejects
#     the rest     types must be equal; of one type, the form (`as: bytes`, the unit, a zone of UTC) is the dataset's
#     images       classes have the numbers that they have; new ones come at the end
#
# A feature that is added, missing or re-typed is refused with both schemas side by side: that is a migration, and no
# append. One that the user declares is added, and null in the records that are there. Nulls are decided row by row: one
# in a feature that has none is a reject. Where columns of files may differ (`input.columns_differ: union`), a nullable
# feature that is missing is null in all rows.


_STEPS: Final = "give the steps that the dataset was made with"

_SHOWN_MISSING: Final = 10


def survey_under(source: Source, listing: Listing, run: ParallelMap, dataset: DatasetSchema) -> Survey:
    """Return the survey of a source under the dataset's schema, with the source as it is to be read.

    Raises `SchemaError` where a feature is added, missing or re-typed, and what the source's own survey raises.
    """
    if isinstance(source, RecipeSource):
        survey = _recipe_under(source, listing, run, replace(dataset, may_unite=source.source.union is False))
        _refuse_other_types(dataset, survey.frozen.columns)
        return in_splits(survey, listing)
    dataset = replace(dataset, may_unite=source.union is False)
    source = source.following(dataset)
    typed = partial(_with_types_of_nulls, dataset=dataset, names={})
    return _conformed(source, typed(source.survey(listing, run)), listing, run, dataset, typed)


def _recipe_under(source: RecipeSource, listing: Listing, run: ParallelMap, dataset: DatasetSchema) -> Survey:
    """Survey a source with a recipe: columns that it leaves unchanged are read as the dataset has them."""
    found = source.of_files(listing)
    types = {feature.name: arrow_type_of(feature) for feature in dataset.schema}
    recipe = found.recipe.under(types, dataset.labels)
    names = {old: new for step in recipe.steps if isinstance(step, Rename) for old, new in step.names}
    labels = {**dataset.labels, **{old: dataset.labels[new] for old, new in names.items() if new in dataset.labels}}
    by_type = tuple(one.under(types, labels) for one in found.by_type)
    inner = found.source.following(replace(dataset, labels=labels))
    found = replace(found, source=inner, by_type=by_type, recipe=recipe)
    typed = partial(_with_types_of_nulls, dataset=dataset, names=names)
    survey = typed(inner.survey(listing, run))
    found = found.beginning(survey, listing)
    recipe = found.recipe
    if not found.has_work(survey):
        survey = _conformed(inner, survey, listing, run, dataset, typed)
        return replace(survey, source=replace(found, source=survey.source or inner))
    own = {feature.name: feature for feature in survey.frozen.schema}
    wanted = {feature.name: feature for feature in dataset.schema}
    columns = recipe.plan([Column(one, one.name) for one in fields_of(survey)])
    survey = _with_nested_types(survey, columns, dataset, union=bool(inner.union))
    kinds = {feature.name: feature.kind for feature in dataset.schema}
    found = replace(found, rules=following(found.rules, columns, kinds, dataset.columns))
    # A source of types may read times that have no unit of their own, in nested columns too.
    nested = {one.name for one in fields_of(survey) if not is_flat(one.type)}
    inner = inner.with_rules({**inner.rules, **{n: rule for n, rule in found.rules.items() if n in nested}})
    for column in columns:
        read = column.origin or column.form
        if read in own and column.name in wanted:
            shape = wanted[column.name].shape if column.length is None else (-1,)  # which a step holds to the length
            own[read] = replace(wanted[column.name], name=read, shape=shape)
    if inner.union:
        made = Schema(tuple(sorted((wanted[one.name] for one in columns if one.name in wanted), key=lambda f: f.name)))
        own |= {one.name: one for one in dataset.missing_in(made) if one.name not in own}
    as_read = replace(dataset, schema=Schema(tuple(sorted(own.values(), key=lambda feature: feature.name))))
    survey = _conformed(inner, survey, listing, run, as_read, typed)
    survey = replace(found, source=survey.source or inner).after(survey, run)
    dataset = dataset.with_added(survey.frozen.schema)
    refuse_others(dataset, survey.frozen.schema, _STEPS)
    return replace(survey, frozen=replace(survey.frozen, schema=dataset.schema))


def _with_nested_types(survey: Survey, columns: Sequence[Column], dataset: DatasetSchema, *, union: bool) -> Survey:
    """Return the survey whose nested columns are of the dataset's types, where these hold their values."""
    wanted = {one.name: type_of_document(one.type) for one in dataset.columns if isinstance(one.type, dict)}
    types = {one.origin: wanted[one.name] for one in columns if one.origin is not None and one.name in wanted}
    common = promoted_type if union else common_type
    fields = [
        field.with_type(types[field.name])
        if field.name in types and _holds(types[field.name], field.type, common)
        else field
        for field in survey.fields
    ]
    return replace(survey, fields=tuple(fields))


def _holds(wanted: pa.DataType, own: pa.DataType, common: Callable[[pa.DataType, pa.DataType], Any]) -> bool:
    """Return whether a type holds the values of another, whatever the units of their times are."""
    found: bool = common(in_unit(wanted, "ns"), in_unit(own, "ns")) == meaning(in_unit(wanted, "ns"))
    return found


def _with_types_of_nulls(survey: Survey, dataset: DatasetSchema, names: Mapping[str, str]) -> Survey:
    """Return the survey whose columns of nulls alone are of the dataset's types; `names` are the new ones, by the old.

    They are columns, and parts of nested ones, whose own type is null: it says nothing of the values of other rows.
    """
    types = {}
    for one in survey.fields:
        wanted = dataset.type_of(names.get(one.name, one.name))
        kind = one.type if wanted is None else without_nulls(one.type, wanted)
        if kind != one.type:
            types[one.name] = kind
    if not types:
        return survey
    fields = tuple(one.with_type(types.get(one.name, one.type)) for one in survey.fields)
    wanted = {feature.name: feature for feature in dataset.schema}
    features = []
    for one in survey.frozen.schema:
        feature = wanted.get(names.get(one.name, one.name))
        if one.name not in types or (feature is not None and feature.type == "label"):
            features.append(one)
        elif feature is not None and is_flat(types[one.name]):
            features.append(replace(feature, name=one.name, nullable=True))
    frozen = replace(survey.frozen, schema=Schema(tuple(features)))
    if isinstance(frozen, UnitedFrozen):
        frozen = replace(frozen, fields=pa.schema(fields))
    return replace(survey, frozen=frozen, fields=fields)


_Typed: TypeAlias = Callable[[Survey], Survey]


def _conformed(
    source: Source, survey: Survey, listing: Listing, run: ParallelMap, dataset: DatasetSchema, typed: _Typed
) -> Survey:
    forms = _forms(source, survey.frozen.schema, dataset)
    if forms:
        source = source.with_rules({**source.rules, **forms})
        survey = typed(source.survey(listing, run))
    survey = _with_columns(survey, _missing_columns(source, survey, dataset))
    dataset = dataset.with_added(survey.frozen.schema)
    survey = source.cast_to(survey, dataset)
    refuse_others(dataset, survey.frozen.schema)
    reason = "the dataset's"
    own = {"split", *(feature.name for feature in dataset.schema if feature.type in ("image", "label"))}
    choices = tuple(Choice(feature.name, feature.type, reason) for feature in dataset.schema if feature.type != "image")
    choices += tuple(choice for choice in survey.choices if choice.column in own)
    choices = tuple({choice.column: choice for choice in choices}.values())
    frozen = replace(survey.frozen, schema=dataset.schema)
    return replace(survey, frozen=frozen, choices=choices, source=survey.source or source)


def _missing_columns(source: Source, survey: Survey, dataset: DatasetSchema) -> list[Feature]:
    """Return the features that are null in all rows of a source whose columns may differ; text has no lists."""
    missing = dataset.missing_in(survey.frozen.schema) if source.union else []
    return [one for one in missing if one.shape == () or source.typed]


def _with_columns(survey: Survey, features: Sequence[Feature]) -> Survey:
    if not features:
        return survey
    fields = (*survey.fields, *(pa.field(one.name, arrow_type_of(one), nullable=True) for one in features))
    schema = Schema(tuple(sorted((*survey.frozen.schema, *features), key=lambda feature: feature.name)))
    frozen = replace(survey.frozen, schema=schema)
    if isinstance(frozen, UnitedFrozen):
        frozen = replace(frozen, fields=pa.schema(fields))
    names = [printable(one.name) for one in features]
    shown = ", ".join(
        [*names[:_SHOWN_MISSING], *([f"{len(names) - _SHOWN_MISSING:,} more"] * (len(names) > _SHOWN_MISSING))]
    )
    note = f"{shown}: {'a column' if len(names) == 1 else 'columns'} that no file has, so null in all rows"
    return replace(survey, frozen=frozen, fields=fields, detected=(*survey.detected, note))


def _refuse_other_types(dataset: DatasetSchema, columns: Sequence[ColumnEntry]) -> None:
    found = {column.name: column.type for column in columns}
    for column in dataset.columns:
        if column.features == (column.name,) and not str(column.type).startswith("decimal"):
            continue
        if found.get(column.name) != column.type:
            own = _shown(found[column.name]) if column.name in found else "of another type"
            raise SchemaError(
                f'column "{printable(column.name)}" is {_shown(column.type)} in {dataset.name}, and {own} in the '
                f"source; give it that type before, or convert to a new dataset ({NEW_DATASET})"
            )


def _shown(document: Any) -> str:
    return document if isinstance(document, str) else printable(str(type_of_document(document)))


def _forms(source: Source, found: Schema, dataset: DatasetSchema) -> dict[str, ColumnRule]:
    """Return rules for the columns whose form is open, and of whose type the dataset keeps another form."""
    if not source.typed:
        return {}
    mine = {feature.name: feature for feature in found}
    forms = {}
    for feature in dataset.schema:
        own = mine.get(feature.name)
        if own is None or own.type != feature.type:
            continue
        if not same_feature(own, feature) and column_type(feature).has_forms:
            known = source.rules.get(feature.name, ColumnRule())
            if known.as_ is None and known.unit is None and known.timezone is None:
                forms[feature.name] = _form(known, own, feature)
    return forms


def _form(known: ColumnRule, own: Feature, wanted: Feature) -> ColumnRule:
    """Return the rule that gives a column the form of the dataset; where none can, it stays as it is."""
    as_ = wanted.kind if wanted.kind != column_type(wanted).forms[0].kind else None
    utc = wanted.timezone if own.timezone is None and wanted.timezone == "UTC" else None
    return replace(known, as_=as_, unit=wanted.unit, timezone=utc)
