"""Salvage a damaged TFRecord file: copy every record that can be proven intact, and say what is lost.

The file itself is only read. What is copied has the CRC that its writer gave it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from ...errors import ShardmillError, TargetError
from ...format.wording.printable import printable_path
from ...stores.store_url import is_store_url
from ..storage.manifest_files import list_generations, read_manifest
from ..storage.record_file import (
    Path,
    write_records,
)
from .record_walk import DamagedRange, is_compressed, walk_records


@dataclass(frozen=True, slots=True)
class SalvageReport:
    """What was copied from the file `path` to `target` (None: nothing was), and every damage, in the file's order.

    `records` and `bytes` are those of the payloads that were copied. `stated` is how many records the file should hold,
    by the manifest of the dataset that it belongs to, None where there is none.
    """

    path: str
    target: str | None
    records: int
    bytes: int
    damages: tuple[DamagedRange, ...]
    stated: int | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged, and nothing is missing as far as is known."""
        return not self.damages and self.stated in (None, self.records)

    @property
    def lost(self) -> tuple[DamagedRange, ...]:
        """The damages by which records were lost, or may have been."""
        return tuple(damage for damage in self.damages if not damage.recovered)

    @property
    def lost_records(self) -> int:
        """How many records are lost: with a manifest exactly so many, else at least."""
        if self.stated is not None:
            return max(self.stated - self.records, 0)
        return sum(damage.records for damage in self.damages)

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "target": self.target,
            "ok": self.ok,
            "records": self.records,
            "bytes": self.bytes,
            "stated_records": self.stated,
            "lost_records": self.lost_records,
            "lost_is_exact": self.stated is not None,
            "damages": [_damage_document(damage) for damage in self.damages],
        }


def salvage_file(path: Path, folder: str | os.PathLike[str]) -> SalvageReport:
    """Copy every intact record of a TFRecord file to a file of the same name in `folder`, in order, byte for byte.

        report = salvage_file("broken/train-00003.tfrecord", "saved")
        report.records, report.lost_records

    A compressed file becomes one of gzip members. The new file appears whole or not at all; where no record is intact,
    none is made.
    """
    source, root = os.fsdecode(os.fspath(path)), os.fspath(folder)
    if is_store_url(root):
        raise TargetError(f"{printable_path(root)}: salvage writes to a folder on disk; copy the new file from there")
    target = os.path.join(root, os.path.basename(source))
    compressed = is_compressed(source)
    _check_target(root, target)
    records = _Records(source)
    first = next(records, None)
    if first is None:
        return SalvageReport(printable_path(source), None, 0, 0, tuple(records.damages), _stated_records(source))
    try:
        os.makedirs(root, exist_ok=True)
        write_records(target, chain((first,), records), "gzip" if compressed else "none")
    except OSError as error:
        raise TargetError(
            f"{printable_path(target)}: cannot be written: {error.strerror}; choose another folder (-o)"
        ) from error
    damages = tuple(records.damages)
    return SalvageReport(printable_path(source), target, records.count, records.size, damages, _stated_records(source))


def _check_target(root: str, target: str) -> None:
    if os.path.lexists(target):
        raise TargetError(f"{printable_path(target)}: already exists; choose another folder (-o)")
    if list_generations(root) or os.path.lexists(os.path.join(root, "manifest.json")):
        raise TargetError(
            f"{printable_path(root)}: holds a dataset, for a part of which the new file would be taken; choose another "
            f"folder (-o)"
        )


@dataclass(slots=True)
class _Records:
    """The payloads of a file's intact records; what else was found is gathered on the way."""

    path: str
    count: int = 0
    size: int = 0
    damages: list[DamagedRange] = field(default_factory=list)
    _payloads: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._payloads is None:
            self._payloads = self._walk()
        payload = next(self._payloads)
        self.count += 1
        self.size += len(payload)
        return payload

    def _walk(self) -> Iterator[bytes]:
        for event in walk_records(self.path):
            if isinstance(event, DamagedRange):
                self._note(event)
            else:
                yield from event.payloads

    def _note(self, damage: DamagedRange) -> None:
        """Record a damage; one that continues the last one in the same way is joined to it."""
        last = self.damages[-1] if self.damages else None
        if last is not None and _goes_on(last, damage):
            self.damages[-1] = replace(last, end=damage.end, records=last.records + damage.records)
        else:
            self.damages.append(damage)


def _goes_on(last: DamagedRange, damage: DamagedRange) -> bool:
    return not (last.recovered or damage.recovered) and (last.end, last.reason) == (damage.offset, damage.reason)


def _stated_records(path: str) -> int | None:
    root, name = os.path.split(path)
    try:
        manifest = read_manifest(root or ".")
    except ShardmillError:
        return None
    entries = (entry for split in manifest.splits.values() for entry in split.shards if entry.path == name)
    return next((entry.records for entry in entries), None)


def _damage_document(damage: DamagedRange) -> dict[str, Any]:
    return {
        "record": damage.record,
        "offset": damage.offset,
        "end": damage.end,
        "reason": damage.reason,
        "recovered": damage.recovered,
        "lost_records": damage.records,
    }
