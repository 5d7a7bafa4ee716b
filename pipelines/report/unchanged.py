"""Input files that a dataset holds already and that an append leaves out, and the lines that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...transforms.format.manifest.naming import generation_file

_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Unchanged:
    """An input file, or the `files` of a folder of images, that a generation read, and that was left out.

    `rejected` says that the generation has no record of it. `under` is the path under which the generation read a file
    of equal content, None where it is the file's own.
    """

    name: str
    generation: int
    files: int = 1
    rejected: bool = False
    under: str | None = None


def unchanged_line(unchanged: Sequence[Unchanged]) -> str:
    generations = sorted({file.generation for file in unchanged})
    by = f"generation{'s' * (len(generations) > 1)} {', '.join(map(str, generations))}"
    files = sum(file.files for file in unchanged)
    count = "1 file held already" if files == 1 else f"{files:,} files held already"
    return f"{count} ({by}): {names_of(sorted({_named(file) for file in unchanged}))}"


def _named(file: Unchanged) -> str:
    more = [f"{file.files:,} files"] if file.files > 1 else []
    more += [f"held as {file.under}"] if file.under is not None else []
    return f"{file.name} ({', '.join(more)})" if more else file.name


def rejected_line(rejected: Sequence[Unchanged], where: str) -> str:
    """Return in words what was left out since it was rejected before, and the reject files; `where` is the dataset."""
    files = sum(file.files for file in rejected)
    count = "1 file was" if files == 1 else f"{files:,} files were"
    lists = sorted({file.generation for file in rejected})
    see = names_of([f"{where}/{generation_file('rejects', generation, 'jsonl')}" for generation in lists])
    again = "it is replaced" if files == 1 else "they are replaced"
    return f"{count} rejected before, unchanged, and not read again until {again}: see {see}"


def names_of(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED:,} more"
