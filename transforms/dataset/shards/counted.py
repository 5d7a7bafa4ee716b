"""What is counted of a run's records, in its staging folder until the commit makes `stats.json` of it.

    statistics.json                     counted as they passed (see `observers/tally.py`): of all records
    statistics/train-00000.tfrecord.json ...   counted of each shard, when it is made

Shards are counted where the records did not pass one by one, as those that are copied, and where it is known only at
the end in which split a record is, or whether it is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from ...format.columns.feature_column import columns_of
from ...format.decode.decode_examples import ExampleDecoder, ExampleError
from ...format.manifest.naming import staged_file
from ...format.schema.schema import Schema
from ...observers.distinct import keys_of_rows
from ...observers.figures import Level
from ...observers.tally import STATISTICS, Tally
from ..records.record_file import read_record_batches
from ..stage.spec import DatasetSpec

_FILE: Final = "statistics.json"


def leave_tally(spec: DatasetSpec, observed: Mapping[str, Any], records: Mapping[str, int], *, committed: bool) -> bool:
    """Leave what is counted before the shards are made; return whether it is of the records of the shards, by split.

    That is what was counted of rows on their way, or is known of records that are copied.

    A run that has committed has no more use of it, and may have no staging folder.
    """
    found = spec.counted or observed.get(STATISTICS)
    if found is None or spec.level is None:
        return False
    tally = found if isinstance(found, Tally) else Tally.from_json(found, spec.level)
    if tally.records != records:
        return False
    if not committed:
        spec.storage.replace(f"{spec.staging}/{_FILE}", json.dumps(tally.to_json()).encode())
    return True


def count_shard(spec: DatasetSpec, split: str, path: str) -> None:
    """Count the records of a staged shard, and leave that; nothing where one is not of the schema."""
    assert spec.schema is not None
    assert spec.statistics is not None
    try:
        tally = count_file(spec.storage.path(staged_file(spec.staging, path)), split, spec.schema, spec.statistics)
    except ExampleError:  # records of others, which are copied as they are
        return
    spec.storage.replace(f"{spec.staging}/{_shard_file(path)}", json.dumps(tally.to_json()).encode())


def count_file(path: str, split: str, schema: Schema, level: Level, stated_crc: str | None = None) -> Tally:
    """Return what is counted of the records of one file, whose CRC32C is compared with `stated_crc`.

    An `ExampleError` counts rows from the file's first.
    """
    tally, decoder = Tally(level), ExampleDecoder(schema)
    names = [feature.name for feature in schema]
    name = os.path.basename(path)
    for run in read_record_batches(path, stated_crc=stated_crc):
        for first in range(0, len(run), decoder.rows_at_once):
            try:
                batch = decoder.decode(run.payloads.tail(first).head(decoder.rows_at_once))
            except ExampleError as error:
                raise ExampleError(run.first_record - 1 + first + error.row, error.reason) from error
            columns = list(columns_of(batch, schema, names).values())
            places = np.arange(batch.num_rows) + (run.first_record + first)
            keys = keys_of_rows(name, places) if level == "full" else None
            tally.add(split, schema, columns, batch.num_rows, keys)
    return tally


def read_counted(spec: DatasetSpec, shards: Iterable[str] | None) -> Tally | None:
    """Return what is counted of a run: of its shards, by their paths, or where that is None of rows on their way.

    None where a shard is not counted.
    """
    assert spec.level is not None
    total = Tally(spec.level)
    for path in [_FILE] if shards is None else map(_shard_file, shards):
        if spec.storage.size(f"{spec.staging}/{path}") is None:
            return None
        total.merge(Tally.from_json(json.loads(spec.storage.read(f"{spec.staging}/{path}")), spec.level))
    return total


def _shard_file(path: str) -> str:
    return f"statistics/{path}.json"
