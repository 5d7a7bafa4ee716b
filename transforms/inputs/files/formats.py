"""The formats of files: a line for each; all else that is known of a format is in the module that its line names.

    "kv": FormatEntry("...sources.kv.format", (".kv",)),

Nothing is imported before it is asked for: a format can be named without its module, and its options can be checked
without pyarrow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from ...format.wording.hints import Foreign


@dataclass(frozen=True, slots=True)
class FormatEntry:
    """The line of a format.

    `module` has the rest, as its `FORMAT` or as what is named after a colon: a name relative to this package, or an
    absolute one. `suffixes` show the
    format of a file, in lower case; case is ignored. A file that has one of `first_bytes` at the offset `magic_at` is
    `called` so, whatever its suffix. With `has_notes` files of other kinds, like a README, may be beside the files.
    With `may_be_notes` its own files may be such: where a folder has files of another format, whose number is less,
    they do not show theirs.
    """

    module: str
    suffixes: tuple[str, ...]
    first_bytes: tuple[bytes, ...] = ()
    called: str = ""
    has_notes: bool = False
    may_be_notes: int = 0
    magic_at: int = 0

    def load(self) -> Any:
        """Return its `Format` (`registry/format.py`)."""
        module, _, name = self.module.partition(":")
        return getattr(import_module(module, __package__), name or "FORMAT")


def packed(*suffixes: str) -> tuple[str, ...]:
    """Return suffixes of text as they are, and those of text that is compressed.

    >>> packed(".csv")
    ('.csv', '.csv.gz', '.csv.bz2', '.csv.xz', '.csv.zst')
    """
    return tuple(suffix + end for end in ("", ".gz", ".bz2", ".xz", ".zst") for suffix in suffixes)


_ARROW: Final = (b"ARROW1", b"\xff\xff\xff\xff")
"""The file format, and the mark before each message of the stream format, which no text begins with."""

_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
"""The header of the first member, and the end of an archive without members."""

_TFRECORD: Final = tuple(
    suffix + end for end in ("", ".gz") for suffix in (".tfrecord", ".tfrecords", ".tfrec", ".record", "_tfrecord")
)
"""The last one is of TFX: `data_tfrecord-00000-of-00012.gz`."""

RECORD_NAMES: Final = (*_TFRECORD, "part-r", "part-r.gz")
"""The names of TFRecord files in a folder of them: `part-r-00000` of Spark may as well be of text in other folders."""

HEAD_BYTES: Final = 512
"""How much of a file shows its format: tar has its mark at byte 257."""

FORMATS: Final[dict[str, FormatEntry]] = {
    "csv": FormatEntry("...sources.csv.format", packed(".csv", ".tsv")),
    "parquet": FormatEntry("...sources.parquet.format", (".parquet", ".pq"), (b"PAR1",), "a Parquet file"),
    "images": FormatEntry(
        "...sources.images.format",
        (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif", ".jp2"),
        (b"\x89PNG", b"\xff\xd8\xff"),
        "an image",
        has_notes=True,
    ),
    "numpy": FormatEntry("...sources.numpy.format", (".npy", ".npz")),
    "tfrecord": FormatEntry("...sources.tfrecord.format", _TFRECORD, called="a TFRecord file"),
    "jsonl": FormatEntry("...sources.jsonl.format", packed(".jsonl", ".ndjson")),
    "arrow": FormatEntry("...sources.arrow.format", (".arrow", ".feather", ".ipc"), _ARROW, "an Arrow file"),
    "txt": FormatEntry("...sources.txt.format", packed(".txt"), may_be_notes=2),
    "coco": FormatEntry("...sources.annotations.formats:COCO", ()),
    "voc": FormatEntry("...sources.annotations.formats:VOC", ()),
    "yolo": FormatEntry("...sources.annotations.formats:YOLO", ()),
    "boxes": FormatEntry("...sources.annotations.formats:BOXES", ()),
    "tar": FormatEntry(
        "...sources.archives.format:TAR", (*packed(".tar"), ".tgz"), (b"ustar",), "a tar archive", magic_at=257
    ),
    "zip": FormatEntry("...sources.archives.format:ZIP", (".zip",), _ZIP, "a zip archive", may_be_notes=1),
}
"""All formats, by what `input.format` calls them, in the order in which they are listed."""


def suffixes_of(name: str) -> tuple[str, ...]:
    """Return the suffixes that show a format.

    >>> suffixes_of("numpy")
    ('.npy', '.npz')
    """
    return FORMATS[name].suffixes


def format_of_name(name: str) -> str | None:
    """Return the format that the name of a file shows, None if it shows none.

    >>> format_of_name("in/A.CSV"), format_of_name("README")
    ('csv', None)
    """
    known = _BY_SUFFIX.get(name[name.rfind(".") :].lower())
    return known or next((known for known, entry in FORMATS.items() if has_suffix(name, entry.suffixes)), None)


_BY_SUFFIX: Final = {suffix: name for name, entry in FORMATS.items() for suffix in entry.suffixes}


def format_of_first_bytes(head: bytes) -> str | None:
    """Return the format that begins so, None if none does; `HEAD_BYTES` are enough.

    >>> format_of_first_bytes(b"PAR1...")
    'parquet'
    """
    return next((name for name, one in FORMATS.items() if head.startswith(one.first_bytes, one.magic_at)), None)


_SHARD_BEHIND: Final = re.compile(r"(?:-[0-9]{1,9}-of-[0-9]{1,9}|(?<=part-r)-[0-9]{5,9})(?=(?:\.gz)?$)")


def has_suffix(name: str, suffixes: tuple[str, ...]) -> bool:
    """Return whether a name ends with one of the suffixes, which are of lowercase letters.

    The number of a shard may follow it, as in the names of TFDS and of Beam; in those of TFX before `.gz`.

    >>> has_suffix("in/A.CSV", (".csv",)), has_suffix("mnist-train.tfrecord-00000-of-00010", (".tfrecord",))
    (True, True)
    >>> has_suffix("data_tfrecord-00000-of-00012.gz", ("_tfrecord.gz",))
    True
    """
    lower = name.lower()
    return lower.endswith(suffixes) or ("-" in name and _SHARD_BEHIND.sub("", lower).endswith(suffixes))


_KEY: Final = re.compile(rb"\w+")


def with_tabs(path: str, lines: Sequence[bytes]) -> str:
    """Return what is to be said of a file with `::` between its cells, as MovieLens has it; empty of others."""
    rows = [line.split(b"::") for line in lines]
    if len({len(row) for row in rows}) != 1 or len(rows[0]) == 1 or not all(_KEY.fullmatch(row[0]) for row in rows):
        return ""
    name = f"{os.path.splitext(os.path.basename(path))[0]}.tsv"
    what = 'its cells have "::" between them, and a delimiter is one character; write tabs'
    command = Foreign("awk", "-F::", "-v", "OFS=\\t", "{$1=$1} 1", path, to=name)
    return f"{what}: {command}; then convert {name}"
