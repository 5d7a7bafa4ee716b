"""Notes, manifests and annotations beside data are no data, and are named; what is printed of them is right."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from shardmill.pipelines import open_dataset

from ..command_line import Shardmill
from .test_sets_that_people_bring import commands_in


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put(files: dict[str, str]) -> None:
    for name, text in files.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".png", ".jpg"):
            Image.new("RGB", (4, 3)).save(path)
        else:
            path.write_text(text)


def texts() -> list[str]:
    return [row["text"] for row in open_dataset("out")["train"]]


@pytest.mark.parametrize(
    "note",
    ["readme.txt", "README.txt", "LICENSE.txt", "Readme_en.txt", "CHANGELOG.TXT"],
)
@pytest.mark.parametrize("typed", ["d", "d/*"])
def test_a_note_among_texts_is_left_out_and_named(note: str, typed: str, shardmill: Shardmill) -> None:
    put({"d/a.txt": "one\ntwo\n", f"d/{note}": "about it\n"})
    screen = shardmill("convert", typed, "-o", "out")
    assert (screen.code, texts()) == (0, ["one", "two"]), screen.err
    assert f"d/{note}: by its name a note on the other texts; left out" in screen.out
    put({f"d/new-{note}": "three\n", "d/b.txt": "four\n"})
    assert shardmill("append", typed, "-o", "out").code == 0
    assert texts() == ["one", "two", "four", "three"], "and an append leaves the note out too"


@pytest.mark.parametrize("note", ["raw_about.txt", "set.README.1.0.txt"])
def test_a_note_that_begins_with_the_name_of_its_set_is_left_out_and_named(note: str, shardmill: Shardmill) -> None:
    put({"d/raw.txt": "one\ntwo\n", f"d/{note}": "about it\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, texts()) == (0, ["one", "two"]), screen.err
    assert f"d/{note}: by its name a note on the other texts; left out" in screen.out


@pytest.mark.parametrize("named", [["d/readme.txt"], ["d/readme.txt", "d/a.txt"]])
def test_a_note_that_is_named_or_alone_is_read(named: list[str], shardmill: Shardmill) -> None:
    put({"d/a.txt": "one\n", "d/readme.txt": "about it\n"})
    assert shardmill("convert", *named, "-o", "out").code == 0
    assert "about it" in texts()


@pytest.mark.parametrize("name", ["readmes.txt", "my-license.txt", "notice.txt"])
def test_a_text_of_another_name_is_data(name: str, shardmill: Shardmill) -> None:
    put({"d/a.txt": "one\n", f"d/{name}": "two\n"})
    assert shardmill("convert", "d", "-o", "out").code == 0
    assert sorted(texts()) == ["one", "two"]


FASTTEXT = "__label__sauce __label__cheese How much does potato starch affect a cheese sauce?\n__label__bread  Is it?\n"


@pytest.mark.parametrize("typed", ["d/a.txt", "d/a.train", "e"])
def test_fasttext_is_said_with_the_line_of_python_that_reads_labels_and_texts(typed: str, shardmill: Shardmill) -> None:
    put({"d/a.txt": FASTTEXT, "d/a.train": FASTTEXT, "e/a.train": FASTTEXT, "e/a.test": FASTTEXT})
    screen = shardmill("convert", typed, "-o", "out")
    said = screen.out + screen.err
    assert "is fastText (labels, then a text): in Python: " in said
    found = re.search(r"in Python: (import .*convert\(.*\))", said)
    assert found, said
    exec(found[1], {})
    rows = [
        {"labels": [b"sauce", b"cheese"], "text": "How much does potato starch affect a cheese sauce?"},
        {"labels": [b"bread"], "text": "Is it?"},
    ]
    for split in ("train", "test") if typed == "e" else ("train",):
        made = [{"labels": [*row["labels"]], "text": row["text"]} for row in open_dataset("out")[split]]
        assert [(len(one["labels"]), one["text"]) for one in made] == [
            (len(one["labels"]), one["text"]) for one in rows
        ]


def test_pictures_that_a_manifest_of_ground_truth_names_are_read_with_its_rows_by_what_is_printed(
    shardmill: Shardmill,
) -> None:
    lines = [
        json.dumps({"source-ref": f"s3://bucket/job/{n}.png", "job": n, "job-metadata": {"class-name": f"k{n}"}})
        for n in range(2)
    ]
    put({"d/0.png": "", "d/1.png": "", "d/output.manifest": "\n".join(lines)})
    screen = shardmill("convert", "d", "-o", "out")
    assert 'd/output.manifest names pictures in its key "source-ref"' in screen.out + screen.err
    found = re.search(r"in Python: (import .*); then: shardmill (.*)", screen.out + screen.err)
    assert found, screen
    exec(found[1], {})
    words = shlex.split(found[2])
    done = shardmill(*words)
    assert done.code == 0, done.err
    rows = list(open_dataset("out")["train"])
    assert [row["job"] for row in rows] == [0, 1]


def test_annotations_deep_below_another_folder_are_named_where_pictures_are_unclear(shardmill: Shardmill) -> None:
    put({f"d/Data/CLS-LOC/train/n0{n}/{n}.png": "" for n in range(2)})
    put({"d/Data/CLS-LOC/test/7.png": ""})
    put({"d/Annotations/CLS-LOC/train/n00/0.xml": "<annotation><object/></annotation>"})
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 2
    assert "nothing above reads d/Annotations/CLS-LOC/train/n00/0.xml" in screen.err


def test_numbers_beside_names_of_pictures_are_not_taken_for_names(shardmill: Shardmill) -> None:
    put({f"d/Meta/{n}.png": "" for n in range(3)})
    put({f"d/Test/0000{n}.png": "" for n in range(3)})
    rows = "".join(f"0000{n}.ppm;{n}\n" for n in range(3))
    put({"d/Test/GT-final_test.csv": f"Filename;ClassId\n{rows}"})
    screen = shardmill("convert", "d", "-o", "out")
    assert "ClassId" not in screen.out + screen.err


def test_lines_of_json_beside_the_texts_of_sounds_are_asked_for(shardmill: Shardmill) -> None:
    rows = {s: [{"audio_filepath": f"x/{n}.wav", "text": f"{s} {n}"} for n in range(3)] for s in ("train", "dev")}
    put({f"d/{s}_clean.json": "\n".join(map(json.dumps, some)) + "\n" for s, some in rows.items()})
    put({f"d/LibriSpeech/{s}-clean/84.trans.txt": "84-0 GO\n84-1 DO\n" for s in rows})
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 2
    assert "holds texts (d/LibriSpeech/dev-clean/84.trans.txt" in screen.err
    read = next(words for words in commands_in(screen.err) if "jsonl" in words)
    stopped = shardmill(*read)
    assert stopped.code == 2, "of which split each is, is asked next"
    assert shardmill(*commands_in(stopped.err)[0]).code == 0
    assert [row["text"] for row in open_dataset("out")["dev"]] == ["dev 0", "dev 1", "dev 2"]


def test_documents_of_json_beside_texts_say_nothing(shardmill: Shardmill) -> None:
    put({"d/a.txt": "one\n", "d/info.json": '{"a": 1}\n', "d/more.json": '{\n  "a": 1\n}\n'})
    assert shardmill("convert", "d", "-o", "out").code == 0
    assert texts() == ["one"]


@pytest.mark.parametrize("end", ["jsonl", "csv"])
def test_files_that_share_their_ids_alone_are_warned_of(end: str, shardmill: Shardmill) -> None:
    users, events = {"_id": "u1", "name": "Ann", "born": "x"}, {"_id": "e1", "kind": "open", "at": "y"}
    for name, row in {"users": users, "events": events}.items():
        put({f"d/{name}.{end}": json.dumps(row) if end == "jsonl" else f"{','.join(row)}\n{','.join(row.values())}\n"})
    meant = ["input.columns_differ=union"] if end == "csv" else ["input.detect=none"]
    stop = shardmill("convert", "d", "-o", "out").err
    assert f"convert d/users.{end} -o out-users" in stop
    assert (f"--set {meant[0]}" in stop) is (end == "jsonl"), "tables that share nothing are not joined"
    screen = shardmill("convert", "d", "-o", "out", "--set", *meant)
    assert screen.code == 0, screen.err
    assert "column, ids apart, in common with any other file" in screen.out + screen.err


BUSINESS = {"business_id": "b", "name": "Cafe", "city": "Tucson", "stars": 3.5, "hours": None}
REVIEW = {"review_id": "r", "user_id": "u", "business_id": "b", "stars": 1.0, "useful": 0, "text": "Good"}
USER = {"user_id": "u", "name": "Ann", "review_count": 3, "fans": 1}


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["yelp_business.json", "yelp_review.json", "yelp_user.json"], []),
        (["b.jsonl", "r.jsonl", "u.jsonl"], []),
        (["business/part-0.jsonl", "review/part-0.jsonl", "user/part-0.jsonl"], []),
        (["train/b.jsonl", "train/r.jsonl", "train/u.jsonl"], ["--set", "input.splits=none"]),
    ],
)
def test_lines_of_several_tables_become_a_dataset_each(
    names: list[str], options: list[str], shardmill: Shardmill
) -> None:
    for name, row in zip(names, (BUSINESS, REVIEW, USER), strict=True):
        put({f"d/{name}": f"{json.dumps(row)}\n" * 3})
    stopped = shardmill("convert", "d", "-o", "out", *options)
    if names[0].endswith(".json"):
        assert "the first lines of yelp_business.json show how" in stopped.err
        stopped = shardmill(*commands_in(stopped.err)[0])
    assert stopped.code == 2
    assert "one table is read at a time" in stopped.err
    commands = commands_in(stopped.err)
    assert len(commands) == 3
    for command, row in zip(commands, (BUSINESS, REVIEW, USER), strict=True):
        assert shardmill(*command).code == 0
        made = [*open_dataset(command[command.index("-o") + 1])["train"]]
        assert [{*one} for one in made] == 3 * [{*row}]


@pytest.mark.parametrize(
    "other", [{"business_id": "c", "name": "Bar", "parking": True}, {"name": "B", "stars": 1, "city": "x", "wifi": 1}]
)
def test_lines_that_lack_keys_of_others_or_have_more_are_of_one_table(
    other: dict[str, object], shardmill: Shardmill
) -> None:
    put({"d/a.jsonl": f"{json.dumps(BUSINESS)}\n", "d/b.jsonl": f"{json.dumps(other)}\n"})
    assert shardmill("convert", "d", "-o", "out").code == 0


def test_files_of_lines_that_share_another_key_are_not_warned_of(shardmill: Shardmill) -> None:
    put({"d/a.jsonl": '{"_id": 1, "x": 1}\n', "d/b.jsonl": '{"_id": 2, "x": 2, "y": 3}\n'})
    assert "ids apart" not in shardmill("convert", "d", "-o", "out").out


def test_names_of_classes_are_not_proposed_for_the_number_of_each_row(shardmill: Shardmill) -> None:
    put({"d/label_map.json": '{"Forest": 0, "River": 1}'})
    put({"d/a.csv": ",Filename,Label\n0,a.jpg,0\n1,b.jpg,1\n2,c.jpg,1\n"})
    screen = shardmill("convert", "d/a.csv", "-o", "out")
    assert 'column "Label" holds numbers, and d/label_map.json has their names' in screen.out
    assert '"column_0" holds numbers' not in screen.out


def test_classes_in_the_lists_of_annotated_pictures_are_named_with_the_command_that_reads_them(
    shardmill: Shardmill,
) -> None:
    lists = {"trainval": ["cat_1 1 1 1", "cat_2 1 1 1"], "test": ["cat_3 1 1 1", "Dog_1 2 2 1"]}
    put({f"d/images/{line.split()[0]}.jpg": "" for lines in lists.values() for line in lines})
    put({f"d/annotations/{name}.txt": "\n".join(lines) for name, lines in lists.items()})
    box = "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>3</xmax><ymax>2</ymax></bndbox>"
    size = "<size><width>4</width><height>3</height><depth>3</depth></size>"
    for stem in ("cat_1", "cat_2"):
        text = f"<annotation><filename>{stem}.jpg</filename>{size}<object><name>cat</name>{box}</object></annotation>"
        put({f"d/annotations/xmls/{stem}.xml": text})
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 0, screen.err
    (words,) = (words for words in commands_in(screen.out) if "csv" in words)
    done = shardmill(*words)
    assert done.code == 0, done.err
    made = open_dataset(words[words.index("-o") + 1])
    assert {split: [row["column_1"] for row in made[split]] for split in made.splits} == {
        "test": [1, 2],
        "trainval": [1, 1],
    }


@pytest.mark.parametrize(
    ("place", "text", "called"),
    [
        ("ds1/ann/0.png.json", '{"objects": [{"classTitle": "kiwi"}]}', "annotations of Supervisely"),
        ("DET-train/annotations/0.txt", "684,8,273,116,0,0,0,0\n1,2,3,4,1,4,0,0\n", "boxes of VisDrone"),
    ],
)
def test_annotations_in_several_folders_of_pictures_are_refused_by_name(
    place: str, text: str, called: str, shardmill: Shardmill
) -> None:
    first, second = place, place.replace("ds1", "ds2").replace("train", "val")
    for one in (first, second):
        folder = one.partition("/")[0]
        put({f"d/{folder}/{'img' if 'ann/' in one else 'images'}/0.png": "", f"d/{one}": text})
    screen = shardmill("convert", "d", "-o", "out", "--set", "input.splits=names")
    assert screen.code != 0
    assert called in screen.err


@pytest.mark.parametrize("folder", ["annotations", "img_bbox", "Ground_Truth"])
def test_texts_in_folders_of_annotations_are_named_where_nothing_reads_them(folder: str, shardmill: Shardmill) -> None:
    put({f"d/{split}/{kind}/{n}.png": "" for split in ("train", "test") for kind in ("a", "b") for n in range(2)})
    put({f"d/{folder}/{n}.txt": "3 of something\n" for n in range(2)})
    screen = shardmill("convert", "d", "-o", "out")
    assert f"d/{folder} has the name of folders of annotations, and its files are not read" in screen.out + screen.err


def test_other_texts_in_folders_beside_pictures_are_not_called_annotations(shardmill: Shardmill) -> None:
    put({f"d/{kind}/{n}.png": "" for kind in ("a", "b") for n in range(2)})
    put({"d/notes/0.txt": "hello\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, "of folders of annotations" in screen.out) == (0, False), screen.err


@pytest.mark.parametrize(
    ("files", "asked"),
    [
        (["training.1600000.processed.csv", "testdata.manual.2009.csv"], True),
        (["traindata.v2.csv", "Test_Set.v2.csv"], True),
        (["train-ticket-sales.csv", "test-drive-log.csv"], False),
        (["training_hours.csv", "stores.csv"], False),
        (["train-of-thought.csv", "trains.csv"], False),
    ],
)
def test_two_tables_of_which_each_begins_or_ends_with_a_split_are_asked_for(
    files: list[str], asked: bool, shardmill: Shardmill
) -> None:
    put({f"d/{name}": "a,b\n1,2\n" for name in files})
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code == 2) == asked, screen.out + screen.err
    if asked:
        both = commands_in(screen.err)[0]
        assert shardmill(*both).code == 0
        assert [(name[:5], len(open_dataset("out")[name])) for name in open_dataset("out").splits] in (
            [("test", 1), ("train", 1)],
            [("train", 1), ("test", 1)],
        )


def test_a_column_of_usage_as_kaggle_writes_it_is_said_to_hold_splits(shardmill: Shardmill) -> None:
    rows = "".join(f"{n},{use}\n" for use in ("Training", "PublicTest", "PrivateTest") for n in range(2))
    put({"d.csv": f"emotion,Usage\n{rows}"})
    screen = shardmill("convert", "d.csv", "-o", "out")
    line = next(line for line in screen.out.splitlines() if "holds names of splits" in line)
    options = shlex.split(line.rpartition("to split by it: ")[2])
    assert shardmill("convert", "d.csv", "-o", "out", "--overwrite", *options).code == 0
    assert {split: len(open_dataset("out")[split]) for split in open_dataset("out").splits} == {
        "privatetest": 2,
        "publictest": 2,
        "training": 2,
    }


def test_a_column_of_titles_with_a_word_of_splits_is_none_of_splits(shardmill: Shardmill) -> None:
    put({"d.csv": "a,title\n1,Training\n2,Cooking\n3,Test\n"})
    assert "holds names of splits" not in shardmill("convert", "d.csv", "-o", "out").out


def test_lists_above_folders_of_texts_are_said_to_be_records_too(shardmill: Shardmill) -> None:
    put({f"d/{split}/{kind}/{n}.txt": "good\n" for split in ("train", "test") for kind in ("pos", "neg") for n in "01"})
    put({f"d/{split}/urls_pos.txt": "http://x\n" for split in ("train", "test")})
    screen = shardmill("convert", "d", "-o", "out")
    assert "so are those of files above, as in d/" in screen.out


@pytest.mark.parametrize("names", [("train-v1.1", "dev-v1.1"), ("squad_train", "squad_dev")])
@pytest.mark.parametrize("typed", ["d", "d/*.json"])
def test_rows_of_documents_of_json_are_of_the_splits_in_the_names_of_these(
    names: tuple[str, str], typed: str, shardmill: Shardmill
) -> None:
    for count, name in zip((2, 1), names, strict=True):
        document = {"version": "1.1", "data": [{"title": f"{name} {n}", "n": n} for n in range(count)]}
        put({f"d/{name}.json": json.dumps(document)})
    screen = shardmill("convert", typed, "-o", "out")
    found = re.search(
        r"in Python: ((?:import [^;]*; )?from .*?convert\(.*?\))(?:; or a record a file.*)?$", screen.err, re.M
    )
    assert found, screen.err
    exec(found[1], {})
    assert {split: len(open_dataset("out")[split]) for split in open_dataset("out").splits} == {"dev": 1, "train": 2}


NAMES = "-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\n# NN O\nis VBZ O\nGerman JJ B-MISC\n\n"
WORDS = "# text = Du Soleil\n1-2\tDu\t_\n1\tDe\tde\n2\tle\tle\n3\tSoleil\tsoleil\n\n1\tOui\toui\n\n"
TREES = "\n".join(line + 7 * "\t_" if "\t" in line else line for line in WORDS.split("\n"))


def in_python(said: str) -> str:
    found = re.search(r"in Python.*?: (import .*convert\(.*\))", said)
    assert found, said
    return found[1]


@pytest.mark.parametrize(
    ("names", "text", "tokens"),
    [
        (["eng.train", "eng.testa", "eng.testb"], NAMES, [["EU", "rejects"], ["#", "is", "German"]]),
        (["train.txt", "dev.txt", "test.txt"], NAMES, [["EU", "rejects"], ["#", "is", "German"]]),
        (["wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"], NAMES.replace(" ", "\t"),
         [["EU", "rejects"], ["#", "is", "German"]]),
        (["fr-ud-train.conllu", "fr-ud-dev.conllu", "fr-ud-test.conllu"], TREES,
         [["Du", "De", "le", "Soleil"], ["Oui"]]),
    ],
)  # fmt: skip
def test_sentences_of_conll_are_records_of_the_splits_in_the_names_of_their_files_by_what_is_printed(
    names: list[str], text: str, tokens: list[list[str]], shardmill: Shardmill
) -> None:
    put({f"d/{name}": text for name in names} | {"d/README.md": "about\n", "d/LICENSE.txt": "BY-SA\n"})
    screen = shardmill("convert", "d", "-o", "out")
    if names[0].endswith(".txt"):
        screen = shardmill(*commands_in(screen.err)[0])
    exec(in_python(screen.out + screen.err), {})
    dataset = open_dataset("out")
    assert sorted(dataset.splits) == sorted(
        name.split(".")[-1] if name.startswith("eng") else re.search("train|dev|test", name)[0]  # type: ignore[index]
        for name in names
    )
    for split in dataset.splits:
        assert [[*row.get("tokens", row.get("form"))] for row in dataset[split]] == tokens


@pytest.mark.parametrize(
    "ends", [(".train", ".testa", ".testb"), (".trn.x", ".dev.x", ".test.y"), ("", ".dev", ".test")]
)
def test_files_whose_suffixes_name_splits_do_not_come_together(ends: tuple[str, ...], shardmill: Shardmill) -> None:
    put({f"d/{at}{end}": f"of {at}\n" for at, end in zip("abc", ends, strict=True)})
    stopped = shardmill("convert", "d/*", "-o", "out", "--set", "input.format=txt")
    assert stopped.code == 2
    assert "names of files may mean splits" in stopped.err
    assert shardmill(*commands_in(stopped.err)[0]).code == 0
    assert {split: [row["text"] for row in open_dataset("out")[split]] for split in open_dataset("out").splits} == {
        end.split(".")[1]: [f"of {at}"] for at, end in zip("abc", ends, strict=True) if end and "trn" not in end
    }


def test_a_license_beside_files_of_another_kind_is_not_read_in_their_place(shardmill: Shardmill) -> None:
    put({"d/a.sgml": "<a>\n", "d/LICENSE.txt": "BY-SA\n"})
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 2
    assert "holds no file of a known kind" in screen.err


def mvtec(above: str, categories: int) -> dict[str, str]:
    kinds = ("broken", "color", "cut", "hole")
    names = [f"{above}{at}/train/good/{n}" for at in range(categories) for n in range(3)]
    names += [f"{above}{at}/test/{kind}/{n}" for at in range(categories) for kind in ("good", *kinds) for n in range(3)]
    masks = [
        one.replace("/test/", "/ground_truth/") + "_mask" for one in names if "/test/" in one and "good" not in one
    ]
    return {f"{one}.png": "" for one in (*names, *masks)} | {f"{above}0/license.txt": "CC\n"}


@pytest.mark.parametrize(("typed", "above", "categories"), [
    (["d"], "d/c", 2), (["d"], "d/mvtec/c", 3), (["d/c0", "d/c1"], "d/c", 2), (["d/c0"], "d/c", 2),
])  # fmt: skip
def test_categories_beside_masks_become_a_dataset_each_with_splits_and_classes(
    typed: list[str], above: str, categories: int, shardmill: Shardmill
) -> None:
    put(mvtec(above, categories))
    stopped = shardmill("convert", *typed, "-o", "out")
    assert stopped.code == 2
    commands = commands_in(stopped.err.partition(" the pictures alone")[2].partition("\n")[0].replace(" && ", "\n"))
    assert len(commands) == (1 if typed == ["d/c0"] else categories)
    for command in commands:
        assert shardmill(*command).code == 0
        dataset = open_dataset(command[command.index("-o") + 1])
        classes = {split: {row["image/class/text"] for row in dataset[split]} for split in dataset.splits}
        assert classes == {"train": {"good"}, "test": {"good", "broken", "color", "cut", "hole"}}
        assert {split: len(dataset[split]) for split in dataset.splits} == {"train": 3, "test": 15}


MANIFEST = {
    "entries": [{"url": "s3://b/venue_0000_part_00", "meta": {"content_length": 9}}],
    "schema": {
        "elements": [{"name": "id", "type": {"base": "bigint"}}, {"name": "venue", "type": {"base": "varchar"}}]
    },
}


@pytest.mark.parametrize(
    ("end", "parts"), [(".gz", 2), ("", 2), ("", 20), (".gz", 20)], ids=["gz", "plain", "many", "many gz"]
)
@pytest.mark.parametrize(
    "manifest",
    [json.dumps(MANIFEST), json.dumps(MANIFEST, indent=2), '{"entries":[{"url":"s3://b/p"}]}', ""],
    ids=["names", "indented", "no names", "none"],
)
def test_parts_that_redshift_unloads_are_read_with_the_names_in_their_manifest_which_is_no_data(
    end: str, parts: int, manifest: str, shardmill: Shardmill
) -> None:
    put({"d/venue_manifest": manifest} if manifest else {})
    Path("d").mkdir(exist_ok=True)
    for part in range(parts):
        text = f"{part}|Toyota Park\n{part + 100}|A\\|B\n".encode()
        Path(f"d/venue_{part:04}_part_00{end}").write_bytes(gzip.compress(text) if end else text)
    stopped = shardmill("convert", "d", "-o", "out")
    done = shardmill(*commands_in(stopped.err)[0])
    assert done.code == 0, done.err
    names = ("id", "venue") if "schema" in manifest else ("column_0", "column_1")
    rows = sorted(tuple(row[name] for name in names) for row in open_dataset("out")["train"])
    assert rows == sorted([(n, "Toyota Park") for n in range(parts)] + [(n + 100, "A|B") for n in range(parts)])


AIRCRAFT = {"train": ("0034309", "Boeing 707-320"), "val": ("1025794", "A310"), "test": ("0900914", "F-16A/B Viper 2")}


@pytest.mark.parametrize(
    "kinds", [["variant", "family"], ["variant"], [""]], ids=["two lists a split", "one list", "plain names"]
)
def test_classes_of_several_words_in_lists_of_splits_are_read_by_what_is_printed(
    kinds: list[str], shardmill: Shardmill
) -> None:
    put({f"d/data/images/{name}.jpg": "" for name, _ in AIRCRAFT.values()})
    for split, (name, text) in AIRCRAFT.items():
        put(
            {
                "d/data/" + "_".join(filter(None, ["images", kind, split])) + ".txt": f"{name} {text}{kind}\n"
                for kind in kinds
            }
        )
    screen = shardmill("convert", "d/data", "-o", "out")
    found = re.search(r"in Python: (import .*); then: shardmill (.*)", screen.out + screen.err)
    assert found, screen
    exec(found[1], {})
    done = shardmill(*shlex.split(found[2]))
    assert done.code == 0, done.err
    for split, (name, text) in AIRCRAFT.items():
        (row,) = open_dataset("out")[split]
        assert row["image/filename"].endswith(f"{name}.jpg")
        names = kinds if len(kinds) > 1 else ["class"]
        assert [str(row[one]) for one in names] == [f"{text}{kind}" for kind in kinds]


def test_pictures_of_one_split_beside_masks_are_of_that_split_by_what_is_printed(shardmill: Shardmill) -> None:
    put({f"d/c{at}/test/{kind}/{n}.png": "" for at in range(2) for kind in ("good", "cut", "hole") for n in range(3)})
    put(
        {
            f"d/c{at}/ground_truth/{kind}/{n}_mask.png": ""
            for at in range(2)
            for kind in ("cut", "hole")
            for n in range(3)
        }
    )
    stopped = shardmill("convert", "d", "-o", "out")
    commands = commands_in(stopped.err.partition(" the pictures alone")[2].partition("\n")[0].replace(" && ", "\n"))
    assert len(commands) == 2
    for command in commands:
        assert shardmill(*command).code == 0
        rows = [*open_dataset(command[command.index("-o") + 1])["test"]]
        assert sorted(row["image/class/text"] for row in rows) == sorted(3 * ["good", "cut", "hole"])


@pytest.mark.parametrize(
    ("names", "splits", "more"),
    [
        (["train/X_train.txt", "train/y_train.txt", "test/X_test.txt", "test/y_test.txt"], ["train", "test"],
         ["subject"]),
        (["X_train.txt", "y_train.txt", "X_test.txt", "y_test.txt"], ["train", "test"], []),
        (["features.txt", "labels.txt"], ["train"], []),
    ],
)  # fmt: skip
def test_texts_of_numbers_whose_rows_belong_together_are_joined_by_the_line_of_python(
    names: list[str], splits: list[str], more: list[str], shardmill: Shardmill
) -> None:
    for x, y in zip(names[::2], names[1::2], strict=True):
        put({f"d/{x}": "  2.5e-001 -0.5\n  1.0e+000  7\n  3  4\n", f"d/{y}": "5\n1\n3\n"})
        put({f"d/{y.replace('y_', f'{one}_')}": "7\n7\n8\n" for one in more})
        put({f"d/{os.path.dirname(x)}/Inertial Signals/body_{os.path.basename(x)[2:]}": "1 2\n" for _ in more})
    put({"d/README.txt": "about\n", "d/activity_labels.txt": "1 WALKING\n2 LAYING\n"})
    stopped = shardmill("convert", "d", "-o", "out")
    assert stopped.code == 2
    assert "whose rows belong to each other" in stopped.err
    exec(in_python(stopped.err.partition("; if it is meant so")[0]), {})
    dataset = open_dataset("out")
    assert sorted(dataset.splits) == sorted(splits)
    for split in splits:
        rows = [*dataset[split]]
        assert [[*map(float, row["x"])] for row in rows] == [[0.25, -0.5], [1, 7], [3, 4]]
        assert [row["y"] for row in rows] == [5, 1, 3]
        assert [row[one] for row in rows for one in more] == [7, 7, 8] * len(more)


def test_texts_above_folders_of_splits_that_hold_others_are_not_taken_for_the_data(shardmill: Shardmill) -> None:
    files = {
        f"d/{split}/{name}": "a b\nc d\n" for split in ("train", "test") for name in ("seq.in", "seq.out", "label")
    }
    put({"d/intent_label.txt": "play\nstop\n"} | files)
    stop = shardmill("convert", "d", "-o", "out")
    assert (stop.code, stop.out) == (2, "")
    assert "holds texts (d/intent_label.txt) beside files of another kind (*, *.in, *.out)" in stop.err


TABLES = {
    "d/orders.csv": ("order_id,user_id,hour", "{n},{n},5"),
    "d/products.csv": ("product_id,name,aisle", "{n},p{n},7"),
    "d/order_products__train.csv": ("order_id,product_id,reordered", "{n},{n},1"),
    "d/order_products__prior.csv": ("order_id,product_id,reordered", "{n},{n},0"),
}


def test_tables_of_other_columns_have_a_command_each_and_are_not_joined(shardmill: Shardmill) -> None:
    put({name: "\n".join([header, *(row.format(n=n) for n in range(4)), ""]) for name, (header, row) in TABLES.items()})
    stop = shardmill("convert", "d", "-o", "out")
    assert "union" not in stop.err, stop.err
    commands = re.findall(r"^  shardmill (.*)$", stop.err, re.MULTILINE)
    for command in commands:
        assert shardmill(*shlex.split(command)).code == 0, command
    found = {words[-1]: len(open_dataset(words[-1])["train"]) for words in map(shlex.split, commands)}
    assert found == {"out-orders": 4, "out-products": 4, "out-order_products": 8}


def test_tables_that_share_most_columns_may_be_rows_of_one(shardmill: Shardmill) -> None:
    put({"d/train.csv": "id,text,a,b,c,d\n1,x,1,2,3,4\n", "d/train_full.csv": "id,text,a,b,e,f\n1,x,1,2,3,4\n"})
    stop = shardmill("convert", "d", "-o", "out", "--set", "input.splits=none")
    assert stop.err.rstrip().endswith("where a file lacks a column: --set input.columns_differ=union"), stop.err
    assert (
        len(re.findall(r"^  shardmill convert d/train\w*.csv -o out-\w+ --set input.splits=none$", stop.err, re.M)) == 2
    )


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_texts_whose_suffixes_are_feelings_are_read_with_these_as_classes(encoding: str, shardmill: Shardmill) -> None:
    put({"d/rt.README.1.0.txt": "a note\n", "d/rt/rt.pos": "", "d/rt/rt.neg": ""})
    for name, lines in (("pos", "très bien\nfine\n"), ("neg", "bad\nworse\n")):
        Path(f"d/rt/rt.{name}").write_text(lines, encoding)
    stop = shardmill("convert", "d", "-o", "out")
    found = re.search(r"in Python, a record for each line: (.*)$", stop.err, re.MULTILINE)
    assert found, stop.err
    subprocess.run([sys.executable, "-c", found[1]], check=True)
    rows = [(row["text"], row["label"]) for row in open_dataset("out")["train"]]
    assert rows == [("bad", "neg"), ("worse", "neg"), ("très bien", "pos"), ("fine", "pos")]


def test_rows_that_end_with_another_sign_are_cut_at_commas_and_lose_it(shardmill: Shardmill) -> None:
    put({"a.csv": "".join(f"{n},{('walk', 'run')[n % 2]},0.{n};\n" for n in range(20))})
    stop = shardmill("convert", "a.csv", "-o", "out")
    command = stop.err.split("in one command: shardmill ")[1]
    assert shardmill(*shlex.split(command)).code == 0
    assert open_dataset("out")["train"].to_arrow()["column_2"].to_pylist()[:3] == pytest.approx([0.0, 0.1, 0.2])


def test_pictures_whose_names_begin_as_cameras_write_them_are_read(shardmill: Shardmill) -> None:
    put({f"d/{name}/_DSC000{n}.JPG": "" for name in ("cat", "dog") for n in range(2)} | {"d/cat/_list.txt": "x"})
    for path in ("d/cat/_DSC0000.JPG", "d/cat/_DSC0001.JPG", "d/dog/_DSC0000.JPG", "d/dog/_DSC0001.JPG"):
        Image.new("RGB", (4, 3)).save(path)
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, len(open_dataset("out")["train"])) == (0, 4), screen.err
    assert "Left out: 1 hidden file" in screen.out


def test_rows_of_a_packed_file_that_are_in_another_are_told(shardmill: Shardmill) -> None:
    rows = [f'{{"id": "row-{n:05}", "text": "a message of some length {n}"}}\n' for n in range(40)]
    Path("d").mkdir()
    for name, some in (("all", rows), ("ready", rows[:20])):
        Path(f"d/{name}.jsonl.gz").write_bytes(gzip.compress("".join(some).encode()))
    screen = shardmill("convert", "d", "-o", "out")
    assert "the first rows of d/ready.jsonl.gz are in d/all.jsonl.gz too, so that rows may come twice" in screen.out


def test_the_command_of_a_first_screen_keeps_the_column_of_splits(shardmill: Shardmill) -> None:
    rows = [{"id": str(n), "partition": ("train", "dev", "test")[n % 3], "text": f"t {n}"} for n in range(30)]
    put({"a.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows)})
    screen = shardmill("convert", "a.jsonl", "-o", "out")
    command = shlex.split(screen.out.split("in one command: shardmill ")[1].splitlines()[0])
    assert "schema.columns.partition.label=true" not in command
    assert shardmill(*command).code == 0
    dataset = open_dataset("out")
    assert {split: len(dataset[split]) for split in dataset.splits} == {"dev": 10, "test": 10, "train": 10}


def test_lists_of_splits_beside_a_table_are_named(shardmill: Shardmill) -> None:
    put({"d/data.jsonl": '{"a": 1}\n{"a": 2}\n', "d/train.txt": "1\n", "d/test.txt": "2\n"})
    assert (
        "d/test.txt, d/train.txt have names of splits, and are not read" in shardmill("convert", "d", "-o", "out").out
    )


def test_annotations_that_begin_as_hidden_files_do_are_named(shardmill: Shardmill) -> None:
    put({"d/a.png": "", "d/b.png": "", "d/_annotations.json": '{"annotations": {"a.png": [], "b.png": []}}'})
    assert "d/_annotations.json names pictures, and is not read" in shardmill("convert", "d", "-o", "out").out


def test_numbers_in_front_of_names_may_be_classes_where_there_are_splits(shardmill: Shardmill) -> None:
    names = [f"{label}_{number}.png" for label in range(3) for number in range(3)]
    put({f"d/{split}/{name}": "" for split in ("training", "validation") for name in names})
    screen = shardmill("convert", "d", "-o", "out").out
    told = re.search(
        r"begin with classes, which are not read: 0, 1, 2; .* in Python: (.*); then: shardmill (.*)", screen
    )
    assert told is not None
    subprocess.run([sys.executable, "-c", told[1]], check=True)
    assert shardmill(*shlex.split(told[2])).code == 0
    rows = [row for split in open_dataset("out").splits for row in open_dataset("out")[split]]
    assert all(row["image/filename"].startswith(str(row["class"])) for row in rows)


def test_a_table_names_the_pictures_in_the_folder_beside_it(shardmill: Shardmill) -> None:
    put({f"d/cam{n}/data/{at}.png": "" for n in range(2) for at in (1, 2)})
    put({f"d/cam{n}/data.csv": "at,filename\n1,1.png\n2,2.png\n" for n in range(2)})
    told = re.findall(r"(cam.)/data.csv .*files_root=d/(cam.)/data", shardmill("convert", "d", "-o", "out").err)
    assert told == [("cam0", "cam0"), ("cam1", "cam1")]


def test_annotations_of_cvat_in_the_only_folder_of_an_archive_are_refused_with_what_is_lost(
    shardmill: Shardmill,
) -> None:
    pictures = {f"d/export/images/{split}/{n}.png": "" for split in ("Train", "Validation") for n in range(2)}
    xml = (
        '<annotations><version>1.1</version><image name="0.png"><tag label="a"/><box label="b"/></image></annotations>'
    )
    put(pictures | {"d/export/annotations.xml": xml})
    stop = shardmill("convert", "d", "-o", "out")
    assert (
        "d/export/annotations.xml: annotations of CVAT for images, which are not read; all but tags, points" in stop.err
    )
    (command,) = re.findall(r"the pictures alone, without the splits of their folders: shardmill (.*)", stop.err)
    assert shardmill(*shlex.split(command)).code == 0
    assert len(open_dataset("out")["train"]) == 4
