"""The order of the rows in an epoch: `none`, `global` or `blocks`; it depends on batch, seed and epoch alone.

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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import UsageError

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


# Which batches of an epoch a reader takes: global batch g is of rank g mod world, and of its workers in turn.
#
#                  g   0  1  2  3  4  5  6  7  8  9 10        11 batches, of which the last is not full
# world 2, rank 0      0     2     4     6     8    (10)      `even`: drop leaves out 10, none takes it,
# rank 1                  1     3     5     7     9  (11)     pad fills 10 and makes 11 of rows of the beginning
# 2 workers of rank 0  a     b     a     b     a


def too_much_left_out(rows: int, left_out: int, batch_rows: int, world: int, fix: str) -> str | None:
    """Return the warning of an epoch that leaves out more than a tenth of its rows; if it leaves out all, raise."""
    ranks = f" for each of world={world} ranks" if world > 1 else ""
    if 0 < rows == left_out:
        raise UsageError(
            f"an epoch has no batch at all: {rows:,} rows are less than one of batch_rows={batch_rows:,}{ranks}; take "
            f"batch_rows={max(rows // world, 1)} or less, or {fix}"
        )
    if 10 * left_out <= rows:
        return None
    return (
        f"each epoch leaves out {left_out:,} of {rows:,} rows: it has only full batches of batch_rows={batch_rows:,}"
        f"{ranks}; take a smaller batch_rows, or {fix}"
    )


@dataclass(frozen=True, slots=True)
class EpochBatches:
    """The batches of one epoch of `size` rows from global batch `start` on, as `rank` of `world` takes them."""

    size: int
    batch_rows: int
    rank: int
    world: int
    even: str
    start: int = 0

    @property
    def stop(self) -> int:
        """The global batch at which the epoch ends for all ranks."""
        full, all_ = self.size // self.batch_rows, -(-self.size // self.batch_rows)
        if self.even == "none":
            return max(all_, self.start)
        if self.even == "drop":
            return self.start + max(full - self.start, 0) // self.world * self.world
        return self.start + -(-max(all_ - self.start, 0) // self.world) * self.world

    @property
    def left_out(self) -> int:
        """The rows that no rank reads, as `even` is `drop`."""
        return max(self.size - self.stop * self.batch_rows, 0)

    @property
    def repeated(self) -> int:
        """The rows that are read twice, as `even` is `pad`."""
        return max(self.stop * self.batch_rows - self.size, 0) if self.even == "pad" else 0

    def __len__(self) -> int:
        return len(range(self.start + self.rank, self.stop, self.world))

    def of_worker(self, worker: int, workers: int, taken: int = 0) -> Iterator[int]:
        """Yield the global batches of a worker of this rank behind the first `taken` ones of its own."""
        mine = range(self.start + self.rank, self.stop, self.world)
        yield from mine[worker::workers][taken:]

    def rows_of(self, batch: int, order: Order) -> I64:
        """Return the rows of a global batch; where `even` is `pad` it is full, with rows of the beginning."""
        count = -(-self.size // self.batch_rows)
        rows = order.batch(batch) if batch < count else np.empty(0, np.int64)
        if self.even != "pad" or len(rows) == self.batch_rows or not self.size:
            return rows
        missing, found = self.batch_rows - len(rows), [rows]
        at = max(batch - count, 0) if batch >= count else 0
        while missing > 0:
            more = order.batch(at % count)[:missing]
            found.append(more)
            missing, at = missing - len(more), at + 1
        return np.concatenate(found)


# Where the epoch begins, for all workers of a loader: in memory that they share with the process that started them.
#
#     load_state_dict ─▶ begin(2, 47)      first pass over the dataset: epoch 2 from global batch 47 on
#                                          every later pass: epoch 2 from its beginning
#     set_epoch       ─▶ begin(3)          epoch 3 from its beginning
#
# A pass is what one iterator of a `DataLoader` reads, with all its workers. These do not begin at the same moment, and
# some may never begin: so each says which pass it is of, and the first one claims the position for its pass. Passes
# differ in PyTorch's base seed; where a program sets the same one again, a worker that begins again is of another pass.


MOST_WORKERS: Final = 1024

_EPOCH, _START, _BEGUN, _IS_SET, _CLAIMED, _SEED, _NUMBER, _WORKERS = range(8)

SIZE: Final = _WORKERS + MOST_WORKERS
"""The numbers of a position: behind the others, for each worker whether it has begun."""


class EpochPosition:
    """The epoch, and the global batch from which its first pass goes on; `is_set` where the user has set the epoch.

    `shared` is a tensor of `SIZE` int64, of zeros at first.
    """

    def __init__(self, shared: Any) -> None:
        self._shared = shared

    @property
    def epoch(self) -> int:
        return int(self._shared[_EPOCH])

    @property
    def start(self) -> int:
        """The global batch at which the pass begins that is going on, or comes."""
        return int(self._shared[_START])

    @property
    def is_set(self) -> bool:
        return bool(self._shared[_IS_SET])

    @is_set.setter
    def is_set(self, value: bool) -> None:
        self._shared[_IS_SET] = value

    @property
    def is_claimed(self) -> bool:
        """Whether a pass has begun at this position."""
        return bool(self._shared[_CLAIMED] == self._shared[_BEGUN])

    def begin(self, epoch: int, start: int = 0) -> None:
        self._shared[_EPOCH], self._shared[_START] = epoch, start
        self._shared[_WORKERS:] = 0
        self._shared[_BEGUN] += 1

    def start_of_pass(self, worker: int, number: tuple[int, int]) -> int:
        """Return the global batch at which a pass begins for a worker; `number` is that of all workers of the pass."""
        is_claimed = self.is_claimed  # asked first: a claim is written last, when the number of its pass is there
        begun, self._shared[_WORKERS + worker] = bool(self._shared[_WORKERS + worker]), 1
        if is_claimed and (begun or (int(self._shared[_SEED]), int(self._shared[_NUMBER])) != number):
            self._shared[_START] = 0
        self._shared[_SEED], self._shared[_NUMBER] = number
        self._shared[_CLAIMED] = self._shared[_BEGUN]
        return self.start
