"""The contract of a step of the recipe. An author of steps needs this module alone.

@dataclass(frozen=True)
class Doubled(Step):
    column: str

    def plan(self, columns):
        return [column.computed() if column.name == self.column else column for column in columns]

    def apply(self, batch, file):
        return with_column(batch, self.column, pc.multiply_checked(batch[self.column], 2))
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..format.batches.rejects import CellProblem
from ..format.columns.flatten import stored
from ..format.schema.arrow_types import plain_type
from ..format.schema.column_types import is_string
from ..format.schema.schema import ColumnRule
from ..inputs.contract.source import Listing

Types: TypeAlias = Mapping[str, pa.DataType]
Labels: TypeAlias = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Column:
    """A column between two steps.

    field    its name, its Arrow type and whether it may hold nulls
    origin   the column of the source whose values it holds unchanged, None if a step made it
    reason   where it comes from then, for `--dry-run`
    form     the column of the source whose feature it becomes (an image, a class, `as: bytes`), or None
    labels   the names of classes, by number, of these numbers (int64), lists of them, or objects that have them
    rule     what feature a column of a step becomes, where its type alone leaves that open
    null     what became of its nulls, as the manifest states it; `fill` is the value in their place
    file     `path` where its values are the bytes of files that the source's column names
    length   the items of each of its lists, where these are of any length in batches
    """

    field: pa.Field
    origin: str | None = None
    reason: str = "made by a step"
    form: str | None = None
    labels: tuple[str, ...] | None = None
    rule: ColumnRule | None = None
    null: str = "absent"
    fill: str | int | float | bool | None = None
    file: str | None = None
    length: int | None = None

    @property
    def name(self) -> str:
        name: str = self.field.name
        return name

    def renamed(self, name: str) -> Column:
        """Return the same values under another name."""
        return replace(self, field=self.field.with_name(name))

    def computed(self, type_: pa.DataType | None = None) -> Column:
        """Return a column of this name whose values a step makes, of this or of another type."""
        return Column(self.field if type_ is None else self.field.with_type(type_))


@dataclass(frozen=True, slots=True)
class Stepped:
    """A batch after a step: as many rows as before, in their order.

    `keep` says of each row whether it stays (None: all do); the others are counted as dropped. A null is no. `problems`
    are bad cells: their rows are rejects, whatever is in the cells. They name columns as the step sees them.
    `notes` are what the user should know of rows, each with its row: they are counted. `split_codes` are the splits of
    the rows, by a step that splits (int64): -1 in rows with a problem. `warned` are the warnings of pictures, each with
    its row: they are counted, and the first are shown with their place.
    """

    batch: pa.RecordBatch
    keep: pa.BooleanArray | None = None
    problems: tuple[CellProblem, ...] = ()
    split_codes: npt.NDArray[np.int64] | None = None
    notes: tuple[tuple[int, str], ...] = ()
    warned: tuple[tuple[int, str], ...] = ()


class Step:
    """One thing that is done to all rows: a frozen, picklable dataclass, whose `repr` says all that it does.

    Each method is there for steps that do something of its kind, and says by default what all others do.

    Columns have the types that the source gives them: text of Parquet may be string, large_string, string_view, or a
    dictionary of one of these (`is_text` in `plan`, and `as_text` in `apply`).

    The result for a row depends on that row and on the file alone, never on the other rows of the batch: how many rows
    a batch has may change. Cells that the source found bad are null when a step sees them; their rows are rejected
    unless a step with `drops_bad_rows` drops them.
    """

    __slots__ = ()

    takes_parts: ClassVar[bool] = False
    """Whether it has `take`, as it reads what rows name, and memory may not hold that for a whole batch."""

    drops_bad_rows: ClassVar[bool] = False
    """Whether a row is no reject that it drops by columns, in `reads`, in which the row has no bad cell."""

    @property
    def is_of_file(self) -> bool:
        """Whether it has to know the file that rows are from: a batch then has those of one file."""
        return False

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        """Return the columns after the step, given those before.

        Raises:
            SchemaError: the step does not fit the columns; the message names the column, and what to do.
        """
        return columns

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch | Stepped:  # noqa: ARG002
        """Return the batch with the planned columns, in any order; `file` is the name of the file, as it is shown.

        `file` is empty where the rows come from memory, or are files themselves (images).
        """
        return batch

    def take(self, batch: pa.RecordBatch) -> tuple[Stepped, int]:
        """Return the first rows of a batch after the step, and how many these are: at least one, if there are any."""
        raise NotImplementedError

    @property
    def reads(self) -> tuple[str, ...] | None:
        """The columns that it looks at, by their names before it, so that a batch may lack others; None for any."""
        return None

    @property
    def detected(self) -> str:
        """What to say to the user before the run, of files and rows that it has looked at; empty for nothing."""
        return ""

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits, by their codes, where it says which split each row is in."""
        return ()

    @property
    def told_by_files(self) -> tuple[str, ...]:
        """The columns that the names of files tell, which the files need not hold."""
        return ()

    def of_files(self, listing: Listing) -> Step | None:  # noqa: ARG002
        """Return the step for these files, None if there is nothing to do; it is called before `plan`."""
        return self

    def at(self, path: bytes) -> Step:  # noqa: ARG002
        """Return the step for the rows of a file, whose absolute path (or URL) is given."""
        return self

    def under(self, dataset: Types, labels: Labels) -> Step:  # noqa: ARG002
        """Return the step that gives columns of these names these types, and classes these numbers, where it can.

        They are those of the dataset that rows are appended to.
        """
        return self

    @property
    def learns(self) -> bool:
        """Whether it has to look at the columns `reads` of all rows before it can be applied."""
        return False

    def look(self, batch: pa.RecordBatch) -> Any:
        """Return a summary of a batch, as it is before any step that learns; it is picklable."""
        raise NotImplementedError

    def merge(self, one: Any, other: Any) -> Any:
        """Return the summary of two runs of rows; `one` comes before `other`."""
        raise NotImplementedError

    def learned(self, summary: Any) -> Step:
        """Return the step that knows the summary of all rows, None if there are no rows."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ColumnStep(Step):
    """A step that looks at one column, its first field."""

    column: str

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)


class StepByType:
    """What is done with columns of some types where nobody says otherwise: a frozen, picklable dataclass."""

    __slots__ = ()

    is_asked_for: ClassVar[bool] = False
    """Whether somebody said so: then rows that nothing else changes go through it too."""

    is_first: ClassVar[bool] = False
    """Whether its step is before all others, and sees the columns of the source."""

    @abstractmethod
    def step(self, columns: Sequence[Column]) -> Step | None:
        """Return the step for these columns, None where none is of such a type."""

    def under(self, dataset: Types, labels: Labels) -> StepByType:  # noqa: ARG002
        """Return what gives the steps for rows that are appended to a dataset, of these types and classes."""
        return self


def is_text(column: Column) -> bool:
    """Return whether a column is text, of whatever Arrow type."""
    found: bool = is_string(plain_type(column.field.type))
    return found


def as_text(values: pa.Array) -> pa.Array:
    """Return text of any Arrow type as large_string, which all functions of Arrow take."""
    return stored(values).cast(pa.large_string())


def with_column(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return a batch with the values of one column replaced, or with one column more."""
    names = batch.schema.names
    columns = dict(zip(names, batch.columns, strict=True)) | {name: values}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
