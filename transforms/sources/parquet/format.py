"""Parquet in the registry: its options, the source that they make, its starter text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..registry.format import Format
from ..registry.settings import Settings
from .options import ParquetInput

if TYPE_CHECKING:
    from ...inputs.contract.source import Source


_STARTER: Final = """\
  checksums: true             # verify the pages that carry one
  # columns: {columns}
schema:
  columns: {{}}{exact}
"""
_EXACT: Final = "                 # {{{column}: {{as: bytes}}}} keeps float64 exact"


class ParquetFormat(Format[ParquetInput]):
    """Tables with types, in row groups."""

    options = ParquetInput
    projects = True
    takes_types = True
    shows_columns = True
    example_type = "double"

    def source(self, options: ParquetInput, settings: Settings) -> Source:
        from .source import ParquetSource

        return ParquetSource(options, settings)

    def starter(self, options: ParquetInput, columns: str, column: str) -> str:  # noqa: ARG002
        return _STARTER.format(columns=columns, exact=_EXACT.format(column=column) if column else "")


FORMAT: Final = ParquetFormat()
