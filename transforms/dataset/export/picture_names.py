"""The names of the files of pictures: those that they had, where a file system and a reader of folders take them.

cat/1.jpg, of class cat                 cat/1.jpg
shelf/1.jpg, without classes            shelf/1.jpg
../../1.png, a JPEG                     1.jpg
no name                                 00000042.jpg
1.jpg again                             1-00000042.jpg
"""

from __future__ import annotations

import os
import re
from typing import Final

from ...format.wording.printable import printable
from ..storage.direct_file import errors_named

_SUFFIXES: Final = {
    "jpeg": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "png": (".png",),
    "gif": (".gif",),
    "webp": (".webp",),
    "bmp": (".bmp", ".dib"),
    "tiff": (".tif", ".tiff"),
    "avif": (".avif",),
    "heic": (".heic", ".heif"),
    "heif": (".heif", ".heic"),
    "jpeg2000": (".jp2", ".j2k"),
    "jp2": (".jp2", ".j2k"),
}
_BEGINNINGS: Final = (
    (b"\xff\xd8", "jpeg"), (b"\x89PNG", "png"), (b"GIF8", "gif"), (b"BM", "bmp"), (b"II*\0", "tiff"),
    (b"MM\0*", "tiff"),
)  # fmt: skip
_UNSAFE: Final = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
_MOST_BYTES: Final = 180


def safe_name(name: str) -> str:
    r"""Return a name for a file or folder, that no reader of folders skips and that leads nowhere else.

    >>> safe_name("cat"), safe_name("../a\n"), safe_name("_x"), safe_name("")
    ('cat', '-.-a-', '-x', '-')
    """
    name = _UNSAFE.sub("-", name).encode("utf-8", "replace")[:_MOST_BYTES].decode("utf-8", "ignore").strip(" ")
    return f"-{name[1:]}" if name[:1] in (".", "_", "") else name


def kind_of(content: bytes) -> str | None:
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return next((kind for start, kind in _BEGINNINGS if content.startswith(start)), None)


def picture_path(name: str | None, folder: str | None, number: int, kind: str | None) -> str:
    """Return the path of a picture below its split: in the folder of its class, or where its own path leads.

    >>> picture_path("cat/1.jpg", "cat", 7, "jpeg"), picture_path("a/b.PNG", None, 7, "png")
    ('cat/1.jpg', 'a/b.PNG')
    >>> picture_path("x.png", None, 7, "jpeg"), picture_path(None, "cat", 7, "png")
    ('x.jpg', 'cat/00000007.png')
    """
    steps = [step for step in (name or f"{number:08d}").split("/") if step not in ("", ".", "..")] or [f"{number:08d}"]
    stem, suffix = os.path.splitext(steps[-1])
    known = _SUFFIXES.get(kind or "", (suffix,))
    last = safe_name(stem) + (suffix if suffix.lower() in known else known[0])
    before = [folder] if folder is not None else [safe_name(step) for step in steps[:-1]]
    return "/".join([*before, last])


def write_new(root: str, path: str, number: int, content: bytes) -> str:
    """Write a file below a folder, under another name if there is one of that name; return its path below it."""
    stem, suffix = os.path.splitext(path)
    for name in (path, f"{stem}-{number:08d}{suffix}"):
        full = os.path.join(root, name)
        try:
            with errors_named(full), open(full, "xb") as file:
                file.write(content)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with errors_named(full), open(full, "xb") as file:
                file.write(content)
        except FileExistsError:
            continue
        return name
    raise FileExistsError(17, "two pictures have this name", printable(os.path.join(root, path)))
