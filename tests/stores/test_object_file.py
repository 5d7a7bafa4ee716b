"""An object reads as a file does: ranges, never the whole, and of one version."""

from __future__ import annotations

import io
import os
import random

import pytest
from shardmill.transforms.errors import SourceError
from shardmill.transforms.inputs.contract.source import SourceEntry
from shardmill.transforms.inputs.files.listing import list_entries
from shardmill.transforms.inputs.files.open_file import FetchLimits, ObjectFile

from .conftest import Bucket

KIB = 1 << 10


SMALL = FetchLimits(4 * KIB, 64, 64, 64 * KIB, 32 * KIB, 40)
"""Blocks and windows are a thousandth of what they are."""


def put(bucket: Bucket, data: bytes) -> SourceEntry:
    bucket.store.put("in/x.bin", data)
    (entry,) = list_entries([f"{bucket.url}/in/x.bin"], "/", ("",)).entries
    bucket.gateway.requests.clear()
    return entry


def test_any_reading_gives_what_a_file_gives(bucket: Bucket) -> None:
    rng = random.Random(5)
    data = rng.randbytes(40_000)
    entry = put(bucket, data)
    for _ in range(25):
        told = io.BytesIO(data)
        with ObjectFile(entry, SMALL) as file:
            assert file.size == len(data)
            for _ in range(rng.randrange(15)):
                action = rng.randrange(6)
                size, at = int(rng.expovariate(1 / 2000)), rng.randrange(len(data) + 10)
                if action == 0:
                    edges = sorted(rng.randrange(len(data) + 1) for _ in range(2 * rng.randrange(1, 5)))
                    file.expect(zip(edges[::2], edges[1::2], strict=True), in_turn=rng.random() < 0.5)
                elif action == 1:
                    whence = rng.choice([(at, 0), (-min(at, len(data)), 2)])
                    assert file.seek(*whence) == told.seek(*whence)
                elif action == 2:
                    assert file.read_at(size, at) == data[at : at + size]
                elif action == 3:
                    buffer = bytearray(size)
                    count = file.readinto(memoryview(buffer))
                    assert bytes(buffer[:count]) == told.read(size)
                else:
                    assert file.read(size) == told.read(size)
                assert file.tell() == told.tell()
            assert file.read() == told.read()


def test_what_is_announced_comes_in_blocks_each_once_and_ahead(bucket: Bucket) -> None:
    data = os.urandom(1000 * KIB)
    with ObjectFile(put(bucket, data), FetchLimits(block=64 * KIB)) as file:
        file.expect([(100, 900 * KIB)])
        file.seek(100)
        assert b"".join(iter(lambda: file.read(10 * KIB) if file.tell() < 900 * KIB else b"", b""))[: 899 * KIB]
    sizes = sorted(bucket.gateway.sizes)
    assert len(sizes) == 16  # 15 blocks, and a window where the reading went past what was announced
    assert sizes[-1] == 64 * KIB
    assert bucket.gateway.most_at_once in (2, 3)


def test_little_is_fetched_where_little_is_read(bucket: Bucket) -> None:
    with ObjectFile(put(bucket, os.urandom(9_000_000))) as file:
        for _ in range(3):
            file.seek(0)
            file.read(4)
            file.seek(-8, io.SEEK_END)
            file.read(8)
            file.seek(-30_000, io.SEEK_END)
            file.read(29_000)
        assert len(bucket.gateway.reads()) == 2
        assert sum(bucket.gateway.sizes) == 128 * KIB
        bucket.gateway.sizes.clear()
        file.seek(1 << 20)
        while file.tell() < 8 << 20:  # nobody announced it, but it goes on and on
            file.read(8 * KIB)
    assert len(bucket.gateway.sizes) < 10
    assert max(bucket.gateway.sizes) <= FetchLimits().block


def test_columns_that_are_read_in_turn_are_fetched_once(bucket: Bucket) -> None:
    data = os.urandom(500 * KIB)
    columns = [(start * KIB, (start + 60) * KIB) for start in range(0, 500, 100)]
    with ObjectFile(put(bucket, data), FetchLimits(kept=64 * KIB, smallest_block=KIB, near=0)) as file:
        file.expect(columns, in_turn=True)
        for step in range(0, 60 * KIB, 3 * KIB):
            for start, _ in columns:
                assert file.read_at(3 * KIB, start + step) == data[start + step : start + step + 3 * KIB]
    assert sum(bucket.gateway.sizes) == 5 * 60 * KIB
    assert len({request.headers["range"] for request in bucket.gateway.reads()}) == len(bucket.gateway.reads())


@pytest.mark.parametrize("announced", [False, True])
def test_an_object_that_was_replaced_or_removed_is_not_read(bucket: Bucket, announced: bool) -> None:
    entry = put(bucket, bytes(9_000_000))
    with ObjectFile(entry, FetchLimits(block=1 << 20)) as file:
        if announced:
            file.expect([(0, file.size)])
        file.read(1000)
        bucket.store.put("in/x.bin", os.urandom(9_000_000))
        with pytest.raises(SourceError, match=r"/in/x\.bin: changed while it was read: it was replaced after it"):
            file.read()
    with ObjectFile(entry) as file:
        bucket.store.delete(["in/x.bin"])
        with pytest.raises(SourceError, match=r"/in/x\.bin: cannot be read any more: there is no such object; run"):
            file.read(1)


def test_a_place_before_the_start_is_none(bucket: Bucket) -> None:
    with ObjectFile(put(bucket, b"abc")) as file, pytest.raises(OSError, match="Invalid argument"):
        file.seek(-4, io.SEEK_END)
