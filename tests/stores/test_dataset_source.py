"""Datasets in stores as sources: what their manifests say of their shards holds there too."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardmill.pipelines import append, convert
from shardmill.pipelines.cli import main
from shardmill.transforms.errors import InputError, UsageError

from ..file_sources import made_source
from .conftest import S3_TOO, Bucket, shards


@pytest.fixture
def people(bucket: Bucket, tmp_path: Path) -> Path:
    """Make a dataset with two splits on the disk, and the same in the bucket, where a stray file lies in it too."""
    (tmp_path / "a.csv").write_text("id,text\n" + "".join(f"{i},{'x' * (i % 90)}\n" for i in range(5000)))
    out = tmp_path / "people"
    convert(
        {"input": {"paths": [str(tmp_path / "a.csv")]}, "split": {"fractions": {"train": 0.7, "val": 0.3}}},
        output=out,
        shard_size="64KiB",
    )
    bucket.put_folder(out, "people")
    bucket.store.put("people/train-99999.tfrecord", b"no manifest names it")
    return out


@pytest.mark.parametrize("bucket", S3_TOO, indirect=True)
def test_a_dataset_in_a_store_is_rebuilt_as_from_a_disk(bucket: Bucket, people: Path, tmp_path: Path) -> None:
    for source, out in ((str(people), "local"), (f"{bucket.url}/people/", "remote")):
        with pytest.raises(SystemExit) as ended:
            main(["rebuild", source, "-o", str(tmp_path / out), "--shard-size", "100KiB", "-q"])
        assert ended.value.code in (0, None)
    assert shards(tmp_path / "remote") == shards(tmp_path / "local") != {}


def test_shards_that_are_named_have_the_split_of_their_manifest_and_strays_are_refused(
    bucket: Bucket, people: Path
) -> None:
    source = made_source("tfrecord", (f"{bucket.url}/people/val-*.tfrecord",), "/")
    (*entries,) = source.list_files().entries
    assert [entry.name for entry in entries] == [
        f"{bucket.url}/people/{path.name}" for path in sorted(people.glob("val-*.tfrecord"))
    ]
    with pytest.raises(InputError, match=r"train-99999\.tfrecord: is in a dataset whose generation 1 does not name"):
        made_source("tfrecord", (f"{bucket.url}/people/train-*.tfrecord",), "/").list_files()


@pytest.mark.parametrize("bucket", S3_TOO, indirect=True)
def test_a_conversion_from_a_store_to_a_store_has_the_bytes_of_a_local_one(
    bucket: Bucket, people: Path, tmp_path: Path
) -> None:
    bucket.store.put("in/a.csv", (tmp_path / "a.csv").read_bytes())
    config = {"input": {"paths": [f"{bucket.url}/in"]}, "split": {"fractions": {"train": 0.7, "val": 0.3}}}
    convert(config, output=f"{bucket.url}/out", shard_size="64KiB")
    found = {path.name: bucket.store.read(f"out/{path.name}") for path in people.glob("*.tfrecord")}
    assert found == {path.name: path.read_bytes() for path in people.glob("*.tfrecord")}
    assert append(config | {"output": {"path": f"{bucket.url}/out"}}).nothing_to_do
    with pytest.raises(UsageError, match="is a shard of the dataset that it is to be appended to"):
        append({"input": {"paths": [f"{bucket.url}/out"]}, "output": {"path": f"{bucket.url}/out"}})


@pytest.mark.parametrize("bucket", S3_TOO, indirect=True)
def test_an_object_of_equal_content_under_another_key_is_left_out_also_after_a_rebuild(
    bucket: Bucket,
) -> None:
    text = b"id,text\n1,a\n"
    bucket.store.put("in/a.csv", text)
    out = f"{bucket.url}/out"
    convert(f"{bucket.url}/in", output=out)
    bucket.store.put("moved/b.csv", text)
    for _ in range(2):
        summary = append(f"{bucket.url}/moved", output=out)
        assert [file.under for file in summary.unchanged] == [f"{bucket.url}/in/a.csv"]
        with pytest.raises(SystemExit) as ended:
            main(["rebuild", out, "-o", out, "--overwrite", "-q"])
        assert ended.value.code in (0, None)
    bucket.store.put("moved/b.csv", b"id,text\n2,b\n")
    assert append(f"{bucket.url}/moved", output=out).manifest.splits["train"].records == 2


@pytest.mark.parametrize("bucket", S3_TOO, indirect=True)
@pytest.mark.parametrize("size", [3, 300_000, 2_000_000])
def test_a_file_that_was_copied_between_a_disk_and_a_store_is_left_out(
    bucket: Bucket, tmp_path: Path, size: int
) -> None:
    text = b"id,text\n1," + b"a" * size + b"\n"
    (tmp_path / "a.csv").write_bytes(text)
    bucket.store.put("in/b.csv", text)
    bucket.store.put("in/c.csv", text.replace(b"aaa", b"aca"))
    for number, (first, second) in enumerate(
        [(str(tmp_path / "a.csv"), f"{bucket.url}/in/b.csv"), (f"{bucket.url}/in/b.csv", str(tmp_path / "a.csv"))]
    ):
        out = tmp_path / f"out{number}"
        convert(first, output=out)
        assert [file.under for file in append(second, output=out).unchanged] == [first]
        assert append(f"{bucket.url}/in/c.csv", output=out).unchanged == ()
