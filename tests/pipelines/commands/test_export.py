"""The screens of `export`, and what it leaves where it was stopped."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert, open_dataset

from ...command_line import Shardmill
from ...dataset.commit.test_append_commit import add
from ...dataset.commit.test_commit_generation import spec_of, write


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(spec_of(tmp_path))
    add(tmp_path, 2)
    return tmp_path / "out"


def test_an_export_says_what_it_wrote(out: Path, shardmill: Shardmill) -> None:
    screen = shardmill("export", "out", "-o", "x/rows.jsonl")
    assert (screen.code, screen.err) == (0, "")
    assert screen.out.startswith("Wrote x/rows.jsonl: 17,100 records")
    assert len(Path("x/rows.jsonl").read_text().splitlines()) == 17_100
    assert [path.name for path in Path("x").iterdir()] == ["rows.jsonl"]


def test_an_export_as_json_of_an_older_generation(out: Path, shardmill: Shardmill) -> None:
    screen = shardmill("export", "out", "-o", "old.parquet", "--generation", "1", "--json")
    said = json.loads(screen.out)
    assert (said["records"], said["target"], said["pictures"]) == (15_000, "old.parquet", None)
    assert sum(said["splits"].values()) == pq.read_metadata("old.parquet").num_rows == 15_000


def test_a_target_that_is_there_is_replaced_only_where_that_is_asked_for(out: Path, shardmill: Shardmill) -> None:
    Path("x.parquet").write_text("mine")
    screen = shardmill("export", "out", "-o", "x.parquet")
    assert screen.code == 2
    assert screen.err == "error: x.parquet: already exists; --overwrite replaces it\n"
    assert Path("x.parquet").read_text() == "mine"
    assert shardmill("export", "out", "-o", "x.parquet", "--overwrite").code == 0
    assert pq.read_metadata("x.parquet").num_rows == 17_100


def test_a_folder_with_anything_in_it_is_never_replaced(out: Path, shardmill: Shardmill) -> None:
    screen = shardmill("export", "out", "-o", "out", "--overwrite")
    assert screen.code == 2
    assert "out: is a folder that is not empty; choose another name" in screen.err


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (
            "x.xlsx",
            "x.xlsx: an export is .parquet, .arrow, .feather, .jsonl, .ndjson, ",
        ),
        ("s3://bucket/x.parquet", "an export writes to a disk"),
        ("out/manifest.json/x.csv", "out/manifest.json/x.csv: cannot be written: "),
    ],
)
def test_a_target_that_cannot_be_is_refused(out: Path, shardmill: Shardmill, target: str, words: str) -> None:
    screen = shardmill("export", "out", "-o", target)
    assert screen.code == 2
    assert words in screen.err


def test_a_split_and_a_column_that_are_not_there_are_named_with_those_that_are(out: Path, shardmill: Shardmill) -> None:
    assert "no split nope; it has: " in shardmill("export", "out", "-o", "x.csv", "--split", "nope").err
    assert 'no feature "nope"; it has: ' in shardmill("export", "out", "-o", "x.csv", "--columns", "nope").err


@pytest.mark.parametrize("target", ["x.parquet", "x.jsonl"])
def test_a_damaged_dataset_leaves_nothing_of_an_export(out: Path, shardmill: Shardmill, target: str) -> None:
    shard = sorted(out.glob("*.tfrecord"))[-1]
    shard.write_bytes(shard.read_bytes()[:-1])
    before = sorted(Path().iterdir())
    screen = shardmill("export", "out", "-o", target)
    assert screen.code == 3
    assert shard.name in screen.err
    assert sorted(Path().iterdir()) == before


def labelled(folder: Path, **columns: object) -> None:
    table = pa.table({"kind": ["cat", "owl"], "color": ["red", "blue"]})
    convert(data=table, output=folder, schema={"columns": columns or {"kind": {"label": True}}})


@pytest.mark.parametrize("name", ["croissant.json", "label_map.pbtxt", "schema.pbtxt"])
def test_what_describes_a_dataset_is_that_which_a_conversion_writes_where_it_is_asked_to(
    tmp_path: Path, shardmill: Shardmill, name: str
) -> None:
    labelled(tmp_path / "out")
    table, columns = pa.table({"kind": ["cat", "owl"], "color": ["red", "blue"]}), {"kind": {"label": True}}
    groups = ["tfx", "croissant", "label_map"]
    convert(data=table, output=tmp_path / "asked/out", sidecars=groups, name="out", schema={"columns": columns})
    assert not (tmp_path / "out/croissant.json").exists()
    screen = shardmill("export", "out", "-o", f"x/{name}")
    assert (screen.code, screen.out.startswith(f"Wrote x/{name}: ")) == (0, True)
    assert (tmp_path / "x" / name).read_bytes() == (tmp_path / "asked/out" / name).read_bytes()
    assert shardmill("verify", "asked/out").code == 0


def test_an_append_keeps_what_describes_a_dataset_in_step(tmp_path: Path, shardmill: Shardmill) -> None:
    (tmp_path / "a.jsonl").write_text('{"kind": "cat"}\n')
    (tmp_path / "b.jsonl").write_text('{"kind": "owl"}\n')
    columns = {"kind": {"label": True}}
    convert(tmp_path / "a.jsonl", output=tmp_path / "out", sidecars=["croissant", "label_map"], schema__columns=columns)
    append(tmp_path / "b.jsonl", output=tmp_path / "out")
    assert (tmp_path / "out/label_map.pbtxt").read_text().count("item {") == 2
    splits = json.loads((tmp_path / "out/croissant.json").read_text())["recordSet"][0]["data"]
    assert splits == [{"splits/name": "train", "splits/records": 2}]
    assert shardmill("verify", "out").code == 0
    (tmp_path / "out/croissant.json").write_text("{}")
    screen = shardmill("verify", "out")
    assert (screen.code, "croissant.json: does not agree with the manifest" in screen.out) == (3, True)


def test_a_label_map_that_there_is_not_is_refused_with_what_makes_one(tmp_path: Path, shardmill: Shardmill) -> None:
    convert(data=pa.table({"a": [1]}), output=tmp_path / "plain")
    screen = shardmill("export", "plain", "-o", "label_map.pbtxt")
    assert (screen.code, "--set schema.columns.NAME.label=true" in screen.err) == (2, True)
    labelled(tmp_path / "out", kind={"label": True}, color={"label": True})
    screen = shardmill("export", "out", "-o", "label_map.pbtxt")
    assert "choose among color.label_map.pbtxt, kind.label_map.pbtxt" in screen.err
    assert shardmill("export", "out", "-o", "kind.label_map.pbtxt").code == 0
    screen = shardmill("export", "out", "-o", "croissant.json", "--split", "train")
    assert "--split is for tables and pictures" in screen.err


@pytest.mark.parametrize("missing", [False, True])
def test_classes_that_no_folder_can_be_named_by_come_back_with_the_settings_that_are_printed(
    tmp_path: Path, shardmill: Shardmill, missing: bool
) -> None:
    picture = (Path(__file__).parents[3] / "configs/samples/pets/cat/cat-1.jpg").read_bytes()
    names = ["cat", "C:sharp", None if missing else "it's"]
    table = pa.table({"image": [{"bytes": picture, "path": f"{n}.jpg"} for n in range(3)], "image/class/label": names})
    columns = {"image/class/label": {"label": True}}
    convert(data=table, output=tmp_path / "first", order="source", schema__columns=columns)
    screen = shardmill("export", "first", "-o", "pictures")
    assert screen.code == 0
    _, said, settings = screen.err.partition("converted so, they are classes again: ")
    assert said
    screen = shardmill("convert", "pictures", "-o", "again", "--set", "output.order=source", *shlex.split(settings))
    assert screen.code == 0, screen.err
    first, again = open_dataset(tmp_path / "first"), open_dataset(tmp_path / "again")
    assert again.labels == first.labels
    assert [row["image/class/label"] for row in again] == [row["image/class/label"] for row in first] == names


def test_classes_that_name_their_folders_need_no_setting(tmp_path: Path, shardmill: Shardmill) -> None:
    convert(Path(__file__).parents[3] / "configs/samples/pets", output=tmp_path / "first", max_rejects=1)
    assert shardmill("export", "first", "-o", "pictures").err == ""


def test_a_label_map_with_the_id_0_is_written_with_a_warning_that_has_the_fix(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    pets = Path(__file__).parents[3] / "configs/samples/pets"
    convert(pets, output=tmp_path / "first", max_rejects=1)
    screen = shardmill("export", "first", "-o", "label_map.pbtxt")
    assert (screen.code, Path("label_map.pbtxt").read_text().count("id: 0")) == (0, 1)
    fix = re.search(r"takes no id below 1, and a class has 0; convert again (--set input\S+)", screen.err)
    assert fix is not None
    assert shardmill("convert", str(pets), "-o", "second", "--max-rejects", "1", *fix[1].split()).code == 0
    assert shardmill("export", "second", "-o", "second.label_map.pbtxt").code == 2  # there is one label: no other name
    screen = shardmill("export", "second", "-o", "label_map.pbtxt", "--overwrite")
    assert (screen.code, screen.err) == (0, "")


def test_classes_of_text_are_numbered_from_1_after_a_placeholder(tmp_path: Path, shardmill: Shardmill) -> None:
    labelled(tmp_path / "out")
    assert "schema.columns.NAME.label=[_unused_0, ...]" in shardmill("export", "out", "-o", "label_map.pbtxt").err
    labelled(tmp_path / "again", kind={"label": ["_unused_0", "cat", "owl"]})
    screen = shardmill("export", "again", "-o", "label_map.pbtxt", "--overwrite")
    assert (screen.code, screen.err) == (0, "")
    assert re.findall(r"id: ([0-9]+)", Path("label_map.pbtxt").read_text()) == ["1", "2"]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (("--limit", "3"), [0, 1, 2]),
        (("--where", "plan == 'paid' and id > 3"), [5, 7]),
        (("--where", "id > 2", "--limit", "2", "--columns", "plan"), [3, 4]),
        (("--where", "id > 99"), []),
    ],
)
def test_some_rows_are_exported_by_an_expression_or_a_limit(
    tmp_path: Path, shardmill: Shardmill, options: tuple[str, ...], ids: list[int]
) -> None:
    Path("people.csv").write_text("id,plan\n" + "".join(f"{i},{('free', 'paid')[i % 2]}\n" for i in range(8)))
    convert({"input": {"paths": ["people.csv"]}, "schema": {"columns": {"plan": {"label": True}}}}, output="out")
    screen = shardmill("export", "out", "-o", "some.jsonl", "--json", *options)
    assert screen.code == 0, screen.err
    assert (json.loads(screen.out)["records"], json.loads(screen.out)["splits"]) == (len(ids), {"train": len(ids)})
    rows = [json.loads(line) for line in Path("some.jsonl").read_text().splitlines()]
    assert [row["plan"] for row in rows] == [("free", "paid")[i % 2] for i in ids]
    assert "--columns" in options or [row["id"] for row in rows] == ids
    for suffix in (".parquet", ".csv", ".arrow"):
        assert shardmill("export", "out", "-o", f"some{suffix}", "-q", *options).code == 0
    assert pq.read_metadata("some.parquet").num_rows == len(ids)


def test_an_expression_of_an_export_that_does_not_fit_is_refused(tmp_path: Path, shardmill: Shardmill) -> None:
    Path("people.csv").write_text("id,plan\n1,free\n")
    convert("people.csv", output="out")
    for text, says in {
        "ids > 1": 'error: --where names "ids", which is not a column; did you mean "id"?',
        "id = 1": "error: --where: cannot be read",
        "plan > 1": 'error: --where: plan > 1 does not fit: plan is string; compare with a value, like plan == "a"\n',
    }.items():
        screen = shardmill("export", "out", "-o", "x.csv", "--where", text)
        assert (screen.code, screen.err.startswith(says)) == (2, True), screen.err
    screen = shardmill("export", "out", "-o", "out/croissant.json", "--limit", "1")
    assert (screen.code, "--limit is for tables and pictures" in screen.err) == (2, True)
