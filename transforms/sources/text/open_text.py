"""Open a file of text, compressed or not, in any encoding; and cut it into pieces.

A file is cut into pieces by its bytes where a comma, a quote and a newline are the bytes that ASCII has for them, and
stand for nothing else: UTF-8 and all encodings of one byte a character are so ("ASCII-transparent"). A compressed file,
or one in UTF-16, Shift JIS and the like, is one stream that is read from its start.
"""

from __future__ import annotations

import bz2
import codecs
import lzma
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from ...errors import SourceError
from ...format.tfrecord.gzip_members import InflateError, inflate
from ...format.wording.hints import Add, Foreign, Set
from ...format.wording.printable import first_names
from ...inputs.contract.selection import typed_path
from ...inputs.contract.source import ListedFile, Piece, SourceEntry, Stamp
from ...inputs.files.file_names import FORMATS, HEAD_BYTES, format_of_first_bytes
from ...inputs.files.open_file import DiskErrors, expect, is_object, open_file

# Most readers take a stream that is cut, or that something else follows, for a whole one. Here each stream of a file
# must end, with its checksum where it has one, and only another stream may follow: files that were packed apart
# concatenate. What comes out at a time is at most 1 MiB, whatever a file says of itself.


_SUFFIXES: Final = (".gz", ".gzip", ".bz2", ".bzip2", ".xz", ".zst", ".zstd")
_OUTPUT_BYTES: Final = 1 << 20

_XZ_MEMORY: Final = 1 << 30
"""The most that the dictionary of an xz stream may take; `xz -9` needs 65 MB."""

_FIRST_BYTES: Final = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38\x50\x90)", re.DOTALL),
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL),  # or a frame that readers skip
}


def sniff_packing(head: bytes) -> str | None:
    r"""Return how a file is packed whose first bytes, ten at least, are these; None if it is not.

    >>> sniff_packing(b"\x1f\x8b..."), sniff_packing(b"BZh, a b c"), sniff_packing(b"id,name\n")
    ('gzip', None, None)
    """
    return next((name for name, begins in _FIRST_BYTES.items() if begins.match(head)), None)


def says_packed(name: str) -> bool:
    return name.lower().endswith(_SUFFIXES)


def unpacked(blocks: Iterable[bytes], packing: str, name: str) -> Iterator[bytes]:
    """Yield the contents of a packed file, in pieces of at most 1 MiB; they are whole when the iterator has ended.

    Raises `SourceError` where a stream is damaged or cut, or something that is none follows the last one.
    """
    if packing == "gzip":
        try:
            yield from inflate(blocks)
        except InflateError as error:
            raise SourceError(name, str(error)) from error
    elif packing == "zstd":
        yield from _unzstd(blocks, name)
    else:
        yield from _by_streams(blocks, packing, name)


_CUT: Final = ": its end is missing"

_STREAMS: Final[dict[str, Callable[[], Any]]] = {
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY),
}


def _by_streams(blocks: Iterable[bytes], packing: str, name: str) -> Iterator[bytes]:
    source, left, taken = iter(blocks), b"", 0
    while True:
        stream, start = _STREAMS[packing](), taken - len(left)
        while not stream.eof:
            if stream.needs_input and not left:
                left = next(source, b"")
                taken += len(left)
                if not left:
                    raise SourceError(name, f"the {packing} stream is cut{_CUT}")
            try:
                piece, left = stream.decompress(left, _OUTPUT_BYTES), b""
            except (OSError, lzma.LZMAError) as error:
                what = "damaged" if not start else f"damaged, or is not {packing} data"
                where = f"from byte {start} of the compressed file on"
                raise SourceError(name, f"the {packing} stream {where} is {what} ({error})") from error
            if piece:
                yield piece
        padding = b"\0" if packing == "xz" else b""  # its streams are filled up to four bytes
        left = stream.unused_data.lstrip(padding)
        while not left:
            block = next(source, b"")
            if not block:
                return
            taken += len(block)
            left = block.lstrip(padding)


def _unzstd(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    try:
        with pa.CompressedInputStream(pa.PythonFile(_Blocks(iter(blocks)), mode="r"), "zstd") as stream:
            while piece := stream.read(_OUTPUT_BYTES):
                yield piece
    except OSError as error:
        if "Truncated" in str(error):
            raise SourceError(name, f"the zstd stream is cut{_CUT}") from error
        what = "the compressed file is damaged, or bytes that are not zstd data follow its end"
        raise SourceError(name, f"{what} ({error})") from error


class _Blocks:
    """Blocks as a file that Arrow reads from."""

    closed = False

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = blocks, b""

    def read(self, size: int) -> bytes:
        self._left = self._left or next(self._blocks, b"")
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    def close(self) -> None:
        """Leave the file open: its owner closes it."""


BLOCK_BYTES: Final = 1 << 20
"""How much is scanned, parsed and encoded at a time: smaller costs more per call, larger falls out of the cache."""

_UTF8_BOM: Final = codecs.BOM_UTF8
_OTHER_BOMS: Final = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WITHOUT_MARK: Final = (("utf-16-le", 2, 0), ("utf-16-be", 2, 1), ("utf-32-le", 4, 0), ("utf-32-be", 4, 3))
"""Encodings whose mark may be missing, the bytes of a character, and which of them ASCII has: the others are 0."""

_MAGIC_BYTES: Final = 10
_FOREIGN: Final = ((re.compile(rb"PK\x03\x04"), "is a ZIP archive (as Excel files are)", ("unzip",)),)
"""What begins files that are taken for text by their suffix, and how they are unpacked."""

_NOT_IN_CP1252: Final = frozenset(b"\x81\x8d\x8f\x90\x9d")
_IN_NO_TEXT: Final = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\x1a\x1b")
_DECLARE_WIDE: Final = "declare it: {declare}"
_DECLARE: Final = f"{Set('input.encoding', 'ENCODING')}"

_SINGLE_BYTE_FROM: Final = 100
"""An encoding of one byte a character gives a meaning to at least this many of the 128 high bytes; one of several
bytes to at most 64 (the half-width kana of Shift JIS): the others begin a longer character."""


@dataclass(frozen=True, slots=True)
class TextForm:
    """How the text of a file is to be read.

    `start` is the offset of the text, after a byte order mark; `packing` is how the file is compressed. `streamed`
    files are read from their start only; `located` says that an offset in the stream is one in the unpacked file.
    """

    start: int
    packing: str | None
    streamed: bool
    located: bool


@lru_cache
def plain_encoding(encoding: str) -> str:
    """Return the codec's own name, `utf-8` for all that is read as such; raise `LookupError` for an unknown one."""
    name = codecs.lookup(encoding).name
    return "utf-8" if name in ("utf-8", "utf-8-sig", "ascii") else name


@lru_cache
def is_transparent(encoding: str) -> bool:
    """Return whether every ASCII byte stands for itself, and for nothing else, in text of this encoding."""
    name = plain_encoding(encoding)
    if name == "utf-8":
        return True
    try:
        if bytes(range(128)).decode(name) != bytes(range(128)).decode("ascii"):
            return False
    except UnicodeDecodeError:
        return False
    return sum(_stands_alone(byte, name) for byte in range(128, 256)) >= _SINGLE_BYTE_FROM


def _stands_alone(byte: int, encoding: str) -> bool:
    try:
        return len(bytes([byte]).decode(encoding)) == 1
    except UnicodeDecodeError:
        return False


def sniff_text(file: ListedFile, encoding: str, fix: str = _DECLARE_WIDE) -> TextForm:
    """Look at the first bytes of a file; `fix` says what to do about one in UTF-16 or UTF-32.

    Raises `SourceError` where it cannot be read, or begins as UTF-16 or UTF-32, with a mark or without, though
    `encoding` is not.
    """
    transparent = is_transparent(encoding)
    with DiskErrors(file.name), open_file(file) as opened:
        head = opened.read(HEAD_BYTES)
    _refuse_foreign(head, file.name)
    packing = sniff_packing(head)
    if packing is not None:
        return TextForm(0, packing, streamed=True, located=transparent)
    if not transparent:
        return TextForm(0, None, streamed=True, located=False)
    _refuse_wide(head, file.name, encoding, fix)
    start = len(_UTF8_BOM) if head.startswith(_UTF8_BOM) and plain_encoding(encoding) == "utf-8" else 0
    return TextForm(start, None, streamed=False, located=True)


def stream_text(
    file: ListedFile, encoding: str, form: TextForm, *, whole: bool = True, fix: str = _DECLARE_WIDE
) -> Iterator[bytes]:
    """Yield the text in blocks of about 1 MiB: decompressed, without its byte order mark.

    It is in UTF-8 if the encoding is not ASCII-transparent; else as it is in the file. `whole` tells whether it will be
    read to its end. Raises `SourceError` where the file is damaged, or not in this encoding.
    """
    blocks: Iterable[bytes] = file_blocks(file, form.start, whole=whole)
    if form.packing is not None:
        blocks = unpacked(blocks, form.packing, file.name)
    if not is_transparent(encoding):
        blocks = _decoded(blocks, file.name, encoding)
    head = b""
    source = iter(blocks)
    for block in source:
        head += block
        if len(head) >= len(codecs.BOM_UTF32_LE):
            break
    if is_transparent(encoding):
        _refuse_wide(head, file.name, encoding, fix)
    if plain_encoding(encoding) == "utf-8" or not is_transparent(encoding):
        head = head.removeprefix(_UTF8_BOM)
    if head:
        yield head
    yield from source


def to_utf8(text: bytes, encoding: str, name: str, offset: int | None) -> bytes:
    """Return text of an ASCII-transparent encoding as UTF-8; a header that is UTF-8 is checked.

    Raises `SourceError` with the byte where the text is not in this encoding.
    """
    plain = plain_encoding(encoding)
    if text.isascii():
        return text
    try:
        decoded = text.decode(plain)
    except UnicodeDecodeError as error:
        where = "" if offset is None else f" at byte {offset + error.start}"
        byte = f"0x{text[error.start]:02x}"
        if plain == "utf-8":
            raise NotUtf8Error(name, f"line 1: not UTF-8{where} ({byte}); {encoding_hint(text)}") from error
        raise SourceError(name, f"not {plain}{where} ({byte}); set another input.encoding") from error
    return text if plain == "utf-8" else decoded.encode()


def encoding_hint(text: bytes) -> str:
    """Return what may be done about text that is not UTF-8: cp1252 is proposed where it has all of the bytes.

    It has every character of Latin-1, but the control characters 0x80 to 0x9f: where these bytes occur they are quotes
    and dashes of cp1252, and Latin-1 would read them as something that nobody wrote. No text has other control
    characters than blanks: they show a binary file.

    >>> encoding_hint("café".encode("cp1252"))
    'probably Windows text: --set input.encoding=cp1252'
    """
    if controls := set(text) & _IN_NO_TEXT:
        return f"probably no text but a binary file, as it holds byte 0x{min(controls):02x}; if it is text: {_DECLARE}"
    likely = likely_encoding(text)
    if not likely and set(text) & _NOT_IN_CP1252:
        return f"declare its encoding, such as shift_jis or cp1251: {_DECLARE}"
    return _as_encoding(likely or "cp1252")


def _as_encoding(name: str) -> str:
    return f"probably {_EAST_ASIAN.get(name, 'Windows')} text: {Set('input.encoding', name)}"


def likely_encoding(text: bytes) -> str:
    r"""Return the encoding that some lines are in by their letters; empty where they may be in another one.

    Signs amid no letters of ASCII are Japanese, Korean or Chinese, by the signs that are frequent there. Polish letters
    are signs within words of cp1252. Czech letters come with the carons of s and z, or are within words; Hungarian ones
    with umlauts. Russian words have accents alone.

    >>> likely_encoding("Wysłane".encode("cp1250")), likely_encoding("なし\n".encode("cp932"))
    ('cp1250', 'cp932')
    """
    for name in () if set(text) & _IN_NO_TEXT else _EAST_ASIAN:
        try:
            decoded = text[: text.rfind(b"\n") + 1 or len(text)].decode(name)
        except UnicodeDecodeError:
            continue
        signs = sum(not sign.isascii() for sign in decoded)
        words = [len(word) for word in _CJK_WORDS.findall(decoded)]  # a degree sign before C is one sign
        if sum(words) > _MOST_OF * signs and max(words, default=0) > 1 and _is_usual(name, decoded):
            return name
    runs = re.findall(rb"[\x80-\xff]{3,}", text)
    if any(map(_ACCENTED_GREEK.search, runs)) and sum(map(bool, map(_GREEK.fullmatch, runs))) > _MOST_OF * len(runs):
        return "cp1253"
    if any(map(_NO_HEBREW.search, runs)) and sum(map(bool, map(_RUSSIAN.fullmatch, runs))) > _MOST_OF * len(runs):
        return "cp1251"
    if _TURKISH.search(text) and _BESIDE_TURKISH.search(text) and not _NO_TURKISH.search(text):
        return "cp1254"
    czech = _CZECH_WORDS.search(text) or (_CARONS.search(text) and _CZECH.search(text))
    hungarian = _HUNGARIAN.search(text) and _UMLAUTS.search(text) and not _NO_HUNGARIAN.search(text)
    return "cp1250" if _POLISH.search(text) or _ROMANIAN.search(text) or czech or hungarian else ""


def _is_usual(encoding: str, text: str) -> bool:
    """Return whether signs are frequent in the language of an encoding: by its first bytes, or kana and Hangul."""
    if encoding in ("cp932", "euc_jp"):
        return encoding == "cp932" or _KANA.search(text) is not None
    signs = _IDEOGRAPHS.findall(text)
    first, last = _USUAL[encoding]
    usual = sum(first <= sign.encode(encoding)[0] <= last for sign in signs)
    return bool(signs) and usual > _NEARLY_ALL * len(signs)


_EAST_ASIAN: Final = {
    "cp932": "Japanese", "euc_jp": "Japanese", "cp949": "Korean", "gb18030": "Chinese", "big5": "Chinese",
}  # fmt: skip
_USUAL: Final = {"cp949": (0xB0, 0xC8), "gb18030": (0xB0, 0xD7), "big5": (0xA4, 0xC6)}
"""First bytes of all Hangul of KS X 1001, and of the hanzi of level 1 of GB 2312 and of Big5."""

_NEARLY_ALL: Final = 0.9
_IDEOGRAPHS: Final = re.compile("[\u4e00-\u9fff\uac00-\ud7a3]")
_CJK_WORDS: Final = re.compile("(?<![A-Za-z])[\u2000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60]+(?![A-Za-z])")
_KANA: Final = re.compile("[\u3041-\u30fe]")
_MOST_OF: Final = 0.6
"""The share of signs that are amid no letters of ASCII, as an accent of Latin text is that is decoded as one."""

_POLISH: Final = re.compile(rb"[A-Za-z\xc0-\xff][\xb3\xb9\xbf\x9f\xa3\xa5\xaf\x9c][a-z\xe6\xea\xf1\xf3]")
_ROMANIAN: Final = re.compile(rb"[a-z\xe3\xe2\xee][\xba\xfe][a-z\xe3]|[\xaa\xde][a-z][a-z\xe3]+")
_TURKISH: Final = re.compile(rb"[\xd0\xdd\xde\xf0\xfd\xfe]")
"""Letters of Turkish that cp1252 has as those of Icelandic."""

_BESIDE_TURKISH: Final = re.compile(rb"[\xfd\xdd\xe7\xfc\xc7\xdc]")

_NO_TURKISH: Final = re.compile(
    rb"[\xc1\xc9\xcd\xd3\xda\xc6\xe1\xe9\xed\xf3\xfa\xe6\xba\xe3\xf5\xf8\xe5\xe4\xe8\xec\xf9\x9a\x9e]"
)
_CZECH: Final = re.compile(rb"[\xe8\xf8\xec\xf9\xc8\xd8]")
_CARONS: Final = re.compile(rb"[\x9a\x9e\x8a\x8e]")
_CZECH_WORDS: Final = re.compile(rb"[A-Za-z][\xec\xf9][a-z]|\bK\xe8(?![A-Za-z\x80-\xff])")
"""Letters that end words in Italian and French are within Czech ones; and the unit of money."""

_HUNGARIAN: Final = re.compile(rb"[A-Za-z\x80-\xff][\xf5\xfb]|[\xf5\xfb\xd5\xdb][a-z]")
_UMLAUTS: Final = re.compile(rb"[\xf6\xfc\xd6\xdc]")
_NO_HUNGARIAN: Final = re.compile(rb"[\xc3\xc4\xe0\xe2-\xe4\xe7\xe8\xea]")
"""What Estonian, French and Portuguese have beside the letters of long vowels, and Hungarian does not."""

_NO_HEBREW: Final = re.compile(rb"[\xc0-\xdf\xfb-\xff].{3}|.{4}[\xfb-\xff]")
"""A longer word with a sign that no Hebrew letter has in cp1255."""

_GREEK: Final = re.compile(rb"[\xa2\xb8-\xba\xbc\xbe\xbf\xc0-\xd1\xd3-\xfe]+")
_ACCENTED_GREEK: Final = re.compile(rb"[\xc1-\xd9\xe1-\xf9][\xdc-\xdf][\xe1-\xf9]|[\xe1-\xf9]{2}[\xdc-\xdf]")
"""A letter with an accent, which Russian and Hebrew words in lowercase do not have."""

_RUSSIAN: Final = re.compile(rb"[\xc0-\xdf\xa8\xaa\xaf\xb2]?[\xe0-\xff\xb3\xb8\xba\xbf]+|[\xc0-\xdf\xa8\xaa\xaf\xb2]+")
"""A word of Russian or Ukrainian letters in cp1251: in capitals, or of lowercase letters behind the first."""


class NotUtf8Error(SourceError):
    """Text is not UTF-8, and no encoding is declared."""


def with_encodings(error: NotUtf8Error, entries: Sequence[SourceEntry]) -> SourceError:
    """Return the error with what helps where other text, of the file or of others, is UTF-8: no encoding reads all.

    The beginnings of the first files are looked at.
    """
    own = next((entry for entry in entries if entry.name == error.source), None)
    likely = "" if own is None else likely_encoding(_beginning_of(own))
    if likely:
        what, _, how = error.problem.partition("; ")
        also = how.partition("; ")[2]
        error = NotUtf8Error(error.source, f"{what}; {_as_encoding(likely)}{'; ' if also else ''}{also}")
    utf8, others, both, signs = list[SourceEntry](), list[SourceEntry](), list[SourceEntry](), set[int]()
    for entry in entries[:_MOST_FILES]:
        good, bad = _signs_of(entry)
        signs |= bad
        if bad or entry.name == error.source:
            (both if good and not (entry is own and likely in _EAST_ASIAN) else others).append(entry)
        elif good:
            utf8.append(entry)
    if not (utf8 or both) or signs & _IN_NO_TEXT:
        return error
    what = error.problem.partition("; ")[0]
    encoding = likely or ("ENCODING" if signs & _NOT_IN_CP1252 else "cp1252")
    more = first_names([one.name for one in (*others, *both) if one.name != error.source], _FEW)
    more = f" (nor are {more})" if more else ""
    named = first_names([one.name for one in utf8], _FEW) if utf8 else "other text of the file"
    commands = list[Foreign]()
    for entry in (*others, *both)[:_FEW]:
        path = typed_path(os.fsdecode(entry.path))
        kept = f"{path}.{encoding}"
        commands += [Foreign("mv", path, kept)]
        if entry in both:
            commands += [Foreign("python", "-c", _TO_UTF8.format(encoding=encoding), kept, path)]
        else:
            commands += [Foreign("iconv", "-f", encoding, "-t", "utf-8", kept, to=path)]
    how = f", and run the command again: {' && '.join(map(str, commands))}"
    packed = any(is_object(one.path) or says_packed(one.name) for one in (*others, *both))
    return SourceError(
        error.source,
        f"{what}{more}; {named} {'is' if len(utf8) < 2 else 'are'} UTF-8, so that no input.encoding reads all; write "
        f"what is not UTF-8 as UTF-8{'' if packed else how}",
    )


_FEW: Final = 8
_MOST_FILES: Final = 256
_MOST_BLOCKS: Final = 16
_UTF8_SIGNS: Final = re.compile("(?<![^\x00-\x7f])[\x80-\u036f\u0384-\ud7ff\ue000-\U0010ffff]+(?![^\x00-\x7f])")
"""Words of signs that ASCII lacks, without the archaic Greek ones: the Ukrainian for no is one of these in cp1251."""

_OTHER_BYTES: Final = re.compile("[\udc80-\udcff]+")
_TO_UTF8: Final = (
    "import codecs, pathlib, sys; kept, path = map(pathlib.Path, sys.argv[1:]); "
    'codecs.register_error("other", lambda it: (it.object[it.start:it.end].decode("{encoding}"), it.end)); '
    'path.write_bytes(kept.read_bytes().decode("utf-8", "other").encode())'
)
"""What writes a file in UTF-8 of which some text is in it, and other text in another encoding."""


def _beginning_of(entry: SourceEntry) -> bytes:
    try:
        return next(stream_text(entry, "utf-8", sniff_text(entry, "utf-8"), whole=False), b"")
    except SourceError:
        return b""


def _signs_of(entry: SourceEntry) -> tuple[bool, set[int]]:
    """Return whether the first blocks of a file hold signs of UTF-8 that ASCII lacks, and what they hold else."""
    good, bad, left = False, set[int](), b""
    try:
        form = sniff_text(entry, "utf-8")
        good = form.start > 0
        blocks = islice(stream_text(entry, "utf-8", form, whole=False), _MOST_BLOCKS)
        for block in chain(blocks, [b"\n"]):
            lines, _, left = (left + block).rpartition(b"\n")
            text = lines.decode("utf-8", "surrogateescape")
            good = good or _UTF8_SIGNS.search(text) is not None
            bad |= {byte for part in _OTHER_BYTES.findall(text) for byte in part.encode("utf-8", "surrogateescape")}
    except SourceError:
        return False, set()  # it is what its own error says
    return good, bad


def beside(name: str, mark: str) -> str:
    """Return the name of a file that another program writes from one, for the working folder.

    >>> beside("in/a.csv.gz", "utf8")
    'utf8-a.csv.gz'
    """
    return f"{mark}-{name.rpartition('/')[2]}"


def rewritten_as_utf8(name: str, encoding: str) -> str:
    """Return the commands that write a file in UTF-8, in its place.

    >>> rewritten_as_utf8("in/a.txt", "cp1252")
    'iconv -f cp1252 -t utf-8 in/a.txt > utf8-a.txt && mv utf8-a.txt in/a.txt'
    """
    made = beside(name, "utf8")
    return f"{Foreign('iconv', '-f', encoding, '-t', 'utf-8', name, to=made)} && {Foreign('mv', made, name)}"


def is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    sizes = pa.py_buffer(np.array([0, len(text)], np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, sizes, pa.py_buffer(text)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _refuse_foreign(head: bytes, name: str) -> None:
    for begins, what, command in _FOREIGN:
        if begins.match(head):
            raise SourceError(name, f"{what}, which is not read; unpack it first: {Foreign(*command, name)}")
    kind = format_of_first_bytes(head)
    if kind is not None:
        raise SourceError(name, f"is {FORMATS[kind].called}; read it as one: {Add('--format', kind)}")


def _refuse_wide(head: bytes, name: str, encoding: str, fix: str) -> None:
    def fixed(wide: str) -> str:
        own = wide[:6] + wide[7:]  # utf-16le, as iconv calls utf-16-le
        if "{declare}" not in fix and _is_table(head.decode(wide, "ignore")):
            options = Add(Set("input.format", "csv"), Set("input.encoding", wide))
            return f"its lines look like a table; convert this file as one: {options}"
        return fix.format(declare=Set("input.encoding", wide), rewrite=rewritten_as_utf8(name, own))

    others = () if plain_encoding(encoding) == "utf-8" else ((_UTF8_BOM, "utf-8"),)
    for mark, wide in (*_OTHER_BOMS, *others):
        if head.startswith(mark):
            shown = wide.upper()
            raise SourceError(
                name,
                f"is {shown} by its byte order mark, not {encoding}; {fixed(wide)}",
            )
    start = head[: _MAGIC_BYTES // 4 * 4]
    for wide, width, place in _WITHOUT_MARK:
        if len(start) >= 2 * width and all((i % width == place) == (byte != 0) for i, byte in enumerate(start)):
            shown, zeros = wide[:6].upper(), "every second byte is 0" if width == 2 else "three of four bytes are 0"
            raise SourceError(
                name,
                f"is {shown} without a byte order mark ({zeros}), not {encoding}; {fixed(wide)}",
            )


def _is_table(text: str) -> bool:
    """Return whether the first two lines have as many delimiters that sentences and JSON lack."""
    first, second = [*text.splitlines(), "", ""][:2]
    return any(first.count(sign) == second.count(sign) > 0 for sign in "\t|;") and not first.startswith("{")


def file_blocks(file: ListedFile, start: int, *, whole: bool) -> Iterator[bytes]:
    """Yield 1 MiB at a time. Raises `SourceError` where the file cannot be read."""
    with DiskErrors(file.name), open_file(file) as opened:
        if whole:
            expect(opened, [(start, file.stamp.size)])
        opened.seek(start)
        while block := opened.read(BLOCK_BYTES):
            yield block


def _decoded(blocks: Iterable[bytes], name: str, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    offset = 0
    try:
        for block in blocks:
            pending = len(decoder.getstate()[0])
            text = decoder.decode(block)
            offset += len(block)
            if text:
                yield text.encode()
        pending, block = len(decoder.getstate()[0]), b""
        decoder.decode(b"", final=True)
    except UnicodeError as error:
        at = getattr(error, "start", 0) + offset - pending
        raise SourceError(name, f"not {encoding} at byte {at}; set another input.encoding") from error


@dataclass(frozen=True, slots=True)
class Cut:
    """A record start: its offset, and the non-blank records, blank lines and line ends before it."""

    offset: int
    records: int
    blanks: int
    lines: int


@dataclass(frozen=True, slots=True)
class TextJob:
    """A part of a file whose records are counted by one call: nominal bounds; the text begins at `text_start`."""

    path: bytes
    name: str
    stamp: Stamp
    text_start: int
    start: int
    stop: int


def text_jobs(file: ListedFile, text_start: int, job_bytes: int) -> list[TextJob]:
    edges = [*range(text_start, file.stamp.size, job_bytes), file.stamp.size]
    return [TextJob(file.path, file.name, file.stamp, text_start, *bounds) for bounds in pairwise(edges)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece(Piece):
    """Whole records of a file, about 1 MiB, more of wide ones; of a compressed file, or in UTF-16 and the like, all.

    `before` is where it starts, and the records, blank lines and lines between the first record of the file and there.
    `stop` is the offset of its end.
    """

    holds = (Cut,)

    before: Cut
    stop: int
    streamed: bool


_WIDE: Final = 288
_MOST_TIMES: Final = 4

TextPieceT = TypeVar("TextPieceT", bound=TextPiece)


def times_wider(columns: int) -> int:
    """Return how many times more text of so many columns is in a piece: each costs some 0.1 ms, whatever its rows."""
    return min(max(columns // _WIDE, 1), _MOST_TIMES)


def joined(pieces: Iterable[TextPieceT], most: int) -> Iterator[TextPieceT]:
    held: TextPieceT | None = None
    for piece in pieces:
        if held is None:
            held = piece
        elif (
            piece.before.offset == held.stop  # blank lines between them are in neither
            and held.bytes + piece.bytes <= most
            and held.rows is not None
            and piece.rows is not None
        ):
            held = replace(held, stop=piece.stop, rows=held.rows + piece.rows, bytes=held.bytes + piece.bytes)
        else:
            yield held
            held = piece
    if held is not None:
        yield held
