"""The rows of a dataset as they are exported: the columns of the source, classes by their names.

image/class/label  0, 2        ──▶   dictionary of "cat", "owl"
splits train, val together     ──▶   a column `split` after the others, or the source's own that the rows were split by
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import UsageError
from ...format.wording.hints import Add
from ...format.wording.printable import printable, printable_path
from ..rows.numbered_rows import SourceColumns
from .open_dataset import Dataset

SPLIT: Final = "split"


@dataclass(frozen=True, slots=True)
class ExportedRows:
    """Some splits of a dataset as record batches of one schema; where there are several, each row has its split.

    `named_splits` are the splits of the values of the source's own column `split`, where that says it.
    """

    dataset: Dataset
    splits: tuple[str, ...]
    columns: tuple[str, ...]
    schema: pa.Schema
    with_split: bool
    named_splits: Mapping[str, str] | None = None

    @classmethod
    def plan(
        cls, dataset: Dataset, split: str | None = None, columns: Sequence[str] | None = None, *, one_table: bool
    ) -> ExportedRows:
        """Choose the rows of one split, by default of all, and their columns, by default all.

        With `one_table` the rows of several splits are in one table, which says of each in which it is.
        """
        where = printable_path(dataset.path)
        if dataset.schema is None:
            raise UsageError(
                f"{where}: its records are plain bytes without a schema, which no table holds; its shards are files "
                f"that any reader of TFRecord takes"
            )
        if split is not None and split not in dataset.splits:
            raise UsageError(f"{where}: no split {printable(split)}; it has: {', '.join(dataset.splits) or 'none'}")
        fields = list(SourceColumns.plan(dataset.manifest, dataset.schema, columns, where).schema)
        splits = dataset.splits if split is None else (split,)
        with_split, named_splits = one_table and len(splits) > 1, None
        if with_split and any(field.name == SPLIT for field in fields):
            rule = dataset.manifest.conversion.get("split", {})
            if rule.get("column") != SPLIT:
                raise _two_splits(where, splits)
            with_split, named_splits = False, rule.get("names", {})
        if with_split:
            fields.append(pa.field(SPLIT, pa.dictionary(pa.int32(), pa.string()), nullable=False))
        names = tuple(field.name for field in fields[: len(fields) - with_split])
        return cls(dataset, splits, names, pa.schema(fields), with_split, named_splits)

    def batches(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the splits and the batches of their rows, in order, about 4 MiB of records at once."""
        names = pa.array(list(self.splits), pa.string())
        for number, split in enumerate(self.splits):
            for batch in self.dataset[split].batches(columns=self.columns):
                if self.named_splits is not None:
                    self._check_split(split, batch[SPLIT])
                arrays = list(batch.columns)
                if self.with_split:
                    places = pa.repeat(pa.scalar(number, pa.int32()), batch.num_rows)
                    arrays.append(pa.DictionaryArray.from_arrays(places, names))
                yield split, pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _check_split(self, split: str, values: pa.Array) -> None:
        """Check that the source's own column names the split: an append may have said it otherwise."""
        assert self.named_splits is not None
        numbers = values.indices if types.is_dictionary(values.type) else values  # a label is split by its numbers
        for value in map(_text, pc.unique(numbers).to_pylist()):
            if self.named_splits.get(value, value) != split:
                raise _two_splits(printable_path(self.dataset.path), self.splits)

    @property
    def records(self) -> int:
        return sum(self.dataset.manifest.splits[name].records for name in self.splits)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _two_splits(where: str, splits: Sequence[str]) -> UsageError:
    return UsageError(
        f'{where}: has {len(splits)} splits and a column "{SPLIT}" of its own that is not the split of each row, so one'
        f" table cannot say which row is in which; export each split by itself: "
        f"{Add('--split', splits[0])}, or without that column: name the others with {Add('--columns')}"
    )
