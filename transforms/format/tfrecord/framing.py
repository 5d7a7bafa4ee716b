"""Frame records as TFRecord files do: lengths, CRC32C of many at once, and the digest that records add up to.

A CRC is affine over GF(2): `crc(a ++ b) == shift(crc(a), len(b)) ^ crc(b)`, where `shift` multiplies by x**(8 * len(b))
modulo the polynomial. Three things follow from that one line: checksums of parts combine without reading the parts,
the checksum of a range is known from those of two prefixes, and the checksum of an 8-byte length is the exclusive or
of one table entry for each of its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from crc32c import crc32c as _crc32c

from ..batches.arrow_memory import BUFFER_LIMIT, I64, Views, concatenate, gather, inline_views, reference_views
from ..batches.rows import Frames

# TFRecord framing: each record between a header and a footer.
#
#     uint64 length | uint32 masked CRC32C of the length | payload | uint32 masked CRC32C of the payload
#
# All numbers are little-endian. A batch is framed by one concatenation: a matrix of three views a record, where header
# and footer are in the view itself and the payload is a reference to the bytes that the encoder wrote:
#
#     [ 12 | length, crc ] [ n | ──▶ payload ] [ 4 | crc ]
#
# Of records that are read, `Payloads` says where they are: one buffer, and a start and an end for each.


HEADER_BYTES: Final = 12
FOOTER_BYTES: Final = 4
FRAME_BYTES: Final = HEADER_BYTES + FOOTER_BYTES

_RUN_RECORDS: Final = 8192  # matrix and records of a run stay in the second cache


def header_words(lengths: I64) -> U32:
    """Return the header of each record with these payload lengths in bytes: `uint32[n, 3]`, in the file's order."""
    words = np.empty((len(lengths), 3), np.uint32)
    words[:, 0] = lengths & 0xFFFFFFFF
    words[:, 1] = lengths >> 32
    words[:, 2] = mask_each(crc32c_of_lengths(lengths))
    return words


def header_views(lengths: I64) -> Views:
    return inline_views(header_words(lengths), HEADER_BYTES)


def footer_views(crcs: U32) -> Views:
    """Return the footer of each record with these (unmasked) payload CRC32Cs."""
    return inline_views(mask_each(crcs).reshape(-1, 1), FOOTER_BYTES)


def framed_crcs(lengths: I64, crcs: U32) -> U32:
    """Return the CRC32C of each record with its framing, from the length and the CRC32C of its payload."""
    of_lengths = crc32c_of_lengths(lengths)
    headers = crc32c_followed_by(of_lengths, mask_each(of_lengths))
    return crc32c_followed_by(crc32c_shift_each(headers, lengths) ^ crcs, mask_each(crcs))


def frame_records(
    payloads: pa.LargeBinaryArray, *, run_records: int = _RUN_RECORDS, reach: int = BUFFER_LIMIT
) -> Frames:
    """Frame `run_records` at once, no more bytes than views `reach`. Raises `ValueError` for a null, or 2 GiB."""
    if payloads.null_count:
        raise ValueError("a record's payload is null")
    if not len(payloads):
        return Frames((), np.zeros(0, np.int64), 0)
    _, offset_buffer, data = payloads.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[payloads.offset : payloads.offset + len(payloads) + 1]
    runs = _runs(offsets, run_records, reach)
    return join_frames([_frame_run(data, offsets[start : end + 1]) for start, end in runs])


def _runs(offsets: I64, most: int, reach: int) -> Iterator[tuple[int, int]]:
    """Cut records into runs that are framed at once: short enough to stay in cache, and in reach of a view's int32."""
    start, records = 0, len(offsets) - 1
    while start < records:
        near = int(np.searchsorted(offsets, offsets[start] + reach, "right")) - 1
        end = min(max(near, start + 1), start + most, records)
        yield start, end
        start = end


def _frame_run(data: pa.Buffer | None, offsets: I64) -> Frames:
    first = int(offsets[0])
    payloads = pa.py_buffer(b"") if data is None else data.slice(first, int(offsets[-1]) - first)
    lengths = np.diff(offsets)
    crcs = crc32c_each(payloads, lengths)
    pieces = (header_views(lengths), reference_views(offsets[:-1] - first, lengths, payloads, 0), footer_views(crcs))
    framed, ends = gather(pieces, len(lengths), (payloads,))
    return Frames((framed,), ends[:, -1], record_digests(lengths, crcs))


def join_frames(parts: Sequence[Frames]) -> Frames:
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(part.bytes for part in parts)])
    ends = [part.ends + start for part, start in zip(parts, starts, strict=False)]
    crcs = [part.crcs for part in parts if part.crcs is not None]
    return Frames(
        tuple(buffer for part in parts for buffer in part.buffers),
        np.concatenate(ends) if ends else np.zeros(0, np.int64),
        add_digests(part.digest for part in parts),
        np.concatenate(crcs) if crcs and len(crcs) == len(parts) else None,
    )


U8 = npt.NDArray[np.uint8]

_FEW_BYTES: Final = 1 << 14
"""Up to here it costs less to name each byte than to make a view of each piece."""


@dataclass(frozen=True, slots=True, eq=False)
class Payloads:
    """Payload i is `data[starts[i]:ends[i]]`.

    `data` is the uint8 buffer, with anything between the payloads (TFRecord headers and footers); `starts` and `ends`
    are int64, one for each record.
    """

    data: U8
    starts: I64
    ends: I64

    @classmethod
    def from_bytes(cls, payloads: Sequence[bytes]) -> Payloads:
        ends = np.cumsum(np.fromiter((len(p) for p in payloads), np.int64, len(payloads)), dtype=np.int64)
        data = np.frombuffer(b"".join(payloads), np.uint8)
        return cls(data, np.concatenate((np.zeros(1, np.int64), ends))[: len(ends)], ends)

    @classmethod
    def from_arrow(cls, payloads: pa.Array) -> Payloads:
        """Raise `ValueError` where a payload is null. Binary and large binary are not copied."""
        if payloads.null_count:
            raise ValueError("a payload is null; a record has bytes, if none at all")
        if not (pa.types.is_binary(payloads.type) or pa.types.is_large_binary(payloads.type)):
            payloads = payloads.cast(pa.large_binary())
        _, offsets, data = payloads.buffers()
        bounds = np.zeros(1, np.int64)
        if len(payloads):
            width = "<i4" if pa.types.is_binary(payloads.type) else "<i8"
            bounds = np.frombuffer(offsets, width)[payloads.offset :][: len(payloads) + 1].astype(np.int64)
        bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
        return cls(bytes_, bounds[:-1], bounds[1:])

    def to_arrow(self) -> pa.LargeBinaryArray:
        """Return the payloads as one Arrow array, in a new buffer of nothing else."""
        sizes = self.ends - self.starts
        bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(self), [None, pa.py_buffer(bounds), pa.py_buffer(self.gather(self.starts, sizes))]
        )

    def take(self, rows: I64 | npt.NDArray[np.bool_]) -> Payloads:
        return Payloads(self.data, self.starts[rows], self.ends[rows])

    def head(self, stop: int) -> Payloads:
        return Payloads(self.data, self.starts[:stop], self.ends[:stop])

    def tail(self, start: int) -> Payloads:
        return Payloads(self.data, self.starts[start:], self.ends[start:])

    def gather(self, starts: I64, sizes: I64) -> U8:
        return gather_pieces(self.data, starts, sizes)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> bytes:
        return self.data[self.starts[row] : self.ends[row]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        view = self.data.data
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield bytes(view[start:end])


def gather_pieces(data: U8, starts: I64, sizes: I64) -> U8:
    """Return the pieces `data[start:start + size]`, one after the other in a new buffer, at memcpy speed."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    if total <= _FEW_BYTES:
        return data[np.repeat(starts - (ends - sizes), sizes) + np.arange(total)]
    used = sizes > 0
    low, high = int(starts[used].min()), int((starts + sizes)[used].max())
    if high - low > BUFFER_LIMIT:
        view = data.data
        pairs = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        return np.frombuffer(b"".join([view[start:end] for start, end in pairs]), np.uint8)
    window = pa.py_buffer(data[low:high])
    views = reference_views(np.where(used, starts - low, 0), sizes, window, 0)
    joined, _ = concatenate(views, (window,))
    return np.frombuffer(joined, np.uint8)[:total]


_POLYNOMIAL: Final = 0x82F63B78  # Castagnoli, bits reflected: the highest power of x is the lowest bit
_MASK_DELTA: Final = 0xA282EAD8  # the TFRecord format's constant
_MASK_32: Final = 0xFFFFFFFF
_MASK_64: Final = (1 << 64) - 1
_ORDER: Final = (1 << 31) - 1  # x to this power is 1 modulo the polynomial, and 8 is prime to it
_GAMMA: Final = 0x9E3779B97F4A7C15  # SplitMix64's increment: 2**64 divided by the golden ratio

U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]


def crc32c(data: Any, crc: int = 0) -> int:
    """Return the CRC32C of a buffer that follows bytes whose CRC32C is `crc`.

    >>> f"{crc32c(b'123456789'):08x}"
    'e3069283'
    """
    return int(_crc32c(data, crc))


def crc32c_each(data: Any, lengths: npt.NDArray[np.int64]) -> U32:
    """Return the CRC32C of each of the pieces that follow each other in a buffer; their lengths add up to its size.

    One call a piece is what it costs (0.1 us).
    """
    return np.fromiter(map(_crc32c, cut(data, lengths)), np.uint32, len(lengths))


def crc32c_of_pieces(data: memoryview, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> U32:
    pieces = map(data.__getitem__, map(slice, starts.tolist(), ends.tolist()))
    return np.fromiter(map(_crc32c, pieces), np.uint32, len(starts))


def cut(data: Any, lengths: npt.NDArray[np.int64]) -> Iterator[bytes]:
    """Return the pieces that follow each other in a buffer.

    Reading them off a `BytesIO` is the cheapest way in Python to cut them, at 20 ns each, and copies the buffer once,
    at memory speed.
    """
    return map(BytesIO(data).read, lengths.tolist())


def mask(crc: int) -> int:
    """Return the masked form of a CRC that TFRecord stores: rotated right by 15 bits, plus a constant.

    >>> mask(0) == 0xA282EAD8
    True
    """
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & _MASK_32


def unmask(masked: int) -> int:
    rotated = (masked - _MASK_DELTA) & _MASK_32
    return ((rotated >> 17) | (rotated << 15)) & _MASK_32


def mask_each(crcs: U32) -> U32:
    return ((crcs >> np.uint32(15)) | (crcs << np.uint32(17))) + np.uint32(_MASK_DELTA)


def unmask_each(masked: U32) -> U32:
    rotated = masked - np.uint32(_MASK_DELTA)
    return (rotated >> np.uint32(17)) | (rotated << np.uint32(15))


def _multiply(a: int, b: int) -> int:
    """Multiply two polynomials modulo CRC32C's; 0x80000000 is 1, since bits are reflected."""
    product = 0
    bit = 1 << 31
    while a:
        if a & bit:
            product ^= b
            a ^= bit
        bit >>= 1
        b = (b >> 1) ^ _POLYNOMIAL if b & 1 else b >> 1
    return product


def _byte_powers() -> tuple[int, ...]:
    """Return x**(8 * 2**k) for k below 64: a length below 2**64 picks the factors of its shift from them."""
    powers = [1 << (31 - 8)]
    while len(powers) < 64:
        powers.append(_multiply(powers[-1], powers[-1]))
    return tuple(powers)


_BYTE_POWERS: Final = _byte_powers()


def _shift(crc: int, length: int) -> int:
    """Return the CRC register after `length` zero bytes, by one multiplication for each bit set in `length`."""
    index = 0
    while length and crc:
        if length & 1:
            crc = _multiply(crc, _BYTE_POWERS[index])
        length >>= 1
        index += 1
    return crc


def crc32c_combine(first: int, second: int, second_length: int) -> int:
    """Return the CRC32C of two byte strings, one after the other, from those of each; `second_length` is in bytes.

    >>> crc32c_combine(crc32c(b"1234"), crc32c(b"56789"), 5) == crc32c(b"123456789")
    True
    """
    return _shift(first, second_length) ^ second


def crc32c_range(before: int, through: int, length: int) -> int:
    """Return the CRC32C of the last `length` bytes of a prefix.

    `through` is the CRC32C of the whole prefix, `before` that of the prefix without those bytes.

    >>> crc32c_range(crc32c(b"1234"), crc32c(b"123456789"), 5) == crc32c(b"56789")
    True
    """
    return _shift(before, length) ^ through


@lru_cache(maxsize=1)
def _shift_tables() -> U32:
    """Return what `d * 16**p` zero bytes make of each byte of a register: `uint32[p, d, 4 * 256]`, made in 2 ms."""
    powers = np.empty((8, 16, 1024), np.uint32)
    powers[:, 0] = (np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]).reshape(-1)
    by_byte = np.array([_shift(1 << bit, 1) for bit in range(32)], np.uint32)
    bits = (powers[0, 0][:, None] >> np.arange(32, dtype=np.uint32)) & 1
    step: U32 = np.bitwise_xor.reduce(bits.astype(np.uint32) * by_byte, axis=1)
    for position in range(8):
        for digit in range(1, 16):
            powers[position, digit] = _look_up(step, powers[position, digit - 1], np.zeros(1024, np.int64))
        step = _look_up(step, powers[position, 15], np.zeros(1024, np.int64))
    return powers


_BYTE_PLACES: Final = np.arange(0, 1024, 256)


def _look_up(table: U32, registers: U32, starts: npt.NDArray[np.int64]) -> U32:
    """Return registers changed by the operators that begin at `starts` in a table: one entry for each of four bytes."""
    octets = np.ascontiguousarray(registers, "<u4").view(np.uint8).reshape(-1, 4)
    changed: U32 = np.bitwise_xor.reduce(table.take(octets + (starts[:, None] + _BYTE_PLACES)), axis=1)
    return changed


def crc32c_shift_each(crcs: U32, lengths: npt.NDArray[np.int64]) -> U32:
    """Return the shift of each CRC by its own number of bytes, a hexadecimal digit at a time; a negative one undoes it.

    x has an order, so a length counts modulo that, and the way back is the rest of the circle. Costs 0.1 us a digit
    for each of a hundred CRCs, whatever the number of bytes.
    """
    tables = _shift_tables()
    rest = lengths % _ORDER
    for position in range((int(rest.max(initial=0)).bit_length() + 3) // 4):
        crcs = _look_up(tables[position].reshape(-1), crcs, (rest >> 4 * position & 15) << 10)
    return crcs


def crc32c_followed_by(crcs: U32, words: U32) -> U32:
    """Return the CRC32C of each byte string with one more word of four bytes, little-endian, after it."""
    return ~crc32c_shift_each(~crcs ^ words, np.full(len(crcs), 4))


def crc32c_through(
    before: int, crcs: U32, ends: npt.NDArray[np.int64], positions: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Return the CRC32C up to the end of some pieces, of which `crcs` are known, without reading them.

    `before` is that of the bytes in front of the pieces, `ends` are offsets from there. All are shifted to the last
    end, where running sums are theirs, and those that are asked for are shifted back:

        before ─────────────────────────▶ ╮
        crc 0  ├──────┤ ─────────────────▶ │ sums        each sum without what comes after it:
        crc 1         ├────────┤ ────────▶ │             ◀──────── sum 1
        crc 2                  ├─────────┤ ╯
    """
    moved = crc32c_shift_each(np.append(np.uint32(before), crcs), ends[-1] - np.append(0, ends))
    sums = np.bitwise_xor.accumulate(moved)[1:]
    return crc32c_shift_each(sums[positions], ends[positions] - ends[-1])


def _length_tables() -> tuple[int, U32]:
    """Return the CRC of eight zero bytes, and what each value of each byte changes in it: `uint32[8, 256]`."""
    zero = crc32c(bytes(8))
    tables = np.zeros((8, 256), np.uint32)
    for position in range(8):
        for value in range(256):
            length = bytearray(8)
            length[position] = value
            tables[position, value] = crc32c(length) ^ zero
    return zero, tables


_ZERO_LENGTH_CRC, _LENGTH_TABLES = _length_tables()


def crc32c_of_lengths(lengths: npt.NDArray[np.int64]) -> U32:
    """Return the CRC32C of each length as TFRecord stores it: eight bytes, little-endian."""
    rest = lengths.astype(np.uint64)
    crcs = np.full(len(lengths), _ZERO_LENGTH_CRC, np.uint32)
    top = int(rest.max(initial=0))
    for position in range((top.bit_length() + 7) // 8):
        crcs ^= _LENGTH_TABLES[position][(rest >> np.uint64(8 * position)) & np.uint64(0xFF)]
    return crcs


def split_mix(state: U64) -> U64:
    """Apply SplitMix64's finaliser to each value (Steele, Lea, Flood, OOPSLA 2014; variant 13 of Stafford)."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def record_digests(lengths: npt.NDArray[np.int64], crcs: U32) -> int:
    """Return the sum modulo 2**128 of the mixes of records with these payload lengths and (unmasked) payload CRC32Cs.

    The mix of a record is 128 bits: the first two outputs of SplitMix64 seeded with `length << 32 | crc` (modulo
    2**64), the first one in the high half. A sum does not depend on the order of the records, and sums of parts add up.
    """
    seeds = (lengths.astype(np.uint64) << np.uint64(32)) | crcs.astype(np.uint64)
    high = split_mix(seeds + np.uint64(_GAMMA))
    low = split_mix(seeds + np.uint64(2 * _GAMMA & _MASK_64))
    return ((_wide_sum(high) << 64) + _wide_sum(low)) % (1 << 128)


def _wide_sum(values: U64) -> int:
    """Return the exact sum of 64-bit values: each half's sum fits 64 bits below 2**32 values."""
    return (int((values >> np.uint64(32)).sum(dtype=np.uint64)) << 32) + int(
        (values & np.uint64(_MASK_32)).sum(dtype=np.uint64)
    )


def add_digests(digests: Iterable[int]) -> int:
    """Return the digest of all records from those of its parts.

    >>> add_digests([2**128 - 1, 2])
    1
    """
    return sum(digests) % (1 << 128)
