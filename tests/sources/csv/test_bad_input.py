from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from shardmill.transforms.errors import SchemaError, SourceError
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.format.schema.schema import ColumnRule
from shardmill.transforms.inputs.contract.source import Survey, Task, map_in_turn
from shardmill.transforms.sources.csv.parse import CsvLimits

from ...file_sources import made_source

T = TypeVar("T")
R = TypeVar("R")


def load(folder: Path, *files: bytes, **options: Any) -> tuple[Survey, list[Rows]]:
    for i, body in enumerate(files):
        (folder / f"{'abcdef'[i]}.csv").write_bytes(body)
    source = made_source("csv", (str(folder),), str(folder), **options)
    survey = source.survey(source.list_files(), map_in_turn)
    return survey, list(source.read(Task(0, survey.pieces), survey.frozen))


def table(rows: list[Rows]) -> list[dict[str, Any]]:
    return [record for part in rows for record in part.batch.to_pylist()]


def bad(rows: list[Rows]) -> list[tuple[str | None, str, int | None, int | None, int | None]]:
    """Return (column, code, row, line, offset) of all bad cells and rejected rows."""
    found = []
    for part in rows:
        for reject in part.rejects:
            found += [
                (e.column, e.code, reject.place.row, reject.place.line, reject.place.offset) for e in reject.errors
            ]
        for problem in part.problems:
            place = part.origin.place(problem.row)
            found.append((problem.error.column, problem.error.code, place.row, place.line, place.offset))
    return found


def types(survey: Survey) -> dict[str, str]:
    return {feature.name: feature.type for feature in survey.frozen.schema}


def declare(**columns: str) -> dict[str, ColumnRule]:
    return {name: ColumnRule(type=kind) for name, kind in columns.items()}


def test_a_short_and_a_long_row_are_rejects_with_row_line_and_offset(tmp_path: Path) -> None:
    _, rows = load(tmp_path, b'a,b,c\n1,"x\ny",3\n\n4,5\n6,7,8\n9,9,9,9\n0,0,0\n')
    assert bad(rows) == [(None, "BAD_WIDTH", 2, 4, 17), (None, "BAD_WIDTH", 4, 6, 27)]
    assert [record["a"] for record in table(rows)] == [1, 6, 0]
    error = rows[0].rejects[0].errors[0]
    assert error.message.startswith("has 2 columns instead of 3: 4,5; fix the row: add the cells")
    assert (error.value, error.expected) == ("4,5", "3 columns")


def test_a_file_whose_rows_are_all_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^a\.csv: every row that was read \(2\) has more than the 2 columns"):
        load(tmp_path, b"a,b\n1,2,3\n4,5,6\n")
    with pytest.raises(
        SourceError, match=r"more than the 1 column of the header.* name the delimiter \(--delimiter SIGN\)"
    ):
        load(tmp_path, b"a;b\n1,5;2\n")


def test_a_wrong_type_far_down_is_a_bad_cell_with_its_row_and_does_not_change_the_schema(tmp_path: Path) -> None:
    body = b"n,s\n" + b"".join(b"%d,x\n" % i for i in range(300_000)) + b"abc,y\n7,z\n"
    survey, rows = load(tmp_path, body, rules=declare(n="int64"))
    assert types(survey) == {"n": "int64", "s": "string"}
    assert [(column, code, row, line) for column, code, row, line, _ in bad(rows)] == [
        ("n", "BAD_TYPE", 300_001, 300_001)
    ]
    assert sum(part.batch.num_rows for part in rows) == 300_002
    assert len(rows) > 1


def test_a_float_after_integers_widens_the_column_only_where_all_is_read(tmp_path: Path) -> None:
    body = b"n,s\n" + b"1,x\n" * 20_000 + b"1.5,y\n"
    survey, rows = load(tmp_path, body)
    assert types(survey)["n"] == "float64"
    assert not bad(rows)
    assert table(rows)[-1]["n"] == 1.5


def test_a_column_of_nulls_and_then_text_is_text(tmp_path: Path) -> None:
    survey, rows = load(tmp_path, b"n,s\n" + b"1,\n" * 400_000 + b"1,late\n")
    assert types(survey)["s"] == "string"
    assert table(rows)[-1]["s"] == "late"
    assert not bad(rows)


def test_newlines_in_quotes_over_block_edges_stay_in_their_value(tmp_path: Path) -> None:
    value = "line\r\n" * 3000
    body = "".join(f'{i},"{value}"\r\n' for i in range(200)).encode()
    survey, rows = load(tmp_path, b"i,text\r\n" + body)
    assert len(survey.pieces) > 3
    assert [r["i"] for r in table(rows)] == list(range(200))
    assert {r["text"] for r in table(rows)} == {value}
    assert rows[-1].origin.place(rows[-1].batch.num_rows - 1).line == 199 * 3001 + 1


def test_an_unclosed_quote_fails_the_file_by_the_offset_of_the_opening_quote(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^a\.csv: the quote at byte 10 is never closed"):
        load(tmp_path, b'a,b\n1,2\n3,"4\n5,6\n')
    with pytest.raises(SourceError, match=r"the quote at byte 0 is never closed"):
        load(tmp_path, b'"a,b\n1,2\n')


def test_quotes_within_a_value_that_begins_with_none_are_kept(tmp_path: Path) -> None:
    _, rows = load(tmp_path, b'a,b\nx ""y"",5" disk\nx,6" disk\n')
    assert table(rows) == [{"a": 'x ""y""', "b": '5" disk'}, {"a": "x", "b": '6" disk'}]


def test_a_utf8_byte_order_mark_is_stripped(tmp_path: Path) -> None:
    survey, rows = load(tmp_path, b"\xef\xbb\xbfa,b\n1,2\n")
    assert types(survey) == {"a": "int64", "b": "int64"}
    assert rows[0].origin.place(0).offset == 7


def test_latin1_is_refused_by_the_byte_and_read_where_it_is_declared(tmp_path: Path) -> None:
    body = "a,b\n1,café\n".encode("latin-1")
    with pytest.raises(
        SourceError, match=r'^a\.csv: line 2, column "b": not UTF-8 at byte 9 \(0xe9\); probably Windows'
    ):
        load(tmp_path, body)
    _, rows = load(tmp_path, body, encoding="latin-1")
    assert table(rows) == [{"a": 1, "b": "café"}]


def test_a_row_of_another_width_whose_text_is_not_utf8_is_told_as_any_other(tmp_path: Path) -> None:
    body = b"id,raw\n1,a\n2,caf\xe9,x\n\xff\n3,\xe9\n"
    with pytest.raises(SourceError, match="not UTF-8 at byte 16"):
        load(tmp_path, body)
    _, rows = load(tmp_path, body, rules=declare(raw="binary"))
    assert table(rows) == [{"id": 1, "raw": b"a"}, {"id": 3, "raw": b"\xe9"}]
    assert [reject.errors[0].value for part in rows for reject in part.rejects] == ["2,caf\\xe9,x", "\\xff"]
    assert bad(rows) == [(None, "BAD_WIDTH", 2, 2, 11), (None, "BAD_WIDTH", 3, 3, 20)]


def test_a_header_of_far_too_many_columns_is_refused_before_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"," * 4_000_000 + b"\n")
    source = made_source("csv", (str(tmp_path),), str(tmp_path))
    with pytest.raises(SchemaError, match=r"a\.csv: 4000001 columns, far over limits.columns"):
        source.survey(source.list_files(), map_in_turn)


def test_text_that_is_not_utf8_beside_a_binary_column_is_a_bad_cell(tmp_path: Path) -> None:
    _, rows = load(tmp_path, b"a,b\n\xff,ok\nx,\xe9\n", rules=declare(a="binary"))
    assert table(rows) == [{"a": b"\xff", "b": "ok"}, {"a": b"x", "b": None}]
    assert bad(rows) == [("b", "BAD_UTF8", 2, 2, 9)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_wide_encoding_is_told_by_its_mark_and_read_where_it_is_declared(tmp_path: Path, encoding: str) -> None:
    body = 'a,b\n1,"é\n,"\n2,x\n'.encode(encoding)
    with pytest.raises(SourceError, match=rf"^a\.csv: is {encoding.upper()} .*--set input\.encoding={encoding}"):
        load(tmp_path, body)
    survey, rows = load(tmp_path, body, encoding=encoding)
    assert table(rows) == [{"a": 1, "b": "é\n,"}, {"a": 2, "b": "x"}]
    assert len(survey.pieces) == 1
    place = rows[0].origin.place(1)
    assert (place.row, place.line, place.offset) == (2, 3, None)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_wide_encoding_without_a_mark_is_told_by_its_zeros_and_read_where_it_is_declared(
    tmp_path: Path, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    body = pack("id,name\n1,é\n2,x\n".encode(encoding))
    problem = rf"^a\.csv: is {encoding[:6].upper()} without a byte order mark .*--set input\.encoding={encoding}$"
    with pytest.raises(SourceError, match=problem):
        load(tmp_path, body)
    _, rows = load(tmp_path, body, encoding=encoding)
    assert table(rows) == [{"id": 1, "name": "é"}, {"id": 2, "name": "x"}]


def test_a_nul_byte_is_kept_and_warned_of(tmp_path: Path) -> None:
    survey, rows = load(tmp_path, b"a,b\nx\0y,1\n")
    assert table(rows) == [{"a": "x\0y", "b": 1}]
    assert survey.warnings == ("a.csv: holds NUL bytes; they are kept",)


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r'^a\.csv: columns 1 and 3 are both named "a"'):
        load(tmp_path, b"a,b,a\n1,2,3\n")


def test_a_blank_column_name_becomes_one_by_position_and_is_told(tmp_path: Path) -> None:
    survey, rows = load(tmp_path, b",b\n1,2\n")
    assert table(rows) == [{"column_0": 1, "b": 2}]
    (warning,) = survey.warnings
    assert warning == "a.csv: a column without a name is called by number, the first column being 0: column_0"
    with pytest.raises(SourceError, match='both named "column_0"'):
        load(tmp_path, b",column_0\n1,2\n")


@pytest.mark.parametrize("body", [b"", b"\n\r\n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_rows_and_is_warned_of_unless_all_are_empty(tmp_path: Path, body: bytes) -> None:
    survey, rows = load(tmp_path, body, b"a,b\n1,2\n")
    assert len(table(rows)) == 1
    assert survey.warnings == ("a.csv: is empty: no header and no row",)
    (tmp_path / "b.csv").unlink()
    with pytest.raises(SourceError, match=r"^a\.csv: is empty"):
        load(tmp_path, body)


def test_a_file_with_only_a_header_has_no_rows_and_does_not_set_the_schema(tmp_path: Path) -> None:
    survey, rows = load(tmp_path, b"a,b\n", b"a,b\n1,2\n")
    assert types(survey) == {"a": "int64", "b": "int64"}
    assert not any(feature.nullable for feature in survey.frozen.schema)
    assert [part.entry for part in rows] == [1]
    (tmp_path / "b.csv").unlink()
    survey, rows = load(tmp_path, b"a,b")
    assert (rows, types(survey)) == ([], {"a": "string", "b": "string"})


def test_a_blank_line_is_a_null_row_of_one_column_and_skipped_and_counted_of_two(tmp_path: Path) -> None:
    survey, rows = load(tmp_path, b"a\n1\n\n2\nx\n\n", rules=declare(a="int64"))
    assert [record["a"] for record in table(rows)] == [1, None, 2, None, None]
    assert bad(rows) == [("a", "BAD_TYPE", 4, 4, 7)]
    assert survey.pieces[0].rows == 5
    survey, rows = load(tmp_path, b"\na,b\n1,1\n\n\n2,x\n", rules=declare(b="int64"))
    assert bad(rows) == [("b", "BAD_TYPE", 2, 4, 11)]
    assert survey.warnings == ("a.csv: 3 blank lines skipped",)


def test_a_huge_field_is_read_and_one_over_the_limit_is_a_bad_cell(tmp_path: Path) -> None:
    body = b"a,b\n1," + b"x" * (20 << 20) + b"\n2,y\n"
    _, rows = load(tmp_path, body)
    assert [len(record["b"]) for record in table(rows)] == [20 << 20, 1]
    _, rows = load(tmp_path, body, limits=CsvLimits(field_bytes=1 << 20))
    assert bad(rows) == [("b", "FIELD_TOO_LARGE", 1, 1, 4)]
    assert [record["b"] for record in table(rows)] == [None, "y"]
    message = rows[0].problems[0].error.message
    assert message.endswith("more than limits.field_bytes (1048576); raise it: --set limits.field_bytes=20971520")
    assert len(message) < 300


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_cell_over_the_limit_is_a_reject_with_its_size_packed_or_not(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    quoted = b'"' + b'x""y\n' * 2_400_000 + b'"'
    body = b"a,b,c\n1,x,\n\n2," + quoted + b',"z, ""z"\n3,y,' + b"w" * 12_000_000 + b"\n4,v,u\n"
    limits = CsvLimits(field_bytes=1 << 20)
    _, rows = load(tmp_path, pack(body), limits=limits)
    large = "FIELD_TOO_LARGE"
    assert [(column, code, row, line) for column, code, row, line, _ in bad(rows)] == [
        ("b", large, 2, 3), ("c", large, 3, 2_400_004),
    ]  # fmt: skip
    assert [record["a"] for record in table(rows)] == [1, 2, 3, 4]
    sizes = [problem.error.message.rsplit("=", 1)[1] for part in rows for problem in part.problems]
    assert sizes == ["9600000", "12000000"]
    assert max(len(part.origin.chunk.text) for part in rows) < 2000
    _, rows = load(tmp_path, pack(body), limits=limits, columns=("a", "c"), rules=declare(c="string"))
    assert [column for column, *_ in bad(rows)] == ["c"]
    assert [record["c"] for record in table(rows)] == [None, 'z, "z', None, "u"]


def test_a_quote_in_a_packed_file_that_is_never_closed_is_named_by_its_place(tmp_path: Path) -> None:
    body = b'a,b\n1,x\n2,"stray\n' + b"3,y\n" * 6_000_000
    with pytest.raises(SourceError, match=r"^a.csv: the quote at byte 10 is never closed"):
        load(tmp_path, gzip.compress(body, 1), limits=CsvLimits(field_bytes=1 << 20))
    opened = (
        r"the record at byte 8 is larger than limits.record_bytes \(10485760 bytes\); a quote opens at byte 10: is it"
    )
    with pytest.raises(SourceError, match=opened):
        load(tmp_path, gzip.compress(body, 1), limits=CsvLimits(field_bytes=1 << 20, record_bytes=10 << 20))


def test_a_header_over_the_limit_is_refused_and_as_a_row_it_is_a_reject(tmp_path: Path) -> None:
    body = gzip.compress(b"x" * 12_000_000 + b",b\n1,2\n", 1)
    limits = CsvLimits(field_bytes=1 << 20)
    with pytest.raises(SourceError, match=r"the header has a name of 12000000 bytes, more than limits\.field_bytes"):
        load(tmp_path, body, limits=limits)
    _, rows = load(tmp_path, body, limits=limits, header=False)
    assert [(column, code, row) for column, code, row, *_ in bad(rows)] == [("column_0", "FIELD_TOO_LARGE", 1)]


def test_a_record_over_the_limit_with_a_cell_over_its_own_is_a_reject_of_its_whole_size(tmp_path: Path) -> None:
    body = b"a,b\n1," + b"x" * 12_000_000 + b"\n2,y\n"
    _, rows = load(tmp_path, body, limits=CsvLimits(field_bytes=1 << 20, record_bytes=9 << 20))
    assert [(code, row) for _, code, row, *_ in bad(rows)] == [("RECORD_TOO_LARGE", 1)]
    assert "12000003 bytes are more than" in rows[0].rejects[0].errors[0].message
    assert table(rows) == [{"a": 2, "b": "y"}]


def test_a_record_over_the_limit_is_a_reject_and_its_neighbours_stay(tmp_path: Path) -> None:
    body = b"a,b\n1,x\n2," + b"y" * 100 + b"\n3\n4,z\n"
    _, rows = load(tmp_path, body, limits=CsvLimits(record_bytes=50))
    assert bad(rows) == [(None, "RECORD_TOO_LARGE", 2, 2, 8), (None, "BAD_WIDTH", 3, 3, 111)]
    assert [record["a"] for record in table(rows)] == [1, 4]
    assert rows[0].origin.place(1).row == 4


def test_large_torn_short_and_good_records_of_one_chunk_keep_their_places(tmp_path: Path) -> None:
    big = b"5," + b"x" * 5000 + b"\n"
    body = b'a,b\n"1" x,y\n2,y\n' + big + b'\n3,"y" z\n4\n' + big + b'5,"ok"\n""6,y\n7,z\n'
    _, rows = load(tmp_path, body, limits=CsvLimits(record_bytes=1000))
    assert table(rows) == [{"a": 2, "b": "y"}, {"a": 5, "b": "ok"}, {"a": 7, "b": "z"}]
    assert [(column, code, row, line) for column, code, row, line, _ in bad(rows)] == [
        ("a", "BAD_QUOTE", 1, 1),
        (None, "RECORD_TOO_LARGE", 3, 3),
        ("b", "BAD_QUOTE", 4, 5),
        (None, "BAD_WIDTH", 5, 6),
        (None, "RECORD_TOO_LARGE", 6, 7),
        ("a", "BAD_QUOTE", 8, 9),
    ]
    assert [rows[0].origin.place(i).row for i in range(3)] == [2, 7, 9]


@pytest.mark.thorough("a table of 20,000 columns")
def test_mixed_line_ends_no_final_one_and_20000_columns_are_in_order(tmp_path: Path) -> None:
    _, rows = load(tmp_path, b"a,b\r\n1,2\n3,4\r5,6")
    assert [record["a"] for record in table(rows)] == [1, 3, 5]
    names = ",".join(f"c{i}" for i in range(20_000))
    _, rows = load(tmp_path, f"{names}\n{','.join(['7'] * 20_000)}\n".encode(), infer="none")
    assert rows[0].batch.num_columns == 20_000
    with pytest.raises(
        SchemaError, match=r"^[a-z]+\.csv: 20000 columns are more than limits\.columns \(100\); keep some: input"
    ):
        load(tmp_path, f"{names}\n".encode(), limits=CsvLimits(columns=100))
    body = f"{names}\n{','.join(['7'] * 20_000)}\n".encode()
    _, rows = load(tmp_path, body, columns=("c5",), limits=CsvLimits(columns=1))
    assert table(rows) == [{"c5": 7}]


def test_an_integer_beyond_its_type_is_a_bad_cell_or_a_string_but_never_a_float(tmp_path: Path) -> None:
    body = b"a,b\n9223372036854775808,1\n1,2\n"
    survey, rows = load(tmp_path, body)
    assert types(survey)["a"] == "string"
    assert survey.choices[0].reason.startswith('"9223372036854775808" (a.csv row 1) is beyond int64')
    _, rows = load(tmp_path, body, rules=declare(a="int64"))
    assert bad(rows) == [("a", "INT_OVERFLOW", 1, 1, 4)]


def test_floats_that_overflow_or_vanish_are_bad_cells(tmp_path: Path) -> None:
    _, rows = load(tmp_path, b"a,b\n1e400,1e39\n1e-400,2\n1,3\n", rules=declare(a="float64", b="float32"))
    assert [(column, code, row) for column, code, row, _, _ in bad(rows)] == [
        ("a", "FLOAT_OVERFLOW", 1),
        ("b", "FLOAT_OVERFLOW", 1),
        ("a", "FLOAT_UNDERFLOW", 2),
    ]


def test_nan_and_inf_are_values_and_not_nulls(tmp_path: Path) -> None:
    survey, rows = load(tmp_path, b"a,b\nNaN,1\n-Inf,2\n1.5,3\n")
    assert types(survey)["a"] == "float64"
    assert repr([record["a"] for record in table(rows)]) == "[nan, -inf, 1.5]"


def test_only_unquoted_empty_cells_are_null_and_na_is_text(tmp_path: Path) -> None:
    body = b'a,b\nNA,1\nnull,2\n"",3\n,4\n'
    _, rows = load(tmp_path, body)
    assert [record["a"] for record in table(rows)] == ["NA", "null", "", None]
    _, rows = load(tmp_path, body, null_values=("NA",))
    assert [record["a"] for record in table(rows)] == [None, "null", "", ""]


@pytest.mark.parametrize("text", [b"00123", b"0x1F", b"-0", b" 12", b"+5"])
def test_a_text_that_is_more_than_its_number_is_a_string_or_of_a_declared_integer_a_bad_cell(
    tmp_path: Path, text: bytes
) -> None:
    body = b"a,b\n7,1\n" + text + b",2\n"
    survey, rows = load(tmp_path, body)
    assert types(survey)["a"] == "string"
    assert table(rows)[1]["a"] == text.decode()
    _, rows = load(tmp_path, body, rules=declare(a="int64"))
    assert [(column, code, row) for column, code, row, _, _ in bad(rows)] == [("a", "BAD_TYPE", 2)]


def test_a_negative_zero_among_floats_is_read_with_its_sign(tmp_path: Path) -> None:
    survey, rows = load(tmp_path, b"a,b\n1.5,1\n-0,2\n0,3\n")
    assert types(survey)["a"] == "float64"
    assert [str(record["a"]) for record in table(rows)] == ["1.5", "-0.0", "0.0"]


def test_zero_and_one_are_no_bools(tmp_path: Path) -> None:
    survey, _ = load(tmp_path, b"a,b\ntrue,true\nFalse,False\n1,true\n")
    assert types(survey) == {"a": "string", "b": "bool"}


def test_dates_are_strings_unless_they_are_declared(tmp_path: Path) -> None:
    body = b"a,b\n2024-01-31,1\n2024-13-40,2\n"
    survey, _ = load(tmp_path, body)
    assert types(survey)["a"] == "string"
    survey, rows = load(tmp_path, body, rules=declare(a="date"))
    assert types(survey)["a"] == "date"
    assert [(column, code, row) for column, code, row, _, _ in bad(rows)] == [("a", "BAD_TYPE", 2)]


def test_spaces_are_kept_and_in_the_header_warned_of(tmp_path: Path) -> None:
    survey, rows = load(tmp_path, b"a, b\nx , y\n")
    assert table(rows) == [{"a": "x ", " b": " y"}]
    assert survey.warnings == (
        'a.csv: the name of column 2, " b", has spaces around it; to take blanks off all cells: --set input.trim=true',
    )


@pytest.mark.parametrize(("sign", "shown"), [(b";", ";"), (b"\t", "\\t")])
def test_one_column_with_another_delimiter_in_it_is_warned_of(tmp_path: Path, sign: bytes, shown: str) -> None:
    survey, _ = load(tmp_path, b"a" + sign + b"b\n1" + sign + b"2\n")
    assert f'a.csv: 1 column, and its first line holds "{shown}": wrong delimiter?' in survey.warnings[0]


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv"])
def test_gzip_is_told_by_its_content_and_read_through_all_members(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(b'a,b\n1,"x\n') + gzip.compress(b'y"\n\n2,z\n3\n'))
    source = made_source("csv", (name,), str(tmp_path))
    survey = source.survey(source.list_files(), map_in_turn)
    rows = list(source.read(Task(0, survey.pieces), survey.frozen))
    assert table(rows) == [{"a": 1, "b": "x\ny"}, {"a": 2, "b": "z"}]
    assert bad(rows) == [(None, "BAD_WIDTH", 3, 5, 17)]
    assert [piece.rows for piece in survey.pieces] == [3]


@pytest.mark.parametrize("damage", ["cut", "trailer", "bit", "garbage"])
def test_a_damaged_gzip_file_is_refused(tmp_path: Path, damage: str) -> None:
    body = bytearray(gzip.compress(b"a,b\n" + b"1,2\n" * 1000))
    if damage == "cut":
        del body[-9:]
    elif damage == "trailer":
        del body[-3:]
    elif damage == "bit":
        body[-6] ^= 1
    else:
        body += b"garbage"
    with pytest.raises(SourceError, match=r"^a\.csv: byte \d+ of the compressed file"):
        load(tmp_path, bytes(body))


def test_files_with_other_headers_are_refused_by_both_names_and_the_column(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r'a\.csv has a column "b", and b\.csv has "c" instead'):
        load(tmp_path, b"a,b\n1,2\n", b"a,c\n1,2\n")
    with pytest.raises(SchemaError, match=r'b\.csv has a column "c", and a\.csv has none'):
        load(tmp_path, b"a,b\n1,2\n", b"a,b,c\n1,2,3\n")


def test_a_file_that_changed_since_it_was_listed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,2\n")
    source = made_source("csv", ("a.csv",), str(tmp_path))
    survey = source.survey(source.list_files(), map_in_turn)
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,2\n3,4\n")
    with pytest.raises(SourceError, match=r"^a\.csv: changed while it was read"):
        list(source.read(Task(0, survey.pieces), survey.frozen))


def test_a_batch_is_as_its_schema_says(tmp_path: Path) -> None:
    _, rows = load(tmp_path, b"a,b,c\n1,x,true\n,,\n")
    assert rows[0].batch.schema == pa.schema({"a": pa.int64(), "b": pa.string(), "c": pa.bool_()})
