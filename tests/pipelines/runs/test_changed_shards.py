"""Shards whose records were exchanged: equal sizes, counts and CRCs of records, another CRC of the file."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.record_file import read_records, write_records

from ...command_line import Shardmill

SAID = "the checksum of its bytes is"


def dataset(folder: Path, rows: int = 4000, **settings: object) -> Path:
    convert(data=pd.DataFrame({"id": np.arange(rows), "text": "some text"}), output=folder, **settings)
    return folder


def swap_records(shard: Path, first: int, second: int) -> None:
    """Exchange two records of one length in a shard."""
    records = list(read_records(shard))
    records[first], records[second] = records[second], records[first]
    size = shard.stat().st_size
    write_records(shard, records)
    assert shard.stat().st_size == size


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A dataset of four shards, of which two records of the first one were exchanged."""
    folder = dataset(tmp_path / "changed", output__shard_size="64KiB")
    assert len(open_dataset(folder).shard_paths()) == 4
    swap_records(folder / "train-00000.tfrecord", 200, 201)
    return folder


def assert_stopped(shardmill: Shardmill, *command: str) -> None:
    """Run a command that has to stop, as the first shard was changed."""
    ended = shardmill(*command)
    assert ended.code in (1, 3)
    assert SAID in ended.err + ended.out
    assert "train-00000.tfrecord" in ended.err + ended.out


@pytest.mark.parametrize(
    "command",
    [
        "merge IN -o OUT",
        "merge IN --records opaque -o OUT",
        "merge IN IN/../other -o OUT",
        "merge IN/train-00000.tfrecord -o OUT",
        "merge IN -o OUT --shard-size 1MiB",
        "merge IN -o OUT --compression gzip",
        "merge IN -o OUT --split-fractions train=0.9,val=0.1",
        "rebuild IN -o OUT",
        "rebuild IN -o OUT --shuffle 7",
        "rebuild IN -o IN --overwrite",
        "export IN -o OUT.csv",
        "export IN -o OUT.parquet",
        "stats IN --full",
        "report IN -o OUT.html",
        "diff IN IN/../other --records",
        "verify IN",
    ],
)
def test_a_command_that_reads_a_whole_shard_stops_at_exchanged_records(
    changed: Path, command: str, shardmill: Shardmill
) -> None:
    dataset(changed.parent / "other", 4001, output__shard_size="96KiB")
    out = changed.parent / "out"
    words = [word.replace("IN", str(changed)).replace("OUT", str(out)) for word in command.split()]
    before = sorted(path.name for path in changed.iterdir() if path.name != ".staging")
    assert_stopped(shardmill, *words)
    assert not list(out.glob("manifest*"))
    assert not list(changed.parent.glob("out.*"))
    assert before == sorted(path.name for path in changed.iterdir() if path.name != ".staging")


def test_a_gzip_shard_is_compared_by_its_compressed_bytes(tmp_path: Path, shardmill: Shardmill) -> None:
    folder = dataset(tmp_path / "in", output__compression="gzip")
    shard = folder / "train-00000.tfrecord.gz"
    data = bytearray(shard.read_bytes())
    content = gzip.decompress(data)
    data[9] ^= 1  # the operating system in the header: the contents stay
    shard.write_bytes(data)
    assert gzip.decompress(data) == content
    assert_stopped(shardmill, "merge", str(folder), "-o", str(tmp_path / "out"))
    assert_stopped(shardmill, "export", str(folder), "-o", str(tmp_path / "out.csv"))


def test_shards_of_others_and_whole_shards_pass(tmp_path: Path, shardmill: Shardmill) -> None:
    folder = dataset(tmp_path / "in", output__shard_size="64KiB")
    write_records(tmp_path / "plain.tfrecord", list(read_records(folder / "train-00001.tfrecord")))
    for number, options in enumerate(([], ["--shard-size", "1MiB"], ["--compression", "gzip"], ["--workers", "2"])):
        out = tmp_path / f"out{number}"
        assert shardmill("merge", str(folder), str(tmp_path / "plain.tfrecord"), "-o", str(out), *options).code == 0
        assert verify_dataset(str(out)).findings == ()
    assert shardmill("export", str(folder), "-o", str(tmp_path / "out.csv")).code == 0
    assert shardmill("stats", str(folder), "--full").code == 0


def test_the_same_merge_runs_once_the_shard_is_as_it_was(changed: Path, shardmill: Shardmill) -> None:
    command = ["merge", str(changed), "-o", str(changed.parent / "out")]
    assert_stopped(shardmill, *command)
    swap_records(changed / "train-00000.tfrecord", 200, 201)
    assert shardmill(*command).code == 0
    assert ids(changed.parent / "out") == list(range(4000))


def test_a_damaged_record_that_is_allowed_as_a_reject_explains_the_checksum(
    changed: Path, shardmill: Shardmill
) -> None:
    shard = changed / "train-00000.tfrecord"
    swap_records(shard, 200, 201)
    data = bytearray(shard.read_bytes())
    data[-8] ^= 1
    shard.write_bytes(data)
    ended = shardmill("merge", str(changed), "-o", str(changed.parent / "out"), "--max-rejects", "1")
    assert ended.code == 0
    assert "1 rejected" in ended.out
    assert len(ids(changed.parent / "out")) == 3999


def test_a_conversion_and_an_append_of_shards_stop_too(changed: Path) -> None:
    wanted = {"input": {"format": "tfrecord", "paths": [str(changed)]}}
    with pytest.raises(Exception, match=SAID):
        convert(wanted, output=changed.parent / "out")
    other = dataset(changed.parent / "other")
    with pytest.raises(Exception, match=SAID):
        append(wanted, output=other)
    assert open_dataset(other).manifest.generation == 1


def test_readers_take_the_records_as_they_are(changed: Path) -> None:
    found = ids(changed)
    assert found[200:202] == [201, 200]


def ids(folder: Path) -> Sequence[int]:
    return open_dataset(folder).to_arrow("train")["id"].to_pylist()
