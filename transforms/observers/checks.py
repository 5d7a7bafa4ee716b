"""Checks over all records: records that are alike, and values that are in several splits.

What is spilled of a batch is the length of a JSON document, the document, which says where its rows come from, and a
table of a digest, a split and a source entry for each record. So nothing is compared before all
tasks are done, and nothing is held in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import SchemaError
from ..format.batches.arrow_memory import take_rows
from ..format.batches.observers import Finding, LeftOut, Observation, Observer, Seen, Went
from ..format.batches.rows import Frames, Origin
from ..format.examples.encode_rows import RowEncoder
from ..format.schema.schema import Schema
from ..format.wording.printable import nearest_name, printable
from .groups import DIGEST, ROW, Groups, Table, digests_of, digests_of_values, find_groups


class SpilledRows(Observer):
    """A check that spills a digest, a split and a source entry of each record."""

    __slots__ = ()

    columns: tuple[str, ...]
    name: ClassVar[str]

    def check(self, schema: Schema) -> None:
        for column in self.columns:
            if not features_of(schema, column):
                known = sorted({feature.name for feature in schema} | {one.name.split("/")[0] for one in schema})
                hint = nearest_name(column, known)
                what = f'checks.{self.name}.columns names "{printable(column)}"'
                raise SchemaError(f"{what}, which is no column of the dataset; {hint}")

    def settled(self, spilled: bytes, went: Mapping[str, Went]) -> bytes:
        done = dict.fromkeys(went, 0)
        found = []
        for header, read in _batches(spilled):
            table, names = read.copy(), list[str](header["splits"])
            for code, stream in enumerate(header["splits"]):
                if stream not in went:
                    continue
                where, rows = went[stream], np.flatnonzero(table["split"] == code)
                every = slice(done[stream], done[stream] + len(rows))
                codes = np.zeros(len(rows), np.int8) if where.codes is None else where.codes[every]
                names += [name for name in where.names if name not in names]
                table["split"][rows] = np.array([names.index(name) for name in where.names])[codes]
                done[stream] += len(rows)
            found.append(_written(header | {"splits": names}, table))
        return b"".join(found)

    def without(self, spilled: bytes, left_out: LeftOut) -> bytes:
        done: Counter[str] = Counter()
        found = []
        for header, table in _batches(spilled):
            kept = np.ones(len(table), bool)
            for code, name in enumerate(header["splits"]):
                rows = np.flatnonzero(table["split"] == code)
                if name in left_out.records:
                    numbers = np.arange(done[name], done[name] + len(rows))
                    kept[rows[np.isin(numbers, left_out.records[name])]] = False
                done[name] += len(rows)
            if kept.all():
                found.append(_written(header, table))
            elif kept.any():
                places = header.get("places") or [
                    (header["source"], header["first"] + row) for row in range(len(table))
                ]
                there = [places[row] for row in np.flatnonzero(kept).tolist()]
                more = {name: one for name, one in header.items() if name not in ("source", "first")}
                found.append(_written(more | {"places": there, "rows": len(there)}, table[kept]))
        return b"".join(found)

    def merge(self, one: Any, other: Any) -> Any:
        splits = list(dict.fromkeys([*one["splits"], *other["splits"]]))
        return {"rows": one["rows"] + other["rows"], "splits": splits}


DUPLICATES: Final = "duplicates"


@dataclass(frozen=True, slots=True)
class Duplicates(SpilledRows):
    """Find records that are alike in `columns` (none: in everything), and leave out all but the first with `drop`.

    Two nulls are alike. A nested column stands for all of its features.
    """

    columns: tuple[str, ...] = ()
    action: Literal["report", "drop"] = "report"

    name = DUPLICATES

    def observe(self, seen: Seen) -> Observation:
        rows = seen.written()
        if not len(rows):
            return spilled_of(seen, rows, np.empty(0, DIGEST))
        if self.columns:
            return spilled_of(seen, rows, digests_of(encoded(seen, rows, self.columns)))
        # records are by split; a stable sort tells the rows of each
        frames = [seen.frames[split] for split in seen.names if split in seen.frames]
        digests = np.empty(len(rows), DIGEST)
        digests[np.argsort(seen.splits[rows], kind="stable")] = np.concatenate([digests_of(one) for one in frames])
        return spilled_of(seen, rows, digests)

    def finish(self, summary: Any, spilled: Sequence[bytes]) -> Finding:
        names, rows = ([], 0) if summary is None else (list(summary["splits"]), summary["rows"])
        found = find_groups(tables_of(spilled, names), rows, mark=self.action == "drop")
        check: dict[str, Any] = {"columns": list(self.columns), "records": found.repeats, "groups": found.groups}
        if self.action == "report":
            return Finding(check | more_of(found, names, spilled))
        check |= {"action": "drop"} | more_of(found, names, spilled)
        return Finding(check, lambda number: _left_out(spilled[number], found, number, names))


def _left_out(data: bytes, found: Groups, number: int, names: list[str]) -> LeftOut | None:
    if number not in found.gone:
        return None
    table = table_of(data, names)
    gone = np.unpackbits(found.gone[number], count=len(table), bitorder="little").astype(bool)
    records = {}
    for code in np.unique(table["split"][gone]).tolist():
        records[names[code]] = np.flatnonzero(gone[table["split"] == code])
    entries, counts = np.unique(table["entry"][gone], return_counts=True)
    return LeftOut(records, dict(zip(entries.tolist(), counts.tolist(), strict=True)))


LEAKS: Final = "leaks"


@dataclass(frozen=True, slots=True)
class Leaks(SpilledRows):
    """Find values of some columns, taken together, that are in several splits; where all are null there is none.

    Such a value is a user by whom a model would be both trained and judged.
    """

    columns: tuple[str, ...]

    name = LEAKS

    def observe(self, seen: Seen) -> Observation:
        rows = seen.written()
        names = {name for column in self.columns for name in features_of(seen.schema, column)}
        there = np.zeros(seen.batch.num_rows, bool)
        for name in names & set(seen.batch.schema.names):
            there |= np.asarray(seen.batch[name].is_valid())
        digests = digests_of(encoded(seen, rows, self.columns)) if len(rows) else np.empty(0, DIGEST)
        nulls = np.flatnonzero(~there[rows])
        if len(nulls):  # alike to none: their place stands for a value
            places = [repr(seen.origin.number(row)).encode() for row in rows[nulls].tolist()]
            digests[nulls] = digests_of_values(places)
        found = spilled_of(seen, rows, digests)
        return Observation(found.summary | {"values": len(rows) - len(nulls)}, found.spilled)

    def merge(self, one: Any, other: Any) -> Any:
        return SpilledRows.merge(self, one, other) | {"values": one["values"] + other["values"]}

    def finish(self, summary: Any, spilled: Sequence[bytes]) -> Finding:
        names, rows = ([], 0) if summary is None else (list(summary["splits"]), summary["rows"])
        splits = set[int]()

        def tables() -> Iterator[Table]:
            for table in tables_of(spilled, names):
                splits.update(np.unique(table["split"]).tolist())
                yield table

        found = find_groups(tables(), rows, across=True)
        check: dict[str, Any] = {"columns": list(self.columns)}
        check |= {"records": found.repeats + found.groups, "groups": found.groups}
        if not summary or not summary["values"] or len(splits) < 2:
            check["not_compared"] = "one split" if len(splits) == 1 else "no value"
        return Finding(check | more_of(found, names, spilled))


_LENGTH: Final = np.dtype("<u4")


def features_of(schema: Schema, column: str) -> list[str]:
    """Return the features of a column: those of a nested one have its name before a slash."""
    return [one.name for one in schema if one.name == column or one.name.startswith(f"{column}/")]


def encoded(seen: Seen, rows: npt.NDArray[np.int64], columns: Sequence[str]) -> Frames:
    """Return records of some columns alone, in the order of rows."""
    names = {name for column in columns for name in features_of(seen.schema, column)}
    schema = Schema(tuple(feature for feature in seen.schema if feature.name in names))
    there = [name for name in seen.batch.schema.names if name in names]
    batch = take_rows(seen.batch.select(there), rows)
    if not there:  # the columns are absent in all rows
        batch = pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    (frames,) = RowEncoder(schema, field_bytes_limit=seen.field_bytes_limit).encode(batch).splits.values()
    return frames


def spilled_of(seen: Seen, rows: npt.NDArray[np.int64], digests: Table) -> Observation:
    if not len(rows):
        return Observation({"rows": 0, "splits": []})
    table = np.empty(len(rows), ROW)
    table["high"], table["low"], table["split"] = digests["high"], digests["low"], seen.splits[rows]
    table["entry"] = seen.entry if isinstance(seen.entry, int) else seen.entry[rows]
    header = _places(seen.origin, rows) | {"rows": len(rows), "splits": seen.names}
    return Observation({"rows": len(rows), "splits": list(seen.names)}, _written(header, table))


def tables_of(spilled: Sequence[bytes], names: list[str]) -> Iterator[Table]:
    return (table_of(data, names) for data in spilled)


def more_of(found: Groups, names: Sequence[str], spilled: Sequence[bytes]) -> dict[str, Any]:
    """Return what a check states of groups beside their number: the splits that share them, and examples."""
    more: dict[str, Any] = {}
    if found.across:
        shared = {" ".join(sorted(names[one] for one in pair)): count for pair, count in found.across.items()}
        more["splits"] = dict(sorted(shared.items()))
    if found.examples:
        more["examples"] = [_shown(example, spilled) for example in found.examples]
    return more


def _places(origin: Origin, rows: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return the places of some rows of a batch, in ascending order: one file and a first row, where that is all."""
    counted = {"counts": "record"} if isinstance(origin.place(int(rows[0])).record, int) else {}
    (source, first), (other, last) = origin.number(int(rows[0])), origin.number(int(rows[-1]))
    if first is not None and last is not None and source == other and last - first == len(rows) - 1:
        return counted | {"source": source, "first": first}
    return counted | {"places": [origin.number(row) for row in rows.tolist()]}


def _written(header: Mapping[str, Any], table: Table) -> bytes:
    text = json.dumps(header).encode()
    return np.array([len(text)], _LENGTH).tobytes() + text + table.tobytes()


def _batches(data: bytes) -> Iterator[tuple[dict[str, Any], Table]]:
    at = 0
    while at < len(data):
        (length,) = np.frombuffer(data, _LENGTH, 1, at).tolist()
        at += _LENGTH.itemsize + length
        header = json.loads(data[at - length : at])
        yield header, np.frombuffer(data, ROW, header["rows"], at)
        at += header["rows"] * ROW.itemsize


def table_of(data: bytes, names: list[str]) -> Table:
    """Return the table of a task; splits are numbered as in `names`, which gets new ones, and not as in each batch."""
    tables = [np.empty(0, ROW)]
    for header, table in _batches(data):
        names += [name for name in header["splits"] if name not in names]
        if header["splits"] != names[: len(header["splits"])]:
            table = table.copy()
            table["split"] = np.array([names.index(name) for name in header["splits"]], np.uint32)[table["split"]]
        tables.append(table)
    return np.concatenate(tables)


def _shown(example: tuple[int, tuple[tuple[int, int], ...]], spilled: Sequence[bytes]) -> dict[str, Any]:
    count, places = example
    return {"records": count, "places": [_place(spilled[file], row) for file, row in places]}


def _place(data: bytes, row: int) -> str:
    for header, _ in _batches(data):
        if row < header["rows"]:
            word = header.get("counts", "row")
            if "first" in header:
                return f"{header['source']} {word} {header['first'] + row}"
            source, number = header["places"][row]
            return f"{source}" if number is None else f"{source} {word} {number}"
        row -= header["rows"]
    raise IndexError(row)
