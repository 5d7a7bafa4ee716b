"""Survey a source for a dataset that exists: the source must have the features of the dataset's schema.

What a source may follow the dataset in, where its config leaves it open:

    text         each column is cast to the dataset's type, and not inferred again: a cell that does not fit is a reject
    the rest     types must be equal; of one type, the form (`as: bytes`, the unit, a time zone of UTC) is the dataset's
    images       classes have the numbers that they have; new ones come at the end

A feature that is added, missing or re-typed is refused with both schemas side by side: that is a migration, and no
append. Nulls are decided row by row: one in a feature that has none is a reject. Where columns of files may differ
(`input.columns_differ: union`), a nullable feature that is missing is null in all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol, Self, TypeAlias, runtime_checkable

import pyarrow as pa

from ...errors import SchemaError
from ...format.flow.rejects import NEW_DATASET
from ...format.manifest.details import ColumnEntry
from ...format.nested.keys import is_flat
from ...format.nested.type_documents import type_of_document
from ...format.schema.arrow_checks import common_type, in_unit, meaning, promoted_type, without_nulls
from ...format.schema.arrow_types import arrow_type_of
from ...format.schema.column_types import column_type
from ...format.schema.difference import differing_features, same_feature, schemas_side_by_side
from ...format.schema.schema import Choice, ColumnRule, Feature, Schema
from ...format.wording.hints import Set
from ...format.wording.printable import printable
from ...recipe.flatten import following
from ...recipe.source import RecipeSource, fields_of
from ...recipe.step import Column, TypedStepByType
from ...recipe.steps.columns import Rename
from ...recognise.splits import in_splits
from ..contract.selection import UNITE
from ..contract.source import Listing, ParallelMap, Source, Survey, UnitedFrozen

_STEPS: Final = "give the steps that the dataset was made with"
_RETYPE: Final = f"declare the dataset's type, where the values fit: {Set('schema.columns.NAME.type', 'TYPE')}"
_WRITTEN: Final = (
    "or give the keys that read its text, as the dataset was made (strip, decimal, thousands, negative, format)"
)

_PICTURE_FACTS: Final = ("channels", "colorspace", "filename", "format", "height", "width")
"""What a picture becomes beside its bytes: features that no file has."""

_SHOWN_MISSING: Final = 10


@dataclass(frozen=True, slots=True)
class DatasetSchema:
    """The schema of an existing dataset; with `no_rejects`, a column with only bad cells counts as re-typed.

    `wanted_split` is the split that an append named for records of files that name none. `columns` are those of the
    source, where some are nested or decimals. `may_unite` says that the source can read columns that its files lack as
    nulls, and was not asked to.
    """

    name: str
    schema: Schema
    labels: Mapping[str, tuple[str, ...]]
    no_rejects: bool = True
    wanted_split: str | None = None
    columns: tuple[ColumnEntry, ...] = ()
    may_unite: bool = False

    @property
    def may_lack(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.missing_in(Schema(())))

    def type_of(self, name: str) -> pa.DataType | None:
        """Return the Arrow type of the values of a column, as a source has them, None if there is no such column."""
        entry = next((one for one in self.columns if one.name == name), None)
        if entry is not None and not is_flat(kind := type_of_document(entry.type)):
            return kind
        feature = next((one for one in self.schema if one.name == name), None)
        if feature is None or feature.type == "image":
            return None
        text = (feature.type == "label" and feature.shape == ()) or (entry is not None and entry.file is not None)
        return pa.string() if text else arrow_type_of(feature)

    def missing_in(self, found: Schema) -> list[Feature]:
        """Return the features that a source lacks and that may be null in all of its rows."""
        names = {feature.name for feature in found}
        parts = {part for column in self.columns for part in column.features if part != column.name}
        pictures = [one.name.removesuffix("encoded") for one in self.schema if one.type == "image"]
        parts |= {f"{picture}{fact}" for picture in pictures for fact in _PICTURE_FACTS}
        return [
            feature
            for feature in self.schema
            if feature.name not in names | parts and feature.nullable
            if feature.type != "image" and (feature.type != "label" or feature.shape != ())
        ]


@runtime_checkable
class Uniting(Source, Protocol):
    """A source of files whose columns may differ, with `union`: a file may lack some."""

    @property
    def union(self) -> bool: ...


@runtime_checkable
class Following(Source, Protocol):
    """A source that must know of the dataset before it is surveyed, as for the numbers of classes."""

    def following(self, dataset: DatasetSchema) -> Self:
        """Return the source that follows the dataset."""
        ...


@runtime_checkable
class Ruled(Source, Protocol):
    """A source of typed columns, whose form (`as: bytes`, the unit, a time zone of UTC) rules decide."""

    @property
    def rules(self) -> dict[str, ColumnRule]: ...

    def with_rules(self, rules: dict[str, ColumnRule]) -> Self: ...


@runtime_checkable
class Casting(Source, Protocol):
    """A source of untyped values, which are cast to the dataset's types."""

    def cast_to(self, survey: Survey, dataset: DatasetSchema) -> Survey:
        """Return the survey of the values as they are cast, given the source's own."""
        ...


def follow(source: Source, dataset: DatasetSchema) -> Source:
    return source.following(dataset) if isinstance(source, Following) else source


def survey_under(source: Source, listing: Listing, run: ParallelMap, dataset: DatasetSchema) -> tuple[Source, Survey]:
    """Return the source as it is to be read, and its survey under the dataset's schema.

    Raises `SchemaError` where a feature is added, missing or re-typed, and what the source's own survey raises.
    """
    read = source.source if isinstance(source, RecipeSource) else source
    dataset = replace(dataset, may_unite=isinstance(read, Uniting) and not read.union)
    if isinstance(source, RecipeSource):
        found, survey = _recipe_under(source, listing, run, dataset)
        _refuse_other_types(dataset, survey.frozen.columns)
        return found, in_splits(survey, listing)
    source = follow(source, dataset)
    typed = partial(_with_types_of_nulls, dataset=dataset, names={})
    return _conformed(source, typed(source.survey(listing, run)), listing, run, dataset, typed)


def _recipe_under(
    source: RecipeSource, listing: Listing, run: ParallelMap, dataset: DatasetSchema
) -> tuple[Source, Survey]:
    """Survey a source with a recipe: columns that it leaves unchanged are read as the dataset has them."""
    found = source.of_files(listing)
    types = {feature.name: arrow_type_of(feature) for feature in dataset.schema}
    by_type = (one.under(types, dataset.labels) if isinstance(one, TypedStepByType) else one for one in found.by_type)
    found = replace(found, by_type=tuple(by_type), recipe=found.recipe.under(types, dataset.labels))
    names = {old: new for step in found.recipe.steps if isinstance(step, Rename) for old, new in step.names}
    labels = {**dataset.labels, **{old: dataset.labels[new] for old, new in names.items() if new in dataset.labels}}
    inner = follow(found.source, replace(dataset, labels=labels))
    found = replace(found, source=inner)
    typed = partial(_with_types_of_nulls, dataset=dataset, names=names)
    survey = typed(found.source.survey(listing, run))
    if not found.has_work(survey):
        inner, survey = _conformed(found.source, survey, listing, run, dataset, typed)
        found = replace(found, source=inner)
        return found, survey
    own = {feature.name: feature for feature in survey.frozen.schema}
    wanted = {feature.name: feature for feature in dataset.schema}
    columns = found.recipe.plan([Column(one, one.name) for one in fields_of(survey)])
    survey = _with_nested_types(
        survey, columns, dataset, union=isinstance(found.source, Uniting) and found.source.union
    )
    kinds = {feature.name: feature.kind for feature in dataset.schema}
    found = replace(found, rules=following(found.rules, columns, kinds, dataset.columns))
    if isinstance(found.source, Ruled):  # it may read times that have no unit of their own, in nested columns too
        nested = {one.name for one in fields_of(survey) if not is_flat(one.type)}
        rules = {name: rule for name, rule in found.rules.items() if name in nested}
        found = replace(found, source=found.source.with_rules({**found.source.rules, **rules}))
    for column in columns:
        read = column.origin or column.form
        if read in own and column.name in wanted:
            own[read] = replace(wanted[column.name], name=read)
    if isinstance(found.source, Uniting) and found.source.union:
        made = Schema(tuple(sorted((wanted[one.name] for one in columns if one.name in wanted), key=lambda f: f.name)))
        own |= {one.name: one for one in dataset.missing_in(made) if one.name not in own}
    as_read = replace(dataset, schema=Schema(tuple(sorted(own.values(), key=lambda feature: feature.name))))
    inner, survey = _conformed(found.source, survey, listing, run, as_read, typed)
    found = replace(found, source=inner)
    survey = found.after(survey, run)
    refuse_others(dataset, survey.frozen.schema, _STEPS)
    return found, replace(survey, frozen=replace(survey.frozen, schema=dataset.schema))


def _with_nested_types(survey: Survey, columns: Sequence[Column], dataset: DatasetSchema, *, union: bool) -> Survey:
    """Return the survey whose nested columns are of the dataset's types, where these hold their values.

    Fields of structs are then in the dataset's order, and with `union` those that the source lacks are null.
    """
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
) -> tuple[Source, Survey]:
    forms = _forms(source, survey.frozen.schema, dataset)
    if forms and isinstance(source, Ruled):
        source = source.with_rules({**source.rules, **forms})
        survey = typed(source.survey(listing, run))
    survey = _with_columns(survey, _missing_columns(source, survey, dataset))
    if isinstance(source, Casting):
        survey = source.cast_to(survey, dataset)
    refuse_others(dataset, survey.frozen.schema, _RETYPE)
    reason = "the dataset's"
    own = {"split", *(feature.name for feature in dataset.schema if feature.type in ("image", "label"))}
    choices = tuple(Choice(feature.name, feature.type, reason) for feature in dataset.schema if feature.type != "image")
    choices += tuple(choice for choice in survey.choices if choice.column in own)
    choices = tuple({choice.column: choice for choice in choices}.values())
    return source, replace(survey, frozen=replace(survey.frozen, schema=dataset.schema), choices=choices)


def _missing_columns(source: Source, survey: Survey, dataset: DatasetSchema) -> list[Feature]:
    """Return the features that are null in all rows of a source whose columns may differ; text has no lists."""
    if not isinstance(source, Uniting) or not source.union:
        return []
    missing = dataset.missing_in(survey.frozen.schema)
    return [one for one in missing if one.shape == () or not isinstance(source, Casting)]


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
    """Raise `SchemaError` for nested columns or decimals of other types: one feature says too little of them."""
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
    """Return a type of the manifest as Arrow writes it; a decimal as the manifest does."""
    return document if isinstance(document, str) else printable(str(type_of_document(document)))


def refuse_others(dataset: DatasetSchema, found: Schema, retype: str) -> None:
    """Raise `SchemaError` for other features, with both schemas; `retype` is the fix for one of another type."""
    marked = differing_features(dataset.schema, found)
    if not marked:
        return
    counts = Counter(marked.values())
    words = [f"{count} {'feature' if count == 1 else 'features'} {how}" for how, count in sorted(counts.items())]
    table = schemas_side_by_side(dataset.schema, found, ("the dataset", "the source"), marked=marked)
    raise SchemaError(
        f"the source does not match the schema of {dataset.name} ({', '.join(words)}), and rows of another schema "
        f"are not appended:\n{table}\n{_fix(marked, dataset, found, retype)}"
    )


def _fix(marked: Mapping[str, str], dataset: DatasetSchema, found: Schema, retype: str) -> str:
    """Return what helps: columns may be left out or be null, and scalars declared; to reshape is a migration."""
    hows = set(marked.values())
    filled = {feature.name for feature in dataset.missing_in(found)} if dataset.may_unite else set()
    missing = {name for name, how in marked.items() if how == "missing"}
    fixed = [f for f in dataset.schema if marked.get(f.name) == "re-typed" and (f.shape or f.type.startswith("array_"))]
    fixes = []
    if missing <= filled and not fixed:
        if missing:
            fixes.append(f"read missing columns as nulls: {UNITE}")
        if "added" in hows:
            fixes.append(f"keep only the columns that the dataset has: {Set('input.columns', '[NAME, ...]')}")
        if "re-typed" in hows:
            texts = {one.name for one in found if one.type == "string" and marked.get(one.name) == "re-typed"}
            fixes.append(f"{retype}; {_WRITTEN}" if texts and retype == _RETYPE else retype)
    other = "or convert" if fixes else "convert"
    return f"{', and '.join(fixes)}{'; ' if fixes else ''}{other} to a new dataset ({NEW_DATASET})"


def _forms(source: Source, found: Schema, dataset: DatasetSchema) -> dict[str, ColumnRule]:
    """Return rules for the columns whose form is open, and of whose type the dataset keeps another form."""
    if not isinstance(source, Ruled):
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
