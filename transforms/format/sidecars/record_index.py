"""The index of a shard: where each record begins. One file beside the shard, as numbers or as text.

    index/train-00000.offsets     0 142 281 ...     uint64, little-endian: record i is bytes [i] to [i + 1] of the shard
    index/train-00000.idx         0 142             text: `offset length`, a line a record
                                  142 139

All numbers are bytes, framing included (8 bytes length, its CRC, the payload, its CRC). Offsets are what this project
reads, mapped as they are: n records have n + 1 of them, the last one is the size of the shard. The text is what NVIDIA
DALI and vahidk/tfrecord read. Source: DALI's and tfrecord's own `tfrecord2idx`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..manifest.naming import IndexKind


def index_data(offsets: npt.NDArray[np.int64], kind: IndexKind) -> bytes:
    r"""Return the index of an uncompressed shard; `offsets` are where its records begin, and its size.

    >>> index_data(np.array([0, 142, 281]), "text")
    b'0 142\n142 139\n'
    >>> index_data(np.array([0, 142]), "binary")
    b'\x00\x00\x00\x00\x00\x00\x00\x00\x8e\x00\x00\x00\x00\x00\x00\x00'
    """
    if kind == "binary":
        return offsets.astype("<u8").tobytes()
    pairs = zip(offsets[:-1].tolist(), np.diff(offsets).tolist(), strict=True)
    return b"".join(b"%d %d\n" % pair for pair in pairs)


def offsets_in(data: bytes, kind: IndexKind) -> npt.NDArray[np.int64]:
    """Raise `ValueError` where the data are not an index of this kind."""
    if kind == "binary":
        return np.frombuffer(data, "<i8")
    numbers = np.array(data.split(), np.int64).reshape(-1, 2)
    return np.concatenate((np.zeros(1, np.int64), numbers.sum(axis=1)))
