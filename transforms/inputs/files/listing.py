"""List the files of a source from paths, globs, folders and URLs, each with the fingerprint that it is known by.

A path that exists is taken literally, so `a[1].csv` works as it is; only what does not exist is read as a glob.
A folder gives the files below it that bear one of the format's suffixes: names that begin with `.` or `_` are skipped
and counted as `hidden`, files of other suffixes by their suffix, what systems leave in folders as `junk`, links to
folders (they may run in a circle) as `links`, folders below it that are datasets as `dataset`: `convert . -o out` must
not read its own output the next time. A file that is named, or matched by a glob, is taken whatever its suffix, unless
the user ignores it.
"""

from __future__ import annotations

import glob
import hashlib
import os
import stat
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice, takewhile
from typing import Final

from ...dataset.storage.local_storage import no_such_path
from ...errors import InputError, SourceError
from ...format.tfrecord.framing import crc32c
from ...format.wording.printable import printable_path, shell_path
from ..contract.source import Listing, SourceEntry, Traits
from .file_names import Ignored, LeftOut, has_suffix, notes_among, why_skipped
from .object_listing import find_objects, look_at_object, object_name
from .open_file import ReadAt, is_object, open_file, open_listed, read_at

_OF_FILES: Final = Traits()

_EDGE_BYTES: Final = 64 * 1024
_PLACE_BYTES: Final = 4 * 1024
_PLACES: Final = 16
"""Arrays and pictures of one size often begin and end alike: with black, or zeros. 16 places take 80 us when warm."""

_PIECE_BYTES: Final = 1 << 20
_FIRST: Final = 1000
_DEEPEST: Final = 7
"""Levels of folders in which a message looks for the files that it proposes to name."""

_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISCHR, "a character device"),
)


@dataclass(slots=True)
class _Found:
    """What an expansion has found so far: absolute paths, and what was left out.

    With `names_only` nobody asks what the files of folders are: links to nowhere and pipes are the source's to judge.
    Where `few` is given, only the first files of each suffix in a folder are wanted: one of those, 1,000 of others.
    `objects` are the entries of those paths that are objects of a store, which were listed with all that they are.
    """

    paths: set[bytes] = field(default_factory=set)
    objects: dict[bytes, SourceEntry] = field(default_factory=dict)
    left: LeftOut = field(default_factory=LeftOut)
    names_only: bool = False
    few: tuple[bytes, ...] | None = None
    ignored: Ignored | None = None


def entry_name(path: bytes, base: bytes) -> str:
    """Return how an absolute path is shown: relative to the absolute folder `base` where it is below it."""
    if is_object(path):
        return object_name(path)
    prefix = base.rstrip(b"/") + b"/"
    return printable_path(path[len(prefix) :] if path.startswith(prefix) else path)


def file_fingerprint(path: bytes, size: int) -> str:
    """Return `sha256:` and the digest over a file's size and some of its content; time plays no part.

    The content is the first and last 64 KiB, and of a file of over 132 KiB 16 places of 4 KiB, spread evenly over what
    is between.
    """
    with open(path, "rb", buffering=0) as file:
        return _sampled(read_at(file), size)


def _sampled(read: ReadAt, size: int) -> str:
    digest = hashlib.sha256(b"%d\n" % size)
    digest.update(read(_EDGE_BYTES, 0))
    between = size - 2 * _EDGE_BYTES - _PLACE_BYTES
    for place in range(_PLACES if between > 0 else 0):
        digest.update(read(_PLACE_BYTES, _EDGE_BYTES + between * place // (_PLACES - 1)))
    if size > _EDGE_BYTES:
        digest.update(read(_EDGE_BYTES, max(size - _EDGE_BYTES, _EDGE_BYTES)))
    return "sha256:" + digest.hexdigest()


def fingerprint_as(entry: SourceEntry, kind: str) -> str:
    """Return the fingerprint that a file on a disk, or an object, would have in another place: `sha256` on a disk.

    In a store it is `crc32c`, or `etag` as it is of an object that was uploaded at once: these read all of the file.
    Raises `SourceError`.
    """
    with open_listed(entry, open_file) as file:
        read = read_at(file)
        if kind == "sha256" and entry.bytes > _PIECE_BYTES:
            return _sampled(read, entry.bytes)
        if kind == "sha256":  # one request to a store
            data = read(entry.bytes, 0)
            return _sampled(lambda size, offset: data[offset : offset + size], entry.bytes)
        crc, md5 = 0, hashlib.md5(usedforsecurity=False)
        for start in range(0, entry.bytes, _PIECE_BYTES):
            piece = read(min(_PIECE_BYTES, entry.bytes - start), start)
            if kind == "crc32c":
                crc = crc32c(piece, crc)
            else:
                md5.update(piece)
        return f"crc32c:{crc:08x}-{entry.bytes}" if kind == "crc32c" else f"etag:{md5.hexdigest()}"


def expand_paths(
    paths: Sequence[str],
    base: str,
    suffixes: tuple[str, ...],
    *,
    names_only: bool = False,
    ignore: Sequence[str] = (),
) -> tuple[list[bytes], dict[str, int]]:
    """Return the absolute paths of all files that `paths` name, sorted by their bytes, each once.

    Also return what was left out, by kind. Relative paths are relative to the folder `base`. With `names_only` the
    files of a folder are not looked at. Raises `InputError`: a path matches nothing, is not a regular file or folder,
    or a folder cannot be read.
    """
    found = _find(paths, base, suffixes, ignore, names_only=names_only)
    return sorted(found.paths), found.left.by_kind()


def some_paths(
    paths: Sequence[str], base: str, suffixes: tuple[str, ...], *, few: tuple[str, ...] = (), ignore: Sequence[str] = ()
) -> list[bytes]:
    """Return the paths that `expand_paths` finds by names, of a folder the first 1,000 of each suffix.

    Of the suffixes in `few` it is the first one. A million names take a second.
    """
    found = _find(paths, base, suffixes, ignore, names_only=True, few=tuple(map(os.fsencode, few)))
    return sorted(found.paths)


def _find(
    paths: Sequence[str],
    base: str,
    suffixes: tuple[str, ...],
    ignore: Sequence[str],
    *,
    names_only: bool = False,
    few: tuple[bytes, ...] | None = None,
) -> _Found:
    if not paths:
        raise InputError("input.paths is empty: name at least one file, folder or glob")
    root = os.path.abspath(os.fsencode(base))
    found = _Found(names_only=names_only, few=few, ignored=Ignored.of(ignore) if ignore else None)
    for path in paths:
        before = len(found.paths)
        if is_object(os.fsencode(path)):
            none_new = not _expand_url(path, suffixes, found)
        else:
            matched = _expand_one(path, root, suffixes, found)
            if not matched:
                raise no_such_path(path, root)
            none_new = len(found.paths) == before and not _all_known(matched, found)
        if none_new:
            wanted = ", ".join(suffixes)
            but = " that input.ignore does not leave out" if found.left.counts["ignored"] else ""
            every = glob_of_files(path, root)
            fix = f"; to read all files of it: {shell_path(every)}" if every else ""
            raise InputError(
                f"{printable_path(path)}: the folder holds no file with one of the suffixes {wanted}{but}{fix}"
            )
    return found


def glob_of_files(path: str, root: bytes) -> str | None:
    """Return the glob of the files below a folder, or below the folders of a glob; None if there are none.

    Of several levels it is that of the highest, but for notes and for a few files above many.
    """
    if is_object(os.fsencode(path)):
        return None
    stem = glob.escape(path) if os.path.lexists(os.path.join(root, os.fsencode(path))) else path
    patterns = [os.path.join(stem, *["*"] * depth) for depth in range(1, _DEEPEST + 1)]
    files = [[*islice(_files_of(pattern, root), _MANY)] for pattern in patterns]
    counts = [len(some) - len(notes_among(some, folders=True)) for some in files]
    counts = counts if any(counts) else [*map(len, files)]
    chosen = (pattern for pattern, count in zip(patterns, counts, strict=True) if count * _FEW_ABOVE > max(counts))
    return next(chosen, None)


_MANY: Final = 1000
_FEW_ABOVE: Final = 4


def _files_of(pattern: str, root: bytes) -> Iterator[bytes]:
    for hit in glob.iglob(os.fsencode(pattern), root_dir=root):
        if os.path.isfile(os.path.join(root, hit)) and why_skipped(os.path.basename(hit)) is None:
            yield hit


def list_entries(
    paths: Sequence[str],
    base: str,
    suffixes: tuple[str, ...],
    *,
    file_format: str = "",
    traits: Traits = _OF_FILES,
    ignore: Sequence[str] = (),
) -> Listing:
    entries, left = find_entries(paths, base, suffixes, ignore)
    size, notable = sum(e.bytes for e in entries), tuple(sorted(left.notable))
    return Listing(file_format, tuple(entries), len(entries), size, left.by_kind(), traits, notable=notable)


def find_entries(
    paths: Sequence[str], base: str, suffixes: tuple[str, ...], ignore: Sequence[str] = ()
) -> tuple[list[SourceEntry], LeftOut]:
    """Return the entries in the order of their paths, and what was left out. Raises as `list_entries` does."""
    found = _find(paths, base, suffixes, ignore)
    root = os.path.abspath(os.fsencode(base))
    entries = [found.objects.get(path) or list_file(path, root) for path in sorted(found.paths)]
    return entries, found.left


def list_file(path: bytes, base: bytes) -> SourceEntry:
    """Return the entry of one regular file, or object; `base` is an absolute folder.

    Raises `InputError` where it is not a regular file (a named pipe would block forever), or cannot be read.
    """
    name = entry_name(path, base)
    if is_object(path):
        entry = look_at_object(path)
        if entry is None:
            raise InputError(f"{name}: no such object")
        return entry
    try:
        status = os.stat(path)
        _refuse_special(name, status.st_mode)
        print_ = file_fingerprint(path, status.st_size)
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from error
    return SourceEntry(path, name, status.st_size, status.st_mtime_ns, print_)


def beginning_of(path: str | bytes, most: int) -> bytes:
    """Return at most so many bytes of a file, or object; none where it is not there, or cannot be read."""
    try:
        with open_listed(list_file(os.fsencode(path), b"/"), open_file) as file:
            return read_at(file)(most, 0)
    except (InputError, SourceError, OSError):
        return b""


def unpacked(head: bytes, most: int) -> bytes:
    """Return the beginning of a file as it is before gzip; none where it is damaged."""
    try:
        return zlib.decompressobj(31).decompress(head, most) if head.startswith(b"\x1f\x8b") else head
    except zlib.error:
        return b""


def is_there(path: str) -> bool:
    if not is_object(os.fsencode(path)):
        return os.path.lexists(path)
    try:
        list_file(os.fsencode(path), b"/")
    except InputError:
        return False
    return True


def _expand_one(path: str, root: bytes, suffixes: tuple[str, ...], found: _Found) -> list[bytes]:
    """Add what one path names to `found`, and return its matches: itself, or those of the glob."""
    raw = os.fsencode(path)
    literal = os.path.abspath(os.path.join(root, raw))
    if os.path.lexists(literal):
        matches = [literal]
    elif glob.has_magic(raw):
        # `root_dir` and not a joined path: the folder's own name may hold brackets
        hits = glob.glob(raw, root_dir=root, recursive=True)
        matches = sorted({os.path.abspath(os.path.join(root, hit)) for hit in hits})
        files = [match for match in matches if os.path.isfile(match)]
        notes = notes_among(files, folders=len(files) < len(matches))
        for note in notes:
            found.left.skip_file(note)
        matches = [match for match in matches if match not in notes]
    else:
        matches = []
    start = os.path.dirname(literal) if matches == [literal] else _fixed_part(os.path.join(root, raw))
    for match in matches:
        below = match[len(start.rstrip(b"/")) + 1 :]
        if found.ignored is not None and found.ignored.is_below(below):
            found.left.skip("ignored")
            continue
        name = entry_name(match, root)
        try:
            mode = os.stat(match).st_mode
        except OSError as error:
            raise InputError(f"{name}: cannot be read: {error.strerror}") from error
        if stat.S_ISDIR(mode):
            _add_folder(match, name, suffixes, found, b"" if match == literal else below)
        else:
            _refuse_special(name, mode)
            found.paths.add(match)
    return matches


def _fixed_part(glob_: bytes) -> bytes:
    """Return the folder of a glob that no sign of it is in."""
    steps = takewhile(lambda step: not glob.has_magic(step), glob_.split(b"/"))
    return os.path.abspath(b"/".join(steps) or b"/")


def _expand_url(path: str, suffixes: tuple[str, ...], found: _Found) -> bool:
    """Add what a URL names to `found`; return whether it names any file. Raises `InputError` where it names nothing."""
    if found.names_only and found.ignored is None and has_suffix(path, suffixes):
        found.paths.add(os.fsencode(path))  # its suffix is theirs: a store need not be asked twice
        return True
    objects = find_objects(path, suffixes, found.ignored)
    if not objects.matched:
        raise InputError(f"{printable_path(path)}: no such object or folder, and nothing matches it as a glob")
    found.objects |= {entry.path: entry for entry in objects.entries()}
    found.paths.update(found.objects)
    found.left.add(objects.left)
    return bool(objects.objects)


def _all_known(matches: list[bytes], found: _Found) -> bool:
    """Return whether every match is, or has below it, a file that was found before: a path may be named twice."""
    return all(m in found.paths or any(p.startswith(m.rstrip(b"/") + b"/") for p in found.paths) for m in matches)


def _add_folder(folder: bytes, name: str, suffixes: tuple[str, ...], found: _Found, below: bytes) -> None:
    if found.few is not None:
        _add_some(folder, name, suffixes, found, below)
        return
    for path, entry in _walk(folder, name, found, below):
        if not has_suffix(os.fsdecode(entry.name), suffixes):
            found.left.skip_file(path)
        elif found.names_only or _is_file(entry):
            found.paths.add(path)
        else:
            try:
                _refuse_special(printable_path(path), os.stat(path).st_mode)
            except OSError as error:
                raise InputError(f"{printable_path(path)}: cannot be read: {error.strerror}") from error


def _add_some(folder: bytes, name: str, suffixes: tuple[str, ...], found: _Found, below: bytes) -> None:
    """Add the first files of each suffix below a folder, as `_walk` finds them."""
    folders, by_end = _names_in(folder, name)
    for end, names in [(b"/", folders), *by_end.items()]:
        if found.ignored is not None:
            left = [one for one in names if not found.ignored(below, one)]
            found.left.counts["ignored"] += len(names) - len(left)
            names[:] = left
        if end != b"/" and os.fsdecode(end).lower() not in suffixes:
            names = [one for one in names if has_suffix(os.fsdecode(one), suffixes)]
        if end != b"/" and names:
            first = [min(names)] if end.lower() in (found.few or ()) else nsmallest(_FIRST, names)
            found.paths.update(os.path.join(folder, one) for one in first)
    for one in folders:
        if not holds_dataset(path := os.path.join(folder, one)):
            _add_some(path, printable_path(path), suffixes, found, os.path.join(below, one))


def _names_in(folder: bytes, name: str) -> tuple[list[bytes], dict[bytes, list[bytes]]]:
    """Return the names of folders in a folder, and of files by what is behind their last dot, without skipped ones."""
    folders, by_end = list[bytes](), defaultdict[bytes, list[bytes]](list)
    try:
        with os.scandir(folder) as scan:
            for entry in scan:
                if (one := entry.name).startswith((b".", b"_")) and why_skipped(one) is not None:
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    if not entry.is_symlink() or not _is_folder(entry):
                        by_end[one[one.rfind(b".") :]].append(one)
                elif why_skipped(one) is None:
                    folders.append(one)
    except OSError as error:
        raise InputError(f"{name}: the folder cannot be read: {error.strerror}") from error
    return folders, by_end


def _walk(folder: bytes, name: str, found: _Found, below: bytes) -> Iterator[tuple[bytes, os.DirEntry[bytes]]]:
    """Yield all that is not a folder below a folder, without following links to folders.

    `below` is the folder's path below the one that was named, or below the part of a glob that has no sign of it.
    """
    try:
        with os.scandir(folder) as scan:
            entries = list(scan)
    except OSError as error:
        raise InputError(f"{name}: the folder cannot be read: {error.strerror}") from error
    for entry in entries:
        path = os.path.join(folder, entry.name)
        reason = why_skipped(entry.name)
        if reason is not None:
            is_folder = reason == "hidden" and entry.is_dir(follow_symlinks=False)
            found.left.skip("hidden folder" if is_folder else reason)
        elif found.ignored is not None and found.ignored(below, entry.name):
            found.left.skip("ignored")
        elif entry.is_dir(follow_symlinks=False):
            if holds_dataset(path):
                found.left.skip("dataset")
            else:
                yield from _walk(path, printable_path(path), found, os.path.join(below, entry.name))
        elif _is_folder(entry):
            found.left.skip("links")
        else:
            yield path, entry


def holds_dataset(folder: bytes) -> bool:
    return os.path.isfile(os.path.join(folder, b"manifest.json")) and os.path.isdir(os.path.join(folder, b"manifests"))


def _is_folder(entry: os.DirEntry[bytes]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that runs in a circle
        return False


def _is_file(entry: os.DirEntry[bytes]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _refuse_special(name: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((text for test, text in _KINDS if test(mode)), "not a regular file")
        raise InputError(f"{name}: is {kind}; only regular files are read")
