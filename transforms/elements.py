"""What the steps of a pipeline pass to each other: facts about the source, batches, gathered descriptors.

    descriptors of a step ──┐
                            ├─▶ Flatten ─▶ GroupByKey ─▶ one element: all descriptors
    seed ───────────────────┘

An engine may lose an element, or deliver it twice. The step after `Gather` runs even if no descriptor arrives, because
the seed does: it knows how many descriptors to expect, and fails, or does what the missing one asked for.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import apache_beam as beam
from apache_beam.coders import PickleCoder, registry
from apache_beam.coders.coder_impl import CallbackCoderImpl
from apache_beam.options.pipeline_options import DirectOptions
from apache_beam.runners.direct.direct_runner import SwitchingDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers
from apache_beam.typehints.typehints import AnyTypeConstraint
from isal import isal_zlib

from .dataset.stage.task_stager import TaskResult
from .errors import UsageError
from .format.batches.rows import Block, Rows
from .format.examples.encode_rows import RowEncoder
from .format.manifest.manifest import ColumnEntry
from .format.schema.schema import Schema
from .format.wording.printable import printable
from .inputs.contract.source import Task


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What is known of a source before a row is read: `ReadRows.info`, for `EncodeExamples` and `WriteShards`.

    `schema` are the features that rows become, None if records are opaque bytes. `labels` are the class names of each
    label feature. `splits` are those that the source's folders name, in the order of the rows' split codes. `tasks` is
    how many tasks the rows arrive in, so that the sink notices a missing one; None if that is unknown. `columns` are
    those of the source, where some are nested or decimals.
    """

    schema: Schema | None
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    splits: tuple[str, ...] = ()
    tasks: int | None = None
    columns: tuple[ColumnEntry, ...] = ()

    def __post_init__(self) -> None:
        for feature in self.schema or ():
            if feature.type == "label" and feature.name not in self.labels:
                raise UsageError(
                    f'"{printable(feature.name)}" is a label, and its class names are not given: pass on `read.info` '
                    f"of ReadRows instead of its schema, or give labels={{...}}"
                )

    def encoder(self) -> RowEncoder:
        """Return the encoder of the source's rows, with the default limits."""
        return RowEncoder(self.schema or Schema(()), splits_by_code=self.splits)


_DEFLATED_BYTES: Final = 1024
"""Descriptors over this size cross the edges deflated."""


KEYED: Final = tuple[int, bytes]
"""The type of keyed descriptors: with it, those of a step and the seed have one coder."""


def packed(value: object) -> bytes:
    """Return a descriptor as bytes, so that no coder of the engine's own choosing has a say in it.

    Large ones are deflated: one step sees those of all tasks at once, and of a shuffled source each covers most of
    its folders.
    """
    data = pickle.dumps(value, protocol=5)
    return isal_zlib.compress(data) if len(data) > _DEFLATED_BYTES else data


def unpacked(data: bytes) -> Any:
    if not data.startswith(pickle.PROTO):
        data = isal_zlib.decompress(data)
    return pickle.loads(data)  # noqa: S301  (made by the step before, inside this pipeline)


def keyed(value: object) -> tuple[int, bytes]:
    """Return a descriptor with the one key under which all of them are gathered."""
    return 0, packed(value)


def gathered_values(gathered: tuple[int, Iterable[bytes]]) -> Iterator[Any]:
    """Yield the gathered descriptors one by one (they are large), without seeds and other Nones."""
    return (value for value in map(unpacked, gathered[1]) if value is not None)


class Gather(beam.PTransform):
    """Gather keyed descriptors in one element, `(0, [packed, ...])`, which exists even if none of them arrives."""

    def expand(self, descriptors: beam.PCollection) -> beam.PCollection:
        # A seed of its own: one that several gatherings share makes Flink store what crosses the edges between them,
        # for which a small task manager has too few network buffers.
        create = beam.Create([keyed(None)], reshuffle=False).with_output_types(KEYED)
        seed = descriptors.pipeline | "Seed" >> create
        return (descriptors, seed) | "Add seed" >> beam.Flatten() | "Group" >> beam.GroupByKey()


# Beam samples elements between two steps for a counter of bytes, and asks their coder for the size of each. The
# default coder pickles the element: a second copy of a whole batch, for each of the first batches of a step. The
# coder here adds up the sizes of the buffers instead.


class _ElementHint(AnyTypeConstraint):
    pass


class ElementCoder(PickleCoder):
    """Pickles elements where they leave a process, and not to learn their size."""

    def _create_impl(self) -> CallbackCoderImpl:
        whole = super()._create_impl()
        return CallbackCoderImpl(whole.encode, whole.decode, bytes_of)


def bytes_of(element: object) -> int:
    """Return about how many bytes an element takes in memory."""
    if isinstance(element, Rows):
        return int(element.batch.nbytes)
    return sum(frames.bytes for frames in element.splits.values()) if isinstance(element, Block) else 0


ELEMENTS: Final = _ElementHint()
"""The type hint of what flows from reading to staging: any type, with a coder of its own."""

registry.register_coder(_ElementHint, ElementCoder)


@dataclass(eq=False)
class StageTasks(beam.PTransform):
    """Hand each task to `stage`, which returns what it staged, as input for `WriteShards`.

    It replaces `ReadRows | EncodeExamples` and the first step of `WriteShards`, and gives the same
    bytes: for an engine whose own workers are not the ones that do the work.
    """

    tasks: Sequence[Task] = field(repr=False)
    stage: Callable[[Task], TaskResult]

    def __post_init__(self) -> None:
        super().__init__()

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            pbegin
            | "List tasks" >> beam.Create(self.tasks, reshuffle=False)
            # Task
            | "Spread tasks" >> beam.Reshuffle()
            | "Stage tasks" >> beam.Map(self.stage)
            # TaskResult
        )


# Beam 2.77's FnApiRunner flushes its data streams once a second from a second thread, where its workers are threads or
# processes of their own (multi_threading, multi_processing):
#
#     writer    stream.write(element)                                       without a lock
#     flusher   flush(get())  ........ an element written now is lost ....  clear()
#
# With a time limit of 0 every stream, the runner's and its workers', is flushed by size, by the thread that writes.

_WARNING: Final = (
    "direct_running_mode={mode}: Beam's local engine loses elements in this mode now and then, without an error, when "
    "a step takes longer than a second; before you run the pipeline, set\n"
    "    from apache_beam.runners.portability.fn_api_runner import worker_handlers\n"
    "    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0"
)


def flush_by_size() -> None:
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0


def warn_of_timed_flushes(pipeline: beam.Pipeline) -> None:
    if not isinstance(pipeline.runner, FnApiRunner | SwitchingDirectRunner):
        return
    mode = pipeline.options.view_as(DirectOptions).direct_running_mode
    if mode != "in_memory" and worker_handlers.DATA_BUFFER_TIME_LIMIT_MS > 0:
        warnings.warn(_WARNING.format(mode=mode), RuntimeWarning, stacklevel=2)
