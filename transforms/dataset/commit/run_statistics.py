"""The statistics of a generation: what a run has counted, and with an append what the dataset has had before."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import DamageError
from ...format.manifest.manifest import Manifest
from ...statistics.tally import Tally
from ..generations.statistics_file import read_tally, statistics_files
from ..shards.counted import read_counted
from ..shards.plan_step import Draft, ShardJob
from ..stage.spec import DatasetSpec


def run_statistics(
    spec: DatasetSpec, manifest: Manifest, draft: Draft, jobs: Sequence[ShardJob], latest: Manifest | None
) -> dict[str, bytes]:
    """Return the files of the statistics of a generation by their names; none where not all of it is counted.

    `jobs` are those that were planned, `latest` is the generation that an append adds to.
    """
    if manifest.schema is None or not (spec.statistics or draft.is_counted):
        return {}
    tally = _tally(spec, draft, jobs, latest)
    if tally is None or tally.records != {name: split.records for name, split in manifest.splits.items()}:
        return {}
    return statistics_files(tally, manifest)


def _tally(spec: DatasetSpec, draft: Draft, jobs: Sequence[ShardJob], latest: Manifest | None) -> Tally | None:
    counted = read_counted(spec, None if draft.is_counted else [job.path for job in sorted(jobs, key=_in_order)])
    if latest is None or counted is None:
        return counted
    try:
        total = read_tally(spec.path, latest) if latest.splits else Tally(counted.level)
    except DamageError:  # the records are whole, and can be counted again
        return None
    if total is not None:
        total.merge(counted)
    return total


def _in_order(job: ShardJob) -> tuple[str, int]:
    return job.split, job.index
