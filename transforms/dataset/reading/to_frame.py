"""Tables as DataFrames of pandas, exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a DataFrame: exact, and in plain NumPy types wherever these can hold the column.

    pandas has no null integers in its plain types: Arrow gives float64 for a column with nulls, in which 2^53 + 1
    becomes 2^53. Nor has it times of day with nanoseconds: Arrow refuses those. Such columns keep pandas' nullable
    integers, and Arrow's own type. Integers beside nulls in lists and structs are Python's. Labels are categories.
    """
    import pandas as pd

    nanoseconds = pa.time64("ns")
    nested = any(map(pa.types.is_nested, table.schema.types))
    frame = table.to_pandas(types_mapper={nanoseconds: pd.ArrowDtype(nanoseconds)}.get, integer_object_nulls=nested)
    for index, column in enumerate(table.columns):
        if pa.types.is_integer(column.type) and column.null_count:
            nullable = pd.api.types.pandas_dtype(str(column.type).replace("int", "Int").replace("uI", "UI"))
            frame.isetitem(index, column.to_pandas(types_mapper={column.type: nullable}.get))
    return frame
