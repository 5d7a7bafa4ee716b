"""Decide which split each file is of, or stop with the commands that say it.

What is clear is read; what is mixed stops the run. If nothing is seen, all rows go to one split, and a word that might
have been meant is a line. What the user says comes before what is seen: `input.splits`, or a rule or a split for all
rows.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from glob import escape
from itertools import chain, zip_longest
from typing import Any, Final

from ...errors import InputError
from ...format.wording.hints import Add, Set
from ...format.wording.printable import first_names, printable
from ...inputs.contract.selection import HELD_RULE, FileSplits, Globs, shown_path, typed_path
from ...inputs.contract.source import Recognised, SourceEntry
from ...inputs.files.file_names import PICTURE_SUFFIXES, SPLITS, files_below, pictures_below
from ...inputs.files.listing import beginning_of
from ..evidence.hugging_face import Stated
from ..evidence.names import (
    FOLD,
    MAGIC,
    alike_inside,
    as_split,
    kind_of,
    name_without_suffixes,
    split_above,
    split_in_words,
    split_of_folder,
    word_in_name,
)
from .seen import (
    CLEAR,
    LISTING,
    MOST_COMMANDS,
    MOST_FOLDERS,
    SHOWN,
    UNSURE,
    Found,
    Mixed,
    Seen,
    by_lists,
    by_roots,
    paths_of,
    said,
)


def _by_pictures(seen: Seen, how: FileSplits) -> Found | None:
    """Rows name pictures: each is of the split whose name the folder of its file has, or that of its picture."""
    splits = [split_above(entry.name) or "" for entry in seen.entries]
    above = [*(how.pictures or ()), *map(os.path.dirname, seen.files)]
    roots = [] if all(splits) else [how.begin] if how.begin else list(dict.fromkeys(above))
    inner = [split for root in roots for split in _splits_of_folders(root)]
    of_rows = {*splits, *inner} - {""}
    return Found("folders", {}, splits, "the names of folders", tuple(sorted(of_rows))) if of_rows else None


def _splits_of_folders(root: str) -> list[str]:
    """Return the splits that folders in a root have the names of, or else folders of pictures one level down.

    A folder that holds other files alone is none: `training` may be of models and settings.
    """
    folders = _folders_of(root)
    found = [split for one in folders if (split := split_of_folder(os.path.basename(one))) and not _is_of_others(one)]
    if found or len(folders) > MOST_FOLDERS:
        return found
    inner = [path for one in folders for path in _folders_of(one) if split_of_folder(os.path.basename(path))]
    there = [path for path in inner if next(pictures_below(os.fsencode(path)), None) is not None]
    return [split for path in there if (split := split_of_folder(os.path.basename(path)))]


def _is_of_others(folder: str) -> bool:
    """Return whether a folder holds files, all of which have suffixes that pictures do not have."""
    ends = (os.path.splitext(one)[1].lower() for one in files_below(os.fsencode(folder)))
    first = next(ends, b"")
    return first not in _OF_PICTURES and all(end not in _OF_PICTURES for end in ends)


_OF_PICTURES: Final = (b"", *PICTURE_SUFFIXES)


def _folders_of(root: str) -> list[str]:
    with os.scandir(root) as entries:
        return [one.path for one in entries if one.is_dir(follow_symlinks=False) and not one.name.startswith(".")]


def _of_rows(seen: Seen, how: FileSplits) -> Recognised | Found:
    """Return how rows get their splits that name pictures: by lists of these, or folders."""
    listed = by_lists(seen) if how.wanted is None else None
    found = _by_pictures(seen, how)
    if isinstance(listed, Found) and found and seen.form in LISTING and _differ(listed.splits, found.splits):
        choices = (
            (f"as {listed.where} say", (said(seen, listed.splits),)),
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
    return any(one and other and kind_of(one) != kind_of(other) for one, other in zip(splits, others, strict=True))


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
            rule, arguments, splits = WORDS, {}, _by_words_of(seen, how.ignored)
        else:
            rule, arguments = GLOBS, {split: list(globs) for split, globs in how.wanted}
            splits = _by_globs(seen, how.wanted, how.ignored, all_match=how.held != GLOBS)
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


def refuse_other_splits(
    entries: Sequence[SourceEntry], inside: Sequence[set[str]], how: FileSplits, paths: Sequence[str], option: Set
) -> None:
    """Refuse archives that are of one split, and whose folders are of another; with the `option` these are read.

    Where all archives are of one split, folders of several cut them further.
    """
    own = {kind_of(one.split) for one in entries if one.split}
    within = {kind_of(split) for splits in inside for split in splits}
    if not own or (len(own) == 1 and len(within) > 1):
        return
    for one, splits in zip(entries, inside, strict=True):
        others = sorted(split for split in splits if one.split and kind_of(split) != kind_of(one.split))
        if others:
            what = f"{one.name} is of split {one.split} by its name or folder, and folders inside say {others[0]}"
            by_files = _command(how, paths, Set("input.splits", "names"))
            by_folders = _command(how, paths, option)
            raise InputError(_choice(what, ("by archives", by_files), ("by the folders inside", by_folders)))


def _agree(one: Found, other: Found) -> bool:
    """Return whether two rules say the same of all files, or one of them says one split for all."""
    if one is other or (len(one.kinds) == 1) != (len(other.kinds) == 1):
        return True
    return all(kind_of(a) == kind_of(b) for a, b in {*zip(one.splits, other.splits, strict=True)})


def _line(splits: Sequence[str | None], where: str) -> str:
    names = sorted({split for split in splits if split})
    files = "all files" if all(splits) else "the files that are listed"
    what = f"splits {', '.join(names)}" if len(names) > 1 else f"{files} are of split {names[0]}"
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
    if not 1 < len({*splits.values()}) == len(splits) <= SHOWN:
        return None
    end = "/*" if kind == "folder" else ""
    return Set("input.splits", {split: f"{escape(name)}{end}" for name, split in splits.items()})


def _by_words_of(seen: Seen, ignored: Sequence[str]) -> list[str]:
    """Return the split that is in the name of each file, or of a folder that it is in.

    Raises:
        InputError: a name has none, or several.
    """
    splits = [*map(_word_in_path, seen.below)]
    bare = [at for at, split in enumerate(splits) if split is None]
    if bare:
        raise InputError(
            f"{shown_path(seen.files[bare[0]])}: input.splits is names, and its name has no word for one split; "
            f"{' or '.join([*_without(seen, bare, ignored), 'say which files are of which split'])}: "
            f"{Set('input.splits', '{train: GLOB, test: GLOB}')}"
        )
    return [split for split in splits if split is not None]


def _without(seen: Seen, numbers: Sequence[int], ignored: Sequence[str]) -> list[str]:
    """Say how files are left out beside others: by an option, if a few globs are of no other."""
    if len(numbers) == len(seen.files):
        return []
    them = "the file" if len(numbers) == 1 else f"the {len(numbers):,} files without a split"
    globs = _globs_of(seen, numbers)
    if not globs:
        return [f"leave {them} out (give the paths of the others alone)"]
    return [f"leave {them} out: {Set('input.ignore', [*ignored, *globs])}"]


def _globs_of(seen: Seen, numbers: Sequence[int]) -> list[str]:
    """Return a few globs of files and of no others: their names, paths below the root, or those with other numbers."""
    named = {os.path.abspath(one) for one in seen.typed if "://" not in one}
    wanted = {*numbers}
    if any(seen.files[at] in named for at in numbers):
        return []  # input.ignore leaves out what is found, and not what was given
    others = [below.rstrip("/") for at, below in enumerate(seen.below) if at not in wanted]
    names = {os.path.basename(one) for one in others}
    globs = [escape(seen.below[at].rstrip("/")) for at in numbers]
    if len(globs) > SHOWN:
        globs = [*dict.fromkeys(re.sub("[0-9]+", "*", one) for one in globs)]
    if any(fnmatch.fnmatchcase(one, glob) for one in others for glob in globs if "*" in glob) or len(globs) > SHOWN:
        return []
    return [f"/{one}" if "/" not in one and one in names else one for one in globs]


def _word_in_path(below: str) -> str | None:
    return next(filter(None, map(split_in_words, reversed(below.split("/")))), None)


def _by_globs(seen: Seen, globs: Globs, ignored: Sequence[str] = (), *, all_match: bool) -> list[str]:
    """Return the split whose globs match each file: its name, or with a `/` its path below the root.

    Raises:
        InputError: none matches, or those of two splits; or a glob matches no file, and `all_match`.
    """
    tests = [(split, glob, re.compile(fnmatch.translate(glob))) for split, some in globs for glob in some]
    splits, bare = list[str](), list[int]()
    used = set[str]()
    places = f"globs with a / are of paths below {shown_path(seen.root)}, others of names"
    for at, (name, below, file) in enumerate(zip(seen.names, seen.below, seen.files, strict=True)):
        found = {split: glob for split, glob, test in tests if test.match(below if "/" in glob else name)}
        if len(found) > 1:
            why = " and ".join(f'"{printable(glob)}" ({split})' for split, glob in found.items())
            raise InputError(f"{shown_path(file)}: {why} of input.splits match it; let one match; {places}")
        bare += [] if found else [at]
        splits += found
        used.update(found.values())
    if bare:
        what = f"{shown_path(seen.files[bare[0]])}: no glob of input.splits matches it"
        raise InputError("; ".join([what, places, *_without(seen, bare, ignored)]))
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
    mixed = mixed if mixed.level is not None else replace(mixed, splits=_of_one_table(seen, mixed.splits))
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
    both = list(seen.typed) if not others else paths_of([f for s in ordered for f in by_split[s]], others)
    choices = [(", ".join(ordered), _command(how, both, Set("input.splits", "names"), *union))]
    if any(split and _word_in_path(one) != split for one, split in zip(seen.below, mixed.splits, strict=True)):
        choices = []  # words in names say something else
    words = [*map(_word_in_path, seen.below)] if others else []
    if words and all(words):  # the folders of the others are of splits
        in_words = sorted({*map(str, words)}, key=lambda split: (kind_of(split) != "train", split))
        every = (", ".join(in_words), _command(how, seen.typed, Set("input.splits", "names"), *union))
        return _choice(f"{what}: {shown}{beside}", every, ("all files in one split", _as_one(seen, how)))
    folders = {} if others else alike_inside(zip(seen.folders, mixed.splits, strict=True), seen.root)
    if folders:
        named = first_names(sorted(folders), SHOWN)
        what = f"{what}: {shown}; {len(folders)} folders hold the same splits, whose rows would come together ({named})"
        of_folds = all(FOLD.fullmatch(os.path.basename(one)) for one in folders)
        own = {
            one: how.call.apart(re.sub(r"[^\w.-]+", "-", one)) for one in sorted(folders)[: SHOWN if of_folds else 1]
        }
        option = Set("input.splits", "names")
        each = [(one, _command(replace(how, call=call), [folders[one]], option)) for one, call in own.items()]
        more = [] if of_folds else [*choices, ("all files in one split", _as_one(seen, how))]
        return _choice(f"{what}; each is a dataset" if of_folds else what, *each, *more)
    if tables := _tables_by_name(by_split):
        by_names = Set("input.splits", "names")
        each_table = [
            (one, _command(replace(how, call=how.call.apart(one)), some, by_names)) for one, some in tables.items()
        ]
        return _choice(
            f"{what}: {shown}{beside}; {' and '.join(tables)} have other columns, and are datasets", *each_table
        )
    if not others and (globs := _of_own_names(seen)):
        choices.insert(0, (", ".join(globs), _command(how, both, Set("input.splits", globs), *union)))
    if others and len(ordered) > 1:
        rest = [file for split in ordered[1:] for file in by_split[split]]
        alone = _command(how, paths_of(by_split[ordered[0]], [*others, *rest]), *_into(how, ordered[0]))
        choices.append((f"{ordered[0]} alone", alone))
    else:
        choices.append(("all files in one split", _as_one(seen, how)))
    return _choice(f"{what}: {shown}{beside}", *choices, said=_by_each_name(seen, by_split, how, *union))


def _of_one_table(seen: Seen, splits: Sequence[str | None]) -> Sequence[str | None]:
    """Return splits without those of other tables: collection_dev.csv, beside a dev.csv of other columns."""
    files = {at: file for at, (file, split) in enumerate(zip(seen.files, splits, strict=True)) if split}
    if len(files) > MOST_COMMANDS * SHOWN or any(os.path.splitext(file)[1] not in _SIGNS for file in files.values()):
        return splits
    heads = {at: beginning_of(file, _HEAD).split(b"\n")[0].strip() for at, file in files.items()}
    plain = defaultdict[str | None, set[bytes]](set)
    for at, file in files.items():
        if (word := word_in_name(os.path.basename(file))) and not word.rest:
            plain[splits[at]].add(heads[at])
    others = {at for at in files if plain[splits[at]] and heads[at] not in plain[splits[at]]}
    return [None if at in others else split for at, split in enumerate(splits)]


def _tables_by_name(by_split: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the files of tables of other columns that have two splits each: qrels.train.tsv, queries.train.tsv."""
    found = defaultdict[str, dict[str, str]](dict)
    for file, split in ((file, split) for split, files in by_split.items() for file in files):
        word, end = word_in_name(os.path.basename(file)), os.path.splitext(file)[1]
        if word is None or not word.rest or end not in _SIGNS:
            return {}
        found[word.rest[0]][file] = split
    firsts = {name: next(iter(some)) for name, some in found.items()}
    heads = {name: beginning_of(file, _HEAD).split(b"\n")[0] for name, file in firsts.items()}
    columns = {head.count(_SIGNS[os.path.splitext(firsts[name])[1]]) for name, head in heads.items()}
    several = all(len({*some.values()}) > 1 for some in found.values())
    return {name: [*some] for name, some in found.items()} if several and len(found) == len(columns) > 1 else {}


_SIGNS: Final = {".csv": b",", ".tsv": b"\t"}
_HEAD: Final = 1 << 16


def _by_each_name(seen: Seen, by_split: Mapping[str, Sequence[str]], how: FileSplits, *more: Add) -> Add | None:
    """Return the options by which a few files are of their splits, and others are left out."""
    at = {file: number for number, file in enumerate(seen.files)}
    globs = {split: _globs_of(seen, [at[file] for file in files]) for split, files in by_split.items()}
    others = [number for file, number in at.items() if all(file not in files for files in by_split.values())]
    left = _globs_of(seen, others)
    plain = all(globs.values()) and not any(one.startswith("/") for some in globs.values() for one in some)
    if len(globs) < 2 or not plain or (others and not left):
        return None
    splits = {split: some[0] if len(some) == 1 else some for split, some in globs.items()}
    ignore = [Set("input.ignore", [*how.ignored, *left])] if left else []
    return Add(Set("input.splits", splits), *ignore, *more)


def _of_own_names(seen: Seen) -> dict[str, str]:
    """Return a glob for each split where names have other words beside those: train_sft.csv beside train_prefs.csv."""
    found = dict[str, str]()
    for name in seen.names:
        own = as_split(re.sub(r"[\W_0-9]+$", "", name_without_suffixes(name)))
        glob = re.sub(r"[0-9]+", "*", escape(name))
        if found.setdefault(own, glob) != glob or len(found) > MOST_COMMANDS:
            return {}
    words = {word.rest for word in map(word_in_name, seen.names) if word}
    try:
        each = _by_globs(seen, tuple((split, (glob,)) for split, glob in found.items()), all_match=True)
    except InputError:
        return {}
    return dict(sorted(found.items())) if len(words) > 1 and len({*each}) > len({*seen.each(split_in_words)}) else {}


def _into(how: FileSplits, split: str) -> list[Set]:
    """Return the option by which all rows go to a split; a convert may need none."""
    return [] if split == how.split and how.call.command != "append" else [Set("output.split", split)]


_KIND: Final = re.compile(rf"(?:{'|'.join(SPLITS)})_?([A-Z])")


def _stopped_by_folders(seen: Seen, mixed: Mixed, splits: Sequence[str], how: FileSplits) -> str:
    folders, inner = defaultdict[str, set[str]](set), set[str]()
    stray, level = "", mixed.level or 0
    strays = set[str]()
    for one, file, split in zip(seen.below, seen.files, mixed.splits, strict=True):
        if split is None:
            stray = stray or file
            strays.add(os.path.join(seen.root, *one.split("/")[:-1][: level + 1]))
        else:
            parts, deep = one.split("/")[:-1], level + 1
            folders[split].add(os.path.join(seen.root, *parts[:deep]))
            while mixed.words and deep < len(parts) and split_in_words(parts[deep]) == split:
                deep += 1  # seg_train/seg_train
            if split == splits[0]:
                inner.add(os.path.join(seen.root, *parts[:deep]))
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
        beside = first_names(list(map(shown_path, sorted(strays))), SHOWN)
        left = f", and {beside} {'is' if len(strays) == 1 else 'are'} of none and in neither command" if strays else ""
        what = f"names of folders may mean splits: {shown}{left}"
    else:
        what = f"{shown_path(stray)}: is in no folder of a split, and other files are ({', '.join(splits)})"
    both = named if stray or not mixed.words else seen.typed
    globs = _globs_of_folders(seen, {split: sorted(folders[split]) for split in splits}) if not stray else None
    by_names = all(split_in_words(os.path.basename(one)) for one in named)
    option = Set("input.splits", "names") if by_names or globs is None else globs
    first = _command(how, both, *([option] if mixed.words else []))
    alone = (f"{splits[0]} alone", _command(how, sorted(inner), *_into(how, splits[0])))
    others, flat = list[tuple[str, str]](), all(len(parts) == level + 1 for parts in seen.parts.values())
    if not by_names and mixed.words and (seen.form != "images" or flat):
        as_classes = ("the folders are classes", _command(how, seen.typed, Set("input.layout", "label")))
        others = [as_classes if seen.form == "images" else ("all files in one split", _as_one(seen, how))]
    return _choice(what, (", ".join(splits), first), alone, *others, said=globs if by_names else None)


def _globs_of_folders(seen: Seen, folders: Mapping[str, Sequence[str]]) -> Set | None:
    """Return the option by which folders below the root are of splits; None where they are many, or the root itself."""
    below = {split: [escape(os.path.relpath(one, seen.root)) for one in some] for split, some in folders.items()}
    if any(one.startswith(".") or len(some) > SHOWN for some in below.values() for one in some):
        return None
    globs = {split: [f"{one}/*" for one in some] for split, some in below.items()}
    return Set("input.splits", {split: some[0] if len(some) == 1 else some for split, some in globs.items()})


def _asked(seen: Seen, stated: Mixed, how: FileSplits) -> str:
    """Return that README.md states several configs, or not all files, with a command for each."""
    names = [one.name for one, _ in stated.configs]
    choices = [
        (one.name, command)
        for one, splits in stated.configs[:MOST_COMMANDS]
        if (command := _command_of(seen, one, splits, how)) is not None
    ]
    if len(names) > 1:
        what = f"README.md states {len(names)} configs ({first_names(names, SHOWN)})"
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


def _choice(what: str, *choices: tuple[str, str], said: Add | None = None) -> str:
    lines = "".join(f"\n  {f'{name}:':<24} {command}" for name, command in choices)
    one_of = "choose one of" if len(choices) > 1 else "give"
    option = said or Set("input.splits", "{train: GLOB, test: GLOB}")
    return f"{what}; {one_of}{lines}\nor say which files are of which split: {option}"


def _as_one(seen: Seen, how: FileSplits) -> str:
    return how.one_split or _command(how, seen.typed, how.as_one)


def _command(how: FileSplits, paths: Sequence[str], *options: Add) -> str:
    return str(how.call.reading(map(typed_path, paths), *options))
