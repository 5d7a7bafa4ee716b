"""The manifest: the JSON document that states one generation of a dataset.

It is written in one canonical form (key order, spaces, one shard and one feature a line, a final newline), so that
equal generations are equal bytes, and people can read and diff them. For a split of 10,000 shards and more it names
parts, which state them: see `parts`. It is read strictly, since it may come from anywhere: unknown or repeated
keys, a newer format, values out of range and paths that leave the folder are refused.
`docs/format.md` describes every key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ..batches.rows import Narrowing
from ..schema.schema import Schema
from .details import ColumnEntry, Details, shortened
from .parts import PartEntry, behind_parts, in_parts, shard_list
from .parts import ShardEntry as ShardEntry

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
