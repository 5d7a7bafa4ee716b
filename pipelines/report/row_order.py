"""Whether the rows of a table are elsewhere in its dataset than in the source, and which option keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from ...transforms.sources.contract.source import Traits


def shuffle_note(*, levels: int, in_append: bool) -> str:
    """Return the note on records that are in a random order; `levels` of a run that is still to be made, else 0."""
    order = "records are in a random order"
    note = f"{order} within what is added, after those that were there" if in_append else f"{order} within each split"
    if not levels:
        return note
    spilled = "they are spilled to the staging folder first, which takes as many bytes again"
    twice = (
        ", and since they are more than 100 GB each task of the second pass spills its part once more: 2.1 times in all"
    )
    return f"{note}; {spilled}{twice if levels > 1 else ''}"


def order_note(traits: Traits, order: str, tasks: int, shards: Sequence[int]) -> str:
    """Return the note on tasks that wrote full shards, so that what each had left over is in the last ones.

    `shards` are the shards of each split. With fewer shards than tasks all are made of left over rows, which follow
    the source; so does a single task.
    """
    if not traits.has_order or order != "task" or not 1 < tasks <= max(shards, default=0):
        return ""
    return (
        "rows follow the source within each shard, and the last shards hold rows from between the others; "
        "to keep the order of the source throughout: --order source (writes some bytes twice)"
    )
