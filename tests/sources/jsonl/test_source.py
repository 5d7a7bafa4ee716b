"""JSON lines: the rows, types and rejects of odd and hostile files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.errors import SchemaError, SourceError
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.format.schema.schema import ColumnRule
from shardmill.transforms.inputs.contract.source import Survey, Task, map_in_turn
from shardmill.transforms.sources.jsonl import columns
from shardmill.transforms.sources.registry.settings import Limits
from shardmill.transforms.sources.text import lines as text_lines

from ...file_sources import made_source


def load(folder: Path, *files: bytes | str, **options: Any) -> tuple[Survey, list[Rows]]:
    for i, body in enumerate(files):
        (folder / f"{'abcdef'[i]}.jsonl").write_bytes(body if isinstance(body, bytes) else body.encode())
    source = made_source("jsonl", (str(folder),), str(folder), **options)
    survey = source.survey(source.list_files(), map_in_turn)
    return survey, list(source.read(Task(0, survey.pieces), survey.frozen))


def table(rows: list[Rows]) -> list[dict[str, Any]]:
    return [record for part in rows for record in part.batch.to_pylist()]


def bad(rows: list[Rows]) -> list[tuple[str | None, str, int | None, int | None]]:
    """Return (column, code, row, line) of all bad values and rejected lines."""
    found = []
    for part in rows:
        places = [(reject.errors, reject.place) for reject in part.rejects]
        places += [((problem.error,), part.origin.place(problem.row)) for problem in part.problems]
        found += [(error.column, error.code, place.row, place.line) for errors, place in places for error in errors]
    return sorted(found, key=lambda one: one[2] or 0)


def types(survey: Survey) -> dict[str, str]:
    return {feature.name: feature.type for feature in survey.frozen.schema}


def declare(**columns: str) -> dict[str, ColumnRule]:
    return {name: ColumnRule(type=kind) for name, kind in columns.items()}


def rejected_code(folder: Path, line: bytes | str) -> str:
    """Return the code with which a line is rejected between two good ones, in a column of floats."""
    body = line if isinstance(line, bytes) else line.encode()
    _, rows = load(folder, b'{"a":1.5}\n' + body + b'\n{"a":2}\n')
    assert table(rows) in ([{"a": 1.5}, {"a": 2.0}], [{"a": 1.5}, {"a": None}, {"a": 2.0}])
    ((_, code, row, place),) = bad(rows)
    assert (row, place) == (2, 2)
    return code


class TestTypes:
    def test_values_have_the_types_that_json_gives_them(self, tmp_path: Path) -> None:
        body = '{"i":1,"f":1.5,"b":true,"s":"x","l":["p"]}\n{"i":-2,"f":2,"b":null,"s":"","l":[]}\n{"f":1e3}\n'
        survey, rows = load(tmp_path, body)
        assert types(survey) == {"i": "int64", "f": "float64", "b": "bool", "s": "string", "l": "string"}
        assert table(rows) == [
            {"i": 1, "f": 1.5, "b": True, "s": "x", "l": ["p"]},
            {"i": -2, "f": 2.0, "b": None, "s": "", "l": []},
            {"i": None, "f": 1000.0, "b": None, "s": None, "l": None},
        ]
        assert [choice.nulls for choice in survey.choices] == [1, 0, 2, 1, 1]

    def test_text_that_looks_like_a_date_stays_text(self, tmp_path: Path) -> None:
        survey, rows = load(tmp_path, '{"d":"2024-01-01","t":["2024-01-01T00:00:00Z"]}\n')
        assert types(survey) == {"d": "string", "t": "string"}
        assert table(rows) == [{"d": "2024-01-01", "t": ["2024-01-01T00:00:00Z"]}]

    def test_integers_and_numbers_in_one_column_are_floats_wherever_they_are(self, tmp_path: Path) -> None:
        survey, rows = load(tmp_path, '{"a":1}\n' * 5000 + '{"a":1.5}\n', '{"a":7}\n')
        assert types(survey) == {"a": "float64"}
        assert [row["a"] for row in table(rows)[-2:]] == [1.5, 7.0]
        assert not bad(rows)

    @pytest.mark.parametrize(
        ("first", "second", "message"),
        [
            ('{"a":1}', '{"a":"x"}', 'column "a": a.jsonl line 1: a value is an integer, and in a.jsonl line 3 text'),
            ('{"a":true}', '{"a":1}', "line 1: a value is true or false, and in a.jsonl line 3 an integer"),
            ('{"a":{"b":1}}', '{"a":[1]}', "line 1: a value is an object, and in a.jsonl line 3 a list of integers"),
            ('{"a":[1]}', '{"a":["x"]}', "line 1: a value is an integer, and in a.jsonl line 3 text"),
            ("{}", '{"a":[1,"x"]}', "a.jsonl line 3: an array holds an integer and text"),
        ],
    )
    def test_two_types_in_one_column_are_refused_with_the_places_of_both(
        self, tmp_path: Path, first: str, second: str, message: str
    ) -> None:
        with pytest.raises(SchemaError) as caught:
            load(tmp_path, f"{first}\n\n{second}\n")
        assert message in str(caught.value)
        assert str(caught.value).endswith("--set schema.columns.a.type=string")

    def test_a_column_that_is_declared_text_keeps_each_value_as_it_is_written(self, tmp_path: Path) -> None:
        body = '{"a":1.50}\n{"a":"x\\u00e9"}\n{"a": {"b" : [1,  2]} }\n{"a":null}\n{"a":12345678901234567890123}\n'
        _, rows = load(tmp_path, body + '{"a":-0}\n{"a":true}\n', rules=declare(a="string"))
        assert [row["a"] for row in table(rows)] == [
            "1.50", "xé", '{"b" : [1,  2]}', None, "12345678901234567890123", "-0", "true",
        ]  # fmt: skip
        assert not bad(rows)

    def test_a_declared_type_reads_text_too_and_proves_it(self, tmp_path: Path) -> None:
        body = '{"n":"12","d":"2024-02-29"}\n{"n":13,"d":null}\n{"n":"007","d":"2024-02-30"}\n'
        _, rows = load(tmp_path, body, rules=declare(n="int64", d="date"))
        assert [row["n"] for row in table(rows)] == [12, 13, None]
        assert bad(rows) == [("n", "BAD_TYPE", 3, 3), ("d", "BAD_TYPE", 3, 3)]

    def test_narrow_declared_types_are_checked_in_both_lanes(self, tmp_path: Path) -> None:
        body = '{"n":127,"f":1.5}\n' * 100 + '{"n":128,"f":1e39}\n{"n":1,"f":1e-60}\n'
        _, rows = load(tmp_path, body, rules=declare(n="int8", f="float32"))
        assert bad(rows) == [
            ("n", "INT_OVERFLOW", 101, 101), ("f", "FLOAT_OVERFLOW", 101, 101), ("f", "FLOAT_UNDERFLOW", 102, 102),
        ]  # fmt: skip
        assert rows[0].batch.schema.types == [pa.int8(), pa.float32()]

    def test_nothing_is_inferred_where_infer_is_none(self, tmp_path: Path) -> None:
        survey, rows = load(tmp_path, '{"a":1,"b":[1]}\n{"a":"x"}\n', infer="none")
        assert types(survey) == {"a": "string", "b": "string"}
        assert table(rows) == [{"a": "1", "b": "[1]"}, {"a": "x", "b": None}]

    def test_objects_and_lists_within_each_other_are_read_by_either_parser(self, tmp_path: Path) -> None:
        rows = [
            {"o": {"x": i, "y": [0.5, i], "z": None}, "l": [[1], [], [i]], "s": [{"k": "v", "n": i}]}
            for i in range(200)
        ]
        body = "".join(json.dumps(row) + "\n" for row in rows)
        survey, found = load(tmp_path, body)
        assert survey.frozen.schema.features == ()
        assert [str(field.type) for field in survey.fields] == [
            "struct<x: int64, y: list<item: double>, z: string>",
            "list<item: list<item: int64>>",
            "list<item: struct<k: string, n: int64>>",
        ]
        assert table(found) == rows
        _, found = load(
            tmp_path, body.replace('"x": 150,', '"x": 99999999999999999999,').replace('"n": 7}', '"n": 7, "n": 8}')
        )
        assert bad(found) == [(None, "BAD_WIDTH", 8, 8), ("o", "INT_OVERFLOW", 151, 151)]
        assert [row["o"]["x"] for row in table(found)] == [*range(7), *range(8, 150), None, *range(151, 200)]

    @pytest.mark.parametrize("value", ["{}", "[{}]"])
    def test_what_has_no_features_is_refused_by_the_name_of_its_column(self, tmp_path: Path, value: str) -> None:
        with pytest.raises(SchemaError, match=r'^a.jsonl: column "a": .* is not supported, a struct without fields'):
            load(tmp_path, f'{{"a":{value},"c":1}}\n')
        _, rows = load(tmp_path, f'{{"a":{value},"c":1}}\n', exclude_columns=("a",))
        assert table(rows) == [{"c": 1}]


class TestRejects:
    @pytest.mark.parametrize(
        ("line", "code"),
        [
            ('{"a":1.5', "CORRUPT"),
            ('{"a":1,}', "CORRUPT"),
            ('{"a":1}{"a":2}', "CORRUPT"),
            ('{"a":1} x', "CORRUPT"),
            ('[{"a":1}]', "CORRUPT"),
            ("null", "CORRUPT"),
            ("5", "CORRUPT"),
            ("\0", "CORRUPT"),
            ('{"a":1}\0', "CORRUPT"),
            ('{"a":007}', "CORRUPT"),
            ('{"a":.5}', "CORRUPT"),
            ("{'a':1}", "CORRUPT"),
            ('{"a":-NaN}', "CORRUPT"),
            ('{"a":Inf}', "CORRUPT"),
            ('{"s":"x\ty"}', "CORRUPT"),
            ('{"a":1,"a":2}', "BAD_WIDTH"),
            (b'{"s\xff":1}', "BAD_UTF8"),
            ('{"\\ud800":1}', "BAD_UTF8"),
            ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "UNSUPPORTED"),
            ('{"a":' + '{"a":' * 1000 + "1" + "}" * 1001, "UNSUPPORTED"),
            ('{"a":1e400}', "FLOAT_OVERFLOW"),
            ('{"a":1e-400}', "FLOAT_UNDERFLOW"),
            ('{"a":0.' + "0" * 330 + "1}", "FLOAT_UNDERFLOW"),
            ('{"a":9007199254740993}', "PRECISION_LOSS"),
            ('{"a":100000000000000000001}', "PRECISION_LOSS"),
        ],
    )
    def test_a_bad_line_is_a_reject_with_its_line_and_its_neighbours_are_rows(
        self, tmp_path: Path, line: bytes | str, code: str
    ) -> None:
        assert rejected_code(tmp_path, line) == code

    def test_half_a_character_is_a_reject_of_its_column(self, tmp_path: Path) -> None:
        _, rows = load(tmp_path, '{"s":"x"}\n{"s":"\\ud800"}\n{"s":"\\ud83d\\ude00"}\n')
        assert bad(rows) == [("s", "BAD_UTF8", 2, 2)]
        assert table(rows)[2] == {"s": "😀"}

    def test_integers_beyond_int64_are_rejects_and_their_column_stays_one_of_integers(self, tmp_path: Path) -> None:
        survey, rows = load(tmp_path, '{"a":1,"l":[1]}\n{"a":9223372036854775808,"l":[9223372036854775808]}\n')
        assert types(survey) == {"a": "int64", "l": "int64"}
        assert bad(rows) == [("a", "INT_OVERFLOW", 2, 2), ("l", "INT_OVERFLOW", 2, 2)]

    def test_large_integers_that_a_float_holds_are_no_rejects(self, tmp_path: Path) -> None:
        _, rows = load(tmp_path, '{"a":0.5}\n{"a":9007199254740994}\n{"a":100000000000000000000}\n{"a":6.02e23}\n')
        assert [row["a"] for row in table(rows)] == [0.5, 9007199254740994.0, 1e20, 6.02e23]
        assert not bad(rows)

    def test_nan_and_infinity_are_numbers_as_python_writes_them(self, tmp_path: Path) -> None:
        values = [1.0, float("inf"), float("-inf"), float("nan")]
        _, rows = load(tmp_path, "".join(json.dumps({"a": value}) + "\n" for value in values))
        assert not bad(rows)
        assert repr([row["a"] for row in table(rows)]) == repr(values)

    def test_a_bad_line_costs_no_other_line_of_its_block(self, tmp_path: Path) -> None:
        lines = [f'{{"i":{i},"s":"{"x" * (i % 50)}"}}' for i in range(30_000)]
        for i in (0, 7777, 29_999):
            lines[i] = lines[i][:-1]
        _, rows = load(tmp_path, "\n".join(lines))
        assert [row for _, _, row, _ in bad(rows)] == [1, 7778, 30_000]
        assert [row["i"] for row in table(rows)] == [i for i in range(30_000) if i not in (0, 7777, 29_999)]

    def test_rows_stay_in_order_where_many_lines_are_bad_or_none_is_for_pyarrow(self, tmp_path: Path) -> None:
        lines = [f'{{"i":{i},"n":"x"}}' if i % 3 else f'{{"i":{i}' for i in range(3000)]
        _, rows = load(tmp_path, "\n".join(lines))
        assert [row["i"] for row in table(rows)] == [i for i in range(3000) if i % 3]
        assert [row for _, _, row, _ in bad(rows)] == list(range(1, 3001, 3))
        assert [part.origin.place(0).row for part in rows] == [2, 3000]
        lines = [f'{{"i":{i},"n":{i}}}' for i in range(3000)]
        survey, rows = load(tmp_path, "\n".join(lines), rules=declare(n="string"))
        assert table(rows) == [{"i": i, "n": str(i)} for i in range(3000)]
        assert [choice.nulls for choice in survey.choices] == [0, 0]

    def test_a_line_that_is_too_large_is_a_reject_also_in_a_stream_and_across_blocks(self, tmp_path: Path) -> None:
        body = b'{"a":1}\n{"a":"' + b"x" * 5_000_000 + b'"}\n{"a":2}\n'
        limits = Limits(record_bytes=100_000)
        _, rows = load(tmp_path, body, limits=limits)
        assert (bad(rows), table(rows)) == ([(None, "RECORD_TOO_LARGE", 2, 2)], [{"a": 1}, {"a": 2}])
        assert "--set limits.record_bytes=10000016" in rows[1].rejects[0].errors[0].message
        (tmp_path / "a.jsonl").unlink()
        (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(body))
        _, rows = load(tmp_path, limits=limits)
        assert (bad(rows), table(rows)) == ([(None, "RECORD_TOO_LARGE", 2, 2)], [{"a": 1}, {"a": 2}])

    @pytest.mark.parametrize("pack", [bytes, gzip.compress])
    def test_a_line_with_a_value_above_field_bytes_is_a_reject_and_one_with_many_values_is_not(
        self, tmp_path: Path, pack: Callable[[bytes], bytes]
    ) -> None:
        many = b",".join(b'"%d":"%b"' % (i, b"x" * 900_000) for i in range(8))
        large = [b'{"a":"' + b"x" * 5_000_000 + b'"}', b"1" * 5_000_000, b"\0" * 5_000_000]
        blank = b" " * 5_000_000
        body = b"\n".join([b'{"a":"1"}', *large, b"{" + many + b"}", blank, b'{"a":"2"}', b""])
        _, rows = load(tmp_path, pack(body), limits=Limits(field_bytes=1 << 20))
        assert bad(rows) == [(None, "FIELD_TOO_LARGE", n, n) for n in (2, 3, 4)]
        assert [row["a"] for row in table(rows)] == ["1", None, "2"]
        assert [len(row["7"] or "") for row in table(rows)] == [0, 900_000, 0]
        (message,) = {one.errors[0].message for part in rows for one in part.rejects if one.place.row == 2}
        assert message == (
            "a value in its 5000008 bytes is more than limits.field_bytes (1048576); raise it: "
            "--set limits.field_bytes=5000008"
        )

    def test_a_file_none_of_whose_lines_is_a_row_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=r"^b.jsonl: no line that was read \(2\) is a row. line 1: the line is"):
            load(tmp_path, '{"a":1}\n', '[{"a":1},\n{"a":2}]')
        with pytest.raises(
            SourceError, match=r"; if objects go over several lines: jq -c . b.jsonl > rows-b.jsonl \(of version 1.7 or"
        ):
            load(tmp_path, '{"a":1}\n', '{\n"a": 2\n}\n')


class TestFiles:
    @pytest.mark.parametrize("body", [b"", b"\n", b" \n\t\r\n\n"])
    def test_files_without_a_line_are_no_rows(self, tmp_path: Path, body: bytes) -> None:
        with pytest.raises(SourceError, match="is empty: there is no row"):
            load(tmp_path, body)
        survey, rows = load(tmp_path, body, '{"a":1}')
        assert (table(rows), survey.warnings) == ([{"a": 1}], ("a.jsonl: is empty: no row",))

    @pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
    @pytest.mark.parametrize("end", [b"\n", b"\r\n"])
    def test_rows_and_lines_are_counted_over_blanks_marks_and_line_ends(
        self, tmp_path: Path, mark: bytes, end: bytes
    ) -> None:
        body = mark + end.join([b'{"a":1}', b"", b'  {"a":2}\t', b"   ", b"{", b'{"a":3}'])
        _, rows = load(tmp_path, body)
        assert table(rows) == [{"a": 1}, {"a": 2}, {"a": 3}]
        assert bad(rows) == [(None, "CORRUPT", 3, 5)]
        assert [part.origin.place(i).line for part in rows for i in range(part.batch.num_rows)] == [1, 3, 6]

    def test_an_object_over_two_lines_is_two_rejects_also_where_the_count_fits(self, tmp_path: Path) -> None:
        _, rows = load(tmp_path, '{"a":1}\n{"a":2}{"a":3}\n{"a":\n4}\n')
        assert table(rows) == [{"a": 1}]
        assert [row for _, _, row, _ in bad(rows)] == [2, 3, 4]

    def test_pieces_of_any_size_give_the_same_rows(self, tmp_path: Path) -> None:
        body = "".join(f'{{"i":{i},"s":"{"é" * (i % 40)}"}}\n' + "\n" * (i % 3) for i in range(120))
        _, whole = load(tmp_path, body)
        expected = (table(whole), whole[0].origin.place(0))
        for size in (64, 77, 1000, 9000):
            sizes = text_lines.LineSizes(json=True, block_bytes=size, job_bytes=3 * size, joined_bytes=2 * size)
            survey, rows = load(tmp_path, body, sizes=sizes)
            assert (table(rows), rows[0].origin.place(0)) == expected
            assert sum(piece.rows or 0 for piece in survey.pieces) == 120
            last = rows[-1]
            assert last.origin.place(last.batch.num_rows - 1).line == body.rstrip("\n").count("\n") + 1

    def test_a_compressed_file_is_read_by_its_content(self, tmp_path: Path) -> None:
        body = "".join(f'{{"i":{i}}}\n' for i in range(100_000)).encode()
        survey, rows = load(tmp_path, gzip.compress(body))
        assert [row["i"] for row in table(rows)] == list(range(100_000))
        assert survey.pieces[0].rows == 100_000
        with pytest.raises(SourceError, match=r"^a.jsonl: byte \d+ of the compressed file: the gzip stream is cut"):
            load(tmp_path, gzip.compress(body)[:-9])

    def test_files_need_not_have_the_same_keys(self, tmp_path: Path) -> None:
        _, rows = load(tmp_path, '{"a":1}\n', '{"b":"x"}\n')
        assert table(rows) == [{"a": 1, "b": None}, {"a": None, "b": "x"}]

    def test_utf_16_is_refused_with_the_command_that_rewrites_it(self, tmp_path: Path) -> None:
        with pytest.raises(SourceError, match=r"is UTF-16 .*; write it as UTF-8: iconv -f utf-16 -t utf-8 a.jsonl"):
            load(tmp_path, '{"a":1}\n'.encode("utf-16"))

    def test_too_many_keys_are_refused(self, tmp_path: Path) -> None:
        line = json.dumps({f"k{i}": i for i in range(50)})
        with pytest.raises(SchemaError, match=r"^a.jsonl: 50 keys are more than limits.columns \(40\)"):
            load(tmp_path, line, limits=Limits(columns=40))


SAMPLED = text_lines.LineSizes(json=True, auto_bytes=0)


class TestSamples:
    """Only the first lines of each file are looked at for types."""

    @pytest.fixture(autouse=True)
    def few_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(columns, "AUTO_ROWS", 10)
        monkeypatch.setattr("shardmill.transforms.sources.jsonl.source.AUTO_ROWS", 10)

    def load(self, folder: Path, late: Sequence[str], **options: Any) -> tuple[Survey, list[Rows]]:
        body = "".join('{"a":1,"b":"x"}\n' for _ in range(100)) + "".join(f"{line}\n" for line in late)
        return load(folder, body, sizes=SAMPLED, **options)

    def test_a_key_that_no_sampled_line_has_rejects_its_line_by_name(self, tmp_path: Path) -> None:
        survey, rows = self.load(tmp_path, ['{"a":1,"new":2}', '{"a":3}'])
        assert all(feature.nullable for feature in survey.frozen.schema)
        assert bad(rows) == [(None, "BAD_WIDTH", 101, 101)]
        message = rows[0].rejects[0].errors[0].message
        assert message.startswith('has a key "new" that no row has that was looked at for types; declare it: --set ')
        assert table(rows)[-1] == {"a": 3, "b": None}

    def test_it_is_read_where_it_is_declared(self, tmp_path: Path) -> None:
        _, rows = self.load(tmp_path, ['{"a":1,"new":2}'], rules=declare(new="int64"))
        assert table(rows)[-1] == {"a": 1, "b": None, "new": 2}
        assert not bad(rows)

    def test_it_is_left_out_where_columns_are_chosen_by_name_and_named_where_some_are_excluded(
        self, tmp_path: Path
    ) -> None:
        _, rows = self.load(tmp_path, ['{"a":1,"new":2}'], columns=("a",))
        assert table(rows)[-1] == {"a": 1}
        _, rows = self.load(tmp_path, ['{"a":1,"new":2}'], exclude_columns=("b",))
        assert bad(rows) == [(None, "BAD_WIDTH", 101, 101)]
        assert table(rows)[-1] == {"a": 1}

    def test_a_value_of_another_type_is_a_reject(self, tmp_path: Path) -> None:
        _, rows = self.load(tmp_path, ['{"a":1.5,"b":"y"}', '{"a":"5","b":"y"}', '{"a":1,"b":5}', '{"a":[1]}'])
        assert bad(rows) == [
            ("a", "BAD_TYPE", 101, 101), ("a", "BAD_TYPE", 102, 102), ("b", "BAD_TYPE", 103, 103),
            ("a", "BAD_TYPE", 104, 104),
        ]  # fmt: skip

    def test_infer_full_looks_at_every_line(self, tmp_path: Path) -> None:
        survey, rows = self.load(tmp_path, ['{"a":1.5,"new":true}'], infer="full")
        assert types(survey) == {"a": "float64", "b": "string", "new": "bool"}
        assert not bad(rows)


def test_a_nested_column_that_is_kept_as_json_has_the_text_of_its_lines(tmp_path: Path) -> None:
    values = ('[{"r": "s", "c": null}, {"r":"u", "t": [1.50]}]', "[ ]", "null")
    (tmp_path / "a.jsonl").write_text("".join(f'{{"a": {value}, "n": 1}}\n' for value in values))
    columns = {"a": {"as": "json"}}
    convert({"input": {"paths": [str(tmp_path / "a.jsonl")]}, "schema": {"columns": columns}}, output=tmp_path / "out")
    assert open_dataset(tmp_path / "out")["train"].to_arrow()["a"].to_pylist() == [*values[:2], None]
