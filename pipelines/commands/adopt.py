"""The command `adopt`: make a dataset of TFRecord files that any program wrote, where they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ...transforms.format.wording.hints import Command
from ...transforms.format.wording.printable import counted, format_size, printable_path
from ..runs.adopt import FileFacts, adopt_files
from ..workers.worker_processes import count_workers

if TYPE_CHECKING:
    from ..screens.summary_screen import Screen


_PROCESSES_FROM_BYTES: Final = 192 << 20
"""From here on two processes are faster than one: each takes half a second to start."""


def adopt_command(folder: str, name: str | None, split: str | None, screen: Screen) -> int:
    from ..screens.summary_screen import print_shares
    from ..screens.terminal import shown_path

    folder, manifest, notes = adopt_files(folder, name=name, split=split, run=_spread)
    screen.done = f"{shown_path(folder)} was adopted"
    if screen.as_json:
        splits = {key: {"records": one.records, "files": len(one.shards)} for key, one in manifest.splits.items()}
        features = None if manifest.schema is None else len(manifest.schema)
        screen.data({"path": printable_path(folder), "splits": splits, "features": features, "notes": list(notes)})
        return 0
    if screen.quiet:
        return 0
    size = format_size(sum(one.bytes for one in manifest.splits.values()))
    files = counted(sum(len(one.shards) for one in manifest.splits.values()), "file")
    records = counted(manifest.counts.written, "record")
    screen.text(f"Adopted {shown_path(folder)}: {records} in {files}, {size}.", "bold green")
    for key, one in manifest.splits.items():
        screen.text(f"  {key}: {counted(one.records, 'record')} in {counted(len(one.shards), 'file')}")
    print_shares(screen, manifest)
    if manifest.schema is None:
        screen.text("Its records are not all tf.train.Example, so there is no schema.", "yellow")
    for note in notes:
        screen.text(f"Note: {note}", "yellow")
    screen.text(f"{Command('info', shown_path(folder))} shows its features.")
    return 0


def _spread(function: Callable[[str], FileFacts], paths: Sequence[str]) -> Iterable[FileFacts]:
    size = sum(os.stat(path).st_size for path in paths)
    workers = min(count_workers("auto"), len(paths))
    if workers < 2 or size < _PROCESSES_FROM_BYTES:
        return map(function, paths)
    from ..workers.worker_processes import map_in_processes

    return map_in_processes(function, paths, workers)
