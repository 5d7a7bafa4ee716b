"""The index of a shard: one line of text a record, `offset length`, as NVIDIA DALI and vahidk/tfrecord read it.

    0 142
    142 139
    ...

Both numbers are bytes; the length is that of the whole framed record (8 bytes length, its CRC, the payload, its CRC),
so that each offset is the sum of the lengths before it. Source: DALI's and tfrecord's own `tfrecord2idx`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def index_text(ends: npt.NDArray[np.int64]) -> bytes:
    r"""Return the index of an uncompressed shard whose records end at these byte offsets.

    >>> index_text(np.array([142, 281]))
    b'0 142\n142 139\n'
    """
    starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
    return b"".join(b"%d %d\n" % pair for pair in zip(starts.tolist(), (ends - starts).tolist(), strict=True))


def index_path(shard_path: str) -> str:
    """Return the path of a shard's index.

    >>> index_path("train-00000.tfrecord")
    'index/train-00000.idx'
    """
    return f"index/{shard_path.removesuffix('.tfrecord')}.idx"
