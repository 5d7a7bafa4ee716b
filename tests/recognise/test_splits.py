from __future__ import annotations

import re
import shlex
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import InputError
from shardmill.transforms.inputs.contract.selection import FileSplits
from shardmill.transforms.inputs.files import file_names
from shardmill.transforms.recognise.evidence.names import name_without_suffixes
from shardmill.transforms.recognise.splits.find import find_splits
from shardmill.transforms.recognise.splits.seen import Seen

from ..command_line import Shardmill


def splits_of(files: list[str], paths: tuple[str, ...] = ("/d",), **how: object) -> list[str | None]:
    seen = Seen.of([f"/d/{file}" for file in files], paths, "/")
    return list(find_splits(seen, FileSplits(**how))[1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("files", "splits"),
    [
        (["train/a.csv", "test/a.csv"], ["train", "test"]),
        (["Train/a.csv", "VALIDATION/x/a.csv"], ["train", "validation"]),
        (["Split-train/data-00000-of-00001", "Split-eval/data-00000-of-00001"], ["train", "eval"]),
        (["train2017/a.csv", "val2017/a.csv"], ["train", "val"]),
        (["pets/archive/train/a.csv", "pets/archive/test/a.csv"], ["train", "test"]),
        (["de/train/a.csv", "fr/train/a.csv", "fr/test/a.csv"], ["train", "train", "test"]),
        (["train-00000-of-00002.parquet", "test-00000-of-00001.parquet"], ["train", "test"]),
        (["data/train-00000-of-00001-0123456789abcdef.parquet", "data/test-00000-of-00001.parquet"], ["train", "test"]),
        (["train-00000.csv", "val-00000.csv.gz"], ["train", "val"]),
        (["my-pets-train-00000-of-00002.jsonl", "my-pets-test-00000-of-00002.jsonl"], ["train", "test"]),
        (["pets-train.csv-00000-of-00002", "pets-test.csv-00000-of-00002"], ["train", "test"]),
        (["train/train-00000-of-00001.csv", "test/test-00000-of-00001.csv"], ["train", "test"]),
        (["dev/train-00000-of-00001.csv", "dev/test-00000-of-00001.csv"], ["train", "test"]),
        (["test/a.csv", "test/b.csv"], ["test", "test"]),
    ],
)
def test_clear_evidence_is_read(files: list[str], splits: list[str]) -> None:
    assert splits_of(files) == splits
    assert splits_of(files[::-1]) == splits[::-1]


@pytest.mark.parametrize(
    "files",
    [
        ["train.csv", "test.csv", "sample_submission.csv"],
        ["sales-dev.csv", "sales-test.csv"],
        ["pics-train-000000.tar", "pics-val-000000.tar"],
        ["train.zip", "test.zip"],
        ["train_1.csv", "train_2.csv", "test.csv"],
        ["train_features.csv", "train_targets.csv", "test_features.csv"],
        ["train.csv", "test_labels.csv"],
        ["TrainSet.csv", "TestSet.csv"],
        ["x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy"],
        ["ag.train.jsonl.gz", "ag.valid.jsonl.gz"],
        ["data/train.csv", "data/raw/test.csv"],
        ["train/a.csv", "test/a.csv", "extra.csv"],
        ["train/a.csv", "test/a.csv", "other/a.csv"],
        ["a/train/x.csv", "a/test/x.csv", "b/x.csv"],
        ["train-00000-of-00001.csv", "test-00000-of-00001.csv", "extra.csv"],
        ["test-00000-of-00001.csv", "extra.csv"],
        ["train/test-00000-of-00001.csv", "test/train-00000-of-00001.csv"],
        ["train-00000-of-00001.csv", "hold_out-00000-of-00001.csv"],
        ["pets-train.tfrecord-00000-of-00002", "pets-hold_out.tfrecord-00000-of-00001"],
    ],
)
def test_mixed_evidence_stops_the_run(files: list[str]) -> None:
    with pytest.raises(InputError, match="choose one of"):
        splits_of(files)
    assert splits_of(files, wanted="none") == [None] * len(files)
    assert splits_of(files, said="split") == [None] * len(files)


@pytest.mark.parametrize(
    "files",
    [
        ["a.csv", "b.csv"],
        ["train.csv"],
        ["train.csv", "training.csv"],
        ["test.csv", "extra.csv"],
        ["train-of-thought-1.csv", "trains.csv", "trainstation.csv"],
        ["train-ticket-sales.csv", "test-drive-log.csv"],
        ["train_test_split.csv", "notes.csv"],
        ["test-1.csv", "test-2.csv"],
        ["airplane/a.csv", "bus/a.csv", "train/a.csv"],
        ["latest.csv", "development.csv", "evaluate.csv"],
    ],
)
def test_a_word_that_may_mean_anything_changes_nothing(files: list[str]) -> None:
    assert splits_of(files) == [None] * len(files)


@pytest.mark.parametrize(
    ("paths", "files", "line"),
    [
        (("/d/test",), ["test/a.csv"], "to write them as test: --set output.split=test"),
        (("/d/train",), ["train/a.csv"], None),
        (("/d",), ["test.csv", "extra.csv"], 'one file alone has the name of a split ("test.csv")'),
        (("/d",), ["airplane/a.csv", "train/a.csv"], 'one folder alone has the name of a split ("train")'),
        (
            ("/d",),
            ["train.csv", "hold_out.csv"],
            'a split ("train.csv"), beside "hold_out.csv", and is read as any',
        ),
        (("/d",), ["train.csv", "hold_out.csv"], '{"hold_out": "hold_out.csv", "train": "train.csv"}'),
        (("/d",), ["train/a.csv", "hold out/a.csv"], '{"hold_out": "hold out/*", "train": "train/*"}'),
        (("/d",), ["train.csv", "training.csv"], None),
        (("/d",), ["test/a.csv"], "all files are of split test, from the names of folders"),
    ],
)
def test_what_might_have_been_meant_is_a_line(paths: tuple[str, ...], files: list[str], line: str | None) -> None:
    recognised, _ = find_splits(Seen.of([f"/d/{file}" for file in files], paths, "/"), FileSplits())
    assert [line in one for one in recognised.lines] == ([True] if line else []) if line else not recognised.lines


@pytest.mark.parametrize(
    ("paths", "files", "splits"),
    [
        (("/d/train", "/d/test"), ["test/a.csv", "train/a.csv"], ["test", "train"]),
        (("/d/*/*.csv",), ["test/a.csv", "train/a.csv"], ["test", "train"]),
        (("/d/train/a.csv", "/d/test/a.csv"), ["test/a.csv", "train/a.csv"], ["test", "train"]),
        (("/d/a/x/train", "/d/b/test"), ["a/x/train/1.csv", "b/test/1.csv"], ["train", "test"]),
        (("/d/test", "/d/other"), ["other/a.csv", "test/a.csv"], [None, None]),
    ],
)
def test_folders_that_are_named_or_found_by_a_glob_count(
    paths: tuple[str, ...], files: list[str], splits: list[str | None]
) -> None:
    assert splits_of(files, paths) == splits


def test_objects_of_a_store_are_as_files() -> None:
    files = [f"s3://bucket/data/{name}/a.csv" for name in ("test", "train")]
    for paths in (["s3://bucket/data"], ["s3://bucket/data/"], ["s3://bucket/data/t*/a.csv"], files):
        recognised, splits = find_splits(Seen.of(files, paths, "/"), FileSplits())
        assert (recognised.rule, recognised.arguments, list(splits)) == ("folders", {}, ["test", "train"])


def test_globs_name_the_files_of_each_split() -> None:
    how: dict[str, object] = {"wanted": (("train", ("a*.csv", "more/*")), ("test", ("b.csv",)))}
    assert splits_of(["a1.csv", "x/b.csv", "more/c.csv"], **how) == ["train", "test", "train"]
    with pytest.raises(InputError, match=r"/d/c.csv: no glob of input.splits matches it"):
        splits_of(["a1.csv", "b.csv", "more/x", "c.csv"], **how)
    with pytest.raises(
        InputError, match=r'/d/more/b.csv: "more/\*" \(train\) and "b.csv" \(test\) of input.splits match'
    ):
        splits_of(["a1.csv", "more/b.csv"], **how)
    with pytest.raises(InputError, match=r'input.splits: "more/\*" matches no file'):
        splits_of(["a1.csv", "b.csv"], **how)


def test_names_reads_words_and_refuses_a_name_without_one() -> None:
    assert splits_of(["a-train.csv", "TestSet.csv", "dev-00000-of-00001.csv"], wanted="names") == [
        "train",
        "test",
        "dev",
    ]
    with pytest.raises(InputError, match=r"/d/b\.csv: input.splits is names, and its name has no word for one split"):
        splits_of(["train.csv", "b.csv"], wanted="names")


def put_csv(path: Path, n: int) -> None:
    path.write_text(f"n\n{n}\n")


def put_jsonl(path: Path, n: int) -> None:
    path.write_text(f'{{"n": {n}}}\n')


def put_parquet(path: Path, n: int) -> None:
    pa.parquet.write_table(pa.table({"n": [n]}), path)


def put_arrow(path: Path, n: int) -> None:
    pa.feather.write_feather(pa.table({"n": [n]}), path)


def put_numpy(path: Path, n: int) -> None:
    np.save(path, np.array([n, n]))


FORMATS: dict[str, Callable[[Path, int], None]] = {
    "csv": put_csv, "jsonl": put_jsonl, "parquet": put_parquet, "arrow": put_arrow, "npy": put_numpy,
    "txt": lambda path, n: path.write_text(f"{n}\n") and None,
}  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def counts(path: str) -> dict[str, int]:
    dataset = open_dataset(path)
    return {name: len(dataset[name]) for name in dataset.splits}


@pytest.mark.parametrize("suffix", FORMATS)
def test_each_format_has_the_splits_of_its_files_and_appends_to_them(here: Path, suffix: str) -> None:
    for number, name in enumerate(["train/a", "train/b", "test/a"]):
        path = here / "in" / f"{name}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        FORMATS[suffix](path, number)
    convert("in", output="out")
    assert counts("out") == {"train": 2, "test": 1}
    first = open_dataset("out").manifest.splits["train"].records_digest
    FORMATS[suffix](here / f"in/test/b.{suffix}", 7)
    append("in", output="out")
    assert counts("out") == {"train": 2, "test": 2}
    assert open_dataset("out").manifest.splits["train"].records_digest == first


def commands_in(text: str) -> list[list[str]]:
    return [shlex.split(line.strip().partition("shardmill ")[2]) for line in text.splitlines() if "shardmill " in line]


@pytest.mark.parametrize(
    ("files", "first", "second"),
    [
        (["train.csv", "test.csv", "sample_submission.csv"], {"train": 1, "test": 1}, {"train": 1}),
        (["sales-dev.csv", "sales-test.csv"], {"dev": 1, "test": 1}, {"train": 2}),
        (["train/a.csv", "test/a.csv", "extra.csv"], {"train": 1, "test": 1}, {"train": 1}),
        (["dev/a.csv", "test/a.csv", "x/extra.csv"], {"dev": 1, "test": 1}, {"dev": 1}),
        (["test-00000-of-00001.csv", "extra.csv"], {"test": 1}, {"train": 2}),
        (
            [f"p-{s}-{n:03d}.csv" for s in ("train", "val") for n in range(9)] + ["x.csv"],
            {"train": 9, "val": 9},
            {"train": 9},
        ),
    ],
)
def test_both_commands_of_a_stop_run_and_do_different_things(
    here: Path, shardmill: Shardmill, files: list[str], first: dict[str, int], second: dict[str, int]
) -> None:
    for number, name in enumerate(files):
        (here / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        put_csv(here / "in" / name, number)
    screen = shardmill("convert", "in", "-o", "out")
    assert (screen.code, screen.out, (here / "out").exists()) == (2, "", False)
    found = []
    for number, command in enumerate(commands_in(screen.err)):
        command[command.index("-o") + 1] = f"out{number}"
        assert shardmill(*command).code == 0, command
        found.append(counts(f"out{number}"))
    assert found == [first, second]


def test_a_table_that_lacks_columns_of_the_other_runs_as_it_is_printed(here: Path, shardmill: Shardmill) -> None:
    (here / "in").mkdir()
    (here / "in/train.csv").write_text("id,target\n1,0\n2,1\n")
    (here / "in/test.csv").write_text("id\n3\n")
    (here / "in/sample_submission.csv").write_text("id,target\n3,0\n")
    both, _ = commands_in(shardmill("convert", "in", "-o", "out").err)
    assert shardmill(*both).code == 0
    assert [row["id"] for row in open_dataset("out")["test"]] == [3]
    assert open_dataset("out")["test"].to_arrow()["target"].to_pylist() == [None]


def test_what_the_user_says_comes_before_the_folders_and_one_line_says_so(here: Path, shardmill: Shardmill) -> None:
    for name in ("train", "test"):
        (here / "in" / name).mkdir(parents=True)
        (here / "in" / name / "a.csv").write_text("n\n" + "1\n" * 10)
    line = r"Detected: the files are of splits \(test, train\), which are not used, since {} is for all rows; .*"
    said = shardmill("convert", "in", "-o", "one", "--split", "all").out
    assert re.search(line.format(r"output.split \(all\)"), said)
    assert counts("one") == {"all": 20}
    said = shardmill("convert", "in", "-o", "rule", "--split-fractions", "a=0.5,b=0.5", "--set", "split.by=exact").out
    cut = re.search(line.format("the rule of split") + r"(--set split.of=train)", said)
    assert cut
    assert counts("rule") == {"a": 10, "b": 10}
    command = ["convert", "in", "-o", "cut", "--split-fractions", "train=0.5,val=0.5", "--set", "split.by=exact"]
    assert shardmill(*command, *cut[1].split()).code == 0
    assert counts("cut") == {"test": 10, "train": 5, "val": 5}
    assert shardmill("convert", "in", "-o", "off", "--set", "input.detect=none").code == 0
    assert counts("off") == {"train": 20}


def test_the_splits_of_files_are_the_same_with_any_number_of_workers_and_rejects_name_theirs(
    here: Path, shardmill: Shardmill
) -> None:
    for name, text in {"train/a": "n\n1\n2\n", "test/a": "n\n3\nx,y\n", "test/b": "n\n4\n"}.items():
        (here / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (here / "in" / f"{name}.csv").write_text(text)
    for workers in ("1", "2"):
        assert shardmill("convert", "in", "-o", f"w{workers}", "--workers", workers, "--max-rejects", "1").code == 0
    one, two = (open_dataset(f"w{workers}").manifest for workers in "12")
    assert one.splits == two.splits
    assert {name: split.records for name, split in one.splits.items()} == {"train": 2, "test": 2}
    assert '"split": "test"' in (here / "w1/rejects/00000001.jsonl").read_text()


def drawn(path: Path, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (shade, shade, shade)).save(path)


@pytest.mark.parametrize(
    ("folders", "options", "splits", "classes"),
    [
        (["train/cat", "test/dog"], {}, {"train": 1, "test": 1}, ["cat", "dog"]),
        (["cat/train", "cat/test", "dog/train"], {}, {"train": 2, "test": 1}, ["cat", "dog"]),
        (["archive/train/cat", "archive/test/cat"], {}, {"train": 1, "test": 1}, ["cat"]),
        (["archive/train", "archive/valid"], {}, {"train": 1, "valid": 1}, []),
        (["airplane", "bus", "train"], {}, {"train": 3}, ["airplane", "bus", "train"]),
        (["seg_train/seg_train/sea", "seg_test/seg_test/sea"], {"splits": "names"}, {"train": 1, "test": 1}, ["sea"]),
        (["one/cat", "two/cat"], {"splits": {"a": "one/*", "b": "two/*"}}, {"a": 1, "b": 1}, ["cat"]),
        (["train", "test"], {"splits": "none"}, {"train": 2}, ["test", "train"]),
        (["train", "test"], {"detect": "none"}, {"train": 2}, []),
    ],
)
def test_folders_of_pictures_are_splits_by_the_same_rules(
    here: Path, folders: list[str], options: dict[str, object], splits: dict[str, int], classes: list[str]
) -> None:
    for number, folder in enumerate(folders):
        drawn(here / "in" / folder / f"{number}.png", number)
    convert("in", output="out", **{f"input__{key}": value for key, value in options.items()})
    assert counts("out") == splits
    assert list(open_dataset("out").manifest.labels.get("image/class/label", ())) == classes


def test_what_folders_of_pictures_mean_goes_with_the_splits_that_the_user_says(
    here: Path, shardmill: Shardmill
) -> None:
    for number, name in enumerate(("one/cat/1", "one/dog/1", "two/cat/1")):
        drawn(here / f"p/{name}.png", number)
    args = ["convert", "p", "--set", "input.splits={train: 'one/*', test: 'two/*'}", "-o"]
    for number, (layout, classes) in enumerate([("auto", 2), ("label", 2), ("flat", 0)]):
        assert shardmill(*args, f"o{number}", "--set", f"input.layout={layout}").code == 0
        assert counts(f"o{number}") == {"test": 1, "train": 2}
        assert len(open_dataset(f"o{number}").manifest.labels.get("image/class/label", ())) == classes
    for layout in ("split", "split_label"):
        screen = shardmill(*args, "no", "--set", f"input.layout={layout}")
        assert screen.code == 2
        assert f"layout: {layout} says that folders are splits, and splits says it too; leave one out" in screen.err


@pytest.mark.parametrize(
    "folders",
    [["train", "test", "extra"], ["seg_train/seg_train/sea", "seg_test/seg_test/sea", "seg_pred/seg_pred"]],
)
def test_pictures_in_folders_of_which_some_look_like_splits_stop_the_run(
    here: Path, shardmill: Shardmill, folders: list[str]
) -> None:
    for number, folder in enumerate(folders):
        drawn(here / "in" / folder / f"{number}.png", number)
    screen = shardmill("convert", "in", "-o", "out")
    assert (screen.code, (here / "out").exists()) == (2, False)
    found = []
    for number, command in enumerate(commands_in(screen.err)):
        command[command.index("-o") + 1] = f"out{number}"
        assert shardmill(*command).code == 0, command
        found.append(counts(f"out{number}"))
    assert found == [{"train": 1, "test": 1}, {"train": 1}]


def test_an_append_of_pictures_keeps_what_folders_mean_where_only_some_are_new(here: Path) -> None:
    for number, folder in enumerate(["airplane", "bus", "train"]):
        drawn(here / "in" / folder / f"{number}.png", number)
    convert("in", output="out")
    drawn(here / "in/train/9.png", 9)
    append("in", output="out", changed="append")
    assert (counts("out"), open_dataset("out").manifest.labels["image/class/label"]) == (
        {"train": 4},
        ("airplane", "bus", "train"),
    )


def test_archives_are_splits_by_their_names_and_by_the_folders_in_them(here: Path, shardmill: Shardmill) -> None:
    (here / "in").mkdir()
    for number, split in enumerate(["train", "val"]):
        drawn(here / f"{split}.png", number)
        with tarfile.open(here / f"in/pics-{split}-000000.tar", "w") as tar:
            tar.add(here / f"{split}.png", "a.png")
        with zipfile.ZipFile(here / "one.zip", "a") as archive:
            archive.write(here / f"{split}.png", f"{('cat', 'dog')[number]}/{split}/a.png")
    both, alone = commands_in(shardmill("convert", "in", "-o", "out").err)
    assert (shardmill(*both).code, counts("out")) == (0, {"train": 1, "val": 1})
    assert (shardmill(*alone, "--overwrite").code, counts("out")) == (0, {"train": 2})
    assert shardmill("convert", "one.zip", "-o", "zip").code == 0
    assert counts("zip") == {"train": 1, "val": 1}
    assert open_dataset("zip").manifest.labels["image/class/label"] == ("cat", "dog")


def test_without_detection_a_table_beside_pictures_and_class_folders_say_nothing(here: Path) -> None:
    drawn(here / "in/cat/a.png", 1)
    (here / "in/metadata.csv").write_text("file_name,text\ncat/a.png,a cat\n")
    convert("in", output="out", input__detect="none", input__format="images")
    names = [feature.name for feature in open_dataset("out").manifest.schema or ()]
    assert "text" not in names
    assert "image/class/label" not in names
    convert("in", output="on")
    assert "text" in [feature.name for feature in open_dataset("on").manifest.schema or ()]


@pytest.mark.parametrize(("folders", "together"), [(("fold_0", "fold_1", "fold_2"), False), (("de", "en"), True)])
def test_folders_with_the_same_splits_are_read_one_by_one_by_the_commands_of_the_stop(
    folders: tuple[str, ...], together: bool, shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, folder in enumerate(folders):
        Path("d", folder).mkdir(parents=True)
        for split, ids in (("train", "\n".join(map(str, {0, 1, 2} - {number}))), ("val", number)):
            Path("d", folder, f"{split}.csv").write_text(f"id\n{ids}\n")
    error = shardmill("convert", "d", "-o", "out").err
    assert (
        f"{len(folders)} folders hold the same splits, whose rows would come together ({', '.join(folders)})" in error
    )
    commands = dict(re.findall(r"^  ([^:]+): +shardmill (.*)$", error, re.MULTILINE))
    one_by_one = folders if not together else folders[:1]
    assert [*commands] == [*one_by_one, *(["train, val", "all files in one split"] if together else [])]
    for number, folder in enumerate(one_by_one):
        assert shardmill(*shlex.split(commands[folder])).code == 0
        dataset = open_dataset(f"out-{folder}")
        found = {split: [row["id"] for row in dataset[split]] for split in dataset.manifest.splits}
        assert found == {"train": sorted({0, 1, 2} - {number}), "val": [number]}


def test_a_split_whose_files_have_no_rows_is_said_not_to_be_in_the_dataset(shardmill: Shardmill) -> None:
    for split, rows in (("train", [1, 2]), ("test", [])):
        Path(split).mkdir()
        pq.write_table(pa.table({"a": pa.array(rows, pa.int64())}), f"{split}/a.parquet")
    told = shardmill("convert", "train", "test", "-o", "out")
    assert told.code == 0
    assert "no rows: test; the dataset has no split of that name" in told.out


@pytest.mark.parametrize(
    "suffix",
    [one for kind, entry in file_names.FORMATS.items() if kind != "images" for one in entry.suffixes if one[0] == "."],
)
def test_no_suffix_of_a_format_hides_the_word_of_a_split(suffix: str) -> None:
    assert name_without_suffixes(f"a.train{suffix}") == "a.train"
