"""Every reader of bytes from outside, against thousands of hostile inputs: no crash, no hang, no bomb.

A target's inputs are mutations of sound ones (`mutate.py`), each made from the seed, the target and its number alone.
They are fed to it in child processes (`child.py`) that may take 1 GiB more of memory than an idle one, and 2 seconds of
processor time for each: an allocation by a number that lies fails there, and is a failure here, and so is every error
that is not ours, every process that is ended by a signal, and every broken invariant of a target.

    SHARDMILL_FUZZ_INPUTS=20000 uv run pytest tests/fuzz -m ""       more inputs than the 250 of CI
    SHARDMILL_FUZZ_SEED=7 ...                                  other ones
    SHARDMILL_FUZZ_FIRST=20000 ...                             those from number 20,000 on

`campaign.py` feeds 100,000 of each, in pieces.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # as for the children, which are scripts

import campaign  # noqa: E402
import feed  # noqa: E402

INPUTS = int(os.environ.get("SHARDMILL_FUZZ_INPUTS", "250"))
FEW_INPUTS = 200
"""Of the quick tier: the first ones of the many."""

QUICK_TARGETS = ("tfrecord", "manifest", "csv", "parquet", "image")

SEED = int(os.environ.get("SHARDMILL_FUZZ_SEED", str(feed.SEED)))
FIRST = int(os.environ.get("SHARDMILL_FUZZ_FIRST", "0"))
CHILD_INPUTS = 10_000
"""In one process: what leaks a little is seen, and a failure does not lose hours."""


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        *(pytest.param(name, FEW_INPUTS, id=name) for name in QUICK_TARGETS),
        *(
            pytest.param(name, INPUTS, id=f"{name}-all", marks=pytest.mark.thorough("250 inputs for each target"))
            for name in feed.TARGETS
        ),
    ],
)
def test_hostile_input_is_read_or_refused_in_bounded_time_and_memory(
    name: str, inputs: int, tmp_path: Path, say: Callable[[str, str], None]
) -> None:
    started = time.monotonic()
    report = feed.total(
        [
            feed.feed(name, SEED, first, min(CHILD_INPUTS, FIRST + inputs - first), tmp_path / "progress")
            for first in range(FIRST, FIRST + inputs, CHILD_INPUTS)
        ]
    )
    assert report["peak_bytes"] < 1 << 30
    assert len(report["outcomes"]) > 1, f"every input ended alike: {report['outcomes']}"
    say(
        "fuzz",
        f"{name}: {inputs:,} inputs from {FIRST:,}, seed {SEED}, {time.monotonic() - started:.0f} s; slowest "
        f"{report['slowest'] * 1000:.0f} ms, {report['peak_bytes'] >> 20} MiB at most; {report['outcomes']}",
    )


def test_a_campaign_goes_on_where_it_was_left_and_tells_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fed: list[tuple[str, int, int]] = []
    report = {"outcomes": {"read": 5}, "slowest": 0.25, "peak_bytes": 3 << 20}

    def note(name: str, seed: int, first: int, count: int, progress: Path) -> dict[str, object]:
        fed.append((name, first, count))
        if (name, first, len(fed)) == ("gzip", 5, 5):
            raise feed.FaultError("gzip: input 7 of seed 1: it broke")
        return report

    monkeypatch.setattr(campaign, "feed", note)
    arguments = ["tfrecord", "gzip", "image", "--inputs", "12", "--seed", "1", "--jobs", "1"]
    main = partial(campaign.main, here=tmp_path, piece_inputs=5)
    assert main(arguments) == 1
    assert capsys.readouterr().err == "gzip: input 7 of seed 1: it broke\n"
    assert fed == [("tfrecord", 0, 5), ("tfrecord", 5, 5), ("tfrecord", 10, 2), ("gzip", 0, 5), ("gzip", 5, 5)]
    fed.clear()
    assert main([*arguments, "--seconds", "-1"]) == 0  # the time is up
    assert fed == []
    assert main(arguments) == 0
    assert fed == [("gzip", 5, 5), ("gzip", 10, 2), ("image", 0, 5), ("image", 5, 5), ("image", 10, 2)]
    assert "| `gzip` | 12 | 0 | 250 ms | 3 MiB | read 15 |" in capsys.readouterr().out


def test_a_fault_of_each_kind_is_seen(tmp_path: Path) -> None:
    (tmp_path / "targets.py").write_text(
        "import os, time\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Target:\n make: object\n check: object\n"
        "def check(data):\n"
        " if data == b'bomb': bytearray(2 << 30)\n"
        " if data == b'hang':\n  start = time.process_time()\n  while time.process_time() < start + 2.1: pass\n"
        " if data == b'crash': os.abort()\n"
        " if data == b'wrong': raise KeyError(data)\n"
        " return 'fine'\n"
        "def target(name):\n"
        " return Target(lambda rng, calls=[]: calls.append(1) or (name.encode() if len(calls) > 22 else b''), check)\n"
    )
    (tmp_path / "child.py").write_text((HERE / "child.py").read_text())
    for kind, told in (("bomb", "MemoryError"), ("hang", "over 2.0 s"), ("wrong", "KeyError"), ("crash", "")):
        (tmp_path / "progress").write_bytes(bytes(8))
        command = [sys.executable, str(tmp_path / "child.py"), kind, "1", "0", "5", str(tmp_path / "progress")]
        done = subprocess.run(command, check=False, capture_output=True, timeout=300)
        assert done.returncode
        assert int.from_bytes((tmp_path / "progress").read_bytes(), "little") == 2
        if told:
            report = json.loads(done.stdout.decode().splitlines()[-1])
            assert report["failed"] == 2
            assert told in report["error"]
