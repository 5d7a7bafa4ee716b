"""A real Flink: fetched once, embedded in a run or as a cluster of this machine.

Where Maven or Java is missing, these tests are skipped with the reason; in CI (`SHARDMILL_CI=1`) they fail.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from shardmill.pipelines.engines.flink.cluster import Cluster

from ..command_line import lacking
from ..stores import servers
from .running import BlindPool, shardmill, worker_pool


@pytest.fixture
def blind_pool(tmp_path: Path) -> Iterator[BlindPool]:
    """Start a worker pool that sees an empty folder where this process has the one it gives: another machine's view."""
    unshared = ["unshare", "--mount", "--propagation", "private"]
    if shutil.which("unshare") is None or subprocess.run([*unshared, "true"], check=False).returncode != 0:
        lacking("no mount namespace can be made (root can): a folder that workers do not see is not tested")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    hide = [*unshared, "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden)]
    with worker_pool(tmp_path / "pool.log", *hide) as (address, process):
        yield BlindPool(address, hidden, Path(f"/proc/{process.pid}/root{hidden}"))


@pytest.fixture(scope="module")
def gcs_environment(gcs_endpoint: str) -> Iterator[None]:
    """Point the clients of Google Cloud Storage, here and in every process that is started, to its server."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in servers.environment("gs", gcs_endpoint).items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def cluster(flink: None, gcs_environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster of two task managers for the tests of a module; when they are done nothing of it is left."""
    folder = tmp_path_factory.mktemp("cluster") / "flink"
    where = ("--folder", str(folder))
    up = shardmill(
        "flink", "up", "--task-managers", "2", "--port", "0", "--pool-port", "0", *where, "--json", cwd=Path.cwd()
    )
    cluster = Cluster.from_json(json.loads(up.stdout))
    yield cluster
    shardmill("flink", "down", *where, cwd=Path.cwd())
    assert not [role for role, process in cluster.processes.items() if process.is_alive()]
