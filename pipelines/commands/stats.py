"""The commands `stats`, of a dataset or of any TFRecord files, and `report`, of a dataset; counted now if need be."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...transforms.dataset.reading.count_records import FileCount, count_records, counts_of, write_statistics
from ...transforms.dataset.storage.direct_file import check_new, new_file
from ...transforms.dataset.storage.manifest_files import read_stats, statistics_files
from ...transforms.dataset.storage.opened_generation import open_generation
from ...transforms.errors import DamageError, SchemaError, UsageError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.schema.schema import Schema
from ...transforms.format.splits.splitter import DEFAULT_SPLIT
from ...transforms.format.wording.hints import Command, Set
from ...transforms.format.wording.printable import format_size, printable_path
from ...transforms.inputs.contract.source import map_in_turn
from ...transforms.inputs.files.listing import holds_dataset
from ...transforms.observers.figures import Level, Statistics
from ...transforms.observers.stats_files import STATS_TFDV, figures_of, statistics_file
from ...transforms.observers.tally import Tally
from ...transforms.sources.registry.options import TfrecordInput
from ...transforms.sources.registry.settings import Settings
from ...transforms.sources.tfrecord.pieces import RecordsPiece
from ...transforms.sources.tfrecord.source import TfrecordSource
from ..screens.statistics_table import print_statistics
from ..workers.worker_processes import Spread

if TYPE_CHECKING:
    from ..screens.summary_screen import Screen

_SPREAD: Final = Spread(lambda file: file.bytes, from_bytes=96 << 20)


_PROPOSED: Final = re.compile(r"(; such records have no schema; to keep them|, or make a new dataset of all)[^\n]*")


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown: the figures, their schema, the generation of a dataset, and what is odd in records of files."""

    statistics: Statistics
    schema: Schema
    generation: int | None = None
    notes: tuple[str, ...] = ()


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
        print_statistics(screen, shown.statistics, shown.schema)
        for note in shown.notes:
            screen.text(f"Note: {note}", "yellow")
        for name in written:
            screen.text(f"Wrote {printable_path(os.path.join(root, name))}", "green")
    return 0


def _of_dataset(root: str, level: Level, *, write: bool) -> tuple[_Shown, list[str]]:
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
        tally = count_records(counts_of(root, manifest, level), level, _SPREAD)
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
    tally = count_records(counts_of(root, manifest, level), level, _SPREAD)
    return tally.statistics(manifest.schema, manifest.labels)


def _known(root: str, manifest: Manifest) -> Statistics | None:
    try:
        return read_stats(root, manifest)
    except DamageError:  # the records are counted again
        return None


def _of_files(path: str, level: Level) -> _Shown:
    source = TfrecordSource(TfrecordInput.model_construct(paths=[path]), Settings(os.getcwd()))
    listing = source.list_files()
    try:
        survey = source.survey(listing, map_in_turn)
    except SchemaError as error:  # it proposes an option of merge: plain bytes have no figures
        raise SchemaError(_PROPOSED.sub("", str(error))) from error
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
    tally: Tally = count_records(files, level, _SPREAD)
    notes = tuple(one for one in survey.warnings if one.startswith("feature "))
    return _Shown(tally.statistics(frozen.schema, frozen.labels), frozen.schema, notes=notes)


def _document(path: str, shown: _Shown, written: Sequence[str]) -> Mapping[str, Any]:
    return {
        "path": printable_path(path),
        "generation": shown.generation,
        "level": shown.statistics.level,
        "splits": json.loads(json.dumps(figures_of(shown.statistics))),
        **({"notes": list(shown.notes)} if shown.notes else {}),
        "written": list(written),
    }


def report_command(
    path: str, target: str, screen: Screen, generation: int | None, *, quick: bool, overwrite: bool
) -> int:
    """Report a generation (None: the latest)."""
    from ..screens.report_facts import gather_facts
    from ..screens.report_page import html_page

    root = path.rstrip("/") or path
    if not target.endswith((".html", ".htm")):
        raise UsageError(f"{printable_path(target)}: a report is an HTML file; name it so: -o report.html")
    check_new(target, overwrite=overwrite)
    opened = open_generation(root, generation)
    root, manifest, found = opened.path, opened.manifest, None
    with opened.unchanged():
        if manifest.schema is not None:
            found = statistics_of(root, manifest, "full", count=not quick)
        page = html_page(gather_facts(root, found, manifest.generation)).encode()
    with new_file(target) as file:
        file.write(page)
    screen.done = f"{printable_path(target)} was written"
    if screen.as_json:
        screen.data({"path": target, "bytes": len(page), "generation": manifest.generation})
    elif not screen.quiet:
        screen.text(f"Wrote {printable_path(target)} ({format_size(len(page))}); any browser shows it.", "green")
    return 0
