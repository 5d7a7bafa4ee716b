"""Which files are of which split by the README.md of a repository, as those of the Hugging Face hub have it.

    ---
    configs:
    - config_name: de
      data_files:
      - {split: train, path: de/train-*.parquet}
      - {split: test, path: [de/test-*.parquet]}
    ---

Source of the forms: huggingface.co/docs/hub/datasets-manual-configuration. As there, `*` ends at a slash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..errors import InputError, SourceError
from ..format.wording.hints import Set
from ..format.wording.printable import printable
from ..sources.contract.call import shown_path
from ..sources.files.listing import list_file
from ..sources.files.object_listing import compiled, part_pattern
from ..sources.files.open_file import open_file, open_listed, read_at
from .names import Globs

_MOST_BYTES: Final = 1 << 20
_FRONT: Final = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_SPLIT: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Stated:
    """One config of a README.md: the globs of each split, of paths from its folder on."""

    name: str
    globs: Globs

    def splits_of(self, below: Sequence[str]) -> list[set[str]]:
        """Return the splits of each file; of a folder of pictures, which ends with a slash, those of its files."""
        tests = [(split, *_tests(glob)) for split, globs in self.globs for glob in globs]
        found = []
        for one in below:
            folder = one[:-1] if one.endswith("/") else None
            found.append({
                split
                for split, test, folders in tests
                if (test.fullmatch(one) if one and folder is None else folders.fullmatch(folder or ""))
            })  # fmt: skip
        return found


def stated_in(notable: Iterable[bytes], root: str) -> tuple[Stated, ...]:
    """Return what the README.md in a folder states, if it is among files that were left out.

    Raises:
        InputError: a split has a name that no split may have.
    """
    paths = (path for path in notable if path.lower().endswith(b"/readme.md"))
    path = next((path for path in paths if os.fsdecode(path)[: -len("/readme.md")] == root.rstrip("/")), None)
    if path is None:
        return ()
    try:
        with open_listed(list_file(path, b"/"), open_file) as file:
            text = read_at(file)(_MOST_BYTES, 0).decode("utf-8", "replace")
    except (InputError, SourceError, OSError):
        return ()  # it is no file that is read
    return tuple(_configs(text, shown_path(path)))


def _configs(text: str, shown: str) -> Iterator[Stated]:
    import yaml  # no worker needs it

    front = _FRONT.match(text)
    try:
        values = yaml.safe_load(front[1]) if front else None
    except (yaml.YAMLError, RecursionError, ValueError):
        return  # it is made for people, and was not made for us
    configs = values.get("configs") if isinstance(values, dict) else None
    for number, one in enumerate(configs if isinstance(configs, list) else ()):
        if isinstance(one, dict) and one.get("data_files") is not None:
            folder = one.get("data_dir")
            above = f"{folder.strip('/')}/" if isinstance(folder, str) and folder.strip("./") else ""
            by_split = dict[str, list[str]]()
            for split, paths in _data_files(one["data_files"]):
                by_split.setdefault(_split_name(split, shown), []).extend(_below(above, path) for path in paths)
            name = str(one.get("config_name", f"config {number + 1}"))
            globs = tuple((split, tuple(paths)) for split, paths in by_split.items() if paths)
            if globs and not any("://" in path for _, paths in globs for path in paths):
                yield Stated(name, globs)


def _data_files(given: Any) -> Iterator[tuple[Any, list[str]]]:
    """Yield splits and their globs; files without a split are of `train`."""
    items = given if isinstance(given, list) else [given]
    for item in items:
        if isinstance(item, str):
            yield "train", [item]
        elif isinstance(item, dict) and "path" in item:
            yield item.get("split", "train"), _texts(item["path"])
        elif isinstance(item, dict):
            yield from ((split, _texts(paths)) for split, paths in item.items())


def _texts(given: Any) -> list[str]:
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]


def _below(above: str, path: str) -> str:
    return above + re.sub(r"^(?:\./|/)+", "", path)


def _split_name(given: Any, shown: str) -> str:
    name = re.sub(r"[^a-z0-9_]", "_", str(given).lower())
    if not _SPLIT.fullmatch(name):
        raise InputError(
            f'{shown}: calls a split "{printable(given)}", and the name of a split begins with a letter; say which '
            f"files are of which split: {Set('input.splits', '{train: GLOB, test: GLOB}')}"
        )
    return name


def _tests(glob: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what the paths of files match that a glob names, or the folder that it names, and what folders match."""
    folder = glob.rpartition("/")[0] if re.search(r"[*?\[]|\.[^/]+$", glob) else glob
    inner = "(?:/.*)?" if folder == glob else ""
    below = "(?:/.*)?" if folder == glob or glob.endswith("**") else ""
    return compiled(glob, _pattern(glob) + inner), compiled(folder, _pattern(folder) + below)


def _pattern(glob: str) -> str:
    """Return a glob as a regular expression, in which `*` ends at a slash, and `**` does not.

    >>> bool(re.fullmatch(_pattern("a/**/b-*.csv"), "a/b-1.csv")), bool(re.fullmatch(_pattern("a/*"), "a/b/c"))
    (True, False)
    """
    *above, last = glob.split("/")
    steps = ["(?:.*/)?" if part == "**" else f"{part_pattern(part)}/" for part in above]
    return "".join(steps) + (".*" if last == "**" else part_pattern(last))
