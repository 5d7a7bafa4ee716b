from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from shardmill.transforms.dataset.stage.run_lock import hold_run, hold_sidecars, is_held
from shardmill.transforms.dataset.stage.spec import DatasetSpec
from shardmill.transforms.errors import TargetError

HOLDER = """
import sys
from shardmill.transforms.dataset.stage.run_lock import hold_run
from shardmill.transforms.dataset.stage.spec import DatasetSpec
with hold_run(DatasetSpec(path=sys.argv[1], name="x", shard_size=65536, run_id="a" * 16)):
    print("held", flush=True)
    sys.stdin.read()
"""


def spec_of(root: Path, run_id: str = "a" * 16) -> DatasetSpec:
    return DatasetSpec(path=str(root / "out"), name="x", shard_size=65536, run_id=run_id)


def test_a_run_that_another_process_holds_is_refused_until_that_process_is_gone(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, spec.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(TargetError, match="another process is converting the same source"), hold_run(spec):
            pass
        with hold_run(spec_of(tmp_path, "b" * 16)):  # another run is no matter of this one
            pass
        holder.kill()
        holder.wait()
    with hold_run(spec):
        assert os.listdir(tmp_path / "out/.staging") == ["a" * 16 + ".lock"]


def test_a_run_that_ended_leaves_no_lock(tmp_path: Path) -> None:
    for _ in range(2):
        with hold_run(spec_of(tmp_path)):
            pass
        assert os.listdir(tmp_path / "out") == []


def test_a_lock_that_its_holder_removed_is_not_taken_for_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    spec = spec_of(tmp_path)
    lock = tmp_path / "out/.staging" / ("a" * 16 + ".lock")
    real = fcntl.flock
    calls: list[int] = []

    def late(file: int, how: int) -> None:
        if not calls:
            lock.unlink()  # the holder ends between our open and our lock
        calls.append(file)
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with hold_run(spec):
        assert len(calls) == 2
        assert lock.exists()


def test_who_asks_whether_a_run_is_held_is_never_taken_for_its_holder(tmp_path: Path) -> None:
    """Commands ask this of each other's runs when they end, at any moment."""
    spec = spec_of(tmp_path)
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            is_held(spec.storage, spec.run_id)

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        for _ in range(300):
            with hold_run(spec):
                assert is_held(spec.storage, spec.run_id)
    finally:
        ended.set()
        asker.join()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"mine")
    with pytest.raises(TargetError, match="cannot be written"), hold_run(spec_of(tmp_path)):
        pass


@pytest.mark.parametrize("lock", ["sidecars.lock", f"{'a' * 16}.lock"])
def test_a_lock_that_is_a_link_is_refused_and_makes_no_file_elsewhere(tmp_path: Path, lock: str) -> None:
    spec = spec_of(tmp_path)
    (tmp_path / "out/.staging").mkdir(parents=True)
    (tmp_path / "out/.staging" / lock).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TargetError, match=f"{lock}: a link"), hold_run(spec), hold_sidecars(spec.storage):
        pass
    assert not is_held(spec.storage, spec.run_id)
    assert not (tmp_path / "elsewhere").exists()
