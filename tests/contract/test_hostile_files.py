"""Hostile files of every format end as the table of limits says, each in little memory and time."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import apache_beam  # noqa: F401 - once, before the forks
import pytest
from shardmill.pipelines.cli import main

from .hostile_files import stating_too_much

LIMIT = 600e6
SECONDS = 30


def convert(folder: Path, name: str) -> int:
    """Convert a file in a fork of this process, whose output and peak are left beside it; return its exit code."""
    child = os.fork()
    if not child:
        code = 99
        try:
            os.chdir(folder)
            resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
            said = os.open("said", os.O_WRONLY | os.O_CREAT)
            os.dup2(said, 1)
            os.dup2(said, 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            sys.argv = ["shardmill", "convert", name, "-o", "out", "-q", "--workers", "2"]
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            Path("peak").write_text(Path("/proc/self/status").read_text())
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def convert_all(root: Path) -> list[tuple[object, ...]]:
    """Convert each file in a fork of this process, and return what ended otherwise than it should."""
    wrong: list[tuple[object, ...]] = []
    for number, hostile in enumerate(stating_too_much()):
        folder = root / str(number)
        (folder / hostile.name).parent.mkdir(parents=True)
        (folder / hostile.name).write_bytes(hostile.data)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        code = convert(folder, hostile.name)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        said = (folder / "said").read_text()
        status = (folder / "peak").read_text() if (folder / "peak").exists() else ""
        peak = int(status.partition("VmHWM:")[2].split()[0]) << 10 if status else 0
        left = {path.name for path in folder.iterdir()} - {"said", "peak", "out", hostile.name.partition("/")[0]}
        fault = "Traceback" in said or "fault of Shardmill" in said or code not in range(5)
        expected = hostile.says is None or (hostile.says in said and code != 0)
        if fault or left or not expected or not 0 < peak < LIMIT or seconds > SECONDS:
            wrong.append((hostile.name, code, peak, seconds, sorted(left), said[-400:]))
    return wrong


@pytest.mark.thorough("17 files are converted, each in a process of its own")
def test_a_file_that_states_too_much_ends_as_its_bound_says_in_little_memory_and_time(tmp_path: Path) -> None:
    program = (  # a fork begins with the memory of its parent, so that this one is new
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from tests.contract.test_hostile_files import convert_all\n"
        "print(*convert_all(Path(sys.argv[2])), sep='\\n', end='')"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parents[2]), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stdout + ended.stderr
