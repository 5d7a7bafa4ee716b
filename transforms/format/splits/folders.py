"""The folders of a source are its splits; the rows of one of them may be cut by another splitter.

split: {fractions: {train: 0.9, val: 0.1}, of: train}

train/  ──┬─ 0.9 ─▶ train
          └─ 0.1 ─▶ val
test/   ──────────▶ test
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..buffers.views import I64
from ..flow.rejects import CellError
from ..schema.schema import Schema
from .splitter import Assigned, Candidates, Settling, Splitter


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
