"""The pieces of a task as text, for a file that workers read them from: JSON, since nothing in a file is unpickled.

A piece is its class's name and its fields, in their order. Bytes are `{"b": base64}`, other product values, like a
`Cut`, are `{"c": name, "v": fields}`. The files are ours, and proven by a digest before they are read: see
`transforms/plan_files.py`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from ...format.flow.blocks import Narrowing
from ..contract.source import LazyPieces, Piece, Stamp

_VALUES: Final = (Narrowing, Stamp)
"""What fields of any piece hold, beside numbers, text, bytes and tuples; a class of pieces names more in `holds`."""


def encode_pieces(pieces: Sequence[Piece]) -> bytes:
    if isinstance(pieces, LazyPieces):
        document: Any = {"lazy": type(pieces).__name__, "document": _written(pieces.to_document())}
    else:
        document = [_written(piece) for piece in pieces]
    return json.dumps(document, separators=(",", ":")).encode()


def decode_pieces(line: bytes) -> Sequence[Piece]:
    """Read what `encode_pieces` wrote; the module of their source has been imported, else `KeyError` is raised."""
    document = json.loads(line)
    if isinstance(document, dict):
        lazy: dict[str, type[LazyPieces]] = {kind.__name__: kind for kind in _below(LazyPieces)}
        return lazy[document["lazy"]].from_document(_read(document["document"], {}))
    pieces = list(_below(Piece))
    values = (*_VALUES, *(value for kind in pieces for value in kind.holds))
    kinds: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (*values, *pieces)}
    return tuple(_read(piece, kinds) for piece in document)


def _written(value: Any, holds: tuple[type[Any], ...] = _VALUES) -> Any:
    if isinstance(value, bytes):
        return {"b": base64.b64encode(value).decode()}
    if isinstance(value, Piece):
        holds = (*_VALUES, *value.holds)
    if isinstance(value, (Piece, *holds)):
        held: Any = value
        names = [field.name for field in fields(held)] if is_dataclass(held) else held._fields
        return {"c": type(value).__name__, "v": {name: _written(getattr(value, name), holds) for name in names}}
    if isinstance(value, dict):
        return {"d": {key: _written(item, holds) for key, item in value.items()}}
    if isinstance(value, list | tuple):
        return [_written(item, holds) for item in value]
    return value


def _read(value: Any, kinds: dict[str, Callable[..., Any]]) -> Any:
    if isinstance(value, list):
        return tuple(_read(item, kinds) for item in value)
    if not isinstance(value, dict):
        return value
    if "b" in value:
        return base64.b64decode(value["b"])
    if "d" in value:
        return {key: _read(item, kinds) for key, item in value["d"].items()}
    return kinds[value["c"]](**{name: _read(item, kinds) for name, item in value["v"].items()})


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    derived: list[type[Any]] = kind.__subclasses__()
    for each in derived:
        yield from _below(each)
