"""Read `.npy` and `.npz` files: each file as one record, or the first axis of its arrays as the rows of a table.

                   .npy                                   .npz
rows: false        one record: `<feature>/shape` and      one record: both keys for each of its members
                   `<feature>/data`
rows: true         a column, named `feature`              a column for each member, all of one length
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from ...errors import SchemaError, UsageError
from ...format.flow.rows import Rows
from ...format.schema.schema import ColumnRule
from ..contract.selection import Selection
from ..contract.source import Frozen, Listing, ParallelMap, Survey, Task
from ..files.listing import list_entries
from ..registry.formats import suffixes_of
from .files import ArrayChoice, NumpyLimits
from .records import read_records, survey_records
from .rows import read_rows, survey_rows

RECORD_BYTES: Final = 1 << 30
"""The default of `limits.record_bytes`: an array that is larger, unpacked, is not loaded."""


@dataclass(frozen=True, slots=True)
class NumpySource:
    """Read NumPy files.

    `paths` are files, folders and globs, relative to the folder `base`; `rows` says that the first axis is the row;
    `feature` names the array of a `.npy` file (without rows it may be "": bare `shape` and `data`); `columns` are the
    ones to keep (None: all), `exclude` those to leave out; `rules` are declared types of rows. `record_bytes` caps what
    one file takes in memory, and `limits` what is read at a time. `as_records` says that the user asked for records.
    """

    paths: tuple[str, ...]
    base: str = ""
    rows: bool = False
    feature: str = "array"
    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    rules: dict[str, ColumnRule] = field(default_factory=dict)
    record_bytes: int = RECORD_BYTES
    as_records: bool = False
    limits: NumpyLimits = field(default_factory=NumpyLimits, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.rows and not self.feature:
            raise UsageError('input.feature: "" goes with rows: false; with rows: true it names the column')
        if self.rules and not self.rows:
            raise SchemaError(
                "schema.columns does not go with NumPy files whose arrays are records: the type is the array's own; "
                "set input.rows: true for arrays whose first axis is the row"
            )

    def list_files(self) -> Listing:
        return list_entries(self.paths, self.base, suffixes_of("numpy"), file_format="numpy")

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        """Return the schema and the pieces: a file each, or with `rows` runs of rows of about 4 MiB.

        Without `rows` the first sound file sets the schema, and a file that differs is a reject when it is read. With
        `rows` all headers are read, and must agree, or a `SchemaError` or `SourceError` is raised.
        """
        if self.rows:
            return survey_rows(listing, run, self._choice, self.rules)
        return survey_records(listing, self._choice, told=self.as_records)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        """Without `rows`, files that are damaged or of another dtype or rank are rejects; with it, a `SourceError`."""
        if self.rows:
            return read_rows(task, self._choice)
        return read_records(task, frozen, self._choice)

    def with_rules(self, rules: dict[str, ColumnRule]) -> NumpySource:
        return replace(self, rules=rules)

    @property
    def _choice(self) -> ArrayChoice:
        return ArrayChoice(self.feature, Selection(self.columns, self.exclude), self.record_bytes, self.limits)
