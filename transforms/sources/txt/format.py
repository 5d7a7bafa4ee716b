"""Text files in the registry: their options, and the source that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ..registry.format import Format
from ..registry.options import FileOptions
from ..registry.settings import Settings

if TYPE_CHECKING:
    from ...inputs.contract.source import Source


class TextInput(FileOptions):
    """Files whose lines are the records."""

    format: Literal["txt"] = "txt"


class TextFormat(Format[TextInput]):
    """Lines of text."""

    options = TextInput
    rows_are_lines = True

    def source(self, options: TextInput, settings: Settings) -> Source:
        from ..text.lines import LineSizes
        from .source import TextSource

        limits = settings.limits
        return TextSource(options, settings, LineSizes(limits.record_bytes, limits.field_bytes))


FORMAT: Final = TextFormat()
