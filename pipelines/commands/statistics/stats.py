"""Show statistics: those of a dataset that are there already, or what is counted of the records now."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ....transforms.dataset.generations.opened_generation import open_generation
from ....transforms.dataset.generations.statistics_file import read_stats, statistics_files
from ....transforms.dataset.reading.count_records import FileCount, count_records, counts_of, write_statistics
from ....transforms.errors import DamageError, UsageError
from ....transforms.format.manifest.manifest import Manifest
from ....transforms.format.schema.schema import Schema
from ....transforms.format.splits.splitter import DEFAULT_SPLIT
from ....transforms.format.wording.hints import Command, Set
from ....transforms.format.wording.printable import printable_path
from ....transforms.sources.contract.source import map_in_turn
from ....transforms.sources.files.listing import holds_dataset
from ....transforms.sources.registry.settings import Settings
from ....transforms.sources.tfrecord.options import TfrecordInput
from ....transforms.sources.tfrecord.pieces import RecordsPiece
from ....transforms.sources.tfrecord.source import TfrecordSource
from ....transforms.statistics.figures import Level, Statistics
from ....transforms.statistics.stats_json import STATS_TFDV, figures_of
from ....transforms.statistics.tally import Tally
from ....transforms.statistics.tfdv import statistics_file
from ...workers.worker_count import count_workers

if TYPE_CHECKING:
    from ...screens.screen import Screen


_PROCESSES_FROM_BYTES: Final = 96 << 20
"""From here on two worker processes are faster than one: each takes half a second to start."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown: the figures, the schema that they are of, and the generation of a dataset."""

    statistics: Statistics
    schema: Schema
    generation: int | None = None


def stats_command(path: str, screen: Screen, *, level: Level, write: bool) -> int:
    root = path.rstrip("/") or path
    written: list[str] = []
    if holds_dataset(os.fsencode(root)):
        shown, written = _of_dataset(root, level, write=write)
    elif write:
        raise UsageError(
            f"{printable_path(path)}: is no dataset, beside whose shards --write writes; make one: "
            f"{Command('merge', path, '-o', 'FOLDER', Set('stats', True))}"
        )
    else:
        shown = _of_files(path, level)
    if written:
        screen.done = f"{' and '.join(written)} of {printable_path(root)} were written"
    if screen.as_json:
        screen.data(_document(path, shown, written))
    elif not screen.quiet:
        from .table import print_statistics

        print_statistics(screen, shown.statistics, shown.schema)
        for name in written:
            screen.text(f"Wrote {printable_path(os.path.join(root, name))}", "green")
    return 0


def _of_dataset(root: str, level: Level, *, write: bool) -> tuple[_Shown, list[str]]:
    """Return the figures of a dataset, and the names of the files that were written."""
    opened = open_generation(root)
    root, manifest = opened.path, opened.manifest
    if manifest.schema is None:
        raise UsageError(f"{printable_path(root)}: its records are plain bytes, of which nothing can be counted")
    with opened.unchanged():
        known = _known(root, manifest)
        if known is not None and (level == "basic" or known.level == "full"):
            files = {STATS_TFDV: statistics_file(known)}
            written = write_statistics(root, manifest, files) if write else []
            return _Shown(known, manifest.schema, manifest.generation), written
        tally = count_records(counts := counts_of(root, manifest, level), level, _spread(counts))
    files = statistics_files(tally, manifest) if write else {}
    if write and not files:
        raise UsageError(f"{printable_path(root)}: its statistics are more than a file may hold; leave out --write")
    written = write_statistics(root, manifest, files) if write else []
    statistics = tally.statistics(manifest.schema, manifest.labels)
    return _Shown(statistics, manifest.schema, manifest.generation), written


def statistics_of(root: str, manifest: Manifest, level: Level, *, count: bool = True) -> Statistics | None:
    """Return the figures of a generation whose records are Examples: those that are there, or what is counted now.

    Without `count` they are those that are there, of any level, None where there are none.
    """
    assert manifest.schema is not None
    known = _known(root, manifest)
    if not count or (known is not None and (level == "basic" or known.level == "full")):
        return known
    tally = count_records(counts := counts_of(root, manifest, level), level, _spread(counts))
    return tally.statistics(manifest.schema, manifest.labels)


def _known(root: str, manifest: Manifest) -> Statistics | None:
    try:
        return read_stats(root, manifest)
    except DamageError:  # the records are counted again
        return None


def _of_files(path: str, level: Level) -> _Shown:
    source = TfrecordSource(TfrecordInput.model_construct(paths=[path]), Settings(os.getcwd()))
    listing = source.list_files()
    survey = source.survey(listing, map_in_turn)
    frozen = survey.frozen
    if frozen.opaque:
        raise UsageError(f"{printable_path(path)}: its records are no Examples, so that nothing can be counted")
    files = [
        FileCount(
            os.fsdecode(piece.path),
            piece.split or DEFAULT_SPLIT,
            piece.bytes,
            piece.answers_for,
            frozen.schema,
            level,
            piece.crc32c,
        )
        for piece in survey.pieces
        if isinstance(piece, RecordsPiece)
    ]
    tally: Tally = count_records(files, level, _spread(files))
    return _Shown(tally.statistics(frozen.schema, frozen.labels), frozen.schema)


def _spread(files: Sequence[FileCount]) -> Any:
    workers = min(count_workers("auto"), len(files))
    if workers < 2 or sum(file.bytes for file in files) < _PROCESSES_FROM_BYTES:
        return map

    def run(function: Callable[[FileCount], Tally], some: Iterable[FileCount]) -> Iterable[Tally]:
        from ...workers.worker_processes import map_in_processes

        return map_in_processes(function, list(some), workers)

    return run


def _document(path: str, shown: _Shown, written: Sequence[str]) -> Mapping[str, Any]:
    return {
        "path": printable_path(path),
        "generation": shown.generation,
        "level": shown.statistics.level,
        "splits": json.loads(json.dumps(figures_of(shown.statistics))),
        "written": list(written),
    }
