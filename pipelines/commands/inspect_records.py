"""The command `inspect`: show records of a dataset or of any TFRecord file, as tables or as JSON lines.

An Example is shown as it is stored: every feature is the list of its values. In JSON, bytes that are not UTF-8 are
`{"base64": "..."}`, and floats without a number are "NaN", "Infinity" and "-Infinity", which JSON has no sign for.
"""

from __future__ import annotations

import base64
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...transforms.dataset.rows.record_access import RecordAccess, RecordStream
from ...transforms.dataset.storage.object_storage import storage_at
from ...transforms.dataset.storage.opened_generation import open_generation
from ...transforms.dataset.storage.record_file import RecordRun, read_record_batches
from ...transforms.errors import InputError, UsageError
from ...transforms.format.examples.decode_examples import (
    ExampleMessage,
    feature_values,
    iter_features,
    other_message,
    parse_example,
)
from ...transforms.format.wording.printable import printable, printable_path
from ...transforms.inputs.contract.selection import typed_path
from ...transforms.inputs.files.file_names import RECORD_NAMES
from ...transforms.inputs.files.listing import expand_paths
from ...transforms.stores.store_url import is_store_url

if TYPE_CHECKING:
    from ..screens.summary_screen import Screen

_SHOWN_BYTES: Final = 16
"""The number of bytes shown of a binary value: enough for a file's signature."""

_SHOWN_VALUES: Final = 8


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """One record: its number in its file (from 0), the file, where it begins in it, and its payload."""

    record: int
    file: str
    offset: int
    payload: bytes


def inspect(path: str, count: int, screen: Screen, split: str | None = None, start: int = 0) -> None:
    """Print `count` records of a dataset (of all its splits, or of one) or of a TFRecord file, after the first `start`.

    Raise `DamageError` after the records before the damage have been printed.
    """
    shown, files = 0, _files_of_no_dataset(path)
    if files:
        what = "1 TFRecord file" if len(files) == 1 else f"{len(files):,} TFRecord files"
        screen.note(f"{printable_path(path)}: no dataset, but a folder of {what}, whose records follow")
    for record in islice(_records(path, split, files, start), count):
        shown += 1
        example = parse_example(record.payload) if other_message(record.payload) is None else None
        if screen.as_json:
            screen.data(record_document(record, example))
        else:
            _print_record(record, example, screen)
    if not shown and count:
        few = f"no more than {start:,} records" if start else "no records"
        screen.note(f"{printable_path(path)}: holds {few}")


def record_document(record: ShownRecord, example: ExampleMessage | None) -> dict[str, Any]:
    """Return the JSON object of a record; `features` is null where the payload is not an Example."""
    document: dict[str, Any] = {"record": record.record, "file": record.file, "offset": record.offset}
    if example is None:
        document |= {"features": None, "problem": _problem(record.payload), "bytes": len(record.payload)}
        return document
    features: dict[str, Any] = {}
    for name, feature in iter_features(example):
        kind, values = feature_values(feature)
        features[name] = None if kind == "none" else [_json_value(value) for value in values]
    document["features"] = features
    return document


def _files_of_no_dataset(path: str) -> list[str]:
    if not os.path.isdir(path) or any(
        os.path.exists(os.path.join(path, one)) for one in ("manifests", "manifest.json")
    ):
        return []
    try:
        found, _ = expand_paths([path], "", RECORD_NAMES, names_only=True)
    except InputError:
        return []  # opening it says what is wrong
    return [typed_path(os.fsdecode(one)) for one in found]


def _records(path: str, split: str | None, files: Sequence[str], start: int) -> Iterator[ShownRecord]:
    """Yield the records at a path, or of `files` in it, from number `start` on."""
    if files:
        if split is not None:
            raise UsageError(f"{printable_path(path)}: is no dataset, and has no splits; leave --split out")
        found = (one for file in files for one in _shown(read_record_batches(file), printable_path(file)))
        yield from islice(found, start, None)
        return
    if is_store_url(path):
        path = path.rstrip("/")
        folder, name = os.path.split(path)
        is_file = is_store_url(folder) and storage_at(folder).size(name) is not None
    elif not os.path.exists(path):
        raise InputError(f"{printable_path(path)}: no such file or folder")
    else:
        is_file = not os.path.isdir(path)
    if is_file:
        if split is not None:
            raise UsageError(f"{printable_path(path)}: is one file, which has no splits; leave --split out")
        yield from islice(_shown(read_record_batches(path), printable_path(path)), start, None)
        return
    generation = open_generation(path)
    manifest = generation.manifest
    if split is not None and split not in manifest.splits:
        known = ", ".join(manifest.splits) or "none"
        raise UsageError(f'{printable_path(path)}: no split "{printable(split)}"; it has: {known}')
    for name in [split] if split is not None else list(manifest.splits):
        for shard in manifest.splits[name].shards:
            stream = RecordStream(generation, [shard], RecordAccess(generation, [shard]))
            yield from _shown((run for _, run in stream.runs(start)), shard.path)
            start = max(start - shard.records, 0)


def _shown(runs: Iterable[RecordRun], name: str) -> Iterator[ShownRecord]:
    for run in runs:
        numbers = range(run.first_record, run.first_record + len(run))
        for number, offset, payload in zip(numbers, run.offsets, run.payloads, strict=True):
            yield ShownRecord(number, name, int(offset), bytes(payload))


def _json_value(value: float | bytes) -> int | float | str | dict[str, str]:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, int):
        return value
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return _short_float(value)


def _short_float(value: float) -> float:
    """Return the shortest decimal that is this float32: 0.1 and not 0.10000000149011612."""
    return float(str(np.float32(value)))


def _problem(payload: bytes) -> str:
    other = other_message(payload)
    return f"not a tf.train.Example{f' but {other}' if other else ''}"


def _print_record(record: ShownRecord, example: ExampleMessage | None, screen: Screen) -> None:
    from rich.table import Table

    title = f"record {record.record} of {record.file}, byte {record.offset:,}, {len(record.payload):,} bytes"
    screen.text(title, "bold")
    if example is None:
        screen.text(f"  {_problem(record.payload)}: {shown_value(record.payload)}\n")
        return
    table = Table(box=None, pad_edge=True, header_style="dim")
    for column in ("feature", "kind", "values"):
        table.add_column(column, overflow="fold")
    for name, feature in iter_features(example):
        kind, values = feature_values(feature)
        shown = ", ".join(shown_value(value) for value in values[:_SHOWN_VALUES])
        more = f", and {len(values) - _SHOWN_VALUES:,} more" if len(values) > _SHOWN_VALUES else ""
        table.add_row(printable(name) or '""', kind, f"{shown}{more}" if len(values) else "(empty)")
    screen.table(table)
    screen.text("")


def shown_value(value: float | bytes) -> str:
    """Return a value in one line: text in quotes, other bytes by their number and the first of them."""
    if isinstance(value, bytes):
        try:
            return f'"{printable(value.decode())}"'
        except UnicodeDecodeError:
            more = " …" if len(value) > _SHOWN_BYTES else ""
            return f"{len(value):,} bytes {value[:_SHOWN_BYTES].hex(' ')}{more}"
    if isinstance(value, int):
        return str(value)
    return repr(_short_float(value)) if math.isfinite(value) else str(value)
