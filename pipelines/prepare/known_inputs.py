"""Which files of a listing a dataset holds already: by path, fingerprint and options.

    held and unchanged    left out, and said so
    held and changed      refused, as what it gave before stays; or appended whole, or left out, and said so; of a
                          folder of images see `known_images`
    not held              appended

A path counts as the same if one of the two ends with the other: `a.csv` in its folder is `data/a.csv` from above. A
fingerprint covers the size of a file and its first and last 64 KiB; of a folder of images the names and sizes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from ...transforms.dataset.shards.source_list import HeldSource
from ...transforms.errors import UsageError
from ...transforms.format.wording.printable import printable_path
from ...transforms.sources.contract.source import Listing, SourceEntry
from ..report.unchanged import Unchanged, names_of

_COVERED_BYTES: Final = 128 << 10
"""A file of this size is covered by its fingerprint as a whole."""


@dataclass(frozen=True, slots=True)
class SortedFiles:
    """A listing against a dataset: the indices of what is to be appended, `changed` with the generation that has it.

    Of the changed ones, those in `begun` are as they were, but were read in part (`--limit`).
    """

    wanted: tuple[int, ...]
    unchanged: tuple[Unchanged, ...]
    changed: tuple[tuple[int, int], ...]
    warnings: tuple[str, ...]
    rejected: tuple[Unchanged, ...] = ()
    begun: frozenset[int] = frozenset()


def sort_files(
    listing: Listing, held: Iterable[HeldSource], options: Collection[str], made: dict[int, str]
) -> SortedFiles:
    """Return the files that are held, under any of `options`; `made` is the time of each generation in its manifest.

    Files of a generation that is not an append count as held whatever its options were, which are not known.
    """
    by_tail: dict[str, list[HeldSource]] = {}
    for source in held:
        by_tail.setdefault(os.path.basename(source.name), []).append(source)
    wanted, unchanged, changed, begun, late, other = [], [], [], set(), [], []
    for index, entry in enumerate(listing.entries):
        same_path = [
            h for h in by_tail.get(os.path.basename(entry.name), []) if is_path_of(h.name, entry.name, entry.path)
        ]
        same = [h for h in same_path if h.fingerprint == entry.fingerprint]
        match = next((h for h in same if h.options is None or h.options in options), None)
        if match is None:
            wanted.append(index)
            if same_path and not same and listing.traits.in_files:
                changed.append((index, max(h.generation for h in same_path)))
                if any(h.fingerprint == in_part(entry.fingerprint) for h in same_path):
                    begun.add(index)
            if same:
                other.append(entry.name)
        else:
            unchanged.append(Unchanged(entry.name, match.generation, entry.files, match.rejected))
            if _may_differ(listing, entry, made.get(match.generation)):
                late.append(entry.name)
    warnings = []
    if late:
        warnings.append(
            f"{names_of(late)}: written to since, but of the same size and fingerprint, and left out; "
            f"--force appends all"
        )
    if other:
        warnings.append(f"{names_of(other)}: held by the dataset, from other options; appended again with these")
    return SortedFiles(tuple(wanted), tuple(unchanged), tuple(changed), tuple(warnings), begun=frozenset(begun))


def in_part(fingerprint: str) -> str:
    """Return the fingerprint by which a dataset knows a file of which it was made in part."""
    return "sha256:" + hashlib.sha256(f"{fingerprint}\nin part".encode()).hexdigest()


def without_empty_files(listing: Listing, found: SortedFiles) -> SortedFiles:
    """Leave out text files without a byte, where nothing else is wanted, and say so.

    An empty file among several is only a warning, also if the others are held already.
    """
    empty = [listing.entries[index] for index in found.wanted if not listing.entries[index].bytes]
    if not listing.traits.may_be_empty or not found.unchanged or len(empty) != len(found.wanted):
        return found
    warnings = tuple(f"{entry.name}: is empty: no header and no row" for entry in empty)
    return replace(found, wanted=(), changed=(), warnings=(*found.warnings, *warnings))


def settle_changed(listing: Listing, found: SortedFiles, wanted: str | None) -> SortedFiles:
    """Return the files with those that have changed settled, as a user wants it: `append`, `skip`, or None.

    Raises:
        UsageError: files have changed, and nothing is said of them.
    """
    if not found.changed:
        return found
    names = [listing.entries[index].name for index, _ in found.changed]
    its = "its" if len(names) == 1 else "their"
    choice = f"append all {its} rows, also those that the dataset has"
    begun = [listing.entries[index].name for index, _ in found.changed if index in found.begun]
    warning = settle_names(names, wanted, choice, "all rows are appended, and those of before stay too", begun)
    gone = {index for index, _ in found.changed} if wanted == "skip" else set()
    kept = tuple(index for index in found.wanted if index not in gone)
    return replace(found, wanted=kept, changed=(), warnings=(*found.warnings, warning))


def settle_names(
    names: Sequence[str], wanted: str | None, choice: str, appended: str, begun: Sequence[str] = ()
) -> str:
    """Return the warning of files that have changed, which are appended or skipped as a user wants it.

    `choice` says what `--changed append` would do with them, `appended` what it did; `begun` were read in part.

    Raises:
        UsageError: nothing is said of them.
    """
    it = "it" if len(names) == 1 else "them"
    others = [name for name in names if name not in begun]
    states = [f"{names_of(others)}: changed since the dataset took {it} in"] if others else []
    states += [f"{names_of(begun)}: read in part (--limit) when the dataset took {it} in"] if begun else []
    changed = "; ".join(states)
    if wanted is None:
        raise UsageError(
            f"{changed}, and the records that {it} gave stay in it. Choose one of:\n"
            f"  --changed append   {choice}\n"
            f"  --changed skip     leave {it} out"
        )
    return f"{changed}; {appended if wanted == 'append' else 'left out'}"


def is_path_of(name: str, shown: str, path: bytes) -> bool:
    """Return whether a name that a dataset knows is of a file, which is `shown` so now."""
    whole = printable_path(path)
    return name == shown or whole == name or whole.endswith("/" + name.removeprefix("/"))


def _may_differ(listing: Listing, entry: SourceEntry, made: str | None) -> bool:
    """Return whether a file was written to after its generation was made, and may differ where nobody looked.

    What a store states of an object covers all of it.
    """
    if made is None or entry.version or (entry.bytes <= _COVERED_BYTES and not listing.traits.in_folders):
        return False
    return written_since(entry.mtime_ns, made)


def written_since(time_ns: int, made: str) -> bool:
    """Return whether a time is after a generation was made, in whole seconds, as its manifest states it.

    What was written in the same second was, as a rule, written before it was listed.
    """
    try:
        then = datetime.strptime(made, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return False
    return time_ns >= (then.timestamp() + 1) * 1e9
