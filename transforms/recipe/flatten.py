"""The last step of every recipe: nested columns and decimals become columns that one feature holds each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyarrow import types

from ..errors import SchemaError
from ..format.batches.rejects import CellProblem
from ..format.manifest.manifest import ColumnEntry
from ..format.nested.flatten import JSON, Flattened, empty_array, flatten_column, refuse_unsupported, without_json
from ..format.nested.keys import (
    FLAT_VALUES,
    MASK,
    PRESENT,
    has_decimals,
    is_flat,
    stored_type,
    type_document,
    type_of_document,
    with_floats,
)
from ..format.schema.arrow_checks import times_within
from ..format.schema.arrow_types import ColumnLayout, classes_of, classes_within, type_words, with_own_classes
from ..format.schema.column_types import named_type
from ..format.schema.schema import ColumnRule
from ..format.wording.printable import printable
from ..inputs.contract.selection import exclude_columns
from .step import Column, Step, Stepped

_DECIMAL_FORMS = ("float", "scaled")


@dataclass(frozen=True, slots=True)
class Flattening:
    """How a column is flattened: whether nulls are allowed, the form of its values.

    `source` is the column of the source that a config names it by, None where a step made it.
    """

    nullable: bool
    as_: str | None
    source: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Flatten(Step):
    """Flatten columns, given by name. `classes` has the names of classes that the files state, by flat column."""

    columns: tuple[tuple[str, Flattening], ...]
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, columns: Sequence[Column], rules: Mapping[str, ColumnRule]) -> Flatten | None:
        """Return the step for the columns that no feature holds as they are, None if there are none of them.

        `rules` are declared forms, by the columns of the source. Raises `SchemaError` where no features hold a column,
        or a rule does not fit it.
        """
        nested = [column for column in columns if not is_flat(column.field.type)]
        if not nested:
            return None
        declared = {column.name: rules.get(column.origin or "", ColumnRule()) for column in nested}
        fields = [column.field for column in columns]
        refuse_unsupported(without_json(fields, declared), "", exclude_columns)
        found = []
        for column in nested:
            rule = declared[column.name]
            nullable = column.field.nullable if rule.nullable is None else rule.nullable
            found.append((column.name, Flattening(nullable, _form(column, rule), column.origin)))
        named: dict[str, Sequence[str]] = {one.name: classes_of(one.field) for one in nested}
        named |= {f"{one.name}/{path}": names for one in nested for path, names in classes_within(one.field).items()}
        return cls(tuple(found), {name: names for name, names in named.items() if names})

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        planned: list[Column] = []
        wanted = self._wanted()
        for column in columns:
            if column.name not in wanted:
                planned.append(column)
                continue
            kind = column.field.type
            reason = f'of "{printable(column.name)}" ({_short(kind)})'
            for flat in _flattened(column.name, empty_array(kind), wanted[column.name]).columns:
                field = pa.field(flat.name, flat.values.type, flat.nullable)
                field = with_own_classes(field, self.classes.get(flat.name.removesuffix(f"/{FLAT_VALUES}")))
                rule = ColumnRule(unit=getattr(ColumnLayout.of(field.name, field.type).scalar, "unit", None))
                own = _short(kind) if flat.name == column.name else reason
                planned.append(Column(field, reason=own, rule=rule))
        return planned

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        wanted, names, arrays = self._wanted(), list[str](), list[pa.Array]()
        problems: list[CellProblem] = []
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            if name not in wanted:
                names.append(name)
                arrays.append(array)
                continue
            found = _flattened(name, array, wanted[name])
            names += [flat.name for flat in found.columns]
            arrays += [flat.values for flat in found.columns]
            problems += found.problems
        return Stepped(pa.RecordBatch.from_arrays(arrays, names=names), None, tuple(problems))

    def entry(self, column: Column) -> ColumnEntry | None:
        kind, name, wanted = column.field.type, column.name, self._wanted()
        if name not in wanted:
            return None
        how = wanted[name]
        names = tuple(flat.name for flat in _flattened(name, empty_array(kind), how).columns)
        document = "string" if how.as_ == JSON else type_document(kind)
        document = with_floats(document) if how.as_ == "float" else document
        null = "present" if how.nullable and f"{name}/{PRESENT}" in names else column.null
        return ColumnEntry(name, document, names, null)

    def _wanted(self) -> dict[str, Flattening]:
        return dict(self.columns)


def _flattened(name: str, array: pa.Array, how: Flattening) -> Flattened:
    return flatten_column(name, array, nullable=how.nullable, as_=how.as_, source=how.source)


def column_entries(columns: Sequence[Column], flatten: Flatten | None) -> tuple[ColumnEntry, ...]:
    """Return what the manifest says of columns before they are flattened; nothing where each is a feature as it is."""
    if flatten is None and all(column.null == "absent" and column.file is None for column in columns):
        return ()
    masks = {f"{column.name}/{MASK}" for column in columns if column.null == MASK}
    entries = []
    for column in columns:
        entry = None if flatten is None else flatten.entry(column)
        if entry is None and column.name not in masks:
            names = (column.name, f"{column.name}/{MASK}") if column.null == MASK else (column.name,)
            entry = ColumnEntry(
                column.name, type_document(column.field.type), names, column.null, column.fill, column.file
            )
        entries += [] if entry is None else [entry]
    return tuple(entries)


def following(
    rules: Mapping[str, ColumnRule],
    columns: Sequence[Column],
    kinds: Mapping[str, str],
    entries: Sequence[ColumnEntry],
) -> dict[str, ColumnRule]:
    """Return rules for an append: columns are kept as the dataset keeps them, whose features have these kinds.

    A decimal has its form, and a nested column is one that may be null where it is so in the dataset, with times in
    the unit that they have there.
    """
    found, known = dict(rules), {entry.name: entry for entry in entries}
    for column in columns:
        if column.origin is None:
            continue
        rule, entry = found.get(column.origin, ColumnRule()), known.get(column.name)
        if types.is_decimal(stored_type(column.field.type)) and rule.as_ is None:
            rule = replace(rule, as_={"int64": "scaled", "float": "float"}.get(kinds.get(column.name, "")))
        elif entry is not None and entry.type == "string" and rule.as_ is None and types.is_nested(column.field.type):
            rule = replace(rule, as_=JSON)
        elif entry is not None and entry.features != (column.name,) and rule.nullable is None:
            rule = replace(rule, nullable=entry.null == "present")
        if entry is not None and rule.unit is None and types.is_nested(column.field.type):
            units = times_within(type_of_document(entry.type))
            rule = replace(rule, unit=units.pop()) if len(units) == 1 else rule
        found[column.origin] = rule
    return found


def _form(column: Column, rule: ColumnRule) -> str | None:
    """Raise `SchemaError` where the column has no form that the rule asks for."""
    kind, name = column.field.type, printable(column.name)
    if rule.unit is not None and not times_within(kind):
        raise SchemaError(f'column "{name}": a unit does not fit {_short(kind)}, which holds no times')
    forms = (*((*_DECIMAL_FORMS,) if has_decimals(kind) else ()), *(() if types.is_decimal(kind) else (JSON,)))
    if rule.as_ is not None and rule.as_ not in forms:
        raise SchemaError(
            f'column "{name}": "as: {printable(rule.as_)}" does not fit {_short(kind)}; '
            f"the choices are {', '.join(forms)}"
        )
    if rule.type is None:
        return rule.as_
    declared = named_type("float32" if rule.type == "float" else rule.type)
    if types.is_decimal(kind) and declared is not None and declared.name in ("string", "float32", "float64"):
        return rule.as_ or (None if declared.name == "string" else "float")
    raise SchemaError(
        f'column "{name}": schema.columns declares type "{printable(rule.type)}", but it holds {_short(kind)}; leave '
        f"the type out"
    )


def _short(kind: pa.DataType) -> str:
    return printable(type_words(kind))
