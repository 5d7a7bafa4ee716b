"""All rules by which files are recognised, in the order in which they are asked; each is a function with its tests.

    kinds            the format of paths                                         detected, or the run stops
    picture_tables   what the section `input` means where files name pictures    another section
    strangers        pictures with annotations of a form that is not read        refused
    strangers        no data, tables with a log, versions of TFDS, answers apart refused
    hugging_face     caches beside what `save_to_disk` wrote                     left out
    splits           the split of each file (with hugging_face, tfds)            read, or the run stops
    strangers        Kaggle's forms for answers                                  left out
    beside           files that may belong to the data, one content in two       a line, or a warning

They look at the listing that a source has made, at the parents of its paths, and at the first bytes of a few files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from ..format.wording.nearest import first_names
from ..sources.contract.call import Call
from ..sources.contract.source import Listing, Recognised
from .beside import (
    MOST_NAMES,
    Around,
    archives_beside,
    classes_in_names,
    classes_of_folders,
    kept_in_a_store,
    lines_of_roboflow,
    names_of_tables,
    sidecars,
    tables_of_pictures,
    tables_of_roboflow,
)
from .box_layouts import by_box_layout
from .hugging_face import stated_classes, without_caches
from .kinds import KINDS, Paths
from .lists import lists_of_annotations, lists_of_classes, lists_of_splits
from .names import FileSplits
from .picture_tables import Resolved, by_given_annotations, by_metadata
from .splits import CLEAR, UNSURE, Seen, by_lists, find_splits
from .strangers import REFUSED, content_twice, forms_for_answers, refuse_other_sets
from .tfds import missing_files

MEANINGS: Final = (by_given_annotations, by_metadata, by_box_layout, refuse_other_sets)
"""The rules of what a section `input` means where files name pictures."""

BESIDE: Final = (
    sidecars, tables_of_pictures, lists_of_classes, lists_of_splits, lists_of_annotations, archives_beside,
    classes_of_folders, names_of_tables, classes_in_names,
)  # fmt: skip
WARNED: Final = (tables_of_roboflow, lines_of_roboflow)
"""The rules that say a line each, and those that warn."""

RULES: Final[tuple[object, ...]] = (
    *KINDS, *MEANINGS, without_caches, *REFUSED, by_lists, *CLEAR, *UNSURE, forms_for_answers, content_twice, *BESIDE,
    *WARNED, kept_in_a_store,
)  # fmt: skip
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


def recognise(listing: Listing, paths: Sequence[str], base: str, how: FileSplits) -> Listing:
    """Return the listing of files with the split of each, and with what there is to say of them.

    Raises:
        InputError: a file is not what its name says, belongs to a table with a log, or it is unclear of which split
            it is.
    """
    named = {os.fsencode(os.path.abspath(os.path.join(base, path))) for path in paths}
    listing, caches = without_caches(listing, named) if how.looks else (listing, ())
    entries, form, notable = listing.entries, listing.format, listing.notable
    files = os.fsdecode(b"\0".join(entry.path for entry in entries)).split("\0") if entries else []
    seen = Seen.of(files, paths, base, notable=notable, form=form, entries=entries, call=how.call)
    recognised, splits = recognise_seen(seen, how)
    recognised = replace(recognised, lines=(*caches, *recognised.lines))
    for entry, split in zip(entries, splits, strict=True) if any(splits) else ():
        # In place, as the listing has just been made: copies of a million entries would take longer than all rules.
        object.__setattr__(entry, "split", split)
    forms = forms_for_answers(listing, named) if how.looks and not isinstance(how.wanted, tuple) else ()
    if forms:
        kept = [number for number in range(len(entries)) if number not in forms]
        shown = first_names([entries[number].name for number in forms], 2)
        line = f"{shown}: a form for answers, whose rows are no data; left out (to read it, convert it by its own path)"
        listing, splits = listing.keep(kept), [splits[number] for number in kept]
        entries = listing.entries
        recognised = replace(recognised, lines=(*recognised.lines, line))
    if any(splits) and not all(splits):
        kept = [number for number, split in enumerate(splits) if split]
        count = len(splits) - len(kept)
        what, are = ("1 file", "is") if count == 1 else (f"{count:,} files", "are")
        line = f"{what} that no list of a split names {are} left out"
        listing, splits = listing.keep(kept), [splits[number] for number in kept]
        entries = listing.entries
        recognised = replace(recognised, lines=(*recognised.lines, line))
    if how.looks:
        folders = [os.path.join(seen.root, one) for one in seen.parts]
        call, root = how.call.afterwards, seen.root
        some = seen.files[:: len(seen.files) // MOST_NAMES + 1]
        around = Around(form=form, call=call, notable=notable, folders=folders, root=root, splits=splits, files=some)
        lines = (*recognised.lines, *lines_beside(around))
        others = [entry.name for entry in entries if entry.path not in named] if form != "tfrecord" else []
        warnings = (*content_twice(entries), *missing_files(others))
        recognised = replace(recognised, lines=lines, warnings=warnings)
    classes = stated_classes(notable, seen.root) if how.looks else {}
    return replace(listing, recognised=recognised, classes=classes)


def recognise_seen(seen: Seen, how: FileSplits) -> tuple[Recognised, Sequence[str | None]]:
    """Return what files, or folders of pictures, were recognised as, and the split of each. Raises as `recognise`."""
    for rule in REFUSED if how.looks else ():
        rule(seen)
    return find_splits(seen, how)


def lines_beside(around: Around, rules: Sequence[Callable[[Around], Iterator[str]]] = BESIDE) -> tuple[str, ...]:
    """Return what to say of files that may belong to those that are read."""
    if around.form == "images" and "://" in around.root:
        rules = (kept_in_a_store,) if rules is WARNED else ()
    return tuple(chain.from_iterable(rule(around) for rule in rules))
