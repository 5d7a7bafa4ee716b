"""What a user asked of a source: columns, splits of its files, and the command and paths as messages repeat them."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from ...errors import SchemaError
from ...format.wording.hints import Add, Command, Python, Set, runnable, set_column
from ...format.wording.printable import NoColumnError, printable, printable_path

_MAGIC: Final = frozenset("*?[")

_WIDEST: Final = 400_000
"""Columns of a file, or four times `limits.columns`: some of so many may be chosen; of more nothing is looked at."""

_NAMED_COLUMNS: Final = 200
"""The most columns in a command to copy; more belong in a config."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns to keep, None for all, without those to `exclude`: names, or globs like `feat_*`.

    A name of a column is that column, also where it reads as a glob. With `union` a file need not have all columns that
    are named, as long as another one has them, or the dataset that they are appended to, which has those that are
    `elsewhere`.
    """

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    union: bool = False
    elsewhere: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        columns: Sequence[str] | None,
        exclude: Sequence[str],
        *,
        union: bool = False,
        elsewhere: tuple[str, ...] = (),
    ) -> Selection:
        """Return what the options of a format choose."""
        return cls(None if columns is None else tuple(columns), tuple(exclude), union, elsewhere)

    def check_width(self, name: str, count: int, most: int) -> None:
        """Refuse more than `most` columns, far more where some are chosen, before anything is built for each."""
        if self.columns is None and not self.exclude:
            refuse_columns(f"{name}: ", count, most)
        refuse_far_more(name, count, most)

    def pick(self, names: Sequence[str], *, where: str = "", hint: Callable[[str], str] | None = None) -> list[str]:
        """Return the names of the columns to read, in the order of `names`; `where` begins a message.

        `hint` ends the message about a name that is no column. Raises `SchemaError`: a name is no column, a glob
        matches none, or no column is left.
        """
        kept = replace(self, union=False).pick_of_file(names, where=where, hint=hint)
        self.check_excluded(names, where=where, hint=hint)
        return kept

    def pick_of_file(
        self, names: Sequence[str], *, where: str = "", hint: Callable[[str], str] | None = None
    ) -> list[str]:
        """Do as `pick`, for one file of several: what is left out may be a column of another one."""
        if self.union:
            return self.of_some(names)
        kept = list(names) if self.columns is None else self._matches("columns", self.columns, names, where, hint)
        if not self.exclude:
            return kept
        known = frozenset(names)
        gone = {name for one in self.exclude for name in _matching(one, known)}
        left = [name for name in kept if name not in gone]
        if not left:
            raise SchemaError(f"{where}input.exclude_columns leaves no column; keep at least one")
        return left

    def check_excluded(
        self, names: Sequence[str], *, where: str = "", hint: Callable[[str], str] | None = None
    ) -> None:
        self._matches("exclude_columns", self.exclude, names, where, hint)

    def of_some(self, names: Sequence[str]) -> list[str]:
        """Return which of these columns are kept, where there are others: names that are none of these say nothing."""
        return [name for name in names if self._keeps(name)]

    def of_one_among(self, files: int) -> Selection:
        """Return the selection for one of some files: what it lacks of the names is judged when all are known."""
        return replace(self, union=True) if files > 1 else self

    def without(self, names: Sequence[str]) -> Selection:
        """Return the selection without these names: they are columns that the source does not hold."""
        gone = set(names)
        columns = None if self.columns is None else tuple(name for name in self.columns if name not in gone)
        return replace(self, columns=columns, exclude=tuple(name for name in self.exclude if name not in gone))

    def leaving_out(self, names: Sequence[str]) -> str:
        """Return how to leave some columns more out."""
        return exclude_columns([*self.exclude, *(name for name in names if name not in self.exclude)])

    def _keeps(self, name: str) -> bool:
        kept = self.columns is None or any(_matching(one, frozenset((name,))) for one in self.columns)
        return kept and not any(_matching(one, frozenset((name,))) for one in self.exclude)

    def _matches(
        self, key: str, wanted: Sequence[str], names: Sequence[str], where: str, hint: Callable[[str], str] | None
    ) -> list[str]:
        known, chosen = frozenset(names), set[str]()
        for one in wanted:
            found = _matching(one, known)
            if not found and one in self.elsewhere:
                continue
            if not found and not _MAGIC.isdisjoint(one):
                raise SchemaError(f'{where}input.{key}: "{printable(one)}" matches no column')
            if not found:
                ending = None if hint is None else hint(one)
                raise NoColumnError(f"{where}input.{key}", one, names, hint=ending)
            chosen |= found
        return [name for name in names if name in chosen]


def _matching(wanted: str, names: frozenset[str]) -> set[str]:
    """Return the names that a name or a glob matches: a name that is there is never a glob."""
    if wanted in names or _MAGIC.isdisjoint(wanted):
        return {wanted}.intersection(names)
    return {name for name in names if fnmatchcase(name, wanted)}


def refuse_columns(where: str, count: int, most: int) -> None:
    if count > most:
        raise SchemaError(
            f"{where}{count} columns are more than limits.columns ({most}); keep some: input.columns, or raise it: "
            f"{Set('limits.columns', count)}"
        )


def refuse_far_more(name: str, count: int, most: int) -> None:
    if count > max(_WIDEST, 4 * most):
        raise SchemaError(
            f"{name}: {count} columns, far over limits.columns: {Set('limits.columns', count)} reads them"
        )


EVERY_COLUMN: Final = Selection()
UNITE: Final = f"{Set('input.columns_differ', 'union')}"
"""The option that reads files whose columns differ."""


def exclude_columns(names: Sequence[str]) -> str:
    r"""Return how to leave some columns out.

    >>> exclude_columns(["id", "first name"])
    '--set \'input.exclude_columns=["id", "first name"]\''
    """
    if len(names) > _NAMED_COLUMNS:
        return f"name the {len(names)} columns in input.exclude_columns of a config"
    return str(Set("input.exclude_columns", names))


# What to say of files that lack columns of others, where their columns are united.


def lacking_files(files: Sequence[tuple[str, Sequence[str]]]) -> dict[str, str]:
    """Return in which files columns are missing, given the names of files and those of their columns.

    >>> lacking_files([("a.csv", ["id"]), ("b.csv", ["id", "x"]), ("c.csv", ["id"])])
    {'x': 'missing in a.csv and 1 more'}
    """
    had = Counter(name for _, names in files for name in names)
    lacked: dict[str, str] = {}
    for file, names in files:
        own = frozenset(names)
        for name, count in had.items():
            if name not in own and name not in lacked:
                more = len(files) - count - 1
                lacked[name] = f"missing in {file}{f' and {more:,} more' if more else ''}"
    return lacked


def files_apart(files: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return the files of several that have none of the columns of any other one, but for ids.

    >>> files_apart([("a.csv", ["id"]), ("b.csv", ["id", "x"]), ("c.csv", ["id", "y", "z"])])
    ('c.csv',)
    """
    had = Counter(name for _, names in files for name in names)

    def is_apart(names: Sequence[str]) -> bool:
        own = [name for name in names if name.lower() not in _IDS]
        return all(had[name] == 1 for name in (own if len(own) >= _FEWEST else names))

    return tuple(file for file, names in files if len(files) > 1 and is_apart(names))


_FEWEST: Final = 2
_IDS: Final = {"id", "_id"}
"""Columns that tables of different things have."""


def apart_warning(apart: Sequence[str]) -> tuple[str, ...]:
    if not apart:
        return ()
    if len(apart) == 1:
        return (f"{apart[0]}: has no column, ids apart, in common with the other files: is it of the same table?",)
    return (
        f"{apart[0]} and {len(apart) - 1:,} more have no column, ids apart, in common with any other file: are all of "
        "the same table?",
    )


# Columns of which files write the names with other capitals: airport_fee and Airport_fee.


def same_but_capitals(names: Iterable[str]) -> list[list[str]]:
    """Return the names that differ in capitals only, those of one spelling together.

    >>> same_but_capitals(["id", "fee", "Fee"])
    [['fee', 'Fee']]
    """
    found = defaultdict[str, list[str]](list)
    for name in dict.fromkeys(names):
        found[name.casefold()].append(name)
    return [group for group in found.values() if len(group) > 1]


def as_one_column(name: str, twin: str, *, also: str = "") -> str:
    """Return how to read two columns of different files as one; `also` is what else is known of them."""
    join = Command("append", "FILES", "-o", "FOLDER", set_column(twin, "name", name))
    return (
        f'"{printable(name)}" and "{printable(twin)}" differ in capitals only{also}; if they are one column, convert '
        f'the files with "{printable(name)}", and append the others: {join}'
    )


def capitals_warnings(files: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return what to say of columns of united files that no file has both of."""
    groups = same_but_capitals(name for _, names in files for name in names)
    each = [frozenset(names) for _, names in files] if groups else []
    return tuple(
        as_one_column(name, twin, also=", and each is null where a file has the other")
        for name, *twins in groups
        for twin in twins
        if not any(name in names and twin in names for names in each)
    )


# The command that a user gave, for messages that propose another one or a call from Python, and its options.


@dataclass(frozen=True, slots=True)
class Call:
    """The command that a user gave: `convert` or `append`, the dataset's folder, and what else was `given`.

    The run `writes` the folder, unless it is a dry run. Once it `has_written`, another convert replaces the dataset.
    """

    command: str = "convert"
    output: str = "out"
    given: tuple[Set, ...] = field(default=(), compare=False, repr=False)
    writes: bool = field(default=False, compare=False, repr=False)
    has_written: bool = field(default=False, compare=False, repr=False)

    @property
    def afterwards(self) -> Call:
        """The call as the lines of a summary propose it; errors end a run before it writes."""
        return replace(self, has_written=self.writes and self.command != "append")

    def plain(self, paths: Iterable[str], *options: Add) -> Command:
        """Return the command with other paths and options, without what else was given.

        >>> print(Call(output="my out", writes=True).afterwards.plain(["a.csv"]))
        shardmill convert a.csv -o 'my out' --overwrite
        """
        again = (Add("--overwrite"),) if self.has_written else ()
        return Command(self.command, *paths, "-o", self.output, *again, *options)

    def reading(self, paths: Iterable[str], *options: Add) -> Command:
        """Return the command with other paths and more options, in place of given ones of the same keys.

        >>> call = Call(given=(Set("input.format", "txt"), Set("input.splits", "none")))
        >>> print(call.reading(["a.en"], Set("input.splits", "names")))
        shardmill convert a.en -o out --set input.format=txt --set input.splits=names
        """
        keys = {word.partition("=")[0] for option in options for word in option.words}
        keys |= {"output.if_exists"} if self.has_written else set()
        return self.plain(paths, *(one for one in self.given if one.key not in keys), *options)

    def apart(self, name: str) -> Call:
        """Return the call with a dataset of its own, beside the one that was given: out-val for out."""
        return replace(self, output=f"{self.output.rstrip('/')}-{name}", has_written=False)

    def of_data(self, data: str, **more: object) -> Python:
        """Return the call from Python with an expression that gives the data, and more settings.

        >>> print(Call("append", "out/a").of_data("frame"))
        from shardmill.pipelines import append; append(data=frame, output='out/a')
        >>> print(Call(has_written=True).of_data("[1]", split="test").rpartition("; ")[2])
        convert(data=[1], output='out', overwrite=True, split='test')
        """
        settings = {"output": self.output} | ({"overwrite": True} if self.has_written else {}) | more
        return runnable(f"{self.command}(data={data}, {', '.join(f'{key}={one!r}' for key, one in settings.items())})")


def typed_path(path: str) -> str:
    """Return a path relative to the working folder where it is below it; a URL as it is."""
    if "://" in path:
        return path
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith("..") else relative


def shown_path(path: str | bytes) -> str:
    """Return how a path is shown in a command that can be pasted: relative to the working folder."""
    return printable_path(typed_path(os.fsdecode(path)))


Globs: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Splits, and the globs of the files of each."""


@dataclass(frozen=True, slots=True)
class FileSplits:
    """How files get their splits: `wanted` is what `input.splits` says, None for what the files show.

    `said` is how the user gave all rows a rule or a split; the files then have none. With `unites` the commands that
    are proposed let the columns of files differ. Files without a split are in `split`. With `looks` files are opened,
    to see whether they are what their names say. Rows may name `pictures` in these folders, with paths that begin in
    the folder `begin` or else in theirs; a step then splits rows, and not their files, where no globs are `wanted`.
    Without folders nothing is split.

    `held` is the rule by which the files of the dataset of an append got theirs; `none` where they showed none and are
    all in `split`, empty where the dataset does not say. `as_one` are the options by which a command reads all files as
    one split; `one_split` is that command, where it is another. Files are `ignored` by these globs.
    """

    wanted: Literal["names", "none"] | Globs | None = None
    said: str = ""
    unites: bool = field(default=False, compare=False, repr=False)
    split: str = "train"
    looks: bool = True
    one_split: str = field(default="", compare=False, repr=False)
    pictures: tuple[str, ...] | None = None
    begin: str = ""
    held: str = ""
    ignored: tuple[str, ...] = field(default=(), compare=False, repr=False)
    as_one: Add = field(default=Set("input.splits", "none"), compare=False, repr=False)
    call: Call = field(default_factory=Call, compare=False, repr=False)


HELD_RULE: Final = "the rule of the dataset"
"""How all rows of an append get their split, where the dataset does not use those of its files."""
