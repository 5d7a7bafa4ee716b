"""Say which part of an expression does not fit the columns, and what to write instead, in our words and not Arrow's."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import types

from ...format.schema.arrow_types import is_list, type_words
from ...format.schema.column_types import is_binary, is_string
from ...format.wording.hints import set_column
from ...format.wording.nearest import nearest_name
from ...format.wording.printable import printable

_BY_FUNCTION = "filter the rows by a function of yours, in Python: convert(..., map=function)"


def operands_of(node: ast.expr) -> list[ast.expr]:
    """Return the parts of an expression that have a value of their own for each row."""
    match node:
        case ast.BoolOp():
            return node.values
        case ast.UnaryOp():
            return [node.operand]
        case ast.BinOp():
            return [node.left, node.right]
        case ast.Compare():
            return [one for one in (node.left, *node.comparators) if not isinstance(one, ast.List | ast.Tuple)]
        case ast.Call():
            return node.args[:1]
        case ast.Attribute():
            return [node.value]
    return []


def misfit_text(node: ast.expr, operands: Sequence[ast.expr], kinds: Sequence[pa.DataType]) -> str:
    held = [
        f"{printable(ast.unparse(one))} is {printable(type_words(kind))}"
        for one, kind in zip(operands, kinds, strict=True)
        if not isinstance(one, ast.Constant)
    ]
    why = f": {', '.join(held)}" if held else ""
    return f"{printable(ast.unparse(node))} does not fit{why}; {_fix(node, operands, kinds)}"


def _fix(node: ast.expr, operands: Sequence[ast.expr], kinds: Sequence[pa.DataType]) -> str:
    match node:
        case ast.Constant():
            return "it is beyond the integers of 64 bits"
        case ast.Call():
            return _fix_of_call(node, operands[0], kinds[0])
        case ast.Attribute():
            return _fix_of_field(node, kinds[0])
        case ast.BoolOp():
            return "`and` and `or` join what is true or false: compare each side with a value"
        case ast.UnaryOp() if isinstance(node.op, ast.Not):
            return "`not` turns what is true or false: compare with a value"
        case ast.BinOp() if all(types.is_timestamp(kind) for kind in kinds):
            return "one has a time zone, and the other has none: schema.columns.NAME.timezone gives one"
        case ast.BinOp() | ast.UnaryOp():
            return f"+ - * and / compute with numbers, or {_BY_FUNCTION}"
    assert isinstance(node, ast.Compare)
    return next((fix for one, kind in zip(operands, kinds, strict=True) if (fix := _nested(one, kind))), "") or (
        _fix_of_comparison(node, operands, kinds)
    )


def _fix_of_call(node: ast.Call, operand: ast.expr, kind: pa.DataType) -> str:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    if name == "length":
        return "length takes text or a list"
    if is_string(kind) or is_binary(kind):
        return f'{name} takes text in quotes as its second argument: {name}({ast.unparse(operand)}, "a")'
    return f"{name} takes text; {_nested(operand, kind) or _compare(operand, kind)}"


def _fix_of_field(node: ast.Attribute, kind: pa.DataType) -> str:
    if types.is_struct(kind):
        return f'there is no field "{printable(node.attr)}"; {nearest_name(node.attr, [one.name for one in kind])}'
    return f'only structs have fields; a column whose name has a dot is col("{printable(ast.unparse(node))}")'


def _nested(operand: ast.expr, kind: pa.DataType) -> str:
    shown = printable(ast.unparse(operand))
    if is_list(kind) or types.is_fixed_size_list(kind):
        return f"of a list only length({shown}) and is_null({shown}) are known here, or {_BY_FUNCTION}"
    if types.is_struct(kind):
        return f"compare a field of it, as {shown}.{printable(kind.field(0).name)}"
    return f"of a map only is_null({shown}) is known here, or {_BY_FUNCTION}" if types.is_map(kind) else ""


def _compare(operand: ast.expr, kind: pa.DataType) -> str:
    shown = printable(ast.unparse(operand))
    value = _example(kind)
    return f"compare with a value, like {shown} == {value}" if value else _BY_FUNCTION


def _example(kind: pa.DataType) -> str:
    if types.is_timestamp(kind):
        return '"2024-01-31T12:00:00Z"' if kind.tz is not None else '"2024-01-31T12:00:00"'
    plain = (
        (types.is_date(kind), '"2024-01-31"'), (types.is_time(kind), '"12:00:00"'), (types.is_boolean(kind), "True"),
        (is_string(kind), '"a"'), (types.is_integer(kind), "5"),
        (types.is_floating(kind) or types.is_decimal(kind), "1.5"),
    )  # fmt: skip
    return next((value for is_of, value in plain if is_of), "")


def _fix_of_comparison(node: ast.Compare, operands: Sequence[ast.expr], kinds: Sequence[pa.DataType]) -> str:
    lists = [one for one in node.comparators if isinstance(one, ast.List | ast.Tuple)]
    values = [value.value for one in lists for value in one.elts if isinstance(value, ast.Constant)]
    if lists and not values:
        return "give a value in the list"
    if len({isinstance(value, str) for value in values if value is not None}) > 1:
        return "the list has text and numbers; write all in quotes, or none"
    held = [(one, kind) for one, kind in zip(operands, kinds, strict=True) if not isinstance(one, ast.Constant)]
    if not held:
        return "name a column"
    operand, kind = next((pair for pair in held if types.is_temporal(pair[1])), held[0])
    if len(held) > 1 and not types.is_temporal(kind):
        return "both sides must be of one kind; schema.columns.NAME.type declares that of a column"
    if types.is_timestamp(kind) and kind.tz is not None:
        return f"the column has a time zone: write times with one, like {ast.unparse(operand)} > {_example(kind)}"
    if types.is_timestamp(kind):
        return f"the column has no time zone: write times without one, like {ast.unparse(operand)} > {_example(kind)}"
    declared = f"; or declare another type of the column: {set_column(ast.unparse(operand), 'type', 'TYPE')}"
    return f"{_compare(operand, kind)}{declared if isinstance(operand, ast.Name) else ''}"
