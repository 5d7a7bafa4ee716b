"""What a user of the command line meets with appends of files that have changed, or were rejected before."""

from __future__ import annotations

import io
import json
import os
import shutil
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pytest
from PIL import Image
from shardmill.pipelines.cli import main


def append(desk: Any, *args: str) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["append", *args, "-o", "out", "--workers", "1"])
    return ended.value.code, *desk.capsys.readouterr()


CHANGED = """error: a.csv: changed since the dataset took it in, and the records that it gave stay in it. Choose one of:
  --changed append   append all its rows, also those that the dataset has
  --changed skip     leave it out
"""


def test_a_table_that_grew_is_refused_and_the_choices_work(desk: Any) -> None:
    desk.put({"a.csv": b"id\n1\n"})
    assert desk.convert("a.csv").code == 0
    desk.put({"a.csv": b"id\n1\n2\n"})
    assert append(desk, "a.csv") == (2, "", CHANGED)
    assert append(desk, "a.csv", "--dry-run") == (2, "", CHANGED)
    code, out, _ = append(desk, "a.csv", "--changed", "skip")
    assert (code, out.splitlines()[0]) == (0, "Nothing to do: no file is left to append.")
    assert "Warning: a.csv: changed since the dataset took it in; left out" in out
    assert append(desk, "a.csv", "--changed", "no")[2] == (
        'error: --changed: "no" is not a choice; choices: append, skip\n'
    )
    assert append(desk, "a.csv", "--changed", "append")[0] == 0
    assert [row["id"] for row in desk.records()] == [1, 1, 2]
    assert append(desk, "a.csv")[1].startswith("Nothing to do: out holds the file")


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ((), ("id,price,city",)),
        ((), ("price,id,city",)),
        (("city,id,price",), ()),
        (("city,id,price",), ("id,price,city",)),
    ],
)
def test_a_list_of_all_columns_is_no_reason_to_append_a_file_again(
    desk: Any, first: tuple[str, ...], then: tuple[str, ...]
) -> None:
    desk.put({"a.csv": b"id,price,city\n1,2,x\n", "b.csv": b"id,price,city\n2,3,y\n"})
    assert desk.convert("a.csv").code == 0
    assert append(desk, "b.csv", *(f"--columns={names}" for names in first))[0] == 0
    held = "Nothing to do: out holds the file; --force appends again.\n"
    assert append(desk, "b.csv", *(f"--columns={names}" for names in then)) == (0, held, "")
    assert len(desk.records()) == 2


def test_a_list_of_some_columns_is_still_refused(desk: Any) -> None:
    desk.put({"a.csv": b"id,price\n1,2\n", "b.csv": b"id,price\n2,3\n", "c.csv": b"id,price\n3,4\n"})
    assert desk.convert("a.csv").code == 0
    assert append(desk, "b.csv")[0] == 0
    code, _, err = append(desk, "c.csv", "--columns", "id")
    assert (code, "missing" in err) == (2, True)


def picture(shade: int, size: int = 8) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (size, size), (shade, 10, 20)).save(file, "PNG")
    return file.getvalue()


REJECTED = (
    "1 file was rejected before, unchanged, and not read again until it is replaced: see out/rejects/00000001.jsonl"
)


class TestRejectedBefore:
    @pytest.fixture
    def nightly(self, desk: Any) -> Any:
        """A folder of which one picture of three was rejected, and that got a new one since."""
        desk.put({"pets/cat/0.png": picture(0), "pets/cat/1.png": picture(1), "pets/cat/bad.png": picture(2)[:60]})
        assert desk.convert("pets", "--max-rejects", "1").code == 0
        desk.put({"pets/cat/3.png": picture(3)})
        return desk

    def test_a_picture_that_was_rejected_is_neither_read_again_nor_rejected_again(self, nightly: Any) -> None:
        (before,) = (nightly.root / "out/rejects").iterdir()
        code, out, err = append(nightly, "pets", "--dry-run")
        assert (code, err, REJECTED in out.splitlines()) == (0, "", True)
        code, out, err = append(nightly, "pets")
        assert (code, err) == (0, "")
        assert out.splitlines()[:3] == [
            f"Appended to out: 1 record in 1 shard, {len_of_shard(nightly, 1)} B (generation 2).",
            "Left out: 2 files held already (generation 1): pets/cat (2 files)",
            REJECTED,
        ]
        assert list((nightly.root / "out/rejects").iterdir()) == [before]
        nightly.put({"pets/cat/4.png": picture(4)})
        assert append(nightly, "pets")[0] == 0  # the folder of generation 2 is known too
        names = [row["image/filename"] for row in nightly.records()]
        assert names == [f"cat/{number}.png" for number in (0, 1, 3, 4)]

    def test_nothing_to_do_counts_what_is_held_and_tells_what_was_rejected(self, nightly: Any) -> None:
        assert append(nightly, "pets")[0] == 0
        code, out, _ = append(nightly, "pets")
        assert (code, out.splitlines()) == (
            0,
            ["Nothing to do: out holds 3 of 4 files; --force appends again.", REJECTED],
        )
        told = json.loads(append(nightly, "pets", "--json")[1])["added"]
        assert told["unchanged"] == [{"name": "pets/cat", "generation": 2, "files": 3}]
        assert told["rejected_before"] == [{"name": "pets/cat", "generation": 1, "files": 1}]

    def test_force_reads_it_again(self, nightly: Any) -> None:
        assert append(nightly, "pets", "--force")[0] == 4

    def test_a_picture_that_was_replaced_is_read_again(self, nightly: Any) -> None:
        nightly.put({"pets/cat/bad.png": picture(2)})
        assert append(nightly, "pets")[0] == 0
        assert "cat/bad.png" in [row["image/filename"] for row in nightly.records()]

    def test_a_picture_of_the_same_size_that_was_written_to_since_is_read_again(self, nightly: Any) -> None:
        later = time.time() + 60
        os.utime(nightly.root / "pets/cat/bad.png", (later, later))
        assert append(nightly, "pets")[0] == 4

    def test_a_good_copy_in_another_folder_is_read(self, nightly: Any) -> None:
        shutil.copytree(nightly.root / "pets", nightly.root / "backup/pets")
        nightly.put({"backup/pets/cat/bad.png": picture(2)})
        os.utime(nightly.root / "backup/pets/cat/bad.png", (0, 0))
        assert append(nightly, "backup/pets")[0] == 0
        assert len(nightly.records()) == 4

    def test_a_picture_over_a_limit_is_read_again_once_the_limit_is_raised(self, desk: Any) -> None:
        small = ("--set", "limits.pixels=100")
        desk.put({"pets/cat/0.png": picture(0), "pets/cat/large.png": picture(2, 32)})
        assert desk.convert("pets", "--max-rejects", "1", *small).code == 0
        desk.put({"pets/cat/3.png": picture(3)})
        code, out, _ = append(desk, "pets", *small)
        assert (code, REJECTED in out) == (0, True)
        desk.put({"pets/cat/4.png": picture(4)})
        code, out, _ = append(desk, "pets")
        assert (code, REJECTED in out) == (0, False)
        assert "cat/large.png" in [row["image/filename"] for row in desk.records()]

    def test_an_array_that_was_rejected_is_not_said_to_be_held(self, desk: Any) -> None:
        for name in ("a", "b", "c"):
            np.save(desk.root / f"{name}.npy", np.zeros((3, 3)))
        os.truncate(desk.root / "b.npy", 150)
        assert desk.convert("a.npy", "b.npy", "c.npy", "--max-rejects", "1").code == 0
        code, out, _ = append(desk, "a.npy", "b.npy", "c.npy")
        assert (code, out.splitlines()) == (
            0,
            ["Nothing to do: out holds 2 of 3 files; --force appends again.", REJECTED],
        )


REPLACED = """error: pets/dog/3.png: changed since the dataset took it in, and the records that it gave stay in it. \
Choose one of:
  --changed append   append the new picture too; the record of before stays
  --changed skip     leave it out
"""


class TestReplacedPictures:
    @pytest.fixture
    def replaced(self, desk: Any) -> Any:
        """Two folders with pictures of the same names; one picture was replaced in place."""
        for kind, shade in (("cat", 0), ("dog", 100)):
            desk.put({f"pets/{kind}/{number}.png": picture(shade + number) for number in (1, 2, 3)})
        assert desk.convert("pets").code == 0
        desk.put({"pets/dog/3.png": picture(200, 16)})
        return desk

    def names(self, desk: Any) -> list[str]:
        return sorted(row["image/filename"] for row in desk.records())

    def test_a_picture_that_was_replaced_in_place_is_refused_by_name(self, replaced: Any) -> None:
        assert append(replaced, "pets") == (2, "", REPLACED)
        assert append(replaced, "pets", "--dry-run") == (2, "", REPLACED)
        assert append(replaced, "pets/cat", "pets/dog") == (2, "", REPLACED)
        assert append(replaced, "pets/dog") == (2, "", REPLACED)

    def test_changed_append_takes_the_new_picture_too_once_and_says_so(self, replaced: Any) -> None:
        code, out, _ = append(replaced, "pets", "--changed", "append")
        assert code == 0
        assert (
            "Warning: pets/dog/3.png: changed since the dataset took it in; appends the new picture too; the record of "
            "before stays" in out
        )
        assert self.names(replaced).count("dog/3.png") == 2
        assert append(replaced, "pets")[1].startswith("Nothing to do: out holds all 6 files")
        replaced.put({"pets/dog/4.png": picture(9)})
        assert append(replaced, "pets")[0] == 0
        assert len(replaced.records()) == 8

    def test_changed_skip_leaves_it_out_and_it_is_not_forgotten(self, replaced: Any) -> None:
        code, out, _ = append(replaced, "pets", "--changed", "skip")
        assert (code, out.splitlines()) == (
            0,
            [
                "Nothing to do: out holds 5 of 6 files; --force appends again.",
                "Warning: pets/dog/3.png: changed since the dataset took it in; left out",
            ],
        )
        replaced.put({"pets/dog/4.png": picture(9), "pets/owl/1.png": picture(50)})
        assert append(replaced, "pets", "--changed", "skip")[0] == 0
        assert self.names(replaced)[-3:] == ["dog/3.png", "dog/4.png", "owl/1.png"]
        assert append(replaced, "pets") == (2, "", REPLACED)

    def test_a_skipped_picture_does_not_make_a_rejected_one_be_read_again(self, desk: Any) -> None:
        desk.put({"pets/cat/1.png": picture(1), "pets/cat/2.png": picture(2), "pets/cat/bad.png": picture(3)[:60]})
        assert desk.convert("pets", "--max-rejects", "1").code == 0
        desk.put({"pets/cat/2.png": picture(4, 16), "pets/cat/3.png": picture(5)})
        for added in (1, 0):
            code, out, _ = append(desk, "pets", "--changed", "skip", "--json")
            assert (code, json.loads(out)["added"]["records"]) == (0, added)

    def test_a_folder_of_one_picture_that_was_skipped_is_not_forgotten(self, desk: Any) -> None:
        desk.put({"pets/cat/1.png": picture(1), "pets/dog/3.png": picture(2)})
        assert desk.convert("pets").code == 0
        desk.put({"pets/dog/3.png": picture(3, 16), "pets/cat/2.png": picture(4)})
        assert append(desk, "pets", "--changed", "skip")[0] == 0
        assert len(desk.records()) == 3
        assert append(desk, "pets") == (2, "", REPLACED)

    def test_several_are_named(self, replaced: Any) -> None:
        replaced.put({"pets/cat/1.png": picture(201, 16)})
        code, _, err = append(replaced, "pets")
        assert code == 2
        assert err.startswith("error: pets/cat/1.png, pets/dog/3.png: changed since the dataset took them in")
        assert "append the new pictures too; the records of before stay\n" in err

    def test_a_copy_in_the_same_folder_is_left_out_and_names_of_other_folders_are_new(self, desk: Any) -> None:
        desk.put({"pets/cat/1.png": picture(1), "pets/cat/2.png": picture(2), "pets/dog/1.png": picture(3)})
        assert desk.convert("pets").code == 0
        desk.put({"pets/dog/2.png": picture(4), "pets/dog/9.png": picture(3), "pets/dog/8.png": picture(1)})
        (desk.root / "pets/cat/1.png").unlink()
        code, out, _ = append(desk, "pets")
        assert (code, out.splitlines()[1]) == (
            0,
            "Left out: 3 files held already (generation 1): pets/cat, pets/dog, pets/dog/9.png (held as dog/1.png)",
        )
        assert self.names(desk) == [f"{name}.png" for name in ("cat/1", "cat/2", "dog/1", "dog/2", "dog/8")]

    def test_a_folder_that_grew_may_hold_a_name_that_another_folder_has(self, desk: Any) -> None:
        desk.put({"monday/1.png": picture(1), "monday/2.png": picture(2), "tuesday/1.png": picture(3)})
        assert desk.convert("monday").code == 0
        assert append(desk, "tuesday")[0] == 0
        desk.put({"tuesday/2.png": picture(4)})
        assert append(desk, "tuesday")[0] == 0
        assert self.names(desk) == ["1.png", "1.png", "2.png", "2.png"]

    def test_of_a_dataset_without_the_pictures_names_a_changed_folder_is_refused(self, desk: Any) -> None:
        columns = ("--columns", "image/encoded,image/format")
        desk.put({"pics/1.png": picture(1)})
        assert desk.convert("pics", *columns).code == 0
        desk.put({"pics/2.png": picture(2)})
        code, _, err = append(desk, "pics")
        assert (code, err.startswith("error: pics: changed since the dataset took it in")) == (2, True)
        assert append(desk, "pics", "--changed", "append")[0] == 0
        assert len(desk.records()) == 3


def len_of_shard(desk: Any, number: int) -> int:
    return int((desk.root / f"out/train-{number:05}.tfrecord").stat().st_size)


IMAGES = "Detected: the format is images, as in out; if it is not: --format NAME"


@pytest.mark.parametrize(("new", "suffix"), [(["new/cat", "new/dog"], ""), (["new"], ""), (["new"], ".jpg")])
def test_an_append_reads_files_whose_names_show_no_format_or_several_as_the_dataset_does(
    desk: Any, new: list[str], suffix: str
) -> None:
    desk.put({f"pets/{kind}/1.jpg": picture(shade) for shade, kind in enumerate(("cat", "dog"), 1)})
    desk.put({f"new/{kind}/2{suffix}": picture(shade) for shade, kind in enumerate(("cat", "dog"), 3)})
    desk.put({"new/notes.csv": b"a\n1\n"} if suffix else {})
    assert desk.convert("pets").code == 0
    for args in (["--dry-run"], []):
        code, out, err = append(desk, *new, *args)
        assert (code, IMAGES in out.splitlines()) == (0, True), err
    assert sorted(row["image/class/text"] for row in desk.records()) == ["cat", "cat", "dog", "dog"]
    assert append(desk, *new, "--format", "csv")[0] != 0  # which is asked for, and wins


def test_a_conversion_and_an_append_to_what_is_no_dataset_still_ask_for_the_format(desk: Any) -> None:
    desk.put({"a.dat": b"a\n1\n"})
    question = "error: a.dat: unknown kind of file; say which it is: --set input.format=csv (or "
    assert desk.convert("a.dat").err.startswith(question)
    assert append(desk, "a.dat")[2].startswith(question)
    desk.put({"b.csv": b"a\n2\n"})
    assert desk.convert("b.csv").code == 0
    assert append(desk, "a.dat")[0] == 0
    assert sorted(row["a"] for row in desk.records()) == [1, 2]


def test_the_calls_that_are_proposed_for_other_formats_keep_every_value(desk: Any) -> None:
    rows = [{"zip": "00123", "n": 2**53 + 1, "m": None, "day": "2024-01-02"}, {"zip": "7", "n": 1, "m": 2**60 + 1}]
    desk.put({"a.json": json.dumps(rows).encode()})
    pyarrow.orc.write_table(pa.Table.from_pylist(rows), "a.orc")
    for name in ("a.json", "a.orc"):
        shutil.rmtree("out", ignore_errors=True)
        _, call = desk.convert(name).err.strip().split("in Python: ")
        exec(call, {})
        assert desk.records() == [{key: value for key, value in row.items() if value is not None} for row in rows]


@pytest.mark.parametrize(
    ("file", "content", "call"),
    [
        ("a.json", b'[{"a": 1}]\n', "json.loads(pathlib.Path('a.json').read_bytes())"),
        ("a.orc", b"ORC", "pyarrow.orc.read_table('a.orc')"),
        ("a.xlsx", b"PK", "pandas.read_excel('a.xlsx', keep_default_na=False, na_values=[''])"),
    ],
)
def test_the_call_that_reads_another_format_is_that_of_the_command_with_its_folder(
    desk: Any, file: str, content: bytes, call: str
) -> None:
    desk.put({"b.csv": b"a\n2\n", file: content})
    assert desk.convert("b.csv").code == 0
    modules = {"json": "json, pathlib", "pyarrow": "pyarrow.orc"}.get(name := call.partition(".")[0], name)
    line = f"in Python: import {modules}; from shardmill.pipelines import %s; %s(data={call}, output=%r)\n"
    assert append(desk, file)[2].endswith(line % ("append", "append", "out"))
    with pytest.raises(SystemExit):
        main(["convert", file, "-o", "o/night"])
    assert desk.capsys.readouterr().err.endswith(line % ("convert", "convert", "o/night"))
