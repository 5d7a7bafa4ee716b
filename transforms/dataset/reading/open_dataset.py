"""Open a dataset for reading: its manifest, its records, its rows.

    dataset = open_dataset("out/trips")
    dataset.splits                        ("train",)
    len(dataset), len(dataset["train"])   how many records
    for row in dataset["train"]: ...      the rows as dicts
    dataset["train"][7]                   one of them;  .record(7) its bytes,  .take([7, 3]) a batch
    dataset.records("train")              the Examples as bytes, in the order of the shards
    dataset.batches("train")              the rows as Arrow record batches
    dataset.to_pandas("train")            all of them, as a DataFrame
    dataset.arrays("train")               each record as NumPy arrays, in their own dtypes and shapes
    dataset.numpy() .torch() .tf() ...    arrays and tensors; a framework is imported when it is asked for

What was opened is one generation: an append that comes later does not change it. A shard that is opened after the
dataset was replaced is a `ReplacedError`, before a record of it is read.
"""

from __future__ import annotations

import operator
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import UsageError
from ...format.examples.decode_examples import ExampleDecoder
from ...format.manifest.manifest import Manifest, ShardEntry
from ...format.manifest.naming import is_split_name
from ...format.schema.schema import Schema
from ...format.wording.printable import printable, printable_path
from ...observers.figures import Statistics
from ...stores.store_url import is_store_url
from ..rows.numbered_rows import NumberedRows, RowSource, decoded, joined
from ..rows.numpy_columns import ArrayReader, NumpyColumns, Values, joined_columns
from ..rows.record_access import RecordStream
from ..storage.manifest_files import read_stats
from ..storage.opened_generation import OpenedGeneration, locate_shards, open_generation
from ..storage.record_file import RecordRun

if TYPE_CHECKING:
    import pandas as pd
    import tensorflow as tf

    from ..rows.torch_batches import TorchBatches


Columns: TypeAlias = Sequence[str] | None
Split: TypeAlias = str | Columns
"""A split, or in its place the columns, as `torch` and `take` have them first."""


def open_dataset(path: str | os.PathLike[str], generation: int | None = None) -> Dataset:
    """Open the dataset in the folder or at the URL `path`; `generation` is an older state, by default the latest.

        dataset = open_dataset("out/people")
        dataset.splits                                  # ("train", "val")
        for batch in dataset.batches("train"): ...      # Arrow record batches
        frame = dataset.to_pandas("val", ["id", "zip"])

    Raises:
        InputError: the folder holds no dataset, no such generation, or one that was replaced.
        DamageError: its manifest is damaged.
    """
    opened = open_generation(path, generation)
    dataset = Dataset(opened.path, opened.manifest)
    dataset._kept.generation = opened
    return dataset


@dataclass(slots=True)
class _Kept:
    """What a dataset keeps, made when it is first asked for; another process makes its own."""

    generation: OpenedGeneration | None = None
    rows: NumberedRows | None = None
    splits: dict[str, Dataset] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type[_Kept], tuple[()]]:
        return _Kept, ()


@dataclass(frozen=True, slots=True, repr=False)
class Dataset:
    """One generation of a dataset: `path` is its folder, `manifest` states it; with `only`, one of its splits.

        len(dataset), len(dataset["train"])       # how many records
        for row in dataset["train"]: ...          # rows as dicts; of plain bytes, the records

    Every method that takes a split reads all splits, in their order, if none is given. Records come in the order of
    the shards. Whatever a shard lacks of what the manifest states is a `DamageError`, raised when the shard's last
    record has been yielded: a file that was cut between two records looks whole. With `whole` the CRC32C of each file
    that is read from its start is compared too.
    """

    path: str
    manifest: Manifest
    only: str | None = None
    whole: bool = False
    _kept: _Kept = field(default_factory=_Kept, init=False, compare=False)

    def __repr__(self) -> str:
        """Return one line: where it is, which generation, and the records of each split."""
        splits = ", ".join(f"{name} {self.manifest.splits[name].records:,}" for name in self.splits) or "none"
        return f"<Dataset {printable_path(self.path)}: generation {self.manifest.generation}, records: {splits}>"

    def __len__(self) -> int:
        return sum(self.manifest.splits[name].records for name in self.splits)

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows as dicts, an absent feature as None; of records that are plain bytes, the records."""
        if self.manifest.schema is None:
            yield from self.records()
            return
        for batch in self.batches():
            yield from batch.to_pylist()

    @overload
    def __getitem__(self, split: str) -> Dataset: ...

    @overload
    def __getitem__(self, split: int) -> Any: ...

    @overload
    def __getitem__(self, split: slice) -> list[Any]: ...

    def __getitem__(self, split: str | int | slice) -> Any:
        """Return one split as a dataset of its own, `dataset["train"].to_pandas()`; of a number that row.

            dataset["train"][7]                       # a dict of values; of plain bytes, the record
            dataset["train"][:10]                     # a list of them

        Raises:
            KeyError: there is no such split.
            IndexError: there is no such row.
        """
        if isinstance(split, slice):
            numbers = range(len(self))[split]
            return (
                [*self._rows.access.take(numbers)] if self.manifest.schema is None else self.take(numbers).to_pylist()
            )
        if not isinstance(split, str):
            index = operator.index(split)
            return self.record(index) if self.manifest.schema is None else self._rows.row(index)
        if split not in self.splits:
            asked, known = printable(repr(split)), ", ".join(self.splits) or "none"
            raise KeyError(f"no split {asked} in {printable_path(self.path)}; it has: {known}")
        if split == self.only:
            return self
        found = self._kept.splits.get(split)
        if found is None:
            found = self._kept.splits.setdefault(split, replace(self, only=split))
            found._kept.generation = self._generation
        return found

    def __contains__(self, split: object) -> bool:
        return split in self.splits

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""
        return tuple(self.manifest.splits) if self.only is None else (self.only,)

    @property
    def schema(self) -> Schema | None:
        """The features of the Examples, or None if the records are plain bytes."""
        return self.manifest.schema

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The class names of each label feature: value i is the i-th name."""
        return self.manifest.labels

    @property
    def stats(self) -> Statistics | None:
        """The figures of each split and feature, None where none were counted: `shardmill stats DIR --write` does.

            dataset.stats.splits["train"].features["price"].numbers.mean

        Raises:
            DamageError: they are damaged, or not of the records that the manifest states.
        """
        with self._generation.unchanged():
            return read_stats(self.path, self.manifest)

    def shard_paths(self, split: str | None = None) -> list[str]:
        """Return where the shards of a split are, in order.

        Raises:
            UsageError: there is no such split.
            DamageError: a shard is missing.
        """
        with self._generation.unchanged():
            places = locate_shards(self.path, self.manifest, self._shards(split))
            return [os.path.join(self.path, place.located()) for place in places]

    def records(self, split: str | None = None) -> Iterator[bytes]:
        """Yield the records of a split, unparsed; both CRCs of each are checked.

        Raises:
            UsageError: there is no such split.
            DamageError: a shard is missing, damaged or cut.
        """
        runs = self._stream(split).runs()
        return (payload for _, run in runs for payload in run.payloads)

    def batches(
        self,
        split: Split = None,
        columns: Columns = None,
        *,
        rows: int | None = None,
        start: int = 0,
        progress: bool | Progress = False,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split in batches of so many `rows`, by default about 4 MiB of records at once.

        `columns` are names, by default all, and may come first: `dataset["train"].batches(["id"])`. `start` is the
        number of the first row, from 0: an indexed shard is read from there on. `progress` shows a line on standard
        error, or is called with the rows that have been read and those that there are. An absent feature is null.
        Labels are dictionaries of the names of their classes. Nested columns and decimals of the source are put
        together again, under their own names; each of their features can be had by its name too. The two features of
        an array stay two columns: see `arrays` and `numpy`.

        Raises:
            UsageError: there is no such split or feature, the records are plain bytes, or a number is below its least.
            DamageError: a shard is missing, damaged or cut, or a record is not an Example of the schema.
        """
        split, columns = split_and_columns(split, columns)
        start, rows = operator.index(start), None if rows is None else operator.index(rows)
        if (rows is not None and rows < 1) or start < 0:
            raise UsageError(f"batches: rows is {rows}, start is {start}; these are 1 and 0 at least")
        stream, (plan, decoder) = self._stream(split), self._rows.plan(columns)
        found = decoded_runs(stream.runs(start), decoder)
        batches: Iterator[pa.RecordBatch] = (plan.batch(batch, place) for place, _, batch in found)
        if rows is not None:
            batches = in_batches_of(rows, batches)
        if progress is False:
            return batches
        size = sum(entry.records for entry in stream.entries)
        return counted(batches, min(start, size), size, ProgressLine() if progress is True else progress)

    def record(self, index: int) -> bytes:
        """Return a record by its number, from 0 in the order of shards, or from -1 backwards; both CRCs are checked.

        What is known of where records begin is kept: a shard without an index is read once, when it is first asked
        for.

        Raises:
            IndexError: there is none of this number.
            DamageError: its shard is missing, damaged or cut.
        """
        return self._rows.access.record(index)

    def take(
        self, indices: Sequence[int] | npt.NDArray[np.integer], columns: Sequence[str] | None = None
    ) -> pa.RecordBatch:
        """Return rows by their numbers, in the order given, as one batch; `columns` are names, by default all.

            dataset["train"].take([5, 0, 5], ["id", "zip"])

        Raises:
            IndexError: there is no row of a number.
            UsageError: there is no such feature, or the records are plain bytes.
            DamageError: a shard is missing, damaged or cut, or a record is not an Example of the schema.
        """
        return self._rows.take(indices, columns)

    @property
    def _generation(self) -> OpenedGeneration:
        if self._kept.generation is None:
            self._kept.generation = OpenedGeneration(self.path, self.manifest)
        return self._kept.generation

    @property
    def _rows(self) -> NumberedRows:
        if self._kept.rows is None:
            self._kept.rows = NumberedRows(self._generation, self._shards(None))
        return self._kept.rows

    def to_arrow(
        self,
        split: Split = None,
        columns: Columns = None,
        *,
        start: int = 0,
        progress: bool | Progress = False,
    ) -> pa.Table:
        """Return all rows of a split as an Arrow table; takes and raises what `batches` does."""
        split, columns = split_and_columns(split, columns)
        batches = self.batches(split, columns, start=start, progress=progress)
        return pa.Table.from_batches(batches, self._rows.plan(columns)[0].schema)

    def to_pandas(
        self,
        split: Split = None,
        columns: Columns = None,
        *,
        start: int = 0,
        progress: bool | Progress = False,
    ) -> pd.DataFrame:
        """Return all rows of a split as a DataFrame; takes and raises what `batches` does.

        Integers with nulls have pandas' nullable types, such as Int64: as float64 large ones would change. Labels are
        categories.
        """
        return to_frame(self.to_arrow(split, columns, start=start, progress=progress))

    def arrays(
        self,
        split: Split = None,
        columns: Columns = None,
        *,
        dtypes: Mapping[str, npt.DTypeLike] | None = None,
        ranks: Mapping[str, int] | None = None,
    ) -> Iterator[dict[str, np.ndarray]]:
        """Yield each record of a split as NumPy arrays, by name.

        The two features `<name>/shape` and `<name>/data` are one array `<name>`, in its own dtype and shape (bare
        `shape` and `data` are the array `""`). Other features of numbers, times and fixed shapes or lists of them are
        arrays too; strings, bytes and images are not. A feature that is absent from a record is absent from its dict.
        `dtypes` and `ranks` say what the caller counts on, by name: another dtype or rank is an error, at once.

        Raises:
            SchemaError: an array has another dtype or rank than asked for.
            UsageError: there is no such split or array, or the records are plain bytes.
            DamageError: a shard or a record is damaged.
        """
        split, columns = split_and_columns(split, columns)
        schema = self._rows.schema
        reader = ArrayReader.plan(schema, columns, dtypes or {}, ranks or {})
        batches = decoded_runs(self._stream(split).runs(), ExampleDecoder(schema, reader.features))
        return (arrays for place, first, batch in batches for arrays in reader.read(batch, place, first))

    def numpy(
        self,
        split: Split = None,
        columns: Columns = None,
        *,
        rows: int | None = None,
        start: int = 0,
        decode: bool = False,
        progress: bool | Progress = False,
    ) -> Iterator[dict[str, Values]]:
        """Yield batches as dicts of NumPy arrays, which are views where Arrow and NumPy hold the same.

        Columns of a fixed shape are (rows, ...), lists of any length `Ragged(values, row_splits)`, classes their
        numbers, text and bytes arrays of objects. What is null is masked (`numpy.ma`), of objects None, and of lists
        False in `NAME/present`. The two features of an array are the array. `decode` pictures to height x width x
        channels. The rest is as for `batches`.

        Raises:
            UsageError: there is no such split or column, the records are plain bytes, or a number is below its least.
            DamageError: a shard, a record or a picture is damaged.
        """
        split, columns = split_and_columns(split, columns)
        plan = NumpyColumns.plan(self._rows.schema, columns, decode=decode)
        batches = self.batches(split, plan.columns, rows=rows, start=start, progress=progress)
        return map(plan.read, batches)

    def to_numpy(
        self,
        split: Split = None,
        columns: Columns = None,
        *,
        start: int = 0,
        decode: bool = False,
        progress: bool | Progress = False,
    ) -> dict[str, Values]:
        """Return all rows as one dict of NumPy arrays; takes and raises what `numpy` does."""
        split, columns = split_and_columns(split, columns)
        plan = NumpyColumns.plan(self._rows.schema, columns, decode=decode)
        table = self.to_arrow(split, plan.columns, start=start, progress=progress).combine_chunks()
        whole = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]  # several from 2 GiB of text on
        return joined_columns([plan.read(part) for part in whole])

    def torch(
        self,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int = 256,
        rank: int = 0,
        world: int = 1,
        seed: int = 0,
        shuffle: str | None = None,
        even: str | None = None,
        decode: bool = False,
    ) -> TorchBatches:
        """Return batches of tensors for PyTorch, right under any number of ranks and of workers.

            loader = DataLoader(dataset["train"].torch(batch_rows=256, seed=1), batch_size=None, num_workers=4)

        Global batch g is of rank g mod `world`, and of that rank's workers in turn. `shuffle` is `global` (all rows,
        read one by one), `blocks` (runs of 4 MiB, 32 MiB of them mixed; the default for stores and gzip) or `none`.
        `even` is `drop` (as many full batches for each rank; the default of more than one; `left_out` counts the
        rest), `pad` (rows of the beginning fill up; `repeated` counts them) or `none`. `set_epoch`, `state_dict` and
        `load_state_dict` are those of the dataset returned.

        Raises:
            UsageError: there is no such column, the records are plain bytes, a value is no choice, or an epoch has no
                batch at all.
            ImportError: PyTorch is not installed.
        """
        from ..rows.torch_batches import TorchBatches, TorchOptions

        plan = NumpyColumns.plan(self._rows.schema, columns, decode=decode)
        options = TorchOptions(batch_rows, rank, world, seed, shuffle, even)
        return TorchBatches(self._rows, plan, options)

    def torch_map(self, columns: Sequence[str] | None = None, *, decode: bool = False) -> RowSource:
        """Return rows by number as dicts, for a `DataLoader` with a sampler; many at once by `__getitems__`.

        Numbers and fixed shapes are NumPy values, times int64 in their unit, lists of any length arrays, text is str.
        Where a column may be null, `NAME/present` says whether it is not. It imports nothing of PyTorch, whose default
        `collate_fn` takes neither decimals nor lists of unequal length.

        Raises:
            UsageError: there is no such column, or the records are plain bytes.
        """
        return RowSource(self._rows, columns, decode=decode, times=np.dtype(np.int64))

    def grain(self, columns: Sequence[str] | None = None, *, decode: bool = False) -> RowSource:
        """Return rows by number as dicts: a `RandomAccessDataSource` of grain; else as `torch_map`.

        grain.MapDataset.source(dataset["train"].grain()).shuffle(seed=1).batch(256)
        """
        return RowSource(self._rows, columns, decode=decode)

    def tf(
        self,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int = 256,
        shuffle_rows: int = 0,
        seed: int | None = None,
        drop_remainder: bool = False,
        repeat: bool = False,
        decode: bool = False,
    ) -> tf.data.Dataset:
        """Return a `tf.data.Dataset` of dicts of tensors: shards interleaved, batched, then parsed; cardinality known.

            batches = dataset["train"].tf(["x", "y"], batch_rows=256, shuffle_rows=10_000)
            model.fit(batches.map(lambda batch: (batch["x"], batch["y"])), shuffle=False)

        Columns of a fixed shape are dense, others `tf.RaggedTensor`. Where a column may be null, `NAME/present` says
        whether it is not. Values are as records hold them: int64, float32 and bytes, with booleans as such. `decode`
        pictures to RGB. The order is that of the shards, unless `shuffle_rows` gives the size of a shuffle buffer.

        Raises:
            UsageError: there is no such column, the records are plain bytes, or TensorFlow does not read the store.
            ImportError: TensorFlow is not installed.
        """
        if is_store_url(self._rows.path) and not self._rows.path.startswith("gs://"):
            raise UsageError(f"TensorFlow reads files and gs://, and not {self._rows.path}; use torch() or numpy()")
        from ..rows.tf_records import TensorFlowOptions, tf_dataset

        if columns is not None and not len(columns):
            raise UsageError("tf: there is no column to read; name some, or leave columns out")
        options = TensorFlowOptions(batch_rows, shuffle_rows, seed, drop_remainder, repeat, decode)
        wanted = set(self._rows.plan(columns)[0].features)
        features = [feature for feature in self._rows.schema if feature.name in wanted]
        return tf_dataset(self._rows, self.shard_paths(), features, options)

    def _stream(self, split: str | None) -> RecordStream:
        entries = self._shards(split)
        if split is None or split == self.only:
            return RecordStream(self._generation, entries, self._rows.access, self.whole)
        return self[split]._stream(None)

    def _shards(self, split: str | None) -> tuple[ShardEntry, ...]:
        if split is not None and split not in self.splits:
            asked = split if is_split_name(split) else printable(repr(split))
            known = ", ".join(self.splits) or "none"
            raise UsageError(f"{printable_path(self.path)}: no split {asked}; it has: {known}")
        names = self.splits if split is None else (split,)
        return tuple(shard for name in names for shard in self.manifest.splits[name].shards)


def split_and_columns(split: Split, columns: Columns) -> tuple[str | None, Columns]:
    """Return a split and columns that were given in either order.

    >>> split_and_columns(["id"], None), split_and_columns(["id"], "train"), split_and_columns("train", ["id"])
    ((None, ['id']), ('train', ['id']), ('train', ['id']))
    """
    if split is None or isinstance(split, str):
        return split, columns
    return columns if isinstance(columns, str) else None, split


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a DataFrame: exact, and in plain NumPy types wherever these can hold the column.

    pandas has no null integers in its plain types: Arrow gives float64 for a column with nulls, in which 2^53 + 1
    becomes 2^53. Nor has it times of day with nanoseconds: Arrow refuses those. Such columns keep pandas' nullable
    integers, and Arrow's own type. Integers beside nulls in lists and structs are Python's. Labels are categories.
    """
    import pandas as pd

    nanoseconds = pa.time64("ns")
    nested = any(map(pa.types.is_nested, table.schema.types))
    frame = table.to_pandas(types_mapper={nanoseconds: pd.ArrowDtype(nanoseconds)}.get, integer_object_nulls=nested)
    for index, column in enumerate(table.columns):
        if pa.types.is_integer(column.type) and column.null_count:
            nullable = pd.api.types.pandas_dtype(str(column.type).replace("int", "Int").replace("uI", "UI"))
            frame.isetitem(index, column.to_pandas(types_mapper={column.type: nullable}.get))
    return frame


Progress = Callable[[int, int], None]
"""Is called with the rows that have been read, and those that there are."""

_BETWEEN: Final = 0.2
"""Seconds between two lines of progress."""


def decoded_runs(
    runs: Iterable[tuple[str, RecordRun]], decoder: ExampleDecoder
) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Yield the name of the shard, the number of the batch's first record in it, from 1, and the batch."""
    for shard, run in runs:
        for first, batch in decoded(run.payloads, decoder, partial(_place, shard, run)):
            yield shard, run.first_record + first, batch


def _place(shard: str, run: RecordRun, row: int) -> str:
    return f"{shard} record {run.first_record + row} at byte {run.offsets[row]}"


def in_batches_of(rows: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows, so many in each batch; the last one may have fewer."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        first = 0
        while len(batch) - first >= rows - count:
            held.append(batch.slice(first, rows - count))
            first += rows - count
            yield joined(held)
            held, count = [], 0
        if first < len(batch):
            held.append(batch.slice(first))
            count += len(batch) - first
    if held:
        yield joined(held)


def counted(batches: Iterable[pa.RecordBatch], done: int, rows: int, progress: Progress) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and report each one when the next is asked for; `done` rows were there before."""
    for batch in batches:
        yield batch
        done += len(batch)
        progress(done, rows)


class ProgressLine:
    """Shows on standard error how many rows have been read: a line that changes, or in a log one at each tenth."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._shown, self._tenths = 0.0, 0
        self._changes = sys.stderr.isatty() or "ipykernel" in sys.modules

    def __call__(self, done: int, rows: int) -> None:
        now, share = time.monotonic(), done / rows if rows else 1.0
        tenths = int(share * 10)
        is_due = now - self._shown >= _BETWEEN if self._changes else tenths > self._tenths
        if not is_due and done < rows:
            return
        self._shown, self._tenths = now, tenths
        begin, end = ("\r", "\n" if done >= rows else "") if self._changes else ("", "\n")
        sys.stderr.write(f"{begin}{done:,} of {rows:,} rows, {share:.0%}, {now - self._begun:.1f} s{end}")
        sys.stderr.flush()
