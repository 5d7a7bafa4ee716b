"""What is between two steps of a pipeline: descriptors, gathered in one step, and batches, whose size Beam asks for.

    descriptors of a step ──┐
                            ├─▶ Flatten ─▶ GroupByKey ─▶ one element: all descriptors
    seed ───────────────────┘

An engine may lose an element, or deliver it twice. The step after `Gather` runs even if no descriptor arrives, because
the seed does: it knows how many descriptors to expect, and fails, or does what the missing one asked for.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import apache_beam as beam
from apache_beam.coders import PickleCoder, registry
from apache_beam.coders.coder_impl import CallbackCoderImpl
from apache_beam.typehints.typehints import AnyTypeConstraint
from isal import isal_zlib

from .dataset.stage.task_result import TaskResult
from .format.batches.rows import Block, Rows
from .inputs.contract.source import Task

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
