"""Which split each file is of, by the folders and names of all of them.

    clear    every folder of a level, or every name in a form that tools write, states a split    it is read
    mixed    words in names, or some folders of a level, may mean two splits or more              the run stops
    nothing  else: all rows go to one split, and a word that might have been meant is a line

What the user says comes before what is seen: `input.splits`, or a rule or a split for all rows.
"""

from __future__ import annotations

import fnmatch
import os
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from glob import escape
from itertools import chain, takewhile, zip_longest
from typing import Any, Final, TypeVar

from ..errors import InputError
from ..format.wording.hints import Add, Set
from ..format.wording.nearest import first_names
from ..format.wording.printable import printable
from ..sources.contract.call import Call, shown_path, typed_path
from ..sources.contract.source import Recognised, SourceEntry
from ..sources.files.skipped_names import SPLITS, pictures_below
from .hugging_face import Stated, loaded_splits, saved_splits, split_named, stated_in
from .lists import IMAGE_SETS, splits_by_lists
from .names import (
    FOLD,
    HELD_RULE,
    MAGIC,
    FileSplits,
    Globs,
    Word,
    alike_inside,
    as_split,
    kind_of,
    level_of,
    may_name_split,
    own_split,
    split_above,
    split_in_name,
    split_in_words,
    split_of_folder,
    split_of_set,
    word_in_name,
)
from .tfds import INFO, tfds_folders

T = TypeVar("T")

_ZEROS: Final = str.maketrans("123456789", "000000000")
_MOST_COMMANDS: Final = 20
_MOST_FOLDERS: Final = 64
"""A root with more folders is one of classes."""

_INSTANCES: Final = re.compile(r"instances[_-].+\.json", re.IGNORECASE)
_LISTING: Final = {"boxes": "the names of tables", "coco": "the names of files"}
_SHOWN: Final = 6
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
    shown = [
        first_names([one for one, split in by_stem.items() if bool(split) == has], _SHOWN) for has in (True, False)
    ]
    what = f"names of shards state splits ({shown[0]}), and others none ({shown[1]})"
    return Mixed(what, splits, choices=choices) if len({*own.values()}) == len(own) <= _MOST_COMMANDS else None


_SHARD: Final = re.compile(r"(.+?)(?:\.[A-Za-z_.]+)?-[0-9]{5,}-of-[0-9]{5,}")


def by_folder_words(seen: Seen) -> Mixed | None:
    """Words in the names of folders of one level may mean two splits or more, beside the same other words."""
    for level in range(max(map(len, seen.parts.values()), default=0)):
        names = {parts[level] for parts in seen.parts.values() if len(parts) > level}
        words = {name: word_in_name(name) for name in names if may_name_split(name)}
        kinds = _kinds_beside(words.values())
        named = {name: word.split for name, word in words.items() if word and len(kinds[word.rest]) > 1}
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
    alone = kinds.get((), set())
    outer = {kind_of(word.split) for word in words if word is not None and word.is_outer} if alone else set()
    if len(alone | outer) < 2 and all(len(found) < 2 for found in kinds.values()):
        return None
    loose = len(alone | outer) > 1
    meant = {word for word in set(words) if word and (len(kinds[word.rest]) > 1 or (loose and word.is_outer))}
    return Mixed("files", [word.split if word and word in meant else None for word in words])


def by_lists(seen: Seen) -> Found | Mixed | None:
    """Lists beside annotations name those of each split; those that are in none are left out.

    Tables of boxes, and COCO's files, list the pictures of the splits that they have the names of.
    """
    words = [split_in_words(name) or "" for name in seen.names] if seen.form in _LISTING else []
    if (len(words) > 1 or (seen.form == "coco" and words != ["train"])) and all(words):
        return Found("lists", {}, words, _LISTING[seen.form])
    instances = len({*seen.names}) == len(seen.names) and all(map(_INSTANCES.fullmatch, seen.names))
    if seen.form == "coco" and len(words) > 1 and (any(words) or instances):
        named = first_names([name for name, word in zip(seen.names, words, strict=True) if word], _SHOWN)
        others = first_names([name for name, word in zip(seen.names, words, strict=True) if not word], _SHOWN)
        each = [word or own_split(name) for name, word in zip(seen.names, words, strict=True)]
        splits = sorted({*words} - {""})
        one = splits[0] if len(splits) == 1 else "train"
        what = f"state splits ({named}), and others none ({others})" if named else f"may state splits ({others})"
        choices = (
            (", ".join(dict.fromkeys(each)), (_said(seen, each),)),
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


def _by_pictures(seen: Seen, how: FileSplits) -> Found | None:
    """Rows name pictures: each is of the split whose name the folder of its file has, or that of its picture."""
    splits = [split_above(entry.name) or "" for entry in seen.entries]
    above = [*(how.pictures or ()), *map(os.path.dirname, seen.files)]
    roots = [] if all(splits) else [how.begin] if how.begin else list(dict.fromkeys(above))
    inner = [split for root in roots for split in _splits_of_folders(root)]
    of_rows = {*splits, *inner} - {""}
    return Found("folders", {}, splits, "the names of folders", tuple(sorted(of_rows))) if of_rows else None


def _splits_of_folders(root: str) -> list[str]:
    """Return the splits that folders in a root have the names of, or else folders of pictures one level down."""
    folders = _folders_of(root)
    found = list(filter(None, map(split_of_folder, map(os.path.basename, folders))))
    if found or len(folders) > _MOST_FOLDERS:
        return found
    inner = [path for one in folders for path in _folders_of(one) if split_of_folder(os.path.basename(path))]
    there = [path for path in inner if next(pictures_below(os.fsencode(path)), None) is not None]
    return [split for path in there if (split := split_of_folder(os.path.basename(path)))]


def _folders_of(root: str) -> list[str]:
    with os.scandir(root) as entries:
        return [one.path for one in entries if one.is_dir(follow_symlinks=False) and not one.name.startswith(".")]


def _of_rows(seen: Seen, how: FileSplits) -> Recognised | Found:
    """Return how rows get their splits that name pictures: by lists of these, or folders."""
    listed = by_lists(seen) if how.wanted is None else None
    found = _by_pictures(seen, how)
    if isinstance(listed, Found) and found and seen.form in _LISTING and _differ(listed.splits, found.splits):
        choices = (
            (f"as {listed.where} say", (_said(seen, listed.splits),)),
            (f"as {found.where} say", (Set("input.splits", "names"),)),
        )
        listed = Mixed(f"{listed.where} and {found.where} do not agree", listed.splits, choices=choices)
    if isinstance(listed, Mixed) and not how.said:
        raise InputError(_stopped(seen, listed, how))
    if isinstance(listed, Found):
        return listed
    splits = found.of_rows if found else ()
    refuse_splits_inside(splits, how, how.pictures or (), Set("input.splits", "names"))
    rule = "none" if found is None else UNUSED if how.said else found.rule
    return Recognised(rule, said=how.said, split=how.split, of_rows=splits)


def _differ(splits: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether a file is of two splits."""
    return any(one and other and kind_of(one) != kind_of(other) for one, other in zip(splits, others, strict=True))


def _said(seen: Seen, splits: Sequence[str]) -> Set:
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
        what = f"names of folders state splits ({first_names(words, _SHOWN)}), and others none"
        what = f"names of folders may mean splits ({first_names(names, _SHOWN)})" if twice else what
        rest = [] if twice else [name for name in names if name not in words]
        globs = defaultdict[str, list[str]](list)
        for name in names:
            globs[own[name]].append(f"{'*/' * level}{escape(name)}/*")
        said = Set("input.splits", {split: some[0] if len(some) == 1 else some for split, some in globs.items()})
        choices = ((", ".join(sorted(globs)), (said,)), ("all files in one split", (Set("input.splits", "none"),)))
        return Mixed(f"{what} ({first_names(rest, _SHOWN)})" if rest else what, each, choices=choices)
    return None


CLEAR: Final[tuple[Callable[[Seen], Found | Mixed | None], ...]] = (
    by_tfds, by_readme, by_saved, by_folders, by_roots, by_names,
)  # fmt: skip
"""The rules that are read where they are clear; what TFDS, README.md or `save_to_disk` states is all."""

UNSURE: Final[tuple[Callable[[Seen], Mixed | None], ...]] = (by_folder_words, by_words)
"""The rules that stop a run, unless another one is clear of two splits."""

OFF, UNUSED, WORDS, GLOBS = "off", "unused", "words", "globs"
"""Rules of the user's: `input.splits: none`; a rule or a split for all rows in place of those that files show;
`input.splits: names`; and globs."""

KINDS_OF_RULES: Final = {
    **{rule: rule for rule in ("folders", "names", "readme", "lists", OFF, UNUSED, WORDS, GLOBS)},
    "roots": "folders",
    "tfds": "names",
}
"""What a dataset remembers of how its files got their splits; rules of one kind are one decision."""

OF_FILES: Final = ("folders", "names", "readme", "lists")
"""The kinds of rules by which files themselves show their splits."""


def held_by(how: FileSplits, rule: str, arguments: Globs) -> FileSplits:
    """Return how the files of an append get their splits that says nothing of them: by the rule of its dataset."""
    if rule == UNUSED:
        return replace(how, said=HELD_RULE)
    known: dict[str, Any] = {OFF: "none", WORDS: "names", GLOBS: arguments}
    return replace(how, wanted=known.get(rule), held=KINDS_OF_RULES[rule])


def is_of_files(rule: str | None) -> bool:
    """Return whether the files of a dataset showed their splits themselves, by its rule."""
    return KINDS_OF_RULES.get(rule or "") in OF_FILES


def find_splits(seen: Seen, how: FileSplits) -> tuple[Recognised, Sequence[str | None]]:
    """Return what was recognised, and the split of each file.

    Raises:
        InputError: the evidence is mixed, or a file is not among those that `input.splits` names.
    """
    nothing: Sequence[str | None] = [None] * len(seen.files)
    if how.wanted == "none" or not seen.files:
        rule = OFF if how.wanted == "none" and how.looks else "none"
        return Recognised(rule, said=how.said, split=how.split), nothing
    by_rows = how.pictures is not None and not isinstance(how.wanted, tuple)
    listed = _of_rows(seen, how) if by_rows else None
    if isinstance(listed, Recognised):
        return listed, nothing
    if how.wanted is not None:
        if how.wanted == "names":
            rule, arguments, splits = WORDS, {}, _by_words_of(seen)
        else:
            rule, arguments = GLOBS, {split: list(globs) for split, globs in how.wanted}
            splits = _by_globs(seen, how.wanted, all_match=how.held != GLOBS)
        return Recognised(rule, arguments, (_line(splits, "input.splits"),)), splits
    tfds, readme, saved, *others = CLEAR
    one = listed or tfds(seen) or readme(seen) or saved(seen)
    found: list[Found | Mixed | None] = [one] if one else [rule(seen) for rule in others]
    unsure = () if one else UNSURE
    if how.held == "folders" and not any(found):
        found = [by_roots(seen, least=1)]
    clear = [one for one in found if isinstance(one, Found)]
    best = next((one for one in clear if len(one.kinds) > 1), None)
    unclear = chain(found, (rule(seen) for rule in unsure)) if best is None else ()
    mixed = next((one for one in unclear if isinstance(one, Mixed)), None)
    if best is None and mixed is None:
        best = next(iter(clear), None)
    if best is not None and (other := next((one for one in clear if not _agree(one, best)), None)):
        mixed, best = Mixed(f"{best.where} and {other.where} do not agree", other.splits), None
    if best is not None and _contradicts(best, how):
        known = f"all files of the dataset are in {how.split}" if how.held == "none" else f"not {how.held}, as before,"
        mixed, best = Mixed(f"{known}, and {best.where} say splits", best.splits), None
    if how.said:
        named = sorted({*best.splits} if best else {one for one in mixed.splits if one} if mixed else ())
        lines = not_used(named, how.said, how.split)
        return Recognised(UNUSED if named else "none", lines=lines, said=how.said, split=how.split), nothing
    if best is not None:
        return Recognised(best.rule, best.arguments, (_line(best.splits, best.where),)), best.splits
    if mixed is not None:
        raise InputError(_stopped(seen, mixed, how))
    return Recognised("none", lines=tuple(_words_alone(seen, how))), nothing


def _contradicts(found: Found, how: FileSplits) -> bool:
    """Return whether the files of an append are of splits by another rule than those of its dataset."""
    if how.held == "none":
        return found.kinds != {kind_of(how.split)}
    return how.held in OF_FILES and KINDS_OF_RULES[found.rule] != how.held


def refuse_splits_inside(splits: Sequence[str], how: FileSplits, paths: Sequence[str], option: Set) -> None:
    """Refuse splits that are said inside of the files of an append, where those of its dataset said none.

    With the `option` they are read.
    """
    if how.held != "none" or how.said or not {*map(kind_of, splits)} - {kind_of(how.split)}:
        return
    what = f"all rows of the dataset are in {how.split}, and folders inside of these files say splits"
    one = _command(how, paths, Set("output.split", how.split))
    raise InputError(_choice(what, (", ".join(splits), _command(how, paths, option)), ("all rows in one split", one)))


def _agree(one: Found, other: Found) -> bool:
    """Return whether two rules say the same of all files, or one of them says one split for all."""
    if one is other or (len(one.kinds) == 1) != (len(other.kinds) == 1):
        return True
    return all(kind_of(a) == kind_of(b) for a, b in {*zip(one.splits, other.splits, strict=True)})


def _line(splits: Sequence[str | None], where: str) -> str:
    names = sorted({split for split in splits if split})
    what = f"splits {', '.join(names)}" if len(names) > 1 else f"all files are of split {names[0]}"
    more = "" if where == "input.splits" else f"; to read all files as one split: {Set('input.splits', 'none')}"
    return f"{what}, from {where}{more}"


def not_used(splits: Sequence[str], said: str, split: str) -> tuple[str, ...]:
    """Return that the splits of files are not used, since the user says another one."""
    if list(splits) in ([], [split]):
        return ()
    cut = next((one for one in splits if kind_of(one) == "train"), splits[0])
    fix = "" if said == HELD_RULE else f"; to cut one of them only: {Set('split.of', cut)}"
    return (f"the files are of splits ({', '.join(splits)}), which are not used, since {said} is for all rows{fix}",)


def _words_alone(seen: Seen, how: FileSplits) -> Iterable[str]:
    """Yield what might have been meant as one split, and is not read as one."""
    root = split_of_folder(os.path.basename(seen.root))
    if root is not None and root != how.split and len(set(seen.roots)) == 1:
        yield (
            f'the folder "{printable(os.path.basename(seen.root))}" has the name of a split, and its rows go to '
            f"{how.split}; to write them as {root}: {Set('output.split', root)}"
        )
    if "" in seen.names:
        return  # folders of pictures, whose classes are named anyway
    levels = zip_longest(*seen.parts.values(), fillvalue="")
    names = next((level for level in map(set, levels) if any(map(split_of_folder, level))), set()) - {""}
    kind, named = ("folder", sorted(filter(split_of_folder, names))) if names else ("file", list[str]())
    if not names and len(seen.files) > 1 and seen.shapes:
        names = set(seen.names)
        words = zip(seen.names, seen.each(word_in_name), strict=True)
        found = [(name, kind_of(word.split)) for name, word in words if word is not None and not word.rest]
        named = [name for name, split in found if split != "train" or len(found) < len(names)]
    if named:
        others = sorted(names - {*named})
        beside = f', beside "{printable(others[0])}"' if others else ""
        yield (
            f'one {kind} alone has the name of a split ("{printable(named[0])}"){beside}, and is read as any other; to '
            f"say which files are of which split: {_each_by_its_name(names, kind) or 'input.splits'}"
        )


def _each_by_its_name(names: Collection[str], kind: str) -> Set | None:
    """Return the option by which each of a few files, or folders, is a split of its name."""
    splits = {name: split_in_words(name) or as_split(name.partition(".")[0]) for name in sorted(names)}
    if not 1 < len({*splits.values()}) == len(splits) <= _SHOWN:
        return None
    end = "/*" if kind == "folder" else ""
    return Set("input.splits", {split: f"{escape(name)}{end}" for name, split in splits.items()})


def _by_words_of(seen: Seen) -> list[str]:
    """Return the split that is in the name of each file, or of a folder that it is in.

    Raises:
        InputError: a name has none, or several.
    """
    splits = []
    for below, file in zip(seen.below, seen.files, strict=True):
        split = _word_in_path(below)
        if split is None:
            raise InputError(
                f"{shown_path(file)}: input.splits is names, and its name has no word for one split; leave the file "
                f"out, or say which files are of which split: {Set('input.splits', '{train: GLOB, test: GLOB}')}"
            )
        splits.append(split)
    return splits


def _word_in_path(below: str) -> str | None:
    return next(filter(None, map(split_in_words, reversed(below.split("/")))), None)


def _by_globs(seen: Seen, globs: Globs, *, all_match: bool) -> list[str]:
    """Return the split whose globs match each file: its name, or with a `/` its path below the root.

    Raises:
        InputError: none matches, or those of two splits; or a glob matches no file, and `all_match`.
    """
    tests = [(split, glob, re.compile(fnmatch.translate(glob))) for split, some in globs for glob in some]
    splits = list[str]()
    used = set[str]()
    for name, below, file in zip(seen.names, seen.below, seen.files, strict=True):
        found = {split: glob for split, glob, test in tests if test.match(below if "/" in glob else name)}
        if len(found) != 1:
            why = " and ".join(f'"{printable(glob)}" ({split})' for split, glob in found.items())
            raise InputError(
                f"{shown_path(file)}: "
                + (f"{why} of input.splits match it; let one match" if found else "no glob of input.splits matches it")
                + f"; globs with a / are of paths below {shown_path(seen.root)}, others of names"
            )
        splits += found
        used.update(found.values())
    unused = next((glob for _, glob, _ in tests if glob not in used), None)
    if unused is not None and all_match:
        raise InputError(f'input.splits: "{printable(unused)}" matches no file that is read')
    return splits


def _stopped(seen: Seen, mixed: Mixed, how: FileSplits) -> str:
    """Return why a run stops where the evidence is mixed, with two commands."""
    if mixed.configs:
        return _asked(seen, mixed, how)
    if mixed.choices:
        paths = how.pictures or seen.typed
        return _choice(mixed.what, *((what, _command(how, paths, *options)) for what, options in mixed.choices))
    by_split = defaultdict[str, list[str]](list)
    for split, file in zip(mixed.splits, seen.files, strict=True):
        if split is not None:
            by_split[split].append(file)
    others = [file for split, file in zip(mixed.splits, seen.files, strict=True) if split is None]
    ordered = sorted(by_split, key=lambda split: (kind_of(split) != "train", split))
    if mixed.level is not None:
        return _stopped_by_folders(seen, mixed, ordered, how)
    shown = ", ".join(shown_path(by_split[split][0]) for split in ordered)
    beside = f", beside {shown_path(others[0])}" if others else ""
    what = mixed.what if mixed.what not in ("files", "folders") else "names of files may mean splits"
    union = [Set("input.columns_differ", "union")] if how.unites and others else []
    both = list(seen.typed) if not others else _named([f for s in ordered for f in by_split[s]], others)
    choices = [(", ".join(ordered), _command(how, both, Set("input.splits", "names"), *union))]
    if any(split and _word_in_path(one) != split for one, split in zip(seen.below, mixed.splits, strict=True)):
        choices = []  # words in names say something else
    folders = {} if others else alike_inside(zip(seen.folders, mixed.splits, strict=True), seen.root)
    if folders:
        named = first_names(sorted(folders), _SHOWN)
        what = f"{what}: {shown}; {len(folders)} folders hold the same splits, whose rows would come together ({named})"
        of_folds = all(FOLD.fullmatch(os.path.basename(one)) for one in folders)
        own = {
            one: how.call.apart(re.sub(r"[^\w.-]+", "-", one)) for one in sorted(folders)[: _SHOWN if of_folds else 1]
        }
        option = Set("input.splits", "names")
        each = [(one, _command(replace(how, call=call), [folders[one]], option)) for one, call in own.items()]
        more = [] if of_folds else [*choices, ("all files in one split", _as_one(seen, how))]
        return _choice(f"{what}; each is a dataset" if of_folds else what, *each, *more)
    if others and len(ordered) > 1:
        rest = [file for split in ordered[1:] for file in by_split[split]]
        alone = _command(how, _named(by_split[ordered[0]], [*others, *rest]), *_into(how, ordered[0]))
        choices.append((f"{ordered[0]} alone", alone))
    else:
        choices.append(("all files in one split", _as_one(seen, how)))
    return _choice(f"{what}: {shown}{beside}", *choices)


def _into(how: FileSplits, split: str) -> list[Set]:
    """Return the option by which all rows go to a split; a convert may need none."""
    return [] if split == how.split and how.call.command != "append" else [Set("output.split", split)]


_KIND: Final = re.compile(rf"(?:{'|'.join(SPLITS)})_?([A-Z])")


def _stopped_by_folders(seen: Seen, mixed: Mixed, splits: Sequence[str], how: FileSplits) -> str:
    folders, inner = defaultdict[str, set[str]](set), set[str]()
    stray = ""
    for one, file, split in zip(seen.below, seen.files, mixed.splits, strict=True):
        if split is None:
            stray = stray or file
        else:
            parts, level = one.split("/")[:-1], (mixed.level or 0) + 1
            folders[split].add(os.path.join(seen.root, *parts[:level]))
            while mixed.words and level < len(parts) and split_in_words(parts[level]) == split:
                level += 1  # seg_train/seg_train
            if split == splits[0]:
                inner.add(os.path.join(seen.root, *parts[:level]))
    kinds = defaultdict[str, list[str]](list)
    for path in sorted(one for some in folders.values() for one in some):
        found = _KIND.fullmatch(os.path.basename(path))
        kinds[found[1] if found else ""].append(path)
    if len(kinds) > 1 and "" not in kinds:
        options = Set("input.splits", "names")
        each = [(one, _command(replace(how, call=how.call.apart(one)), some, options)) for one, some in kinds.items()]
        what = f"folders of splits of several kinds ({', '.join(kinds)}), as CycleGAN has them"
        return _choice(f"{what}: {', '.join(map(shown_path, kinds[min(kinds)]))}; each kind is a dataset", *each)
    named = [path for split in splits for path in sorted(folders[split])]
    if mixed.words:
        shown = ", ".join(shown_path(min(folders[split])) for split in splits)
        what = f"names of folders may mean splits: {shown}"
    else:
        what = f"{shown_path(stray)}: is in no folder of a split, and other files are ({', '.join(splits)})"
    both = named if stray or not mixed.words else seen.typed
    first = _command(how, both, *([Set("input.splits", "names")] if mixed.words else []))
    return _choice(
        what,
        (", ".join(splits), first),
        (f"{splits[0]} alone", _command(how, sorted(inner), *_into(how, splits[0]))),
    )


def _asked(seen: Seen, stated: Mixed, how: FileSplits) -> str:
    """Return that README.md states several configs, or not all files, with a command for each."""
    names = [one.name for one, _ in stated.configs]
    choices = [
        (one.name, command)
        for one, splits in stated.configs[:_MOST_COMMANDS]
        if (command := _command_of(seen, one, splits, how)) is not None
    ]
    if len(names) > 1:
        what = f"README.md states {len(names)} configs ({first_names(names, _SHOWN)})"
    else:
        left = next(file for file, found in zip(seen.files, stated.configs[0][1], strict=True) if not found)
        what = f"README.md states the splits of some files, and not of {shown_path(left)}"
        choices = [("what it states", command) for _, command in choices]
        choices.append(("all files in one split", _as_one(seen, how)))
    return _choice(what, *choices)


def _command_of(seen: Seen, one: Stated, splits: Sequence[set[str]], how: FileSplits) -> str | None:
    """Return the command that reads the files of a config of README.md; None where no globs of ours name them."""
    files = [file for file, found in zip(seen.files, splits, strict=True) if found]
    wanted = [next(iter(found)) for found in splits if found]
    below = set(seen.below)
    paths = [os.path.join(seen.root, glob) for _, globs in one.globs for glob in globs]
    if len(one.globs) == 1:
        return _command(how, paths, Set("output.split", one.globs[0][0]))
    inner = Seen.of(files, paths, "/")
    start = len(inner.root.rstrip("/")) + 1

    def own(glob: str) -> str:
        is_folder = not MAGIC.search(glob) and glob not in below
        return os.path.join(seen.root, glob)[start:] + ("/*" if is_folder else "")

    globs = tuple((split, tuple(own(glob) for glob in some)) for split, some in one.globs)
    try:
        if _by_globs(inner, globs, all_match=True) != wanted:
            return None
    except InputError:
        return None
    value = {split: some[0] if len(some) == 1 else list(some) for split, some in globs}
    return _command(how, paths, Set("input.splits", value))


def _choice(what: str, *choices: tuple[str, str]) -> str:
    lines = "".join(f"\n  {f'{name}:':<24} {command}" for name, command in choices)
    one_of = "choose one of" if len(choices) > 1 else "give"
    return f"{what}; {one_of}{lines}\nor say which files are of which split: input.splits"


def _as_one(seen: Seen, how: FileSplits) -> str:
    return how.one_split or _command(how, seen.typed, how.as_one)


def _command(how: FileSplits, paths: Sequence[str], *options: Add) -> str:
    return str(how.call.reading(map(typed_path, paths), *options))


def _named(files: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return paths that name these files and no others: themselves, or globs where there are many."""
    if len(files) <= _SHOWN:
        return list(files)
    places = (os.path.split(file) for file in files)
    globs = list(dict.fromkeys(f"{folder}/{re.sub('[0-9]+', '*', name)}" for folder, name in places))
    taken = any(fnmatch.fnmatchcase(file, glob) for glob in globs for file in others)
    return list(files) if taken or len(globs) > _SHOWN or any(MAGIC.search(file) for file in files) else globs
