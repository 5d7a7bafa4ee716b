"""`shardmill index`: indexes of files that are there, of a dataset or of anyone."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.dataset.integrity.garbage import collect_garbage
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.count_records import make_indexes
from shardmill.transforms.dataset.storage import record_file
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import DamageError, TargetError

ROWS = 3000


def without_indexes(folder: Path) -> list[str]:
    """Return the shards of a dataset that was made without indexes."""
    data = pa.table({"id": range(ROWS), "text": ["x" * (number % 50) for number in range(ROWS)]})
    convert(data=data, output=folder / "out", output__shard_size="64KiB", output__index="none")
    assert not (folder / "out/index").exists()
    return open_dataset(folder / "out").shard_paths()


def outcomes(found: list[Any]) -> list[str]:
    return [one.outcome for one in found]


def test_a_dataset_without_an_index_is_read_by_the_one_that_is_made(tmp_path: Path, monkeypatch: Any) -> None:
    shards = without_indexes(tmp_path)
    wanted = list(open_dataset(tmp_path / "out").records())
    assert outcomes(make_indexes(shards)) == ["made"] * len(shards)
    monkeypatch.setattr("shardmill.transforms.dataset.rows.record_access.offsets_of", None)  # no shard is scanned
    dataset = open_dataset(tmp_path / "out")["train"]
    assert [dataset.record(number) for number in (0, ROWS - 1, 1234)] == [wanted[0], wanted[-1], wanted[1234]]


def test_an_index_that_is_there_is_made_again_only_where_that_is_asked_for(tmp_path: Path) -> None:
    shards = without_indexes(tmp_path)
    make_indexes(shards)
    index = tmp_path / "out/index/train-00000.offsets"
    right = index.read_bytes()
    index.write_bytes(b"wrong")
    assert outcomes(make_indexes(shards)) == ["there"] * len(shards)
    assert index.read_bytes() == b"wrong"
    make_indexes(shards, overwrite=True)
    assert index.read_bytes() == right


def test_verify_and_gc_take_such_an_index_for_a_part_of_the_dataset(tmp_path: Path) -> None:
    make_indexes(without_indexes(tmp_path))
    report = verify_dataset(tmp_path / "out")
    assert (report.findings, report.notes) == ((), ())
    assert collect_garbage(tmp_path / "out", older_than=0).items == ()
    index = tmp_path / "out/index/train-00001.offsets"
    index.write_bytes(index.read_bytes()[8:])
    (finding,) = verify_dataset(tmp_path / "out").findings
    assert str(finding) == "index/train-00001.offsets: is not the index of train-00001.tfrecord"


def test_one_that_is_replaced_takes_its_index_along(tmp_path: Path) -> None:
    make_indexes(without_indexes(tmp_path))
    data = pa.table({"id": range(10)})
    convert(data=data, output=tmp_path / "out", output__index="none", output__if_exists="replace")
    assert not list((tmp_path / "out/index").iterdir())


def test_files_of_others_get_the_index_that_dali_reads(tmp_path: Path) -> None:
    file = tmp_path / "mnist-train.tfrecord-00000-of-00001"
    write_records(file, [b"a", b"bcd"])
    before = file.read_bytes()
    assert outcomes(make_indexes([str(file)], "text")) == ["made"]
    text = (tmp_path / "index/mnist-train.tfrecord-00000-of-00001.idx").read_text()
    assert text == "0 17\n17 19\n"
    assert file.read_bytes() == before


def test_a_compressed_file_is_passed_over_whatever_its_name(tmp_path: Path) -> None:
    write_records(tmp_path / "a.tfrecord", [b"a"])
    data = gzip.compress((tmp_path / "a.tfrecord").read_bytes())
    (tmp_path / "b.tfrecord").write_bytes(data)
    found = make_indexes([str(tmp_path / "b.tfrecord")])
    assert outcomes(found) == ["compressed"]
    assert not (tmp_path / "index").exists()


def test_a_file_that_is_cut_gets_none(tmp_path: Path) -> None:
    file = tmp_path / "a.tfrecord"
    write_records(file, [b"a", b"b"])
    os.truncate(file, file.stat().st_size - 1)
    with pytest.raises(DamageError, match=r"a\.tfrecord"):
        make_indexes([str(file)])
    assert not (tmp_path / "index").exists()


def test_an_empty_file_has_one_offset(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    make_indexes([str(tmp_path / "a.tfrecord")])
    assert (tmp_path / "index/a.offsets").read_bytes() == bytes(8)
    assert record_file.read_offsets(str(tmp_path / "a.tfrecord")).tolist() == np.zeros(1).tolist()


def test_an_index_folder_that_is_a_link_is_refused_and_nothing_changes_behind_it(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_records(tmp_path / "out/a.tfrecord", [b"one"])
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/a.offsets").write_text("mine")
    (tmp_path / "out/index").symlink_to(tmp_path / "elsewhere")
    for overwrite in (False, True):
        with pytest.raises(TargetError, match="index: a link; a dataset's folders are its own"):
            make_indexes([str(tmp_path / "out/a.tfrecord")], overwrite=overwrite)
    assert (tmp_path / "elsewhere/a.offsets").read_text() == "mine"
