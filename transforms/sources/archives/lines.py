r"""What members say in text becomes lines of JSON, which are typed and parsed as those of files are.

7.json  {"caption": "a cat"}
7.cls   3                        {"caption": "a cat", "cls": 3, "txt": "so cute\n"}
7.txt   so cute
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from ..archive_files.members import MemberError
from ..text.lines import Lines
from ..text.pieces import Cut

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
