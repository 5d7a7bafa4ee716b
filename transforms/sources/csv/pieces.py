"""The pieces of CSV files, and the chunks of text that reading them gives."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...errors import SourceError
from ..contract.source import SourceEntry
from ..files.open_file import SHORTER, DiskErrors, expect, open_file, read_blocks
from ..text.open_text import BLOCK_BYTES, sniff_text, stream_text
from ..text.pieces import Cut, TextPiece, joined, times_wider
from .header import FileHead
from .parse import Parser
from .records.chunks import Chunk, StreamLimits, cut_stream
from .records.record_starts import FileScan


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvPiece(TextPiece):
    """Records after the header of a file.

    `columns` are the names of all columns of the file, in its order, `header_lines` the lines that its header ends
    after. Where `torn` is false, no text follows a quote that closes a cell. Rows that are `again` are left out.
    """

    columns: tuple[str, ...]
    header_lines: int = 0
    torn: bool = True
    again: tuple[str, ...] = ()


def file_pieces(
    index: int, entry: SourceEntry, head: FileHead, scan: FileScan | None, *, again: bool
) -> list[CsvPiece]:
    """Return the pieces of one file: none if it holds no row; `scan` is None for a stream."""
    if head.names is None:
        return []
    origin = head.data

    def piece(start: Cut, stop: int, rows: int | None) -> CsvPiece:
        first = _since(start, origin)
        return CsvPiece(
            **entry.place(index),
            rows=rows,
            first_row=_rows(first, head.names),
            bytes=stop - start.offset if scan else entry.bytes,
            before=first,
            stop=stop,
            streamed=scan is None,
            columns=head.names or (),
            header_lines=origin.lines + head.skipped,
            torn=scan is None or scan.is_torn(start.offset),
            again=head.cells if again else (),
        )

    if scan is None:
        return [piece(origin, entry.bytes, None)]
    edges = [origin, *(cut for cut in scan.cuts if origin.offset < cut.offset < scan.end.offset), scan.end]
    found = []
    for start, stop in itertools.pairwise(edges):
        rows = _rows(stop, head.names) - _rows(start, head.names)
        if rows:
            found.append(piece(start, stop.offset, rows))
    return found


def read_chunks(pieces: Sequence[CsvPiece], parser: Parser, encoding: str) -> Iterator[tuple[CsvPiece, Chunk]]:
    """Yield the text of pieces of one file, in order; small ones that follow each other come as one."""
    plain = [piece for piece in pieces if not piece.streamed]
    torn = [piece.before.offset for piece in plain if piece.torn]
    for piece in pieces:
        if piece.streamed:
            for chunk in _stream_chunks(piece, parser, encoding):
                yield piece, chunk
    if not plain:
        return
    with DiskErrors(plain[0].name), open_file(plain[0]) as file:
        expect(file, [(plain[0].before.offset, plain[-1].stop)])
        most = parser.limits.joined_bytes * times_wider(len(parser.names))
        for piece in joined(plain, most):
            file.seek(piece.before.offset)
            size = piece.stop - piece.before.offset
            if size > max(most, min(parser.limits.field_bytes, parser.limits.long_bytes)):
                for chunk in _cut(read_blocks(file, size, BLOCK_BYTES, piece.name), piece, parser):
                    yield piece, chunk
                continue
            text = file.read(size)
            if len(text) != size:
                raise SourceError(piece.name, SHORTER)
            odd = bisect_left(torn, piece.before.offset) < bisect_left(torn, piece.stop)
            yield piece, Chunk(text, piece.before, header_lines=piece.header_lines, torn=odd)


def check_count(piece: CsvPiece, chunk: Chunk, rows: int, parser: Parser) -> None:
    """Raise `SourceError` where the rows of a chunk are not as many as the records that the split found in it."""
    expected = piece.rows
    if chunk.counts is not None:
        expected = _rows(chunk.counts, parser.names)
    if rows != expected:
        first = _rows(chunk.before, parser.names) + 1
        raise SourceError(
            piece.name, f"rows from {first} on: the split found {expected} rows and the parser {rows}; please report it"
        )


def _stream_chunks(piece: CsvPiece, parser: Parser, encoding: str) -> Iterator[Chunk]:
    form = sniff_text(piece, encoding)
    blocks = _skip(stream_text(piece, encoding, form), piece.before.offset - form.start)
    yield from _cut(blocks, piece, parser)


def _cut(blocks: Iterable[bytes], piece: CsvPiece, parser: Parser) -> Iterator[Chunk]:
    done, start = piece.before, piece.before.offset
    own = parser.limits
    block_bytes = own.block_bytes * times_wider(len(parser.names))
    limits = StreamLimits(own.field_bytes, own.record_bytes, block_bytes, own.long_bytes, rejects=not piece.streamed)
    for text, counts, size, long in cut_stream(blocks, piece.name, parser.dialect, start, limits):
        whole = size == len(text) or not counts.records
        yield Chunk(text, done, counts, piece.header_lines, size=None if whole else size, long=long)
        done = Cut(
            offset=done.offset + size,
            records=done.records + counts.records,
            blanks=done.blanks + counts.blanks,
            lines=done.lines + counts.lines,
        )


def _skip(blocks: Iterable[bytes], count: int) -> Iterator[bytes]:
    for block in blocks:
        if len(block) <= count:
            count -= len(block)
        else:
            yield block[count:]
            count = 0


def _since(cut: Cut, origin: Cut) -> Cut:
    return Cut(cut.offset, cut.records - origin.records, cut.blanks - origin.blanks, cut.lines - origin.lines)


def _rows(cut: Cut, names: Sequence[str] | None) -> int:
    """Return the rows that a count stands for: in a file of one column blank lines are rows too."""
    return cut.records + (cut.blanks if names is not None and len(names) == 1 else 0)
