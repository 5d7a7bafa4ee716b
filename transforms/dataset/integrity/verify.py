"""Verify a dataset: every byte that its manifest states anything about.

manifest      each generation's parses, and all its parts; the latest one's counts agree with each other
shard         size and CRC32C of the file; framing and both CRCs of each record; their number
records       each parses as an Example of the schema; the digest of each split
sizes         the promise on shard sizes
around        lists, rejects, sidecars, index; no file that passes for a shard and is none
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice, pairwise
from typing import Final

from ...errors import DamageError, InputError
from ...format.manifest.manifest import Manifest, ShardEntry, is_part_path
from ...format.manifest.naming import (
    INDEX_FOLDER,
    STAGING_FOLDER,
    generation_file,
    index_paths,
    staged_file,
    staged_sidecar,
)
from ...format.sidecars.sidecar_files import groups_of, sidecar_files
from ...format.tfrecord.framing import add_digests
from ...format.wording.hints import Command
from ...format.wording.printable import printable, printable_path
from ...observers.stats_files import STATS_FILES, STATS_JSON
from ...stores.store_url import is_store_url
from ..storage.contract import Storage
from ..storage.manifest_files import (
    PartCache,
    check_regular,
    list_generations,
    read_file,
    read_manifest,
    read_reject_lines,
    read_source_lines,
    read_tally,
    statistics_files,
)
from ..storage.object_storage import storage_at
from ..storage.opened_generation import OpenedGeneration, ShardPlace, locate_shards
from .verify_shard import Finding, Report, ShardCheck, ShardFacts, verify_shard, verify_size

_MOST_GAPS = 1000

_OF_A_PART = re.compile(r".*(manifests/shards-[0-9a-f]{32}\.json): (.*)", re.DOTALL)

ShardMap = Callable[[Callable[[ShardCheck], ShardFacts], Iterable[ShardCheck]], Iterable[ShardFacts]]
"""Applies the function to each shard and gives the results in order: `map`, or that of a pool of workers."""


def verify_dataset(path: str | os.PathLike[str], *, quick: bool = False, run: ShardMap = map) -> Report:
    """Verify the latest generation of a dataset's folder, or one TFRecord file; `run` spreads the shards over workers.

    With `quick` no record is read: only the sizes of shards are checked against the manifest, and the checksums that a
    store states (a local file system states none); lists and indexes only have to be there. Nothing is repaired, or
    changed at all. Damage is in the report; only where the latest manifest itself is damaged is it raised.
    """
    root = os.fspath(path)
    root = root.rstrip("/") if is_store_url(root) else root
    if os.path.isfile(root) or (is_store_url(root) and _is_object(root)):
        return _verify_file(root, quick=quick)
    parts = PartCache(root)
    manifest = read_manifest(root, parts=parts)
    with OpenedGeneration(root, manifest).unchanged():
        return _verify_generation(root, manifest, parts, run, quick=quick)


def _verify_generation(root: str, manifest: Manifest, parts: PartCache, run: ShardMap, *, quick: bool) -> Report:
    manifests, findings, notes = _older_manifests(root, manifest, parts)
    checks, missing = _shard_checks(root, manifest, quick=quick)
    done = map(verify_size, checks) if quick else run(verify_shard, checks)
    facts = {check.path: shard for check, shard in zip(checks, done, strict=True)}
    if not quick:
        findings += manifest_findings(root, manifests)
    findings += missing
    findings += [finding for shard in facts.values() for finding in shard.findings]
    if not missing and not quick:
        findings += _digest_findings(manifest, facts)
    findings += _size_findings(manifest, {older.generation: older.shard_size for older in manifests})
    for older in _lineage(manifest, manifests):
        findings += list_findings(root, older, quick=quick)
    unfinished = storage_at(root).lies_at(manifest.run.staging)
    around = list(sidecar_findings(root, manifest, None if quick else _image_formats(manifest, facts)))
    if unfinished:
        notes.append("the last commit is not wholly published; the next command that writes to the dataset ends it")
        notes += [str(finding) for finding in around]
    else:
        findings += around
    strays, more_notes = stray_findings(root, manifests, parts.named)
    return Report(
        path=printable_path(root),
        generation=manifest.generation,
        shards=len(facts),
        records=sum(shard.records for shard in facts.values()),
        bytes=sum(shard.bytes for shard in facts.values()),
        findings=tuple(findings + strays),
        notes=tuple(notes + more_notes),
        quick=quick,
    )


def _is_object(url: str) -> bool:
    folder, name = os.path.split(url)
    return is_store_url(folder) and storage_at(folder).size(name) is not None


def _verify_file(path: str, *, quick: bool) -> Report:
    """Verify the framing of a file that belongs to no dataset, of which a quick look cannot tell anything."""
    if quick:
        raise InputError(
            f"{printable_path(path)}: a file, of which no manifest states the size: leave --quick out, or name the "
            f"dataset's folder"
        )
    root, name = os.path.split(path)
    facts = verify_shard(ShardCheck(root, name))
    note = "no manifest: that it is complete cannot be proven, as a file cut between two records looks whole"
    return Report(printable_path(path), None, 1, facts.records, facts.bytes, facts.findings, (note,))


def _older_manifests(root: str, latest: Manifest, parts: PartCache) -> tuple[list[Manifest], list[Finding], list[str]]:
    """Return every manifest that can be read, and what is wrong with the others and with their order."""
    manifests, findings = [latest], []
    known = list_generations(root)
    for number in known[:-1]:
        try:
            manifests.append(read_manifest(root, number, parts))
        except DamageError as error:
            findings.append(_manifest_finding(generation_file("manifests", number, "json"), str(error)))
    findings = list(dict.fromkeys(findings))  # a part that several name is reported once
    notes: list[str] = []
    if not known and storage_at(root).lies_at("manifests"):
        findings.append(Finding(generation_file("manifests", latest.generation, "json"), "missing"))
    elif not known:
        notes.append("no manifests/ folder: older generations are not known")
    needed, gaps = _needed(manifests), _gaps(known)
    findings += [
        Finding(generation_file("manifests", number, "json"), "missing") for number in gaps if number in needed
    ]
    return manifests, findings, [*notes, *_notes_of_unneeded([number for number in gaps if number not in needed])]


def _manifest_finding(name: str, error: str) -> Finding:
    part = None if f"{name}: " in error else _OF_A_PART.fullmatch(error)
    return Finding(part[1], part[2]) if part else Finding(name, error.rpartition(f"{name}: ")[2])


def _notes_of_unneeded(missing: Sequence[int]) -> Iterator[str]:
    """Yield a line for each run of numbers whose manifests are gone, as `gc --keep` leaves them."""
    for _, run in groupby(enumerate(missing), key=lambda numbered: numbered[1] - numbered[0]):
        numbers = [number for _, number in run]
        first, last = (generation_file("manifests", number, "json") for number in (numbers[0], numbers[-1]))
        if len(numbers) == 1:
            yield f"{first}: missing; no other generation was made from it"
        else:
            yield f"{first} to {last}: missing; no other generation was made from them"


def _needed(manifests: Iterable[Manifest]) -> set[int]:
    shards = {shard.generation for m in manifests for split in m.splits.values() for shard in split.shards}
    return shards | {manifest.parent for manifest in manifests if manifest.parent is not None}


def _lineage(latest: Manifest, manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    known = {manifest.generation: manifest for manifest in manifests}
    manifest: Manifest | None = latest
    while manifest is not None:
        yield known.pop(manifest.generation)
        manifest = None if manifest.parent is None else known.get(manifest.parent)


def _gaps(known: Sequence[int]) -> list[int]:
    """Return the numbers that are missing, the first 1,000: a lone generation 10**18 has more than can be shown."""
    missing = (n for a, b in pairwise((0, *known)) for n in range(a + 1, b))
    return list(islice(missing, _MOST_GAPS))


def _shard_checks(root: str, manifest: Manifest, *, quick: bool) -> tuple[list[ShardCheck], list[Finding]]:
    """Return what to verify of each shard, and those that are not there."""
    storage = storage_at(root)
    entries = {shard: split.unit_bytes for split in manifest.splits.values() for shard in split.shards}
    places = list(locate_shards(root, manifest, entries))
    listed = {place.file: place.status for place in places if isinstance(place.file, str) and place.status is not None}
    crcs = storage.stated_crcs(listed) if quick else {}
    indexes, stated = _listed_indexes(storage, places), frozenset(manifest.sidecars)
    checks, missing = [], []
    for place in places:
        entry, file = place.entry, place.file
        if isinstance(file, DamageError):
            missing.append(Finding(entry.path, str(file).rpartition(f"{entry.path}: ")[2]))
            continue
        held = [_index_of(file, path, entry.path, indexes) for path in index_paths(entry.path)]
        wanted = [
            index
            for index, path in zip(held, index_paths(entry.path), strict=True)
            if path in stated or index in indexes
        ]
        if quick and not storage.has_locks:
            wanted = [index for index in wanted if index not in indexes]
        known = replace(place.status, crc32c=crcs[file]) if place.status is not None and quick else None
        bound = entries[entry] if manifest.compression == "none" else None
        checks.append(ShardCheck(root, file, entry, manifest.schema, bound, tuple(wanted), known))
    return checks, missing


def _listed_indexes(storage: Storage, places: Iterable[ShardPlace]) -> set[str]:
    """Return the paths of the indexes that there are: under their final names, and beside staged shards."""
    located = ((place.file, place.entry.path) for place in places if isinstance(place.file, str))
    folders = {_staged_index(file, shard, INDEX_FOLDER) for file, shard in located if file != shard}
    folders.add(INDEX_FOLDER)
    return {f"{folder}/{name}" for folder in sorted(folders) for name, _ in storage.entries(folder)}


def _index_of(file: str, index: str, shard: str, indexes: set[str]) -> str:
    """Return where an index of a shard is: where the shard is still staged as `file`, it may be too."""
    staged = _staged_index(file, shard, index)
    return staged if file != shard and staged in indexes else index


def _staged_index(file: str, shard: str, index: str) -> str:
    return staged_sidecar(file.removesuffix(staged_file("", shard)), index)


def _digest_findings(manifest: Manifest, facts: dict[str, ShardFacts]) -> Iterator[Finding]:
    """Yield the splits whose records are not those that the manifest states, though each of its shards may be sound.

    `facts` are by the paths that the manifest states: a shard may have been elsewhere when it was verified.
    """
    for name, split in manifest.splits.items():
        shards = [facts[entry.path] for entry in split.shards]
        digest = f"sum128:{add_digests(shard.digest for shard in shards):032x}"
        if digest != split.records_digest and not any(shard.findings for shard in shards):
            yield Finding(f"split {name}", f"the digest of its records is {digest}, not {split.records_digest}")


def _size_findings(manifest: Manifest, sizes: dict[int, int]) -> Iterator[Finding]:
    for split in manifest.splits.values():
        for generation, entries in groupby(split.shards, key=lambda entry: entry.generation):
            if generation not in sizes:  # its manifest is damaged, which is reported
                continue
            for path, reason in size_breaches(list(entries), sizes[generation], split.unit_bytes):
                yield Finding(path, reason)


def _image_formats(manifest: Manifest, facts: dict[str, ShardFacts]) -> frozenset[str] | None:
    if manifest.schema is None or "image/format" not in {feature.name for feature in manifest.schema}:
        return None
    return frozenset[str]().union(*(shard.image_formats for shard in facts.values()))


# Whether the sizes of shards keep their promise: integers only.
#
# S is the shard size; u is the largest of a framed record of the split (gzip: a member) and S/256. In a split without
# a record over S: no shard is larger than S; all but the last two are larger than S - u; if there are at least S - u
# bytes in all, none is smaller than (S - u)/2. A record over S is alone. No shard is empty. Each generation for itself.


def size_breaches(shards: Sequence[ShardEntry], shard_size: int, unit_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield the path of each shard whose size breaks the promise, and how; all are of one split and generation."""
    unit = max(unit_bytes, -(-shard_size // 256))
    least = shard_size - unit
    oversize = unit > shard_size or any(shard.records == 1 and shard.bytes > shard_size for shard in shards)
    total = sum(shard.bytes for shard in shards)
    for place, shard in enumerate(shards):
        if shard.records == 0:
            yield shard.path, "an empty shard"
        elif shard.bytes > shard_size and shard.records > 1:
            yield shard.path, f"{shard.bytes} bytes in {shard.records} records, over the shard size of {shard_size}"
        elif not oversize and place < len(shards) - 2 and shard.bytes <= least:
            yield shard.path, f"{shard.bytes} bytes, and all but the last two shards are to have more than {least}"
        elif not oversize and total >= least and 2 * shard.bytes < least:
            yield shard.path, f"{shard.bytes} bytes, and no shard is to have less than half of {least}"


# Verify what is around the shards: lists, rejects, sidecars, and files that no generation names.


_OURS: Final = re.compile(r".*\.tfrecord(\.gz)?|(manifests|sources|rejects|index)/.*", re.DOTALL)
"""Names that a dataset gives to its files: readers that glob would take such a file for a part of it."""

_ANY_FORMATS: Final = (None, ("jpeg",), ("gif",))
"""Formats for each way in which TFDS may read images: as bytes, as stills, as films."""

_ROW_COUNTS: Final = ("read", "written", "rejected", "dropped")


def list_findings(root: str, manifest: Manifest, *, quick: bool = False) -> Iterator[Finding]:
    """Yield what is wrong with a generation's lists of input files and of rejected rows; `quick`: if they are there."""
    lists = (
        (manifest.source.list, "sources.jsonl", _source_list),
        (manifest.rejects.path, "rejects.jsonl", _reject_list),
    )
    for listed, name, check in lists:
        if listed is not None:
            path = _located(root, listed, f"{manifest.run.staging}/{name}")
            look = partial(_is_there, root) if quick else partial(check, root, manifest=manifest)
            findings = list(_guarded(path, look))
            if findings and path != listed and not storage_at(root).lies_at(path):  # published meanwhile
                findings = list(_guarded(listed, look))
            yield from findings


def _located(root: str, path: str, staged: str) -> str:
    storage = storage_at(root)
    return staged if not storage.lies_at(path) and storage.lies_at(staged) else path


def _is_there(root: str, path: str) -> Iterator[str]:
    check_regular(root, path)
    yield from ()


def sidecar_findings(root: str, manifest: Manifest, image_formats: Collection[str] | None) -> Iterator[Finding]:
    """Yield what is wrong with the files for other tools; `manifest` is the latest generation.

    `image_formats` are those that occur in the records, or None if they are not known: then images may be of any.
    """
    derived = [name for name in manifest.sidecars if not name.startswith("index/") and name not in STATS_FILES]
    wanted = groups_of(derived)
    possible = _ANY_FORMATS if image_formats is None else (image_formats, None)
    choices = [sidecar_files(manifest, wanted, formats) for formats in possible]
    for name in derived:
        expected = {files[name] for files in choices if name in files}
        yield from _guarded(name, partial(_same, root, expected=expected))
    for name in sorted(choices[0].keys() - set(derived)):
        yield Finding(name, "the manifest does not list this sidecar, which follows from it")
    for name in STATS_FILES if STATS_JSON in manifest.sidecars else ():
        yield from _guarded(name, partial(_statistics, root, manifest=manifest))
    committed = generation_file("manifests", manifest.generation, "json")
    copied = {storage_at(root).read(committed)} if storage_at(root).lies_at(committed) else set()
    yield from _guarded("manifest.json", partial(_same, root, expected={manifest.to_bytes(), *copied}))


def manifest_findings(root: str, manifests: Sequence[Manifest]) -> Iterator[Finding]:
    """Yield the manifests that were changed since they were written, though they can be read."""
    for manifest in manifests:
        name = generation_file("manifests", manifest.generation, "json")
        if storage_at(root).lies_at(name):
            yield from _guarded(name, partial(_same, root, expected={manifest.to_bytes()}))


def stray_findings(
    root: str, manifests: Sequence[Manifest], parts: Collection[str] = ()
) -> tuple[list[Finding], list[str]]:
    """Return the files that no generation names: those with names of its own files, and notes on others."""
    named = _named_files(root, manifests).union(parts)
    findings, notes = [], []
    storage = storage_at(root)
    for path in sorted(path for path, _ in storage.files_below("")):
        if path in named:
            continue
        if is_part_path(path):
            gc = f"{Command('gc', root, '--delete')} removes it when it is a week old"
            notes.append(f"{path}: no generation names it; a commit left it that lost or died: {gc}")
        elif _OURS.fullmatch(path) and not os.path.basename(path).startswith("."):
            findings.append(Finding(printable_path(path), "no generation names this file: remove it, or move it away"))
        else:
            notes.append(f"{printable_path(path)}: no part of the dataset")
    for run in storage.list(STAGING_FOLDER):
        if not run.endswith(".lock"):
            path = f"{STAGING_FOLDER}/{run}"
            size = storage.size(path) or sum(size for _, size in storage.files_below(path))
            notes.append(f"{STAGING_FOLDER}/{printable_path(run)}: left by a run that did not end, {size} bytes")
    return findings, notes


def _named_files(root: str, manifests: Sequence[Manifest]) -> set[str]:
    named = {"manifest.json"}
    named |= {generation_file("manifests", number, "json") for number in list_generations(root)}
    for manifest in manifests:
        named |= {path for path in (manifest.source.list, manifest.rejects.path) if path is not None}
        named |= set(manifest.sidecars)
        shards = [shard.path for split in manifest.splits.values() for shard in split.shards]
        named.update(shards)
        named.update(STATS_FILES)  # `shardmill stats --write` leaves them too
        named.update(path for shard in shards for path in index_paths(shard))  # `shardmill index` leaves them too
    return named


def _guarded(path: str, check: Callable[[str], Iterator[str]]) -> Iterator[Finding]:
    try:
        for reason in check(path):
            yield Finding(printable_path(path), reason)
    except DamageError as error:
        yield Finding(printable_path(path), str(error).rpartition(f"{path}: ")[2])
    except OSError as error:
        yield Finding(printable_path(path), f"cannot be read: {error.strerror}")


def _same(root: str, path: str, expected: Collection[bytes]) -> Iterator[str]:
    limit = max((len(data) for data in expected), default=0)
    check_regular(root, path)
    if not expected:
        yield "does not follow from the manifest: no such sidecar belongs to this dataset"
    elif (storage_at(root).size(path) or 0) > limit or read_file(root, path, limit) not in expected:
        yield "does not agree with the manifest"


def _statistics(root: str, path: str, manifest: Manifest) -> Iterator[str]:
    check_regular(root, path)
    try:
        tally = read_tally(root, manifest)
    except DamageError:
        if path == STATS_JSON:
            raise
        return  # nothing is left to compare the other file with
    if tally is None:
        yield "is not of this generation"
    else:
        yield from _same(root, path, {statistics_files(tally, manifest)[path]})


def _source_list(root: str, path: str, manifest: Manifest) -> Iterator[str]:
    totals: Counter[str] = Counter()
    stated = {key: getattr(manifest.counts, key) for key in _ROW_COUNTS}
    stated |= {"files": manifest.source.files, "bytes": manifest.source.bytes}
    for _, document in read_source_lines(root, path):
        if "carried" not in document:
            totals.update({key: document[key] for key in stated})
    for key, count in stated.items():
        if totals[key] != count:
            what = f"rows {key}" if key in _ROW_COUNTS else key
            yield f"its lines add up to {totals[key]} {what}, the manifest states {count}"


def _reject_list(root: str, path: str, manifest: Manifest) -> Iterator[str]:
    by_code: Counter[str] = Counter()
    records = 0
    for _, document in read_reject_lines(root, path):
        records += 1
        by_code.update({error["code"] for error in document["errors"]})
    if records != manifest.rejects.records:
        yield f"{records} rejected rows, the manifest states {manifest.rejects.records}"
    elif dict(by_code) != manifest.rejects.by_code:
        found, stated = (printable(dict(sorted(counts.items()))) for counts in (by_code, manifest.rejects.by_code))
        yield f"its rows by code are {found}, the manifest states {stated}"
