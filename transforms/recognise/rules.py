"""All rules by which files are recognised, in the order in which they are asked; each is a function with its tests.

    kinds            the format of paths                                         detected, or the run stops
    picture_tables   what the section `input` means where files name pictures    another section
    strangers        first bytes that are no data, and tables that have a log    refused
    readme, splits   the split of each file                                      read, or the run stops
    twice            one content in two files                                    a warning
    beside           files that may belong to the data                           a line

They look at the listing that a source has made, at the parents of its paths, and at the first bytes of a few files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ..sources.contract.call import Call
from ..sources.contract.source import Listing, SourceEntry
from .beside import archives_beside, classes_of_folders, lists_of_splits, sidecars, tables_of_pictures
from .kinds import Paths, a_file_of_no_known_kind, nothing_of_a_known_kind, one_kind, pictures_of_a_table, several_kinds
from .names import FileSplits
from .picture_tables import Resolved, by_given_annotations, by_metadata
from .readme import stated_in
from .splits import CLEAR, UNSURE, Seen, by_readme, find_splits
from .strangers import HEADS, refuse_strangers, refuse_tables
from .twice import content_twice

KINDS: Final[tuple[Callable[[Paths], str | None], ...]] = (
    pictures_of_a_table,
    nothing_of_a_known_kind,
    a_file_of_no_known_kind,
    several_kinds,
    one_kind,
)
MEANINGS: Final[tuple[Callable[[Mapping[str, Any], Sequence[str], str], Resolved | None], ...]] = (
    by_given_annotations,
    by_metadata,
)
RULES: Final[tuple[Callable[..., Any], ...]] = (
    *KINDS,
    *MEANINGS,
    *HEADS,
    refuse_tables,
    stated_in,
    by_readme,
    *CLEAR,
    *UNSURE,
    content_twice,
    sidecars,
    tables_of_pictures,
    lists_of_splits,
    archives_beside,
    classes_of_folders,
)
"""Every rule, in its turn."""


def detect_format(paths: Sequence[str], base: str = "", call: Call | None = None, ignore: Sequence[str] = ()) -> str:
    """Return the format of the files that `paths` name, by their suffixes; of a folder, by those of its files.

    `call` is the command that an error proposes. Raises `InputError` where a path matches nothing, or a suffix is that
    of a format that is not read; `UnclearFormat` where no suffix is known, or there are several formats.
    """
    looked_at = Paths(paths, base, call or Call(), ignore)
    return next(filter(None, (rule(looked_at) for rule in KINDS)))


def meaning_of(section: Mapping[str, Any], paths: Sequence[str], base: str) -> Resolved | None:
    """Return what a section `input` means where files beside its own say another one.

    Raises:
        InputError: an option does not go with these files.
    """
    return next(filter(None, (rule(section, paths, base) for rule in MEANINGS)), None)


def recognise(
    listing: Listing, paths: Sequence[str], base: str, how: FileSplits, *, may_have_a_log: bool = False
) -> Listing:
    """Return the listing of files with the split of each, and with what there is to say of them.

    Raises:
        InputError: a file is not what its name says, belongs to a table with a log, or it is unclear of which split
            it is.
    """
    if how.looks:
        refuse_strangers(listing.entries)
    seen = seen_in(listing.entries, paths, base, listing.notable if how.reads_names else ())
    if how.looks and may_have_a_log:
        refuse_tables(seen.files, seen.roots, how.call)
    recognised, splits = find_splits(seen, how)
    for entry, split in zip(listing.entries, splits, strict=True) if any(splits) else ():
        # In place, as the listing has just been made: copies of a million entries would take longer than all rules.
        object.__setattr__(entry, "split", split)
    if how.looks:
        named = classes_of_folders(seen.root, list(seen.parts), splits, how.call, listing.format)
        lines = (*recognised.lines, *archives_beside(listing.notable), *named)
        recognised = replace(recognised, lines=lines, warnings=content_twice(listing.entries))
    return replace(listing, recognised=recognised)


def seen_in(entries: Sequence[SourceEntry], paths: Sequence[str], base: str, notable: Sequence[bytes] = ()) -> Seen:
    files = os.fsdecode(b"\0".join(entry.path for entry in entries)).split("\0") if entries else []
    return Seen.of(files, paths, base, notable)
