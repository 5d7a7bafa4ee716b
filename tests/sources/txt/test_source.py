"""Text files: a line a record."""

from __future__ import annotations

import gzip
import lzma
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SourceError
from shardmill.transforms.inputs.contract.source import Task, map_in_turn
from shardmill.transforms.sources.text.lines import LineSizes, cut_lines
from shardmill.transforms.sources.text.open_text import Cut

from ...command_line import Shardmill
from ...file_sources import made_source


def rows_of() -> list[str]:
    return [row["text"] for row in open_dataset("out").to_arrow("train").to_pylist()]


def load(folder: Path, body: bytes, **options: Any) -> tuple[list[str], list[tuple[str, int | None, int | None]]]:
    """Return the lines, and the code, row and line of each reject."""
    (folder / "a.txt").write_bytes(body)
    source = made_source("txt", (str(folder / "a.txt"),), str(folder), **options)
    survey = source.survey(source.list_files(), map_in_turn)
    rows = list(source.read(Task(0, survey.pieces), survey.frozen))
    rejects = [(one.errors[0].code, one.place.row, one.place.line) for part in rows for one in part.rejects]
    return [text for part in rows for text in part.batch.column("text").to_pylist()], rejects


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\n\n \nb", ["a", "", " ", "b"]),
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"a\r\nb\r\n\r\n", ["a", "b", ""]),
        (b"a\rb\r\r\nc\r", ["a\rb\r", "c"]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        ("é\0\n😀".encode(), ["é\0", "😀"]),
    ],
)
def test_each_line_is_a_record_also_one_without_text(tmp_path: Path, body: bytes, lines: list[str]) -> None:
    assert load(tmp_path, body) == (lines, [])


def test_a_line_that_is_not_utf8_or_too_large_is_a_reject_with_its_line(tmp_path: Path) -> None:
    body = b"a\n\nb\xff\nc\n" + b"x" * 3_000_000 + b"\nd"
    lines, rejects = load(tmp_path, body, sizes=LineSizes(2_000_000))
    assert lines == ["a", "", "c", "d"]
    assert rejects == [("BAD_UTF8", 3, 3), ("RECORD_TOO_LARGE", 5, 5)]


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_a_line_above_field_bytes_is_a_reject_that_is_not_held(tmp_path: Path, suffix: str) -> None:
    body = b"a\n" + b"x" * 9_000_000 + b"\nb\n"
    (tmp_path / f"a{suffix}").write_bytes(gzip.compress(body, 1) if suffix.endswith("gz") else body)
    source = made_source("txt", (str(tmp_path / f"a{suffix}"),), str(tmp_path), sizes=LineSizes(field_bytes=1 << 20))
    survey = source.survey(source.list_files(), map_in_turn)
    rows = list(source.read(Task(0, survey.pieces), survey.frozen))
    assert [text for part in rows for text in part.batch.column("text").to_pylist()] == ["a", "b"]
    (reject,) = [one for part in rows for one in part.rejects]
    assert (reject.place.row, reject.place.line, reject.errors[0].code) == (2, 2, "FIELD_TOO_LARGE")
    assert reject.errors[0].message == (
        "a value in its 9000000 bytes is more than limits.field_bytes (1048576); raise it: "
        "--set limits.field_bytes=9000000"
    )
    assert (
        max(len(lines.text) for lines in cut_lines([b"x" * 999] * 9000, Cut(0, 0, 0, 0), source.sizes, blank_rows=True))
        == 400
    )


JSON_PARTS = st.sampled_from(['"', "\\", '\\"', "\\u0041", ",", "[", "1", "x" * 30, "é" * 20, ":"])


@given(parts=st.lists(JSON_PARTS, max_size=40), size=st.integers(1, 40))
def test_no_line_of_json_whose_values_are_small_enough_is_taken_for_too_large(parts: list[str], size: int) -> None:
    line = "".join(parts)
    text, most = f'{{"a":{line}\n'.encode(), 25
    blocks = [text[i : i + size] for i in range(0, len(text), size)]
    found = list(cut_lines(blocks, Cut(0, 0, 0, 0), LineSizes(field_bytes=most, json=True), blank_rows=False))
    values = re.findall(rb'"(?:[^"\\]|\\.)*(?:"|$)|[^",]+', text[:-1], re.DOTALL)
    if any(one.large for one in found):
        assert max(len(value) for value in values) > most
    assert sum(one.before.records == 0 for one in found) == len(found) == 1


@given(
    lines=st.lists(st.sampled_from(["", "a", "é", "{}", "x\r", "\r", " "]), max_size=30), size=st.integers(1, 40),
    end=st.booleans(),
)  # fmt: skip
def test_lines_are_those_of_any_blocks(lines: list[str], size: int, end: bool) -> None:
    text = ("\n".join(lines) + "\n" * (end or bool(lines and not lines[-1]))).encode()
    expected = [line.removesuffix(b"\r") for line in text.removesuffix(b"\n").split(b"\n")] if text else []
    blocks = [text[i : i + size] for i in range(0, len(text), size)]
    found = list(cut_lines(blocks, Cut(0, 0, 0, 0), LineSizes(), blank_rows=True))
    assert [part.text[a:b] for part in found for a, b in zip(part.starts, part.ends, strict=True)] == expected
    assert [part.before.lines for part in found] == [part.before.records for part in found]


def test_a_file_without_a_line_is_refused_alone(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^a.txt: is empty: there is no line"):
        load(tmp_path, b"")


def test_it_is_converted_appended_and_chosen_from(shardmill: Shardmill) -> None:
    Path("in").mkdir()
    Path("in/a.txt").write_text("one\n\ntwo\n")
    Path("in/b.txt.xz").write_bytes(lzma.compress(b"three\n"))
    done = shardmill("convert", "in", "-o", "out")
    assert (done.code, rows_of()) == (0, ["one", "", "two", "three"]), done.err
    assert open_dataset("out").manifest.source.format == "txt"
    Path("c.log").write_text("four\nfive\n")
    assert shardmill("append", "c.log", "--format", "txt", "-o", "out").code == 0
    assert rows_of()[4:] == ["four", "five"]
    assert shardmill("init", "in/a.txt").code == 0
    assert "format: txt" in next(Path().glob("*.yaml")).read_text()


def test_notes_beside_tables_are_not_read_by_a_folder_or_a_glob(shardmill: Shardmill) -> None:
    Path("in").mkdir()
    Path("in/a.csv").write_text("a\n1\n")
    Path("in/README.txt").write_text("what it is\n")
    for path in ("in", "in/*"):
        assert shardmill("convert", path, "-o", "out", "--overwrite").code == 0
        assert open_dataset("out").manifest.source.format == "csv"


@pytest.mark.parametrize(
    ("body", "hint"),
    [("a\tb\n1\t2\n", "--set input.format=csv"), ('{"a": 1}\n', "--set input.format=jsonl"), ("just text\n", None)],
)
def test_a_file_that_looks_like_a_table_is_read_with_a_hint(shardmill: Shardmill, body: str, hint: str | None) -> None:
    Path("a.txt").write_text(body)
    done = shardmill("convert", "a.txt", "-o", "out")
    assert done.code == 0
    assert (hint in done.out) if hint else ("though" not in done.out)


def test_a_table_of_r_with_escaped_quotes_is_said_to_look_like_one(shardmill: Shardmill) -> None:
    notes = ("plain", "one two", 'he said \\"hi\\"', 'a 5\\" pipe')
    rows = "".join(f'"{n}" {n + 15} TRUE "{note}"\n' for n, note in enumerate(notes * 2, 1))
    Path("a.txt").write_bytes(f'"age" "paid" "note"\n{rows}"9" 14 NA "caf\xe9"\n'.encode("latin-1"))
    told = shardmill("convert", "a.txt", "-o", "out", "--max-rejects", "1")
    assert told.code == 0
    assert 'look like a table of R, with \\" for a quote; if it is one: ' in told.out
