"""Splits that the data has: values of a column (`split: {column: fold, names: {"0": train}}`), or folders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import RunError, SchemaError
from ..batches.arrow_memory import I64
from ..batches.rejects import CellError
from ..manifest.naming import is_split_name
from ..schema.arrow_types import arrow_type_of
from ..schema.column_types import column_type, is_binary, is_string
from ..schema.schema import Schema
from ..wording.printable import printable
from .by_hash import binary_values
from .splitter import (
    MOST_SPLITS,
    TOO_MANY_SPLITS,
    Assigned,
    Candidates,
    Settling,
    Splitter,
    present_rows,
    scalar_feature,
    where_present,
)

NO_SPLIT: Final = "NO_SPLIT"

_TAKEN: Final = "text, whole numbers and bools"


def no_value(column: str, key: str, expected: str, *, are_records: bool) -> CellError:
    """Return what is wrong with a row that lacks the feature that decides its split, by the key `key` of the config."""
    name = printable(column)
    if are_records:
        text = f"it has no {name}, and {key} says the split of a record"
        return CellError(column, NO_SPLIT, "nothing", expected, text)
    text = f"null, and {key} says the split of a row: fill it (schema.columns.{name}.null), or leave the row out: "
    return CellError(column, NO_SPLIT, "null", expected, f"{text}{where_present(column)}")


@dataclass(frozen=True, slots=True)
class ColumnSplits(Splitter):
    """The value of the feature `column` is the split, or the one that `named` gives it: (value, split) pairs.

    Values are compared as text: the digits of a number, `true` and `false`. With `named` a value that is not there is a
    reject; a null always is.
    """

    column: str
    named: tuple[tuple[str, str], ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def check(self, schema: Schema) -> None:
        feature = scalar_feature(schema, self.column, "split.column")
        kind = arrow_type_of(feature)
        whole = types.is_integer(kind) or types.is_boolean(kind) or is_string(kind) or is_binary(kind)
        if not whole or feature.kind == "float" or column_type(feature).own_limit:
            dates = types.is_date(kind) or types.is_timestamp(kind)
            name = printable(self.column)
            fix = f"by days: split.before: {{column: {name}, ...}}" if dates else "choose another"
            raise SchemaError(f'split.column: "{name}" holds {feature.type}, and splits are named by {_TAKEN}; {fix}')

    def problems(self, given: Candidates) -> list[tuple[int, CellError]]:
        _, codes, wrong = self._look(given)
        return [(row, wrong[code]) for row, code in enumerate(codes.tolist()) if code < 0] if wrong else []

    def assign(self, given: Candidates) -> Assigned:
        """Raise `RunError` where there are more than 64 splits."""
        names, codes, _ = self._look(given)
        if len(names) > MOST_SPLITS:
            raise RunError(TOO_MANY_SPLITS)
        return Assigned(names, codes)

    def _look(self, given: Candidates) -> tuple[tuple[str, ...], I64, dict[int, CellError]]:
        """Return the splits that occur, the number of each row's, and what is wrong where that is negative."""
        there = present_rows(given.columns[self.column], given.rows)
        texts, values = self._texts(given)
        known, names = self._known(given), dict[str, int]()
        missing = no_value(self.column, "split.column", self._expected(), are_records=given.are_records)
        wrong: dict[int, CellError] = {-1: missing}
        numbers = np.empty(len(texts), np.int64)
        occurring = np.unique(values[there]) if len(texts) else np.zeros(0, np.int64)
        for value in occurring.tolist():
            split = known.get(texts[value]) if self.named else texts[value]
            if split is None or not is_split_name(split):
                numbers[value] = -2 - value
                wrong[-2 - value] = self._unnamed(texts[value])
            else:
                numbers[value] = names.setdefault(split, len(names))
        codes = np.full(given.rows, -1, np.int64)
        codes[there] = numbers[values[there]]
        return tuple(names), codes, wrong if (codes < 0).any() else {}

    def _known(self, given: Candidates) -> dict[str, str]:
        """Return the splits of values; bools are named in any case, as Python and YAML write them."""
        if self._is_bool(given):
            return {value.lower(): split for value, split in self.named}
        return dict(self.named)

    def _is_bool(self, given: Candidates) -> bool:
        feature = scalar_feature(given.schema, self.column, "split.column")
        return bool(types.is_boolean(arrow_type_of(feature)))

    def _texts(self, given: Candidates) -> tuple[list[str], I64]:
        """Return the values that occur, as text, and which of them each row has."""
        column, rows = given.columns[self.column], given.rows
        if column.kind == "int64":
            found, values = np.unique(column.values, return_inverse=True)
            is_bool = self._is_bool(given)
            texts = [("false", "true")[number != 0] if is_bool else str(number) for number in found.tolist()]
            return texts, values.astype(np.int64)
        encoded = binary_values(column, rows).cast(pa.large_binary()).dictionary_encode()
        texts = [value.decode("utf-8", "backslashreplace") for value in encoded.dictionary.to_pylist()]
        return texts, pc.cast(encoded.indices, pa.int64()).to_numpy(zero_copy_only=False)

    def _unnamed(self, value: str) -> CellError:
        shown = printable(value)
        if self.named:
            reason = f'"{shown}" is in no split; name it in split.names: {{"{shown}": train}}'
        else:
            reason = f'"{shown}" cannot name a split (lowercase letters, digits and _); name the split of every value: '
            reason += f'split.names: {{"{shown}": train, ...}}'
        return CellError(self.column, NO_SPLIT, shown, self._expected(), reason)

    def _expected(self) -> str:
        return f"one of {', '.join(printable(value) for value, _ in self.named)}" if self.named else "a split"


# The rows of one folder may be cut by another splitter: `split: {fractions: {train: 0.9, val: 0.1}, of: train}`
#
#     train/  ──┬─ 0.9 ─▶ train
#               └─ 0.1 ─▶ val
#     test/   ──────────▶ test


@dataclass(frozen=True, slots=True)
class FolderSplits(Splitter):
    """Each row goes to the split of its folder, but rows of the folder `of` where `inner` says."""

    inner: Splitter | None = None
    of: str | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return () if self.inner is None else self.inner.reads

    def check(self, schema: Schema) -> None:
        if self.inner is not None:
            self.inner.check(schema)

    def shares(self) -> dict[str, float]:
        return {} if self.inner is None else self.inner.shares()

    def problems(self, given: Candidates) -> list[tuple[int, CellError]]:
        rows = self._cut(given)
        if self.inner is None or not len(rows):
            return []
        found = self.inner.problems(given.take(rows, self.inner.reads))
        return [(int(rows[row]), error) for row, error in found]

    def assign(self, given: Candidates) -> Assigned:
        assert given.codes is not None
        rows = self._cut(given)
        if self.inner is None or not len(rows):
            return Assigned(given.folders, given.codes)
        inner = self.inner.assign(given.take(rows, self.inner.reads))
        names = tuple(dict.fromkeys((*given.folders, *inner.names)))
        codes = given.codes.copy()
        codes[rows] = np.array([names.index(name) for name in inner.names], np.int64)[inner.codes]
        return Assigned(names, codes, inner.observed)

    def _cut(self, given: Candidates) -> I64:
        if self.of not in given.folders or given.codes is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(given.codes == given.folders.index(self.of))


def settling(splitter: Splitter | None) -> Settling | None:
    if isinstance(splitter, FolderSplits):
        splitter = splitter.inner
    return splitter if isinstance(splitter, Settling) else None
