"""How many requests a dataset of many shards takes: few for a thousand of them, but where each has to be asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from shardmill.transforms.dataset.commit.publish import finish_publish
from shardmill.transforms.dataset.integrity.garbage import collect_garbage
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.object_storage import ObjectStorage
from shardmill.transforms.format.manifest.manifest import Manifest
from shardmill.transforms.format.manifest.naming import staged_file
from shardmill.transforms.stores.object_store import ObjectStore

from ..dataset.conftest import _build_dataset
from .conftest import S3_TOO

SHARDS = 60

Bound = Callable[[int], AbstractContextManager[None]]


@pytest.fixture
def at_most(monkeypatch: pytest.MonkeyPatch) -> Bound:
    """Holds that what is done makes no more requests than a number."""
    made: list[str] = []
    lock, real = threading.Lock(), ObjectStore.retried

    def counted(self: ObjectStore, key: str, once: Callable[[], Any]) -> Any:
        with lock:
            made.append(key)
        return real(self, key, once)

    monkeypatch.setattr(ObjectStore, "retried", counted)

    @contextmanager
    def at_most(number: int) -> Any:
        made.clear()
        yield
        assert 0 < len(made) <= number, made

    return at_most


@pytest.fixture
def manifest(out: str, tmp_path: Path) -> Manifest:
    """A dataset of many shards, each of one record that fills it."""
    manifest = _build_dataset(tmp_path, {"train": [[bytes([i]) * 65_400] for i in range(SHARDS)]})
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        ObjectStorage(out).replace(path.relative_to(tmp_path).as_posix(), path.read_bytes())
    return manifest


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_requests_do_not_grow_with_the_shards(out: str, manifest: Manifest, at_most: Bound) -> None:
    shards, checksums = manifest.splits["train"].shards, SHARDS if out.startswith("s3") else 0  # S3 lists none
    with at_most(20):
        assert collect_garbage(out, older_than=0).files == 0
    with at_most(40 + checksums):
        report = verify_dataset(out, quick=True)
    assert (report.findings, report.shards) == ((), SHARDS)
    with at_most(10):
        assert open_dataset(out).shard_paths("train") == [f"{out}/{shard.path}" for shard in shards]
    with at_most(12):
        finish_publish(out)
    storage = ObjectStorage(out)
    for shard in shards:  # as a publisher leaves it that was killed before it removed them
        storage.place(shard.path, staged_file(manifest.run.staging, shard.path))
    with at_most(10):
        assert open_dataset(out).shard_paths("train") == [
            f"{out}/{staged_file(manifest.run.staging, shard.path)}" for shard in shards
        ]
    with at_most(40 + checksums):
        finish_publish(out)
    assert storage.list(".staging") == []
    for number in range(SHARDS):
        storage.place(shards[0].path, f"train-{number + 100:05d}.tfrecord")
    with at_most(30):
        assert collect_garbage(out, older_than=0, delete=True).files == SHARDS
    assert storage.list("") == ["manifest.json", "manifests", *(shard.path for shard in shards)]


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_records_by_their_numbers_take_at_most_two_requests_for_a_mebibyte(
    out: str, tmp_path: Path, at_most: Bound
) -> None:
    records = [bytes([number % 256]) * 10_000 for number in range(200)]
    _build_dataset(tmp_path, {"train": [records]})
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        ObjectStorage(out).replace(path.relative_to(tmp_path).as_posix(), path.read_bytes())
    dataset = open_dataset(out)["train"]
    dataset.record(0)  # where records begin is known from here on
    with at_most(2):
        assert [dataset.record(index) for index in (150, 7)] == [records[150], records[7]]
    with at_most(2):
        found = dataset._rows.access.take(range(50, 150, 3))  # a record of three, over 1 MB
    assert [*found] == records[50:150:3]
