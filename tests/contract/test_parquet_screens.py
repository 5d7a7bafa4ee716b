"""What the user of the command line sees of bad and odd Parquet files: one screen a case, word for word."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

EMPTY = "no rows were read: generation 1 holds no record"

ROWS = 300
TABLE = pa.table({"id": range(ROWS), "name": [f"name {i % 50}" for i in range(ROWS)]})
NO_CHECKSUMS = (
    "no checksums present in the pages: damage that decodes cannot be noticed; writers add them on request (pyarrow: "
    "write_page_checksum=True)"
)

Files = Mapping[str, bytes | Callable[[Path], object]]


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **{"write_page_checksum": True, **options})
    return bytes(sink.getvalue())


def column(values: Any, kind: pa.DataType | None = None) -> dict[str, bytes]:
    """Return a file whose one column `x` has these values."""
    return {"a.parquet": parquet(pa.table({"x": pa.array(values, kind)}))}


def pair(one: pa.Table, two: pa.Table) -> dict[str, bytes]:
    return {"a.parquet": parquet(one), "b.parquet": parquet(two)}


GOOD = parquet(TABLE, row_group_size=100)


def flipped() -> bytes:
    data = bytearray(GOOD)
    chunk = pq.ParquetFile(pa.BufferReader(GOOD)).metadata.row_group(1).column(0)
    data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0x10
    return bytes(data)


class _PlainKms(pe.KmsClient):  # type: ignore[misc]
    def __init__(self, _: object) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)


def encrypted(path: Path) -> None:
    config = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["id"]})
    properties = pe.CryptoFactory(_PlainKms).file_encryption_properties(pe.KmsConnectionConfig(), config)
    with pq.ParquetWriter(path, TABLE.schema, encryption_properties=properties) as writer:
        writer.write_table(TABLE)


NO_UTF8 = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(struct.pack("<3i", 0, 2, 4)), pa.py_buffer(b"ok\xff\xfe")]
)

DAMAGED: dict[str, tuple[Files, str]] = {
    "cut": (
        {"a.parquet": GOOD[:400], "b.parquet": GOOD},
        'a.parquet: does not end with "PAR1": it is cut, or bytes were added to it (400 bytes)',
    ),
    "empty": ({"a.parquet": b""}, "a.parquet: is empty (0 bytes), so it is not a Parquet file"),
    "wrong magic at the end": (
        {"a.parquet": GOOD[:-4] + b"PAR2"},
        f'a.parquet: does not end with "PAR1": it is cut, or bytes were added to it ({len(GOOD)} bytes)',
    ),
    "wrong magic at the start": (
        {"a.parquet": b"PAR2" + GOOD[4:]},
        'a.parquet: is not a Parquet file: it begins with "PAR2" and not with "PAR1"',
    ),
    "CSV, renamed": (
        {"a.parquet": b"id,name\n1,ada\n"},
        'a.parquet: is not a Parquet file: it begins with "id,n" and not with "PAR1"',
    ),
    "bytes after the end": (
        {"a.parquet": GOOD + bytes(3)},
        f'a.parquet: does not end with "PAR1": it is cut, or bytes were added to it ({len(GOOD) + 3} bytes)',
    ),
    "footer longer than the file": (
        {"a.parquet": GOOD[:-8] + (2**32 - 1).to_bytes(4, "little") + b"PAR1"},
        f"a.parquet: is cut or damaged: a footer of 4294967295 bytes in a file of {len(GOOD)} bytes; "
        "copy or write the file again",
    ),
    "encrypted": ({"a.parquet": encrypted}, "a.parquet: encrypted Parquet is not supported; decrypt it first"),
    "two columns of one name": (
        {"a.parquet": parquet(pa.table([[1], [2]], names=["a", "a"]))},
        'a.parquet: two columns are named "a"; rename one of them',
    ),
    "a flipped bit in a page": (
        {"a.parquet": flipped(), "b.parquet": GOOD},
        "a.parquet: row group 1 (rows from 101) is damaged: could not verify page integrity, CRC checksum verification "
        "failed for page_ordi…; copy or write the file again, or read it without checksums: --set "
        "input.checksums=false",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_file_that_is_damaged_as_a_whole_fails_the_run_by_its_name(desk: Any, case: str) -> None:
    files, message = DAMAGED[case]
    desk.put(files)
    desk.assert_refused(desk.convert(*files), 1, message)


def test_all_damaged_files_of_a_run_are_named(desk: Any) -> None:
    desk.put({"a.parquet": flipped(), "b.parquet": GOOD, "c.parquet": flipped()})
    text = (
        "row group 1 (rows from 101) is damaged: could not verify page integrity, CRC checksum verification failed for "
        "page_ordi…; copy or write the file again, or read it without checksums: --set input.checksums=false"
    )
    screen = desk.convert("a.parquet", "b.parquet", "c.parquet", "--set", "output.shard_size=64KiB")
    desk.assert_refused(screen, 1, f"a.parquet: {text}\nc.parquet: {text}")


REFUSED: dict[str, tuple[Files, Sequence[str], str]] = {
    "a struct beside a column that has the key of its child": (
        {"a.parquet": parquet(pa.table({"x/b": [1], "x": [{"b": 2}]}))},
        [],
        'two columns would be named "x/b"; rename one: --set \'schema.columns."x/b".name=x/b_2\'',
    ),
    "a form that no struct has": (
        column([{"b": 2}]),
        ["--set", "schema.columns.x.as=scaled"],
        'column "x": "as: scaled" does not fit struct<b: int64>; the choices are json',
    ),
    "a type that no struct has": (
        column([{"b": 2}]),
        ["--set", "schema.columns.x.type=string"],
        'column "x": schema.columns declares type "string", but it holds struct<b: int64>; leave the type out',
    ),
    "a column in one file only": (
        pair(pa.table({"a": [1]}), pa.table({"a": [1], "b": [2]})),
        [],
        'b.parquet has a column "b" (int64), and a.parquet has none; read the columns of all files, null where a file '
        "lacks one: --set input.columns_differ=union; or leave the column out: "
        "--set 'input.exclude_columns=[\"b\"]'; or convert them apart",
    ),
    "a column of two types": (
        pair(pa.table({"a": [1]}), pa.table({"a": ["x"]})),
        [],
        'column "a" is int64 in a.parquet, and string in b.parquet; write one of them again with the other\'s type, or '
        "convert them apart",
    ),
    "whole numbers first, and then floats": (
        pair(pa.table({"a": [1]}), pa.table({"a": [0.5]})),
        [],
        'column "a" is int64 in a.parquet, and double in b.parquet; write one of them again with the other\'s type, or '
        "convert them apart; or read both as double, where that is exact: --set input.columns_differ=union",
    ),
    "a column that is not there": (
        {"a.parquet": GOOD},
        ["--set", "input.columns=[idd]"],
        'a.parquet: input.columns names "idd", which is not a column; did you mean "id"?',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_feature_holds_is_refused_before_a_row_is_read(desk: Any, case: str) -> None:
    files, args, message = REFUSED[case]
    desk.put(files)
    desk.assert_refused(desk.convert(*files, *args), 2, message)


REJECTED: dict[str, tuple[Files, Sequence[str], str, str, list[dict[str, Any]]]] = {
    "text that is not UTF-8": (
        column(NO_UTF8),
        [],
        "1 of 2 rows was rejected (BAD_UTF8 1)",
        'a.parquet row group 0 row 2: column "x": BAD_UTF8: "\\xff\\xfe" is not UTF-8; declare it as bytes: '
        "--set schema.columns.x.type=bytes",
        [{"x": "ok"}],
    ),
    "uint64 above int64": (
        column([1, 2**64 - 1], pa.uint64()),
        [],
        "1 of 2 rows was rejected (INT_OVERFLOW 1)",
        'a.parquet row group 0 row 2: column "x": INT_OVERFLOW: 18446744073709551615 is above 9223372036854775807, the '
        "largest int64; keep its digits: --set schema.columns.x.type=string",
        [{"x": 1}],
    ),
    "float64 beyond float32": (
        column([0.5, 1e39]),
        [],
        "1 of 2 rows was rejected (FLOAT_OVERFLOW 1)",
        'a.parquet row group 0 row 2: column "x": FLOAT_OVERFLOW: 1e+39 is beyond the largest float32, 3.4028235e+38; '
        "keep it exact: --set schema.columns.x.as=bytes; if it is a code, in CSV or JSON lines: --set "
        "schema.columns.x.type=string",
        [{"x": 0.5}],
    ),
    "timestamp with nanoseconds": (
        column([1001, None], pa.timestamp("ns")),
        ["--set", "schema.columns.x.unit=us"],
        "1 of 2 rows was rejected (PRECISION_LOSS 1)",
        'a.parquet row group 0 row 1: column "x": PRECISION_LOSS: 1001 ns is not a whole number of us; keep it exact: '
        "--set schema.columns.x.unit=ns",
        [{}],
    ),
    "time of one nanosecond": (
        column([1, None], pa.time64("ns")),
        ["--set", "schema.columns.x.unit=us"],
        "1 of 2 rows was rejected (PRECISION_LOSS 1)",
        'a.parquet row group 0 row 1: column "x": PRECISION_LOSS: 1 ns is not a whole number of us; keep it exact: '
        "--set schema.columns.x.unit=ns",
        [{}],
    ),
    "null in a list": (
        column([[1, None], [2]]),
        [],
        "1 of 2 rows was rejected (NULL_IN_LIST 1)",
        'a.parquet row group 0 row 1: column "x": NULL_IN_LIST: null is in a list; fill such nulls: '
        "--set schema.columns.x.null_item=-1",
        [{"x": [2]}],
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_a_value_that_cannot_be_kept_is_named_and_the_other_rows_are_kept(desk: Any, case: str) -> None:
    files, args, counts, line, records = REJECTED[case]
    desk.put(files)
    desk.assert_rejected([*files, *args], counts, [line], records)


ACCEPTED: dict[str, tuple[Files, Sequence[str], Sequence[str], list[dict[str, Any]]]] = {
    "pages without checksums": (
        {"a.parquet": parquet(TABLE.slice(0, 1), write_page_checksum=False)},
        [],
        [],
        [{"id": 0, "name": "name 0"}],
    ),
    "text that is not UTF-8, declared as the reject says": (
        column(NO_UTF8),
        ["--set", "schema.columns.x.type=bytes"],
        [],
        [{"x": b"ok"}, {"x": b"\xff\xfe"}],
    ),
    "uint64 above int64, declared as the reject says": (
        column([2**64 - 1], pa.uint64()),
        ["--set", "schema.columns.x.type=string"],
        [],
        [{"x": "18446744073709551615"}],
    ),
    "no rows": (
        {"a.parquet": parquet(TABLE.slice(0, 0))},
        [],
        ["Wrote out: 0 records in 0 shards, 0 B (generation 1).", f"Warning: {EMPTY}"],
        [],
    ),
    "one of two files without rows": (
        pair(pa.table({"a": [1]}).slice(0, 0), pa.table({"a": [1]})),
        [],
        [],
        [{"a": 1}],
    ),
    "no columns": ({"a.parquet": parquet(pa.table({}))}, [], [f"Warning: {EMPTY}"], []),
    "a dot in a name selects that column only": (
        {"a.parquet": parquet(pa.table({"a.b": [1], "c": [2]}))},
        ["--set", "input.columns=[a.b]"],
        [],
        [{"a.b": 1}],
    ),
    "columns in two orders": (
        pair(pa.table({"a": [1], "b": [2]}), pa.table({"b": [1], "a": [2]})),
        [],
        [],
        [{"a": 1, "b": 2}, {"a": 2, "b": 1}],
    ),
    "float16": (column(np.array([1.5, 2], np.float16)), [], [], [{"x": 1.5}, {"x": 2.0}]),
    "float64, narrowed and reported": (
        column([0.1, 1e-50]),
        [],
        [
            "Narrowed x: float64 to float32, 2 values, relative error up to 1.0e+00, 1 became "
            "zero"
        ],
        [{"x": float(np.float32(0.1))}, {"x": 0.0}],
    ),
    "float64, exact": (column([0.1, 1e39]), ["--set", "schema.columns.x.as=bytes"], [], [{"x": 0.1}, {"x": 1e39}]),
    "null type": (
        {"a.parquet": parquet(pa.table({"x": pa.nulls(2), "a": [1, 2]}))},
        [],
        ["x bytes string yes null: no value, so never present; nullable: its type is null"],
        [{"a": 1}, {"a": 2}],
    ),
    "nanoseconds, declared as the reject says": (
        column([1001], pa.timestamp("ns")),
        ["--set", "schema.columns.x.unit=ns"],
        ["x int64 timestamp (ns) no timestamp[ns] in ns; no nulls (file statistics)"],
        None,
    ),
    "dictionary": (column(pa.array(["x", "y", "x"]).dictionary_encode()), [], [], [{"x": "x"}, {"x": "y"}, {"x": "x"}]),
    "list of a fixed size": (
        column([[1, 2]], pa.list_(pa.int64(), 2)),
        [],
        ["x int64 list int64[2] yes list<int64>[2]; nullable: optional in the file"],
        [{"x": [1, 2]}],
    ),
    "binary of a fixed size": (column([b"ab"], pa.binary(2)), [], [], [{"x": b"ab"}]),
    "large string": (column(["z"], pa.large_string()), [], [], [{"x": "z"}]),
    "UUID": (
        column(pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16)))),
        [],
        [],
        [{"x": b"0" * 16}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED)
def test_odd_parquet_is_read_as_it_stands_and_what_is_odd_is_said(desk: Any, case: str) -> None:
    files, args, said, records = ACCEPTED[case]
    desk.put(files)
    desk.assert_accepted([*files, *args], said, records if records is not None else lambda _: None)


def test_pages_without_checksums_are_told_to_programs_only(desk: Any) -> None:
    desk.put({"a.parquet": parquet(TABLE.slice(0, 1), write_page_checksum=False)})
    document = json.loads(desk.convert("a.parquet", "--dry-run", "--json").out)
    assert (document["warnings"], document["remarks"]) == ([], [f"a.parquet: {NO_CHECKSUMS}"])


def test_dates_and_times_are_exact_microseconds_with_their_zone(desk: Any) -> None:
    kinds = {
        "d": pa.date32(), "m": pa.timestamp("ms", tz="Europe/Berlin"), "s": pa.timestamp("s"), "t": pa.time64("us"),
        "u": pa.duration("us"),
    }  # fmt: skip
    desk.put({"a.parquet": parquet(pa.table({name: pa.array([7], kind) for name, kind in kinds.items()}))})
    desk.assert_accepted(["a.parquet"], [], lambda found: None)
    screen = desk.inspect_json()
    assert screen == {"d": [7], "m": [7000], "s": [7_000_000], "t": [7], "u": [7]}


@pytest.mark.thorough("a table of 10,000 columns")
def test_10_000_columns_are_read_with_a_warning(desk: Any) -> None:
    desk.put({"a.parquet": parquet(pa.table({f"c{i}": [i] for i in range(10_000)}))})
    desk.assert_accepted(
        ["a.parquet"],
        ["Warning: a.parquet: 10000 columns are read for every row; input.columns keeps only some"],
        _assert_wide,
    )


def _assert_wide(found: list[dict[str, Any]]) -> None:
    assert found == [{f"c{i}": i for i in range(10_000)}]
