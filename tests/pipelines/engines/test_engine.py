"""What every engine does alike: a run on it is committed, refused or failed, and the bytes are the same.

Dataflow runs where a service answers: `tests/test_image.py` has its graph, its submission and its polling.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.runners import DataflowRunner, FlinkRunner, LocalRunner
from shardmill.pipelines.engines.engine import Engine, PlainEngine
from shardmill.pipelines.outcomes.summary import Submitted
from shardmill.pipelines.prepare.conversion import prepare
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.prepare.prepared import Prepared
from shardmill.pipelines.runs.convert import begun, run_prepared
from shardmill.pipelines.runs.python_api import engine_of
from shardmill.pipelines.workers.worker_processes import WorkerProcesses
from shardmill.transforms.dataset.commit.commit_generation import WriteOutcome
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.manifest_files import list_generations
from shardmill.transforms.errors import RunError, UsageError
from shardmill.transforms.format.manifest.manifest import SplitEntry

from ...tiers import but_some_thorough

DATAFLOW = {
    "name": "dataflow",
    "project": "my-project",
    "region": "europe-west1",
    "staging": "gs://my-bucket/staging",
    "image": "europe-docker.pkg.dev/my-project/images/shardmill:0.1.0",
}
ENGINES = {
    "local": engine_of(LocalRunner()),
    "plain": PlainEngine(),
    "flink": engine_of(FlinkRunner(name="flink")),
}
ROWS = 3000

NAMES = [f"{engine}, {workers}" for engine in ENGINES for workers in ("threads", "processes")]
QUICK = [name for name in NAMES if "flink" not in name]

pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]
"""Beam's client of Flink's job server has threads that read until the server is gone, which is how a run ends."""


class Machine(NamedTuple):
    """An engine with two workers of this machine."""

    engine: Engine
    processes: bool


@pytest.fixture(params=but_some_thorough(QUICK, NAMES, "a Flink of its own for each run"))
def machine(request: pytest.FixtureRequest) -> Machine:
    engine, _, workers = request.param.partition(", ")
    if engine == "flink":
        request.getfixturevalue("flink")
    return Machine(ENGINES[engine], processes=workers == "processes")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three files in row groups; one row in a thousand is rejected."""
    for number in range(3):
        ids = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.uint64())
        ids = pa.concat_arrays([ids.slice(0, 7), pa.array([2**63 + number], pa.uint64()), ids.slice(8)])
        text = pa.array([f"{n:08d}" * 12 for n in range(ROWS)])
        table = pa.table({"id": ids, "text": text, "kind": [n * n % 7 for n in range(ROWS)]})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=1000)
    return tmp_path


EXACT = {"fractions": {"train": 0.7, "val": 0.3}, "by": "exact"}
"""Splits whose records are counted over all tasks: some are set aside until all are done."""

BY_KIND: Mapping[str, Any] = EXACT | {"stratify": "kind"}
STRATIFIED: Mapping[str, Any] = {"split": BY_KIND}
DONE: Mapping[str, Mapping[str, Any]] = {
    "one split": {},
    "exact by key": {"split": EXACT | {"key": "text"}},
    "shuffled and exact": {"split": BY_KIND, "shuffle": {"seed": 7}},
}
"""What is done to rows: keys of the config."""


def run(
    machine: Machine, source: Path, out: Path, max_rejects: int = 10, done: Mapping[str, Any] = STRATIFIED
) -> tuple[Prepared, WriteOutcome]:
    """Return what was left to do when the run began, and what became of it."""
    flags = {"output.path": ("-o", str(out)), "max_rejects": ("--max-rejects", max_rejects)}
    config = load_config(
        {"name": "x", "output": {"shard_size": "64KiB"}, **done}, paths=[str(source / "*.parquet")], flags=flags
    )
    with WorkerProcesses(2, asked=machine.processes) as workers:
        left = begun(prepare(conversion_of(config), workers), machine.engine)
        outcome = run_prepared(left, machine.engine, None, workers)
    assert not isinstance(outcome, Submitted)
    return left, outcome


def splits_of(machine: Machine, source: Path, out: Path, done: Mapping[str, Any]) -> Mapping[str, SplitEntry]:
    _, outcome = run(machine, source, out, done=done)
    assert outcome.manifest is not None
    return outcome.manifest.splits


@pytest.mark.parametrize("done", DONE.values(), ids=DONE)
def test_a_run_commits_the_bytes_that_any_engine_makes(
    machine: Machine, source: Path, tmp_path: Path, done: Mapping[str, Any]
) -> None:
    in_threads = Machine(PlainEngine(), processes=False)
    made = splits_of(machine, source, tmp_path / "out", done)
    assert made == splits_of(in_threads, source, tmp_path / "plain", done)
    assert len(verify_dataset(str(tmp_path / "out")).findings) == 0
    assert not (tmp_path / "out/.staging").exists()


def test_a_run_with_too_many_rejects_is_refused_and_one_that_allows_them_takes_its_work_over(
    machine: Machine, source: Path, tmp_path: Path
) -> None:
    _, refused = run(machine, source, tmp_path / "out", max_rejects=0)
    assert refused.refusal is not None
    assert refused.refusal.rejected == 3
    assert not list_generations(str(tmp_path / "out"))
    left, outcome = run(machine, source, tmp_path / "out")
    assert left.done
    assert not left.plan.tasks
    assert outcome.manifest is not None
    assert outcome.manifest.counts.rejected == 3
    made = outcome.manifest.splits
    assert abs(made["val"].records - 0.3 * (3 * ROWS - 3)) < 2
    in_threads = Machine(PlainEngine(), processes=False)
    assert made == splits_of(in_threads, source, tmp_path / "plain", STRATIFIED)


def test_a_file_that_is_corrupt_fails_the_run_by_its_name_and_commits_nothing(
    machine: Machine, source: Path, tmp_path: Path
) -> None:
    data = bytearray((source / "1.parquet").read_bytes())
    data[200:4000] = bytes(3800)
    (source / "1.parquet").write_bytes(data)
    with pytest.raises((RunError, UsageError), match=r"1\.parquet"):
        run(machine, source, tmp_path / "out")
    assert not list_generations(str(tmp_path / "out"))


@pytest.mark.parametrize("beam_options", [["--no_such_option=1"], ["--aws_secret_key=x"]])
@pytest.mark.parametrize("runner", [LocalRunner(), FlinkRunner(name="flink")], ids=["local", "embedded"])
def test_options_that_beam_does_not_know_or_that_hold_a_key_are_refused_before_anything_is_read(
    runner: LocalRunner | FlinkRunner, beam_options: list[str]
) -> None:
    with pytest.raises(UsageError, match=r"Beam has no such option|keys are not taken on the command line"):
        engine_of(runner, beam_options).check()


def test_only_a_job_of_dataflow_may_be_left_alone_and_is_not_taken_over() -> None:
    assert all(engine.waits and engine.resumes and engine.sees_this_machine for engine in ENGINES.values())
    waited_for = engine_of(DataflowRunner.model_validate(DATAFLOW))
    left_alone = engine_of(DataflowRunner.model_validate(DATAFLOW | {"wait": False}))
    only_built = engine_of(DataflowRunner.model_validate(DATAFLOW), ["--dry_run=True"])
    assert [engine.waits for engine in (waited_for, left_alone, only_built)] == [True, False, False]
    assert not waited_for.resumes
    assert not waited_for.sees_this_machine
