"""What the name of a file says, without reading it: its format, or that it is hidden, junk, no image, or ignored.

Of pictures only listed names are skipped: a file of an unknown suffix, or of none, may be one, and its content decides.
Pictures of formats that are not read, and archives, which may hold pictures, are not listed: each of them is a reject.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from importlib import import_module
from typing import Any, Final

from ...format.wording.hints import Foreign

_JUNK: Final = {
    **dict.fromkeys((b"thumbs.db", b"ehthumbs.db", b"desktop.ini", b"__macosx", b"lost+found"), "junk"),
    **dict.fromkeys((b"$recycle.bin", b"system volume information", b"#recycle", b"@recycle"), "junk"),
    b"@eadir": "@eaDir",
}
"""What systems leave in folders; in `@eaDir` Synology has pictures of each picture."""

_MOST_KINDS: Final = 20
_ROBOFLOW: Final = re.compile(rb"/_(?:annotations\.csv|classes\.csv|annotations(?:\.[a-z]+)?\.jsonl)\Z")
_MOST_NOTABLE: Final = 1000
_SUFFIX: Final = re.compile(rb".\.([a-z0-9_]{1,12})\Z")
ARCHIVE: Final = rb"\.(?:zip|tar|tgz|7z|rar|tar\.[a-z0-9]{2,3})"
"""The suffix of an archive, in lower case."""

SPLITS: Final = (
    "train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval", "evaluation",
)  # fmt: skip
"""The words of splits in names of files and folders."""

_NOTABLE: Final = re.compile(
    rb"readme\.md|.*" + ARCHIVE + rb"|"
    rb"(?:[a-z0-9_-]*[_-])?(?:" + "|".join(SPLITS).encode() + rb")"
    rb"(?:[_-]?(?:set|list|split|files|images))?\.(?:txt|lst|csv|tsv)|"
    rb"(?:[a-z0-9_-]*[_-])?(?:labels?|captions?|annotations?|metadata|classes|boxes|bbox|bboxes|list)\.(?:csv|tsv)|"
    rb"metadata\.(?:jsonl|parquet)|(?:captions?|list|trainval)\.txt"
)
"""Names, in lower case, of files that may belong to those that are read: archives, lists of splits, tables."""

TEXTS: Final = (b".txt", b".lst", b".csv", b".tsv", b".json", b".jsonl", b".ndjson", b".manifest", b".labels", b".xml")
"""Suffixes of files whose contents may name pictures beside them."""

_MOST_TEXTS: Final = 64
_MANY_TEXTS: Final = 1 << 12

_OTHER_SUFFIXES: Final = frozenset(
    b"." + suffix
    for suffix in (
        b"txt md rst pdf doc docx odt rtf tex html htm log ppt pptx "  # texts
        b"json jsonl ndjson xml csv tsv yaml yml toml ini cfg xls xlsx lst names data datum manifest labels "  # annot.
        b"npy npz mat pkl pickle h5 hdf5 parquet feather arrow tfrecord tfrecords tfrec pt pth ckpt db sqlite "  # data
        b"py pyc ipynb sh bat m r md5 sha1 sha256 sha512 asc url lnk torrent dvc "  # programs, checksums, links
        b"mp4 avi mov mkv webm m4v 3gp mpg mpeg mts m2ts wmv wav mp3 flac ogg m4a "  # video and sound
        b"aae xmp thm lrv pp3 dop gpx srt"  # what phones, cameras and their programs write beside
    ).split()
)
_OTHER_NAMES: Final = frozenset(
    b"readme license licence copying notice authors changelog makefile md5sums sha1sums sha256sums dvc.lock".split()
)


def why_skipped(name: bytes) -> str | None:
    """Return why a file or folder of this name is skipped wherever it is, or None.

    Cameras begin names of pictures with `_`, as programs do those of their own files.

    >>> why_skipped(b".DS_Store"), why_skipped(b"Thumbs.db"), why_skipped(b"@eaDir"), why_skipped(b"README.txt")
    ('hidden', 'junk', '@eaDir', None)
    >>> why_skipped(b"_SUCCESS"), why_skipped(b"_DSC0042.JPG"), why_skipped(b"._a.jpg")
    ('hidden', None, 'hidden')
    """
    found = _JUNK.get(name.lower())
    hidden = name.startswith(b".") or (name.startswith(b"_") and not name.lower().endswith(PICTURE_SUFFIXES))
    return found or ("hidden" if hidden else None)


def is_of_roboflow(path: bytes) -> bool:
    return _ROBOFLOW.search(path) is not None


def is_other_file(name: bytes) -> bool:
    """Return whether a file has a name that images do not have.

    >>> is_other_file(b"README.txt"), is_other_file(b"LICENSE"), is_other_file(b"out.manifest"), is_other_file(b"00017")
    (True, True, True, False)
    """
    lower = name.lower()
    return lower[lower.rfind(b".") :] in _OTHER_SUFFIXES or lower in _OTHER_NAMES


_NOTE: Final = re.compile(
    rb"(?:readme|licen[cs]e|copying|notice|authors|changelog|citation)(?:\..*)?|(?:classes|labels)\.txt|"
    rb".+[._]readme(?:\..*)?|"
    rb".*\.(?:md|rst|names|yaml|yml)",
    re.IGNORECASE | re.DOTALL,
)
"""Names of files that say something of data, and are none."""


_NOTE_OF_TEXTS: Final = re.compile(
    r"(?:(?:readme|licen[cs]e|copying|changelog|citation|speakers?(?:[_-]?info)?)(?:[_.-].*)?|.+[_-]about|"
    r".+[._]readme(?:[._-].*)?)\.txt(?:\.[a-z0-9]+)?",
    re.IGNORECASE,
)


def is_note_of_texts(name: str) -> bool:
    """Return whether a text beside texts is a note on them by its name.

    >>> is_note_of_texts("README.txt"), is_note_of_texts("speaker-info.txt"), is_note_of_texts("readmes.txt")
    (True, True, False)
    """
    return _NOTE_OF_TEXTS.fullmatch(name) is not None


def notes_among(paths: Sequence[bytes], *, folders: bool = False) -> set[bytes]:
    """Return the notes among files of a glob, beside data or `folders`: of names and suffixes that no data have.

    >>> sorted(notes_among([b"in/a.csv", b"in/README.md", b"in/LICENSE"])), notes_among([b"README.txt", b"a.txt"])
    ([b'in/LICENSE', b'in/README.md'], set())
    """
    notes = {path for path in paths if _NOTE.fullmatch(os.path.basename(path))}
    ends = {os.path.splitext(path)[1].lower() for path in paths if path not in notes}
    return {path for path in notes if (ends or folders) and os.path.splitext(path)[1].lower() not in ends}


def pictures_below(root: bytes, *, deep: bool = True) -> Iterator[bytes]:
    """Yield the paths of files below a folder that may be pictures by their names; not `deep`: of those in it."""
    for folder, names in _walk(root, deep=deep):
        yield from (os.path.join(folder, name) for name in names if not is_other_file(name))


def files_below(root: bytes) -> Iterator[bytes]:
    """Yield the paths of files below a folder, but for those that are skipped wherever they are."""
    for folder, names in _walk(root):
        yield from (os.path.join(folder, name) for name in names)


def _walk(root: bytes, *, deep: bool = True) -> Iterator[tuple[bytes, list[bytes]]]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if deep and why_skipped(name) is None]
        yield folder, [name for name in names if why_skipped(name) is None]


@dataclass(slots=True)
class LeftOut:
    """What a listing leaves out: how many of each kind, and the paths of files that may belong to what is read.

    `texts` are others whose names do not say so, and whose contents may, the largest first: captions and boxes beside
    each picture are small. `more` may belong too, and are counted alone.

    Kinds are suffixes (`.txt`), and reasons: hidden, hidden folder, junk, @eaDir, ignored, dataset, links, empty, dvc.
    """

    counts: Counter[str] = field(default_factory=Counter)
    notable: list[bytes] = field(default_factory=list)
    _sized: list[tuple[int, bytes]] = field(default_factory=list)
    _seen: int = 0

    @property
    def texts(self) -> list[bytes]:
        return [path for _, path in nsmallest(_MOST_TEXTS, self._sized)]

    @property
    def more(self) -> int:
        return self._seen - len(self.notable) - len(self.texts)

    def skip(self, kind: str, path: bytes = b"") -> None:
        """Count what is left out; annotations that begin with `_` are kept for a warning, as nobody hides them."""
        if path.endswith((b"/_annotations.coco.json", b"/_annotations.json")):
            self.skip_file(path)
            return
        self.counts[kind] += 1
        if is_of_roboflow(path):
            self._note(path)

    def skip_file(self, path: bytes, size: int = 0) -> None:
        """Leave out a file of another kind."""
        name = path[path.rfind(b"/") + 1 :].lower()
        found = _SUFFIX.search(name)
        if name.endswith(b".dvc") or name in (b"dvc.lock", b"dvc.yaml"):
            self.counts["dvc"] += 1
            return
        self.counts[f".{found[1].decode()}" if found else "without a suffix"] += 1
        if _NOTABLE.fullmatch(name):
            self._note(path)
        elif name.endswith(TEXTS):
            self._seen += 1
            self._sized.append((-size, path))
            if len(self._sized) > _MANY_TEXTS:
                self._sized = nsmallest(_MOST_TEXTS, self._sized)

    def _note(self, path: bytes) -> None:
        self._seen += 1
        if len(self.notable) < _MOST_NOTABLE:
            self.notable.append(path)

    def add(self, more: LeftOut) -> None:
        self.counts += more.counts
        self._seen += more._seen
        self.notable += more.notable
        self._sized = nsmallest(_MOST_TEXTS, self._sized + more._sized)

    def by_kind(self) -> dict[str, int]:
        """Return the counts as a manifest has them: of many suffixes the most common ones, and the others together."""
        suffixes = [one for one in self.counts if one.startswith(".")]
        rare = sorted(suffixes, key=lambda one: (-self.counts[one], one))[_MOST_KINDS:]
        kept = {kind: count for kind, count in self.counts.items() if kind not in set(rare)}
        return dict(sorted((kept | ({"other": sum(self.counts[one] for one in rare)} if rare else {})).items()))


_WORDS: Final = {
    "hidden": "hidden file", "hidden folder": "hidden folder", "dataset": "dataset", "empty": "empty folder",
    "links": "link to a folder", "dvc": "file of DVC",
}  # fmt: skip
_SEVERAL: Final = {"links": "links to folders", "dvc": "files of DVC"}


def left_out_text(counts: Mapping[str, int]) -> str:
    """Return what was left out, most of a kind first.

    >>> left_out_text({".txt": 3, "hidden folder": 2, "junk": 1})
    '3 .txt, 2 hidden folders, 1 junk'
    """
    parts = []
    for kind, count in sorted((one for one in counts.items() if one[1]), key=lambda one: (-one[1], one[0])):
        word = _WORDS.get(kind, kind)
        many = _SEVERAL.get(kind, f"{word}s")
        parts.append(f"{count:,} {many if kind in _WORDS and count > 1 else word}")
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Ignored:
    """The files and folders that a config ignores: globs of names or, with a `/`, of paths below the root."""

    names: re.Pattern[str] | None = None
    paths: re.Pattern[str] | None = None

    @classmethod
    def of(cls, globs: Sequence[str]) -> Ignored:
        globs = [pattern.rstrip("/") for pattern in globs]
        return cls(
            _any_of([pattern for pattern in globs if "/" not in pattern]),
            _any_of([pattern.lstrip("/") for pattern in globs if "/" in pattern]),
        )

    def is_below(self, below: bytes) -> bool:
        """Return whether a path below the root is ignored, or a folder on its way."""
        steps = below.split(b"/")
        return any(self(b"/".join(steps[:at]), step) for at, step in enumerate(steps))

    def __call__(self, folder: bytes, name: bytes) -> bool:
        if self.names is not None and self.names.match(os.fsdecode(name)):
            return True
        return self.paths is not None and bool(self.paths.match(os.fsdecode(os.path.join(folder, name))))


def _any_of(globs: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(fnmatch.translate, globs))) if globs else None


# The formats of files: a line for each; all else that is known of a format is in `sources/formats`, by the name of its
# line.
#
#     "orc": FormatEntry("...sources.formats:ORC", (".orc",)),
#
# Nothing is imported before it is asked for: a format can be named without its module, and its options can be checked
# without pyarrow.


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
    "csv": FormatEntry("...sources.formats:CSV", packed(".csv", ".tsv")),
    "parquet": FormatEntry("...sources.formats:PARQUET", (".parquet", ".pq"), (b"PAR1",), "a Parquet file"),
    "images": FormatEntry(
        "...sources.formats:IMAGES",
        (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".avif", ".jp2"),
        (b"\x89PNG", b"\xff\xd8\xff"),
        "an image",
        has_notes=True,
    ),
    "numpy": FormatEntry("...sources.formats:NUMPY", (".npy", ".npz")),
    "tfrecord": FormatEntry("...sources.formats:TFRECORD", _TFRECORD, called="a TFRecord file"),
    "jsonl": FormatEntry("...sources.formats:JSONL", packed(".jsonl", ".ndjson")),
    "arrow": FormatEntry("...sources.formats:ARROW", (".arrow", ".feather", ".ipc"), _ARROW, "an Arrow file"),
    "txt": FormatEntry("...sources.formats:TXT", packed(".txt"), may_be_notes=2),
    "coco": FormatEntry("...sources.formats:COCO", ()),
    "voc": FormatEntry("...sources.formats:VOC", ()),
    "yolo": FormatEntry("...sources.formats:YOLO", ()),
    "boxes": FormatEntry("...sources.formats:BOXES", ()),
    "tar": FormatEntry("...sources.formats:TAR", (*packed(".tar"), ".tgz"), (b"ustar",), "a tar archive", magic_at=257),
    "zip": FormatEntry("...sources.formats:ZIP", (".zip",), _ZIP, "a zip archive", may_be_notes=1),
}
"""All formats, by what `input.format` calls them, in the order in which they are listed."""

PICTURE_SUFFIXES: Final = tuple(map(os.fsencode, FORMATS["images"].suffixes))


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
