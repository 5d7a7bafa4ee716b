from __future__ import annotations

import csv
import io
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.errors import SchemaError, SourceError, UsageError
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.format.schema.schema import ColumnRule, Feature
from shardmill.transforms.inputs.contract.source import Survey, Task
from shardmill.transforms.read import pick_source
from shardmill.transforms.recipe.source import RecipeSource
from shardmill.transforms.sources.csv.dialect import Dialect
from shardmill.transforms.sources.csv.parse import CsvLimits, header_cells
from shardmill.transforms.sources.csv.record_starts import record_ends
from shardmill.transforms.sources.csv.source import CsvSource

from ...file_sources import assert_same_source, made_source
from ...tiers import examples

T = TypeVar("T")
R = TypeVar("R")


def in_turn(function: Callable[[T], R], items: Iterable[T], *, heavy: bool = False) -> list[R]:
    return [function(pickle.loads(pickle.dumps(item))) for item in items]


def survey_of(source: CsvSource) -> Survey:
    return source.survey(source.list_files(), in_turn)


def read(source: CsvSource, survey: Survey) -> list[Rows]:
    return list(source.read(Task(3, survey.pieces), survey.frozen))


def put(folder: Path, body: bytes | str, name: str = "a.csv", **options: Any) -> CsvSource:
    (folder / name).write_bytes(body.encode() if isinstance(body, str) else body)
    return made_source("csv", (name,), str(folder), **options)


def records(rows: list[Rows]) -> list[dict[str, Any]]:
    return [record for part in rows for record in part.batch.to_pylist()]


def test_a_source_its_pieces_and_its_origins_survive_a_pickle(tmp_path: Path) -> None:
    source = put(tmp_path, "a,b\n1,x\n2,y\n")
    again = pickle.loads(pickle.dumps(source))
    assert_same_source(again, source)
    survey = pickle.loads(pickle.dumps(survey_of(again)))
    (rows,) = read(source, survey)
    assert pickle.loads(pickle.dumps(rows.origin)).place(1) == rows.origin.place(1)
    assert (rows.task, rows.ordinal, rows.entry) == (3, 0, 0)


def test_pieces_follow_each_other_and_their_rows_add_up(tmp_path: Path) -> None:
    body = "a,b\n" + "".join(f'{i},"{"x" * (i % 50)}\n"\n' for i in range(120_000))
    source = put(tmp_path, body)
    survey = survey_of(source)
    pieces = survey.pieces
    assert len(pieces) == 1 + len(body) // (1 << 20)
    assert [p.first_row for p in pieces] == [sum(q.rows or 0 for q in pieces[:i]) for i in range(len(pieces))]
    assert sum(p.rows or 0 for p in pieces) == 120_000
    assert sum(p.bytes for p in pieces) == len(body) - 4
    rows = read(source, survey)
    assert [r["a"] for r in records(rows)] == list(range(120_000))
    assert [part.ordinal for part in rows] == list(range((len(pieces) + 1) // 2))  # read two by two
    last = rows[-1].origin.place(rows[-1].batch.num_rows - 1)
    assert (last.row, last.line) == (120_000, 239_999)
    assert body.encode()[last.offset :].startswith(b"119999,")


def test_pieces_are_read_together_only_where_nothing_lies_between_them(tmp_path: Path) -> None:
    size = 1 << 20
    blanks = "\n" * (2 * size)  # whole pieces without a row, of which no piece is left
    source = put(tmp_path, "a,b\n" + "1,x\n" * 10 + blanks + "2,y\n" * size)
    survey = survey_of(source)
    rows = read(source, survey)
    assert [r["a"] for r in records(rows)] == [1] * 10 + [2] * size
    assert rows[0].batch.num_rows == 10
    places = [part.origin.place(0) for part in rows]
    assert [p.row for p in places] == [1 + sum(part.batch.num_rows for part in rows[:i]) for i in range(len(rows))]
    last = rows[-1].origin.place(rows[-1].batch.num_rows - 1)
    assert (last.row, last.line) == (size + 10, 10 + 3 * size)  # the header is not counted


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(*[st.text(alphabet='ab,"\n\r é', max_size=6)] * 3), max_size=30),
    st.integers(3, 40),
    st.booleans(),
)
def test_what_pythons_csv_writer_wrote_is_read_back_at_any_block_size(
    tmp_path: Path, rows: list[tuple[str, str, str]], block: int, crlf: bool
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n" if crlf else "\n")
    writer.writerows([("a", "b", "c"), *rows])
    limits = CsvLimits(block_bytes=block, job_bytes=3 * block, joined_bytes=9 * block // 4)
    source = put(tmp_path, text.getvalue(), infer="none", limits=limits)
    found = read(source, survey_of(source))
    assert [tuple(record.values()) for record in records(found)] == rows
    places = [part.origin.place(i) for part in found for i in range(part.batch.num_rows)]
    assert [place.row for place in places] == list(range(1, len(rows) + 1))


@settings(max_examples=examples(400), deadline=None)
@given(
    st.text(alphabet='ab,"\\\0é ', min_size=1, max_size=20).filter(str.strip),
    st.sampled_from([Dialect(), Dialect(quote=None), Dialect(escape=ord("\\")), Dialect(delimiter=ord(" "))]),
)
@example('"a,b""",c"d,"e"f', Dialect())
@example('a\\,b,"c\\",d"', Dialect(escape=ord("\\")))
@example(",,", Dialect())
def test_the_cells_of_a_header_are_those_that_pyarrow_reads(text: str, dialect: Dialect) -> None:
    quote, escape = (False if sign is None else chr(sign) for sign in (dialect.quote, dialect.escape))
    whole = text + "\\" * (dialect.escape is not None and (len(text) - len(text.rstrip("\\"))) % 2) + "\n"
    assume(not record_ends(np.frombuffer(whole.encode(), np.uint8), dialect).inside)
    table = arrow_csv.read_csv(
        pa.py_buffer(whole.encode()),
        read_options=arrow_csv.ReadOptions(autogenerate_column_names=True),
        parse_options=arrow_csv.ParseOptions(
            delimiter=chr(dialect.delimiter), quote_char=quote, escape_char=escape, newlines_in_values=True
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types={f"f{i}": pa.string() for i in range(21)}, strings_can_be_null=False
        ),
    )
    wanted = tuple(column[0].as_py() for column in table.columns)
    assert header_cells(text.encode(), dialect, "utf-8", "a.csv", 100, header=False) == wanted


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.text(alphabet='ab,"\n\r\0é', max_size=40), min_size=1, max_size=12),
    st.integers(2, 9),
    st.integers(0, 1 << 30),
    st.sampled_from([{}, {"short_rows": "null"}, {"trim": True}, {"escape": "\\"}]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
@example(["k" * 20 + "x" * 10, 'ab\0"c"zzz'], 2, 1, {}, csv.QUOTE_MINIMAL)
def test_long_files_with_nul_bytes_are_read_as_pythons_csv_module_reads_them(
    tmp_path: Path, pool: list[str], columns: int, seed: int, options: dict[str, Any], quoting: Any
) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.choice(np.array([*pool, "\0", "é" * 30], object), (110_000 // columns, columns)).tolist()
    short = set(rng.integers(0, len(cells), 5).tolist()) if columns > 2 else set()
    rows = [row[:-1] if i in short else row for i, row in enumerate(cells)]
    text = io.StringIO()
    csv.writer(text, quoting=quoting, lineterminator="\r\n").writerows([[f"c{i}" for i in range(columns)], *rows])
    source = put(tmp_path, text.getvalue(), infer="none", null_values=(), **options)
    found = read(source, survey_of(source))
    wanted = list(csv.reader(io.StringIO(text.getvalue(), newline="")))[1:]
    rejects = [reject.place.row for part in found for reject in part.rejects]
    if options.get("short_rows"):
        wanted = [row if len(row) == columns else [*row, None] for row in wanted]
        assert rejects == []
    else:
        assert rejects == [i + 1 for i in sorted(short)]
        wanted = [row for row in wanted if len(row) == columns]
    assert [list(record.values()) for record in records(found)] == wanted


def test_auto_inference_of_a_large_source_reads_the_first_rows_of_each_file(tmp_path: Path) -> None:
    put(tmp_path, "n,s\n" + "1,a\n" * 12_000 + "x,b\n")
    source = put(tmp_path, "n,s\n" + "2.5,a\n" * 5, "b.csv", infer="auto")
    source = made_source("csv", ("*.csv",), str(tmp_path), limits=CsvLimits(auto_bytes=100))
    survey = survey_of(source)
    assert {f.name: (f.type, f.nullable) for f in survey.frozen.schema} == {
        "n": ("float64", True),
        "s": ("string", True),
    }
    assert "the first 10,005 rows" in survey.choices[0].reason
    (problem,) = [p for part in read(source, survey) for p in part.problems]
    assert problem.error.value == "x"
    full = survey_of(made_source("csv", ("*.csv",), str(tmp_path), infer="full"))
    assert {f.name: (f.type, f.nullable) for f in full.frozen.schema} == {
        "n": ("string", False),
        "s": ("string", False),
    }


def test_columns_are_kept_as_asked_and_bad_cells_of_others_do_not_matter(tmp_path: Path) -> None:
    source = put(tmp_path, "a,b,c\n1,x,2\n3,y,4\n", columns=("c", "a"))
    survey = survey_of(source)
    assert [f.name for f in survey.frozen.schema] == ["a", "c"]
    assert records(read(source, survey)) == [{"a": 1, "c": 2}, {"a": 3, "c": 4}]


def test_names_stand_instead_of_a_header_or_where_there_is_none(tmp_path: Path) -> None:
    for options, expected in (
        ({"names": ("x", "y")}, [{"x": 1, "y": 2}]),
        ({"header": False, "names": ("x", "y")}, [{"x": "a", "y": "b"}, {"x": "1", "y": "2"}]),
        ({"header": False}, [{"column_0": "a", "column_1": "b"}, {"column_0": "1", "column_1": "2"}]),
    ):
        source = put(tmp_path, "a,b\n1,2\n", **options)
        rows = read(source, survey_of(source))
        assert records(rows) == expected
        assert rows[0].origin.place(0).row == 1
    with pytest.raises(SourceError, match=r"has 2 columns, and input\.names gives 1 names"):
        survey_of(put(tmp_path, "a,b\n1,2\n", names=("x",)))


def test_another_delimiter_and_quote_are_used(tmp_path: Path) -> None:
    source = put(tmp_path, "a;b\n'x;\n';1\n", delimiter=";", quote="'")
    assert records(read(source, survey_of(source))) == [{"a": "x;\n", "b": 1}]
    source = put(tmp_path, 'a\tb\n"x\t1\n', delimiter="\t", quote=None)
    assert records(read(source, survey_of(source))) == [{"a": '"x', "b": 1}]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delimiter": "::"}, "input.delimiter"),
        ({"delimiter": "\n"}, "input.delimiter"),
        ({"quote": "«"}, "input.quote"),
        ({"quote": ","}, "must differ"),
        ({"encoding": "utf-9"}, "input.encoding"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, Any], text: str) -> None:
    section = {"format": "csv", "paths": ["a.csv"], **options}
    with pytest.raises(UsageError, match=text.replace(".", r"\.")):
        load_config({"input": section, "output": {"path": "out"}})


def test_declared_types_win_and_say_so(tmp_path: Path) -> None:
    rules = {
        "zip": ColumnRule(type="string"),
        "joined": ColumnRule(type="timestamp", unit="us", timezone="UTC"),
        "score": ColumnRule(type="float32"),
    }
    source = put(tmp_path, "zip,joined,score\n123,2024-01-31T12:00:00,1\n4,,2\n", rules=rules)
    survey = survey_of(source)
    assert list(survey.frozen.schema) == [
        Feature("joined", "int64", "timestamp", nullable=True, unit="us", timezone="UTC"),
        Feature("score", "float", "float32"),
        Feature("zip", "bytes", "string"),
    ]
    assert all(choice.reason.startswith("declared") for choice in survey.choices)
    assert str(read(source, survey)[0].batch.schema.field("joined").type) == "timestamp[us, tz=UTC]"


def test_the_names_that_other_tools_have_for_a_type_declare_it_too(tmp_path: Path) -> None:
    rules = {name: ColumnRule(type=name) for name in ("bytes", "int", "float", "double", "text")}
    survey = survey_of(put(tmp_path, "bytes,int,float,double,text\n1,2,3,4,5\n", rules=rules))
    assert {feature.name: feature.type for feature in survey.frozen.schema} == {
        "bytes": "binary", "int": "int64", "float": "float64", "double": "float64", "text": "string"
    }  # fmt: skip


def test_a_rule_or_a_column_that_is_not_there_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(
        SchemaError, match=r'schema\.columns names "prcie", which is not a column; did you mean "price"\?'
    ):
        survey_of(put(tmp_path, "id,price\n1,2\n", rules={"prcie": ColumnRule()}))
    with pytest.raises(SchemaError, match=r'input\.columns names "nope"'):
        survey_of(put(tmp_path, "id,price\n1,2\n", columns=("nope",)))


def test_a_type_that_text_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r'column "a": type duration cannot be read from text'):
        survey_of(put(tmp_path, "a,b\n1,2\n", rules={"a": ColumnRule(type="duration")}))
    with pytest.raises(SchemaError, match=r'column "a": there is no time zone "Mars/Base"'):
        survey_of(put(tmp_path, "a,b\n1,2\n", rules={"a": ColumnRule(type="timestamp", timezone="Mars/Base")}))


@pytest.mark.parametrize("encoding", ["shift_jis", "gb18030", "utf-16-le"])
def test_an_encoding_of_several_bytes_is_read_as_a_stream_over_many_chunks(tmp_path: Path, encoding: str) -> None:
    text = "a,b\n" + "".join(f'{i},"日本\n語"\n' for i in range(150_000))
    source = put(tmp_path, text.encode(encoding), encoding=encoding)
    survey = survey_of(source)
    assert [p.rows for p in survey.pieces] == [150_000]
    rows = read(source, survey)
    assert len(rows) > 1
    assert [r["a"] for r in records(rows)] == list(range(150_000))
    place = rows[-1].origin.place(rows[-1].batch.num_rows - 1)
    assert (place.row, place.line, place.offset) == (150_000, 299_999, None)


def test_text_that_is_not_in_the_declared_encoding_names_the_byte(tmp_path: Path) -> None:
    body = b"a,b\n" + b"1,x\n" * 500_000 + b"2,\x81\n"
    source = put(tmp_path, body, encoding="cp1252")
    with pytest.raises(SourceError, match=r"a\.csv: not cp1252 at byte 2000006 \(0x81\)"):
        survey_of(source)


def test_a_source_that_is_picked_for_tsv_files_splits_at_tabs(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\tname\n1\tx, y\n")
    source = pick_source(["a.tsv"], str(tmp_path))
    assert isinstance(source, RecipeSource)
    assert isinstance(source.source, CsvSource)
    survey = survey_of(source)
    assert [feature.name for feature in survey.frozen.schema] == ["id", "name"]
