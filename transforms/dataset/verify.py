"""Verify a dataset: every byte that its manifest answers for.

manifest      each generation's parses; the latest one's counts agree with each other
shard         size and CRC32C of the file; framing and both CRCs of each record; their number
records       each parses as an Example of the schema; the digest of each split
sizes         the promise on shard sizes
around        lists, rejects, sidecars, index; no file that passes for a shard and is none
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice, pairwise

from ..errors import DamageError
from ..format.checksum import add_digests
from ..format.index import index_path
from ..format.manifest import Manifest, SplitEntry
from ..format.naming import generation_file
from ..format.printable import printable_path
from .findings import Finding, Report
from .generations import list_generations, locate_shard, read_manifest
from .shard_sizes import size_breaches
from .verify_folder import list_findings, sidecar_findings, stray_findings
from .verify_shard import ShardCheck, ShardFacts, verify_shard

_MOST_GAPS = 1000

ShardMap = Callable[[Callable[[ShardCheck], ShardFacts], Iterable[ShardCheck]], Iterable[ShardFacts]]
"""Applies the function to each shard and gives the results in order: `map`, or that of a pool of workers."""


def verify_dataset(path: str | os.PathLike[str], *, run: ShardMap = map) -> Report:
    """Verify the latest generation of a dataset's folder, or one TFRecord file; `run` spreads the shards over workers.

    Raises:
        InputError: there is no dataset and no TFRecord file.
        DamageError: the latest manifest is damaged: nothing states what should be there.
    """
    root = os.fspath(path)
    if os.path.isfile(root):
        return _verify_file(root)
    manifest = read_manifest(root)
    manifests, findings, notes = _older_manifests(root, manifest)
    checks, missing = _shard_checks(root, manifest)
    facts = dict(zip((check.file for check in checks), run(verify_shard, checks), strict=True))
    findings += missing
    findings += [finding for shard in facts.values() for finding in shard.findings]
    if not missing:
        findings += _split_findings(root, manifest, facts, {older.generation: older.shard_size for older in manifests})
    findings += list_findings(root, manifest)
    unfinished = os.path.isdir(os.path.join(root, manifest.run.staging))
    around = list(sidecar_findings(root, manifest, _image_formats(manifest, facts)))
    if unfinished:
        notes.append("the last commit is not wholly published; the next command that writes to the dataset ends it")
        notes += [str(finding) for finding in around]
    else:
        findings += around
    strays, more_notes = stray_findings(root, manifests)
    return Report(
        path=printable_path(root),
        generation=manifest.generation,
        shards=len(facts),
        records=sum(shard.records for shard in facts.values()),
        bytes=sum(shard.bytes for shard in facts.values()),
        findings=tuple(findings + strays),
        notes=tuple(notes + more_notes),
    )


def _verify_file(path: str) -> Report:
    """Verify the framing of a file that belongs to no dataset."""
    root, name = os.path.split(path)
    facts = verify_shard(ShardCheck(root, name))
    note = "no manifest: that it is complete cannot be proven, as a file cut between two records looks whole"
    return Report(printable_path(path), None, 1, facts.records, facts.bytes, facts.findings, (note,))


def _older_manifests(root: str, latest: Manifest) -> tuple[list[Manifest], list[Finding], list[str]]:
    """Return every manifest that can be read, and what is wrong with the others and with their order."""
    manifests, findings = [latest], []
    known = list_generations(root)
    for number in known[:-1]:
        try:
            manifests.append(read_manifest(root, number))
        except DamageError as error:
            name = generation_file("manifests", number, "json")
            findings.append(Finding(name, str(error).rpartition(f"{name}: ")[2]))
    findings += [Finding(generation_file("manifests", number, "json"), "missing") for number in _gaps(known)]
    return manifests, findings, [] if known else ["no manifests/ folder: older generations are not known"]


def _gaps(known: Sequence[int]) -> list[int]:
    """Return the numbers that are missing, the first 1,000: a lone generation 10**18 has more than can be told."""
    missing = (n for a, b in pairwise((0, *known)) for n in range(a + 1, b))
    return list(islice(missing, _MOST_GAPS))


def _shard_checks(root: str, manifest: Manifest) -> tuple[list[ShardCheck], list[Finding]]:
    """Return what to verify of each shard, and those that are not there."""
    checks, missing = [], []
    for split in manifest.splits.values():
        bound = split.unit_bytes if manifest.compression == "none" else None
        for entry in split.shards:
            index = index_path(entry.path) if index_path(entry.path) in manifest.sidecars else None
            try:
                file = locate_shard(root, manifest, entry)
            except DamageError as error:
                missing.append(Finding(entry.path, str(error).rpartition(f"{entry.path}: ")[2]))
            else:
                checks.append(ShardCheck(root, file, entry, manifest.schema, bound, index))
    return checks, missing


def _split_findings(
    root: str, manifest: Manifest, facts: dict[str, ShardFacts], sizes: dict[int, int]
) -> Iterator[Finding]:
    """Yield what is wrong with a split as a whole, though each of its shards may be sound.

    `sizes` are the shard sizes of the generations, which may differ.
    """
    for name, split in manifest.splits.items():
        files = [locate_shard(root, manifest, entry) for entry in split.shards]
        digest = f"sum128:{add_digests(facts[file].digest for file in files):032x}"
        if digest != split.records_digest and not any(facts[file].findings for file in files):
            yield Finding(f"split {name}", f"the digest of its records is {digest}, not {split.records_digest}")
        yield from _size_findings(split, sizes)


def _size_findings(split: SplitEntry, sizes: dict[int, int]) -> Iterator[Finding]:
    for generation, entries in groupby(split.shards, key=lambda entry: entry.generation):
        if generation not in sizes:  # its manifest is damaged, which is told
            continue
        for path, reason in size_breaches(list(entries), sizes[generation], split.unit_bytes):
            yield Finding(path, reason)


def _image_formats(manifest: Manifest, facts: dict[str, ShardFacts]) -> frozenset[str] | None:
    if manifest.schema is None or "image/format" not in {feature.name for feature in manifest.schema}:
        return None
    return frozenset[str]().union(*(shard.image_formats for shard in facts.values()))
