"""Arrow files in the registry: their options, the source that they make, their starter text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ..registry.format import Format
from ..registry.options import TableOptions
from ..registry.settings import Settings

if TYPE_CHECKING:
    from ...inputs.contract.source import Source


class ArrowInput(TableOptions):
    """Arrow IPC files, which Feather files are too."""

    format: Literal["arrow"] = "arrow"


_STARTER: Final = """\
  # columns: {columns}
schema:
  columns: {{}}{exact}
"""
_EXACT: Final = "                 # {{{column}: {{as: bytes}}}} keeps float64 exact"


class ArrowFormat(Format[ArrowInput]):
    """Tables with types, in record batches."""

    options = ArrowInput
    projects = True
    takes_types = True
    shows_columns = True
    example_type = "double"

    def source(self, options: ArrowInput, settings: Settings) -> Source:
        from .source import ArrowSource

        return ArrowSource(options, settings)

    def starter(self, options: ArrowInput, columns: str, column: str) -> str:  # noqa: ARG002
        return _STARTER.format(columns=columns, exact=_EXACT.format(column=column) if column else "")


FORMAT: Final = ArrowFormat()
