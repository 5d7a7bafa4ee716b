"""JPEG: the header and the structure of a file, without decoding it (ITU T.81, annex B).

    FF D8 | FF E1 len ... | FF DB len ... | FF C0 len P Y X N ... | FF C4 len ... | FF DA len ... | entropy data | FF D9
     SOI      APP1            DQT             SOF0: the header        DHT             SOS           FF is stuffed    EOI

In entropy data FF is followed by 00 or a restart marker, so FF D9 after the first SOS ends the picture. A cut file
lacks it; whatever comes after it (a second picture, a maker's trailer) is allowed. Flipped bits inside the entropy
data cannot be seen: the format carries no checksum.
"""

from __future__ import annotations

import re
import struct
from typing import Final

from ..format.wording.hints import Set
from .facts import EXIF, UPRIGHT, Content, ImageFacts, ImageProblem, corrupt, orientation_in, truncated, unsupported

_SEGMENT: Final = struct.Struct(">BBH").unpack_from
_FRAME: Final = struct.Struct(">HBHHB").unpack_from
_PASSED_OVER: Final = "decoders may pass over that"
_EOI: Final = b"\xff\xd9"
_EOI_PATTERN: Final = re.compile(_EOI)
_SOS: Final = 0xDA
_APP1: Final = 0xE1
_FRAMES: Final = frozenset({0xC0, 0xC1, 0xC2})
_OTHER_FRAMES: Final = {
    0xC3: "lossless", 0xC5: "hierarchical", 0xC6: "hierarchical", 0xC7: "hierarchical", 0xC9: "arithmetic-coded",
    0xCA: "arithmetic-coded", 0xCB: "lossless", 0xCD: "hierarchical", 0xCE: "hierarchical", 0xCF: "hierarchical",
}  # fmt: skip
_STEPS: Final = {0xFF: 1, 0x01: 2} | dict.fromkeys(range(0xD0, 0xD8), 2)
"""How far to step over what has no length: a fill byte (any number may be before a marker), TEM, RST0 to RST7."""
_REFUSED: Final = frozenset(_OTHER_FRAMES) | {0x00, 0xD8, 0xD9}
_MODES: Final = {1: "L", 3: "RGB", 4: "CMYK"}


def check_jpeg(data: Content, *, structure: bool) -> ImageFacts:
    """Return the facts of a JPEG file; with `structure`, only if it is whole up to its end marker."""
    facts: ImageFacts | None = None
    position, turn = 2, UPRIGHT
    try:
        while True:
            lead, marker, length = _SEGMENT(data, position)
            if lead != 0xFF:
                raise _junk(f"no marker at byte {position}", f"{lead:#04x}")
            if marker in _FRAMES:
                facts = _frame_facts(data, position, facts)
                if not structure:
                    break
            elif marker == _SOS:
                break
            elif marker in _STEPS:
                position += _STEPS[marker]
                continue
            elif marker in _REFUSED or length < 2:
                raise _refusal(marker, length, position)
            elif marker == _APP1 and turn == UPRIGHT:
                turn = _orientation(data[position + 4 : position + 2 + length])
            position += 2 + length
    except struct.error:
        missing = "its frame header is missing" if facts is None else "its picture data is missing"
        raise truncated("JPEG", len(data), missing) from None
    if facts is None:
        raise corrupt("JPEG", "picture data without a frame header")
    if structure:
        _check_end(data, position + 2 + length)
    return facts if turn == UPRIGHT else facts._replace(orientation=turn)


def _orientation(segment: Content) -> int:
    return orientation_in(segment) if segment[: len(EXIF)] == EXIF else UPRIGHT  # others are XMP


def _refusal(marker: int, length: int, position: int) -> ImageProblem:
    if marker in _OTHER_FRAMES:
        return unsupported("JPEG", f"{_OTHER_FRAMES[marker]} coding; convert it to a baseline JPEG", f"{marker:#04x}")
    if marker in _REFUSED:
        return _junk(f"marker {marker:#04x} at byte {position}, before the picture", f"{marker:#04x}")
    return corrupt("JPEG", f"a segment of length {length} at byte {position}")


def _junk(what: str, value: str) -> ImageProblem:
    return corrupt("JPEG", f"{what} ({_PASSED_OVER}: {Set('input.check', 'decode')})", value)


def may_be_passed_over(problem: ImageProblem, data: Content) -> bool:
    """Return whether a problem is junk before a marker, which decoders pass over, in a file that has an end marker."""
    return _PASSED_OVER in str(problem) and _EOI_PATTERN.search(data, len(data) // 2) is not None


def _frame_facts(data: Content, position: int, before: ImageFacts | None) -> ImageFacts:
    if before is not None:
        raise corrupt("JPEG", f"a second frame header at byte {position}")
    length, precision, height, width, components = _FRAME(data, position + 2)
    if precision != 8:
        raise unsupported("JPEG", f"{precision} bits per sample; convert it to 8", precision)
    if components not in _MODES:
        raise unsupported("JPEG", f"{components} components; 1, 3 and 4 are read", components)
    if length != 8 + 3 * components:
        raise corrupt("JPEG", f"its frame header has length {length}, not {8 + 3 * components}")
    if not height:
        raise unsupported("JPEG", "its height comes after the picture (DNL); convert it")
    if not width:
        raise corrupt("JPEG", "a width of 0")
    return ImageFacts("jpeg", width, height, components, _MODES[components])


def _check_end(data: Content, scan: int) -> None:
    """Check that the end marker follows the scan that begins at byte `scan`."""
    end = len(data) - 2
    if data[-2:] != _EOI:
        found = _EOI_PATTERN.search(data, scan)  # a view has no `find`
        end = found.start() if found else -1
    if end < 0 or scan > len(data):
        raise truncated("JPEG", len(data), "its end marker FF D9 is missing")
    if end <= scan:
        raise corrupt("JPEG", "no picture data before its end marker")
