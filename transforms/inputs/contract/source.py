"""One contract for every source: list, survey, read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...format.batches.rows import Rows
from ...format.manifest.details import ColumnEntry
from ...format.schema.schema import Choice, ColumnRule, Schema
from .dataset_schema import DatasetSchema
from .selection import Selection

T = TypeVar("T")
PathBytes: TypeAlias = bytes
R = TypeVar("R")


class ParallelMap(Protocol):
    """Applies a function to each item, on as many workers as there are, and returns the results in order.

    `heavy` says that all data are gone through, much of the time in Python's own hands: worth other processes, where
    there are some. Function, items and results are picklable.
    """

    def __call__(self, function: Callable[[T], R], items: Iterable[T], *, heavy: bool = False) -> list[R]:
        """Return `[function(item) for item in items]`."""


def map_in_turn(function: Callable[[T], R], items: Iterable[T], *, heavy: bool = False) -> list[R]:  # noqa: ARG001
    return [function(item) for item in items]


class Stamp(NamedTuple):
    """A file's state when it was listed: its size in bytes, its mtime in ns; in a store its version, which is enough.

    A version tells one content of an object from all others: S3's etag, or the generation of GCS.
    """

    size: int
    mtime_ns: int
    version: str = ""


class ListedFile(Protocol):
    """A file of the listing, as entries and pieces have it: all that opening it takes."""

    @property
    def path(self) -> bytes:
        """Where it is: absolute, in the file system's own bytes."""

    @property
    def name(self) -> str:
        """How it is shown."""

    @property
    def stamp(self) -> Stamp:
        """What it was when it was listed."""


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One line of the listing: an input file, or for images a folder of `files` files.

    `path` is absolute, in the file system's own bytes; `name` is how it is shown: relative to the config (or working)
    folder where it is below it, with `/`, printable. `fingerprint` depends on content and size only, never on time.
    An object of a store has its URL as path, and a `version`. `split` is what its path states, among those of others.
    """

    path: bytes
    name: str
    bytes: int
    mtime_ns: int
    fingerprint: str
    files: int = 1
    version: str = ""
    split: str | None = field(default=None, compare=False)

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.bytes, self.mtime_ns, self.version)

    def place(self, index: int) -> dict[str, Any]:
        """Return what its pieces say of their file, by field; `index` is its number in the listing."""
        return {"entry": index, "path": self.path, "name": self.name, "stamp": self.stamp}


@dataclass(frozen=True, slots=True)
class Traits:
    """What the entries of a source are, so that nobody else asks for its format.

    in_files         they can be looked at again later, as data in memory cannot
    in_folders       each is a folder, whose files are the rows
    has_order        somebody may rely on the order of rows
    whole_records    they hold records, which are passed on
    may_be_empty     one without a byte has no rows, and is no error
    names_pictures   rows name pictures in files that are no entries; None where the columns say so
    """

    in_files: bool = True
    in_folders: bool = False
    has_order: bool = True
    whole_records: bool = False
    may_be_empty: bool = False
    names_pictures: bool | None = None


@dataclass(frozen=True, slots=True)
class Recognised:
    """What the paths of files were recognised as: the name of a rule, its arguments as JSON has them, never paths.

    `lines` say so to the user, `warnings` name files that may be there twice. `said` is how the user gave all rows a
    rule or the split `split`: files have none then. `of_rows` are the splits of rows by the folders of the pictures
    that they name.
    """

    rule: str
    arguments: dict[str, Any] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    said: str = ""
    split: str = ""
    of_rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Everything that a source will read, in its order: entries sorted by the bytes of their paths.

    `skipped` is what was left out, by kind; `notable` are the paths of files among it that may belong to the data.
    `classes` are the names of the classes of columns, as a file beside them states.
    `datasets` are those of which it reads every shard, each a folder and a generation. `recognised` is how files got
    their splits.
    """

    format: str
    entries: tuple[SourceEntry, ...]
    files: int
    bytes: int
    skipped: dict[str, int] = field(default_factory=dict)
    traits: Traits = Traits()
    datasets: tuple[tuple[str, int], ...] = ()
    recognised: Recognised = Recognised("none")
    notable: Sequence[PathBytes] = field(default=(), compare=False, repr=False)
    classes: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False, repr=False)

    def keep(self, wanted: Sequence[int]) -> Listing:
        entries = tuple(self.entries[index] for index in wanted)
        return replace(self, entries=entries, files=len(entries), bytes=sum(entry.bytes for entry in entries))

    def pieces(self, found: Sequence[T], of: Callable[[int, SourceEntry, T], Iterable[R]]) -> tuple[R, ...]:
        """Return the pieces of all files: `of` gives those of a file, by its number and what was found of it."""
        known = enumerate(zip(self.entries, found, strict=True))
        return tuple(piece for index, (entry, one) in known for piece in of(index, entry, one))


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The smallest run of rows that a task can be made of; sources derive their own, with what reading it needs.

    holds          the classes of values in its fields that are not plain: dataclasses or named tuples
    path           that of its file (images: of the root folder) when it was listed, as are `name` and `stamp`
    rows           None where only reading tells
    first_row      the number of rows before it in its entry
    bytes          its size in the source
    output_bytes   the size of its records, where the source can tell without encoding any (images)
    """

    holds: ClassVar[tuple[type[Any], ...]] = ()

    entry: int
    path: bytes
    name: str
    stamp: Stamp
    rows: int | None
    first_row: int
    bytes: int
    output_bytes: int | None = None

    def rows_by_entry(self) -> dict[int, int | None]:
        """Return the rows of the piece by entry: a piece of images may hold files of several folders."""
        return {self.entry: self.rows}


class LazyPieces(Sequence[Piece]):
    """Pieces that are made when they are asked for, as there may be more of them than memory has room for.

    Planning gets what it needs of all of them at once; a range of them is of the same class. They go to workers as
    a document of bytes, numbers, text and lists.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def outputs(self) -> npt.NDArray[np.int64]:
        """The bytes of the records of each piece."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The rows of all pieces."""

    @abstractmethod
    def rows_by_entry(self) -> dict[int, int | None]:
        """Return the rows of all pieces by entry."""

    @abstractmethod
    def first(self, rows: int) -> Self:
        """Return the pieces of the first rows alone."""

    @abstractmethod
    def mark(self) -> bytes:
        """Return bytes that tell these pieces from others of the same listing."""

    @abstractmethod
    def forget(self) -> None:
        """Release what the pieces are made of: they have been written elsewhere, and take much memory here."""

    @abstractmethod
    def to_document(self) -> dict[str, Any]:
        """Return what `from_document` takes."""

    @classmethod
    @abstractmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Return the pieces that a document states."""


class StoredPieces(Sequence[Piece]):
    """The pieces of a task that are elsewhere, as a file of the staging folder, and are read where they are needed."""

    __slots__ = ()

    @abstractmethod
    def load(self) -> Sequence[Piece]:
        """Return the pieces."""

    def __len__(self) -> int:
        return len(self.load())

    @overload
    def __getitem__(self, index: int) -> Piece: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Piece]: ...
    def __getitem__(self, index: int | slice) -> Piece | Sequence[Piece]:
        """Return one piece, or some; a caller that needs more than one loads them."""
        return self.load()[index]


@dataclass(frozen=True, slots=True)
class Task:
    """One contiguous piece of the source: pieces that follow each other, over one file or several."""

    ordinal: int
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class Frozen:
    """The facts that all tasks share: the schema, and for sources that split or label by directory their names.

    `opaque` says that records are plain bytes, which have no schema. `columns` are those of the source with the
    features that hold each, where some are nested or decimals. `by_entry` is the number of each entry's split, a byte
    each, where the paths of files state them.
    """

    schema: Schema
    splits: tuple[str, ...] = ()
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    opaque: bool = False
    columns: tuple[ColumnEntry, ...] = ()
    by_entry: bytes = b""


@dataclass(frozen=True, slots=True)
class UnitedFrozen(Frozen):
    """What tasks share where the columns of typed files may differ: `fields` are those of all files."""

    fields: pa.Schema = field(kw_only=True)


class LastRow(NamedTuple):
    """The last row that is read of a source: row `row` of its entry, counted from 1."""

    entry: int
    row: int


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of a source is read: at most `rows` rows.

    `last` is the last of them, where that is within a piece. The entries in `partial` are not read to their end.
    """

    rows: int
    last: LastRow | None = None
    partial: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Survey:
    """The results of planning, before any row is converted.

    pieces       in the order of the source
    warnings     for the user
    split_rows   the rows of each split, where the source itself splits, under "" those of none
    tasks        the pieces of each task, where the source knows better than planning does
    detected     what was detected in the data, with its evidence
    remarks      facts for programs, too common for a screen
    fields       the Arrow fields of the batches that are read, where rows may go through a recipe
    limit        given where not all rows are read
    resizes      records are of other sizes than the source knows, as pictures are resized
    source       what reads the pieces, where planning has changed the source that was asked
    rule         the rule by which what is inside of files says splits, as a dataset remembers it
    """

    frozen: Frozen
    choices: tuple[Choice, ...]
    pieces: Sequence[Piece]
    warnings: tuple[str, ...] = ()
    split_rows: dict[str, int] = field(default_factory=dict)
    tasks: tuple[range, ...] | None = None
    detected: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    fields: tuple[pa.Field, ...] = ()
    limit: Limit | None = None
    resizes: bool = False
    source: Source | None = field(default=None, compare=False, repr=False)
    rule: str = ""


class Source:
    """The input of a conversion: a frozen, picklable dataclass of options, with slots.

    `list_files` and `survey` run once, where the run is launched; `read` runs in the workers and needs nothing but the
    source itself, a task, and what the survey froze. The other methods are for sources that do more, and say what the
    others do.
    """

    __slots__ = ()

    typed: ClassVar[bool] = False
    """Whether values have types of their own, whose form `rules` decide; others may be cast to a dataset's types."""

    @abstractmethod
    def list_files(self) -> Listing:
        """Return the files to read.

        Raises:
            InputError: a path matches nothing.
        """

    @abstractmethod
    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        """Return the schema and the pieces of the listed files.

        Raises:
            SchemaError: a column's type has no feature.
            SourceError: a file is corrupt as a whole.
        """

    @abstractmethod
    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        """Yield the rows of a task, in source order; ordinals count from 0. Bad rows are rejects or problems.

        Raises:
            SourceError: a file is corrupt as a whole, or is not what it was when it was listed.
        """

    @property
    def selection(self) -> Selection | None:
        """The columns that are read, None where a source cannot but read all of them."""
        return None

    def selecting(self, selection: Selection) -> Self:  # noqa: ARG002
        """Return the source that reads other columns; it is called where there is a `selection`."""
        return self

    @property
    def union(self) -> bool | None:
        """Whether a file may lack columns that others have, None where no option says so."""
        return None

    @property
    def rules(self) -> dict[str, ColumnRule]:
        """The declared types, by column, and the forms: `as: bytes`, the unit, a time zone of UTC."""
        return {}

    def with_rules(self, rules: dict[str, ColumnRule]) -> Self:  # noqa: ARG002
        """Return the source with other rules, if it is `typed`."""
        return self

    def following(self, dataset: DatasetSchema) -> Self:  # noqa: ARG002
        """Return the source that knows of a dataset before it is surveyed, as for the numbers of classes."""
        return self

    def cast_to(self, survey: Survey, dataset: DatasetSchema) -> Survey:  # noqa: ARG002
        """Return the survey of values that have no types of their own as they are cast to those of a dataset."""
        return survey
