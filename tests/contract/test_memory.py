"""Memory is bounded by a few blocks per worker, whatever the size of the data."""

from __future__ import annotations

import io
import json
import shutil
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.transforms.dataset.storage.manifest_files import read_manifest

from ..memory import Ended, Measured, peak_at, peak_bytes, run_sampled, write_floats
from ..tiers import CAMPAIGN, but_some_thorough

pytestmark = pytest.mark.engine

LIMIT = 600e6
SECONDS = 30
OUTPUT = 3e9
GROUP_ROWS, SMALL_GROUPS, LARGE_GROUPS = 50_000, 4, 16
"""The output of a row group is 53 MB, and two of them are in memory at a time."""


def measured(folder: Path, groups: int) -> Measured:
    write_floats(folder / "a.parquet", groups, GROUP_ROWS)
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", "a.parquet", "-o", "out", "-q", "--workers", "2"]
    peak = peak_bytes(command, folder)
    manifest = read_manifest(str(folder / "out"))
    assert manifest.counts.written == groups * GROUP_ROWS
    shutil.rmtree(folder / "out")
    return Measured(manifest.splits["train"].bytes, peak)


@pytest.mark.thorough("two sizes are converted while memory is sampled")
def test_three_gigabytes_of_output_would_stay_under_600_megabytes_of_memory(tmp_path: Path) -> None:
    small, large = (measured(tmp_path, groups) for groups in (SMALL_GROUPS, LARGE_GROUPS))
    assert large.written > 800e6
    assert large.peak < LIMIT
    assert peak_at(OUTPUT, small, large) < LIMIT, (small, large)


def converted(folder: Path, name: str, *options: str) -> Ended:
    """Convert a file with two worker processes; it ends within the limits."""
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", name, "-o", "out", "--workers", "2", *options]
    ended = run_sampled(command, folder)
    assert ended.peak < LIMIT, ended
    assert ended.seconds < SECONDS, ended
    return ended


def counts(folder: Path) -> int:
    return read_manifest(str(folder / "out")).counts.written


LARGE: dict[str, Callable[[Path, str], object]] = {
    "csv": lambda path, value: path.write_text(f"a,b\n1,x\n2,{value}\n"),
    "jsonl": lambda path, value: path.write_text(f'{{"a":1,"b":"x"}}\n{{"a":2,"b":"{value}"}}\n'),
    "txt": lambda path, value: path.write_text(f"x\n{value}\n"),
    "parquet": lambda path, value: pq.write_table(pa.table({"a": [1, 2], "b": ["x", value]}), path),
}
"""How a file of two rows is written, of which one has a large value."""


class TestSmallInput:
    """Input of a few megabytes ends within the same memory, whatever it states or repeats."""

    def test_lines_of_200_000_different_keys_are_refused_by_the_limit_of_columns(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text("".join(f'{{"k{i}":1}}\n' for i in range(200_000)))
        ended = converted(tmp_path, "a.jsonl")
        assert ended.code != 0
        assert "200000 keys are more than limits.columns (100000)" in ended.text

    def test_different_keys_in_nested_objects_are_refused_by_the_limit_of_columns(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text("".join(f'{{"a":{{"b":[{{"k{i}":1}}]}}}}\n' for i in range(2_000)))
        ended = converted(tmp_path, "a.jsonl", "--set", "limits.columns=1999")
        assert ended.code != 0
        assert "2000 keys are more than limits.columns (1999)" in ended.text

    @pytest.mark.thorough("rows of 3,000 columns are written")
    def test_rows_with_few_of_many_nested_keys_are_converted(self, tmp_path: Path) -> None:
        choose = np.random.default_rng(1)
        rows = ({"a": {f"k{key}": int(key) for key in choose.choice(3000, 20, replace=False)}} for _ in range(5_000))
        (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        ended = converted(tmp_path, "a.jsonl")
        assert (ended.code, counts(tmp_path)) == (0, 5_000), ended.text

    @pytest.mark.thorough("records of 20 MB are read")
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("a.jsonl", "1.5"),
            pytest.param("a.jsonl", '{"b":1}', marks=CAMPAIGN),
            pytest.param("a.jsonl", "NaN", marks=CAMPAIGN),
            ("a.zip", '"a"'),
        ],
    )
    def test_a_record_of_millions_of_values_is_a_reject(self, tmp_path: Path, name: str, value: str) -> None:
        line = f'{{"a":[{",".join([value] * (20_000_000 // (len(value) + 1)))}]}}'
        if name == "a.zip":
            with zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
                packed.writestr("0.json", line)
                packed.writestr("1.json", f'{{"a":[{value}]}}')
        else:
            (tmp_path / name).write_text(f'{line}\n{{"a":[{value}]}}\n')
        ended = converted(tmp_path, name)
        assert ended.code == 4, ended.text
        assert "RECORD_TOO_LARGE: more than 2,000,000 values in one line of JSON" in ended.text

    @pytest.mark.thorough("a record of two million values is read")
    def test_lines_of_two_million_values_that_pyarrow_refuses_are_parsed_one_at_a_time(self, tmp_path: Path) -> None:
        line = f'{{"a":[{",".join(["1.5"] * 1_900_000)},NaN]}}\n'
        (tmp_path / "a.jsonl").write_text(line * 4)
        ended = converted(tmp_path, "a.jsonl")
        assert (ended.code, counts(tmp_path)) == (0, 4), ended.text

    @pytest.mark.thorough("a record of 12 MB is read")
    def test_commas_in_text_are_no_values(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text(f'{{"a":"{",".join(["1"] * 6_000_000)}"}}\n')
        ended = converted(tmp_path, "a.jsonl")
        assert (ended.code, counts(tmp_path)) == (0, 1), ended.text

    @pytest.mark.thorough("5,000 columns are written")
    def test_lines_that_each_have_another_key_are_converted(self, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl").write_text("".join(f'{{"k{i}":1}}\n' for i in range(5_000)))
        ended = converted(tmp_path, "a.jsonl")
        assert (ended.code, counts(tmp_path)) == (0, 5_000), ended.text

    @pytest.mark.thorough("20,000 rows of 3,000 columns are written")
    def test_lines_with_few_of_many_keys_are_converted(self, tmp_path: Path) -> None:
        choose = np.random.default_rng(1)
        rows = ({f"k{key}": int(key) for key in choose.choice(3000, 20, replace=False)} for _ in range(20_000))
        (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        ended = converted(tmp_path, "a.jsonl")
        assert (ended.code, counts(tmp_path)) == (0, 20_000), ended.text

    @pytest.mark.thorough("25,000 columns are written")
    def test_tables_of_25_000_columns_are_converted(self, tmp_path: Path) -> None:
        columns = range(25_000)
        lines = (",".join(f"c{i}" for i in columns), *(",".join(map(str, columns)) for _ in range(2)))
        (tmp_path / "a.csv").write_text("\n".join(lines))
        ended = converted(tmp_path, "a.csv")
        assert (ended.code, counts(tmp_path)) == (0, 2), ended.text

    @pytest.mark.parametrize("name", but_some_thorough([], LARGE, "values of 63 MiB are read", ["csv", "parquet"]))
    def test_the_largest_values_are_converted_two_at_a_time(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "in").mkdir()
        for number in range(2):
            LARGE[name](tmp_path / "in" / f"{number}.{name}", "x" * (63 << 20))
        ended = converted(tmp_path, "in")
        assert (ended.code, counts(tmp_path)) == (0, 4), ended.text

    @pytest.mark.thorough("values of 200 MiB are read")
    @pytest.mark.parametrize(
        ("name", "times"),
        [
            ("csv", 3),
            ("jsonl", 6),
            pytest.param("txt", 6, marks=CAMPAIGN),
            pytest.param("parquet", 3, marks=CAMPAIGN),
        ],
    )
    def test_a_value_above_the_limits_takes_a_few_times_its_size(self, tmp_path: Path, name: str, times: int) -> None:
        size = 200 << 20
        LARGE[name](tmp_path / f"a.{name}", "x" * size)
        command = [sys.executable, "-m", "shardmill.pipelines", "convert", f"a.{name}", "-o", "out", "--workers", "2"]
        peak = peak_bytes([*command, "--set", f"limits.field_bytes={size}"], tmp_path)
        assert counts(tmp_path) == 2
        assert peak < 250e6 + times * size  # what two workers and their launcher take without it, and a little

    @pytest.mark.parametrize("codec", ["zstd", "lz4"])
    def test_a_compressed_batch_that_states_gigabytes_is_refused_before_it_is_inflated(
        self, tmp_path: Path, codec: str
    ) -> None:
        write_arrow(tmp_path / "a.arrow", pa.table({"a": pa.array([bytes(1 << 20)], pa.large_binary())}), codec)
        data = (tmp_path / "a.arrow").read_bytes()
        start = {"zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}[codec]
        stated = (1 << 20).to_bytes(8, "little") + start
        assert data.count(stated) == 1
        (tmp_path / "a.arrow").write_bytes(data.replace(stated, (3 << 30).to_bytes(8, "little") + start))
        ended = converted(tmp_path, "a.arrow")
        assert ended.code != 0
        assert "a.arrow: its record batch 0 takes 32212254" in ended.text
        assert "write the file again in smaller batches: python -c" in ended.text

    @pytest.mark.parametrize("codec", but_some_thorough([], ["zstd", "lz4"], "400 MB are written", ["zstd"]))
    def test_sound_batches_of_zeros_are_inflated_by_one_worker_at_a_time(self, tmp_path: Path, codec: str) -> None:
        table = pa.table({"a": pa.array([bytes(1 << 20)] * 100, pa.binary())})
        write_arrow(tmp_path / "a.arrow", pa.concat_tables([table] * 4), codec)
        ended = converted(tmp_path, "a.arrow")
        assert (ended.code, counts(tmp_path)) == (0, 400), ended.text

    @pytest.mark.parametrize(
        "kind", but_some_thorough([], ["dictionary", "runs", "views"], "400 MB are written", ["dictionary", "views"])
    )
    def test_texts_that_rows_share_are_spread_out_by_their_bytes(self, tmp_path: Path, kind: str) -> None:
        texts = pa.array([f"x{i}" * 30_000 for i in range(20)])
        rows = np.arange(4_000) // 200
        shared = {
            "dictionary": lambda: pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), texts),
            "runs": lambda: pa.RunEndEncodedArray.from_arrays(pa.array(np.arange(1, 21) * 200, pa.int32()), texts),
            "views": lambda: views_of(texts, rows),
        }
        write_arrow(tmp_path / "a.arrow", pa.table({"a": shared[kind]()}))
        assert (tmp_path / "a.arrow").stat().st_size < 3e6
        ended = converted(tmp_path, "a.arrow")
        assert (ended.code, counts(tmp_path)) == (0, 4_000), ended.text

    @pytest.mark.parametrize("kind", ["empty values", "nulls", "runs"])
    def test_rows_that_take_no_bytes_are_refused_by_their_number(self, tmp_path: Path, kind: str) -> None:
        rows = 1 << 30
        free = {
            "empty values": lambda: pa.Array.from_buffers(pa.binary(0), rows, [None, pa.py_buffer(b"")]),
            "nulls": lambda: pa.Array.from_buffers(pa.null(), rows, [None]),
            "runs": lambda: pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array([7])),
        }
        write_arrow(tmp_path / "a.arrow", pa.table({"a": free[kind]()}))
        ended = converted(tmp_path, "a.arrow")
        assert ended.code != 0
        assert f"a.arrow: states {rows} rows, whose values take" in ended.text


def views_of(texts: pa.Array, rows: np.ndarray) -> pa.Array:
    """Return texts as views of the same bytes, some of them in many rows."""
    offsets, data = (texts.buffers()[1], texts.buffers()[2])
    starts = np.frombuffer(offsets, np.int32, len(texts) + 1)
    prefixes = [int.from_bytes(data[start : start + 4].to_pybytes(), "little") for start in starts[:-1]]
    words = np.stack([np.diff(starts), prefixes, np.zeros(len(texts)), starts[:-1]], axis=1).astype(np.int32)
    return pa.Array.from_buffers(pa.string_view(), len(rows), [None, pa.py_buffer(words[rows].tobytes()), data])


def write_arrow(path: Path, table: pa.Table, codec: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(path, table.schema, options=options) as writer:
        writer.write_table(table)


PNG = b"\x89PNG\r\n\x1a\n"


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_holes(path: Path, members: int, size: int) -> None:
    """Write a tar archive of one sample, whose members are holes of the file."""
    with path.open("wb") as file:
        for number in range(members):
            info = tarfile.TarInfo(f"1.{chr(97 + number // 26)}{chr(97 + number % 26)}.jpg")
            info.size = size
            file.write(info.tobuf())
            file.seek(size, 1)
        file.write(bytes(1024))


def write_packed_hole(path: Path) -> None:
    """Write a zip archive with a member of ten bytes, which states that it has 3 GB packed."""
    size, at = 3 << 30, 0
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, 0, size, 10, 5, 0, 0, 0, 0, 0, at) + b"a.bin"
    with path.open("wb") as file:
        file.seek(size + 100)
        file.write(entry + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(entry), size + 100, 0))


def write_again(path: Path) -> None:
    """Write a zip archive whose 300 members are the same 100 MB."""
    data = zlib.compress(bytes(100 << 20), 1, -15)
    entry = (b"PK\x01\x02", 20, 20, 0, 8, 0, 0, zlib.crc32(bytes(100 << 20)), len(data), 100 << 20, 7, 0, 0, 0, 0, 0, 0)
    entries = b"".join(struct.pack("<4s6H3L5H2L", *entry) + b"%03d.jpg" % number for number in range(300))
    header = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 8, 0, 0, entry[7], len(data), 100 << 20, 7, 0) + b"000.jpg"
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 300, 300, len(entries), len(header) + len(data), 0)
    path.write_bytes(header + data + entries + end)


def picture(size: int) -> bytes:
    """Return a PNG whose pixels nobody decodes, of so many bytes."""
    start = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 7000, 7000, 8, 6, 0, 0, 0))
    end = png_chunk(b"IEND", b"")
    pixels = bytes(size - len(PNG) - len(start) - len(end) - 12)
    return PNG + start + png_chunk(b"IDAT", pixels) + end


def write_pictures(path: Path) -> None:
    """Write two pictures of the largest size that is allowed."""
    data = picture(256 << 20)
    names = [f"{number}.png" for number in range(2)]
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            for name in names:
                packed.writestr(name, data)
    elif path.suffix:
        with tarfile.open(path, "w:gz", compresslevel=1) as archive:
            for name in names:
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    else:
        path.mkdir()
        for name in names:
            (path / name).write_bytes(data)


def write_members(path: Path, members: dict[str, bytes]) -> None:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
            for name, data in members.items():
                packed.writestr(name, data)
        return
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


@pytest.mark.thorough("two samples of 300 MB are read")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("json", "a.zip"),
        ("pictures", "a.tar"),
        pytest.param("json", "a.tar", marks=CAMPAIGN),
        pytest.param("pictures", "a.zip", marks=CAMPAIGN),
    ],
)
def test_large_samples_are_held_by_one_worker_at_a_time(tmp_path: Path, name: str, kind: str) -> None:
    size = 100 << 20
    if kind == "json":
        text = json.dumps({"a": "x" * (size // 2), "b": "y" * (size // 2)}).encode()
        members, bound = {"0.json": text, "1.json": text}, 6.0 * size
    else:
        members, bound = {f"{sample}.{view}.png": picture(size) for sample in "01" for view in "abc"}, 4.5 * size
    write_members(tmp_path / name, members)
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", name, "-o", "out", "--workers", "2"]
    peak = peak_bytes(command, tmp_path)
    assert counts(tmp_path) == 2
    assert peak < 250e6 + bound


@pytest.mark.parametrize(
    "name", but_some_thorough([], ["a.zip", "a.tar.gz", "folder"], "500 MB are written", ["a.tar.gz"])
)
def test_the_largest_files_of_pictures_are_held_by_one_worker_at_a_time(tmp_path: Path, name: str) -> None:
    write_pictures(tmp_path / name)
    ended = converted(tmp_path, name)
    assert (ended.code, counts(tmp_path)) == (0, 2), ended.text


@pytest.mark.thorough("four commands run while memory is sampled")
@pytest.mark.parametrize(
    ("name", "make", "code", "text"),
    [
        ("large.tar", partial(write_holes, members=12, size=250 << 20), 4, "RECORD_TOO_LARGE"),
        ("many.tar", partial(write_holes, members=50, size=60 << 20), 4, "RECORD_TOO_LARGE"),
        ("hole.zip", write_packed_hole, 4, "bytes are packed there, and 10 unpacked"),
        ("again.zip", write_again, 1, "two of its members have the same bytes"),
    ],
)
def test_archives_whose_headers_state_too_much_are_rejects_in_bounded_memory(
    tmp_path: Path, name: str, make: Callable[[Path], None], code: int, text: str
) -> None:
    make(tmp_path / name)
    ended = converted(tmp_path, name)
    assert ended.code == code, ended.text
    assert text in ended.text


ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "a.txt": (b"", b"\n"),
    "a.jsonl": (b'{"b":1}\n{"a":"', b'"}\n'),
    "a.csv": (b"a,b\n1,x\n2,", b"\n"),
}
"""What is before and after the x's of a value, in a file of each format."""


def write_endless(path: Path, size: int) -> None:
    """Write a file whose one value is far above `limits.field_bytes`; packed by zstd it is small."""
    before, after = ENDLESS[path.name.removesuffix(".zst")]
    with pa.output_stream(str(path), compression="zstd" if path.suffix == ".zst" else None) as file:
        file.write(before)
        for _ in range(size >> 20):
            file.write(b"x" * (1 << 20))
        file.write(after)


@pytest.mark.parametrize(
    "words",
    but_some_thorough(
        [],
        [
            f"{command} {name}{suffix}"
            for command in ("convert", "convert --dry-run", "init")
            for name in ENDLESS
            for suffix in ("", ".zst")
        ],
        "whole commands read 900 MB of text while memory is sampled",
        ["convert a.csv", "convert a.jsonl.zst", "convert --dry-run a.txt", "init a.csv.zst"],
    ),
)
def test_one_value_of_900_megabytes_takes_less_than_600_packed_or_not(tmp_path: Path, words: str) -> None:
    *command, name = words.split()
    write_endless(tmp_path / name, 900 << 20)
    output = [] if command == ["init"] else ["-o", "out", "-q", "--workers", "2"]
    code = 4 if command == ["convert"] else 0
    whole = [sys.executable, "-m", "shardmill.pipelines", *command, name, *output]
    ended = run_sampled(whole, tmp_path)
    assert ended.code == code, ended.text
    assert ended.peak < LIMIT, ended


def write_deep(path: Path) -> None:
    """Write a PNG of 16 bits and 49 million pixels, in RGB with alpha."""

    row = b"\0" + struct.pack(">4H", 300, 600, 900, 40_000) * 7000
    stream = zlib.compressobj(1)
    rows = b"".join(stream.compress(row) for _ in range(7000)) + stream.flush()
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", 7000, 7000, 16, 6, 0, 0, 0))
    path.write_bytes(PNG + head + png_chunk(b"IDAT", rows) + png_chunk(b"IEND", b""))


def write_inks(path: Path) -> None:
    Image.new("CMYK", (7000, 7000), (10, 20, 30, 40)).save(path, progressive=True)


def write_alpha(path: Path) -> None:
    """Write two pictures, the other one beside the first."""
    Image.new("RGBA", (7000, 7000), (1, 2, 3, 4)).save(path)
    path.with_name("b.png").write_bytes(path.read_bytes())


@pytest.mark.thorough("pictures of 49 million pixels are decoded while memory is sampled")
@pytest.mark.parametrize(
    ("name", "write", "option"),
    [
        ("a.png", write_alpha, "image.resize=100"),
        ("a.jpg", write_inks, "input.check=decode"),
        pytest.param("a.png", write_deep, "image.resize=100", marks=CAMPAIGN),
        pytest.param("a.jpg", write_inks, "image.resize=100", marks=CAMPAIGN),
        pytest.param("a.png", write_alpha, "input.check=decode", marks=CAMPAIGN),
        pytest.param("a.png", write_deep, "input.check=decode", marks=CAMPAIGN),
    ],
)
def test_the_largest_pictures_are_decoded_in_bounded_memory(
    tmp_path: Path, name: str, write: Callable[[Path], None], option: str
) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / name)
    ended = converted(tmp_path, "in", "--set", option)
    assert ended.code == 0, ended.text
