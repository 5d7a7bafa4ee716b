"""Hostile text and tables: CSV, JSON lines, plain text, Parquet, Arrow."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq

from .hostile_file import SOUND, Holes, Hostile, setting

MANY = 100_001
FIELD = setting("limits.field_bytes=64KiB")
RECORD = setting("limits.record_bytes=64KiB")
COLUMNS = setting("limits.columns=1000")
ABOVE = (64 << 20) + 1
"""More than `limits.field_bytes`."""


def csv_row(cells: int, cell: str) -> bytes:
    return (",".join(cell.format(number) for number in range(cells)) + "\n").encode()


def keys(count: int) -> str:
    return "{" + ",".join(f'"k{number}":1' for number in range(count)) + "}"


def levels(count: int, start: str = "[", end: str = "]") -> str:
    return start * count + end * count


def zstd(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, "zstd", asbytes=True)
    return packed


def gzip_zeros(before: bytes, mebibytes: int) -> bytes:
    """Return a gzip member of zeros, of 1,029 bytes out for each byte in."""
    stream = zlib.compressobj(9, wbits=31)
    parts = [stream.compress(before), *(stream.compress(bytes(1 << 20)) for _ in range(mebibytes))]
    return b"".join([*parts, stream.flush()])


def csv_files() -> Iterator[Hostile]:
    yield Hostile("wide.csv", 2, "columns are more than limits.columns (100000)", lambda: csv_row(MANY, "c{}") * 2)
    yield Hostile("wider.csv", 2, "400001 columns, far over limits.columns", lambda: csv_row(400_001, "c{}") * 2)
    yield Hostile("most.csv", 0, SOUND, lambda: csv_row(1000, "c{}") + csv_row(1000, "{}"), COLUMNS)
    yield Hostile("more.csv", 2, "limits.columns (1000)", lambda: csv_row(1001, "c{}") + csv_row(1001, "{}"), COLUMNS)
    yield Hostile("name.csv", 1, "limits.field_bytes (65536)", lambda: b"x" * (4 << 20) + b",b\n1,2\n", FIELD)
    yield Hostile("field.csv", 4, "FIELD_TOO_LARGE", lambda: b"a,b\n1," + b"x" * 65_537 + b"\n", FIELD)
    yield Hostile("just.csv", 0, SOUND, lambda: b"a,b\n1," + b"x" * 65_536 + b"\n", FIELD)
    yield Hostile("record.csv", 4, "RECORD_TOO_LARGE", lambda: csv_row(9, "c{}") + csv_row(9, "x" * 9000), RECORD)
    yield Hostile("quote.csv", 1, "byte 4", lambda: b'a,b\n"1,' + b"x,y\n" * 100_000)
    yield Hostile("cells.csv", 4, "BAD_WIDTH", lambda: b"a,b\n" + b"," * 2_000_000 + b"\n1,2\n")
    yield Hostile("declared.csv", 4, "INT_OVERFLOW", lambda: b"a,b\n1," + b"9" * 100_000 + b"\n",
                  setting("schema.columns.b.type=int64"))  # fmt: skip
    yield Hostile("power.csv", 4, "FLOAT_OVERFLOW", lambda: b"a,b\n1,1e999999999\n",
                  setting("schema.columns.b.type=float32"))  # fmt: skip
    labels = b"".join(b"c%d\n" % number for number in range(MANY))
    yield Hostile("labels.csv", 2, "100,000", lambda: b"label\n" + labels, setting("schema.columns.label.label=true"))
    yield from packed_text("csv", b"a,b\n1,")
    yield Hostile("bomb.csv.gz", 1, "a decompression bomb?", lambda: gzip_zeros(b"a\n", 300))
    yield Hostile("members.csv.gz", 0, SOUND, lambda: gzip.compress(b"a,b\n1,2\n") + gzip.compress(b"") * 20_000)
    yield Hostile("zeros.csv.zst", 4, "FIELD_TOO_LARGE", lambda: zstd(b"a,b\n1," + bytes(2 * ABOVE) + b"\n"))


def packed_text(kind: str, before: bytes) -> Iterator[Hostile]:
    """Yield a value above `limits.field_bytes` in each compression, and files that are cut."""
    packs: dict[str, Callable[[bytes], bytes]] = {
        "gz": partial(gzip.compress, compresslevel=1), "bz2": bz2.compress, "xz": partial(lzma.compress, preset=0),
        "zst": zstd,
    }  # fmt: skip
    end = b'"}\n' if kind == "jsonl" else b"\n"
    for suffix, pack in packs.items():
        if kind == "csv" or suffix == "zst":
            yield Hostile(f"field.{kind}.{suffix}", 4, "FIELD_TOO_LARGE",
                          lambda pack=pack: pack(before + b"x" * (4 << 20) + end), FIELD)  # fmt: skip
        cut = f"cut.{kind}.{suffix}"
        yield Hostile(cut, 1, cut, lambda pack=pack: pack(before + b"x" * 9000 + end)[:-9])


def jsonl_files() -> Iterator[Hostile]:
    yield Hostile("keys.jsonl", 2, "limits.columns (100000)", f"{keys(MANY)}\n".encode)
    yield Hostile("most.jsonl", 0, SOUND, f"{keys(1000)}\n".encode, COLUMNS)
    yield Hostile("lines.jsonl", 2, "limits.columns (1000)",
                  lambda: "".join(f'{{"k{number}":1}}\n' for number in range(1001)).encode(), COLUMNS)  # fmt: skip
    yield Hostile("nested.jsonl", 2, "limits.columns (1000)", f'{{"a":{keys(1001)}}}\n'.encode, COLUMNS)
    yield Hostile("list.jsonl", 2, "limits.columns (1000)", f'{{"a":[{keys(1001)}]}}\n'.encode, COLUMNS)
    yield Hostile("deep.jsonl", 4, "UNSUPPORTED", f'{{"a":[1]}}\n{{"a":{levels(65)}}}\n'.encode)
    yield Hostile("deeper.jsonl", 1, "nested more than 64 levels deep", f'{{"a":{levels(5000)}}}\n'.encode)
    yield Hostile("objects.jsonl", 1, "nested more than 64 levels deep",
                  ('{"a":' * 100_000 + "1" + "}" * 100_000 + "\n").encode)  # fmt: skip
    yield Hostile("open.jsonl", 1, "line 1", lambda: b'{"a":' + b"[" * 1_000_000 + b"\n")
    yield Hostile("values.jsonl", 4, "RECORD_TOO_LARGE",
                  lambda: b'{"a":[' + b"1," * 2_000_000 + b'1]}\n{"a":[1]}\n')  # fmt: skip
    yield Hostile("field.jsonl", 4, "FIELD_TOO_LARGE", lambda: b'{"a":"' + b"x" * 65_537 + b'"}\n{"a":"x"}\n', FIELD)
    yield Hostile("just.jsonl", 0, SOUND, lambda: b'{"a":"' + b"x" * 65_534 + b'"}\n', FIELD)
    yield Hostile("record.jsonl", 4, "RECORD_TOO_LARGE",
                  lambda: b'{"a":[' + b"1," * 33_000 + b'1]}\n{"a":[1]}\n', RECORD)  # fmt: skip
    yield Hostile("digits.jsonl", 4, "line 1", lambda: b'{"a":' + b"9" * 100_000 + b'}\n{"a":1}\n')
    yield Hostile("escape.jsonl", 4, "FIELD_TOO_LARGE",
                  lambda: b'{"a":"' + b"\\u0041" * 65_537 + b'"}\n{"a":"x"}\n', FIELD)  # fmt: skip
    yield Hostile("again.jsonl", 4, "line 1", ("{" + '"a":1,' * 100_000 + '"a":1}\n{"a":1}\n').encode)
    yield from packed_text("jsonl", b'{"b":"b"}\n{"b":"')


def txt_files() -> Iterator[Hostile]:
    yield Hostile("field.txt", 4, "FIELD_TOO_LARGE", lambda: b"x" * 65_537 + b"\ny\n", FIELD)
    yield Hostile("just.txt", 0, SOUND, lambda: b"x" * 65_536 + b"\ny\n", FIELD)
    yield Hostile("record.txt", 4, "RECORD_TOO_LARGE", lambda: b"x" * 65_537 + b"\ny\n", RECORD)
    yield from packed_text("txt", b"a\n")


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def footer(elements: bytes, count: int, rows: int = 0, groups: bytes = b"\x19\x0c") -> bytes:
    """Return a Parquet file without pages, of which the schema has so many elements."""
    head = b"\x15\x02\x19\xfc" + varint(count) + elements
    data = head + b"\x16" + varint(2 * rows) + groups + b"\0"
    return b"PAR1" + data + struct.pack("<I", len(data)) + b"PAR1"


def flat(columns: int) -> bytes:
    leaves = b"".join(b"\x15\x02\x25\x00\x18" + varint(len(name)) + name + b"\0"
                      for name in (b"c%d" % number for number in range(columns)))  # fmt: skip
    return footer(b"\x48\x04root\x15" + varint(2 * columns) + b"\0" + leaves, columns + 1)


def deep(groups: int) -> bytes:
    group = b"\x35\x00\x18\x01g\x15\x02\0"
    return footer(b"\x48\x04root\x15\x02\0" + group * groups + b"\x15\x02\x25\x00\x18\x01c\0", groups + 2)


def parquet(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return sink.getvalue().to_pybytes()


def parquet_files() -> Iterator[Hostile]:
    yield Hostile("wide.parquet", 2, "1000000 columns are more than limits.columns (100000)", lambda: flat(1_000_000))
    yield Hostile("more.parquet", 2, "100001 columns are more than limits.columns (100000)", lambda: flat(MANY))
    yield Hostile("empty.parquet", 2, "limits.columns (1000)", lambda: flat(1001), COLUMNS)
    yield Hostile("groups.parquet", 1, "nested more than 200 levels deep", lambda: deep(100_000))
    yield Hostile("footer.parquet", 1, "a footer of 4294967295 bytes",
                  lambda: b"PAR1" + bytes(100) + b"\xff\xff\xff\xffPAR1")  # fmt: skip
    yield Hostile("elements.parquet", 1, "footer is damaged", lambda: footer(b"", (1 << 31) - 1))
    yield Hostile("rows.parquet", 1, "rows, but its row groups add up to 0",
                  lambda: footer(b"\x48\x04root\x15\x02\0\x15\x02\x25\x00\x18\x01c\0", 2, rows=1 << 60))  # fmt: skip
    yield Hostile("field.parquet", 4, "FIELD_TOO_LARGE", lambda: parquet(pa.table({"a": ["x" * 65_537, "y"]})), FIELD)
    yield Hostile("just.parquet", 0, SOUND, lambda: parquet(pa.table({"a": ["x" * 65_536, "y"]})), FIELD)
    yield Hostile("record.parquet", 4, "RECORD_TOO_LARGE",
                  lambda: parquet(pa.table({"a": [[1 << 60] * 33_000, [1]]})), RECORD)  # fmt: skip
    yield Hostile("nulls.parquet", 1, "states 20000000 rows, whose values take",
                  lambda: parquet(pa.table({"a": pa.nulls(20_000_000)})))  # fmt: skip


def arrow(table: pa.Table, *, stream: bool = False, codec: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def stated(table: pa.Table, size: int, inflated: int, *, stream: bool, codec: str = "zstd") -> bytes:
    """Return a file in which one buffer states another size than it has when it is inflated."""
    start = {"zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}[codec]
    data = arrow(table, stream=stream, codec=codec)
    return data.replace(struct.pack("<q", size) + start, struct.pack("<q", inflated) + start)


def flat_table(columns: int) -> pa.Table:
    return pa.schema([(f"c{number}", pa.int8()) for number in range(columns)]).empty_table()


def deep_type(depth: int) -> pa.DataType:
    kind = pa.int8()
    for _ in range(depth):
        kind = pa.struct([("s", kind)])
    return kind


def free_lists() -> bytes:
    nulls = pa.nulls((1 << 31) - 1)
    rows = pa.Array.from_buffers(pa.list_(pa.null(), (1 << 31) - 1), 1, [None], children=[nulls])
    return arrow(pa.table({"a": rows}))


FREE: dict[str, Callable[[], pa.Array]] = {
    "nulls": lambda: pa.Array.from_buffers(pa.null(), 1 << 30, [None]),
    "empty": lambda: pa.Array.from_buffers(pa.binary(0), 1 << 30, [None, pa.py_buffer(b"")]),
    "runs": lambda: pa.RunEndEncodedArray.from_arrays(pa.array([1 << 30], pa.int32()), pa.array([7])),
}
"""Rows that take no bytes."""


def arrow_files() -> Iterator[Hostile]:
    for form, stream in (("arrow", False), ("arrows", True)):
        yield from every_arrow(form, partial(arrow, stream=stream), stream=stream)
    yield Hostile("lists.arrow", 1, "values in its rows, whose values take", free_lists)
    yield Hostile("metadata.arrows", 1, "no message of Arrow", lambda: b"\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(99),
                  setting("input.format=arrow"))  # fmt: skip
    yield Hostile(
        "footer.arrow", 1, "is not a sound Arrow file", lambda: b"ARROW1\0\0" + bytes(99) + b"\xff\xff\xff\x7fARROW1"
    )
    yield Hostile("old.feather", 1, "Feather V1", lambda: b"FEA1" + bytes(99) + b"FEA1")
    yield Hostile(
        "hole.arrow", 1, "is not a sound Arrow file", lambda: Holes(4 << 30, {0: b"ARROW1", (4 << 30) - 6: b"ARROW1"})
    )


def every_arrow(form: str, read: Callable[..., bytes], *, stream: bool) -> Iterator[Hostile]:
    """Yield what a file of either format may hold."""
    always = setting("input.format=arrow") if stream else ()

    def hostile(name: str, code: int, says: str, data: Callable[[], bytes], *options: str) -> Hostile:
        return Hostile(f"{name}.{form}", code, says, data, (*always, *options))

    def mebi(inflated: int) -> bytes:
        table = pa.table({"a": pa.array([bytes(1 << 20)], pa.large_binary())})
        return stated(table, 1 << 20, inflated, stream=stream)

    def texts(inflated: int) -> bytes:
        table = pa.table({"a": pa.array(["x" * (1 << 20)]).dictionary_encode()})
        return stated(table, 1 << 20, inflated, stream=stream)

    most = 256 << 20
    wide = f"{MANY} columns are more than limits.columns (100000)"
    yield hostile("wide", 2, wide, lambda: read(flat_table(MANY)))
    yield hostile(
        "nested", 2, "1001 columns are more", lambda: read(pa.table({"a": [json.loads(keys(1001))]})), *COLUMNS
    )
    yield hostile("deep", 1, f"deep.{form}", partial(deep_file, stream=stream))
    for name, rows in FREE.items():
        yield hostile(name, 1, "states 1073741824 rows, whose values take",
                      lambda rows=rows: read(pa.table({"a": rows()})))  # fmt: skip
    yield hostile("batch", 1, "--set limits.batch_bytes=2684354", lambda: mebi(most + 1))
    yield hostile("values", 1, "what its dictionaries hold", lambda: texts(most + 1))
    yield hostile("lies", 1, f"lies.{form}", lambda: mebi(255 << 20))
    yield hostile("field", 4, "FIELD_TOO_LARGE", lambda: read(pa.table({"a": ["x" * 65_537, "y"]})), *FIELD)
    yield hostile("just", 0, SOUND, lambda: read(pa.table({"a": ["x" * 65_536, "y"]}), codec="lz4"), *FIELD)


def deep_file(*, stream: bool) -> bytes:
    return arrow(pa.schema([("a", deep_type(1000))]).empty_table(), stream=stream)


def hostile_tables() -> Iterator[Hostile]:
    """Yield hostile text and tables."""
    yield from csv_files()
    yield from jsonl_files()
    yield from txt_files()
    yield from parquet_files()
    yield from arrow_files()
