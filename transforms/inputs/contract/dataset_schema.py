"""The schema of a dataset that rows are appended to: what a source follows, and what it must not differ from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from ...errors import SchemaError
from ...format.batches.rejects import NEW_DATASET
from ...format.manifest.details import ColumnEntry
from ...format.nested.keys import is_flat, type_of_document
from ...format.schema.arrow_types import arrow_type_of
from ...format.schema.column_types import TYPES
from ...format.schema.schema import Feature, Schema, differing_features, schemas_side_by_side
from ...format.wording.hints import Add, Set, set_column
from .selection import UNITE, same_but_capitals

_WRITTEN: Final = (
    "give the keys that read its text, as the dataset was made (strip, decimal, thousands, negative, format)"
)

_SCALARS: Final = TYPES.keys() - {"image"}
_PICTURE_FACTS: Final = ("channels", "colorspace", "filename", "format", "height", "width")
"""What a picture becomes beside its bytes: features that no file has."""


@dataclass(frozen=True, slots=True)
class DatasetSchema:
    """The schema of an existing dataset; with `no_rejects`, a column with only bad cells counts as re-typed.

    `wanted_split` is the split that an append named for records of files that name none. `columns` are those of the
    source, where some are nested or decimals. `may_unite` says that the source can read columns that its files lack as
    nulls, and was not asked to. `may_add` are features that the user declares: those that the dataset lacks are added
    to it, null in the records that it has.
    """

    name: str
    schema: Schema
    labels: Mapping[str, tuple[str, ...]]
    no_rejects: bool = True
    wanted_split: str | None = None
    columns: tuple[ColumnEntry, ...] = ()
    may_unite: bool = False
    may_add: frozenset[str] = frozenset()

    def with_added(self, found: Schema) -> DatasetSchema:
        """Return the dataset with the features of a source that it lacks and may add."""
        known = {feature.name for feature in self.schema}
        new = [replace(one, nullable=True) for one in found if one.name in self.may_add - known]
        schema = Schema(tuple(sorted((*self.schema, *new), key=lambda feature: feature.name)))
        return replace(self, schema=schema) if new else self

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


def refuse_others(dataset: DatasetSchema, found: Schema, retype: str | None = None) -> None:
    """Raise `SchemaError` for other features, with both schemas.

    `retype` is the fix for features of another type; None where their types may be declared.
    """
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


def _fix(marked: Mapping[str, str], dataset: DatasetSchema, found: Schema, retype: str | None) -> str:
    """Return what helps: columns may be left out or be null, and scalars declared; to reshape is a migration."""
    pairs = [sorted(names, key=lambda name: marked[name]) for names in same_but_capitals(marked)]
    twins = {pair[0]: pair[1] for pair in pairs if [marked[name] for name in pair] == ["added", "missing"]}
    marked = {name: how for name, how in marked.items() if name not in {*twins, *twins.values()}}
    hows = set(marked.values())
    filled = {feature.name for feature in dataset.missing_in(found)} if dataset.may_unite else set()
    missing = {name for name, how in marked.items() if how == "missing"}
    fixed = [f for f in dataset.schema if marked.get(f.name) == "re-typed" and (f.shape or f.type.startswith("array_"))]
    fixes = []
    if twins:
        named = Add(*(set_column(one, "name", other) for one, other in twins.items()))
        fixes.append(f"name columns as the dataset does where only capitals differ: {named}")
    if missing <= filled and not fixed:
        if missing:
            fixes.append(f"read missing columns as nulls: {UNITE}")
        if "added" in hows:
            new = [one for one in found if marked.get(one.name) == "added"]
            plain = all(one.type in _SCALARS and one.shape == () and "/" not in one.name for one in new)
            named = Add(*(set_column(one.name, "type", one.type) for one in new))
            more = f", or add the others, null in the rows that it has: {named}" if plain else ""
            fixes.append(f"keep only the columns that the dataset has: {Set('input.columns', '[NAME, ...]')}{more}")
        if "re-typed" in hows:
            fixes += filter(None, [_declared(marked, dataset, found) if retype is None else retype])
    other = "or convert" if fixes else "convert"
    return f"{', and '.join(fixes)}{'; ' if fixes else ''}{other} to a new dataset ({NEW_DATASET})"


def _declared(marked: Mapping[str, str], dataset: DatasetSchema, found: Schema) -> str:
    """Return how columns of other types are read as the dataset has them; empty where a column is not."""
    own = {feature.name: feature.type for feature in dataset.schema}
    others = [(one, own[one.name]) for one in found if marked.get(one.name) == "re-typed"]
    if all(wanted in _SCALARS and one.type in TYPES[wanted].reads for one, wanted in others):
        options = Add(*(set_column(one.name, "type", wanted) for one, wanted in others))
        return f"declare the dataset's types, where the values fit: {options}"
    return _WRITTEN if all(one.type == "string" for one, _ in others) else ""
