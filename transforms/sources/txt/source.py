"""Read text files: a line is a record of one feature, `text`; a line that is not UTF-8 is a reject."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import SourceError
from ...format.batches.rejects import CellError, Reject
from ...format.batches.rows import Rows
from ...format.schema.arrow_types import feature_of
from ...format.schema.schema import Choice, Schema
from ...format.wording.hints import Add, Set
from ...format.wording.printable import printable
from ...inputs.contract.source import Frozen, Listing, ParallelMap, Survey, Task, Traits
from ...inputs.files.open_file import files_of
from ...recognise.foreign_texts import told_of_text
from ..csv.delimiter import SampleOptions, aligned_columns, split_times
from ..registry.file_source import FileSource
from ..text.lines import Lines, LineSizes, line_pieces, origin_of, read_lines
from ..text.open_text import TextPiece, is_utf8, likely_encoding, rewritten_as_utf8

FIELD: Final = pa.field("text", pa.string(), nullable=False)
_SHOWN: Final = 400
_LOOKED_AT: Final = 20
_SEEN: Final = 1 << 16
_NAMED: Final = 3
_MOST_FILES: Final = 8
_SIGNS: Final = {b"\t": "tabs", b"|": '"|"', b";": '";"', b",": "commas"}
_PLAIN_QUOTES: Final = "tabs, and quotes in its texts"
_FEWEST: Final = 3
_IN_TEXT: Final = (b";", b",")
"""Signs that lines of text may have alike by chance: a column of numbers, or no blank behind any, makes a table."""

_QUOTED: Final = re.compile(rb'"[^"]*"')
_NUMBER: Final = re.compile(rb"\s*[+-]?[0-9]+(?:\.[0-9]+)?\s*")
_YEAR: Final = re.compile(rb"\s*(?:1[89]|20)[0-9]{2}\s*")
_KEYED: Final = re.compile(rb":(?:\s|$)")
_SENTENCE: Final = re.compile(rb"[.!]$|\s(?:\S+\s+){7}")
_RULED: Final = re.compile(rb"-+(?: +-+)+\s*")
"""The line between a header and rows that sqlite3 and psql align."""

_AS_CSV: Final = Set("input.format", "csv")
_AS_LINES: Final = Set("input.format", "jsonl")


@dataclass(frozen=True, slots=True)
class TextSource(FileSource):
    """Read text files, line by line; a line larger than `sizes` allow is a reject."""

    sizes: LineSizes = field(default_factory=LineSizes)

    traits = Traits(may_be_empty=True)

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        pieces, _ = line_pieces(listing.entries, self.sizes, run, blank_rows=True)
        if not pieces:
            others = "" if len(listing.entries) == 1 else ", and so are the other files"
            raise SourceError(listing.entries[0].name, f"is empty{others}: there is no line")
        feature, _ = feature_of(FIELD)
        full = {piece.entry for piece in pieces}
        empty = tuple(f"{one.name}: is empty: no row" for i, one in enumerate(listing.entries) if i not in full)
        choice = Choice("text", feature.type, "each line is a record")
        names, splits = [one.name for one in listing.entries], [one.split or "" for one in listing.entries]
        own = splits if all(splits) and len({*splits}) > 1 else []
        told = partial(told_of_text, paths=names, call=self.settings.call.afterwards, splits=own)
        detected = self._looks(listing, pieces, told)
        return Survey(Frozen(Schema((feature,))), (choice,), pieces, empty, detected=detected, fields=(FIELD,))

    def _looks(
        self, listing: Listing, pieces: Sequence[TextPiece], told_of: Callable[[Sequence[bytes]], str]
    ) -> tuple[str, ...]:
        """Return what is to be said of the first files, of those together that look alike."""
        heads: dict[int, TextPiece] = {}
        for piece in pieces:
            if len(heads) < _MOST_FILES:
                heads.setdefault(piece.entry, piece)
        looks = defaultdict[_Look | None, list[str]](list)
        for at, piece in heads.items():
            look, name = _look_of(piece, told_of, self.sizes), listing.entries[at].name
            looks[look].append(name)
            if look is not None and look.is_table and not look.is_utf8:  # its columns show the encoding
                raise SourceError(
                    name, f"not UTF-8, and {look.what}; to read it so: {self._read_as(listing, *look.options)}"
                )
        each = zip(looks.items(), self._commands([*looks.values()], listing), strict=True)
        return tuple(look.told(names[0], read_as) for (look, names), read_as in each if look is not None)

    def _commands(self, tables: Sequence[Sequence[str]], listing: Listing) -> Iterator[Callable[..., object]]:
        """Yield what gives the command that reads each table otherwise, of several into a dataset of its own.

        Of many files the first ones were looked at: a folder of theirs is read whole.
        """
        if len(tables) == 1:
            yield partial(self._read_as, listing)
            return
        call, many = self.settings.call.afterwards, len(listing.entries) > _MOST_FILES
        folders = [{*map(os.path.dirname, names)} for names in tables]
        stems = [os.path.splitext(names[0])[0] for names in tables]
        for names, own, stem in zip(tables, folders, stems, strict=True):
            alone = many and len(names) > 1 and sum(not own.isdisjoint(one) for one in folders) == 1
            paths = [os.path.join(folder, "*.txt") for folder in sorted(own)] if alone else names
            table = os.path.basename(os.path.dirname(stem) if alone else stem)
            clear = [*map(os.path.basename, stems)].count(table) < 2
            table = re.sub(r"[^\w.-]+", "-", table if clear else stem).strip("-.")
            yield partial((call if call.command == "append" else call.apart(table)).reading, paths)

    def _read_as(self, listing: Listing, *options: Add) -> Add:
        """Return the options that read the files otherwise, or the whole command where a folder was given."""
        names = [entry.name for entry in listing.entries]
        if sorted(self.options.paths) == sorted(names):
            return Add(*options)
        folders = sorted({os.path.dirname(name) for name in names})
        shown = names if len(names) <= _NAMED else [os.path.join(folder, "*.txt") for folder in folders]
        return self.settings.call.afterwards.reading(shown, *options)

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:  # noqa: ARG002
        ordinal = 0
        for pieces in files_of(task, TextPiece):
            for piece, lines in read_lines(pieces, self.sizes, blank_rows=True):
                array, kept, rejects = _parse(lines, piece, self.sizes)
                batch = pa.RecordBatch.from_arrays([array], schema=pa.schema([FIELD]))
                yield Rows(
                    task.ordinal, ordinal, piece.entry, batch, origin_of(lines, piece.name, kept), rejects=rejects
                )
                ordinal += 1


def _parse(
    lines: Lines, piece: TextPiece, sizes: LineSizes
) -> tuple[pa.Array, npt.NDArray[np.int64], tuple[Reject, ...]]:
    lengths = lines.ends - lines.starts
    every = np.arange(len(lengths))
    if lines.large is None and lengths.max(initial=0) <= sizes.record_bytes and is_utf8(lines.text):
        return _text_array(lines, lengths), every, ()
    good, rejects = [], []
    encoding = cache(lambda: likely_encoding(bytes(lines.text[:_SEEN])) or "cp1252")
    for record in every.tolist():
        text = lines.text[lines.starts[record] : lines.ends[record]]
        large = lines.too_large(record, sizes.record_bytes)
        error = _error(text, piece.name, large, encoding)
        if error is None:
            good.append(record)
        else:
            rejects.append(Reject(piece.entry, lines.place(piece.name, record), (error,)))
    texts = [lines.text[lines.starts[record] : lines.ends[record]].decode() for record in good]
    return pa.array(texts, pa.string()), np.array(good, np.int64), tuple(rejects)


def _text_array(lines: Lines, sizes: npt.NDArray[np.int64]) -> pa.Array:
    text = lines.text
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(text.translate(None, b"\n")))


def _error(text: bytes, name: str, large: tuple[str, str] | None, encoding: Callable[[], str]) -> CellError | None:
    shown = printable(text[:_SHOWN])
    if large is not None:
        return CellError("text", large[0], shown, "a shorter line", large[1])
    try:
        text.decode()
    except UnicodeDecodeError as error:
        fix = f"write the file as UTF-8: {rewritten_as_utf8(name, encoding())}"
        at = f"not UTF-8 at byte {error.start + 1} of the line (0x{text[error.start]:02x})"
        return CellError("text", "BAD_UTF8", shown, "text", f"{at}; {fix}, or the encoding that it has")
    return None


@dataclass(frozen=True, slots=True)
class _Look:
    """What the first lines of a file look like, and the options that read it so; `width` cells are in each line.

    Files of one table have one `header`.
    """

    what: str
    options: tuple[Add, ...] = ()
    width: int = 0
    doubt: str = "if it is one"
    is_utf8: bool = True
    header: bytes = b""

    @property
    def is_table(self) -> bool:
        return self.options[:1] == (_AS_CSV,)

    def told(self, name: str, read_as: Callable[..., object]) -> str:
        fix = f"; {self.doubt}: {read_as(*self.options)}" if self.options else ""
        return f"{name}: each line is a record of text, though {self.what}{fix}"


def _look_of(piece: TextPiece, told_of: Callable[[Sequence[bytes]], str], sizes: LineSizes) -> _Look | None:
    """Return how a file is read whose first lines look like a table, or like JSON."""
    found = next((lines for _, lines in read_lines([piece], sizes, blank_rows=True)), None)
    if found is None or found.large is not None:
        return None
    spans = zip(found.starts, found.ends, strict=True)
    lines = [found.text[start:end] for start, end in islice(spans, _LOOKED_AT)]
    csv, like = _AS_CSV, "the first lines look like a table"
    if told := told_of([bytes(line) for line in lines if line.strip()]):
        return _Look(f"the file {told}")
    rows = [line for line in lines if line.strip()]
    if found_table := _table_between(rows):
        signs, named, width = found_table
        quotes = [Set("input.quote", None)] if signs == _PLAIN_QUOTES else []
        options = (csv, *([] if named else [Add("--no-header")]), *quotes)
        header = bytes(rows[0]) if named else b""
        return _Look(f"{like} with {signs}", options, width, is_utf8=is_utf8(b"\n".join(lines)), header=header)
    short = _table_between([b"\t" + rows[0], *rows[1:]]) if len(rows) >= _FEWEST else None
    if short is not None and short[0] == _SIGNS[b"\t"]:  # R names no column of row names
        return _Look(f"{like} of R with tabs", (csv, Set("input.row_names", "row")), short[2])
    whole = re.split(rb"(?<!\\)\n", b"\n".join(lines))
    if len(whole) < len(lines) and (found_table := _table_between([line for line in whole if line.strip()])):
        also = "with line breaks behind a backslash, as dumps of databases have them; export it as CSV"
        return _Look(f"{like} with {found_table[0]}, {also}")
    if len(lines) > 1 and _RULED.fullmatch(lines[1]):
        return _Look(f"{like} of aligned columns; write it with a delimiter")
    text = b"\n".join(lines).decode("utf-8", "replace")
    if told := split_times(text, SampleOptions()):
        return _Look(f"the file is {told}")
    aligned = aligned_columns(text, SampleOptions())
    if aligned is None and '\\"' in text and (escaped := aligned_columns(text, SampleOptions(escape="\\"))):
        return _Look(f'{like} of R, with \\" for a quote', (csv, escaped.keys, Set("input.escape", "\\")))
    words = zip(*map(bytes.split, lines), strict=False)
    same = any(len({*column}) == 1 and not _NUMBER.fullmatch(column[0]) for column in words)
    if aligned is not None and aligned.numbers and not same and not any(map(_KEYED.search, lines)):
        return _Look(f"{like} that blanks align", (csv, aligned.keys))
    if lines[0].startswith(b"{") and _is_json(lines[0]):
        return _Look("the first one is a JSON object", (_AS_LINES,), doubt="if all are")
    return None


def _table_between(lines: Sequence[bytes]) -> tuple[str, bool, int] | None:
    """Return the signs that cut lines into as many cells each, whether the first may be a header, and how many."""
    for sign, called in _SIGNS.items():
        rows = [_QUOTED.sub(b'""', line).split(sign) for line in lines]
        if sign == b"\t" and len({*map(len, rows)}) > 1:  # quotes may be part of the texts
            rows, called = [line.split(sign) for line in lines], _PLAIN_QUOTES
        if len(rows) < 2 or len(rows[0]) < 2 or len({len(row) for row in rows}) > 1 or lines[0].startswith(b"|"):
            continue
        numbers = [all(map(_NUMBER.fullmatch, column)) for column in zip(*rows[1:], strict=True)]
        spaced = any(cell[:1].isspace() for row in rows for cell in row[1:])
        if sign in _IN_TEXT and (len(rows) < _FEWEST or (spaced and not any(numbers))):
            continue
        data = [cell for cell, is_one in zip(rows[0], numbers, strict=True) if is_one and _NUMBER.fullmatch(cell)]
        is_data = any(
            _SENTENCE.search(name.strip()) or (name and name in below) for name, *below in zip(*rows, strict=True)
        )
        return called, not rows[0][0] or (all(map(_YEAR.fullmatch, data)) and not is_data), len(rows[0])
    return None


def _is_json(line: Sequence[int] | bytes) -> bool:
    try:
        return isinstance(json.loads(bytes(line)), dict)
    except (ValueError, RecursionError):
        return False
