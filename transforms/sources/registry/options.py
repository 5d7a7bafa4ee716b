"""The keys of `input` that all formats share, with their checks; the options of a format add its own to them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from ...format.wording.printable import quoted
from ...pictures.facts import Check
from ...recipe.steps.expression import read_expression
from ...stores.store_url import STORES, parse_store_url, places

STRICT: Final = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False)
"""The base of every section of a config: it refuses unknown keys, and never converts one type into another."""


def check_path(value: str) -> str:
    """Raise `ValueError` where a value is no path and no URL."""
    if not value or "\0" in value:
        raise ValueError(f"{quoted(value)} is not a path")
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", value)
    if scheme is None:
        return value
    if scheme[1] not in STORES:
        raise ValueError(f"{quoted(value)}: {scheme[1]}:// is not supported; give a local path, {places()}")
    parse_store_url(value)
    return value


def check_classes(value: list[object]) -> list[str]:
    """Take text and whole numbers. Raises `ValueError` for another value, or where two classes have one name."""
    for name in value:
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise ValueError(f'{quoted(name)} is no name of a class; put it in quotes: ["no", "yes"]')
    names = [str(name) for name in value]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{quoted(twice)} appears twice")
    return names


def check_where(value: str) -> str:
    """Raise `ValueError` where a value is no expression over columns."""
    read_expression(value)
    return value


def _check_encoding(value: str) -> str:
    try:
        "".encode(value)
    except (LookupError, ValueError) as error:
        raise ValueError(
            f"{quoted(value)} is not an encoding that Python knows, like utf-8, latin-1, utf-16"
        ) from error
    return value


Encoding: TypeAlias = Annotated[str, AfterValidator(_check_encoding)]
InputPath: TypeAlias = Annotated[str, AfterValidator(check_path)]
SplitName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
SplitGlobs: TypeAlias = Annotated[dict[SplitName, str | list[str]], Field(min_length=1, max_length=64)]
"""The files of each split: globs of their names, or with a `/` of their paths below the folder that is read.

There are at most as many as a rule of splits may name."""
Count: TypeAlias = Annotated[int, Field(ge=1)]
Columns: TypeAlias = Annotated[list[str], Field(min_length=1)] | None
Partitions: TypeAlias = Literal["none"] | None
"""How to treat columns in the names of folders (`year=2024`): leave them out, or by default read them."""
ColumnsDiffer: TypeAlias = Literal["refuse", "union"]
"""How to treat files whose columns differ: refuse them, or read the columns of all, null where a file lacks one."""


class SharedOptions(BaseModel):
    """The keys of every format."""

    model_config = STRICT

    paths: Annotated[list[InputPath], Field(min_length=1)]
    columns: Columns = None
    exclude_columns: list[str] = []
    limit: Count | None = None
    where: Annotated[str, AfterValidator(check_where)] | None = None
    ignore: list[Annotated[str, StringConstraints(min_length=1)]] = []
    splits: Literal["names", "none"] | SplitGlobs | None = None
    detect: Literal["none"] | None = None
    check: Check = "structure"

    @model_validator(mode="after")
    def _columns_differ(self) -> SharedOptions:
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            twice = next(name for name in self.columns if self.columns.count(name) > 1)
            raise ValueError(f'columns: "{twice}" appears twice')
        return self


class Options(SharedOptions):
    """The options of one format, whose name is the only value of `format`; those of a format derive from this."""

    format: str


class FileOptions(Options):
    """The options of files below folders whose names say something of their rows."""

    partitions: Partitions = None


class TableOptions(FileOptions):
    """The options of files whose columns may differ."""

    columns_differ: ColumnsDiffer = "refuse"


class InputOfUnknownFormat(SharedOptions):
    """An input whose format is not known: only what all formats have is checked."""

    model_config = ConfigDict(extra="ignore")
