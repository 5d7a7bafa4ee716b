"""Name tables and documents whose rows name pictures beside them, and columns of a table that name files.

    labels.csv beside pictures    a table, if its first row names one of them
    labels.json                   the lines of Python that make a metadata.jsonl of it
    train.csv with a path         the folder below which its files are

Of at most a few files the first rows are looked at.
"""

from __future__ import annotations

import fnmatch
import glob
import json
import os
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ...format.wording.hints import Add, Set, read_csv, runnable, set_column
from ...format.wording.printable import first_names, printable, printable_path, quoted
from ...inputs.contract.selection import shown_path, typed_path
from ...inputs.contract.source import Listing
from ...inputs.files.file_names import FORMATS, is_of_roboflow
from ...inputs.files.listing import beginning_of
from ...inputs.files.open_file import is_object
from ..evidence.json_documents import document_in, rows_of_document
from ..evidence.label_names import HEAD_BYTES
from ..evidence.names import in_splits, is_form_for_answers, kind_of, split_in_words, split_of_folder
from ..evidence.picture_tables import box_columns, class_map, names_of_cells
from .class_names import names_by_number
from .files import BY_SPLIT, MOST, MOST_FOLDERS, Around, as_metadata, lines_of, rows_in, written_as

_TABLES: Final = (".csv", ".tsv")
_OF_TABLES: Final = tuple(map(str.encode, _TABLES))


def tables_of_pictures(around: Around) -> Iterator[str]:
    """The first row of a table beside pictures names one, in its folder, the root, or one of pictures."""
    texts = [one for one in around.texts if one.lower().endswith(_OF_TABLES)][:_MOST_HEADS]
    return _tables(around, [one for one in (*around.notable, *texts) if not is_of_roboflow(one)])


def tables_of_roboflow(around: Around) -> Iterator[str]:
    """Tables that Roboflow writes beside pictures surely are annotations."""
    return _tables(around, list(filter(is_of_roboflow, around.notable)))


def _tables(around: Around, notable: Sequence[bytes]) -> Iterator[str]:
    if around.form != "images":
        return
    alike, boxes = defaultdict[tuple[str, str, str], list[str]](list), list[str]()
    several = defaultdict[tuple[str, str], list[tuple[str, str, str]]](list)
    all_tables = [one for one in notable if os.fsdecode(one).lower().endswith(_TABLES)]
    if forms := [one for one in all_tables if is_form_for_answers(os.path.basename(os.fsdecode(one)))]:
        yield f"{first_names([*map(shown_path, forms)], MOST)}: a form for answers, whose rows are no data; not read"
        all_tables = [one for one in all_tables if one not in forms]
    joined, told = _by_partition(all_tables[:MOST], around)
    yield from told
    all_tables = [one for one in all_tables if one not in joined]
    for number, path in enumerate(all_tables[:MOST_FOLDERS]):
        found = None if class_map(rows_in(path)) else _picture_column(path, around)
        if found is None:
            if around.others and number < MOST and path in around.notable and _of_table(path, around) is None:
                yield f"{shown_path(path)} is a table beside pictures, and is not read"
            continue
        column, root, suffix = found
        table = typed_path(os.fsdecode(path))
        columns = box_columns(rows_in(path)[0])
        if columns is not None and columns.picture == column and around.root:
            boxes.append(table)
        elif found_frame := _in_several_folders(path, column, root, suffix, around):
            top, frame, picture = found_frame
            several[top, column].append((table, frame, picture))
        else:
            alike[column, "" if root == os.path.dirname(os.fsdecode(path)) else typed_path(root), suffix].append(table)
    yield from _of_several_folders(several, around)
    if boxes:
        once, again = _once_each(boxes)
        option = Set("input.annotations.boxes", once[0] if len(once) == 1 else once)
        names, are = ("names", "is") if len(boxes) == 1 else ("name", "are")
        read = around.call.plain([typed_path(around.root)], option)
        what = f"{first_names(boxes, MOST)} {names} pictures with a box in each row, and {are} not read"
        hold = f"; {first_names(again, MOST)} {'holds' if len(again) == 1 else 'hold'} rows of these again"
        yield f"{what}{hold if again else ''}; to read a record for each picture, with its boxes: {read}"
    groups: list[tuple[str, str, str, list[str]]] = []
    for (column, root, suffix), tables in alike.items():
        together = not root and len({os.path.dirname(one) for one in tables}) == len(tables)
        groups += [(column, root, suffix, group) for group in ([tables] if together else [[one] for one in tables])]
    splits = [split_in_words(_stem(group[0])) for *_, group in groups]
    are_apart = all(splits) and len({*splits}) == len(splits) > 1
    for column, root, suffix, group in groups:
        options: list[Add] = [set_column(column, "image", "path")]
        options += [Set("schema.files_root", root)] if root else []
        options += [Set("schema.files_suffix", suffix)] if suffix else []
        header, row = rows_in(os.fsencode(group[0]))[:2]
        options += written_as(row[header.index(column)] + suffix)
        options += [Add("--no-header")] if header == [*names_of_cells(row)] else []
        options += _of_split(group, row[header.index(column)], root, are_apart=are_apart, around=around)
        names, its, are = ("names", "its", "is") if len(group) == 1 else ("name", "their", "are")
        shown = " and ".join(map(printable_path, group)) if len(group) < 3 else first_names(group, 2)
        what = f'{shown} {names} pictures in {its} column "{printable(column)}"'
        call = around.call if len(groups) == 1 and not boxes else around.apart(group[0])
        read = call.plain(_in_few_words(group, all_tables), *options)
        each = "" if not any(_names_one_again(one, column) for one in group) else ", a record for each row, so that a "
        each += "picture in several rows comes several times" if each else ""
        each += _without_folders(row[header.index(column)], groups, around)
        yield f"{what}, and {are} not read; to read {its} rows{each}: {read}"


def _without_folders(value: str, groups: Sequence[tuple[str, str, str, list[str]]], around: Around) -> str:
    """Say in which folders of pictures beside those of tables no table names any."""
    places = {root or os.path.dirname(one) for _, root, _, group in groups for one in group}
    left = [one for one in map(typed_path, around.below) if one not in places]
    return f" (without the pictures in {first_names(left, MOST)})" if left and "/" not in value else ""


def _once_each(tables: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the tables that hold each row once, and the others, where one of them has all rows of the others.

    If the others are the tables of splits and together have all rows, they are the ones to read; else the whole one is.
    """
    folders = {os.path.dirname(one) for one in tables}  # a.jpg is another picture in another one
    if len(folders) > 1 or any(os.path.getsize(one) > _MOST_COMPARED for one in tables):
        return tables, ()
    rows = {one: {*map(bytes.rstrip, Path(one).read_bytes().splitlines())} for one in tables}
    for whole in sorted(tables, key=lambda one: -len(rows[one])):
        if split_in_words(_stem(whole)):  # of pictures of its own
            continue
        parts = [one for one in tables if one != whole]
        inner = set().union(*(rows[one] for one in parts))
        if parts and inner <= rows[whole]:
            of_splits = inner == rows[whole] and all(split_in_words(_stem(one)) for one in parts)
            return (parts, [whole]) if of_splits else ([whole], parts)
    return tables, ()


_MOST_COMPARED: Final = 16 << 20


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _of_split(group: Sequence[str], value: str, root: str, *, are_apart: bool, around: Around) -> list[Set]:
    """Return the option for the split that was given, or that one table states.

    Words mean a split in tables that `are_apart`, and where the folder of the pictures has such words too.
    """
    given = [one for one in around.call.given if one.key == "output.split"]
    if given or len(group) > 1:
        return given
    stem = _stem(group[0])
    names = (value.rpartition("/")[0].partition("/")[0], stem, _folder_name(group[0]), os.path.basename(root))
    meant = split_in_words(stem)
    is_meant = are_apart or meant == split_in_words(names[-1])
    split = next(filter(None, map(split_of_folder, names)), meant if is_meant else None)
    return [Set("output.split", split)] if split not in (None, "train") else []


def _by_partition(tables: Sequence[bytes], around: Around) -> tuple[list[bytes], list[str]]:
    """Return tables that are joined to one that says the split of each picture as 0, 1, or 2, and what reads them.

    So is `list_eval_partition.csv` of CelebA, beside `list_attr_celeba.csv`.
    """
    first = next((one for one in tables if _column_of_partition(one)), None)
    place = None if first is None or "://" in around.root else _picture_column(first, around)
    if first is None or place is None:
        return [], []
    others = [one for one in tables if one != first and (it := _picture_column(one, around)) and it[1:] == place[1:]]
    others = [one for one in others if not box_columns(rows_in(one)[0])]
    reads = []
    for path in (first, *others):
        column = (_picture_column(path, around) or place)[0]
        reads.append(f"{_texts_of(path)}.rename(columns={{{column!r}: 'file_name'}})")
    merged = "".join(f".merge({one}, on='file_name', how='left')" for one in reads[1:])
    splits = f"rows[{_column_of_partition(first)!r}].map({{'0': 'train', '1': 'val', '2': 'test'}})"
    suffix = f", file_name=lambda rows: rows['file_name'] + {place[2]!r}" if place[2] else ""
    frame = f"{reads[0]}{merged}.assign(split=lambda rows: {splits}{suffix})"
    what = "the pictures with their splits" + (
        f", and the columns of {first_names([*map(shown_path, others)], MOST)}" if others else ""
    )
    how = as_metadata(around.call, place[1], frame, [BY_SPLIT], what)
    return [first, *others], [
        f"{shown_path(first)} says the splits as 0, 1 and 2 (train, val, test), and is not read; {how}"
    ]


def _column_of_partition(path: bytes) -> str:
    """Return the column of a table of partitions whose values are 0, 1 and 2; empty for other tables."""
    if b"partition" not in os.path.basename(path).lower():
        return ""
    header, *rows = rows_in(path)
    rows = [row for row in rows if len(row) == len(header)]
    found = (name for at, name in enumerate(header) if rows and {row[at] for row in rows} <= {"0", "1", "2"})
    return next(found, "")


def told_by_paths(batch: pa.RecordBatch, listing: Listing, entry: int) -> tuple[str, ...]:
    """Return what to say of columns whose first value is a file in the folder of their table, or a sound's stem."""
    table, told, has_stems = listing.entries[entry].path, [], batch.num_columns <= _MOST_STEMS
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        is_stem = is_text or (has_stems and pa.types.is_integer(column.type))
        if not is_stem or "/" in name or not len(column) or not listing.traits.in_files or is_object(table):
            continue
        value = column[0].cast(pa.large_binary()).as_py() or b"" if is_text else f"{column[0]}".encode()
        ends = _SOUNDS if has_stems and value and not os.path.splitext(value)[1] else ("",)
        path, end = next(
            ((path, end) for end in ends if (path := _beside_table(table, value + end.encode()))), (b"", "")
        )
        if not path or any(path == one.path for one in listing.entries):
            continue
        picture = value.lower().endswith(tuple(map(os.fsencode, FORMATS["images"].suffixes)))
        key, what = ("image", "pictures") if picture else ("file", "sounds" if end else "files")
        root = os.fsdecode(path[: -len(value + end.encode()) - 1])
        places = [Set("schema.files_root", typed_path(root))] if root != os.path.dirname(os.fsdecode(table)) else []
        ended = [Set("schema.files_suffix", end)] if end else []
        option = Add(set_column(name, key, "path"), *places, *ended, *written_as(os.fsdecode(value)))
        where = f"of {shown_path(root)}" if places else "beside its table"
        said = f"column {quoted(name)} names {what} {where} ({printable(os.path.basename(os.fsdecode(path)))})"
        alone = f" of {shown_path(table)} alone" if end and len(listing.entries) > 1 else ""
        told.append(f"{said}, which are not read; to read them{alone}: {option}")
    return tuple(told)


_SOUNDS: Final = (".wav", ".flac", ".mp3", ".ogg")
_MOST_STEMS: Final = 64
"""Columns of a table in which stems are looked for: each is a few looks at the disk."""


def _beside_table(table: bytes, value: bytes) -> bytes:
    """Return the file that a value names in the folder of its table, or in one that is in it, or beside it; or none.

    So are `audio/1.wav` and `meta/esc50.csv`.
    """
    own = os.path.dirname(table)
    if not os.path.splitext(value)[1] or b"\0" in value or len(value) > _LONGEST or value.startswith(b"/"):
        return b""
    for above in (own, os.path.dirname(own)):
        if above == own and os.path.isfile(path := os.path.join(own, value)):
            return path
        if not os.access(above, os.R_OK):
            continue
        with os.scandir(above) as entries:
            folders = sorted(one.path for one in islice(entries, MOST_FOLDERS) if one.is_dir() and one.path != own)
        found = [path for one in folders[:_MOST_PLACES] if os.path.isfile(path := os.path.join(one, value))]
        if len(found) == 1:
            return found[0]
    return b""


def _of_several_folders(
    tables: Mapping[tuple[str, str], Sequence[tuple[str, str, str]]], around: Around
) -> Iterator[str]:
    """Yield how tables are read whose pictures are in several folders: those of one place as one table of it."""
    for (top, column), some in tables.items():
        names, frames, pictures = zip(*some, strict=True)
        splits = [split_in_words(_stem(name)) for name in names]
        of_splits = all(splits) and len({*splits}) == len(splits) > 1
        parts = [
            f"{frame}.assign(split={split!r})" if of_splits else frame
            for frame, split in zip(frames, splits, strict=True)
        ]
        frame = parts[0] if len(parts) == 1 else f"pandas.concat([{', '.join(parts)}])"
        how = as_metadata(around.call, top, frame, [*written_as(pictures[0]), *([BY_SPLIT] if of_splits else [])])
        name, its, are = ("names", "its", "is") if len(names) == 1 else ("name", "their", "are")
        what = f'{first_names(names, MOST)} {name} pictures of several folders in {its} column "{printable(column)}"'
        yield f"{what}, and {are} not read; {how}"


def _in_several_folders(
    path: bytes, column: str, root: str, suffix: str, around: Around
) -> tuple[str, str, str] | None:
    """Return how a table is read whose pictures are in several folders, or in those of splits; None for others.

    It is the place of a table of them, its expression in pandas, and one of the pictures.
    """
    header, *rows = rows_in(path, whole=True)
    names = {row[header.index(column)] + suffix for row in rows if len(row) == len(header)}
    above = any("/" in one for one in names)
    of_splits = in_splits(names) and len({one.partition("/")[0] for one in names}) > 1
    folders = [one for one in around.below if one == root or _has_more_of(one, names, root)]
    if not around.root or "://" in around.root:
        return None
    if of_splits:
        top, value = root, "rows['file_name']" + (f" + {suffix!r}" if suffix else "")
    elif len(folders) > 1 and not above:
        top, key = around.root, "stem" if suffix else "name"
        value = (
            f"rows['file_name'].map({{path.{key}: str(path.relative_to({typed_path(around.root)!r})) for folder in "
            f"{[*map(typed_path, folders)]} for path in sorted(pathlib.Path(folder).glob('*{suffix}'))}})"
        )
    else:
        return None
    read = f"{_texts_of(path)}.rename(columns={{{column!r}: 'file_name'}})"
    return top, f"{read}.assign(file_name=lambda rows: {value})", suffix or next(iter(names))


def _has_more_of(folder: str, names: Container[str], root: str) -> bool:
    """Return whether one of the first files in a folder is among some names, and not in the root."""
    with os.scandir(folder) as entries:
        first = [one.name for one in islice(entries, _FIRST_FILES)]
    return any(one in names and not os.path.isfile(os.path.join(root, one)) for one in first)


_FIRST_FILES: Final = 16
_MOST_HEADS: Final = 16


def _names_one_again(table: str, column: str) -> bool:
    """Return whether the first rows of a table name a picture in several rows, as those of boxes do."""
    header, *rows = rows_in(os.fsencode(table))
    at = header.index(column)
    names = [row[at] for row in rows if len(row) > at]
    return len(set(names)) < len(names)


def _in_few_words(tables: Sequence[str], others: Sequence[bytes]) -> Sequence[str]:
    """Return a glob of many tables, each in a folder of its own, or the tables where it matches others too."""
    folders = {os.path.dirname(os.path.dirname(one)) for one in tables}
    names = {re.sub("[0-9]+", "*", os.path.basename(one)) for one in tables}
    pattern = os.path.join(glob.escape(folders.pop()), "*", names.pop())
    matched = [one for one in others if fnmatch.fnmatchcase(typed_path(os.fsdecode(one)), pattern)]
    return [pattern] if len(tables) > MOST and not folders | names and len(matched) == len(tables) else tables


def _folder_name(path: str) -> str:
    return os.path.basename(os.path.dirname(path))


def _picture_column(path: bytes, around: Around) -> tuple[str, str, str] | None:
    """Return the column whose value in the first row is a file, the folder of the path, and the suffix it lacks.

    Of several folders of pictures that hold such a file, it is that of the table's own name, or of the split in it:
    train/ for train.csv and train_labels.csv; or one beside the table, as cam1/data for cam1/data.csv.
    """
    rows = rows_in(path)[:2]
    if len(rows) < 2 or len(rows[0]) != len(rows[1]):
        return None
    named = [(column, value) for column, value in zip(*rows, strict=True) if column and value and "\0" not in value]
    stem = os.path.splitext(os.path.basename(os.fsdecode(path)))[0]
    split = split_in_words(stem)
    is_named = any(_LIKE_PICTURE.search(value) for _, value in named)  # the numbers beside 00000.ppm are no names
    for suffix in ("", *(() if is_named else FORMATS["images"].suffixes)):
        for folder in filter(None, (os.path.dirname(os.fsdecode(path)), around.root)):
            for column, value in named:
                if os.path.isfile(os.path.join(folder, value + suffix)):
                    return column, folder, suffix
        for column, value in named:
            folders = [*around.below, *(around.above if "/" in value else ())]
            found = [one for one in folders if os.path.isfile(os.path.join(one, value + suffix))]
            names = [(one, os.path.basename(one)) for one in found]
            own = [one for one, name in names if name == stem or _are_of_one(split, split_of_folder(name))]
            beside = [one for one in own or found if os.path.dirname(one) == os.path.dirname(os.fsdecode(path))]
            own = beside if len(beside) == 1 else own
            if own or len(found) == 1:
                return column, (own or found)[0], suffix
    return None


def _are_of_one(split: str | None, other: str | None) -> bool:
    return split is not None and other is not None and kind_of(split) == kind_of(other)


_LIKE_PICTURE: Final = re.compile(r"[^/]\.(?:png|jpe?g|p[gnp]m|bmp|gif|tiff?|webp)$", re.IGNORECASE)


def _texts_of(path: bytes) -> str:
    """Return the expression of pandas that reads a table, with names of columns if its first row is one of data."""
    lines, header, first = lines_of(path), *rows_in(path)[:2]
    more = {"header": None, "names": header} if header == [*names_of_cells(first)] else {}
    return read_csv(repr(typed_path(os.fsdecode(path))), max("\t,;|", key=lines[0].count), **more)


# Files of any name whose contents name pictures: JSON, and tables of other programs.


_MOST_VALUES: Final = 8
_MOST_PLACES: Final = 200
_LINES: Final = (b".jsonl", b".ndjson", b".manifest")
_ENDS: Final = (b".json", b".labels", *_LINES, *_OF_TABLES)
_NUMBER: Final = re.compile(r"-?[0-9]+")
_SIGNS: Final = re.compile(r'["\t\r\n,;|]')
_READ: Final = "json.loads(path.read_bytes())"


@dataclass(frozen=True, slots=True)
class _Names:
    """How a file names pictures: `pairs` are an expression of Python of each name, and its row; `what` holds them.

    Names begin in the folder `top`, or have their last part in common with a picture below it, and lack the `suffix`.
    """

    pairs: str
    what: str
    top: str
    last: bool
    suffix: str


def files_of_labels(around: Around) -> Iterator[str]:
    """Files of JSON, and tables that no other rule reads, name the pictures beside them.

    {"0.jpg": "cat"}  [{"image": "0.jpg"}]  {"all": [{"image": "0.jpg"}]}    keys, or a value of each row
    {"columns": ["image"], "data": [[{"path": "0.png"}]]}                    a table of Weights & Biases
    {"0": "cat", "1": "dog"}                                                 names of numbers, no pictures
    /data/upload/1/0.jpg,Cat                                                 the last part of a path or URL
    """
    if around.form != "images" or "://" in around.root:
        return
    beside = {path for path, _ in around.pairs}
    files = [
        one
        for one in (*around.notable, *around.texts)
        if one.lower().endswith(_ENDS) and one not in beside and not is_of_roboflow(one)
    ]
    files = [one for one in files if not one.lower().endswith(_OF_TABLES) or _picture_column(one, around) is None]
    forms = defaultdict[_Names, list[bytes]](list)
    for path in files[:_MOST_HEADS]:
        table = path.lower().endswith(_OF_TABLES)
        found = None if table else _of_json(path, around)
        if isinstance(found, _Names):
            forms[found].append(path)
        elif told := _of_table(path, around) if table else found:
            yield f"{shown_path(path)} {told}"
        elif (not table or path not in around.notable) and _names_any(path, around):
            yield f"{shown_path(path)} names pictures, and is not read"
    for found, group in forms.items():
        names, are, its = ("names", "is", "its") if len(group) == 1 else ("name", "are", "their")
        what = f"{first_names([shown_path(one) for one in group], MOST)} {names} pictures in {its} {found.what}"
        yield f"{what}, and {are} not read{_as_lines(group, found, its, around)}"


def _as_lines(group: Sequence[bytes], found: _Names, its: str, around: Around) -> str:
    """Return what writes the rows of files as lines of JSON beside the pictures that they name, and reads these."""
    files = [typed_path(os.fsdecode(one)) for one in group]
    folder = typed_path(found.top or os.path.dirname(files[0]))
    place = folder if found.top or len(files) == 1 else typed_path(around.root)
    target = f"pathlib.Path({os.path.join(folder, _LINES_OF)!r})" if found.top else f"path.with_name({_LINES_OF!r})"
    together = len(files) > 1 and (bool(found.top) or len({*map(os.path.dirname, files)}) < len(files))
    if (together and not found.top and len({*map(os.path.dirname, files)}) > 1) or (found.last and _is_twice(around)):
        return ""  # one would replace another, or have the pictures of another
    name = f"name + {found.suffix!r}" if found.suffix else "name"
    name = f"where.get(({name}).rpartition('/')[2], name)" if found.last else name
    splits = {one: split_in_words(os.path.splitext(os.path.basename(one))[0]) for one in files}
    of_splits = together and all(splits.values()) and len({*splits.values()}) > 1
    own = ", 'split': split" if of_splits else ""
    line = f"json.dumps({{'file_name': {name}, **row{own}}}) + '\\n'"
    text = f"''.join({line} for name, row in {found.pairs})"
    where = f" for where in [{_places_below(folder)}]" if found.last else ""
    each = f"for path in map(pathlib.Path, {files}){where}"
    if of_splits:
        each = f"for split, path in zip({[*splits.values()]}, map(pathlib.Path, {files})){where}"
    write = runnable(f"[{target}.write_text({text}) {each}]")
    if together:
        rows = f"''.join({line} {each} for name, row in {found.pairs})"
        write = runnable(f"pathlib.Path({os.path.join(folder, _LINES_OF)!r}).write_text({rows})")
    split = split_of_folder(os.path.basename(os.path.abspath(place)))
    options = [BY_SPLIT] if of_splits else [Set("output.split", split)] if split not in (None, "train") else []
    read = around.call.plain([place], Set("input.format", "images"), *options)
    return f"; to read {its} rows, write them to {_LINES_OF} in Python: {write}; then: {read}"


def _is_twice(around: Around) -> bool:
    """Return whether some pictures have one name in several folders."""
    names = [os.path.basename(one) for one in around.files]
    return len({*names}) < len(names)


_LINES_OF: Final = "metadata.jsonl"


def _places_below(folder: str) -> str:
    paths = f"sorted(pathlib.Path({folder!r}).rglob('*'))"
    return f"{{one.name: one.relative_to({folder!r}).as_posix() for one in {paths}}}"


def _of_table(path: bytes, around: Around) -> str | None:
    """Say how a table is read that names pictures by the last part of a path."""
    header, *rows = rows_in(path)
    named = any(map(_LIKE_PICTURE.search, chain(*rows[:1])))
    for at, column in enumerate(header):
        values = [
            row[at] for row in rows[:_MOST_VALUES] if len(row) > at and (_LIKE_PICTURE.search(row[at]) or not named)
        ]
        place = _place_of(values, path, around) if column else None
        if place is None:
            continue
        read = _texts_of(path)
        top, (_, _, suffix) = typed_path(around.root), place
        last = f"(rows['file_name']{f' + {suffix!r}' if suffix else ''}).str.rpartition('/')[2]"
        renamed = f"{read}.rename(columns={{{column!r}: 'file_name'}})"
        frame = f"{renamed}.assign(file_name=lambda rows: {last}.map({_places_below(top)}))"
        what = f'names pictures in its column "{printable(column)}", and is not read'
        return f"{what}; {as_metadata(around.call, top, frame, [])}"
    return None


def _of_json(path: bytes, around: Around) -> _Names | str | None:
    """Return how a file of JSON names pictures, or what else it says; None where it says nothing of them."""
    if path.lower().endswith(_LINES):
        rows = [row for line in lines_of(path)[:_MOST_VALUES] if isinstance(row := _parsed(line), dict)]
        return _of_rows(rows, "map(json.loads, path.read_bytes().splitlines())", path, around)
    document: Any = document_in(path)
    if isinstance(document, dict):
        names = [one for one in (names_by_number(document) or {}).values() if not _NUMBER.fullmatch(one)]
        place = _place_of([*document][:_MOST_VALUES], path, around)
        if place is not None and (not names or len(document) >= len(around.files)):
            row = "row" if all(isinstance(one, dict) for one in document.values()) else "{'class': row}"
            return _Names(f"((name, {row}) for name, row in {_READ}.items())", "keys", *place)
        if names:
            return f"gives numbers their names ({first_names(names, MOST)}), and is not read"
        if (found := _of_fiftyone(document, path, around)) is not None:
            return found
        columns, data = document.get("columns"), document.get("data")
        if isinstance(columns, list) and isinstance(data, list) and all(isinstance(one, list) for one in data):
            pairs = f"[dict(zip(table['columns'], one)) for table in [{_READ}] for one in table['data']]"
            return _of_rows([dict(zip(columns, one, strict=False)) for one in data[:_MOST_VALUES]], pairs, path, around)
    expression = rows_of_document(document, _READ)
    if expression.startswith(_READ):
        lists: list[Any] = [document] if isinstance(document, list) else list(document.values())
        rows = next(one for one in lists if isinstance(one, list) and one and isinstance(one[0], dict))
        return _of_rows(rows[:_MOST_VALUES], expression, path, around)
    return None


def _of_fiftyone(document: dict[str, Any], path: bytes, around: Around) -> _Names | None:
    """Return how FiftyOne's file names pictures of its folder, or of one in it: a number of `classes` by each stem."""
    classes, labels = document.get("classes"), document.get("labels")
    if (
        not isinstance(classes, list)
        or not isinstance(labels, dict)
        or not all(isinstance(one, str) for one in classes)
    ):
        return None
    if not all(type(one) is int and 0 <= one < len(classes) for one in labels.values()):
        return None
    own, stems = os.path.dirname(os.fsdecode(path)), [one for one in labels if "\0" not in one and len(one) < _LONGEST]
    inner = [one for one in around.below if one == own or os.path.dirname(one) == own]
    for folder, suffix in product(inner, _PICTURES):
        if any(os.path.isfile(os.path.join(folder, stem + suffix)) for stem in stems[:_MOST_VALUES]):
            begin = f"{os.path.basename(folder)}/" if folder != own else ""
            name = f"{begin!r} + name" if begin else "name"
            pairs = (
                f"(({name}, {{'class': one['classes'][n]}}) for one in [{_READ}] for name, n in one['labels'].items())"
            )
            return _Names(pairs, 'stems of "labels"', "", False, suffix)
    return None


def _names_any(path: bytes, around: Around) -> bool:
    """Return whether the last part of a text at the beginning of a file is the name of a picture."""
    head = beginning_of(path, HEAD_BYTES).decode("utf-8", "replace")
    lasts = dict.fromkeys(one.rpartition("/")[2] for one in _SIGNS.split(head) if one.lower().endswith(_PICTURES))
    names = [one for one in [*lasts][:_MOST_VALUES] if "\0" not in one and len(one) < _LONGEST]
    return any(os.path.isfile(os.path.join(folder, one)) for one in names for folder in around.below[:_MOST_PLACES])


def _of_rows(rows: Sequence[dict[str, Any]], expression: str, path: bytes, around: Around) -> _Names | None:
    for key in rows[0] if rows else ():
        values: list[Any] = [row.get(key) for row in rows]
        inner = "['path']" if all(isinstance(one, dict) and isinstance(one.get("path"), str) for one in values) else ""
        texts = [one["path"] if inner else one for one in values]
        if all(isinstance(one, str) for one in texts) and (place := _place_of(texts, path, around)) is not None:
            pairs = f"((row.pop({key!r}){inner}, row) for row in {expression})"
            return _Names(pairs, f'key "{printable(key)}"', *place)
    return None


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None  # a line of something else


def _place_of(values: Iterable[object], path: bytes, around: Around) -> tuple[str, bool, str] | None:
    """Return the folder in which the first of some names is a picture, empty for that of the file.

    It is the root, and the second value true, where only the last part of a path is a picture's, of one folder.
    """
    texts = [one for one in values if isinstance(one, str) and one and "\0" not in one and len(one) < _LONGEST]
    own, below = os.path.dirname(os.fsdecode(path)), around.below[:_MOST_PLACES]
    near = dict.fromkeys(filter(None, (own, around.root, *(below if len(below) == 1 else ()))))
    for suffix in ("", *_PICTURES):
        names = [text + suffix for text in texts if (text + suffix).lower().endswith(_PICTURES)]
        for name in names:
            for folder in near:
                if os.path.isfile(os.path.join(folder, name)):
                    return "" if folder == own else folder, False, suffix
        lasts = [name.rpartition("/")[2] for name in names]
        found = [sum(os.path.isfile(os.path.join(folder, last)) for folder in below) for last in lasts]
        if any(found):
            return (around.root, True, suffix) if max(found) == 1 else None
    return None


_LONGEST: Final = 1000
_PICTURES: Final = FORMATS["images"].suffixes
