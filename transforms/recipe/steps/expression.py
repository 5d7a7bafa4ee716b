"""Parse expressions over columns, as `input.where` has them; `where` evaluates them with Arrow.

    age >= 18 and country in ["DE", "FR"]
    not is_null(price) and price < 9.99
    starts_with(lower(name), "a") or col("first name") == "Ada"
    user.plan != "free" and day >= "2024-02-01"

They have the form of Python's, and nothing of Python runs: what is not in the lists below is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

FUNCTIONS: Final = {
    "col": 1, "contains": 2, "ends_with": 2, "is_null": 1, "length": 1, "lower": 1, "starts_with": 2, "upper": 1,
}  # fmt: skip

_OPERATORS: Final = (
    ast.And, ast.Or, ast.Not, ast.USub, ast.Add, ast.Sub, ast.Mult, ast.Div,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot,
)  # fmt: skip
_LONGEST: Final = 10_000
_DEEPEST: Final = 50


def read_expression(text: str) -> ast.expr:
    """Return an expression of columns, values, operators and functions; raise `ValueError` with what else it has."""
    if len(text) > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST:,} characters; filter the rows by a function: map=")
    if not text.strip():
        raise ValueError("is empty; leave it out, or give an expression, like age >= 18")
    try:
        found = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        at = getattr(error, "offset", None)
        hint = "; == compares, and, or, not join: age >= 18 and country in ['DE', 'FR']; a name with other signs than "
        hint += 'letters and digits is col("Beleg-Nr.")'
        raise ValueError(f"cannot be read{f' at character {at}' if at else ''}{hint}") from error
    _check(found, 0)
    return found


def columns_in(expression: ast.expr) -> tuple[str, ...]:
    """Return the columns that an expression names, each once.

    >>> columns_in(read_expression("a > 1 and col('b c') == a"))
    ('a', 'b c')
    """
    return tuple(dict.fromkeys(_columns(expression)))


def _columns(node: ast.expr) -> Iterator[str]:
    name = column_of(node)
    if name is not None:
        yield name
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not (isinstance(node, ast.Call) and child is node.func):
            yield from _columns(child)


def column_of(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "col":
        assert isinstance(node.args[0], ast.Constant)
        return str(node.args[0].value)
    return None


def _check(node: ast.AST, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"has more than {_DEEPEST} levels")
    if isinstance(node, ast.Call):
        _check_call(node)
        for argument in node.args:
            _check(argument, depth + 1)
        return
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, str | bool | int | float | None):
            raise ValueError(f"{node.value!r} is neither text, a number, true, false nor None")
        return
    if isinstance(node, ast.Compare):
        _check_compare(node, depth)
        return
    if isinstance(node, ast.List | ast.Tuple):
        raise ValueError(f"{_shown(node)} is a list, which `in` and `not in` take")
    if isinstance(node, ast.BinOp | ast.UnaryOp) and not isinstance(node.op, _OPERATORS):
        raise ValueError(f"{_shown(node)} has an operator that is none of + - * / and not")
    kinds = (ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Name, ast.Attribute, ast.Load)
    if not isinstance(node, kinds + _OPERATORS):
        raise ValueError(f"{_shown(node)} is not part of an expression over columns")
    for child in ast.iter_child_nodes(node):
        _check(child, depth + 1)


def _check_call(node: ast.Call) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in FUNCTIONS or node.keywords:
        raise ValueError(f"{_shown(node)} is no function here; there are {', '.join(FUNCTIONS)}")
    if len(node.args) != FUNCTIONS[name]:
        raise ValueError(f"{name} takes {FUNCTIONS[name]} arguments, not {len(node.args)}")
    if name == "col" and not (isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)):
        raise ValueError('col takes the name of a column, in quotes: col("first name")')
    if name != "col" and isinstance(node.args[0], ast.Constant):
        of_column = f"{name}(col({_shown(node.args[0])}){', ...' if FUNCTIONS[name] > 1 else ''})"
        raise ValueError(f"{_shown(node)} is of a text, as a name in quotes is one; of a column it is {of_column}")


def _check_compare(node: ast.Compare, depth: int) -> None:
    _check(node.left, depth + 1)
    if isinstance(node.left, ast.Constant) and any(isinstance(one, ast.Is | ast.IsNot) for one in node.ops):
        raise ValueError(f"{_shown(node)} is of a text; of a column it is col({_shown(node.left)}) is None")
    for operator, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, ast.In | ast.NotIn) and not _is_values(right):
            raise ValueError(f'{_shown(right)} is not a list of values, like ["DE", "FR"]')
        if isinstance(operator, ast.Is | ast.IsNot) and not (isinstance(right, ast.Constant) and right.value is None):
            raise ValueError("`is` compares with None alone; == compares with a value")
        if isinstance(operator, ast.Eq | ast.NotEq) and isinstance(right, ast.Constant) and right.value is None:
            raise ValueError("nothing is equal to None: write `is None`, or `is not None`")
        if not isinstance(operator, ast.In | ast.NotIn):
            _check(right, depth + 1)


def _is_values(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.Tuple) and all(isinstance(one, ast.Constant) for one in node.elts)


def _shown(node: ast.AST) -> str:
    try:
        return ast.unparse(node)[:60]
    except (ValueError, RecursionError):
        return type(node).__name__
