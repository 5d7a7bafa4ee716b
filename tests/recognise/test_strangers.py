from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import InputError
from shardmill.transforms.recognise.splits.seen import Seen
from shardmill.transforms.recognise.strangers.files import why_no_data
from shardmill.transforms.recognise.strangers.tables import refuse_tables

from ..command_line import Shardmill

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 12345\n"
PAGE = b"\n<!DOCTYPE html>\n<html lang=en><head><title>Sign in</title></head><body>x,y</body></html>\n"
DENIED = b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code><Message>Denied</Message></Error>'
STRANGERS = {
    LFS: "is a Git LFS pointer, not the file itself; fetch the files, then run again: git lfs pull",
    PAGE: "is a web page, not the file that its name says",
    DENIED: r"is an error of a store \(AccessDenied\), not the file that its name says",
}
SUFFIXES = ["csv", "tsv", "csv.gz", "jsonl", "txt", "parquet", "arrow", "npy", "npz", "tfrecord", "tar", "zip"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("data", STRANGERS, ids=["lfs", "page", "error"])
def test_what_is_not_the_file_that_its_name_says_is_refused_in_every_format(
    tmp_path: Path, shardmill: Shardmill, suffix: str, data: bytes
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / f"in/data.{suffix}").write_bytes(data)
    screen = shardmill("convert", "in", "-o", "out")
    assert screen.code in (1, 2)
    assert re.search(rf"in/data\.{suffix}: {STRANGERS[data]}", screen.err)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"../../.git/annex/objects/Xk/9w/SHA256E-s10--ab.csv/SHA256E-s10--ab.csv", "git annex get"),
        (b"\xef\xbb\xbf<html><body>", "a web page"),
        (b"<!-- saved from url --> <HTML>", "a web page"),
        (b"<Error><Code>NoSuchKey</Code>", "NoSuchKey"),
        (b'<?xml version="1.0"?><Error xmlns="x"><Code>BlobNotFound</Code>', "BlobNotFound"),
    ],
)
def test_others_of_their_kind_are_known(head: bytes, says: str) -> None:
    assert says in (why_no_data(head) or "")


@pytest.mark.parametrize(
    "head",
    [
        b"a,b\n<html>,1\n",
        b"version https://example.org\n",
        b"<annotation><folder>x</folder>",
        b'{"html": "<!doctype html>"}',
        b"html,head\n1,2\n",
        b"<errors><code>1</code>",
        b"",
    ],
)
def test_data_that_speaks_of_them_is_data(head: bytes) -> None:
    assert why_no_data(head) is None


def test_one_pointer_among_many_files_is_found_and_counted(tmp_path: Path, shardmill: Shardmill) -> None:
    (tmp_path / "in").mkdir()
    for number in range(40):
        (tmp_path / f"in/{number:02d}.csv").write_text("text\n" + "a long line of text\n" * 50)
    (tmp_path / "in/33.csv").write_bytes(LFS)
    assert "in/33.csv: is a Git LFS pointer" in shardmill("convert", "in", "-o", "out").err
    for number in range(3):
        (tmp_path / f"in/{number:02d}.csv").write_bytes(LFS)
    assert "git lfs pull (so are 3 of 15 others that were looked at)" in shardmill("convert", "in", "-o", "out").err


def test_a_pointer_among_pictures_is_refused_and_a_web_page_is_a_reject(tmp_path: Path, shardmill: Shardmill) -> None:
    for number in range(20):
        (tmp_path / "in/cat").mkdir(parents=True, exist_ok=True)
        Image.effect_noise((32, 32), number).save(tmp_path / f"in/cat/{number}.png")
    (tmp_path / "in/cat/page.jpg").write_bytes(PAGE)
    screen = shardmill("convert", "in", "-o", "out", "--max-rejects", "1")
    assert (screen.code, "21 files" in screen.out or "20 written, 1 rejected" in screen.out) == (0, True)
    (tmp_path / "in/cat/7.png").write_bytes(LFS)
    screen = shardmill("convert", "in", "-o", "more", "--max-rejects", "2")
    assert (screen.code, "in/cat/7.png: is a Git LFS pointer" in screen.err) == (2, True)


def test_pages_that_are_meant_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(PAGE)
    with pytest.raises(InputError, match=r"if it is meant so: --set input\.detect=none"):
        convert(str(tmp_path / "a.txt"), output=str(tmp_path / "out"))
    assert (
        len(open_dataset(convert(str(tmp_path / "a.txt"), output=str(tmp_path / "o"), input__detect="none").path)) == 3
    )


def table(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pa.parquet.write_table(pa.table({"id": [1, 2]}), folder / name)


@pytest.mark.parametrize(
    "source", ["t", "t/*.parquet", "t/day=1", "t/day=1/*.parquet", "t/a.parquet", ".", "./*/day=*"]
)
def test_a_table_of_delta_is_refused_from_wherever_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "t", "a.parquet", "day=1/b.parquet")
    (tmp_path / "t/_delta_log").mkdir()
    (tmp_path / "t/_delta_log/00000000000000000000.json").write_text(json.dumps({"commitInfo": {}}))
    with pytest.raises(InputError, match="t: is a table of Delta Lake, whose files also hold deleted and") as e:
        convert(source, output="out")
    assert "convert(data=deltalake.DeltaTable('t').to_pyarrow_table(), output='out')" in str(e.value)
    assert not (tmp_path / "out").exists()


def test_a_table_of_iceberg_is_refused_with_its_newest_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "t", "data/a.parquet")
    (tmp_path / "t/metadata").mkdir()
    for version in (9, 10):
        (tmp_path / f"t/metadata/v{version}.metadata.json").write_text("{}")
    for source in ("t", "t/data", "t/data/*.parquet"):
        with pytest.raises(InputError, match=r"t: is a table of Iceberg") as e:
            convert(source, output="out")
        assert "StaticTable.from_metadata('t/metadata/v10.metadata.json').scan().to_arrow()" in str(e.value)
    assert len(open_dataset(convert("t", output="out", input__detect="none").path)) == 2


def test_a_table_of_hudi_is_refused_and_folders_of_other_names_are_not(tmp_path: Path) -> None:
    table(tmp_path / "t", "a.parquet")
    (tmp_path / "t/metadata").mkdir()
    seen = Seen.of([f"{tmp_path}/t/a.parquet"], [f"{tmp_path}/t"], "/", form="parquet")
    refuse_tables(seen)
    (tmp_path / "t/.hoodie").mkdir()
    with pytest.raises(InputError, match=r"t: is a table of Hudi.*write its current rows to Parquet files"):
        refuse_tables(seen)


def test_gzip_text_is_looked_at_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a\n1\n"))
    assert len(open_dataset(convert(str(tmp_path / "a.csv.gz"), output=str(tmp_path / "out")).path)) == 1


def test_a_form_for_answers_beside_data_is_left_out_and_named_and_read_by_its_own_path(
    tmp_path: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    Path("in/data.csv").write_text("id,label\n1,0\n2,1\n")
    Path("in/sample_submission.csv").write_text("id,label\n3,0\n")
    for number, paths in enumerate((["in"], ["in/*.csv"])):
        screen = shardmill("convert", *paths, "-o", f"out{number}")
        assert screen.code == 0, screen.err
        assert "Detected: in/sample_submission.csv: a form for answers" in screen.out
        assert [row["id"] for row in open_dataset(f"out{number}")["train"]] == [1, 2]
    for number, (paths, wanted) in enumerate(
        [
            (["in/sample_submission.csv"], [3]),
            (["in/data.csv", "in/sample_submission.csv"], [1, 2, 3]),
            (["in", "--set", "input.detect=none"], [1, 2, 3]),
        ]
    ):
        assert shardmill("convert", *paths, "-o", f"own{number}").code == 0
        assert [row["id"] for row in open_dataset(f"own{number}")["train"]] == wanted
