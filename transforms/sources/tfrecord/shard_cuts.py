"""Where to cut a stream of framed records into tasks, so that what a task leaves is whole shards.

With `order: source` the shard plan takes, from the start, as many records as go into S, and copies what is across two
parts. Records that are passed on as they are take the room that they took before: so where shards will end is known
before a record is read, but for the length of one record. A task that holds a little less than whole shards leaves
parts that the plan takes as they are, since nothing of the next task's fits in:

    records  ├┼─┼┼┼─┼──┼┼┼┼┼─┼┼──┼┼─┼┼┼──┼┼─┼┼┼┼─┼┼──┼─┤      gap: the distance of cut points, S / 256
    tasks    ├─ S - gap/2 ─┼─ S - gap/2 ─┼─ half ─┼─ half ─┤     of what is left, the plan makes halves (over S) or one

That is about speed only: cuts may be anywhere at the start of a record, and the shards are sound.
"""

from __future__ import annotations

from ...dataset.shard_plan.shard_plan import CUTS_PER_SHARD

_MOST_SHARDS_A_TASK = 8


def cut_stream(size: int, shard_size: int) -> list[int]:
    """Return where the tasks of a stream of `size` bytes should end, the last at its end.

    >>> cut_stream(1000, 256), cut_stream(200, 256), cut_stream(0, 256)
    ([256, 512, 756, 1000], [200], [])
    """
    gap = shard_size // CUTS_PER_SHARD
    most = min(max(round(size / (128 * shard_size)), 1), _MOST_SHARDS_A_TASK)
    ends: list[int] = []
    start = 0
    while start < size:
        rest = size - start
        over = rest - (2 * shard_size - gap)
        if over > 0:
            start += min(most, -(-over // shard_size)) * shard_size - gap // 2
        elif rest > shard_size:
            start += rest // 2
        else:
            start = size
        ends.append(start)
    return ends
