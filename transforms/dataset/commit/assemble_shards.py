"""Make each planned shard in the staging folder, under its final name, before anything is committed.

A shard that is one whole part is a second link to it, and so is its index; any other is copied from ranges of parts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import RunError
from ...format.manifest.naming import index_path, staged_file, staged_sidecar
from ...format.sidecars.sidecar_files import index_data, offsets_in
from ...format.splits.shard_plan import Part, PartRange
from ..stage.spec import DatasetSpec
from ..stage.split_stager import OFFSETS, PART
from .accounting import count_shard


@dataclass(frozen=True, slots=True)
class ShardJob:
    """One shard to be made in staging: its split and index, its file name, what it is made of, and what it will be.

    `counts` says that its records are to be counted when it is made.
    """

    split: str
    index: int
    path: str
    ranges: tuple[PartRange, ...]
    records: int
    bytes: int
    crc: int
    counts: bool = False


I64 = npt.NDArray[np.int64]


def assemble_shard(spec: DatasetSpec, job: ShardJob) -> None:
    """Make one shard, durably; the same job may run again."""
    storage, staged = spec.storage, staged_file(spec.staging, job.path)
    if len(job.ranges) == 1 and job.ranges[0].is_whole:
        storage.place(f"{spec.staging}/{job.ranges[0].part.path}", staged)
    else:
        storage.assemble(staged, job.ranges, spec.staging)
    size = storage.size(staged)
    if size != job.bytes:
        raise RunError(f"{spec.path}/{staged} has {size} bytes, {job.bytes} were planned: staged files were changed")
    if spec.index_kinds:
        _index_shard(spec, job)
    if job.counts:
        count_shard(spec, job.split, job.path)


def _index_shard(spec: DatasetSpec, job: ShardJob) -> None:
    kinds, offsets = list(spec.index_kinds), None
    first = job.ranges[0]
    if "binary" in kinds and len(job.ranges) == 1 and first.is_whole:
        kinds.remove("binary")
        target = staged_sidecar(spec.staging, index_path(job.path, "binary"))
        spec.storage.place(_offsets_path(spec, first.part), target)
    for kind in kinds:
        if offsets is None:
            offsets = _offsets(spec, job)
        spec.storage.replace(staged_sidecar(spec.staging, index_path(job.path, kind)), index_data(offsets, kind))


def _offsets(spec: DatasetSpec, job: ShardJob) -> I64:
    found, at = [np.zeros(1, np.int64)], 0
    for piece in job.ranges:
        found.append(_ends_in(spec, piece) + at)
        at += piece.end.offset - piece.start.offset
    return np.concatenate(found)


def _ends_in(spec: DatasetSpec, piece: PartRange) -> I64:
    offsets = offsets_in(spec.storage.read(_offsets_path(spec, piece.part)), "binary")
    return offsets[piece.start.records + 1 : piece.end.records + 1] - piece.start.offset


def _offsets_path(spec: DatasetSpec, part: Part) -> str:
    return f"{spec.staging}/{part.path.removesuffix(PART)}{OFFSETS}"
