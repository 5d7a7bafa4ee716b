"""Adopt TFRecord files that any program wrote: read them all, and write a manifest beside them.

    list     the files of one folder, each in the split that its name states
    read     every record of each: CRCs, counts, sizes, where they begin, what they hold
    write    indexes and sidecars, and then the manifest, which makes a dataset of the folder

The schema is what all records were seen to hold: what an int64 means (a class, a time) is known to its writer alone.
"""

from __future__ import annotations

import os
import secrets
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from ...transforms.dataset.commit.commit_generation import Documents
from ...transforms.dataset.stage.run_lock import hold_sidecars
from ...transforms.dataset.stage.spec import tool_versions
from ...transforms.dataset.storage.contract import Storage
from ...transforms.dataset.storage.local_storage import LocalStorage
from ...transforms.dataset.storage.manifest_files import list_generations, read_manifest
from ...transforms.dataset.storage.record_file import (
    I64,
    RecordRun,
    offsets_of,
    open_regular,
    read_record_batches,
    tell_form,
)
from ...transforms.errors import DamageError, InputError, SchemaError, TargetError, UsageError
from ...transforms.format.manifest.manifest import (
    Details,
    Manifest,
    RejectSummary,
    RowCounts,
    RunInfo,
    ShardEntry,
    SourceSummary,
    SplitEntry,
)
from ...transforms.format.manifest.naming import (
    DATASET_NAME,
    DEFAULT_SHARD_NAME,
    dataset_name,
    generation_file,
    index_path,
    is_shard_path,
    is_split_name,
    shard_name_pattern,
)
from ...transforms.format.schema.schema import Schema
from ...transforms.format.sidecars.sidecar_files import index_data, sidecar_files
from ...transforms.format.tfrecord.framing import add_digests, crc32c, record_digests
from ...transforms.format.wording.hints import Command
from ...transforms.format.wording.printable import LEAST_SHARD_BYTES, counted, printable, printable_path
from ...transforms.inputs.contract.selection import Call, FileSplits
from ...transforms.inputs.contract.source import Listing
from ...transforms.inputs.files.file_names import RECORD_NAMES
from ...transforms.inputs.files.listing import list_entries
from ...transforms.recognise.evidence.names import split_in_name
from ...transforms.recognise.evidence.tfds import StatedFiles, missing_files, stated_of
from ...transforms.recognise.rules import recognise
from ...transforms.recognise.strangers.tables import only_version
from ...transforms.sources.tfrecord.schema import Observation, observe_together, places_of, widened_by, with_types
from ...transforms.stores.store_url import is_store_url

_NAME: Final = "lowercase letters, digits and _, starting with a letter"
_READ_BYTES: Final = 4 << 20
_ZEROS: Final = f"sha256:{'0' * 64}"
_SHOWN: Final = 20
_GROUPS: Final = {"tfds": ("dataset_info.json", "features.json"), "tfx": ("schema.pbtxt",)}

Run = Callable[[Callable[[str], "FileFacts"], Sequence[str]], Iterable["FileFacts"]]


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What was read of one file; `problem` is what is wrong with it, and then the rest is as far as it was read."""

    path: str
    bytes: int = 0
    crc: int = 0
    records: int = 0
    digest: int = 0
    compressed: bool = False
    offsets: I64 | None = None
    seen: Observation = field(default_factory=lambda: Observation(""))
    problem: str | None = None


def adopt_files(
    folder: str, *, name: str | None = None, split: str | None = None, run: Run = map
) -> tuple[str, Manifest, tuple[str, ...]]:
    """Make a dataset of the TFRecord files in a folder, which are not changed; return the folder, manifest and notes.

    `name` is the dataset's, by default the folder's; all files are of `split`, by default of the one that their names
    state, or else `train`. `run` is `map`, or one that works on several files at once. An error of damage names all
    damaged files.
    """
    folder = folder.rstrip("/") or folder
    if (begun := _begun(folder)) is not None:
        return folder, begun, ()
    listing, folder = _files(folder, name, split)
    splits = {os.path.basename(os.fsdecode(one.path)): one.split or split or "train" for one in listing.entries}
    names = list(splits)
    stated = stated_of([os.fsdecode(one.path) for one in listing.entries])
    look = partial(_look_at, types=stated.types)
    try:
        facts = list(run(look, [os.path.join(folder, one) for one in names]))
    except SchemaError as error:
        what, _, _ = str(error).rpartition("; ")
        raise SchemaError(f"{what}; merge them as plain bytes: {_merge(folder, '--records', 'opaque')}") from error
    _check(folder, facts)
    more = stated.compare((os.path.abspath(one.path), printable_path(one.path), one.records) for one in facts)
    storage = LocalStorage(os.path.abspath(folder))
    manifest, untyped = _manifest(splits, facts, name or dataset_name(os.path.abspath(folder)), stated)
    wanted = sidecar_files(manifest, tuple(_GROUPS), None)
    there = {group for group, own in _GROUPS.items() if any(_is_of_others(storage, one, wanted) for one in own)}
    files = sidecar_files(manifest, [group for group in _GROUPS if group not in there], None)
    for one, found in zip(names, facts, strict=True):
        if found.offsets is not None:
            files[index_path(one, "binary")] = index_data(found.offsets, "binary")
    manifest = replace(manifest, sidecars=tuple(sorted(files)))
    documents = Documents(manifest)
    if (problem := documents.problem()) is not None:
        raise UsageError(f"{printable_path(folder)}: its manifest would have {problem}; adopt fewer files")
    with hold_sidecars(storage):
        storage.remove_unfinished([*files, "manifest.json", generation_file("manifests", 1, "json")])
        for path, data in files.items():
            storage.replace(path, data)
        if not documents.put(storage):
            raise TargetError(f"{printable_path(folder)}: another command has made a dataset of it at this moment")
        storage.replace("manifest.json", storage.read(generation_file("manifests", 1, "json")))
    kept = [file for group in sorted(there) for file in _GROUPS[group] if storage.lies_at(file)]
    stay = (f"{file} was there, and stays as it is" for file in kept)
    others = sorted({*filter(None, map(split_in_name, names))} - {split}) if split is not None else []
    unused = [f"names of files state splits ({', '.join(others)}), which are not used, since --split is for all files"]
    said = (*listing.recognised.warnings, *more, *untyped, *_no_examples(facts), *missing_files(names))
    return folder, manifest, (*unused[: len(others)], *said, *stay)


def _begun(folder: str) -> Manifest | None:
    """Finish an adoption that was killed when it had made the manifest, but not its copy; None where none was."""
    if is_store_url(folder) or not list_generations(folder):
        return None
    manifest = read_manifest(folder)
    if manifest.operation != "create" or not manifest.details.adopted:
        return None
    storage, copied = LocalStorage(os.path.abspath(folder)), generation_file("manifests", manifest.generation, "json")
    with hold_sidecars(storage):
        storage.remove_unfinished(["manifest.json", copied])
        if storage.lies_at("manifest.json"):
            return None
        storage.replace("manifest.json", storage.read(copied))
    return manifest


def _is_of_others(storage: Storage, name: str, wanted: Mapping[str, bytes]) -> bool:
    """Return whether a file is there, and is not what an adoption that did not end has left."""
    if storage.size(name) is None:  # it is not there, or a link or folder of others
        return storage.lies_at(name)
    return name not in wanted or storage.read(name) != wanted[name]


def _merge(folder: str, *more: str) -> Command:
    return Command("merge", folder, "-o", f"{folder}-dataset", *more)


def _files(folder: str, name: str | None, split: str | None) -> tuple[Listing, str]:
    """Return the files of a folder, each with `split` if it is given, or with the split that its name states."""
    where = printable_path(folder)
    if is_store_url(folder):
        raise TargetError(
            f"{where}: adopt works in a folder on a disk; to copy the files into a dataset: {_merge(folder)}"
        )
    if not os.path.isdir(folder):
        raise InputError(f"{where}: is no folder; adopt takes the folder that holds TFRecord files")
    if list_generations(folder) or os.path.lexists(os.path.join(folder, "manifest.json")):
        raise TargetError(f"{where}: is a dataset, with a manifest of its own: {Command('info', folder)}")
    if split is not None and not is_split_name(split):
        raise UsageError(f'--split: "{printable(split)}" is not {_NAME}')
    if name is not None and DATASET_NAME.fullmatch(name) is None:
        raise UsageError(f'--name: "{printable(name)}" is not {_NAME}')
    root = os.path.abspath(folder)
    listing = list_entries([root], os.getcwd(), RECORD_NAMES, file_format="tfrecord")
    paths = [os.path.relpath(os.fsdecode(entry.path), root) for entry in listing.entries]
    within = sorted({os.path.dirname(path) for path in paths} - {""})
    if within:
        if only_version([os.path.join(root, path) for path in paths], root) is not None:
            return _files(os.path.join(folder, within[0]), name, split)
        raise UsageError(
            f"{where}: holds TFRecord files in folders within it ({printable(within[0])}), and a dataset that is "
            f"adopted has its files beside its manifest; to copy them into a dataset, with folders such as train/ and "
            f"valid/ as splits: {_merge(folder)}"
        )
    odd = next((one for one in paths if not is_shard_path(one)), None)
    if odd is not None:
        raise UsageError(
            f"{printable_path(os.path.join(folder, odd))}: has a name that no manifest holds; rename it to letters, "
            f"digits, . _ = and -, with .tfrecord, or copy all files into a dataset: {_merge(folder)}"
        )
    linked = next((one for one in paths if os.path.islink(os.path.join(folder, one))), None)
    if linked is not None:
        raise UsageError(
            f"{printable_path(os.path.join(folder, linked))}: a link; a dataset's files are its own: move there what "
            f"it leads to, or copy all files into a dataset: {_merge(folder)}"
        )
    one = str(Command("adopt", folder, "--split", "train"))
    how = FileSplits(None if split is None else "none", one_split=one, call=Call("merge", f"{folder}-dataset"))
    return recognise(listing, [root], "/", how), folder


def _look_at(path: str, types: Mapping[str, str]) -> FileFacts:
    shown = printable_path(path)
    facts = FileFacts(path, seen=Observation(shown, types=types))
    try:
        size = crc = 0
        with open_regular(path, shown) as file:
            compressed = tell_form(file, 0) is not None
        with open_regular(path, shown) as file:
            while piece := file.read(_READ_BYTES):
                size, crc = size + len(piece), crc32c(piece, crc)
        counts = _Counts(facts.seen)
        offsets = offsets_of(counts.of(read_record_batches(path)))
        facts.seen._decoder = None
        return replace(
            facts, bytes=size, crc=crc, records=counts.records, digest=counts.digest, compressed=compressed,
            offsets=None if compressed else offsets,
        )  # fmt: skip
    except DamageError as error:
        return replace(facts, problem=str(error))
    except OSError as error:
        raise InputError(f"{shown}: cannot be read: {error.strerror}") from error


@dataclass(slots=True)
class _Counts:
    """Counts the records that pass, and looks at what they hold."""

    seen: Observation
    records: int = 0
    digest: int = 0

    def of(self, runs: Iterable[RecordRun]) -> Iterable[RecordRun]:
        for run in runs:
            self.records += len(run)
            sizes = run.payloads.ends - run.payloads.starts
            self.digest = add_digests((self.digest, record_digests(sizes, run.crcs)))
            self.seen.add(run.payloads, places_of(run))
            yield run


def _check(folder: str, facts: Sequence[FileFacts]) -> None:
    damaged = [found.problem for found in facts if found.problem is not None]
    if damaged:
        more = [f"and {len(damaged) - _SHOWN:,} more"] * (len(damaged) > _SHOWN)
        lines = "\n  ".join([*damaged[:_SHOWN], *more])
        raise DamageError(
            f"{printable_path(folder)}: {counted(len(damaged), 'file')} of {len(facts):,} cannot be read to the end; "
            f"copy what is intact, and adopt that: {Command('salvage', 'FILE', '-o', 'FOLDER')}\n  {lines}"
        )
    empty = [found.path for found in facts if not found.records]
    if empty:
        names = ", ".join(map(printable_path, empty[:_SHOWN]))
        raise UsageError(f"{names}: {'holds' if len(empty) == 1 else 'hold'} no record; remove it, or move it away")
    forms = {found.compressed: found.path for found in facts}
    if len(forms) > 1:
        raise UsageError(
            f"{printable_path(forms[True])} is compressed, and {printable_path(forms[False])} is not; a dataset is one "
            f"or the other: {_merge(folder)} makes it so"
        )
    foreign = [found.path for found in facts if found.seen.is_foreign]
    if 0 < len(foreign) < len(facts):
        names, others = ", ".join(map(printable_path, foreign[:_SHOWN])), len(facts) - len(foreign)
        raise SchemaError(
            f"{names}: none of {'its' if len(foreign) == 1 else 'their'} records is a tf.train.Example, and "
            f"{counted(others, 'file')} beside {'it' if len(foreign) == 1 else 'them'} hold Examples; move "
            f"{'it' if len(foreign) == 1 else 'them'} elsewhere, or merge all as plain bytes: "
            f"{_merge(folder, '--records', 'opaque')}"
        )
    kinds: dict[str, tuple[str, str]] = {}
    for found in facts:
        for feature, seen in found.seen.features.items():
            kind, path = kinds.setdefault(feature, (seen.kind, found.path))
            if kind != seen.kind:
                raise SchemaError(
                    f'feature "{printable(feature)}" holds {kind} values in {printable_path(path)} and {seen.kind} '
                    f"values in {printable_path(found.path)}; such files are two datasets: move one kind elsewhere"
                )


def _no_examples(facts: Sequence[FileFacts]) -> Iterator[str]:
    for found in [one for one in facts if one.seen.bad and not one.seen.is_foreign][:_SHOWN]:
        they = "is" if found.seen.bad == 1 else "are"
        yield (
            f"{printable_path(found.path)}: {found.seen.bad:,} of {counted(found.records, 'record')} {they} no "
            f"tf.train.Example, first {found.seen.first_bad}; without {'it' if found.seen.bad == 1 else 'them'} there "
            f"would be a schema"
        )


def _schema(
    facts: Sequence[FileFacts], stated: StatedFiles
) -> tuple[Schema | None, dict[str, tuple[str, ...]], list[str]]:
    """Return the schema of all records, None where any of them is no Example; else as `with_types` does."""
    if any(found.seen.bad for found in facts):
        return None, {}, []
    seen = [found.seen for found in facts]
    schema, labels, untyped = with_types(observe_together(seen, "").schema(), seen, stated.features)
    return schema, labels, [*untyped, *widened_by(seen)]


def _manifest(
    by_name: Mapping[str, str], facts: Sequence[FileFacts], name: str, stated: StatedFiles
) -> tuple[Manifest, list[str]]:
    largest = max(LEAST_SHARD_BYTES, *(found.bytes for found in facts))
    shards: dict[str, list[tuple[ShardEntry, int]]] = defaultdict(list)
    for (one, split), found in zip(by_name.items(), facts, strict=True):
        entry = ShardEntry(one, 1, found.records, found.bytes, f"{found.crc:08x}")
        shards[split].append((entry, found.digest))
    splits = {
        key: SplitEntry(
            records=sum(entry.records for entry, _ in some),
            bytes=sum(entry.bytes for entry, _ in some),
            unit_bytes=largest,
            records_digest=f"sum128:{add_digests(digest for _, digest in some):032x}",
            shards=tuple(entry for entry, _ in some),
        )
        for key, some in sorted(shards.items())
    }
    records = sum(entry.records for entry in splits.values())
    (schema, labels, untyped), run_id = _schema(facts, stated), secrets.token_hex(8)
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    # files of other kinds stay in the dataset's folder, and may be what an adoption that was killed has left
    manifest = Manifest(
        generation=1,
        parent=None,
        operation="create",
        name=name,
        version="1.0.0",
        order="task",
        compression="gzip" if facts[0].compressed else "none",
        shard_size=largest,
        shard_name=_shard_name(splits),
        config_fingerprint=_ZEROS,
        schema_fingerprint=None if schema is None else schema.fingerprint(),
        source=SourceSummary("tfrecord", len(facts), sum(found.bytes for found in facts), None),
        counts=RowCounts(records, records, 0, 0),
        rejects=RejectSummary(None, 0),
        schema=schema,
        labels=labels,
        narrowed=(),
        splits=splits,
        sidecars=(),
        run=RunInfo(created, run_id, str(uuid.uuid4()), f".staging/{run_id}", _ZEROS, "local", tool_versions()),
        details=Details(adopted={"files": len(facts)}),
    )
    return manifest, untyped


def _shard_name(splits: dict[str, SplitEntry]) -> str:
    """Return how shards are called that are appended: no file that is there has, or gets in the way of, such a name."""
    pattern = shard_name_pattern(DEFAULT_SHARD_NAME)
    taken = any(pattern.fullmatch(shard.path) for split in splits.values() for shard in split.shards)
    return f"{DEFAULT_SHARD_NAME}-added" if taken else DEFAULT_SHARD_NAME
