"""Where the epoch begins, for all workers of a loader: in memory that they share with the process that started them.

    load_state_dict ─▶ begin(2, 47)      first pass over the dataset: epoch 2 from global batch 47 on
                                         every later pass: epoch 2 from its beginning
    set_epoch       ─▶ begin(3)          epoch 3 from its beginning

A pass is what one iterator of a `DataLoader` reads, with all its workers. These do not begin at the same moment, and
some may never begin: so each says which pass it is of, and the first one claims the position for its pass. Passes
differ in PyTorch's base seed; where a program sets the same one again, a worker that begins again is of another pass.
"""

from __future__ import annotations

from typing import Any, Final

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
