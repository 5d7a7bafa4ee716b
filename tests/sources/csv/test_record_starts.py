from __future__ import annotations

import csv
import io
import itertools

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shardmill.transforms.sources.csv.dialect import Dialect
from shardmill.transforms.sources.csv.quote_bits import scan_bits
from shardmill.transforms.sources.csv.record_starts import (
    Cut,
    FileScan,
    fold_blocks,
    record_ends,
    safe_cut,
    scan_block,
    scan_runs,
    torn_cells,
)

from ...tiers import examples

COMMA = Dialect(ord(","), ord('"'))
TEXTS = st.text(alphabet='",\n\r a;', max_size=60).map(str.encode)
BLOCKS = st.integers(1, 16) | st.sampled_from([32, 1 << 20])


def split(text: bytes, block: int, dialect: Dialect = COMMA) -> FileScan:
    data = np.frombuffer(text, np.uint8)
    edges = sorted({safe_cut(data, at, dialect) for at in range(0, len(text), block)} | {0, len(text)})
    blocks = [
        scan_block(data[lo:hi], lo, int(data[lo - 1]) if lo else 10, dialect) for lo, hi in itertools.pairwise(edges)
    ]
    return fold_blocks(blocks, 0, len(text))


def walk(text: bytes, dialect: Dialect = COMMA) -> tuple[list[tuple[int, bool, int]], int | None]:
    """Return (end, blank, line ends so far) of each record and blank line, and an unclosed quote, byte by byte."""
    records: list[tuple[int, bool, int]] = []
    state, begin, lines, opened = "start", 0, 0, -1
    i = 0
    while i < len(text):
        byte = text[i]
        newline = byte == 10 or (byte == 13 and text[i + 1 : i + 2] != b"\n")
        lines += newline
        if state == "quoted":
            if byte == dialect.quote:
                if text[i + 1 : i + 2] == bytes([byte]):
                    i += 1
                else:
                    state = "plain"
        elif newline:
            first = i - 1 if byte == 10 and i > begin and text[i - 1] == 13 else i
            records.append((i, first == begin, lines))
            state, begin = "start", i + 1
        elif byte == dialect.delimiter:
            state = "start"
        elif byte == dialect.quote and state == "start":
            state, opened = "quoted", i
        elif byte != 13:
            state = "plain"
        i += 1
    if state == "quoted":
        return records, opened
    if begin < len(text):
        records.append((len(text) - 1, False, lines + 1))
    return records, None


@settings(max_examples=examples(500), deadline=None)
@given(
    TEXTS,
    BLOCKS,
    st.sampled_from([COMMA, Dialect(ord(";"), ord('"')), Dialect(ord(","), None), Dialect(ord("a"), ord(" "))]),
)
@example(b'"",""\n"a""b\n"\n', 3, COMMA)
@example(b'a"""\n"b\n"', 2, COMMA)
@example(b'""""""""\r\n\r\n"', 1, COMMA)
def test_the_parallel_scan_agrees_with_a_walk_byte_by_byte_at_any_block_size(
    text: bytes, block: int, dialect: Dialect
) -> None:
    records, opened = walk(text, dialect)
    scan = split(text, block, dialect)
    assert scan.open_at == opened
    if opened is None:
        starts = {0: Cut(0, 0, 0, 0)}
        for i, (end, _, lines) in enumerate(records, 1):
            blanks = sum(blank for _, blank, _ in records[:i])
            starts[end + 1] = Cut(end + 1, i - blanks, blanks, lines)
        for cut in (*scan.cuts, scan.end):
            assert cut == starts[cut.offset]
        assert scan.end.offset == len(text)
        found = record_ends(np.frombuffer(text, np.uint8), dialect)
        whole = [record for record in records if text[record[0]] in b"\r\n"]
        assert list(zip(found.ends.tolist(), found.blank.tolist(), found.lines.tolist(), strict=True)) == whole


def torn_records(text: bytes) -> list[int]:
    """Return the records that Python's csv module refuses by its own strict rule."""
    found, begin = [], 0
    for number, (end, _, _) in enumerate(walk(text)[0]):
        try:
            list(csv.reader(io.StringIO(text[begin : end + 1].decode(), newline=""), strict=True))
        except csv.Error:
            found.append(number)
        begin = end + 1
    return found


@settings(max_examples=examples(500), deadline=None)
@given(TEXTS, BLOCKS)
@example(b'1,"N,5\n2,"x",3\n', 4)
@example(b'""a,b\n"""a"b,"c"" d"\n', 1)
def test_text_after_a_closing_quote_is_found_in_the_records_that_pythons_strict_csv_module_refuses(
    text: bytes, block: int
) -> None:
    records, opened = walk(text)
    if opened is None and records:
        starts = np.array([0, *(end + 1 for end, _, _ in records[:-1])])
        cells = torn_cells(np.frombuffer(text, np.uint8), COMMA, lambda: starts)
        assert [cell.record for cell in cells] == torn_records(text)
        scan = split(text, block)
        assert all(scan.is_torn(int(starts[cell.record])) for cell in cells)
        for cell in cells:
            row = text[starts[cell.record] : cell.start]
            assert cell.column == len(next(csv.reader([row.decode() + "x"]))) - 1
            assert text[cell.closed] == ord('"')


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.lists(st.text(alphabet='",\n\r a;', max_size=9), min_size=3, max_size=3)),
    st.sampled_from(["\n", "\r\n"]),
)
def test_the_scan_proves_that_no_text_follows_a_closing_quote_in_what_a_csv_writer_writes(
    rows: list[list[str]], end: str
) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=end).writerows([*rows, ["x"] * 3])
    if "\r" not in text.getvalue().replace("\r\n", ""):
        assert split(text.getvalue().encode(), 1 << 20).torn == (False, False)


@settings(max_examples=examples(500), deadline=None)
@given(TEXTS, BLOCKS)
def test_the_scan_counts_the_records_that_pythons_csv_module_reads(text: bytes, block: int) -> None:
    scan = split(text, block)
    # the csv module gets the text by characters that it may not split into lines first
    rows = list(csv.reader(io.StringIO(text.decode(), newline="")))
    if scan.open_at is None:
        assert scan.end.records == sum(bool(row) for row in rows)


@settings(max_examples=examples(300), deadline=None)
@given(TEXTS, BLOCKS)
def test_the_scan_counts_the_records_that_arrow_reads(text: bytes, block: int) -> None:
    scan = split(text, block)
    if scan.open_at is not None or not scan.end.records:
        return
    seen: list[int] = []

    def tally(row: pacsv.InvalidRow) -> str:
        seen.append(row.number)
        return "skip"

    table = pacsv.read_csv(
        pa.BufferReader(text),
        read_options=pacsv.ReadOptions(use_threads=False, column_names=["a", "b"]),
        parse_options=pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=tally),
        convert_options=pacsv.ConvertOptions(column_types={"a": pa.binary(), "b": pa.binary()}),
    )
    assert table.num_rows + len(seen) == scan.end.records


def test_the_state_before_a_block_is_known_only_from_the_blocks_before_it() -> None:
    text = b'a,b\n1,"x\ny\nz"\n2,w\n'
    scan = split(text, 9)
    assert scan.cuts == (Cut(0, 0, 0, 0), Cut(4, 1, 0, 1), Cut(14, 2, 0, 4))
    assert scan.end == Cut(18, 3, 0, 5)


def test_stray_quotes_do_not_open_a_field() -> None:
    assert split(b'a,5" disk\nb,6" disk\n"un"quoted",x\n', 4).end == Cut(34, 3, 0, 3)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1000])
def test_an_unclosed_quote_is_found_by_the_offset_of_its_opening(block: int) -> None:
    assert split(b'a,b\n"x",1\ny,"never ""closed"" \n1,2\n', block).open_at == 12


def test_a_field_that_is_open_over_many_blocks_is_found_where_it_opened() -> None:
    assert split(b'1\n"' + b"x\n" * 100, 8).open_at == 2


@pytest.mark.parametrize("block", [1, 2, 3, 5])
def test_crlf_lone_cr_and_lf_mix_and_blank_lines_are_counted_apart(block: int) -> None:
    scan = split(b"\r\na\r\n\r\nb\rc\n\n\rd", block)
    assert (scan.end.records, scan.end.blanks, scan.end.lines) == (4, 4, 8)


def test_a_nul_byte_is_noticed() -> None:
    assert split(b"a\n\0\n", 2).nul
    assert not split(b"a\nb\n", 2).nul


def test_a_cut_never_falls_into_a_run_of_quotes_or_a_crlf() -> None:
    data = np.frombuffer(b'a""""b\r\nc' + b'"' * 9000 + b"x", np.uint8)
    assert [safe_cut(data, at, COMMA) for at in (0, 1, 2, 4, 5, 6, 7, 8, 10)] == [0, 1, 5, 5, 5, 6, 8, 8, 9009]


def test_a_cut_that_would_fall_into_a_run_at_the_end_is_the_end() -> None:
    data = np.frombuffer(b'a""', np.uint8)
    assert safe_cut(data, 2, COMMA) == 3


FIELDS = st.sampled_from(
    [
        b"",
        b"a",
        b'"x"',
        b'""',
        b'"a,\nb"',
        b'"say ""hi"""',
        b'"\n"',
        b'"""' + b"z" * 70 + b'"',
        b"\n",
        b"y" * 64,
        b"\r\n",
        b'"\r\n"',
        b"\r",
    ]
)


@settings(max_examples=examples(500), deadline=None)
@given(
    st.lists(FIELDS, max_size=30).map(b",".join) | st.text(alphabet='",\n\ra', max_size=150).map(str.encode),
    st.integers(0, 70),
    st.sampled_from(b"\n,a"),
)
def test_the_scan_by_bits_agrees_with_the_scan_by_runs_or_leaves_the_block_to_it(
    text: bytes, cut: int, before: int
) -> None:
    data = np.frombuffer(text, np.uint8)
    data = data[safe_cut(data, cut, COMMA) :]
    if not len(data):
        return
    found = scan_bits(data, before, COMMA)
    if found is not None:
        assert found == scan_runs(data, before, COMMA)


def test_well_formed_text_is_scanned_by_bits_from_either_state_and_stray_quotes_are_not() -> None:
    text = np.frombuffer(b'1,"a ""b"", c",2\n' * 100, np.uint8)
    for cut in (0, 4, 14, 17, 20):
        assert scan_bits(text[cut:], int(text[cut - 1]) if cut else 10, COMMA) is not None
    assert scan_bits(np.frombuffer(b'a,5" disk,"x"\n' * 100, np.uint8), 10, COMMA) is None
