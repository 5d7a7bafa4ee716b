"""Read `.npy` and `.npz` files: each file as one record, or the first axis of its arrays as the rows of a table.

                   .npy                                   .npz
rows: false        one record: `<feature>/shape` and      one record: both keys for each of its members
                   `<feature>/data`
rows: true         a column, named `feature`              a column for each member, all of one length
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...errors import SchemaError, UsageError
from ...format.flow.rows import Rows
from ..contract.source import Frozen, Listing, ParallelMap, Survey, Task
from ..registry.file_source import FileSource
from .files import ArrayChoice, NumpyLimits
from .records import read_records, survey_records
from .rows import read_rows, survey_rows

if TYPE_CHECKING:
    from .options import NumpyInput


@dataclass(frozen=True, slots=True)
class NumpySource(FileSource):
    """Read NumPy files."""

    typed = True

    options: NumpyInput
    limits: NumpyLimits = field(default_factory=NumpyLimits, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.options.rows and not self.options.feature:
            raise UsageError('input.feature: "" goes with rows: false; with rows: true it names the column')
        if self.rules and not self.options.rows:
            raise SchemaError(
                "schema.columns does not go with NumPy files whose arrays are records: the type is the array's own; "
                "set input.rows: true for arrays whose first axis is the row"
            )

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        """Return the schema and the pieces: a file each, or with `rows` runs of rows of about 4 MiB.

        Without `rows` the first sound file sets the schema, and a file that differs is a reject when it is read. With
        `rows` all headers are read, and must agree, or a `SchemaError` or `SourceError` is raised.
        """
        if self.options.rows:
            return survey_rows(listing, run, self._choice, self.rules)
        return survey_records(listing, self._choice, told=self._is_told)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        """Without `rows`, files that are damaged or of another dtype or rank are rejects; with it, a `SourceError`."""
        if self.options.rows:
            return read_rows(task, self._choice)
        return read_records(task, frozen, self._choice)

    @property
    def _is_told(self) -> bool:
        return "rows" in self.options.model_fields_set

    @property
    def _choice(self) -> ArrayChoice:
        return ArrayChoice(self.options.feature, self.selection, self.settings.limits.record_bytes, self.limits)
