"""The contract of a splitter, which says of each row of a batch which split its record goes to.

    by_hash      fractions of a hash: of a column's value, or of the record
    by_column    the values of a column are the splits, or are named
    by_time      rows before a day, before another, and the rest
    folders      the folders of the source are splits; one of them may be cut by another splitter

A splitter is a frozen, picklable value. What it says of a row depends on that row alone, unless it is said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import SchemaError
from ..buffers.views import I64
from ..columns.feature_column import FeatureColumn
from ..flow.rejects import CellError
from ..schema.schema import Feature, Schema
from ..wording.nearest import nearest_name
from ..wording.printable import printable

DEFAULT_SPLIT: Final = "train"

MOST_SPLITS: Final = 64
"""The most splits of a rule: each is a file that a task keeps open."""

TOO_MANY_SPLITS: Final = (
    f"the values of split.column name more than {MOST_SPLITS} splits; choose a column with fewer values, or name them: "
    "split.names"
)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Rows that become records: the values of their features, by name, for each of `rows` rows.

    `payload` returns the serialized record of a row, when records are written. `folders`, where the source splits by
    folder, are the splits of its folders, of which row i is in that of number `codes[i]`.
    """

    schema: Schema
    columns: Mapping[str, FeatureColumn]
    rows: int
    payload: Callable[[int], bytes]
    folders: tuple[str, ...] = ()
    codes: I64 | None = None

    def take(self, rows: I64, names: tuple[str, ...]) -> Candidates:
        """Return some of the rows, with the scalar features of these names."""
        columns = {name: _taken(self.columns[name], rows) for name in names}
        numbers = rows.tolist()
        return replace(
            self,
            columns=columns,
            rows=len(rows),
            payload=lambda row: self.payload(numbers[row]),
            folders=(),
            codes=None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Assigned:
    """The split of each row: row i goes to `names[codes[i]]`."""

    names: tuple[str, ...]
    codes: I64


class Splitter(Protocol):
    """Says which split each row goes to."""

    @property
    def only(self) -> str | None:
        """The split of all rows, None if there may be several."""
        ...

    @property
    def reads(self) -> tuple[str, ...]:
        """The features that it looks at."""
        ...

    def check(self, schema: Schema) -> None:
        """Check that the features are there, and of a type that it can take.

        Raises:
            SchemaError: one is not.
        """
        ...

    def shares(self) -> dict[str, float]:
        """Return the part of the rows that each split is expected to get; nothing where only reading tells."""
        ...

    def problems(self, given: Candidates) -> list[tuple[int, CellError]]:
        """Return the rows that no split takes, and why: they are rejects. No record is written yet."""
        ...

    def assign(self, given: Candidates) -> Assigned:
        """Return the splits of rows that have no problem."""
        ...


@dataclass(frozen=True, slots=True)
class OneSplit:
    """All rows go to one split."""

    name: str = DEFAULT_SPLIT

    @property
    def only(self) -> str:
        """The split."""
        return self.name

    @property
    def reads(self) -> tuple[str, ...]:
        """No feature."""
        return ()

    def check(self, schema: Schema) -> None:
        """Accept any schema."""

    def shares(self) -> dict[str, float]:
        """Return the one share."""
        return {self.name: 1.0}

    def problems(self, given: Candidates) -> list[tuple[int, CellError]]:  # noqa: ARG002
        """Return nothing."""
        return []

    def assign(self, given: Candidates) -> Assigned:
        """Return the split for each row."""
        return Assigned((self.name,), np.zeros(given.rows, np.int64))


def scalar_feature(schema: Schema, name: str, key: str) -> Feature:
    """Return the scalar feature of a name, which the key `key` of the config names.

    Raises:
        SchemaError: there is none.
    """
    scalars = [feature for feature in schema if feature.shape == ()]
    found = next((feature for feature in scalars if feature.name == name), None)
    if found is None:
        names = [feature.name for feature in scalars]
        hint = nearest_name(name, names)
        raise SchemaError(f'{key}: "{printable(name)}" is not a scalar feature; {hint}')
    return found


def present_rows(column: FeatureColumn, rows: int) -> npt.NDArray[np.bool_]:
    """Return for each row whether it has the feature."""
    return np.ones(rows, bool) if column.present is None else column.present


def _taken(column: FeatureColumn, rows: I64) -> FeatureColumn:
    present = None if column.present is None else column.present[rows]
    return replace(column, values=column.values[rows], present=present)
