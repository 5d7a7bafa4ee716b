"""Fractions of the rows, by a hash that never changes.

A row's number is the first eight bytes, big-endian, of the SHA-256 of its key's bytes. With the fractions read as the
decimals that they are written as, split k takes the numbers below `floor(2**64 * (f0 + ... + fk))` that no split before
it took: exact integer arithmetic, so the same on every machine and in every version.

    0 ────────────── train: 0.9 ──────────────┬─ val: 0.1 ─ 2**64

Rows that are cut out of one split (`split.of`) have the second eight bytes: the first ones may have made that split.

A key's bytes are those of a string or a binary value, the decimal digits of an int64 (so that `17` in a CSV file and 17
in a Parquet file go the same way), the four little-endian bytes of a float. A row without the key, and every row where
no key is named, is hashed as the bytes of its serialized record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import UsageError
from ..batches.arrow_memory import I64
from ..batches.observers import Summaries, notes_summary
from ..batches.rows import FeatureColumn
from ..schema.schema import Schema
from ..wording.printable import printable
from .splitter import Assigned, Candidates, Splitter, scalar_feature, where_present

_WORDS: Final = hashlib.sha256().digest_size // 8


@dataclass(frozen=True, slots=True)
class FractionSplits(Splitter):
    """Splits that each get a fraction of the rows; their order matters."""

    names: tuple[str, ...]
    fractions: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        check_fractions(self.names, self.fractions)

    @classmethod
    def by_fraction(cls, fractions: Mapping[str, float | Fraction], *more: Any, **named: Any) -> Self:
        """Make a splitter of fractions that add up to 1, else raise `UsageError`."""
        return cls(tuple(fractions), tuple(map(exact_fraction, fractions.values())), *more, **named)

    @property
    def only(self) -> str | None:
        return self.names[0] if len(self.names) == 1 else None

    def shares(self) -> dict[str, float]:
        return {name: float(fraction) for name, fraction in zip(self.names, self.fractions, strict=True)}


@dataclass(frozen=True, slots=True)
class HashSplits(FractionSplits):
    """`fractions` of the rows, by a hash of the feature `key` or, without it, of the record.

    `word` is which eight bytes of the digest are the number: of rows that were chosen by the first ones, as those of a
    split, others are independent. A row without the key is hashed as its record.
    """

    key: str | None = None
    word: int = 0

    @property
    def reads(self) -> tuple[str, ...]:
        return () if self.key is None else (self.key,)

    def check(self, schema: Schema) -> None:
        if self.key is not None:
            scalar_feature(schema, self.key, "split.key")

    def assign(self, given: Candidates) -> Assigned:
        key = None if self.key is None else given.columns[self.key]
        return Assigned(self.names, self.codes(key, given.rows, given.payloads), without_key(given, self.key))

    def codes(self, key: FeatureColumn | None, rows: int, payloads: Callable[[I64], Iterable[bytes]]) -> I64:
        """Return the index into `names` of each row's split.

        `key` is the column of the feature that `self.key` names, `payloads` gives the serialized records of rows.
        """
        bounds = bounds_of(self.fractions)
        return np.searchsorted(bounds, hash_numbers(key, rows, payloads, self.word), "right").astype(np.int64)


def check_fractions(names: tuple[str, ...], fractions: tuple[float | Fraction, ...]) -> None:
    """Raise `UsageError` where they are not positive or do not add up to 1, or a name comes twice."""
    if len(set(names)) != len(names) or not names:
        raise UsageError(f"split: names must differ, and are {', '.join(map(printable, names)) or 'none'}")
    shown = ", ".join(f"{printable(name)}: {value}" for name, value in zip(names, fractions, strict=False))
    if len(fractions) != len(names) or not all(fraction > 0 for fraction in fractions):
        raise UsageError(f"split: every split needs a fraction above 0; they are {shown or 'none'}")
    total = sum(map(exact_fraction, fractions))
    if total != 1:
        raise UsageError(f"split: the fractions add up to {float(total)}, not to 1: {shown}")


def exact_fraction(fraction: float | Fraction) -> Fraction:
    """Return a fraction as the decimal that it is written as."""
    return fraction if isinstance(fraction, Fraction) else Fraction(repr(fraction))


def bounds_of(fractions: Iterable[float | Fraction]) -> npt.NDArray[np.uint64]:
    """Return the first number of every split but the first."""
    sums = list(accumulate(map(exact_fraction, fractions)))[:-1]
    return np.array([int(total * (1 << 64)) for total in sums], np.uint64)


def hash_numbers(
    key: FeatureColumn | None, rows: int, payloads: Callable[[I64], Iterable[bytes]], word: int = 0
) -> npt.NDArray[np.uint64]:
    """Return the number of each row: of its key, or of its record where there is none."""
    if key is None:
        return _numbers(payloads(np.arange(rows)), rows, word)
    texts = _key_bytes(key, rows)
    if key.present is None:
        return _numbers(texts, rows, word)
    records = iter(payloads(np.flatnonzero(~key.present)))
    pairs = zip(texts, key.present.tolist(), strict=True)
    return _numbers((text if there else next(records) for text, there in pairs), rows, word)


def without_key(given: Candidates, key: str | None) -> Summaries:
    """Return how many rows of each entry lack the key, so that their record is hashed, as notes."""
    present = None if key is None else given.columns[key].present
    if key is None or present is None or present.all():
        return {}
    text = f"rows whose {printable(key)} (split.key) is null, so that their whole record decides their split"
    text += "" if given.are_records else f" (to leave them out: {where_present(key)})"
    entries = np.broadcast_to(np.asarray(given.entry), given.rows)[~present]
    found = zip(*np.unique(entries, return_counts=True), strict=True)
    return notes_summary({(int(entry), text): int(count) for entry, count in found})


def _numbers(texts: Iterable[bytes], rows: int, word: int) -> npt.NDArray[np.uint64]:
    sha256 = hashlib.sha256
    digests = b"".join([sha256(text).digest() for text in texts])
    return np.frombuffer(digests, ">u8", _WORDS * rows)[word::_WORDS].astype(np.uint64)


def _key_bytes(column: FeatureColumn, rows: int) -> list[bytes]:
    """Return the bytes that are hashed for each row; where the key is absent they mean nothing."""
    if column.kind == "int64":
        return [b"%d" % value for value in column.values.tolist()]
    if column.kind == "float":
        packed = column.values.astype("<f4").tobytes()
        return [packed[at : at + 4] for at in range(0, len(packed), 4)]
    texts: list[bytes] = binary_values(column, rows).to_pylist()
    return texts


def binary_values(column: FeatureColumn, rows: int) -> pa.Array:
    """Return the values of a scalar feature of bytes as an Arrow array; those of absent ones are empty."""
    if not rows:
        return pa.array([], pa.binary_view())
    values = column.values if column.present is None else np.where(column.present, column.values, 0)
    return pa.Array.from_buffers(
        pa.binary_view(), rows, [None, pa.py_buffer(np.ascontiguousarray(values)), *column.buffers]
    )
