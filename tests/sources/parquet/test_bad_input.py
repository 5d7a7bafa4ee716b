from __future__ import annotations

import base64
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from shardmill.transforms.errors import SchemaError, ShardmillError, SourceError
from shardmill.transforms.inputs.contract.source import Survey, Task, map_in_turn
from shardmill.transforms.sources.parquet.footer import unreadable
from shardmill.transforms.sources.parquet.pages import (
    Chunk,
    PageBombError,
    ThriftError,
    ThriftReader,
    check_pages,
    count_columns,
    pack_spans,
)
from shardmill.transforms.sources.registry.settings import Limits

from ...file_sources import made_source

ROWS = 300
TABLE = pa.table({"id": range(ROWS), "name": [f"name {i % 50}" for i in range(ROWS)], "tags": [[1, 2]] * ROWS})


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=100, write_page_checksum=True)
    return path


def convert(path: Path) -> tuple[Survey, list[pa.RecordBatch]]:
    source = made_source("parquet", (path.name,), str(path.parent))
    survey = source.survey(source.list_files(), map_in_turn)
    return survey, [rows.batch for rows in source.read(Task(0, survey.pieces), survey.frozen)]


def footer_start(data: bytes) -> int:
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def huge_footer(data: bytes) -> bytes:
    return data[:-8] + (2**32 - 1).to_bytes(4, "little") + b"PAR1"


DAMAGED_FILES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut in the data": (lambda data: data[: len(data) // 3], 'does not end with "PAR1": it is cut'),
    "cut by one byte": (lambda data: data[:-1], 'does not end with "PAR1": it is cut'),
    "zero bytes": (lambda _: b"", "is empty (0 bytes), so it is not a Parquet file"),
    "four bytes": (lambda data: data[:4], 'does not end with "PAR1": it is cut'),
    "wrong head magic": (lambda data: b"PAR2" + data[4:], 'it begins with "PAR2" and not with "PAR1"'),
    "wrong tail magic": (lambda data: data[:-4] + b"PAR2", 'does not end with "PAR1"'),
    "a CSV file, renamed": (lambda _: b"id,name\n1,ada\n2,grace\n", 'it begins with "id,n" and not with "PAR1"'),
    "trailing bytes": (lambda data: data + b"\0\0\0", "or bytes were added to it"),
    "a footer longer than the file": (huge_footer, "a footer of 4294967295 bytes in a file of"),
    "a footer of nothing": (lambda data: data[:-8] + bytes(4) + b"PAR1", "footer is damaged"),
    "a footer of zeros": (
        lambda data: data[: footer_start(data)] + bytes(len(data) - 8 - footer_start(data)) + data[-8:],
        "footer is damaged",
    ),
}


@pytest.mark.parametrize("case", DAMAGED_FILES)
def test_a_damaged_file_fails_the_run_by_its_name(good: Path, case: str) -> None:
    damage, message = DAMAGED_FILES[case]
    good.write_bytes(damage(good.read_bytes()))
    with pytest.raises(SourceError) as caught:
        convert(good)
    assert str(caught.value).startswith("a.parquet: ")
    assert message in str(caught.value)
    assert caught.value.exit_code == 1


def footer_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    return data[footer_start(data) : -8]


@pytest.mark.parametrize(
    ("column", "columns"), [([1], 1), ([[1]], 1), ([{"k": 1, "l": [1]}], 2), ([{f"k{i}": 1 for i in range(20)}], 20)]
)
def test_columns_are_counted_in_a_footer_with_those_within_others(column: list[Any], columns: int) -> None:
    table = pa.table({f"c{i}": column for i in range(3)})
    assert count_columns(footer_of(table), 3 * columns) == 3 * columns
    assert count_columns(footer_of(table), 3 * columns - 1) == 3 * columns


def test_a_footer_of_more_columns_than_the_limit_is_refused_before_they_are_built(tmp_path: Path) -> None:
    columns, rows = 12_000, pa.array([1])
    pq.write_table(pa.table([rows] * columns, names=[f"c{i}" for i in range(columns)]), tmp_path / "a.parquet")
    source = made_source("parquet", ("a.parquet",), str(tmp_path), limits=Limits(columns=columns - 1))
    with pytest.raises(SchemaError, match=r"^a\.parquet: 12000 columns are more than limits\.columns \(11999\); keep"):
        source.survey(source.list_files(), map_in_turn)
    chosen = source.with_options(columns=["c3", "c*9"])
    assert len(chosen.survey(chosen.list_files(), map_in_turn).frozen.schema) == 1201


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _page(kind: int, unpacked: int, packed: int, field: int, values: int) -> bytes:
    """Return a page header of the numbers, and a body of zeros."""
    numbers = b"".join(b"\x15" + _varint(value << 1) for value in (kind, unpacked, packed))
    inside = b"\x15" + _varint(values << 1) + b"\x15\x00\x00"
    return numbers + bytes(((field - 3) << 4 | 12,)) + inside + b"\x00" + bytes(packed)


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        (_page(2, 40, 40, 7, 2**31 - 1), "claims 2147483647 values, where there can be 40"),
        (_page(0, 40, 40, 5, 101), "claims 101 values, where there can be 100"),
        (
            _page(0, 2**31 - 1, 40, 5, 10),
            "unpacks 40 bytes to 2,147,483,647; beyond 256 MiB at most 1,000 times as many",
        ),
        (_page(3, 40, 300, 8, 10)[:40], "has 300 bytes, of a column chunk of 40"),
        (b"\xff" * 40, "the page header at byte 0"),
        (b"\x00" * 40, "the page header at byte 0 lacks its type or its size"),
    ],
)
def test_a_page_header_that_lies_is_refused_before_anything_is_allocated(page: bytes, problem: str) -> None:
    spans = pack_spans([Chunk(0, 100, len(page), 1000, None)])
    with pytest.raises((ThriftError, PageBombError), match=problem):
        check_pages(lambda size, at: page[at : at + size], spans, 100)


def test_values_of_nested_columns_are_bounded_by_the_bytes_that_hold_them() -> None:
    page = _page(0, 40, 40, 5, 1 << 30)

    def read(size: int, at: int) -> bytes:
        return page[at : at + size]

    spans = pack_spans([Chunk(0, 1 << 30, len(page), 1000, None)])
    check_pages(read, spans, 1 << 30)  # one value a row: rows are read batch by batch
    with pytest.raises(PageBombError, match=r"has 1,073,741,824 values of lists in 40 bytes; beyond 16,777,216 values"):
        check_pages(read, spans, 1)


def test_a_page_of_far_more_values_than_bytes_is_refused_with_a_command_that_writes_the_file_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 17 << 20
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.array(np.zeros(count, np.int8)))
    pq.write_table(pa.table({"id": [1], "l": lists}), tmp_path / "a b.parquet")
    with pytest.raises(SourceError) as caught:
        convert(tmp_path / "a b.parquet")
    words, command = str(caught.value).split("; if the file is to be trusted, write it again: ")
    assert words.startswith('a b.parquet: row group 0: column "l.list.element": the page at byte ')
    assert words.endswith("at most 8,000 a byte are read, against decompression bombs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    subprocess.run(shlex.split(command), check=True)
    ((batch,),) = (convert(tmp_path / "new.parquet")[1],)
    assert batch.column("l").equals(lists)


@pytest.mark.parametrize("rows", [0, ROWS + 1])
def test_a_file_that_leaves_its_count_of_rows_to_its_row_groups_is_read_and_another_count_is_damage(
    good: Path, rows: int
) -> None:
    data = good.read_bytes()
    start, stop = footer_start(data), len(data) - 8
    reader = ThriftReader(data[start:stop])
    for number, kind in reader.fields():
        at = start + reader.at
        reader.skip(kind)
        if number == 3:  # num_rows
            break
    footer = data[start:at] + _varint(rows << 1) + data[start + reader.at : stop]
    good.write_bytes(data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    if rows:
        with pytest.raises(
            SourceError, match=r"is damaged: 301 rows, but its row groups add up to 300; copy or write the file again$"
        ):
            convert(good)
        return
    assert pa.Table.from_batches(convert(good)[1]).equals(TABLE)


def test_a_flipped_payload_byte_fails_the_run_by_its_row_group(good: Path) -> None:
    data = bytearray(good.read_bytes())
    column = pq.ParquetFile(good).metadata.row_group(1).column(0)
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 0x10
    good.write_bytes(data)
    with pytest.raises(SourceError, match=r"^a\.parquet: row group 1 \(rows from 101\) is damaged: .*CRC"):
        convert(good)


def test_a_flipped_byte_anywhere_in_the_data_is_an_error_or_changes_nothing(good: Path) -> None:
    data = good.read_bytes()
    chance = random.Random(1)
    errors = 0
    for _ in range(60):
        damaged = bytearray(data)
        damaged[chance.randrange(4, footer_start(data))] ^= 1 << chance.randrange(8)
        good.write_bytes(damaged)
        try:
            _, batches = convert(good)
        except SourceError as error:
            errors += error.source == "a.parquet"
        else:
            assert pa.Table.from_batches(batches).equals(TABLE)
    assert errors > 40


def test_a_damaged_footer_is_an_error_of_ours_or_reads_and_never_ends_the_process(good: Path) -> None:
    # pyarrow's accessors of column metadata abort the process on some of these (seeds 267 and 624 among them).
    data = good.read_bytes()
    start = footer_start(data)
    errors = 0
    for seed in range(300):
        chance = random.Random(seed)
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 4))):
            damaged[chance.randrange(start, len(data) - 8)] = chance.randrange(256)
        good.write_bytes(damaged)
        try:
            convert(good)
        except ShardmillError as error:
            errors += "a.parquet" in str(error)
    assert errors > 150


@pytest.mark.parametrize("case", ["missing chunk", "page past the end"])
def test_a_footer_that_does_not_fit_its_file_is_an_error(good: Path, case: str) -> None:
    data = good.read_bytes()
    start = footer_start(data)
    if case == "missing chunk":
        # The first chunk's bytes are gone, so every offset points too far.
        good.write_bytes(data[:4] + data[start - 50 :])
        message = "does not lie|bytes, and the file has|is damaged"
    else:
        good.write_bytes(data[:4] + data[4:200] + data[start:])
        message = "and the file has"
    with pytest.raises(SourceError, match=message):
        convert(good)


class _PlainKms(pe.KmsClient):  # type: ignore[misc]
    def __init__(self, _: object) -> None:
        super().__init__()

    def wrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64encode(key)

    def unwrap_key(self, key: bytes, _: str) -> bytes:
        return base64.b64decode(key)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_an_encrypted_file_is_told_from_a_damaged_one(tmp_path: Path, plaintext_footer: bool) -> None:
    config = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["id"]}, plaintext_footer=plaintext_footer)
    properties = pe.CryptoFactory(_PlainKms).file_encryption_properties(pe.KmsConnectionConfig(), config)
    path = tmp_path / "a.parquet"
    with pq.ParquetWriter(path, TABLE.schema, encryption_properties=properties) as writer:
        writer.write_table(TABLE)
    with pytest.raises(SourceError, match=r"^a.parquet: encrypted Parquet is not supported; decrypt it first$"):
        convert(path)


def test_text_that_is_not_utf8_passes_as_it_is_for_the_encoder_to_name_its_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    raw = [b"ok", b"na\xefve", b"fine"]
    bad = pa.array(raw, pa.binary()).view(pa.string())
    lists = pa.ListArray.from_arrays([0, 1, 2, 3], bad)
    pq.write_table(pa.table({"s": bad, "l": lists}), path)
    survey, (batch,) = convert(path)
    assert [feature.type for feature in survey.frozen.schema] == ["string"] * 2
    assert batch.column("s").view(pa.binary()).to_pylist() == raw
    assert batch.column("l").values.view(pa.binary()).to_pylist() == raw


def test_text_that_is_not_utf8_in_an_arrow_dictionary_fails_the_run_by_its_row_group(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    bad = pa.array([b"ok", b"na\xefve"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"d": pa.DictionaryArray.from_arrays([0, 1], bad)}), path)
    with pytest.raises(SourceError, match=r"^a.parquet: row group 0 .*: text that is not UTF-8 in a dictionary"):
        convert(path)


EMPTY_FILES: dict[str, pa.Table] = {
    "no columns": pa.table({}),
    "no rows": TABLE.slice(0, 0),
}


@pytest.mark.parametrize("case", EMPTY_FILES)
def test_a_file_without_rows_or_columns_is_read_as_nothing(tmp_path: Path, case: str) -> None:
    pq.write_table(EMPTY_FILES[case], tmp_path / "a.parquet")
    survey, batches = convert(tmp_path / "a.parquet")
    assert batches == []
    assert len(survey.frozen.schema) == EMPTY_FILES[case].num_columns
    assert sum(piece.rows or 0 for piece in survey.pieces) == 0


@pytest.mark.parametrize("groups", [0, 1, 3])
def test_empty_row_groups_are_read_as_nothing(tmp_path: Path, groups: int) -> None:
    with pq.ParquetWriter(tmp_path / "a.parquet", TABLE.schema) as writer:
        for group in range(groups):
            writer.write_table(TABLE.slice(0, group), row_group_size=10)
    survey, batches = convert(tmp_path / "a.parquet")
    assert sum(batch.num_rows for batch in batches) == sum(range(groups))
    assert [feature.name for feature in survey.frozen.schema] == ["id", "name", "tags"]


def test_two_columns_of_one_name_fail_the_run(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r'^a.parquet: two columns are named "a"; rename one of them$'):
        convert(tmp_path / "a.parquet")


DIFFERENCES: dict[str, tuple[pa.Table, str]] = {
    "a column more": (
        pa.table({"id": pa.array([1], pa.int32()), "extra": ["x"]}),
        'b.parquet has a column "extra" (string), and a.parquet has none',
    ),
    "a column less": (pa.table({"other": [1]}), 'b.parquet has no column "id", and a.parquet has it (int32)'),
    "a wider type that is not exact": (
        pa.table({"id": [0.5]}),
        'column "id" is int32 in a.parquet, and double in b.parquet',
    ),
    "another type": (pa.table({"id": ["1"]}), 'column "id" is int32 in a.parquet, and string in b.parquet'),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_files_that_differ_are_named_with_the_field_and_both_types(tmp_path: Path, case: str) -> None:
    other, message = DIFFERENCES[case]
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(other, tmp_path / "b.parquet")
    source = made_source("parquet", ("*.parquet",), str(tmp_path))
    with pytest.raises(SchemaError) as caught:
        source.survey(source.list_files(), map_in_turn)
    assert str(caught.value).startswith(message)
    assert caught.value.exit_code == 2


def with_footer(path: Path, table: pa.Table, old: bytes, new: bytes) -> None:
    """Write a file, and then change its footer by hand, of the same pages."""
    pq.write_table(table, path, store_schema=False)
    data = path.read_bytes()
    start = footer_start(data)
    assert data[start:].count(old) >= 1
    footer = data[start:-8].replace(old, new)
    path.write_bytes(data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


MAPS = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
UNSUPPORTED: dict[str, tuple[pa.Array, bytes, bytes, str]] = {
    "decimals of 77 digits": (
        pa.array([None], pa.decimal256(76, 2)), b"\x98\x01", b"\x9a\x01", "decimals of at most 76 digits, or as text",
    ),
    "map keys that may be null": (
        MAPS, b"\x15\x0c%\0\x18\x03key", b"\x15\x0c%\2\x18\x03key", "map keys that are required",
    ),
    "integers of 128 bits": (
        pa.array([1], pa.int8()), b"\x13\x08\x11", b"\x13\x80\x11", "integers of at most 64 bits, or as text",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNSUPPORTED)
def test_a_file_of_types_that_pyarrow_does_not_read_is_not_called_damaged(tmp_path: Path, case: str) -> None:
    column, old, new, fix = UNSUPPORTED[case]
    with_footer(tmp_path / "a.parquet", pa.table({"x": column}), old, new)
    with pytest.raises(SourceError, match=r"^a\.parquet: pyarrow does not support what the file holds: ") as caught:
        convert(tmp_path / "a.parquet")
    assert fix in str(caught.value)
    assert "damaged" not in str(caught.value)


def test_a_page_of_an_encoding_that_pyarrow_does_not_read_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1, 2, 3]}), path, use_dictionary=False, compression="none")
    data = path.read_bytes()
    encoding = data.index(b"\x15\x06\x15\0\x15\x06\x15\x06")
    path.write_bytes(data[: encoding + 3] + b"\x28" + data[encoding + 4 :])
    with pytest.raises(SourceError) as caught:
        convert(path)
    assert str(caught.value) == (
        "a.parquet: pyarrow does not support what the file holds: Unknown encoding type; write it again with encodings "
        "that it reads, such as PLAIN and dictionaries"
    )


def test_values_that_are_not_of_the_arrow_schema_in_the_footer_are_named_by_their_column(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    fixed = pa.schema({"id": pa.int64(), "f": pa.list_(pa.int64(), 2)})
    table = pa.table({"id": [1, 2], "f": pa.array([[1, 2, 3], None], pa.list_(pa.int64()))})
    with pq.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(fixed.serialize().to_pybytes()).decode()})
    with pytest.raises(SourceError, match=r'^a\.parquet: column "f" is fixed_size_list<.*>.2. by the Arrow schema in'):
        convert(path)


def test_an_error_of_the_disk_is_no_damage_of_the_file() -> None:
    text = unreadable(OSError(5, "Error reading bytes from file"), "row group 0 is damaged")
    assert text == "cannot be read: Input/output error; look after its disk, and run the command again"
    assert unreadable(OSError("Couldn't deserialize thrift"), "its footer is damaged").startswith(
        "its footer is damaged"
    )
