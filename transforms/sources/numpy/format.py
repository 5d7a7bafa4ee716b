"""NumPy files in the registry: their options, the source that they make, their starter text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..registry.format import Format
from ..registry.settings import Limits, Settings
from .options import NumpyInput

if TYPE_CHECKING:
    from ...inputs.contract.source import Source

_STARTER: Final = """\
  rows: false                 # true: the first axis of an array is the row
  feature: array              # the name of the feature
"""


class NumpyFormat(Format[NumpyInput]):
    """Arrays, one in a file or several."""

    options = NumpyInput
    projects = True
    takes_types = True
    starter_text = _STARTER

    def source(self, options: NumpyInput, settings: Settings) -> Source:
        from .source import NumpySource

        return NumpySource(options, settings)

    def field_bytes(self, limits: Limits) -> int:
        """Return the largest array, which may fill a record."""
        return limits.record_bytes


FORMAT: Final = NumpyFormat()
