"""The ranges of files that tasks are made of.

With `order: source` the shard plan takes, from the start, as many records as go into S, and copies what is across two
parts. Records that are passed on as they are take the room that they took before: so where shards will end is known
before a record is read, but for the length of one record. A task that holds a little less than whole shards leaves
parts that the plan takes as they are, since nothing of the next task's fits in:

    records  ├┼─┼┼┼─┼──┼┼┼┼┼─┼┼──┼┼─┼┼┼──┼┼─┼┼┼┼─┼┼──┼─┤      gap: the distance of cut points, S / 256
    tasks    ├─ S - gap/2 ─┼─ S - gap/2 ─┼─ half ─┼─ half ─┤     of what is left, the plan makes halves (over S) or one

That is about speed only: cuts may be anywhere at the start of a record, and the shards are sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...dataset.shard_plan.shard_plan import CUTS_PER_SHARD
from ...dataset.shard_plan.task_ranges import shards_of_a_task
from ...format.flow.blocks import Narrowing
from ...format.tfrecord.framing import HEADER_BYTES
from ...format.tfrecord.gzip_members import sniff_form
from ...format.tfrecord.scan import is_record_header
from ..contract.source import Piece, SourceEntry
from ..files.open_file import open_file, open_unbuffered, read_at
from .record_start import find_record_start

_GZIP_EXPANSION: Final = 4
"""Bytes of records for each compressed one, where nobody counted: tables reach 3 to 5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsPiece(Piece):
    """A range of a file (compressed: all of it).

    `answers_for` is how many records the file has, on its first piece, 0 on the others; None where nobody knows.
    Without `split` a rule says the split of each record. `check` says that each record is checked against the
    schema. `narrowed` is reported once for a dataset. `crc32c` is what a manifest states of the whole file.
    """

    start: int
    stop: int | None
    split: str | None
    answers_for: int | None
    check: bool = False
    narrowed: tuple[Narrowing, ...] = ()
    crc32c: str | None = None

    def rows_by_entry(self) -> dict[int, int | None]:
        """Return the records of the file, or 0 where another piece of it answers for them."""
        return {self.entry: self.answers_for}


def is_compressed(entry: SourceEntry) -> bool:
    with open_file(entry) as file:
        head = file.read(HEADER_BYTES)
    return not is_record_header(head) and sniff_form(head) is not None


def whole_file(
    entry: SourceEntry, index: int, split: str | None, records: int | None, *, compressed: bool
) -> RecordsPiece:
    """Return all of a file as one piece; `index` is its place in the listing."""
    return RecordsPiece(
        **entry.place(index), rows=records, first_row=0,
        bytes=entry.bytes, output_bytes=entry.bytes * (_GZIP_EXPANSION if compressed else 1), start=0, stop=None,
        split=split, answers_for=records,
    )  # fmt: skip


def cut_run(files: Sequence[RecordsPiece], shard_size: int | None) -> list[list[RecordsPiece]]:
    """Cut files of one split that follow each other into tasks, for shards of a size; without it each is a task."""
    if shard_size is None:
        return [[file] for file in files]
    ends = cut_stream(sum(file.bytes for file in files), shard_size)
    tasks: list[list[RecordsPiece]] = [[]]
    base = 0
    for file in files:
        at, ends_task = 0, False
        for end in (end - base for end in ends if base < end <= base + file.bytes):
            place = _record_start(file, max(end, at))
            if place is None:  # nothing begins between there and the end of the file
                ends_task = True
                break
            if place > at:
                tasks[-1].append(_range_of(file, at, place))
                tasks.append([])
                at = place
        tasks[-1].append(_range_of(file, at, file.bytes))
        if ends_task:
            tasks.append([])
        base += file.bytes
    return [task for task in tasks if task]


def cut_stream(size: int, shard_size: int) -> list[int]:
    """Return where the tasks of a stream of `size` bytes should end, the last at its end.

    >>> cut_stream(1000, 256), cut_stream(200, 256), cut_stream(0, 256)
    ([256, 512, 756, 1000], [200], [])
    """
    gap = shard_size // CUTS_PER_SHARD
    most = shards_of_a_task(size, shard_size)
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


def _record_start(file: RecordsPiece, offset: int) -> int | None:
    with open_unbuffered(file) as opened:
        return find_record_start(read_at(opened), offset, file.bytes)


def _range_of(file: RecordsPiece, start: int, stop: int) -> RecordsPiece:
    rows = None if file.rows is None else file.rows * (stop - start) // file.bytes
    return replace(
        file, start=start, stop=None if stop == file.bytes else stop, bytes=stop - start, output_bytes=stop - start,
        rows=rows, answers_for=file.answers_for if start == 0 or file.answers_for is None else 0,
        narrowed=file.narrowed if start == 0 else (),
    )  # fmt: skip
