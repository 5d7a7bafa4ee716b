"""merge and rebuild: the same records, byte for byte and in order, in another dataset."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.direct_file import AlignedBuffer
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.dataset.storage.record_file import read_record_batches, read_records, write_records
from shardmill.transforms.format.manifest.manifest import Manifest
from shardmill.transforms.format.tfrecord.framing import FRAME_BYTES, add_digests, crc32c
from shardmill.transforms.sources.tfrecord.pieces import renumbered

from ...command_line import Screen, Shardmill
from ...examples import example_from_values


def dataset(folder: Path, ids: Sequence[int], **settings: Any) -> Path:
    """Return a dataset of rows, written without Beam's threads in its way."""
    frame = {"id": np.array(ids), "text": np.array([f"row {i} " * (i % 7 + 1) for i in ids])}
    source = folder.with_suffix(".parquet")
    pq.write_table(pa.table(frame), source)
    convert({"input": {"paths": [str(source)]}}, output=folder, **settings)
    return folder


def records_of(folder: Path, split: str = "train") -> list[bytes]:
    return list(open_dataset(folder).records(split))


def digest_of(folder: Path, split: str = "train") -> int:
    return int(read_manifest(str(folder)).splits[split].records_digest.removeprefix("sum128:"), 16)


def made(folder: str | Path) -> Manifest:
    """Return the manifest of a dataset that is sound."""
    assert verify_dataset(str(folder)).findings == ()
    return read_manifest(str(folder))


def opaque_file(path: Path, count: int = 4000, seed: int = 1) -> list[bytes]:
    rng = np.random.default_rng(seed)
    payloads = [rng.bytes(int(size)) for size in rng.integers(0, 400, count)]
    write_records(path, payloads)
    return payloads


def example(**values: Any) -> bytes:
    return example_from_values(values).SerializeToString()


def test_datasets_and_foreign_files_become_one_dataset_in_the_order_given(tmp_path: Path, shardmill: Shardmill) -> None:
    b = dataset(tmp_path / "b", range(100, 300))
    a = dataset(tmp_path / "a", range(50), compression="gzip")
    foreign = [example(id=i, text=f"foreign {i}") for i in range(20)]
    write_records("plain.tfrecord", foreign[:10])
    Path("packed.tfrecord.gz").write_bytes(gzip.compress(_file_of(foreign[10:])))
    screen = shardmill("merge", "b", "plain.tfrecord", "a", "packed.tfrecord.gz", "-o", "c")
    assert screen.code == 0, screen.err
    assert records_of(tmp_path / "c") == [*records_of(b), *foreign[:10], *records_of(a), *foreign[10:]]
    manifest = made("c")
    assert (manifest.operation, manifest.order, manifest.source.format) == ("merge", "source", "tfrecord")
    assert manifest.schema == read_manifest(str(a)).schema
    assert manifest.counts.read == manifest.counts.written == 270
    assert "no manifest states the number of records" in screen.out


def _file_of(records: Sequence[bytes]) -> bytes:
    write_records("temporary", records)
    data = Path("temporary").read_bytes()
    Path("temporary").unlink()
    return data


def test_the_digest_of_a_merge_is_the_sum_of_its_inputs(tmp_path: Path, shardmill: Shardmill) -> None:
    a, b = dataset(tmp_path / "a", range(500)), dataset(tmp_path / "b", range(500, 800))
    assert shardmill("merge", "a", "b", "-o", "c", "-q") == Screen(0, "", "")
    assert digest_of(tmp_path / "c") == add_digests([digest_of(a), digest_of(b)])


def test_splits_stay_what_they_were(tmp_path: Path, shardmill: Shardmill) -> None:
    fractions = {"train": 0.7, "val": 0.3}
    a = dataset(tmp_path / "a", range(200), split__fractions=fractions)
    b = dataset(tmp_path / "b", range(200, 300), output__split="val")
    write_records("test-00000-of-00001.tfrecord", [example(id=1, text="x")])
    assert shardmill("merge", "a", "b", "test-00000-of-00001.tfrecord", "-o", "c", "-q").code == 0
    assert set(made("c").splits) == {"train", "val", "test"}
    assert records_of(tmp_path / "c", "val") == records_of(a, "val") + records_of(b, "val")
    assert shardmill("merge", "test-00000-of-00001.tfrecord", "-o", "d", "--split", "mine", "-q").code == 0
    assert set(made("d").splits) == {"mine"}


def test_what_is_rebuilt_there_and_back_is_the_same_to_the_byte(tmp_path: Path, shardmill: Shardmill) -> None:
    a = dataset(tmp_path / "a", range(20_000), shard_size="128KiB", order="source")
    assert shardmill("rebuild", "a", "-o", "b", "--compression", "gzip", "--single-file", "-q").code == 0
    assert shardmill("rebuild", "b", "-o", "c", "--compression", "none", "--shard-size", "128KiB", "-q").code == 0
    assert records_of(tmp_path / "c") == records_of(tmp_path / "b") == records_of(a)
    assert [len(split.shards) for split in made("b").splits.values()] == [1]
    assert made("c").splits["train"].records_digest == read_manifest(str(a)).splits["train"].records_digest
    assert made("c").name == "a"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_files_are_cut_where_shards_will_end_so_that_few_bytes_are_copied(
    tmp_path: Path, shardmill: Shardmill, workers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shardmill.transforms.dataset.storage.local_storage import LocalStorage

    payloads = opaque_file(tmp_path / "x.tfrecord", 40_000)
    copied: list[str] = []
    assemble = LocalStorage.assemble
    monkeypatch.setattr(LocalStorage, "assemble", lambda s, path, *a: (copied.append(path), assemble(s, path, *a))[1])
    options = ("--records", "opaque", "--shard-size", "1MiB", "--workers", workers)
    assert shardmill("merge", "x.tfrecord", "-o", "c", "-q", *options).code == 0
    assert records_of(tmp_path / "c") == payloads
    manifest = made("c")
    assert manifest.schema is None
    assert len(manifest.splits["train"].shards) == 9
    assert copied == []


def test_existing_records_are_written_from_where_they_were_read(
    tmp_path: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    payloads = opaque_file(tmp_path / "x.tfrecord", 30_000) + opaque_file(tmp_path / "y.tfrecord", 20_000, seed=2)
    copied: list[int] = []
    append, no_index = AlignedBuffer.append, ("--set", "output.index=none")
    monkeypatch.setattr(AlignedBuffer, "append", lambda buffer, view: (copied.append(n := append(buffer, view)), n)[1])
    assert shardmill("merge", "x.tfrecord", "y.tfrecord", "-o", "c", "-q", "--records", "opaque", *no_index).code == 0
    assert records_of(tmp_path / "c") == payloads
    assert sum(copied) < 0.01 * sum(map(len, payloads))  # what completes a block, or is left over


def test_the_number_of_workers_changes_no_byte(tmp_path: Path, shardmill: Shardmill) -> None:
    opaque_file(tmp_path / "x.tfrecord", 30_000)
    options = ("--records", "opaque", "--shard-size", "1MiB", "-q", "--name", "x")
    assert shardmill("merge", "x.tfrecord", "-o", "c", *options, "--workers", "1").code == 0
    assert shardmill("merge", "x.tfrecord", "-o", "d", *options, "--set", "runner.processes=true").code == 0
    for path in Path("c").glob("*.tfrecord"):
        assert path.read_bytes() == (Path("d") / path.name).read_bytes()
    c, d = read_manifest("c"), read_manifest("d")
    assert (c.splits, c.config_fingerprint) == (d.splits, d.config_fingerprint)


def test_a_merge_that_is_there_is_not_made_again(tmp_path: Path, shardmill: Shardmill) -> None:
    dataset(tmp_path / "a", range(50))
    assert shardmill("merge", "a", "-o", "c", "-q").code == 0
    screen = shardmill("merge", "a", "-o", "c")
    assert screen.code == 0
    assert screen.out.startswith("Nothing to do: generation 1 of c holds it")


def test_a_dry_run_writes_nothing(tmp_path: Path, shardmill: Shardmill) -> None:
    dataset(tmp_path / "a", range(50))
    document = json.loads(shardmill("rebuild", "a", "-o", "c", "--dry-run", "--json").out)
    assert (document["command"], document["rows"], document["dry_run"]) == ("rebuild", 50, True)
    assert not Path("c").exists()


def test_a_record_that_holds_records_is_not_cut(tmp_path: Path, shardmill: Shardmill) -> None:
    opaque_file(tmp_path / "inner.tfrecord", 20_000)
    payloads = [b"small", (tmp_path / "inner.tfrecord").read_bytes(), b"end"]
    write_records("outer.tfrecord", payloads)
    screen = shardmill("merge", "outer.tfrecord", "-o", "c", "--records", "opaque", "--shard-size", "1MiB", "-q")
    assert screen == Screen(0, "", "")
    assert records_of(tmp_path / "c") == payloads
    made("c")


def test_schemas_that_differ_are_shown_side_by_side(tmp_path: Path, shardmill: Shardmill) -> None:
    dataset(tmp_path / "a", range(5))
    write_records("b.tfrecord", [example(id=1, words=["x", "y"])])
    screen = shardmill("merge", "a", "b.tfrecord", "-o", "c")
    assert (screen.code, screen.out) == (2, "")
    assert screen.err.splitlines()[0].startswith("error: b.tfrecord has another schema than a; records stay as")
    assert [" ".join(line.split()) for line in screen.err.splitlines()[1:]] == [
        "feature a b.tfrecord",
        "id int64 (int64) int64 (int64)",
        "text string (bytes) - missing",
        "words - binary[2] (bytes list) added",
    ]
    assert not Path("c").exists()


def labelled(folder: Path, classes: Sequence[str]) -> Path:
    jpeg = (Path(__file__).parents[3] / "configs/samples/pets").rglob("*.jpg")
    data = max((path.read_bytes() for path in jpeg), key=len)
    for name in classes:
        path = folder.with_suffix(".images") / name / "one.jpg"
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    convert({"input": {"paths": [str(folder.with_suffix(".images"))], "check": "header"}}, output=folder)
    return folder


def test_the_longer_of_two_label_maps_is_taken(tmp_path: Path, shardmill: Shardmill) -> None:
    labelled(tmp_path / "a", ["cat", "dog"])
    labelled(tmp_path / "b", ["cat", "dog", "owl"])
    labelled(tmp_path / "c", ["ant", "cat"])
    assert shardmill("merge", "a", "b", "-o", "ab", "-q").code == 0
    assert made("ab").labels == {"image/class/label": ("cat", "dog", "owl")}
    assert Path("ab/features.json").read_bytes() == Path("b/features.json").read_bytes()
    screen = shardmill("merge", "b", "c", "-o", "bc")
    assert screen.code == 2
    assert 'image/class/label: label 0 is "cat" in b and "ant" in c' in screen.err


def test_a_damaged_record_is_a_reject_with_its_number_and_its_offset(tmp_path: Path, shardmill: Shardmill) -> None:
    payloads = opaque_file(tmp_path / "x.tfrecord", 30_000)
    row = next(i for i in range(20_000, 30_000) if payloads[i])
    offset = sum(len(payload) + FRAME_BYTES for payload in payloads[:row])
    data = bytearray(Path("x.tfrecord").read_bytes())
    data[offset + 12] ^= 1
    Path("x.tfrecord").write_bytes(data)
    command = ("merge", "x.tfrecord", "-o", "c", "--records", "opaque", "--shard-size", "1MiB")
    screen = shardmill(*command)
    assert (screen.code, screen.out) == (4, "")
    assert f"x.tfrecord record {row} at byte {offset}: CORRUPT: the checksum of its data is wrong" in screen.err
    assert shardmill(*command, "-q", "--max-rejects", "1").code == 0
    assert records_of(tmp_path / "c") == payloads[:row] + payloads[row + 1 :]
    assert made("c").counts.rejected == 1
    line = json.loads(Path("c/rejects/00000001.jsonl").read_text())
    assert (line["record"], line["offset"], line["split"]) == (row, offset, "train")


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_is_cut_fails_the_run_by_its_name_and_place(
    tmp_path: Path, shardmill: Shardmill, packed: bool
) -> None:
    payloads = opaque_file(tmp_path / "x.tfrecord", 30_000)
    whole = Path("x.tfrecord").read_bytes()
    cut = gzip.compress(whole[:-3]) if packed else whole[:-3]
    Path("x.tfrecord").write_bytes(cut)
    screen = shardmill("merge", "x.tfrecord", "-o", "c", "--records", "opaque", "--shard-size", "1MiB")
    assert screen.code == 1
    place = f"record 29999 at byte {len(whole) - len(payloads[-1]) - FRAME_BYTES}"
    assert screen.err.startswith(f"error: x.tfrecord: {place}: its data is cut")
    assert not Path("c/manifest.json").exists()


def test_a_shard_that_was_cut_between_two_records_is_noticed(tmp_path: Path, shardmill: Shardmill) -> None:
    a = dataset(tmp_path / "a", range(100))
    records = records_of(a)
    write_records(a / "train-00000.tfrecord", records[:-1])
    screen = shardmill("rebuild", "a", "-o", "c")
    assert screen.code == 2
    assert "the manifest states" in screen.err


def test_what_is_no_example_is_rejected_or_passed_as_opaque(tmp_path: Path, shardmill: Shardmill) -> None:
    payloads = [example(a=1), b"\xff\xff no example", example(a=2)]
    write_records("x.tfrecord", payloads)
    screen = shardmill("merge", "x.tfrecord", "-o", "c")
    assert screen.code == 4
    place = f"x.tfrecord record 1 at byte {len(payloads[0]) + FRAME_BYTES}"
    assert f"{place}: CORRUPT: it is not a tf.train.Example; to keep such records as they are: " in screen.err
    assert shardmill("merge", "x.tfrecord", "-o", "c", "--max-rejects", "1", "-q").code == 0
    assert records_of(tmp_path / "c") == [payloads[0], payloads[2]]
    made("c")
    assert shardmill("merge", "x.tfrecord", "-o", "d", "--records", "opaque", "-q").code == 0
    assert records_of(tmp_path / "d") == payloads


def test_a_file_beside_the_shards_of_a_dataset_is_refused(tmp_path: Path, shardmill: Shardmill) -> None:
    dataset(tmp_path / "a", range(10))
    write_records("a/train-00009.tfrecord", [b"x"])
    screen = shardmill("merge", "a/train-00009.tfrecord", "-o", "c")
    assert screen.code == 2
    assert "is in a dataset whose generation 1 does not name it" in screen.err
    assert shardmill("merge", "a", "a/train-00000.tfrecord", "-o", "c").code == 2  # twice


def test_convert_reads_tfrecord_files_on_its_engine(tmp_path: Path) -> None:
    a = dataset(tmp_path / "a", range(300), shard_size="64KiB")
    summary = convert({"input": {"paths": [f"{a}/train-*.tfrecord"], "format": "tfrecord"}}, output=tmp_path / "c")
    assert summary.manifest.schema == read_manifest(str(a)).schema
    assert records_of(tmp_path / "c") == records_of(a)
    assert list(read_records(tmp_path / "c/train-00000.tfrecord")) == records_of(a)
    made(tmp_path / "c")


def test_datasets_of_other_columns_are_merged_where_that_is_asked_for_with_nulls_for_those_that_one_lacks(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    a = dataset(tmp_path / "a", range(20))
    pq.write_table(pa.table({"id": [20, 21], "tip": [1.5, None]}), "b.parquet")
    convert({"input": {"paths": ["b.parquet"]}}, output="b")
    write_records("c.tfrecord", [example(id=22, note="x")])
    option = "--set input.columns_differ=union"
    refused = shardmill("merge", "a", "b", "c.tfrecord", "-o", "all", "-q")
    assert (refused.code, f"to keep the columns of all, null where one lacks them: {option}\n" in refused.err) == (
        2,
        True,
    )
    assert shardmill("merge", "a", "b", "c.tfrecord", "-o", "all", *option.split(), "-q").code == 0
    manifest = made("all")
    assert manifest.schema is not None
    assert [(one.name, one.nullable) for one in manifest.schema] == [
        ("id", False), ("note", True), ("text", True), ("tip", True),
    ]  # fmt: skip
    assert records_of(tmp_path / "all")[:20] == records_of(a)
    rows = open_dataset("all").to_arrow()
    assert rows["tip"].to_pylist() == [None] * 20 + [1.5, None, None]
    assert rows["note"].to_pylist() == [None] * 22 + [b"x"]
    assert shardmill("merge", "a", "b", "-o", "two", *option.split(), "-q").code == 0
    stats = open_dataset("two").stats
    assert stats is not None
    assert stats.splits["train"].features["tip"].missing == 21
    pq.write_table(pa.table({"id": ["x"]}), "d.parquet")
    convert({"input": {"paths": ["d.parquet"]}}, output="d")
    refused = shardmill("merge", "a", "d", "-o", "x", *option.split(), "-q")
    assert (refused.code, "re-typed" in refused.err, "union" in refused.err) == (2, True, False)


def _kinds(name: str, kinds: Sequence[str | None], compression: str = "none", **settings: Any) -> None:
    """Write a dataset with two labels, of which one has the same classes in all datasets."""
    rows = {"id": list(range(len(kinds))), "kind": kinds, "part": ["x", "y"] * (len(kinds) // 2)}
    pq.write_table(pa.table(rows), f"{name}.parquet")
    schema = {"columns": {"kind": {"label": True}, "part": {"label": True}}}
    convert(f"{name}.parquet", output=name, compression=compression, schema=schema, **settings)


def _names_in(path: str) -> list[tuple[Any, ...]]:
    return [(row["id"], row["kind"], row["part"]) for row in open_dataset(path).to_arrow().to_pylist()]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_classes_of_other_numbers_are_joined_by_their_names_by_the_option_of_the_refusal(
    compression: str, shardmill: Shardmill
) -> None:
    many = [f"c{number:03}" for number in range(299)]
    _kinds("a", ["cat", None, "dog", "cat"], stats="basic")
    _kinds("b", ["ant", "dog", None, *many], compression, stats="basic")
    _kinds("same", ["cat", "dog"])
    refused = shardmill("merge", "a", "b", "same", "-o", "all", "-q")
    option = "--set input.columns_differ=union"
    said = f"to give each class one number, by its name: {option}; or convert"
    assert (refused.code, said in refused.err) == (2, True), refused.err
    screen = shardmill("merge", "a", "b", "same", "-o", "all", *option.split())
    assert screen.code == 0, screen.err
    assert "b: the classes of kind get the numbers that a and the others before it give to their names" in screen.out
    assert "same: the classes" not in screen.out
    assert "classes of part" not in screen.out
    manifest = made("all")
    assert manifest.labels == {"kind": ("cat", "dog", "ant", *many), "part": ("x", "y")}
    assert _names_in("all") == [*_names_in("a"), *_names_in("b"), *_names_in("same")]
    assert records_of(Path("all"))[:4] == records_of(Path("a"))
    assert records_of(Path("all"))[-2:] == records_of(Path("same"))
    stats = open_dataset("all").stats
    assert stats is not None
    classes = stats.splits["train"].features["kind"].classes
    assert classes == {"cat": 3, "dog": 3, "ant": 1} | dict.fromkeys(many, 1)
    picked = shardmill("merge", "a", "b", "-o", "ants", *option.split(), "-q", "--set", "input.where=kind == 'ant'")
    assert picked.code == 0, picked.err
    assert _names_in("ants") == [(0, "ant", "x")]


def test_a_number_that_has_no_name_is_a_reject_where_classes_get_other_numbers(shardmill: Shardmill) -> None:
    write_records("x.tfrecord", [example(kind=1), example(kind=7), b"no", example(kind=[0, -1], id=3), example(id=4)])
    (run,) = read_record_batches("x.tfrecord")
    reasons: dict[int, str] = {}
    payloads, crcs = renumbered(run, (("kind", (300, 0)),), reasons)
    last = example_from_values({"id": 3, "kind": [300, -1]}).SerializeToString(deterministic=True)
    whole = [example(kind=0), example(kind=7), b"no", last, example(id=4)]
    assert list(payloads) == whole
    assert crcs.tolist() == [crc32c(one) for one in whole]
    assert reasons == {1: 'feature "kind" holds class 7, and 2 have names', 2: "it is not a tf.train.Example"}
