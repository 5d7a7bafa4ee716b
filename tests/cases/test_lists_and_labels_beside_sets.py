"""Labels, lists and folders beside data mean what their lines say; what is printed of them is right."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from shardmill.pipelines import open_dataset

from ..command_line import Screen, Shardmill


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put(files: dict[str, str]) -> None:
    for number, (name, text) in enumerate(files.items()):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".png", ".jpg"):
            Image.new("RGB", (4, 3), (number, 0, 0)).save(path)
        else:
            path.write_text(text)


def run_python(line: str) -> None:
    subprocess.run([sys.executable, "-c", line], check=True)


def counts(dataset: str = "out") -> dict[str, int]:
    found = open_dataset(dataset)
    return {split: len(found[split]) for split in found.splits}


@pytest.mark.parametrize("end", ["-labels.lst", "_labels.txt", ".labels"])
def test_labels_of_the_same_lines_are_joined_by_the_line_of_python(end: str, shardmill: Shardmill) -> None:
    for split, labels in (("train", "012"), ("dev", "10")):
        put({f"d/{split}.jsonl": "".join(f'{{"goal": "{split}\u2028{one}"}}\n' for one in labels)})
        put({f"d/{split}{end}": "\n".join(labels)})
    screen = shardmill("convert", "d", "-o", "out", "--set", "input.splits=names")
    said = f"d/dev{end}, d/train{end} hold a label for each line of d/dev.jsonl, d/train.jsonl, and are not read"
    assert said in screen.out, screen.err
    run_python(screen.out.partition("to join them, in Python: ")[2].splitlines()[0])
    assert open_dataset("out").to_arrow("train").select(["goal", "label"]).to_pylist() == [
        {"goal": f"train\u2028{one}", "label": one} for one in range(3)
    ]
    assert open_dataset("out").to_arrow("dev")["label"].to_pylist() == [1, 0]


def test_labels_of_the_lines_of_a_text_are_joined_by_the_line_of_python(shardmill: Shardmill) -> None:
    put({"d/in.txt": "so good\nso bad\n", "d/in.labels": "pos\nneg\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert "d/in.labels holds a label for each line of d/in.txt, and is not read" in screen.out, screen.err
    run_python(screen.out.partition("to join them, in Python: ")[2].splitlines()[0])
    rows = open_dataset("out").to_arrow("train").select(["text", "label"]).to_pylist()
    assert rows == [{"text": "so good", "label": "pos"}, {"text": "so bad", "label": "neg"}]


def test_a_list_of_fewer_lines_holds_no_labels_of_them(shardmill: Shardmill) -> None:
    put({"d/in.jsonl": '{"a": 1}\n{"a": 2}\n{"a": 3}\n', "d/in.labels": "pos\nneg\n"})
    assert "a label for each line" not in shardmill("convert", "d", "-o", "out").out


def sounds() -> None:
    for split, names in (("dev", (64, 65)), ("eval", (37,))):
        put({f"d/{split}_audio/{name}.wav": f"sound {name}" for name in names})
        more = {"dev": ",split", "eval": ""}[split]
        rows = "".join(f"{name},Dog{more and ',train'}\n" for name in names)
        put({f"d/truth/{split}.csv": f"fname,labels{more}\n{rows}"})
    put({"d/truth/vocabulary.csv": "0,Bark\n1,Dog\n"})


def test_a_table_of_other_columns_is_not_read_into_the_split_of_its_name(shardmill: Shardmill) -> None:
    sounds()
    put({"d/metadata/collection_dev.csv": "fname,kind\n64,a\n65,b\n"})
    stop = shardmill("convert", "d", "-o", "out")
    assert not any("collection_dev.csv" in one for one in re.findall("shardmill .*", stop.err)), stop.err
    (command,) = re.findall(r"dev, eval: +shardmill (.*)", stop.err)
    assert shardmill(*shlex.split(command)).code == 0
    assert counts() == {"dev": 2, "eval": 1}


def test_a_table_of_the_same_columns_is_read_into_the_split_of_its_name(shardmill: Shardmill) -> None:
    sounds()
    put({"d/metadata/collection_dev.csv": "fname,labels,split\n66,Dog,train\n"})
    stop = shardmill("convert", "d", "-o", "out")
    (command,) = re.findall(r"dev, eval: +shardmill (.*)", stop.err)
    assert "d/metadata/collection_dev.csv" in command


def test_sounds_that_a_column_names_by_their_stems_are_read_by_the_options_on_the_screen(shardmill: Shardmill) -> None:
    sounds()
    screen = shardmill("convert", "d/truth/dev.csv", "-o", "out")
    found = re.search(
        r'column "fname" names sounds of d/dev_audio \(64.wav\), which are not read; to read them: (.*)', screen.out
    )
    assert found, screen.out
    done = shardmill("convert", "d/truth/dev.csv", "-o", "out", "--overwrite", *shlex.split(found[1]))
    assert done.code == 0, done.err
    assert [row["fname"] for row in open_dataset("out")["train"]] == [b"sound 64", b"sound 65"]


def test_files_of_dvc_beside_pictures_are_left_out_in_words(shardmill: Shardmill) -> None:
    put({f"d/data/parts/{kind}/{n}.png": "" for kind in ("ok", "scratch") for n in range(2)})
    put({"d/data/parts.dvc": "outs:\n- path: parts\n", "d/dvc.lock": "schema: '2.0'\n", "d/.dvc/config": ""})
    stop = shardmill("convert", "d", "-o", "out")
    (command,) = re.findall(r"to read that folder alone: shardmill (.*)", stop.err)
    assert shardmill(*shlex.split(command)).code == 0
    assert open_dataset("out").labels == {"image/class/label": ("ok", "scratch")}
    for name in ("parts.dvc", "dvc.lock"):
        Path("d/data/parts", name).write_text("outs:\n")
    screen = shardmill("convert", "d/data/parts", "-o", "out", "--overwrite")
    assert ("Left out: 2 files of DVC" in screen.out, counts()) == (True, {"train": 4}), screen.err


def videos() -> None:
    for name in ("bear", "bmx", "swan"):
        put({f"d/JPEGImages/480p/{name}/{n:05}.jpg": "" for n in range(3)})
        put({f"d/Annotations/480p/{name}/{n:05}.png": "" for n in range(3)})


def follow(screen: Screen, shardmill: Shardmill) -> None:
    found = re.search(r"metadata.csv in Python: (.*); then: shardmill (.*)", screen.err + screen.out)
    assert found, screen
    run_python(found[1])
    done = shardmill(*shlex.split(found[2]))
    assert done.code == 0, done.err


def test_lists_of_folders_are_said_and_followed_from_both_screens(shardmill: Shardmill) -> None:
    videos()
    put({"d/ImageSets/2017/train.txt": "bear\nbmx\n", "d/ImageSets/2017/val.txt": "swan\n"})
    said = "d/ImageSets/2017/train.txt, d/ImageSets/2017/val.txt say the splits, and are not read"
    stop = shardmill("convert", "d", "-o", "out")
    assert (stop.code != 0, said in stop.err) == (True, True), stop.err
    (command,) = re.findall(r"to read the pictures alone: shardmill (.*)", stop.err)
    screen = shardmill(*shlex.split(command))
    assert (screen.code, said in screen.out) == (0, True), screen.out
    for one in (screen, stop):
        follow(one, shardmill)
        assert counts() == {"train": 6, "val": 3}
        Path("d/JPEGImages/480p/metadata.csv").unlink()
        shutil.rmtree("out")


def test_lists_of_pictures_beside_their_masks_are_named(shardmill: Shardmill) -> None:
    videos()
    lines = "".join(f"/JPEGImages/480p/swan/{n:05}.jpg /Annotations/480p/swan/{n:05}.png\n" for n in range(3))
    put({"d/ImageSets/480p/val.txt": lines, "d/ImageSets/480p/train.txt": lines.replace("swan", "bear")})
    stop = shardmill("convert", "d", "-o", "out")
    assert "d/ImageSets/480p/train.txt, d/ImageSets/480p/val.txt: list pictures of splits, are not read" in stop.err


@pytest.mark.parametrize("own", [False, True], ids=["the same names", "names of its own"])
def test_two_sides_of_pictures_are_offered_as_no_classes(own: bool, shardmill: Shardmill) -> None:
    for at, top in enumerate(("our485", "eval15")):
        put({f"d/{top}/{side}/{n + 10 * own * at}.png": "" for side in ("low", "high") for n in range(4)})
    stop = shardmill("convert", "d", "-o", "out")
    assert (stop.code != 0, "inner_label" in stop.err) == (True, False), stop.err


BATCHES = {
    "two batches": ("d", ("Batch 1", "Batch 2")),
    "one": ("d", ("batch_2",)),
    "parts of a set": ("d", ("x_part_1", "x_part_3")),
    "in a split": ("d/train", ("part-1", "part-3")),
}


@pytest.mark.parametrize("case", BATCHES)
def test_batches_of_pictures_are_no_classes(case: str, shardmill: Shardmill) -> None:
    place, names = BATCHES[case]
    put({f"{place}/{name}/{number}{n}.png": "" for number, name in enumerate(names) for n in range(2)})
    screen = shardmill("convert", "d", "-o", "out")
    found = re.search(r"named as batches are no classes \((.*)\); where they are: (.*)", screen.out)
    assert found, screen
    assert (found[1], open_dataset("out").labels) == (", ".join(names), {})
    assert shardmill("convert", "d", "-o", "out", "--overwrite", *shlex.split(found[2])).code == 0
    assert open_dataset("out").labels == {"image/class/label": tuple(sorted(names))}


@pytest.mark.parametrize(
    ("line", "is_text"),
    [
        ("1 2 3 \n1 2 3\n4 5\n", False),
        ("1 2 3 4 5 6 7\n8 9 10 11 12\n", False),
        ("38, 43, 920, 215, 'Tiredness'\n", True),
        ('158 128 411 181 "Footpath"\n', True),
        ("\ufeff377,117,463,117,465,130,378,130,Genaxis Theatre\n", True),
        ("x: [[1 2 3]], y: [[1 2 3]], ornt: [u'c'], transcriptions: [u'a']\n", True),
    ],
)
def test_a_text_is_one_of_icdar_by_its_lines(line: str, is_text: bool, shardmill: Shardmill) -> None:
    put({f"d/image_{split}/{split}{n}.jpg": "" for split in ("train", "test") for n in range(2)})
    put({"d/gt_index.txt": line})
    stop = shardmill("convert", "d", "-o", "out")
    assert ("texts of ICDAR" in stop.err) == is_text, stop.err
    assert is_text or "names of folders may mean splits" in stop.err


def test_each_of_several_tables_of_one_width_is_read_alone_and_a_folder_of_one_whole(shardmill: Shardmill) -> None:
    put({"d/a/pre.txt": "adsh\tline\n1\t2\n2\t3\n", "d/a/tag.txt": "tag\tversion\na\t1\nb\t2\n"})
    put({f"d/set/{100 + n}.txt": f"Time,Value,Unit\n{n},5,a\n1,7,b\n" for n in range(9)})
    screen = shardmill("convert", "d", "-o", "out")
    found = re.findall(r"if it is one: shardmill (.*)", screen.out)
    for command in found:
        assert shardmill(*shlex.split(command)).code == 0
    assert ["--overwrite" in one for one in found] == [False] * 3
    assert {name: counts(name)["train"] for name in ("out", "out-pre", "out-tag", "out-set")} == {
        "out": 33, "out-pre": 2, "out-tag": 2, "out-set": 18,
    }  # fmt: skip


def test_texts_that_are_all_json_are_read_by_one_command(shardmill: Shardmill) -> None:
    put({f"d/{split}/{kind}/1.txt": '{"a": 1}\n' for split in ("train", "test") for kind in ("high", "middle")})
    screen = shardmill("convert", "d", "-o", "out")
    (command,) = re.findall(r"if all are: shardmill (.*)", screen.out)
    assert shardmill(*shlex.split(command)).code == 0
    assert counts() == {"test": 2, "train": 2}
