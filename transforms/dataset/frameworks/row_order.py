"""In which order an epoch goes through the rows: each order is a function of batch number, seed and epoch alone.

So any reader finds its batches without the others, and a run goes on anywhere without reading what came before.

none     0 1 2 3 4 5 ...
global   a permutation of all rows
blocks   runs of rows of 4 MiB, permuted and dealt to lanes; of each lane, the rows of eight blocks are permuted at a
         time. Batch g is of lane g mod lanes, so that a reader that takes each n-th batch reads 1/n of the blocks, as
         far as n divides the lanes or is a multiple of them. What does not fill a round of batches comes last, and is
         shuffled likewise.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

_ROUNDS: Final = 6
BLOCKS_IN_WINDOW: Final = 8


class Permutation:
    """A pseudo-random permutation of 0 to `size` - 1, of which any part can be had.

    A Feistel network over the next power of four, whose outputs beyond `size` are put in again until they are within
    (cycle walking: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). `key` are integers.
    """

    def __init__(self, size: int, *key: int) -> None:
        self._size = size
        self._half = max(1, (max(size - 1, 1).bit_length() + 1) // 2)
        digest = hashlib.blake2b(repr(key).encode(), digest_size=8 * _ROUNDS).digest()
        self._keys = np.frombuffer(digest, "<u8")

    def __call__(self, positions: I64) -> I64:
        """Return where positions, each from 0 to `size` - 1, are sent to."""
        found = self._encrypted(positions.astype(np.uint64))
        while (beyond := np.flatnonzero(found >= self._size)).size:
            found[beyond] = self._encrypted(found[beyond])
        return found.astype(np.int64)

    def _encrypted(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        half, mask = np.uint64(self._half), np.uint64((1 << self._half) - 1)
        left, right = values >> half, values & mask
        for key in self._keys:
            mixed = (right ^ key) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
            left, right = right, left ^ ((mixed >> np.uint64(40)) & mask) ^ ((mixed >> np.uint64(8)) & mask)
        return (left << half) | right


class Order(Protocol):
    """The rows of batch 0, 1, 2, ... of an epoch."""

    def batch(self, number: int) -> I64:
        """Return the numbers of the rows of a batch: `batch_rows` of them, fewer of the last one."""


@dataclass(frozen=True)
class InOrder:
    """The rows as they are."""

    size: int
    batch_rows: int

    def batch(self, number: int) -> I64:
        return np.arange(number * self.batch_rows, min((number + 1) * self.batch_rows, self.size))


class ShuffledRows:
    """All rows in a random order."""

    def __init__(self, size: int, batch_rows: int, *key: int) -> None:
        self._places = InOrder(size, batch_rows)
        self._permutation = Permutation(size, *key)

    def batch(self, number: int) -> I64:
        return self._permutation(self._places.batch(number))


class ShuffledBlocks:
    """Blocks of `block_rows` rows in a random order, and the rows of several of them in a random order."""

    def __init__(self, size: int, batch_rows: int, block_rows: int, lanes: int, *key: int) -> None:
        self._size, self._rows, self._block_rows, self._key = size, batch_rows, block_rows, key
        blocks = Permutation(max(1, -(-size // block_rows)), *key)(np.arange(-(-size // block_rows)))
        self.lanes = max(1, min(lanes, len(blocks)))
        self._lanes = [_Lane(blocks[lane :: self.lanes], size, block_rows) for lane in range(self.lanes)]
        self._rounds = min((len(lane) // batch_rows for lane in self._lanes), default=0)
        self._rest: I64 | None = None

    def batch(self, number: int) -> I64:
        turn, at = divmod(number, self.lanes)
        if turn < self._rounds:
            places = np.arange(turn * self._rows, (turn + 1) * self._rows)
            return self._lanes[at].rows(places, (*self._key, at))
        if self._rest is None:
            first = self._rounds * self._rows
            left = [lane.rows(np.arange(first, len(lane)), (*self._key, i)) for i, lane in enumerate(self._lanes)]
            rest = np.concatenate([np.empty(0, np.int64), *left])
            for begin in range(0, len(rest), self._block_rows * BLOCKS_IN_WINDOW):
                some = rest[begin : begin + self._block_rows * BLOCKS_IN_WINDOW]
                some[:] = some[Permutation(len(some), *self._key, -1, begin)(np.arange(len(some)))]
            self._rest = rest
        first = (number - self._rounds * self.lanes) * self._rows
        return self._rest[first : first + self._rows]


class _Lane:
    """Some blocks one after the other; place p is in the window of `BLOCKS_IN_WINDOW` blocks that its block is in."""

    def __init__(self, blocks: I64, size: int, block_rows: int) -> None:
        self._firsts = blocks * block_rows
        sizes = np.minimum(self._firsts + block_rows, size) - self._firsts
        self._begins = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        at = [*range(0, len(blocks), BLOCKS_IN_WINDOW), len(blocks)]
        self._windows = self._begins[at]

    def __len__(self) -> int:
        return int(self._begins[-1])

    def rows(self, places: I64, key: tuple[int, ...]) -> I64:
        windows = np.searchsorted(self._windows, places, side="right") - 1
        found = np.empty(len(places), np.int64)
        for window in np.unique(windows).tolist():
            mine, first = windows == window, self._windows[window]
            permutation = Permutation(int(self._windows[window + 1] - first), *key, window)
            found[mine] = permutation(places[mine] - first) + first
        blocks = np.searchsorted(self._begins, found, side="right") - 1
        return np.asarray(self._firsts[blocks] + found - self._begins[blocks])


def order_of(shuffle: str, size: int, batch_rows: int, blocks: tuple[int, int], key: tuple[int, ...]) -> Order:
    """Return the order of a kind of `shuffle`; `blocks` are the rows of a block, and the lanes."""
    makers: dict[str, Any] = {
        "none": lambda: InOrder(size, batch_rows),
        "global": lambda: ShuffledRows(size, batch_rows, *key),
        "blocks": lambda: ShuffledBlocks(size, batch_rows, *blocks, *key),
    }
    found: Order = makers[shuffle]()
    return found
