"""Refuse files whose rows cost nothing: a short file may state billions of nulls, runs and empty values."""

from __future__ import annotations

from typing import Final

FREE_ROWS: Final = 1 << 24
ROWS_PER_BYTE: Final = 64
"""More rows than that are no values: bools are eight in a byte, and their runs fewer."""


def may_be_free(values: int, size: int) -> bool:
    return values > FREE_ROWS + ROWS_PER_BYTE * size


def free_rows(values: int, size: int, *, what: str = "rows") -> str:
    return (
        f"states {values} {what}, whose values take {size} bytes: above {FREE_ROWS} rows there must be a byte for "
        f"each {ROWS_PER_BYTE} of them; write a column of values beside nulls, runs and empty values"
    )
