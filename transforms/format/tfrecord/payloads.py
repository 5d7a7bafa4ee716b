"""The payloads of records, where they are: one buffer, and a start and an end for each record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..batches.views import BUFFER_LIMIT, I64, concatenate, reference_views

U8 = npt.NDArray[np.uint8]

_FEW_BYTES: Final = 1 << 14
"""Up to here it costs less to name each byte than to make a view of each piece."""


@dataclass(frozen=True, slots=True, eq=False)
class Payloads:
    """Payload i is `data[starts[i]:ends[i]]`.

    `data` is the uint8 buffer, with anything between the payloads (TFRecord headers and footers); `starts` and `ends`
    are int64, one for each record.
    """

    data: U8
    starts: I64
    ends: I64

    @classmethod
    def from_bytes(cls, payloads: Sequence[bytes]) -> Payloads:
        ends = np.cumsum(np.fromiter((len(p) for p in payloads), np.int64, len(payloads)), dtype=np.int64)
        data = np.frombuffer(b"".join(payloads), np.uint8)
        return cls(data, np.concatenate((np.zeros(1, np.int64), ends))[: len(ends)], ends)

    @classmethod
    def from_arrow(cls, payloads: pa.Array) -> Payloads:
        """Raise `ValueError` where a payload is null. Binary and large binary are not copied."""
        if payloads.null_count:
            raise ValueError("a payload is null; a record has bytes, if none at all")
        if not (pa.types.is_binary(payloads.type) or pa.types.is_large_binary(payloads.type)):
            payloads = payloads.cast(pa.large_binary())
        _, offsets, data = payloads.buffers()
        bounds = np.zeros(1, np.int64)
        if len(payloads):
            width = "<i4" if pa.types.is_binary(payloads.type) else "<i8"
            bounds = np.frombuffer(offsets, width)[payloads.offset :][: len(payloads) + 1].astype(np.int64)
        bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
        return cls(bytes_, bounds[:-1], bounds[1:])

    def to_arrow(self) -> pa.LargeBinaryArray:
        """Return the payloads as one Arrow array, in a new buffer of nothing else."""
        sizes = self.ends - self.starts
        bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(self), [None, pa.py_buffer(bounds), pa.py_buffer(self.gather(self.starts, sizes))]
        )

    def take(self, rows: I64 | npt.NDArray[np.bool_]) -> Payloads:
        return Payloads(self.data, self.starts[rows], self.ends[rows])

    def head(self, stop: int) -> Payloads:
        return Payloads(self.data, self.starts[:stop], self.ends[:stop])

    def tail(self, start: int) -> Payloads:
        return Payloads(self.data, self.starts[start:], self.ends[start:])

    def gather(self, starts: I64, sizes: I64) -> U8:
        return gather_pieces(self.data, starts, sizes)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> bytes:
        return self.data[self.starts[row] : self.ends[row]].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        view = self.data.data
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield bytes(view[start:end])


def gather_pieces(data: U8, starts: I64, sizes: I64) -> U8:
    """Return the pieces `data[start:start + size]`, one after the other in a new buffer, at memcpy speed."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    if total <= _FEW_BYTES:
        return data[np.repeat(starts - (ends - sizes), sizes) + np.arange(total)]
    used = sizes > 0
    low, high = int(starts[used].min()), int((starts + sizes)[used].max())
    if high - low > BUFFER_LIMIT:
        view = data.data
        pairs = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        return np.frombuffer(b"".join([view[start:end] for start, end in pairs]), np.uint8)
    window = pa.py_buffer(data[low:high])
    views = reference_views(np.where(used, starts - low, 0), sizes, window, 0)
    joined, _ = concatenate(views, (window,))
    return np.frombuffer(joined, np.uint8)[:total]
