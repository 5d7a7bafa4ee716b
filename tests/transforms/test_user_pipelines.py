"""The three transforms in a pipeline of the user's own, on Beam's own runners, without a network."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, translations
from apache_beam.testing.test_pipeline import TestPipeline as BeamTestPipeline
from PIL import Image
from shardmill.pipelines import convert
from shardmill.pipelines.cli import main
from shardmill.transforms import EncodeExamples, ReadRows, WriteShards, write_records
from shardmill.transforms.dataset.commit.publish import finish_publish
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.errors import CommitError, RunError, SchemaError, TargetError, UsageError
from shardmill.transforms.format.batches.rows import Rows, TaskEnd
from shardmill.transforms.format.examples.encode_rows import RowEncoder

pytestmark = pytest.mark.engine

ROWS = 5000


@pytest.fixture
def numbers(tmp_path: Path) -> str:
    (tmp_path / "in").mkdir()
    for i in range(4):
        table = pa.table({"id": range(i * ROWS, (i + 1) * ROWS), "half": [float(n) / 2 for n in range(ROWS)]})
        pq.write_table(table, tmp_path / f"in/{i}.parquet", row_group_size=1000)
    return str(tmp_path / "in/*.parquet")


def ids(out: Path) -> list[int]:
    return sorted(open_dataset(out).to_arrow("train", ["id"])["id"].to_pylist())


def _only_even(rows: Rows | TaskEnd) -> Rows | TaskEnd:
    """What a user may do between: here to a column, row by row as many as there were."""
    if isinstance(rows, TaskEnd):
        return rows
    at = rows.batch.schema.get_field_index("id")
    return replace(rows, batch=rows.batch.set_column(at, "id", pc.multiply(rows.batch.column(at), 2)))


def _in_test_pipeline() -> beam.Pipeline:
    return BeamTestPipeline(runner=FnApiRunner())


def _in_bare_pipeline() -> beam.Pipeline:
    return beam.Pipeline()


@pytest.mark.usefixtures("offline")
def test_a_function_over_batches_is_a_step_whose_schema_and_dropped_rows_are_known(
    tmp_path: Path, numbers: str
) -> None:
    def even(batch: pa.RecordBatch) -> tuple[dict[str, pa.Array], pa.BooleanArray]:
        whole = batch["id"]
        return {"id": whole, "double": pc.multiply(whole, 2)}, pc.equal(pc.bit_wise_and(whole, 1), 0)

    read = ReadRows(numbers, map=even)
    assert [feature.name for feature in read.schema] == ["double", "id"]
    with beam.Pipeline() as pipeline:
        _ = pipeline | read | EncodeExamples(read.info) | WriteShards(str(tmp_path / "out"), info=read.info)
    assert ids(tmp_path / "out") == list(range(0, 4 * ROWS, 2))
    counts = open_dataset(tmp_path / "out").manifest.counts
    assert (counts.read, counts.written, counts.dropped) == (4 * ROWS, 2 * ROWS, 2 * ROWS)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("make", [_in_test_pipeline, _in_bare_pipeline])
def test_files_are_read_encoded_and_written(
    tmp_path: Path, numbers: str, make: type[beam.Pipeline], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    reader = ReadRows(numbers, shard_size="64KiB")
    with make() as pipeline:
        _ = (
            pipeline
            | reader
            | EncodeExamples(reader.info)
            | WriteShards(str(tmp_path / "out"), info=reader.info, shard_size="64KiB")
        )
    assert ids(tmp_path / "out") == list(range(4 * ROWS))
    manifest = read_manifest(str(tmp_path / "out"))
    assert manifest.schema == reader.schema
    assert len(manifest.splits["train"].shards) > 5


@pytest.mark.usefixtures("offline")
def test_a_step_of_the_users_between_stays_in_the_chain(tmp_path: Path, numbers: str) -> None:
    reader = ReadRows(numbers, shard_size="64KiB")
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        _ = (
            pipeline
            | reader
            | "Double" >> beam.Map(_only_even)
            | EncodeExamples(reader.info)
            | WriteShards(str(tmp_path / "out"), info=reader.info, shard_size="64KiB")
        )
    assert ids(tmp_path / "out") == list(range(0, 8 * ROWS, 2))


@pytest.mark.usefixtures("offline")
def test_bare_record_batches_of_the_users_are_encoded(tmp_path: Path, numbers: str) -> None:
    reader = ReadRows(numbers)
    batches = pa.table({"id": range(100), "half": [0.5] * 100}).to_batches(max_chunksize=10)
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        _ = (
            pipeline
            | beam.Create(batches)
            | EncodeExamples(reader.schema)
            | WriteShards(str(tmp_path / "out"), schema=reader.schema)
        )
    assert ids(tmp_path / "out") == list(range(100))


def test_existing_records_are_passed_on_as_they_are(tmp_path: Path, numbers: str) -> None:
    convert({"input": {"paths": [numbers]}}, output=tmp_path / "a", shard_size="64KiB")
    reader = ReadRows(f"{tmp_path}/a/train-*.tfrecord", shard_size="128KiB")
    assert reader.schema == read_manifest(str(tmp_path / "a")).schema
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        _ = (
            pipeline
            | reader
            | EncodeExamples(reader.info)
            | WriteShards(str(tmp_path / "out"), info=reader.info, shard_size="128KiB")
        )
    before, after = (read_manifest(str(tmp_path / name)).splits["train"] for name in ("a", "out"))
    assert (after.records, after.records_digest) == (before.records, before.records_digest)
    assert len(after.shards) < len(before.shards)


def _stages(pipeline: beam.Pipeline) -> Iterator[translations.Stage]:
    proto = pipeline.to_runner_api(default_environment=None)
    _, stages = translations.create_and_optimize_stages(
        proto, phases=translations.standard_optimize_phases(), known_runner_urns=frozenset()
    )
    yield from stages


def test_reading_encoding_and_staging_are_one_stage_without_side_inputs(tmp_path: Path, numbers: str) -> None:
    reader = ReadRows(numbers, shard_size="64KiB")
    pipeline = beam.Pipeline(runner=FnApiRunner())
    _ = pipeline | reader | EncodeExamples(reader.info) | WriteShards(str(tmp_path / "out"), info=reader.info)
    steps = ("Read rows", "Encode rows", "Stage parts")
    holding = {
        step: [stage for stage in _stages(pipeline) if any(step in t.unique_name for t in stage.transforms)]
        for step in steps
    }
    (stage,) = holding["Read rows"]
    names = [transform.unique_name for transform in stage.transforms]
    for step in steps:
        assert len(holding[step]) == 1
        assert any(step in name for name in names), (step, names)
    assert list(stage.side_inputs()) == []


def a_picture(path: Path, shade: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (shade, 0, 0)).save(path)


def write_like_the_readme(source: str, out: Path) -> None:
    read = ReadRows(source)
    with BeamTestPipeline(runner=FnApiRunner()) as pipeline:
        _ = pipeline | read | EncodeExamples(read.info) | WriteShards(str(out), info=read.info)


def test_labels_and_splits_of_folders_arrive_as_they_do_in_the_command(tmp_path: Path) -> None:
    for i, folder in enumerate(("train/cat", "train/dog", "val/cat", "val/dog")):
        for number in range(3):
            a_picture(tmp_path / f"in/{folder}/{number}.png", 60 * i + number)
    write_like_the_readme(str(tmp_path / "in"), tmp_path / "own")
    convert({"input": {"paths": [str(tmp_path / "in")]}}, output=tmp_path / "command")
    own, command = (read_manifest(str(tmp_path / name)) for name in ("own", "command"))
    assert own.labels == {"image/class/label": ("cat", "dog")}
    assert (own.schema, own.labels, own.splits) == (command.schema, command.labels, command.splits)
    assert [split.records for split in own.splits.values()] == [6, 6]


@pytest.mark.parametrize("kind", ["csv", "numpy", "opaque"])
def test_the_readmes_pipeline_is_right_for_every_source(kind: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    if kind == "csv":
        (tmp_path / "in/a.csv").write_text("id,text\n" + "".join(f"{n},t{n}\n" for n in range(500)))
    elif kind == "numpy":
        for n in range(500):
            np.save(tmp_path / f"in/{n}.npy", np.arange(n % 7))
    else:
        write_records(tmp_path / "in/a.tfrecord", [b"\xff%d" % n for n in range(500)])
    write_like_the_readme(str(tmp_path / "in"), tmp_path / "own")
    convert({"input": {"paths": [str(tmp_path / "in")]} | OPAQUE.get(kind, {})}, output=tmp_path / "command")
    own, command = (read_manifest(str(tmp_path / name)) for name in ("own", "command"))
    assert (own.schema, own.labels, own.splits) == (command.schema, command.labels, command.splits)
    assert own.counts.written == 500


OPAQUE: dict[str, dict[str, str]] = {"opaque": {"format": "tfrecord", "records": "opaque"}}


def test_a_schema_alone_is_refused_where_it_would_lose_labels_or_splits(tmp_path: Path) -> None:
    for folder in ("train/cat", "val/cat"):
        a_picture(tmp_path / f"in/{folder}/1.png", 1)
    read = ReadRows(str(tmp_path / "in"))
    with pytest.raises(UsageError, match=r"class names are not given: pass on `read\.info` of ReadRows"):
        WriteShards(str(tmp_path / "out"), schema=read.schema)
    with pytest.raises(UsageError, match="leave those arguments out"):
        WriteShards(str(tmp_path / "out"), info=read.info, schema=read.schema)
    with (
        pytest.raises((SchemaError, RuntimeError), match=r"give it `read\.info` of ReadRows instead"),
        BeamTestPipeline(runner=FnApiRunner()) as pipeline,
    ):
        _ = pipeline | read | EncodeExamples(read.schema) | WriteShards(str(tmp_path / "out"), info=read.info)


class TestRunTwice:
    """The same pipeline object, run a second time."""

    def pipeline(self, tmp_path: Path, rows: int) -> beam.Pipeline:
        self.put(tmp_path, rows)
        pipeline = beam.Pipeline(runner=FnApiRunner())
        records = pipeline | beam.Create([str(tmp_path / "in.txt")]) | beam.FlatMap(_lines)
        _ = records | WriteShards(str(tmp_path / "out"), shard_size="64KiB")
        return pipeline

    def put(self, tmp_path: Path, rows: int) -> None:
        (tmp_path / "in.txt").write_bytes(b"".join(b"%06d" % n + b"x" * 90 + b"\n" for n in range(rows)))

    def records(self, tmp_path: Path) -> int:
        return sum(1 for _ in open_dataset(tmp_path / "out").records("train"))

    def test_on_the_same_input_it_finds_what_it_committed(self, tmp_path: Path) -> None:
        pipeline = self.pipeline(tmp_path, 3000)
        for _ in range(2):
            pipeline.run().wait_until_finish()
        assert self.records(tmp_path) == 3000
        assert verify_dataset(tmp_path / "out").findings == ()
        assert not (tmp_path / "out/.staging").exists()

    def test_on_other_input_it_is_refused_and_the_dataset_stays(self, tmp_path: Path) -> None:
        pipeline = self.pipeline(tmp_path, 3000)
        pipeline.run().wait_until_finish()
        self.put(tmp_path, 2000)
        with pytest.raises((CommitError, RuntimeError), match=r"this pipeline has run before.*build it again"):
            pipeline.run().wait_until_finish()
        assert self.records(tmp_path) == 3000
        assert verify_dataset(tmp_path / "out").findings == ()

    def test_so_does_a_dataset_whose_publishing_the_first_run_did_not_come_to(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pipeline = self.pipeline(tmp_path, 3000)
        with monkeypatch.context() as patch:
            patch.setattr("shardmill.transforms.dataset.commit.publish._move", _power_cut)
            with pytest.raises((OSError, RuntimeError), match="the power went"):
                pipeline.run().wait_until_finish()
        self.put(tmp_path, 2000)
        with pytest.raises((CommitError, RuntimeError), match="this pipeline has run before"):
            pipeline.run().wait_until_finish()
        finish_publish(str(tmp_path / "out"))
        assert self.records(tmp_path) == 3000
        assert verify_dataset(tmp_path / "out").findings == ()

    def test_if_another_pipeline_has_replaced_its_dataset_meanwhile_that_one_stays(self, tmp_path: Path) -> None:
        pipeline = self.pipeline(tmp_path, 3000)
        pipeline.run().wait_until_finish()
        other = beam.Pipeline(runner=FnApiRunner())
        _ = other | beam.Create([b"q"]) | WriteShards(str(tmp_path / "out"), if_exists="replace")
        other.run().wait_until_finish()
        with pytest.raises((CommitError, RuntimeError), match=r"generation 2 has replaced it.*build it again"):
            pipeline.run().wait_until_finish()
        assert list(open_dataset(tmp_path / "out").records("train")) == [b"q"]
        assert verify_dataset(tmp_path / "out").findings == ()


SCHEMA = pa.schema([("id", pa.int64())])


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64())], schema=SCHEMA)


class TestTwoSplits:
    """Records of two collections, each of which is a split."""

    def test_a_second_dataset_in_the_folder_of_the_first_is_refused_before_the_run(self, tmp_path: Path) -> None:
        pipeline, out = beam.Pipeline(runner=FnApiRunner()), str(tmp_path / "out")
        _ = pipeline | "One" >> beam.Create([b"1"]) | "Train" >> WriteShards(out, split="train")
        with pytest.raises(
            UsageError, match=r'pipeline writes another dataset into .*/out.*split="val".*merge A B -o C'
        ):
            _ = pipeline | "Two" >> beam.Create([b"2"]) | "Val" >> WriteShards(out + "/", split="val")

    def test_a_second_pipeline_is_shown_how_both_are_kept(self, tmp_path: Path) -> None:
        for split in ("train", "val"):
            problem = r"another folder, and join the two: shardmill merge A B -o C.*removes what is there"
            with (
                nullcontext() if split == "train" else pytest.raises(TargetError, match=problem),
                beam.Pipeline(runner=FnApiRunner()) as pipeline,
            ):
                _ = pipeline | beam.Create([b"1"]) | WriteShards(str(tmp_path / "out"), split=split)

    def test_one_write_takes_both(self, tmp_path: Path) -> None:
        with beam.Pipeline(runner=FnApiRunner()) as pipeline:
            train = pipeline | "One" >> beam.Create([batch(1, 2)]) | "Train" >> EncodeExamples(SCHEMA)
            val = pipeline | "Two" >> beam.Create([batch(3)]) | "Val" >> EncodeExamples(SCHEMA, split="val")
            _ = (train, val) | beam.Flatten() | WriteShards(str(tmp_path / "out"), schema=SCHEMA)
        dataset = open_dataset(tmp_path / "out")
        assert {name: [row["id"] for row in dataset[name]] for name in dataset.splits} == {"train": [1, 2], "val": [3]}

    def test_so_does_a_merge_of_two_folders(self, tmp_path: Path) -> None:
        with beam.Pipeline(runner=FnApiRunner()) as pipeline:
            for split in ("train", "val"):
                out = str(tmp_path / split)
                _ = pipeline | f"In {split}" >> beam.Create([split.encode()]) | split >> WriteShards(out, split=split)
        with pytest.raises(SystemExit, match="0"):
            main(["merge", f"{tmp_path}/train", f"{tmp_path}/val", "-o", f"{tmp_path}/out"])
        dataset = open_dataset(tmp_path / "out")
        assert {name: list(dataset.records(name)) for name in dataset.splits} == {"train": [b"train"], "val": [b"val"]}

    def test_the_split_of_plain_bytes_is_not_taken_for_that_of_blocks(self, tmp_path: Path) -> None:
        write = WriteShards(str(tmp_path / "out"), schema=SCHEMA, split="val")
        with (
            pytest.raises((UsageError, RuntimeError), match=r'EncodeExamples\(\.\.\., split="val"\)'),
            beam.Pipeline(runner=FnApiRunner()) as pipeline,
        ):
            _ = pipeline | beam.Create([batch(1)]) | EncodeExamples(SCHEMA) | write
        assert not (tmp_path / "out/manifests").exists()

    def test_a_source_whose_folders_are_splits_takes_no_other(self, tmp_path: Path, numbers: str) -> None:
        for name in ("train", "val"):
            a_picture(tmp_path / f"cut/{name}/cat/1.png", 1)
        with pytest.raises(UsageError, match="the folders of the source are its splits: train, val"):
            EncodeExamples(ReadRows(str(tmp_path / "cut")).info, split="val")
        with pytest.raises(UsageError, match=r'split is "Val"'):
            EncodeExamples(ReadRows(numbers).info, split="Val")


@pytest.mark.parametrize("given", [[], [batch()]], ids=["nothing", "no rows"])
def test_a_dataset_without_a_record_is_warned_of(
    given: list[pa.RecordBatch], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        encoded = pipeline | beam.Create(given) | EncodeExamples(SCHEMA)
        _ = encoded | WriteShards(str(tmp_path / "out"), schema=SCHEMA)
    assert [text for text in caplog.messages if "out" in text and "no record" in text] == [
        f"{tmp_path}/out: no rows were read: generation 1 holds no record"
    ]


@pytest.mark.parametrize("step", [lambda rows: [], lambda rows: [rows, rows]], ids=["left out", "twice"])
def test_a_step_of_the_users_that_leaves_out_or_repeats_batches_is_refused_as_that(
    step: Callable[[Rows], list[Rows]], tmp_path: Path, numbers: str
) -> None:
    def flat(rows: Rows | TaskEnd) -> list[Rows | TaskEnd]:
        return [rows] if isinstance(rows, TaskEnd) else [*step(rows)]

    read = ReadRows(numbers)
    with (
        pytest.raises(
            RuntimeError, match=r"a step before it left out, repeated or moved batches.*ReadRows\(map="
        ) as got,
        beam.Pipeline(runner=FnApiRunner()) as pipeline,
    ):
        _ = (
            pipeline
            | read
            | beam.FlatMap(flat)
            | EncodeExamples(read.info)
            | WriteShards(str(tmp_path / "o"), info=read.info)
        )
    assert "GroupByKey, Reshuffle" in str(got.value)
    assert not (tmp_path / "o/manifests").exists()


def test_a_step_of_the_users_that_leaves_out_rows_is_refused_with_the_one_that_may(
    tmp_path: Path, numbers: str
) -> None:
    def half(rows: Rows | TaskEnd) -> Rows | TaskEnd:
        return rows if isinstance(rows, TaskEnd) else replace(rows, batch=rows.batch.slice(0, rows.batch.num_rows // 2))

    read = ReadRows(numbers)
    with (
        pytest.raises((RunError, RuntimeError), match=r"rows do not add up.*\n(.*\n)+.*ReadRows\(map=\.\.\.\) does it"),
        beam.Pipeline(runner=FnApiRunner()) as pipeline,
    ):
        _ = (
            pipeline
            | read
            | beam.Map(half)
            | EncodeExamples(read.info)
            | WriteShards(str(tmp_path / "o"), info=read.info)
        )


def test_two_sources_before_one_write_are_refused_with_what_joins_them(tmp_path: Path, numbers: str) -> None:
    read, pipeline = ReadRows(numbers), beam.Pipeline(runner=FnApiRunner())
    both = [pipeline | f"Read {i}" >> ReadRows(numbers) | f"Encode {i}" >> EncodeExamples(read.info) for i in "ab"]
    _ = both | beam.Flatten() | WriteShards(str(tmp_path / "o"), schema=read.schema)
    with pytest.raises((RunError, RuntimeError), match=r"task 0 came 2 times\n(.*\n)*.*shardmill merge A B -o C"):
        pipeline.run().wait_until_finish()


@pytest.mark.parametrize(
    ("rows", "said", "made"),
    [
        (pa.table({"id": [1]}), "FlatMap(pa.Table.to_batches)", beam.FlatMap(pa.Table.to_batches)),
        ([{"id": 1}], "Map(lambda rows: pa.RecordBatch", beam.Map(lambda rows: batch(*(row["id"] for row in rows)))),
    ],
    ids=["table", "list"],
)
def test_tables_and_lists_are_refused_with_a_step_that_works(
    rows: object, said: str, made: beam.PTransform, tmp_path: Path
) -> None:
    with (
        pytest.raises((UsageError, RuntimeError), match=re.escape(f"encode them: | beam.{said}")),
        beam.Pipeline(runner=FnApiRunner()) as pipeline,
    ):
        _ = pipeline | beam.Create([rows]) | EncodeExamples(SCHEMA) | WriteShards(str(tmp_path / "a"), schema=SCHEMA)
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        encoded = pipeline | beam.Create([rows]) | made | EncodeExamples(SCHEMA)
        _ = encoded | WriteShards(str(tmp_path / "out"), schema=SCHEMA)
    assert ids(tmp_path / "out") == [1]


def test_dicts_are_refused_by_the_encoder_with_the_steps_before_it(tmp_path: Path) -> None:
    with (
        pytest.raises(
            (UsageError, RuntimeError), match=r"not dict; make record batches.*\| beam\.BatchElements\(\) \|"
        ),
        beam.Pipeline(runner=FnApiRunner()) as pipeline,
    ):
        _ = (
            pipeline
            | beam.Create([{"id": 1}])
            | EncodeExamples(SCHEMA)
            | WriteShards(str(tmp_path / "o"), schema=SCHEMA)
        )


def test_an_arrow_schema_makes_an_encoder() -> None:
    encode = EncodeExamples(pa.schema([pa.field("id", pa.int64(), nullable=False), ("tags", pa.list_(pa.string()))]))
    assert isinstance(encode.encoder, RowEncoder)
    assert [(one.name, one.kind, one.nullable) for one in encode.encoder.schema] == [
        ("id", "int64", False),
        ("tags", "bytes", True),
    ]
    with pytest.raises(SchemaError, match="month_day_nano_interval"):
        EncodeExamples(pa.schema([("x", pa.month_day_nano_interval())]))


def test_what_is_passed_for_something_else_is_named(tmp_path: Path, numbers: str) -> None:
    read = ReadRows(numbers)
    for wrong in ({"info": read.schema}, {"schema": read.info}):
        with pytest.raises(UsageError, match=r"WriteShards: info is `read\.info` of ReadRows, schema a Schema"):
            WriteShards(str(tmp_path / "out"), **wrong)
    with pytest.raises(UsageError, match=r"EncodeExamples takes `read\.info` of ReadRows.*not ReadRows"):
        EncodeExamples(read)  # type: ignore[arg-type]


def _lines(path: str) -> list[bytes]:
    return Path(path).read_bytes().splitlines()


def _power_cut(*_: object) -> None:
    raise OSError("the power went")
