"""Group members into samples, as WebDataset does; the suffix of a member names its column.

    cat/7.jpg      key "cat/7"     image
    cat/7.json     key "cat/7"     the columns that are its fields
    cat/7.cls      key "cat/7"     cls
    cat/8.in.png   key "cat/8"     in                     a picture is called what is before its suffix

The key is the path up to the first dot of the last name, and members of one key follow each other. The source of the
rules: webdataset/webdataset, `tariterators.py` and `autodecode.py`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from ...format.wording.printable import printable_path
from ...inputs.files.file_names import Ignored, suffixes_of, why_skipped
from ..registry.settings import Limits
from ..text.lines import Lines
from ..text.open_text import Cut
from .tar import Archive, Damage, Kind, Member, MemberError

# What members say in text becomes lines of JSON, which are typed and parsed as those of files are.
#
# 7.json  {"caption": "a cat"}
# 7.cls   3                        {"caption": "a cat", "cls": 3, "txt": "so cute\n"}
# 7.txt   so cute


INTEGER: Final = re.compile(rb"-?(0|[1-9][0-9]{0,18})")
_BLANKS: Final = b" \t\r\n"
_START: Final = Cut(0, 0, 0, 0)


def object_line(data: bytes) -> bytes:
    """Return the text of a JSON file as one line, which is never empty.

    A line break within text, where JSON has none, stays an error.
    """
    return data.strip(_BLANKS).replace(b"\n", b"\r") or b" "


def value_of(data: bytes) -> bytes:
    """Return a whole number, or text, as JSON, without blanks around it. Raises `MemberError` where it is not UTF-8."""
    data = data.strip(_BLANKS)
    return data if INTEGER.fullmatch(data) else text_of(data)


def text_of(data: bytes) -> bytes:
    """Return text as JSON has it, with every character of it. Raises `MemberError` where it is not UTF-8."""
    try:
        return json.dumps(data.decode(), ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise MemberError("BAD_UTF8", f"is not UTF-8 at byte {error.start}; write it as UTF-8") from error


def joined_line(line: bytes, values: Sequence[tuple[str, bytes]]) -> bytes:
    """Return an object with more members, whose values are JSON; one that is none stays as it is.

    >>> joined_line(b'{"a": 1}', [("cls", b"3")])
    b'{"a": 1,"cls":3}'
    """
    line = line or b"{}"
    if not values or not (line.startswith(b"{") and line.endswith(b"}")):
        return line
    more = b",".join(json.dumps(name, ensure_ascii=False).encode() + b":" + value for name, value in values)
    comma = b"," if line[1:-1].strip(_BLANKS) else b""
    return line[:-1] + comma + more + b"}"


def lines_of(texts: Sequence[bytes]) -> Lines:
    """Return some texts without line breaks as lines, each of which is a record."""
    sizes = np.array([len(text) for text in texts], np.int64)
    ends = np.cumsum(sizes + 1) - 1
    return Lines(b"\n".join(texts), _START, ends - sizes, ends, np.zeros(len(texts), np.bool_))


IMAGE: Final = "image"
CLASS: Final = "cls"
KEY: Final = "__key__"

_OTHER_PICTURES: Final = ("tif", "tiff", "avif", "heic", "heif", "jp2")
"""Pictures that are not read: rejects say so."""

_JSON: Final = frozenset({"json", "jsn"})
_TEXTS: Final = frozenset({"txt", "text", "transcript"})
_VALUES: Final = frozenset({"cls", "cls2", "class", "count", "index", "inx", "id"})
_NOTES: Final = frozenset({b"readme", b"license", b"licence", b"copying", b"notice", b"changelog"})
_REMEMBERED: Final = 1000


class Form(IntEnum):
    """What becomes of the bytes of a member."""

    PICTURE = 0
    BYTES = 1
    TEXT = 2
    VALUE = 3
    JSON = 4


def limit_of(form: Form, limits: Limits) -> tuple[str, int]:
    """Return the key of the limit that members of a form have, and the limit."""
    if form is Form.PICTURE:
        return "image_bytes", limits.image_bytes
    return ("record_bytes", limits.record_bytes) if form is Form.JSON else ("field_bytes", limits.field_bytes)


@dataclass(frozen=True, slots=True)
class MemberColumn:
    """The column that members of a suffix become; of JSON it is that of the text, where fields are no columns."""

    name: str
    form: Form


@dataclass(frozen=True)
class Naming:
    """How members are grouped, and their columns called.

    `key` ends before the first or the last dot of a name. Pictures without a name before their suffix are called
    `image`, or after their suffix. The fields of JSON are columns, or it stays text. `ignore` are globs that are left
    out. `key_is_chosen` if the user says where keys end.
    """

    key: Literal["first_dot", "last_dot"] = "first_dot"
    pictures: Literal["image", "suffix"] = "image"
    json: Literal["columns", "text"] = "columns"
    ignore: tuple[str, ...] = ()
    key_is_chosen: bool = False

    @cached_property
    def ignored(self) -> Ignored:
        return Ignored.of(self.ignore)

    @cached_property
    def _known(self) -> dict[bytes, MemberColumn | None]:
        return {}

    def column_of(self, suffix: bytes) -> MemberColumn | None:
        """Return the column of members with a suffix, in lower case, without its first dot; None if not UTF-8."""
        if suffix not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            try:
                self._known[suffix] = self._column(suffix.decode())
            except UnicodeDecodeError:
                self._known[suffix] = None
        return self._known[suffix]

    def _column(self, suffix: str) -> MemberColumn:
        before, _, last = suffix.rpartition(".")
        if f".{last}" in suffixes_of("images") or last in _OTHER_PICTURES:
            return MemberColumn(before or (IMAGE if self.pictures == "image" else last), Form.PICTURE)
        if last in _JSON:
            return MemberColumn(suffix, Form.JSON if not before and self.json == "columns" else Form.TEXT)
        if last in _TEXTS:
            return MemberColumn(suffix, Form.TEXT)
        return MemberColumn(suffix, Form.VALUE if last in _VALUES else Form.BYTES)

    def split(self, name: bytes) -> tuple[bytes, bytes]:
        """Return the key and the suffix of a name, which is empty where there is no dot."""
        folder, slash, base = name.rpartition(b"/")
        stem, _, suffix = base.partition(b".") if self.key == "first_dot" else base.rpartition(b".")
        if not stem:
            stem, suffix = (base, b"") if self.key == "first_dot" else (suffix, b"")
        return folder + slash + stem, suffix.lower()


@dataclass(frozen=True, slots=True)
class Part:
    """A member of a sample: its name, its suffix, and what the visitor made of it."""

    name: bytes
    suffix: bytes
    member: Member
    value: Any


@dataclass(slots=True)
class Sample:
    """Members of one key that follow each other; the first begins at `at`, and messages show `header`."""

    key: bytes
    at: int
    header: int
    parts: list[Part] = field(default_factory=list)


@dataclass(slots=True)
class Skipped:
    """How many members were passed over, by reason, and the first of each."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, name: bytes) -> None:
        self.counts[reason] += 1
        self.first.setdefault(reason, printable_path(name))

    def plus(self, more: Skipped) -> Skipped:
        return Skipped(self.counts + more.counts, more.first | self.first)


Visit = Callable[[Member, bytes], Any]
"""What is done with a member, whose suffix is given, before the next one is looked at."""


def samples_of(
    archive: Archive, start: int, stop: int | None, naming: Naming, visit: Visit, skipped: Skipped
) -> Iterator[Sample]:
    """Raise `Damage`; a sample that may lack members then is not given, and the text names it."""
    current: Sample | None = None
    members = archive.members(start, stop)
    try:
        for member in members:
            if member.kind is Kind.FOLDER:
                continue
            name = _plain(member.name)
            key, suffix = naming.split(name)
            if reason := _why_skipped(name, key, suffix, naming):
                skipped.add(reason, name)
                continue
            if current is None or key != current.key:
                if current is not None:
                    yield current
                current = Sample(key, member.at, member.header)
            current.parts.append(Part(name, suffix, member, visit(member, suffix)))
    except Damage as damage:
        if damage.of_all:
            raise
        cut = damage.cuts_sample if damage.member is None else None
        if current is not None and cut is None:
            cut = naming.split(_plain(damage.member or b""))[0] == current.key
        if current is not None and not cut:
            yield current
        elif current is not None:
            damage.text += f'; its sample "{printable_path(current.key)}" may lack members, and is not read'
        raise
    if current is not None:
        yield current


def _plain(name: bytes) -> bytes:
    """Return the name of a member without the dot of the folder that it was made in."""
    while name.startswith(b"./"):
        name = name[2:]
    return name


def _why_skipped(name: bytes, key: bytes, suffix: bytes, naming: Naming) -> str:
    folder, _, base = name.rpartition(b"/")
    if b"/." in name or b"__" in name or b"@" in name or name.startswith(b"."):
        steps = [step for step in name.split(b"/") if step not in (b".", b"..")]
        if any(step.startswith(b".") or why_skipped(step) not in (None, "hidden") for step in steps):
            return "hidden"
    if naming.ignore and _is_ignored(folder, base, naming):
        return "ignored"
    if why_skipped(base) not in (None, "hidden"):
        return "hidden"
    if key.rpartition(b"/")[2].lower() in _NOTES:
        return "of notes"
    return "" if suffix else "without a suffix"


def _is_ignored(folder: bytes, base: bytes, naming: Naming) -> bool:
    steps = folder.split(b"/") if folder else []
    names = [(b"/".join(steps[:end]), step) for end, step in enumerate(steps)] + [(folder, base)]
    return any(naming.ignored(at, name) or naming.ignored(at, name.lower()) for at, name in names)
