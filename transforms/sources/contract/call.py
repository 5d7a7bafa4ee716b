"""The command that a user gave, for messages that propose another one or a call from Python, and its options."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ...format.wording.hints import Python
from ...format.wording.printable import printable_path


@dataclass(frozen=True, slots=True)
class Call:
    """The command that a user gave: `convert` or `append`, and the dataset's folder."""

    command: str = "convert"
    output: str = "out"

    def of_data(self, data: str) -> Python:
        """Return the call from Python with an expression that gives the data.

        >>> print(Call("append", "out/a").of_data("frame"))
        append(data=frame, output='out/a')
        """
        return Python(f"{self.command}(data={data}, output={self.output!r})")


def typed_path(path: str) -> str:
    """Return a path relative to the working folder where it is below it; a URL as it is."""
    if "://" in path:
        return path
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith("..") else relative


def shown_path(path: bytes) -> str:
    """Return how a path is shown in a command that can be pasted: relative to the working folder."""
    return printable_path(typed_path(os.fsdecode(path)))
