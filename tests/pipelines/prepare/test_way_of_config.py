"""Following the config from the command line to the encoder: how many functions take it, and how often one goes back.

A stop is a function of the product that takes the config, a section of it (the options of a format are one), or the
document that it is read from; each counts once, whatever thread calls it. Where a model has a property
(`SplitConfig.follows_source`), the function that asks for it is the stop. A return is a stop in a module that the way
has left before.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import pytest
from pydantic import BaseModel
from shardmill import pipelines
from shardmill.pipelines.config.errors import Document

from ...command_line import Shardmill

PRODUCT = Path(pipelines.__file__).parents[1]
ROOMS = tuple(f"{PRODUCT / name}/" for name in ("pipelines", "transforms"))

Stop = tuple[str, str]


def holds_config(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(holds_config, value))
    if isinstance(value, dict):
        return any(map(holds_config, value.values()))
    return isinstance(value, BaseModel | Document)


@contextmanager
def followed(stops: list[Stop]) -> Iterator[None]:
    """Note the stops of the way, in their order, while the context is open."""
    seen = set[CodeType]()

    def call(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code in seen or not code.co_filename.startswith(ROOMS) or code.co_name[0] == "<":
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        held = frame.f_locals  # without what an inner function takes, as it is not there yet
        taken = [held[name] for name in names if name in held and name not in ("self", "cls")]
        if any(map(holds_config, taken)):
            seen.add(code)
            stops.append((str(Path(code.co_filename).relative_to(PRODUCT)), code.co_qualname))

    sys.setprofile(call)
    threading.setprofile(call)  # files are looked at in threads
    try:
        yield
    finally:
        threading.setprofile(None)
        sys.setprofile(None)


def returns_of(stops: list[Stop]) -> int:
    modules = [module for module, _ in stops]
    return sum(one != modules[at] and one in modules[:at] for at, one in enumerate(modules[1:]))


def test_a_way_back_to_a_module_is_a_return_and_a_stop_in_the_same_one_is_none() -> None:
    assert returns_of([("a", "f"), ("a", "g"), ("b", "f"), ("a", "h"), ("b", "g"), ("c", "f")]) == 2


TABLES = [
    "--set", "schema.columns.kind.label=true", "--set", "schema.columns.user.null=error", "--where", "id > 3",
    "--split-fractions", "train=0.8,val=0.2", "--set", "checks.leaks.columns=[user]",
]  # fmt: skip


def test_the_config_takes_few_stops_and_few_returns_to_the_encoder(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, first in (("a", 0), ("b", 50)):
        rows = "".join(f"{n},user {n},{'ab'[n % 2]}\n" for n in range(first, first + 50))
        Path(f"{name}.csv").write_text(f"id,user,kind\n{rows}")
    ways = {"convert": list[Stop](), "append": list[Stop]()}
    for command, file, options in (("convert", "a.csv", TABLES), ("append", "b.csv", [])):
        with followed(ways[command]):
            assert shardmill(command, file, "-o", "out", *options).code == 0
    for command, stops in ways.items():
        modules = {module for module, _ in stops}
        sys.stdout.write(f"{command}: {len(stops)} stops in {len(modules)} modules, {returns_of(stops)} returns\n")
        sys.stdout.writelines(f"  {module} {name}\n" for module, name in stops)
        assert "CsvFormat.source" in {name for _, name in stops}, "the way is followed to the end"
    convert, append = ways.values()
    assert len(convert) <= 30
    assert returns_of(convert) <= 6
    assert len(append) <= 38
    assert returns_of(append) <= 11
