"""TFRecord files in the registry: their options, the source that they make, their starter text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ..registry.format import Format
from ..registry.options import Options
from ..registry.settings import Settings

if TYPE_CHECKING:
    from ..contract.source import Source


class TfrecordInput(Options):
    """TFRecord files; `opaque` records need not be Examples."""

    format: Literal["tfrecord"] = "tfrecord"
    records: Literal["example", "opaque"] = "example"


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
        "input.where",
        "schema.columns",
        "map",
        "checks",
    )
    has_rows = False

    def source(self, options: TfrecordInput, settings: Settings) -> Source:
        from .source import TfrecordSource

        return TfrecordSource(
            tuple(options.paths),
            settings.base,
            records=options.records if "records" in options.model_fields_set else "auto",
            split=settings.split,
            default_split=settings.default_split,
            looked_at=settings.looked_at,
            splits_anew=settings.splits_anew,
            record_bytes=settings.limits.record_bytes,
            splits=settings.splits,
            ignore=tuple(options.ignore),
        )

    def starter(self, options: TfrecordInput, columns: str, column: str) -> str:  # noqa: ARG002
        return _STARTER


FORMAT: Final = TfrecordFormat()
