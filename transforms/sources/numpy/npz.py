"""Open the members of a `.npz` file, a zip of `.npy` files, without trusting its sizes."""

from __future__ import annotations

import errno
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ...errors import ShardmillError
from ...format.wording.printable import printable
from ..contract.source import ListedFile
from ..files.open_file import open_unbuffered
from .npy import NpyError

ZIP_MAGIC: Final = b"PK"
ZIP_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    struct.error,
)

DIRECTORY_LIMIT: Final = 64 << 20
"""Bytes of an archive's directory: `zipfile` makes an object of each of its entries, ten times as large."""

_METHODS: Final = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_SUFFIX: Final = ".npy"
_ENCRYPTED: Final = 0x1


class _BoundedFile(io.BufferedReader):
    """A file of which no more is read at once than the `limit`, as long as there is one."""

    limit: int | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        limit = self.limit
        if limit is not None and size is not None and size > limit:
            raise NpyError(
                "CORRUPT", f"the directory of its members has {size} bytes; at most {limit} are read",
                f"{size} bytes", f"at most {limit} bytes",
            )  # fmt: skip
        return super().read(size)


@contextmanager
def open_npz(listed: ListedFile, *, directory_limit: int = DIRECTORY_LIMIT) -> Iterator[zipfile.ZipFile]:
    """Open an archive for the length of a `with`; whatever is wrong with it, then or later, is an NpyError.

    It is damaged or its directory is too large (CORRUPT), or its end is missing (TRUNCATED).
    """
    with _BoundedFile(open_unbuffered(listed)) as file:
        file.limit = directory_limit
        try:
            archive = zipfile.ZipFile(file)
            file.limit = None
        except (NpyError, ShardmillError):
            raise
        except zipfile.BadZipFile as error:
            raise NpyError(
                "TRUNCATED", "its zip directory, at its end, is missing: the file is cut", expected="a .npz file"
            ) from error  # fmt: skip
        except ZIP_ERRORS as error:
            raise NpyError("CORRUPT", f"it is not a sound .npz file: {printable(error)}") from error
        try:
            with archive:
                yield archive
        except (NpyError, ShardmillError):
            raise
        except ZIP_ERRORS as error:
            raise NpyError("CORRUPT", f"it is not a sound .npz file: {printable(error)}") from error
        except OSError as error:
            # A member's offset that is before the file is a seek that the system refuses.
            if error.errno != errno.EINVAL:
                raise
            raise NpyError("CORRUPT", "a member of it is not inside the file") from error


def array_members(archive: zipfile.ZipFile, limit_bytes: int | None) -> dict[str, zipfile.ZipInfo]:
    """Return the arrays of an archive by name, sorted, once their directory entries were looked at.

    `limit_bytes` caps what all of them take unpacked. No cap on the ratio is needed: numpy writes stored and deflated
    members only, others are refused, and deflate cannot exceed 1032 to 1; an array of zeros comes near that by right.
    `zipfile` unpacks no more of a member than its directory entry says. Raises `NpyError`: a member is not an array,
    appears twice, is encrypted or packed by another method (UNSUPPORTED or CORRUPT), or they are over the limit
    (RECORD_TOO_LARGE).
    """
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        shown = printable(info.filename)
        if not info.filename.endswith(_SUFFIX):
            raise NpyError("UNSUPPORTED", f'its member "{shown}" is not a .npy file', shown)
        name = info.filename.removesuffix(_SUFFIX)
        if name in members:
            raise NpyError("CORRUPT", f'two of its members are named "{shown}"', shown)
        if info.flag_bits & _ENCRYPTED:
            raise NpyError("UNSUPPORTED", f'its member "{shown}" is encrypted', shown)
        if info.compress_type not in _METHODS:
            raise NpyError("UNSUPPORTED", f'its member "{shown}" is neither stored nor deflated', shown)
        members[name] = info
    total = sum(info.file_size for info in members.values())
    if limit_bytes is not None and total > limit_bytes:
        raise NpyError(
            "RECORD_TOO_LARGE", f"unpacked it has {total} bytes, over limits.record_bytes = {limit_bytes}",
            f"{total} bytes", f"at most {limit_bytes} bytes",
        )  # fmt: skip
    return dict(sorted(members.items()))
