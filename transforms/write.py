"""`WriteShards`, the sink: records become the shards of a dataset, all of them or none.

    blocks ─▶ Stage parts ─▶ Plan shards ─▶ Assemble shards ─▶ Commit ─▶ Publish shards ─▶ Complete ─▶ Report
              per task       one step       per shard          one step  per file          one step    one step

Where records are shuffled, `SecondPass` comes behind the first of them.

Only descriptors cross a stage boundary, never records. What each step does is a function of `dataset/`; none of Beam's
own file sinks has a part in it.

If an engine loses a descriptor, or delivers it twice, the next step that sees all of them detects it. It fails the
run with a message that says so, or the result is whole all the same. Missing tasks are noticed if their number is known
(`info.tasks`); nothing is known of how many plain records there should be.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import apache_beam as beam
import pyarrow as pa
from apache_beam.metrics import Metrics
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from .dataset.commit.accounting import Refusal
from .dataset.commit.assemble_shards import ShardJob, assemble_shard
from .dataset.commit.commit_generation import Commit, WriteOutcome, commit_arrived, empty_warnings, plan_generation
from .dataset.commit.plan_step import plan_shuffle
from .dataset.commit.publish import (
    complete_generation,
    grouped_moves,
    prepare_target,
    publish_file,
    replacing_what_is_there,
)
from .dataset.commit.second_pass import ShuffleTask, run_shuffle_task
from .dataset.stage.spec import JOIN_TWO, DatasetSpec
from .dataset.stage.task_stager import TaskResult, TaskStager, read_result
from .dataset.storage.contract import check_shared
from .dataset.storage.object_storage import absolute
from .elements import KEYED, Gather, SourceInfo, gathered_values, keyed, packed, unpacked, warn_of_timed_flushes
from .encode import check_split, not_taken
from .errors import UsageError
from .format.batches.rows import Block, TaskEnd
from .format.manifest.naming import DEFAULT_SHARD_NAME, dataset_name
from .format.schema.arrow_types import schema_of
from .format.schema.schema import Schema
from .format.splits.splitter import DEFAULT_SPLIT
from .format.tfrecord.framing import frame_records
from .format.wording.printable import DEFAULT_SHARD_SIZE, parse_size

_LOG: Final = logging.getLogger(__name__)

_BATCH_RECORDS: Final = 4096
_BATCH_BYTES: Final = 4 << 20
"""The number of plain records, or bytes, that are framed at once."""

METRICS: Final = "shardmill"
"""The namespace of Beam's metrics: `records` and `bytes` that were staged."""


@dataclass(eq=False)
class WriteShards(beam.PTransform):
    """Write a `PCollection` of blocks, or of plain `bytes` (one record each), as a dataset.

        read = ReadRows("data/*.parquet")
        pipeline | read | EncodeExamples(read.info) | WriteShards("out/", info=read.info, shard_size="64MiB")

    The result is a `PCollection` of one `WriteOutcome`. Too many rejects, or rows that do not add up, fail the pipeline
    in one of its last steps; nothing is committed then. Records that come from no task keep the runner's order.

    Args:
        path: the dataset's folder.
        shard_size: the most that a shard takes on disk, in bytes, or as text like "128MiB"; 64 KiB at least.
        compression: "none", or "gzip".
        order: "task", or "source" for records that follow the source throughout; bytes may then be written twice.
        info: what `ReadRows` knows of the source: schema, labels, and how many tasks there are, each of which must
            arrive. Without a schema the manifest's is null, and no sidecars are written.
        schema: what the Examples hold, for records that do not come from `ReadRows`; instead of `info`. An Arrow schema
            without nested columns is taken too.
        labels: the class names of each label feature of that schema.
        name: the dataset's name, by default made of the folder's.
        split: where plain bytes go, by default "train"; `EncodeExamples` says where rows go.
        shard_name: the names of shards, without their suffix.
        sidecars: which files are written beside the shards: "tfds", "tfx", "offsets" (where each record begins),
            "index" (the same as text).
        max_rejects: how many rows may be rejected, or a share of those read, like "1%".
        if_exists: "refuse", or "replace" for a folder that holds another dataset.
        spec: a whole run, instead of the other arguments but `split`.
        done: results of tasks that a run before has staged, where this one resumes it.
        raise_refusal: whether a refusal fails the pipeline; if not, it is in the outcome and the staging folder only.

    Raises:
        UsageError: an argument is not allowed (when made), or the folder holds something else (when applied).
        TooManyRejects: in one of the last steps, more rows were rejected than `max_rejects` allows.
        RunError: in one of the last steps, rows or tasks do not add up, or another writer was first.
    """

    path: str
    shard_size: int | str = field(default=DEFAULT_SHARD_SIZE, kw_only=True)
    compression: str = field(default="none", kw_only=True)
    order: str = field(default="task", kw_only=True)
    info: SourceInfo | None = field(default=None, kw_only=True, repr=False)
    schema: Schema | pa.Schema | None = field(default=None, kw_only=True)
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)
    name: str | None = field(default=None, kw_only=True)
    split: str | None = field(default=None, kw_only=True)
    shard_name: str = field(default=DEFAULT_SHARD_NAME, kw_only=True)
    sidecars: tuple[str, ...] = field(default=("tfds", "tfx", "offsets"), kw_only=True)
    max_rejects: int | str = field(default=0, kw_only=True)
    if_exists: str = field(default="refuse", kw_only=True)
    spec: DatasetSpec | None = field(default=None, kw_only=True)
    raise_refusal: bool = field(default=True, kw_only=True)
    done: Sequence[TaskResult] = field(default=(), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        super().__init__()
        if isinstance(self.schema, pa.Schema):
            self.schema = schema_of(self.schema)
        if not isinstance(self.info, SourceInfo | None) or not isinstance(self.schema, Schema | None):
            raise UsageError("WriteShards: info is `read.info` of ReadRows, schema a Schema")
        if self.split is not None:
            check_split(self.split)
        self._run = self.spec or self._own_spec()

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        warn_of_timed_flushes(pcoll.pipeline)
        if self.spec is None:
            self._check_alone(pcoll.pipeline)
            prepare_target(self._run)
            self._run = replacing_what_is_there(self._run)
        if not pcoll.windowing.is_default():
            pcoll = pcoll | "Into one window" >> beam.WindowInto(GlobalWindows())
        spec = self._run
        light = replace(spec, source_entries=(), schema=None, labels={})  # the graph carries it once a step
        counting = light if spec.statistics is None else replace(light, schema=spec.schema)
        staged = pcoll | "Stage parts" >> beam.ParDo(_StagePartsFn(light, self.split)).with_output_types(KEYED)
        # (0, TaskResult)
        done = tuple(result.task for result in self.done)  # read where they are needed: the graph would carry them
        if spec.shuffle is not None:
            staged = staged | "Second pass" >> SecondPass(spec, light, done)  # (0, TaskResult)
            done = ()
        complete = _CompleteFn(light, raise_refusal=self.raise_refusal)
        planned = (
            staged
            | "Gather results" >> Gather()
            | "Plan shards" >> beam.ParDo(_PlanShardsFn(spec, done))  # Draft and ShardJobs, or a Refusal
            | "Spread shards" >> beam.Reshuffle()
            | "Assemble shards" >> beam.ParDo(_AssembleShardFn(counting)).with_output_types(KEYED)
            # (0, Draft | ShardJob | Refusal)
        )
        committed = (
            planned
            | "Gather shards" >> Gather()
            | "Commit" >> beam.ParDo(_CommitFn(spec))  # Commit and Moves, or a Refusal
            | "Spread files" >> beam.Reshuffle()
            | "Publish shards" >> beam.ParDo(_PublishFileFn(light)).with_output_types(KEYED)
            # (0, Commit | None | Refusal)
        )
        completed = (
            committed
            | "Gather files" >> Gather()
            | "Complete" >> beam.ParDo(complete).with_output_types(KEYED)  # (0, WriteOutcome)
        )
        return (
            completed
            | "Gather outcome" >> Gather()
            | "Report" >> beam.ParDo(_ReportFn(light, raise_refusal=self.raise_refusal))  # WriteOutcome
        )

    def _check_alone(self, pipeline: beam.Pipeline) -> None:
        steps = [pipeline.transforms_stack[0]]
        for step in steps:
            steps += step.parts
            other = step.transform
            if isinstance(other, WriteShards) and other is not self and other._run.path == self._run.path:
                raise UsageError(
                    f"this pipeline writes another dataset into {self._run.path}; for two splits of one dataset, write "
                    'both at once: train | "Train" >> EncodeExamples(schema) and val | "Val" >> EncodeExamples(schema, '
                    'split="val"), then (train, val) | beam.Flatten() | WriteShards(FOLDER, schema=schema); or write '
                    f"into two folders, and {JOIN_TWO}"
                )

    def _own_spec(self) -> DatasetSpec:
        if self.info is not None and (self.schema is not None or self.labels):
            raise UsageError("info: it holds the schema and the labels; leave those arguments out")
        info = self.info or SourceInfo(self.schema, self.labels)
        path = absolute(self.path)
        try:
            shard_size = parse_size(self.shard_size)
        except ValueError as error:
            raise UsageError(f"shard_size: {error}") from error
        return DatasetSpec(
            path=path,
            name=self.name or dataset_name(path),
            shard_size=shard_size,
            compression=self.compression,
            order=self.order,
            shard_name=self.shard_name,
            sidecars=self.sidecars,
            if_exists=self.if_exists,
            max_rejects=self.max_rejects,
            schema=info.schema,
            labels=info.labels,
            columns=info.columns,
            tasks=info.tasks,
        )


class _StagePartsFn(beam.DoFn):
    """Stages the blocks of each task; records without a task are staged a bundle at a time."""

    def __init__(self, spec: DatasetSpec, split: str | None) -> None:
        self._spec = spec
        self._split = split
        self._task: TaskStager | None = None
        self._bundle: TaskStager | None = None
        self._records: list[bytes] = []
        self._records_bytes = 0
        # what engines show of a job while it runs; Flink's is read for the line of progress
        self._staged_records = Metrics.counter(METRICS, "records")
        self._staged_bytes = Metrics.counter(METRICS, "bytes")

    def start_bundle(self) -> None:
        self._abandon()

    def process(self, element: Block | TaskEnd | TaskResult | bytes) -> Iterator[tuple[int, bytes]]:
        """Stage one element. The end of a task yields its result; a result passes unchanged."""
        try:
            if isinstance(element, Block) and self._split is not None:
                raise UsageError(
                    f'WriteShards: split is for plain bytes; of rows: EncodeExamples(..., split="{self._split}")'
                )
            if isinstance(element, TaskResult):
                yield self._counted(element)
            elif isinstance(element, TaskEnd):
                result = (self._task or self._stager(element.task)).finish(element)
                self._task = None
                yield self._counted(result)
            elif isinstance(element, Block) and element.task is not None:
                if self._task is None:
                    self._task = self._stager(element.task)
                self._task.add(element)
            elif isinstance(element, Block):
                self._bundle_stager().add(element)
            elif isinstance(element, bytes):
                self._add_record(element)
            else:
                raise UsageError(not_taken("WriteShards takes blocks or bytes", element))
        except BaseException:
            self._abandon()
            raise

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._task is not None:
            self._abandon()
            raise RuntimeError("not fused: a bundle ended within a task; reading and writing must be one fused stage")
        self._frame_records()
        if self._bundle is not None:
            result, self._bundle = self._bundle.finish(), None
            yield WindowedValue(self._counted(result), GlobalWindow().max_timestamp(), (GlobalWindow(),))

    def teardown(self) -> None:
        self._abandon()

    def _counted(self, result: TaskResult) -> tuple[int, bytes]:
        self._staged_records.inc(result.records)
        self._staged_bytes.inc(result.part_bytes)
        return keyed(result)

    def _stager(self, task: int | None) -> TaskStager:
        return TaskStager(self._spec.storage, self._spec.staging, task, self._spec.stage_settings)

    def _bundle_stager(self) -> TaskStager:
        if self._bundle is None:
            self._bundle = self._stager(None)
        return self._bundle

    def _add_record(self, record: bytes) -> None:
        self._records.append(record)
        self._records_bytes += len(record)
        if len(self._records) >= _BATCH_RECORDS or self._records_bytes >= _BATCH_BYTES:
            self._frame_records()

    def _frame_records(self) -> None:
        if self._records:
            frames = frame_records(pa.array(self._records, pa.large_binary()))
            self._records, self._records_bytes = [], 0
            self._bundle_stager().add_plain(self._split or DEFAULT_SPLIT, frames)

    def _abandon(self) -> None:
        for stager in (self._task, self._bundle):
            if stager is not None:
                stager.abandon()
        self._task = self._bundle = None
        self._records, self._records_bytes = [], 0


class StepOverResults(beam.DoFn):
    """A step that sees the results of all tasks: those of this run, and of a run before it (`done`)."""

    def __init__(self, spec: DatasetSpec, done: tuple[int, ...]) -> None:
        self.spec = spec
        self.done = done

    def results(self, gathered: tuple[int, Iterable[bytes]]) -> Iterator[TaskResult]:
        yield from gathered_values(gathered)
        yield from (read_result(self.spec.storage, self.spec.staging, task) for task in self.done)


class _PlanShardsFn(StepOverResults):
    def process(self, gathered: tuple[int, Iterable[bytes]]) -> Iterator[bytes]:
        check_shared(self.spec.storage, self.spec.proof)
        plan = plan_generation(self.spec, self.results(gathered))
        if isinstance(plan, Refusal):
            yield packed(plan)
        else:
            yield packed(plan.draft)
            yield from (packed(job) for job in plan.jobs)


class _AssembleShardFn(beam.DoFn):
    def __init__(self, spec: DatasetSpec) -> None:
        self._spec = spec

    def process(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Make the shard, and pass on its job without its pieces; drafts and refusals pass unchanged."""
        job = unpacked(data)
        if isinstance(job, ShardJob):
            check_shared(self._spec.storage, self._spec.proof)
            assemble_shard(self._spec, job)
            data = packed(replace(job, ranges=()))
        yield 0, data


class _CommitFn(beam.DoFn):
    """Commits the generation, when all its shards are durable in staging."""

    def __init__(self, spec: DatasetSpec) -> None:
        self._spec = spec

    def process(self, gathered: tuple[int, Iterable[bytes]]) -> Iterator[bytes]:
        decided = commit_arrived(self._spec, gathered_values(gathered))
        yield packed(decided)
        if isinstance(decided, Commit):
            yield from map(packed, grouped_moves(decided))


class _PublishFileFn(beam.DoFn):
    def __init__(self, spec: DatasetSpec) -> None:
        self._spec = spec

    def process(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Move the files; commits and refusals pass unchanged."""
        moves = unpacked(data)
        if isinstance(moves, tuple):
            for move in moves:
                publish_file(self._spec.storage, move)
            data = packed(None)
        yield 0, data


class _CompleteFn(beam.DoFn):
    """Completes the publishing, or fails with the refusal."""

    def __init__(self, spec: DatasetSpec, *, raise_refusal: bool) -> None:
        self._spec = spec
        self._raise_refusal = raise_refusal

    def process(self, gathered: tuple[int, Iterable[bytes]]) -> Iterator[tuple[int, bytes]]:
        """Yield the outcome; if nothing arrived, it is read from what earlier steps left."""
        yield keyed(self._outcome(next(gathered_values(gathered), None)))

    def _outcome(self, decided: Commit | Refusal | None) -> WriteOutcome:
        outcome = complete_generation(self._spec, decided)
        if self._raise_refusal and outcome.refusal is not None:
            raise outcome.refusal.error(outcome.path)
        return outcome


class _ReportFn(_CompleteFn):
    """Reports the outcome, once; if completing did not run, this step does it."""

    def process(self, gathered: tuple[int, Iterable[bytes]]) -> Iterator[WriteOutcome]:  # type: ignore[override]
        outcome: WriteOutcome = next(gathered_values(gathered), None) or self._outcome(None)
        if self._raise_refusal and outcome.manifest is not None:  # else the caller shows what is wrong
            for warning in empty_warnings(outcome.manifest):
                _LOG.warning("%s: %s", outcome.path, warning)
        yield outcome


@dataclass(eq=False)
class SecondPass(beam.PTransform):
    """Sort what was spilled, and stage it; `done` are the tasks whose results a run before has left.

        results of tasks ─▶ Plan shuffle ─▶ Shuffle ─▶ results of both passes
        (0, TaskResult)     one step        per range of buckets

    `light` is the spec without what is large. The results of the first pass go through unchanged.
    """

    spec: DatasetSpec
    light: DatasetSpec
    done: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__init__()

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        return (
            pcoll
            | "Gather spills" >> Gather()
            | "Plan shuffle" >> beam.ParDo(_PlanShuffleFn(self.spec, self.done))  # TaskResults and ShuffleTasks
            | "Spread buckets" >> beam.Reshuffle()
            | "Shuffle" >> beam.ParDo(_ShuffleFn(self.light)).with_output_types(KEYED)
            # (0, TaskResult)
        )


class _PlanShuffleFn(StepOverResults):
    def process(self, gathered: tuple[int, Iterable[bytes]]) -> Iterator[bytes]:
        check_shared(self.spec.storage, self.spec.proof)
        results = list(self.results(gathered))
        yield from (packed(result) for result in results)
        yield from (packed(task) for task in plan_shuffle(self.spec, results))


class _ShuffleFn(beam.DoFn):
    """Stages some buckets of a split, sorted."""

    def __init__(self, spec: DatasetSpec) -> None:
        self.spec = spec

    def process(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the result of a task of the second pass; those of the first pass unchanged."""
        task = unpacked(data)
        if isinstance(task, ShuffleTask):
            data = packed(run_shuffle_task(self.spec, task))
        yield 0, data
