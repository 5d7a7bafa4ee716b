"""Refuse files that are not what their names say, and Elasticsearch's bulk files; warn of content that is there twice.

    version https://git-lfs.github.com/spec/v1    a file that was not fetched
    <!DOCTYPE html>                               a web page, or the error of a store
    a.csv        a.csv.gz                         one name in two compressions
    a.parquet    a (1).parquet                    a copy by its name, of the same size and content
    flights.csv  flights/flights.csv              a file, and a folder of its name that holds it
    1.jpg        1 copy.png                       a picture, and a copy by its name
    a.csv        a_small.csv                      rows that are in another file too, by the first lines of both

At most 16 files are opened, the smallest ones first, as pointers and errors are small; in a store only small ones.
Names make a suspect of a copy; sizes and fingerprints, which the listing has, decide. Only of pictures on a disk, whose
listing has none, contents are compared, of 64 at most.
"""

from __future__ import annotations

import filecmp
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from glob import escape
from heapq import nsmallest
from itertools import islice, permutations
from typing import Final

from ...errors import InputError, SourceError
from ...format.wording.hints import Foreign, Set
from ...format.wording.printable import first_names, printable
from ...inputs.contract.selection import typed_path
from ...inputs.contract.source import SourceEntry
from ...inputs.files.listing import beginning_of, unpacked
from ...inputs.files.open_file import is_object, open_file, open_listed, read_at
from ..splits.seen import Seen

MOST_HEADS: Final = 16
"""How many files are opened: a clone without its files has pointers everywhere, and a download is one file."""

HEAD_BYTES: Final = 512
_SMALL_BYTES: Final = 2048
"""A pointer has 130 bytes, an error of a store up to 1,000; a head of an object is a request."""

_POINTER_BYTES: Final = 200
_MANY: Final = 10_000
"""Of more files, those of the size of a pointer are looked at, and the first ones: sizes are not sorted."""
SHOWN: Final = 6

_LFS: Final = re.compile(rb"version https://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/v1\s")
_ANNEX: Final = re.compile(rb"(?:\.\./)*(?:\.git)?/annex/objects/\S+\s*\Z")
_PAGE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html)[\s>]", re.I | re.S)
_STORE_ERROR: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?<(?:\w+:)?error[^>]*>\s*<code>\s*([A-Za-z.]+)", re.I
)
_BULK: Final = re.compile(rb'\s*\{\s*"(?:index|create)"\s*:\s*\{\s*(?:"_(?:index|id|type)"[^{}]*)?\}\s*\}\r?\n\{')
_MOST_FILES: Final = 8
_FETCH: Final = "not the file itself; fetch the files, then run again"
MEANT: Final = f"; if it is meant so: {Set('input.detect', 'none')}"


def pointer(head: bytes) -> str | None:
    """Return what to do about a pointer."""
    if _LFS.match(head):
        return f"is a Git LFS pointer, {_FETCH}: {Foreign('git', 'lfs', 'pull')}"
    if _ANNEX.match(head):
        return f"is a pointer of git-annex, {_FETCH}: {Foreign('git', 'annex', 'get', '.')}"
    return None


def _page(head: bytes) -> str | None:
    if _PAGE.match(head):
        return f"is a web page, not the file that its name says; download the file itself{MEANT}"
    return None


def _store_error(head: bytes) -> str | None:
    found = _STORE_ERROR.match(head)
    if found:
        code = printable(found[1])
        return f"is an error of a store ({code}), not the file that its name says; download the file again{MEANT}"
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
        raise InputError(f"{one.name}: {what}; in Python: {seen.call.of_data(read)}{MEANT}")


def _head(entry: SourceEntry) -> bytes:
    try:
        with open_listed(entry, open_file) as file:
            return read_at(file)(HEAD_BYTES, 0)
    except (SourceError, OSError):
        return b""  # reading it says what is wrong


_PACKED: Final = re.compile(r"(?:\.(?:gz|bz2|xz|zst))$|(?<=\.t)gz$", re.IGNORECASE | re.MULTILINE)
_ENDINGS: Final = (".gz", ".bz2", ".xz", ".zst", ".tgz")
_MARKS: Final = ("(", "copy", "kopie", "copie")
COPY: Final = (
    r"(?i)(?: ?\([0-9]{1,3}\)| - (?:copy|kopie|copie)(?: ?\([0-9]{1,3}\))?|[ _-]copy(?:[ _]?[0-9]{1,3})?)(\.|$)"
    r"|^(?:copy of|kopie von|copie de) "
)
"""What browsers and file managers add to the name of a copy, with the dot behind it; Arrow's patterns are the same."""

_MOST_PAIRS: Final = 3
_MOST_COMPARED: Final = 64
_FEW: Final = 8


def content_twice(entries: Sequence[SourceEntry]) -> tuple[str, ...]:
    """Return the warnings of files that seem to be there twice."""
    packed = list(_in_two_compressions(entries))
    copies = list(_copies(entries))
    found = []
    for pairs, why in ((packed, "one name in two compressions"), (copies, "a copy by its name, with the same content")):
        if pairs:
            shown = first_names([f"{one} and {other}" for one, other in pairs], _MOST_PAIRS)
            found.append(f"{shown}: {why}, so that the same rows come twice; name only the files that you want")
    told = {name for pairs in (packed, copies) for pair in pairs for name in pair}
    if parts := [(one, other) for one, other in _parts_of_others(entries) if not {one, other} <= told]:
        shown = first_names([f"{one} are in {other} too" for one, other in parts], _MOST_PAIRS)
        found.append(f"the first rows of {shown}, so that rows may come twice; name only the files that you want")
    return tuple(found)


def _parts_of_others(entries: Sequence[SourceEntry]) -> Iterator[tuple[str, str]]:
    """Yield texts on a disk whose first lines are nearly all in another file, as those of a sample or a corrected copy.

    A header, and lines of a few characters, say nothing.
    """
    if not 1 < len(entries) <= _FEW or any(is_object(entry.path) for entry in entries):
        return
    heads = [unpacked(beginning_of(entry.path, _HEAD_OF_ROWS), _HEAD_OF_ROWS) for entry in entries]
    lines = [[] if b"\0" in head else head.split(b"\n") for head in heads]
    sets = [set(some) for some in lines]
    for (number, one), (at, other) in permutations(enumerate(entries), 2):
        first = {line for line in lines[number][1:_FIRST_LINES] if len(line) >= _FEWEST_BYTES}
        in_other = len(first & sets[at])
        smaller = (one.bytes, number) < (other.bytes, at)
        if smaller and in_other >= _FEWEST_LINES and in_other >= _NEARLY_ALL * len(first):
            yield one.name, other.name


_HEAD_OF_ROWS: Final = 1 << 18
_FIRST_LINES: Final = 64
_FEWEST_LINES: Final = 3
_FEWEST_BYTES: Final = 12
_NEARLY_ALL: Final = 0.8


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
    plain = re.sub(COPY, r"\1", base) if marked else base
    if plain != base:
        yield f"{folder}/{plain}" if folder else plain
    above, _, own = folder.rpartition("/")
    if own and own in (base, base.partition(".")[0]):
        yield f"{above}/{base}" if above else base


def pictures_twice(pairs: Sequence[tuple[SourceEntry, SourceEntry, str]], ignored: Sequence[str]) -> tuple[str, ...]:
    """Warn of pictures, each with one of its size that is its copy by the name, and the path of that below the root.

    `ignored` is what is left out already.
    """
    same = [one for one in pairs[:_MOST_COMPARED] if _are_alike(*one[:2])]
    if not same:
        return ()
    shown = first_names([f"{one.name} and {other.name}" for one, other, _ in same], _MOST_PAIRS)
    copies = [escape(below) for _, _, below in same]
    leave = Set("input.ignore", [*ignored, *copies]) if len(pairs) <= _FEW else "input.ignore"
    more = len(pairs) - _MOST_COMPARED
    others = f" ({more:,} more of such names and equal sizes were not compared)" if more > 0 else ""
    why = "a copy by its name, with the same content, so that the same picture comes twice"
    return (f"{shown}: {why}{others}; to leave copies out: {leave}",)


def _are_alike(one: SourceEntry, other: SourceEntry) -> bool:
    """Return whether two pictures of one size have one content, in a store by their versions."""
    if is_object(one.path):
        return one.mtime_ns == other.mtime_ns
    try:
        return filecmp.cmp(one.path, other.path, shallow=False)
    except OSError:
        return False  # reading it says what is wrong
