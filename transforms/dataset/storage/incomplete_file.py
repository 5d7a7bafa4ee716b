"""A file that appears whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def incomplete_file(path: str | bytes) -> Iterator[BinaryIO]:
    """Open a hidden file beside `path`; when the block ends, sync it and let it take the place of `path`.

    If the block raises, the hidden file is removed and `path` is what it was. The folder is synced too: the new name
    then outlives a power cut.
    """
    target = os.fsencode(path)
    folder, name = os.path.split(target)
    hidden = os.path.join(folder, b"." + name[:200] + b"." + uuid.uuid4().hex[:12].encode() + b".incomplete")
    try:
        with open(hidden, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, target)
    except BaseException:
        if os.path.lexists(hidden):
            os.unlink(hidden)
        raise
    descriptor = os.open(folder or b".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
