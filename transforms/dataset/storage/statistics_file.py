"""`stats.json` of a dataset: found where it is, and read as that of one generation.

It is replaced by each generation. So what is there may be of another one, or be left out of an append's sidecars: the
file says itself of which generation it is.
"""

from __future__ import annotations

from typing import Final

from ...errors import DamageError
from ...format.manifest.manifest import Manifest
from ...format.manifest.naming import staged_sidecar
from ...format.manifest.strict_json import MEMORY_LIMIT, is_readable
from ...format.wording.hints import Command
from ...observers.figures import Statistics
from ...observers.stats_files import STATS_JSON, STATS_TFDV, StatsProblem, parse_stats, statistics_file, stats_json
from ...observers.tally import Tally
from .manifest_files import read_file
from .object_storage import storage_at

_LIMIT: Final = 1 << 30
"""Bytes: 20,000 features in ten splits, with all that can be counted, take some 300 MB."""


def read_stats(root: str, manifest: Manifest) -> Statistics | None:
    found = _read(root, manifest)
    return None if found is None else found[1]


def read_tally(root: str, manifest: Manifest) -> Tally | None:
    """Return what is counted of a generation, to which more can be added; None where nothing is."""
    found = _read(root, manifest)
    return None if found is None else found[0]


def statistics_files(tally: Tally, manifest: Manifest, memory: int = MEMORY_LIMIT) -> dict[str, bytes]:
    """Return the files by their names: none where nobody could read `stats.json`, even with values estimated."""
    assert manifest.schema is not None
    for estimated in (False, True):
        if estimated:
            tally.estimate()
        statistics = tally.statistics(manifest.schema, manifest.labels)
        data = stats_json(tally, statistics, manifest.generation)
        if len(data) <= _LIMIT and is_readable(data, memory):
            return {STATS_JSON: data, STATS_TFDV: statistics_file(statistics)}
    return {}


def _read(root: str, manifest: Manifest) -> tuple[Tally, Statistics] | None:
    storage = storage_at(root)
    if manifest.schema is None:
        return None
    for path in (staged_sidecar(manifest.run.staging, STATS_JSON), STATS_JSON):  # until it is published
        if not storage.lies_at(path):
            continue
        try:
            data = read_file(root, path, _LIMIT)
            found = parse_stats(data, manifest.generation, manifest.schema, manifest.labels)
            if found is not None:
                _check_records(found[0], manifest)
                return found
        except DamageError:
            if storage.lies_at(path):
                raise
            # another process has published it, and removed it, at this moment
        except StatsProblem as problem:
            if STATS_JSON in manifest.sidecars:
                again = f"make it again: {Command('stats', root, '--write')}"
                raise DamageError(f"{storage.path(path)}: {problem}; {again}") from problem
            # of another generation, as far as anyone knows
    return None


def _check_records(tally: Tally, manifest: Manifest) -> None:
    names = {feature.name for feature in manifest.schema or ()}
    if tally.records != {name: split.records for name, split in manifest.splits.items()}:
        raise StatsProblem("its records by split are not those of the manifest")
    if any(split.features.keys() != names for split in tally.splits.values()):
        raise StatsProblem("its features are not those of the manifest")
