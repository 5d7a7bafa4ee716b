"""TFRecord files in the registry: their options, the source that they make, their starter text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..registry.format import Format
from ..registry.settings import Settings
from .options import TfrecordInput

if TYPE_CHECKING:
    from ...inputs.contract.source import Source

_STARTER: Final = """\
  records: example            # opaque: records need not be Examples
"""


class TfrecordFormat(Format[TfrecordInput]):
    """Existing records, which are passed on unchanged: what decides their split is read in them, and no more."""

    options = TfrecordInput
    refused_keys = (
        "input.columns",
        "input.exclude_columns",
        "input.limit",
        "schema.columns",
        "map",
        "checks",
    )
    has_rows = False
    starter_text = _STARTER

    def source(self, options: TfrecordInput, settings: Settings) -> Source:
        from .source import TfrecordSource

        return TfrecordSource(options, settings)


FORMAT: Final = TfrecordFormat()
