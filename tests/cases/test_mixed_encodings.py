"""Files of one table in several encodings: no encoding is proposed that reads a part of them as other text."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill, need_program

MIXED = {
    "a value": ({"a.csv": b"id,city\n1,K\xf6ln\n", "b.csv": "id,city\n3,Zürich\n".encode()}, ["Köln", "Zürich"]),
    "a header": ({"a.csv": b"n,gr\xf6\xdfe,city\n1,2,x\n", "b.csv": "n,größe,city\n1,2,ü\n".encode()}, ["x", "ü"]),
    "a mark": ({"a.csv": b"\xef\xbb\xbfid,city\n1,Bern\n", "b.csv": b"id,city\n3,K\xf6ln\n"}, ["Bern", "Köln"]),
    "folders of splits": (
        {"train/x.csv": b"city\nK\xf6ln\n", "train/y.csv": b"city\nB\xe2le\n", "test/x.csv": "city\nŁódź\n".encode()},
        ["Köln", "Bâle"],
    ),
    "one file": ({"a.csv": "city\nZürich\n".encode() + b"K\xf6ln\nna\xefve \x80\n"}, ["Zürich", "Köln", "naïve €"]),
}


@pytest.mark.parametrize("case", MIXED)
def test_files_of_several_encodings_are_read_after_the_commands_of_the_message(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    need_program("iconv")
    files, wanted = MIXED[case]
    for name, text in files.items():
        Path("my in", name).parent.mkdir(parents=True, exist_ok=True)
        Path("my in", name).write_bytes(text)
    error = shardmill("convert", "my in", "-o", "out").err
    assert "so that no input.encoding reads all; write what is not UTF-8 as UTF-8, and run the command again: " in error
    assert "input.encoding=" not in error
    for command in error.partition("command again: ")[2].strip().split(" && "):
        subprocess.run(command, shell=True, check=True)
    assert shardmill("convert", "my in", "-o", "out").code == 0
    assert [row["city"] for row in open_dataset("out")["train"]] == wanted


TEXTS = {
    "lines of Windows": {"train/a.txt": b"K\xf6ln\n", "test/a.txt": b"B\xe2le\n", "test/b.txt": b"Bern\n"},
    "wide lines": {"train/a.txt": "Köln\n".encode("utf-16"), "test/a.txt": "Bâle\nBern\n".encode("utf-16-le")},
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("source", ["my in", "my in/*"])
def test_lines_of_text_in_other_encodings_are_read_where_they_are_after_the_commands_of_the_message(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    need_program("iconv")
    for name, text in TEXTS[case].items():
        Path("my in", name).parent.mkdir(parents=True, exist_ok=True)
        Path("my in", name).write_bytes(text)
    for _ in range(2):
        commands = re.search(
            r"as UTF-8: (iconv .* && mv .*?)(?:, or the|\n|$)", shardmill("convert", source, "-o", "out").err
        )
        assert commands
        subprocess.run(commands[1], shell=True, check=True)
    assert shardmill("convert", source, "-o", "out").code == 0
    dataset = open_dataset("out")
    assert {split: [row["text"] for row in dataset[split]] for split in ("train", "test")} == {
        "train": ["Köln"],
        "test": ["Bâle", "Bern"],
    }


def test_files_without_any_utf8_get_the_encoding_that_reads_all(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes(b"city\nK\xf6ln\n")
    Path("b.csv").write_bytes(b"city\nBern\n")
    assert "probably Windows text: --set input.encoding=cp1252" in shardmill("convert", "a.csv", "b.csv", "-o", "o").err


def test_text_in_utf8_that_is_read_in_another_encoding_is_said(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes(b"city\nK\xf6ln\n")
    Path("b.csv").write_text("city\nZürich\n")
    Path("c.csv").write_text("city\nBern\n")
    windows = ("--set", "input.encoding=cp1252", "--overwrite")
    assert "the text is UTF-8" not in shardmill("convert", "a.csv", "c.csv", "-o", "out", *windows).out
    shown = shardmill("convert", "a.csv", "b.csv", "c.csv", "-o", "out", *windows).out
    fix = re.search(r"b\.csv: the text is UTF-8, and is read as cp1252; to read it as UTF-8: --set (\S+)", shown)
    assert fix is not None
    assert shardmill("convert", "b.csv", "c.csv", "-o", "out", "--overwrite", "--set", fix[1]).code == 0
    assert [row["city"] for row in open_dataset("out")["train"]] == ["Zürich", "Bern"]
    Path("b.csv").write_text("\ufeffcity\nZürich\n")
    error = shardmill("convert", "b.csv", "-o", "marked", *windows).err
    assert "b.csv: is UTF-8 by its byte order mark, not cp1252; declare it: --set input.encoding=utf-8" in error


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (b'report\nn;city\n"";K\xf6ln\n5;Bern\n', ["skip_lines=1", "encoding=cp1252", "delimiter=;"]),
        (b"n,city\n'',K\xf6ln\n# no row\n5,Bern\n", ["quote='", "encoding=cp1252", "comment=#"]),
        (b'k,where\n"",K\xf6ln\n5,Bern\n', ["encoding=cp1252", "names=[n, city]", "header=true"]),
    ],
)
def test_an_empty_cell_in_quotes_is_null_by_the_option_that_is_said_beside_those_of_the_run(
    text: bytes, options: list[str], shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes(text)
    command = ["convert", "a.csv", "-o", "out", *(word for one in options for word in ("--set", f"input.{one}"))]
    said = re.search(r"if that means null: (--set .*)", shardmill(*command).out)
    assert said is not None
    assert shardmill(*command, "--overwrite", *shlex.split(said[1])).code == 0
    rows = [(row["n"], row["city"]) for row in open_dataset("out").to_arrow("train").to_pylist()]
    assert rows == [(None, "Köln"), (5.0, "Bern")]
