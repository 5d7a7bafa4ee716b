"""Verify what is around the shards: lists, rejects, sidecars, and files that no generation names."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Final

from ...errors import DamageError
from ...format.manifest.manifest import Manifest
from ...format.manifest.naming import STAGING_FOLDER, generation_file, index_paths
from ...format.manifest.parts import is_part_path
from ...format.sidecars.sidecar_files import groups_of, sidecar_files
from ...format.wording.hints import Command
from ...format.wording.printable import printable, printable_path
from ...statistics.stats_json import STATS_FILES, STATS_JSON
from ..generations.list_lines import read_reject_lines, read_source_lines
from ..generations.manifest_files import check_regular, list_generations, read_file
from ..generations.statistics_file import read_tally, statistics_files
from ..storage.storage_at import storage_at
from .findings import Finding

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
    """Return the files that no generation names: those that pass for a part of the dataset, and notes on others.

    `parts` are those of all the generations' manifests.
    """
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
    """Check that the figures are of the records that the manifest states, and follow from what was counted."""
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
