"""What `--dry-run` says of sizes, rejects and time, checked against runs of the same data."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.outcomes.summary import Forecast
from shardmill.pipelines.prepare.conversion import prepare
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.prepare.prepared import Prepared
from shardmill.pipelines.runs import forecast as sample_module
from shardmill.pipelines.runs.convert import dry_run
from shardmill.pipelines.runs.forecast import Sample, forecast, take_sample
from shardmill.pipelines.workers.worker_processes import WorkerProcesses
from shardmill.transforms.inputs.contract.source import LazyPieces

from ...archives import picture
from ...command_line import Shardmill

ROWS = 120_000
FILES = 4


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder, and look at few places: data of which these are not all are small then."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sample_module, "PLACES", 4)
    monkeypatch.setattr(sample_module, "MOST_ROWS", 4000)
    return tmp_path


def table(rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(7)
    names = np.char.add("name of ", random.integers(0, 10**6, rows).astype(str))
    numbers = {"id": np.arange(rows), "x": random.normal(size=rows), "y": random.integers(0, 10**9, rows)}
    return pa.table({**numbers, "name": pa.array(names)})


def csv_files() -> str:
    for number in range(FILES):
        pa.csv.write_csv(table().slice(number * ROWS // FILES, ROWS // FILES), f"{number}.csv")
    return "*.csv"


def json_lines() -> str:
    rows = table().to_pylist()
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return "a.jsonl"


def parquet_files() -> str:
    for number in range(FILES):
        pq.write_table(table().slice(number * ROWS // FILES, ROWS // FILES), f"{number}.parquet", row_group_size=2000)
    return "*.parquet"


def pictures() -> str:
    data = [picture(shade, size=(20 + shade, 30)) + bytes(20_000) for shade in range(40)]
    for number in range(700):
        Path("pets", f"class {number % 3}").mkdir(parents=True, exist_ok=True)
        Path("pets", f"class {number % 3}", f"{number:04d}.jpg").write_bytes(data[number % 40] + bytes(number % 7))
    return "pets"


def planned(path: str, **settings: Any) -> dict[str, Any]:
    config = load_config({"input": {"paths": [path]}, "output": {"path": "out"}, **settings})
    return dry_run(conversion_of(config)).to_json()


def prepared_of(path: str, **settings: Any) -> Prepared:
    config = load_config({"input": {"paths": [path]}, "output": {"path": "out"}, **settings})
    with WorkerProcesses(1, asked=False) as workers:
        return prepare(conversion_of(config), workers)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (csv_files, []),
        (csv_files, ["--set", "output.compression=gzip"]),
        (csv_files, ["--where", "y > 500000000"]),
        (json_lines, []),
        (parquet_files, ["--split-fractions", "train=0.9,val=0.1"]),
        (pictures, ["--set", "image.resize=16"]),
    ],
    ids=["csv", "gzip", "where", "jsonl", "parquet", "pictures"],
)
def test_sizes_of_regular_data_are_within_five_percent(
    make: Callable[[], str], options: list[str], shardmill: Shardmill
) -> None:
    command = ["convert", make(), "-o", "out", "--json", *options]
    plan = json.loads(shardmill(*command, "--dry-run").out)
    assert not Path("out").exists()
    made = json.loads(shardmill(*command).out)
    said = plan["forecast"]
    assert 0 < said["share"] < 1
    assert not said["exact"]
    bound, chance = 0.05, 0.01 if len(made["splits"]) > 1 else 0.0
    for name, split in made["splits"].items():
        assert plan["splits"][name]["bytes"] == pytest.approx(split["bytes"], rel=bound + chance)
        assert plan["splits"][name]["shards"] == len(split["shards"])
    total = sum(split["records"] for split in made["splits"].values())
    assert sum(split["records"] for split in plan["splits"].values()) == pytest.approx(total, rel=0.05)


def test_rows_that_grow_are_sampled_from_all_over() -> None:
    rows = pa.table({"text": pa.array(["x" * (number // 400) for number in range(80_000)])})
    pq.write_table(rows, "a.parquet", row_group_size=1000)
    plan = planned("a.parquet")
    framed = sum(16 + 16 + 3 + number // 400 for number in range(80_000))
    assert plan["forecast"]["share"] < 0.5
    assert plan["splits"]["train"]["bytes"] == pytest.approx(framed, rel=0.25)


def test_a_sample_from_one_place_is_called_an_estimate(shardmill: Shardmill) -> None:
    pq.write_table(table(), "a.parquet", row_group_size=ROWS)
    made = planned("a.parquet")["forecast"]
    assert (made["places"], made["exact"]) == (1, False)
    (line,) = [
        line
        for line in shardmill("convert", "a.parquet", "-o", "out", "--dry-run").out.splitlines()
        if line.startswith("Sample:")
    ]
    assert line.endswith(" of the source; sizes are estimates")


def test_where_all_rows_are_sampled_sizes_are_exact(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("a,b\n" + "".join(f"{number},{'x' * (number % 50)}\n" for number in range(3000)))
    ended = shardmill("convert", "a.csv", "-o", "out", "--dry-run")
    assert "Sample: all rows; sizes are exact" in ended.out.splitlines()
    plan = planned("a.csv")
    made = json.loads(shardmill("convert", "a.csv", "-o", "out", "--json").out)
    assert plan["splits"]["train"]["bytes"] == made["splits"]["train"]["bytes"]
    assert (plan["forecast"]["share"], plan["forecast"]["exact"]) == (1.0, True)


def sizes(shown: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {name: (split["records"], split["bytes"]) for name, split in shown["splits"].items()}


def test_where_all_rows_are_sampled_each_split_has_its_own_sizes(shardmill: Shardmill) -> None:
    texts = pa.array(["x" * 10] * 900 + ["y" * 3000] * 100)
    pq.write_table(pa.table({"fold": ["train"] * 900 + ["test"] * 100, "text": texts}), "a.parquet")
    command = ["convert", "a.parquet", "-o", "out", "--set", "split.column=fold", "--shard-size", "64KiB"]
    screen = shardmill(*command, "--dry-run").out
    assert "Sample: all rows; sizes are exact" in screen.splitlines()
    assert "others may have more" not in screen
    plan = json.loads(shardmill(*command, "--dry-run", "--json").out)
    made = json.loads(shardmill(*command, "--json").out)
    assert sizes(plan) == sizes(made)
    assert {name: split["shards"] for name, split in plan["splits"].items()} == {
        name: len(split["shards"]) for name, split in made["splits"].items()
    }


def test_where_all_pictures_are_sampled_each_folder_has_its_own_records_and_bytes(shardmill: Shardmill) -> None:
    for split, files, size in (("train", 6, 20), ("val", 3, 30), ("test", 3, 900)):
        Path("pets", split, "cat").mkdir(parents=True)
        for number in range(files):
            Path("pets", split, "cat", f"{number}.jpg").write_bytes(picture(number, size=(size, size)))
    Path("pets/val/cat/junk.jpg").write_bytes(b"junk")
    plan = json.loads(shardmill("convert", "pets", "-o", "out", "--dry-run", "--json").out)
    made = json.loads(shardmill("convert", "pets", "-o", "out", "--max-rejects", "1", "--json").out)
    assert sizes(plan) == sizes(made)
    assert {name: records for name, (records, _) in sizes(plan).items()} == {"train": 6, "val": 3, "test": 3}


def test_splits_whose_rows_differ_are_estimated_from_the_rows_of_each(shardmill: Shardmill) -> None:
    folds = ["train", "train", "train", "test"]
    rows = [{"fold": folds[number % 4], "text": "x" * (2000 if number % 4 == 3 else 10)} for number in range(20_000)]
    pq.write_table(pa.Table.from_pylist(rows), "a.parquet", row_group_size=500)
    command = ["convert", "a.parquet", "-o", "out", "--set", "split.column=fold", "--json"]
    plan, made = (json.loads(shardmill(*command, *more).out) for more in (["--dry-run"], []))
    assert plan["forecast"]["share"] < 1
    for name, (records, size) in sizes(made).items():
        assert sizes(plan)[name] == (pytest.approx(records, rel=0.05), pytest.approx(size, rel=0.05))


def test_folders_whose_pictures_differ_are_estimated_from_the_pictures_of_each(shardmill: Shardmill) -> None:
    for split, files, padding in (("train", 400, 20_000), ("test", 100, 160_000)):
        Path("pets", split, "cat").mkdir(parents=True)
        for number in range(files):
            Path("pets", split, "cat", f"{number}.jpg").write_bytes(picture(number % 7) + bytes(padding))
    command = ["convert", "pets", "-o", "out", "--json"]
    plan, made = (json.loads(shardmill(*command, *more).out) for more in (["--dry-run"], []))
    assert plan["forecast"]["share"] < 1
    for name, (records, size) in sizes(made).items():
        assert sizes(plan)[name] == (records, pytest.approx(size, rel=0.02))


def test_with_gzip_or_records_that_wait_for_their_split_the_sizes_of_splits_are_not_called_exact() -> None:
    Path("a.csv").write_text("a\n" + "1\n" * 100)
    gzipped = planned("a.csv", output={"path": "out", "compression": "gzip"})["forecast"]
    assert (gzipped["share"], gzipped["exact"]) == (1.0, False)
    waiting = planned("a.csv", split={"fractions": {"train": 0.9, "val": 0.1}, "by": "exact"})
    assert {name: split["records"] for name, split in waiting["splits"].items()} == {"train": 90, "val": 10}
    forecast = Forecast(**{name: one for name, one in waiting["forecast"].items() if name != "fails"})
    assert "Sample: all rows; sizes are exact in all, and estimates for each split" in list(forecast.lines("out"))


def test_rejects_are_named_with_an_example_and_what_they_mean_for_the_run(shardmill: Shardmill) -> None:
    lines = [f"{number},{number}" if number % 100 else "7,1,2" for number in range(1000)]
    Path("a.csv").write_text("\n".join(["a,b", *lines, "7"]) + "\n")
    ended = shardmill("convert", "a.csv", "-o", "out", "--dry-run")
    assert ended.code == 0
    at = ended.out.splitlines().index("Would reject 11 rows of the 1,001 that were looked at:")
    shown = ended.out.splitlines()[at + 1 :]
    assert shown[0] == "  BAD_WIDTH 11"
    assert shown[1].startswith("  10 rows, first a.csv rows 1, 101, 201: BAD_WIDTH: ")
    assert (
        "Expected in all: 11 rejects, and max_rejects allows 0: the run would fail; to allow them: --max-rejects 11"
        in shown
    )
    allowed = shardmill("convert", "a.csv", "-o", "out", "--max-rejects", "11", "--dry-run").out
    assert "Expected in all: 11 rejects; 11 are allowed" in allowed.splitlines()
    assert shardmill("convert", "a.csv", "-o", "out").code == 4
    assert shardmill("convert", "a.csv", "-o", "out", "--max-rejects", "11").code == 0


def test_rejects_far_into_the_data_are_seen_and_counted_for_all(shardmill: Shardmill) -> None:
    half = ROWS // 2
    rows = [f'{{"a": {number}}}' if number < half or number % 10 else '{"a": 1, "a": 2}' for number in range(ROWS)]
    Path("a.jsonl").write_text("\n".join(rows))
    plan = planned("a.jsonl")
    assert plan["sample"]["rejects"][0]["code"] == "BAD_WIDTH"
    assert plan["forecast"]["rejects"] == pytest.approx(half / 10, rel=0.1)
    assert plan["forecast"]["fails"] is True


def test_rejects_of_a_file_that_the_sample_missed_are_within_the_bounds_that_are_said(shardmill: Shardmill) -> None:
    Path("in").mkdir()
    for number in range(100):
        bad = {0: 3, 51: 299}.get(number, 0)
        rows = [f'{{"a": {row}}}' if row >= bad else '{"a": 1, "a": 2}' for row in range(300)]
        Path("in", f"{number:03}.jsonl").write_text("\n".join(rows))
    plan = planned("in")["forecast"]
    assert plan["share"] < 1
    assert plan["rejects_at_least"] == 3
    assert plan["rejects"] < 302 <= plan["rejects_at_most"] < 15_000
    shown = shardmill("convert", "in", "-o", "out", "--dry-run").out
    assert f"(3 were seen; {plan['rejects_at_most']:,} at most, if the sample is like the rest)" in shown
    refused = shardmill("convert", "in", "-o", "out")
    assert "302 of 30000 rows were rejected" in refused.err


def test_a_dry_run_says_how_sure_it_is_that_a_run_fails_and_proposes_to_leave_out_no_more_than_half() -> None:
    made = Forecast(
        rows=1000, places=9, share=0.1, cpu_seconds=1.0, seconds=1.0, workers=2, exact=False, splits_counted=False,
        rejects=40, allowed=0, disk_bytes=0, free_bytes=None, rejects_at_least=4, rejects_at_most=900,
    )  # fmt: skip
    about = "Expected in all: about 40 rejects (4 were seen; 900 at most, if the sample is like the rest)"
    allows = f"{about}, and max_rejects allows"
    assert made.reject_line() == f"{allows} 0: the run would fail; to allow them: --max-rejects 900"
    assert replace(made, allowed=20).reject_line().startswith(f"{allows} 20: the run would probably fail; to")
    assert replace(made, allowed=60).reject_line().startswith(f"{allows} 60: the run may fail; to")
    assert replace(made, allowed=900).reject_line() == f"{about}; 900 are allowed"
    for more in ({"rejects_at_most": 5001}, {"share": None, "rejects_at_least": 501}, {"share": 1.0, "rejects": 501}):
        assert replace(made, **more).reject_line().endswith("fail"), more


def test_pictures_are_looked_at_too(shardmill: Shardmill) -> None:
    pictures()
    for number in range(0, 700, 10):
        Path(f"pets/class {number % 3}", f"{number:04d}b.jpg").write_bytes((picture(1)[:-30] + b"x") * 25)
    plan = planned("pets")
    assert plan["forecast"]["share"] < 1
    assert plan["forecast"]["rejects"] == pytest.approx(70, rel=0.5)


@pytest.mark.parametrize("make", [csv_files, parquet_files, pictures])
def test_two_samples_of_the_same_data_differ_in_their_time_alone(make: Callable[[], str]) -> None:
    path = make()
    samples: list[Sample] = [take_sample(prepared_of(path)) for _ in range(2)]
    one, other = (replace(sample, seconds=0.0) for sample in samples)
    assert one == other
    assert len(one.payloads) == 3
    assert all(sample.seconds > 0 for sample in samples)


def test_the_estimate_changes_no_task_of_the_plan() -> None:
    prepared = prepared_of(parquet_files())
    with WorkerProcesses(1, asked=False) as workers:
        better, _ = forecast(prepared, workers)
    assert not isinstance(prepared.plan.survey.pieces, LazyPieces)
    assert (better.plan.tasks, better.plan.outputs) == (prepared.plan.tasks, prepared.plan.outputs)
    assert better.spec == prepared.spec


def test_the_time_grows_with_the_rows_and_shrinks_with_what_is_done() -> None:
    prepared = prepared_of(csv_files())
    with WorkerProcesses(1, asked=False) as workers:
        made = forecast(prepared, workers)[1]
        half = forecast(prepared, workers, done=len(prepared.plan.tasks))[1]
    assert made.seconds is not None
    assert made.seconds > made.cpu_seconds / 2
    assert made.cpu_seconds > 3.5e-9 * 5_000_000, "what is written takes time too"
    assert half.cpu_seconds == 0


def test_of_a_cluster_only_the_time_of_processors_is_said(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("a\n1\n")
    args = ["convert", "a.csv", "-o", "out", "--dry-run", "--runner", "flink", "--set", "runner.master=127.0.0.1:9"]
    (line,) = [line for line in shardmill(*args).out.splitlines() if line.startswith("Time:")]
    assert line.endswith("of CPU, as measured here; how long that takes, the cluster decides")


def test_where_the_rows_are_not_known_the_sizes_are_called_a_guess(shardmill: Shardmill) -> None:
    csv_files()
    Path("a.csv.gz").write_bytes(gzip.compress(Path("0.csv").read_bytes() + Path("1.csv").read_bytes()))
    plan = planned("a.csv.gz", schema={"infer": "none"})
    assert (plan["forecast"]["exact"], plan["forecast"]["share"]) == (False, None)
    ended = shardmill("convert", "a.csv.gz", "-o", "out", "--dry-run", "--set", "schema.infer=none")
    assert "the number of rows is a guess by the size of the files, and so are the sizes" in ended.out


def test_a_disk_with_too_little_room_is_said() -> None:
    made = Forecast(
        rows=1, places=1, share=1.0, cpu_seconds=1.0, seconds=1.0, workers=2,
        exact=True, splits_counted=True, rejects=0, allowed=0, disk_bytes=5 << 30, free_bytes=1 << 30,
    )  # fmt: skip
    assert "Disk:   too little room for out: 5.0 GiB needed, 1.0 GiB free" in list(made.lines("out"))
    assert len(list(replace(made, free_bytes=5 << 30).lines("out"))) == 2


def test_a_run_that_is_done_and_only_to_be_committed_has_no_forecast(shardmill: Shardmill) -> None:
    Path("a.jsonl").write_text('{"a": 1}\n{"a": 1, "a": 2}\n')
    assert shardmill("convert", "a.jsonl", "-o", "out").code == 4
    plan = json.loads(shardmill("convert", "a.jsonl", "-o", "out", "--dry-run", "--json").out)
    assert plan["done_before"] == plan["tasks"] == 1
    assert "forecast" not in plan


def test_a_run_says_that_its_disk_has_too_little_room_before_it_writes(
    tmp_path: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.csv").write_text("id,name\n" + "1,abcdefgh\n" * 2000)
    free = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert screen.code == 0, screen.err
    assert re.search(r"too little room for out: [0-9.]+ KiB needed, 1000 B free; make room, or the run may", screen.err)
    assert "too little room" not in shardmill("rebuild", "out", "-o", "new", "-q").err
    assert "too little room" in shardmill("rebuild", "out", "-o", "other").err
