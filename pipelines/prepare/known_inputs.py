"""Find the listed files that a dataset holds already, by fingerprint and path.

    held, by path and fingerprint       left out, and said so
    held, by fingerprint                the same under another path: left out, and said so
    held, by path, and changed          refused, as what it gave before stays; or appended whole, or left out, and said
                                        so; of a folder of images see `known_images`
    not held                            appended

A path counts as the same if one of the two ends with the other: `a.csv` in its folder is `data/a.csv` from above. Under
another path a file is the same only if its path gives its rows the same values (`SaidByPath`), and if its rows are made
of that file alone. A fingerprint covers the size of a file, its first and last 64 KiB, and 16 places between them; of a
folder of images the names and sizes. In a store it is an etag or a CRC32C: a file of a size that is held from elsewhere
is read for the other digest.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from ...transforms.dataset.commit.accounting import HeldSource, carried_lines, is_path_of, read_held_sources
from ...transforms.dataset.storage.manifest_files import lineage, read_manifest
from ...transforms.errors import DamageError, UsageError
from ...transforms.format.wording.hints import Add
from ...transforms.format.wording.printable import printable_path
from ...transforms.inputs.contract.source import Listing, SourceEntry
from ...transforms.inputs.files.file_names import format_of_name
from ...transforms.inputs.files.listing import fingerprint_as
from ...transforms.inputs.files.open_file import is_object
from ...transforms.recognise.evidence.names import SaidByPath
from ..outcomes.summary import Unchanged, names_of

FORCE: Final = Add("--force")
_COVERED_BYTES: Final = 128 << 10
"""A file of this size is covered by its fingerprint as a whole."""


@dataclass(frozen=True, slots=True)
class SortedFiles:
    """A listing against a dataset: the indices of what is to be appended, `changed` with the generation that has it.

    Of the changed ones, those in `begun` are as they were, but were read in part (`--limit`). `moved` are folders of
    `wanted` whose names and sizes of images are those of a folder under another path, with its generation.
    """

    wanted: tuple[int, ...]
    unchanged: tuple[Unchanged, ...]
    changed: tuple[tuple[int, int], ...]
    warnings: tuple[str, ...]
    rejected: tuple[Unchanged, ...] = ()
    begun: frozenset[int] = frozenset()
    moved: tuple[tuple[int, HeldSource], ...] = ()


class _HeldFiles:
    """The input files that a dataset holds, and of them those that gave `rows` as a file would give now."""

    def __init__(self, held: Iterable[HeldSource], rows: Iterable[HeldSource], paths: Sequence[str]) -> None:
        self._paths = paths
        self._by_tail: dict[str, list[HeldSource]] = {}
        self._by_print: dict[str, list[HeldSource]] = {}
        self._by_rows: dict[str, dict[SaidByPath, list[HeldSource]]] = {}
        self._kinds: dict[int, set[str]] = {}
        self._folders: dict[bytes, bytes] = {}
        for source in held:
            self._by_tail.setdefault(os.path.basename(source.name), []).append(source)
        for source in rows:
            self._by_print.setdefault(source.fingerprint, []).append(source)
            self._kinds.setdefault(source.bytes, set()).add(source.fingerprint.partition(":")[0])

    def under_path(self, entry: SourceEntry) -> list[HeldSource]:
        """Return what is held of a path, or of what it is a link to, whatever its fingerprint."""
        found = self._of_path(entry.name, entry.path)
        if found or is_object(entry.path):
            return found
        folder, name = os.path.split(entry.path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        real = os.path.realpath(entry.path) if os.path.islink(entry.path) else os.path.join(self._folders[folder], name)
        return [] if real == entry.path else self._of_path(printable_path(real), real)

    def _of_path(self, shown: str, path: bytes) -> list[HeldSource]:
        same_tail = self._by_tail.get(os.path.basename(shown), [])
        return [one for one in same_tail if is_path_of(one.name, shown, path)]

    def equal(self, entry: SourceEntry, fingerprint: str) -> HeldSource | None:
        """Return a file that is held under another path, and gives the rows of this one."""
        return next(self._of_rows(fingerprint, entry.name), None)

    def equal_elsewhere(self, entry: SourceEntry) -> HeldSource | None:
        """Return a file of the same size that is held from a disk, where this one is in a store, or the reverse.

        Only then is the file read, as a disk and a store tell content by other digests.
        """
        own = entry.fingerprint.partition(":")[0]
        for kind in sorted(self._kinds.get(entry.bytes, set()) - {own}):
            found = self.equal(entry, fingerprint_as(entry, kind))
            if found is not None:
                return found
        return None

    def _of_rows(self, fingerprint: str, name: str) -> Iterator[HeldSource]:
        """Yield the files of a fingerprint that gave the rows which the file `name` gives, as far as paths tell.

        Which of the folders of a held file were below a path of its command is not known, so that those of the new file
        have to be the last ones of it that name a split.
        """
        if fingerprint not in self._by_print:
            return
        if fingerprint not in self._by_rows:
            by_rows = self._by_rows[fingerprint] = {}
            for one in self._by_print[fingerprint]:
                by_rows.setdefault(SaidByPath.of(one.name), []).append(one)
        wanted = SaidByPath.of(name, self._paths)
        for said, held in self._by_rows[fingerprint].items():
            last = said.splits[len(said.splits) - len(wanted.splits) :]
            if replace(said, splits=last) == wanted:
                yield from held


def sort_files(
    listing: Listing,
    held: Iterable[HeldSource],
    rows: Collection[HeldSource],
    made: dict[int, str],
    *,
    by_content: bool,
    paths: Sequence[str] = (),
) -> SortedFiles:
    """Return the files that are held; `made` is the time of each generation in its manifest.

    Of what is held, `rows` are what files would give again: others went to another split, or have other constants. With
    `by_content` a file is also known under another path. `paths` are the inputs as they were typed.
    """
    known, same_rows, traits = _HeldFiles(held, rows, paths), set(rows), listing.traits
    wanted, unchanged, changed, moved, begun, late, other = [], list[Unchanged](), [], [], set(), [], []
    for index, entry in enumerate(listing.entries):
        at_path = known.under_path(entry)
        same = [h for h in at_path if h.fingerprint == entry.fingerprint]
        match, copy = next((h for h in same if h in same_rows), None), None
        if match is None and by_content:
            copy = known.equal(entry, entry.fingerprint)
            if copy is None and not traits.in_folders:
                copy = known.equal_elsewhere(entry)
        if copy is not None and traits.in_folders:  # a digest of names and sizes is no proof
            moved.append((index, copy))
        elif (found := match or copy) is not None:
            under = None if match else found.name
            unchanged.append(Unchanged(entry.name, found.generation, entry.files, found.rejected, under))
            if _may_differ(listing, entry, made.get(found.generation)):
                late.append(entry.name)
            continue
        wanted.append(index)
        if same:
            other.append(entry.name)
        elif traits.in_files:
            part = in_part(entry.fingerprint)
            in_parts = [known.equal(entry, part)] if by_content and not at_path else []
            taken = at_path or [one for one in in_parts if one is not None]
            changed += [(index, max(h.generation for h in taken))] if taken else []
            begun |= {index} if any(h.fingerprint == part for h in taken) else set()
    warnings = tuple(_warnings(late, other))
    return SortedFiles(
        tuple(wanted), tuple(unchanged), tuple(changed), warnings, begun=frozenset(begun), moved=tuple(moved)
    )


def _warnings(late: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    if late:
        yield (
            f"{names_of(late)}: written to since, but of the same size and fingerprint, and left out; "
            f"{FORCE} appends all"
        )
    if other:
        yield f"{names_of(other)}: held by the dataset, in another split or with other constants; appended again"


def without_held_datasets(listing: Listing, found: SortedFiles, held: Sequence[HeldSource], path: str) -> SortedFiles:
    """Leave out datasets of which no shard is held, but all files that they were made of.

    If only some of these are held it is an error, as their rows would come twice.
    """
    rows = {_rows_of(one): one for one in held if _is_proven(one)} if listing.datasets else {}
    for root, generation in listing.datasets:
        own = {i for i, one in enumerate(listing.entries) if one.path.startswith(os.fsencode(root) + b"/")}
        if not own <= set(found.wanted):  # what it had before is known by its shards
            continue
        manifests = list(lineage(root, read_manifest(root, generation)))
        sources = [one for manifest in manifests for one in read_held_sources(root, manifest) if one.written]
        shared = [one for one in sources if _is_proven(one) and _rows_of(one) in rows]
        if len(shared) == len(sources) and all(manifest.source.list for manifest in manifests) and sources:
            first = rows[_rows_of(shared[0])]
            gone = [Unchanged(listing.entries[i].name, first.generation, under=first.name) for i in sorted(own)]
            kept = tuple(i for i in found.wanted if i not in own)
            found = replace(found, wanted=kept, unchanged=(*found.unchanged, *gone))
        elif shared:
            raise UsageError(
                f"{printable_path(root)}: was made of {names_of([one.name for one in shared])}, of which "
                f"{printable_path(path)} holds the rows, and of others; append the other files, or all: {FORCE}"
            )
    return found


def _is_proven(one: HeldSource) -> bool:
    """Return whether rows were made of a source whose fingerprint is of its content: a file, and no folder."""
    return one.written and format_of_name(one.name) is not None


def _rows_of(one: HeldSource) -> Hashable:
    return one.fingerprint, SaidByPath.of(one.name)


def with_readable_lists(listing: Listing) -> tuple[Listing, tuple[str, ...]]:
    """Return the listing without datasets whose lists of sources are damaged, which are not carried on, and why."""
    kept, warnings = [], list[str]()
    for dataset in listing.datasets:
        try:
            deque(carried_lines([dataset]), 0)
        except DamageError as error:  # records are merged without it
            warnings.append(
                f"{error}; sources are not carried on, so that an append of the same files takes them again"
            )
        else:
            kept.append(dataset)
    return (replace(listing, datasets=tuple(kept)), tuple(warnings)) if warnings else (listing, ())


def shared_warnings(datasets: Sequence[tuple[str, int]]) -> Iterator[str]:
    first: dict[Hashable, int] = {}
    shared = list[str]()
    for number, (root, generation) in enumerate(datasets if len(datasets) > 1 else ()):
        for manifest in lineage(root, read_manifest(root, generation)):
            held = filter(_is_proven, read_held_sources(root, manifest))
            shared += [one.name for one in held if first.setdefault(_rows_of(one), number) != number]
    if shared:
        yield f"{names_of(shared)}: more than one of the datasets was made of this content, so that its rows come twice"


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
    """Return the files with those that have changed settled, as a user wants it: `append`, `skip`, or None."""
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
    """
    it = "it" if len(names) == 1 else "them"
    others = [name for name in names if name not in begun]
    states = [f"{names_of(others)}: changed since the dataset took {it} in"] if others else []
    states += [f"{names_of(begun)}: read in part (--limit) when the dataset took {it} in"] if begun else []
    changed = "; ".join(states)
    if wanted is None:
        raise UsageError(
            f"{changed}, and the records that {it} gave stay in it. Choose one of:\n"
            f"  {Add('--changed', 'append')}   {choice}\n"
            f"  {Add('--changed', 'skip')}     leave {it} out"
        )
    return f"{changed}; {appended if wanted == 'append' else 'left out'}"


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
