"""Hostile inputs made of sound ones: what a bad disk, a bad program or a bad person would do to a file.

Every input has a generator of its own, seeded by (seed, target, number): each can be made again by itself.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

EXTREMES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0xFFFFFF, 2**28, 2**30, 2**31 - 1, 2**31, 2**32 - 1,
            2**32, 2**40, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1)  # fmt: skip
"""What a length, a count or an offset is set to."""


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _at(rng: random.Random, data: bytearray) -> int:
    return rng.randrange(len(data) + 1)


def _span(rng: random.Random, data: bytearray) -> slice:
    start = _at(rng, data)
    return slice(start, min(start + rng.choice((1, 2, 4, 8, 16, 64, 1024)), len(data)))


def _flip_bit(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set_byte(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _truncate(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_at(rng, data) :]


def _remove(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_span(rng, data)]


def _repeat(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    span = _span(rng, data)
    data[span.stop : span.stop] = data[span] * rng.choice((1, 1, 2, 50))


def _zero(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    span = _span(rng, data)
    data[span] = bytes(span.stop - span.start)


def _splice(rng: random.Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = rng.choice(seeds)
    data[_at(rng, data) :] = other[rng.randrange(len(other) + 1) :]


def _move(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    span = _span(rng, data)
    piece = data[span]
    del data[span]
    at = _at(rng, data)
    data[at:at] = piece


def _set_number(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    width, sign = rng.choice(((2, "H"), (4, "I"), (8, "Q")))
    value = rng.choice(EXTREMES) & (1 << 8 * width) - 1
    at = _at(rng, data)
    data[at : at + width] = struct.pack(rng.choice("<>") + sign, value)


def _insert_varint(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _at(rng, data)
    data[at : at + rng.choice((0, 1))] = varint(rng.choice(EXTREMES))


_CHANGES: tuple[Callable[[random.Random, bytearray, Sequence[bytes]], None], ...] = (
    _flip_bit, _flip_bit, _set_byte, _set_byte, _truncate, _remove, _repeat, _zero, _splice, _move, _set_number,
    _set_number, _insert_varint,
)  # fmt: skip


def mutate(rng: random.Random, seeds: Sequence[bytes], tokens: Sequence[bytes] = ()) -> bytearray:
    """Return one of the seeds with 1 to 8 changes; `tokens` are pieces of the format, put in here and there."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        if tokens and rng.random() < 0.3:
            at = _at(rng, data)
            token = rng.choice(tokens)
            data[at : at + rng.choice((0, len(token)))] = token
        else:
            rng.choice(_CHANGES)(rng, data, seeds)
    return data
