"""Make each planned shard in the staging folder, under its final name, before anything is committed.

A shard that is one whole part is a second link to it; any other is copied from ranges of parts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...errors import RunError
from ...format.manifest.naming import staged_file, staged_sidecar
from ...format.sidecars.dali_index import index_path, index_text
from ..records.record_file import read_record_batches
from ..stage.spec import DatasetSpec
from .plan_step import ShardJob


def assemble_shard(spec: DatasetSpec, job: ShardJob) -> None:
    """Make one shard, durably; the same job may run again.

    Raises:
        RunError: the shard has not the size that was planned.
    """
    storage, staged = spec.storage, staged_file(spec.staging, job.path)
    if len(job.ranges) == 1 and job.ranges[0].is_whole:
        storage.place(f"{spec.staging}/{job.ranges[0].part.path}", staged)
    else:
        storage.assemble(staged, job.ranges, spec.staging)
    size = storage.size(staged)
    if size != job.bytes:
        raise RunError(f"{spec.path}/{staged} has {size} bytes, {job.bytes} were planned: staged files were changed")
    if spec.wants_index:
        storage.replace(
            staged_sidecar(spec.staging, index_path(job.path)), index_text(_record_ends(storage.path(staged)))
        )


def _record_ends(path: str) -> npt.NDArray[np.int64]:
    """Return where each record of a shard ends, in bytes; payloads are not checked, they were just written."""
    ends = [np.append(run.offsets[1:], run.end) for run in read_record_batches(path, check_crc=False)]
    return np.concatenate(ends) if ends else np.zeros(0, np.int64)
