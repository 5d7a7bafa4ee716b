"""What a manifest states of columns, pictures and checks: each only where a dataset uses it.

`docs/format.md` describes the members.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ..wording.printable import printable
from .naming import index_path
from .strict_json import ManifestProblem, Take, choice, integer, items, mapping, object_of, only, text

_LEAF: Final = re.compile(
    r"null|bool|u?int(8|16|32|64)|float(16|32|64)|string|binary|date|decimal\([1-9][0-9]?, -?[0-9]{1,2}\)|"
    r"(time|duration)\[(s|ms|us|ns)\]|timestamp\[(s|ms|us|ns)(, [A-Za-z0-9_+:/-]{1,64})?\]"
)
"""The types that hold no other types, as text."""

_DEEPEST: Final = 32
"""Levels of a nested type: more are a mistake, and would take a reader's stack."""


@dataclass(frozen=True, slots=True)
class ColumnEntry:
    """A column of the source, and the features that hold it.

    `type` is its Arrow type: text, or an object for a nested one. `null` is how a null was written: `absent`, `mask`
    (the feature `NAME/mask` is beside it), `present` (`NAME/present`), `drop_row`, `error`, or `fill`, and then
    with `fill`, the value. `file` is `path` where it held the paths of files, whose bytes the feature holds.
    """

    name: str
    type: Any
    features: tuple[str, ...]
    null: str = "absent"
    fill: str | int | float | bool | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Details:
    """The optional members. What is None, or empty, is not there.

    `columns` are in the order of the source, `image` is the codec that has changed pictures, `checks` what was found by
    checks of the records.
    `adopted` are files of another writer, of any name and size, that are the first shards. `added` are features that
    the shards of earlier generations lack, each with the generation that added it.
    """

    columns: tuple[ColumnEntry, ...] = ()
    image: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, Any] = field(default_factory=dict)
    adopted: dict[str, Any] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        members = {one.name: getattr(self, one.name) for one in fields(self)}
        members["columns"] = column_documents(self.columns)
        return {name: value for name, value in members.items() if value}


ALL_INDEXES: Final = "index/*.offsets"
"""Stands for the index of each shard, where there are more than `MOST_NAMED` shards and all have one."""

MOST_NAMED: Final = 100


def shortened(sidecars: Sequence[str], shards: Sequence[str]) -> tuple[str, ...]:
    """Return the paths of sidecars as a manifest of these shards lists them, with one name for many indexes."""
    indexes = {index_path(path, "binary") for path in shards} if len(shards) > MOST_NAMED else set()
    if not indexes or not indexes.issubset(sidecars):
        return tuple(sidecars)
    return tuple(sorted({ALL_INDEXES, *sidecars} - indexes))


def lengthened(sidecars: Sequence[str], shards: Sequence[str]) -> tuple[str, ...]:
    if ALL_INDEXES not in sidecars:
        return tuple(sidecars)
    read = (path for path in shards if not path.startswith("manifests/"))  # the others are parts, of which none is
    named = {index_path(path, "binary") for path in read}
    return tuple(sorted(named.union(sidecars) - {ALL_INDEXES}))


def column_documents(columns: Iterable[ColumnEntry]) -> list[dict[str, Any]]:
    return [_column_document(column) for column in columns]


def _column_document(column: ColumnEntry) -> dict[str, Any]:
    document = {one.name: getattr(column, one.name) for one in fields(column)} | {"features": list(column.features)}
    if column.null == "absent":
        del document["null"]
    if column.fill is None:
        del document["fill"]
    if column.file is None:
        del document["file"]
    return document


def take_type(value: Any, depth: int = 0) -> Any:
    """Take an Arrow type: text, `{"list": FIELD}`, `{"struct": [FIELD, ...]}` or `{"map": [FIELD, FIELD]}`.

    A list of one length has its `size` beside it.
    """
    if isinstance(value, str):
        if _LEAF.fullmatch(value) is None:
            raise ManifestProblem(f' is "{printable(value)}", not a type')
        return value
    if depth == _DEEPEST:
        raise ManifestProblem(f" has more than {_DEEPEST} levels")
    size = value.get("size") if isinstance(value, dict) else None
    kinds = [key for key in value if key != "size"] if isinstance(value, dict) else []
    if kinds not in (["list"], ["struct"], ["map"]) or (size is not None and kinds != ["list"]):
        raise ManifestProblem(' is not a type: text, or an object with one of "list", "struct" and "map"')
    inner: Take[dict[str, Any]] = object_of(
        dict, name=text(), type=lambda below: take_type(below, depth + 1), nullable=only(_is_bool, "true or false")
    )
    kind, below = kinds[0], value[kinds[0]]
    if kind == "list":
        return {"list": inner(below)} | ({} if size is None else {"size": integer()(size)})
    found = items(inner)(below)
    if kind == "map" and len(found) != 2:
        raise ManifestProblem(" has not two fields, the key and the value", "map")
    return {kind: list(found)}


def _column(**members: Any) -> ColumnEntry:
    column = ColumnEntry(**members)
    if not column.features:
        raise ManifestProblem(" is empty", "features")
    if (column.null == "fill") != (column.fill is not None):
        raise ManifestProblem(" and null disagree", "fill")
    return column


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | bool | int | float)


def _part(may_lack: tuple[str, ...], **members: Take[Any]) -> Take[dict[str, Any]]:
    return object_of(dict, may_lack, **members)


_NAMES: Final = items(text())
_COUNTED: Final = ("records", "groups")
_EXAMPLES: Final = items(_part((), records=integer(1), places=lambda value: list(_NAMES(value))))

take_columns: Final[Take[tuple[ColumnEntry, ...]]] = items(
    object_of(
        _column,
        ("null", "fill", "file"),
        name=text(),
        type=take_type,
        features=_NAMES,
        null=choice("absent", "mask", "present", "drop_row", "error", "fill"),
        fill=only(_is_scalar, "a number, text, true or false"),
        file=choice("path"),
    )
)

take_details: Final[Take[Details]] = object_of(
    Details,
    ("columns", "image", "checks", "adopted", "added"),
    columns=take_columns,
    image=_part((), codec=text(), version=text()),
    adopted=_part((), files=integer(1)),
    added=mapping(integer(2)),
    checks=mapping(
        _part(
            ("not_compared", "action", "splits", "examples"),
            columns=lambda value: list(_NAMES(value)),
            **dict.fromkeys(_COUNTED, integer()),
            not_compared=choice("one split", "no value"),
            action=choice("drop"),
            splits=mapping(integer(1)),
            examples=lambda value: list(_EXAMPLES(value)),
        )
    ),
)
