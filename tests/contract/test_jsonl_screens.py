"""What the user of the command line sees of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill
from ..label_numbers import in_numbers


def lines(*rows: Mapping[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def put(name: str, *rows: Mapping[str, Any]) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines(*rows))


def rows_of(columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = in_numbers(open_dataset("out").to_arrow("train")).to_pylist()
    return rows if columns is None else [{name: row[name] for name in columns} for row in rows]


class TestConvert:
    def test_files_globs_and_folders_are_read_by_their_suffixes(self, shardmill: Shardmill) -> None:
        put("in/a.jsonl", {"a": 1})
        put("in/b.NDJSON", {"a": 2})
        put("in/notes.txt", {"a": 3})
        for paths in (["in"], ["in/*.jsonl", "in/b.NDJSON"]):
            done = shardmill("convert", *paths, "-o", "out", "--overwrite")
            assert (done.code, rows_of()) == (0, [{"a": 1}, {"a": 2}]), done.err
        assert open_dataset("out").manifest.source.format == "jsonl"
        done = shardmill("convert", "in/notes.txt", "--format", "jsonl", "-o", "out", "--overwrite")
        assert (done.code, rows_of()) == (0, [{"a": 3}])

    def test_a_dry_run_shows_the_types_and_why(self, shardmill: Shardmill) -> None:
        put("a.jsonl", {"a": 1, "b": ["x"]}, {"a": 2.5})
        done = shardmill("convert", "a.jsonl", "-o", "out", "--dry-run")
        assert done.code == 0
        assert "every value is a number in 2 rows (double, narrowed to float32" in done.out
        assert "every value is a list of texts in 2 rows, 1 null or absent" in done.out
        assert not Path("out").exists()

    def test_columns_are_chosen_and_left_out_and_rows_limited(self, shardmill: Shardmill) -> None:
        put("a.jsonl", *({"a": i, "b": {}, "d": "x"} for i in range(5)))
        refused = shardmill("convert", "a.jsonl", "-o", "out")
        assert (refused.code, refused.err) == (
            2,
            'error: a.jsonl: column "b": struct<> is not supported, a struct without fields has no values; keep it as '
            "JSON text: --set schema.columns.b.as=json; or leave it out: --set 'input.exclude_columns=[\"b\"]'\n",
        )
        assert shardmill("convert", "a.jsonl", "-o", "out", "--exclude-columns", "b", "--limit", "2").code == 0
        assert rows_of() == [{"a": 0, "d": "x"}, {"a": 1, "d": "x"}]
        assert shardmill("convert", "a.jsonl", "-o", "out", "--columns", "d", "--overwrite").code == 0
        assert rows_of() == 5 * [{"d": "x"}]

    def test_folders_labels_names_and_declared_types_go_with_it(self, shardmill: Shardmill) -> None:
        put("in/year=2023/a.jsonl", {"kind": "cat", "n": "7", "j": {"x": [1, None]}})
        put("in/year=2024/a.jsonl", {"kind": "ant", "n": 8, "j": 1.0})
        sets = ["kind.label=true", "n.type=int64", "n.name=count", "j.type=string"]
        options = [word for one in sets for word in ("--set", f"schema.columns.{one}")]
        done = shardmill("convert", "in", "-o", "out", *options)
        assert done.code == 0, done.err
        assert rows_of() == [
            {"kind": 1, "count": 7, "j": '{"x": [1, null]}', "year": 2023},
            {"kind": 0, "count": 8, "j": "1.0", "year": 2024},
        ]

    def test_bad_lines_are_listed_with_their_lines_and_the_rest_is_converted(self, shardmill: Shardmill) -> None:
        Path("a.jsonl").write_text('{"a": 1}\n\n{"a": 2\n{"a": 99999999999999999999}\n{"a": 3}\n')
        failed = shardmill("convert", "a.jsonl", "-o", "out")
        assert failed.code == 4
        assert "2 of 4 rows were rejected (CORRUPT 1, INT_OVERFLOW 1)" in failed.err
        assert '  a.jsonl line 3: CORRUPT: not JSON: the line ends too soon: {"a": 2; fix the line' in failed.err
        assert '  a.jsonl line 4: column "a": INT_OVERFLOW: "99999999999999999999" is beyond int64' in failed.err
        assert shardmill("convert", "a.jsonl", "-o", "out", "--max-rejects", "2").code == 0
        assert rows_of() == [{"a": 1}, {"a": 3}]
        listed = [json.loads(line) for line in Path("out/rejects/00000001.jsonl").read_text().splitlines()]
        assert [(one["row"], one["line"], one["offset"]) for one in listed] == [(2, 3, 10), (3, 4, 18)]

    def test_init_writes_a_config_that_converts(self, shardmill: Shardmill) -> None:
        put("a.jsonl", {"id": 1, "name": "x"})
        assert shardmill("init", "a.jsonl").code == 0
        (config,) = Path().glob("*.yaml")
        text = config.read_text()
        assert "format: jsonl" in text
        assert "# columns: [id, name]" in text
        assert shardmill("convert", str(config)).code == 0

    def test_a_csv_that_is_json_lines_is_refused_with_the_command_that_reads_it(self, shardmill: Shardmill) -> None:
        put("a.csv", {"a": 1})
        refused = shardmill("convert", "a.csv", "-o", "out")
        assert "each line is a JSON object, not CSV; read it as JSON lines: --format jsonl" in refused.err
        assert shardmill("convert", "a.csv", "-o", "out", "--set", "input.format=jsonl").code == 0


class TestAppend:
    @pytest.fixture(autouse=True)
    def dataset(self, shardmill: Shardmill) -> None:
        put("a.jsonl", {"n": 1, "f": 0.5, "s": "x", "l": [1.5]}, {"n": 2, "s": None})
        assert shardmill("convert", "a.jsonl", "-o", "out").code == 0

    def test_values_are_cast_to_the_types_of_the_dataset_and_a_key_may_be_absent(self, shardmill: Shardmill) -> None:
        put("b.jsonl", {"n": 3, "f": 7, "l": []})
        done = shardmill("append", "b.jsonl", "-o", "out")
        assert done.code == 0, done.err
        assert rows_of()[-1] == {"n": 3, "f": 7.0, "s": None, "l": []}
        assert "Nothing to do" in shardmill("append", "b.jsonl", "-o", "out").out

    def test_nested_values_take_the_types_of_the_dataset(self, shardmill: Shardmill) -> None:
        put("in.jsonl", {"o": {"x": 1.5, "y": ["a"]}, "n": 1}, {"o": None, "n": 2})
        assert shardmill("convert", "in.jsonl", "-o", "out", "--overwrite").code == 0
        put("b.jsonl", {"o": {"x": 2, "y": []}, "n": 3}, {"o": {"y": None}, "n": 4})
        done = shardmill("append", "b.jsonl", "-o", "out")
        assert done.code == 0, done.err
        assert [(row["o"], row["n"]) for row in rows_of()] == [
            ({"x": 1.5, "y": ["a"]}, 1), (None, 2), ({"x": 2.0, "y": []}, 3), ({"x": None, "y": None}, 4),
        ]  # fmt: skip
        put("c.jsonl", {"o": {"x": "2"}, "n": 3})
        refused = shardmill("append", "c.jsonl", "-o", "out")
        assert refused.code == 2

    def test_other_files_are_refused_or_their_rows_rejected(self, shardmill: Shardmill) -> None:
        put("b.jsonl", {"n": 3, "new": 1})
        refused = shardmill("append", "b.jsonl", "-o", "out")
        assert refused.code == 2
        assert "(1 feature added)" in refused.err
        put("c.jsonl", {"n": "3"})
        refused = shardmill("append", "c.jsonl", "-o", "out")
        assert refused.code == 2
        assert "(1 feature re-typed)" in refused.err
        put("d.jsonl", {"n": 4}, {"n": 1.5})
        failed = shardmill("append", "d.jsonl", "-o", "out")
        assert failed.code == 4
        assert '"1.5" is not an int64; the type is the dataset\'s: fix the file' in failed.err
        assert len(rows_of()) == 2

    def test_a_key_that_every_row_must_have_is_missed(self, shardmill: Shardmill) -> None:
        put("b.jsonl", {"f": 1.5})
        refused = shardmill("append", "b.jsonl", "-o", "out")
        assert refused.code == 2
        assert "(1 feature missing)" in refused.err
