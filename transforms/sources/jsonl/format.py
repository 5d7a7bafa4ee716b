"""JSON lines in the registry: their options, the source that they make, their starter text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ..registry.format import Format
from ..registry.options import FileOptions
from ..registry.settings import Settings

if TYPE_CHECKING:
    from ...inputs.contract.source import Source


class JsonLinesInput(FileOptions):
    """Files with a JSON object in each line."""

    format: Literal["jsonl"] = "jsonl"


_STARTER: Final = """\
  # columns: {columns}
schema:
  infer: auto                 # full: look at every value | none: all columns are the text of their values
  columns: {{}}                 # {{{column}: {{type: string}}}}
"""


class JsonLinesFormat(Format[JsonLinesInput]):
    """Lines that are objects, whose keys are the columns."""

    options = JsonLinesInput
    projects = True
    takes_types = True
    takes_null_words = "text"
    rows_are_lines = True
    shows_columns = True
    starter_text = _STARTER

    def source(self, options: JsonLinesInput, settings: Settings) -> Source:
        from ..text.lines import LineSizes
        from .source import JsonLinesSource

        limits = settings.limits
        return JsonLinesSource(options, settings, LineSizes(limits.record_bytes, limits.field_bytes, json=True))


FORMAT: Final = JsonLinesFormat()
