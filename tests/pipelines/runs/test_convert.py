"""`convert`: from a config, a mapping or data in memory to a dataset, or to the error that says why not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import convert, open_dataset
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.engines.beam_pipeline import add_steps, make_pipeline
from shardmill.pipelines.engines.engine import LocalEngine
from shardmill.pipelines.outcomes.summary import Submitted
from shardmill.pipelines.prepare.conversion import prepare
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.prepare.prepared import Prepared
from shardmill.pipelines.runs.convert import begun, run_prepared
from shardmill.pipelines.workers.worker_processes import WorkerProcesses
from shardmill.transforms.dataset.stage.task_stager import TaskStager
from shardmill.transforms.errors import ConfigError, RunError, TargetError, TooManyRejects, UnseenError, UsageError

from ..cpu_time import slowness_by_the_clock

pytestmark = pytest.mark.engine

TABLE = pa.table({"id": [1, 2, 3], "x": pa.array([0.5, None, 1.5], pa.float32()), "s": ["a", "b", None]})


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A config beside its data; 2 of the 10 rows are bad."""
    rows = [f"{i},{'bad' if i in (3, 8) else i}" for i in range(10)]
    (tmp_path / "people.csv").write_text("id,n\n" + "\n".join(rows) + "\n")
    (tmp_path / "c.yaml").write_text(
        "input: {paths: [people.csv]}\noutput: {path: out}\nschema: {columns: {n: {type: int64}}}\nmax_rejects: 2\n"
    )
    return tmp_path / "c.yaml"


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [dict(row) for row in open_dataset(out).to_arrow("train").to_pylist()]


def committed(out: Path) -> list[str]:
    return sorted(path.name for path in out.glob("[!.]*"))


class TestConfigs:
    @pytest.mark.parametrize("kind", ["csv", "images"])
    def test_an_output_inside_the_folder_that_is_read_is_not_read_the_next_time(
        self, tmp_path: Path, kind: str
    ) -> None:
        (tmp_path / "a").mkdir()
        if kind == "csv":
            (tmp_path / "a" / "x.csv").write_text("n\n1\n")
        else:
            Image.new("RGB", (4, 3)).save(tmp_path / "a" / "x.png")
        config = {"input": {"paths": [str(tmp_path)]}, "output": {"path": str(tmp_path / "out")}}
        assert convert(config).manifest.counts.written == 1
        again = convert(config)
        assert again.nothing_to_do
        assert again.manifest.counts.written == 1

    def test_the_path_of_a_config_and_its_content_give_the_same_dataset(
        self, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        by_path = convert(people)
        assert by_path.manifest.counts.rejected == 2
        assert [json.loads(line)["row"] for line in by_path.first_rejects] == [4, 9]
        monkeypatch.chdir(tmp_path)
        content = {
            "input": {"paths": ["people.csv"]},
            "output": {"path": "again"},
            "schema": {"columns": {"n": {"type": "int64"}}},
            "max_rejects": 2,
        }
        convert(content)
        assert rows_of(tmp_path / "again") == rows_of(tmp_path / "out")
        assert rows_of(tmp_path / "out")[3] == {"id": 4, "n": 4}

    def test_settings_stand_over_the_config(self, people: Path, tmp_path: Path) -> None:
        summary = convert(people, output=tmp_path / "zipped", compression="gzip", limits__field_bytes="1MiB")
        assert summary.manifest.compression == "gzip"
        assert [path.name for path in (tmp_path / "zipped").glob("*.tfrecord*")] == ["train-00000.tfrecord.gz"]

    def test_the_same_again_is_nothing_to_do(self, people: Path) -> None:
        first = convert(people)
        again = convert(people)
        assert (first.nothing_to_do, again.nothing_to_do) == (False, True)
        assert again.manifest == first.manifest

    def test_another_config_for_the_same_folder_is_refused_or_replaces_it(self, people: Path, tmp_path: Path) -> None:
        convert(people)
        before = (tmp_path / "out/manifest.json").read_bytes()
        with pytest.raises(TargetError, match=r'holds dataset out, generation 1, .*if_exists="replace"'):
            convert(people, compression="gzip")
        assert (tmp_path / "out/manifest.json").read_bytes() == before
        replaced = convert(people, compression="gzip", if_exists="replace")
        assert (replaced.manifest.generation, replaced.manifest.compression) == (2, "gzip")
        assert len(rows_of(tmp_path / "out")) == 8
        assert not list((tmp_path / "out").glob("*.tfrecord"))

    def test_wrong_configs_name_the_key(self, people: Path, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match='did you mean "shard_size"'):
            convert(people, output__shard_sise="1MiB")
        with pytest.raises(ConfigError, match="No such file"):
            convert(tmp_path / "gone.yaml")
        with pytest.raises(UsageError):
            convert()


class TestRejects:
    @pytest.mark.parametrize("allowed", [1, "19%"])
    def test_too_many_rejects_fail_the_run_and_leave_all_of_them_in_staging(
        self, people: Path, tmp_path: Path, allowed: int | str
    ) -> None:
        with pytest.raises(TooManyRejects, match=r"^2 of 10 rows were rejected \(BAD_TYPE 2\)") as caught:
            convert(people, max_rejects=allowed)
        assert '2 rows, people.csv rows 4, 9: column "n": BAD_TYPE: "bad" is not an int64' in str(caught.value)
        (run,) = (tmp_path / "out/.staging").iterdir()
        assert len((run / "rejects.jsonl").read_text().splitlines()) == 2
        assert list(run.glob("parts/*/*.part"))
        assert committed(tmp_path / "out") == []

    def test_too_many_rejects_are_listed_in_a_file_that_is_named_as_seen_from_the_working_folder(
        self, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(
            TooManyRejects, match=r"(?:they are|it is) listed in out/\.staging/\w+/rejects\.jsonl; "
        ) as caught:
            convert(people, max_rejects=0)
        assert Path(caught.value.path).parent.parent == tmp_path / "out/.staging"

    @pytest.mark.parametrize("allowed", [2, "20%"])
    def test_as_many_as_allowed_are_left_out(self, people: Path, tmp_path: Path, allowed: int | str) -> None:
        assert convert(people, max_rejects=allowed).manifest.counts.rejected == 2
        assert len(rows_of(tmp_path / "out")) == 8
        assert not (tmp_path / "out/.staging").exists()

    def test_a_run_with_more_allowed_takes_over_what_a_failed_one_left(self, people: Path, tmp_path: Path) -> None:
        with pytest.raises(TooManyRejects):
            convert(people, max_rejects=0)
        convert(people)
        assert len(rows_of(tmp_path / "out")) == 8
        assert not (tmp_path / "out/.staging").exists()


def test_files_that_were_moved_give_the_same_shards_and_another_fingerprint(tmp_path: Path) -> None:
    manifests = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        pq.write_table(TABLE, tmp_path / f"{name}/a.parquet")
        manifests.append(convert(f"{tmp_path}/{name}/a.parquet", output=tmp_path / "out" / name).manifest)
    one, other = manifests
    assert one.splits == other.splits
    assert (tmp_path / "out/here/train-00000.tfrecord").read_bytes() == (
        tmp_path / "out/there/train-00000.tfrecord"
    ).read_bytes()
    assert one.config_fingerprint != other.config_fingerprint


@pytest.mark.parametrize("published", [False, True])
def test_a_task_that_is_tried_again_when_all_is_published_is_no_failure(
    tmp_path: Path, published: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that lost a worker at the very end tries tasks again, when even the launcher's file is removed."""
    (tmp_path / "a.csv").write_text("a\n1\n")
    config = load_config(paths=[str(tmp_path / "a.csv")], flags={"output.path": ("-o", str(tmp_path / "out"))})
    prepared = prepare(conversion_of(config), WorkerProcesses(1))

    def run(_: LocalEngine, left: Prepared, __: WorkerProcesses) -> None:
        if published:
            with make_pipeline(1) as pipeline:
                add_steps(pipeline, left)
        else:
            (tmp_path / "out").rename(tmp_path / "seen by the launcher")
        try:
            TaskStager(left.spec.storage, left.spec.staging, 0, left.spec.stage_settings)
        finally:
            if not published:
                (tmp_path / "seen by the launcher").rename(tmp_path / "out")

    monkeypatch.setattr(LocalEngine, "run", run)
    with WorkerProcesses(1) as processes:
        if published:
            outcome = run_prepared(begun(prepared, LocalEngine()), LocalEngine(), None, processes)
            assert not isinstance(outcome, Submitted)
            assert outcome.manifest is not None
        else:
            with pytest.raises(UnseenError, match="does not see this folder as the launching machine does"):
                run_prepared(begun(prepared, LocalEngine()), LocalEngine(), None, processes)


def test_corrupt_files_fail_the_run_after_all_of_them_are_known(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(
            pa.table({"x": range(5000)}), path, row_group_size=1000, write_page_checksum=True, use_dictionary=False
        )
        if name in "bd":
            chunk = pq.ParquetFile(path).metadata.row_group(3).column(0)
            data = bytearray(path.read_bytes())
            data[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 1
            path.write_bytes(data)
    with pytest.raises(RunError) as caught:
        convert({"input": {"paths": [str(tmp_path / "*.parquet")]}}, output=tmp_path / "out")
    lines = str(caught.value).splitlines()
    assert [line.split(" is damaged")[0] for line in lines] == [
        f"{tmp_path}/{name}.parquet: row group 3 (rows from 3001)" for name in "bd"
    ]
    assert committed(tmp_path / "out") == []


IN_MEMORY: dict[str, Callable[[], Any]] = {
    "Arrow table": lambda: TABLE,
    "record batch": lambda: TABLE.to_batches()[0],
    "record batch reader": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=2)),
    "data frame": lambda: pd.DataFrame({"id": [1, 2, 3], "x": np.float32([0.5, 0, 1.5]), "s": ["a", "b", None]}),
}  # fmt: skip


class TestData:
    @pytest.mark.parametrize("case", IN_MEMORY)
    def test_data_in_memory_become_a_dataset(self, tmp_path: Path, case: str) -> None:
        summary = convert(data=IN_MEMORY[case](), output=tmp_path / "out", name="memory")
        assert (summary.manifest.name, summary.manifest.source.format) == ("memory", "memory")
        rows = rows_of(tmp_path / "out")
        assert [row["id"] for row in rows] == [1, 2, 3]
        assert [row["s"] for row in rows] == ["a", "b", None]
        assert [rows[0]["x"], rows[2]["x"]] == [0.5, 1.5]
        assert not (tmp_path / "out/.staging").exists()

    def test_a_dict_of_arrays_becomes_a_record_for_each_row(self, tmp_path: Path) -> None:
        data = {"id": np.arange(5), "pixels": np.arange(60, dtype=np.float32).reshape(5, 3, 4)}
        manifest = convert(data=data, output=tmp_path / "out", shard_size="64KiB").manifest
        assert manifest.counts.written == 5
        found = list(open_dataset(tmp_path / "out").arrays("train"))
        assert [int(row["id"]) for row in found] == list(range(5))
        assert np.array_equal(np.stack([row["pixels"] for row in found]), data["pixels"])

    def test_data_beside_an_input_or_without_an_output_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="input"):
            convert({"input": {"paths": ["a.csv"]}}, data=TABLE, output=tmp_path / "out")
        with pytest.raises(UsageError, match="output"):
            convert(data=TABLE)
        with pytest.raises(UsageError):
            convert(data=[1, 2, 3], output=tmp_path / "out")  # type: ignore[arg-type]
        assert not (tmp_path / "out/manifests").exists()


def _wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        os.sched_yield()


@pytest.mark.parametrize(
    ("workers", "number", "word"),
    [
        ("2", signal.SIGINT, "Interrupted"),
        *(
            pytest.param(*case, marks=pytest.mark.thorough("two commands for each signal and number of workers"))
            for case in (
                ("1", signal.SIGINT, "Interrupted"),
                ("1", signal.SIGTERM, "Terminated"),
                ("2", signal.SIGTERM, "Terminated"),
            )
        ),
    ],
)
def test_an_interrupt_ends_the_command_soon_and_the_next_run_works(
    tmp_path: Path, number: signal.Signals, word: str, workers: str
) -> None:
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(40_000_000, np.float32)), 100_000)
    pq.write_table(pa.table({"x": column}), tmp_path / "a.parquet", row_group_size=20)
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", "a.parquet", "-o", "out", "--workers", workers]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        _wait_for(lambda: any((tmp_path / "out").glob(".staging/*/parts/*/*.part")), process)
        process.send_signal(number)
        sent = time.monotonic()
        out, err = process.communicate(timeout=300)
        took = time.monotonic() - sent
    (run,) = (path for path in (tmp_path / "out/.staging").iterdir() if path.is_dir())
    assert (process.returncode, out) == (128 + number, "")
    lines = [line for line in err.splitlines() if line.startswith(word)]
    left = f"{word}: nothing was committed; the staged work is in out/.staging/{run.name} ("
    assert [line.startswith(left) and line.endswith("B); the same command resumes it") for line in lines] == [True]
    assert "Traceback" not in err
    assert took < 15 * slowness_by_the_clock()  # seconds, where nothing else runs
    assert committed(tmp_path / "out") == []
    summary = convert({"input": {"paths": [str(tmp_path / "a.parquet")]}}, output=tmp_path / "out", shard_size="1GiB")
    assert summary.manifest.counts.written == 400
