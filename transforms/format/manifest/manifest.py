"""The manifest: the JSON document that states one generation of a dataset.

It is written in one canonical form (key order, spaces, one shard and one feature a line, a final newline), so that
equal generations are equal bytes, and people can read and diff them. For a split of 10,000 shards and more it names
parts, which state them. It is read strictly, since it may come from anywhere: unknown or repeated
keys, a newer format, values out of range and paths that leave the folder are refused.
`docs/format.md` describes every key.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from ...errors import DamageError
from ..batches.rows import Narrowing
from ..schema.schema import Schema
from ..wording.printable import printable
from .naming import SHARD_PATH, index_path
from .strict_json import ManifestProblem, Take, choice, integer, items, mapping, object_of, only, text

_LEAF: Final = re.compile(
    r"null|bool|u?int(8|16|32|64)|float(16|32|64)|string|binary|date|decimal\([1-9][0-9]?, -?[0-9]{1,2}\)|"
    r"(time|duration)\[(s|ms|us|ns)\]|timestamp\[(s|ms|us|ns)(, [A-Za-z0-9_+:/-]{1,64})?\]"
)
"""The types that hold no other types, as text."""

_DEEPEST: Final = 32
"""Levels of a nested type: more are a mistake, and would take a reader's stack."""


@dataclass(frozen=True, slots=True)
class ColumnEntry:
    """A column of the source, and the features that hold it.

    `type` is its Arrow type: text, or an object for a nested one. `null` is how a null was written: `absent`, `mask`
    (the feature `NAME/mask` is beside it), `present` (`NAME/present`), `drop_row`, `error`, or `fill`, and then
    with `fill`, the value. `file` is `path` where it held the paths of files, whose bytes the feature holds.
    """

    name: str
    type: Any
    features: tuple[str, ...]
    null: str = "absent"
    fill: str | int | float | bool | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Details:
    """The optional members. What is None, or empty, is not there.

    `columns` are in the order of the source, `image` is the codec that has changed pictures, `checks` what was found by
    checks of the records.
    `adopted` are files of another writer, of any name and size, that are the first shards. `added` are features that
    the shards of earlier generations lack, each with the generation that added it.
    """

    columns: tuple[ColumnEntry, ...] = ()
    image: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, Any] = field(default_factory=dict)
    adopted: dict[str, Any] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        members = {one.name: getattr(self, one.name) for one in fields(self)}
        members["columns"] = column_documents(self.columns)
        return {name: value for name, value in members.items() if value}


ALL_INDEXES: Final = "index/*.offsets"
"""Stands for the index of each shard, where there are more than `MOST_NAMED` shards and all have one."""

MOST_NAMED: Final = 100


def shortened(sidecars: Sequence[str], shards: Sequence[str]) -> tuple[str, ...]:
    """Return the paths of sidecars as a manifest of these shards lists them, with one name for many indexes."""
    indexes = {index_path(path, "binary") for path in shards} if len(shards) > MOST_NAMED else set()
    if not indexes or not indexes.issubset(sidecars):
        return tuple(sidecars)
    return tuple(sorted({ALL_INDEXES, *sidecars} - indexes))


def lengthened(sidecars: Sequence[str], shards: Sequence[str]) -> tuple[str, ...]:
    if ALL_INDEXES not in sidecars:
        return tuple(sidecars)
    read = (path for path in shards if not path.startswith("manifests/"))  # the others are parts, of which none is
    named = {index_path(path, "binary") for path in read}
    return tuple(sorted(named.union(sidecars) - {ALL_INDEXES}))


def column_documents(columns: Iterable[ColumnEntry]) -> list[dict[str, Any]]:
    return [_column_document(column) for column in columns]


def _column_document(column: ColumnEntry) -> dict[str, Any]:
    document = {one.name: getattr(column, one.name) for one in fields(column)} | {"features": list(column.features)}
    if column.null == "absent":
        del document["null"]
    if column.fill is None:
        del document["fill"]
    if column.file is None:
        del document["file"]
    return document


def take_type(value: Any, depth: int = 0) -> Any:
    """Take an Arrow type: text, `{"list": FIELD}`, `{"struct": [FIELD, ...]}` or `{"map": [FIELD, FIELD]}`.

    A list of one length has its `size` beside it.
    """
    if isinstance(value, str):
        if _LEAF.fullmatch(value) is None:
            raise ManifestProblem(f' is "{printable(value)}", not a type')
        return value
    if depth == _DEEPEST:
        raise ManifestProblem(f" has more than {_DEEPEST} levels")
    size = value.get("size") if isinstance(value, dict) else None
    kinds = [key for key in value if key != "size"] if isinstance(value, dict) else []
    if kinds not in (["list"], ["struct"], ["map"]) or (size is not None and kinds != ["list"]):
        raise ManifestProblem(' is not a type: text, or an object with one of "list", "struct" and "map"')
    inner: Take[dict[str, Any]] = object_of(
        dict, name=text(), type=lambda below: take_type(below, depth + 1), nullable=only(_is_bool, "true or false")
    )
    kind, below = kinds[0], value[kinds[0]]
    if kind == "list":
        return {"list": inner(below)} | ({} if size is None else {"size": integer()(size)})
    found = items(inner)(below)
    if kind == "map" and len(found) != 2:
        raise ManifestProblem(" has not two fields, the key and the value", "map")
    return {kind: list(found)}


def _column(**members: Any) -> ColumnEntry:
    column = ColumnEntry(**members)
    if not column.features:
        raise ManifestProblem(" is empty", "features")
    if (column.null == "fill") != (column.fill is not None):
        raise ManifestProblem(" and null disagree", "fill")
    return column


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | bool | int | float)


def _part(may_lack: tuple[str, ...], **members: Take[Any]) -> Take[dict[str, Any]]:
    return object_of(dict, may_lack, **members)


_NAMES: Final = items(text())
_COUNTED: Final = ("records", "groups")
_EXAMPLES: Final = items(_part((), records=integer(1), places=lambda value: list(_NAMES(value))))

take_columns: Final[Take[tuple[ColumnEntry, ...]]] = items(
    object_of(
        _column,
        ("null", "fill", "file"),
        name=text(),
        type=take_type,
        features=_NAMES,
        null=choice("absent", "mask", "present", "drop_row", "error", "fill"),
        fill=only(_is_scalar, "a number, text, true or false"),
        file=choice("path"),
    )
)

take_details: Final[Take[Details]] = object_of(
    Details,
    ("columns", "image", "checks", "adopted", "added"),
    columns=take_columns,
    image=_part((), codec=text(), version=text()),
    adopted=_part((), files=integer(1)),
    added=mapping(integer(2)),
    checks=mapping(
        _part(
            ("not_compared", "action", "splits", "examples"),
            columns=lambda value: list(_NAMES(value)),
            **dict.fromkeys(_COUNTED, integer()),
            not_compared=choice("one split", "no value"),
            action=choice("drop"),
            splits=mapping(integer(1)),
            examples=lambda value: list(_EXAMPLES(value)),
        )
    ),
)


FORMAT: Final = "shardmill.manifest"
OWN_PIPELINE: Final = "beam"
"""The runner of a run that is no command's: `WriteShards` in a pipeline of the user's own."""

FORMAT_VERSION: Final = 1
"""The newest that is read and written: a manifest is of the first version that has a place for what it states."""


@dataclass(frozen=True, slots=True)
class SplitEntry:
    """One split.

    `unit_bytes` is the most that a cut between shards can miss its aim by: the largest framed record (gzip: the
    largest member), or shard_size / 256 where that is more.
    """

    records: int
    bytes: int
    unit_bytes: int
    records_digest: str
    shards: tuple[ShardEntry, ...]


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """What was read: `list` is the path of the generation's list of input files, or None where there were none."""

    format: str
    files: int
    bytes: int
    list: str | None
    skipped: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What became of the rows: read = written + rejected + dropped."""

    read: int
    written: int
    rejected: int
    dropped: int


@dataclass(frozen=True, slots=True)
class RejectSummary:
    """The rejected rows: the path of their file (None if there are none), and how many there are of each code.

    A row with several bad cells counts once in `records`, and once for each code that it has in `by_code`.
    """

    path: str | None
    records: int
    by_code: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The run that made a generation: the only part of a manifest that differs between equal runs."""

    created: str
    run_id: str
    commit_id: str
    staging: str
    source_fingerprint: str
    runner: str
    tool: dict[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One generation. `schema` is None for records that are plain bytes; `shard_size` is in bytes.

    `conversion` is the normal form of what made the dataset, empty where nothing is known of it.
    """

    generation: int
    parent: int | None
    operation: str
    name: str
    version: str
    order: str
    compression: str
    shard_size: int
    shard_name: str
    config_fingerprint: str
    schema_fingerprint: str | None
    source: SourceSummary
    counts: RowCounts
    rejects: RejectSummary
    schema: Schema | None
    labels: dict[str, tuple[str, ...]]
    narrowed: tuple[Narrowing, ...]
    splits: dict[str, SplitEntry]
    sidecars: tuple[str, ...]
    run: RunInfo
    details: Details = field(default_factory=Details)
    conversion: dict[str, Any] = field(default_factory=dict)

    @property
    def is_of_others(self) -> bool:
        """Whether no conversion has made the dataset: it was adopted, or written by a pipeline of the user's own."""
        return not self.conversion and (bool(self.details.adopted) or self.run.runner == OWN_PIPELINE)

    @property
    def columns(self) -> tuple[ColumnEntry, ...]:
        """What `details` states of columns whose features are in the schema: of others there is nothing to read."""
        known = {feature.name for feature in self.schema or ()}
        return tuple(column for column in self.details.columns if known.issuperset(column.features))

    @property
    def own_shards(self) -> tuple[ShardEntry, ...]:
        shards = (shard for split in self.splits.values() for shard in split.shards)
        return tuple(shard for shard in shards if shard.generation == self.generation)

    def to_bytes(self) -> bytes:
        """Return the canonical document without its parts. Raises `ValueError` where a number is not finite."""
        return _document(self, {name: _entries(split) for name, split in self.splits.items()})

    def to_documents(self) -> tuple[bytes, dict[str, bytes]]:
        """Return the document of `to_bytes`, and its parts by their paths."""
        parts = {name: list(in_parts(split.shards)) for name, split in self.splits.items()}
        main = _document(self, {name: [part.entry for part in found] for name, found in parts.items()})
        return main, {part.entry.path: part.data for found in parts.values() for part in found}


_dump: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _members(pairs: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{_dump(key)}: {_dump(value)}" for key, value in pairs)


def _fields(value: Any, *names: str) -> list[tuple[str, Any]]:
    return [(name, getattr(value, name)) for name in names]


def _objects(documents: Iterable[Mapping[str, Any]]) -> str:
    lines = [_dump(document) for document in documents]
    return "[" + ",".join(f"\n  {line}" for line in lines) + "]"


def _entries(split: SplitEntry) -> list[PartEntry]:
    return [part.entry for part in in_parts(split.shards)]


def _split_text(split: SplitEntry, parts: Sequence[PartEntry]) -> str:
    head = _members(_fields(split, "records", "bytes", "unit_bytes", "records_digest"))
    if parts:
        head += f', "parts": {_objects(map(asdict, parts))}'
    return f'{{{head}, "shards": {shard_list(behind_parts(split.shards))}}}'


def _details(details: Details) -> list[str]:
    document = details.to_json()
    if "columns" in document:
        columns = f'"columns": {_objects(document.pop("columns"))}'
        rest = f", {_members(document.items())}" if document else ""
        return [f'"details": {{{columns}{rest}}}']
    return [_members([("details", document)])] if document else []


def _document(manifest: Manifest, parts: Mapping[str, Sequence[PartEntry]]) -> bytes:
    # A name that is not valid Unicode holds lone surrogates; `backslashreplace` writes them as JSON's own escape.
    return ("{" + ",\n ".join(_lines(manifest, parts)) + "}\n").encode("utf-8", "backslashreplace")


def _lines(manifest: Manifest, parts: Mapping[str, Sequence[PartEntry]]) -> list[str]:
    """Return the lines of the document that a comma joins; each holds one or several members."""
    head = [("format", FORMAT), ("format_version", FORMAT_VERSION)]
    head += _fields(manifest, "generation", "parent", "operation")
    narrowed = [{key.removesuffix("_"): value for key, value in asdict(entry).items()} for entry in manifest.narrowed]
    splits = ",\n  ".join(
        f"{_dump(name)}: {_split_text(split, parts[name])}" for name, split in manifest.splits.items()
    )
    paths = [shard.path for split in manifest.splits.values() for shard in split.shards]
    run = _members(_fields(manifest.run, "created", "run_id", "commit_id", "staging"))
    run_more = _members(_fields(manifest.run, "source_fingerprint", "runner", "tool"))
    return [
        _members(head),
        _members(_fields(manifest, "name", "version", "order", "compression", "shard_size", "shard_name")),
        _members(_fields(manifest, "config_fingerprint", "schema_fingerprint")),
        _members([("source", asdict(manifest.source))]),
        _members([("counts", asdict(manifest.counts))]),
        _members([("rejects", asdict(manifest.rejects))]),
        '"schema": ' + ("null" if manifest.schema is None else _objects(manifest.schema.to_json())),
        _members([("labels", manifest.labels)]),
        _members([("narrowed", narrowed)]),
        *_details(manifest.details),
        *([_members([("conversion", manifest.conversion)])] if manifest.conversion else []),
        f'"splits": {{{splits}}}',
        _members([("sidecars", shortened(manifest.sidecars, paths))]),
        f'"run": {{{run},\n  {run_more}}}, "end": true',
    ]


# The parts of a manifest: every full 10,000 shards of a split are in a document of their own.
#
#     shards 0 to 9,999         manifests/shards-3b6f0a4c2e119b517c1e4c390b7e6d52.json
#     shards 10,000 to 19,999   manifests/shards-8a1c5d5f9e0b47d2a6630f5e2b9c4d17.json
#     shards 20,000 to 23,456   the manifest itself, which names the two
#
# What is in which part follows from the list of shards alone, and the name of a part from its bytes. So an append
# names the parts of the generation before, with no need to know of them, and a part that was read once is known for
# good: no other bytes can have its name.


# A shard as manifests state it, and the line that it takes there.


_dump_part: Final = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """One shard. `crc32c` is of the whole file, as 8 lower-case hex digits; `generation` is the one that added it."""

    path: str
    generation: int
    records: int
    bytes: int
    crc32c: str


def shard_list(shards: Iterable[ShardEntry]) -> str:
    return f"[{','.join(map(_line, shards))}]"


def _line(shard: ShardEntry) -> str:
    """Return the line of a shard; not by way of a dict, as there may be a million."""
    return (
        f'\n  {{"path": {_dump_part(shard.path)}, "generation": {shard.generation}, "records": {shard.records}, '
        f'"bytes": {shard.bytes}, "crc32c": {_dump_part(shard.crc32c)}}}'
    )


# The shards of a manifest in its canonical form, read by a pattern: a million of them in seconds.
#
#     "shards": [                                                                              "shards": ["<mark>:0"]
#       {"path": "train-00000.tfrecord", "generation": 1, "records": 9, "bytes": 63706, ...},  ──▶
#       {"path": "train-00001.tfrecord", "generation": 1, "records": 8, ...}]
#
# A list that is written exactly so, and whose values are all in range, is taken out of the document before that is
# parsed, and a mark nobody can foresee put in its place. Any other list stays, for the parser to take or to refuse
# with its reason. What is between the brackets are whole JSON objects, so the document is valid if it was before; and
# no string can hold such a list, as a string has no bare line end.


_NUMBER: Final = rb"[1-9][0-9]{0,17}"  # from 1, and below 2**63 whatever the digits
_VALUES: Final = (SHARD_PATH.pattern.encode(), _NUMBER, _NUMBER, _NUMBER, rb"[0-9a-f]{8}")
_LINE: Final = rb'\n  \{"path": "%b", "generation": %b, "records": %b, "bytes": %b, "crc32c": "%b"\}'
_ONE: Final = re.compile(_LINE % tuple(b"(%b)" % value for value in _VALUES))
_LINES: Final = rb"\[(%b(?:,%b)*+)\]" % (_LINE % _VALUES, _LINE % _VALUES)
_LIST: Final = re.compile(rb'"shards": ' + _LINES)
_LIST_ALONE: Final = re.compile(_LINES)


@dataclass(frozen=True, slots=True)
class ShardLists:
    """A document without the lists of shards that are written in the canonical form, and those that are not taken yet.

    One that nobody takes was where no list of shards belongs.
    """

    document: bytes
    lists: dict[str, tuple[ShardEntry, ...]] = field(default_factory=dict)

    def take(self, value: object) -> tuple[ShardEntry, ...] | None:
        """Return the list that a value of the parsed document stands for, once; None for any other value."""
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
            return self.lists.pop(value[0], None)
        return None


def take_shard_lists(data: bytes) -> ShardLists:
    mark = secrets.token_hex(16)
    lists: dict[str, tuple[ShardEntry, ...]] = {}

    def take(found: re.Match[bytes]) -> bytes:
        name = f"{mark}:{len(lists)}"
        lists[name] = tuple(map(_entry, _ONE.finditer(data, found.start(1), found.end(1))))
        return f'"shards": ["{name}"]'.encode()

    return ShardLists(_LIST.sub(take, data), lists)


def read_shard_list(data: bytes, start: int, end: int) -> tuple[ShardEntry, ...] | None:
    """Return the shards of a list that is written in the canonical form from `start` to `end`; None for all else."""
    found = _LIST_ALONE.fullmatch(data, start, end)
    return None if found is None else tuple(map(_entry, _ONE.finditer(data, found.start(1), found.end(1))))


def _entry(line: re.Match[bytes]) -> ShardEntry:
    path, generation, records, size, crc32c = line.groups()
    return ShardEntry(path.decode(), int(generation), int(records), int(size), crc32c.decode())


PART_SHARDS: Final = 10_000
"""1.1 MB, read in 30 ms: a dataset of fewer shards is one document, and one of a million names a hundred."""

_HEAD: Final = '{"format": "shardmill.shards", "format_version": 1, "shards": '
_END: Final = ', "end": true}\n'
_PATH: Final = re.compile(r"manifests/shards-([0-9a-f]{32})\.json")
_NAMED: Final = re.compile(rb'"(manifests/shards-[0-9a-f]{32}\.json)"')


@dataclass(frozen=True, slots=True)
class ManifestLimits:
    """The most bytes of a manifest and of a part, and parts of a manifest: what is larger is refused before it is read.

    A million shards in one document take about 110 MB; a part has room for names as long as file systems have them.
    The parts are two million shards, which take 0.6 GB in memory.
    """

    bytes: int = 128 << 20
    part_bytes: int = 4 << 20
    parts: int = 200


LIMITS: Final = ManifestLimits()


@dataclass(frozen=True, slots=True)
class PartEntry:
    """One part, as the manifest names it: its path, and how many shards, records and bytes of shards it states."""

    path: str
    shards: int
    records: int
    bytes: int

    @classmethod
    def of(cls, path: str, shards: Sequence[ShardEntry]) -> PartEntry:
        return cls(path, len(shards), sum(shard.records for shard in shards), sum(shard.bytes for shard in shards))


@dataclass(frozen=True, slots=True)
class Part:
    """One part, as it is written."""

    entry: PartEntry
    data: bytes


def is_part_path(path: str) -> bool:
    """Return whether a part may have this path.

    >>> is_part_path("manifests/shards-3b6f0a4c2e119b517c1e4c390b7e6d52.json"), is_part_path("manifests/00000001.json")
    (True, False)
    """
    return _PATH.fullmatch(path) is not None


def parts_named_in(document: bytes) -> set[str]:
    """Return the paths of all parts that a manifest names, whatever else is in it.

    >>> parts_named_in(b'{"path": "manifests/shards-3b6f0a4c2e119b517c1e4c390b7e6d52.json", "sh')
    {'manifests/shards-3b6f0a4c2e119b517c1e4c390b7e6d52.json'}
    """
    return {path.decode() for path in _NAMED.findall(document)}


def in_parts(shards: Sequence[ShardEntry]) -> Iterator[Part]:
    """Yield the parts of a split's shards, in order; those after the last full part are in the manifest."""
    for start in range(0, len(shards) - PART_SHARDS + 1, PART_SHARDS):
        yield _part_of(shards[start : start + PART_SHARDS])


def behind_parts(shards: Sequence[ShardEntry]) -> Sequence[ShardEntry]:
    return shards[len(shards) // PART_SHARDS * PART_SHARDS :]


def parse_part(data: bytes, path: str, name: str, *, most_bytes: int = LIMITS.part_bytes) -> tuple[ShardEntry, ...]:
    """Raise `DamageError` where `path` was not made of these bytes; `name` is how messages call the file."""
    if len(data) > most_bytes:
        raise DamageError(f"{name}: over {most_bytes} bytes")
    if path != _path(data):
        raise DamageError(f"{name}: damaged: its bytes are not those that it is named by")
    head, end = _HEAD.encode(), _END.encode()
    shards = None
    if data.startswith(head) and data.endswith(end):
        shards = read_shard_list(data, len(head), len(data) - len(end))
    if shards is None or len(shards) != PART_SHARDS:
        raise DamageError(f"{name}: no list of {PART_SHARDS:,} shards in the canonical form")
    return shards


def _part_of(shards: Sequence[ShardEntry]) -> Part:
    data = f"{_HEAD}{shard_list(shards)}{_END}".encode()
    return Part(PartEntry.of(_path(data), shards), data)


def _path(data: bytes) -> str:
    return f"manifests/shards-{hashlib.sha256(data).hexdigest()[:32]}.json"
