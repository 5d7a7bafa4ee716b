"""Check that tests follow the hints of messages.

`followed_hints.txt` names one test for each hint. The test provokes the message, types what it proposes, and the
command succeeds. A hint is identified by its module, the function that builds it, its kind and its literal words.
A test fails if it does not follow all hints that the list assigns to it.
"""

from __future__ import annotations

import ast
import builtins
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from shardmill.transforms.format.wording import hints

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_suffix(".txt")
ARROW = " <- "
KINDS = ("Command", "Proposed", "Add", "Set", "set_column", "set_constant", "Foreign", "Python", "runnable")
MADE = re.compile(rf"\b(?:{'|'.join(KINDS)})\(")
PRODUCT = tuple(ROOT / folder for folder in ("pipelines", "transforms"))
HINTS = ROOT / "transforms/format/wording/hints.py"
BLANK = re.compile(
    r"\[[a-zA-Z]+, [a-z.]+(?:, \.\.\.)?\]|\{train: GLOB, test: GLOB\}"
    r"|(?<!\\)\b(?:FILES?|FOLDER|SOURCE|DATASET|NAME|COLUMN|VALUE|TYPE|ENCODING|SIGN|N)\b|\.\.\."
)
"""What a reader fills in."""

Words = tuple[str, ...]


@cache
def sites_of(path: Path) -> dict[tuple[int, int], tuple[str, ast.Call]]:
    """Return the hints that a module builds, by the line and column of the call."""
    found: dict[tuple[int, int], tuple[str, ast.Call]] = {}
    text = path.read_text()
    if not MADE.search(text):
        return found

    def walk(node: ast.AST, inside: str) -> None:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, (ast.FunctionDef, ast.ClassDef))
            walk(child, f"{inside}.{child.name}".lstrip(".") if named else inside)  # type: ignore[attr-defined]
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in KINDS:
                words = [str(one.value) for one in child.args if isinstance(one, ast.Constant)]
                site = " ".join([path.relative_to(ROOT).as_posix(), inside or "-", child.func.id, *words])
                found[child.lineno, child.col_offset] = site, child

    walk(ast.parse(text), "")
    return found


@cache
def all_sites() -> dict[str, ast.Call]:
    paths = (path for folder in PRODUCT for path in sorted(folder.rglob("*.py")) if path != HINTS)
    return {site: call for path in paths for site, call in sites_of(path).values()}


@cache
def made_at_import() -> list[tuple[str, Words]]:
    """Return the hints with literal words only, which are built when modules are imported."""
    found, known = [], {**vars(hints), "Proposed": hints.Command}
    for site, call in all_sites().items():
        if not re.fullmatch(r"-|[A-Z]\w*", site.split(" ")[1]):
            continue
        words = [*call.args, *(word.value for word in call.keywords)]
        if call.func.id in known and all(isinstance(one, ast.Constant) for one in words):  # type: ignore[attr-defined]
            found.append((site, eval(ast.unparse(call), known).words))
    return found


@cache
def table() -> dict[str, str]:
    """Return the test of each hint; empty for a hint without a test."""
    lines = (line.partition(ARROW) for line in TABLE.read_text().splitlines())
    return {site: test for site, _, test in lines}


@cache
def claims() -> dict[str, set[str]]:
    """Return the hints that each test follows."""
    found = defaultdict[str, set[str]](set)
    for site, test in table().items():
        if test:
            found[test].add(site)
    return found


def name_of(item: pytest.Item) -> str:
    return item.nodeid.removeprefix("tests/")


@dataclass
class Followed:
    """What a test did with hints: those that messages built, the text on the screen, and those that the test typed."""

    made: list[tuple[str, Words]] = field(default_factory=list)
    shown: str = ""
    typed: set[str] = field(default_factory=set)

    def command(self, args: Iterable[str]) -> None:
        """Record the hints that a typed command contains; its output folder and `--overwrite` are not compared."""
        given = _without_places(args)
        texts = ["\0".join(["", *words, ""]) for words in (given, [word for word in given if word != "--overwrite"])]
        shown = [(site, words) for site, words in made_at_import() if str(hints.Add(*words[:2])) in self.shown]
        for site, words in [*self.made, *shown]:
            wanted = _without_places(words[words[:1] == ("shardmill",) :])
            pattern = rf"\x00{_filled(wanted)}\x00"
            if wanted and any(re.search(pattern, text, re.DOTALL) for text in texts):
                self.typed.add(site)

    def python(self, line: str) -> None:
        self.typed.update(site for site, words in self.made if len(words) == 1 and re.search(_filled(words), line))


_now: list[Followed] = []


def _without_places(words: Iterable[str]) -> Words:
    listed = tuple(words)
    return tuple(word for at, word in enumerate(listed) if at == 0 or listed[at - 1] not in ("-o", "--output"))


def _filled(words: Words) -> str:
    """Return a pattern that matches the words of a hint after a reader has filled in its placeholders."""
    text = "\0".join(words)
    ends = [0, *(place for blank in BLANK.finditer(text) for place in blank.span()), len(text)]
    return ".+".join(re.escape(text[ends[at] : ends[at + 1]]) for at in range(0, len(ends), 2))


@cache
def _in_product(file: str) -> Path | None:
    path = Path(file).resolve()
    return path if path != HINTS and any(folder in path.parents for folder in PRODUCT) else None


def _site(frame: FrameType | None) -> str | None:
    """Return the hint that the product is building: its first frame above `hints.py`."""
    while frame is not None:
        if path := _in_product(frame.f_code.co_filename):
            line, _, column, _ = [*frame.f_code.co_positions()][frame.f_lasti // 2]
            return sites_of(path).get((line or 0, column or 0), ("", None))[0]
        frame = frame.f_back
    return None


def typed(args: list[str], screen: str) -> None:
    """Record a command and what it printed; `args` is empty if the command failed."""
    for followed in _now:
        if args:
            followed.command(args)
        followed.shown += screen


@contextmanager
def following(monkeypatch: pytest.MonkeyPatch) -> Iterator[Followed]:
    """Record the hints that are built and typed."""
    followed = Followed()
    make, new, execute, run = hints.Add.__init__, hints.Python.__new__, builtins.exec, subprocess.run

    def made(words: Words) -> None:
        if site := _site(sys._getframe(2)):
            followed.made.append((site, words))

    def init(self: hints.Add, *words: Any) -> None:
        make(self, *words)
        made(self.words)

    def python(cls: type[str], *text: str) -> str:
        made(text)
        return new(cls, *text)

    def executed(source: Any, *names: Any) -> None:
        execute(source, *names)
        followed.python(str(source))

    def ran(args: Any, *more: Any, **options: Any) -> Any:
        done = run(args, *more, **options)
        if done.returncode == 0:
            followed.command(shlex.split(args) if isinstance(args, str) else map(str, args))
        return done

    monkeypatch.setattr(hints.Add, "__init__", init)
    monkeypatch.setattr(hints.Python, "__new__", python)
    monkeypatch.setattr(builtins, "exec", executed)
    monkeypatch.setattr(subprocess, "run", ran)
    _now.append(followed)
    try:
        yield followed
    finally:
        _now.remove(followed)
