from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.dataset.integrity.salvage import salvage_file
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.record_file import read_records, write_records
from shardmill.transforms.errors import InputError, TargetError
from shardmill.transforms.format.tfrecord.framing import frame_records
from shardmill.transforms.format.tfrecord.gzip_members import compress_member

from ...tiers import examples

RECORDS = [f"record {number} ".encode() * 5 for number in range(20)]


def damaged(path: Path, *places: int, records: list[bytes] = RECORDS, compression: Any = "none") -> Path:
    write_records(path, records, compression)
    data = bytearray(path.read_bytes())
    for place in places:
        data[place] ^= 0x55
    path.write_bytes(data)
    return path


def test_what_is_intact_is_copied_in_order_and_what_is_lost_is_told(tmp_path: Path) -> None:
    source = damaged(tmp_path / "x.tfrecord", 200)
    before = source.read_bytes()
    report = salvage_file(source, tmp_path / "saved")
    frame = len(RECORDS[0]) + 16
    (lost,) = report.damages
    assert list(read_records(tmp_path / "saved/x.tfrecord")) == RECORDS[:3] + RECORDS[4:]
    assert verify_dataset(tmp_path / "saved/x.tfrecord").ok
    assert (report.records, report.lost_records, report.stated, report.ok) == (19, 1, None, False)
    assert (lost.record, lost.offset) == (3, 3 * frame)
    assert source.read_bytes() == before


def test_a_sound_file_is_copied_whole(tmp_path: Path) -> None:
    source = damaged(tmp_path / "x.tfrecord")
    report = salvage_file(source, tmp_path / "saved")
    assert (report.ok, report.records, report.damages) == (True, 20, ())
    assert (tmp_path / "saved/x.tfrecord").read_bytes() == source.read_bytes()


def test_the_manifest_says_how_many_records_are_lost(tmp_path: Path, build_dataset: Any) -> None:
    root = tmp_path / "set"
    root.mkdir()
    build_dataset(root, {"train": [RECORDS[:8], RECORDS[8:]]}, None)
    shard = root / "train-00001.tfrecord"
    shard.write_bytes(shard.read_bytes()[: 3 * (len(RECORDS[10]) + 16) - 2 * 5])  # cut between two records
    report = salvage_file(shard, tmp_path / "saved")
    assert (report.stated, report.records + report.lost_records) == (12, 12)
    assert report.lost_records >= 9
    assert not report.ok


def test_a_folder_that_holds_the_name_or_a_dataset_is_refused(tmp_path: Path, build_dataset: Any) -> None:
    source = damaged(tmp_path / "x.tfrecord", 200)
    with pytest.raises(TargetError, match="already exists"):
        salvage_file(source, tmp_path)
    (tmp_path / "set").mkdir()
    build_dataset(tmp_path / "set", {"train": [RECORDS]}, None)
    with pytest.raises(TargetError, match="holds a dataset"):
        salvage_file(source, tmp_path / "set")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TargetError, match="cannot be written"):
        salvage_file(source, tmp_path / "file")
    with pytest.raises(InputError, match="cannot be read"):
        salvage_file(tmp_path / "gone", tmp_path / "saved")
    assert sorted(os.listdir(tmp_path)) == ["file", "set", "x.tfrecord"]


def test_a_file_without_an_intact_record_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.tfrecord").write_bytes(bytes(1000))
    report = salvage_file(tmp_path / "x.tfrecord", tmp_path / "saved")
    assert (report.target, report.records, len(report.damages)) == (None, 0, 1)
    assert not (tmp_path / "saved").exists()


def test_damages_of_one_kind_side_by_side_are_one_range(tmp_path: Path) -> None:
    frame = len(RECORDS[0]) + 16
    source = damaged(tmp_path / "x.tfrecord", 20, frame + 20, 2 * frame + 20, 5 * frame + 20)
    report = salvage_file(source, tmp_path / "saved")
    assert [(d.record, d.offset, d.end, d.records) for d in report.damages] == [
        (0, 0, 3 * frame, 3),
        (5, 5 * frame, 6 * frame, 1),
    ]
    json.dumps(report.to_json())


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32), st.booleans())
def test_of_a_file_with_any_damage_no_wrong_record_is_copied_and_no_sound_one_is_lost_but_behind_a_damage_of_gzip(
    tmp_path_factory: pytest.TempPathFactory, seed: int, gzip: bool
) -> None:
    rng = random.Random(seed)
    groups = [[rng.randbytes(rng.randrange(0, 500)) for _ in range(12)] for _ in range(5)]
    framed = [b"".join(map(bytes, frame_records(pa.array(g, pa.large_binary())).buffers)) for g in groups]
    pieces = [compress_member(piece) for piece in framed] if gzip else framed
    touched = rng.randrange(5)
    piece = bytearray(pieces[touched])
    at, size = rng.randrange(len(piece)), rng.choice([1, 4, 30, 300])
    kind = rng.choice(["flip", "zero", "insert", "cut"])
    if kind == "insert":
        piece[at:at] = rng.randbytes(size)
    elif kind == "cut":
        del piece[at:]
    else:
        piece[at : at + size] = rng.randbytes(len(piece[at : at + size])) if kind == "flip" else bytes(size)
    changed = [*pieces[:touched], bytes(piece), *pieces[touched + 1 :]][: touched + 1 if kind == "cut" else None]
    folder = tmp_path_factory.mktemp("salvage")
    source = folder / ("x.tfrecord.gz" if gzip else "x.tfrecord")
    source.write_bytes(b"".join(changed))
    report = salvage_file(source, folder / "saved")
    found = list(read_records(report.target)) if report.target else []
    every = [record for group in groups for record in group]
    rest = iter(every)
    assert all(record in rest for record in found)
    untouched = range(touched) if gzip else [n for n in range(len(changed)) if changed[n] == pieces[n]]
    sound = [record for number in untouched for record in groups[number]]
    rest = iter(found)
    assert all(record in rest for record in sound)
    assert report.lost_records <= len(every) - len(found)
