"""On a Flink that is started for the run: the same bytes, and nothing is left when it ends, however it ends."""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import json
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import open_dataset
from shardmill.pipelines.engines.flink.processes import free_port
from shardmill.transforms.format.examples.decode_examples import Example

from ..readme import recipes
from ..stores import servers
from ..tiers import CAMPAIGN
from .running import CONFIGS, fetched, same_bytes, shardmill, wait_for, wait_until_ended, write_table

pytestmark = pytest.mark.engine

TABLE = ("convert", "a.parquet", "--name", "table", "--max-rejects", "1%", "--shard-size", "4MiB", "-o")
FLINK = ("--runner", "flink", "--workers", "2")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    write_table(folder / "a.parquet", 6)
    shardmill(*TABLE, "local", cwd=folder)
    return folder


def server_of(process: subprocess.Popen[str]) -> psutil.Process | None:
    """Return the job server that a command has started, if it has."""
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.Error):  # it is ending
            if (child.cmdline() or [""])[0].endswith("java"):  # none while the system loads it
                return child
    return None


def test_tables_have_the_bytes_of_the_local_runner_from_worker_processes(flink: None, table: Path) -> None:
    shardmill(*TABLE, "embedded", *FLINK, "--set", "runner.processes=true", cwd=table)
    same_bytes(table / "local", table / "embedded")


STEPS = """
import sys
import pyarrow as pa
import pyarrow.compute as pc
from shardmill.pipelines import convert

def even(batch):
    one = pa.scalar(1, batch["id"].type)
    return batch, pc.not_equal(pc.bit_wise_and(batch["id"], one), one)

convert("a.parquet", output=sys.argv[1], name="table", max_rejects="1%", runner__name=sys.argv[2], map=even, limit=5000)
"""


@pytest.mark.thorough("a conversion on a Flink of its own")
def test_a_function_over_batches_has_the_bytes_of_the_local_runner(flink: None, table: Path) -> None:
    for runner in ("local", "flink"):
        subprocess.run([sys.executable, "-c", STEPS, f"even-{runner}", runner], cwd=table, check=True)
    same_bytes(table / "even-local", table / "even-flink")


def orders() -> list[dict[str, list[Any]]]:
    """Return the lists of the records that columns.yaml makes of its sample, where nulls of a column have a mask."""
    with (CONFIGS / "samples/orders/orders.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter=";") if row["status"] != "cancelled"]
    days = [dt.datetime.strptime(row["day"], "%d.%m.%Y").replace(tzinfo=dt.UTC) for row in rows]
    return [
        {
            "order": [int(row["order"])],
            "day": [day.timestamp() // 86_400],
            "price": [np.float32(row["price"].removesuffix(" €").replace(".", "").replace(",", "."))],
            "discount": [float(row["discount"].removesuffix(" %") or 0)],
            "discount/mask": [int(row["discount"] != "")],
            "state": [["open", "paid", "sent"].index(row["status"])],
            "shop": [b"kiel"],
        }
        for day, row in zip(days, rows, strict=True)
        if day.date() >= dt.date(2024, 2, 1)
    ]


def carts() -> list[dict[str, list[Any]]]:
    """Return the lists of the records that nested.yaml makes of its sample."""
    records = []
    for row in pq.read_table(CONFIGS / "samples/carts/carts.parquet").to_pylist():
        lines, clicks = row["lines"], row["clicks"]
        lists = {
            "id": [row["id"]],
            "buyer/present": [int(row["buyer"] is not None)],
            "lines/present": [int(lines is not None)],
            "clicks/present": [int(clicks is not None)],
            "labels": None
            if row["labels"] is None
            else [json.dumps(dict(row["labels"]), separators=(",", ":")).encode()],
            "total": None if row["total"] is None else [int(row["total"].scaleb(2))],
        }
        for key in ("name", "city"):
            lists[f"buyer/{key}"] = None if row["buyer"] is None else [row["buyer"][key].encode()]
        for key, held in (("item", str.encode), ("count", int)):
            lists[f"lines/{key}"] = None if lines is None else [held(line[key]) for line in lines]
        lists["clicks/ragged_flat_values"] = None if clicks is None else [one for inner in clicks for one in inner]
        lists["clicks/ragged_row_lengths_0"] = None if clicks is None else [len(inner) for inner in clicks]
        records.append({key: values for key, values in lists.items() if values is not None})
    return records


@pytest.mark.thorough("three more conversions on a Flink of its own each")
@pytest.mark.parametrize(
    ("config", "settings", "held"),
    [
        pytest.param("columns.yaml", ("schema.columns.discount.null=mask",), orders, marks=CAMPAIGN),
        ("nested.yaml", (), carts),
        pytest.param("files.yaml", (), None, marks=CAMPAIGN),
    ],
    ids=["columns", "nested", "files"],
)
def test_the_steps_of_a_config_and_nested_columns_have_the_values_of_the_source_and_the_bytes_of_the_local_runner(
    flink: None,
    config: str,
    settings: tuple[str, ...],
    held: Callable[[], list[dict[str, list[Any]]]] | None,
    tmp_path: Path,
) -> None:
    options = [word for each in settings for word in ("--set", each)]
    for runner in ("local", "flink"):
        output = ("-o", str(tmp_path / runner), "--runner", runner)
        shardmill("convert", str(CONFIGS / config), *options, *output, cwd=tmp_path)
    same_bytes(tmp_path / "local", tmp_path / "flink")
    if held is not None:
        assert list(map(lists_of, open_dataset(tmp_path / "flink").records())) == held()


def lists_of(record: bytes) -> dict[str, list[Any]]:
    """Return the values of a record's features, as protobuf reads them."""
    features = Example.FromString(record).features.feature
    return {key: list(getattr(feature, str(feature.WhichOneof("kind"))).value) for key, feature in features.items()}


@pytest.mark.thorough("a conversion on a Flink of its own")
def test_files_whose_columns_differ_and_a_report_of_duplicates_have_the_bytes_of_the_local_runner(
    flink: None, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"{i},{i * i % 97}\n" for i in range(500)))
    (tmp_path / "b.csv").write_text("text,score\n" + "".join(f"{i % 97},{i}.5\n" for i in range(500)))
    settings = ("input.columns_differ=union", "checks.duplicates={columns: [text]}", "schema.columns.text.type=string")
    args = ("convert", "a.csv", "b.csv", "--name", "both", *(word for each in settings for word in ("--set", each)))
    for runner in ("local", "flink"):
        shardmill(*args, "-o", runner, "--runner", runner, cwd=tmp_path)
    same_bytes(tmp_path / "local", tmp_path / "flink")
    dataset = open_dataset(tmp_path / "flink")
    assert dataset.manifest.details.checks["duplicates"]["records"] == 1000 - 97
    assert set(dataset.to_arrow("train").column_names) == {"id", "text", "score"}


@pytest.mark.thorough("a conversion on a Flink of its own")
def test_the_recipe_of_the_readme_prints_what_it_shows(flink: None, tmp_path: Path) -> None:
    ((typed, shown),) = recipes("--runner flink")
    (line,) = [line for line in typed if "--runner flink" in line]
    shutil.copytree(CONFIGS, tmp_path / "configs")
    ended = shardmill(*shlex.split(line)[1:], cwd=tmp_path)
    assert [line for line in shown if line not in ended.stdout.splitlines()] == []


@pytest.mark.thorough("a second conversion on a Flink of its own")
def test_images_have_the_bytes_of_the_local_runner_from_threads_to_a_store(
    flink: None, s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in servers.environment("s3", s3_endpoint).items():
        monkeypatch.setenv(name, value)
    url = f"s3://{servers.make_bucket('s3', s3_endpoint)}/pets"
    args = ("convert", str(CONFIGS / "images.yaml"), "--name", "pets", "-o")
    shardmill(*args, "local", cwd=tmp_path)
    shardmill(*args, url, *FLINK, "--set", "runner.processes=false", cwd=tmp_path)
    same_bytes(tmp_path / "local", fetched(url, tmp_path / "embedded"))


@pytest.mark.thorough("a Flink of its own, and a conversion after its death")
def test_a_job_server_that_dies_is_told_in_one_line_and_the_same_command_goes_on(flink: None, table: Path) -> None:
    command = [sys.executable, "-m", "shardmill.pipelines", *TABLE, "died", *FLINK, "--set", "runner.processes=false"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=table, stdout=pipe, stderr=pipe, text=True) as process:
        wait_for(lambda: list((table / "died").glob(".staging/*/parts/*/*.part")), process)
        server = server_of(process)
        assert server is not None
        server.kill()
        _, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    (error,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert error.startswith("error: Flink's job server died (exit code -9): ")
    log = Path(error.rpartition("its log: ")[2])
    assert "JobService started" in log.read_text()
    assert "Traceback" not in err
    assert "\tat " not in err
    shardmill(*TABLE, "died", cwd=table)
    same_bytes(table / "local", table / "died")


@pytest.mark.thorough("a Flink of its own")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_a_command_that_ends_before_its_run_leaves_no_process(flink: None, table: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "shardmill.pipelines", *TABLE, number.name, *FLINK]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=table, stdout=pipe, stderr=pipe, text=True) as process:
        server = wait_for(lambda: server_of(process), process)
        process.send_signal(number)
        _, err = process.communicate()
    wait_until_ended(server)
    assert "Traceback" not in err
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "Interrupted: nothing was committed" in err


def test_a_cluster_that_does_not_answer_is_told_before_anything_is_read(flink: None, table: Path) -> None:
    (table / "unread.parquet").write_bytes(b"no Parquet")
    master = f"127.0.0.1:{free_port()}"
    options = ("--runner", "flink", "--set", f"runner.master={master}")
    ended = shardmill("convert", "unread.parquet", "-o", "out", *options, cwd=table, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"error: cannot reach Flink at {master}: [Errno 111] Connection refused; see that")
    assert len(ended.stderr.splitlines()) == 1
