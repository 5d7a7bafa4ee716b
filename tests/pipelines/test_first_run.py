"""The first thing that a new user runs: what it costs, and that it says what it should."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).parent.parent.parent
CPU_SECONDS = 6.0


def test_the_quickstart_runs_start_to_finish_within_its_cpu_time(tmp_path: Path) -> None:
    shutil.copytree(REPO / "configs", tmp_path / "configs")
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", "configs/quickstart.yaml"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (done.returncode, done.stderr) == (0, "")
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < CPU_SECONDS
    assert "Wrote out/quickstart: 24 records" in done.stdout
    assert "Rejected 1 row" in done.stdout
    assert "TRUNCATED" in done.stdout
    assert "Read it:" in done.stdout
