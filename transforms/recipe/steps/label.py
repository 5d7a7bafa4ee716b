"""Steps that make a column a class label: a number from 0, with the names of the classes in the manifest.

The classes are given, or learned: all values of the column, sorted, numbers by size. In an append the dataset's classes
keep their numbers, and new ones come at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import SchemaError, UsageError
from ...format.batches.arrow_memory import array_of, int_array, text_array
from ...format.batches.rejects import CellError, CellProblem
from ...format.columns.feature_column import lists_of
from ...format.columns.flatten import stored
from ...format.columns.keys import is_any_list, stored_type
from ...format.schema.arrow_types import classes_of, plain_type
from ...format.schema.column_types import is_binary, is_string
from ...format.wording.hints import Set, set_column
from ...format.wording.printable import NoColumnError, first_names, printable
from ..step import Column, ColumnStep, Labels, Step, StepByType, Stepped, Types, as_text, is_text, with_column

MOST_CLASSES: Final = 100_000
"""More are no classes: they would be kept in the manifest, and in every worker."""

_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Label(ColumnStep):
    """Make the column a label. `classes` are given in the config, None where they are learned.

    `numbered` are the classes by number: those that are given, or the dataset's and then those that were learned.
    `held` are those of the dataset of an append that gives none. With `nulls` a null stays one beside given classes,
    as it does beside learned ones. `numeric` classes are whole numbers, also as text, in the order of these.
    """

    classes: tuple[str, ...] | None = None
    numbered: tuple[str, ...] = ()
    learns: bool = True
    held: tuple[str, ...] = ()
    nulls: bool = field(default=False, repr=False)
    numeric: bool = False

    @classmethod
    def of(cls, column: str, classes: Sequence[str] | Literal["numeric"] | None, *, nulls: bool = False) -> Label:
        if classes is None or classes == "numeric":
            return cls(column, numeric=classes is not None)
        return cls(column, tuple(classes), tuple(classes), learns=False, nulls=nulls)

    @property
    def _keeps_nulls(self) -> bool:
        return self.classes is None or self.nulls

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name: column for column in columns}
        if self.column not in known:
            raise NoColumnError("schema.columns", self.column, list(known))
        kind = plain_type(known[self.column].field.type)
        if not (is_text(known[self.column]) or types.is_integer(kind) or types.is_boolean(kind)):
            raise SchemaError(
                f'column "{printable(self.column)}": a label is text, a whole number or a bool, and it holds {kind}; '
                f"leave label out, or make it text (CSV and JSON lines: {set_column(self.column, 'type', 'string')})"
            )
        field = pa.field(self.column, pa.int64(), known[self.column].field.nullable and self._keeps_nulls)
        label = Column(field, reason=self._reason(), labels=self.numbered)
        return [label if column.name == self.column else column for column in columns]

    def look(self, batch: pa.RecordBatch) -> list[str | int]:
        """Return the values of the column, each once. Raises `SchemaError` where there are too many to be classes."""
        return self._bounded(pc.unique(_plain(batch[self.column])).drop_null().to_pylist())

    def merge(self, one: list[str | int], other: list[str | int]) -> list[str | int]:
        return self._bounded(list(dict.fromkeys([*one, *other])))

    def learned(self, summary: list[str | int] | None) -> Label:
        values = [one for one in summary or [] if self._names_numbers() or not _is_number(one)]
        found = [_name(value) for value in sorted(values, key=lambda value: (isinstance(value, str), value))]
        if self.numeric:
            found = in_order_of_numbers(found, self._key)
        numbered = tuple(dict.fromkeys([*self.numbered, *found]))
        return replace(self, numbered=numbered, learns=False)

    def under(self, dataset: Types, labels: Labels) -> Label:  # noqa: ARG002
        """The dataset's classes come first. Raises `SchemaError` where given classes have other numbers there."""
        if self.classes is None:
            held = labels.get(self.column, ())
            return replace(self, numbered=held, held=held)
        refuse_other_numbers(self._key, self.classes, labels.get(self.column, ()))
        return self

    @property
    def _key(self) -> str:
        name = self.column if self.column.isidentifier() else json.dumps(self.column, ensure_ascii=False)
        return f"schema.columns.{name}.label"

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        values = _plain(batch[self.column])
        if types.is_integer(values.type) and not self._names_numbers():
            numbers = values.cast(pa.int64(), safe=False)
            known = pc.and_(pc.greater_equal(values, 0), pc.less(values, len(self.numbered)))
            numbers = pc.if_else(known, numbers, pa.scalar(None, pa.int64()))
        else:
            names = text_array(self.numbered).cast(pa.large_string())
            numbers = pc.index_in(as_text(values), value_set=names).cast(pa.int64())
        return Stepped(with_column(batch, self.column, numbers), None, self._problems(values, numbers))

    def _names_numbers(self) -> bool:
        """Return whether the classes are names of whole numbers: else numbers in the source are numbers of classes."""
        return all(name.lstrip("-").isdecimal() for name in (self.held if self.classes is None else self.classes))

    def _problems(self, values: pa.Array, numbers: pa.Array) -> tuple[CellProblem, ...]:
        missing = pc.and_(numbers.is_null(), values.is_valid()) if self._keeps_nulls else numbers.is_null()
        if not pc.any(missing).as_py():
            return ()
        shown = first_names(self.numbered, _SHOWN)
        add = f"add it to schema.columns.{printable(self.column)}.label, or fix the row"
        keep = f"say what becomes of nulls: {set_column(self.column, 'null', 'absent')}, or drop_row"
        problems = []
        for row in pc.indices_nonzero(missing).to_pylist():
            value = values[row].as_py()
            if value is None:
                text = f"there is no class for null; {keep}"
                error = CellError(self.column, "DECLARED_NOT_NULL", "null", "a class", text)
            else:
                text = f'"{printable(_name(value))}" is no class: {shown}; {add}'
                error = CellError(self.column, "UNKNOWN_CLASS", printable(_name(value)), f"one of {shown}", text)
            problems.append(CellProblem(row, error))
        return tuple(problems)

    def _bounded(self, values: list[Any]) -> list[Any]:
        if len(values) > MOST_CLASSES:
            raise SchemaError(
                f'column "{printable(self.column)}" has more than {MOST_CLASSES:,} different values, which are no '
                f"classes; leave label out"
            )
        return values

    @property
    def detected(self) -> str:
        if self.classes is not None or not self.numbered:
            return ""
        alike = alike_note(self.numbered)
        note = () if self.held else numbers_note(self.numbered, self._key, "classes")
        return "; ".join([f"{self.column}: {self._reason()}", *(one for one in note if "order of text" in one), *alike])

    def _reason(self) -> str:
        count = "1 class" if len(self.numbered) == 1 else f"{len(self.numbered):,} classes"
        return f"{count}, {'as declared' if self.classes is not None else 'read from all rows of the column'}"


def in_order_of_numbers(classes: Iterable[str], key: str) -> list[str]:
    """Return classes that are whole numbers in their order; `key` is where the config asks for it.

    Raises:
        UsageError: one is none.
    """
    classes = list(classes)
    odd = next((name for name in classes if not name.lstrip("-").isdecimal()), None)
    if odd is not None:
        raise UsageError(f'{key}: is numeric, and the class "{printable(odd)}" is no whole number; leave it out')
    return sorted(classes, key=lambda name: (int(name), name))


def numbers_note(names: Sequence[str], key: str, what: str = "folders") -> tuple[str, ...]:
    """Return the note that classes named by numbers have other numbers as labels; `key` orders them otherwise.

    >>> numbers_note(["0", "1", "2"], "input.labels"), numbers_note(["1", "2"], "input.labels")
    ((), ('folders are named by numbers: "1" is label 0',))
    """
    if not names or not all(name.isdecimal() for name in names):
        return ()
    odd = next((label for label, name in enumerate(names) if int(name) != label), None)
    if odd is None:
        return ()
    if in_order_of_numbers(names, key) == list(names):
        return (f'{what} are named by numbers: "{names[odd]}" is label {odd}',)
    order = f"to order numbers: {Set(key, 'numeric')}"
    return (f'{what} are named by numbers, in the order of text: "{names[odd]}" is label {odd}; {order}',)


def alike_note(names: Sequence[str]) -> tuple[str, ...]:
    """Return the note that some classes differ in capitals and blanks alone.

    >>> alike_note(["Cat", "cat", "dog"])
    ('"Cat" and "cat" are two classes, and differ in capitals or blanks alone',)
    """
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(" ".join(name.split()).casefold(), []).append(name)
    same = [alike for alike in found.values() if len(alike) > 1]
    if not same:
        return ()
    shown = " and ".join(f'"{printable(name)}"' for name in same[0][:_SHOWN])
    count = "two" if len(same[0]) == 2 else f"{len(same[0]):,}"
    more = f"; {len(same) - 1:,} more are so" if len(same) > 1 else ""
    return (f"{shown} are {count} classes, and differ in capitals or blanks alone{more}",)


def refuse_other_numbers(key: str, given: Sequence[str], dataset: Sequence[str]) -> None:
    """Refuse given classes of an append unless they are the dataset's, in their order, and then new ones.

    They may be fewer. `key` is where the config gives them. Raises `SchemaError`: a number would have two classes.
    """
    number = next((i for i, pair in enumerate(zip(given, dataset, strict=False)) if pair[0] != pair[1]), None)
    if number is None:
        return
    new = [name for name in given if name not in dataset]
    classes = [*dataset, *new]
    fix = f": {Set(key, classes)}" if len(classes) <= _SHOWN else ""
    raise SchemaError(
        f'{printable(key)}: class {number} is "{printable(given[number])}", and "{printable(dataset[number])}" in the '
        f"dataset, whose classes keep their numbers; leave the key out, or give the dataset's classes first{fix}"
    )


def _plain(values: pa.Array) -> pa.Array:
    """Return values without their extension and dictionary, and text of any Arrow type as one type."""
    kind = plain_type(values.type)
    return as_text(values) if is_string(kind) else values.cast(kind)


def _is_number(value: str | int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _name(value: str | int) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


# Columns of numbers whose classes their files name are labels, without a word in the config:
#
#     classes of the file   neg pos        0  1  -1   [0, 1]
#     of the dataset        pos neg        1  0  null [1, 0]
#
# In an append the classes of the dataset keep their numbers, and new ones come at the end. -1 is no class, as Hugging
# Face has it, and becomes a null; in a list, and with any other number that has no name, its row is a reject.


_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class NamedClasses(Step):
    """Make columns of numbers labels: each has a name, the classes of its file, and those of the dataset, by number.

    `unlabelled` are the columns in which a row has no class; None before all rows were looked at. `within` says that
    the columns are fields within others.
    """

    columns: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
    unlabelled: tuple[str, ...] | None = None
    within: bool = False

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.columns)

    @property
    def learns(self) -> bool:
        return self.unlabelled is None

    def look(self, batch: pa.RecordBatch) -> list[str]:
        scalars = {name: stored(batch[name]) for name in self.reads if not is_any_list(stored_type(batch[name].type))}
        return [name for name, values in scalars.items() if pc.any(pc.equal(values, _NONE)).as_py()]

    def merge(self, one: list[str], other: list[str]) -> list[str]:
        return list(dict.fromkeys([*one, *other]))

    def learned(self, summary: list[str] | None) -> NamedClasses:
        return replace(self, unlabelled=tuple(sorted(summary or ())))

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {name: classes for name, _, classes in self.columns}
        return [_planned(one, known[one.name], self.unlabelled or ()) if one.name in known else one for one in columns]

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        problems: list[CellProblem] = []
        for name, own, classes in self.columns:
            values = stored(batch[name])
            cells = lists_of(values) if is_any_list(values.type) else None
            numbers, unknown = _numbered(values if cells is None else cells.values, own, classes, lists=bool(cells))
            for at in unknown:
                row = at if cells is None else cells.row_of(at)
                problems.append(CellProblem(row, _unknown(name, values[row].as_py(), own, self._plain(name))))
            if cells is not None and cells.offsets is not None:
                mask = values.is_null() if values.null_count else None
                numbers = pa.LargeListArray.from_arrays(array_of(cells.offsets), numbers.fill_null(0), mask=mask)
            batch = with_column(batch, name, numbers)
        return Stepped(batch, None, tuple({one.row: one for one in reversed(problems)}.values()))

    @property
    def detected(self) -> str:
        named = "; ".join(f"{printable(name)}: {first_names(own, _SHOWN)}" for name, own, _ in self.columns)
        none = f"; without a class (-1), and so null, are rows of {first_names(self.unlabelled or (), _SHOWN)}"
        keep = f"; to keep plain numbers: {self._plain(self.columns[0][0])}"
        return f"classes that the files name: {named}{none if self.unlabelled else ''}{keep}"

    def _plain(self, name: str) -> Set:
        """Return the option by which the numbers of a column stay as they are."""
        return Set("input.detect", "none") if self.within else set_column(name, "type", "int64")


@dataclass(frozen=True, slots=True)
class ClassesOfFiles(StepByType):
    """Columns of numbers whose classes their files name are labels, but for those that are `declared`.

    Fields within others are so too, once they are flat; the `plain` ones, numbers in the dataset of an append, are not.
    `held` are the classes of that dataset, by the columns of the source.
    """

    is_first = True

    declared: frozenset[str] = frozenset()
    held: Labels = field(default_factory=dict)
    plain: frozenset[str] = frozenset()

    def under(self, dataset: Types, labels: Labels) -> ClassesOfFiles:
        return replace(self, held=labels, plain=frozenset(dataset) - frozenset(labels))

    def step(self, columns: Sequence[Column]) -> Step | None:
        found = []
        for one in columns:
            names, kind = classes_of(one.field), stored_type(one.field.type)
            is_number = types.is_signed_integer(kind) or (
                is_any_list(kind) and types.is_signed_integer(stored_type(kind.value_type))
            )
            left = self.declared if one.origin is not None else self.declared | self.plain
            if names and is_number and one.name not in left:
                found.append((one.name, names, tuple(dict.fromkeys([*self.held.get(one.name, ()), *names]))))
        return NamedClasses(tuple(found), within=all(one.origin is None for one in columns)) if found else None


def _planned(column: Column, classes: Sequence[str], unlabelled: Sequence[str]) -> Column:
    listed = is_any_list(stored_type(column.field.type))
    kind = pa.large_list(pa.int64()) if listed else pa.int64()
    nullable = column.field.nullable or column.name in unlabelled
    count = "1 class" if len(classes) == 1 else f"{len(classes):,} classes"
    made = pa.field(column.name, kind, nullable)
    return Column(made, reason=f"{count}, named by the files", labels=tuple(classes))


def _numbered(
    values: pa.Array, own: Sequence[str], classes: Sequence[str], *, lists: bool
) -> tuple[pa.Array, list[int]]:
    """Return the numbers that classes of a file have in the dataset, and the places of those that have no name."""
    least = 0 if lists else _NONE
    unnamed = pc.or_(pc.less(values, least), pc.greater_equal(values, len(own)))
    known = pc.and_(pc.invert(unnamed), pc.greater_equal(values, 0))
    numbers = pc.if_else(known, values, pa.scalar(None, values.type)).cast(pa.int64())
    if list(own) != list(classes[: len(own)]):
        numbers = int_array([classes.index(name) for name in own]).take(numbers)
    return numbers, np.flatnonzero(unnamed.fill_null(False).to_numpy(zero_copy_only=False)).tolist()


def _unknown(name: str, value: object, own: Sequence[str], plain: Set) -> CellError:
    shown = first_names(own, _SHOWN)
    text = f"the file names the classes 0 to {len(own) - 1} ({shown}); fix the row, or keep plain numbers: {plain}"
    return CellError(name, "UNKNOWN_CLASS", printable(str(value)), f"0 to {len(own) - 1}", text)


_FEWEST: Final = 3
_IDS: Final = re.compile(r"(?:\b|_)(?:id|index)$|I[dD]$")
_MOST_OTHERS: Final = 3
_ITEMS: Final = pa.list_(pa.field("item", pa.int64(), nullable=False))


@dataclass(frozen=True, slots=True)
class Flags(Step):
    """Make one list of columns, in which each is a class: the numbers of those that are 1."""

    name: str
    columns: tuple[str, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns

    def under(self, dataset: Types, labels: Labels) -> Flags:  # noqa: ARG002
        """Raises `SchemaError` where the columns have other numbers in the dataset."""
        refuse_other_numbers(f"schema.classes.{self.name}", self.columns, labels.get(self.name, ()))
        return self

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name: plain_type(column.field.type) for column in columns}
        for name in self.columns:
            if name not in known:
                raise NoColumnError("schema.classes", name, list(known))
            if not (types.is_integer(known[name]) or types.is_boolean(known[name]) or types.is_floating(known[name])):
                raise SchemaError(
                    f'schema.classes: column "{printable(name)}" holds {known[name]}, and not 0 and 1; leave it out'
                )
        if self.name in known and self.name not in self.columns:
            raise SchemaError(f'schema.classes: there is a column "{printable(self.name)}"; choose another name')
        made = Column(pa.field(self.name, _ITEMS, nullable=False), reason="schema.classes", labels=self.columns)
        first = next(at for at, column in enumerate(columns) if column.name in self.columns)
        kept = [column for column in columns if column.name not in self.columns]
        return [*kept[:first], made, *kept[first:]]

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        flags, problems = np.zeros((batch.num_rows, len(self.columns)), bool), list[CellProblem]()
        for at, name in enumerate(self.columns):
            values = batch[name].cast(plain_type(batch[name].type)).cast(pa.float64(), safe=False)
            flags[:, at] = pc.fill_null(pc.equal(values, 1), fill_value=False).to_numpy(zero_copy_only=False)
            odd = pc.fill_null(pc.and_(pc.not_equal(values, 0), pc.not_equal(values, 1)), fill_value=True)
            for row in pc.indices_nonzero(odd).to_pylist():
                shown = str(batch[name][row].as_py()).replace("None", "null")
                text = "neither 0 nor 1; fix the row, or leave the column out of schema.classes"
                problems.append(CellProblem(row, CellError(name, "UNKNOWN_CLASS", shown, "0 or 1", text)))
        ends = np.concatenate([[0], np.cumsum(flags.sum(axis=1))]).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(ends), pa.array(np.nonzero(flags)[1].astype(np.int64)), type=_ITEMS)
        kept = [name for name in batch.schema.names if name not in self.columns]
        arrays = [*(batch[name] for name in kept), lists]
        return Stepped(pa.RecordBatch.from_arrays(arrays, names=[*kept, self.name]), None, tuple(problems))


def told_by_flags(batch: pa.RecordBatch) -> tuple[str, ...]:
    """Return what to say of a table whose numbers are 0 and 1 alone, beside pictures, ids, or a few texts."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    names = [name for name, one in columns.items() if _is_flag(one) and "/" not in name]
    others = {name: one.type for name, one in columns.items() if name not in names and "/" not in name}
    keys = all(is_string(kind) or is_binary(kind) or _IDS.search(name) for name, kind in others.items())
    alone = len(names) == len(columns)
    if len(names) < _FEWEST or alone or len(others) > _MOST_OTHERS or not keys:
        return ()
    option = Set("schema.classes", {"classes": names})
    return (f"columns {first_names(names, 4)} hold 0 and 1 alone; to make one list of classes of them: {option}",)


def _is_flag(column: pa.Array) -> bool:
    if not types.is_integer(column.type) or column.null_count or not len(column):
        return False
    return set(pc.unique(column).to_pylist()) == {0, 1}
