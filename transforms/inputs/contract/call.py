"""The command that a user gave, for messages that propose another one or a call from Python, and its options."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ...format.wording.hints import Add, Command, Python, Set, runnable
from ...format.wording.printable import printable_path


@dataclass(frozen=True, slots=True)
class Call:
    """The command that a user gave: `convert` or `append`, the dataset's folder, and what else was `given`.

    The run `writes` the folder, unless it is a dry run. Once it `has_written`, another convert replaces the dataset.
    """

    command: str = "convert"
    output: str = "out"
    given: tuple[Set, ...] = field(default=(), compare=False, repr=False)
    writes: bool = field(default=False, compare=False, repr=False)
    has_written: bool = field(default=False, compare=False, repr=False)

    @property
    def afterwards(self) -> Call:
        """The call as the lines of a summary propose it; errors end a run before it writes."""
        return replace(self, has_written=self.writes and self.command != "append")

    def plain(self, paths: Iterable[str], *options: Add) -> Command:
        """Return the command with other paths and options, without what else was given.

        >>> print(Call(output="my out", writes=True).afterwards.plain(["a.csv"]))
        shardmill convert a.csv -o 'my out' --overwrite
        """
        again = (Add("--overwrite"),) if self.has_written else ()
        return Command(self.command, *paths, "-o", self.output, *again, *options)

    def reading(self, paths: Iterable[str], *options: Add) -> Command:
        """Return the command with other paths and more options, in place of given ones of the same keys.

        >>> call = Call(given=(Set("input.format", "txt"), Set("input.splits", "none")))
        >>> print(call.reading(["a.en"], Set("input.splits", "names")))
        shardmill convert a.en -o out --set input.format=txt --set input.splits=names
        """
        keys = {word.partition("=")[0] for option in options for word in option.words}
        keys |= {"output.if_exists"} if self.has_written else set()
        return self.plain(paths, *(one for one in self.given if one.key not in keys), *options)

    def apart(self, name: str) -> Call:
        """Return the call with a dataset of its own, beside the one that was given: out-val for out."""
        return replace(self, output=f"{self.output.rstrip('/')}-{name}", has_written=False)

    def of_data(self, data: str, **more: object) -> Python:
        """Return the call from Python with an expression that gives the data, and more settings.

        >>> print(Call("append", "out/a").of_data("frame"))
        from shardmill.pipelines import append; append(data=frame, output='out/a')
        >>> print(Call(has_written=True).of_data("[1]", split="test").rpartition("; ")[2])
        convert(data=[1], output='out', overwrite=True, split='test')
        """
        settings = {"output": self.output} | ({"overwrite": True} if self.has_written else {}) | more
        return runnable(f"{self.command}(data={data}, {', '.join(f'{key}={one!r}' for key, one in settings.items())})")


def typed_path(path: str) -> str:
    """Return a path relative to the working folder where it is below it; a URL as it is."""
    if "://" in path:
        return path
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith("..") else relative


def shown_path(path: str | bytes) -> str:
    """Return how a path is shown in a command that can be pasted: relative to the working folder."""
    return printable_path(typed_path(os.fsdecode(path)))
