"""What a dataset is for NumPy, PyTorch, grain and TensorFlow; each is imported when it is asked for, and not before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from ...errors import UsageError
from ...stores.common.store_url import is_store_url
from ..frameworks.numpy_columns import NumpyColumns, Values, joined_columns
from ..frameworks.row_source import RowSource
from ..rows.numbered_rows import NumberedRows
from .batching import Progress

if TYPE_CHECKING:
    import tensorflow as tf

    from ..frameworks.torch_batches import TorchBatches


Columns: TypeAlias = Sequence[str] | None
Split: TypeAlias = str | Columns
"""A split, or in its place the columns, as `torch` and `take` have them first."""


def split_and_columns(split: Split, columns: Columns) -> tuple[str | None, Columns]:
    """Return a split and columns that were given in either order.

    >>> split_and_columns(["id"], None), split_and_columns(["id"], "train"), split_and_columns("train", ["id"])
    ((None, ['id']), ('train', ['id']), ('train', ['id']))
    """
    if split is None or isinstance(split, str):
        return split, columns
    return columns if isinstance(columns, str) else None, split


class FrameworkViews:
    """The methods of a dataset that give arrays and tensors; each takes all splits, or those of `dataset[split]`."""

    __slots__ = ()

    @property
    @abstractmethod
    def _rows(self) -> NumberedRows:
        """The rows by number."""

    @abstractmethod
    def batches(
        self,
        split: Split = None,
        columns: Columns = None,
        *,
        rows: int | None = None,
        start: int = 0,
        progress: bool | Progress = False,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split."""

    @abstractmethod
    def shard_paths(self, split: str | None = None) -> list[str]:
        """Return where the shards of a split are, in order."""

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
        batches = self.batches(split, plan.columns, start=start, progress=progress)
        schema = self._rows.plan(plan.columns)[0].schema
        whole = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()  # several from 2 GiB of text on
        return joined_columns([plan.read(part) for part in whole or [pa.RecordBatch.from_pylist([], schema)]])

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
        from ..frameworks.torch_batches import TorchBatches, TorchOptions

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
        from ..frameworks.tf_records import TensorFlowOptions, tf_dataset

        if columns is not None and not len(columns):
            raise UsageError("tf: there is no column to read; name some, or leave columns out")
        options = TensorFlowOptions(batch_rows, shuffle_rows, seed, drop_remainder, repeat, decode)
        wanted = set(self._rows.plan(columns)[0].features)
        features = [feature for feature in self._rows.schema if feature.name in wanted]
        return tf_dataset(self._rows, self.shard_paths(), features, options)
