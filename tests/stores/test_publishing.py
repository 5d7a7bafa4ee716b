"""Whoever reads or verifies a generation while it is published finds all of it, wherever it lies by then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest
from shardmill.transforms.dataset.commit.publish import finish_publish
from shardmill.transforms.dataset.integrity import verify
from shardmill.transforms.dataset.integrity import verify as verify_folder
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.integrity.verify_shard import ShardCheck, ShardFacts, verify_size
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.object_storage import storage_at
from shardmill.transforms.stores import object_store
from shardmill.transforms.stores.object_store import read_ahead

from .generations import commit


@pytest.mark.parametrize("moment", ["shards", "sizes", "lists"])
def test_verify_finds_all_of_a_generation_that_is_published_meanwhile(
    place: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards = len(commit(place, 1, rows=1500).manifest.splits["train"].shards)

    def publishing(function: Callable[..., Any], number: int) -> Callable[..., Any]:
        """Publish before a call of a function, and return what it made of what it was told before."""
        calls = iter(range(10**9))

        def call(*args: Any) -> Any:
            if next(calls) == number:
                finish_publish(place)
            return function(*args)

        return call

    def run(check_shard: Callable[[ShardCheck], ShardFacts], checks: Iterable[ShardCheck]) -> Iterator[ShardFacts]:
        checks = list(checks)
        assert all(check.file.startswith(".staging/") for check in checks)
        yield from map(publishing(check_shard, 1 if moment == "shards" else -1), checks)

    if moment == "sizes":
        monkeypatch.setattr(verify, "verify_size", publishing(verify_size, 1))
    if moment == "lists":
        monkeypatch.setattr(verify_folder, "_guarded", publishing(verify_folder._guarded, 0))
    report = verify_dataset(place, quick=moment == "sizes", run=run)
    assert (report.findings, report.notes, report.shards, report.records) == ((), (), shards, 4500)
    assert storage_at(place).list(".staging") == []


def test_a_reader_whose_shard_is_published_in_mid_read_goes_on_with_the_record_that_is_next(
    out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(out, 1, rows=60_000, shard_size=4 << 20)
    monkeypatch.setattr(object_store, "read_ahead", partial(read_ahead, piece_bytes=256 << 10, ahead=0))
    records = open_dataset(out).records("train")
    read = [next(records)]
    finish_publish(out)
    assert storage_at(out).list(".staging") == []
    read += records
    assert len(read) == 180_000
    assert read == list(open_dataset(out).records("train"))
