"""`stats.json` of a dataset: found where it is, and read as that of one generation.

It is replaced by each generation. So what is there may be of another one, or be left out of an append's sidecars: the
file says itself of which generation it is.
"""

from __future__ import annotations

from typing import Final

from ...errors import DamageError
from ...format.manifest.manifest import Manifest
from ...format.manifest.naming import staged_sidecar
from ...format.wording.printable import shell_path
from ...statistics.figures import Statistics
from ...statistics.stats_json import STATS_JSON, STATS_TFDV, StatsDocument, StatsProblem, parse_stats, stats_json
from ...statistics.tally import Tally
from ...statistics.tfdv import statistics_file
from ..storage.storage_at import storage_at
from .manifest_files import read_file

_LIMIT: Final = 1 << 30
"""Bytes: 20,000 features in ten splits, with all that can be counted, take some 300 MB."""


def read_stats(root: str, manifest: Manifest) -> Statistics | None:
    found = _document(root, manifest)
    return None if found is None else found.statistics


def read_tally(root: str, manifest: Manifest) -> Tally | None:
    """Return what is counted of a generation, to which more can be added; None where nothing is."""
    found = _document(root, manifest)
    if found is None:
        return None
    try:
        tally = found.tally()
    except StatsProblem as problem:
        raise DamageError(f"{STATS_JSON}: {problem}") from problem
    return tally


def statistics_files(tally: Tally, manifest: Manifest) -> dict[str, bytes]:
    assert manifest.schema is not None
    statistics = tally.statistics(manifest.schema, manifest.labels)
    return {
        STATS_JSON: stats_json(tally, statistics, manifest.generation),
        STATS_TFDV: statistics_file(statistics),
    }


def _document(root: str, manifest: Manifest) -> StatsDocument | None:
    storage = storage_at(root)
    for path in (staged_sidecar(manifest.run.staging, STATS_JSON), STATS_JSON):  # until it is published
        if not storage.lies_at(path):
            continue
        try:
            found = parse_stats(read_file(root, path, _LIMIT))
        except DamageError:
            if storage.lies_at(path):
                raise
            continue  # another process has published it, and removed it, at this moment
        except StatsProblem as problem:
            if STATS_JSON in manifest.sidecars:
                raise DamageError(f"{storage.path(path)}: {problem}") from problem
            continue  # of another generation, as far as anyone knows
        if found.generation != manifest.generation:
            continue
        records = {name: split.records for name, split in found.statistics.splits.items()}
        if records != {name: split.records for name, split in manifest.splits.items()}:
            raise _of_others(root, path, "records by split")
        names = {feature.name for feature in manifest.schema or ()}
        if any(split.features.keys() != names for split in found.statistics.splits.values()):
            raise _of_others(root, path, "features")
        return found
    return None


def _of_others(root: str, path: str, what: str) -> DamageError:
    return DamageError(
        f"{storage_at(root).path(path)}: its {what} are not those of the manifest; make it again: "
        f"shardmill stats {shell_path(root)} --write"
    )
