"""Find files that name the classes of a column of numbers, beside tables, arrays or archives.

    labels.txt, target_names.txt    a name in each line: of 0, 1 and so on, or of 1 and so on
    id2label.json, config.json      {"0": "cat"}, {"cat": 0}, ["cat"], or these as `id2label` of a model's config
    label_num_to_disease_map.json   the same in JSON of another name with a word for classes

Numbers above those of the names have none. A few rows are looked at: where none is 0, lines may be of 0 or 1 on.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...format.wording.hints import Set, set_column
from ...format.wording.printable import quoted
from ...inputs.contract.selection import shown_path
from ...inputs.contract.source import Listing
from ...inputs.files.open_file import is_object

_STEMS: Final = (
    "labels", "classes", "class_names", "label_names", "target_names", "categories", "names", "id2label", "label2id",
    "label_map", "labelmap", "class_to_idx", "idx_to_class",
)  # fmt: skip
_FILES: Final = (*(f"{stem}.{end}" for stem in _STEMS for end in ("txt", "json")), "config.json")
_OTHERS: Final = re.compile(r"(?:.*[_ -])?(?:labels?|class|classes|category|categories|targets?)(?:[_ -].*)?\.json")
_MOST_FILES: Final = 1000
_COLUMN: Final = re.compile(
    r"(?:.*[_ -])?(?:label|labels|class|classes|cls|target|category|y)(?:[_ -]?(?:id|idx|index))?"
)
_FIRST: Final = "column_0"
"""The first column of a table without a header, as AG News and its like have their classes."""

_MOST_BYTES: Final = 1 << 20
_MOST_NAMES: Final = 1000
_MOST_NUMBERS: Final = 10_000
_MOST_SHOWN: Final = 100
_LONGEST: Final = 100
_PATH: Final = re.compile(r"[\t,;|/\\]|\.[A-Za-z0-9]{2,4}$")


@dataclass(frozen=True)
class ClassNames:
    """The files that have names of classes, in the folder of the first file of a listing and in the one above it.

    Columns that are `labelled` have the names of their classes already.
    """

    listing: Listing
    labelled: Collection[str]

    @cached_property
    def _files(self) -> list[tuple[str, list[str] | dict[int, str]]]:
        own = [one.path for one in self.listing.entries[:1] if self.listing.traits.in_files and not is_object(one.path)]
        return list(_files_near(os.path.dirname(os.fsdecode(own[0])))) if own else []

    def told(self, batch: pa.RecordBatch) -> tuple[str, ...]:
        """Return the line that names a column and the file with its names, with the option that keeps them."""
        found = {name: _bounds(batch[name]) for name in _columns(batch, self.labelled)}
        columns = {name: bounds for name, bounds in found.items() if bounds is not None}
        for (path, stated), (name, (least, most)) in product(self._files if columns else (), columns.items()):
            options = [_option(name, names) for names in _meanings(stated, least, most)]
            if options:
                what = f"column {quoted(name)} holds numbers, and {shown_path(path)} has their names"
                first = "" if len(options) == 1 else " (if the first name is of 0; if it is of 1, the second option)"
                return (f"{what}; to keep them as classes{first}: {', or '.join(map(str, options))}",)
        return ()


def _meanings(stated: list[str] | dict[int, str], least: int, most: int) -> list[list[str]]:
    """Return the names from 0 on, which a list may have from 1 on; the numbers are some of those of the column."""
    if isinstance(stated, dict):
        found = [_in_order(stated)] if max(stated) < _MOST_NUMBERS else []
    elif least == 0 or most > len(stated):
        found = [stated]
    else:
        found = [["_unused_0", *stated]] if most == len(stated) else [stated, ["_unused_0", *stated]]
    return [names for names in found if most < len(names)]


def _option(column: str, names: list[str]) -> Set:
    return set_column(column, "label", names if len(names) <= _MOST_SHOWN else "[NAME, ...]")


def _columns(batch: pa.RecordBatch, labelled: Collection[str]) -> list[str]:
    numbers = [one.name for one in batch.schema if pa.types.is_integer(one.type) and one.name not in labelled]
    named = [name for name in numbers if _COLUMN.fullmatch(name.lower())]
    first = [name for name in numbers if name == _FIRST and batch[name].to_pylist() != list(range(batch.num_rows))]
    return named or first  # a first column without a name may number the rows, as pandas does


def _bounds(column: pa.Array) -> tuple[int, int] | None:
    """Return the least and the largest number of a column, if they may be those of classes."""
    found = pc.min_max(column).as_py()
    least, most = found["min"], found["max"]
    return (least, most) if least is not None and 0 <= least <= most < _MOST_NAMES and most > 0 else None


def _files_near(folder: str) -> Iterator[tuple[str, list[str] | dict[int, str]]]:
    """Yield the files that have names of classes, with these, by their numbers where they say so."""
    for above in (folder, os.path.dirname(folder)):
        if not os.path.isdir(above):
            continue  # rows of memory
        with os.scandir(above) as entries:
            others = sorted(one.name for one in islice(entries, _MOST_FILES) if _OTHERS.fullmatch(one.name.lower()))
        for path in (os.path.join(above, name) for name in dict.fromkeys((*_FILES, *others))):
            if os.path.isfile(path) and os.path.getsize(path) <= _MOST_BYTES and (names := _names_in(path)):
                yield path, names


def _names_in(path: str) -> list[str] | dict[int, str] | None:
    with open(path, "rb") as file:
        raw = file.read()
    try:
        text = raw.decode("utf-8-sig")
        found = json.loads(text) if path.endswith(".json") else [line.strip() for line in text.strip().splitlines()]
    except ValueError:
        return None  # not a text, or not JSON: it names no class
    names = names_by_number(found.get("id2label", found)) if isinstance(found, dict) else found
    texts = list(names.values()) if isinstance(names, dict) else names
    if not isinstance(texts, list) or not all(isinstance(one, str) and 0 < len(one) <= _LONGEST for one in texts):
        return None
    is_list = 1 < len(texts) <= _MOST_NAMES and len(set(texts)) == len(texts)
    return names if is_list and not (path.endswith(".txt") and all(map(_PATH.search, texts))) else None


def names_by_number(found: Any) -> dict[int, str] | None:
    """Return the names of an object whose keys are different numbers, or whose values are; None of others.

    >>> names_by_number({"cat": 0, "dog": 1}), names_by_number({"-1": "none", "0": "cat"}), names_by_number({"a": "b"})
    ({0: 'cat', 1: 'dog'}, {-1: 'none', 0: 'cat'}, None)
    """
    pairs = list(found.items()) if isinstance(found, dict) else []
    for numbered in (pairs, [(value, key) for key, value in pairs]):
        if all(_NUMBER.fullmatch(str(one)) and isinstance(name, str) for one, name in numbered):
            names = {int(number): name for number, name in numbered}
            return names if 1 < len(names) == len(pairs) else None
    return None


_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")


def _in_order(names: dict[int, str]) -> list[str]:
    """Return names in the order of their numbers, from 0 on; a number that none has is a class that no row has."""
    return [names.get(number, f"_unused_{number}") for number in range(max(names) + 1)]
