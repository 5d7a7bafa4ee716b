"""A dataset remembers its conversion: an append makes of new inputs what one conversion of all inputs makes of them."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.append import run_append
from shardmill.transforms.errors import CommitError, UsageError

from ...command_line import Shardmill

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def text(first: int) -> str:
    cells = ["-", "n/a", "3", "4"]
    rows = (
        f"{n};user {n % 7};{cells[n % 4]};1.{n % 10}00,5 €;0{n % 9 + 1}.02.2024\n" for n in range(first, first + 40)
    )
    return "n;user;score;price;day\n" + "".join(rows)


def tables() -> None:
    for name, first in (("a.csv", 0), ("b.csv", 40)):
        Path(name).write_text(text(first))


def in_folders() -> None:
    for at, name in enumerate(("a/train/1.csv", "a/test/2.csv", "b/train/3.csv", "b/test/4.csv")):
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text(text(40 * at))


def archives() -> None:
    for name in ("a", "b"):
        with zipfile.ZipFile(f"{name}.zip", "w") as archive:
            for number in range(8):
                file = f"{'train' if number % 4 else 'test'}/{'cat' if number % 2 else 'dog'}/{name}{number}.png"
                archive.writestr(file, picture(number, len(name)))


def picture(*seed: int) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "PNG")
    return file.getvalue()


def pictures() -> None:
    for folder, seed in (("a/cat", 0), ("a/dog", 1), ("b/cat", 2), ("b/dog", 3)):
        Path(folder).mkdir(parents=True)
        for number in range(4):
            Path(folder, f"{seed}{number}.png").write_bytes(picture(seed, number))


def metadata() -> None:
    pictures()
    for folder in ("a", "b"):
        files = sorted(Path(folder).rglob("*.png"))
        lines = (f"{file.relative_to(folder)},{'good' if int(file.stem) % 2 else 'bad'}\n" for file in files)
        Path(folder, "metadata.csv").write_text("file_name,grade\n" + "".join(lines))


def above(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    return batch, pc.not_equal(batch["user"], "user 3")


COLUMNS = {
    "score": {"null": {"fill": -1}, "type": "int64"},
    "price": {"strip": "€", "decimal": ",", "thousands": ".", "name": "euros"},
    "day": {"format": "%d.%m.%Y"},
    "user": {"label": [f"user {n}" for n in range(7)]},
}
NULLS = {"null_values": ["-", "n/a"], "quote": None}
RULE = {"column": "day", "names": {f"0{day}.02.2024": "odd" if day % 2 else "even" for day in range(1, 10)}}
TIME = {"before": {"column": "day", "train": "2024-02-05", "rest": "val"}}
HASH = {"fractions": {"val": 0.4, "train": 0.6}, "key": "user"}
OF_PICTURES = {
    "image": {"resize": 16, "encode": {"format": "jpeg"}},
    "label_offset": 1,
    "columns": ["image/encoded", "image/class/label", "image/key/sha256"],
}
"""Without names: those of two folders begin above both."""

CASES: dict[str, tuple[Callable[[], None], tuple[str, str], dict[str, Any]]] = {
    "null words": (tables, ("a.csv", "b.csv"), NULLS),
    "columns": (
        tables,
        ("a.csv", "b.csv"),
        {**NULLS, "columns": ["n", "user", "score", "price", "day"], "schema": {"columns": COLUMNS}},
    ),
    "constants": (tables, ("a.csv", "b.csv"), {**NULLS, "schema": {"constants": {"source": "web"}, "infer": "full"}}),
    "rows": (tables, ("a.csv", "b.csv"), {**NULLS, "where": "n > 5"}),
    "splits by a hash": (tables, ("a.csv", "b.csv"), {**NULLS, "split": HASH}),
    "splits by a column": (tables, ("a.csv", "b.csv"), {**NULLS, "split": RULE}),
    "splits by time": (
        tables,
        ("a.csv", "b.csv"),
        {**NULLS, "schema": {"columns": {"day": COLUMNS["day"]}}, "split": TIME},
    ),
    "splits of folders": (in_folders, ("a", "b"), NULLS),
    "a split that is cut out of a folder": (in_folders, ("a", "b"), {**NULLS, "split": {**HASH, "of": "train"}}),
    "splits and classes inside of archives": (
        archives,
        ("a.zip", "b.zip"),
        {"columns": ["image", "image/class/label"]},
    ),
    "classes": (tables, ("a.csv", "b.csv"), {**NULLS, "schema": {"columns": {"user": {"label": True}}}}),
    "pictures": (pictures, ("a", "b"), OF_PICTURES),
    "a table beside pictures": (
        metadata,
        ("a", "b"),
        {"image": {"resize": 16}, "schema": {"columns": {"grade": {"label": True}}}},
    ),
    "functions": (tables, ("a.csv", "b.csv"), {**NULLS, "map": above}),
}


def digests(path: str) -> dict[str, str]:
    return {name: split.records_digest for name, split in open_dataset(path).manifest.splits.items()}


@pytest.mark.parametrize("case", CASES)
def test_an_append_that_says_nothing_gives_what_one_conversion_of_all_inputs_gives(case: str) -> None:
    make, (first, second), settings = CASES[case]
    make()
    convert([first, second], output="all", **settings)
    convert(first, output="out", **settings)
    append(second, output="out", map=settings.get("map"))
    assert digests("out") == digests("all")
    one, other = open_dataset("out").manifest, open_dataset("all").manifest
    assert one.conversion == other.conversion == open_dataset("out").manifest.conversion
    assert append(second, output="out", **settings).nothing_to_do, "to say the same again changes nothing"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"schema__columns": {"score": {"null": "error"}}}, 'schema.columns.score.null is "error", and {"fill": -1}'),
        ({"schema__boxes": "clip"}, 'schema.boxes is "clip", and "reject" in dataset out'),
        ({"compression": "gzip"}, 'output.compression is "gzip", and "none" in dataset out'),
    ],
)  # fmt: skip
def test_what_the_dataset_decides_is_refused_with_both_values(given: dict[str, Any], said: str) -> None:
    tables()
    convert("a.csv", output="out", **NULLS, where="n > 5", schema__columns={"score": {"null": {"fill": -1}}})
    with pytest.raises(UsageError) as refused:
        append("b.csv", output="out", **given)
    assert said in str(refused.value)
    assert "leave it out, or convert to a new dataset (-o)" in str(refused.value)
    append("b.csv", output="out", delimiter=";", null_values=["-", "n/a"])
    assert len(open_dataset("out").to_arrow("train")) == 74


def test_another_function_is_refused_by_name_until_it_is_accepted_from_then_on(shardmill: Shardmill) -> None:
    tables()
    shutil.copy("b.csv", "c.csv")
    with Path("c.csv").open("a") as file:
        file.write("99;user 1;3;1.000,5 €;01.02.2024\n")
    convert("a.csv", output="out", **NULLS, map=above)

    def other(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
        return batch, pc.equal(batch["user"], "user 3")

    other.__qualname__ = above.__qualname__
    with pytest.raises(UsageError, match="map: above: its text, or a value that it uses, is not what out was"):
        append("b.csv", output="out", map=other)
    with pytest.raises(UsageError, match="map: out was made with above, and not test_another"):
        append("b.csv", output="out", map=lambda batch: batch)
    refused = shardmill("append", "b.csv", "-o", "out")
    assert refused.code == 2
    assert "append('b.csv', output='out', map=[above])" in " ".join(refused.err.split())
    append("b.csv", output="out", map=other, accept_map=True)
    first, second = (open_dataset("out", number).manifest.conversion["map"] for number in (1, 2))
    assert (first[0]["name"], first[0]["digest"] == second[0]["digest"]) == ("above", False)
    with pytest.raises(UsageError, match="its text, or a value"):
        append("c.csv", output="out", map=above)
    shown = json.loads(shardmill("log", "out", "--json").out)["generations"]
    assert [one["functions"] for one in shown] == [[], ["above"]]
    assert "From generation 2 on, above: another function" in shardmill("log", "out").out
    assert shardmill("append", "c.csv", "-o", "out", "--set", "accept_map=true").code == 0
    assert "map" not in open_dataset("out").manifest.conversion
    shown = json.loads(shardmill("log", "out", "--json").out)["generations"]
    assert [one["functions_left"] for one in shown] == [[], [], ["above"]]
    assert "From generation 3 on without above" in shardmill("log", "out").out


def test_a_merge_remembers_what_all_share_and_a_rebuild_its_own_options_too(shardmill: Shardmill) -> None:
    tables()
    split = {"fractions": {"train": 0.5, "val": 0.5}}
    convert("a.csv", output="one", **NULLS, header=True, split=split, sidecars=["tfx"])
    convert("b.csv", output="two", **NULLS, split=split)
    shardmill("merge", "one", "two", "-o", "both")
    shared = {"format": "csv", "delimiter": ";", "null_values": ["-", "n/a"], "quote": None}
    assert open_dataset("both").manifest.conversion == {"input": shared, "split": split}
    shardmill("rebuild", "one", "-o", "cut", "--set", "split.folds=2", "--set", "output.sidecars=[tfds]")
    assert open_dataset("cut").manifest.conversion == {
        "input": {**shared, "header": True}, "split": {"folds": 2}, "output": {"sidecars": ["tfds"]},
    }  # fmt: skip


def test_classes_and_masks_of_annotations_are_remembered_and_their_files_are_not() -> None:
    pictures()
    for folder in ("a", "b"):
        Path(folder, "labels").mkdir()
        for file in Path(folder).rglob("*.png"):
            Path(folder, "labels", f"{file.stem}.txt").write_text("1 0.1 0.1 0.8 0.1 0.8 0.8 0.1 0.8\n")
            file.rename(Path(folder, file.name))
    convert("a", output="out", annotations={"yolo": "a/labels", "classes": ["cat", "dog"], "masks": False})
    kept = {"format": "images", "annotations": {"classes": ["cat", "dog"], "masks": False}}
    assert open_dataset("out").manifest.conversion["input"] == kept
    append("b", output="out", annotations={"yolo": "b/labels"})
    dataset = open_dataset("out")
    assert (len(dataset["train"]), dataset.manifest.conversion["input"]) == (16, kept)
    assert not any("mask" in feature.name for feature in dataset.manifest.schema or ())
    assert [list(names) for names in dataset.manifest.labels.values()] == [["cat", "dog"]]


def test_a_dataset_is_made_like_another(shardmill: Shardmill) -> None:
    tables()
    settings = {**NULLS, "schema__columns": COLUMNS, "where": "n > 5", "shard_size": "1MiB", "compression": "gzip"}
    convert("a.csv", output="out", **settings, split={"folds": 2})
    made = shardmill("convert", "--like", "out", "b.csv", "-o", "like")
    assert made.code == 0, made.err
    convert("b.csv", output="said", **settings, split={"folds": 2})
    like, said = open_dataset("like").manifest, open_dataset("said").manifest
    assert (digests("like"), like.conversion, like.compression) == (digests("said"), said.conversion, "gzip")
    assert like.shard_size == said.shard_size


def test_a_dataset_that_was_made_anew_while_an_append_was_planned_is_not_added_to() -> None:
    tables()
    convert("a.csv", output="out", **NULLS)
    planned = conversion_of(load_config(paths=["b.csv"], flags={"output.path": "out"}, command="append"), "append")
    convert("a.csv", output="out", overwrite=True, **NULLS, where="n > 5")
    with pytest.raises(CommitError, match="out: another command made it in another way meanwhile; run this again"):
        run_append(planned)
    assert open_dataset("out").manifest.generation == 2


def test_what_was_adopted_remembers_nothing_and_says_so_where_an_append_needs_options(shardmill: Shardmill) -> None:
    tables()
    convert("a.csv", output="out", **NULLS, where="n > 5")
    Path("files").mkdir()
    shutil.copy("out/train-00000.tfrecord", "files")
    assert shardmill("adopt", "files").code == 0
    assert "conversion" not in json.loads(Path("files/manifest.json").read_text())
    Path("c.csv").write_text("n;user\n1;Ann\n")
    refused = shardmill("append", "c.csv", "-o", "files")
    assert (refused.code, "does not say how it was made: give all options of the rows" in refused.err) == (2, True)
    refused = shardmill("convert", "b.csv", "--like", "files", "-o", "more")
    assert (refused.code, "--like: files does not say how it was made" in refused.err) == (2, True)
    assert shardmill("append", "b.csv", "-o", "files", "--set", 'input.null_values=["-", n/a]').code == 0
