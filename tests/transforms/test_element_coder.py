"""Beam learns the size of a batch from its buffers, and still pickles batches that leave a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.coders import registry
from apache_beam.testing.util import assert_that, equal_to
from shardmill.transforms.elements import ELEMENTS, bytes_of
from shardmill.transforms.encode import EncodeExamples
from shardmill.transforms.format.batches.rows import Block, RowOrigin, Rows
from shardmill.transforms.read import ReadRows

pytestmark = pytest.mark.engine


def records_of(element: object) -> list[int]:
    return [frames.records for frames in element.splits.values()] if isinstance(element, Block) else []


def test_no_batch_is_pickled_to_learn_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,x\n2,y\n")

    def refuse(_: object, protocol: int) -> Any:
        raise AssertionError(f"a batch was pickled (protocol {protocol})")

    for kind in (Rows, Block):
        monkeypatch.setattr(kind, "__reduce_ex__", refuse)
    with beam.Pipeline("FnApiRunner") as pipeline:
        read = ReadRows(str(tmp_path / "a.csv"))
        blocks = pipeline | read | EncodeExamples(read.info)
        records = blocks | beam.FlatMap(records_of)
        assert_that(records, equal_to([2]))


def test_a_batch_that_leaves_a_process_comes_back_whole() -> None:
    coder = registry.get_coder(ELEMENTS)
    batch = Rows(0, 1, 2, pa.RecordBatch.from_pydict({"a": [1, 2]}), RowOrigin("a.csv", 1))
    again = coder.decode(coder.encode(batch))
    assert (again.ordinal, again.batch) == (1, batch.batch)
    assert coder.get_impl().estimate_size(batch) == bytes_of(batch) == batch.batch.nbytes
