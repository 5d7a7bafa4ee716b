"""The form of a line of the lists of sources and of rejects, as `docs/format.md` states it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ...errors import DamageError
from ...format.flow.rejects import CODES
from ...format.wording.printable import printable
from .manifest_files import read_json_lines

_Check = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_optional_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_number(value: Any) -> bool:
    return _is_count(value) and value > 0


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"sha256:[0-9a-z]+", value) is not None


_FINGERPRINT: Final = re.compile(r"sha256:[0-9a-z]+|etag:[!-~]+|crc32c:[0-9a-f]{8}-[0-9]+")


def _is_fingerprint(value: Any) -> bool:
    return isinstance(value, str) and _FINGERPRINT.fullmatch(value) is not None


def _are_notes(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _is_true(value: Any) -> bool:
    return value is True


def _is_filled_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


_SOURCE: Final[Mapping[str, _Check]] = {
    "source": _is_text, "bytes": _is_count, "fingerprint": _is_fingerprint, "files": _is_count,
    "read": _is_count, "written": _is_count, "rejected": _is_count, "dropped": _is_count,
}  # fmt: skip
_SOURCE_MORE: Final[Mapping[str, _Check]] = {"notes": _are_notes, "options": _is_digest, "carried": _is_true}

_REJECT: Final[Mapping[str, _Check]] = {"source": _is_text, "split": _is_optional_text, "errors": _is_filled_list}
_REJECT_MORE: Final[Mapping[str, _Check]] = {
    "row": _is_number, "line": _is_number, "record": _is_number, "offset": _is_count, "row_group": _is_count,
    "picture": _is_text,
}  # fmt: skip

_ERROR: Final[Mapping[str, _Check]] = {
    "column": _is_optional_text, "code": CODES.__contains__, "value": _is_text, "expected": _is_text,
    "message": _is_text,
}  # fmt: skip


def read_source_lines(root: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    return _checked(root, path, _source_line_problem)


def read_reject_lines(root: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    return _checked(root, path, _reject_line_problem)


def _checked(
    root: str, path: str, problem_of: Callable[[Mapping[str, Any]], str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, document in read_json_lines(root, path):
        problem = problem_of(document)
        if problem:
            raise DamageError(f"{path}: line {number} {problem}")
        yield number, document


def _source_line_problem(document: Mapping[str, Any]) -> str:
    problem = _problem(document, _SOURCE, _SOURCE_MORE)
    if problem:
        return problem
    read, written, rejected, dropped = (document[key] for key in ("read", "written", "rejected", "dropped"))
    if read != written + rejected + dropped:
        return (
            f"has rows that are not accounted for: {read} read, {written} written, {rejected} rejected, "
            f"{dropped} dropped"
        )
    return ""


def _reject_line_problem(document: Mapping[str, Any]) -> str:
    problem = _problem(document, _REJECT, _REJECT_MORE)
    for error in () if problem else document["errors"]:
        problem = problem or _problem(error, _ERROR, {})
    return problem


def _problem(document: Any, needed: Mapping[str, _Check], optional: Mapping[str, _Check]) -> str:
    if not isinstance(document, dict):
        return "is not an object"
    for key, value in document.items():
        check = needed.get(key) or optional.get(key)
        if check is None:
            return f"has an unknown key, {printable(key)!r}"
        if not check(value):
            return f"has a wrong {key!r}: {printable(value)}"
    missing = next((key for key in needed if key not in document), None)
    return "" if missing is None else f"has no {missing!r}"
