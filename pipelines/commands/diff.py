"""The command `diff`: compare two datasets, or two generations of one, and show what differs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from ...transforms.dataset.reading.compare import Difference, FigureDifference, Side, compare
from ...transforms.dataset.storage.manifest_files import read_manifest
from ...transforms.dataset.storage.opened_generation import OpenedGeneration
from ...transforms.format.wording.hints import Command
from ...transforms.format.wording.printable import counted, format_size, printable
from ...transforms.sources.tfrecord.schema import find_inputs, is_dataset

if TYPE_CHECKING:
    from ...transforms.dataset.reading.compare_records import RecordDifference
    from ..screens.summary_screen import Screen


_DIFFERENT: Final = 1
_SHOWN: Final = 20
"""Lines of one kind that are shown; --json has all."""


def diff_command(a: str, b: str, screen: Screen, *, records: bool) -> int:
    """Print what differs between two datasets, or the records of files; return 0 if they are equal, else 1."""
    if _is_plain(a) or _is_plain(b):
        return _diff_files(a, b, screen)
    sides = Side.open(a), Side.open(b)
    found = compare(*sides)
    read = _compared(sides, found) if records else []
    for side in sides:
        OpenedGeneration(side.path, side.manifest).check()
    equal = found.equal
    if records:
        equal = not found.schema and not found.labels and not any(one.only_a or one.only_b for one in read)
    if screen.as_json:
        document = found.to_json() | {"a": sides[0].name, "b": sides[1].name, "equal": equal}
        screen.data(document | {"records": [_record_document(one) for one in read] if records else None})
    elif not screen.quiet:
        _print(sides, found, read, screen)
        screen.text("Equal." if equal else "Different.", "bold green" if equal else "bold red")
    return 0 if equal else _DIFFERENT


def _is_plain(name: str) -> bool:
    """Return whether a path is a file, or a folder that holds files and no manifest."""
    return os.path.isfile(name) or (os.path.isdir(name) and not is_dataset(os.fsencode(name)) and any(os.scandir(name)))


def _diff_files(a: str, b: str, screen: Screen) -> int:
    from ...transforms.dataset.reading.compare_records import compare_files

    found = [[os.fsdecode(file.entry.path) for file in find_inputs([one], os.getcwd()).files] for one in (a, b)]
    one = compare_files(found)
    equal = not one.only_a and not one.only_b
    if screen.as_json:
        screen.data({"a": a, "b": b, "equal": equal, "records": [_record_document(one)]})
    elif not screen.quiet:
        for letter, name, files in zip("AB", (a, b), found, strict=True):
            screen.text(f"{letter}: {printable(name)}, {counted(len(files), 'file')}")
        screen.text(f"Records: {one.only_a:,} only in A, {one.only_b:,} only in B ({one.read:,} read)")
        screen.text("Equal." if equal else "Different.", "bold green" if equal else "bold red")
    return 0 if equal else _DIFFERENT


def _compared(sides: tuple[Side, Side], found: Difference) -> list[RecordDifference]:
    from ...transforms.dataset.reading.compare_records import compare_records

    whole = [(side.path, read_manifest(side.path, side.manifest.generation)) for side in sides]
    return [compare_records(split.name, whole) for split in found.splits]


def _record_document(one: RecordDifference) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("split", "only_a", "only_b", "read", "bytes", "skipped")}


def _print(sides: tuple[Side, Side], found: Difference, read: list[RecordDifference], screen: Screen) -> None:
    for letter, side in zip("AB", sides, strict=True):
        screen.text(f"{letter}: {side.name}")
    screen.table(_splits_table(found))
    _list(
        screen, "Schema", (f"{printable(name) or 'records'}: {_arrow(*texts)}" for name, texts in found.schema.items())
    )
    classes = ((feature, name, *numbers) for feature, names in found.labels.items() for name, numbers in names.items())
    _list(screen, "Labels", (f'{printable(f)}: class "{printable(n)}" {_arrow(x, y)}' for f, n, x, y in classes))
    for line in dict.fromkeys(_not_compared(sides, found)):
        screen.text(line)
    _list(screen, "Figures", map(_figure_line, found.figures or ()))
    for what, names in zip(("only in A", "only in B", "changed"), found.sources, strict=True):
        _list(screen, f"Sources {what}", map(printable, names))
    for one in read:
        screen.text(
            f"Records of {one.split}: {one.only_a:,} only in A, {one.only_b:,} only in B ({one.read:,} read, "
            f"{one.skipped:,} in equal shards)"
        )


def _not_compared(sides: tuple[Side, Side], found: Difference) -> Iterator[str]:
    for side, level in zip(sides, found.levels, strict=True):
        if level is None:
            fix = f"{Command('stats', side.path, '--write')}"
            if side.manifest.schema is None:
                fix = "its records are plain bytes"
            elif side.is_older:
                fix = "an older generation keeps none; --records compares the records"
            yield f"Figures: not compared, as {side.name}, has no statistics ({fix})."
        elif level == "basic" and "full" in found.levels:
            command = Command("stats", side.path, "--full", "--write")
            yield f"Distinct values: not compared, as {side.name}, does not have them ({command})."


def _figure_line(one: FigureDifference) -> str:
    a, b = (
        value if side not in one.estimated else f"about {_shown(value)}" for side, value in (("a", one.a), ("b", one.b))
    )
    return f"{one.split} {printable(one.feature)}: {one.figure} {_arrow(a, b)}"


def _list(screen: Screen, title: str, lines: Iterable[str]) -> None:
    found = list(lines)
    if found:
        screen.text(f"{title}:", "bold")
    for line in found[:_SHOWN]:
        screen.text(f"  {line}")
    if len(found) > _SHOWN:
        screen.text(f"  and {len(found) - _SHOWN:,} more; to list all of them, add --json")


def _arrow(a: object, b: object) -> str:
    if a is None or b is None:
        return f"only in {'B' if a is None else 'A'}: {_shown(b if a is None else a)}"
    return f"{_shown(a)} -> {_shown(b)}"


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else printable(value)


def _splits_table(found: Difference) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("split", "records A", "B", "shards A", "B", "bytes A", "B", "records"):
        table.add_column(title, justify="left" if title in ("split", "records") else "right", no_wrap=True)
    for split in found.splits:
        cells = [
            "-" if side is None else format_size(side[index]) if index == 2 else f"{side[index]:,}"
            for index in range(3)
            for side in (split.a, split.b)
        ]
        table.add_row(split.name, *cells, "same" if split.same_records else "different")
    return table
