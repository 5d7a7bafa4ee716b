"""A file system that is full, or can only be read, is told in one line; given room, the same command ends its work.

It is a real one, a tmpfs, which the test mounts where only it sees it. That takes root, or a user namespace.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shardmill.pipelines import convert

pytestmark = pytest.mark.engine

Program = Callable[..., dict[str, Any]]
Say = Callable[[str, str], None]

_WAYS = (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount"))


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Return the words by which a command may mount."""
    folder = tmp_path_factory.mktemp("mount")
    said = []
    for way in _WAYS:
        try:
            tried = subprocess.run(
                [*way, "mount", "-t", "tmpfs", "none", str(folder)], capture_output=True, text=True, check=False
            )
        except FileNotFoundError as error:
            tried = subprocess.CompletedProcess(way, 127, "", str(error))
        if tried.returncode == 0:
            return way
        said.append(tried.stderr.strip())
    reason = f"no tmpfs can be mounted here, neither as root nor in a user namespace: {'; '.join(said)}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        pytest.param("create", 0, 1, marks=pytest.mark.thorough("one command is in the quick tier")),
        ("append", 1, 2),
        pytest.param("merge", 0, 1, marks=pytest.mark.thorough("one command is in the quick tier")),
    ],
)
def test_a_full_tmpfs_ends_a_command_with_one_line_and_with_room_it_converges(
    program: Program, namespace: tuple[str, ...], say: Say, command: str, before: int, after: int
) -> None:
    report = program("full", command, prefix=namespace)
    sizes = report["sizes"]
    full, enough = sizes[:-1], sizes[-1]
    assert len(full) >= 4
    assert (enough["code"], enough["generation"], enough["problems"]) == (0, after, [])
    for size in full:
        assert size["problems"] == [], size
        assert size["code"] in (1, 2), size
        (line,) = size["err"].splitlines()[:1]
        assert line.startswith("error: "), size
        assert "No space left on device" in line
        assert size["generation"] in (before, after)
        assert ("nothing was committed" in line) == (size["generation"] == before) or size["code"] == 2
    say("faults", f"full tmpfs: {command} at {len(full)} sizes too small, from {full[0]['room']} bytes on")


@pytest.mark.parametrize(("command", "before"), [("create", 0), ("append", 1), ("merge", 0)])
def test_a_file_system_that_can_only_be_read_is_told_before_a_row_is(
    program: Program, namespace: tuple[str, ...], command: str, before: int
) -> None:
    ended = program("full", command, "read-only", prefix=namespace)["read_only"]
    assert (ended["code"], ended["generation"], ended["problems"]) == (2, before, [])
    assert "Read-only file system; choose another folder (-o)" in ended["err"]


@pytest.mark.thorough("two commands load the engine; pipelines/outcomes/test_disk_errors.py has the engine")
def test_the_engine_and_worker_processes_tell_a_full_disk_too(namespace: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"{i},{'x' * 500}\n" for i in range(4000)))
    (tmp_path / "out").mkdir()
    convert = f"{sys.executable} -m shardmill.pipelines convert a.csv -o out --workers 2 --set runner.processes="
    for processes in ("false", "true"):
        look = "code=$?; find out -name '*.tfrecord*' >&2; exit $code"
        script = f"mount -t tmpfs -o size=1m none out && {convert}{processes}; {look}"
        ended = subprocess.run(
            [*namespace, "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
        assert ended.returncode == 1, ended.stderr
        assert len(errors) == 1
        assert errors[0].startswith("error: No space left on device: out/.staging/")
        assert "nothing was committed; the staged work is in out/.staging/" in errors[0]
        assert "Traceback" not in ended.stderr
        assert not [line for line in ended.stderr.splitlines() if line.startswith("out/") and ".staging" not in line]


FILLING = {
    "export out -o room/rows.parquet": "room/rows.parquet",
    "export out -o room/rows.arrow": "room/rows.arrow",
    "export out -o room/rows.jsonl": "room/rows.jsonl",
    "export out -o room/rows.csv": "room/rows.csv",
    "export pictures -o room/all": "room/.all.",
    "report out -o room/report.html": "room/report.html",
}


@pytest.mark.thorough("six commands load their libraries")
def test_a_full_disk_is_told_by_export_and_report_with_the_file_and_leaves_nothing_there(
    namespace: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"{i},{i * 7919 % 10007}{'x' * 40}\n" for i in range(5000)))
    (tmp_path / "pets/cat").mkdir(parents=True)
    for number in range(4):
        noise = np.random.default_rng(number).integers(0, 256, (60, 80, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / f"pets/cat/{number}.png")
    for source, out in (("a.csv", "out"), ("pets", "pictures")):
        convert({"input": {"paths": [str(tmp_path / source)]}}, output=tmp_path / out)
    (tmp_path / "room").mkdir()
    shardmill = f"{sys.executable} -m shardmill.pipelines"
    lines = [f"{shardmill} {command} -q; echo $? $(find room -mindepth 1) >&2" for command in FILLING]
    script = "\n".join(["mount -t tmpfs -o size=8k none room", *lines])
    ended = subprocess.run([*namespace, "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    told = ended.stderr.splitlines()
    assert told[1::2] == ["1"] * len(FILLING), ended.stderr
    for line, path in zip(told[::2], FILLING.values(), strict=True):
        assert line.startswith(f"error: No space left on device: {path}"), line
        assert line.endswith("; make room there, and run the command again")
