"""Rows of a batch by their numbers: each by itself, or out of blocks that are read whole and kept for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ...format.buffers.payloads import Payloads
from ..rows.numbered_rows import NumberedRows
from ..rows.record_access import joined_payloads
from .row_order import I64


class BatchReader:
    """Reads batches of rows. With `block_rows`, runs of so many rows are read at once, and `most` of them are kept."""

    def __init__(
        self, rows: NumberedRows, columns: Sequence[str] | None, block_rows: int | None = None, most: int = 1
    ) -> None:
        self._rows, self._columns, self._block_rows, self._most = rows, columns, block_rows, most
        self._blocks: OrderedDict[int, Payloads] = OrderedDict()

    def read(self, numbers: I64) -> pa.RecordBatch:
        if self._block_rows is None:
            return self._rows.take(numbers, self._columns)
        blocks, places = np.divmod(numbers, self._block_rows)
        order = np.argsort(blocks, kind="stable")
        parts = []
        for block in np.unique(blocks).tolist():
            found = self._block(block).take(places[blocks == block])
            sizes = found.ends - found.starts
            ends = np.cumsum(sizes)
            parts.append(Payloads(found.gather(found.starts, sizes), ends - sizes, ends))
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return self._rows.decode(joined_payloads(parts).take(back), numbers, self._columns)

    def _block(self, block: int) -> Payloads:
        found = self._blocks.pop(block, None)
        if found is None:
            assert self._block_rows is not None
            first = block * self._block_rows
            found = self._rows.access.take(np.arange(first, min(first + self._block_rows, len(self._rows))))
            while len(self._blocks) >= self._most:
                self._blocks.popitem(last=False)
        self._blocks[block] = found
        return found
