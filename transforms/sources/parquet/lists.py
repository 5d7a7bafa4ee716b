"""Read fixed-size lists of which some are null, which pyarrow (19 to 25) writes but refuses to read.

Parquet has lists of any length only. That a list is of fixed size is in the Arrow schema that its writer left in
the footer; the reader believes it, finds no values after a null, and takes the page for damaged. So a row group that
may hold such a null is read as if the footer had no Arrow schema, and its columns are cast to what that schema says:
the cast knows that a null has no values, and refuses any other list of a wrong length.

    footer   "ARROW:schema" = fixed_size_list[2], ...   read as   "ARROW-schema" = ..., which means nothing
    column   list  [1, 2], [3, 4], null                 cast to   fixed_size_list[2]  [1, 2], [3, 4], null
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from ...format.schema.arrow_checks import meaning, storage_column, storage_type

_KEY: Final = b"ARROW:schema"
_UNKNOWN_KEY: Final = b"ARROW-schema"


def is_fixed_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds lists of a fixed size: tensors do too."""
    return bool(pa.types.is_fixed_size_list(kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind))


def footer_of_plain_lists(footer: bytes) -> bytes:
    """Return a footer (the bytes between the pages and its length) without its Arrow schema.

    A column that has the key's name is read under another one: only the order of columns counts here.
    """
    return footer.replace(_KEY, _UNKNOWN_KEY)


def cast_as_written(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column that was read without the Arrow schema as a type that holds what `kind`, its type there, holds.

    Raises `pa.ArrowInvalid` where a list has another length.
    """
    if isinstance(kind, pa.FixedShapeTensorType):
        return pa.ExtensionArray.from_storage(kind, column.cast(kind.storage_type))
    column, kind = storage_column(column), meaning(storage_type(kind))
    return column if meaning(column.type) == kind else column.cast(kind)
