"""128 bits of a hash for each record: what is equal in them is taken to be equal.

The hash is SipHash-2-4 under two keys (Aumasson and Bernstein, *SipHash: a fast short-input PRF*, 2012), as pandas has
it for arrays. That two of n different records have the same 128 bits has a probability of n**2 / 2**129: for a billion
of them 1.5e-21.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pandas.util import hash_array

from ..format.flow.blocks import Frames

_KEYS: Final = ("shardmill: first", "shardmill:second")  # 16 bytes each
_AT_ONCE: Final = 1 << 10  # records as objects; so many stay in the processor's cache, which takes half the time off

DIGEST: Final = np.dtype([("high", "<u8"), ("low", "<u8")])


def digests_of(frames: Frames) -> npt.NDArray[np.void]:
    """Return the digest of each framed record, as an array of `DIGEST`.

    The frame is hashed too: it holds nothing but the record's length and checksums.
    """
    found = np.empty(frames.records, DIGEST)
    if frames.records:
        data = frames.buffers[0] if len(frames.buffers) == 1 else pa.py_buffer(b"".join(frames.buffers))
        offsets = pa.py_buffer(np.append(np.zeros(1, np.int64), frames.ends))
        records = pa.LargeBinaryArray.from_buffers(pa.large_binary(), frames.records, [None, offsets, data])
        for start in range(0, frames.records, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            found[part] = digests_of_values(records[part].to_numpy(zero_copy_only=False))
    return found


def digests_of_values(values: Sequence[bytes] | npt.NDArray[np.object_]) -> npt.NDArray[np.void]:
    objects = np.empty(len(values), object)
    objects[:] = values
    found = np.empty(len(objects), DIGEST)
    for half, key in zip(("high", "low"), _KEYS, strict=True):
        found[half] = hash_array(objects, hash_key=key, categorize=False)
    return found
