"""A large record is parsed without a copy, into the cells that Arrow finds in it."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st
from shardmill.transforms.sources.csv.chunks import Chunk
from shardmill.transforms.sources.csv.dialect import Dialect
from shardmill.transforms.sources.csv.parse import CsvCells, CsvLimits, Parser, parse_cells
from shardmill.transforms.sources.text.open_text import Cut

DIALECTS = (Dialect(), Dialect(ord(";"), ord("'")), Dialect(quote=None), Dialect(escape=ord("\\")), Dialect(trim=True))


def cells_of(text: bytes, dialect: Dialect, long_bytes: int) -> CsvCells:
    limits = CsvLimits(long_bytes=long_bytes)
    parser = Parser(("a", "b", "c"), ("c", "a"), dialect, null_values=("", "NA"), limits=limits)
    return parse_cells(parser, Chunk(text, Cut(0, 0, 0, 0)), "f.csv", 0)


@given(st.text("x,;\"'\\\r\n NA\u00e4\0", max_size=30), st.sampled_from(DIALECTS))
@example('1,"a ""b"" c",2\r\n', Dialect())
@example('1,"a\r\nb,c",NA', Dialect())
@example('1,"NA",NA\n', Dialect())
@example('1,a"b",""\r', Dialect())
def test_a_large_record_has_the_cells_that_arrow_finds(text: str, dialect: Dialect) -> None:
    data = f"1{text}".encode()
    large, small = (cells_of(data, dialect, long_bytes) for long_bytes in (0, 1 << 20))
    assert [column.to_pylist() for column in large.columns] == [column.to_pylist() for column in small.columns]
    assert (large.rows, large.rejects, large.utf8) == (small.rows, small.rejects, small.utf8)


def test_the_cells_of_a_large_record_are_in_its_text() -> None:
    text = b'1,"' + b"x" * 100 + b'",' + b"y" * 100 + b"\n"
    of = Chunk(text, Cut(0, 0, 0, 0))
    parser = Parser(("a", "b", "c"), ("b", "c"), Dialect(), limits=CsvLimits(long_bytes=0))
    columns = parse_cells(parser, of, "f.csv", 0).columns
    assert [column.to_pylist() for column in columns] == [[b"x" * 100], [b"y" * 100]]
    whole = pa.py_buffer(text)
    assert [column.buffers()[2].address - whole.address for column in columns] == [3, 105]


def test_an_empty_cell_at_the_end_of_a_text_is_null_after_a_quoted_cell_too() -> None:
    cells = cells_of(b'1,"x",\n1,"x",', Dialect(), 1 << 20)
    assert [column.to_pylist() for column in cells.columns] == [[None, None], [b"1", b"1"]]
