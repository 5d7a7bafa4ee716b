"""The names of datasets, splits and files: which are allowed, and how they are made.

    out/
      train-00000.tfrecord                     shard_file_name("{split}-{index:05d}", "train", 0, count, "none")
      manifests/00000001.json                  generation_file("manifests", 1, "json")
      .staging/<run>/shards/train-00000.tfrecord   staged_file(".staging/<run>", "train-00000.tfrecord")

Every path in a manifest is relative to the dataset's folder, and is checked before a file is opened, made or removed
by its name: a manifest may come from anywhere.
"""

from __future__ import annotations

import re
from typing import Final, Literal

DEFAULT_SHARD_NAME: Final = "{split}-{index:05d}"
"""Index only: an append then never renames what is published."""

STAGING_FOLDER: Final = ".staging"
"""Hidden, so that no glob over shards and no reader of folders looks into it."""

INDEX_FOLDER: Final = "index"
"""Where the indexes of shards are: `sidecars/sidecar_files` says what they hold."""

IndexKind = Literal["text", "binary"]

DATASET_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
SPLIT_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""The names of splits, which become parts of file names."""

_ASIDE: Final = re.compile(r"aside\.[0-9]{1,3}")
_SAFE_PATH: Final = re.compile(r"[A-Za-z0-9._=/-]+")
SHARD_PATH: Final = re.compile(
    r"[A-Za-z0-9=-][A-Za-z0-9._=-]*"
    r"(?:\.(?:tfrecords?|tfrec|record)(?:-[0-9]+-of-[0-9]+)?|_tfrecord-[0-9]+-of-[0-9]+)(?:\.gz)?"
)
"""What other writers call their files (`mnist-train.tfrecord-00000-of-00010`) is so where they were adopted."""

_SIDECAR_PATH: Final = re.compile(
    r"dataset_info\.json|features\.json|schema\.pbtxt|stats\.json|stats\.tfdv|croissant\.json|report\.html|"
    r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*\.(labels\.txt|label_map\.pbtxt)|label_map\.pbtxt|"
    r"index/[A-Za-z0-9=-][A-Za-z0-9._=-]*\.(idx|offsets)"
)
_LIST_PATH: Final = re.compile(r"(sources|rejects)/[0-9]{8,19}\.jsonl")
_STAGING_PATH: Final = re.compile(r"\.staging/[0-9a-f]{16}(/try-[0-9]{8,18})?")
_FIELD: Final = re.compile(r"\{(split|index|count)(?::0([1-9])d)?\}")
_TEMPLATE_TEXT: Final = re.compile(r"[A-Za-z0-9._=-]*")
_SUFFIXES: Final = {"none": ".tfrecord", "gzip": ".tfrecord.gz"}
_INDEX_SUFFIXES: Final[dict[IndexKind, str]] = {"text": ".idx", "binary": ".offsets"}


def is_split_name(name: str) -> bool:
    """Return whether a split may have this name.

    >>> is_split_name("train"), is_split_name("../train")
    (True, False)
    """
    return SPLIT_NAME.fullmatch(name) is not None


def set_aside(number: int) -> str:
    """Return the name of records that are set aside until it is known which split they go to.

    >>> set_aside(0), is_set_aside("aside.0"), is_split_name("aside.0")
    ('aside.0', True, False)
    """
    return f"aside.{number}"


def is_set_aside(name: str) -> bool:
    """Return whether a name is that of records that are set aside: no split has such a name."""
    return _ASIDE.fullmatch(name) is not None


def is_safe_path(path: str) -> bool:
    """Return whether a path from a manifest stays below the folder of its dataset, by its text alone.

    >>> [is_safe_path(p) for p in ("train-00000.tfrecord", "a/b", "/a", "a//b", "a/../b", "s3://b/a", "a/", "")]
    [True, True, False, False, False, False, False, False]
    """
    if _SAFE_PATH.fullmatch(path) is None:
        return False
    return all(piece not in ("", ".", "..") for piece in path.split("/"))


def is_shard_path(path: str) -> bool:
    """Return whether a shard may have this path: a file of the folder itself, by its suffix a TFRecord file.

    >>> [is_shard_path(p) for p in ("train-00000.tfrecord", "manifest.json", "index/a.tfrecord", ".x.tfrecord")]
    [True, False, False, False]
    >>> [is_shard_path(p) for p in ("mnist-train.tfrecord-00000-of-00010", "a.tfrecords.gz", "a.gz")]
    [True, True, False]
    >>> is_shard_path("data_tfrecord-00000-of-00012.gz")  # of TFX
    True
    """
    return SHARD_PATH.fullmatch(path) is not None


def is_sidecar_path(path: str) -> bool:
    """Return whether a sidecar may have this path: a writer that replaces a generation removes its sidecars.

    Those of a label are named by its feature, whatever its name, as TFDS looks for them.

    >>> [is_sidecar_path(p) for p in ("features.json", "Straße (a b).labels.txt", "index/a.idx")]
    [True, True, True]
    >>> [is_sidecar_path(p) for p in ("manifests/00000001.json", "../a.labels.txt", ".a.labels.txt")]
    [False, False, False]
    """
    return _SIDECAR_PATH.fullmatch(path) is not None


def is_list_path(path: str, folder: str) -> bool:
    """Return whether a list of sources or of rejects may have this path.

    >>> is_list_path("rejects/00000001.jsonl", "rejects"), is_list_path("sources/00000001.jsonl", "rejects")
    (True, False)
    """
    return _LIST_PATH.fullmatch(path) is not None and path.startswith(f"{folder}/")


def is_staging_path(path: str) -> bool:
    """Return whether a run may have its staging folder here, which is removed with all that is in it.

    >>> is_staging_path(".staging/5f0c9b1e2a7d4c88"), is_staging_path("photos"), is_staging_path(".staging")
    (True, False, False)
    >>> is_staging_path(".staging/5f0c9b1e2a7d4c88/try-00000003")  # of a renumbered append
    True
    """
    return _STAGING_PATH.fullmatch(path) is not None


_LONGEST_SHARD_NAME: Final = 120


def check_shard_name(template: str) -> str:
    """Return the template, if it makes a different safe name for every shard; else raise `ValueError`."""
    literal = _FIELD.sub("", template)
    fields = {match[1] for match in _FIELD.finditer(template)}
    fix = f'use letters, digits, "._=-", and the fields of "{DEFAULT_SHARD_NAME}" or "{{count:05d}}"'
    if _TEMPLATE_TEXT.fullmatch(literal) is None or template.startswith((".", "_")):
        raise ValueError(f'shard_name "{template}" cannot name files; {fix}')
    if not {"split", "index"} <= fields:
        raise ValueError(
            f'shard_name "{template}" gives shards the same name: {{split}} and {{index}} are needed; {fix}'
        )
    if len(template) > _LONGEST_SHARD_NAME:
        raise ValueError(
            f"shard_name has {len(template)} characters, and {_LONGEST_SHARD_NAME} is the most: the split's name and a "
            f"suffix belong to the 255 bytes that file systems take"
        )
    if any(match[1] == "split" and match[2] for match in _FIELD.finditer(template)):
        raise ValueError(f'shard_name "{template}" formats a split as a number; {fix}')
    return template


def names_its_count(template: str) -> bool:
    """Return whether shard names hold the number of shards: such a dataset takes no append."""
    return any(match[1] == "count" for match in _FIELD.finditer(template))


def shard_file_name(template: str, split: str, index: int, count: int, compression: str) -> str:
    """Return the file name of shard `index` (from 0) of the `count` shards of a split.

    >>> shard_file_name("{split}-{index:05d}-of-{count:05d}", "train", 7, 12, "gzip")
    'train-00007-of-00012.tfrecord.gz'
    """
    values = {"index": index, "count": count}

    def fill(match: re.Match[str]) -> str:
        if match[1] == "split":
            return split
        return f"{values[match[1]]:0{int(match[2] or 1)}d}"

    return _FIELD.sub(fill, template) + _SUFFIXES[compression]


def shard_name_pattern(template: str) -> re.Pattern[str]:
    """Return what matches every name that a template can give to a shard, of any split.

    >>> pattern = shard_name_pattern("{split}-{index:05d}")
    >>> [bool(pattern.fullmatch(name)) for name in ("val-00012.tfrecord.gz", "val-12.tfrecord", "my.tfrecord")]
    [True, False, False]
    """
    pieces, end = [], 0
    for match in _FIELD.finditer(template):
        number = f"[0-9]{{{match[2] or 1},}}"
        pieces += [re.escape(template[end : match.start()]), SPLIT_NAME.pattern if match[1] == "split" else number]
        end = match.end()
    return re.compile("".join([*pieces, re.escape(template[end:])]) + r"\.tfrecord(\.gz)?")


def generation_file(folder: str, generation: int, suffix: str) -> str:
    """Return the path of a generation's file in one of the dataset's folders.

    >>> generation_file("manifests", 1, "json")
    'manifests/00000001.json'
    """
    return f"{folder}/{generation:08d}.{suffix}"


def staged_file(staging: str, path: str) -> str:
    """Return where a committed file is until it has been moved to its final path: readers look there first."""
    return f"{staging}/shards/{path}"


def staged_sidecar(staging: str, path: str) -> str:
    """Return where a sidecar is until it replaces that of the generation before."""
    return f"{staging}/sidecars/{path}"


def dataset_name(path: str) -> str:
    """Return the name of the dataset in a folder: the folder's own name, as far as `[a-z][a-z0-9_]*` allows.

    It has at most 128 characters.

    >>> dataset_name("/data/My Pets-2/"), dataset_name("out/2024"), dataset_name("/")
    ('my_pets_2', 'dataset_2024', 'dataset')
    """
    last = path.rstrip("/").rpartition("/")[2]
    name = re.sub(r"[^a-z0-9_]+", "_", last.lower()).strip("_")
    if not name:
        return "dataset"
    return (name if "a" <= name[0] <= "z" else f"dataset_{name}")[:128]


def index_path(shard_path: str, kind: IndexKind) -> str:
    """Return the path of a shard's index.

    >>> index_path("train-00000.tfrecord", "text"), index_path("train-00000.tfrecord", "binary")
    ('index/train-00000.idx', 'index/train-00000.offsets')
    """
    return f"{INDEX_FOLDER}/{shard_path.removesuffix('.tfrecord')}{_INDEX_SUFFIXES[kind]}"


def index_paths(shard_path: str) -> list[str]:
    return [index_path(shard_path, kind) for kind in _INDEX_SUFFIXES]
