"""Rows in the columns of the source: nested ones and decimals, put together again from the features that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import DamageError, UsageError
from ...format.manifest.details import ColumnEntry
from ...format.manifest.manifest import Manifest
from ...format.nested.assemble import Disagreement, assemble
from ...format.nested.keys import MASK
from ...format.nested.type_documents import as_stored, type_of_document
from ...format.schema.arrow_types import arrow_type_of
from ...format.schema.schema import Feature, Schema
from ...format.wording.printable import printable


@dataclass(frozen=True, slots=True)
class _Part:
    """A column: a feature as it is, or with its mask (`kind` None), or what `features` hold together.

    `names` are the names of the classes, where the values are their numbers.
    """

    field: pa.Field
    kind: pa.DataType | None
    features: tuple[str, ...]
    names: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """How batches of features become batches of columns: `features` are those to decode."""

    parts: tuple[_Part, ...]

    @classmethod
    def plan(cls, manifest: Manifest, schema: Schema, columns: Sequence[str] | None, where: str) -> SourceColumns:
        if isinstance(columns, str):
            raise UsageError(f'columns is a list of names: ["{printable(columns)}"]')
        features = {feature.name: feature for feature in schema}
        entries = {entry.name: entry for entry in manifest.columns if _is_made(entry, manifest)}
        if columns is None:
            held = {name for entry in entries.values() for name in entry.features}
            order = [entry.name for entry in manifest.columns] or list(features)
            columns = [*order, *(name for name in features if name not in held and name not in order)]
        parts = []
        for name in columns:
            if name in entries:
                entry = entries[name]
                if entry.null == MASK:
                    parts.append(_feature_part(features[name], manifest, entry.features))
                    continue
                kind = _kind_of(entry, features)
                shown = pa.field(name, _read_type(entry, kind, schema), _may_be_null(entry, features))
                parts.append(_Part(shown, kind, entry.features))
            elif name in features:
                parts.append(_feature_part(features[name], manifest, (name,)))
            else:
                known = ", ".join(map(printable, dict.fromkeys([*entries, *features])))
                raise UsageError(f'{where}: no feature "{printable(name)}"; it has: {known}')
        return cls(tuple(parts))

    @property
    def features(self) -> list[str]:
        return list(dict.fromkeys(name for part in self.parts for name in part.features))

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([part.field for part in self.parts])

    def batch(self, decoded: pa.RecordBatch, where: str) -> pa.RecordBatch:
        """Return a decoded batch as columns of the source; `where` is the shard, for messages."""
        if all(part.kind is None and len(part.features) == 1 and part.names is None for part in self.parts):
            return decoded
        known = dict(zip(decoded.schema.names, decoded.columns, strict=True))
        arrays = [self._column(part, known, where) for part in self.parts]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    @staticmethod
    def _column(part: _Part, known: Mapping[str, pa.Array], where: str) -> pa.Array:
        if part.kind is None:
            values = known[part.features[0]]
            if len(part.features) > 1:
                values = _masked(values, known[part.features[1]])
            return values if part.names is None else _named(values, part, where)
        try:
            return assemble(part.field.name, part.kind, {name: known[name] for name in part.features})
        except Disagreement as error:
            raise DamageError(f"{where}: {error}") from error


def _feature_part(feature: Feature, manifest: Manifest, held_by: tuple[str, ...]) -> _Part:
    """Return the column of a feature, and of its mask where it has one; classes have their names."""
    kind, names = arrow_type_of(feature), None
    if manifest.labels.get(feature.name) and feature.shape in ((), (-1,)):
        names = pa.array(manifest.labels[feature.name], pa.string())
        named = pa.dictionary(pa.int64(), pa.string())
        kind = pa.list_(named) if feature.shape else named
    return _Part(pa.field(feature.name, kind, feature.nullable or len(held_by) > 1), None, held_by, names)


def _masked(values: pa.Array, mask: pa.Array) -> pa.Array:
    places = pa.array(range(len(values)), pa.int64())
    return values.take(pc.if_else(pc.equal(mask, 0), pa.scalar(None, pa.int64()), places))


def _named(values: pa.Array, part: _Part, where: str) -> pa.Array:
    """Return the numbers of classes with their names: as a dictionary, of which they are the indices."""
    numbers = values.values if pa.types.is_list(values.type) else values
    assert part.names is not None
    try:
        named = pa.DictionaryArray.from_arrays(numbers, part.names)
    except IndexError as error:
        beyond = [number for number in numbers.to_pylist() if number is not None and not 0 <= number < len(part.names)]
        raise DamageError(
            f'{where}: feature "{printable(part.field.name)}" has class {beyond[0]}; the manifest names '
            f"{len(part.names)} classes, from 0 on"
        ) from error
    if numbers is values:
        return named
    buffers = values.buffers()[:2]  # whether a list is null, and where each begins
    return pa.Array.from_buffers(part.field.type, len(values), buffers, offset=values.offset, children=[named])


def _is_made(entry: ColumnEntry, manifest: Manifest) -> bool:
    """Return whether a column is more than the feature of its name, or than lists of its classes."""
    if entry.null == MASK:
        return True
    if entry.features == (entry.name,) and manifest.labels.get(entry.name):
        return False
    return entry.features != (entry.name,) or isinstance(entry.type, dict) or entry.type.startswith("decimal")


def _kind_of(entry: ColumnEntry, features: Mapping[str, Feature]) -> pa.DataType:
    """Return the type of a column as its features hold it: float64 only where all of its bytes are kept."""
    is_exact = any(features[name].kind == "bytes" and features[name].type == "float64" for name in entry.features)
    return type_of_document(entry.type if is_exact else as_stored(entry.type))


def _read_type(entry: ColumnEntry, kind: pa.DataType, schema: Schema) -> pa.DataType:
    """Return the type that a column reads back as: what the features of no rows become."""
    empty = {f.name: pa.nulls(0, arrow_type_of(f)) for f in schema if f.name in entry.features}
    return assemble(entry.name, kind, empty).type


def _may_be_null(entry: ColumnEntry, features: Mapping[str, object]) -> bool:
    return entry.null == "present" or (entry.features == (entry.name,) and features[entry.name].nullable)  # type: ignore[attr-defined]
