"""Refuse what is not the file that its name says, and what is more or less than one set of rows.

Pointers, web pages, errors of stores; tables that have a log; several versions of TFDS, or one that lacks a shard;
features and their answers in two tables, whose rows belong to each other:

    delta/_delta_log/  iceberg/metadata/*.metadata.json  .hoodie/    their files also hold rows that are no longer there
    version https://git-lfs.github.com/spec/v1                       a file that was not fetched
    X_train.csv  y_train.csv                                         a half of the columns of each row

Sets of pictures whose annotations have a form that is not read, with what makes a form of them that is:

    CVAT for images    train.xml                         images/train/7.jpg
    LabelMe            Annotations/7.xml                 Images/7.jpg
    Datumaro           annotations/train.json            images/train/7.jpg
    KITTI              train/label_2/7.txt               train/image_2/7.jpg
    MOT                gt/gt.txt                         img1/7.jpg
    WIDER FACE         wider_face_split/..._bbx_gt.txt   WIDER_train/images/0--cat/7.jpg
    Cityscapes         gtFine/train/7_labelIds.png       leftImg8bit/train/7.png
    MNIST              train-labels-idx1-ubyte.gz        train-images-idx3-ubyte.gz

Of these the folders that are looked at are the root, those of splits in it, and the few whose names say what they hold.

At most 16 files are opened, the smallest ones first, as pointers and errors are small; in a store only small ones.

And warn of files that seem to hold one content twice, so that every row of it would come twice:

    a.csv        a.csv.gz               one name in two compressions
    a.parquet    a (1).parquet          a copy by its name, of the same size and content
    flights.csv  flights/flights.csv    a file, and a folder of its name that holds it, as archives are unpacked

Names alone make a suspect; sizes and fingerprints, which the listing has, decide. No file is opened for it.
"""

from __future__ import annotations

import csv
import json
import os
import re
import struct
import zlib
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from heapq import nsmallest
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError, SourceError
from ..format.wording.hints import Command, Foreign, Python, Set, read_csv
from ..format.wording.nearest import first_names
from ..format.wording.printable import counted, printable, printable_path
from ..sources.contract.call import Call, shown_path, typed_path
from ..sources.contract.source import Listing, SourceEntry
from ..sources.files.formats import format_of_name
from ..sources.files.listing import beginning_of, is_there
from ..sources.files.open_file import is_object, open_file, open_listed, read_at
from ..sources.files.skipped_names import is_other_file
from ..stores.object_store import store_at
from ..stores.store_url import parse_store_url
from .box_layouts import files_below, files_in, folders_of_splits, root_of
from .names import MAGIC, is_form_for_answers, kind_of, split_in_words, split_of_folder
from .splits import Seen
from .tfds import INFO, tfds_folders

MOST_HEADS: Final = 16
"""How many files are opened: a clone without its files has pointers everywhere, and a download is one file."""

_HEAD_BYTES: Final = 512
_SMALL_BYTES: Final = 2048
"""A pointer has 130 bytes, an error of a store up to 1,000; a head of an object is a request."""

_POINTER_BYTES: Final = 200
_MANY: Final = 10_000
"""Of more files, those of the size of a pointer are looked at, and the first ones: sizes are not sorted."""

_MOST_FOLDERS: Final = 1000
"""So many folders of a disk are asked for a log: a table has its log above all of its partitions."""

_MOST_STORE_FOLDERS: Final = 4
_SHOWN: Final = 6
_ABOVE: Final = 3
"""Levels above the files that are named: a partition or two, and `data/` of Iceberg."""

_SIZED: Final = re.compile(r"(?<![0-9])[0-9]{2,5}x[0-9]{2,5}(?![0-9])")
"""The size of pictures in the name of a folder: tfrecords-jpeg-224x224 of Kaggle, beside the same in other sizes."""

_LFS: Final = re.compile(rb"version https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/v1\s")
_ANNEX: Final = re.compile(rb"(?:\.\./)*(?:\.git)?/annex/objects/\S+\s*\Z")
_PAGE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html)[\s>]", re.I | re.S)
_STORE_ERROR: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?<(?:\w+:)?error[^>]*>\s*<code>\s*([A-Za-z.]+)", re.I
)
_BULK: Final = re.compile(rb'\s*\{\s*"(?:index|create)"\s*:\s*\{\s*(?:"_(?:index|id|type)"[^{}]*)?\}\s*\}\r?\n\{')
_MOST_FILES: Final = 8
_FETCH: Final = "not the file itself; fetch the files, then run again"
_MEANT: Final = f"; if it is meant so: {Set('input.detect', 'none')}"


def pointer(head: bytes) -> str | None:
    """Return what to do about a pointer."""
    if _LFS.match(head):
        return f"is a Git LFS pointer, {_FETCH}: {Foreign('git', 'lfs', 'pull')}"
    if _ANNEX.match(head):
        return f"is a pointer of git-annex, {_FETCH}: {Foreign('git', 'annex', 'get', '.')}"
    return None


def _page(head: bytes) -> str | None:
    if _PAGE.match(head):
        return f"is a web page, not the file that its name says; download the file itself{_MEANT}"
    return None


def _store_error(head: bytes) -> str | None:
    found = _STORE_ERROR.match(head)
    if found:
        code = printable(found[1])
        return f"is an error of a store ({code}), not the file that its name says; download the file again{_MEANT}"
    return None


HEADS: Final[tuple[Callable[[bytes], str | None], ...]] = (pointer, _page, _store_error)
"""The rules of first bytes."""


def why_no_data(head: bytes, rules: Sequence[Callable[[bytes], str | None]] = HEADS) -> str | None:
    """Return what a file is that begins so, if it is surely not what its name says, and what to do.

    >>> why_no_data(b"<?xml version='1.0'?><Error><Code>AccessDenied</Code>")[:37]
    'is an error of a store (AccessDenied)'
    """
    return next(filter(None, (rule(head) for rule in rules)), None)


def refuse_strangers(seen: Seen) -> None:
    """Refuse files of which one begins as no data does; a picture that is none is a reject, unless it is a pointer.

    Raises:
        InputError: one does; the others that do are counted.
    """
    rules = (pointer,) if seen.form == "images" else HEADS
    there = [one for one in seen.entries if one.bytes]
    if len(there) > _MANY:
        there = [*islice((one for one in there if one.bytes <= _POINTER_BYTES), MOST_HEADS), *there[:MOST_HEADS]]
    may_be = (one for one in there if one.bytes <= _SMALL_BYTES or not is_object(one.path))
    chosen = nsmallest(MOST_HEADS, may_be, key=lambda one: (one.bytes, one.path))
    with ThreadPoolExecutor(8 if any(is_object(one.path) for one in chosen) else 1) as pool:
        heads = zip(chosen, pool.map(_head, chosen), strict=True)
        found = [(one, why) for one, head in heads if (why := why_no_data(head, rules))]
    if found:
        (first, why), more = found[0], len(found) - 1
        others = f" (so are {more} of {len(chosen) - 1} others that were looked at)" if more else ""
        raise InputError(f"{first.name}: {why}{others}")
    if seen.form == "jsonl" and chosen:
        _refuse_bulk(seen, chosen[0])


def _refuse_bulk(seen: Seen, one: SourceEntry) -> None:
    """Refuse the file that Elasticsearch loads: the lines between its documents are no rows."""
    if _BULK.match(_head(one)):
        files = [typed_path(entry.name) for entry in seen.entries] if len(seen.entries) <= _MOST_FILES else "files"
        read = (
            f"[{{**action, **row}} for path in {files} for lines in "
            f"[[*map(json.loads, pathlib.Path(path).read_bytes().splitlines())]] "
            f"for one, row in zip(lines[::2], lines[1::2]) for action in one.values()]"
        )
        what = "is a file for the bulk interface of Elasticsearch, in which each second line is a document"
        raise InputError(f"{one.name}: {what}; in Python: {seen.call.of_data(read)}{_MEANT}")


def _head(entry: SourceEntry) -> bytes:
    try:
        with open_listed(entry, open_file) as file:
            return read_at(file)(_HEAD_BYTES, 0)
    except (SourceError, OSError):
        return b""  # reading it says what is wrong


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
    lines = "".join(f"\n  {command(one)}" for one in typed[:_SHOWN])
    return (
        f"the folder holds {len(typed)} datasets or versions of one ({first_names(typed, _SHOWN)}), and one is read "
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


_MOST_TABLES: Final = 100
_FEATURES: Final = re.compile(r"(?:^|[_\-. ])(?:x|features?|inputs?|values)(?=[_\-. ]|$)", re.IGNORECASE)
_PIXELS: Final = re.compile(r"(?:^|[_\-. ])(?:x|features?|inputs?|data|images?)(?=[_\-. ]|$)", re.IGNORECASE)
"""Words for features in names of arrays."""

_NONE: Final = re.compile(r"(?!)")
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where the words of trainLabels begin."""

_PLAIN: Final = re.compile(r"\.(?:csv|tsv|parquet|pq)$", re.IGNORECASE)
_ARRAY: Final = re.compile(r"\.npy$", re.IGNORECASE)
_ANSWERS: Final = re.compile(r"(?:^|[_\-. ])(?:y|labels?|targets?|answers?)(?=[_\-. ]|$)", re.IGNORECASE)


def refuse_answers_apart(seen: Seen) -> None:
    """Refuse tables, or arrays, of features beside those of their answers.

    Raises:
        InputError: it names two of them, with the line of Python that joins each pair.
    """
    if (
        seen.form not in ("csv", "parquet", "numpy")
        or len(seen.files) > _MOST_TABLES
        or any(is_object(os.fsencode(one)) for one in seen.files)
    ):
        return
    arrays = seen.form == "numpy"
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
    whole = [] if arrays else _whole_beside(pairs, others)
    names, answers = ({name for pair in pairs for name in _columns_of(pair[at])} for at in (0, 1))
    bare = lone if arrays else [one for one in others if not {*_columns_of(one)} & (answers - names)]
    rest = [] if arrays else [one for one in others if one not in bare and one not in whole]
    without = _left_out(bare, [*rest, *forms])
    shown = [printable_path(typed_path(one)) for one in pairs[0]]
    kind, how = ("arrays", _arrays_joined(seen, pairs)) if arrays else ("tables", _joined(seen, pairs, whole))
    raise InputError(
        f"{shown[0]}, {shown[1]}: features and their answers in two {kind}, whose rows belong to each other; to join "
        f"them, in Python{without}: {how}{_MEANT}"
    )


def _whole_beside(pairs: Sequence[tuple[str, str]], others: Sequence[str]) -> list[str]:
    """Return the tables that have the columns of both tables of a pair, and are of splits that no pair is of."""
    columns, splits = {*_columns_of(pairs[0][0]), *_columns_of(pairs[0][1])}, {_split_of(one) for one, _ in pairs}
    found = [one for one in others if {*_columns_of(one)} == columns and _split_of(one) not in ("", *splits)]
    return found if all(splits) else []


def _left_out(bare: Sequence[str], others: Sequence[str]) -> str:
    said = ((bare, ("has no answers, and is", "have no answers, and are")), (others, ("is", "are")))
    return "".join(
        f" ({first_names([printable_path(typed_path(one)) for one in files], _SHOWN)} {what[len(files) > 1]} left out)"
        for files, what in said
        if files
    )


def _paired(files: Iterable[str], of_features: re.Pattern[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Return features with their answers, whose names differ in the word for these alone, and features without."""
    features, answers, others = dict[str, str](), dict[str, str](), dict[str, str]()
    for file in files:
        stem, folder = _CAPITAL.sub("_", os.path.splitext(os.path.basename(file))[0]), os.path.dirname(file)
        pattern, found = next(
            (one for one in ((_ANSWERS, answers), (of_features, features)) if one[0].search(stem)), (_NONE, others)
        )
        found.setdefault(os.path.join(folder, pattern.sub("", stem).strip("_-. ").lower()), file)
    beside = {key: one for key, one in others.items() if key in answers and os.path.basename(key)}
    pairs = [(one, answers[key]) for key, one in (beside | features).items() if key in answers]
    return pairs, [one for key, one in features.items() if key not in answers]


def _rows_of(file: str) -> int | None:
    """Return how many rows an array has; None where there is none to join."""
    found = _SHAPE.match(beginning_of(os.fsencode(file), _HEAD_BYTES))
    return int(found[1]) if found else None


_SHAPE: Final = re.compile(rb"\x93NUMPY[^()]*'shape': \(([0-9]+)")


def _arrays_joined(seen: Seen, pairs: Sequence[tuple[str, str]]) -> str:
    """Return the calls that convert pairs of arrays, each into its split."""
    lines = list[str]()
    for pair in sorted(pairs, key=lambda one: kind_of(_split_of(one[0]) or "train") != "train"):
        split, first = _split_of(pair[0]) or "train", not lines
        cells = (f"{name!r}: numpy.load({typed_path(one)!r})" for name, one in zip(("x", "y"), pair, strict=True))
        call = seen.call if first else replace(seen.call, command="append")
        lines.append(call.of_data(f"{{{', '.join(cells)}}}", **({} if split == "train" else {"output__split": split})))
    return "; ".join(lines)


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
    write = Python(f"{frame}.to_csv({made!r}, index=False{'' if sign == ',' else f', sep={sign!r}'})")
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


def refuse_datumaro(seen: Seen) -> None:
    """Raises `InputError` where files of Arrow are Datumaro's, whose annotations and classes have a form of its own."""
    if seen.form == "arrow" and seen.files and _OF_DATUMARO in beginning_of(seen.files[0], _SET_HEAD):
        what = "is an export of Datumaro to Arrow, whose annotations are in bytes of its own; with Datumaro"
        raise InputError(f"{shown_path(seen.files[0])}: {what}, {_EXPORT}{_MEANT}")


_OF_DATUMARO: Final = b"signature:datumaro_arrow"
REFUSED: Final = (
    refuse_strangers,
    refuse_tables,
    refuse_several,
    refuse_missing,
    refuse_answers_apart,
    refuse_datumaro,
)


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


_PACKED: Final = re.compile(r"(?:\.(?:gz|bz2|xz|zst))$|(?<=\.t)gz$", re.IGNORECASE | re.MULTILINE)
_ENDINGS: Final = (".gz", ".bz2", ".xz", ".zst", ".tgz")
_MARKS: Final = ("(", "copy", "kopie", "copie")
_COPY: Final = re.compile(
    r"(?: ?\([0-9]{1,3}\)| - (?:copy|kopie|copie)(?: ?\([0-9]{1,3}\))?|[ _-]copy(?:[ _]?[0-9]{1,3})?)(?=\.|$)"
    r"|^copy of ",
    re.IGNORECASE,
)
"""What browsers and file managers add to the name of a copy."""

_MOST_PAIRS: Final = 3


def content_twice(entries: Sequence[SourceEntry]) -> tuple[str, ...]:
    """Return the warnings of files that seem to be there twice."""
    packed = list(_in_two_compressions(entries))
    copies = list(_copies(entries))
    found = []
    for pairs, why in ((packed, "one name in two compressions"), (copies, "a copy by its name, with the same content")):
        if pairs:
            shown = first_names([f"{one} and {other}" for one, other in pairs], _MOST_PAIRS)
            found.append(f"{shown}: {why}, so that the same rows come twice; name only the files that you want")
    return tuple(found)


def _in_two_compressions(entries: Sequence[SourceEntry]) -> Iterator[tuple[str, str]]:
    text = "\0".join(entry.name for entry in entries).lower()  # a million names are asked at once
    if not any(ending in text for ending in _ENDINGS):
        return
    by_stem: dict[str, str] = {}
    for entry in entries:
        stem = _PACKED.sub("ar" if entry.name.lower().endswith(".tgz") else "", entry.name)
        first = by_stem.setdefault(stem, entry.name)
        if first != entry.name:
            yield first, entry.name


def _copies(entries: Sequence[SourceEntry]) -> Iterator[tuple[str, str]]:
    prints = [entry.fingerprint for entry in entries]
    if len(set(prints)) == len(prints):
        return
    alike = defaultdict[str, set[str]](set)
    for print_, entry in zip(prints, entries, strict=True):
        if entry.bytes:
            alike[print_].add(entry.name)
    text = "\0".join(name for names in alike.values() if len(names) > 1 for name in names).lower()
    marked = any(sign in text for sign in _MARKS)
    for print_, entry in zip(prints, entries, strict=True):
        names = alike[print_]
        if len(names) < 2:
            continue
        original = next((one for one in _originals(entry.name, marked=marked) if one in names), None)
        if original is not None:
            yield original, entry.name


def _originals(name: str, *, marked: bool) -> Iterator[str]:
    """Yield the names of the files that a file may be a copy of, by its own name; some are `marked` as copies."""
    folder, _, base = name.rpartition("/")
    plain = _COPY.sub("", base) if marked else base
    if plain != base:
        yield f"{folder}/{plain}" if folder else plain
    above, _, own = folder.rpartition("/")
    if own and own in (base, base.partition(".")[0]):
        yield f"{above}/{base}" if above else base


# Sets of pictures of other forms: a wrong guess would read pictures without their boxes, or masks as classes.


_SET_HEAD: Final = 1 << 18
_TABLE: Final = "read both from a table, metadata.csv with the columns file_name and mask_file_name"
_EXPORT: Final = "export the set as COCO, Pascal VOC or YOLO"
_CREATE_ML: Final = "CreateML"
_SEGMENTS: Final = "Segment Anything"
_LABELME: Final = "labelme"


@dataclass(frozen=True, slots=True)
class _Form:
    """What annotations are called, the folders of their files, the names of these, and how their first bytes look.

    Datumaro reads them as `importer`. Where heads have `classes` and no `boxes`, pictures have a class each. Some are
    looked for `in_splits` alone.
    """

    called: str
    folders: tuple[str, ...]
    names: str
    head: bytes = b""
    importer: str = ""
    advice: str = _EXPORT
    boxes: bytes = b""
    classes: bytes = b"(?!)"
    exact: bool = True
    in_splits: bool = False


_SHAPES: Final = rb'"shapes"[\s\S]*"imagePath"'
_FORMS: Final = (
    _Form("annotations of CVAT for images", ("", "annotations"), r".+\.xml", rb"<annotations>\s*<(?:version|meta)\b",
          "cvat", boxes=rb"<(?:box|poly|points|mask|ellipse|cuboid)", classes=rb"<tag "),
    _Form("annotations of CVAT for images", ("", "annotations"), r".+\.xml", rb"<annotations>\s*<image\s[^>]*\bwidth="),
    _Form("annotations of LabelMe", ("Annotations",), r".+\.xml", rb"<annotation>[\s\S]*<(?:nrows|polygon)>"),
    _Form("annotations of LabelMe", ("Annotations", "annotations", "labels"), r".+\.json", _SHAPES, _LABELME),
    _Form("annotations of LabelMe", ("", "images"), r".+\.json", _SHAPES, _LABELME, in_splits=True),
    _Form("annotations of Datumaro", ("annotations",), r".+\.json", rb'"dm_format_version"', "datumaro",
          boxes=rb'"type":"(?:bbox|polygon|polyline|mask)"', classes=rb'"type":"label"'),
    _Form("annotations of Datumaro", ("annotations",), r".+\.datum"),
    _Form("annotations of Segment Anything", ("",), r".+\.json", rb'"(?:crop_box|stability_score)"', _SEGMENTS),
    _Form("annotations of the VGG Image Annotator", ("", "annotations"), r".+\.json", rb'"shape_attributes"'),
    _Form("annotations of Label Studio", ("",), r".+\.json", rb'"(?:from_name|completed_by)"'),
    _Form("annotations of Supervisely", ("ann",), r".+\.json", rb'"classTitle"|"objects"'),
    _Form("annotations of CreateML", ("",), r".*createml\.json", b"", _CREATE_ML),
    _Form("panoptic segments of COCO", ("annotations",), r"panoptic_.+\.json", advice="give instances_*.json too"),
    _Form("boxes of KITTI", ("label_2",), r".+\.txt", rb"\S+(?: -?[0-9.]+){14}"),
    _Form("tracks of MOT", ("gt",), r"gt\.txt", rb"[0-9]+,-?[0-9]+,", "mot_seq", exact=False),
    _Form("oriented boxes of DOTA", ("labelTxt",), r".+\.txt", advice="write them as YOLO's, of eight numbers"),
    _Form("texts of ICDAR", ("",), r"gt(?:_.+)?\.txt"),
    _Form("boxes of WIDER FACE", ("wider_face_split",), r".+_bbx_gt\.txt"),
    _Form("boxes of Open Images", ("annotations",), r".+-annotations-bbox\.csv", b"ImageID,", "open_images"),
    _Form("masks of Cityscapes", ("gtFine", "gtCoarse"), r".+\.png", advice=_TABLE),
    _Form("masks of KITTI", ("semantic", "semantic_rgb"), r".+\.png", advice=_TABLE),
    _Form("masks of MVTec", ("ground_truth",), r".+_mask\.png", advice=_TABLE),
    _Form("masks of CamVid", ("trainannot", "valannot", "testannot"), r".+\.png", advice=_TABLE),
)  # fmt: skip


def refuse_other_sets(given: Mapping[str, Any], paths: Sequence[str], base: str, call: Call) -> None:
    """Raises `InputError` where a folder of pictures has annotations of a form that is not read."""
    root = root_of(given, paths, base)
    places = folders_of_splits(root) if root else []
    splits = [*places[1:], *folders_of_splits(os.path.join(root, "images"))[1:]] if root else []

    @cache
    def files_of(folder: str) -> list[str]:
        return [os.path.join(folder, one) for one in files_in(folder)] if folder in places else files_below(folder)

    for form in _FORMS:
        for place in splits if form.in_splits else places:
            heads = dict(_heads_of(form, place, files_of))
            if heads:
                raise InputError(_what_to_do(form, paths[0], root if form.exact else place, root, heads, call))


def _heads_of(form: _Form, place: str, files_of: Callable[[str], list[str]]) -> Iterator[tuple[str, bytes]]:
    for folder in form.folders:
        inner = os.path.join(place, folder) if folder else place
        files = files_of(inner) if os.path.isdir(inner) else []
        for path in [one for one in files if re.fullmatch(form.names, os.path.basename(one))][:MOST_HEADS]:
            head = beginning_of(path, _SET_HEAD)
            if re.search(form.head, head) if form.head else True:
                yield path, head


def _text(text: str) -> str:
    """Return a text of Python in double quotes, as the line is in single ones for a shell."""
    return json.dumps(text, ensure_ascii=False)


_TO_COCO: Final = {
    _CREATE_ML: (  # Datumaro takes the middles of its boxes for corners
        "import json, pathlib; sets = {path: json.loads(path.read_bytes()) for path in "
        'sorted(pathlib.Path(ROOT).rglob("*createml.json"))}; '
        'names = sorted({one["label"] for rows in sets.values() for row in rows for one in row["annotations"]}); '
        '[path.with_name("_annotations.coco.json").write_bytes(json.dumps({'
        '"images": [{"id": at, "file_name": row["image"]} for at, row in enumerate(rows)], '
        '"categories": [{"id": at, "name": name} for at, name in enumerate(names)], '
        '"annotations": [{"id": n, "image_id": at, "category_id": names.index(one["label"]), '
        '"bbox": [c["x"] - c["width"] / 2, c["y"] - c["height"] / 2, c["width"], c["height"]]} '
        'for n, (at, one, c) in enumerate((at, one, one["coordinates"]) for at, row in enumerate(rows) '
        'for one in row["annotations"])]}, ensure_ascii=False).encode()) for path, rows in sets.items()]'
    ),
    _SEGMENTS: (  # its objects have no classes
        'import itertools, json, pathlib; [folder.joinpath("_annotations.coco.json").write_bytes(json.dumps({'
        '"images": [{**one["image"], "id": at} for at, one in enumerate(sets)], '
        '"categories": [{"id": 0, "name": "object"}], "annotations": [{**one, "image_id": at, "category_id": 0} '
        'for at, each in enumerate(sets) for one in each["annotations"]]}, ensure_ascii=False).encode()) '
        'for folder, files in itertools.groupby(sorted(pathlib.Path(ROOT).rglob("[!_]*.json")), lambda it: it.parent) '
        "for sets in [[json.loads(one.read_bytes()) for one in files]]]"
    ),
    _LABELME: (  # its paths may be of before the pictures were moved
        "import json, os, pathlib, re; root = pathlib.Path(ROOT); sets = {}; "
        '[sets.setdefault(place, []).extend([(os.path.relpath(picture, place), [it for it in one["shapes"] '
        'if it["shape_type"] in ("rectangle", "polygon")])]) for path in sorted(root.rglob("*.json")) '
        'for one in [json.loads(path.read_bytes())] if isinstance(one, dict) and "shapes" in one '
        'for name in [pathlib.PureWindowsPath(one["imagePath"])] '
        'for beside in [root / re.sub("labels|[Aa]nnotations", "images", str(path.parent.relative_to(root)))] '
        "for some in [[path.parent / name.as_posix(), path.parent / name.name, beside / name.name]] "
        "for picture in [next((it for it in some if it.is_file()), some[0])] "
        'for place in [root / re.sub("(^|/)images$", "", os.path.relpath(picture.parent, root))]]; '
        'names = sorted({it["label"] for rows in sets.values() for _, shapes in rows for it in shapes}); '
        '[place.joinpath("_annotations.coco.json").write_bytes(json.dumps({'
        '"images": [{"id": at, "file_name": name} for at, (name, _) in enumerate(rows)], '
        '"categories": [{"id": at, "name": name} for at, name in enumerate(names)], '
        '"annotations": [{"id": n, "image_id": at, "category_id": names.index(label), '
        '"bbox": [min(x), min(y), max(x) - min(x), max(y) - min(y)]} for n, (at, label, x, y) in enumerate('
        '(at, it["label"], *zip(*it["points"])) for at, (_, shapes) in enumerate(rows) for it in shapes)]}, '
        "ensure_ascii=False).encode()) for place, rows in sets.items()]"
    ),
}
"""What writes a file of COCO's beside the pictures of each folder."""


def _what_to_do(form: _Form, typed: str, imported: str, root: str, heads: Mapping[str, bytes], call: Call) -> str:
    has_boxes = any(re.search(form.boxes, head) for head in heads.values())
    has_classes = any(re.search(form.classes, head) for head in heads.values())
    how = form.advice
    if form.importer not in ("", *_TO_COCO) and imported == root:
        target, kind = (
            ("imagenet_with_subset_dirs", "classes") if has_classes and not has_boxes else ("coco_instances", "coco")
        )
        made, of = f"{typed_path(root)}-{kind}", typed_path(root)
        line = (  # objects of one group would be one object of COCO's, which has no rotated boxes
            f"import datumaro; found = datumaro.Dataset.import_from({_text(of)}, {_text(form.importer)}); "
            '[setattr(one, "group", 0) for each in found for one in each.annotations]; '
            '[setattr(each, "annotations", [datumaro.Polygon(sum(map(list, one.as_polygon()), []), label=one.label) '
            'if one.type.name == "rotated_bbox" else one for one in each.annotations]) for each in found]; '
            f"found.export({_text(made)}, {_text(target)}, save_media=True)"
        )
        clip = [Set("schema.boxes", "clip")] if any(b' rotation="' in head for head in heads.values()) else []
        left = "all but points, lines and cuboids " if form.boxes and kind == "coco" else ""
        how = f"{left}with Datumaro: {Foreign('python', '-c', line)} && {call.reading([made], *clip)}"
    if form.importer in _TO_COCO:
        write = Foreign("python", "-c", _TO_COCO[form.importer].replace("ROOT", _text(typed_path(root))))
        made, what = typed, ""
        if form.importer == _LABELME:
            inner, what = os.path.join(root, "images"), "the boxes of rectangles and polygons "
            made = os.path.join(typed, "images") if folders_of_splits(inner)[1:] else typed
        how = f"{what}in Python: {write} && {call.reading([made])}"
    means = Set("input.layout", "split") if _in_splits_alone(root) else Set("input.detect", "none")
    alone = call.reading([typed], Set("input.format", "images"), means)
    also = "" if form.advice is _TABLE else f"; the pictures alone: {alone}"  # masks are pictures too
    return f"{shown_path(next(iter(heads)))}: {form.called}, which are not read; {how}{also}"


def _in_splits_alone(root: str) -> bool:
    """Return whether all pictures are in folders that are splits, without classes: `training/image_2/7.png`."""
    folders = folders_of_splits(root)[1:]
    below = [one for one in files_below(root) if not is_other_file(os.fsencode(os.path.basename(one)))]
    in_splits = all(any(one.startswith(f"{folder}/") for folder in folders) for one in below)
    return len(folders) > 1 and bool(below) and in_splits


_ARRAYS: Final = re.compile(r"(.+)-images[-.]idx3-ubyte(?:\.gz)?")
_NAMED: Final = {"t10k": "test"}


def refuse_mnist(paths: Sequence[str], base: str, call: Call) -> None:
    """Raises `InputError` where a folder has arrays as MNIST has them, with the lines of Python that read them."""
    root = os.path.join(base, paths[0])
    found = os.listdir(root) if len(paths) == 1 and os.path.isdir(root) else []
    names = sorted(name for name in found if "-ubyte" in name)
    pictures = {match[1]: one for one in names if (match := _ARRAYS.fullmatch(one))}
    lines = list[str]()
    for stem in sorted(pictures, key=lambda one: (split_in_words(one) != "train", one)):
        labels = pictures[stem].replace("images", "labels").replace("idx3", "idx1")
        shape = _shape_of(os.path.join(root, pictures[stem]))
        if shape is None:
            continue
        cells = {"image": f"{_array(paths[0], pictures[stem], 16)}.reshape(-1, {shape[0]}, {shape[1]})"}
        cells |= {"label": _array(paths[0], labels, 8)} if labels in names else {}
        data = f"{{{', '.join(f'{key!r}: {value}' for key, value in cells.items())}}}"
        split = _NAMED.get(stem) or split_in_words(stem) or "train"
        more = {} if split == "train" else {"output__split": split}
        lines.append(str((replace(call, command="append") if lines else call).of_data(data, **more)))
    if lines:
        one = next(iter(pictures.values()))
        shown = shown_path(os.path.join(paths[0], one))
        raise InputError(f"{shown}: arrays of MNIST's form, which are not read; in Python: {'; '.join(lines)}")


def _array(folder: str, name: str, offset: int) -> str:
    data = f"pathlib.Path({os.path.join(folder, name)!r}).read_bytes()"
    return f"numpy.frombuffer({f'gzip.decompress({data})' if name.endswith('.gz') else data}, 'u1', offset={offset})"


def _shape_of(path: str) -> tuple[int, int] | None:
    head = beginning_of(path, _HEAD_BYTES)
    try:
        head = zlib.decompressobj(31).decompress(head, _HEADER) if path.endswith(".gz") else head
    except zlib.error:
        return None
    rows, columns = struct.unpack(">8xII", head[:_HEADER]) if len(head) >= _HEADER else (0, 0)
    return (rows, columns) if head.startswith(b"\0\0\x08\x03") else None


_HEADER: Final = 16
