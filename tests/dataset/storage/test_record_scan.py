from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from shardmill.transforms.dataset.storage.direct_file import RECYCLED_BYTES, address_of, recycled_array
from shardmill.transforms.dataset.storage.record_file import scan_file, write_records
from shardmill.transforms.format.tfrecord.scan import Damage

RECORDS = [bytes([i % 251]) * (i * 7 % 5000) for i in range(2000)] + [b"larger than a piece" * 200_000, b"", b"last"]


def fail(damage: Damage) -> None:
    raise AssertionError(damage)


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("origin", [0, 1, 4095, -70_001])
def test_records_lie_in_memory_at_the_places_in_their_pages_that_they_have_from_the_origin(
    tmp_path: Path, origin: int, compression: str
) -> None:
    path = tmp_path / "records"
    write_records(path, RECORDS, compression)  # type: ignore[arg-type]
    found: list[bytes] = []
    with path.open("rb", buffering=0) as file:
        for run in scan_file(file, path.stat().st_size, on_damage=fail, page_origin=origin):
            payloads = run.payloads
            addresses = payloads.data.__array_interface__["data"][0] + payloads.starts - 12
            np.testing.assert_array_equal((addresses - (run.offsets - origin)) % 4096, 0)
            found += payloads
    assert found == RECORDS


def test_what_is_there_from_a_record_on_is_the_rest_with_its_numbers_and_offsets(tmp_path: Path) -> None:
    path = tmp_path / "records"
    write_records(path, RECORDS)
    with path.open("rb", buffering=0) as file:
        runs = list(scan_file(file, path.stat().st_size, on_damage=fail))
    assert len(runs) > 2
    offsets = np.concatenate([run.offsets for run in runs])
    for record in (0, 1, len(runs[0]) - 1, len(runs[0]), len(runs[0]) + 1, len(RECORDS) - 1, len(RECORDS)):
        rest = [new for run in runs if len(new := run.since(record))]
        assert [payload for run in rest for payload in run.payloads] == RECORDS[record:]
        assert [run.first_record + i for run in rest for i in range(len(run))] == [*range(record, len(RECORDS))]
        np.testing.assert_array_equal(np.concatenate([run.offsets for run in rest] or [offsets[:0]]), offsets[record:])
        assert sum(len(run.crcs) for run in rest) == len(RECORDS) - record


def test_memory_is_used_again_when_nothing_refers_to_it_and_not_before() -> None:
    first = recycled_array(100)
    kept = pa.py_buffer(memoryview(first)[10:20])
    address = address_of(first)
    first[:] = 7
    del first
    others = [recycled_array(RECYCLED_BYTES) for _ in range(10)]
    assert all(address_of(other) != address for other in others)
    for other in others:
        other[:] = 1
    assert kept.to_pybytes() == bytes([7] * 10)
    del kept
    assert address_of(recycled_array(50)) == address


@pytest.mark.parametrize("size", [0, 1, RECYCLED_BYTES, RECYCLED_BYTES + 1])
def test_an_array_begins_at_a_page_border(size: int) -> None:
    arrays = [recycled_array(size) for _ in range(3)]
    assert [len(array) for array in arrays] == [size] * 3
    assert [address_of(array) % 4096 for array in arrays if size] == [0] * 3 * bool(size)
