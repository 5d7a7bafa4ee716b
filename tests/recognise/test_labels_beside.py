"""A file of any name whose content names the pictures beside it is named, with the line that reads it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def make(files: dict[str, Any]) -> None:
    """Write texts and documents; pictures have the red of their number."""
    for name, content in files.items():
        path = Path("d", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, int):
            Image.new("RGB", (4, 3), (content, 0, 0)).save(path)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))


def labels(column: str) -> dict[str, dict[int, Any]]:
    """Return a column of each split by the reds of its pictures."""
    found: dict[str, dict[int, Any]] = {}
    for split in open_dataset("out").manifest.splits:
        for row in open_dataset("out")[split]:
            Path("one.png").write_bytes(next(row[name] for name in row if name.endswith("/encoded")))
            found.setdefault(split, {})[Image.open("one.png").getpixel((0, 0))[0]] = row.get(column)
    return found


FOUR = {f"p/{n}.png": n for n in range(4)}
KIND = {0: "cat", 1: "dog", 2: "cat", 3: "dog"}
FIFTYONE = {"classes": ["cat", "dog"], "labels": {str(n): n % 2 for n in KIND}}
OF_SPLITS = {f"{split}/{n}.png": n + 2 * (split == "val") for split in ("train", "val") for n in (0, 1)}
FILES: dict[str, tuple[dict[str, Any], str, dict[str, dict[int, Any]]]] = {
    "keys": (FOUR | {"labels.json": {f"{n}.png": KIND[n] for n in KIND}}, "class", {"train": KIND}),
    "keys without a suffix": (FOUR | {"y.json": {str(n): {"kind": KIND[n]} for n in KIND}}, "kind", {"train": KIND}),
    "rows": (
        FOUR | {"a.json": [{"image": f"{n}.png", "kind": KIND[n]} for n in KIND]}, "kind", {"train": KIND},
    ),
    "rows below a key": (
        FOUR | {"a.json": {"version": 1, "all": [{"kind": KIND[n], "img": f"p/{n}.png"} for n in KIND]}},
        "kind",
        {"train": KIND},
    ),
    "rows of each split": (
        OF_SPLITS
        | {
            f"{split}/annotations.json": [{"image": f"{n}.png", "kind": KIND[n + 2 * (split == "val")]} for n in (0, 1)]
            for split in ("train", "val")
        },
        "kind",
        {"train": {0: "cat", 1: "dog"}, "val": {2: "cat", 3: "dog"}},
    ),
    "rows of one split": (
        {f"val/{n}.png": n for n in KIND} | {"val/a.json": [{"image": f"{n}.png", "kind": KIND[n]} for n in KIND]},
        "kind",
        {"val": KIND},
    ),
    "a table of Weights & Biases": (
        {f"media/images/{n}.png": n for n in range(4)}
        | {
            "p.table.json": {
                "_type": "table",
                "columns": ["id", "image", "kind"],
                "data": [[n, {"_type": "image-file", "path": f"media/images/{n}.png"}, KIND[n]] for n in KIND],
            }
        },
        "kind",
        {"train": KIND},
    ),
    "FiftyOne's classes": (
        {f"data/{n}.png": n for n in range(4)} | {"labels.json": FIFTYONE}, "class", {"train": KIND},
    ),
    "FiftyOne's classes of flat pictures": (
        {f"{n}.png": n for n in range(4)} | {"labels.json": FIFTYONE}, "class", {"train": KIND},
    ),
    "FiftyOne's classes of each split": (
        {f"{split}/data/{n}.png": n + 2 * (split == "validation") for split in ("train", "validation") for n in (0, 1)}
        | {
            f"{split}/labels.json": {"classes": classes, "labels": {"0": 0, "1": 1}}
            for split, classes in (("train", ["cat", "dog"]), ("validation", ["cat", "dog"]))
        },
        "class",
        {"train": {0: "cat", 1: "dog"}, "validation": {2: "cat", 3: "dog"}},
    ),
    "lines": (
        FOUR | {"a.jsonl": "".join(json.dumps({"f": f"{n}.png", "kind": KIND[n]}) + "\n" for n in KIND)},
        "kind",
        {"train": KIND},
    ),
    "URLs in JSON": (
        FOUR | {"export.json": [{"url": f"https://x.org/a/{n}.png", "kind": KIND[n]} for n in KIND]},
        "kind",
        {"train": KIND},
    ),
    "paths of a server in a table": (
        FOUR | {"project-1.csv": "image,kind\n" + "".join(f"/data/upload/1/{n}.png,{KIND[n]}\n" for n in KIND)},
        "kind",
        {"train": KIND},
    ),
    "a table of any name": (
        FOUR | {"Data 2017.csv": "Image Index,kind\n" + "".join(f"{n}.png,{KIND[n]}\n" for n in KIND)},
        "kind",
        {"train": KIND},
    ),
}  # fmt: skip


@pytest.mark.parametrize("option", [("input.format=images",), ("input.format=images", "input.layout=flat")])
@pytest.mark.parametrize("case", FILES)
def test_a_file_that_names_pictures_is_read_by_the_line_that_is_said(
    case: str, option: tuple[str, ...], shardmill: Shardmill
) -> None:
    files, column, wanted = FILES[case]
    make(files)
    shown = shardmill("convert", "d", "-o", "out", *(word for one in option for word in ("--set", one)))
    (line,) = [
        one for one in (shown.out + shown.err).splitlines() if re.search(r"names? pictures in (its|their) ", one)
    ]
    if python := re.search(r"in Python: (.*); then: ", line):
        exec(python[1], {})
    command = re.search(r"(?:then|to read its rows): shardmill (.*)", line)
    assert command is not None, line
    done = shardmill(*shlex.split(command[1]))
    assert done.code == 0, done.err
    assert labels(column) == wanted


def test_names_of_numbers_and_other_documents_are_named(shardmill: Shardmill) -> None:
    make(FOUR | {
        "map.json": {"0": "CBB", "1": "CBSD"}, "ids.json": {"CBB": 0, "CBSD": 1}, "odd.json": {"x": {"y": ["0.png"]}},
        "other.json": {"x": 1}, "tsconfig.json": [1, 2], "not.json": "{",
    })  # fmt: skip
    for options in ((), ("--set", "input.layout=flat")):
        shown = shardmill("convert", "d", "-o", "out", "--overwrite", *options)
        screen = shown.out + shown.err
        assert "d/map.json gives numbers their names (CBB, CBSD), and is not read" in screen
        assert "d/ids.json gives numbers their names (CBB, CBSD), and is not read" in screen
        assert "d/odd.json names pictures, and is not read" in screen
        assert not re.search(r"(other|tsconfig|not)\.json", screen)


def test_captions_beside_pictures_do_not_hide_a_file_that_names_these(shardmill: Shardmill) -> None:
    make(
        {f"p/{n:04}.png": 1 for n in range(3)}
        | {f"p/{n:04}.json": {"n": n} for n in range(5000)}
        | {"p/zz.json": {f"{n:04}.png": "cat" for n in range(3)}}
    )
    assert "p/zz.json names pictures in its keys" in shardmill("convert", "d/p", "-o", "out").out


def test_a_table_of_pictures_of_one_split_is_read_into_this_split(shardmill: Shardmill) -> None:
    make(OF_SPLITS | {
        f"label_of_{split}.csv": f"file,kind\n{split}/0.png,{KIND[n]}\n{split}/1.png,dog\n"
        for split, n in (("train", 0), ("val", 2))
    })  # fmt: skip
    shown = shardmill("convert", "d", "-o", "out").err
    for split in ("train", "val"):
        (line,) = [one for one in shown.splitlines() if f"d/label_of_{split}.csv names pictures" in one]
        done = shardmill(*shlex.split(line.partition("rows: shardmill ")[2]))
        assert done.code == 0, done.err
        assert list(open_dataset(f"out-label_of_{split}").manifest.splits) == [split]


def test_numbers_and_their_names_are_said_beside_a_table_of_pictures(shardmill: Shardmill) -> None:
    make({f"train_images/{n}.png": n for n in range(4)} | {
        "train.csv": "id,label\n0.png,0\n1.png,1\n", "map.json": {"0": "CBB", "1": "CGM"},
    })  # fmt: skip
    shown = shardmill("convert", "d", "-o", "out").err
    assert "d/train.csv names pictures in its column" in shown
    assert "d/map.json gives numbers their names (CBB, CGM), and is not read" in shown


def test_a_file_that_names_pictures_of_several_folders_alike_gets_no_line_that_mixes_them(shardmill: Shardmill) -> None:
    names = [f"https://x.org/{n}.png" for n in range(2)]
    make({f"{kind}/{n}.png": n for kind in ("a", "b") for n in range(2)} | {"urls.json": [{"u": one} for one in names]})
    shown = shardmill("convert", "d", "-o", "out").out
    assert "Detected: d/urls.json names pictures, and is not read\n" in shown


@pytest.mark.parametrize("end", ["zip", "tar"])
def test_an_archive_of_tables_beside_few_pictures_is_unpacked_by_the_command_of_its_refusal(
    end: str, shardmill: Shardmill
) -> None:
    make({f"images/{n}.png": n for n in range(3)} | {"train.csv": "id,kind\n0,cat\n1,dog\n", "test.csv": "id\n2\n"})
    shutil.make_archive("all", end, "d")
    error = shardmill("convert", f"all.{end}", "-o", "out").err
    assert (
        f"all.{end}: holds .csv tables beside pictures, read from folders alone; unpack it first: mkdir -p all" in error
    )
    *steps, read = error.partition("unpack it first: ")[2].partition("; to read")[0].split(" && ")
    for step in steps:
        assert subprocess.run(shlex.split(step), check=False).returncode == 0
    assert "all/train.csv names pictures" in shardmill(*shlex.split(read.removeprefix("shardmill "))).err


@pytest.mark.parametrize(("text", "stops"), [("0.png,a\n1.png,b\n", True), ("", False)])
def test_one_folder_beside_a_table_of_two_rows_is_no_class(text: str, stops: bool, shardmill: Shardmill) -> None:
    make({f"jpg/{n}.png": n for n in range(4)})
    Path("d/labels.csv").write_text(text)
    error = shardmill("convert", "d", "-o", "out", "--format", "images").err
    assert ('"jpg" would be the only class, and a file beside it may say' in error) == stops


@pytest.mark.parametrize("name", ["imagelabels.mat", "Labels.xlsx"])
@pytest.mark.parametrize("folder", ["jpg", "data", "Bilder 2024"])
def test_one_folder_beside_a_file_that_may_hold_labels_is_no_class(
    folder: str, name: str, shardmill: Shardmill
) -> None:
    make({f"{folder}/{n}.png": n for n in range(4)})
    assert shardmill("convert", "d", "-o", "one").code == 0
    Path("d", name).write_bytes(bytes(200))
    error = shardmill("convert", "d", "-o", "out").err
    assert f'"{folder}" would be the only class, and a file beside it may say' in error
    assert f"nothing above reads d/{name}" in error
    command = re.search(r"to read pictures without classes: shardmill (.*)", error)
    assert command is not None, error
    assert shardmill(*shlex.split(command[1])).code == 0
    assert labels("image/class/text") == {"train": dict.fromkeys(range(4))}
    assert shardmill("convert", "d", "-o", "out", "--overwrite", "--set", "input.layout=label").code == 0
    assert set(labels("image/class/text")["train"].values()) == {folder}


@pytest.mark.parametrize("suffix", ["", ".png"])
@pytest.mark.parametrize("options", [(), ("--set", "input.format=images", "--set", "input.layout=flat")])
def test_a_table_of_partitions_gives_splits_to_the_rows_of_others_by_the_line_that_is_said(
    options: tuple[str, ...], suffix: str, shardmill: Shardmill
) -> None:
    end = "" if suffix else ".png"
    make({f"img/img/{n}.png": n for n in range(4)} | {
        "list_eval_partition.csv": "image_id,partition\n" + "".join(f"{n}{end},{(0, 0, 1, 2)[n]}\n" for n in KIND),
        "list_attr_celeba.csv": "image_id,kind\n" + "".join(f"{n}{end},{KIND[n]}\n" for n in reversed(KIND)),
    })  # fmt: skip
    shown = shardmill("convert", "d", "-o", "out", *options)
    (line,) = [
        one for one in (shown.out + shown.err).splitlines() if "names pictures" in one or "partition.csv says" in one
    ]
    found = re.search(r"in Python: (.*); then: shardmill (.*)", line)
    assert found is not None, line
    exec(found[1], {})
    done = shardmill(*shlex.split(found[2]))
    assert done.code == 0, done.err
    assert labels("kind") == {"train": {0: "cat", 1: "dog"}, "val": {2: "cat"}, "test": {3: "dog"}}


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("folders", [("p", "p"), ("p/train", "p/test"), ("a", "b")])
def test_the_first_line_of_a_table_without_a_header_is_a_picture_too(
    folders: tuple[str, str], swapped: bool, shardmill: Shardmill
) -> None:
    rows = [[f"{n}.png", KIND[n]] for n in KIND]
    table = "".join(",".join(reversed(row) if swapped else row) + "\n" for row in rows)
    make({f"{folders[n % 2]}/{n}.png": n for n in KIND} | {"labels.csv": table})
    shown = shardmill("convert", "d", "-o", "out")
    (line,) = [one for one in (shown.out + shown.err).splitlines() if "labels.csv names pictures" in one]
    if python := re.search(r"in Python: (.*); then: ", line):
        exec(python[1], {})
    command = re.search(r"(?:then|to read its rows): shardmill (.*)", line)
    assert command, line
    done = shardmill(*shlex.split(command[1]))
    assert done.code == 0, done.err
    found = labels(f"column_{int(not swapped)}")
    assert {red: kind for split in found.values() for red, kind in split.items()} == KIND


def test_files_of_each_split_that_name_pictures_of_one_folder_are_joined_by_the_line_that_is_said(
    shardmill: Shardmill,
) -> None:
    files = {"train": [1, 2], "test": [3]}
    pictures = {f"images/{split}/{n}.png": n for split, some in files.items() for n in some}
    rows = {f"notes/{split}.json": [{"image": f"{n}.png", "n": n} for n in some] for split, some in files.items()}
    make({**pictures, **rows})
    screen = shardmill("convert", "d", "-o", "out")
    (line, command) = re.findall(r"in Python: (.*); then: shardmill (.*)", screen.out)[0]
    exec(line, {})
    assert shardmill(*shlex.split(command)).code == 0
    assert labels("n") == {"train": {1: 1, 2: 2}, "test": {3: 3}}
