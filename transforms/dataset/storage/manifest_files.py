"""Find the generations in a dataset's folder, what each of them added, and where their files are; and `stats.json`.

    manifests/00000001.json     every generation, immutable; the highest number is the truth
    manifests/shards-….json     what large ones have in parts, which several may share
    manifest.json               a copy of the latest, for people: read only where there is no manifests/

A committed shard is at its final path, or still in the staging folder that its manifest names.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NotRequired, TypedDict

from ...errors import DamageError, InputError
from ...format.batches.rejects import CODES
from ...format.manifest.manifest import LIMITS, Manifest, ShardEntry, parse_part, parts_named_in
from ...format.manifest.naming import STAGING_FOLDER, generation_file, is_shard_path, staged_file, staged_sidecar
from ...format.manifest.parser import parse_manifest, parse_overview
from ...format.manifest.strict_json import (
    MEMORY_LIMIT,
    JsonError,
    ManifestProblem,
    Take,
    choice,
    integer,
    is_readable,
    items,
    mapping,
    object_of,
    only,
    optional,
    parse_json,
    text,
)
from ...format.wording.hints import Command, Foreign
from ...format.wording.printable import printable_path, shell_path
from ...observers.figures import Statistics
from ...observers.stats_files import STATS_JSON, STATS_TFDV, StatsProblem, parse_stats, statistics_file, stats_json
from ...observers.tally import Tally
from ...stores.store_url import is_store_url
from .local_storage import linked_folder, no_such_path
from .object_storage import storage_at

LINE_LIMIT: Final = 64 << 20
"""Bytes: a rejected row of 100,000 columns, all bad, has a line of 30 MB."""

_OWN_FOLDERS: Final = ("manifests", "sources", "rejects", "index", STAGING_FOLDER)

_GENERATION_NAME: Final = re.compile(r"([0-9]{8}|[1-9][0-9]{8,18})\.json")


class PartCache:
    """The parts of manifests that one command has read of a dataset: each is read once, for all generations.

    A part is named by its bytes, so what was read of it cannot be out of date; and a command keeps no more of them than
    one manifest may name. `named` are the paths of all that the manifests name that were read with it, or tried to be.
    """

    def __init__(self, root: str) -> None:
        self.named: set[str] = set()
        self._root = root
        self._shards: dict[str, tuple[ShardEntry, ...]] = {}

    def __call__(self, path: str) -> tuple[ShardEntry, ...]:
        shards = self._shards.get(path)
        if shards is None:
            shards = parse_part(read_file(self._root, path, LIMITS.part_bytes), path, _shown(self._root, path))
            if len(self._shards) == LIMITS.parts:
                del self._shards[next(iter(self._shards))]
            self._shards[path] = shards
        return shards


def list_generations(root: str) -> tuple[int, ...]:
    """Return the numbers of the generations in a dataset's folder, in order; none if it holds no dataset."""
    try:
        names = storage_at(root).list("manifests")
    except OSError as error:
        raise InputError(f"{_shown(root, 'manifests')}: cannot be read: {error.strerror}") from error
    return numbers_in(names)


def numbers_in(names: Iterable[str]) -> tuple[int, ...]:
    numbers = (int(match[1]) for name in names if (match := _GENERATION_NAME.fullmatch(name)))
    return tuple(sorted(number for number in numbers if number))


def replacements(parents: Mapping[int, int | None]) -> dict[int, int]:
    """Return by which generation each one was replaced that was, of the parents of those whose manifests are read."""
    found: dict[int, int] = {}
    line: list[int] = []
    for number, parent in sorted(parents.items()):
        if parent is None:
            found |= dict.fromkeys(line, number)
            line = []
        line.append(number)
    return found


def no_dataset(root: str) -> InputError:
    """Return the error of a path that is no dataset, with what reads it or makes one of it."""
    if not is_store_url(root) and not os.path.lexists(root):
        return no_such_path(root, os.fsencode(os.path.dirname(root) if os.path.isabs(root) else os.getcwd()))
    if not is_store_url(root) and os.path.isfile(root):
        folder, name = os.path.split(root)
        ways = [f"see its records: {Command('inspect', root)}"] if is_shard_path(name) else []
        if storage_at(folder or ".").lies_at("manifest.json"):
            ways.append(f"open its folder: {shell_path(folder or '.')}")
        return InputError(
            f"{printable_path(root)}: a file, not the folder of a dataset; {' or '.join(ways)}".rstrip("; ")
        )
    said = f"{printable_path(root)}: no dataset: it has neither manifests/ nor manifest.json"
    first = first_record_file(root)
    if first is None:
        return InputError(said)
    return InputError(
        f"{said}, but TFRecord files. To make a dataset of them, without changing them: "
        f"{Command('adopt', root)}; inspect and verify also take a single file: {shell_path(os.path.join(root, first))}"
    )


def copy_in_part(root: str) -> str | None:
    """Return what is wrong with a folder that has a dataset's `manifest.json`, and no `manifests/`; None for others."""
    try:
        read_manifest(root)
    except (InputError, DamageError):
        return None
    command = "" if is_store_url(root) else f": {Foreign('cp', '-r', 'DATASET/.', root)}"
    return (
        f"{printable_path(root)}: manifests/ is missing beside manifest.json: this is a copy of a dataset without its "
        f"folders, which can be read, and not written to; copy the whole folder{command}"
    )


def first_record_file(root: str) -> str | None:
    """Return the first name of a folder's own files that are TFRecord files by their names; None of a store's."""
    if is_store_url(root):
        return None
    try:
        with os.scandir(root) as entries:
            return min((one.name for one in entries if is_shard_path(one.name) and one.is_file()), default=None)
    except OSError:
        return None


def read_manifest(root: str, generation: int | None = None, parts: PartCache | None = None) -> Manifest:
    """Return the manifest of a generation, by default of the latest; `parts` are those of others that were read."""
    known, path = _place_of(root, generation)
    manifest = _read(root, path, parts)
    _check_number(root, path, manifest, known[-1] if known and generation is None else generation)
    return manifest


def _place_of(root: str, generation: int | None) -> tuple[tuple[int, ...], str]:
    """Return the numbers of all generations, and where the manifest of one is, by default of the latest."""
    known = list_generations(root)
    if not known:
        if not storage_at(root).lies_at("manifest.json"):
            raise no_dataset(root)
        return known, "manifest.json"
    wanted = known[-1] if generation is None else generation
    if wanted not in known:
        choices = f"{known[0]} to {known[-1]}" if len(known) > 1 else str(known[0])
        raise InputError(f"{printable_path(root)}: no generation {wanted}: it holds {choices}")
    return known, generation_file("manifests", wanted, "json")


def _check_number(root: str, path: str, manifest: Manifest, wanted: int | None) -> None:
    if wanted in (None, manifest.generation):
        return
    if path == "manifest.json":
        raise InputError(f"{printable_path(root)}: no generation {wanted}: it holds {manifest.generation}")
    raise DamageError(f"{_shown(root, path)}: it states generation {manifest.generation}")


@dataclass(frozen=True, slots=True)
class Overview:
    """A dataset's contents: `manifest` has its totals, each part as one shard; `shards` is how many a split has."""

    path: str
    manifest: Manifest
    generations: tuple[int, ...]
    shards: dict[str, int]


def read_overview(root: str, generation: int | None = None) -> Overview:
    """Return what a generation holds, by default the latest: one list and one file are read, however large it is."""
    known, path = _place_of(root, generation)
    manifest, shards = parse_overview(read_file(root, path, LIMITS.bytes), _shown(root, path))
    _check_number(root, path, manifest, generation)
    return Overview(root, manifest, known or (manifest.generation,), shards)


def read_file(root: str, path: str, limit: int) -> bytes:
    """Return the contents of a regular file of the dataset, reached by no link, of at most `limit` bytes."""
    check_regular(root, path)
    try:
        with storage_at(root).open(path) as file:
            data = file.read(limit + 1)
    except FileNotFoundError as error:  # it went since it was looked at
        raise DamageError(f"{_shown(root, path)}: missing") from error
    if len(data) > limit:
        raise DamageError(f"{_shown(root, path)}: over {limit} bytes")
    return data


def read_json_lines(root: str, path: str, *, line_limit: int = LINE_LIMIT) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each line of a file of the dataset as the object that it holds, with its number from 1."""
    for number, line in _read_lines(root, path, line_limit):
        yield number, _object_in(line, path, number)


def _read_lines(root: str, path: str, line_limit: int = LINE_LIMIT) -> Iterator[tuple[int, bytes]]:
    check_regular(root, path)
    with storage_at(root).open(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(line_limit + 1), b""), 1):
            if len(line) > line_limit:
                raise DamageError(f"{path}: line {number} is over {line_limit} bytes")
            yield number, line


def _object_in(line: bytes, path: str, number: int) -> dict[str, Any]:
    try:
        document = parse_json(line)
    except JsonError as error:
        raise DamageError(f"{path}: line {number} is not JSON") from error
    if not isinstance(document, dict) or not line.endswith(b"\n"):
        raise DamageError(f"{path}: line {number} is not a whole JSON object")
    return document


def lineage(root: str, manifest: Manifest, parts: PartCache | None = None) -> Iterator[Manifest]:
    """Yield a generation, the one that it was made from, and so on down to the one that began with nothing."""
    yield manifest
    parts = parts or PartCache(root)
    while manifest.parent is not None:
        if manifest.parent >= manifest.generation:
            path = generation_file("manifests", manifest.generation, "json")
            raise DamageError(f"{_shown(root, path)}: its parent, {manifest.parent}, is not older than itself")
        manifest = read_manifest(root, manifest.parent, parts)
        yield manifest


def is_replaced(root: str, generation: int | None) -> bool:
    """Return whether the latest generation was not made from this one, and so has its names; None never is."""
    if generation is None or list_generations(root)[-1] == generation:
        return False
    return all(manifest.generation != generation for manifest in lineage(root, read_manifest(root)))


def locate_shard(root: str, manifest: Manifest, shard: ShardEntry) -> str:
    """Return where a shard is, relative to the folder: still in staging, or else at its final path.

    For the manifest's own generation staging comes first: while a replaced dataset is published, its old shards still
    have the final names. Those of older generations are published before anything is appended to them, but for an
    append that was faster by a little: then the older one's own manifest says where they are staged.
    """
    if shard.generation == manifest.generation:
        staged = staged_file(manifest.run.staging, shard.path)
    elif storage_at(root).size(shard.path) == shard.bytes:
        staged = None
    else:
        staged = _staged_by(root, shard)
    storage = storage_at(root)
    is_there = storage.lies_at if storage.has_locks else lambda path: storage.size(path) is not None
    if staged is not None and is_there(staged):
        try:
            check_regular(root, staged)
        except DamageError:
            if is_there(staged):
                raise
        else:
            return staged
    check_regular(root, shard.path)  # if it was staged, it was published this moment
    return shard.path


def _staged_by(root: str, shard: ShardEntry) -> str | None:
    try:
        return staged_file(read_manifest(root, shard.generation).run.staging, shard.path)
    except (InputError, DamageError):  # the caller finds that the shard is missing
        return None


def check_regular(root: str, path: str) -> None:
    """Check that a path that a manifest names is a regular file of this folder, and no link out of it."""
    if is_store_url(root):
        if storage_at(root).size(path) is None:
            raise DamageError(f"{_shown(root, path)}: missing")
        return
    full = os.path.join(root, path)
    try:
        mode = os.lstat(full).st_mode
    except FileNotFoundError:
        raise DamageError(f"{_shown(root, path)}: missing") from None
    except OSError as error:
        raise DamageError(f"{_shown(root, path)}: cannot be read: {error.strerror}") from error
    inside = os.path.join(os.path.realpath(root), path)
    if stat.S_ISLNK(mode) or os.path.realpath(full) != inside:
        raise DamageError(f"{_shown(root, path)}: a link; a dataset's files are its own")
    if not stat.S_ISREG(mode):
        raise DamageError(f"{_shown(root, path)}: no regular file")


def check_own_folders(root: str) -> None:
    """Check that the folders that a dataset is written into are its own: a link would lead writes and removals out."""
    if is_store_url(root):
        return
    for name in _OWN_FOLDERS:
        path = os.path.join(root, name)
        if os.path.islink(path):
            raise linked_folder(path)


def _read(root: str, path: str, parts: PartCache | None) -> Manifest:
    data = read_file(root, path, LIMITS.bytes)
    parts = parts or PartCache(root)
    parts.named |= parts_named_in(data)
    return parse_manifest(data, _shown(root, path), parts)


def _shown(root: str, path: str) -> str:
    return printable_path(os.path.join(root, path))


# The form of a line of the lists of sources and of rejects, as `docs/format.md` states it.


_SOURCE: Final[Take[dict[str, Any]]] = object_of(
    dict,
    ("notes", "constants", "carried"),
    source=text(),
    fingerprint=text(re.compile(r"sha256:[0-9a-z]+|etag:[!-~]+|crc32c:[0-9a-f]{8}-[0-9]+")),
    **dict.fromkeys(("bytes", "files", "read", "written", "rejected", "dropped"), integer()),
    notes=mapping(integer(1)),
    constants=text(),
    carried=only(lambda value: value is True, "true"),
)
_REJECT: Final[Take[dict[str, Any]]] = object_of(
    dict,
    ("row", "line", "record", "offset", "row_group", "picture"),
    source=text(),
    split=optional(text()),
    errors=items(
        object_of(
            dict,
            column=optional(text()),
            code=choice(*CODES),
            **dict.fromkeys(("value", "expected", "message"), text()),
        )
    ),
    **dict.fromkeys(("row", "line"), integer(1)),
    **dict.fromkeys(("record", "offset", "row_group"), integer()),
    picture=text(),
)


def read_source_lines(root: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, document in _checked(root, path, _SOURCE):
        read, written, rejected, dropped = (document[key] for key in ("read", "written", "rejected", "dropped"))
        if read != written + rejected + dropped:
            raise DamageError(
                f"{path}: line {number} has rows that are not accounted for: {read} read, {written} written, "
                f"{rejected} rejected, {dropped} dropped"
            )
        yield number, document


def read_reject_lines(root: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, document in _checked(root, path, _REJECT):
        yield number, _with_errors(document, path, number)


def scan_reject_lines(root: str, path: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a reject file at a microsecond each: members that are no part of the format are let pass."""
    from msgspec import DecodeError
    from msgspec.json import Decoder

    decode = Decoder(_RejectLine).decode
    for number, line in _read_lines(root, path):
        try:
            document: Any = decode(line)
        except DecodeError:  # half a character too, which JSON may escape
            document = _taken(_object_in(line, path, number), _REJECT, path, number)
        yield _with_errors(document, path, number)


class _ErrorOfLine(TypedDict):
    column: str | None
    code: str
    value: str
    expected: str
    message: str


class _RejectLine(TypedDict):
    source: str
    split: NotRequired[str | None]
    row: NotRequired[int]
    line: NotRequired[int]
    record: NotRequired[int]
    offset: NotRequired[int]
    row_group: NotRequired[int]
    picture: NotRequired[str]
    errors: list[_ErrorOfLine]


def _with_errors(document: dict[str, Any], path: str, number: int) -> dict[str, Any]:
    if not document["errors"]:
        raise DamageError(f"{path}: line {number}: errors is empty")
    return document


def _checked(root: str, path: str, take: Take[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, document in read_json_lines(root, path):
        yield number, _taken(document, take, path, number)


def _taken(document: dict[str, Any], take: Take[dict[str, Any]], path: str, number: int) -> dict[str, Any]:
    try:
        take(document)
    except ManifestProblem as problem:
        raise DamageError(f"{path}: line {number}: {problem}") from problem
    return document


@dataclass(frozen=True, slots=True)
class GenerationInfo:
    """One generation: what it added, and what the dataset held with it.

    `records`, `shards` and `bytes` are those of the shards that it added; `total_records` and `total_bytes` those of
    all its shards. `files` and `source_bytes` are what it read. One that was replaced (`replaced_by`) can no longer be
    read: the rows are gone, its manifest is left. `functions` are the user's own steps that its parent did not have,
    `left` those that only its parent had. If its manifest cannot be read, `problem` says why, and all else is zero or
    empty.
    """

    generation: int
    parent: int | None = None
    operation: str = ""
    created: str = ""
    records: int = 0
    shards: int = 0
    bytes: int = 0
    total_records: int = 0
    total_bytes: int = 0
    rejected: int = 0
    source_format: str = ""
    files: int = 0
    source_bytes: int = 0
    sources: str | None = None
    runner: str = ""
    problem: str | None = None
    replaced_by: int | None = None
    functions: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "generation": self.generation,
            "parent": self.parent,
            "operation": self.operation or None,
            "created": self.created or None,
            "added": {"records": self.records, "shards": self.shards, "bytes": self.bytes},
            "total": {"records": self.total_records, "bytes": self.total_bytes},
            "rejected": self.rejected,
            "source": {
                "format": self.source_format or None,
                "files": self.files,
                "bytes": self.source_bytes,
                "list": self.sources,
            },
            "runner": self.runner or None,
            "replaced_by": self.replaced_by,
            "functions": list(self.functions),
            "functions_left": list(self.left),
            "problem": self.problem,
        }


def list_history(path: str | os.PathLike[str]) -> list[GenerationInfo]:
    """Return the generations of the dataset in a folder, the first one first."""
    root = os.fspath(path)
    known = list_generations(root)
    if not known:
        return [_info(read_manifest(root))]  # a lone manifest.json, or none
    history, parts, known_functions = list[GenerationInfo](), PartCache(root), dict[int, Any]()
    for number in known:
        try:
            manifest = read_manifest(root, number, parts)
            functions = known_functions[number] = manifest.conversion.get("map", [])
            before = known_functions.get(manifest.parent or 0, functions)
            other = tuple(one["name"] for one in functions if one not in before)
            left = {one["name"] for one in before} - {one["name"] for one in functions}
            history.append(replace(_info(manifest), functions=other, left=tuple(sorted(left))))
        except DamageError as error:
            history.append(GenerationInfo(number, problem=str(error)))
    by = replacements({one.generation: one.parent for one in history if one.problem is None})
    return [replace(one, replaced_by=by.get(one.generation)) for one in history]


def _info(manifest: Manifest) -> GenerationInfo:
    added = manifest.own_shards
    return GenerationInfo(
        generation=manifest.generation,
        parent=manifest.parent,
        operation=manifest.operation,
        created=manifest.run.created,
        records=sum(shard.records for shard in added),
        shards=len(added),
        bytes=sum(shard.bytes for shard in added),
        total_records=sum(split.records for split in manifest.splits.values()),
        total_bytes=sum(split.bytes for split in manifest.splits.values()),
        rejected=manifest.counts.rejected,
        source_format=manifest.source.format,
        files=manifest.source.files,
        source_bytes=manifest.source.bytes,
        sources=manifest.source.list,
        runner=manifest.run.runner,
    )


# `stats.json` of a dataset: found where it is, and read as that of one generation.
#
# It is replaced by each generation. So what is there may be of another one, or be left out of an append's sidecars: the
# file says itself of which generation it is.


_LIMIT: Final = 1 << 30
"""Bytes: 20,000 features in ten splits, with all that can be counted, take some 300 MB."""


def read_stats(root: str, manifest: Manifest) -> Statistics | None:
    found = _read_statistics(root, manifest)
    return None if found is None else found[1]


def read_tally(root: str, manifest: Manifest) -> Tally | None:
    """Return what is counted of a generation, to which more can be added; None where nothing is."""
    found = _read_statistics(root, manifest)
    return None if found is None else found[0]


def statistics_files(tally: Tally, manifest: Manifest, memory: int = MEMORY_LIMIT) -> dict[str, bytes]:
    """Return the files by their names: none where nobody could read `stats.json`, even with values estimated."""
    assert manifest.schema is not None
    for estimated in (False, True):
        if estimated:
            tally.estimate()
        statistics = tally.statistics(manifest.schema, manifest.labels)
        data = stats_json(tally, statistics, manifest.generation)
        if len(data) <= _LIMIT and is_readable(data, memory):
            return {STATS_JSON: data, STATS_TFDV: statistics_file(statistics)}
    return {}


def _read_statistics(root: str, manifest: Manifest) -> tuple[Tally, Statistics] | None:
    storage = storage_at(root)
    if manifest.schema is None:
        return None
    for path in (staged_sidecar(manifest.run.staging, STATS_JSON), STATS_JSON):  # until it is published
        if not storage.lies_at(path):
            continue
        try:
            data = read_file(root, path, _LIMIT)
            found = parse_stats(data, manifest.generation, manifest.schema, manifest.labels)
            if found is not None:
                _check_records(found[0], manifest)
                return found
        except DamageError:
            if storage.lies_at(path):
                raise
            # another process has published it, and removed it, at this moment
        except StatsProblem as problem:
            if STATS_JSON in manifest.sidecars:
                again = f"make it again: {Command('stats', root, '--write')}"
                raise DamageError(f"{storage.path(path)}: {problem}; {again}") from problem
            # of another generation, as far as anyone knows
    return None


def _check_records(tally: Tally, manifest: Manifest) -> None:
    names = {feature.name for feature in manifest.schema or ()}
    if tally.records != {name: split.records for name, split in manifest.splits.items()}:
        raise StatsProblem("its records by split are not those of the manifest")
    if any(split.features.keys() != names for split in tally.splits.values()):
        raise StatsProblem("its features are not those of the manifest")
