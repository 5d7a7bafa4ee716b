"""The form of a line of the lists of sources and of rejects, as `docs/format.md` states it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ...errors import DamageError
from ...format.flow.rejects import CODES
from ...format.manifest.strict_members import (
    ManifestProblem,
    Take,
    choice,
    integer,
    items,
    mapping,
    object_of,
    only,
    optional,
    text,
)
from .manifest_files import read_json_lines

_SOURCE: Final[Take[dict[str, Any]]] = object_of(
    dict,
    ("notes", "constants", "carried"),
    source=text(),
    fingerprint=text(re.compile(r"sha256:[0-9a-z]+|etag:[!-~]+|crc32c:[0-9a-f]{8}-[0-9]+")),
    **dict.fromkeys(("bytes", "files", "read", "written", "rejected", "dropped"), integer()),
    notes=mapping(integer(1)),
    constants=text(),
    carried=only(lambda value: value is True, "true"),
)
_REJECT: Final[Take[dict[str, Any]]] = object_of(
    dict,
    ("row", "line", "record", "offset", "row_group", "picture"),
    source=text(),
    split=optional(text()),
    errors=items(
        object_of(
            dict,
            column=optional(text()),
            code=choice(*CODES),
            **dict.fromkeys(("value", "expected", "message"), text()),
        )
    ),
    **dict.fromkeys(("row", "line", "record"), integer(1)),
    **dict.fromkeys(("offset", "row_group"), integer()),
    picture=text(),
)


def read_source_lines(root: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, document in _checked(root, path, _SOURCE):
        read, written, rejected, dropped = (document[key] for key in ("read", "written", "rejected", "dropped"))
        if read != written + rejected + dropped:
            raise DamageError(
                f"{path}: line {number} has rows that are not accounted for: {read} read, {written} written, "
                f"{rejected} rejected, {dropped} dropped"
            )
        yield number, document


def read_reject_lines(root: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, document in _checked(root, path, _REJECT):
        if not document["errors"]:
            raise DamageError(f"{path}: line {number}: errors is empty")
        yield number, document


def _checked(root: str, path: str, take: Take[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, document in read_json_lines(root, path):
        try:
            take(document)
        except ManifestProblem as problem:
            raise DamageError(f"{path}: line {number}: {problem}") from problem
        yield number, document
