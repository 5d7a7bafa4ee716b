"""What the name of a file shows of its format."""

from __future__ import annotations

import re
from typing import Final

_SHARD_BEHIND: Final = re.compile(r"-[0-9]{1,9}-of-[0-9]{1,9}(?=(?:\.gz)?$)")


def has_suffix(name: str, suffixes: tuple[str, ...]) -> bool:
    """Return whether a name ends with one of the suffixes, which are of lowercase letters.

    The number of a shard may follow it, as in the names of TFDS and of Beam; in those of TFX before `.gz`.

    >>> has_suffix("in/A.CSV", (".csv",)), has_suffix("mnist-train.tfrecord-00000-of-00010", (".tfrecord",))
    (True, True)
    >>> has_suffix("data_tfrecord-00000-of-00012.gz", ("_tfrecord.gz",))
    True
    """
    return _SHARD_BEHIND.sub("", name).lower().endswith(suffixes)
