"""The first thing that a new user runs: what it costs, and that it says what it should."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ..cpu_time import cpu_of_imports, cpu_of_python, slowness

pytestmark = pytest.mark.engine

REPO = Path(__file__).parents[3]
CPU_SECONDS = 6.0
TIMES_THE_IMPORTS = 4.0
"""Beam's import is most of a short run, once in the parent and once in the two workers: 1.6 to 1.9 times in all."""


@pytest.mark.thorough("nine processes are timed")
def test_the_quickstart_takes_its_cpu_time_and_little_more_than_the_imports_of_its_processes(tmp_path: Path) -> None:
    spent, imports, slow = [], [], []
    for turn in range(3):  # the least of three against the most: other processes take caches and turns
        folder = tmp_path / str(turn)
        shutil.copytree(REPO / "configs", folder / "configs")
        args = ["-m", "shardmill.pipelines", "convert", "configs/quickstart.yaml"]
        seconds, done = cpu_of_python(*args, cwd=folder)
        said = [line for line in done.stderr.splitlines() if not line.startswith("Converting")]  # if it is slow
        assert (done.returncode, said) == (0, [])
        spent.append(seconds)
        imports.append(cpu_of_imports("apache_beam, pyarrow, pydantic, rich, typer"))
        slow.append(slowness())
    assert min(spent) < CPU_SECONDS * max(slow)
    assert min(spent) < TIMES_THE_IMPORTS * max(imports)


PROGRESS = ("Planning ", "Converting ", "Finishing ")
"""How the lines begin that come every ten seconds: only a very busy machine sees one here."""


def test_the_quickstart_says_what_it_wrote_what_it_rejected_and_how_to_read_it(tmp_path: Path) -> None:
    shutil.copytree(REPO / "configs", tmp_path / "configs")
    _, done = cpu_of_python("-m", "shardmill.pipelines", "convert", "configs/quickstart.yaml", cwd=tmp_path)
    told = [line for line in done.stderr.splitlines() if not line.startswith(PROGRESS)]
    assert (done.returncode, told) == (0, [])
    assert "Wrote out/quickstart: 24 records" in done.stdout
    assert "Rejected 1 row" in done.stdout
    assert "TRUNCATED" in done.stdout
    assert "Read it:" in done.stdout
