"""CSV files, Parquet files and their footers, NumPy files."""

from __future__ import annotations

import io
import itertools
import os
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mutate import mutate
from shardmill.transforms.errors import ShardmillError
from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.schema.arrow_types import check_batch
from shardmill.transforms.inputs.contract.source import Task, map_in_turn
from shardmill.transforms.sources.csv.dialect import LF, Dialect
from shardmill.transforms.sources.csv.record_starts import fold_blocks, record_ends, safe_cut, scan_block
from shardmill.transforms.sources.numpy.npy import HEADER_READ_BYTES, NpyError, parse_header
from shardmill.transforms.sources.parquet.pages import EncryptedError, ThriftError, read_groups
from shardmill.transforms.sources.registry.settings import Limits
from targets import Target, file_of, ours, source_of

CSV = [
    b'id,name,price\n1,Ada,0.5\n2,"Grace, Hopper",1e3\n3,"a\nb""c",\n',
    b'a\tb\r\n1\t2\r\n\r\n3\t"x"\r\n',
    b"\xef\xbb\xbfone\n" + b"value\n\n" * 50,
    b'x,y\r1,5" disk\r"""",""\r',
    b"a,b\n" + b"1,2\n" * 300 + b"x,y\n",
]
CSV_TOKENS = [
    b'"',
    b'""',
    b'","',
    b"\r\n",
    b"\r",
    b"\n\n",
    b",,,,",
    b"\xff\xfe",
    b"\0",
    b"1e400",
    b"9" * 30,
    b"nan",
    b"\x1b[2J",
]
DIALECT = Dialect(ord(","), ord('"'))


def make_csv(rng: random.Random) -> bytes:
    return bytes(mutate(rng, CSV, CSV_TOKENS))


def check_csv_split(data: bytes) -> str:
    """Hold the scan of blocks, cut where the input itself says, against one look at the whole text."""
    if not data:
        return "empty"
    text = np.frombuffer(data, np.uint8)
    rng = random.Random(data)
    cuts = {0, len(data), *(safe_cut(text, rng.randrange(len(data)), DIALECT) for _ in range(rng.randrange(8)))}
    edges = sorted(cuts)
    blocks = [
        scan_block(text[low:high], low, int(text[low - 1]) if low else LF, DIALECT)
        for low, high in itertools.pairwise(edges)
    ]
    scan = fold_blocks(blocks, 0, len(data))
    whole = record_ends(text, DIALECT)
    starts = {0, *(int(end) + 1 for end in whole.ends)}
    assert all(cut.offset in starts for cut in scan.cuts)
    assert (scan.open_at is not None) == whole.inside
    if not whole.inside:
        rest = int(whole.ends[-1]) + 1 < len(data) if len(whole.ends) else True
        assert scan.end.records == int((~whole.blank).sum()) + rest
        assert scan.end.blanks == int(whole.blank.sum())
        return "split"
    return "open quote"


def read_all(source: Any) -> str:
    try:
        survey = source.survey(source.list_files(), map_in_turn)
        read = rejected = 0
        encoder = RowEncoder(survey.frozen.schema)
        for rows in source.read(Task(0, survey.pieces), survey.frozen):
            check_batch(rows.batch)
            block = encoder.encode(rows)
            assert sum(count.read for count in block.counts) == rows.batch.num_rows + len(rows.rejects)
            read += sum(count.written for count in block.counts)
            rejected += len(block.rejects)
            for line in (reject.to_json_line() for reject in block.rejects):
                assert line.isprintable(), ascii(line)
                assert len(line) < 2000 * (1 + rows.batch.num_columns)
    except ShardmillError as error:
        return ours(error)
    return "read" if not rejected else "rejects" if read else "only rejects"


def check_csv(data: bytes) -> str:
    name = os.path.basename(file_of(data, "a.csv"))
    return read_all(source_of("csv", name, limits=Limits(1000, 10_000, 50)))


def _parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=50, **options)
    return sink.getvalue()


_ROWS = 120
TABLES = [
    pa.table({"id": range(_ROWS), "name": [f"n {i % 7}" for i in range(_ROWS)], "t": [[1, i] for i in range(_ROWS)]}),
    pa.table(
        {"v": pa.array([[1.0, 2.0]] * _ROWS, pa.list_(pa.float32(), 2)), "x": pa.array([None, 1.5] * (_ROWS // 2))}
    ),
    pa.table(
        {
            "s": pa.array(["é", None, "b"] * 40).dictionary_encode(),
            "d": pa.array(range(_ROWS), pa.timestamp("ns", "UTC")),
        }
    ),
]
PARQUET = [
    _parquet(TABLES[0], write_page_checksum=True),
    _parquet(TABLES[0], compression="none", use_dictionary=False),
    _parquet(TABLES[1], compression="zstd"),
    _parquet(TABLES[2], compression="gzip", data_page_version="2.0"),
    _parquet(TABLES[2].slice(0, 0)),
]


def _footer(data: bytes) -> bytes:
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


FOOTERS = [_footer(data) for data in PARQUET]


def make_parquet(rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return bytes(mutate(rng, PARQUET))
    data = rng.choice(PARQUET)
    footer, head = _footer(data), data[: len(data) - 8 - len(_footer(data))]
    if rng.random() < 0.6:
        footer = bytes(mutate(rng, [footer]))
    else:
        head = bytes(mutate(rng, [head]))
        head = head.ljust(len(data) - 8 - len(footer), b"\0")
    return head + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def check_parquet(data: bytes) -> str:
    name = os.path.basename(file_of(data, "a.parquet"))
    return read_all(source_of("parquet", name))


def make_footer(rng: random.Random) -> bytes:
    return bytes(mutate(rng, FOOTERS))


def check_footer(data: bytes) -> str:
    try:
        _, groups = read_groups(data, (0, 1), 2)
    except (ThriftError, EncryptedError) as error:
        assert len(str(error)) < 300
        return type(error).__name__
    assert all(chunk.start >= 0 and chunk.compressed >= 0 for group in groups for chunk in group.chunks)
    return "read"


def _npy(array: np.ndarray) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def _npz(*, packed: bool, **arrays: np.ndarray) -> bytes:
    sink = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(sink, **arrays)
    return sink.getvalue()


NUMPY = [
    _npy(np.arange(12, dtype="<f4").reshape(3, 4)),
    _npy(np.asfortranarray(np.ones((2, 3), ">i8"))),
    _npy(np.zeros((0, 5), "c16")),
    _npy(np.array(["a", "bcé"])),
    _npy(np.array([b"a", b"bc"])),
    _npz(packed=False, a=np.arange(5), b=np.ones((5, 2), "f2")),
    _npz(packed=True, a=np.arange(5000, dtype="i2"), b=np.array(["2020-01-01"] * 3, "M8[D]")),
]
NUMPY_TOKENS = [
    b"'descr': '|O'",
    b"(" * 90,
    b"'shape': (4611686018427387904,)",
    b"(2, 2, 2, -1)",
    b"99999999999999999999",
    b"'<f16'",
    b"(0,)",
    b"PK\x03\x04",
    b"'<U9999999'",
    b"1_000",
    b"{}",
    b"[[[",
]


def make_numpy(rng: random.Random) -> bytes:
    return bytes(mutate(rng, NUMPY, NUMPY_TOKENS))


def check_numpy(data: bytes) -> str:
    try:
        parse_header(data[:HEADER_READ_BYTES]).check_size(len(data))
    except NpyError as error:
        assert len(str(error)) < 400
    name = os.path.basename(file_of(data, "a.npy"))
    outcomes = [read_all(source_of("numpy", name, rows=rows)) for rows in (False, True)]
    return " ".join(outcomes)


TARGETS = {
    "csv_split": Target(make_csv, check_csv_split),
    "csv": Target(make_csv, check_csv),
    "parquet": Target(make_parquet, check_parquet),
    "parquet_footer": Target(make_footer, check_footer),
    "numpy": Target(make_numpy, check_numpy),
}
