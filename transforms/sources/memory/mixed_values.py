"""Name the values of a column that have no common type: which row, which value, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import SchemaError
from ...format.wording.printable import VALUE_LIMIT, printable

CONVERSION_ERRORS: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)

_EXACT: Final = 2**53
"""Up to here every integer is a float64."""

_ROUNDED: Final = "no float64 holds this integer exactly, and other values are float"


def mixed_column_error(
    where: str, name: object, values: Sequence[object], error: BaseException, *, fix: str, first_row: int = 1
) -> SchemaError:
    """Return the error of a column whose Python values pyarrow refused with `error`; None is null.

    `where` is what the data is called; rows count from `first_row`. `fix` ends the message.
    """
    column = f'{where}: column "{printable(name)}"'
    seen: dict[str, tuple[int, object]] = {}
    for row, value in enumerate(values, first_row):
        if value is not None:
            seen.setdefault(type(value).__name__, (row, value))
    odd = _odd_value(values, first_row, set(seen))
    if odd is not None:
        return SchemaError(f"{column}, {odd}; {fix}")
    if len(seen) > 1:
        kinds = ", ".join(f"{printable(kind)} ({_shown(*found)})" for kind, found in seen.items())
        return SchemaError(f"{column} has values of several types: {kinds}; {fix}")
    return SchemaError(f"{column}: {reason_of(error)}; {fix}")


def refuse_rounded_integers(name: str, values: Sequence[object], array: npt.NDArray[np.float64], *, fix: str) -> None:
    """Raise `SchemaError` for integers beyond 2**53 that NumPy rounded, since floats are beside them in a list."""
    if not (np.abs(array) >= _EXACT).any():
        return
    for row, cells in enumerate(np.array(values, object).reshape(len(array), -1), 1):
        for value in cells:
            if isinstance(value, int) and int(float(value)) != value:
                raise SchemaError(f'data: column "{printable(name)}", {_shown(row, value)}: {_ROUNDED}; {fix}')


def reason_of(error: BaseException) -> str:
    return "; ".join(printable(part) for part in error.args) or type(error).__name__


def _odd_value(values: Sequence[object], first_row: int, kinds: set[str]) -> str | None:
    """Return the value that does not fit, where it is not its type that differs from the others'."""
    if kinds == {"int", "float"}:
        for row, value in enumerate(values, first_row):
            if isinstance(value, int) and abs(value) > _EXACT:
                return f"{_shown(row, value)}: {_ROUNDED}"
    if len(kinds) == 1:
        for row, value in enumerate(values, first_row):
            try:
                pa.array([value])
            except CONVERSION_ERRORS as error:
                too_large = isinstance(value, int) and isinstance(error, OverflowError)
                return f"{_shown(row, value)}: {'no int64 holds it' if too_large else reason_of(error)}"
    return None


def _shown(row: int, value: object) -> str:
    start = value[:VALUE_LIMIT] if isinstance(value, str | bytes | list | tuple) else value
    return f"row {row:,}: {printable(repr(start))}"
