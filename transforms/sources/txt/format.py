"""Text files in the registry: their options, and the source that they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ..registry.format import Format, partition_steps
from ..registry.options import Options, Partitions
from ..registry.settings import Settings

if TYPE_CHECKING:
    from ...recipe.step import Step
    from ..contract.source import Source


class TextInput(Options):
    """Files whose lines are the records."""

    format: Literal["txt"] = "txt"
    partitions: Partitions = None


class TextFormat(Format[TextInput]):
    """Lines of text."""

    options = TextInput
    rows_are_lines = True

    def source(self, options: TextInput, settings: Settings) -> Source:
        from ..text.lines import LineSizes
        from .source import TextSource

        limits = settings.limits
        return TextSource(
            tuple(options.paths),
            settings.base,
            LineSizes(limits.record_bytes, limits.field_bytes),
            options.partitions or "read",
            settings.call,
        )

    def steps(self, options: TextInput) -> tuple[Step, ...]:
        return (*partition_steps(options, options.partitions), *super().steps(options))


FORMAT: Final = TextFormat()
