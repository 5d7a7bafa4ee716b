"""What shows at a glance that a run has read other data than its user meant: shares, classes, what was left out."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

from PIL import Image

from ..command_line import Shardmill

LABEL = "image/class/label"


def pictures(**counts: int) -> None:
    """Write so many pictures into the folders `pics/SPLIT/CLASS` of names like train_cat."""
    memory = io.BytesIO()
    Image.new("RGB", (8, 6)).save(memory, "PNG")
    for name, count in counts.items():
        folder = Path("pics", *name.split("_"))
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (folder / f"{number}.png").write_bytes(memory.getvalue())


def test_a_conversion_shows_the_share_of_each_split_each_class_by_split_and_what_it_left_out(
    shardmill: Shardmill,
) -> None:
    pictures(train_cat=6, train_dog=1, val_cat=1)
    Path("pics/train/cat/notes.txt").write_text("x")
    Path("pics/train/.hidden").write_text("x")
    shown = shardmill("convert", "pics", "-o", "out").out
    assert "\nShares of the records: train 87.5 %, val 12.5 %\n" in shown
    assert f"\nClasses of {LABEL}: cat 7 (train 6, val 1), dog 1 (train 1, val 0)\n" in shown
    assert "8 written, 0 rejected\nLeft out: 1 .txt, 1 hidden file\n" in shown
    assert "Shares" not in shardmill("convert", "pics", "-o", "out").out  # nothing to do


def test_json_has_the_shares_and_the_counts_of_all_classes(shardmill: Shardmill) -> None:
    pictures(train_cat=3, val_cat=1)
    found = json.loads(shardmill("convert", "pics", "-o", "out", "--json").out)
    assert found["shares"] == {"train": 0.75, "val": 0.25}
    assert found["classes"] == {LABEL: {"cat": {"train": 3, "val": 1}}}


def test_an_append_a_merge_and_a_rebuild_count_the_whole_dataset(shardmill: Shardmill) -> None:
    pictures(train_cat=3, val_cat=1)
    shardmill("convert", "pics", "-o", "out")
    shutil.rmtree("pics")
    pictures(train_owl=4)
    classes = f"\nClasses of {LABEL}: cat 4 (train 3, val 1), owl 4 (train 4, val 0)\n"
    for args in (["append", "pics", "-o", "out"], ["rebuild", "out", "-o", "again"], ["merge", "out", "-o", "one"]):
        shown = shardmill(*args).out
        assert classes in shown
        assert "\nShares of the records: train 87.5 %, val 12.5 %\n" in shown


def test_more_than_ten_classes_are_cut_on_the_screen_and_whole_in_json(shardmill: Shardmill) -> None:
    Path("t.csv").write_text("kind\n" + "".join(f"k{number:02}\n" * 2 for number in range(12)))
    args = ["convert", "t.csv", "--set", "schema.columns.kind.label=true"]
    shown = shardmill(*args, "-o", "out").out
    assert "\nClasses of kind: k00 2, k01 2, " in shown
    assert ", k09 2 and 2 more\n" in shown
    found = json.loads(shardmill(*args, "-o", "two", "--json").out)["classes"]["kind"]
    assert [*found.items()][-1] == ("k11", {"train": 2})


def test_a_class_without_a_record_is_shown_as_zero_and_a_number_without_class_is_not(shardmill: Shardmill) -> None:
    pictures(cat=2)
    args = ["convert", "pics", "-o", "out", "--set", "input.labels=[cat, dog]", "--set", "input.label_offset=1"]
    assert f"\nClasses of {LABEL}: cat 2, dog 0\n" in shardmill(*args).out


def test_classes_of_boxes_are_counted_by_object(shardmill: Shardmill) -> None:
    pictures(a=1)
    Path("labels").mkdir()
    Path("labels/0.txt").write_text("0 0.5 0.5 0.2 0.2\n1 0.5 0.5 0.2 0.2\n1 0.2 0.2 0.2 0.2\n")
    Path("labels/classes.txt").write_text("cat\ndog\n")
    shown = shardmill("convert", "pics/a", "-o", "out", "--set", "input.annotations.yolo=labels").out
    assert "\nClasses of image/object/class/label: cat 1, dog 2\n" in shown


def test_without_statistics_json_names_the_classes(shardmill: Shardmill) -> None:
    pictures(cat=2, dog=1)
    found = json.loads(shardmill("convert", "pics", "-o", "out", "--set", "stats=none", "--json").out)
    assert found["classes"] == {LABEL: {"cat": {}, "dog": {}}}


def test_names_from_data_stay_one_line(shardmill: Shardmill) -> None:
    Path("t.jsonl").write_text('{"kind": "a\\nb"}\n{"kind": ""}\n')
    shown = shardmill("convert", "t.jsonl", "-o", "out", "--set", "schema.columns.kind.label=true").out
    assert "\nClasses of kind: '' 1, a\\nb 1\n" in shown


def test_adopted_files_show_the_share_of_each_split(shardmill: Shardmill) -> None:
    pictures(train_cat=3, val_cat=1)
    shardmill("convert", "pics", "-o", "out")
    Path("plain").mkdir()
    for path in Path("out").glob("*.tfrecord"):
        shutil.copy(path, f"plain/{path.name}")
    shown = shardmill("adopt", "plain").out
    assert "\nShares of the records: train 75 %, val 25 %\n" in shown
