"""What merge takes in: anyone's files, damaged and hostile ones, on any number of workers."""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.pipelines import convert, open_dataset
from shardmill.pipelines.outcomes.summary import Summary
from shardmill.pipelines.runs.merge import plan_merge
from shardmill.pipelines.workers.worker_processes import WorkerProcesses
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.dataset.storage.record_file import read_records, write_records
from shardmill.transforms.errors import RunError, SchemaError, TooManyRejects
from shardmill.transforms.format.tfrecord.framing import FRAME_BYTES, add_digests, crc32c, mask, record_digests

from ...examples import example_from_values
from ...tiers import examples

TENSORFLOW_BYTES = bytes.fromhex(  # two Examples, keys not sorted; the int64 of the second is not packed
    "220000000000000078113dfd0a200a110a047465787412090a070a05736576656e0a0b0a02696412051a030a01072dea92dc"
    "2100000000000000017becf60a1f0a110a047465787412090a070a0565696768740a0a0a02696412041a020808bccbce3a"
)


def merged(out: Path, *paths: Path, **flags: object) -> Summary:
    """Merge into `out`; flags are keys of the config, with double underscores."""
    given = {key.replace("__", "."): (key, value) for key, value in flags.items()}
    return plan_merge("merge", [str(path) for path in paths], {"output.path": ("-o", str(out)), **given}).run()


def records_of(out: Path, split: str = "train") -> list[bytes]:
    assert verify_dataset(str(out)).findings == ()
    return list(open_dataset(out).records(split))


def example(**values: Any) -> bytes:
    return example_from_values(values).SerializeToString()


def payloads_like(count: int, seed: int = 1, largest: int = 400) -> list[bytes]:
    rng = np.random.default_rng(seed)
    return [rng.bytes(int(size)) for size in rng.integers(0, largest, count)]


def digest_of(payloads: Sequence[bytes]) -> int:
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    return record_digests(lengths, np.array([crc32c(payload) for payload in payloads], np.uint32))


class TestForeign:
    def test_the_bytes_of_tensorflow_pass_as_they_are_and_their_schema_is_read(self, tmp_path: Path) -> None:
        (tmp_path / "tf.tfrecord").write_bytes(TENSORFLOW_BYTES)
        manifest = merged(tmp_path / "out", tmp_path / "tf.tfrecord").manifest
        assert (tmp_path / "out/train-00000.tfrecord").read_bytes() == TENSORFLOW_BYTES
        assert manifest.schema is not None
        assert [(f.name, f.kind, f.type, f.shape, f.nullable) for f in manifest.schema] == [
            ("id", "int64", "int64", (), False),
            ("text", "bytes", "binary", (), False),
        ]
        assert open_dataset(tmp_path / "out").to_arrow("train").to_pylist() == [
            {"id": 7, "text": b"seven"},
            {"id": 8, "text": b"eight"},
        ]

    @pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
    def test_compressed_files_are_told_by_their_content(self, tmp_path: Path, pack: Any) -> None:
        (tmp_path / "a.tfrecord").write_bytes(pack(TENSORFLOW_BYTES))
        merged(tmp_path / "out", tmp_path / "a.tfrecord")
        assert (tmp_path / "out/train-00000.tfrecord").read_bytes() == TENSORFLOW_BYTES

    def test_the_digest_of_each_split_is_the_sum_of_all_inputs(self, tmp_path: Path) -> None:
        frame = {"id": np.arange(400), "text": np.array([f"row {i}" for i in range(400)])}
        made = {"fractions": {"train": 0.6, "val": 0.4}}
        convert(data=pa.table(frame), output=tmp_path / "a", split=made)
        foreign = {"train": [example(id=i, text="t") for i in range(30)], "val": [example(id=9, text="v")] * 3}
        for split, payloads in foreign.items():
            write_records(tmp_path / f"{split}-0.tfrecord", payloads)
        files = [tmp_path / "train-0.tfrecord", tmp_path / "val-0.tfrecord"]
        manifest = merged(tmp_path / "out", tmp_path / "a", *files, output__compression="gzip").manifest
        for split, payloads in foreign.items():
            held = int(read_manifest(str(tmp_path / "a")).splits[split].records_digest.removeprefix("sum128:"), 16)
            total = add_digests([held, digest_of(payloads)])
            assert manifest.splits[split].records_digest == f"sum128:{total:032x}"
            assert records_of(tmp_path / "out", split) == [*open_dataset(tmp_path / "a").records(split), *payloads]

    def test_a_file_that_holds_no_example_is_opaque_unless_examples_are_asked_for(self, tmp_path: Path) -> None:
        payloads = [b"\xff plain %d" % i for i in range(50)]
        write_records(tmp_path / "x.tfrecord", payloads)
        summary = merged(tmp_path / "out", tmp_path / "x.tfrecord")
        assert summary.manifest.schema is None
        assert "no record is a tf.train.Example: they are taken as plain bytes, without a schema" in summary.warnings
        assert records_of(tmp_path / "out") == payloads
        assert merged(tmp_path / "again", tmp_path / "out").manifest.schema is None
        with pytest.raises(SchemaError, match=r"x\.tfrecord: none of its records is a tf\.train\.Example"):
            merged(tmp_path / "no", tmp_path / "x.tfrecord", input__records="example")

    def test_a_file_without_an_example_beside_one_with_is_refused(self, tmp_path: Path) -> None:
        write_records(tmp_path / "a.tfrecord", [example(a=1)])
        write_records(tmp_path / "b.tfrecord", [b"\xff no example"])
        with pytest.raises(SchemaError, match=r"b\.tfrecord: none of its records is .*input\.records=opaque"):
            merged(tmp_path / "out", tmp_path / "a.tfrecord", tmp_path / "b.tfrecord")
        assert not (tmp_path / "out").exists()

    def test_empty_files_and_empty_records_are_taken(self, tmp_path: Path) -> None:
        write_records(tmp_path / "a.tfrecord", [])
        write_records(tmp_path / "b.tfrecord", [b"", b"", b""])
        (tmp_path / "c.tfrecord.gz").write_bytes(gzip.compress(b""))
        merged(tmp_path / "out", *(tmp_path / name for name in ("a.tfrecord", "b.tfrecord", "c.tfrecord.gz")))
        assert records_of(tmp_path / "out") == [b"", b"", b""]

    def test_only_features_that_cannot_be_of_the_schema_are_marked(self, tmp_path: Path) -> None:
        convert(data=pa.table({"id": [1, 2], "text": ["a", "b"]}), output=tmp_path / "a")
        write_records(tmp_path / "x.tfrecord", [example(id=1.5, text="x"), example(id=2.5, text="y")])
        with pytest.raises(SchemaError) as caught:
            merged(tmp_path / "out", tmp_path / "a", tmp_path / "x.tfrecord")
        rows = [line.split() for line in str(caught.value).splitlines()[2:]]
        assert [(row[0], row[-1]) for row in rows] == [("id", "re-typed"), ("text", "(bytes)")]

    def test_a_record_that_lacks_what_others_have_is_a_reject_beside_a_dataset(self, tmp_path: Path) -> None:
        convert(data=pa.table({"id": [1, 2], "text": ["a", "b"]}), output=tmp_path / "a")
        write_records(tmp_path / "x.tfrecord", [example(id=3, text="c"), example(id=4), example(id=[5, 6], text="d")])
        with pytest.raises(
            TooManyRejects,
            match=r"record 1 at byte .*: CORRUPT.*\n.* record 2 at byte .*: CORRUPT",
        ):
            merged(tmp_path / "out", tmp_path / "a", tmp_path / "x.tfrecord")
        merged(tmp_path / "out", tmp_path / "a", tmp_path / "x.tfrecord", max_rejects=2)
        assert records_of(tmp_path / "out")[2:] == [example(id=3, text="c")]


class TestDamage:
    @pytest.mark.parametrize("length", [1 << 63, (1 << 64) - 1, (1 << 64) - 16, (1 << 40), (1 << 31), 200])
    @pytest.mark.parametrize("records", ["opaque", "example"])
    @pytest.mark.parametrize("packed", [False, True])
    def test_a_length_that_lies_is_refused_by_file_record_and_byte(
        self, tmp_path: Path, length: int, records: str, packed: bool
    ) -> None:
        good = example(a=1)
        write_records(tmp_path / "x.tfrecord", [good, good])
        sound = (tmp_path / "x.tfrecord").read_bytes()
        head = struct.pack("<Q", length)
        data = sound + head + struct.pack("<I", mask(crc32c(head))) + b"\0" * 100
        (tmp_path / "x.tfrecord").write_bytes(gzip.compress(data) if packed else data)
        place = rf"x\.tfrecord: record 2 at byte {len(sound)}: "
        with pytest.raises(RunError, match=place):
            merged(tmp_path / "out", tmp_path / "x.tfrecord", input__records=records)
        assert not (tmp_path / "out/manifest.json").exists()

    @pytest.mark.parametrize("packed", [False, True])
    def test_a_cut_anywhere_in_a_file_is_told_by_file_record_and_byte(self, tmp_path: Path, packed: bool) -> None:
        payloads = [example(a=i) for i in range(3)]
        write_records(tmp_path / "x.tfrecord", payloads)
        whole = (tmp_path / "x.tfrecord").read_bytes()
        second, third = len(payloads[0]) + FRAME_BYTES, len(payloads[0] + payloads[1]) + 2 * FRAME_BYTES
        for size in range(second + 1, third):
            cut = whole[:size]
            (tmp_path / "x.tfrecord").write_bytes(gzip.compress(cut) if packed else cut)
            with pytest.raises(RunError, match=rf"x\.tfrecord: record 1 at byte {second}: "):
                merged(tmp_path / "out", tmp_path / "x.tfrecord", input__records="opaque")

    def test_a_gzip_file_that_is_cut_or_damaged_is_told(self, tmp_path: Path) -> None:
        payloads = payloads_like(2000)
        write_records(tmp_path / "x.tfrecord.gz", payloads, "gzip")
        packed = (tmp_path / "x.tfrecord.gz").read_bytes()
        for damaged in (packed[:-4], packed[: len(packed) // 2], packed[:-8] + bytes(4) + packed[-4:]):
            (tmp_path / "x.tfrecord.gz").write_bytes(damaged)
            with pytest.raises(RunError, match=r"x\.tfrecord\.gz: record \d+ at byte \d+: "):
                merged(tmp_path / "out", tmp_path / "x.tfrecord.gz", input__records="opaque")

    def test_a_file_that_changes_between_planning_and_reading_is_refused(self, tmp_path: Path) -> None:
        write_records(tmp_path / "x.tfrecord", [b"one", b"two"])
        planned = plan_merge("merge", [str(tmp_path / "x.tfrecord")], {"output.path": ("-o", str(tmp_path / "out"))})
        prepared = planned._prepared(planned.source, WorkerProcesses(1))
        write_records(tmp_path / "x.tfrecord", [b"one", b"two", b"three"])
        with pytest.raises(RunError, match=r"x\.tfrecord"):
            list(prepared.source.read(prepared.plan.tasks[0], prepared.plan.survey.frozen))


class TestWorkers:
    @pytest.fixture(scope="class")
    @classmethod
    def inputs(cls, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
        """A dataset, a gzip file, and plain files that are cut into many tasks."""
        folder = tmp_path_factory.mktemp("inputs")
        write_records(folder / "b.tfrecord", payloads_like(30_000, 2))
        write_records(folder / "c.tfrecord.gz", payloads_like(5_000, 3), "gzip")
        write_records(folder / "d.tfrecord", payloads_like(40, 4, largest=1_500_000))
        write_records(folder / "e.tfrecord", payloads_like(3_000, 5))
        merged(folder / "a", folder / "e.tfrecord", input__records="opaque", output__compression="gzip")
        return [folder / name for name in ("d.tfrecord", "a", "c.tfrecord.gz", "b.tfrecord")]

    @pytest.mark.parametrize("compression", ["none", pytest.param("gzip", marks=pytest.mark.thorough("gzip too"))])
    def test_their_number_and_kind_change_no_byte(self, tmp_path: Path, inputs: list[Path], compression: str) -> None:
        ways: list[dict[str, object]] = [{"runner__workers": n, "runner__processes": False} for n in (1, 2, 4)]
        ways += [{"runner__workers": n, "runner__processes": True} for n in (1, 2)]
        contents = set()
        for number, way in enumerate(ways):
            out = tmp_path / f"out{number}"
            options = {"input__records": "opaque", "output__shard_size": "1MiB", "name": "x"}
            merged(out, *inputs, output__compression=compression, **options, **way)
            shards = sorted(out.glob("train-*"))
            contents.add(tuple(zlib.crc32(path.read_bytes()) for path in shards))
            assert len(shards) > 5
        assert len(contents) == 1
        expected = [
            *read_records(inputs[0]),
            *open_dataset(inputs[1]).records("train"),
            *read_records(inputs[2]),
            *read_records(inputs[3]),
        ]
        assert records_of(tmp_path / "out0") == expected


@settings(max_examples=examples(25), deadline=None)
@given(
    files=st.lists(st.lists(st.integers(0, 30_000), max_size=12), min_size=1, max_size=4),
    packed=st.lists(st.booleans(), min_size=4, max_size=4),
    shard_size=st.sampled_from([65536, 70_001, 1 << 50]),
    compression=st.sampled_from(["none", "gzip"]),
)
def test_any_files_come_out_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[int]],
    packed: list[bool],
    shard_size: int,
    compression: str,
) -> None:
    folder = tmp_path_factory.mktemp("any")
    written: list[bytes] = []
    paths = []
    for number, sizes in enumerate(files):
        payloads = [bytes([number, i]) * (size // 2) + b"!" for i, size in enumerate(sizes)]
        paths.append(folder / f"{number}.tfrecord")
        write_records(paths[-1], payloads, "gzip" if packed[number] else "none")
        written += payloads
    options = {"output__shard_size": shard_size, "output__compression": compression, "input__records": "opaque"}
    manifest = merged(folder / "out", *paths, **options).manifest
    if not written:
        assert manifest.splits == {}
        return
    assert records_of(folder / "out") == written
    assert manifest.splits["train"].records_digest == f"sum128:{digest_of(written):032x}"
