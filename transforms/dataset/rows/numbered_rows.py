"""Read rows of a dataset by their number: as columns, as dicts of values, or as dicts of NumPy values."""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import DamageError, UsageError
from ...format.columns.flatten import Disagreement, assemble
from ...format.columns.keys import MASK, as_stored, type_of_document
from ...format.examples.decode_examples import ExampleDecoder, ExampleError, parse_example
from ...format.manifest.manifest import ColumnEntry, Manifest, ShardEntry
from ...format.schema.arrow_types import arrow_type_of
from ...format.schema.column_types import is_binary, is_string
from ...format.schema.schema import Feature, Schema
from ...format.tfrecord.framing import Payloads
from ...format.wording.printable import printable, printable_path
from ..storage.opened_generation import OpenedGeneration
from .numpy_columns import PRESENT, NumpyColumns, Ragged, Values, numpy_type_of
from .record_access import RecordAccess

Numbers = Sequence[int] | npt.NDArray[np.integer]


class NumberedRows:
    """The rows of the shards `entries`, from 0 in their order; threads may share it."""

    def __init__(self, generation: OpenedGeneration, entries: Sequence[ShardEntry]) -> None:
        self.generation, self.entries = generation, tuple(entries)
        self.path, self.manifest = generation.path, generation.manifest
        self.access = RecordAccess(generation, self.entries)
        self._plans: dict[tuple[str, ...] | None, tuple[SourceColumns, ExampleDecoder]] = {}

    def __reduce__(self) -> tuple[type[NumberedRows], tuple[object, ...]]:
        return type(self), (self.generation, self.entries)

    def __len__(self) -> int:
        return len(self.access)

    @property
    def schema(self) -> Schema:
        if self.manifest.schema is None:
            where = printable_path(self.path)
            raise UsageError(f"{where}: its records are plain bytes without a schema; use records()")
        return self.manifest.schema

    @cached_property
    def digest(self) -> str:
        """What is the same for the same rows in the same order, wherever they are: of the shards and their CRCs."""
        shards = ((entry.path, entry.records, entry.crc32c) for entry in self.entries)
        return hashlib.blake2b(repr([*shards]).encode(), digest_size=8).hexdigest()

    def plan(self, columns: Sequence[str] | None) -> tuple[SourceColumns, ExampleDecoder]:
        key = None if columns is None else tuple(columns)
        if key not in self._plans:
            plan = SourceColumns.plan(self.manifest, self.schema, columns, printable_path(self.path))
            self._plans[key] = plan, ExampleDecoder(self.schema, plan.features)
        return self._plans[key]

    @cached_property
    def _reader(self) -> RowReader | None:
        """What reads a row of all columns, None where one of them takes a batch."""
        return RowReader.plan(self.schema, self.plan(None)[0])

    def row(self, number: int) -> dict[str, Any]:
        row = None if self._reader is None else self._reader.row(self.access.record(number))
        found: dict[str, Any] = self.take([number], None).to_pylist()[0] if row is None else row
        return found

    def take(self, numbers: Numbers, columns: Sequence[str] | None) -> pa.RecordBatch:
        self.plan(columns)
        return self.decode(self.access.take(numbers), numbers, columns)

    def decode(self, payloads: Payloads, numbers: Numbers, columns: Sequence[str] | None) -> pa.RecordBatch:
        """Return records as columns; `numbers` are theirs, for messages."""
        plan, decoder = self.plan(columns)
        found = decoded(payloads, decoder, lambda row: self.access.place(int(numbers[row])))
        batches = [plan.batch(batch, printable_path(self.path)) for _, batch in found]
        return joined(batches) if batches else pa.RecordBatch.from_pylist([], plan.schema)


def decoded(
    payloads: Payloads, decoder: ExampleDecoder, place: Callable[[int], str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield records as batches, each with the row of its first one; `place` gives the place of a row for a message."""
    for first in range(0, len(payloads), decoder.rows_at_once):
        try:
            batch = decoder.decode(payloads.tail(first).head(decoder.rows_at_once))
        except ExampleError as error:
            raise DamageError(f"{place(first + error.row)}: {error.reason}") from error
        yield first, batch


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the rows of batches, of which there is at least one, as one.

    Raise `UsageError` if a column has more than 2 GiB of text or bytes, which Arrow does not hold in one.
    """
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).combine_chunks()
    parts = table.to_batches()
    if len(parts) > 1:
        raise UsageError(f"{len(table):,} rows have more than 2 GiB of text or bytes in a column; take fewer at once")
    return parts[0] if parts else batches[0]


Labels = Mapping[str, Sequence[str]]

UNLABELLED: Final = -1
"""The number of no class in records that TFDS wrote: where a label may be null, it is one."""


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
        return cls.of(schema, manifest.columns, manifest.labels, columns, where)

    @classmethod
    def of(
        cls, schema: Schema, stated: Sequence[ColumnEntry], labels: Labels, columns: Sequence[str] | None, where: str
    ) -> SourceColumns:
        if isinstance(columns, str):
            raise UsageError(f'columns is a list of names: ["{printable(columns)}"]')
        features = {feature.name: feature for feature in schema}
        entries = {entry.name: entry for entry in stated if _is_made(entry, labels)}
        if columns is None:
            held = {name for entry in entries.values() for name in entry.features}
            order = [entry.name for entry in stated] or list(features)
            columns = [*order, *(name for name in features if name not in held and name not in order)]
        parts = []
        for name in columns:
            if name in entries:
                entry = entries[name]
                if entry.null == MASK:
                    parts.append(_feature_part(features[name], labels, entry.features))
                    continue
                kind = _kind_of(entry, features)
                shown = pa.field(name, _read_type(entry, kind, schema), _may_be_null(entry, features))
                parts.append(_Part(shown, kind, entry.features))
            elif name in features:
                parts.append(_feature_part(features[name], labels, (name,)))
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


def _feature_part(feature: Feature, labels: Labels, held_by: tuple[str, ...]) -> _Part:
    """Return the column of a feature, and of its mask where it has one; classes have their names."""
    kind, names = arrow_type_of(feature), None
    if labels.get(feature.name) and feature.shape in ((), (-1,)):
        names = pa.array(labels[feature.name], pa.string())
        named = pa.dictionary(pa.int64(), pa.string())
        kind = pa.list_(named) if feature.shape else named
    return _Part(pa.field(feature.name, kind, feature.nullable or len(held_by) > 1), None, held_by, names)


def _masked(values: pa.Array, mask: pa.Array) -> pa.Array:
    places = pa.array(range(len(values)), pa.int64())
    return values.take(pc.if_else(pc.equal(mask, 0), pa.scalar(None, pa.int64()), places))


def _named(values: pa.Array, part: _Part, where: str) -> pa.Array:
    numbers = values.values if pa.types.is_list(values.type) else values
    assert part.names is not None
    if part.field.nullable and numbers is values:
        numbers = pc.if_else(pc.equal(numbers, UNLABELLED), pa.scalar(None, numbers.type), numbers)
    try:
        named = pa.DictionaryArray.from_arrays(numbers, part.names)
    except IndexError as error:
        beyond = [number for number in numbers.to_pylist() if number is not None and not 0 <= number < len(part.names)]
        raise DamageError(
            f'{where}: feature "{printable(part.field.name)}" has class {beyond[0]}; the manifest names '
            f"{len(part.names)} classes, from 0 on"
        ) from error
    if not pa.types.is_list(values.type):
        return named
    buffers = values.buffers()[:2]  # whether a list is null, and where each begins
    return pa.Array.from_buffers(part.field.type, len(values), buffers, offset=values.offset, children=[named])


def _is_made(entry: ColumnEntry, labels: Labels) -> bool:
    """Return whether a column is more than the feature of its name, or than lists of its classes."""
    if entry.null == MASK:
        return True
    if entry.features == (entry.name,) and labels.get(entry.name):
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


# Single records as dicts of values: what `to_pylist` gives of their batch, without making one.
#
# A batch of one record costs a millisecond, whatever is in it. Values of numbers, text, bytes and times, and lists of
# them, are made of what protobuf gives; a record that has anything else, or not what the schema says, is left to the
# decoder.


Convert = Callable[[Any], Any]

_OTHER: Final = object()


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a feature is read: the list of its kind, how many values it has (None: any), None of a scalar, and each."""

    name: str
    kind: str
    count: int | None
    is_list: bool
    nullable: bool
    convert: Convert


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads columns that are plain, each a feature; `others` are the features that are not read."""

    readings: tuple[_Reading, ...]
    others: frozenset[str]

    @classmethod
    def plan(cls, schema: Schema, columns: SourceColumns, *, stored: bool = False) -> RowReader | None:
        """Return the reader of columns, None where one of them is not plain.

        Classes are their names and times Python's, or both are numbers as they are `stored`.
        """
        features = {feature.name: feature for feature in schema}
        readings = []
        for part in columns.parts:
            convert = None
            if part.kind is None and part.features == (part.field.name,):
                if part.names is None:
                    convert = _convert_of(part.field.type, stored=stored)
                else:
                    convert = int if stored else _name_of(part.names.to_pylist())
            if convert is None:
                return None
            readings.append(_reading(features[part.field.name], convert))
        return cls(tuple(readings), frozenset(features).difference(one.name for one in readings))

    def row(self, payload: bytes) -> dict[str, Any] | None:
        """Return the values of a record by column, None where the decoder has to look at it."""
        example = parse_example(payload)
        if example is None:
            return None
        features, row, seen = example.features.feature, {}, 0
        for one in self.readings:
            value: Any = None
            if one.name in features:
                seen += 1
                feature = features[one.name]
                if feature.WhichOneof("kind") != one.kind:
                    return None
                value = self._value(one, getattr(feature, one.kind).value)
            if value is _OTHER or (value is None and not one.nullable):
                return None
            row[one.name] = value
        if seen < len(features) and not self.others.issuperset(name for name in features if name not in row):
            return None
        return row

    @staticmethod
    def _value(one: _Reading, values: Sequence[Any]) -> Any:
        if one.count is not None and len(values) != one.count:
            return _OTHER
        try:
            found = [one.convert(value) for value in values]
        except (ValueError, OverflowError):  # text that is not UTF-8, or a number that the type does not hold
            return _OTHER
        return found if one.is_list else found[0]


def _reading(feature: Feature, convert: Convert) -> _Reading:
    count = 1 if feature.shape == () else None if feature.shape == (-1,) else math.prod(feature.shape)
    return _Reading(feature.name, f"{feature.kind}_list", count, feature.shape != (), feature.nullable, convert)


def _convert_of(kind: pa.DataType, *, stored: bool) -> Convert | None:
    """Return how a value of protobuf becomes one of an Arrow type, None where that is left to the decoder."""
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    if pa.types.is_temporal(kind):
        return int if stored else time_of(kind)
    if kind in (pa.float32(), pa.float64()):
        return float
    if is_string(kind):
        return bytes.decode
    if is_binary(kind):
        return bytes
    if pa.types.is_boolean(kind):
        return _bool_of
    return _int_of(kind) if pa.types.is_integer(kind) else None


def _bool_of(value: int) -> bool:
    if value not in (0, 1):
        raise ValueError(value)
    return bool(value)


def _name_of(names: list[str]) -> Convert:
    def name(number: int) -> str:
        if not 0 <= number < len(names):
            raise ValueError(number)
        return names[number]

    return name


def _int_of(kind: pa.DataType) -> Convert | None:
    """Return the check of the range of a type; int64 needs none, and uint64 is stored in another way."""
    if kind == pa.int64():
        return int
    if kind == pa.uint64():
        return None
    limits = np.iinfo(kind.to_pandas_dtype())
    low, high = int(limits.min), int(limits.max)

    def check(value: int) -> int:
        if not low <= value <= high:
            raise ValueError(value)
        return value

    return check


_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = _EPOCH.toordinal()
_STEPS: Final = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1), "us": timedelta(microseconds=1)}


def time_of(kind: pa.DataType) -> Callable[[int], Any] | None:
    """Return what makes a number a value of a type of time, None where that is left to Arrow.

    Python has microseconds at most, so nanoseconds are left to Arrow, and what is before the year 1 or after 9999 too.
    What it returns raises ValueError or OverflowError where Python has no such value.

    >>> time_of(pa.timestamp("s"))(86400), time_of(pa.date32())(1), time_of(pa.timestamp("ns"))
    (datetime.datetime(1970, 1, 2, 0, 0), datetime.date(1970, 1, 2), None)
    """
    if types.is_date32(kind):
        return lambda number: date.fromordinal(_EPOCH_DAY + number)
    step = None if types.is_date64(kind) or types.is_interval(kind) else _STEPS.get(kind.unit)
    if step is None:
        return None
    if types.is_duration(kind):
        return lambda number: number * step
    if types.is_time(kind):
        return lambda number: _time_of_day(number * step)
    if kind.tz is None:
        return lambda number: _EPOCH + number * step
    zone = pa.array(np.zeros(1, np.int64)).view(kind)[0].as_py().tzinfo
    epoch = _EPOCH.replace(tzinfo=UTC)
    return lambda number: (epoch + number * step).astimezone(zone)


def _time_of_day(since_midnight: timedelta) -> time:
    if since_midnight.days:
        raise ValueError(since_midnight)
    return (_EPOCH + since_midnight).time()


# Rows by their number as dicts of NumPy values: torch's map-style dataset, and grain's `RandomAccessDataSource`.


class RowSource:
    """What has a length and rows by number, one or many at a time; threads may share it, and processes get their own.

    A row is a dict: numbers and fixed shapes are NumPy values, lists of any length are arrays, text is str. Where a
    column may be null, `NAME/present` says whether it is not. Times are NumPy's, or of the dtype `times`.
    """

    def __init__(
        self,
        rows: NumberedRows,
        columns: Sequence[str] | None,
        *,
        decode: bool,
        times: np.dtype[np.int64] | None = None,
    ) -> None:
        self._rows, self._times = rows, times
        self._numpy = NumpyColumns.plan(rows.schema, columns, decode=decode)
        self._decodes = decode
        self._single = SingleRows.plan(rows, self._numpy, rows.plan(self._numpy.columns)[0], times)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(RowSource, decode=self._decodes, times=self._times), (self._rows, self._numpy.columns)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        """Return what the rows are of, wherever they are: checkpoints of grain compare it."""
        name, generation = self._rows.manifest.name, self._rows.manifest.generation
        columns = "all columns" if self._numpy.columns is None else ", ".join(self._numpy.columns)
        what = f"{len(self):,} rows of shards {self._rows.digest}, {columns}, decode={self._decodes}"
        return f"<RowSource {printable(name)}: generation {generation}, {what}>"

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return the row of a number.

        Raises:
            IndexError: there is none.
            DamageError: its shard is missing, damaged or cut, or the record is not an Example of the schema.
        """
        number = operator.index(index)
        row = None if self._single is None else self._single.row(self._rows.access.record(number))
        return self.__getitems__([number])[0] if row is None else row

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        numbers = np.asarray(indices, np.int64)
        columns = self._numpy.read_filled(self._rows.take(numbers, self._numpy.columns))
        each = {name: _each(self._timed(values), len(numbers)) for name, values in columns.items()}
        return [{name: values[row] for name, values in each.items()} for row in range(len(numbers))]

    def _timed(self, values: Values) -> Values:
        if isinstance(values, Ragged):
            return Ragged(self._timed(values.values), values.row_splits)
        return values.view(self._times) if self._times is not None and values.dtype.kind in "mM" else values


def _each(values: Values, count: int) -> Sequence[Any]:
    if not isinstance(values, Ragged):
        return values  # type: ignore[return-value]  # an array is one
    splits = values.row_splits.tolist()
    if not isinstance(values.values, Ragged):
        return [values.values[splits[row] : splits[row + 1]] for row in range(count)]
    inner = _each(values.values, len(values.values.row_splits) - 1)
    return [inner[splits[row] : splits[row + 1]] for row in range(count)]


Make = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class SingleRows:
    """Reads a record as the dict of its values, without a batch of one: the same values, in a tenth of the time.

    `columns` are plain: of each its name, how a value is made, and its null, if any.
    """

    reader: RowReader
    columns: tuple[tuple[str, Make, Any, bool], ...]

    @classmethod
    def plan(
        cls, rows: NumberedRows, numpy: NumpyColumns, columns: SourceColumns, times: np.dtype[Any] | None
    ) -> SingleRows | None:
        """Return what reads single rows, None where a column takes a batch; times are NumPy's, or of `times`."""
        reader = RowReader.plan(rows.schema, columns, stored=True)
        if reader is None or numpy.arrays or numpy.pictures:
            return None
        found = []
        for field in columns.schema:
            made = _maker(field.type, numpy.shapes.get(field.name), times)
            if made is None or (field.nullable and types.is_nested(field.type)):
                return None
            found.append((field.name, *made, field.nullable))
        return cls(reader, tuple(found))

    def row(self, payload: bytes) -> dict[str, Any] | None:
        """Return the values of a record, None where a batch has to be made of it."""
        values = self.reader.row(payload)
        if values is None:
            return None
        found = {}
        for name, make, null, nullable in self.columns:
            value = values[name]
            found[name] = null if value is None else make(value)
            if nullable:
                found[name + PRESENT] = np.bool_(value is not None)
        return found


def _maker(kind: pa.DataType, shape: tuple[int, ...] | None, times: np.dtype[Any] | None) -> tuple[Make, Any] | None:
    """Return how a value of protobuf becomes one of NumPy, and what stands for null; None where that takes a batch."""
    if types.is_list(kind) or types.is_fixed_size_list(kind):
        dtype = _item_dtype(kind.value_type, times)
        if dtype is None and shape is not None:
            return None
        if dtype is None:
            return _objects, None
        return (lambda values: np.array(values, dtype).reshape(shape or -1)), None
    if types.is_string(kind):
        return str, ""
    if types.is_binary(kind):
        return bytes, b""
    dtype = _item_dtype(kind, times)
    if dtype is None:
        return None
    if dtype.kind in "mM":
        unit, _ = np.datetime_data(dtype)
        return (lambda value: dtype.type(value, unit)), dtype.type(0, unit)
    return dtype.type, dtype.type(np.nan if dtype.kind == "f" else 0)


def _item_dtype(kind: pa.DataType, times: np.dtype[Any] | None) -> np.dtype[Any] | None:
    found = numpy_type_of(kind.index_type if types.is_dictionary(kind) else kind)
    return times if times is not None and found is not None and found.kind in "mM" else found


def _objects(values: list[Any]) -> Any:
    found = np.empty(len(values), object)
    found[:] = values
    return found
