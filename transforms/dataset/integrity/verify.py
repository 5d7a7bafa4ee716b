"""Verify a dataset: every byte that its manifest answers for.

manifest      each generation's parses, and all its parts; the latest one's counts agree with each other
shard         size and CRC32C of the file; framing and both CRCs of each record; their number
records       each parses as an Example of the schema; the digest of each split
sizes         the promise on shard sizes
around        lists, rejects, sidecars, index; no file that passes for a shard and is none
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice, pairwise

from ...errors import DamageError, InputError
from ...format.buffers.checksum import add_digests
from ...format.manifest.manifest import Manifest
from ...format.manifest.naming import INDEX_FOLDER, generation_file, index_paths, staged_file, staged_sidecar
from ...format.wording.printable import printable_path
from ...stores.common.store_url import is_store_url
from ..generations.manifest_files import PartCache, list_generations, read_manifest
from ..generations.opened_generation import OpenedGeneration
from ..generations.shard_places import ShardPlace, locate_shards
from ..storage.contract import Storage
from ..storage.storage_at import storage_at
from .findings import Finding, Report
from .shard_sizes import size_breaches
from .verify_folder import list_findings, manifest_findings, sidecar_findings, stray_findings
from .verify_shard import ShardCheck, ShardFacts, verify_shard, verify_size

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
    """Return what is wrong with a manifest, or with a part of it, as a finding of the one or the other."""
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
    """Yield the latest generation and those that it was made from, as far as their manifests can be read."""
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
    """Return what to verify of each shard, and those that are not there.

    For a quick look at a store, what its lists tell is asked no more, and checksums that they do not tell many at once.
    """
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
