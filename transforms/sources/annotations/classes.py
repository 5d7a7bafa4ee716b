"""The names of classes by number, where the numbers of annotations are 0 to n - 1, as those of TFDS's ClassLabel are.

    {0: "cat", 1: "dog"}      cat, dog
    {1: "cat", 17: "dog"}     none: COCO's own numbers have gaps

In an append the classes of the dataset keep their numbers, and new ones come at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from ...errors import SchemaError
from ...format.wording.printable import printable

CLASS: Final = "/object/class/label"
"""How the name of the feature with the numbers of the classes of boxes ends."""


def names_by_number(classes: Mapping[int, str], used: Collection[int]) -> tuple[tuple[str, ...] | None, str]:
    """Return the names of classes and "", or None and why their numbers stay plain.

    >>> names_by_number({0: "cat", 1: "dog"}, {1})
    (('cat', 'dog'), '')
    >>> print(names_by_number({1: "cat", 90: "dog"}, {1})[1])
    the numbers of classes are not 0 to 1, but 1 to 90
    """
    counts, unknown = Counter(classes.values()), sorted(set(used) - classes.keys())
    name, most = counts.most_common(1)[0] if counts else ("", 0)
    if not classes:
        return None, ""
    if unknown:
        return None, f"class {unknown[0]} has no name"
    if sorted(classes) != [*range(len(classes))]:
        return None, f"the numbers of classes are not 0 to {len(classes) - 1}, but {min(classes)} to {max(classes)}"
    if most > 1:
        return None, f'{most} classes are called "{printable(name)}"'
    return tuple(classes[number] for number in range(len(classes))), ""


def names_after(held: tuple[str, ...], classes: Mapping[int, str], dataset: str) -> tuple[str, ...]:
    """Raise `SchemaError` where a class has another number in the dataset, or a new one does not follow its last."""
    names = [*held]
    for number, name in sorted(classes.items()):
        if number == len(names) and name not in names:
            names.append(name)
        elif not 0 <= number < len(names) or names[number] != name:
            there = f'"{printable(names[number])}"' if 0 <= number < len(names) else "no class"
            known = f"; there it is {names.index(name)}" if name in names else f", whose next is {len(names)}"
            raise SchemaError(
                f'class {number} is "{printable(name)}" in these files, and {there} in {dataset}{known}; classes keep '
                f"their numbers: number these as the dataset does, or convert to a new dataset (-o)"
            )
    return tuple(names)
