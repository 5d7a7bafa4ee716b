"""The command that a user gave, for messages that propose another one or a call from Python, and its options."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ...format.wording.hints import Add, Command, Python, Set
from ...format.wording.printable import printable_path


@dataclass(frozen=True, slots=True)
class Call:
    """The command that a user gave: `convert` or `append`, the dataset's folder, and what else was `given`."""

    command: str = "convert"
    output: str = "out"
    given: tuple[Set, ...] = field(default=(), compare=False, repr=False)

    def reading(self, paths: Iterable[str], *options: Add) -> Command:
        """Return the command with other paths and more options, in place of given ones of the same keys.

        >>> call = Call(given=(Set("input.format", "txt"), Set("input.splits", "none")))
        >>> print(call.reading(["a.en"], Set("input.splits", "names")))
        shardmill convert a.en -o out --set input.format=txt --set input.splits=names
        """
        keys = {word.partition("=")[0] for option in options for word in option.words}
        kept = (one for one in self.given if one.key not in keys)
        return Command(self.command, *paths, "-o", self.output, *kept, *options)

    def apart(self, name: str) -> Call:
        """Return the call with a dataset of its own, beside the one that was given: out-val for out."""
        return replace(self, output=f"{self.output.rstrip('/')}-{name}")

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


def shown_path(path: str | bytes) -> str:
    """Return how a path is shown in a command that can be pasted: relative to the working folder."""
    return printable_path(typed_path(os.fsdecode(path)))
