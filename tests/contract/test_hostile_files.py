"""Hostile files of every format end as the table of limits says, each in little memory and time."""

from __future__ import annotations

import importlib
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import apache_beam  # noqa: F401 - once, before the forks
import pytest
from shardmill.pipelines.cli import main

from .hostile.archives import hostile_archives
from .hostile.hostile_file import Hostile
from .hostile.pictures import hostile_pictures
from .hostile.records import hostile_records
from .hostile.tables import hostile_tables

pytestmark = pytest.mark.engine

LIMIT = 600e6
SECONDS = 30
PACKAGES = ("shardmill.", "apache_beam.", "pyarrow.", "IPython")


def hostile_files() -> Iterator[Hostile]:
    yield from hostile_tables()
    yield from hostile_archives()
    yield from hostile_pictures()
    yield from hostile_records()


def in_fork(work: object, *arguments: object) -> int:
    """Call a function in a fork of this process, and return the exit code of that."""
    child = os.fork()
    if not child:
        code = 99
        try:
            work(*arguments)  # type: ignore[operator]
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            own = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
            Path("peak").write_text(str(1024 * (int(own) + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)))
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def convert(folder: Path, name: str, options: Sequence[str] = ()) -> None:
    """Convert a file; what is said is left beside it."""
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
    said = os.open("said", os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    sys.argv = ["shardmill", "convert", name, "-o", "out", "-q", "--workers", "2", *options]
    main()


def write_all(root: Path) -> None:
    for number, hostile in enumerate(hostile_files()):
        (root / str(number)).mkdir(parents=True)
        hostile.write(root / str(number))


def import_modules(root: Path) -> None:
    """Import what a conversion imports, so that forks need not."""

    def convert_one() -> None:
        try:
            convert(root / "first", "a.csv")
        finally:
            Path("modules").write_text("\n".join(sys.modules))

    (root / "first").mkdir()
    (root / "first" / "a.csv").write_text("a,b\n1,2\n")
    assert in_fork(convert_one) == 0
    for name in (root / "first" / "modules").read_text().splitlines():
        if name.startswith(PACKAGES):
            importlib.import_module(name)


def convert_all(root: Path) -> list[tuple[object, ...]]:
    """Convert each file in a fork of this process, and return what ended otherwise than it should."""
    wrong: list[tuple[object, ...]] = []
    met = set[str]()
    os.chdir(root)
    assert in_fork(write_all, root) == 0
    import_modules(root)
    for number, hostile in enumerate(hostile_files()):
        folder = root / str(number)
        before = {path.relative_to(folder) for path in folder.rglob("*")}
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        # of the sound files of a kind one is converted, and the others are planned
        suffix = hostile.name.partition(".")[2]
        planned = ("--dry-run",) if hostile.code == 0 and suffix in met else ()
        met |= {suffix} if hostile.code == 0 else set()
        code = in_fork(convert, folder, hostile.name, (*hostile.options, *planned))
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
        said = (folder / "said").read_text(errors="replace")
        peak = int((folder / "peak").read_text()) if (folder / "peak").exists() else 0
        new = {path.relative_to(folder) for path in folder.rglob("*")} - before
        left = sorted(str(path) for path in new if path.parts[0] not in ("said", "peak", "out"))
        fault = "Traceback" in said or "fault of Shardmill" in said
        if (
            fault
            or left
            or code != hostile.code
            or hostile.says not in said
            or not 0 < peak < LIMIT
            or seconds > SECONDS
        ):
            wrong.append((hostile.name, code, hostile.code, hostile.says, peak, seconds, left, said[-400:]))
    outside = {path.name for path in root.iterdir()} - {"first", "peak", *map(str, range(number + 1))}
    return [*wrong, ("written outside", outside)] if outside else wrong


@pytest.mark.thorough("over 200 files are converted, each in a process of its own")
def test_a_file_that_states_too_much_ends_as_its_bound_says_in_little_memory_and_time(tmp_path: Path) -> None:
    program = (  # a fork begins with the memory of its parent, so that this one is new
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from tests.contract.test_hostile_files import convert_all\n"
        "print(*convert_all(Path(sys.argv[2])), sep='\\n', end='')"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parents[2]), str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stdout + ended.stderr
