"""Whole conversions from S3 and Google Cloud Storage: the same shards as from the same files on a disk."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.inputs.files import open_file
from shardmill.transforms.inputs.files.open_file import FetchLimits, ObjectFile
from shardmill.transforms.stores.store_url import STORES

from .. import archives
from ..archives import sample
from ..tiers import CAMPAIGN
from .conftest import S3_TOO, Bucket, shards

ROWS = 20_000


def write_csv(folder: Path) -> None:
    for number in range(2):
        lines = [f'{i},"na,\nme ""{i}""",{i / 8},\r\n' for i in range(ROWS)]
        (folder / f"a{number}.csv").write_text("id,name,x,none\r\n" + "".join(lines), newline="")


def write_gzipped_csv(folder: Path) -> None:
    text = "id,name\n" + "".join(f"{i},né{i}\n" for i in range(ROWS))
    (folder / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "b.csv.gz").write_bytes(gzip.compress(text.encode()))


def write_utf16_csv(folder: Path) -> None:
    (folder / "a.csv").write_text("id,name\n" + "".join(f"{i},né{i}\n" for i in range(2000)), encoding="utf-16")


def write_json_lines(folder: Path) -> None:
    lines = [json.dumps({"id": i, "name": f"na\n{i}", "x": i / 8, "l": [i] * (i % 3)}) + "\n" for i in range(ROWS)]
    (folder / "a.jsonl").write_text("".join(lines))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines[:500]).encode()))


def write_parquet(folder: Path) -> None:
    rng = np.random.default_rng(1)
    for number in range(2):
        table = pa.table(
            {
                "id": np.arange(ROWS) + number,
                "x": rng.random(ROWS),
                "text": [f"text {i % 700}" for i in range(ROWS)],
                "list": [list(range(i % 4)) for i in range(ROWS)],
                "pair": pa.array([[i, i] if i % 5 else None for i in range(ROWS)], pa.list_(pa.int32(), 2)),
            }
        )
        pq.write_table(table, folder / f"p{number}.parquet", row_group_size=7000, write_page_checksum=True)


def write_arrow(folder: Path) -> None:
    table = pa.table({"id": np.arange(ROWS), "text": [f"text {i % 700}" for i in range(ROWS)]})
    pa.feather.write_feather(table, folder / "a.feather", compression="lz4", chunksize=3000)
    with pa.ipc.new_stream(folder / "b.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=5000)


def write_rows(folder: Path) -> None:
    rng = np.random.default_rng(1)
    np.save(folder / "a.npy", rng.random((ROWS, 40)))
    np.save(folder / "b.npy", np.asfortranarray(rng.random((500, 40))))


def write_archives(folder: Path) -> None:
    rng = np.random.default_rng(1)
    np.savez(folder / "a.npz", x=rng.random((9000, 30)), y=np.arange(9000))
    np.savez_compressed(folder / "b.npz", x=rng.random((100, 30)), y=np.arange(100))


def write_arrays(folder: Path) -> None:
    for number in range(5):
        np.save(folder / f"{number}.npy", np.full((number, 3), number, np.int32))


def write_tars(folder: Path) -> None:
    members = [
        one for number in range(60) for one in sample(f"{number:02d}", number, {"n": number}, cls=b"%d" % (number % 3))
    ]
    archives.write(folder / "a.tar", archives.tar_of(members))
    archives.write(folder / "b.tar.gz", gzip.compress(archives.tar_of(members[:30])))


def write_zips(folder: Path) -> None:
    members = [one for number in range(60) for one in sample(f"{number:02d}", number, {"n": number}, txt=b"a")]
    archives.write(folder / "a.zip", archives.zip_of(members))


def write_tfrecords(folder: Path) -> None:
    for number in range(3):
        write_records(folder / f"{number}.tfrecord", [b"%d" % i * (i % 300) for i in range(5000)])
    write_records(folder / "z.tfrecord.gz", [b"%d" % i for i in range(5000)], "gzip")


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where files of each kind lie, and the dataset that was made of them."""
    return tmp_path_factory.mktemp("on_disk")


OTHER_KINDS = (pytest.mark.thorough("other kinds of files"), CAMPAIGN)


@pytest.mark.parametrize("bucket", S3_TOO, indirect=True)
@pytest.mark.parametrize(
    ("write", "settings"),
    [
        (write_gzipped_csv, {}),
        (write_json_lines, {}),
        (write_arrow, {}),
        (write_parquet, {}),
        (write_rows, {"input__rows": True}),
        (write_tars, {"shard_size": "64KiB"}),
        pytest.param(write_zips, {"shard_size": "64KiB"}, marks=OTHER_KINDS),
        pytest.param(write_csv, {}, marks=OTHER_KINDS),
        pytest.param(write_utf16_csv, {"input__encoding": "utf-16"}, marks=OTHER_KINDS),
        pytest.param(write_archives, {"input__rows": True}, marks=OTHER_KINDS),
        pytest.param(write_arrays, {}, marks=OTHER_KINDS),
        pytest.param(write_tfrecords, {"input__records": "opaque"}, marks=OTHER_KINDS),
    ],
    ids=lambda value: value.__name__.removeprefix("write_") if callable(value) else "",
)
def test_shards_are_those_of_the_same_files_on_a_disk(
    bucket: Bucket,
    on_disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Any,
    settings: dict[str, Any],
) -> None:
    few = FetchLimits(block=1 << 16, kept=1 << 17, smallest_block=1 << 12, near=1 << 10)  # many blocks
    monkeypatch.setattr(open_file, "ObjectFile", partial(ObjectFile, limits=few))
    options = {"shard_size": "256KiB", "runner__workers": 2, **settings}
    folder = on_disk / write.__name__
    if not folder.exists():
        (folder / "in").mkdir(parents=True)
        write(folder / "in")
        convert({"input": {"paths": [str(folder / "in")]}}, output=folder / "out", **options)
    bucket.put_folder(folder / "in", "data/in")
    remote = convert({"input": {"paths": [f"{bucket.url}/data/in"]}}, output=tmp_path / "remote", **options)
    local = read_manifest(str(folder / "out"))
    assert shards(tmp_path / "remote") == shards(folder / "out") != {}
    documents = [json.loads(manifest.to_bytes()) for manifest in (remote.manifest, local)]
    of_the_place = {"run", "config_fingerprint", "name"}
    ours, theirs = ({key: document[key] for key in document.keys() - of_the_place} for document in documents)
    assert ours == theirs
    lines = (tmp_path / "remote/sources/00000001.jsonl").read_text().splitlines()
    for line, path in zip(map(json.loads, lines), sorted((folder / "in").iterdir()), strict=True):
        assert line["source"] == f"{bucket.url}/data/in/{path.name}"
        assert line["fingerprint"].startswith("crc32c:" if STORES[bucket.scheme].lists_crc32c else "etag:")
