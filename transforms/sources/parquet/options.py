"""The options of Parquet files: the keys of `input`."""

from __future__ import annotations

from typing import Literal

from ..registry.options import TableOptions


class ParquetInput(TableOptions):
    """Parquet files; `checksums` verifies the pages that carry one."""

    format: Literal["parquet"] = "parquet"
    checksums: bool = True
