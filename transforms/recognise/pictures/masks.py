"""Refuse folders of masks, or of other versions of the same pictures, beside folders of pictures; a command reads one.

    Input/7.jpg, GroundTruth/7_segmentation.png    words that only masks have end their names
    images/7.png, 1st_manual/7.png                 words of folders
    a/7.jpg, b/7.png                               each of one size, b/ gray and a/ in colours
    cat/7.jpg, dog/7.jpg                           classes: numbers alone are no sign
    color/cat/7.jpg, gray/cat/7.jpg                versions: the same classes, and the same names in them

Of at most a few folders the names are compared, and of a few pairs the headers.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations, takewhile
from typing import Final

from ...errors import UsageError
from ...format.wording.hints import Set
from ...format.wording.printable import first_names, printable, printable_path
from ...inputs.contract.selection import Call, shown_path, typed_path
from ...inputs.files.open_file import is_object
from ...pictures.facts import ImageProblem
from ...pictures.structure import READABLE_FORMATS, ImageCheck
from ..evidence.names import FOLD, split_of_folder
from .layout import are_pairs

_OF_MASKS: Final = re.compile(
    r"(?<![a-z])(?:masks?|ground[_ -]?truths?|gts?|segmentations?|segs?|annotations?|annots?|labels?|targets?|manual|"
    r"superpixels?|silhouettes?)(?![a-z])"
)
_OF_PICTURES: Final = re.compile(
    r"(?<![a-z])(?:images?|imgs?|inputs?|originals?|photos?|pictures?|data|rgb|raw)(?![a-z])"
)
_MOST_FOLDERS: Final = 16
_MOST_NAMES: Final = 1 << 14
_COMPARED: Final = 64
_MOST_COPIES: Final = 4
_HEADERS: Final = 16
_LEAST: Final = 3
_LEAST_NAMED: Final = 2
"""So few pairs are a sign where the folders are named for both, as images and masks are."""

_LARGEST: Final = 1 << 26
_GRAY: Final = ("1", "L", "P", "I;16", "LA")
_SHOWN: Final = 4

NamesIn = Callable[[int, int], Sequence[bytes]]
"""The first names of the files in a folder, at most so many."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder by its path below the root, and its files by their names without suffix and `end`, which all have."""

    number: int
    parts: tuple[str, ...]
    path: bytes
    end: str
    files: dict[str, bytes]


def refuse_masks(below: Sequence[bytes], paths: Sequence[bytes], names_in: NamesIn, call: Call) -> None:
    """Raise `UsageError` where folders hold masks of the pictures in others."""
    parts = [tuple(os.fsdecode(one).strip("/").split("/")) for one in below]
    masks = dict[int, tuple[_Folder, _Folder, str, tuple[str, ...]]]()
    every = list(range(len(parts)))
    for few in [every] if len(every) <= _MOST_FOLDERS else [_of_first(paths), _beside_masks(parts)]:
        folders = [_folder_of(at, parts[at], paths[at], names_in) for at in few if len(few) <= _MOST_FOLDERS]
        masks = masks or dict(_masks_among(folders))
    if not masks:
        return
    levels = {one.number: len(inner) for one, _, _, inner in masks.values()}
    words = set().union(*({*mask.parts} - {*other.parts} for other, mask, _, _ in masks.values()))
    words = {one for one in words if len(parts) > _MOST_FOLDERS and _OF_MASKS.search(_words(one))}
    names = {other.parts[-1 - len(inner)] for other, _, _, inner in masks.values()}
    names = {one for one in names if _OF_PICTURES.fullmatch(_words(one))}
    others = [at for at, one in enumerate(parts) if at not in masks and words.isdisjoint(one)]
    read = [at for at in others if names & {*parts[at]}] or others
    left = sorted({shown_path(paths[at]) for at in others if at not in read})
    without, others = f" (without those in {first_names(left, _SHOWN)})" if left else "", read
    beside = [one for at, one in enumerate(parts) if at not in others]
    commands = " && ".join(
        _of_splits_whole([(parts[at], paths[at]) for at in others], beside, call)
        or _commands([(parts[at], paths[at], levels.get(at, 0)) for at in others], call)
    )
    other, mask, name, _ = next(iter(masks.values()))
    shown = first_names([printable("/".join(parts[number])) for number in masks], _SHOWN)
    first = f"{printable_path(mask.files[name])} beside {printable_path(other.files[name])}"
    holds, is_ = ("holds", "it is no class") if len(masks) == 1 else ("hold", "they are no classes")
    raise UsageError(
        f"it is unclear what the folders mean: {shown} {holds} a file for each picture of other folders, as masks do "
        f"({first}), so {is_}; to read the pictures alone{without}: {commands}\n"
        f"or read both from a table, metadata.csv with the columns file_name and mask_file_name\n"
        f"or, where all are pictures with classes: {Set('input.layout', 'label')}"
    )


def refuse_versions(below: Sequence[bytes], paths: Sequence[bytes], names_in: NamesIn, call: Call) -> None:
    """Raise `UsageError` where folders hold the same folders of classes with files of the same names."""
    parts = [os.fsdecode(one).strip("/").split("/") for one in below]
    _refuse_copy_below(parts, paths, names_in, call)
    level = next((at for at, names in enumerate(zip(*parts, strict=False)) if len({*names}) > 1), 0)
    found = defaultdict[str, dict[tuple[str, ...], int]](dict)
    for at, one in enumerate(parts):
        found["/".join(one[: level + 1])][tuple(one[level + 1 :])] = at
    tops, classes = sorted(found), next(iter(found.values()))
    if not 1 < len(tops) <= _SHOWN or len(classes) == 1 or any(one.keys() != classes.keys() for one in found.values()):
        return
    names = {name for one in (*classes, *(top.split("/") for top in tops)) for name in one}
    if any(split_of_folder(one) or FOLD.fullmatch(one) or _OF_MASKS.search(_words(one)) for one in names):
        return
    inner = min(classes)
    first, second = ({*names_in(found[top][inner], _COMPARED)} for top in tops[:2])
    both = first & second
    if len(both) < max(_LEAST, _NEARLY * len(first)):
        return
    places = [typed_path(os.fsdecode(_above(paths[found[top][inner]], len(inner)))) for top in tops]
    commands = "".join(f"\n  {call.reading([one])}" for one in places)
    file = f"{printable('/'.join(inner))}/{printable_path(min(both))}"
    other = f"\nor, where they hold other pictures, as of patients: {Set('input.layout', 'inner_label')}"
    other = "" if are_pairs({os.fsencode(one[-1]) for one in classes}) else other
    raise UsageError(
        f"it is unclear what the folders mean: {first_names(tops, _SHOWN)} hold folders of the same names, with files "
        f"of the same names ({file}), as versions of the same pictures do; choose one{commands}{other}"
    )


def _refuse_copy_below(parts: Sequence[Sequence[str]], paths: Sequence[bytes], names_in: NamesIn, call: Call) -> None:
    """Raise `UsageError` for classes of which a folder beside them holds the same again, as archives have them."""
    deepest = max(map(len, parts), default=0)
    for top in sorted({one[0] for one in parts if len(one) == deepest > 1})[:_MOST_COPIES]:
        above = {tuple(one): at for at, one in enumerate(parts) if one[0] != top}
        inner = {tuple(one[1:]): at for at, one in enumerate(parts) if one[0] == top}
        if len(above) < 2 or not above.keys() <= inner.keys():
            continue
        name = min(above)
        first, second = ({*names_in(at[name], _COMPARED)} for at in (above, inner))
        if first == second:
            whole = typed_path(os.fsdecode(_above(paths[inner[name]], len(name))))
            raise UsageError(
                f"it is unclear what the folders mean: {printable(top)} holds the same folders as the folder above "
                f"it, with files of the same names, as a copy does; to read it alone: {call.reading([whole])}"
            )


def _of_first(paths: Sequence[bytes]) -> list[int]:
    """Return the numbers of the folders below the first one of the level from which on folders differ."""
    first, *_, last = (one.split(b"/") for one in sorted(paths))
    alike = sum(1 for _ in takewhile(lambda names: names[0] == names[1], zip(first, last, strict=False)))
    return [at for at, one in enumerate(paths) if one.split(b"/")[: alike + 1] == first[: alike + 1]]


def _beside_masks(parts: Sequence[tuple[str, ...]]) -> list[int]:
    """Return the numbers of the folders in the first folder that has one whose name is of masks."""
    above = next((one[:-1] for one in parts if _OF_MASKS.search(_words(one[-1]))), None)
    return [at for at, one in enumerate(parts) if one[:-1] == above]


def _of_splits_whole(
    pictures: Sequence[tuple[tuple[str, ...], bytes]], masks: Sequence[tuple[str, ...]], call: Call
) -> list[str]:
    """Return the commands that read whole folders of splits, for each folder above them a dataset.

    None where pictures are in no such folder, or masks are too.
    """
    found = defaultdict[str, dict[str, str]](dict)
    for parts, path in pictures:
        at = next((at for at, part in enumerate(parts) if split_of_folder(part)), None)
        if at is None or any(one[: at + 1] == parts[: at + 1] for one in masks):
            return []
        place = os.fsdecode(_above(path, len(parts) - at - 1))
        found[os.path.dirname(place)][place] = split_of_folder(parts[at]) or ""
    commands, names = list[str](), {os.path.basename(above) for above in found}
    for above, places in found.items():
        name = os.path.basename(above) if len(names) == len(found) else typed_path(above)
        own = call if len(found) == 1 else call.apart(re.sub(r"[^\w.-]+", "-", name).strip("-."))
        alone = next(iter(places.values())) if len(places) == 1 else "train"
        options = [] if alone == "train" else [Set("output.split", alone)]
        commands.append(str(own.reading(map(typed_path, places), *options)))
    return commands


def _commands(pictures: Sequence[tuple[tuple[str, ...], bytes, int]], call: Call) -> list[str]:
    """Return the command that reads all places, or one for each split, where each is in the folder of one.

    Of each the last so many levels are alike in pictures and masks.
    """
    splits = defaultdict[str | None, dict[str, None]](dict)
    for parts, path, level in pictures:
        split = next(filter(None, map(split_of_folder, parts[: len(parts) - level])), None)
        splits[split].setdefault(typed_path(os.fsdecode(_above(path, level))))
    if None in splits or sum(map(len, splits.values())) == 1:
        return [str(call.reading(list(dict.fromkeys(one for some in splits.values() for one in some))))]
    return [
        str(call.apart(str(split)).reading(places, *([] if split == "train" else [Set("output.split", split)])))
        for split, places in splits.items()
    ]


def _above(path: bytes, levels: int) -> bytes:
    return path.rstrip(b"/").rsplit(b"/", levels)[0] if levels else path


def _folder_of(number: int, parts: tuple[str, ...], path: bytes, names_in: NamesIn) -> _Folder:
    stems = {os.fsdecode(one).rpartition(".")[0] or os.fsdecode(one): one for one in names_in(number, _MOST_NAMES)}
    ends = takewhile(lambda signs: len({*signs}) == 1, zip(*(one[::-1] for one in stems), strict=False))
    common = "".join(signs[0] for signs in ends)[::-1]
    sign = re.search(r"[._-](?=.*[A-Za-z])", common)
    end = common[sign.start() :] if sign is not None and len(stems) > 1 else ""
    return _Folder(number, parts, path, end, {one[: len(one) - len(end)]: name for one, name in stems.items()})


def _masks_among(folders: Sequence[_Folder]) -> Iterator[tuple[int, tuple[_Folder, _Folder, str, tuple[str, ...]]]]:
    """Yield each folder of masks with that of its pictures, a name of both, and what is below both alike."""
    found = set[int]()
    for other, mask in permutations(folders, 2):
        if len(other.parts) != len(mask.parts) or other.number in found or mask.number in found:
            continue
        few, many = sorted((other, mask), key=lambda one: len(one.files))
        some = [*few.files][:_COMPARED]
        both = [name for name in some if name in many.files]
        apart = [at for at, names in enumerate(zip(other.parts, mask.parts, strict=True)) if names[0] != names[1]]
        if len(both) < _LEAST_NAMED or len(both) < _NEARLY * len(some) or not apart:
            continue
        if len(both) < _LEAST and not (_OF_PICTURES.search(its := _named(other, apart)) and _say_so(mask, apart, its)):
            continue
        if _are_masks(other, mask, both, apart):
            found.add(mask.number)
            yield mask.number, (other, mask, both[0], mask.parts[apart[-1] + 1 :])


_NEARLY: Final = 0.9


def _are_masks(other: _Folder, mask: _Folder, both: Sequence[str], apart: Sequence[int]) -> bool:
    mine, its = _named(mask, apart), _named(other, apart)
    ends_so = bool(_OF_MASKS.search(_words(mask.end))) and not other.end
    is_named = _say_so(mask, apart, its)
    if any(re.search("masks?", one) for one in (its, other.end.lower())):
        return False  # with_mask and without_mask are classes
    if is_named and (_OF_PICTURES.search(its) or _OF_MASKS.sub("", mine).strip("_- ") == its.strip("_- ")):
        return True  # images beside masks, or train beside train_labels
    has_end = bool(mask.end) and not other.end and mask.end.strip("._-").lower() not in mine
    return _look_alike(other, mask, both, sure=not ends_so, gray=not (is_named or has_end))


def _named(folder: _Folder, apart: Sequence[int]) -> str:
    return _words("_".join(folder.parts[at] for at in apart))


def _say_so(mask: _Folder, apart: Sequence[int], its: str) -> bool:
    """Return whether the names of a folder are of masks, where `its`, of another one, are not."""
    return bool(_OF_MASKS.search(_named(mask, apart))) and not _OF_MASKS.search(its)


def _look_alike(other: _Folder, mask: _Folder, both: Sequence[str], *, sure: bool, gray: bool) -> bool:
    """Return whether pairs have one size each; to be `sure` not all may have the same, or masks are of another kind.

    A kind is `gray`, where pictures have colours, or else also one without loss, where pictures are JPEGs.
    """
    step = len(both) // _HEADERS + 1
    sizes, are_gray, are_exact = set(), True, True
    for name in both[::step]:
        facts = (
            _facts_of(os.path.join(other.path, other.files[name])),
            _facts_of(os.path.join(mask.path, mask.files[name])),
        )
        if facts[0] is None or facts[1] is None or facts[0][:2] != facts[1][:2]:
            return not sure and None in facts
        are_gray = are_gray and facts[1][2] in _GRAY and facts[0][2] not in _GRAY
        are_exact = are_exact and facts[0][3] == "jpeg" != facts[1][3]
        sizes.add(facts[0][:2])
        if gray and not are_gray:
            return False
    return not sure or are_gray or len(sizes) > 1 or are_exact


@cache
def _checker() -> ImageCheck:
    return ImageCheck("header", READABLE_FORMATS)


def _facts_of(path: bytes) -> tuple[int, int, str, str] | None:
    """Return the size, colours and format of a picture on a disk, None where its header cannot be read."""
    if is_object(path) or not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
        return None
    try:
        with open(path, "rb") as file:
            facts = _checker().check(file.read())
    except (OSError, ImageProblem):
        return None  # reading it says what is wrong
    return facts.width, facts.height, facts.colorspace, facts.format


def _words(name: str) -> str:
    """Return a name in lower case, with a sign between the words of `GroundTruth`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
