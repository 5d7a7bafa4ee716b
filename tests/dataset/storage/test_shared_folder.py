"""A worker that does not see what the launcher wrote stages nothing, and says which folder it lacks."""

from __future__ import annotations

import pickle
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from shardmill.transforms.dataset.stage.spec import DatasetSpec
from shardmill.transforms.dataset.stage.task_stager import TaskStager
from shardmill.transforms.errors import UnseenError


def run_of(path: str, plan_file: str | None = "plan.json") -> DatasetSpec:
    return DatasetSpec(path=path, name="x", shard_size=1 << 16, run_id="7", plan_file=plan_file)


def stager_of(spec: DatasetSpec) -> TaskStager:
    return TaskStager(spec.storage, spec.staging, 0, spec.stage_settings)


def test_a_worker_without_the_launchers_file_makes_nothing_and_names_the_folder(tmp_path: Path) -> None:
    spec = run_of(str(tmp_path / "out"))
    with pytest.raises(UnseenError) as raised:
        stager_of(spec)
    assert str(raised.value) == (
        f"{tmp_path / 'out'}: the worker on {socket.gethostname()} does not see this folder as the launching machine "
        f"does: .staging/7/plan.json is not there. Write to a folder that all workers have under this path, on a file "
        f"system that they share, or to s3:// or gs://"
    )
    assert list(tmp_path.iterdir()) == []
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_a_worker_with_the_launchers_file_stages(tmp_path: Path) -> None:
    spec = run_of(str(tmp_path))
    spec.storage.replace(f"{spec.staging}/plan.json", b"{}")
    assert stager_of(spec).finish().records == 0


def test_where_the_launcher_wrote_no_file_none_is_looked_for(tmp_path: Path) -> None:
    assert stager_of(run_of(str(tmp_path), plan_file=None)).finish().records == 0


def test_in_a_store_nothing_is_asked() -> None:
    spec = run_of("/x")
    assert spec.proof == ".staging/7/plan.json"
    assert replace(spec, path="s3://bucket/x").proof is None
