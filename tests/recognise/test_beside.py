from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from PIL import Image
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pictures(*names: str) -> None:
    for number, name in enumerate(names):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(name)


def follow(line: str, shardmill: Shardmill) -> None:
    """Run the commands that a line ends with, which write `again`."""
    for command in line.rpartition(": ")[2].split(" && "):
        args = shlex.split(command)
        if args[0] != "shardmill":
            assert subprocess.run(args, check=False).returncode == 0
            continue
        args[args.index("-o") + 1] = "again"
        screen = shardmill(*args[1:])
        assert screen.code == 0, screen.err


def line_of(shown: str, about: str) -> str:
    return next(line for line in shown.splitlines() if line.startswith(f"Detected: {about}"))


def test_captions_beside_pictures_are_named_with_the_commands_that_read_both(shardmill: Shardmill) -> None:
    pictures("my pics/1.png", "my pics/2.png")
    for number in (1, 2):
        Path(f"my pics/{number}.txt").write_text(f"caption {number}")
    shown = shardmill("convert", "my pics", "-o", "out").out
    assert "\nLeft out: 2 .txt\n" in shown
    line = line_of(shown, "my pics/1.txt has the name of the picture beside it (1.png), and is not read; to read both")
    if shutil.which("tar") is None:
        pytest.fail("tar is part of every system that this runs on")
    follow(line, shardmill)
    assert [row["txt"] for row in open_dataset("again")["train"]] == ["caption 1", "caption 2"]


def test_boxes_beside_pictures_are_read_by_the_command_on_the_screen(shardmill: Shardmill) -> None:
    pictures("pics/1.png", "pics/2.png")
    Path("pics/1.txt").write_text("0 0.5 0.5 0.2 0.2\n1 .25 0.5 1e-1 0.2\n")
    Path("pics/2.txt").write_text("1 0.5 0.5 0.2 0.2\n")
    shown = shardmill("convert", "pics", "-o", "out").out
    follow(
        line_of(shown, "pics/1.txt has the name of the picture beside it (1.png), and is not read: it looks"), shardmill
    )
    counts = [len(row["image/object/class/label"]) for row in open_dataset("again")["train"]]
    assert counts == [2, 1]


def test_what_lies_beside_pictures_of_classes_is_named_without_a_command(shardmill: Shardmill) -> None:
    pictures("pics/cat/1.png", "pics/dog/1.png")
    Path("pics/dog/1.json").write_text("{}")
    shown = shardmill("convert", "pics", "-o", "out").out
    assert "pics/dog/1.json has the name of the picture beside it (1.png), and is not read: files beside" in shown
    assert "tar -cf" not in shown


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("pics/labels.csv", "id,file,kind\n1,a.png,cat\n2,b.png,dog\n"),
        ("pics/train.csv", "file;kind\na.png;cat\nb.png;dog\n"),
        ("pics/annotations.tsv", "picture name\tkind\na.png\tcat\nb.png\tdog\n"),
    ],
)
def test_a_table_that_names_pictures_is_read_by_the_command_on_the_screen(
    shardmill: Shardmill, table: str, text: str
) -> None:
    pictures("pics/a.png", "pics/b.png")
    Path(table).write_text(text)
    shown = shardmill("convert", "pics", "-o", "out", "--format", "images").out
    follow(line_of(shown, f"{table} names pictures in its column"), shardmill)
    rows = open_dataset("again")["train"]
    assert [row["kind"] for row in rows] == ["cat", "dog"]
    assert len({json.dumps(str(row)) for row in rows}) == 2


def test_a_table_that_names_no_picture_is_named_and_a_list_of_splits_too(shardmill: Shardmill) -> None:
    pictures("pics/cat/1.png", "pics/dog/1.png")
    Path("pics/labels.csv").write_text("a,b\n1,2\n")
    for name in ("train.txt", "test.txt", "notes.txt"):
        Path("pics", name).write_text("cat/1.png\n")
    shown = shardmill("convert", "pics", "-o", "out", "--format", "images").out
    assert "Detected: pics/labels.csv is a table beside pictures, and is not read\n" in shown
    assert "Detected: test.txt, train.txt: may list the pictures of splits; lists are not read, and all" in shown
    assert "\nLeft out: 3 .txt, 1 .csv\n" in shown
    pictures("split/train/cat/1.png", "split/test/cat/1.png")
    Path("split/train.txt").write_text("train/cat/1.png\n")
    assert "may list the pictures" not in shardmill("convert", "split", "-o", "two").out


def test_pictures_that_a_table_names_in_an_archive_beside_it_are_unpacked_by_the_command(shardmill: Shardmill) -> None:
    pictures("a.png", "b.png")
    Path("d").mkdir()
    with zipfile.ZipFile("d/images.zip", "w") as archive:
        for name in ("a.png", "b.png"):
            archive.write(name)
    Path("d/metadata.jsonl").write_text('{"file_name": "a.png", "n": 1}\n{"file_name": "b.png", "n": 2}\n')
    screen = shardmill("convert", "d", "-o", "out")
    assert screen.code == 2
    assert "d: holds a table of pictures, and no pictures; d/images.zip: not read; if rows name" in screen.err
    line = next(line for line in screen.err.splitlines() if line.endswith("unpack it first: unzip d/images.zip -d d"))
    if shutil.which("unzip") is None:
        zipfile.ZipFile("d/images.zip").extractall("d")
    else:
        follow(line, shardmill)
    assert shardmill("convert", "d", "-o", "again").code == 0
    assert [row["image/filename"] for row in open_dataset("again")["train"]] == ["a.png", "b.png"]


def test_an_archive_beside_a_table_of_other_files_is_named(shardmill: Shardmill) -> None:
    Path("t").mkdir()
    Path("t/a.csv").write_text("sound,n\n1.wav,1\n")
    Path("t/sounds.zip").write_bytes(b"x")
    shown = shardmill("convert", "t", "-o", "out").out
    said = "t/sounds.zip: not read; if rows name files in it, unpack it first: unzip t/sounds.zip -d t"
    assert f"Detected: {said}\n" in shown


def pack(form: str, path: str, folder: str, *names: str) -> None:
    shutil.move(shutil.make_archive("packed", form, folder, *names), path)


@pytest.mark.parametrize(("form", "end"), [("zip", "zip"), ("tar", "tar"), ("gztar", "tar.gz")])
@pytest.mark.parametrize("inside", ["", "sounds/"], ids=["beside it", "in a folder of its name"])
def test_an_archive_that_is_unpacked_beside_it_is_said_to_be(
    form: str, end: str, inside: str, shardmill: Shardmill
) -> None:
    Path("t", inside).mkdir(parents=True)
    for name in ("1.wav", "2.wav"):
        Path("t", inside, name).write_bytes(b"x")
    pack(form, f"t/sounds.{end}", f"t/{inside}")
    Path("t/a.csv").write_text("sound,n\n1.wav,1\n")
    shown = shardmill("convert", "t", "-o", "out", "--format", "csv").out
    assert f"Detected: t/sounds.{end}: not read, since what is in it is beside it, such as t/{inside}" in shown
    assert "unpack it first" not in shown


@pytest.mark.parametrize("packed", [["pets"], ["cat", "dog"]], ids=["one", "an archive of each class"])
def test_archives_beside_folders_of_classes_are_left_out_by_the_option(packed: list[str], shardmill: Shardmill) -> None:
    pictures(*(f"pets/{kind}/{n}.png" for kind in ("cat", "dog") for n in (1, 2)))
    for name in packed:
        pack("zip", f"pets/{name}.zip", "pets" if name == "pets" else f"pets/{name}")
    screen = shardmill("convert", "pets", "-o", "out")
    option = re.search(r"to leave .* out, since what is in it is beside it: (--set .*)", screen.err)
    assert (screen.code, option is not None) == (2, True), screen.err
    assert option
    assert shardmill("convert", "pets", "-o", "out", *shlex.split(option[1])).code == 0
    assert [row["image/class/label"] for row in open_dataset("out")["train"]] == ["cat", "cat", "dog", "dog"]


def test_an_archive_of_others_beside_folders_of_classes_is_not_said_to_be_unpacked(shardmill: Shardmill) -> None:
    pictures("more/cat/7.png", "pets/cat/1.png", "pets/dog/1.png")
    pack("zip", "pets/more.zip", "more", "cat/7.png")
    assert "to leave pets/more.zip out: --set 'input.ignore=" in shardmill("convert", "pets", "-o", "out").err
    pictures("pets/2.png")
    assert "to leave" not in shardmill("convert", "pets", "-o", "out").err


def test_archives_in_an_archive_are_named(shardmill: Shardmill) -> None:
    with zipfile.ZipFile("in.zip", "w") as archive:
        archive.writestr("one.zip", b"PK")
        archive.writestr("two.zip", b"PK")
    shown = shardmill("convert", "in.zip", "-o", "out").out
    assert 'Warning: members ".zip" are archives themselves: a record has the bytes of each, and what they' in shown


def test_what_a_synology_makes_of_each_picture_is_no_class_and_no_row(shardmill: Shardmill) -> None:
    pictures("pics/cat/1.png", "pics/cat/@eaDir/1.png/SYNOPHOTO_THUMB_M.png", "pics/dog/1.png", "pics/@eaDir/x.png")
    assert "Left out: 2 @eaDir\n" in shardmill("convert", "pics", "-o", "out").out
    Path("t/@eaDir").mkdir(parents=True)
    for name in ("t/a.csv", "t/@eaDir/a.csv"):
        Path(name).write_text("n\n1\n")
    assert "1 written, 0 rejected\nLeft out: 1 @eaDir\n" in shardmill("convert", "t", "-o", "two").out


def test_nothing_is_said_where_detection_is_turned_off(shardmill: Shardmill) -> None:
    pictures("pics/1.png")
    Path("pics/1.txt").write_text("caption")
    Path("pics/labels.csv").write_text("f\n1.png\n")
    shown = shardmill("convert", "pics", "-o", "out", "--format", "images", "--set", "input.detect=none").out
    assert "Detected" not in shown
    assert "Left out: 1 .csv, 1 .txt\n" in shown


@pytest.mark.parametrize("table", ["labels.csv", "train.csv"])
def test_ids_without_the_suffix_of_their_pictures_are_read_by_the_command_on_the_screen(
    table: str, shardmill: Shardmill
) -> None:
    pictures("pets/train/a1.png", "pets/train/b2.png", "pets/test/c3.png")
    Path(f"pets/{table}").write_text("id,breed\na1,cat\nb2,dog\n")
    shown = shardmill("convert", "pets", "-o", "out").err
    follow(next(line for line in shown.splitlines() if f'{table} names pictures in its column "id"' in line), shardmill)
    rows = open_dataset("again").to_arrow("train").to_pylist()
    assert [(row["id/filename"], row["breed"], row["id/width"]) for row in rows] == [
        ("a1.png", "cat", 8),
        ("b2.png", "dog", 8),
    ]
    Path("pets/more.csv").write_text("id,breed\nb2.png,fox\n")
    done = shardmill("append", "pets/more.csv", "-o", "again", "--set", "schema.files_root=pets/train")
    assert done.code == 0, done.err
    assert open_dataset("again").to_arrow("train")["id/filename"].to_pylist() == ["a1.png", "b2.png", "b2.png"]


def test_a_path_without_its_suffix_is_a_reject_with_the_option_that_adds_it(
    shardmill: Shardmill,
) -> None:
    pictures("pets/a1.png")
    Path("t.csv").write_text("id\npets/a1\n")
    command = ["convert", "t.csv", "-o", "out", "--set", "schema.columns.id.image=path"]
    shown = shardmill(*command)
    assert shown.code == 4
    line = next(line for line in shown.err.splitlines() if '"pets/a1" is not below' in line)
    assert '"pets/a1.png" is; add the suffix: ' in line
    done = shardmill(*command, *shlex.split(line.rpartition("add the suffix: ")[2]))
    assert done.code == 0, done.err
    assert open_dataset("out").to_arrow("train")["id/filename"].to_pylist() == ["pets/a1.png"]


def test_suffixes_are_added_to_each_path_of_a_list_and_to_nothing_without_files(shardmill: Shardmill) -> None:
    pictures("pets/a1.png", "pets/b2.png")
    Path("t.jsonl").write_text('{"ids": ["a1", "b2.PNG"]}\n{"ids": []}\n')
    Path("pets/b2.png").rename("pets/b2.PNG")
    options = ["--set", "schema.files_suffix=.png", "--set", "schema.files_root=pets"]
    done = shardmill("convert", "t.jsonl", "-o", "out", "--set", "schema.columns.ids.image=path", *options)
    assert done.code == 0, done.err
    assert [row["ids/filename"] for row in open_dataset("out").to_arrow("train").to_pylist()] == [
        ["a1.png", "b2.PNG"],
        [],
    ]
    refused = shardmill("convert", "t.jsonl", "-o", "out", *options[:2])
    assert (refused.code, "schema.files_suffix: no column names files" in refused.err) == (2, True)


LISTS: dict[str, tuple[list[str], dict[str, str], dict[str, list[tuple[object, ...]]]]] = {
    "numbers of classes": (
        ["images/cat/0.jpg", "images/dog/0.jpg"],
        {"train.txt": "images/cat/0.jpg 0\n", "test.txt": "images/dog/0.jpg 1\n", "names.txt": "cat\ndog\n"},
        {"train": [("images/cat/0.jpg", 0)], "test": [("images/dog/0.jpg", 1)]},
    ),
    "numbers beside their names": (
        ["images/0.jpg", "images/1.jpg", "images/2.jpg"],
        {
            "train.txt": "images/0.jpg 1\nimages/1.jpg 0\n",
            "test.txt": "images/2.jpg 2\n",
            "classes.txt": "owl\nhen\nfox\n",
        },
        {"train": [("images/0.jpg", "hen"), ("images/1.jpg", "owl")], "test": [("images/2.jpg", "fox")]},
    ),
    "numbers from 1 on beside names": (
        ["images/0.jpg", "images/1.jpg"],
        {"train.txt": "images/0.jpg 1\nimages/1.jpg 2\n", "classes.txt": "owl\ncat\n"},
        {"train": [("images/0.jpg", 1), ("images/1.jpg", 2)]},
    ),
    "runs of blanks": (
        ["images/0.jpg", "images/1.jpg"],
        {"train.txt": "images/0.jpg  1\nimages/1.jpg -1\n"},
        {"train": [("images/0.jpg", "1"), ("images/1.jpg", "-1")]},
    ),
    "names of classes before blanks": (
        ["a/0.jpg", "b/1.jpg"],
        {"train.txt": "a/0.jpg cat \nb/1.jpg dog \n"},
        {"train": [("a/0.jpg", 0), ("b/1.jpg", 1)]},
    ),
    "names of classes between tabs": (
        ["0.jpg", "1.jpg", "2 b.jpg"],
        {"train.txt": "0.jpg\tbig cat\n1.jpg\tdog\n2 b.jpg\tdog\n"},
        {"train": [("0.jpg", 0), ("1.jpg", 1), ("2 b.jpg", 1)]},
    ),
    "one list of another split": (
        ["pics/0.jpg", "pics/1.jpg"],
        {"lists/val.lst": "0.jpg,cat\n1.jpg,dog\n"},
        {"val": [("0.jpg", 0), ("1.jpg", 1)]},
    ),
    "captions of Flickr": (
        ["Images/0.jpg", "Images/1.jpg"],
        {"captions.txt": 'image,caption\n0.jpg,"A dog , running ."\n0.jpg,A dog .\n1.jpg,A cat .\n'},
        {"train": [("0.jpg", "A dog , running ."), ("0.jpg", "A dog ."), ("1.jpg", "A cat .")]},
    ),
    "Oxford's pets": (
        ["images/Abyssinian_1.jpg", "images/beagle_2.jpg"],
        {"annotations/list.txt": "#Image CLASS-ID SPECIES BREED ID\nAbyssinian_1 1 1 1\nbeagle_2 5 2 1\n"},
        {"train": [("Abyssinian_1.jpg", 1, 1, 1), ("beagle_2.jpg", 5, 2, 1)]},
    ),
}


@pytest.mark.parametrize("form", LISTS)
def test_lists_of_pictures_are_read_with_their_classes_by_the_command_on_the_screen(
    form: str, shardmill: Shardmill
) -> None:
    names, files, wanted = LISTS[form]
    pictures(*(f"my pets/{name}" for name in names))
    for name, text in files.items():
        Path(f"my pets/{name}").parent.mkdir(exist_ok=True)
        Path(f"my pets/{name}").write_text(text)
    told = shardmill("convert", "my pets", "-o", "out")
    line = next(line for line in (told.out + told.err).splitlines() if "to read the lines: " in line)
    follow(line[line.index("to read the lines: ") :], shardmill)
    found = {}
    for split in open_dataset("again").splits:
        table = open_dataset("again").to_arrow(split)
        columns = [one for one in table.column_names if not one.startswith("image/")]
        rows = table.select(["image/filename", *columns]).to_pylist()
        found[split] = [tuple(row.values()) for row in rows]
    numbers = {"big cat": 0, "cat": 0, "dog": 1}
    assert {
        split: [tuple(numbers.get(cell, cell) for cell in row) for row in rows] for split, rows in found.items()
    } == wanted
    labels = {"numbers beside their names": ("owl", "hen", "fox"), "runs of blanks": ("-1", "1")}
    named = "names of" in form or "another" in form or form in labels
    assert ("class" in open_dataset("again").labels) == named
    assert form not in labels or open_dataset("again").labels["class"] == labels[form]
    assert ("classes.txt with the names of classes is not read" in line) == ("from 1" in form)


@pytest.mark.parametrize(
    ("rows", "what", "names"),
    [
        (("0\t1\t2\t3", "0\t0\t5\t5"), "4 numbers each, which look like corners of boxes", 4),
        (("9\t1\t2\t3", "0\t0\t5\t5"), "4 numbers each, and is not read (no file names what the numbers mean)", 4),
        (("-1\t1", "1\t-1"), "2 numbers each, and", 2),
        (("0.5", "2"), "a number each, and", 1),
    ],
)
def test_numbers_of_pictures_that_are_no_classes_have_neutral_names_and_a_dataset_of_their_own(
    rows: tuple[str, str], what: str, names: int, shardmill: Shardmill
) -> None:
    pictures("d/cat/0.jpg", "d/cat/1.jpg", "d/dog/2.jpg")
    Path("d/cat/cat_x.txt").write_text("".join(f"{n}.jpg\t{row}\n" for n, row in enumerate(rows)))
    done = shardmill("convert", "d", "-o", "out")
    line = line_of(done.out, "d/cat/cat_x.txt lists pictures with ")
    assert f"lists pictures with {what}" in line
    typed = shlex.split(line.partition("to read the lines: shardmill ")[2])
    assert shardmill(*typed).code == 0
    found = open_dataset("out-cat-cat_x").to_arrow("train")
    numbers = found.select([f"column_{n}" for n in range(1, names + 1)])
    assert [[*map(float, row.values())] for row in numbers.to_pylist()] == [
        [*map(float, row.split("\t"))] for row in rows
    ]
    assert "class" not in found.column_names
    assert open_dataset("out").manifest.splits["train"].records == 3  # which the command left alone


CELEBA = {
    "list_attr_celeba.txt": "2\nBald Young \n0.jpg -1  1\n1.jpg  1 -1\n",
    "list_bbox_celeba.txt": "2\nimage_id x_1 y_1 width height\n0.jpg  85 65  7 9\n1.jpg 185  0 17 9\n",
    "identity_CelebA.txt": "0.jpg 13\n1.jpg 3\n",
    "list_eval_partition.txt": "0.jpg 0\n1.jpg 2\n",
}


def test_the_lists_of_celeba_are_joined_to_its_pictures_with_their_splits(shardmill: Shardmill) -> None:
    pictures("d/img/0.jpg", "d/img/1.jpg")
    for name, text in CELEBA.items():
        Path("d", name).write_text(text)
    for typed in ("d", "d/img"):
        screen = shardmill("convert", typed, "-o", "out")
        line = next((one for one in (screen.err + screen.out).splitlines() if "in Python: " in one), None)
        assert (line is None) == (typed == "d/img"), line
        if line is not None:
            python, _, command = line.partition("in Python: ")[2].partition("; then: shardmill ")
            exec(python, {})
            assert shardmill(*shlex.split(command)).code == 0
            rows = {split: open_dataset("out")[split][0] for split in ("train", "test")}
            names = ("Bald", "Young", "x_1", "height", "class")
            assert {split: [row[name] for name in names] for split, row in rows.items()} == {
                "train": [-1, 1, 85, 9, 13], "test": [1, -1, 185, 9, 3],
            }  # fmt: skip
            shutil.rmtree("out")
            Path("d/img/metadata.csv").unlink()


@pytest.mark.parametrize(("name", "column", "values"), [(0, "Young", [1, -1]), (1, "x_1", [85, 185])])
def test_a_list_below_the_number_of_its_rows_is_read_by_the_command_on_the_screen(
    name: int, column: str, values: list[int], shardmill: Shardmill
) -> None:
    pictures("d/0.jpg", "d/1.jpg")
    file = [*CELEBA][name]
    Path("d", file).write_text(CELEBA[file])
    screen = shardmill("convert", "d", "-o", "out")
    line = line_of(screen.out, f"d/{file} lists pictures with ")
    assert shardmill(*shlex.split(line.partition("to read the lines: shardmill ")[2])).code == 0
    table = open_dataset("out-" + file.partition(".")[0]).to_arrow("train")
    assert table[column].to_pylist() == values
    key = "image_id" if name else "image"
    assert table[f"{key}/filename"].to_pylist() == ["0.jpg", "1.jpg"]


def test_lists_in_many_folders_are_one_line_and_all_that_are_not_read_are_counted(shardmill: Shardmill) -> None:
    for n in range(70):
        pictures(f"d/c{n:02}/images/{n}.jpg")
        Path(f"d/c{n:02}/c{n:02}_boxes.txt").write_text(f"{n}.jpg\t0\t0\t1\t1\n")
    done = shardmill("convert", "d", "-o", "out")
    line = line_of(done.out, "d/c00/c00_boxes.txt")
    assert "d/c00/c00_boxes.txt, d/c01/c01_boxes.txt and 6 more list pictures with 4 numbers" in line
    assert done.out.count("_boxes.txt -o out-") == 1
    assert line_of(done.out, "62 more files that may list pictures are not read")
    Path("d/other").mkdir()
    Path("d/0.jpg").write_bytes(Path("d/c00/images/0.jpg").read_bytes())
    stopped = shardmill("convert", "d", "-o", "out", "--overwrite")
    assert stopped.code == 2
    said = stopped.err.rpartition("nothing above reads ")[2].strip()
    assert len(said.partition(" and ")[0].split(", ")) + int(said.rpartition(" and ")[2].split()[0]) + 2 == 70, said


@pytest.mark.parametrize(
    "text", ["0.jpg\n1.jpg\n", "a.jpg 1\nb.jpg 2\n", "0.jpg 1\n1.jpg\n", "", "image class\n", "# 0.jpg 1\n"]
)
def test_a_text_that_lists_no_pictures_with_more_in_each_line_has_no_command(text: str, shardmill: Shardmill) -> None:
    pictures("pets/0.jpg", "pets/1.jpg")
    Path("pets/train.txt").write_text(text)
    done = shardmill("convert", "pets", "-o", "out")
    assert (done.code, "to read the lines" in done.out) == (0, False)


def test_lists_of_splits_of_pascal_voc_are_not_taken_for_tables(shardmill: Shardmill) -> None:
    pictures("kit/VOC2012/JPEGImages/1.jpg", "kit/VOC2012/JPEGImages/2.jpg")
    Path("kit/VOC2012/Annotations").mkdir()
    for name in ("Main/cat_train.txt", "Layout/train.txt"):
        Path(f"kit/VOC2012/ImageSets/{name}").parent.mkdir(parents=True)
        Path(f"kit/VOC2012/ImageSets/{name}").write_text("1 -1\n2  1\n")
    told = shardmill("convert", "kit", "-o", "out")
    assert "list pictures" not in told.out + told.err
    Path("kit/VOC2012/Annotations").rmdir()
    told = shardmill("convert", "kit", "-o", "other", "--set", "input.layout=flat")
    lists = "kit/VOC2012/ImageSets/Layout/train.txt, kit/VOC2012/ImageSets/Main/cat_train.txt"
    assert f"{lists}: lists of Pascal VOC, without Annotations, are not read" in told.out + told.err
    assert "to read the lines" not in told.out + told.err


@pytest.mark.parametrize("given", [[], ["--overwrite"]], ids=["once", "again"])
def test_a_command_on_the_screen_of_a_run_replaces_what_the_run_wrote_as_it_is_printed(
    shardmill: Shardmill, given: list[str]
) -> None:
    pictures("my pics/1.png", "my pics/2.png")
    for number in (1, 2):
        Path(f"my pics/{number}.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    done = shardmill("convert", "my pics", "-o", "my out", *given)
    command = line_of(done.out, "my pics/1.txt has the name").rpartition(": ")[2]
    assert open_dataset("my out").manifest.generation == 1
    assert (command.count("--overwrite"), "if_exists=replace" in command) == (1, False)
    assert shardmill(*shlex.split(command)[1:]).code == 0
    assert [len(row["image/object/class/label"]) for row in open_dataset("my out")["train"]] == [1, 1]


def test_a_line_of_python_replaces_what_a_run_wrote_and_of_a_dry_run_does_not(shardmill: Shardmill) -> None:
    for name in ("cat", "dog"):
        Path(f"texts/{name}").mkdir(parents=True)
        Path(f"texts/{name}/1.txt").write_text(f"a {name}\nand more\n")
    shown = shardmill("convert", "texts", "-o", "out", "--dry-run").out
    assert "import convert; convert(data=" in shown
    assert "overwrite" not in shown
    line = line_of(shardmill("convert", "texts", "-o", "out").out, "each line is a record").rpartition("in Python: ")[2]
    exec(line, {})
    rows = open_dataset("out")["train"].to_pandas()
    assert rows.values.tolist() == [["cat", "a cat\nand more\n"], ["dog", "a dog\nand more\n"]]


@pytest.mark.parametrize(("suffix", "key"), [("wav", "file"), ("png", "image"), ("tif", "image")])
def test_a_column_that_names_files_beside_its_table_is_said_with_the_key_that_reads_them(
    shardmill: Shardmill, suffix: str, key: str
) -> None:
    pictures(*(f"d/{split}/{n}.png" for split in ("train", "test") for n in range(2)))
    for path in Path("d").glob("*/*.png"):
        if suffix == "tif":
            Image.open(path).save(path.with_suffix(".tif"))
        if suffix != "png":
            path.rename(path.with_suffix(f".{suffix}")) if suffix == "wav" else path.unlink()
    for split in ("train", "test"):
        Path(f"d/{split}/table.csv").write_text(f"clip,text\n0.{suffix},a.b\n1.{suffix},table.csv\n")
    command = ["convert", "d/*/*.csv", "-o", "out"]
    told = shardmill(*command)
    line = line_of(told.out, 'column "clip" names')
    assert told.out.count(", which are not read; to read them: ") == 1
    again = shardmill(*command, "--overwrite", *shlex.split(line.rpartition(": ")[2]))
    assert (again.code, "which are not read" in again.out) == (0, False), again.err
    feature = "clip" if key == "file" else "clip/encoded"
    for split in ("train", "test"):
        values = [row[feature] for row in open_dataset("out")[split]]
        stored = [Path(f"d/{split}/{n}.{suffix}").read_bytes() for n in range(2)]
        assert (values == stored) is (suffix != "tif")
        assert len(values) == 2


def test_pictures_that_no_reader_takes_are_written_as_png_by_the_command_on_the_screen(shardmill: Shardmill) -> None:
    pictures("d/train/a.tif", "d/train/b.tif", "d/test/c.tif")
    Path("d/train_labels.csv").write_text("id,label\na,0\nb,1\n")
    Path("d/test_labels.csv").write_text("id,label\nc,0\n")
    err = shardmill("convert", "d", "-o", "out").err
    found = []
    for line in err.splitlines():
        if "to read its rows: " in line:
            words = shlex.split(line.rpartition(": ")[2])[1:]
            assert shardmill(*words).code == 0
            dataset = open_dataset(words[words.index("-o") + 1])
            found += [(name, len([*dataset[name]])) for name in dataset.splits]
    assert found == [("test", 1), ("train", 2)]


@pytest.mark.parametrize("folder", ["images/", "", "train/"])
def test_a_form_for_answers_that_names_pictures_is_not_read(folder: str, shardmill: Shardmill) -> None:
    pictures(f"d/{folder}a.jpg", f"d/{folder or 'x/'}b.jpg")
    Path("d/train.csv").write_text("id,label\na,0\n")
    Path("d/sample_submission.csv").write_text("id,label\na,0\nb,0\n")
    err = shardmill("convert", "d", "-o", "out").err
    assert "  d/sample_submission.csv: a form for answers, whose rows are no data; not read\n" in err
    lines = [line for line in err.splitlines() if "to read its rows" in line]
    assert [line.startswith("  d/train.csv names") for line in lines] == [True]
    assert shardmill(*shlex.split(lines[0].rpartition(": ")[2])[1:]).code == 0
    assert len([*open_dataset("out")["train"]]) == 1


def test_records_beside_pictures_are_no_pictures_in_the_command_for_folders_of_splits(shardmill: Shardmill) -> None:
    pictures("d/train_images/0.jpg", "d/test_images/1.jpg")
    for split in ("train", "test"):
        Path(f"d/{split}_tfrecords").mkdir()
        Path(f"d/{split}_tfrecords/ld_{split}00-1.tfrec").write_bytes(bytes(16))
    err = shardmill("convert", "d", "-o", "out", "--format", "images").err
    command = next(line for line in err.splitlines() if "train, test:" in line).rpartition(": ")[2]
    assert "tfrecords" not in command
    assert shardmill(*shlex.split(command)[1:]).code == 0
    assert {name: len([*open_dataset("out")[name]]) for name in ("train", "test")} == {"train": 1, "test": 1}


def test_the_folder_of_another_dataset_is_named_by_what_tells_its_tables_apart(shardmill: Shardmill) -> None:
    for split in ("train", "test"):
        pictures(*(f"o/pets/{split}/{split}{n}.png" for n in range(2)))
        Path(f"o/pets/{split}_labels.csv").write_text(f"id,n\n{split}0.png,1\n{split}1.png,2\n")
    shown = shardmill("convert", "o/pets", "-o", "pets", "--set", "input.format=images").out
    assert sorted(re.findall(r"-o (pets-\S+)", shown)) == ["pets-test_labels", "pets-train_labels"], shown


@pytest.mark.parametrize("name", ["labels.txt", "attributes.txt"])
def test_a_text_of_any_name_whose_lines_name_pictures_is_read_by_the_command_on_the_screen(
    name: str, shardmill: Shardmill
) -> None:
    pictures("pets/photos/0.jpg", "pets/photos/1.jpg")
    Path(f"pets/{name}").write_text("photos/0.jpg cat\nphotos/1.jpg dog\n")
    Path("pets/notes.txt").write_text("a note\n")
    told = shardmill("convert", "pets", "-o", "out")
    follow(line_of(told.out, f"pets/{name}"), shardmill)
    assert open_dataset("again").to_arrow("train").column("class").to_pylist() == ["cat", "dog"]
    assert "notes.txt" not in told.out


def test_a_text_that_names_pictures_in_no_known_form_is_named(shardmill: Shardmill) -> None:
    pictures("pets/photos/0.jpg", "pets/photos/1.jpg")
    Path("pets/list_attr.txt").write_text("0.jpg a b\n1.jpg c\n0.jpg d e f\n")
    told = shardmill("convert", "pets", "-o", "out")
    assert "pets/list_attr.txt is not read, and its lines begin with names of pictures" in told.out


def test_boxes_of_yolo_beside_pictures_of_several_folders_are_read_by_one_command(shardmill: Shardmill) -> None:
    for split in ("train", "valid"):
        pictures(f"pets/{split}/1.jpg")
        Path(f"pets/{split}/1.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    told = shardmill("convert", "pets", "-o", "out")
    follow(line_of(told.out, "pets/train/1.txt has the name of the picture beside it"), shardmill)
    splits = open_dataset("again").manifest.splits
    assert {split: one.records for split, one in splits.items()} == {"train": 1, "valid": 1}


def test_texts_in_folders_of_classes_are_named_where_another_text_is_above_them(shardmill: Shardmill) -> None:
    for split in ("train", "test"):
        for kind in ("neg", "pos"):
            Path(f"reviews/{split}/{kind}").mkdir(parents=True)
            Path(f"reviews/{split}/{kind}/0.txt").write_text(f"{kind}\nof {split}\n")
    Path("reviews/train/urls.txt").write_text("a\nb\n")
    told = shardmill("convert", "reviews", "-o", "out")
    line = line_of(told.out, "each line is a record, without the folder of its file (neg, pos)")
    assert "(without the files in folders above these)" in line
    exec(line[line.index("import pathlib; ") :], {})
    rows = {
        (split, *row.values()) for split in ("train", "test") for row in open_dataset("out").to_arrow(split).to_pylist()
    }
    assert {row[0] for row in rows} == {"train", "test"}
    assert len(rows) == 4
