"""Splits that each row decides alone: by a hash, by a column or folder that names splits, or by time."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...errors import RunError, SchemaError, UsageError
from ..batches.arrow_memory import I64
from ..batches.rejects import CellError
from ..batches.rows import FeatureColumn
from ..batches.summaries import Summaries, notes_summary
from ..manifest.naming import is_split_name
from ..schema.arrow_types import arrow_type_of
from ..schema.column_types import column_type, is_binary, is_string
from ..schema.schema import Feature, Schema
from ..wording.printable import printable
from .splitter import (
    MOST_SPLITS,
    TOO_MANY_SPLITS,
    Assigned,
    Candidates,
    Settling,
    Splitter,
    present_rows,
    scalar_feature,
    where_present,
)

# Fractions of the rows, by a hash that never changes.
#
# A row's number is the first eight bytes, big-endian, of the SHA-256 of its key's bytes. With the fractions read as the
# decimals that they are written as, split k takes the numbers below `floor(2**64 * (f0 + ... + fk))` that no split
# before it took: exact integer arithmetic, so the same on every machine and in every version.
#
#     0 ────────────── train: 0.9 ──────────────┬─ val: 0.1 ─ 2**64
#
# Rows that are cut out of one split (`split.of`) have the second eight bytes: the first ones may have made that split.
#
# A key's bytes are those of a string or a binary value, the decimal digits of an int64 (so that `17` in a CSV file and
# 17 in a Parquet file go the same way), the four little-endian bytes of a float. A row without the key, and every row
# where no key is named, is hashed as the bytes of its serialized record.


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


# Splits that the data has: values of a column (`split: {column: fold, names: {"0": train}}`), or folders.


NO_SPLIT: Final = "NO_SPLIT"

_TAKEN: Final = "text, whole numbers and bools"


def no_value(column: str, key: str, expected: str, *, are_records: bool) -> CellError:
    """Return what is wrong with a row that lacks the feature that decides its split, by the key `key` of the config."""
    name = printable(column)
    if are_records:
        text = f"it has no {name}, and {key} says the split of a record"
        return CellError(column, NO_SPLIT, "nothing", expected, text)
    text = f"null, and {key} says the split of a row: fill it (schema.columns.{name}.null), or leave the row out: "
    return CellError(column, NO_SPLIT, "null", expected, f"{text}{where_present(column)}")


@dataclass(frozen=True, slots=True)
class ColumnSplits(Splitter):
    """The value of the feature `column` is the split, or the one that `named` gives it: (value, split) pairs.

    Values are compared as text: the digits of a number, `true` and `false`. With `named` a value that is not there is a
    reject; a null always is.
    """

    column: str
    named: tuple[tuple[str, str], ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def check(self, schema: Schema) -> None:
        feature = scalar_feature(schema, self.column, "split.column")
        kind = arrow_type_of(feature)
        whole = types.is_integer(kind) or types.is_boolean(kind) or is_string(kind) or is_binary(kind)
        if not whole or feature.kind == "float" or column_type(feature).own_limit:
            dates = types.is_date(kind) or types.is_timestamp(kind)
            name = printable(self.column)
            fix = f"by days: split.before: {{column: {name}, ...}}" if dates else "choose another"
            raise SchemaError(f'split.column: "{name}" holds {feature.type}, and splits are named by {_TAKEN}; {fix}')

    def problems(self, given: Candidates) -> list[tuple[int, CellError]]:
        _, codes, wrong = self._look(given)
        return [(row, wrong[code]) for row, code in enumerate(codes.tolist()) if code < 0] if wrong else []

    def assign(self, given: Candidates) -> Assigned:
        """Raise `RunError` where there are more than 64 splits."""
        names, codes, _ = self._look(given)
        if len(names) > MOST_SPLITS:
            raise RunError(TOO_MANY_SPLITS)
        return Assigned(names, codes)

    def _look(self, given: Candidates) -> tuple[tuple[str, ...], I64, dict[int, CellError]]:
        """Return the splits that occur, the number of each row's, and what is wrong where that is negative."""
        there = present_rows(given.columns[self.column], given.rows)
        texts, values = self._texts(given)
        known, names = self._known(given), dict[str, int]()
        missing = no_value(self.column, "split.column", self._expected(), are_records=given.are_records)
        wrong: dict[int, CellError] = {-1: missing}
        numbers = np.empty(len(texts), np.int64)
        occurring = np.unique(values[there]) if len(texts) else np.zeros(0, np.int64)
        for value in occurring.tolist():
            split = known.get(texts[value]) if self.named else texts[value]
            if split is None or not is_split_name(split):
                numbers[value] = -2 - value
                wrong[-2 - value] = self._unnamed(texts[value])
            else:
                numbers[value] = names.setdefault(split, len(names))
        codes = np.full(given.rows, -1, np.int64)
        codes[there] = numbers[values[there]]
        return tuple(names), codes, wrong if (codes < 0).any() else {}

    def _known(self, given: Candidates) -> dict[str, str]:
        """Return the splits of values; bools are named in any case, as Python and YAML write them."""
        if self._is_bool(given):
            return {value.lower(): split for value, split in self.named}
        return dict(self.named)

    def _is_bool(self, given: Candidates) -> bool:
        feature = scalar_feature(given.schema, self.column, "split.column")
        return bool(types.is_boolean(arrow_type_of(feature)))

    def _texts(self, given: Candidates) -> tuple[list[str], I64]:
        column, rows = given.columns[self.column], given.rows
        if column.kind == "int64":
            found, values = np.unique(column.values, return_inverse=True)
            is_bool = self._is_bool(given)
            texts = [("false", "true")[number != 0] if is_bool else str(number) for number in found.tolist()]
            return texts, values.astype(np.int64)
        encoded = binary_values(column, rows).cast(pa.large_binary()).dictionary_encode()
        texts = [value.decode("utf-8", "backslashreplace") for value in encoded.dictionary.to_pylist()]
        return texts, pc.cast(encoded.indices, pa.int64()).to_numpy(zero_copy_only=False)

    def _unnamed(self, value: str) -> CellError:
        shown = printable(value)
        if self.named:
            reason = f'"{shown}" is in no split; name it in split.names: {{"{shown}": train}}'
        else:
            reason = f'"{shown}" cannot name a split (lowercase letters, digits and _); name the split of every value: '
            reason += f'split.names: {{"{shown}": train, ...}}'
        return CellError(self.column, NO_SPLIT, shown, self._expected(), reason)

    def _expected(self) -> str:
        return f"one of {', '.join(printable(value) for value, _ in self.named)}" if self.named else "a split"


# The rows of one folder may be cut by another splitter: `split: {fractions: {train: 0.9, val: 0.1}, of: train}`
#
#     train/  ──┬─ 0.9 ─▶ train
#               └─ 0.1 ─▶ val
#     test/   ──────────▶ test


@dataclass(frozen=True, slots=True)
class FolderSplits(Splitter):
    """Each row goes to the split of its folder, but rows of the folder `of` where `inner` says."""

    inner: Splitter | None = None
    of: str | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return () if self.inner is None else self.inner.reads

    def check(self, schema: Schema) -> None:
        if self.inner is not None:
            self.inner.check(schema)

    def shares(self) -> dict[str, float]:
        return {} if self.inner is None else self.inner.shares()

    def problems(self, given: Candidates) -> list[tuple[int, CellError]]:
        rows = self._cut(given)
        if self.inner is None or not len(rows):
            return []
        found = self.inner.problems(given.take(rows, self.inner.reads))
        return [(int(rows[row]), error) for row, error in found]

    def assign(self, given: Candidates) -> Assigned:
        assert given.codes is not None
        rows = self._cut(given)
        if self.inner is None or not len(rows):
            return Assigned(given.folders, given.codes)
        inner = self.inner.assign(given.take(rows, self.inner.reads))
        names = tuple(dict.fromkeys((*given.folders, *inner.names)))
        codes = given.codes.copy()
        codes[rows] = np.array([names.index(name) for name in inner.names], np.int64)[inner.codes]
        return Assigned(names, codes, inner.observed)

    def _cut(self, given: Candidates) -> I64:
        if self.of not in given.folders or given.codes is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(given.codes == given.folders.index(self.of))


def settling(splitter: Splitter | None) -> Settling | None:
    if isinstance(splitter, FolderSplits):
        splitter = splitter.inner
    return splitter if isinstance(splitter, Settling) else None


# Splits by time: the rows before a day, those before another, and the rest.
#
#     split: {before: {column: day, train: 2024-01-01, val: 2024-02-01, rest: test}}
#
#     ── train ──┤ 2024-01-01 ├── val ──┤ 2024-02-01 ├── test ──▶
#
# A bound is not before itself. A bound without a clock is midnight, in the time zone of the column if it has one. Of
# text that is ISO 8601, and of a bound for it, what has no offset is in UTC.


_KEY: Final = "split.before.column"
_DAY: Final = 86_400_000_000
_INT64_END: Final = 1 << 63
_MICROSECONDS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class TimeSplits(Splitter):
    """Rows whose feature `column` is before a bound, in ISO 8601, go to its split; of `bounds` the first counts.

    Others go to `rest`; without it they are rejects, as nulls always are.
    """

    column: str
    bounds: tuple[tuple[str, str], ...]
    rest: str | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def _names(self) -> tuple[str, ...]:
        names = (*(name for name, _ in self.bounds), *(() if self.rest is None else (self.rest,)))
        return tuple(dict.fromkeys(names))

    def check(self, schema: Schema) -> None:
        feature = scalar_feature(schema, self.column, _KEY)
        name = printable(self.column)
        kind = arrow_type_of(feature)
        if not (types.is_date(kind) or types.is_timestamp(kind) or is_string(kind) or is_binary(kind)):
            raise SchemaError(
                f'{_KEY}: "{name}" holds {feature.type}, which is no date; choose a column of dates, timestamps or '
                f"text in ISO 8601, or declare its type (schema.columns.{name}.type)"
            )
        offsets = [text for _, text in self.bounds if parse_moment(text).tzinfo is not None]
        if offsets and feature.kind != "bytes" and feature.timezone is None:
            raise SchemaError(
                f'split.before: {offsets[0]} has an offset, and "{name}" has no time zone; leave the offset out'
            )

    def problems(self, given: Candidates) -> list[tuple[int, CellError]]:
        places, bad = self._places(given)
        there = present_rows(given.columns[self.column], given.rows)
        missing = no_value(self.column, _KEY, "a date", are_records=given.are_records)
        wrong = [(row, missing) for row in np.flatnonzero(~there).tolist()]
        wrong += [
            (row, self._no_date(value, are_records=given.are_records)) for row, value in bad.items() if there[row]
        ]
        if self.rest is None:
            late = there & (places == len(self.bounds))
            late[list(bad)] = False
            wrong += [(row, self._late()) for row in np.flatnonzero(late).tolist()]
        return sorted(wrong, key=lambda problem: problem[0])

    def assign(self, given: Candidates) -> Assigned:
        names = self._names
        places, _ = self._places(given)
        splits = [names.index(name) for name, _ in self.bounds] + [0 if self.rest is None else names.index(self.rest)]
        return Assigned(names, np.array(splits, np.int64)[places])

    def _places(self, given: Candidates) -> tuple[I64, dict[int, str]]:
        """Return how many bounds each row is not before, and by row the texts that are no dates."""
        feature = scalar_feature(given.schema, self.column, _KEY)
        column = given.columns[self.column]
        known = [_bound(feature, text) for _, text in self.bounds]
        # Nanoseconds reach from 1677 to 2262: all rows are before a later bound, and none before an earlier one.
        bounds = np.array([max(bound, -_INT64_END) for bound in known if bound < _INT64_END], np.int64)
        values, bad = _moments(column, given.rows) if feature.kind == "bytes" else (column.values, {})
        return np.searchsorted(bounds, values, "right").astype(np.int64), bad

    def _no_date(self, value: str, *, are_records: bool) -> CellError:
        name, shown = printable(self.column), printable(value)
        text = f'"{shown}" is no date or time in ISO 8601'
        text += "" if are_records else f"; declare how it is written, like schema.columns.{name}.format=%d.%m.%Y"
        return CellError(self.column, NO_SPLIT, shown, "a date like 2024-01-31", text)

    def _late(self) -> CellError:
        split, bound = self.bounds[-1]
        text = f"not before {bound}, the bound of {split}; name the split of later rows, like split.before.rest=test"
        return CellError(self.column, NO_SPLIT, "a later time", f"before {bound}", text)


def parse_moment(text: str) -> dt.datetime:
    """Read ISO 8601, with a time zone if the text has an offset. Raises `ValueError` for other text."""
    return dt.datetime.fromisoformat(text.strip())


def microseconds(moment: dt.datetime) -> int:
    """Return the microseconds since 1970; without a time zone in UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // dt.timedelta(microseconds=1)


def _bound(feature: Feature, text: str) -> int:
    moment = parse_moment(text)
    if feature.timezone is not None and moment.tzinfo is None:
        local = pc.assume_timezone(
            pa.scalar(moment, pa.timestamp("us")), feature.timezone, ambiguous="earliest", nonexistent="earliest"
        )
        micros = int(local.cast(pa.int64()).as_py())
    else:
        micros = microseconds(moment)
    if types.is_date(arrow_type_of(feature)):
        return -(-micros // _DAY)
    if feature.unit == "ns":
        return micros * 1000
    return -(-micros // _MICROSECONDS[feature.unit or "us"])


def _moments(column: FeatureColumn, rows: int) -> tuple[npt.NDArray[np.int64], dict[int, str]]:
    """Return text as microseconds since 1970, and by row the texts that are no dates."""
    there = present_rows(column, rows)
    texts = binary_values(column, rows).cast(pa.large_binary()).dictionary_encode()
    indices = pc.cast(texts.indices, pa.int64()).to_numpy(zero_copy_only=False)
    found = np.zeros(len(texts.dictionary), np.int64)
    wrong: dict[int, str] = {}
    for number, value in enumerate(texts.dictionary.to_pylist()):
        text = value.decode("utf-8", "backslashreplace")
        try:
            found[number] = microseconds(parse_moment(text))
        except ValueError:
            wrong[number] = text
    bad = {row: wrong[number] for row, number in enumerate(indices.tolist()) if number in wrong} if wrong else {}
    return found[indices], {row: text for row, text in bad.items() if there[row]}
