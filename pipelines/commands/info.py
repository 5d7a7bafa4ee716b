"""The command `info`: describe a dataset from its manifest alone, or TFRecord files without a manifest.

a dataset       name, generations, splits, schema with nulls, labels, what reads it        no record is read
anyone's files  number, bytes, compression; features of the first records of the first file
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table

from ...transforms.dataset.integrity.garbage import staged_by_dead_runs
from ...transforms.dataset.stage.run_lock import is_held
from ...transforms.dataset.storage.manifest_files import Overview, first_record_file, read_overview
from ...transforms.dataset.storage.object_storage import storage_at
from ...transforms.dataset.storage.record_file import read_record_batches
from ...transforms.errors import InputError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.manifest.naming import STAGING_FOLDER
from ...transforms.format.schema.schema import Schema
from ...transforms.format.tfrecord.gzip_members import sniff_form
from ...transforms.format.wording.hints import Command
from ...transforms.format.wording.printable import counted, format_size, more, printable, printable_path
from ...transforms.inputs.files.open_file import open_file
from ...transforms.sources.tfrecord.schema import InputFile, Observation, find_inputs, is_dataset, places_of, widened_by
from ...transforms.stores.store_url import is_store_url
from ..config.sections import image_text
from ..outcomes.summary import FOUND_BY, rule_text
from ..screens.summary_screen import MOST_FEATURES, name_text, nulls_text, schema_table

if TYPE_CHECKING:
    from ..screens.summary_screen import Screen

_LOOKED_AT: Final = 1000
"""The number of records that are examined in the first file."""

_SHOWN_LABELS: Final = 20

_MANY_SHARDS: Final = 8
"""Fewer shards are no trouble to a reader, however small they are."""

_READ_PLAIN: Final = ("tf.data", "Keras", "TFX", "grain", "tfrecord (PyTorch)", "shardmill.pipelines.open_dataset")
_READ_GZIP: Final = ("tf.data", "TFX", "tfrecord (PyTorch)", "shardmill.pipelines.open_dataset")


@dataclass(frozen=True, slots=True)
class ForeignFiles:
    """TFRecord files that no manifest describes: what the first records of the first of them hold, if any are there.

    `problem` is what these are, where they are not Examples; `widened` says which of them made the schema wider. Of
    shards, `stated` are the records that the manifest of their `dataset` states.
    """

    path: str
    files: int
    bytes: int
    compression: str | None
    records: int
    schema: Schema | None
    problem: str | None
    dataset: str | None = None
    stated: int | None = None
    widened: tuple[str, ...] = ()


def info_command(path: str, screen: Screen) -> None:
    path = path.rstrip("/") or path
    if is_dataset(os.fsencode(path)) or _is_lone_manifest(path):
        overview = read_overview(path)
        if screen.as_json:
            screen.data(_document(overview))
        else:
            _print_dataset(overview, screen)
        return
    stopped = _stopped_text(path)
    if stopped is not None:
        raise InputError(stopped)
    foreign = look_at_files(path)
    if screen.as_json:
        screen.data(_foreign_document(foreign))
    else:
        _print_foreign(foreign, screen)


def _stopped_text(path: str) -> str | None:
    """Return which runs stopped in a folder before anything was committed, and what to do; None if there are none."""
    if is_store_url(path) or not os.path.isdir(os.path.join(path, STAGING_FOLDER)):
        return None
    from ...transforms.dataset.stage.task_stager import count_results
    from ..prepare.staged_plan import read_staged_plan
    from ..screens.terminal import shown_path, what_may_go

    storage, where = storage_at(path), shown_path(path)
    plans = [plan for name in storage.list(STAGING_FOLDER) if (plan := read_staged_plan(storage, name)) is not None]
    if not plans:
        return None
    if any(is_held(storage, plan.run_id) for plan in plans):
        return f"{where}: holds no dataset yet: a run is writing to it"
    done = ", ".join(
        f"{min(count_results(storage, plan.staging), plan.tasks):,} of {counted(plan.tasks, 'task')} done"
        for plan in plans
    )
    runs = "a run" if len(plans) == 1 else f"{len(plans):,} runs"
    size = format_size(staged_by_dead_runs(storage))
    return (
        f"{where}: holds no dataset yet: {runs} stopped here ({done}; {size} staged). To resume: the same command "
        f"again; {what_may_go(path)}"
    )


def look_at_files(path: str) -> ForeignFiles:
    """Return what can be known of TFRecord files without reading all of them."""
    inputs = find_inputs([path], os.getcwd())
    files = [file for file in inputs.files if file.entry.bytes]
    total = sum(file.entry.bytes for file in inputs.files)
    if not files:
        return ForeignFiles(path, len(inputs.files), total, None, 0, None, None)
    first = files[0]
    seen = _observe(first)
    schema = seen.schema() if seen.features else None
    problem = None
    if schema is None and seen.bad:
        problem = f"they are not tf.train.Example{f', but {seen.other}' if seen.other else ''}"
    with open_file(first.entry) as opened:
        form = sniff_form(opened.read(16))
    widened, records = tuple(widened_by([seen])), seen.records + seen.bad
    found = ForeignFiles(path, len(inputs.files), total, form or "none", records, schema, problem, widened=widened)
    if len(inputs.datasets) == 1 and all(file.records is not None for file in inputs.files):
        stated = sum(file.records or 0 for file in inputs.files)
        return replace(found, dataset=inputs.datasets[0].name, stated=stated)
    return found


def readers_of(manifest: Manifest) -> list[str]:
    if manifest.compression != "none":
        return list(_READ_GZIP)
    tfds = ["TFDS"] if "dataset_info.json" in manifest.sidecars else []
    dali = ["NVIDIA DALI"] if any(path.endswith(".idx") for path in manifest.sidecars) else []
    return [_READ_PLAIN[0], *tfds, *_READ_PLAIN[1:-1], *dali, _READ_PLAIN[-1]]


def _is_lone_manifest(path: str) -> bool:
    return not is_store_url(path) and os.path.isfile(os.path.join(path, "manifest.json"))


def _observe(file: InputFile) -> Observation:
    seen = Observation(file.entry.name)
    run = next(iter(read_record_batches(os.fsdecode(file.entry.path))), None)
    if run is not None:
        seen.add(run.payloads.head(_LOOKED_AT), places_of(run))
    return seen


def _document(overview: Overview) -> dict[str, Any]:
    manifest = overview.manifest
    return {
        "path": printable_path(overview.path),
        "name": manifest.name,
        "generation": manifest.generation,
        "generations": list(overview.generations),
        "operation": manifest.operation,
        "created": manifest.run.created,
        "order": manifest.order,
        "compression": manifest.compression,
        "shard_size": manifest.shard_size,
        "splits": {
            name: {"records": split.records, "shards": overview.shards[name], "bytes": split.bytes}
            for name, split in manifest.splits.items()
        },
        **({"conversion": manifest.conversion} if manifest.conversion else {}),
        **({"image": manifest.details.image} if manifest.details.image else {}),
        **({"checks": manifest.details.checks} if manifest.details.checks else {}),
        **({"added": manifest.details.added} if manifest.details.added else {}),
        "schema": None if manifest.schema is None else manifest.schema.to_json(),
        "labels": {feature: list(names) for feature, names in manifest.labels.items()},
        "sidecars": list(manifest.sidecars),
        "readers": readers_of(manifest),
    }


def _foreign_document(found: ForeignFiles) -> dict[str, Any]:
    return {
        "path": printable_path(found.path),
        "name": None,
        "files": found.files,
        "bytes": found.bytes,
        "compression": found.compression,
        "dataset": found.dataset,
        "records": found.stated,
        "looked_at": {
            "records": found.records,
            "schema": None if found.schema is None else found.schema.to_json(),
            "problem": found.problem,
            "widened": list(found.widened),
        },
    }


def _small_shards(overview: Overview, where: str) -> str | None:
    """Return how a dataset of many small shards gets few: appends of few records make such."""
    manifest, shards = overview.manifest, sum(overview.shards.values())
    needed = sum(-(-split.bytes // manifest.shard_size) for split in manifest.splits.values())
    if manifest.details.adopted or shards < max(_MANY_SHARDS, 2 * needed):
        return None
    return (
        f"{shards:,} shards, where {needed:,} of {format_size(manifest.shard_size)} would hold all; to join them: "
        f"{Command('rebuild', where, '-o', 'FOLDER')}"
    )


def _print_dataset(overview: Overview, screen: Screen) -> None:
    from ..screens.summary_screen import print_checks, reading_lines
    from ..screens.terminal import shown_path

    manifest, where, conversion = overview.manifest, shown_path(overview.path), dict(overview.manifest.conversion)
    records = sum(split.records for split in manifest.splits.values())
    size = sum(split.bytes for split in manifest.splits.values())
    generations = f"generation {manifest.generation}"
    if len(overview.generations) > 1:
        generations += f", the latest of {len(overview.generations):,}"
    packed = "" if manifest.compression == "none" else f", {manifest.compression}"
    screen.text(f"{where}: dataset {printable(manifest.name)}, {generations}", "bold")
    shards = counted(sum(overview.shards.values()), "shard")
    screen.text(f"{counted(records, 'record')} in {shards}, {format_size(size)}{packed}")
    screen.text(f"made {manifest.run.created} (UTC) by {manifest.operation} from {printable(manifest.source.format)}")
    if manifest.splits:
        screen.text("")
        screen.table(_totals(overview))
        if (hint := _small_shards(overview, where)) is not None:
            screen.text(hint)
        if image := conversion.pop("image", None):
            screen.text(f"Pictures made ready: {image_text(image, manifest.details.image)}")
        if rule := conversion.pop("split", None):
            screen.text(f"Split {rule_text(rule)}")
        if seen := conversion.pop("recognised", None):
            screen.text(f"Splits of files: {FOUND_BY.get(seen.get('rule'), 'unknown')}")
        if manifest.order == "shuffled":
            seed = conversion.pop("shuffle", {}).get("seed", "unknown")
            of = " of what each generation added" if manifest.operation == "append" else ""
            screen.text(f"Order: random within each split{of}, by seed {seed}")
    if conversion:
        screen.text(f"Made with {printable(', '.join(_keys(conversion)))}")
    _print_schema(manifest.schema, screen, manifest.details.added)
    for feature, names in manifest.labels.items():
        shown = ", ".join(f"{printable(name)} = {number}" for number, name in enumerate(names[:_SHOWN_LABELS]))
        more = f" and {len(names) - _SHOWN_LABELS:,} more" if len(names) > _SHOWN_LABELS else ""
        screen.text(f"Labels of {name_text(feature)}: {shown}{more}")
    print_checks(screen, manifest, later=True)
    screen.text(f"\nRead by: {', '.join(readers_of(manifest))}")
    if manifest.splits:
        for line in reading_lines(where, manifest):
            screen.text(f"  {line}")


def _keys(section: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _keys(value, f"{above}{key}.")
        elif key == "map":
            yield from (f"the function {one['name']}" for one in value)
        else:
            yield f"{above}{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"


def _totals(overview: Overview) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("split", "records", "shards", "bytes"):
        table.add_column(title, justify="left" if title == "split" else "right")
    for name, split in overview.manifest.splits.items():
        table.add_row(name, f"{split.records:,}", f"{overview.shards[name]:,}", format_size(split.bytes))
    return table


def _print_schema(schema: Schema | None, screen: Screen, added: Mapping[str, int]) -> None:
    screen.text("")
    if schema is None:
        screen.text("The records are plain bytes: nothing is known of what they hold.")
        return
    screen.table(schema_table(schema, reasons=False))
    if len(schema) > MOST_FEATURES:
        screen.text(f"and {more(len(schema) - MOST_FEATURES, 'feature')}; to list all of them, add --json")
    nulls = nulls_text(schema)
    if nulls is not None:
        screen.text(nulls)
    for name, number in added.items():
        screen.text(f"{name_text(name)} is there since generation {number}, and null in older rows")


def _print_foreign(found: ForeignFiles, screen: Screen) -> None:
    from ..screens.terminal import shown_path

    where = shown_path(found.path)
    packed = f", {found.compression}" if found.compression not in (None, "none") else ""
    screen.text(f"{where}: {counted(found.files, 'TFRecord file')}, {format_size(found.bytes)}{packed}", "bold")
    if found.stated is not None:
        whose = f"{counted(found.stated, 'record')}, as the manifest of dataset {found.dataset} states"
        screen.text(f"{whose}; to see it: {Command('info', found.dataset or '')}")
        return
    count = f"; to count and check them: {Command('verify', where)}" if _is_one_file(found) else ""
    screen.text(f"No manifest says how many records there are{count}")
    if not found.records:
        screen.text("The first file holds no record.")
        return
    seen = f"The first {counted(found.records, 'record')}" if found.records > 1 else "The first record"
    if found.problem is not None:
        screen.text(f"{seen}: {found.problem}.")
    elif found.schema is not None:
        screen.text(f"{seen} of the first file:\n")
        screen.table(schema_table(found.schema, reasons=False))
        for note in found.widened:
            screen.text(f"Note: {note}", "yellow")
    kept = [] if found.problem is None else ["--records", "opaque"]
    merge = Command("merge", where, "-o", "FOLDER", *kept)
    if first_record_file(found.path) is None:
        screen.text(f"\nA dataset of them, with a manifest: {merge}")
        return
    screen.text(f"\nA dataset of them where they are, unchanged: {Command('adopt', where)}")
    screen.text(f"A dataset of copies of their records: {merge}")


def _is_one_file(found: ForeignFiles) -> bool:
    return not is_store_url(found.path) and os.path.isfile(found.path)
