"""Arrow and Feather files: what is read of them, and what is said of damaged ones."""

from __future__ import annotations

import random
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.errors import RunError, SchemaError, SourceError, TooManyRejects
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.schema.schema import ColumnRule
from shardmill.transforms.inputs.contract.source import Survey, Task, map_in_turn
from shardmill.transforms.sources.arrow import source as arrow_source
from shardmill.transforms.sources.arrow.messages import Table
from shardmill.transforms.sources.registry.settings import Limits

from ...file_sources import made_source
from ...label_numbers import in_numbers

ROWS = 1000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS)),
        "x": pa.array([i / 8 if i % 5 else None for i in range(ROWS)]),
        "s": pa.array([f"text {i % 30}" for i in range(ROWS)]),
        "kind": pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
        "l": pa.array([list(range(i % 4)) for i in range(ROWS)], pa.list_(pa.int32())),
        "o": pa.array([{"a": i, "b": [i]} for i in range(ROWS)]),
        "t": pa.array([i * 1_000_000 for i in range(ROWS)], pa.timestamp("ns", "UTC")),
    }
)
FORMS = ["file", "stream", "lz4", "zstd", "stream zstd"]


def write(path: Path, table: pa.Table, form: str = "file", rows: int = 300) -> None:
    codec = next((word for word in ("lz4", "zstd") if word in form), None)
    options = pa.ipc.IpcWriteOptions(compression=codec)
    new = pa.ipc.new_stream if "stream" in form else pa.ipc.new_file
    with new(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)


def load(folder: Path, **options: Any) -> tuple[Survey, list[Rows]]:
    source = made_source("arrow", (str(folder),), str(folder), **options)
    survey = source.survey(source.list_files(), map_in_turn)
    return survey, list(source.read(Task(0, survey.pieces), survey.frozen))


def table_of(rows: Sequence[Rows]) -> list[dict[str, Any]]:
    return [record for part in rows for record in part.batch.to_pylist()]


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_read_by_record_batches_in_either_format(tmp_path: Path, form: str) -> None:
    write(tmp_path / "a.arrow", TABLE, form)
    survey, rows = load(tmp_path)
    assert table_of(rows) == TABLE.to_pylist()
    assert [choice.reason for choice in survey.choices if choice.column in ("id", "x")] == [
        "int64; no nulls",
        "double, narrowed to float32 (as: bytes keeps it exact); 200 nulls",
    ]
    whole = "stream" in form  # a dictionary may change on the way
    assert [piece.rows for piece in survey.pieces] == ([1000] if whole else [300, 300, 300, 100])
    assert [part.origin.place(0).row for part in rows] == [1, 301, 601, 901]
    assert all(part.batch.schema.field("t").type == pa.timestamp("ns", "UTC") for part in rows)
    assert {feature.name: feature.unit for feature in survey.frozen.schema}["t"] == "ns"


def test_a_stream_without_dictionaries_is_read_in_pieces(tmp_path: Path) -> None:
    write(tmp_path / "a.arrow", TABLE.drop_columns(["kind"]), "stream")
    survey, rows = load(tmp_path)
    assert [piece.rows for piece in survey.pieces] == [300, 300, 300, 100]
    assert table_of(rows) == TABLE.drop_columns(["kind"]).to_pylist()


def test_a_feather_file_of_pandas_is_one(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(TABLE.drop_columns(["o"]), tmp_path / "a.feather", compression="lz4")
    _, rows = load(tmp_path)
    assert table_of(rows) == TABLE.drop_columns(["o"]).to_pylist()


def test_categories_of_polars_are_read_also_beside_a_reject(tmp_path: Path) -> None:
    words = pa.array(["x", "y"]).cast(pa.string_view())
    kinds = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.uint32()), words)
    viewed = pa.array(["a", "b", "a longer one than a view holds"]).cast(pa.string_view())
    table = pa.table({"k": kinds, "v": viewed, "n": pa.array([2**63, 1, 2], pa.uint64())})
    for form in ("file", "stream"):
        write(tmp_path / "a.arrow", table, form)
        survey, rows = load(tmp_path)
        assert table_of(rows) == table.to_pylist()
        block = RowEncoder(survey.frozen.schema).encode(rows[0])
        assert [(reject.place.row, reject.errors[0].code) for reject in block.rejects] == [(1, "INT_OVERFLOW")]


@pytest.mark.parametrize("form", FORMS)
def test_files_with_large_batches_are_mapped_and_have_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(arrow_source, "MAPPED_BYTES", 1)
    write(tmp_path / "a.arrow", TABLE, form)
    assert table_of(load(tmp_path)[1]) == TABLE.to_pylist()


def test_record_batches_of_any_size_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_source, "BATCH_ROWS", 128)
    write(tmp_path / "a.arrow", TABLE, rows=ROWS)
    survey, rows = load(tmp_path)
    assert len(survey.pieces) == 1
    assert [part.batch.num_rows for part in rows] == [128] * 7 + [104]
    assert [part.origin.place(0).row for part in rows] == list(range(1, 1000, 128))
    assert table_of(rows) == TABLE.to_pylist()


def test_the_unit_of_a_column_follows_from_its_type_whatever_its_values_are(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([1, 2], pa.timestamp("ns")), "u": pa.array([1000, 2000], pa.timestamp("ms"))})
    for form in ("file", "stream"):
        write(tmp_path / "a.arrow", table, form)
        survey, _ = load(tmp_path)
        assert {feature.name: feature.unit for feature in survey.frozen.schema} == {"t": "ns", "u": "us"}
        assert survey.warnings == ()


def test_columns_are_chosen_and_types_declared(tmp_path: Path) -> None:
    write(tmp_path / "a.arrow", TABLE)
    survey, rows = load(tmp_path, columns=("x", "id"), rules={"x": ColumnRule(as_="bytes")})
    assert [feature.kind for feature in survey.frozen.schema] == ["int64", "bytes"]
    assert table_of(rows) == TABLE.select(["id", "x"]).to_pylist()
    with pytest.raises(SchemaError, match=r'input.columns names "y", which is not a column'):
        load(tmp_path, columns=("y",))


def test_several_files_have_one_schema_or_are_named(tmp_path: Path) -> None:
    write(tmp_path / "a.arrow", pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
    write(tmp_path / "b.feather", pa.table({"b": pa.array(["y", None], pa.large_string()), "a": [2, 3]}), "lz4")
    survey, rows = load(tmp_path)
    assert [str(field.type) for field in survey.fields] == ["int64", "string"]
    assert table_of(rows) == [{"a": 1, "b": "x"}, {"b": "y", "a": 2}, {"b": None, "a": 3}]
    write(tmp_path / "c.ipc", pa.table({"a": [1]}))
    with pytest.raises(SchemaError, match=r'^c.ipc has no column "b", and a.arrow has'):
        load(tmp_path)


def test_files_without_rows_are_no_error(tmp_path: Path) -> None:
    write(tmp_path / "a.arrow", TABLE.slice(0, 0))
    write(tmp_path / "b.arrow", TABLE.slice(0, 0), "stream")
    survey, rows = load(tmp_path)
    assert (survey.pieces, rows) == ((), [])


class TestDamage:
    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (b"", r"^a.arrow: is empty \(0 bytes\), so it is not an Arrow file"),
            (b"ARROW1\0\0 and no more", 'does not end with "ARROW1": it is cut'),
            (b"id,x\n1,2\n", "is not a sound Arrow file: at byte 0 there is no message of Arrow"),
            (b"\xff\xff\xff\xff", "is not a sound Arrow file"),
            (b"PK\x03\x04", "is not a sound Arrow file"),
        ],
    )
    def test_what_is_none_is_named(self, tmp_path: Path, body: bytes, message: str) -> None:
        (tmp_path / "a.arrow").write_bytes(body)
        with pytest.raises(SourceError, match=message):
            load(tmp_path)

    def test_feather_v1_is_refused_with_the_line_that_writes_it_again(self, tmp_path: Path) -> None:
        (tmp_path / "a b.feather").write_bytes(b"FEA1\0\0\0\0" + bytes(100) + b"FEA1")
        with pytest.raises(SourceError, match=r"is a file of Feather V1, .* python -c '.*' 'a b.feather' new.feather$"):
            load(tmp_path)

    def test_two_columns_of_one_name_are_refused(self, tmp_path: Path) -> None:
        write(tmp_path / "a.arrow", pa.table([[1], [2]], names=["a", "a"]))
        with pytest.raises(SourceError, match=r'^a.arrow: two columns are named "a"; rename one of them'):
            load(tmp_path)

    @pytest.mark.parametrize("form", FORMS)
    def test_a_file_that_is_cut_anywhere_is_named_before_a_row_is_read(self, tmp_path: Path, form: str) -> None:
        path = tmp_path / "a.arrow"
        write(path, TABLE, form)
        body = path.read_bytes()
        for size in (7, 9, 100, len(body) // 3, len(body) - 1000, len(body) - 9, len(body) - 1):
            path.write_bytes(body[:size])
            with pytest.raises(SourceError, match=r"^a.arrow: "):
                load(tmp_path)

    @pytest.mark.parametrize("form", FORMS)
    def test_damaged_bytes_are_errors_with_the_name_or_other_values_and_never_a_crash(
        self, tmp_path: Path, form: str
    ) -> None:
        path = tmp_path / "a.arrow"
        write(path, TABLE.slice(0, 100), form, rows=40)
        body = path.read_bytes()
        rng, messages = random.Random(form), []
        for _ in range(60):
            mutated = bytearray(body)
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(body))
                mutated[at : at + rng.choice((1, 1, 4, 8))] = rng.randbytes(rng.choice((1, 4, 8)))
            path.write_bytes(mutated)
            try:
                survey, rows = load(tmp_path, exclude_columns=("o",))
                encoder = RowEncoder(survey.frozen.schema)
                for part in rows:
                    encoder.encode(part)
            except RunError as error:
                messages.append(str(error))
        assert messages
        assert all("a.arrow" in message for message in messages)

    def test_text_that_is_not_utf8_is_a_reject_of_its_row(self, tmp_path: Path) -> None:
        bad = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff"))
        write(tmp_path / "a.arrow", pa.table({"s": bad}))
        survey, rows = load(tmp_path)
        block = RowEncoder(survey.frozen.schema).encode(rows[0])
        assert [(reject.place.row, reject.errors[0].code) for reject in block.rejects] == [(2, "BAD_UTF8")]


def big_endian(data: bytes) -> bytes:
    """Return a stream of one int32 column as a machine whose numbers have their high byte first writes it."""
    made = bytearray(data)
    length = int.from_bytes(made[4:8], "little")
    schema = Table.root(bytes(made[8 : 8 + length])).table(2)
    vtable = schema.at - int.from_bytes(schema.data[schema.at : schema.at + 4], "little", signed=True)
    # The order of bytes is the schema's first field, left out where it is 0: let it be the 1 that is the next number.
    one = schema.data.index((1).to_bytes(2, "little"), schema.at + 4) - schema.at
    made[8 + vtable + 4 : 8 + vtable + 6] = one.to_bytes(2, "little")
    values = np.array(SWAPPED, "<i4").tobytes()
    assert made.count(values) == 1
    return bytes(made.replace(values, np.array(SWAPPED, ">i4").tobytes()))


SWAPPED = [1, 2, 300, -7, 2**31 - 1]


def test_a_stream_whose_numbers_have_their_high_byte_first_has_the_same_values(tmp_path: Path) -> None:
    write(tmp_path / "a.arrow", pa.table({"n": pa.array(SWAPPED, pa.int32())}), "stream")
    (tmp_path / "a.arrow").write_bytes(big_endian((tmp_path / "a.arrow").read_bytes()))
    _, rows = load(tmp_path)
    assert table_of(rows) == [{"n": n} for n in SWAPPED]


@pytest.mark.parametrize("form", ["file", "stream"])
def test_a_column_of_nulls_is_read_where_there_are_no_rows(tmp_path: Path, form: str) -> None:
    write(tmp_path / "a.arrow", pa.table({"n": pa.nulls(0), "m": pa.array([], pa.int8())}), form)
    survey, rows = load(tmp_path)
    assert rows == []
    assert [(one.name, one.nullable) for one in survey.frozen.schema] == [("m", False), ("n", True)]


@pytest.mark.parametrize("form", ["file", "stream"])
def test_nulls_in_runs_are_nulls_of_their_column(tmp_path: Path, form: str) -> None:
    ends = pa.array([2, 3, 6], pa.int16())
    runs = [pa.RunEndEncodedArray.from_arrays(ends, pa.array(values)) for values in (["a", None, "b"], ["x", "y", "z"])]
    write(tmp_path / "a.arrow", pa.table({"r": runs[0], "s": runs[1]}), form)
    survey, _ = load(tmp_path)
    assert [(one.name, one.nullable) for one in survey.fields] == [("r", True), ("s", False)]
    convert(tmp_path / "a.arrow", output=tmp_path / "out")
    assert in_numbers(open_dataset(tmp_path / "out").to_arrow()).to_pydict() == {
        "r": ["a", "a", None, "b", "b", "b"], "s": ["x", "x", "y", "z", "z", "z"],
    }  # fmt: skip


RUNS: dict[str, pa.Array] = {
    "text": pa.array(["a", None, "b"]),
    "views": pa.array(["a text that is longer than a view", None, "b"], pa.string_view()),
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]),
    "list": pa.array([[1, 2], None, []]),
    "lists": pa.array([[[1], []], None, []]),
    "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int8())),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("-2.00")]),
}


@pytest.mark.parametrize("case", RUNS)
def test_runs_of_any_values_are_read_from_files_and_from_python(tmp_path: Path, case: str) -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 6], pa.int32()), RUNS[case])
    table = pa.table({"id": range(6), "r": runs}).slice(1)
    expected = [RUNS[case].to_pylist()[run] for run in (0, 1, 2, 2, 2)]
    write(tmp_path / "a.arrow", table)
    convert(tmp_path / "a.arrow", output=tmp_path / "file")
    convert(data=table, output=tmp_path / "data")
    for made in ("file", "data"):
        assert in_numbers(open_dataset(tmp_path / made).to_arrow())["r"].to_pylist() == expected


@pytest.mark.parametrize("scale", [-39, 39, 300])
def test_a_decimal_whose_digits_arrow_does_not_write_is_refused_and_not_written_as_words(
    tmp_path: Path, scale: int
) -> None:
    numbers = pa.Array.from_buffers(pa.decimal128(9, scale), 1, [None, pa.py_buffer((123).to_bytes(16, "little"))])
    for column in (numbers, pa.StructArray.from_arrays([numbers], ["d"])):
        table = pa.table({"id": [1], "x": column})
        write(tmp_path / "a.arrow", table)
        with pytest.raises(SchemaError, match=r"such a scale; leave it out: --set 'input\.exclude_columns=\[\"x\"\]'"):
            convert(tmp_path / "a.arrow", output=tmp_path / "out")
        with pytest.raises(SchemaError, match=r"such a scale; leave it out: give the data without x"):
            convert(data=table, output=tmp_path / "out")
    convert(tmp_path / "a.arrow", output=tmp_path / "out", exclude_columns=["x"])


@pytest.mark.parametrize("form", ["file", "stream"])
def test_a_buffer_that_leaves_its_message_is_refused_before_anything_is_allocated(tmp_path: Path, form: str) -> None:
    write(tmp_path / "a.arrow", pa.table({"n": pa.array([7] * 1235, pa.int8())}), form, rows=2000)
    data = (tmp_path / "a.arrow").read_bytes()
    place = bytes(8) + (1235).to_bytes(8, "little")
    assert data.count(place) == 1
    (tmp_path / "a.arrow").write_bytes(data.replace(place, bytes(8) + (1 << 40).to_bytes(8, "little")))
    with pytest.raises(SourceError, match="has a buffer of 1099511627776 bytes at byte 0 of"):
        load(tmp_path)


def test_a_name_within_a_column_that_is_not_utf_8_is_damage(tmp_path: Path) -> None:
    held = pa.array([[{"a_name": 1}]])
    write(tmp_path / "a.arrow", pa.table({"x": held}))
    pq.write_table(pa.table({"x": held}), tmp_path / "a.parquet", store_schema=False)
    for name in ("a.arrow", "a.parquet"):
        data = (tmp_path / name).read_bytes()
        assert b"a_name" in data
        (tmp_path / name).write_bytes(data.replace(b"a_name", b"\xff_name"))
        with pytest.raises(SourceError, match=rf"{name}: .*codec can't decode byte 0xff"):
            convert(tmp_path / name, output=tmp_path / "out")


def test_a_list_of_more_values_than_its_buffers_hold_is_damage_and_does_not_end_the_process(tmp_path: Path) -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 5], pa.int32()), pa.array(["a", "bc", "d", "e", "f"]))
    write(tmp_path / "a.arrow", pa.table({"l": lists}))
    data = (tmp_path / "a.arrow").read_bytes()
    offsets = np.array([0, 2, 5], np.int32).tobytes()
    assert data.count(offsets) == 1
    for first in (-(1 << 31), 1 << 30):
        damaged = data.replace(offsets, np.array([first, 2, 5], np.int32).tobytes())
        (tmp_path / "a.arrow").write_bytes(damaged)
        with pytest.raises(SourceError, match=r"a\.arrow: its record batch 0 \(rows from 1\) is damaged: .*offset"):
            load(tmp_path)


def test_runs_of_text_become_labels_and_fill_their_nulls_as_text_does(tmp_path: Path) -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 6], pa.int32()), RUNS["text"])
    write(tmp_path / "a.arrow", pa.table({"kind": runs, "word": runs}))
    rules = {"kind": {"label": True, "null": "drop_row"}, "word": {"null": {"fill": "-"}}}
    convert(tmp_path / "a.arrow", output=tmp_path / "out", schema={"columns": rules})
    dataset = open_dataset(tmp_path / "out")
    assert dataset.labels == {"kind": ("a", "b")}
    assert in_numbers(dataset.to_arrow()).to_pydict() == {"kind": [0, 0, 1, 1, 1], "word": ["a", "a", "b", "b", "b"]}


@pytest.mark.parametrize("form", ["file", "stream"])
@pytest.mark.parametrize("values", [["a", None, "c"], ["a", "b", "c"]], ids=["nulls", "none"])
def test_a_null_among_the_values_of_a_dictionary_is_a_null(tmp_path: Path, form: str, values: list[str | None]) -> None:
    kinds = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1], pa.int8()), pa.array(values))
    write(tmp_path / "t.arrow", pa.table({"kind": kinds, "n": range(4)}), form)
    convert(str(tmp_path / "t.arrow"), output=str(tmp_path / "out"))
    dataset = open_dataset(tmp_path / "out")
    assert in_numbers(dataset.to_arrow("train"))["kind"].to_pylist() == [values[i] for i in (0, 1, 2, 1)]
    (feature,) = (one for one in dataset.manifest.schema or () if one.name == "kind")
    assert feature.nullable is (None in values)


def test_a_date64_with_a_time_of_day_is_a_reject_with_its_row_and_declared_a_timestamp_it_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    days = pa.array([0, None, 86_400_000 + 3_600_000], pa.int64()).view(pa.date64())
    table = pa.table({"d": days})
    with pa.ipc.new_file("a.arrow", table.schema) as writer:
        writer.write_table(table)
    for source in ("a.arrow", None):
        data: Any = {} if source else {"data": table}
        with pytest.raises(
            TooManyRejects, match=r"(?s)row 3: column \"d\": PRECISION_LOSS: 1970-01-02T01:00:00.000 is "
        ):
            convert(source, output="out", **data)
        with pytest.raises(TooManyRejects, match=r"--set schema\.columns\.d\.type=timestamp"):
            convert(source, output="out", **data)
    convert("a.arrow", output="out", schema={"columns": {"d": {"type": "timestamp"}}})
    read = in_numbers(open_dataset("out").to_arrow())["d"].to_pylist()
    assert read == [datetime(1970, 1, 1), None, datetime(1970, 1, 2, 1)]


def nested(count: int) -> pa.Table:
    return pa.table({"a": pa.array([{f"k{i}": 1 for i in range(count)}]), "b": pa.array([[1]])})


@pytest.mark.parametrize("form", ["file", "stream"])
def test_more_columns_than_the_limit_are_refused_before_the_schema_is_built(tmp_path: Path, form: str) -> None:
    write(tmp_path / "a.arrow", pa.table({f"c{i}": [1] for i in range(20)}), form)
    limits = Limits(columns=19)
    with pytest.raises(SchemaError, match=r"^a\.arrow: 20 columns are more than limits\.columns \(19\); keep some"):
        load(tmp_path, limits=limits)
    survey, _ = load(tmp_path, limits=limits, columns=("c3", "c5"))
    assert [feature.name for feature in survey.frozen.schema] == ["c3", "c5"]
    load(tmp_path, limits=Limits(columns=20))


@pytest.mark.parametrize("form", ["file", "stream"])
def test_columns_within_columns_count_towards_the_limit(tmp_path: Path, form: str) -> None:
    write(tmp_path / "a.arrow", nested(20), form)
    with pytest.raises(SchemaError, match=r"^a\.arrow: 21 columns are more"):
        load(tmp_path, limits=Limits(columns=20))
    source = made_source("arrow", (str(tmp_path),), str(tmp_path), limits=Limits(columns=21))
    source.survey(source.list_files(), map_in_turn)


@pytest.mark.parametrize("form", ["zstd", "stream zstd", "lz4"])
def test_a_compressed_batch_above_the_limit_is_refused_with_a_line_and_a_program_that_work(
    tmp_path: Path, form: str
) -> None:
    table = pa.table({"a": pa.array([bytes(1000)] * 3000, pa.binary())})
    write(tmp_path / "a.arrow", table, form, rows=3000)
    with pytest.raises(
        SourceError, match=r"a\.arrow: its record batch 0 takes .* limits\.batch_bytes \(1048576\)"
    ) as told:
        load(tmp_path, limits=Limits(batch_bytes=1 << 20))
    raised = int(re.findall(r"--set limits\.batch_bytes=(\d+);", str(told.value))[0])
    assert len(table_of(load(tmp_path, limits=Limits(batch_bytes=raised))[1])) == 3000
    program = str(told.value).partition("smaller batches: ")[2]
    subprocess.run(shlex.split(program.replace("python", sys.executable, 1)), cwd=tmp_path, check=True)
    (tmp_path / "a.arrow").unlink()
    assert table_of(load(tmp_path, limits=Limits(batch_bytes=1 << 20))[1]) == table.to_pylist()


@pytest.mark.parametrize("form", ["zstd", "stream zstd"])
def test_the_dictionaries_of_a_file_are_bounded_together(tmp_path: Path, form: str) -> None:
    column = pa.array(["x" * 600_000]).dictionary_encode()
    write(tmp_path / "a.arrow", pa.table({"a": column, "b": column}), form)
    with pytest.raises(SourceError, match=r"what its dictionaries hold takes 12000\d\d bytes .* limits\.batch_bytes"):
        load(tmp_path, limits=Limits(batch_bytes=1 << 20), columns=("a",))
    assert len(table_of(load(tmp_path, limits=Limits(batch_bytes=2 << 20))[1])) == 1


def test_a_dictionary_that_replaces_another_counts_alone_and_one_that_adds_counts_with_it(tmp_path: Path) -> None:
    schema = pa.schema({"a": pa.dictionary(pa.int32(), pa.string())})
    first, other = ["x" * 600_000], ["y" * 600_000]
    for name, second, deltas in (("replaced", other, False), ("added", [*first, *other], True)):
        options = pa.ipc.IpcWriteOptions(compression="zstd", emit_dictionary_deltas=deltas)
        (tmp_path / name).mkdir()
        with pa.ipc.new_stream(tmp_path / name / "a.arrow", schema, options=options) as writer:
            for values in (first, second):
                writer.write_batch(pa.record_batch([pa.array(values).dictionary_encode()], schema))
    limits = Limits(batch_bytes=1 << 20)
    assert len(table_of(load(tmp_path / "replaced", limits=limits)[1])) == 2
    with pytest.raises(SourceError, match=r"what its dictionaries hold"):
        load(tmp_path / "added", limits=limits)
