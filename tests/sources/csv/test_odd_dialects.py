"""Escapes, comments and blanks around cells, against a walk byte by byte that knows nothing of blocks."""

from __future__ import annotations

import gzip
import lzma
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import csv
from shardmill.transforms.errors import SourceError
from shardmill.transforms.inputs.contract.source import Stamp, Task
from shardmill.transforms.sources.csv import chunks
from shardmill.transforms.sources.csv.chunks import StreamLimits, cut_stream, run_scan
from shardmill.transforms.sources.csv.dialect import Dialect
from shardmill.transforms.sources.csv.parse import CsvLimits
from shardmill.transforms.sources.csv.record_starts import FileScan, fold_blocks, record_ends, usual_text
from shardmill.transforms.sources.text.open_text import Cut, TextJob

from ...file_sources import made_source
from ...tiers import examples

COMMA, QUOTE, ESCAPE, SIGN = (ord(sign) for sign in ',"\\#')
PLAIN = Dialect(COMMA, QUOTE)
DIALECTS = [
    Dialect(COMMA, QUOTE, escape=ESCAPE),
    Dialect(COMMA, None, escape=ESCAPE),
    Dialect(COMMA, QUOTE, comment=SIGN),
    Dialect(COMMA, None, comment=SIGN),
    Dialect(COMMA, QUOTE, trim=True),
    Dialect(ord("\t"), QUOTE, trim=True),
    Dialect(ord(" "), QUOTE, trim=True),
    Dialect(ord(" "), QUOTE, comment=SIGN, trim=True),
    Dialect(COMMA, QUOTE, comment=SIGN, trim=True),
    Dialect(ord(" "), None, comment=SIGN, trim=True),
    Dialect(ord(" "), QUOTE, escape=ESCAPE, trim=True),
    Dialect(COMMA, QUOTE, escape=ESCAPE, trim=True),
]
TEXTS = st.text(alphabet='a,"\\#\n\r \t', max_size=40).map(str.encode) | st.lists(
    st.sampled_from(
        [b"a,b\n", b"# it's\n", b'#"\n', b'"x\n#y"\n', b'\\"', b"\\\n", b'  "a , b" ', b" \n", b"\r\n", b'a"b\n', b'""']
    )
).map(b"".join)
LONG_TEXTS = st.lists(
    st.sampled_from(
        [
            b"x" * 30,
            b'"',
            b'""',
            b",",
            b" ",
            b"\n",
            b"\r\n",
            b"#",
            b"\\",
            b'"' + b"y" * 30,
            b'"a","',
            "é".encode() * 9,
            b"\r",
        ]
    ),
    max_size=14,
).map(b"".join)


@dataclass
class Walk:
    """What a text is, one byte at a time: the lines outside quotes, and the cells of the records."""

    text: bytes
    dialect: Dialect
    ends: list[tuple[int, str, int]] = field(default_factory=list)
    rows: list[list[bytes]] = field(default_factory=list)
    torn: list[bool] = field(default_factory=list)
    tail: str = ""
    is_open: bool = False

    def __post_init__(self) -> None:
        at = 0
        while at < len(self.text) and not self.is_open:
            kind, stop = self._line(at)
            ended = self._line_end(stop)
            if not ended:
                self.tail = kind
            elif not self.is_open:
                lines = len(re.findall(rb"\r\n|\r|\n", self.text[: stop + ended]))
                self.ends.append((stop + ended - 1, kind, lines))
            at = stop + ended

    def _line_end(self, at: int) -> int:
        return 2 if self.text[at : at + 2] == b"\r\n" else int(self.text[at : at + 1] in (b"\n", b"\r"))

    def _line(self, begin: int) -> tuple[str, int]:
        """Return what the line is that begins at a place, and where its end begins."""
        at = begin
        while at < len(self.text) and self.text[at] in self.dialect.blanks:
            at += 1
        if at < len(self.text) and self.text[at] == self.dialect.comment:
            while at < len(self.text) and not self._line_end(at):
                at += 1
            return "comment", at
        if at == len(self.text) or self._line_end(at):
            return "blank", at
        return "record", self._record(begin)

    def _record(self, at: int) -> int:
        text, dialect = self.text, self.dialect
        cells: list[list[tuple[int, bool]]] = [[]]  # each byte, and whether it was quoted or escaped
        quoted, state, torn = [False], "start", False
        while at < len(text) and (state == "quoted" or not self._line_end(at)):
            byte, then = text[at], text[at + 1] if at + 1 < len(text) else None
            is_blank = byte in dialect.blanks
            between = byte == dialect.delimiter or (is_blank and dialect.delimiter in dialect.blanks)
            torn |= state == "closed" and not between and not is_blank
            if byte == dialect.escape:
                cells[-1].append((byte if then is None else then, True))
                state, at = state if state == "quoted" else "plain", at + 1
            elif state == "quoted" and byte == dialect.quote and then != byte:
                state = "closed"
            elif state == "quoted":
                at += byte == dialect.quote
                cells[-1].append((byte, True))
            elif byte == dialect.quote and state == "start":
                quoted[-1], state = True, "quoted"
            elif between:
                cells.append([])
                quoted.append(False)
                state = "start"
            elif not is_blank or state != "start":
                cells[-1].append((byte, False))
                state = "plain" if state != "closed" or not is_blank else state
            at += 1
        self.torn.append(torn)
        self.is_open = state == "quoted"
        for cell in cells:
            while cell and cell[-1][0] in dialect.blanks and not cell[-1][1]:
                cell.pop()
        runs = dialect.delimiter in dialect.blanks
        kept = [cell for cell, marked in zip(cells, quoted, strict=True) if cell or marked or not runs]
        self.rows.append([bytes(byte for byte, _ in cell) for cell in kept])
        return min(at, len(text))


def split(text: bytes, block: int, job: int, dialect: Dialect, path: Path) -> FileScan:
    path.write_bytes(text)
    stamp = Stamp(len(text), 0)
    edges = [*range(0, len(text), job), len(text)]
    jobs = [TextJob(bytes(path), "a.csv", stamp, 0, a, b) for a, b in pairwise(edges)]
    return fold_blocks([scan for one in jobs for scan in run_scan(one, dialect, block)], 0, len(text))


@settings(max_examples=examples(400), deadline=None)
@given(TEXTS, st.integers(1, 12), st.sampled_from([3, 5, 1000]), st.sampled_from(DIALECTS))
@example(b'#"\n"a\n#b"\n', 3, 5, DIALECTS[2])
@example(b'"\n#"a,"\n"\n', 1, 1000, DIALECTS[2])
@example(b'"\n#""",x\n"\n#', 1, 1000, DIALECTS[2])
@example(b'a,  "b\n"\r\n  \r\n ', 2, 5, DIALECTS[4])
@example(b'"\\\\\n\\""\n\\\n', 1, 3, DIALECTS[0])
def test_the_parallel_scan_of_odd_dialects_agrees_with_a_walk_byte_by_byte(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, block: int, job: int, dialect: Dialect
) -> None:
    walk = Walk(text, dialect)
    scan = split(text, block, job, dialect, tmp_path_factory.getbasetemp() / "odd.csv")
    assert (scan.open_at is not None) == walk.is_open
    if walk.is_open:
        return
    kinds = Counter[str]()
    starts = {0: Cut(0, 0, 0, 0)}
    for end, kind, lines in walk.ends:
        kinds[kind] += 1
        starts[end + 1] = Cut(end + 1, kinds["record"], kinds["blank"], lines)
    for cut in scan.cuts:
        assert cut == starts[cut.offset]
    assert scan.end.records == len(walk.rows)
    assert scan.end.blanks == kinds["blank"]
    found = record_ends(np.frombuffer(text, np.uint8), dialect)
    assert list(zip(found.ends.tolist(), found.lines.tolist(), strict=True)) == [(end, n) for end, _, n in walk.ends]
    assert found.of_records.tolist() == [kind == "record" for _, kind, _ in walk.ends]
    assert found.blank.tolist() == [kind == "blank" for _, kind, _ in walk.ends]


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS, st.integers(1, 12), st.sampled_from([PLAIN, *DIALECTS]), st.sampled_from([1, 1000]))
@example(b'  "a , b"   "a , b" ', 2, DIALECTS[4], 1)
def test_a_stream_of_any_dialect_is_cut_into_the_same_records(
    text: bytes, block: int, dialect: Dialect, long_bytes: int
) -> None:
    walk = Walk(text, dialect)
    if not walk.is_open:
        pieces = [text[start : start + block] for start in range(0, len(text), block)]
        limits = StreamLimits(1000, 1000, block, long_bytes=long_bytes)
        cuts = list(cut_stream(pieces, "a.csv", dialect, 0, limits))
        assert sum(one.size for one in cuts) == len(text)
        assert sum(one.counts.records for one in cuts) == len(walk.rows)
        assert sum(one.counts.blanks for one in cuts) == sum(kind == "blank" for _, kind, _ in walk.ends)
        found = [Walk(one.text, dialect) for one in cuts]
        assert [torn for one in found for torn in one.torn] == walk.torn
        rows = [row for one in found for row in one.rows]
        for row, true, torn in zip(rows, walk.rows, walk.torn, strict=True):
            assert row == true or (torn and len(row) == len(true))  # blanks of a torn cell, which is a reject, may go


@settings(max_examples=examples(400), deadline=None)
@given(LONG_TEXTS, st.integers(1, 12), st.sampled_from([PLAIN, *DIALECTS]), st.booleans())
@example(b'"" "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 1, DIALECTS[4], False)
def test_of_a_long_cell_only_the_beginning_is_kept_and_no_other_value_changes(
    text: bytes, block: int, dialect: Dialect, rejects: bool
) -> None:
    walk = Walk(text, dialect)
    if walk.is_open:
        return
    pieces = [text[start : start + block] for start in range(0, len(text), block)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "_HEAD_BYTES", 4)
        limits = StreamLimits(20, 10_000, block, long_bytes=1, rejects=rejects)
        cuts = list(cut_stream(pieces, "a.csv", dialect, 0, limits))
    assert sum(one.size for one in cuts) == len(text)
    rows = [row for one in cuts for row in Walk(one.text, dialect).rows]
    assert [len(row) for row in rows] == [len(row) for row in walk.rows]
    long = sum(len(one.long) for one in cuts)
    found = [(torn, bool(one.long)) for one in cuts for torn in Walk(one.text, dialect).torn]
    for (is_torn, is_long), torn in zip(found, walk.torn, strict=True):
        assert is_torn == torn or (is_long and torn)  # a cell that is cut is a reject, whatever follows its quote
    for row, true, torn in zip(rows, walk.rows, walk.torn, strict=True):
        for cell, value in zip(row, true, strict=True):
            # blanks behind a value count until its end is seen
            assert torn or cell == value or ((len(value) > 20 or dialect.trim) and value.startswith(cell))
            long -= cell != value
    assert long >= 0


@settings(max_examples=examples(400), deadline=None)
@given(TEXTS, st.sampled_from(DIALECTS))
@example(b' a  "b c" \n\t"" \n', DIALECTS[6])
def test_records_are_rewritten_so_that_arrow_reads_the_cells_of_the_odd_dialect(text: bytes, dialect: Dialect) -> None:
    walk = Walk(text, dialect)
    usual = usual_text(text, dialect)
    if walk.is_open or not usual.strip(b"\r\n"):
        assert walk.is_open or not walk.rows
        return
    widths: list[int] = []
    table = csv.read_csv(
        pa.py_buffer(usual),
        read_options=csv.ReadOptions(use_threads=False, block_size=len(usual) + 1, column_names=["a", "b"]),
        parse_options=csv.ParseOptions(
            delimiter=chr(dialect.delimiter),
            quote_char=False if dialect.quote is None else chr(dialect.quote),
            escape_char=False if dialect.escape is None else chr(dialect.escape),
            newlines_in_values=True,
            invalid_row_handler=lambda row: (widths.append(row.actual_columns), "skip")[1],
        ),
        convert_options=csv.ConvertOptions(column_types={"a": pa.binary(), "b": pa.binary()}, null_values=[]),
    )
    assert [list(row.values()) for row in table.to_pylist()] == [row for row in walk.rows if len(row) == 2]
    assert widths == [len(row) for row in walk.rows if len(row) != 2]


@settings(max_examples=examples(200), deadline=None)
@given(
    TEXTS,
    st.sampled_from([PLAIN, *DIALECTS]),
    st.sampled_from([bytes, gzip.compress, lzma.compress]),
    st.sampled_from([b"", b"x\n", b'it"s\r\n\n', b"\r"]),
    st.booleans(),
)
@example(b'"a\n#",b\n#"\n1\nx,"y"\n', DIALECTS[2], bytes, b"x\n", True)
@example(b'"5" pipe",b\n"N,1\n2,"x",3\n""y,"z" \n', PLAIN, bytes, b"", False)
@example(b"\\\r\nx\r\ny\\\\\r\n", Dialect(delimiter=ord(","), quote=ord('"'), escape=ord("\\")), bytes, b"", True)
def test_a_file_in_small_pieces_gives_the_rows_and_the_lines_of_the_rejects_that_the_walk_gives(
    tmp_path_factory: pytest.TempPathFactory,
    text: bytes,
    dialect: Dialect,
    pack: Callable[[bytes], bytes],
    skipped: bytes,
    fill: bool,
) -> None:
    walk, sign = Walk(text, dialect), chr(dialect.delimiter)
    if walk.is_open:
        return
    folder = tmp_path_factory.getbasetemp()
    (folder / "whole.csv").write_bytes(pack(skipped + f"a{sign}b\n".encode() + text))
    source = made_source(
        "csv",
        ("whole.csv",),
        str(folder),
        delimiter=sign,
        quote=None if dialect.quote is None else chr(dialect.quote),
        null_values=(),
        skip_lines=len(re.findall(rb"\r\n|\r|\n", skipped)),
        comment=None if dialect.comment is None else chr(dialect.comment),
        escape=None if dialect.escape is None else chr(dialect.escape),
        trim=dialect.trim,
        short_rows="null" if fill else "reject",
        infer="none",
        limits=CsvLimits(block_bytes=5, job_bytes=13, joined_bytes=11),
    )
    if all(len(row) > 2 for row in walk.rows):
        return  # nothing to read, or refused as a whole
    try:
        survey = source.survey(
            source.list_files(), lambda function, items, *, heavy=False: [function(i) for i in items]
        )
    except SourceError as refused:  # the header looks like a title above wider rows
        is_above = "looks like a title" in str(refused) or "is a comment" in str(refused)
        if is_above and 2 * sum(len(row) > 2 for row in walk.rows) >= len(walk.rows):
            return
        raise
    parts = list(source.read(Task(0, survey.pieces), survey.frozen))
    rows = [
        [None if cell is None else cell.encode() for cell in row.values()] for p in parts for row in p.batch.to_pylist()
    ]
    odd = [torn or len(row) > 2 or (len(row) < 2 and not fill) for row, torn in zip(walk.rows, walk.torn, strict=True)]
    wanted = [row + [None] * (2 - len(row)) for row, bad in zip(walk.rows, odd, strict=True) if not bad]
    assert rows == wanted
    lines = [1, *(line + 1 for _, _, line in walk.ends)]
    starts = [
        line
        for line, kind in zip(lines, [kind for _, kind, _ in walk.ends] + [walk.tail], strict=True)
        if kind == "record"
    ]
    assert [reject.place.line for part in parts for reject in part.rejects] == [
        line for line, bad in zip(starts, odd, strict=True) if bad
    ]
    codes = [reject.errors[0].code for part in parts for reject in part.rejects]
    assert [code == "BAD_QUOTE" for code in codes] == [torn for torn, bad in zip(walk.torn, odd, strict=True) if bad]
