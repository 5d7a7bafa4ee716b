"""Keep the rows for which an expression over columns holds: `input.where`, evaluated by Arrow."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import time
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import RunError, SchemaError
from ...format.columns.flatten import stored
from ...format.schema.arrow_types import is_list, type_words
from ...format.schema.column_types import is_binary, is_string
from ...format.wording.hints import set_column
from ...format.wording.printable import NoColumnError, nearest_name, printable
from ..step import Column, Step, Stepped, as_text
from .expression import column_of, columns_in, read_expression

_COMPARISONS: Final = {
    ast.Eq: pc.equal, ast.NotEq: pc.not_equal, ast.Lt: pc.less, ast.LtE: pc.less_equal, ast.Gt: pc.greater,
    ast.GtE: pc.greater_equal,
}  # fmt: skip
_ARITHMETIC: Final = {ast.Add: pc.add_checked, ast.Sub: pc.subtract_checked, ast.Mult: pc.multiply_checked}
_FUNCTIONS: Final = {
    "contains": pc.match_substring, "ends_with": pc.ends_with, "starts_with": pc.starts_with,
    "lower": pc.utf8_lower, "upper": pc.utf8_upper,
}  # fmt: skip

_MISFITS: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""How values that do not fit each other show, in Arrow or here."""

_read = lru_cache(maxsize=8)(read_expression)


@dataclass(frozen=True, slots=True)
class Where(Step):
    """Keep the rows for which `text` is true; rows for which it is false, or null, are dropped and counted.

    `key` is the key of the config that gives it. `declares` says that a config may declare types of columns.
    """

    is_of_file = True
    drops_bad_rows = True

    text: str
    key: str = "input.where"
    declares: bool = True

    @property
    def reads(self) -> tuple[str, ...]:
        return columns_in(_read(self.text))

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name: column.field for column in columns}
        for name in self.reads:
            if name not in known:
                raise NoColumnError(self.key, name, list(known))
        fields = [known[name] for name in self.reads]
        empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], names=list(self.reads))
        held = ", ".join(f'"{printable(field.name)}" is {printable(type_words(field.type))}' for field in fields)
        try:
            found = _evaluate(_read(self.text), empty)
        except _MISFITS as error:
            text = _misfit(_read(self.text), empty)
            raise SchemaError(f"{self.key}: {text if self.declares else text.partition(_DECLARE)[0]}") from error
        if isinstance(found, pa.Scalar) or not types.is_boolean(found.type):
            fix = "compare a column with a value" if fields else 'a column in quotes is col("Beleg-Nr.") == 1'
            raise SchemaError(f"{self.key} is not true or false for a row ({held or 'it names no column'}): {fix}")
        return columns

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:
        """Raise `RunError` where a number of the expression is beyond its type."""
        try:
            return Stepped(batch, _evaluate(_read(self.text), batch))
        except (pa.ArrowInvalid, ValueError) as error:
            where = f" in rows of {file}" if file else ""
            raise RunError(
                f"{self.key} cannot be computed{where}: {printable(str(error))}; write it another way"
            ) from error


def _misfit(node: ast.expr, batch: pa.RecordBatch) -> str:
    operands, kinds = operands_of(node), []
    if column_of(node) is None:
        for one in operands:
            try:
                kinds.append(_evaluate(one, batch).type)
            except _MISFITS:
                return _misfit(one, batch)
    return misfit_text(node, operands, kinds)


def _evaluate(node: ast.expr, batch: pa.RecordBatch) -> Any:
    name = column_of(node)
    if name is not None:
        return _plain(batch[name])
    match node:
        case ast.Constant():
            return pa.scalar(node.value)
        case ast.Attribute():
            return _plain(pc.struct_field(_evaluate(node.value, batch), node.attr))
        case ast.BoolOp():
            join = pc.and_kleene if isinstance(node.op, ast.And) else pc.or_kleene
            found = _evaluate(node.values[0], batch)
            for one in node.values[1:]:
                found = join(found, _evaluate(one, batch))
            return found
        case ast.UnaryOp():
            value = _evaluate(node.operand, batch)
            return pc.invert(value) if isinstance(node.op, ast.Not) else pc.negate_checked(value)
        case ast.BinOp():
            left, right = _evaluate(node.left, batch), _evaluate(node.right, batch)
            if isinstance(node.op, ast.Div):
                return pc.divide(left.cast(pa.float64()), right.cast(pa.float64()))
            return _ARITHMETIC[type(node.op)](left, right)
        case ast.Compare():
            return _compared(node, batch)
        case ast.Call():
            return _called(node, batch)
    raise AssertionError(node)  # read_expression lets no other through


def _compared(node: ast.Compare, batch: pa.RecordBatch) -> Any:
    """Return what a chain of comparisons says: `1 < a < 5` is both."""
    left, found = _evaluate(node.left, batch), None
    for operator, other in zip(node.ops, node.comparators, strict=True):
        right = None
        if isinstance(operator, ast.In | ast.NotIn):
            assert isinstance(other, ast.List | ast.Tuple)
            values = [one.value for one in other.elts if isinstance(one, ast.Constant)]
            one = pc.if_else(left.is_valid(), _is_in(left, values), pa.scalar(None, pa.bool_()))
            one = pc.invert(one) if isinstance(operator, ast.NotIn) else one
        elif isinstance(operator, ast.Is | ast.IsNot):
            one = left.is_null() if isinstance(operator, ast.Is) else left.is_valid()
        else:
            right = _evaluate(other, batch)
            one = _COMPARISONS[type(operator)](*_alike(left, right))
        found = one if found is None else pc.and_kleene(found, one)
        left = left if right is None else right
    return found


def _is_in(values: Any, wanted: list[Any]) -> Any:
    _, of_type = _alike(values, pa.array(wanted))
    if values.type != of_type.type:
        values = values.cast(of_type.type)
    return pc.is_in(values, value_set=of_type)


def _called(node: ast.Call, batch: pa.RecordBatch) -> Any:
    assert isinstance(node.func, ast.Name)
    value = _evaluate(node.args[0], batch)
    if node.func.id == "is_null":
        return value.is_null()
    if node.func.id == "length":
        text = types.is_large_string(value.type) or is_string(value.type)
        return pc.utf8_length(value) if text else pc.list_value_length(value)
    function = _FUNCTIONS[node.func.id]
    if len(node.args) == 1:
        return function(value)
    argument = node.args[1]
    if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
        raise TypeError(node.func.id)
    return function(value, argument.value)


def _plain(values: Any) -> Any:
    """Return values in a layout that all functions of Arrow take."""
    values = stored(values)
    return as_text(values) if is_string(values.type) else values


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Return two sides of a comparison; text beside times is read as one, other text is no number."""
    times = (types.is_temporal(left.type), types.is_temporal(right.type))
    text = (is_string(left.type), is_string(right.type))
    if times[0] and text[1]:
        return left, _as_times(right, left.type)
    if times[1] and text[0]:
        return _as_times(left, right.type), right
    if text[0] != text[1] and not (types.is_null(left.type) or types.is_null(right.type)):
        raise TypeError(f"{left.type} and {right.type}")
    return left, right


def _as_times(text: Any, kind: pa.DataType) -> Any:
    """Return text as times of a type; Arrow reads no times of a day."""
    if not types.is_time(kind):
        return text.cast(kind)
    if isinstance(text, pa.Scalar):
        return pa.scalar(time.fromisoformat(text.as_py()), kind)
    return pa.array([None if one is None else time.fromisoformat(one) for one in text.to_pylist()], kind)


# Say which part of an expression does not fit the columns, and what to write instead, in our words and not Arrow's.


_DECLARE: Final = "; or declare another type of the column: "

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
    declared = f"{_DECLARE}{set_column(ast.unparse(operand), 'type', 'TYPE')}"
    return f"{_compare(operand, kind)}{declared if isinstance(operand, ast.Name) else ''}"
