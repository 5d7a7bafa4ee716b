"""Export rows as tables: Parquet, Arrow, JSON lines or CSV. Numbers of classes become names."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import UsageError
from ...format.batches.arrow_memory import offsets_of
from ...format.columns.keys import is_any_list, stored_type
from ...format.schema.column_types import is_binary, is_string
from ...format.wording.hints import Add
from ...format.wording.printable import printable, printable_path
from ..rows.numbered_rows import SourceColumns
from .open_dataset import Dataset

# Columns are those of the source:
#
#     image/class/label  0, 2        ──▶   dictionary of "cat", "owl"
#     splits train, val together     ──▶   a column `split`, or the source's own that the rows were split by


SPLIT: Final = "split"

Keep = Callable[[pa.RecordBatch], pa.BooleanArray]


@dataclass(frozen=True, slots=True)
class ExportedRows:
    """Some splits of a dataset as record batches of one schema; where there are several, each row has its split.

    `named_splits` are the splits of the values of the source's own column `split`, where that says it. `keep` says
    which rows stay by the columns that it looks at, and at most `limit` rows do. `written` counts them by split.
    """

    dataset: Dataset
    splits: tuple[str, ...]
    columns: tuple[str, ...]
    schema: pa.Schema
    with_split: bool
    named_splits: Mapping[str, str] | None = None
    keep: Keep | None = None
    looked_at: tuple[str, ...] = ()
    limit: int | None = None
    written: dict[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def plan(
        cls, dataset: Dataset, split: str | None = None, columns: Sequence[str] | None = None, *, one_table: bool
    ) -> ExportedRows:
        """Choose the rows of one split, by default of all, and their columns, by default all.

        With `one_table` the rows of several splits are in one table, which says of each in which it is.
        """
        where = printable_path(dataset.path)
        if dataset.schema is None:
            raise UsageError(
                f"{where}: its records are plain bytes without a schema, which no table holds; its shards are files "
                f"that any reader of TFRecord takes"
            )
        if split is not None and split not in dataset.splits:
            raise UsageError(f"{where}: no split {printable(split)}; it has: {', '.join(dataset.splits) or 'none'}")
        fields = list(SourceColumns.plan(dataset.manifest, dataset.schema, columns, where).schema)
        splits = dataset.splits if split is None else (split,)
        with_split, named_splits = one_table and len(splits) > 1, None
        if with_split and any(field.name == SPLIT for field in fields):
            rule = dataset.manifest.conversion.get("split", {})
            if rule.get("column") != SPLIT:
                raise _two_splits(where, splits)
            with_split, named_splits = False, rule.get("names", {})
        if with_split:
            fields.append(pa.field(SPLIT, pa.dictionary(pa.int32(), pa.string()), nullable=False))
        names = tuple(field.name for field in fields[: len(fields) - with_split])
        return cls(dataset, splits, names, pa.schema(fields), with_split, named_splits)

    def batches(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the splits and the batches of their rows, in order, about 4 MiB of records at once."""
        names = pa.array(list(self.splits), pa.string())
        wanted = list(dict.fromkeys([*self.columns, *self.looked_at]))
        for number, split in enumerate(self.splits):
            self.written[split] = 0
            for found in self.dataset[split].batches(columns=wanted):
                if self.named_splits is not None:
                    self._check_split(split, found[SPLIT])
                batch = found if self.keep is None else found.filter(self.keep(found))
                batch = batch if self.limit is None else batch.slice(0, self.limit - sum(self.written.values()))
                self.written[split] += batch.num_rows
                if not batch.num_rows:
                    if self.limit is not None and sum(self.written.values()) >= self.limit:
                        break
                    continue
                arrays = batch.columns[: len(self.columns)]
                if self.with_split:
                    places = pa.repeat(pa.scalar(number, pa.int32()), batch.num_rows)
                    arrays.append(pa.DictionaryArray.from_arrays(places, names))
                yield split, pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _check_split(self, split: str, values: pa.Array) -> None:
        """Check that the source's own column names the split: an append may have said it otherwise."""
        assert self.named_splits is not None
        numbers = values.indices if types.is_dictionary(values.type) else values  # a label is split by its numbers
        for value in map(_text, pc.unique(numbers).to_pylist()):
            if self.named_splits.get(value, value) != split:
                raise _two_splits(printable_path(self.dataset.path), self.splits)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _two_splits(where: str, splits: Sequence[str]) -> UsageError:
    return UsageError(
        f'{where}: has {len(splits)} splits and a column "{SPLIT}" of its own that is not the split of each row, so one'
        f" table cannot say which row is in which; export each split by itself: "
        f"{Add('--split', splits[0])}, or without that column: name the others with {Add('--columns')}"
    )


_OUT_OF_RANGE = "<value out of range"
"""What Arrow writes for a time that its calendar does not have."""


def plain_array(name: str, values: pa.Array) -> pa.Array:
    """Return a column with the types that text has: numbers, bools, text, and lists, structs and maps of these.

    A time out of the range of dates is a `UsageError`.
    """
    found = _shortest(values.cast(_plain_type(values.type)))
    if _has_times(values.type) and _out_of_range(found):
        raise UsageError(
            f'column "{printable(name)}" holds times that no date says, over 32,767 years from now; export to .parquet'
        )
    return _encoded(found) if is_binary(found.type) else found


def plain_list(name: str, values: pa.Array) -> list[Any]:
    """Return a column as values that JSON has; null is None. Raises what `plain_array` does."""
    found = plain_array(name, values)
    items = found.to_pylist()
    return [_plain(value, found.type) for value in items] if types.is_nested(found.type) else items


def _plain_type(kind: pa.DataType) -> pa.DataType:
    kind = stored_type(kind)
    if types.is_temporal(kind) or types.is_decimal(kind):
        return pa.int64() if types.is_duration(kind) else pa.string()
    return pa.float32() if types.is_float16(kind) else _with_inner(kind, _plain_type)


def _with_inner(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a nested type with other types of its values; any list is a list of any length."""
    if types.is_struct(kind):
        return pa.struct([field.with_type(change(field.type)) for field in kind])
    if types.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(key.with_type(change(key.type)), item.with_type(change(item.type)))
    if is_any_list(kind):
        return pa.list_(kind.value_field.with_type(change(kind.value_type)))
    return kind


def _shortest(values: pa.Array) -> pa.Array:
    """Return float32 as the float64 of fewest digits that round to them."""
    shortest = _with_floats_as(pa.float64(), values.type)
    return values if shortest == values.type else values.cast(_with_floats_as(pa.string(), values.type)).cast(shortest)


def _with_floats_as(leaf: pa.DataType, kind: pa.DataType) -> pa.DataType:
    return leaf if kind == pa.float32() else _with_inner(kind, partial(_with_floats_as, leaf))


def without_types(schema: pa.Schema) -> list[str]:
    """Return the columns that text does not keep: it has bytes, times, dates, decimals and durations as other types."""
    return [one.name for one in schema if _holds(one.type, is_binary, types.is_temporal, types.is_decimal)]


def _has_times(kind: pa.DataType) -> bool:
    return _holds(kind, lambda one: types.is_temporal(one) and not types.is_duration(one))


def _holds(kind: pa.DataType, *tests: Callable[[pa.DataType], bool]) -> bool:
    kind = stored_type(kind)
    children = (kind.field(index).type for index in range(kind.num_fields))
    return any(test(kind) for test in tests) or any(_holds(child, *tests) for child in children)


def _out_of_range(values: pa.Array) -> bool:
    if is_string(values.type):
        return bool(pc.any(pc.starts_with(values, _OUT_OF_RANGE)).as_py())
    if types.is_struct(values.type):
        return any(_out_of_range(one) for one in values.flatten())
    if types.is_map(values.type):
        return _out_of_range(values.keys) or _out_of_range(values.items)
    return types.is_list(values.type) and _out_of_range(values.flatten())


def _encoded(values: pa.Array) -> pa.Array:
    texts = [None if value is None else base64.b64encode(value).decode() for value in values.to_pylist()]
    return pa.array(texts, pa.string())


def _plain(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if is_binary(kind):
        return base64.b64encode(value).decode()
    if types.is_map(kind):
        pairs = [[_plain(key, kind.key_type), _plain(item, kind.item_type)] for key, item in value]
        if not is_string(kind.key_type):
            return pairs
        named = {str(key): item for key, item in pairs}
        return named if len(named) == len(pairs) else pairs
    if types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if types.is_list(kind) and (types.is_nested(kind.value_type) or is_binary(kind.value_type)):
        return [_plain(one, kind.value_type) for one in value]
    return value


_ROW_GROUP_BYTES: Final = 64 << 20
"""Of Arrow memory: what readers of Parquet like, and all that is held of a dataset."""

Write = Callable[[ExportedRows, BinaryIO], None]


def write_parquet(rows: ExportedRows, file: BinaryIO) -> None:
    import pyarrow.parquet as pq

    schema = pa.schema([_for_parquet(field) for field in rows.schema])
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for table in _row_groups(rows):
            writer.write_table(table.cast(schema), row_group_size=max(len(table), 1))


def _for_parquet(field: pa.Field) -> pa.Field:
    """Return a field whose values pyarrow itself reads back: it refuses lists of a fixed size where some are null."""
    if types.is_fixed_size_list(field.type) and field.nullable:
        return field.with_type(pa.list_(field.type.value_field))
    if types.is_struct(field.type):
        children = [_for_parquet(child.with_nullable(child.nullable or field.nullable)) for child in field.type]
        return field.with_type(pa.struct(children))
    return field


def _row_groups(rows: ExportedRows) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for _, batch in rows.batches():
        held.append(batch)
        size += batch.nbytes
        if size >= _ROW_GROUP_BYTES:
            yield pa.Table.from_batches(held, rows.schema)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held, rows.schema)


def write_arrow(rows: ExportedRows, file: BinaryIO) -> None:
    with pa.ipc.new_file(file, rows.schema) as writer:
        for _, batch in rows.batches():
            writer.write_batch(batch)


def write_json_lines(rows: ExportedRows, file: BinaryIO) -> None:
    for _, batch in rows.batches():
        file.write(json_lines(rows.schema.names, batch.columns))


def json_lines(names: list[str], columns: Iterable[pa.Array]) -> bytes:
    r"""Return rows as lines of JSON.

    >>> json_lines(["a"], [pa.array([1, None])])
    b'{"a": 1}\n{"a": null}\n'
    """
    values = [plain_list(name, column) for name, column in zip(names, columns, strict=True)]
    encode = json.JSONEncoder(ensure_ascii=False).encode
    return "".join(encode(dict(zip(names, row, strict=True))) + "\n" for row in zip(*values, strict=True)).encode()


def write_csv(rows: ExportedRows, file: BinaryIO) -> None:
    """Write rows as CSV with a header: text in quotes, a null as nothing, a float with a point or an exponent."""
    nested = [field.name for field in rows.schema if types.is_nested(stored_type(field.type))]
    if nested:
        names = ", ".join(printable(name) for name in nested)
        raise UsageError(
            f"CSV has no lists and objects, which {names} hold; export to .jsonl or .parquet, or choose others with "
            f"{Add('--columns')}"
        )
    names = rows.schema.names
    file.write(csv_lines([pa.array([name]) for name in names]))
    for _, batch in rows.batches():
        file.write(csv_lines([plain_array(*pair) for pair in zip(names, batch.columns, strict=True)]))


def csv_lines(columns: Sequence[pa.Array]) -> pa.Buffer:
    r"""Return rows of plain columns as lines of CSV.

    Arrow's own writer has no point in floats that are whole numbers: they are read back as integers, and -0 as text.

    >>> csv_lines([pa.array([1.0, -0.0, 1e20]), pa.array(['a "b" c', "", None]), pa.array([1, 2, 3])]).to_pybytes()
    b'1.0,"a ""b"" c",1\n-0.0,"",2\n1e+20,,3\n'
    """
    if not columns:
        return pa.py_buffer(b"")
    rows = _joined(",", *map(_csv_cells, columns), null_handling="replace", null_replacement="")
    lines = _joined("\n", rows, "").cast(pa.large_binary())
    if not len(lines):
        return pa.py_buffer(b"")
    first, last = offsets_of(lines, np.int64)[[0, -1]].tolist()
    return lines.buffers()[2].slice(first, last - first)


def _csv_cells(values: pa.Array) -> pa.Array:
    text = values.cast(pa.large_string())
    if is_string(values.type):
        return _joined("", '"', pc.replace_substring(text, '"', '""'), '"')
    if types.is_floating(values.type):  # Arrow writes the fewest digits that give the value again
        return pc.if_else(pc.match_substring_regex(text, "^-?[0-9]+$"), _joined("", text, ".0"), text)
    return text


def _joined(separator: str, *parts: pa.Array | str, **options: str) -> pa.Array:
    texts = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in (*parts, separator)]
    return pc.binary_join_element_wise(*texts, **options)


OF_TEXT: Final = (".jsonl", ".ndjson", ".csv")
"""Tables that keep no types."""

TABLES: Final[dict[str, Write]] = {
    ".parquet": write_parquet,
    ".arrow": write_arrow,
    ".feather": write_arrow,
    ".jsonl": write_json_lines,
    ".ndjson": write_json_lines,
    ".csv": write_csv,
}
