"""`input.ignore` leaves files out in every format: globs of names, or with a slash of paths below what is read."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill


def tar(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("1.txt")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))


def packed(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.txt", "x")


WRITE: dict[str, Callable[[Path], object]] = {
    "csv": lambda path: path.write_text("n\n1\n"),
    "tsv": lambda path: path.write_text("n\tm\n1\t2\n"),
    "jsonl": lambda path: path.write_text('{"n": 1}\n'),
    "txt": lambda path: path.write_text("a\n"),
    "parquet": lambda path: pa.parquet.write_table(pa.table({"n": [1]}), path),
    "arrow": lambda path: pa.feather.write_feather(pa.table({"n": [1]}), path),
    "npy": lambda path: np.save(path, np.zeros((1, 2), np.float32)),
    "tar": tar,
    "zip": packed,
}


@pytest.mark.parametrize(
    ("suffix", "source"), [*((suffix, "in") for suffix in WRITE), ("csv", "in/*"), ("jsonl", "in/**")]
)
def test_a_file_that_is_ignored_is_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shardmill: Shardmill, suffix: str, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in/old").mkdir(parents=True)
    Path("in/sub/old").mkdir(parents=True)
    for name in ("a", "b_copy", "old/c", "sub/old/d", "sub/e"):
        WRITE[suffix](Path(f"in/{name}.{suffix}"))
    # a text of another kind, which would make the format unclear, has no say either
    WRITE["jsonl" if suffix != "jsonl" else "csv"](Path("in/odd.other"))
    screen = shardmill("convert", source, "-o", "out", "--set", 'input.ignore=["*_copy.*", old/, "sub/old", "*.other"]')
    assert screen.code == 0, screen.err
    assert open_dataset("out").manifest.source.files == 2
    assert "ignored" in screen.out


def test_files_of_records_are_ignored_in_convert_and_merge(tmp_path: Path, shardmill: Shardmill) -> None:
    convert(data={"n": [1, 2]}, output=str(tmp_path / "made"))
    (tmp_path / "in").mkdir()
    data = next((tmp_path / "made").glob("*.tfrecord")).read_bytes()
    for name in ("a.tfrecord", "old.tfrecord"):
        (tmp_path / "in" / name).write_bytes(data)
    for number, command in enumerate(("convert", "merge")):
        out = str(tmp_path / str(number))
        screen = shardmill(command, str(tmp_path / "in"), "-o", out, "--set", "input.ignore=[old.tfrecord]")
        assert (screen.code, len(open_dataset(out))) == (0, 2), screen.err


def test_where_all_files_are_ignored_the_run_says_so(tmp_path: Path, shardmill: Shardmill) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    screen = shardmill(
        "convert", str(tmp_path), "-o", str(tmp_path / "out"), "--format", "csv", "--set", "input.ignore=['*']"
    )
    assert screen.code == 2
    assert "holds no file with one of the suffixes" in screen.err
    assert "that input.ignore does not leave out" in screen.err


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "npy"])
def test_notes_beside_data_that_a_glob_takes_along_are_left_out_and_counted_as_in_a_folder(
    kind: str, tmp_path: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for number in range(2):
        WRITE[kind](Path(f"in/{number}.{kind}"))
    for name in ("README.md", "classes.txt", "labels.txt", "LICENSE", "data.yaml"):
        Path("in", name).write_text("cat\n")
    seen = {}
    for source in ("in", "in/*", "in*"):
        done = shardmill("convert", source, "-o", "out", "--overwrite")
        assert done.code == 0, done.err
        seen[source] = [line for line in done.out.splitlines() if line.startswith(("Read ", "Left out"))]
    assert seen["in"] == seen["in/*"] == seen["in*"]
    assert "Left out: 2 .txt, 1 .md, 1 .yaml, 1 without a suffix" in seen["in"]


def test_a_glob_of_notes_alone_reads_them(tmp_path: Path, shardmill: Shardmill) -> None:
    for name in ("classes.txt", "labels.txt", "more.csv"):
        (tmp_path / name).write_text("cat\n")
    done = shardmill("convert", str(tmp_path / "*s.txt"), "-o", str(tmp_path / "out"))
    assert done.code == 0, done.err
    assert len(open_dataset(str(tmp_path / "out"))["train"]) == 2
