"""Sets of pictures that Datumaro and supervision write are converted from their roots by one command.

The tools run in an environment of their own (`requirements.txt`): `write_sets.py` writes the sets, and what each tool
reads of them: every picture by its bytes, every box by its class and its corners in pixels, every split.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ...command_line import Shardmill, lacking, need_program

HERE = Path(__file__).parent

READ = [
    *(
        f"datumaro {form} boxes {names}"
        for form in ("coco", "coco_instances", "voc", "voc_detection")
        for names in ("plain", "odd", "folders")
    ),
    *(f"datumaro {form} boxes {names}" for form in ("yolo", "yolo_ultralytics") for names in ("plain", "odd")),
    "datumaro imagenet classes plain",
    "datumaro imagenet_with_subset_dirs classes plain",
    *(f"supervision {form}" for form in ("coco", "yolo", "voc", "voc, one split", "classes")),
]
REFUSED = [
    *(f"datumaro {form} boxes plain" for form in ("arrow", "cvat", "datumaro", "mot_seq_gt", "open_images")),
    "datumaro cvat boxes odd",
    *(f"datumaro {form} classes plain" for form in ("arrow", "coco_labels", "cvat", "datumaro")),
]

Pictures = dict[str, tuple[str, list[tuple[str, list[float]]]]]


_FETCHES = 3
_UNFETCHED = re.compile("Failed to fetch|Request failed")


def in_their_environment(*args: str, cwd: Path) -> None:
    need_program("uv")
    packages = ["--isolated", "--no-project", "--python", sys.executable, "--with-requirements"]
    command = ["uv", "run", *packages, str(HERE / "requirements.txt"), *args]
    for _ in range(_FETCHES):  # a registry may fail once
        done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
        if not _UNFETCHED.search(done.stderr):
            break
    else:
        lacking("the packages of Datumaro and supervision cannot be fetched: what they would write is not read")
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return the folder of all sets, and what their tools read of each."""
    root = tmp_path_factory.mktemp("sets")
    in_their_environment("python", str(HERE / "write_sets.py"), str(root), cwd=root)
    return root, json.loads((root / "sets.json").read_text())


@pytest.fixture
def sets(written: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, shardmill: Shardmill) -> dict[str, Any]:
    monkeypatch.chdir(written[0])
    return written[1]


def held(path: Path) -> dict[str, Pictures]:
    """Return what a dataset holds, as `write_sets.py` states it."""
    dataset, found = open_dataset(path), dict[str, Pictures]()
    for split in dataset.splits:
        pictures = found.setdefault(split, {})
        for row in dataset.to_arrow(split).to_pylist():
            size = (row["image/width"], row["image/height"]) * 2
            sides = (row.get(f"image/object/bbox/{side}") or [] for side in ("xmin", "ymin", "xmax", "ymax"))
            corners = [[part * side for part, side in zip(box, size, strict=True)] for box in zip(*sides, strict=True)]
            names = row.get("image/object/class/text") or []
            boxes = list(zip(names, corners, strict=True))
            digest = hashlib.sha256(row["image/encoded"]).hexdigest()
            assert digest not in pictures
            label = row.get("image/class/text")
            pictures[digest] = row["image/filename"], [(label, [])] if label else boxes
    return found


def rounded(splits: dict[str, Pictures]) -> dict[str, Any]:
    """Return boxes in hundredths of a pixel, in their order."""
    return {
        split: {
            digest: sorted((name, [round(100 * side) for side in box]) for name, box in boxes)
            for digest, (_, boxes) in pictures.items()
        }
        for split, pictures in splits.items()
    }


def renamed(splits: dict[str, Pictures]) -> dict[str, Pictures]:
    """Return the splits of a tool by our names: sets without splits are all `train`."""
    return {"train" if split == "default" else split: pictures for split, pictures in splits.items()}


def test_each_set_that_the_tools_write_is_compared(sets: dict[str, Any]) -> None:
    assert sorted(sets) == sorted([*READ, *REFUSED])
    assert all(sum(map(len, one["splits"].values())) == 8 for name, one in sets.items() if name.startswith("datumaro"))


@pytest.mark.parametrize("name", READ)
def test_every_picture_box_class_and_split_is_what_the_tool_reads(
    name: str, sets: dict[str, Any], tmp_path: Path, shardmill: Shardmill
) -> None:
    done = shardmill("convert", name, "-o", str(tmp_path / "out"))
    assert done.code == 0, done.err
    assert rounded(held(tmp_path / "out")) == rounded(renamed(sets[name]["splits"]))
    if name.startswith("datumaro voc"):
        classes = open_dataset(tmp_path / "out").labels["image/object/class/label"]
        assert list(classes) == sets[name]["classes"], "the numbers of its labelmap.txt, with the background"


@pytest.mark.parametrize("name", REFUSED)
def test_the_line_that_a_refusal_proposes_gives_what_the_tool_reads(
    name: str, sets: dict[str, Any], tmp_path: Path, shardmill: Shardmill
) -> None:
    refused = shardmill("convert", name, "-o", str(tmp_path / "out"))
    assert refused.code == 2
    proposed = re.search(r"with \w+: (python -c .+) && (shardmill .+?); ", refused.err)
    assert proposed is not None, refused.err
    in_their_environment(*shlex.split(proposed[1]), cwd=Path.cwd())
    done = shardmill(*shlex.split(proposed[2])[1:])
    assert done.code == 0, done.err
    found, wanted = rounded(held(tmp_path / "out")), rounded(renamed(sets[name]["splits"]))
    if name.startswith("datumaro arrow"):  # its pictures are written as PNG
        found, wanted = ({split: sorted(one.values()) for split, one in some.items()} for some in (found, wanted))
    assert found == wanted
