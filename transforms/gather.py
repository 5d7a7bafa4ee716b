"""Descriptors between the steps of a sink: how they are packed, and how all of them come together in one step.

    descriptors of a step ──┐
                            ├─▶ Flatten ─▶ GroupByKey ─▶ one element: all descriptors
    seed ───────────────────┘

An engine may lose an element, or deliver it twice. The step after `Gather` runs even if no descriptor arrives, because
the seed does: it knows how many descriptors to expect, and fails, or does what the missing one asked for.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any, Final

import apache_beam as beam
from isal import isal_zlib

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
