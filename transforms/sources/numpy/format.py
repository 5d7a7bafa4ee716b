"""NumPy files in the registry: their options, the source that they make, their starter text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ..registry.format import Format
from ..registry.options import Options
from ..registry.settings import Limits, Settings

if TYPE_CHECKING:
    from ..contract.source import Source


class NumpyInput(Options):
    """`.npy` and `.npz` files; with `rows`, the first axis of an array is the batch."""

    format: Literal["numpy"] = "numpy"
    rows: bool = False
    feature: str = "array"


_STARTER: Final = """\
  rows: false                 # true: the first axis of an array is the row
  feature: array              # the name of the feature
"""


class NumpyFormat(Format[NumpyInput]):
    """Arrays, one in a file or several."""

    options = NumpyInput
    projects = True
    takes_types = True

    def source(self, options: NumpyInput, settings: Settings) -> Source:
        from .source import NumpySource

        return NumpySource(
            tuple(options.paths),
            settings.base,
            rows=options.rows,
            feature=options.feature,
            columns=options.kept,
            exclude=tuple(options.exclude_columns),
            rules=dict(settings.rules),
            record_bytes=settings.limits.record_bytes,
            as_records="rows" in options.model_fields_set and not options.rows,
        )

    def starter(self, options: NumpyInput, columns: str, column: str) -> str:  # noqa: ARG002
        return _STARTER

    def field_bytes(self, limits: Limits) -> int:
        """Return the largest array, which may fill a record."""
        return limits.record_bytes


FORMAT: Final = NumpyFormat()
