"""What names say: folders and files name splits, and folders such as `year=2023` are columns.

train/  Split-eval/  val2017/                     folders
train-00000-of-00005.parquet                      forms that tools write: nothing else is in such a name
pets-test.tfrecord-00000-of-00002
sales-dev.csv  x_train.npy                        a word beside others: it may mean a split, or not
country=de/year=2023/part-0.parquet               two columns that no file holds, as Hive and Spark write them
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, NamedTuple

from ...inputs.files.file_names import FORMATS, SPLITS

MAX_LABEL_OFFSET: Final = 1000
"""An offset names that many labels that no class has; known models use 0 and 1."""

_KINDS: Final = {"training": "train", "valid": "val", "validation": "val", "testing": "test", "evaluation": "eval"}
"""Names of one split: `train.csv` beside `training.csv` is no evidence of two."""

_ANY: Final = "|".join(SPLITS)
_FOLDER: Final = re.compile(rf"(?:split[-=])?({_ANY})(?:_?[0-9]{{4}})?", re.IGNORECASE)
"""`Split-train` is what TFX writes, `split=train` what Spark, DuckDB and polars do, `train2017` what COCO does."""

_OF_SET: Final = re.compile(rf"({_ANY})[ _-]?(?:set|data|v[0-9]+)", re.IGNORECASE)

_SUFFIX: Final = r"(?:\.[a-z_][a-z0-9_]*)+"
_FILE: Final = re.compile(
    rf"(?P<one>{_ANY})-[0-9]{{5,}}(?:-of-[0-9]+)?(?:-[0-9a-f]{{16}})?{_SUFFIX}|"
    rf"(?P<short>{_ANY})-[0-9]+(?:-of-[0-9]+)?\.(?:tfrecords?|tfrec|record)(?:\.gz)?|"
    rf"(?:[a-z0-9_.]+-)*(?P<two>{_ANY})-[0-9]+-of-[0-9]+(?:-[0-9a-f]{{16}})?{_SUFFIX}|"
    rf"(?:[a-z0-9_.]+-)*(?P<three>{_ANY}){_SUFFIX}-[0-9]+-of-[0-9]+(?:\.gz)?|"
    rf"[a-z0-9_]+_(?P<four>{_ANY})\.record-[0-9]+-of-[0-9]+",
    re.IGNORECASE,
)
"""Ours and Hugging Face's; with the name of a dataset before it; TFDS's and Beam's; the Object Detection API's."""

_SUFFIXES: Final = {"json", "snappy"} | {
    part
    for kind, entry in FORMATS.items()
    for suffix in entry.suffixes
    for part in suffix.split(".")
    if part and kind != "images"
}

_PARTITION: Final = re.compile(r"([A-Za-z_][^=/]*)=[^/]*")
MAGIC: Final = re.compile(r"[*?\[]")
_TOKEN: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_WITH_SET: Final = re.compile(rf"({_ANY})(?:set|data)")
_ONE_OF_TWO: Final = re.compile(r"(?:test|dev)[ab]")
"""The two sets of CoNLL: eng.testa, eng.testb."""

_SAYS_NOTHING: Final = frozenset({"set", "data", "part", "shard", "chunk", "file", "v", "full", "final"})
"""Words beside that of a split which make no other table of a file."""


_FORM: Final = re.compile(
    r"(?:stage[0-9]+[_ -])?(?:sample|gender)[_ -]?submission|submission[_ -]?format", re.IGNORECASE
)
_LETTERS: Final = ("train", "val", "test", "dev", "eval")


class Word(NamedTuple):
    """A word in a file's name that may mean a split, and the others.

    `is_outer` says that it is the first or last, or alone behind a dot; `is_apart` that it is behind one.
    """

    split: str
    rest: tuple[str, ...]
    is_outer: bool
    is_apart: bool = False


def may_name_split(text: str) -> bool:
    """Return whether the letters of a split are in a text, which may be of a million names."""
    lower = text.lower()
    return any(letters in lower for letters in _LETTERS)


@cache
def kind_of(split: str) -> str:
    """Return what a split's name means.

    >>> kind_of("validation"), kind_of("valid")
    ('val', 'val')
    """
    return _KINDS.get(split, split)


def split_of_folder(name: str) -> str | None:
    """Return the split whose name a folder has, without COCO's year.

    >>> split_of_folder("Valid"), split_of_folder("Split-eval"), split_of_folder("val2017"), split_of_folder("trains")
    ('valid', 'eval', 'val', None)
    """
    match = _FOLDER.fullmatch(name)
    return match[1].lower() if match else None


def split_of_set(name: str) -> str | None:
    """Return the split of a folder with annotations: its name may also be that of the set of pictures of a split.

    >>> split_of_set("Train"), split_of_set("validation set"), split_of_set("training_v2"), split_of_set("test images")
    ('train', 'validation', 'training', None)
    """
    match = _OF_SET.fullmatch(name)
    return match[1].lower() if match else split_of_folder(name)


def as_split(name: str) -> str:
    """Return the name that a split may have, for one that has another.

    >>> as_split("hold out"), as_split("Extra-2"), as_split("7")
    ('hold_out', 'extra_2', 'split_7')
    """
    stem = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return stem if stem[:1].isalpha() else f"split_{stem}"


def split_above(file: str) -> str | None:
    """Return the split whose name the folder of a file has."""
    return split_of_folder(os.path.basename(os.path.dirname(file)))


@cache
def is_split_folder(name: bytes) -> bool:
    """Return whether a folder has the name of a split.

    >>> is_split_folder(b"Train"), is_split_folder(b"val2017"), is_split_folder(b"cat")
    (True, True, False)
    """
    return split_of_folder(name.decode("utf-8", "replace")) is not None


def split_in_name(name: str) -> str | None:
    """Return the split that the name of a file states, in a form that tools write.

    >>> split_in_name("val-00001-of-00010.parquet"), split_in_name("pets-test.tfrecord-00000-of-00002")
    ('val', 'test')
    >>> split_in_name("train-of-thought-1.csv"), split_in_name("test-1.csv")
    (None, None)
    """
    match = _FILE.fullmatch(name)
    return next(filter(None, match.groups())).lower() if match else None


def word_in_name(name: str) -> Word | None:
    """Return the one word of a file's name that may mean a split; None where there is none, or more than one.

    >>> word_in_name("sales-dev.csv.gz")
    Word(split='dev', rest=('sales',), is_outer=True, is_apart=False)
    >>> word_in_name("TrainSet_2.csv"), word_in_name("train_test_split.csv"), word_in_name("trains.csv")
    (Word(split='train', rest=(), is_outer=True, is_apart=False), None, None)
    >>> word_in_name("emerging.dev.conll"), word_in_name("eng.testa").split
    (Word(split='dev', rest=('emerging', 'conll'), is_outer=True, is_apart=True), 'testa')
    """
    words = words_in_name(name)
    found = [at for at, word in enumerate(words) if _split_word(word)]
    if len(found) != 1:
        return None
    (at,) = found
    rest = tuple(word for place, word in enumerate(words) if place != at)
    is_apart = words[at] in name.lower().split(".")[1:]
    return Word(_split_word(words[at]) or "", rest, is_apart or at in (0, len(words) - 1), is_apart)


def words_in_name(name: str) -> list[str]:
    """Return the words of a file's name that say something."""
    tokens = [token.lower() for token in _TOKEN.findall(name_without_suffixes(name))]
    return [token for token in tokens if not token.isdigit() and token not in _SAYS_NOTHING]


def split_in_words(name: str) -> str | None:
    """Return the split that a name states, or that its one word may mean.

    >>> split_in_words("seg_train"), split_in_words("val-00000-of-00001.csv"), split_in_words("a.csv")
    ('train', 'val', None)
    """
    word = None
    split = split_in_name(name) or split_of_folder(name)
    if split is None:
        word = word_in_name(name)
    return word.split if word else split


def in_splits(names: Iterable[str]) -> bool:
    """Return whether paths of pictures begin in folders that have names of splits, and not of train alone."""
    kinds = {kind_of(split) for one in names if "/" in one and (split := split_of_folder(one.partition("/")[0]))}
    return bool(kinds - {"train"})


def is_form_for_answers(name: str) -> bool:
    """Return whether a file has the name of those that Kaggle gives to be filled in, with an answer for each row."""
    return _FORM.match(name) is not None


def _split_word(word: str) -> str | None:
    if word in SPLITS:
        return word
    match = _WITH_SET.fullmatch(word)
    return match[1] if match else word if _ONE_OF_TWO.fullmatch(word) else None


def name_without_suffixes(name: str) -> str:
    """Return a name without its suffixes.

    >>> name_without_suffixes("a.train.csv.gz"), name_without_suffixes("train.tfrecord-00000-of-00002")
    ('a.train', 'train')
    >>> name_without_suffixes("data.v2.test")
    'data.v2.test'
    """
    name = re.sub(r"-[0-9]+-of-[0-9]+(?=\.|$)", "", name)
    while (parts := name.rpartition("."))[0] and parts[2].lower() in _SUFFIXES:
        name = parts[0]
    return name


def table_in_path(below: str) -> str:
    """Return the path of a file without suffixes, names of splits, and with 0 for numbers: what it is a table of.

    >>> table_in_path("train/users-00012.jsonl"), table_in_path("db/orders_test.json.gz")
    ('users', 'db/orders')
    """
    folders = [one for one in below.split("/")[:-1] if split_of_folder(one) is None]
    words = re.split(r"[\W_]+", name_without_suffixes(os.path.basename(below)))
    stem = "_".join(one for one in words if one and not one.isdigit() and split_of_folder(one) is None)
    return re.sub(r"[0-9]+", "0", "/".join([*folders, stem]))


def own_split(name: str) -> str:
    """Return a split for a file whose name states none.

    >>> own_split("instances_extra-2.json"), own_split("7.json")
    ('extra_2', 'split_7')
    """
    return as_split(os.path.splitext(name)[0].lower().removeprefix("instances_"))


FOLD: Final = re.compile(r"(?:[a-z]*fold|cv|run|seed|split)?[ _-]?[0-9]{1,2}", re.IGNORECASE)
"""Names of folders that hold the same rows, cut another way."""


def alike_inside(files: Iterable[tuple[str, str | None]], root: str) -> dict[str, str]:
    """Return the folders of files, with their paths, of which each holds the same splits; none if one is alone."""
    inside = defaultdict[str, set[str | None]](set)
    for folder, split in files:
        inside[folder].add(split)
    alike = len(inside) > 1 and len({frozenset(one) for one in inside.values()}) == 1 and "" not in inside
    return {one: os.path.join(root, one) for one in inside} if alike else {}


def level_of(folders: Iterable[tuple[str, ...]]) -> tuple[int, bool] | None:
    """Return the level of folders that are splits, and whether all folders of it are; None where there is none.

    >>> level_of([("pets", "train"), ("pets", "test")]), level_of([("cat", "train"), ("dog", "test")])
    ((1, True), (1, True))
    >>> level_of([("train",), ("test",), ()]), level_of([("airplane",), ("train",)])
    ((0, False), None)
    """
    given = {tuple(map(str, parts)) for parts in folders}
    one_split, mixed = None, None
    for level in range(max(map(len, given), default=0)):
        names = {parts[level] if len(parts) > level else "" for parts in given}
        splits = {split for name in names if name and (split := split_of_folder(name))}
        if not splits:
            continue
        is_clear = all(split_of_folder(name) for name in names)
        several = len(set(map(kind_of, splits))) > 1
        if is_clear and several:
            return level, True
        if is_clear and one_split is None:
            one_split = level
        if several and mixed is None:
            mixed = level
    if mixed is not None:
        return mixed, False
    return None if one_split is None else (one_split, True)


def partition_values(name: str, paths: Sequence[str]) -> dict[str, str]:
    """Return the columns in the folders of a file's name, and their values as they are written there.

    Only folders count that were typed relative, or found below a path.

    >>> partition_values("hive/country=de/year=2024/a.csv", ["hive"])
    {'country': 'de', 'year': '2024'}
    >>> partition_values("/run=3/in/a.csv", ["/run=3/in"])
    {}
    """
    return dict(folder.split("=", 1) for folder in _folders_below(name, paths) if _PARTITION.fullmatch(folder))


@dataclass(frozen=True, slots=True)
class SaidByPath:
    """What the path of a file says of its rows: columns, the split in its name, and folders that name a split."""

    columns: tuple[str, ...]
    in_name: str | None
    splits: tuple[str, ...]

    @classmethod
    def of(cls, name: str, paths: Sequence[str] | None = None) -> SaidByPath:
        """Return what a path says, of its splits what the folders below the `paths` of a command say, if given."""
        folders = name.split("/")[:-1]
        below = folders if paths is None else _folders_below(name, paths)
        splits, columns = filter(split_of_folder, below), (one for one in folders if "=" in one)
        return cls(tuple(columns), split_in_name(os.path.basename(name)), tuple(splits))


def _folders_below(name: str, paths: Sequence[str]) -> list[str]:
    below = name
    if os.path.isabs(name) or "://" in name:
        roots = [_root(path) for path in paths]
        below = name[max((len(root) for root in roots if f"{name}/".startswith(root)), default=len(name)) :]
    return below.split("/")[:-1]


def _root(path: str) -> str:
    """Return the folder below which a path finds files, with `/`: of a glob, the last one without a sign of a glob."""
    found = MAGIC.search(path)
    return path[: path.rfind("/", 0, found.start()) + 1] if found else path.rstrip("/") + "/"
