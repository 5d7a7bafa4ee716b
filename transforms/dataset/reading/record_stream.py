"""The records of some shards, one after the other, from any of them on.

A shard that is published while it is read is found again under its final name. On disk an open file keeps its bytes. A
store keeps nothing that is removed: there it is read again, as far as the record that is next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...errors import DamageError
from ...format.manifest.manifest import ShardEntry
from ..generations.opened_generation import OpenedGeneration
from ..records.record_file import scan_opened
from ..records.record_scan import RecordRun
from ..rows.record_access import RecordAccess


@dataclass(frozen=True, slots=True)
class RecordStream:
    """The records of the shards `entries` of a generation; `access` knows where they begin in indexed ones.

    With `whole` each file that is read from its start has the CRC32C that the manifest states.
    """

    generation: OpenedGeneration
    entries: Sequence[ShardEntry]
    access: RecordAccess
    whole: bool = False

    def runs(self, start: int = 0) -> Iterator[tuple[str, RecordRun]]:
        """Yield the records from number `start` on, from 0: the printable name of the shard, and some of its records.

        Where the generation was replaced, no record of another one is yielded before the error.
        """
        before = 0
        for number, entry in enumerate(self.entries):
            left_out = max(start - before, 0)
            before += entry.records
            if left_out < entry.records or (not entry.records and start < before):
                yield from self._runs_of(number, entry, left_out)

    def _runs_of(self, number: int, entry: ShardEntry, left_out: int) -> Iterator[tuple[str, RecordRun]]:
        """Yield the records of a shard behind its first `left_out` ones."""
        begin = self.access.begin_of(number, left_out) if left_out else 0
        records, first = (left_out, left_out + 1) if begin else (0, 1)
        stated = entry.crc32c if self.whole and not begin else None
        name, opened = self.generation.name(entry), self.generation.open(entry)
        while True:
            with opened:
                try:
                    for run in scan_opened(opened, name, begin, first_record=first, stated_crc=stated):
                        new = run.behind(max(records, left_out))
                        records = max(records, run.first_record - 1 + len(run))
                        if len(new):
                            yield name, new
                    break
                except FileNotFoundError:  # an object that was removed or replaced
                    opened = self.generation.open_again(entry)
        if records != entry.records:
            raise DamageError(
                f"{name}: {records} records, the manifest states {entry.records}: the file was cut between two "
                f"records, or replaced; {self.generation.verify} finds the place"
            )
