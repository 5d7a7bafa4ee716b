"""Batches for PyTorch: the same under any number of workers, each rank its share; training resumes at any batch.

For another number of ranks the state says how many batches were consumed: `state_dict(batches_consumed)`.

    loader = DataLoader(dataset["train"].torch(batch_rows=256, seed=1), batch_size=None, num_workers=4)

Each batch is a dict of tensors; see `numpy_columns` for what columns become. Times are int64 in their unit, text and
bytes are lists, lists of any length `Ragged` of tensors.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import IterableDataset, get_worker_info

from ...errors import InputError, ShardmillWarning, UsageError
from ...format.tfrecord.framing import Payloads
from ...format.wording.printable import printable_path
from ...stores.store_url import is_store_url
from ..storage.opened_generation import open_generation
from .epoch import (
    BLOCKS_IN_WINDOW,
    I64,
    SIZE,
    EpochBatches,
    EpochPosition,
    Order,
    ShuffledBlocks,
    order_of,
    too_much_left_out,
)
from .numbered_rows import NumberedRows
from .numpy_columns import NumpyColumns, Ragged, Values
from .record_access import joined_payloads

BLOCK_BYTES: Final = 4 << 20
LANES: Final = 8
"""Lanes of a rank whose workers then read no block twice, if there are 1, 2, 4 or 8 of them."""

SHUFFLES: Final = ("global", "blocks", "none")
EVENS: Final = ("drop", "pad", "none")


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """How rows are batched; None is chosen by the dataset and the world.

    Raises:
        UsageError: a value is none of its choices, or out of its range.
    """

    batch_rows: int
    rank: int = 0
    world: int = 1
    seed: int = 0
    shuffle: str | None = None
    even: str | None = None

    def __post_init__(self) -> None:
        for name in ("batch_rows", "rank", "world", "seed"):
            object.__setattr__(self, name, _whole(name, getattr(self, name)))
        if self.batch_rows < 1 or self.world < 1 or not 0 <= self.rank < self.world:
            raise UsageError(
                f"batch_rows is {self.batch_rows}, rank {self.rank}, world {self.world}; batches have a row at least, "
                f"and ranks are 0 to world - 1"
            )
        for name, value, choices in (("shuffle", self.shuffle, SHUFFLES), ("even", self.even, EVENS)):
            if value is not None and value not in choices:
                raise UsageError(f'{name}: "{value}" is not a choice; choices: {", ".join(choices)}')


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        raise UsageError(f"{name} is {value!r}; it is a whole number") from error


class TorchBatches(IterableDataset):  # type: ignore[misc]  # torch is no dependency of the product
    """The batches of one rank; give it to a `DataLoader` with `batch_size=None`.

    `set_epoch` makes another order, also for workers that persist. `state_dict` and `load_state_dict` resume.
    """

    def __init__(self, rows: NumberedRows, numpy: NumpyColumns, options: TorchOptions) -> None:
        super().__init__()
        self._rows, self._numpy, self._options = rows, numpy, options
        reads_runs = is_store_url(rows.path) or rows.manifest.compression != "none"  # where single rows cost much
        self._shuffle = options.shuffle or ("blocks" if reads_runs else "global")
        self._even = options.even or ("drop" if options.world > 1 else "none")
        self._seed, self._lanes = options.seed, LANES * options.world
        self._block_rows = max(1, int(BLOCK_BYTES / rows.access.record_bytes))
        self._position = EpochPosition(torch.zeros(SIZE, dtype=torch.int64).share_memory_())
        self._passes = 0  # that this very reader has begun
        self._taken = 0  # batches that it has given of the pass
        self._reader_of_state: list[int] | None = None
        self._is_done = False  # whether the state that was loaded is of a reader with nothing left
        rows.plan(numpy.columns)
        self._warn_of_left_out(0)

    def _warn_of_left_out(self, start: int) -> None:
        """Warn of a rank without a batch, and of more than a tenth of the rows that no rank reads."""
        one, batches, size = self._options, self._batches(start), len(self._rows)
        left_out = batches.left_out if self._even == "drop" else 0
        if start and left_out == size:
            return  # the state is of the end of its epoch
        said = too_much_left_out(size, left_out, one.batch_rows, one.world, 'even="pad"')
        if said is None and size and not start and not len(batches):
            said = (
                f"rank {one.rank} of world={one.world} has no batch: {size:,} rows are {batches.stop} of "
                f'batch_rows={one.batch_rows:,}; take a smaller batch_rows, or even="pad"'
            )
        if said is not None:
            warnings.warn(said, ShardmillWarning, stacklevel=4)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch: another order of the same seed. Workers that persist begin it too.

        The epoch that a state was loaded of goes on where the state says.
        """
        epoch, before = operator.index(epoch), self._position
        before.is_set = True
        if epoch == before.epoch:
            return
        if before.start and not before.is_claimed and self._left():
            said = (
                f"set_epoch({epoch}) leaves epoch {self.epoch} of the state unread; begin with range({self.epoch}, ...)"
            )
            warnings.warn(said, ShardmillWarning, stacklevel=2)
        self._begin(epoch)

    def _begin(self, epoch: int, start: int = 0) -> None:
        self._position.begin(epoch, start)
        self._taken, self._reader_of_state = 0, None

    @property
    def epoch(self) -> int:
        return self._position.epoch

    def _batches(self, start: int) -> EpochBatches:
        one = self._options
        return EpochBatches(len(self._rows), one.batch_rows, one.rank, one.world, self._even, start)

    def _left(self) -> int:
        return len(self._batches(self._position.start))

    @property
    def left_out(self) -> int:
        """The rows that no rank reads in this epoch, so that all ranks have as many batches (`even` is `drop`)."""
        return self._batches(self._position.start).left_out

    @property
    def repeated(self) -> int:
        """The rows that are read twice in this epoch, so that all ranks have as many full batches (`pad`)."""
        return self._batches(self._position.start).repeated

    def __len__(self) -> int:
        """Return the batches of this rank in a whole epoch, all workers together."""
        return len(self._batches(0))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Return the batches of this worker, or of the rank where there is none.

        The first pass goes on where a state says that was loaded, each one behind it is of the whole epoch.

        Raises:
            UsageError: the state that was loaded is of another reader.
            DamageError: a shard is missing, damaged or cut, or a record is not an Example of the schema.
        """
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        self._passes += 1
        start = self._position.start_of_pass(worker, (0 if info is None else info.seed - info.id, self._passes))
        reader, self._reader_of_state = self._reader_of_state, None
        if reader is None:
            self._taken = 0
        elif self._taken and reader != [self._options.rank, self._options.world, worker, workers]:
            raise UsageError(
                f"the state is of reader {reader} (rank, world, worker, workers); to resume with others, "
                f"save state_dict(batches_consumed) of the dataset"
            )
        batches = self._batches(start)
        has_read_all = reader is not None and self._taken > 0 and self._is_done
        numbers = () if has_read_all else batches.of_worker(worker, workers, self._taken)
        return self._read(numbers, batches, workers)

    def _read(self, numbers: Iterable[int], batches: EpochBatches, workers: int) -> Iterator[dict[str, Any]]:
        order = self._order()
        read = self._reader(order, workers).read
        for number in numbers:
            self._taken += 1
            yield tensors(self._numpy.read_filled(read(batches.rows_of(number, order))))

    def _order(self) -> Order:
        blocks, key = (self._block_rows, self._lanes), (self._seed, self.epoch)
        return order_of(self._shuffle, len(self._rows), self._options.batch_rows, blocks, key)

    def _reader(self, order: Order, workers: int) -> BatchReader:
        """Return what reads the batches: in blocks where these come in runs, and one after the other in stores."""
        most = None
        if isinstance(order, ShuffledBlocks):
            visited = order.lanes // math.gcd(order.lanes, self._options.world * workers)
            most = (visited + 2) * BLOCKS_IN_WINDOW
        elif self._shuffle == "none" and is_store_url(self._rows.path):
            most = 2
        return BatchReader(self._rows, self._numpy.columns, None if most is None else self._block_rows, most or 1)

    def state_dict(self, batches_consumed: int | None = None) -> dict[str, Any]:
        """Return where the epoch is, in under 1 KB: behind so many batches of each rank since it began or was resumed.

        Such a state may be loaded under any number of ranks and workers. Without a number, it is where this very
        reader is, for the same number of ranks and workers: what `StatefulDataLoader` asks each worker for. The dataset
        that a `DataLoader` was made of does not see how far its workers are: give it the number.

        Raises:
            UsageError: there are not so many batches.
        """
        one, info, start = self._options, get_worker_info(), self._position.start
        state = {
            "format": "shardmill.torch", "seed": self._seed, "epoch": self.epoch, "shuffle": self._shuffle,
            "lanes": self._lanes, "block_rows": self._block_rows, "batch_rows": one.batch_rows, "rows": len(self._rows),
            "shards": self._rows.digest, "generation": self._rows.manifest.generation,
            "commit": self._rows.manifest.run.commit_id, "batch": start, "taken": 0,
        }  # fmt: skip
        if batches_consumed is not None:
            batches_consumed, left = operator.index(batches_consumed), self._left()
            if not 0 <= batches_consumed <= left:
                raise UsageError(f"{batches_consumed} batches were consumed; the rank has {left} from here on")
            return state | {"batch": start + batches_consumed * one.world}
        reader = [one.rank, one.world, *((0, 1) if info is None else (info.id, info.num_workers))]
        return state | {"taken": self._taken, "reader": reader}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where a state says, in the first pass from now on; `StatefulDataLoader` calls it when it is iterated.

        A reader that had read its part of the epoch reads nothing in that pass. Behind a loop that came to its end
        `StatefulDataLoader` begins another pass at once, which is of the epoch that was set.

        Raises:
            UsageError: it is a state of another dataset, or of batches of another size or order.
        """
        self._check(state)
        self._seed, self._lanes, self._block_rows = (int(state[name]) for name in ("seed", "lanes", "block_rows"))
        epoch, start, taken = int(state["epoch"]), int(state["batch"]), int(state["taken"])
        reader: list[int] | None = state.get("reader")
        is_done = reader is not None and not self._has_left(reader, start, taken)
        is_other = reader is not None and self._position.is_set and epoch != self.epoch
        if is_other and not is_done:
            said = (
                f"the state is of epoch {epoch}, which goes on, and set_epoch({self.epoch}) was called; with a "
                f"StatefulDataLoader begin with the epoch that you saved: range({epoch}, ...)"
            )
            warnings.warn(said, ShardmillWarning, stacklevel=2)
        if not (is_other and is_done):
            self._begin(epoch, start)
            self._warn_of_left_out(start)
        self._taken, self._reader_of_state, self._is_done = taken, reader, is_done

    def _has_left(self, reader: Sequence[int], start: int, taken: int) -> bool:
        rank, world, worker, workers = reader
        batches = replace(self._batches(start), rank=rank, world=world)
        return next(batches.of_worker(worker, workers, taken), None) is not None

    def _check(self, state: Mapping[str, Any]) -> None:
        rows = self._rows
        if state.get("shards") != rows.digest:
            raise UsageError(self._of_other_shards(state.get("generation"), state.get("commit")))
        ours = {"batch_rows": self._options.batch_rows, "rows": len(rows), "shuffle": self._shuffle}
        for name, value in ours.items():
            if state.get(name) != value:
                raise UsageError(f"the state has {name} {state.get(name)!r}, this dataset {value!r}; make it with that")

    def _of_other_shards(self, generation: Any, commit: Any) -> str:
        """Return what a state of other shards is of, and what opens these, where they can be read."""
        ours, where = self._rows.manifest, printable_path(self._rows.path)
        if commit == ours.run.commit_id:
            return "the state is of other shards than those of this dataset, so its order is another one"
        try:
            found = open_generation(self._rows.path, generation).manifest.run.commit_id
        except InputError:
            found = None
        if found == commit:
            return (
                f"the state is of generation {generation}, and this is {ours.generation}; "
                f'open_dataset("{where}", {generation}) opens that'
            )
        return (
            f"the state is of generation {generation} of commit {commit}, which {where} does not hold: the dataset was "
            f"replaced, or is another one, and its rows are not here; begin an epoch without the state"
        )


def tensors(columns: Mapping[str, Values]) -> dict[str, Any]:
    return {name: _tensor(values) for name, values in columns.items()}


def _tensor(values: Values) -> Any:
    if isinstance(values, Ragged):
        return Ragged(_tensor(values.values), _tensor(values.row_splits))
    if values.dtype == object:
        return [_tensor(value) if isinstance(value, np.ndarray) else value for value in values.tolist()]
    if values.dtype.kind in "mM":
        values = values.view(np.int64)
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("="))
    return torch.from_numpy(values if values.flags.writeable and values.flags.c_contiguous else values.copy())


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
