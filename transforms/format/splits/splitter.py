"""The contract of a splitter, which says of each row of a batch which split its record goes to.

    by hash      fractions of a hash: of a column's value, or of the record
    by column    the values of a column are the splits, or are named
    by time      rows before a day, before another, and the rest
    by folder    the folders of the source are splits; one of them may be cut by another splitter
    exact        fractions of the records, or of each class of them, by counts
    exact keys   fractions of the records by counts, and all rows of one value in one split

A splitter is a frozen, picklable value. What it says of a row depends on that row alone; the last two are `Settling`:
they set records aside, and say where these go when all are counted.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ...errors import SchemaError
from ..batches.arrow_memory import I64
from ..batches.rejects import CellError
from ..batches.rows import FeatureColumn
from ..schema.schema import Feature, Schema
from ..wording.hints import Add
from ..wording.printable import NoColumnError, nearest_name, printable

DEFAULT_SPLIT: Final = "train"

MOST_SPLITS: Final = 64
"""The most splits of a rule: each is a file that a task keeps open."""

TOO_MANY_SPLITS: Final = (
    f"the values of split.column name more than {MOST_SPLITS} splits; choose a column with fewer values, or name the "
    "split of each: split.names; to keep rows of one value together instead: "
    f"{Add('--split-fractions', 'train=0.9,val=0.1', '--split-key', 'COLUMN')}"
)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Rows that become records: the values of their features, by name, for each of `rows` rows.

    payloads      returns the serialized records of some rows, when records are written
    folders       the splits of the source's folders, where it splits by folder: row i is in that of number `codes[i]`
    task          the number of the task
    memory        what a splitter keeps from batch to batch of the task
    are_records   they are existing records, which no key of the config can change
    entry         the source entry of the rows: one for all, or one for each
    """

    schema: Schema
    columns: Mapping[str, FeatureColumn]
    rows: int
    payloads: Callable[[I64], Iterable[bytes]]
    folders: tuple[str, ...] = ()
    codes: I64 | None = None
    task: int = 0
    memory: dict[str, Any] = field(default_factory=dict)
    are_records: bool = False
    entry: int | I64 = 0

    def take(self, rows: I64, names: tuple[str, ...]) -> Candidates:
        columns = {name: _taken(self.columns[name], rows) for name in names}
        return replace(
            self,
            columns=columns,
            rows=len(rows),
            payloads=lambda some: self.payloads(rows[some]),
            folders=(),
            codes=None,
            entry=self.entry if isinstance(self.entry, int) else self.entry[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Assigned:
    """The split of each row: row i goes to `names[codes[i]]`; `observed` is what a splitter counts."""

    names: tuple[str, ...]
    codes: I64
    observed: dict[str, Any] = field(default_factory=dict)


class Splitter(ABC):
    """Says which split each row goes to."""

    __slots__ = ()

    @property
    def only(self) -> str | None:
        """The split of all rows, None if there may be several, or rows that no split takes."""
        return None

    @property
    def reads(self) -> tuple[str, ...]:
        """The features that it looks at."""
        return ()

    def check(self, schema: Schema) -> None:  # noqa: B027 - most have a feature to check
        """Raise `SchemaError` where a feature is not there, or not of a type that the splitter can take."""

    def shares(self) -> dict[str, float]:
        """Return the part of the rows that each split is expected to get; nothing where only reading tells."""
        return {}

    def problems(self, given: Candidates) -> list[tuple[int, CellError]]:  # noqa: ARG002
        """Return the rows that no split takes, and why: they are rejects. No record is written yet."""
        return []

    @abstractmethod
    def assign(self, given: Candidates) -> Assigned:
        """Return the splits of rows without problems. Raises `RunError` where there are too many splits or classes."""


@dataclass(frozen=True, slots=True, eq=False)
class Settlement:
    """Where the records go that were set aside, when all are counted.

    All records of stream `whole[i][0]` go to the split `whole[i][1]`. Those of the streams `dealt` go where `deal`
    says, which is called with all of them in the order of tasks.
    """

    whole: tuple[tuple[str, str], ...]
    dealt: tuple[str, ...]
    deal: Callable[[Candidates], Assigned]


class Settling(Splitter):
    """A splitter that sets records aside, in streams whose names `is_set_aside` knows.

    Where it is `in_order`, it must see the batches of a task in order, and needs its `memory`.
    """

    __slots__ = ()

    in_order: ClassVar[bool]

    @abstractmethod
    def settle(
        self, records: Mapping[str, int], observed: Any, look: Callable[[str], Iterable[Candidates]]
    ) -> Settlement:
        """Return where records go that were set aside.

        `records` are how many there are in each stream, `observed` what was counted under `DEALT`, and `look` returns
        the records of a stream.
        """


@dataclass(frozen=True, slots=True)
class OneSplit(Splitter):
    """All rows go to one split."""

    name: str = DEFAULT_SPLIT

    @property
    def only(self) -> str:
        return self.name

    def shares(self) -> dict[str, float]:
        return {self.name: 1.0}

    def assign(self, given: Candidates) -> Assigned:
        return Assigned((self.name,), np.zeros(given.rows, np.int64))


def scalar_feature(schema: Schema, name: str, key: str) -> Feature:
    """Return the scalar feature that the key `key` of the config names. Raises `SchemaError` where there is none."""
    scalars = [feature for feature in schema if feature.shape == ()]
    found = next((feature for feature in scalars if feature.name == name), None)
    if found is None:
        names = [feature.name for feature in scalars]
        if not any(feature.name == name for feature in schema):
            raise NoColumnError(key, name, names)
        held = f'{key}: "{printable(name)}" holds several values a row, and one is needed'
        raise SchemaError(f"{held}; {nearest_name(name, names)}")
    return found


def where_present(column: str) -> str:
    r"""Return the option that leaves out rows without a feature, which may be a part of a nested column.

    >>> where_present("user"), where_present("first name"), where_present("a/b")
    ("--where 'user is not None'", '--where \'col("first name") is not None\'', "--where 'a.b is not None'")
    """
    if printable(column) != column:
        return "--where"
    parts = column.split("/")
    if all(part.isidentifier() and not iskeyword(part) for part in parts):
        name = ".".join(parts)
    else:
        name = f"col({json.dumps(column, ensure_ascii=False)})"
    return str(Add("--where", f"{name} is not None"))


def present_rows(column: FeatureColumn, rows: int) -> npt.NDArray[np.bool_]:
    return np.ones(rows, bool) if column.present is None else column.present


def _taken(column: FeatureColumn, rows: I64) -> FeatureColumn:
    present = None if column.present is None else column.present[rows]
    return replace(column, values=column.values[rows], present=present)
