"""Archives that tests make: pictures of one color, and tar files of members in a given order."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image

Members = Iterable[tuple[str, bytes]]


def picture(shade: int = 0, kind: str = "JPEG", size: tuple[int, int] = (20, 10)) -> bytes:
    """Return a picture as a file has it."""
    held = io.BytesIO()
    Image.new("RGB", size, (shade % 256, 100, 50)).save(held, kind)
    return held.getvalue()


def sample(key: str, shade: int = 0, fields: dict[str, Any] | None = None, **more: bytes) -> list[tuple[str, bytes]]:
    """Return the members of a sample: a picture, JSON where it has fields, and others by their suffix."""
    found = [(f"{key}.jpg", picture(shade))]
    found += [] if fields is None else [(f"{key}.json", json.dumps(fields).encode())]
    return found + [(f"{key}.{suffix}", data) for suffix, data in more.items()]


def tar_of(members: Members, form: int = tarfile.GNU_FORMAT) -> bytes:
    """Return a tar archive as a file has it."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=form) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return held.getvalue()


def zip_of(members: Members, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive as a file has it."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method) as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name, (2024, 5, 1, 0, 0, 0)), data, method)
    return held.getvalue()


def write(path: str | Path, data: bytes) -> None:
    """Write a file, and the folders that it is in."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(data)
