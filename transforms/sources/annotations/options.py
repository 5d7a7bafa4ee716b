"""What a user may say of annotations of any kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnnotationOptions:
    """Without `masks` segmentations are left out.

    `label_offset` is the number of the first class, where files have no numbers of their own or begin with 0. `names`
    are the classes by number, where files have numbers alone; `images` is the folder of the pictures, absolute.
    `held` are the classes of the dataset of an append, by number, None where it has no names of them. `numeric` names
    of classes that files do not number are whole numbers, in the order of these.
    """

    masks: bool = True
    label_offset: int = 0
    names: tuple[str, ...] | None = None
    images: str = ""
    held: tuple[str, ...] | None = None
    numeric: bool = False
