"""The contract of a format of files: its options, how its source is made, and what `init` writes of it.

A format is a value such as `CSV = CsvFormat()` in `sources/formats`, or in a module of another package, and a line in
`FORMATS`. Only `options` and `source` must be there. Neither pyarrow nor its source is imported before `source` is
called, since a config is checked with it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from ...inputs.contract.selection import Call
from .options import FileOptions, Options
from .settings import Limits, Settings

if TYPE_CHECKING:
    from ...inputs.contract.source import Source
    from ...recipe.step import Step

OptionsT = TypeVar("OptionsT", bound=Options)


@dataclass(frozen=True, slots=True)
class Detected:
    """The value of an option that the files show, and where they show it; no evidence where it is the default."""

    value: object
    evidence: str | None = None


def keep_step(options: Options) -> tuple[Step, ...]:
    """Return the step that keeps the columns that are asked for; none where all are."""
    if options.columns is None and not options.exclude_columns:
        return ()
    from ...inputs.contract.selection import Selection
    from ...recipe.steps.columns import Keep

    return (Keep(Selection.of(options.columns, options.exclude_columns)),)


class Format(Generic[OptionsT]):
    """A format of files; what most formats do is the default."""

    options: type[OptionsT]
    """The keys of `input` for this format, with their checks and defaults."""

    refused_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of the config that do not go with the format; without rows those of `schema` do not either."""

    detected_option: ClassVar[str | None] = None
    """An option that `detect` finds in the files where it is not given, so that it is in the config's fingerprint."""

    has_rows: ClassVar[bool] = True
    """Whether the source gives rows, and not whole records."""

    is_shuffled: ClassVar[bool] = False
    """Whether the source reads in the order of a seed."""

    projects: ClassVar[bool] = False
    """Whether the source reads the columns alone that are asked for; for others a step of the recipe keeps them."""

    takes_types: ClassVar[bool] = False
    """Whether the source gives columns the types that `schema.columns` declares; if not, they are refused."""

    takes_null_words: ClassVar[Literal["all", "text", ""]] = ""
    """Which words of `null_values` the source takes as null: `text` are values of JSON. A step does the others."""

    rows_are_lines: ClassVar[bool] = False
    """Whether each row is a line of its file: a message then names the line, which blank lines count for."""

    numbered: ClassVar[tuple[str, ...]] = ()
    """Columns whose classes the source itself numbers, in an append as its dataset does."""

    shows_columns: ClassVar[bool] = False
    """Whether a starter config names columns: the first file is looked at for them."""

    example_type: ClassVar[str | None] = None
    """The Arrow type of the one `column` that a starter config names; None for a column of any type."""

    starter_text: ClassVar[str] = ""
    """The lines of a starter config after `paths`, with `{columns}` and `{column}`."""

    @abstractmethod
    def source(self, options: OptionsT, settings: Settings) -> Source:
        """Return the source that reads what the options name.

        Raises:
            UsageError: an option does not go with another one.
        """

    def steps(self, options: OptionsT) -> tuple[Step, ...]:
        """Return the steps that rows go through first: columns of the names of folders, and those that are kept."""
        kept = () if self.projects else keep_step(options)
        if not isinstance(options, FileOptions) or options.partitions is not None:
            return kept
        from ...inputs.contract.selection import Selection
        from ...recipe.steps.beside_tables import Partitions

        return (Partitions(tuple(options.paths), Selection.of(options.columns, options.exclude_columns)), *kept)

    def detect(self, given: Mapping[str, Any], paths: Sequence[str], base: str, call: Call) -> Detected:
        """Return the value of `detected_option` in the files that `paths` name; `given` are the options, unchecked.

        Raises:
            InputError: the files do not show one.
        """
        raise NotImplementedError

    def starter(self, options: OptionsT, columns: str, column: str) -> str:  # noqa: ARG002
        """Return the lines of a starter config after `paths`; `columns` and `column` are names, as YAML, or ""."""
        return self.starter_text.format(columns=columns, column=column)

    def field_bytes(self, limits: Limits) -> int:
        """Return the largest value of one feature."""
        return limits.field_bytes
