"""Refuse tables that are more or less than one set of rows, and leave out Kaggle's forms for answers.

    delta/_delta_log/  iceberg/metadata/*.metadata.json  .hoodie/    their files also hold rows that are no longer there
    X_train.csv  y_train.csv                                         a half of the columns of each row
    train.de  train.en  src-test.txt  tgt-test.txt                   texts whose lines belong together
    1.0.0/  1.0.1/                                                   two versions of TFDS, or one that lacks a shard

They look at names, at the folders above files, and at the first rows of two tables that seem to belong together.
"""

from __future__ import annotations

import csv
import json
import os
import re
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import InputError
from ...format.wording.hints import Command, Set, read_csv, runnable
from ...format.wording.printable import counted, first_names, printable_path
from ...inputs.contract.selection import Call, shown_path, typed_path
from ...inputs.contract.source import Listing
from ...inputs.files.file_names import format_of_name, is_note_of_texts
from ...inputs.files.listing import beginning_of, is_there, unpacked
from ...inputs.files.open_file import is_object
from ...stores.object_store import store_at
from ...stores.store_url import parse_store_url
from ..evidence.json_documents import of_equal_columns, tables_apart
from ..evidence.names import (
    MAGIC,
    as_split,
    is_form_for_answers,
    kind_of,
    split_in_words,
    split_of_folder,
    table_in_path,
)
from ..evidence.tfds import INFO, tfds_folders
from ..splits.seen import Seen, paths_of
from .files import HEAD_BYTES, MEANT, MOST_HEADS, SHOWN

_MOST_FOLDERS: Final = 1000
"""So many folders of a disk are asked for a log: a table has its log above all of its partitions."""

_MOST_STORE_FOLDERS: Final = 4
_ABOVE: Final = 3
"""Levels above the files that are named: a partition or two, and `data/` of Iceberg."""

_SIZED: Final = re.compile(r"(?<![0-9])[0-9]{2,5}x[0-9]{2,5}(?![0-9])")
"""The size of pictures in the name of a folder: tfrecords-jpeg-224x224 of Kaggle, beside the same in other sizes."""


@dataclass(frozen=True, slots=True)
class _Table:
    kind: str
    folder: str
    metadata: str = ""


def refuse_tables(seen: Seen) -> None:
    """Refuse files of tables whose log says which of their rows are still there.

    Raises:
        InputError: a folder of theirs, or above them, has such a log.
    """
    call, folders = seen.call, _folders(seen.files, seen.roots) if seen.form == "parquet" else ()
    table = next(filter(None, map(_table_in, folders)), None)
    if table is None:
        return
    shown = typed_path(table.folder)
    what = f"{printable_path(shown)}: is a table of {table.kind}, whose files also hold deleted and replaced rows"
    if table.kind == "Delta Lake":
        how = f"in Python: {call.of_data(f'deltalake.DeltaTable({shown!r}).to_pyarrow_table()')}"
    elif table.kind == "Iceberg":
        read = f"pyiceberg.table.StaticTable.from_metadata({typed_path(table.metadata)!r}).scan().to_arrow()"
        how = f"in Python: {call.of_data(read)}"
    else:
        how = "write its current rows to Parquet files with the program that keeps the table"
    raise InputError(f"{what}; {how}; to read all files as they are: {Set('input.detect', 'none')}")


def refuse_several(seen: Seen) -> None:
    """Refuse versions or configs of TFDS, executions of TFX, or sizes of the same pictures in one folder.

    Raises:
        InputError: it names them, with the command that reads each.
    """
    if seen.form == "tfrecord" and (places := _versions_in(seen)):
        raise InputError(_which_of(places, lambda one: seen.call.reading([one])))


def refuse_other_tables(seen: Seen) -> None:
    """Refuse lines of JSON of several tables, as the first lines of files of other names have other keys.

    So are tables of CSV refused of which each is cut into splits by names: train_orders.csv, test_orders.csv.

    Raises:
        InputError: it names them, with the command that reads each.
    """
    tables = defaultdict[str, list[str]](list)
    for file, below in zip(seen.files, seen.below, strict=True) if seen.form in ("jsonl", "csv") else ():
        if not is_form_for_answers(os.path.basename(file)):
            tables[table_in_path(below)].append(file)
    splits = ({*map(split_in_words, map(os.path.basename, some))} for some in tables.values())
    if not 1 < len(tables) <= MOST_HEADS or (seen.form == "csv" and any(len(one) == 1 for one in splits)):
        return
    columns_in = _keys_in if seen.form == "jsonl" else _header_in
    keys = {name: columns_in(some[0]) for name, some in tables.items()}
    if not tables_apart([*keys.values()]):
        return
    raise InputError(f"{one_of(tables, keys, seen.call)}\nif all are rows of one table: {Set('input.detect', 'none')}")


def one_of(tables: Mapping[str, Sequence[str]], each: Mapping[str, Sequence[Iterable[str]]], call: Call) -> str:
    """Return that files are those of several tables by `each` one's columns, with the command that reads each table."""
    files, lines = [file for some in tables.values() for file in some], list[str]()
    for name, some in of_equal_columns(tables, each).items():
        paths = paths_of(some, [file for file in files if file not in some])
        own = call.apart(re.sub(r"[^\w.-]+", "-", name).strip("-_.") or "other")
        lines.append(f"\n  {own.reading(map(typed_path, paths))}")
    shown = first_names([shown_path(some[0]) for some in tables.values()], SHOWN)
    what = "files of other names have other columns, as other tables do, and one table is read at a time"
    return f"{shown}: {what}; choose{''.join(lines)}"


def _keys_in(file: str) -> list[list[str]]:
    """Return the keys of the first lines of a file, and in place of `_airbyte_data` those in it."""
    try:
        head = _head_of(file)
        lines = head.splitlines()[: _FIRST_LINES if head.endswith(b"\n") or len(head) < _FIRST_BYTES else -1]
        rows = [json.loads(line) for line in lines[:_FIRST_LINES] if line.strip()]
    except (ValueError, RecursionError, zlib.error):
        return []  # reading it says what is wrong
    inner = ((row, value) for row in rows if isinstance(row, dict) for value in [row.get("_airbyte_data")])
    return [[*(value if isinstance(value, dict) else row)] for row, value in inner]


def _header_in(file: str) -> list[list[str]]:
    first = _head_of(file).partition(b"\n")[0].decode("utf-8", "replace").strip("\ufeff\r")
    sign = max(",;\t|", key=first.count)
    return [next(csv.reader([first], delimiter=sign), [])]


def _head_of(file: str) -> bytes:
    return unpacked(beginning_of(os.fsencode(file), _FIRST_BYTES), _FIRST_BYTES)


_FIRST_BYTES: Final = 1 << 16
_FIRST_LINES: Final = 20


def only_version(files: Sequence[str], root: str) -> str | None:
    """Return the folder that TFDS wrote and that holds all of some files; None where it did not write them all.

    Raises:
        InputError: there are several.
    """
    if versions := _versions_in(Seen.of(files, [root], "/", form="tfrecord")):
        raise InputError(_which_of(versions, lambda one: Command("adopt", one)))
    found = [one.path for one in tfds_folders(files)]
    return found[0] if found == [*{*map(os.path.dirname, files)}] else None


def _versions_in(seen: Seen) -> list[str]:
    """Return the folders of versions; none where there is one, or the user named each."""
    places = dict.fromkeys(one.path for one in tfds_folders(seen.files))
    for parts in seen.parts.values():
        at = next((at for at, part in enumerate(parts) if part.startswith("Split-")), 0)
        if at and parts[at - 1].isdigit():
            places.setdefault(os.path.join(seen.root, *parts[:at]))
        if sized := next((at for at, part in enumerate(parts, 1) if _SIZED.search(part)), 0):
            places.setdefault(os.path.join(seen.root, *parts[:sized]))
    return list(places) if len(places) > 1 and not places.keys() <= {*seen.roots} else []


def _which_of(places: Sequence[str], command: Callable[[str], Command]) -> str:
    typed = list(map(typed_path, places))
    lines = "".join(f"\n  {command(one)}" for one in typed[:SHOWN])
    return (
        f"the folder holds {len(typed)} datasets or versions of one ({first_names(typed, SHOWN)}), and one is read "
        f"at a time; choose{lines}"
    )


def refuse_missing(seen: Seen) -> None:
    """Refuse a folder of TFDS that lacks a shard, unless the user named files in it.

    Raises:
        InputError: it names the shard.
    """
    if seen.form != "tfrecord" or any(MAGIC.search(one) or format_of_name(one) for one in seen.typed):
        return
    listed = set(seen.files)
    for one in tfds_folders(seen.files):
        places = {os.path.join(one.path, name): records for name, (_, records) in one.shards.items()}
        missing = [place for place in places if place not in listed and not is_there(place)]
        if missing:
            others = f" (so are {len(missing) - 1:,} of {len(places) - 1:,} others)" if len(missing) > 1 else ""
            there = seen.call.reading([os.path.join(typed_path(one.path), "*tfrecord*")])
            raise InputError(
                f"{shown_path(missing[0])}: is missing{others}, and {INFO} states "
                f"{counted(places[missing[0]], 'record')} in it; copy or download it again, or read only the files "
                f"that are there: {there}"
            )


def forms_for_answers(listing: Listing, named: Container[bytes]) -> Sequence[int]:
    """Return the numbers of files that Kaggle gives to be filled in, beside data; none that are `named` themselves."""
    forms = [
        number
        for number, entry in enumerate(listing.entries if listing.format != "images" else ())
        if is_form_for_answers(os.path.basename(entry.name)) and entry.path not in named
    ]
    return forms if len(forms) < len(listing.entries) else []


def notes_of_texts(listing: Listing, named: Container[bytes]) -> Sequence[int]:
    """Return the numbers of texts that are notes on the others by their names; none that are `named` themselves."""
    notes = [
        number
        for number, entry in enumerate(listing.entries if listing.format == "txt" else ())
        if is_note_of_texts(os.path.basename(entry.name)) and entry.path not in named
    ]
    return notes if len(notes) < len(listing.entries) else []


_MOST_TABLES: Final = 100
_FEATURES: Final = re.compile(r"(?:^|[_\-. ])(?:x|features?|inputs?|values)(?=[_\-. ]|$)", re.IGNORECASE)
_PIXELS: Final = re.compile(r"(?:^|[_\-. ])(?:x|features?|inputs?|data|images?|imgs?)(?=[_\-. ]|$)", re.IGNORECASE)
"""Words for features in names of arrays."""

_NONE: Final = re.compile(r"(?!)")
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where the words of trainLabels begin."""

_PLAIN: Final = re.compile(r"\.(?:csv|tsv|parquet|pq)$", re.IGNORECASE)
_ARRAY: Final = re.compile(r"\.(?:np[yz]|txt)$", re.IGNORECASE)
_ANSWERS: Final = re.compile(r"(?:^|[_\-. ])(?:y|labels?|targets?|answers?)(?=[_\-. ]|$)", re.IGNORECASE)


def refuse_answers_apart(seen: Seen) -> None:
    """Refuse tables, or arrays, of features beside those of their answers.

    Raises:
        InputError: it names two of them, with the line of Python that joins each pair.
    """
    if (
        seen.form not in ("csv", "parquet", "numpy", "txt")
        or len(seen.files) > _MOST_TABLES
        or any(is_object(os.fsencode(one)) for one in seen.files)
    ):
        return
    arrays = seen.form in ("numpy", "txt")
    forms = [one for one in seen.files if is_form_for_answers(os.path.basename(one))]
    files = [one for one in seen.files if (_ARRAY if arrays else _PLAIN).search(one) and one not in forms]
    pairs, lone = _paired(files, _PIXELS if arrays else _FEATURES)
    if arrays:
        pairs = [(one, other) for one, other in pairs if _rows_of(one) == _rows_of(other) is not None]
    else:
        pairs = [(one, other) for one, other in pairs if {*_columns_of(one)} != {*_columns_of(other)}]
    if not pairs:
        return
    others = [one for one in files if all(one not in pair for pair in pairs)]
    more = _arrays_beside(pairs, [one for one in others if one not in lone]) if arrays else []
    others = [one for one in others if all(one not in found.values() for found in more)]
    whole = [] if arrays else _whole_beside(pairs, others)
    names, answers = ({name for pair in pairs for name in _columns_of(pair[at])} for at in (0, 1))
    bare = lone if arrays else [one for one in others if not {*_columns_of(one)} & (answers - names)]
    rest = [one for one in others if one not in bare and one not in whole]
    without = _left_out(bare, [*rest, *forms])
    shown = [printable_path(typed_path(one)) for one in pairs[0]]
    kind, how = (
        ("files" if seen.form == "txt" else "arrays", _arrays_joined(seen, pairs, more))
        if arrays
        else ("tables", _joined(seen, pairs, whole))
    )
    raise InputError(
        f"{shown[0]}, {shown[1]}: features and their answers in two {kind}, whose rows belong to each other; to join "
        f"them, in Python{without}: {how}{MEANT}"
    )


_OF_LANGUAGE: Final = re.compile(
    r"(?P<stem>.+)\.(?P<name>[a-z]{2,3}(?:[_-][A-Za-z]{2,4})?|source|target)|"
    r"(?P<name_before>src|tgt|source|target)[-_.](?P<stem_behind>.+)"
)
_MOST_TEXTS: Final = 64
_LONGEST_TEXT: Final = 64 << 20


def _of_languages(files: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the texts of each name that several languages have, by these."""
    texts = defaultdict[str, dict[str, str]](dict)
    for file in files:
        folder, name = os.path.split(file)
        if found := _OF_LANGUAGE.fullmatch(name.removesuffix(".txt")):
            stem = os.path.join(folder, found["stem"] or found["stem_behind"])
            texts[stem][found["name"] or found["name_before"]] = file
    return {stem: some for stem, some in texts.items() if len(some) > 1}


_OF_ANSWERS: Final = re.compile(
    r"(?:.*[_.-])?(?:labels?|targets?|tags?|class(?:es)?|acts?|emotions?|intents?|slots?|answers?|titles?|"
    r"summary|summaries|scores?|sentiments?|category|categories|y)"
)
"""The name of a text whose lines say something of those of another text."""


def _of_answers(files: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the texts of each folder, or of each split in their names, by what is left of these: one has answers."""
    texts = defaultdict[str, dict[str, str]](dict)
    for file in files:
        folder, name = os.path.split(file)
        stem = name.removesuffix(".txt")
        split = split_in_words(stem)
        left = re.sub(rf"(^|[_.-]){re.escape(split)}(?=[_.-]|$)", "", stem, flags=re.IGNORECASE) if split else stem
        texts[os.path.join(folder, split) if split else folder][left.strip("_.-").lower()] = file
    several = {stem: some for stem, some in texts.items() if len(some) > 1}
    names = {name for some in several.values() for name in some}
    return several if any(map(_OF_ANSWERS.fullmatch, names)) else {}


def told_of_translations(files: Sequence[str], call: Call) -> str:
    """Return what reads texts whose lines belong together, as in several languages; empty for other files.

    So are `train.de` and `train.en`, `train_text.txt` and `train_labels.txt`, if they have the same number of lines.
    """
    groups = _of_languages(files) or _of_answers(files)
    names = sorted(set.intersection(*map(set, groups.values()))) if groups else []
    same = {stem: [some[name] for name in names] for stem, some in groups.items()}
    if len(names) < 2 or len(same) > _MOST_TEXTS or not all(map(_are_as_long, same.values())):
        return ""
    typed = {stem: [*map(typed_path, some)] for stem, some in same.items()}
    if _FEELINGS.issuperset(names):
        every = {file: name for some in typed.values() for name, file in zip(names, some, strict=True)}
        lines = f"open(file, encoding={_encoding_of(every)!r}, newline='\\n')"
        shown = first_names([*map(printable_path, every)], len(names))
        each = f"for file, label in {every}.items() for line in {lines}"
        data = call.of_data(f"({{'text': line.strip(), 'label': label}} {each})")
        return f"{shown}: their suffixes are classes of texts; in Python, a record for each line: {data}"
    words = {stem: split_in_words(os.path.basename(stem)) for stem in typed}
    if not any(words.values()):  # train/seq.in and train/seq.out
        words = {stem: split_in_words(os.path.basename(os.path.dirname(stem))) for stem in typed}
    counts = Counter(words.values())
    splits = {
        str(word if word and counts[word] == 1 else as_split(os.path.basename(stem))): typed[stem]
        for stem, word in words.items()
    }
    is_split = len(splits) == len(typed) > 1
    each = f"for split, files in {splits}.items()" if is_split else f"for files in {[*typed.values()]}"
    cell = "'split': split, " if is_split else ""
    row = f"{{{cell}**dict(zip({names}, map(str.strip, rows)))}}"
    lines = r"zip(*(open(file, encoding='utf-8', newline='\n') for file in files), strict=True)"
    read = call.of_data(f"({row} {each} for rows in {lines})", **({"split__column": "split"} if is_split else {}))
    shown = first_names([printable_path(one) for one in next(iter(typed.values()))], len(names))
    return f"{shown}: texts of as many lines, which belong together; in Python, a record for each line: {read}"


_FEELINGS: Final = frozenset(("pos", "neg", "neu", "positive", "negative", "neutral"))


def _encoding_of(files: Iterable[str]) -> str:
    """Return the encoding of texts, as their beginnings show."""
    try:
        for one in files:
            beginning_of(one, _FIRST_BYTES).rpartition(b"\n")[0].decode()
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _are_as_long(files: Sequence[str]) -> bool:
    """Return whether texts have the same number of lines, and several."""
    if any(is_object(os.fsencode(one)) or os.path.getsize(one) > _LONGEST_TEXT for one in files):
        return False
    counts = set[int]()
    for one in files:
        with open(one, "rb") as file:
            text = file.read()
        counts.add(-1 if b"\0" in text else text.count(b"\n") + (not text.endswith(b"\n")))
    return len(counts) == 1 and counts.pop() > 1


def refuse_translations(seen: Seen) -> None:
    """Refuse texts in several languages, whose lines belong together.

    Raises:
        InputError: it names two of them, with the line of Python that makes a record of each line.
    """
    if seen.form == "txt" and len(seen.files) <= _MOST_TABLES and (told := told_of_translations(seen.files, seen.call)):
        raise InputError(f"{told}{MEANT}")


def _whole_beside(pairs: Sequence[tuple[str, str]], others: Sequence[str]) -> list[str]:
    """Return the tables that have the columns of both tables of a pair, and are of splits that no pair is of."""
    columns, splits = {*_columns_of(pairs[0][0]), *_columns_of(pairs[0][1])}, {_split_of(one) for one, _ in pairs}
    found = [one for one in others if {*_columns_of(one)} == columns and _split_of(one) not in ("", *splits)]
    return found if all(splits) else []


def _left_out(bare: Sequence[str], others: Sequence[str]) -> str:
    said = ((bare, ("has no answers, and is", "have no answers, and are")), (others, ("is", "are")))
    return "".join(
        f" ({first_names([printable_path(typed_path(one)) for one in files], SHOWN)} {what[len(files) > 1]} left out)"
        for files, what in said
        if files
    )


def _paired(files: Iterable[str], of_features: re.Pattern[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return features with their answers, whose names differ in the word for these alone, and features without."""
    features, answers, others = dict[str, str](), dict[str, str](), dict[str, str]()
    for file in files:
        stem, folder = _stem_of(file), os.path.dirname(file)
        pattern, found = next(
            (one for one in ((_ANSWERS, answers), (of_features, features)) if one[0].search(stem)), (_NONE, others)
        )
        found.setdefault(os.path.join(folder, _without(pattern, stem)), file)
    beside = {key: one for key, one in others.items() if key in answers and os.path.basename(key)}
    pairs = [(one, answers[key]) for key, one in (beside | features).items() if key in answers]
    return pairs, [one for key, one in features.items() if key not in answers]


def _stem_of(file: str) -> str:
    return _CAPITAL.sub("_", os.path.splitext(os.path.basename(file))[0])


def _without(pattern: re.Pattern[str], stem: str) -> str:
    return pattern.sub("", stem).strip("_-. ").lower()


def _arrays_beside(pairs: Sequence[tuple[str, str]], others: Sequence[str]) -> list[dict[str, str]]:
    """Return the further arrays of each pair by their names without its words: subject_train.npy beside y_train.npy.

    They have as many rows as their pair, and every pair has each.
    """
    found = list[dict[str, str]]()
    for pair in pairs:
        word = re.escape(_without(_ANSWERS, _stem_of(pair[1])))
        pattern = re.compile(rf"(?:^|[_\-. ]){word}(?=[_\-. ]|$)", re.IGNORECASE) if word else _NONE
        found.append(
            {
                name: one
                for one in others
                if (name := _without(pattern, stem := _stem_of(one))) not in ("", "x", "y")
                and (not word or name != stem.lower())
                and (os.path.dirname(one), _split_of(one)) == (os.path.dirname(pair[1]), _split_of(pair[1]))
                and _rows_of(one) == _rows_of(pair[1])
            }
        )
    return [{name: one for name, one in more.items() if all(name in other for other in found)} for more in found]


def _rows_of(file: str) -> int | None:
    """Return how many rows an array has, or the only one of an archive; None where NumPy would unpickle it.

    Of a text these are its lines of numbers; None where the first is none of numbers.
    """
    if file.lower().endswith(".txt"):
        if not _numbers_in(file):
            return None
        with open(file, "rb") as lines:
            return sum(1 for line in lines if not line.isspace())
    found = _SHAPE.match(_only_array(file)[1])
    return int(found[1]) if found else None


def _only_array(file: str) -> tuple[str, bytes]:
    """Return the name of the one array of a `.npz` file, and its first bytes; of others no name, and those of these."""
    head = beginning_of(os.fsencode(file), HEAD_BYTES)
    if not head.startswith(b"PK\3\4") or len(head) < _LOCAL.size:
        return "", head
    with open(file, "rb") as opened:
        opened.seek(max(os.path.getsize(file) - _END.size, 0))
        end = opened.read()
    method, name, extra = _LOCAL.unpack_from(head)
    if len(end) < _END.size or _END.unpack(end)[:2] != (b"PK\5\6", 1) or method not in (0, 8):
        return "", b""
    data = head[_LOCAL.size + name + extra :]
    try:
        data = zlib.decompressobj(-15).decompress(data, HEAD_BYTES) if method else data
    except zlib.error:
        return "", b""  # reading it says what is wrong
    return head[_LOCAL.size :][:name].decode("utf-8", "replace").removesuffix(".npy"), data


_LOCAL: Final = struct.Struct("<8xH16xHH")
"""The header before a member of a zip: how it is packed, the bytes of its name, and of what follows that."""

_END: Final = struct.Struct("<4s6xH10x")
"""What a zip ends with: a signature, and how many members there are."""

_SHAPE: Final = re.compile(rb"\x93NUMPY(?![^()]*'\|O')[^()]*'shape': \(([0-9]+)")


def _arrays_joined(seen: Seen, pairs: Sequence[tuple[str, str]], more: Sequence[dict[str, str]]) -> str:
    """Return the calls that convert pairs of arrays, with `more` of each, into its split."""
    lines = list[str]()
    joined = ({"x": pair[0], "y": pair[1], **found} for pair, found in zip(pairs, more, strict=True))
    for arrays in sorted(joined, key=lambda one: kind_of(_split_of(one["x"]) or "train") != "train"):
        split, first = _split_of(arrays["x"]) or "train", not lines
        cells = (f"{name!r}: {_loaded(one)}" for name, one in arrays.items())
        call = seen.call if first else replace(seen.call, command="append")
        lines.append(call.of_data(f"{{{', '.join(cells)}}}", **({} if split == "train" else {"output__split": split})))
    return "; ".join(lines)


def _numbers_in(file: str) -> list[bytes]:
    """Return the numbers in the first line of a text; none if it holds other words, or the file is large."""
    head = beginning_of(os.fsencode(file), _FIRST_BYTES) if os.path.getsize(file) <= _MOST_TEXT else b""
    words = head.partition(b"\n")[0].split()
    return words if all(map(_FIGURE.fullmatch, words)) else []


_FIGURE: Final = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_MOST_TEXT: Final = 1 << 29


def _loaded(file: str) -> str:
    if file.lower().endswith(".txt"):
        whole = all(one.lstrip(b"+-").isdigit() for one in _numbers_in(file))
        return f"numpy.loadtxt({typed_path(file)!r}{', dtype=int' if whole else ''})"
    key = _only_array(file)[0]
    return f"numpy.load({typed_path(file)!r}){f'[{key!r}]' if key else ''}"


def _joined(seen: Seen, pairs: Sequence[tuple[str, str]], whole: Sequence[str]) -> str:
    """Return what joins each pair: by the columns that both have, or row by row, of equally many rows.

    Of CSV it writes a table of texts, which is read as its parts would be.
    """
    names, csv_ = _columns_of(pairs[0][1]), seen.form == "csv"
    both = [name for name in _columns_of(pairs[0][0]) if name in names]
    sign = _sign_of(pairs[0][0]) if csv_ else ","
    signs = (sign, _sign_of(pairs[0][1]) if len(names) > 1 and csv_ else sign)
    x, y = map(read_csv, "xy", signs) if csv_ else (f"pandas.read_parquet({name})" for name in "xy")
    joined = f"{x}.assign(**{y}.to_dict('list'))"
    if both:
        joined = f"{x}.merge({y}, on={both!r}, how='outer', validate='m:1')"
    splits = [_split_of(one) for one, _ in pairs]
    typed = [(typed_path(one), typed_path(other)) for one, other in pairs]
    split, options = "", list[Set]()
    if whole or (len(pairs) > 1 and all(splits) and len({*splits}) == len(splits)):
        rows = [(split, *two) for split, two in zip(splits, typed, strict=True)]
        each = [f"*({joined}.assign(split=split) for split, x, y in {rows})"]
        alone = [(_split_of(one), typed_path(one)) for one in whole]
        each += [f"*({x}.assign(split=split) for split, x in {alone})"] if alone else []
        frame = f"pandas.concat([{', '.join(each)}], ignore_index=True)"
        options, more = [Set("split.column", "split")], {"split__column": "split"}
    else:
        split = splits[0] if len(pairs) == 1 and splits[0] != "train" else ""
        frame = f"pandas.concat([{joined} for x, y in {typed}], ignore_index=True)"
        options, more = ([Set("output.split", split)], {"split": split}) if split else ([], {})
    if not csv_:
        return seen.call.of_data(frame, **more)
    made = typed_path(f"{seen.root.rstrip('/')}-joined.csv")
    write = runnable(f"{frame}.to_csv({made!r}, index=False{'' if sign == ',' else f', sep={sign!r}'})")
    return f"{write}; then: {seen.call.reading([made], *options)}"


def _split_of(file: str) -> str:
    folder, name = os.path.split(file)
    return split_in_words(name) or split_of_folder(os.path.basename(folder)) or ""


def _columns_of(file: str) -> list[str]:
    """Return the columns of a table; none of one that cannot be read, which converting it says."""
    try:
        if file.endswith((".parquet", ".pq")):
            return [str(name) for name in pq.read_schema(file).names]
        with open(file, encoding="utf-8-sig", errors="replace", newline="") as lines:
            names = next(csv.reader(lines, delimiter=_sign_of(file)), [])
            return [name or f"Unnamed: {at}" for at, name in enumerate(names)]
    except (OSError, pa.ArrowException, csv.Error):
        return []


def _sign_of(file: str) -> str:
    with open(file, "rb") as lines:
        first = lines.readline(1 << 16).decode("utf-8", "replace")
    return max(",\t;|", key=first.count)


def _folders(files: Sequence[str], roots: Iterable[str]) -> Iterator[str]:
    """Yield the folders that may have a log: those of the files, those between, and some above the roots."""
    seen = dict[str, None]()
    for root in sorted(set(roots)):
        for _ in range(_ABOVE + 1):
            seen.setdefault(root)
            root = os.path.dirname(root.rstrip("/"))
            if root.count("/") < (3 if "://" in root else 1):
                break
    most = _MOST_STORE_FOLDERS if any("://" in one for one in seen) else _MOST_FOLDERS
    below = dict.fromkeys(map(os.path.dirname, files[:: max(len(files) // (100 * most), 1)]))
    for folder in below:
        while folder not in seen and folder.count("/") > 1 and len(seen) < most:
            seen.setdefault(folder)
            folder = os.path.dirname(folder)
    yield from list(seen)[:most]


def _table_in(folder: str) -> _Table | None:
    if "://" in folder:
        url = parse_store_url(f"{folder.rstrip('/')}/")
        store = store_at(url)
        names = {prefix[len(url.key) : -1] for prefix in store.level(url.key).prefixes}
        files = [info.key for info in store.level(f"{url.key}metadata/").objects] if "metadata" in names else []
        metadata = [f"{url.scheme}://{url.bucket}/{key}" for key in files]
    else:
        names = {name for name in ("_delta_log", ".hoodie", "metadata") if os.path.isdir(os.path.join(folder, name))}
        inner = os.path.join(folder, "metadata")
        metadata = [os.path.join(inner, name) for name in os.listdir(inner)] if "metadata" in names else []
    if "_delta_log" in names:
        return _Table("Delta Lake", folder)
    if ".hoodie" in names:
        return _Table("Hudi", folder)
    versions = [one for one in metadata if one.endswith(".metadata.json")]
    if versions:
        return _Table("Iceberg", folder, max(versions, key=_version))
    return None


def _version(path: str) -> tuple[int, str]:
    """Return what orders the versions of metadata: `v3.metadata.json`, `00003-UUID.metadata.json`."""
    number = re.match(r"v?([0-9]+)", os.path.basename(path))
    return int(number[1]) if number else -1, path
