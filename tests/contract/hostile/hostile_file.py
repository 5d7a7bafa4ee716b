"""What a hostile file is, and how it is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SOUND = ""
"""What a conversion says that ends well."""


class Hostile(NamedTuple):
    """A source, how a conversion of it ends, and a piece of what it says.

    `name` is what is converted. `data` makes its bytes; those of several files by their paths; or a file with holes.
    """

    name: str
    code: int
    says: str
    data: Callable[[], bytes | Mapping[str, bytes] | Holes]
    options: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Write what is converted into a folder."""
        data = self.data()
        for name, part in data.items() if isinstance(data, Mapping) else [(self.name, data)]:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(part, Holes):
                part.write(path)
            else:
                path.write_bytes(part)


@dataclass(frozen=True)
class Holes:
    """A file of a size whose bytes are zeros but for some parts, by their offsets."""

    size: int
    parts: Mapping[int, bytes]

    def write(self, path: Path) -> None:
        """Write the file."""
        with path.open("wb") as file:
            file.truncate(self.size)
            for offset, part in self.parts.items():
                os.pwrite(file.fileno(), part, offset)


def setting(value: str) -> tuple[str, str]:
    """Return the option that sets a value of the config."""
    return ("--set", value)
