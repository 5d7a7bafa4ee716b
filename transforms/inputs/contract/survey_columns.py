"""Decide the features of columns that several typed files share, and state the reason of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError
from ...format.batches.arrow_memory import raw_values, valid_mask
from ...format.batches.rejects import CellError, CellProblem
from ...format.batches.rows import Rows
from ...format.columns.flatten import refuse_unsupported, without_json
from ...format.columns.keys import is_flat
from ...format.schema.arrow_types import (
    PERIOD,
    classes_in,
    common_type,
    feature_of,
    is_list,
    meaning,
    media_lines,
    named_fields,
    promoted_type,
)
from ...format.schema.schema import Choice, ColumnRule, Feature, Schema
from ...format.wording.hints import Python
from ...format.wording.printable import NoColumnError, first_names, printable
from .selection import (
    EVERY_COLUMN,
    UNITE,
    Selection,
    apart_warning,
    as_one_column,
    capitals_warnings,
    files_apart,
    lacking_files,
    same_but_capitals,
)
from .source import Frozen, Piece, Survey, UnitedFrozen

_Common: TypeAlias = Callable[[pa.DataType, pa.DataType], pa.DataType | None]


class FileColumns(Protocol):
    """The columns of a file: its footer, or what else planning reads of it."""

    @property
    def name(self) -> str:
        """The name of the file."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""

    @property
    def schema(self) -> pa.Schema:
        """The chosen columns, in the order of the file."""

    @property
    def null_reasons(self) -> tuple[str, ...]:
        """The reason why each chosen column may hold nulls, or not."""


@dataclass(frozen=True, slots=True)
class SharedColumns:
    """The columns of all files, why each may hold nulls or not, and the first file that has it, all in one order.

    `apart` are files that have none of the columns of any other one, `warnings` are of names that differ in capitals.
    """

    schema: pa.Schema
    reasons: tuple[str, ...]
    files: tuple[str, ...]
    apart: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def shared_columns(
    footers: Sequence[FileColumns], *, union: bool = False, selection: Selection = EVERY_COLUMN
) -> SharedColumns:
    """Return the columns that all files have, in the order of the first, and what is known of the nulls of each.

    A column is nullable where any file's is, and of the type that holds the values of all exactly. With `union` they
    are the columns of any file, as they come first, and null where a file lacks one; integers and floats are promoted.
    Raises `SchemaError` with both files, the field and its types where two files differ.
    """
    first = footers[0]
    fields: dict[str, pa.Field] = {}
    reasons: dict[str, str] = {}
    seen_in: dict[str, str] = {}
    widened: dict[str, str] = {}
    for other in footers:
        if other is not first and other.schema.equals(first.schema):
            continue
        if other is not first and not union:
            _check_names(first, other, footers, selection)
        for column, reason in zip(other.schema, other.null_reasons, strict=True):
            name = column.name
            if name not in fields:
                fields[name], reasons[name], seen_in[name] = column, reason, other.name
                continue
            kind = _common_type(fields[name].type, column.type, union=union)
            if kind is None:
                raise SchemaError(_types_differ(fields[name], seen_in[name], footers, other, selection, union=union))
            if kind != meaning(fields[name].type):
                widened.setdefault(name, f"{fields[name].type} in {seen_in[name]}")
                fields[name] = fields[name].with_type(kind)
            elif kind != meaning(column.type):
                widened.setdefault(name, f"{column.type} in {other.name}")
            if column.type != fields[name].type and _has_no_cast(fields[name].type, column.type):
                fields[name] = fields[name].with_type(kind)
            if column.nullable and not fields[name].nullable:
                fields[name] = fields[name].with_nullable(True)
                reasons[name] = f"{reason} ({other.name})"
    of_files = [(file.name, file.schema.names) for file in footers if union]
    lacking = lacking_files(of_files)
    why = [
        "; ".join([reasons[name], *(table[name] for table in (widened, lacking) if name in table)]) for name in fields
    ]
    schema = pa.schema([one.with_nullable(True) if one.name in lacking else one for one in fields.values()])
    return SharedColumns(
        schema, tuple(why), tuple(seen_in.values()), files_apart(of_files), capitals_warnings(of_files)
    )


def _has_no_cast(one: pa.DataType, other: pa.DataType) -> bool:
    """Return whether Arrow lacks a cast: of a list to a view of one, or of a dictionary to a view of text, or back."""
    both = f"{one} {other}"
    return "list_view" in str(one) or ("_view" in both and "dictionary" in both)


def _common_type(known: pa.DataType, other: pa.DataType, *, union: bool) -> pa.DataType | None:
    return meaning(known) if known == other else (promoted_type if union else common_type)(known, other)


def _check_names(first: FileColumns, other: FileColumns, files: Sequence[FileColumns], selection: Selection) -> None:
    """Raise `SchemaError` where one file has a column that the other lacks; their order is free."""
    own, theirs = first.schema.names, other.schema.names
    if set(own) == set(theirs):
        return
    counts = Counter(name for file in files for name in file.schema.names)
    odd = [name for name, count in counts.items() if count < len(files)]
    unite = _unite("column", odd if len(odd) < len(counts) else [], selection)
    alike = [
        names for names in same_but_capitals([*own, *theirs]) if not {*names} <= {*own} and not {*names} <= {*theirs}
    ]
    if alike:
        name = next(one for one in alike[0] if one in own)
        twin = next(one for one in alike[0] if one not in own)
        has = f'{first.name} has a column "{printable(name)}", and {other.name} has "{printable(twin)}" instead'
        raise SchemaError(f"{has}; {as_one_column(name, twin)}; or {unite}; or convert them apart")
    one, two, name = next(
        (one, two, name)
        for one, two in ((first, other), (other, first))
        for name in one.schema.names
        if name not in two.schema.names
    )
    thing = f'column "{printable(name)}"'
    differ = _one_lacks(thing, one.schema.field(name).type, one.name, two.name, later=other.name)
    raise SchemaError(f"{differ}; {unite}; or convert them apart")


def _one_lacks(thing: str, kind: pa.DataType, has: str, lacks: str, *, later: str) -> str:
    if lacks == later:
        return f"{lacks} has no {thing}, and {has} has it ({kind})"
    return f"{has} has a {thing} ({kind}), and {lacks} has none"


def _unite(noun: str, columns: Sequence[str], selection: Selection) -> str:
    """Return how to read what only some files have, or how to leave these columns out."""
    unite = f"read the {noun}s of all files, null where a file lacks one: {UNITE}"
    which = "column" if len(columns) == 1 else "columns"
    return f"{unite}; or leave the {which} out: {selection.leaving_out(columns)}" if columns else unite


def _types_differ(
    known: pa.Field,
    file: str,
    files: Sequence[FileColumns],
    other: FileColumns,
    selection: Selection,
    *,
    union: bool,
) -> str:
    """Return what to do about a column that is of `known` so far, first seen in `file`, and otherwise in another."""
    common = promoted_type if union else common_type
    name, theirs = known.name, other.schema.field(known.name).type
    before = [one for one in files[: files.index(other)] if name in one.schema.names]
    types = [(one.schema.field(name).type, one.name) for one in before]
    own, file = next(((kind, one) for kind, one in types if common(kind, theirs) is None), (known.type, file))
    unites = not union and promoted_type(own, theirs) is not None
    path, mine, twin = _where_they_differ(own, theirs, common, union=union)
    thing = f'column "{printable(name)}"'
    if path:
        thing = f'field "{printable("/".join(path))}" of {thing}'
    if mine is not None and twin is not None:
        unite = f"; or read both as {promoted_type(mine, twin)}, where that is exact: {UNITE}" if unites else ""
        return (
            f"{thing} is {mine} in {file}, and {twin} in {other.name}; "
            f"write one of them again with the other's type, or convert them apart{unite}"
        )
    has, lacks = (other.name, file) if mine is None else (file, other.name)
    differ = _one_lacks(thing, mine if twin is None else twin, has, lacks, later=other.name)
    fix = _unite("field", [name], selection) if unites else f"leave the column out: {selection.leaving_out([name])}"
    return f"{differ}; {fix}; or convert them apart"


def _where_they_differ(
    one: pa.DataType | None, other: pa.DataType | None, common: _Common, *, union: bool
) -> tuple[tuple[str, ...], pa.DataType | None, pa.DataType | None]:
    """Return the first field within two types that nothing holds together: its path, and its two types.

    A type is None where there is no such field; the path is empty where the types are no structs, nor lists of them.
    """
    own, listed = _fields_of(one)
    theirs, _ = _fields_of(other)
    for name in own | theirs if own and theirs else ():
        mine, twin = own.get(name), theirs.get(name)
        if mine is None or twin is None:
            if listed or not union:
                return (name,), mine, twin
        elif (common(pa.list_(mine), pa.list_(twin)) if listed else common(mine, twin)) is None:
            path, mine, twin = _where_they_differ(mine, twin, common, union=union and not listed)
            return (name, *path), mine, twin
    return (), one, other


def _fields_of(kind: pa.DataType | None) -> tuple[dict[str, pa.DataType], bool]:
    """Return the types of the fields of a struct or a map, also of those in lists, and whether they are in lists."""
    listed = False
    while kind is not None and (is_list(kind) or pa.types.is_fixed_size_list(kind)):
        kind, listed = kind.value_type, True
    if kind is not None and pa.types.is_map(kind):
        return {"key": kind.key_type, "value": kind.item_type}, True
    fields = {one.name: one.type for one in kind} if kind is not None and pa.types.is_struct(kind) else {}
    return fields, listed


_SHOWN: Final = 8

MANY_COLUMNS: Final = 1000
"""From here on a user is warned: 10,000 columns are read, but every one of them costs time for each batch."""


def survey_columns(
    files: Sequence[FileColumns], pieces: Sequence[Piece], rules: Mapping[str, ColumnRule], selection: Selection
) -> Survey:
    """Return the survey of some files with these pieces: what the chosen columns become, under declared types."""
    first = files[0]
    known = dict.fromkeys(name for file in files for name in file.columns)
    where = f"{first.name}: " if len(files) == 1 else ""
    if selection.union or len(files) > 1:
        selection.pick(list(known), where=where)
    selection.check_excluded(list(known), where=where)
    for name in rules:
        if name not in known and name not in selection.elsewhere:
            raise NoColumnError("schema.columns", name, list(known))
    found = shared_columns(files, union=selection.union, selection=selection)
    shared = found.schema
    refuse_unsupported(without_json(shared, rules), first.name, selection.leaving_out)
    features, choices = [], []
    for column, reason, file in zip(shared, found.reasons, found.files, strict=True):
        if not is_flat(column.type):
            continue
        feature, choice = _feature(column, rules.get(column.name), reason, file)
        features.append(feature)
        choices.append(choice)
    schema = Schema(tuple(sorted(features, key=lambda feature: feature.name)))
    warnings = (*apart_warning(found.apart), *found.warnings)
    if len(shared) > MANY_COLUMNS:
        many = f"{first.name}: {len(shared)} columns are read for every row; input.columns keeps only some"
        warnings = (many, *warnings)
    periods = [column.name for column in shared if PERIOD in (column.metadata or {})]
    warnings += tuple(_period_warning(name) for name in periods)
    frozen = UnitedFrozen(schema, fields=shared) if selection.union else Frozen(schema)
    fields = named_fields(shared, shared_classes(files))
    return Survey(frozen, tuple(choices), pieces, warnings, detected=media_lines(fields), fields=fields)


def shared_classes(files: Sequence[FileColumns]) -> dict[str, list[str] | str]:
    """Return what the metadata of files say of each column. Raises `SchemaError` where a number has two of them."""
    classes: dict[str, list[str] | str] = {}
    seen_in: dict[str, str] = {}
    known: set[bytes] = set()
    for file in files:
        if not file.schema.metadata or known.issuperset(file.schema.metadata.values()):
            continue
        known.update(file.schema.metadata.values())
        for name, names in classes_in(file.schema).items():
            if classes.setdefault(name, names) != names and name in file.schema.names:
                raise SchemaError(
                    f'column "{printable(name)}": {file.name} names its classes {first_names(names, _SHOWN)}, and '
                    f"{seen_in[name]} {first_names(classes[name], _SHOWN)}; convert one of them, and append the other, "
                    f"whose classes then get the numbers that they have in the dataset"
                )
            seen_in.setdefault(name, file.name)
    return classes


def _period_warning(name: str) -> str:
    label = f"frame[{printable(repr(name))}]"
    return (
        f'column "{printable(name)}" holds Periods of pandas: written are their plain numbers, such as months since '
        f"1970; to have times, write the file again after {Python(f'{label} = {label}.dt.to_timestamp()')}"
    )


def _feature(column: pa.Field, rule: ColumnRule | None, reason: str, file: str) -> tuple[Feature, Choice]:
    try:
        feature, why = feature_of(column, rule)
    except SchemaError as error:
        raise SchemaError(f"{file}: {error}") from error
    return feature, Choice(column.name, feature.type, f"{why}; {reason}")


# Batches of files whose columns differ get the columns of all of them, where they are read as one table:
#
#     a.parquet  id: int64  x: int32                  id: int64  x: double  y: string
#     b.parquet             x: double  y: string      null       x: double  y: string
#
# An integer becomes a float where that is exact: up to 2**53 for double, which holds all integers of 32 bits.


_EXACT: Final = 1 << 53
"""Every integer up to here has a float64 of its own."""

_WIDEST: Final = 64


def as_united(rows: Rows, frozen: Frozen) -> Rows:
    """Return a batch of one file with the columns of all files: null where it has none, and floats for integers."""
    if not isinstance(frozen, UnitedFrozen):
        return rows
    batch = rows.batch
    own = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays: list[pa.Array] = []
    problems = list(rows.problems)
    for one in frozen.fields:
        if one.name not in own:
            arrays.append(pa.nulls(batch.num_rows, one.type))
            continue
        array, found = _promoted(own[one.name], one)
        arrays.append(array)
        problems += found
    united = pa.RecordBatch.from_arrays(arrays, names=frozen.fields.names)
    return replace(rows, batch=united, problems=tuple(sorted(problems, key=lambda problem: problem.row)))


def _promoted(column: pa.Array, wanted: pa.Field) -> tuple[pa.Array, list[CellProblem]]:
    """Return a column with floats for integers, or of its type where it has none, and the integers that are no float.

    Other types stay as the file has them: what is encoded of them is the same.
    """
    kind = column.type
    if not _must_change(kind, wanted.type):
        return column, []
    wide = pa.types.is_integer(kind) and kind.bit_width == _WIDEST
    if not wide:
        return column.cast(wanted.type), []
    signed = pa.types.is_signed_integer(kind)
    raw = raw_values(column, np.int64 if signed else np.uint64)
    far = (raw > _EXACT) | (raw < -_EXACT) if signed else raw > _EXACT
    valid = valid_mask(column)
    rows = np.flatnonzero(far if valid is None else far & valid)
    problems = [_not_exact(int(row), int(raw[row]), wanted) for row in rows]
    if problems:
        column = pc.if_else(pa.array(far), pa.scalar(None, kind), column)
    return column.cast(wanted.type), problems


def _must_change(kind: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(kind):
        return not pa.types.is_null(wanted)
    if pa.types.is_integer(kind):
        return bool(pa.types.is_floating(wanted))
    both_lists = all(is_list(one) or pa.types.is_fixed_size_list(one) for one in (kind, wanted))
    return both_lists and _must_change(kind.value_type, wanted.value_type)


def _not_exact(row: int, value: int, wanted: pa.Field) -> CellProblem:
    text = (
        f"{value} is not exact as {wanted.type}, the type of the column in another file; write it with one type in all "
        "files, or convert them apart"
    )
    return CellProblem(row, CellError(wanted.name, "PRECISION_LOSS", str(value), str(wanted.type), text))
