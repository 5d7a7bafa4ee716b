"""Name lists that give pictures a class, a text or a split, with the command that reads their lines.

    labels.txt    1.jpg cat
    train.lst     1  0  cat/1.jpg

Lists of splits that are read are in `evidence.lists`.
"""

from __future__ import annotations

import csv
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from glob import escape, glob
from itertools import accumulate
from typing import Final

from ...format.wording.hints import Add, Set, read_csv, set_column
from ...format.wording.printable import first_names, printable_path
from ...inputs.contract.selection import shown_path, typed_path
from ...inputs.files.file_names import FORMATS
from ...inputs.files.open_file import is_object
from ..evidence.label_names import lines_in
from ..evidence.lists import BOTH, LIST_LINES, PICTURES, lists_beside, splits_by_lists
from ..evidence.names import in_splits, split_in_words
from .files import AS_LABELS, BY_SPLIT, MOST, TAB, Around, as_metadata, lines_of, rows_in, said_by_lists, written_as


@dataclass(frozen=True, slots=True)
class _List:
    """How a list of pictures is read: cells between signs, with a header or without; where paths begin and end.

    Other columns may be `numbers` that are no classes, four of them maybe the corners of boxes. A number of rows may
    be above the header, which names the `column` of pictures, or only the others: it is `short`. Other cells may be
    `sentences`, in which quotes are `plain`.
    """

    sign: str
    header: bool
    comment: bool
    texts: bool
    numbers: bool
    boxes: bool
    width: int
    counted: bool
    short: bool
    column: str
    root: str
    suffix: str
    split: str | None
    aligned: bool
    sentences: bool
    plain: bool
    picture: str = field(compare=False)

    @property
    def options(self) -> list[Add]:
        options = [Add("--format", "csv", "--delimiter", self.sign, *([] if self.header else ["--no-header"]))]
        options += [Set("input.trim", True)] if self.aligned else []
        options += [Set("input.skip_lines", 1)] if self.counted else []
        options += [Set("input.row_names", self.column)] if self.short else []
        options += [set_column(self.column, "image", "path")] if self.header else []
        options += [] if self.header else [Set("input.names", self.names), set_column("image", "image", "path")]
        options += [Set("input.comment", "#")] if self.comment else []
        options += [Set("input.quote", None)] if self.plain else []
        is_class = self.texts and not self.header and not self.numbers and not self.sentences
        options += [set_column("class", "label", True)] if is_class else []
        options += [Set("schema.files_root", typed_path(self.root))] if self.root else []
        options += [Set("schema.files_suffix", self.suffix)] if self.suffix else []
        return options + written_as(self.picture)

    @property
    def names(self) -> list[str]:
        """The names of the columns of a list without a header."""
        return ["image", *([] if self.numbers else ["text" if self.sentences else "class"]), *self._others]

    @property
    def _others(self) -> list[str]:
        return [f"column_{n}" for n in range(1 if self.numbers else 2, self.width)]

    def frame(self, file: str) -> str:
        """Return the expression of pandas that reads the list, with names of pictures in the column file_name."""
        sign = {"tab": "\t", " ": r"\s+" if self.aligned else " "}.get(self.sign, self.sign)
        more: dict[str, object] = {"skiprows": int(self.counted)} if self.counted else {}
        more |= {"comment": "#"} if self.comment else {}
        more |= {"quoting": csv.QUOTE_NONE} if self.plain else {}
        if not self.header:
            more |= {"header": None, "names": ["file_name", *self.names[1:]]}
        elif self.short:
            return f"{read_csv(repr(file), sign, **more)}.rename_axis('file_name').reset_index()"
        else:
            return f"{read_csv(repr(file), sign, **more)}.rename(columns={{{self.column!r}: 'file_name'}})"
        return read_csv(repr(file), sign, **more)

    @property
    def contents(self) -> str:
        if not self.numbers:
            return "with a text each" if self.sentences else "with a class or a text each"
        each = "a number" if self.width == 2 else f"{self.width - 1} numbers"
        return f"with {each} each" + (", which look like corners of boxes" if self.boxes else "")


def lists_of_classes(around: Around) -> Iterator[str]:
    """A list has a picture in each line, and its class or a caption, between blanks, tabs or commas: `1.jpg cat`."""
    if of_splits := list(_of_splits_with_texts(around)):
        yield from of_splits
        return
    notable = _lists_in(around)
    forms = defaultdict[_List, list[str]](list)
    found = {path: one for path in notable[:MOST] if (one := _list_in(path, around)) is not None}
    texts = {os.path.basename(path) for path, one in found.items() if one.sentences and _is_of_texts(path)}
    for path, one in found.items():
        form = _list_in(path, around, as_texts=True) or one if os.path.basename(path) in texts else one
        forms[form].append(typed_path(os.fsdecode(path)))
    together = defaultdict[_List, list[str]](list)
    for form, lists in forms.items():
        together[replace(form, split=None) if form.split else form] += lists
    for path in filter(_is_partition, notable):
        yield from _by_partition(path, together, around)
    alike = defaultdict[_List, list[_List]](list)
    for form in together:
        alike[replace(form, root="", suffix="") if form.numbers else form].append(form)
    for form, *others in alike.values():
        lists, more = together[form], [one for other in others for one in together[other]]
        splits = sorted({one.split or "" for one in forms if replace(one, split=None) == form})
        options = [Set("input.splits", "names")] if len(lists) > 1 and all(splits) else []
        if len(lists) > 1 and any(splits) and not all(splits):
            own = {os.path.splitext(name)[0].lower(): name for name in map(os.path.basename, lists)}
            known = {split_in_words(stem) or (stem if stem == BOTH else ""): name for stem, name in own.items()}
            options += [Set("input.splits", known)] if all(known) and len(known) == len(lists) else []
        options += [Set("output.split", splits[0])] if len(lists) == 1 and splits[0] not in ("", "train") else []
        if not all(splits) and any(in_splits(row[0] for row in rows_in(os.fsencode(one)) if row) for one in lists):
            yield _with_folders(form, lists, around)
            continue
        no_class = form.header or form.texts or form.numbers
        file, names = ("", list[str]()) if no_class else _names_of_numbers(lists, form.sign, around)
        options += [set_column("class", "label", names)] if names else []
        unread = f" ({shown_path(file)} with the names of classes is not read either)" if file and not names else ""
        unread = unread or (" (no file names what the numbers mean)" if form.numbers and not form.boxes else "")
        replaces = around.call.has_written and (form.numbers or not around.unlabelled)
        call = around.call if len(alike) == 1 and not replaces else around.apart(lists[0])
        read = call.plain(lists, *form.options, *options)
        lines, are = ("list", "are") if lists[1:] or more else ("lists", "is")
        what = f"{first_names([*lists, *more], 2 if more else MOST)} {lines} pictures {form.contents}"
        of_first = f" of {printable_path(lists[0])}" if more else ""
        yield f"{what}, and {are} not read{unread}; to read the lines{of_first}: {read}"


def _of_splits_with_texts(around: Around) -> Iterator[str]:
    """Yield how pictures are read with the classes of lists that are each of a split: images_variant_train.txt.

    A line is a name of a picture, a blank, and a class that may have several words: `0034309 Boeing 707-320`.
    """
    found = defaultdict[tuple[str, str], dict[str, dict[str, str]]](lambda: defaultdict(dict))
    files = [*dict.fromkeys([*around.notable, *around.texts])] if around.form == "images" else []
    widths = set[int]()
    for path in sorted(one for one in files[:_MOST_LISTS] if one.lower().endswith(b".txt") and not is_object(one)):
        stem = os.path.basename(os.fsdecode(path))[:-4]
        split, rows = split_in_words(stem), [line.rstrip().partition(" ") for line in lines_of(path) if line.strip()]
        texts, names = [row[2] for row in rows], {row[0] for row in rows}
        no_classes = not all(texts) or all(map(_NUMBER.fullmatch, " ".join(texts).split()))
        if not split or no_classes or len(names) != len(rows) or "." in rows[0][0]:
            continue
        if place := _place_of(rows[0][0], path, around):
            words = [word for word in re.split(r"[\W_]+", stem) if split_in_words(word) is None]
            found[place][split]["_".join(words)] = os.fsdecode(path)
            widths |= {one.count(" ") for one in texts}
    for (folder, suffix), splits in found.items():
        keys = [*next(iter(splits.values()))]
        is_table = len(keys) == len(widths) == 1  # of two columns
        if len(splits) < 2 or is_table or any(one.keys() != {*keys} for one in splits.values()):
            continue
        common = set(keys[0].split("_")).intersection(*(key.split("_") for key in keys))
        own = {key: "_".join(word for word in key.split("_") if word not in common) or "class" for key in keys}
        lists = {split: {own[key]: typed_path(one[key]) for key in keys} for split, one in splits.items()}
        lines = "filter(str.strip, pathlib.Path(path).read_text('utf-8').splitlines())"
        frame = (
            f"pandas.concat([pandas.DataFrame({{key: dict(line.rstrip().split(' ', 1) for line in {lines})"
            f" for key, path in files.items()}}).rename_axis('file_name').reset_index().assign(split=split) "
            f"for split, files in {lists}.items()]).assign(file_name=lambda rows: rows['file_name'] + {suffix!r})"
        )
        options = [*(set_column(name, "label", True) for name in own.values()), BY_SPLIT]
        yield said_by_lists([path for one in lists.values() for path in one.values()], around, folder, frame, options)


_MOST_LISTS: Final = 64


def _is_partition(path: bytes) -> bool:
    """Return whether a list says the split of each picture as 0, 1 or 2: `list_eval_partition.txt` of CelebA."""
    rows = [line.split() for line in lines_of(path) if line.strip()]
    is_named = b"partition" in os.path.basename(path).lower()
    return is_named and bool(rows) and all(len(row) == 2 and row[1] in ("0", "1", "2") for row in rows)


def _by_partition(path: bytes, lists: dict[_List, list[str]], around: Around) -> Iterator[str]:
    """Yield what reads pictures with the splits of a list, and with all lists of the same pictures, which it takes."""
    shown, place = shown_path(path), _place_of(lines_of(path)[0].split()[0], path, around)
    if place is None:
        return
    folder, suffix = place
    same = [one for one in lists if (one.root or os.path.dirname(os.fsdecode(path)), one.suffix) == place]
    files = [(one, file) for one in same for file in lists.pop(one)]
    frame = read_csv(repr(typed_path(os.fsdecode(path))), r"\s+", header=None, names=["file_name", "split"])
    frame += "".join(f".merge({one.frame(file)}, on='file_name', how='left')" for one, file in files)
    name = f", file_name=lambda rows: rows['file_name'] + {suffix!r}" if suffix else ""
    frame += f".assign(split=lambda rows: rows['split'].map({{'0': 'train', '1': 'val', '2': 'test'}}){name})"
    more = f", and the columns of {first_names([file for _, file in files], MOST)}" if files else ""
    how = as_metadata(around.call, folder, frame, [BY_SPLIT], f"the pictures with their splits{more}")
    yield f"{shown} says the splits as 0, 1 and 2 (train, val, test), and is not read; {how}"


def _with_folders(form: _List, lists: Sequence[str], around: Around) -> str:
    """Say how lists are read whose paths of pictures begin in folders of splits, which their lines have not."""
    frames = [*map(form.frame, lists)]
    frame = frames[0] if len(frames) == 1 else f"pandas.concat([{', '.join(frames)}])"
    frame += f".assign(file_name=lambda rows: rows['file_name'] + {form.suffix!r})" if form.suffix else ""
    options = [set_column("class", "label", True)] if form.texts and not form.numbers else []
    folder = form.root or os.path.dirname(lists[0])
    how = as_metadata(around.call, folder, frame, [*options, *written_as(form.picture)])
    lines, are = ("lists", "is") if len(lists) == 1 else ("list", "are")
    what = f"{first_names(lists, MOST)} {lines} pictures in folders of splits, {form.contents}"
    return f"{what}, and {are} not read; {how}"


def files_not_looked_at(around: Around) -> Iterator[str]:
    """Of many lists the first ones are looked at, and the others counted."""
    notable = _lists_in(around)
    more = max(len(notable) - MOST, 0) + around.more
    if notable and more:
        what, are = ("file", "is") if more == 1 else ("files", "are")
        yield f"{more:,} more {what} that may list pictures {are} not read"


def _lists_in(around: Around) -> list[bytes]:
    if around.form != "images" or "://" in around.root:
        return []
    notable = [one for one in around.notable if one.lower().endswith(_ENDINGS) and not _is_of_voc(one)]
    return notable + _texts_with_names(around)


_ENDINGS: Final = (b".txt", b".lst")


def _is_of_voc(path: bytes) -> bool:
    """Return whether a list says which pictures of Pascal VOC's are in a split, or show a class: `cat_train.txt`."""
    return os.path.basename(os.path.dirname(os.path.dirname(path))) == b"ImageSets"


def _names_of_numbers(lists: Sequence[str], sign: str, around: Around) -> tuple[str, list[str]]:
    """Return the `classes.txt` beside lists, and the names in it; no names where lists have other numbers than 0 to n.

    A list in which no class is 0 may count from 1.
    """
    cut = {"tab": "\t"}.get(sign, sign)
    rows = [
        row for one in lists for row in csv.reader(lines_of(os.fsencode(one)), delimiter=cut, skipinitialspace=True)
    ]
    numbers = [int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()]
    files = [os.path.join(folder, "classes.txt") for folder in (os.path.dirname(lists[0]), around.root)]
    file = next(filter(os.path.isfile, files), "")
    names = [name for line in lines_of(os.fsencode(file)) if (name := line.strip())]
    fits = min(numbers) == 0 and max(numbers) < len(names) <= LIST_LINES and len({*names}) == len(names)
    return file, names if fits else []


def _list_in(path: bytes, around: Around, *, as_texts: bool = False) -> _List | None:
    """Return how a list is read, None if its first cell, or that below it, is no picture that is there.

    With `as_texts` its cells are texts, as those of another list of its name are.

    The numbers in a list of partitions are those of splits: `list_eval_partition.txt`.
    """
    if b"partition" in os.path.basename(path).lower():
        return None
    whole = [line for line in lines_of(path) if line.strip()]
    lines = [line.rstrip() for line in whole]
    counted = bool(lines) and lines[0].isdecimal()
    lines = lines[counted:]
    data = [line for line in lines if not line.startswith("#")][:LIST_LINES]
    for sign in ("\t", ",", ";", " "):
        plain = sign == "\t" and not any(line.startswith('"') or '""' in line for line in data)
        read = csv.reader(data, delimiter=sign, skipinitialspace=sign == " ")
        rows = [line.split(sign) for line in data] if plain else [*read]
        width = len(rows[-1]) if rows else 0
        short = len(rows[0]) == width - 1 > 1 and _place_of(rows[0][0], path, around) is None if rows else False
        if width < 2 or any(len(row) != width for row in rows[short:]):
            continue
        for header in (True,) if short or counted else (False, True):
            place = _place_of(rows[header][0], path, around) if len(rows) > header else None
            if place is not None:
                folder, suffix = place
                root = "" if folder == os.path.dirname(os.fsdecode(path)) else folder
                sentences = as_texts or _are_sentences([row[1] for row in rows[header:]], path)
                plain = plain and (sentences or any('"' in line for line in data))
                texts = not all(row[1].isdecimal() for row in rows[header:])
                numbers, boxes = _of_numbers([row[1:] for row in rows[header:]])
                split = split_in_words(os.path.basename(os.fsdecode(path)))
                comment = any(line[0] == "#" for line in lines)
                aligned = sign == " " and any("  " in line or line.endswith(" ") for line in whole)
                typed = {"\t": "tab"}.get(sign, sign)
                picture = rows[header][0] + suffix
                return _List(
                    typed, header, comment, texts, numbers, boxes, len(rows[-1]), counted, short,
                    "image" if short else rows[0][0] if header else "", root, suffix, split, aligned, sentences, plain,
                    picture,
                )  # fmt: skip
    return None


def _are_sentences(cells: Sequence[str], path: bytes) -> bool:
    """Return whether cells are texts and no classes: JSON, or hardly one comes again, or the list is named so."""
    if any(cell.startswith(("[{", "{")) for cell in cells):
        return True
    return (_is_of_texts(path) or len(cells) >= _FEWEST_TEXTS) and len({*cells}) > _SELDOM_AGAIN * len(cells)


def _is_of_texts(path: bytes) -> bool:
    return not _OF_TEXTS.isdisjoint(re.split(rb"[\W_]+", os.path.basename(path).lower()))


_OF_TEXTS: Final = frozenset({b"gt", b"caption", b"captions", b"transcripts", b"transcriptions", b"sentences"})
_FEWEST_TEXTS: Final = 20
_SELDOM_AGAIN: Final = 0.9


def _of_numbers(rows: Sequence[Sequence[str]]) -> tuple[bool, bool]:
    """Return whether cells are numbers that are no classes, and whether four of them look like corners of boxes."""
    if not all(_NUMBER.fullmatch(cell) for row in rows for cell in row):
        return False, False
    if len(rows[0]) == 1 and all(row[0].lstrip("-").isdecimal() for row in rows):
        return False, False
    boxes = [[float(cell) for cell in row] for row in rows] if len(rows[0]) == 4 else []
    return True, bool(boxes) and all(0 <= x < right and 0 <= y < bottom for x, y, right, bottom in boxes)


_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def _place_of(name: str, path: bytes, around: Around) -> tuple[str, str] | None:
    """Return the only folder in which a picture of a list is, and the suffix that its name lacks there."""
    above = (os.path.dirname(os.fsdecode(path)), around.root)
    for suffix in ("", *FORMATS["images"].suffixes) if name and "\0" not in name else ():
        folders = (*above, *around.below, *(around.above if "/" in name else ()))
        there = [one for one in folders if os.path.isfile(os.path.join(one, name + suffix))]
        if there and (there[0] in above or len(set(there)) == 1):
            return there[0], suffix
    return None


def _texts_with_names(around: Around) -> list[bytes]:
    """Return the texts, whatever they are called, of which one of the first lines begins with the name of a picture."""
    return [
        path
        for path in sorted(around.texts)
        if path.lower().endswith(_ENDINGS)
        and any(
            ("/" in name or name.lower().endswith(FORMATS["images"].suffixes))
            and _place_of(name, path, around) is not None
            for name in (re.split(r"[\s,;]", line, maxsplit=1)[0].strip('"') for line in lines_of(path)[:_FIRST_LINES])
        )
    ]


_FIRST_LINES: Final = 3


def other_lists(around: Around) -> Iterator[str]:
    """Texts that name pictures are not read, nor lists of Pascal VOC without its annotations."""
    notable = [one for one in _lists_in(around) if _list_in(one, around) is None]
    others = [
        shown_path(one)
        for one in notable
        if one in around.texts and split_in_words(os.path.basename(os.fsdecode(one))) is None
    ]
    if others:
        its, are = ("its", "is") if len(others) == 1 else ("their", "are")
        what = f"{first_names(others, MOST)} {are} not read, and {its} lines begin with names of pictures"
        yield f"{what}; to read {its} rows, write them to metadata.csv beside the pictures, with a column file_name"
    local = around.form == "images" and "://" not in around.root
    voc = [one for one in around.notable if local and _is_of_voc(one) and one.lower().endswith(_ENDINGS)]
    voc = [one for one in voc if not os.path.isdir(os.path.join(one.rsplit(b"/", 3)[0], b"Annotations"))]
    if voc:
        what, are = ("a list", "is") if len(voc) == 1 else ("lists", "are")
        shown = first_names([*map(shown_path, voc)], MOST)
        yield f"{shown}: {what} of Pascal VOC, without Annotations, {are} not read"


def texts_of_splits(around: Around) -> Iterator[str]:
    """Texts beside a table may say which rows are of which split: `train.txt` and `test.txt` beside `data.jsonl`."""
    if around.form not in ("csv", "jsonl", "parquet") or any(around.splits):
        return
    texts = [os.fsdecode(one) for one in around.notable if one.endswith((b".txt", b".lst"))]
    splits = {one: split for one in texts if (split := split_in_words(os.path.basename(one)))}
    if len({*splits.values()}) > 1:
        shown = first_names([*map(shown_path, sorted(splits))], MOST)
        yield f"{shown} have names of splits, and are not read: all rows go to one split"


def lists_of_folders(around: Around) -> Iterator[str]:
    """Lists of splits may name folders of pictures, as those of DAVIS do videos, in ImageSets/2017/train.txt.

    Others of `ImageSets` name pictures with masks beside them, by paths from its folder.
    """
    root = around.root.rstrip("/") if around.form == "images" and "://" not in around.root else ""
    above = accumulate([root] * _LEVELS, lambda one, _: os.path.dirname(one)) if root else ()
    sets = [path for place in above for inner in _SETS for path in glob(os.path.join(escape(place), inner))]
    lists = [os.fsdecode(one) for one in around.notable if root and one.lower().endswith(_ENDINGS)]
    parents = sorted({os.path.dirname(one.rstrip("/")) for one in around.below})
    parents.sort(key=lambda one: not {*PICTURES}.intersection(one.split("/")))
    found = defaultdict[tuple[str, str], dict[str, str]](dict)
    others = list[str]()
    for path in dict.fromkeys([*lists, *sorted(sets)]):
        names, split = [line.strip() for line in lines_in(path) if line.strip()], split_in_words(os.path.basename(path))
        places = (one for one in parents if all(os.path.isdir(os.path.join(one, name)) for name in names[:MOST]))
        if names and split and (place := next(places, "")):
            found[os.path.dirname(path), place][split] = typed_path(path)
        elif names and split and names[0].startswith("/") and path in sets:
            others.append(shown_path(path))
    for (_, place), splits in found.items():
        top = typed_path(place)
        frame = (
            f"pandas.DataFrame([{{'file_name': str(path.relative_to({top!r})), 'folder': line, 'split': split}} "
            f"for split, file in {splits}.items() for line in pathlib.Path(file).read_text().split('\\n') "
            f"if line.strip() for path in sorted(pathlib.Path({top!r}, line.strip()).rglob('[!.]*.*'))])"
        )
        yield said_by_lists([*splits.values()], around, place, frame, [BY_SPLIT])
    if others and not found:
        yield f"{first_names(others, MOST)}: list pictures of splits, are not read, and all pictures go to one split"


_SETS: Final = ("ImageSets/*.txt", "ImageSets/*/*.txt")
_LEVELS: Final = 4
"""The folders that are looked at for lists: `JPEGImages/480p/bear`, and those above it."""


def lists_of_annotations(around: Around) -> Iterator[str]:
    """Lists of splits beside annotations of Pascal VOC or YOLO, none of whose names is one of their files."""
    lists = lists_beside(around.root) if around.form in ("voc", "yolo") and not any(around.splits) else []
    if lists and "://" not in around.root and splits_by_lists(around.root, around.files) is None:
        names = first_names([shown_path(os.fsencode(path)) for _, path in lists], MOST)
        yield f"{names}: lists of splits that name none of these files, and are not read"


def lists_with_boxes(around: Around) -> Iterator[str]:
    """Lists of the splits of Pascal VOC's annotations may give each picture classes too, as those of Oxford's pets."""
    if around.form != "voc" or "://" in around.root:
        return
    lists = [os.fsencode(path) for _, path in lists_beside(around.root)]
    above = (os.path.dirname(around.root), os.path.dirname(os.path.dirname(around.root)))
    folders = [folder for up in above for name in PICTURES if os.path.isdir(folder := os.path.join(up, name))]
    if lists and folders:
        root = os.path.dirname(folders[0])
        yield from lists_of_classes(replace(around, form="images", notable=lists, texts=(), folders=folders, root=root))


def lists_of_splits(around: Around) -> Iterator[str]:
    """Lists such as train.txt have a picture in each line; those that are not read by a command are named."""
    notable = [one for one in _lists_in(around) if _list_in(one, around) is None] if not around.splits else []
    notable = [one for one in notable if not _is_partition(one)]
    names = [name for one in notable if split_in_words(name := os.path.basename(os.fsdecode(one))) is not None]
    read = list(_with_their_lists(notable, around))
    yield from read
    if names and not read:
        yield (
            f"{first_names(names, MOST)}: may list the pictures of splits; lists are not read, and all pictures go to "
            f"one split; to have splits, put pictures into folders such as train/ and test/"
        )


def _with_their_lists(notable: Sequence[bytes], around: Around) -> Iterator[str]:
    """Yield how pictures are read with lists of splits, if none has a picture of another."""
    found = defaultdict[tuple[str, str], dict[str, list[str]]](dict)
    for path in dict.fromkeys(notable):
        lines = [line.strip() for line in lines_in(os.fsdecode(path)) if line.strip()]
        split = split_in_words(os.path.basename(os.fsdecode(path)))
        place = _place_of(lines[0], path, around) if lines and split else None
        if place is not None:
            found[place][os.fsdecode(path)] = lines
    for (folder, suffix), lists in found.items():
        names = [name for lines in lists.values() for name in lines]
        splits = {path: split_in_words(os.path.basename(path)) or "" for path in lists}
        if len({*splits.values()}) < 2 or len({*names}) < len(names):
            continue
        each = [
            f"{read_csv(repr(typed_path(path)), TAB, header=None, names=['file_name'])}.assign(split={splits[path]!r})"
            for path in lists
        ]
        more = [f"file_name=lambda rows: rows['file_name'] + {suffix!r}"] if suffix else []
        has_classes = all("/" in name for name in names)
        more += ["**{'class': lambda rows: rows['file_name'].str.rpartition('/')[0]}"] if has_classes else []
        frame = f"pandas.concat([{', '.join(each)}])" + (f".assign({', '.join(more)})" if more else "")
        options = [AS_LABELS, BY_SPLIT] if has_classes else [BY_SPLIT]
        yield said_by_lists([*map(typed_path, lists)], around, folder, frame, options)
