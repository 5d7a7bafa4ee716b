"""Keep Beam from pickling batches to learn their size.

Beam samples elements between two steps for a counter of bytes, and asks their coder for the size of each. The default
coder pickles the element: a second copy of a whole batch, for each of the first batches of a step. The coder here adds
up the sizes of the buffers instead.
"""

from __future__ import annotations

from typing import Final

from apache_beam.coders import PickleCoder, registry
from apache_beam.coders.coder_impl import CallbackCoderImpl
from apache_beam.typehints.typehints import AnyTypeConstraint

from .format.flow.blocks import Block
from .format.flow.rows import Rows


class _ElementHint(AnyTypeConstraint):  # type: ignore[misc]
    pass


class ElementCoder(PickleCoder):  # type: ignore[misc]
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
