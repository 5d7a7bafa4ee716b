"""All rules by which files are recognised, in the order in which they are asked; each is a function with its tests.

    strangers        first bytes that are no data, and tables that have a log    refused
    readme, splits   the split of each file                                      read, or the run stops
    twice            one content in two files                                    a warning
    beside           files that may belong to the data                           a line

They look at the listing that a source has made, at the parents of its paths, and at the first bytes of a few files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from ..sources.contract.source import Listing, SourceEntry
from .beside import archives_beside, classes_of_folders, lists_of_splits, sidecars, tables_of_pictures
from .names import FileSplits
from .readme import stated_in
from .splits import CLEAR, UNSURE, Seen, by_readme, find_splits
from .strangers import HEADS, refuse_strangers, refuse_tables
from .twice import content_twice

RULES: Final[tuple[Callable[..., Any], ...]] = (
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
