"""Records that are alike are reported or left out: the first of each group stays, with any number of workers."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines.cli import main
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.engines.engine import LocalEngine
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.prepare.prepared import Prepared
from shardmill.pipelines.runs.append import run_append
from shardmill.pipelines.runs.convert import run_convert
from shardmill.transforms.dataset.commit.assemble_shards import assemble_shard
from shardmill.transforms.dataset.commit.commit_generation import commit_arrived, plan_generation
from shardmill.transforms.dataset.commit.publish import complete_generation, moves_of, publish_file
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError, UsageError
from shardmill.transforms.inputs.contract.tasks import TaskStaging

from ..command_line import Shardmill
from ..pipelines.killed import Death, run_until

Settings = dict[str, Any]

TEXTS = [f"{n * n % 977} {'x' * 300}" for n in range(4000)]
"""Most of them come again, some far behind."""


@pytest.fixture(name="work")
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_csv(path: str, rows: list[tuple[Any, ...]], header: tuple[str, ...] = ("id", "text")) -> None:
    with Path(path).open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def texts_in_files() -> list[tuple[int, str]]:
    """Write two files; return the rows that are the first of their text."""
    rows = list(enumerate(TEXTS))
    write_csv("a.csv", rows[:2500])
    write_csv("b.csv", rows[2500:])
    first: dict[str, int] = {}
    for number, text in rows:
        first.setdefault(text, number)
    return [(number, text) for text, number in first.items()]


def settings_of(out: str = "out", *, paths: tuple[str, ...] = ("*.csv",), **sections: Any) -> Settings:
    output = {"path": out, "shard_size": "64KiB", **sections.pop("output", {})}
    return {"input": {"paths": list(paths)}, "output": output, **sections}


def checks(*columns: str, action: str = "report") -> Settings:
    return {"duplicates": {"columns": list(columns), "action": action}}


def found_in(out: str = "out") -> Settings:
    found: Settings = open_dataset(out).manifest.details.checks["duplicates"]
    return found


def rows_of(out: str = "out", split: str = "train") -> list[tuple[int, str]]:
    table = open_dataset(out).to_arrow(split)
    return list(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))


def shards_of(out: str) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in Path(out).glob("*.tfrecord")}


def test_a_report_counts_what_repeats_and_names_the_first_of_it_and_changes_no_record(work: Path) -> None:
    write_csv("a.csv", [(1, "one"), (2, "two"), (3, "one"), (4, "one")])
    write_csv("b.csv", [(5, "two"), (6, "three"), (7, "one")])
    run_convert(conversion_of(load_config(settings_of("plain"))))
    run_convert(conversion_of(load_config(settings_of(checks=checks("text")))))
    assert found_in() == {
        "columns": ["text"],
        "records": 4,
        "groups": 2,
        "examples": [
            {"records": 4, "places": ["a.csv row 1", "a.csv row 3", "a.csv row 4"]},
            {"records": 2, "places": ["a.csv row 2", "b.csv row 1"]},
        ],
    }
    assert shards_of("out") == shards_of("plain")
    assert verify_dataset("out").ok


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("order", ["task", "source"])
def test_all_but_the_first_are_left_out_and_counted_by_file(compression: str, order: str, work: Path) -> None:
    wanted = texts_in_files()
    output = {"compression": compression, "order": order}
    run_convert(conversion_of(load_config(settings_of(output=output, checks=checks("text", action="drop")))))
    assert sorted(rows_of()) == sorted(wanted)
    if order == "source":
        assert rows_of() == wanted
    dataset = open_dataset("out")
    counts = dataset.manifest.counts
    assert (counts.read, counts.written, counts.dropped) == (len(TEXTS), len(wanted), len(TEXTS) - len(wanted))
    lines = [json.loads(line) for line in Path("out", str(dataset.manifest.source.list)).read_text().splitlines()]
    by_file = {name: sum(start <= n < end for n, _ in wanted) for name, start, end in FILES}
    assert {line["source"]: line["written"] for line in lines} == by_file
    assert found_in()["records"] == counts.dropped
    assert verify_dataset("out").ok


FILES = (("a.csv", 0, 2500), ("b.csv", 2500, 4000))


def test_what_is_left_does_not_depend_on_the_workers(work: Path) -> None:
    texts_in_files()
    shards = {}
    for out, runner in {"one": {"workers": 1}, "two": {"workers": 2, "processes": True}}.items():
        run_convert(conversion_of(load_config(settings_of(out, checks=checks("text", action="drop"), runner=runner))))
        shards[out] = shards_of(out)
    assert shards["one"] == shards["two"]


def test_without_columns_whole_records_are_compared(work: Path) -> None:
    write_csv("a.csv", [(1, "one"), (2, "one"), (1, "one"), (1, "two")])
    run_convert(conversion_of(load_config(settings_of(checks=checks(action="drop")))))
    assert rows_of() == [(1, "one"), (2, "one"), (1, "two")]


def test_a_row_that_is_rejected_is_no_first(work: Path) -> None:
    write_csv("a.csv", [(1, "one"), ("bad", "two"), (3, "two"), (4, "one"), (5, "two")])
    schema = {"columns": {"id": {"type": "int64"}}}
    run_convert(
        conversion_of(load_config(settings_of(checks=checks("text", action="drop"), schema=schema, max_rejects=1)))
    )
    assert rows_of() == [(1, "one"), (3, "two")]
    assert found_in()["examples"][1]["places"] == ["a.csv row 3", "a.csv row 5"]


def test_splits_that_share_records_are_named(work: Path) -> None:
    texts_in_files()
    split = {"fractions": {"train": 0.5, "val": 0.3, "test": 0.2}, "key": "id"}
    run_convert(conversion_of(load_config(settings_of(checks=checks("text"), split=split))))
    held = {name: {text for _, text in rows_of(split=name)} for name in split["fractions"]}
    pairs = (("train", "val"), ("test", "train"), ("test", "val"))
    assert found_in()["splits"] == {f"{one} {other}": len(held[one] & held[other]) for one, other in sorted(pairs)}
    run_convert(conversion_of(load_config(settings_of("dropped", checks=checks("text", action="drop"), split=split))))
    left = [text for name in split["fractions"] for _, text in rows_of("dropped", name)]
    assert sorted(left) == sorted(set(TEXTS))


def test_splits_that_a_column_names_are_the_same_in_every_batch(work: Path) -> None:
    for number, folds in enumerate((["a", "b", "a"], ["b", "c", "b"], ["c", "a", "a"])):
        rows = "".join(f"{fold},{text}\n" for text, fold in enumerate(folds))
        (work / f"{number}.csv").write_text(f"fold,text\n{rows}")
    options = settings_of(paths=("0.csv", "1.csv", "2.csv"), checks=checks("text"), split={"column": "fold"})
    run_convert(conversion_of(load_config(options)))
    assert found_in()["splits"] == {"a b": 3, "a c": 2, "b c": 2}


def test_of_many_pairs_of_splits_that_share_records_those_that_share_most_are_shown(
    work: Path, shardmill: Shardmill
) -> None:
    names = [f"s{number}" for number in range(6)]
    for name in names:
        for picture in range(2 if name in {"s4", "s5"} else 1):
            (work / "pets" / name).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 4), ("red", "blue")[picture]).save(work / "pets" / name / f"{picture}.png")
    options = [f"--set={text}" for text in ("input.layout=split", "checks.duplicates.columns=[image/encoded]")]
    out = shardmill("convert", "pets", "-o", "out", *options).out
    assert len(found_in()["splits"]) == 15
    shown = [line.strip() for line in out.splitlines() if " in both " in line]
    assert len(shown) == 5
    assert shown[0] == "2 groups of equal records are in both s4 and s5"
    assert "and 10 pairs of splits more" in out


def test_two_nan_are_alike_and_the_two_zeros_are_not(work: Path) -> None:
    pq.write_table(pa.table({"id": range(4), "x": [0.0, -0.0, float("nan"), float("nan")]}), "a.parquet")
    run_convert(conversion_of(load_config(settings_of(paths=("a.parquet",), checks=checks("x", action="drop")))))
    assert open_dataset("out").to_arrow("train")["id"].to_pylist() == [0, 1, 2]


def test_nulls_are_alike_and_a_nested_column_stands_for_all_its_features(work: Path) -> None:
    boxes = [{"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": 1, "b": "x"}, None, None]
    pq.write_table(pa.table({"id": range(5), "box": boxes}), "a.parquet")
    settings = settings_of(paths=("a.parquet",), checks=checks("box", action="drop"))
    run_convert(conversion_of(load_config(settings)))
    assert open_dataset("out").to_arrow("train")["id"].to_pylist() == [0, 1, 3]


def test_pictures_of_the_same_bytes_are_found(work: Path) -> None:
    for name, colour in (("cat/1", "red"), ("cat/2", "blue"), ("dog/1", "red")):
        (work / "pets" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), colour).save(work / "pets" / f"{name}.png")
    settings = settings_of(paths=("pets",), checks=checks("image/encoded"))
    run_convert(conversion_of(load_config({**settings, "input": {"paths": ["pets"], "format": "images"}})))
    assert sorted(found_in()["examples"][0]["places"]) == ["pets/cat/1.png", "pets/dog/1.png"]


def test_a_run_that_is_resumed_leaves_out_the_same(work: Path) -> None:
    wanted = texts_in_files()
    write_csv("c.csv", [("bad", "last")])
    settings = settings_of(checks=checks("text", action="drop"), schema={"columns": {"id": {"type": "int64"}}})
    with pytest.raises(Exception, match="1 of 4001 rows was rejected"):
        run_convert(conversion_of(load_config(settings)))
    run_convert(conversion_of(load_config({**settings, "max_rejects": 1})))
    assert sorted(rows_of()) == sorted(wanted)


@pytest.mark.parametrize("action", ["drop", "report"])
def test_a_run_that_is_killed_at_a_task_or_at_its_commit_and_resumed_has_the_bytes_of_an_unbroken_one(
    action: str, work: Path
) -> None:
    texts_in_files()
    command = ["convert", "a.csv", "b.csv", "--name", "rows", "--shard-size", "64KiB", "--workers", "1", "-q"]
    command += ["--set", f"checks.duplicates={{columns: [text], action: {action}}}", "-o"]
    deaths = [Death("replace .*tasks/"), Death("(place|assemble) .*shards/", 3)]
    deaths += [Death("put_if_absent manifests/", before=True)]
    for number, death in enumerate(deaths):
        run_until(death, work, [*command, str(number)])
        assert list(Path(str(number), ".staging").iterdir()) != []
    for out in ("whole", *map(str, range(len(deaths)))):
        with pytest.raises(SystemExit) as ended:
            main([*command, out])
        assert ended.value.code == 0
        assert found_in(out) == found_in("whole") != {}
        assert shards_of(out) == shards_of("whole") != {}


def test_a_plan_that_an_engine_tries_again_finds_the_same_also_after_the_commit(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts_in_files()
    plans: list[Any] = []
    commits: list[Any] = []

    def run_with_tries(_: LocalEngine, prepared: Prepared, processes: Any) -> None:
        spec = prepared.spec
        staging = TaskStaging.of(spec, prepared.source, prepared.plan.survey.frozen, prepared.encoder)
        results = [*map(staging.stage, prepared.plan.tasks)]

        plans.extend(plan_generation(spec, results) for _ in range(2))
        for job in plans[1].jobs:
            assemble_shard(spec, job)
        decided: Any = commit_arrived(spec, [plans[1].draft, *plans[1].jobs])
        late: Any = plan_generation(spec, results)
        commits.extend([decided, commit_arrived(spec, [late.draft, *late.jobs])])
        for move in moves_of(decided):
            publish_file(spec.storage, move)
        complete_generation(spec, decided)

    monkeypatch.setattr(LocalEngine, "run", run_with_tries)
    run_convert(conversion_of(load_config(settings_of(checks=checks("text", action="drop"), runner={"workers": 1}))))
    held = open_dataset("out").manifest
    assert [plan.draft.counts for plan in plans] == [held.counts] * 2
    assert [commit.manifest for commit in commits] == [held] * 2
    assert verify_dataset("out").ok
    assert sorted(text for _, text in rows_of()) == sorted(set(TEXTS))


def test_an_append_compares_what_it_adds(work: Path) -> None:
    write_csv("a.csv", [(1, "one"), (2, "one")])
    write_csv("b.csv", [(3, "one"), (4, "two"), (5, "two")])
    run_convert(conversion_of(load_config(settings_of(paths=("a.csv",), checks=checks("text")))))
    run_append(
        conversion_of(load_config(settings_of(paths=("b.csv",), checks=checks("text", action="drop"))), "append")
    )
    assert [number for number, _ in rows_of()] == [1, 2, 3, 4]
    assert (found_in()["records"], found_in()["action"]) == (1, "drop")
    write_csv("c.csv", [(6, "six")])
    run_append(conversion_of(load_config(settings_of(paths=("c.csv",))), "append"))
    assert open_dataset("out").manifest.details.checks == {}
    assert verify_dataset("out").ok


def test_a_column_that_is_not_there_is_refused_before_anything_is_written(work: Path) -> None:
    write_csv("a.csv", [(1, "one")])
    with pytest.raises(SchemaError, match='names "txt", which is no column of the dataset; did you mean "text"'):
        run_convert(conversion_of(load_config(settings_of(checks=checks("txt")))))
    assert not (work / "out").exists()


def test_existing_records_are_passed_on_unchecked_so_checks_are_refused(work: Path) -> None:
    write_csv("a.csv", [(1, "one")])
    run_convert(conversion_of(load_config(settings_of())))
    settings = {"input": {"paths": ["out/*.tfrecord"], "format": "tfrecord"}, "output": {"path": "other"}}
    with pytest.raises(UsageError, match="checks"):
        run_convert(conversion_of(load_config({**settings, "checks": checks()})))
