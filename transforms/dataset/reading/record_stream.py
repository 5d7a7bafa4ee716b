"""The records of some shards, one after the other, from any of them on.

A shard that is published while it is read is found again under its final name. On disk an open file keeps its bytes. A
store keeps nothing that is removed: there it is read again, as far as the record that is next.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...errors import DamageError, InputError
from ...format.manifest.manifest import Manifest, ShardEntry
from ...format.wording.printable import printable_path, shell_path
from ..generations.manifest_files import locate_shard
from ..records.record_file import read_record_batches
from ..records.record_scan import RecordRun
from ..rows.record_access import RecordAccess
from ..storage.storage_at import storage_at


@dataclass(frozen=True, slots=True)
class RecordStream:
    """The records of the shards `entries` of the dataset at `path`; `access` knows where they begin in indexed ones.

    With `whole` each file that is read from its start has the CRC32C that the manifest states.
    """

    path: str
    manifest: Manifest
    entries: Sequence[ShardEntry]
    access: RecordAccess
    whole: bool = False

    def runs(self, start: int = 0) -> Iterator[tuple[str, RecordRun]]:
        """Yield the records from number `start` on, from 0: the printable name of the shard, and some of its records.

        Raises:
            DamageError: a shard is missing, damaged or cut, or has another number of records than the manifest states.
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
        located, name = locate_shard(self.path, self.manifest, entry), os.path.join(self.path, entry.path)
        while True:
            path = os.path.join(self.path, located)
            try:
                for run in read_record_batches(path, begin, first_record=first, stated_crc=stated):
                    new = run.behind(max(records, left_out))
                    records = max(records, run.first_record - 1 + len(run))
                    if len(new):
                        yield printable_path(name), new
                break
            except (InputError, FileNotFoundError):
                if located == entry.path or storage_at(self.path).lies_at(located):
                    raise
                located = locate_shard(self.path, self.manifest, entry)
        if records != entry.records:
            raise DamageError(
                f"{printable_path(path)}: {records} records, the manifest states {entry.records}: the file was cut "
                f"between two records, or replaced; shardmill verify {shell_path(self.path)} finds the place"
            )
