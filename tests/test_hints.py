"""What messages propose to type is made in one place, and each command, option and key of it is one that there is."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines.cli import app

from . import followed_hints
from .conftest import COLLECTED

pytestmark = pytest.mark.engine

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("pipelines", "transforms") for path in (ROOT / folder).rglob("*.py"))
HINTS = ROOT / "transforms/format/wording/hints.py"
TYPED = re.compile(r"\bshardmill (?!statistics)[a-z]|(?:^|[\s(])--set [\w'\"{]")
PROPOSED = re.compile(r"(?::|\bwith|\blike) --[a-z]|\b(?:convert|append)\((?!\.\.\.)")
"""An option that is to be added, or a line of Python."""

ECHOED = "--set {}"
"""An option as the user typed it."""


def name_of(call: ast.Call) -> str:
    return (
        call.func.id
        if isinstance(call.func, ast.Name)
        else call.func.attr
        if isinstance(call.func, ast.Attribute)
        else ""
    )


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module but docstrings, examples of `--help`, and parts of hints; `{}` are expressions."""
    skipped = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.Call) and name_of(node) in ("_command", "Option", "Typer", "Python"):
            skipped |= {
                id(one) for part in [*node.args, *(key.value for key in node.keywords)] for one in ast.walk(part)
            }
        if isinstance(node, ast.keyword) and node.arg == "epilog":
            skipped |= {id(one) for one in ast.walk(node)}
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(one) for one in node.values if isinstance(one, ast.Constant)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(one.value if isinstance(one, ast.Constant) else "{}" for one in node.values)


def test_nothing_but_hints_makes_text_that_is_typed() -> None:
    found = []
    for path in FILES:
        if path == HINTS:
            continue
        tree = ast.parse(path.read_text())
        name = path.relative_to(ROOT).as_posix()
        found += [
            f"{name}:{line}: {text!r}"
            for line, text in texts(tree)
            if text != ECHOED and (TYPED.search(text) or PROPOSED.search(text))
        ]
    assert found == []


def test_nothing_but_wording_quotes_for_a_shell() -> None:
    assert [path.name for path in FILES if re.search(r"^import shlex|^from shlex", path.read_text(), re.M)] == [
        "printable.py"
    ]


@cache
def commands() -> dict[str, set[str]]:
    """Return the options of each command of the command line."""
    from typer.main import get_command

    found: dict[str, set[str]] = {}
    group: Any = get_command(app)
    for name, one in group.commands.items():
        subs = getattr(one, "commands", None)
        for inner, command in (
            {name: one} if subs is None else {f"{name} {sub}": c for sub, c in subs.items()}
        ).items():
            found[inner] = {opt for param in command.params for opt in [*param.opts, *param.secondary_opts]} | {
                "--help"
            }
    return found


def hints() -> Iterator[tuple[str, ast.Call]]:
    for path in FILES:
        if path != HINTS:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and name_of(node) in ("Command", "Proposed", "Add", "Set", "set_column"):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def words_of(call: ast.Call) -> list[str]:
    return [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def test_each_command_that_is_proposed_is_there_with_its_options() -> None:
    known = commands()
    seen = 0
    for place, call in hints():
        if name_of(call) not in ("Command", "Proposed", "Add"):
            continue
        words = words_of(call)
        options = {word for word in words if word.startswith("-")}
        if name_of(call) == "Add" or not isinstance(call.args[0], ast.Constant):
            assert options <= set().union(*known.values()), place
            continue
        name = " ".join(words[:2]) if words[0] == "flink" else words[0]
        assert name in known, place
        assert options <= known[name], place
        seen += 1
    assert seen > 40


@cache
def schema() -> dict[str, Any]:
    return json.loads((ROOT / "pipelines/config/config.schema.json").read_text())


def parts_of(document: Any, key: str) -> list[Any]:
    """Return the schemas of a key in a part of the JSON Schema; any key is one of a map."""
    if isinstance(document, list):
        return [found for one in document for found in parts_of(one, key)]
    if not isinstance(document, dict):
        return []
    if "$ref" in document:
        return parts_of(schema()["$defs"][document["$ref"].rpartition("/")[2]], key)
    found = [document["properties"][key]] if key in document.get("properties", {}) else []
    if isinstance(document.get("additionalProperties"), dict) and not found:
        found = [document["additionalProperties"]]
    for name in ("anyOf", "oneOf", "allOf", "then", "else"):
        found += parts_of(document.get(name, []), key)
    return found


def test_each_key_that_is_proposed_is_one_of_the_config() -> None:
    seen = set()
    for place, call in hints():
        first = call.args[0]
        if name_of(call) == "Set" and isinstance(first, ast.Constant):
            path = first.value.split(".")
        elif name_of(call) == "set_column" and isinstance(call.args[1], ast.Constant):
            path = ["schema", "columns", "NAME", call.args[1].value]
        else:
            continue
        found: list[Any] = [schema()]
        for key in path:
            found = parts_of(found, key)
        assert found, f"{place}: {'.'.join(path)}"
        seen.add(".".join(path))
    assert len(seen) > 50


def test_the_list_of_followed_hints_has_each_hint_of_the_product() -> None:
    there, listed = set(followed_hints.all_sites()), set(followed_hints.table())
    assert (sorted(there - listed), sorted(listed - there)) == ([], []), "name the test that follows it, in the list"
    assert followed_hints.TABLE.read_text().splitlines() == sorted(followed_hints.TABLE.read_text().splitlines())


def test_each_test_of_the_list_of_followed_hints_is_there(request: pytest.FixtureRequest) -> None:
    collected = {followed_hints.name_of(item) for item in request.config.stash[COLLECTED]}
    for name in followed_hints.claims():
        file, _, test = name.partition("::")
        assert f"def {test.partition('[')[0].rpartition('::')[2]}(" in (ROOT / "tests" / file).read_text(), name
        assert name in collected or not any(one.startswith(f"{file}::") for one in collected), name


def test_a_hint_that_is_not_typed_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    from shardmill.transforms.recognise.strangers.files import pointer

    site = "transforms/recognise/strangers/files.py pointer Foreign git lfs pull"
    with followed_hints.following(monkeypatch) as followed:
        assert pointer(b"version https://git-lfs.github.com/spec/v1\n")
        assert [made for made, _ in followed.made] == [site]
        followed.command(["git", "lfs", "push"])
        assert followed.typed == set()
        followed.command(["git", "lfs", "pull"])
        assert followed.typed == {site}
