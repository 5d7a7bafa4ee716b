"""The contract of every source (list, survey, read), and the dataset that an append follows."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import SchemaError
from ...format.batches.rejects import NEW_DATASET
from ...format.batches.rows import Rows
from ...format.columns.keys import is_flat, type_of_document
from ...format.manifest.manifest import ColumnEntry
from ...format.schema.arrow_types import arrow_type_of
from ...format.schema.column_types import TYPES
from ...format.schema.schema import Choice, ColumnRule, Feature, Schema, differing_features, schemas_side_by_side
from ...format.wording.hints import Add, set_column
from .selection import UNITE, Selection, exclude_columns, same_but_capitals

_WRITTEN: Final = (
    "give the keys that read its text, as the dataset was made (strip, decimal, thousands, negative, format)"
)

_SCALARS: Final = TYPES.keys() - {"image"}
_PICTURE_FACTS: Final = ("channels", "colorspace", "filename", "format", "height", "width")
"""What a picture becomes beside its bytes: features that no file has."""


@dataclass(frozen=True, slots=True)
class DatasetSchema:
    """The schema of an existing dataset; with `no_rejects`, a column with only bad cells counts as re-typed.

    `wanted_split` is the split that an append named for records of files that name none. `columns` are those of the
    source, where some are nested or decimals. `may_unite` says that the source can read columns that its files lack as
    nulls, and was not asked to. `may_add` are features that the user declares: those that the dataset lacks are added
    to it, null in the records that it has.
    """

    name: str
    schema: Schema
    labels: Mapping[str, tuple[str, ...]]
    no_rejects: bool = True
    wanted_split: str | None = None
    columns: tuple[ColumnEntry, ...] = ()
    may_unite: bool = False
    may_add: frozenset[str] = frozenset()

    def with_added(self, found: Schema) -> DatasetSchema:
        """Return the dataset with the features of a source that it lacks and may add."""
        known = {feature.name for feature in self.schema}
        new = [replace(one, nullable=True) for one in found if one.name in self.may_add - known]
        schema = Schema(tuple(sorted((*self.schema, *new), key=lambda feature: feature.name)))
        return replace(self, schema=schema) if new else self

    @property
    def may_lack(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.missing_in(Schema(())))

    def type_of(self, name: str) -> pa.DataType | None:
        """Return the Arrow type of the values of a column, as a source has them, None if there is no such column."""
        entry = next((one for one in self.columns if one.name == name), None)
        if entry is not None and not is_flat(kind := type_of_document(entry.type)):
            return kind
        feature = next((one for one in self.schema if one.name == name), None)
        if feature is None or feature.type == "image":
            return None
        text = (feature.type == "label" and feature.shape == ()) or (entry is not None and entry.file is not None)
        return pa.string() if text else arrow_type_of(feature)

    def missing_in(self, found: Schema) -> list[Feature]:
        """Return the features that a source lacks and that may be null in all of its rows."""
        names = {feature.name for feature in found}
        parts = {part for column in self.columns for part in column.features if part != column.name}
        pictures = [one.name.removesuffix("encoded") for one in self.schema if one.type == "image"]
        parts |= {f"{picture}{fact}" for picture in pictures for fact in _PICTURE_FACTS}
        return [
            feature
            for feature in self.schema
            if feature.name not in names | parts and feature.nullable
            if feature.type != "image" and (feature.type != "label" or feature.shape != ())
        ]


def refuse_others(dataset: DatasetSchema, found: Schema, retype: str | None = None) -> None:
    """Raise `SchemaError` for other features, with both schemas.

    `retype` is the fix for features of another type; None where their types may be declared.
    """
    marked = differing_features(dataset.schema, found)
    if not marked:
        return
    counts = Counter(marked.values())
    words = [f"{count} {'feature' if count == 1 else 'features'} {how}" for how, count in sorted(counts.items())]
    table = schemas_side_by_side(dataset.schema, found, ("the dataset", "the source"), marked=marked)
    raise SchemaError(
        f"the source does not match the schema of {dataset.name} ({', '.join(words)}), and rows of another schema "
        f"are not appended:\n{table}\n{_fix(marked, dataset, found, retype)}"
    )


def _fix(marked: Mapping[str, str], dataset: DatasetSchema, found: Schema, retype: str | None) -> str:
    """Return what helps: columns may be left out or be null, and scalars declared; to reshape is a migration."""
    pairs = [sorted(names, key=lambda name: marked[name]) for names in same_but_capitals(marked)]
    twins = {pair[0]: pair[1] for pair in pairs if [marked[name] for name in pair] == ["added", "missing"]}
    marked = {name: how for name, how in marked.items() if name not in {*twins, *twins.values()}}
    hows = set(marked.values())
    filled = {feature.name for feature in dataset.missing_in(found)} if dataset.may_unite else set()
    missing = {name for name, how in marked.items() if how == "missing"}
    fixed = [f for f in dataset.schema if marked.get(f.name) == "re-typed" and (f.shape or f.type.startswith("array_"))]
    fixes = []
    if twins:
        named = Add(*(set_column(one, "name", other) for one, other in twins.items()))
        fixes.append(f"name columns as the dataset does where only capitals differ: {named}")
    if missing <= filled and not fixed:
        if missing:
            fixes.append(f"read missing columns as nulls: {UNITE}")
        if "added" in hows:
            new = [one for one in found if marked.get(one.name) == "added"]
            plain = all(one.type in _SCALARS and one.shape == () and "/" not in one.name for one in new)
            named = Add(*(set_column(one.name, "type", one.type) for one in new))
            more = f", or add the others, null in the rows that it has: {named}" if plain else ""
            others = list(dict.fromkeys(one.name.partition("/")[0] for one in new))
            fixes.append(f"leave out what the dataset has not: {exclude_columns(others)}{more}")
        if "re-typed" in hows:
            fixes += filter(None, [_declared(marked, dataset, found) if retype is None else retype])
    other = "or convert" if fixes else "convert"
    return f"{', and '.join(fixes)}{'; ' if fixes else ''}{other} to a new dataset ({NEW_DATASET})"


def _declared(marked: Mapping[str, str], dataset: DatasetSchema, found: Schema) -> str:
    """Return how columns of other types are read as the dataset has them; empty where a column is not."""
    own = {feature.name: feature.type for feature in dataset.schema}
    others = [(one, own[one.name]) for one in found if marked.get(one.name) == "re-typed"]
    if all(wanted in _SCALARS and one.type in TYPES[wanted].reads for one, wanted in others):
        options = Add(*(set_column(one.name, "type", wanted) for one, wanted in others))
        return f"declare the dataset's types, where the values fit: {options}"
    return _WRITTEN if all(one.type == "string" for one, _ in others) else ""


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
