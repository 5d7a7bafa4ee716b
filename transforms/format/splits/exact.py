"""Fractions of the records by counts: within one record of each fraction, in all or in each class of a column.

    split: {fractions: {train: 0.8, val: 0.2}, by: exact, stratify: kind}

Only written records count. A task deals them as they come, and sets a few of each class aside; the shard plan deals
these to make up for what each split lacks (`dealing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import RunError, SchemaError
from ..buffers.views import I64
from ..flow.observers import DEALT
from ..manifest.naming import set_aside
from ..schema.column_types import column_type
from ..schema.schema import Schema
from ..wording.printable import printable
from .by_hash import FractionSplits, binary_values
from .dealing import aside_of, dealt, lacking, spread
from .splitter import Assigned, Candidates, Settlement, Settling, present_rows, scalar_feature

_KEY: Final = "split.stratify"
_MOST_CLASSES: Final = 10_000
"""Classes of a task: each has records that are set aside, and counts in the task's result."""

_NULL: Final = "null"
"""The class of rows without a value; those of values begin with a sign."""


@dataclass(frozen=True, slots=True)
class ExactSplits(FractionSplits, Settling):
    """`fractions` of the records, of each value of the feature `stratify` if it is given; no value is a class too."""

    stratify: str | None = None

    in_order = True

    @property
    def reads(self) -> tuple[str, ...]:
        return () if self.stratify is None else (self.stratify,)

    def check(self, schema: Schema) -> None:
        """A class is a scalar, and not a float."""
        if self.stratify is None:
            return
        feature = scalar_feature(schema, self.stratify, _KEY)
        if feature.kind == "float" or column_type(feature).own_limit:
            raise SchemaError(
                f'{_KEY}: "{printable(self.stratify)}" holds {feature.type}, whose values are no classes; choose a '
                f"column of text, whole numbers or bools"
            )

    def assign(self, given: Candidates) -> Assigned:
        """The first records of each class are set aside. Raises `RunError` where there are too many classes."""
        counts: dict[str, int] = given.memory.setdefault("counts", {})
        classes, which = _classes(given, self.stratify)
        places = _places(which, np.array([counts.get(one, 0) for one in classes], np.int64))
        aside = aside_of(len(self.names))
        order = self._order(given, int(places.max(initial=0)) + 1 - aside)
        later = places >= aside
        codes = np.full(given.rows, len(self.names), np.int64)
        codes[later] = order[places[later] - aside]
        table = np.zeros((len(classes), len(self.names) + 1), np.int64)
        np.add.at(table, (which, codes), 1)
        found = {}
        for one, row in zip(classes, table.tolist(), strict=True):
            counts[one] = counts.get(one, 0) + sum(row)
            found[one] = [row[-1], *row[:-1]]
        if len(counts) > _MOST_CLASSES:
            raise RunError(
                f'{_KEY}: "{printable(self.stratify or "")}" has more than {_MOST_CLASSES:,} values; choose a column '
                f"with fewer"
            )
        return Assigned((*self.names, set_aside(0)), codes, {DEALT: found} if found else {})

    def settle(
        self,
        records: Mapping[str, int],  # noqa: ARG002
        observed: Any,
        look: Callable[[str], Iterable[Candidates]],  # noqa: ARG002
    ) -> Settlement:
        counts: Mapping[str, list[int]] = observed or {}
        classes = sorted(counts)
        lacks = lacking(self.fractions, [(counts[one][0], counts[one][1:]) for one in classes])
        splits = {one: spread(lack, seed) for seed, (one, lack) in enumerate(zip(classes, lacks, strict=True))}
        done = dict.fromkeys(classes, 0)

        def deal(given: Candidates) -> Assigned:
            found, which = _classes(given, self.stratify)
            starts = np.array([done[one] for one in found], np.int64)
            places = _places(which, starts)
            codes = np.empty(given.rows, np.int64)
            for number, one in enumerate(found):
                rows = np.flatnonzero(which == number)
                codes[rows] = splits[one][places[rows]]
                done[one] += len(rows)
            return Assigned(self.names, codes)

        return Settlement((), (set_aside(0),), deal)

    def _order(self, given: Candidates, count: int) -> I64:
        """Return the splits of the first records that are dealt in a task, and of some more."""
        known: I64 | None = given.memory.get("order")
        if known is None or len(known) < count:
            known = given.memory["order"] = dealt(self.fractions, max(2 * count, 1024), given.task)
        return known


def _classes(given: Candidates, column: str | None) -> tuple[list[str], I64]:
    """Return the classes that occur, and which of them each row is of."""
    if column is None:
        return [""] if given.rows else [], np.zeros(given.rows, np.int64)
    values, rows = given.columns[column], given.rows
    there = present_rows(values, rows)
    if values.kind == "int64":
        found, codes = np.unique(values.values[there], return_inverse=True)
        names = [f"={number}" for number in found.tolist()]
    else:
        encoded = binary_values(values, rows).cast(pa.large_binary()).filter(pa.array(there)).dictionary_encode()
        codes = pc.cast(encoded.indices, pa.int64()).to_numpy(zero_copy_only=False)
        names = [f"={value.decode('utf-8', 'surrogateescape')}" for value in encoded.dictionary.to_pylist()]
    which = np.full(rows, len(names), np.int64)
    which[there] = codes
    return names if there.all() else [*names, _NULL], which


def _places(which: I64, starts: I64) -> I64:
    """Return for each row its number within its class, counted from where the class starts."""
    order = np.argsort(which, kind="stable")
    sizes = np.bincount(which, minlength=len(starts))
    firsts = np.cumsum(sizes) - sizes
    places = np.empty(len(which), np.int64)
    places[order] = np.arange(len(which)) - np.repeat(firsts - starts, sizes)
    return places
