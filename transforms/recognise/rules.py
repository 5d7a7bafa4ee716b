"""All rules that recognise files, in the order in which they are asked.

    kinds        the format of paths                                            detected, or the run stops
    evidence     what the section `input` means where tables name pictures      another section
    pictures     the same where folders hold annotations, in a form of tools    another section
    strangers    annotations of a form that is not read, no data, other sets    refused
    evidence     caches beside what `save_to_disk` wrote                        left out
    splits       the split of each file                                         read, or the run stops
    strangers    Kaggle's forms for answers, and notes among texts              left out
    beside       files that may belong to the data                              a line, or a warning

They look at the listing that a source has made, at the parents of its paths, and at the first bytes of a few files.
Of the rows that were sampled a column may tell the splits, which is a line.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, UsageError
from ..format.manifest.naming import is_split_name
from ..format.wording.hints import Add, Set
from ..format.wording.printable import first_names, quoted
from ..inputs.contract.selection import Call, FileSplits, shown_path, typed_path
from ..inputs.contract.source import Listing, Recognised, SourceEntry
from .beside.files import (
    MOST,
    MOST_NAMES,
    Around,
    archives_beside,
    kept_in_a_store,
    labels_of_lines,
    lines_of_roboflow,
    published_sets,
    sidecars,
    to_leave_archives_out,
    unread_annotations,
)
from .beside.lists import (
    files_not_looked_at,
    lists_of_annotations,
    lists_of_classes,
    lists_of_folders,
    lists_of_splits,
    lists_with_boxes,
    other_lists,
    texts_of_splits,
)
from .beside.tables import files_of_labels, tables_of_pictures, tables_of_roboflow
from .evidence.hugging_face import stated_classes, without_caches
from .evidence.names import as_split, split_in_words, split_of_folder
from .evidence.picture_tables import Resolved, by_given_annotations, by_metadata
from .evidence.tfds import missing_files
from .kinds import KINDS, Paths, may_be_picture_table
from .pictures.box_layouts import AnnotationFile, by_box_layout, refuse_unread_in_a_store
from .pictures.layout import (
    Meaning,
    above_splits,
    above_words,
    batches_as_no_classes,
    choose_layout,
    classes_in_names,
    classes_of_folders,
    files_of_one_folder,
    folds_as_classes,
    names_of_tables,
    refuse_one_folder,
    role_of,
    shards_as_classes,
    without_images,
    without_words,
)
from .pictures.masks import NamesIn, refuse_masks, refuse_versions
from .splits.find import OFF, UNUSED, find_splits
from .splits.seen import CLEAR, UNSURE, Seen, by_annotated_folders, by_lists
from .strangers.files import MOST_HEADS, content_twice, pictures_twice, refuse_strangers
from .strangers.pictures import refuse_datumaro, refuse_other_sets
from .strangers.tables import (
    forms_for_answers,
    notes_of_texts,
    refuse_answers_apart,
    refuse_missing,
    refuse_other_tables,
    refuse_several,
    refuse_tables,
    refuse_translations,
)

REFUSED: Final = (
    refuse_strangers,
    refuse_tables,
    refuse_several,
    refuse_missing,
    refuse_other_tables,
    refuse_answers_apart,
    refuse_translations,
    refuse_datumaro,
)

LEFT_OUT: Final = {
    forms_for_answers: (re.compile(rb"submission", re.IGNORECASE), "a form for answers, whose rows are no data"),
    notes_of_texts: (re.compile(rb"\.txt", re.IGNORECASE), "by its name a note on the other texts"),
}
"""The rules that leave files out, by their names: a sign that is in some path where they find any, and what to say."""

MEANINGS: Final = (by_given_annotations, by_metadata, by_box_layout)
"""The rules of what a section `input` means where files name pictures."""

BESIDE: Final = (
    sidecars, tables_of_pictures, published_sets, files_of_labels, lists_of_classes, lists_of_splits, other_lists,
    lists_of_folders, labels_of_lines,
    files_not_looked_at, lists_of_annotations, lists_with_boxes,
    archives_beside, classes_of_folders, names_of_tables, classes_in_names, texts_of_splits,
)  # fmt: skip
WARNED: Final = (tables_of_roboflow, lines_of_roboflow)
"""The rules that say a line each, and those that warn."""

RULES: Final[tuple[object, ...]] = (
    *KINDS, *MEANINGS, refuse_other_sets, without_caches, *REFUSED, by_lists, by_annotated_folders, *CLEAR, *UNSURE,
    *LEFT_OUT, content_twice, pictures_twice, *BESIDE, unread_annotations, *WARNED, kept_in_a_store,
    refuse_unread_in_a_store,
)  # fmt: skip
"""Every rule, in its turn."""


class Look(Paths):
    """Paths before a source lists them: their format, and what a section `input` means that names them."""

    def detect(self) -> str:
        """Return the format of the files, by their suffixes.

        Raises:
            InputError: a path matches nothing, or a suffix is that of a format that is not read.
            UnclearFormat: no suffix is known, or there are several formats.
        """
        return next(filter(None, (rule(self) for rule in KINDS)))

    def meaning_of(self, section: Mapping[str, Any]) -> Resolved | None:
        """Return what a section means where files beside its own say another one.

        Raises:
            InputError: an option does not go with these files.
        """
        none = "known" in vars(self) and not self.ignore and not any(map(may_be_picture_table, self.known))
        rules = (rule for rule in MEANINGS if not (none and rule is by_metadata))  # which would walk all folders again
        found = next(filter(None, (rule(section, self.typed, self.base, self.call) for rule in rules)), None)
        if found is None:
            refuse_other_sets(section, self.typed, self.base, self.call)
        return found


def recognise(listing: Listing, paths: Sequence[str], base: str, how: FileSplits) -> Listing:
    """Return the listing of files with the split of each, and with what there is to say of them.

    Raises:
        InputError: a file is not what its name says, belongs to a table with a log, or it is unclear of which split
            it is.
    """
    named = {os.fsencode(os.path.abspath(os.path.join(base, path))) for path in paths}
    listing, caches = without_caches(listing, named) if how.looks else (listing, ())
    entries, form, notable = listing.entries, listing.format, listing.notable
    joined = b"\0".join([entry.path for entry in entries])  # of a million paths, for what few have in them
    files = os.fsdecode(joined).split("\0") if entries else []
    seen = Seen.of(files, paths, base, notable=notable, form=form, entries=entries, call=how.call)
    recognised, splits = _recognise_seen(seen, how)
    recognised = replace(recognised, lines=(*caches, *recognised.lines))
    for entry, split in zip(entries, splits, strict=True) if any(splits) else ():
        # In place, as the listing has just been made: copies of a million entries would take longer than all rules.
        object.__setattr__(entry, "split", split)
    rules = LEFT_OUT if how.looks and not isinstance(how.wanted, tuple) else {}
    for rule, (sign, what) in rules.items():
        found = rule(listing, named) if sign.search(joined) else ()
        if not found:
            continue
        kept = [number for number in range(len(entries)) if number not in found]
        shown = first_names([entries[number].name for number in found], 2)
        line = f"{shown}: {what}; left out (to read it, convert it by its own path)"
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
        lines = (*recognised.lines, *_lines_beside(around))
        numbered = b"-of-" in joined and form != "tfrecord"
        others = [entry.name for entry in entries if entry.path not in named] if numbered else []
        warnings = (*content_twice(entries), *missing_files(others))
        recognised = replace(recognised, lines=lines, warnings=warnings)
    classes = stated_classes(notable, seen.root) if how.looks else {}
    return replace(listing, recognised=recognised, classes=classes)


def _recognise_seen(seen: Seen, how: FileSplits) -> tuple[Recognised, Sequence[str | None]]:
    """Return what files, or folders of pictures, were recognised as, and the split of each. Raises as `recognise`."""
    for rule in REFUSED if how.looks else ():
        rule(seen)
    return find_splits(seen, how)


def _lines_beside(around: Around, rules: Sequence[Callable[[Around], Iterator[str]]] = BESIDE) -> tuple[str, ...]:
    """Return what to say of files that may belong to those that are read."""
    if around.form == "images" and "://" in around.root:
        rules = (kept_in_a_store,) if rules is WARNED else ()
    lines = tuple(chain.from_iterable(rule(around) for rule in rules))
    return (*lines, *unread_annotations(around, lines)) if rules is BESIDE else lines


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureFolders:
    """Folders that hold pictures, as their source lists them; it leaves out `notable`, `texts`, `more` and `pairs`.

    `below` are the paths by which they are detected, `paths` the absolute ones, `roots` what each was found below.
    `annotations` have the names of these. `names` gives those of some pictures, `smallest`
    the smallest pictures, of each at most so many.
    """

    below: Sequence[bytes]
    paths: Sequence[bytes]
    roots: Sequence[bytes]
    annotations: Sequence[AnnotationFile]
    notable: Sequence[bytes]
    texts: Sequence[bytes]
    more: int
    pairs: Sequence[tuple[bytes, bytes]]
    names: Callable[[int], Sequence[bytes]]
    names_in: NamesIn
    smallest: Callable[[int], Sequence[SourceEntry]]

    def hints(self, call: Call) -> list[str]:
        """Return how the files are read that have the names of annotations."""
        return [one.hint(self.paths, call) for one in self.annotations]


@dataclass(frozen=True, slots=True)
class RecognisedPictures:
    """What folders mean: their names begin below the folder `above`.

    `splits` has the split that a rule of files states for each folder. `beside` are lines on the files beside the
    pictures.
    """

    recognised: Recognised
    splits: Sequence[str | None]
    above: bytes
    meaning: Meaning
    beside: tuple[str, ...]


def recognise_pictures(
    found: PictureFolders, typed: Sequence[str], layout: str, how: FileSplits, said: Collection[str] = ()
) -> RecognisedPictures:
    """Return what folders mean; `said` are the options of the user.

    Raises:
        InputError: as `recognise` does; or files beside pictures in a store say more of them, and `said` does not.
        UsageError: it is unclear what folders mean.
    """
    if how.looks:
        refuse_unread_in_a_store(_around(found, Meaning("flat", ()), how, how.call), said)
        if layout == "auto" and "labels" not in said:
            try:
                for rule in (refuse_versions, refuse_masks):
                    rule(found.below, found.paths, found.names_in, how.call)
            except UsageError as error:
                lists = lists_of_folders(_around(found, Meaning("flat", ()), how, how.call))
                raise UsageError("\n".join([str(error), *lists])) from None
    given = how.wanted not in (None, "none")
    own = layout != "auto" and not given
    below = [f"{os.fsdecode(folder)}/".lstrip("/") for folder in found.below]
    files = [f"{os.fsdecode(path).rstrip('/')}/" for path in found.paths]
    root = next((file[: -len(one)] for file, one in zip(files, below, strict=True) if one), files[0]).rstrip("/")
    opened, roots = found.smallest(MOST_HEADS) if how.looks else (), sorted({*map(os.fsdecode, found.roots)})
    seen = Seen(files, below, root, roots, typed, found.notable, "images", opened, how.call)
    try:
        recognised, splits = _recognise_seen(seen, replace(how, wanted=None, pictures=()) if own else how)
    except InputError as error:
        raise InputError(_with_unread(str(error), _around(found, Meaning("flat", ()), how))) from None
    above = above_splits(found.below) if recognised.rule == "folders" else b""
    found = replace(found, below=[one.removeprefix(above) for one in found.below])
    if own or recognised.rule in ("none", OFF, UNUSED, "folders"):
        meaning = _by_names(found, layout, how)
    else:
        meaning = _by_rule(found, layout, recognised, splits, how.call)
    around = _around(found, meaning, how)
    no_classes = (shards_as_classes, folds_as_classes) if layout == "auto" else ()
    lines = chain.from_iterable(rule(around.folders, meaning.layout) for rule in no_classes)
    lines = chain(lines, batches_as_no_classes([*map(os.fsdecode, found.below)], meaning.layout) if no_classes else ())
    recognised = replace(recognised, warnings=(*recognised.warnings, *_lines_beside(around, WARNED)))
    return RecognisedPictures(recognised, splits, above, meaning, (*lines, *_lines_beside(around)))


def _by_names(found: PictureFolders, layout: str, how: FileSplits) -> Meaning:
    around = replace(_around(found, Meaning("label", ()), how), call=how.call)
    hints = list(published_sets(around)) or list(lists_of_classes(around))
    hints = hints or [text for text in lists_of_splits(around) if "; then: " in text]
    hints += found.hints(how.call)
    if how.looks and b"" in found.below and len(found.below) > 1:
        hints += to_leave_archives_out(os.fsdecode(found.paths[[*found.below].index(b"")]), how.call)

    def command(top: bytes) -> str:
        """Return the command that reads a folder alone, a split into a dataset of its own."""
        folders = zip(found.below, found.paths, strict=True)
        own = [(below, path) for below, path in folders if (below + b"/").startswith(top + b"/")]
        below, path = own[0]
        inner = os.path.commonpath([one for one, _ in own])
        folder = os.fsdecode(path.rstrip(b"/").removesuffix(below) + inner)
        split = split_of_folder(os.fsdecode(top.partition(b"/")[0]))
        options = [Set("output.split", split)] if split not in (None, "train") else []
        return str((how.call.apart(split) if split else how.call).reading([typed_path(folder)], *options))

    below, splits = without_images(found.below), how.wanted != "none"
    beside = files_of_one_folder(below, found.paths, splits=splits) if layout == "auto" and how.looks else []
    try:
        meaning = Meaning.of(below, layout, hints, splits=splits, command=command)
        if beside and meaning.is_labelled:
            refuse_one_folder(below, [*map(command, sorted({*below}))], splits=splits)
        return meaning
    except UsageError as error:
        lines = [str(error), *tables_of_pictures(around), *files_of_labels(around)]
        text = "\n".join(line for at, line in enumerate(lines) if not at or line not in lines[0])
        raise UsageError(_with_unread(text, around, beside)) from None


def _with_unread(text: str, around: Around, beside: Sequence[bytes] = ()) -> str:
    """Return a text with the files beside pictures that it does not name."""
    files = dict.fromkeys([*around.notable, *around.texts, *beside])
    left = [one for one in files if shown_path(one) not in text]
    counts = Counter(map(os.path.dirname, left))
    whole = {
        one for one in counts if counts[one] > 1 and counts[one] == sum(os.path.dirname(it) == one for it in files)
    }
    whole = {one for one in whole if not any(f"{it}/".startswith(f"{os.fsdecode(one)}/") for it in around.folders)}
    places = [*dict.fromkeys(above if (above := os.path.dirname(one)) in whole else one for one in left)]
    return f"{text}\nnothing above reads {first_names([*map(shown_path, places)], MOST, around.more)}" if left else text


def _by_rule(found: PictureFolders, layout: str, by: Recognised, splits: Sequence[str | None], call: Call) -> Meaning:
    """Return what folders mean whose splits a rule of files states: the classes are in the rest of their names."""
    below = without_images(found.below)
    if by.rule != "roots":
        above = above_words(below, splits) if not any(by.arguments.values()) else b""
        each = zip((one.removeprefix(above) for one in below), splits, strict=True)
        below = [without_words(one, split, by.arguments.get(split or "", ())) for one, split in each]
    classes = choose_layout(below, layout, found.hints(call), splits=False)
    roles = zip((role_of(folder, classes) for folder in below), splits, strict=True)
    return Meaning(
        "split" if classes == "flat" else "split_label", tuple(replace(role, split=split) for role, split in roles)
    )


def _around(found: PictureFolders, meaning: Meaning, how: FileSplits, call: Call | None = None) -> Around:
    layout, folders = meaning.layout, [*map(os.fsdecode, found.paths)]
    return Around(
        form="images",
        call=call or how.call.afterwards,
        notable=found.notable if how.looks else (),
        texts=found.texts if how.looks else (),
        more=found.more if how.looks else 0,
        folders=folders,
        root=os.fsdecode(found.roots[0]),
        splits=meaning.splits,
        files=[*map(os.fsdecode, found.names(MOST_NAMES))],
        unlabelled=layout in ("flat", "split"),
        pairs=found.pairs if how.looks else (),
        flat=layout == "flat" and len(folders) == 1,
    )


def told_by_column(batch: pa.RecordBatch) -> tuple[str, ...]:
    """Return what to say of the first column of names of splits, of two at least, or as `is_train` and `fold` are."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if told := _told_by_flag(name, column):
            return told
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)) or not len(column):
            continue
        # as bytes: the encoder refuses those that are not UTF-8
        if split_of_folder(_texts(column.slice(0, 1))[0]) is None:
            continue
        values = _texts(pc.unique(column.cast(pa.large_binary())))
        words = [split_of_folder(one) or (split_in_words(one) if one.isalnum() else None) for one in values]
        if len(values) < 2 or len(values) > _MOST_SPLITS or None in words:
            continue
        own = {one: as_split(one) for one in values}
        names = [] if all(map(is_split_name, values)) else [Set("split.names", own)]
        said = f"column {quoted(name)} holds names of splits: {', '.join(values)}; to split by it"
        return (f"{said}: {Add(Set('split.column', name), *names)}",)
    return ()


def _told_by_flag(name: str, column: pa.Array) -> tuple[str, ...]:
    """Return what to say of a column that tells the rows of one split from others, or the folds of rows from 0 on."""
    flag = re.fullmatch(r"is_?(train|val|test)", name.lower())
    if column.null_count or not len(column):
        return ()
    if flag is not None and pa.types.is_boolean(column.type):
        names = {"true": flag[1], "false": "test" if flag[1] == "train" else "train"}
        said = f"tells the rows of {flag[1]} from others"
    elif name.lower() in ("fold", "kfold") and pa.types.is_integer(column.type):
        folds = sorted(pc.unique(column).to_pylist())
        if folds != list(range(len(folds))) or not 2 <= len(folds) <= _MOST_FOLDS:
            return ()
        names = {str(fold): "train" if fold else "val" for fold in folds}
        said = f"holds folds, 0 to {folds[-1]}"
    else:
        return ()
    options = Add(Set("split.column", name), Set("split.names", names))
    return (f"column {quoted(name)} {said}; to split by it: {options}",)


_MOST_FOLDS: Final = 20
_MOST_SPLITS: Final = 8


def _texts(column: pa.Array) -> list[str]:
    """Return the texts of a column as they are shown; a null is empty."""
    return [(value or b"").decode("utf-8", "replace") for value in column.cast(pa.large_binary()).to_pylist()]
