"""Some features of pictures alone: `input.columns` and `input.exclude_columns` name them as records do.

columns: [caption, image/encoded]            caption  image/encoded
exclude_columns: [image/filename]            all but that
columns: [caption]                           caption, and all features of the pictures
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ...errors import SchemaError
from ...format.wording.nearest import NoColumnError
from ...sources.contract.selection import Selection
from ..step import Column, StepByType
from ..steps.columns import Keep
from ..steps.files import FILENAME
from .pictures import ENCODED, FACTS


def is_feature_of(picture: str, name: str) -> bool:
    """Return whether a name, or a glob, is that of a feature of a picture, and of no column beside it.

    >>> is_feature_of("image", "image/width"), is_feature_of("image", "image/object/area")
    (True, True)
    >>> is_feature_of("image", "image/source_id"), is_feature_of("mask", "image/width")
    (False, False)
    """
    of, _, feature = name.partition(f"{picture}/")
    return not of and (feature in (ENCODED, FILENAME, *FACTS) or feature.startswith("object/"))


@dataclass(frozen=True, slots=True)
class ChosenFeatures(StepByType):
    """Keep the features of pictures that are named, or that are not left out; these are names and globs.

    A picture of which no feature is to be kept by its name has all of them.
    """

    pictures: tuple[str, ...]
    keep: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def step(self, columns: Sequence[Column]) -> Keep | None:
        """Raise `SchemaError` where a name is none of the columns, or no column is left."""
        names = [column.name for column in columns]
        for key, wanted in (("input.columns", self.keep), ("input.exclude_columns", self.exclude)):
            for one in wanted:
                if not any(fnmatchcase(name, one) for name in names):
                    raise NoColumnError(key, one, names)
        gone = [name for name in names if any(fnmatchcase(name, one) for one in self.exclude)]
        for picture in self.pictures:
            kept = [one for one in self.keep if is_feature_of(picture, one)]
            own = [name for name in names if kept and is_feature_of(picture, name)]
            gone += [name for name in own if not any(fnmatchcase(name, one) for one in kept)]
        if gone and len(set(gone)) == len(names):
            raise SchemaError("input.exclude_columns leaves no column; keep at least one")
        return Keep(Selection(exclude=tuple(dict.fromkeys(gone)))) if gone else None
