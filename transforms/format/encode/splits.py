"""Which split a row goes to: one name for all, or fractions of a hash that never changes.

A row's number is the first eight bytes, big-endian, of the SHA-256 of its key's bytes. With the fractions read as the
decimals that they are written as, split k takes the numbers below `floor(2**64 * (f0 + ... + fk))` that no split before
it took: exact integer arithmetic, so the same on every machine and in every version.

    0 ────────────── train: 0.9 ──────────────┬─ val: 0.1 ─ 2**64

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

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import SchemaError, UsageError
from ..buffers.views import I64
from ..columns.feature_column import FeatureColumn
from ..schema.schema import Schema
from ..wording.printable import printable

DEFAULT_SPLIT = "train"


@dataclass(frozen=True, slots=True)
class SplitRule:
    """One split for all rows, `names[0]`; or `fractions` of the rows by a hash of the feature `key` or the record."""

    names: tuple[str, ...] = (DEFAULT_SPLIT,)
    fractions: tuple[float, ...] = ()
    key: str | None = None

    def __post_init__(self) -> None:
        """Check the fractions.

        Raises:
            UsageError: they are not positive or do not add up to 1, or a name comes twice.
        """
        if len(set(self.names)) != len(self.names) or not self.names:
            raise UsageError(f"split: names must differ, and are {', '.join(map(printable, self.names)) or 'none'}")
        if not self.fractions:
            if len(self.names) != 1 or self.key is not None:
                raise UsageError("split: several splits, or a key, need fractions: {train: 0.9, val: 0.1}")
            return
        if len(self.fractions) != len(self.names) or not all(fraction > 0 for fraction in self.fractions):
            raise UsageError(f"split: every fraction must be above 0; they are {self._shown()}")
        total = sum(map(_exact, self.fractions))
        if total != 1:
            raise UsageError(f"split: the fractions add up to {float(total)}, not to 1: {self._shown()}")

    @classmethod
    def fixed(cls, name: str) -> SplitRule:
        """Return the rule that sends every row to one split."""
        return cls((name,))

    @classmethod
    def by_fraction(cls, fractions: Mapping[str, float], key: str | None = None) -> SplitRule:
        """Return the rule for these fractions, which add up to 1; their order matters.

        Raises:
            UsageError: they are not positive or do not add up to 1.
        """
        return cls(tuple(fractions), tuple(fractions.values()), key)

    def shares(self) -> dict[str, float]:
        """Return the part of the rows that each split is to get."""
        return dict(zip(self.names, self.fractions or (1.0,), strict=True))

    def check_key(self, schema: Schema) -> None:
        """Check that the key is a scalar feature.

        Raises:
            SchemaError: it is not.
        """
        if self.key is None:
            return
        names = [feature.name for feature in schema if feature.shape == ()]
        if self.key not in names:
            raise SchemaError(
                f'split.key: "{printable(self.key)}" is not a scalar feature; '
                f"the choices are {', '.join(map(printable, names)) or 'none'}"
            )

    def codes(self, key: FeatureColumn | None, rows: int, payload: Callable[[int], bytes]) -> I64:
        """Return the index into `names` of each row's split.

        `key` is the column of the feature that `self.key` names, `payload` gives the serialized record of a row.
        """
        if not self.fractions:
            return np.zeros(rows, np.int64)
        keys = [None] * rows if key is None else _key_bytes(key, rows)
        texts = (payload(row) if text is None else text for row, text in enumerate(keys))
        return np.searchsorted(self._bounds(), _numbers(texts, rows), "right").astype(np.int64)

    def _bounds(self) -> npt.NDArray[np.uint64]:
        """Return the first number of every split but the first."""
        sums = list(accumulate(map(_exact, self.fractions)))[:-1]
        return np.array([int(total * (1 << 64)) for total in sums], np.uint64)

    def _shown(self) -> str:
        return ", ".join(f"{printable(name)}: {value}" for name, value in zip(self.names, self.fractions, strict=False))


def _exact(fraction: float) -> Fraction:
    return Fraction(repr(fraction))


def _numbers(texts: Iterable[bytes], rows: int) -> npt.NDArray[np.uint64]:
    digests = b"".join(hashlib.sha256(text).digest()[:8] for text in texts)
    return np.frombuffer(digests, ">u8", rows).astype(np.uint64)


def _key_bytes(column: FeatureColumn, rows: int) -> list[bytes | None]:
    """Return the bytes that are hashed for each row, or None where the key is absent."""
    if column.kind == "int64":
        texts = [b"%d" % value for value in column.values.tolist()]
    elif column.kind == "float":
        packed = column.values.astype("<f4").tobytes()
        texts = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    else:
        values = column.values if column.present is None else np.where(column.present, column.values, 0)
        views = [None, pa.py_buffer(np.ascontiguousarray(values)), *column.buffers]
        texts = pa.Array.from_buffers(pa.binary_view(), rows, views).to_pylist() if rows else []
    if column.present is None:
        return list(texts)
    return [text if there else None for text, there in zip(texts, column.present.tolist(), strict=True)]
