"""What the folders, names and lists of files say of splits: a rule is a function of all files that were listed.

    clear    every folder of a level, or every name in a form that tools write, states a split
    mixed    words in names, or some folders of a level, may mean two splits or more

`find` asks the rules, and decides.
"""

from __future__ import annotations

import fnmatch
import os
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from glob import escape
from itertools import takewhile
from typing import Any, Final, TypeVar

from ...format.wording.hints import Add, Set
from ...format.wording.printable import first_names, printable
from ...inputs.contract.selection import Call, shown_path
from ...inputs.contract.source import SourceEntry
from ..evidence.hugging_face import Stated, loaded_splits, saved_splits, split_named, stated_in
from ..evidence.lists import IMAGE_SETS, splits_by_lists
from ..evidence.names import (
    MAGIC,
    Word,
    as_split,
    kind_of,
    level_of,
    may_name_split,
    own_split,
    split_in_name,
    split_in_words,
    split_of_folder,
    split_of_set,
    word_in_name,
    words_in_name,
)
from ..evidence.tfds import INFO, tfds_folders

T = TypeVar("T")

_ZEROS: Final = str.maketrans("123456789", "000000000")
MOST_COMMANDS: Final = 20
MOST_FOLDERS: Final = 64
"""A root with more folders is one of classes."""

_INSTANCES: Final = re.compile(r"instances[_-](.+)\.json", re.IGNORECASE)
_NO_SPLIT: Final = {"all", "default", "images"}
"""Names of a set that is not cut: `default` is CVAT's and Datumaro's."""
_YEAR: Final = re.compile("_?[0-9]{4}$")
LISTING: Final = {"boxes": "the names of tables", "coco": "the names of files"}
SHOWN: Final = 6
"""A command names so many files; of more it has globs."""


@dataclass(frozen=True)
class Seen:
    """Files as they were listed: `files` are their paths, `below` the same from the folder `root` on.

    `typed` are the paths that the user gave, `roots` the folder of each. `notable` are files that were left out,
    `entries` those whose first bytes are looked at. An error proposes the command of `call`.
    """

    files: Sequence[str]
    below: Sequence[str]
    root: str
    roots: Sequence[str]
    typed: Sequence[str]
    notable: Sequence[bytes] = ()
    form: str = ""
    entries: Sequence[SourceEntry] = ()
    call: Call = field(default_factory=Call)

    @classmethod
    def of(cls, files: Sequence[str], paths: Sequence[str], base: str, **more: Any) -> Seen:
        """Return what paths, relative to the folder `base`, found: `files` are absolute, or URLs."""
        ordered = sorted(files)
        roots = [_root_of(path, ordered, base) for path in paths]
        root = _common(sorted(set(roots)))
        start = len(root.rstrip("/")) + 1
        return cls(files, [file[start:] for file in files], root, roots, paths, **more)

    @cached_property
    def names(self) -> list[str]:
        """The names of all files, without their folders."""
        return [one.rpartition("/")[2] for one in self.below]

    @cached_property
    def folders(self) -> list[str]:
        """The folder of each file, below the root."""
        return [one.rpartition("/")[0] for one in self.below]

    @cached_property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """The names of the folders on the way to each folder."""
        return {one: tuple(one.split("/")) if one else () for one in dict.fromkeys(self.folders)}

    @cached_property
    def shapes(self) -> list[str]:
        """The names of all files with zeros for digits, as a million files have few; none if none may name a split."""
        names = "\0".join(self.names)
        return names.translate(_ZEROS).split("\0") if may_name_split(names) else []

    def each(self, look: Callable[[str], T | None]) -> list[T | None]:
        """Return what a function of names returns for each file; which digits are in a name must not matter to it."""
        found = {shape: look(shape) if may_name_split(shape) else None for shape in dict.fromkeys(self.shapes)}
        return [found[shape] for shape in self.shapes] or [None] * len(self.names)

    def at(self, level: int, look: Callable[[str], T | None]) -> list[T | None]:
        """Return what a function returns of the name of each file's folder of a level."""
        found = {one: look(parts[level]) if len(parts) > level else None for one, parts in self.parts.items()}
        return [found[folder] for folder in self.folders]


@dataclass(frozen=True, slots=True)
class Found:
    """The split of each file, by one rule and its arguments; `of_rows` are those of the pictures that rows name."""

    rule: str
    arguments: dict[str, Any]
    splits: Sequence[str]
    where: str
    of_rows: tuple[str, ...] = ()

    @property
    def kinds(self) -> set[str]:
        """What the splits mean."""
        return set(map(kind_of, {*self.splits} - {""}))


@dataclass(frozen=True, slots=True)
class Mixed:
    """Files of which some look like splits: `splits` are what each may mean, None for the others.

    `configs` are those of a README.md that has several, or one that does not name all files: each with the splits of
    all files. `choices` are the options of commands, and what they read.
    """

    what: str
    splits: Sequence[str | None]
    level: int | None = None
    words: bool = False
    configs: Sequence[tuple[Stated, list[set[str]]]] = ()
    choices: Sequence[tuple[str, tuple[Add, ...]]] = ()


def paths_of(files: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return paths that name these files and no others: themselves, or globs where there are many."""
    if len(files) <= SHOWN:
        return list(files)
    places = (os.path.split(file) for file in files)
    globs = list(dict.fromkeys(f"{folder}/{re.sub('[0-9]+', '*', name)}" for folder, name in places))
    taken = any(fnmatch.fnmatchcase(file, glob) for glob in globs for file in others)
    return list(files) if taken or len(globs) > SHOWN or any(MAGIC.search(file) for file in files) else globs


def _root_of(path: str, files: Sequence[str], base: str) -> str:
    """Return the folder below which a path has found some of the files, which are sorted."""
    place = path.rstrip("/") if "://" in path else os.path.abspath(os.path.join(base, path))
    for wanted, is_file in ((place, True), (place + "/", False)):
        at = bisect_left(files, wanted)
        if at < len(files) and (files[at] == wanted if is_file else files[at].startswith(wanted)):
            return os.path.dirname(place) if is_file else place
    magic = MAGIC.search(place)
    return place[: place.rfind("/", 0, magic.start())] or "/" if magic else place


def _common(roots: Sequence[str]) -> str:
    levels = zip(*[root.split("/") for root in roots], strict=False)
    return "/".join(names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels)) or "/"


def by_readme(seen: Seen) -> Found | Mixed | None:
    """README.md states a split of every file, in one config.

    Raises `InputError` as `stated_in` does.
    """
    read = [(one, splits) for one in stated_in(seen.notable, seen.root) if any(splits := one.splits_of(seen.below))]
    if not read or any(len(found) > 1 for _, splits in read for found in splits):
        return None
    (first, splits), *others = read
    if others or not all(splits):
        every = zip(*(splits for _, splits in read), strict=True)
        return Mixed("README.md", [min(set().union(*each), default=None) for each in every], configs=read)
    arguments = {split: list(globs) for split, globs in first.globs}
    return Found("readme", arguments, [next(iter(found)) for found in splits], "README.md")


def by_saved(seen: Seen) -> Found | None:
    """What Hugging Face's `save_to_disk` writes states a split of every folder, the cache of `load_dataset` of files.

    Raises `InputError` where files are several configs of a cache.
    """
    splits = saved_splits(seen.root, seen.parts) if seen.form == "arrow" else None
    if splits is None:
        loaded = loaded_splits(seen.files, seen.call) if seen.form == "arrow" else None
        return Found("names", {}, loaded, "what load_dataset wrote") if loaded else None
    other = ", ".join(f"{printable(name)} is {split}" for name, split in splits.items() if name and name != split)
    by = f"what save_to_disk wrote{f' ({other})' if other else ''}"
    return Found("folders", {}, [splits[folder] for folder in seen.folders], by)


def by_tfds(seen: Seen) -> Found | None:
    """`dataset_info.json` of TFDS states the split of every file.

    Raises `InputError` where a split has a name that no split may have.
    """
    stated = {
        os.path.join(one.path, name): split_named(split, shown_path(os.path.join(one.path, INFO)))
        for one in (tfds_folders(seen.files) if seen.form == "tfrecord" else ())
        for name, (split, _) in one.shards.items()
    }
    splits = [stated.get(file, "") for file in seen.files] if stated else [""]
    return Found("tfds", {}, splits, INFO) if all(splits) else None


def by_folders(seen: Seen) -> Found | Mixed | None:
    """Every folder of one level has the name of a split: the first level of two splits, or else of one."""
    found = level_of(seen.parts.values())
    if found is None:
        return None
    level, is_clear = found
    each = seen.at(level, split_of_folder)
    if not is_clear:
        return Mixed("folders", each, level)
    return Found("folders", {}, [one or "" for one in each], "the names of folders")


def by_roots(seen: Seen, least: int = 2) -> Found | None:
    """Every path that the user gave is a folder with the name of a split, in folders that have little in common."""
    names = {root: split_of_folder(os.path.basename(root)) for root in set(seen.roots)}
    if len(names) < least or None in names.values():
        return None
    ends = sorted(((f"{root}/", name or "") for root, name in names.items()), key=lambda one: -len(one[0]))
    splits = [next((name for root, name in ends if file.startswith(root)), "") for file in seen.files]
    return Found("roots", {}, splits, "the names of folders") if all(splits) else None


def by_names(seen: Seen) -> Found | Mixed | None:
    """Every name has a form that tools write, with its split."""
    splits = seen.each(split_in_name)
    named = {split for split in splits if split is not None}
    if named and None not in splits:
        return Found("names", {}, [one or "" for one in splits], "the names of files")
    if named and (others := _by_shards(seen.names, splits)):
        return others
    return Mixed("files", splits) if {*map(kind_of, named)} - {"train"} else None


def _by_shards(names: Sequence[str], splits: Sequence[str | None]) -> Mixed | None:
    """Names of shards of splits are beside those of others, in the same form: train-00000-of-00002, hold_out-..."""
    stems = [match[1] if (match := _SHARD.match(name)) else "" for name in names]
    if not all(stems):
        return None
    by_stem = dict(sorted(zip(stems, splits, strict=True)))
    begin = {stem.lower().removesuffix(split) for stem, split in by_stem.items() if split}
    start = begin.pop() if len(begin) == 1 else ""
    own = {stem: split or as_split(stem.lower().removeprefix(start)) for stem, split in by_stem.items()}
    said = Set("input.splits", {split: f"{escape(stem)}[.-]*" for stem, split in own.items()})
    choices = ((", ".join(own.values()), (said,)), ("all files in one split", (Set("input.splits", "none"),)))
    shown = [first_names([one for one, split in by_stem.items() if bool(split) == has], SHOWN) for has in (True, False)]
    what = f"names of shards state splits ({shown[0]}), and others none ({shown[1]})"
    return Mixed(what, splits, choices=choices) if len({*own.values()}) == len(own) <= MOST_COMMANDS else None


_SHARD: Final = re.compile(r"(.+?)(?:\.[A-Za-z_.]+)?-[0-9]{5,}-of-[0-9]{5,}")


def by_folder_words(seen: Seen) -> Mixed | None:
    """Words in the names of folders of one level may mean two splits or more, beside the same other words.

    A folder of these other words alone may be that for training: "rps" beside "rps-test-set".
    """
    for level in range(max(map(len, seen.parts.values()), default=0)):
        names = {parts[level] for parts in seen.parts.values() if len(parts) > level}
        words = {name: word_in_name(name) for name in names if may_name_split(name)}
        kinds = _kinds_beside(words.values())
        plain = {name: tuple(words_in_name(name)) for name in names if kinds and not words.get(name)}
        plain = {name: rest for name, rest in plain.items() if rest and "train" not in kinds.get(rest, {"train"})}
        rests = {rest for rest, found in kinds.items() if len(found) > 1} | {*plain.values()}
        named = {name: word.split for name, word in words.items() if word and word.rest in rests}
        named |= dict.fromkeys(plain, "train")
        if named:
            return Mixed("folders", seen.at(level, named.get), level, words=True)
    return None


def _kinds_beside(words: Iterable[Word | None]) -> dict[tuple[str, ...], set[str]]:
    """Return what words of splits mean that are beside the same other words."""
    kinds = defaultdict[tuple[str, ...], set[str]](set)
    for word in set(filter(None, words)):
        kinds[word.rest].add(kind_of(word.split))
    return kinds


def by_words(seen: Seen) -> Mixed | None:
    """Words in names may mean two splits or more: each beside the same other words, or alone."""
    words = seen.each(word_in_name)
    kinds = _kinds_beside(words)
    alone = kinds.get((), set()) | {kind_of(word.split) for word in {*words} if word and word.is_apart}
    every = all(split_of_set(name.partition(".")[0]) for name in seen.names)
    outer = {kind_of(word.split) for word in words if word is not None and word.is_outer} if alone or every else set()
    if len(alone | outer) < 2 and all(len(found) < 2 for found in kinds.values()):
        return None
    loose = len(alone | outer) > 1
    meant = {word for word in set(words) if word and (len(kinds[word.rest]) > 1 or (loose and word.is_outer))}
    return Mixed("files", [word.split if word and word in meant else None for word in words])


def by_lists(seen: Seen) -> Found | Mixed | None:
    """Lists beside annotations name those of each split; those that are in none are left out.

    Tables of boxes, and COCO's files, list the pictures of the splits that they have the names of.
    """
    files = seen.files if seen.form in LISTING else []
    words = [split_in_words(os.path.basename(file)) or _of_own_folder(file) for file in files]
    if (len(words) > 1 or (seen.form == "coco" and words != ["train"])) and all(words):
        return Found("lists", {}, words, LISTING[seen.form])
    instances = len({*seen.names}) == len(seen.names) and all(map(_INSTANCES.fullmatch, seen.names))
    if seen.form == "coco" and len(words) > 1 and (any(words) or instances):
        named = first_names([name for name, word in zip(seen.names, words, strict=True) if word], SHOWN)
        others = first_names([name for name, word in zip(seen.names, words, strict=True) if not word], SHOWN)
        each = [word or own_split(name) for name, word in zip(seen.names, words, strict=True)]
        splits = sorted({*words} - {""})
        one = splits[0] if len(splits) == 1 else "train"
        what = f"state splits ({named}), and others none ({others})" if named else f"may state splits ({others})"
        choices = (
            (", ".join(dict.fromkeys(each)), (said(seen, each),)),
            (f"all files in {one}", (Set("input.splits", {one: "*"}),)),
        )
        return Mixed(f"names of files {what}", words, choices=choices)
    is_read = "://" not in seen.root or seen.form in ("voc", "yolo")
    found = splits_by_lists(seen.root, seen.files) if is_read else None
    if found is None:
        return by_annotated_folders(seen) if seen.form in ("coco", "voc", "yolo") else None
    splits, where = found
    own = by_folders(seen) if not where.startswith(IMAGE_SETS) else None
    if isinstance(own, Found) and len(own.kinds) > 1:
        known = set(map(kind_of, {*splits} - {""}))
        pairs = list(zip(splits, own.splits, strict=True))
        if all(kind_of(one) == kind_of(other) if one else kind_of(other) not in known for one, other in pairs):
            return None  # folders say the same, and have the names
        splits, where = [one or ("" if kind_of(it) in known else it) for one, it in pairs], f"{where}, not from folders"
    return Found("lists", {}, splits, where)


def _of_own_folder(file: str) -> str:
    """Return the split of a file of COCO's whose pictures have a folder of its name, `minival2017`; else nothing."""
    name = _INSTANCES.fullmatch(os.path.basename(file))
    if name is None or name[1].lower() in _NO_SPLIT:
        return ""
    above = os.path.dirname(os.path.dirname(file))
    folders = [os.path.join(above, *inner, name[1]) for inner in ((), ("images",))]
    return as_split(_YEAR.sub("", name[1])) if any(map(os.path.isdir, folders)) else ""


def said(seen: Seen, splits: Sequence[str]) -> Set:
    """Return the option that says of which split each of some files is."""
    globs = defaultdict[str, list[str]](list)
    for split, below in zip(splits, seen.below, strict=True):
        globs[split].append(escape(below))
    return Set("input.splits", {split: some[0] if len(some) == 1 else some for split, some in globs.items()})


def by_annotated_folders(seen: Seen) -> Found | Mixed | None:
    """Annotations are in folders, some of which have names of splits: the others are splits of their own names.

    It is unclear where there are more others than splits, or two sets of one split, as `train_v1` and `train_v2`.
    """
    for level in range(max(map(len, seen.parts.values()), default=0)):
        names = sorted({parts[level] if len(parts) > level else "" for parts in seen.parts.values()})
        own = {name: split_of_set(name) or as_split(name) for name in names}
        words = [name for name in names if split_of_set(name)]
        others = [name for name in names if not split_of_folder(name)]
        if not words or not others or "" in names:
            if words:
                return None
            continue
        twice = len({kind_of(own[name]) for name in words}) < len(words) and not all(map(split_of_folder, words))
        if twice:
            own = {name: split_of_folder(name) or as_split(name) for name in names}
        changed = ", ".join(f'"{printable(one)}" is {own[one]}' for one in others if own[one] != one)
        each = seen.at(level, own.get)
        if len(names) <= 2 * len(words) and not twice:
            where = f"the names of folders{changed and f' ({changed})'}"
            return Found("folders", {}, [one or "" for one in each], where)
        what = f"names of folders state splits ({first_names(words, SHOWN)}), and others none"
        what = f"names of folders may mean splits ({first_names(names, SHOWN)})" if twice else what
        rest = [] if twice else [name for name in names if name not in words]
        globs = defaultdict[str, list[str]](list)
        for name in names:
            globs[own[name]].append(f"{'*/' * level}{escape(name)}/*")
        said = Set("input.splits", {split: some[0] if len(some) == 1 else some for split, some in globs.items()})
        choices = ((", ".join(sorted(globs)), (said,)), ("all files in one split", (Set("input.splits", "none"),)))
        return Mixed(f"{what} ({first_names(rest, SHOWN)})" if rest else what, each, choices=choices)
    return None


CLEAR: Final[tuple[Callable[[Seen], Found | Mixed | None], ...]] = (
    by_tfds, by_readme, by_saved, by_folders, by_roots, by_names,
)  # fmt: skip
"""The rules that are read where they are clear; what TFDS, README.md or `save_to_disk` states is all."""

UNSURE: Final[tuple[Callable[[Seen], Mixed | None], ...]] = (by_folder_words, by_words)
"""The rules that stop a run, unless another one is clear of two splits."""
