"""List the objects of a store that URLs name, as `listing` does with paths.

    s3://bucket/data/a.csv       an object; taken literally where there is one
    s3://bucket/data             all below the prefix `data/`: what would be a folder on a disk
    s3://bucket/data/*/[ab]*.csv a glob: `*` ends at `/`, `**` does not; only the levels that it names are listed

Lists come in pages, sorted, with sizes and versions; by itself is only looked at what a URL may name as an object. An
empty object whose key ends with `/`, as consoles make them for folders, is none.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from ...errors import InputError
from ...format.wording.printable import printable, printable_path
from ...stores.object_store import ObjectInfo, ObjectStore, store_at
from ...stores.store_url import STORES, StoreUrl, parse_store_url
from ..contract.source import SourceEntry
from .file_names import Ignored, LeftOut, has_suffix, notes_among, why_skipped

_DOTTED: Final = re.compile(r"/\.|/\Z")
"""What `**` does not match: a key that has a step which begins with a dot, or that stands for a folder."""


@dataclass(slots=True)
class FoundObjects:
    """What one URL names: `matched` tells whether anything, `left` what was left out."""

    url: StoreUrl
    matched: bool = False
    objects: list[ObjectInfo] = field(default_factory=list)
    left: LeftOut = field(default_factory=LeftOut)
    ignored: Ignored | None = None

    def entries(self) -> list[SourceEntry]:
        return [object_entry(object_path(self.url, info.key), info) for info in self.objects]


def object_path(url: StoreUrl, key: str) -> bytes:
    return f"{url.scheme}://{url.bucket}/{key}".encode()


def object_name(path: bytes) -> str:
    """Return how an object is shown: where a URL would have secrets, a key has signs of its own.

    >>> object_name(b"s3://bucket/a?b#1.csv")
    's3://bucket/a%3Fb%231.csv'
    """
    text = path.decode()
    return printable_path(text.replace("?", "%3F").replace("#", "%23").replace("@", "%40"))


def object_entry(path: bytes, info: ObjectInfo) -> SourceEntry:
    modified = round(info.modified * 1e9)
    print_ = fingerprint_of(path.partition(b":")[0].decode(), info)
    return SourceEntry(path, object_name(path), info.size, modified, print_, version=info.version)


def look_at_object(path: bytes) -> SourceEntry | None:
    """Return the entry of an object, None if there is none. Raises `StoreError` or `StoreAccessError`."""
    url = parse_store_url(path.decode())
    info = store_at(url).head(url.key)
    return None if info is None else object_entry(path, info)


def fingerprint_of(scheme: str, info: ObjectInfo) -> str:
    """Return what tells the content of an object from another, and costs no request: CRC32C and size, or the version.

    S3's is an etag, a digest of the content, and of the parts in which it was uploaded. GCS's is a generation, which is
    a time, but it lists the CRC32C.
    """
    if STORES[scheme].lists_crc32c and info.crc32c is not None:
        return f"crc32c:{info.crc32c:08x}-{info.size}"
    return "etag:" + info.version.strip('"')


def find_objects(path: str, suffixes: tuple[str, ...], ignored: Ignored | None = None) -> FoundObjects:
    """Return the objects that a URL names; of folders, those that bear one of the suffixes.

    Raises `StoreAccessError` where the URL, the credentials, the bucket or a permission is wrong, `StoreError` where
    the store cannot be reached.
    """
    url = parse_store_url(path)
    store = store_at(url)
    found = FoundObjects(url, ignored=ignored)
    start = len(_fixed_prefix(url.key))
    seen: set[str] = set()
    for match in _matches(store, url.key):
        key = match.key if isinstance(match, ObjectInfo) else match.rstrip("/")
        if ignored is not None and len(key) > start and ignored.is_below(key[start:].encode()):
            found.left.skip("ignored")
            found.matched = True
            continue
        if isinstance(match, ObjectInfo):
            new = [match]
        else:
            begin = start if glob.has_magic(url.key) else len(match)
            new = list(_files_below(match, store.walk(match), suffixes, found, begin))
        found.matched = found.matched or isinstance(match, ObjectInfo) or bool(new or found.left.counts)
        found.objects += [info for info in new if info.key not in seen]
        seen.update(info.key for info in new)
    if glob.has_magic(url.key):
        notes = notes_among([info.key.encode() for info in found.objects])
        for note in notes:
            found.left.skip_file(note)
        found.objects = [info for info in found.objects if info.key.encode() not in notes]
    found.objects.sort(key=lambda info: info.key.encode())
    return found


def match_url(path: str) -> list[tuple[bytes, ObjectInfo | None]]:
    """Return what a URL names: objects, and folders (None), by their paths; a folder may turn out to be empty.

    Raises as `find_objects` does, and `InputError` for a glob that matches nothing.
    """
    url = parse_store_url(path)
    found: dict[bytes, ObjectInfo | None] = {}
    for match in _matches(store_at(url), url.key):
        if isinstance(match, ObjectInfo):
            found[object_path(url, match.key)] = match
        else:
            found.setdefault(object_path(url, match).rstrip(b"/"), None)
    if not found:
        raise InputError(f"{object_name(path.encode())}: matches nothing")
    return list(found.items())


def _matches(store: ObjectStore, key: str) -> Iterator[ObjectInfo | str]:
    """Yield what a key or a glob names: objects, and the prefixes of folders, which are empty or end with `/`."""
    if not key or key.endswith("/"):
        if not glob.has_magic(key):
            yield key
            return
    else:
        info = store.head(key)
        if info is not None:
            yield info
            return
        if not glob.has_magic(key):
            yield f"{key}/"
            return
    parts = key.rstrip("/").split("/")
    yield from _expand(store, "", parts, folders_only=key.endswith("/"))


def _expand(store: ObjectStore, prefix: str, parts: list[str], *, folders_only: bool) -> Iterator[ObjectInfo | str]:
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _expand_deep(store, prefix, rest, folders_only=folders_only)
        return
    if not glob.has_magic(part):
        if rest:
            yield from _expand(store, f"{prefix}{part}/", rest, folders_only=folders_only)
            return
        info = None if folders_only else store.head(prefix + part)
        yield info or f"{prefix}{part}/"
        return
    level, matches = store.level(prefix), compiled(part, part_pattern(part)).fullmatch
    if not rest and not folders_only:
        yield from (info for info in level.objects if matches(info.key[len(prefix) :]))
    for folder in level.prefixes:
        if matches(folder[len(prefix) : -1]):
            if rest:
                yield from _expand(store, folder, rest, folders_only=folders_only)
            else:
                yield folder


def _expand_deep(
    store: ObjectStore, prefix: str, parts: list[str], *, folders_only: bool
) -> Iterator[ObjectInfo | str]:
    """Yield what `**` and the parts after it match: `**` stands for any number of folders, but hidden ones."""
    parts = [part for part in parts if part != "**"]
    if not parts:
        yield prefix
        if not folders_only:
            yield from (info for info in store.walk(prefix) if not _DOTTED.search("/" + info.key[len(prefix) :]))
        return
    pattern = "/".join(map(part_pattern, parts))
    matches = compiled("/".join(parts), rf"(?:(?!\.)[^/]+/)*{pattern}").fullmatch
    folders: set[str] = set()
    for info in store.walk(prefix):
        steps = info.key[len(prefix) :].split("/")
        if not folders_only and steps[-1] and matches("/".join(steps)):
            yield info
        for depth in range(1, len(steps)):
            folder = "/".join(steps[:depth])
            if folder not in folders and matches(folder):
                folders.add(folder)
    yield from (f"{prefix}{folder}/" for folder in sorted(folders))


def _fixed_prefix(key: str) -> str:
    """Return the prefix of a glob that no sign of it is in, up to its last slash; of other keys, their folder.

    >>> _fixed_prefix("in/a*/b.csv"), _fixed_prefix("in/a.csv"), _fixed_prefix("in/")
    ('in/', 'in/', '')
    """
    steps = list(takewhile(lambda step: not glob.has_magic(step), key.rstrip("/").split("/")))
    above = steps if glob.has_magic(key) else steps[:-1]
    return "".join(f"{step}/" for step in above)


def compiled(glob: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error as error:
        raise InputError(f"{printable(glob)}: as a glob it makes no sense ({error.msg})") from error


def part_pattern(part: str) -> str:
    """Return the pattern of one part of a glob; as on a disk, only a dot matches a dot that a name begins with."""
    pattern = "" if part.startswith(".") else r"(?!\.)"
    at = 0
    while at < len(part):
        sign, at = part[at], at + 1
        end = part.find("]", at + 1 + part[at : at + 1].count("!")) if sign == "[" else -1
        if sign == "*":
            pattern += "[^/]*"
        elif sign == "?":
            pattern += "[^/]"
        elif end > 0:
            negated, inner = part[at] == "!", part[at:end].removeprefix("!")
            inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", inner)
            pattern += f"(?!/)[{'^' if negated else ''}{inner}]"
            at = end + 1
        else:
            pattern += re.escape(sign)
    return pattern


def _files_below(
    prefix: str, infos: Iterable[ObjectInfo], suffixes: tuple[str, ...], found: FoundObjects, begin: int
) -> Iterator[ObjectInfo]:
    """Yield the objects below a folder that have a suffix; hidden names, datasets and others are counted."""
    listed = [info for info in infos if not info.key.endswith("/")]
    datasets = dataset_folders(info.key for info in listed)
    passed: set[str] = set()
    for info in listed:
        reason, place = _passed_over(prefix, info.key, datasets, found.ignored, begin)
        if reason and place not in passed:
            passed.add(place)
            found.left.skip(reason)
        elif not reason and has_suffix(info.key, suffixes):
            yield info
        elif not reason:
            found.left.skip_file(object_path(found.url, info.key))


def _passed_over(prefix: str, key: str, datasets: set[str], ignored: Ignored | None, begin: int) -> tuple[str, str]:
    """Return why a key below a folder is passed over, and the name or folder that is the reason; empty if it is not."""
    at = len(prefix)
    while at < len(key):
        end = key.find("/", at)
        step = key[at:] if end < 0 else key[at:end]
        if reason := why_skipped(step.encode()):
            return "hidden folder" if reason == "hidden" and end >= 0 else reason, key[: at + len(step)]
        if ignored is not None and ignored(key[begin:at].rstrip("/").encode(), step.encode()):
            return "ignored", key[: at + len(step)]
        if end < 0:
            break
        if key[: end + 1] in datasets:
            return "dataset", key[: end + 1]
        at = end + 1
    return "", ""


def dataset_folders(keys: Iterable[str]) -> set[str]:
    """Return the prefixes of datasets that were written here: of those that have both a manifest and older ones."""
    with_manifest: set[str] = set()
    with_generations: set[str] = set()
    for key in keys:
        folder, _, name = key.rpartition("/")
        if name == "manifest.json":
            with_manifest.add(f"{folder}/" if folder else "")
        elif folder == "manifests" or folder.endswith("/manifests"):
            with_generations.add(folder[: -len("manifests")])
    return with_manifest & with_generations
