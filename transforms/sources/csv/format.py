"""CSV in the registry: its options, the source that they make, its starter text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...inputs.contract.call import Call
from ..registry.format import Detected, Format
from ..registry.settings import Settings
from .options import CsvInput

if TYPE_CHECKING:
    from ...inputs.contract.source import Source


_STARTER: Final = """\
  delimiter: "{sign}"
  header: true                # false: give the names of the columns in `names`
  encoding: utf-8
  null_values: [""]           # unquoted cells that are null; NA is text
  # columns: {columns}
schema:
  infer: auto                 # full: look at every row | none: all columns are text
  columns: {{}}                 # {{{column}: {{type: string}}}}
"""


class CsvFormat(Format[CsvInput]):
    """Text whose records are lines, but for line ends in quotes."""

    options = CsvInput
    detected_option = "delimiter"
    projects = True
    takes_types = True
    takes_null_words = "all"
    shows_columns = True

    def source(self, options: CsvInput, settings: Settings) -> Source:
        """Return the source of CSV files; a header that was not asked for may turn out to be data."""
        from .parse import CsvLimits
        from .source import CsvSource

        return CsvSource(options, settings, limits=CsvLimits.of(settings.limits))

    def detect(self, given: Mapping[str, Any], paths: Sequence[str], base: str, call: Call) -> Detected:  # noqa: ARG002
        """Return the delimiter that the first records show; a sign that is none is the options' to refuse."""
        from .delimiter import SampleOptions, detect_delimiter

        ignore = [one for one in given.get("ignore") or () if isinstance(one, str)]
        found = detect_delimiter(paths, base, SampleOptions.of(given), ignore)
        return Detected(found.sign, found.evidence)

    def starter(self, options: CsvInput, columns: str, column: str) -> str:
        sign = options.delimiter.replace("\t", "\\t")
        return _STARTER.format(sign=sign, columns=columns, column=column)


FORMAT: Final = CsvFormat()
