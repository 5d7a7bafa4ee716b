"""The digest of a user's own function, by which a later run knows it."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from shardmill.transforms.recipe.function import identity_of
from shardmill.transforms.recipe.step import Step

LIMIT = 18


def above(column: pa.Array) -> Any:
    return [n > LIMIT for n in column.to_pylist()]


def uses_nothing(batch: pa.RecordBatch) -> Any:
    return batch


def uses_a_global(batch: pa.RecordBatch) -> Any:
    return batch, [n > LIMIT for n in batch["n"].to_pylist()]


def uses_another_function(batch: pa.RecordBatch) -> Any:
    return batch, above(batch["n"])


def uses_a_global_within(batch: pa.RecordBatch) -> Any:
    return batch, list(map(lambda n: n > LIMIT, batch["n"].to_pylist()))  # noqa: C417


@dataclass
class Above:
    limit: Any
    words: set[str] = field(default_factory=lambda: {"a", "b"})

    def __call__(self, batch: pa.RecordBatch) -> Any:
        return batch, above(batch["n"])

    def method(self, batch: pa.RecordBatch) -> Any:
        return batch, [n > self.limit for n in batch["n"].to_pylist()]


def closure(limit: Any) -> Callable[[Any], Any]:
    return lambda batch: (batch, [n > limit for n in batch["n"].to_pylist()])


def with_default(limit: Any) -> Callable[[Any], Any]:
    def adults(batch: Any, limit: Any = limit) -> Any:
        return batch, limit

    return adults


def test_the_digest_of_a_function_that_uses_nothing_is_that_of_its_text() -> None:
    text = inspect.getsource(uses_nothing)
    assert identity_of(uses_nothing) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("function", [uses_a_global, uses_another_function, uses_a_global_within])
def test_another_value_of_a_global_name_is_another_function(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity_of(function)
    monkeypatch.setitem(globals(), "LIMIT", 25)
    assert identity_of(function) != before
    monkeypatch.setitem(globals(), "LIMIT", 18)
    assert identity_of(function) == before


@pytest.mark.parametrize(
    "make",
    [closure, with_default, Above, lambda limit: Above(limit).method, lambda n: functools.partial(uses_nothing, k=n)],
    ids=["closure", "default", "object", "method", "partial"],
)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (18, 25),
        (1, True),
        (["ab", "c"], ["a", "bc"]),
        ([[1], 2], [1, [2]]),
        ({"a": 1}, {"a": 2}),
        ({"a", "b"}, {"a", "c"}),
        (np.arange(5000), np.arange(5000) + (np.arange(5000) == 2500)),
        (pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 3]})),
        (pa.array([1, 2]), pa.array([1, 3])),
        (re.compile("a"), re.compile("b")),
        (above, uses_nothing),
    ],
    ids=lambda value: type(value).__name__,
)
def test_another_value_that_a_function_holds_is_another_function_and_an_equal_one_is_the_same(
    make: Any, one: Any, other: Any
) -> None:
    import copy

    assert identity_of(make(one)) != identity_of(make(other))
    assert identity_of(make(one)) == identity_of(make(copy.deepcopy(one)))


def test_values_that_hold_themselves_have_a_digest() -> None:
    one: list[Any] = [1]
    one.append(one)
    assert identity_of(closure(one)) == identity_of(closure(one)) != identity_of(closure([1, [1]]))

    def again(n: int) -> int:
        return again(n - 1)

    assert identity_of(again)


def test_code_of_installed_packages_is_taken_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity_of(closure(pd.concat)), identity_of(closure(pd.DataFrame))
    monkeypatch.setattr(pd.concat, "__doc__", "other")
    monkeypatch.setattr(pd.DataFrame, "new", 1, raising=False)
    assert (identity_of(closure(pd.concat)), identity_of(closure(pd.DataFrame))) == before


SCRIPT = """
from dataclasses import dataclass
from shardmill.transforms.recipe.function import identity_of
from shardmill.transforms.recipe.step import Step
WORDS = {"one", "two", "three", "four"}
class Named:
    limits = {"a": 1.5}
    def __init__(self, words): self.words = words
    def __call__(self, batch): return batch, [w in WORDS for w in self.words]
@dataclass(frozen=True, slots=True)
class Frozen:
    n: int = 5
    @property
    def m(self): return WORDS
    @staticmethod
    def k(): return 5
    def __call__(self, batch): return batch, [w in {"x", "y", "z"} for w in batch]
print(identity_of(Named(WORDS)), identity_of(Named(WORDS).__call__), identity_of(Frozen()))
print(identity_of(lambda batch: WORDS))
"""


@pytest.mark.parametrize("as_file", [True, False])
def test_the_digest_is_the_same_in_another_process_also_without_a_file(tmp_path: Path, as_file: bool) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    arguments = [str(script)] if as_file else ["-c", SCRIPT]
    found = {
        subprocess.run(
            [sys.executable, *arguments], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_a_step_that_derives_from_the_products_base_is_known_by_its_own_text(monkeypatch: pytest.MonkeyPatch) -> None:
    class Same(Step):
        def plan(self, columns: Any) -> Any:
            return columns

        def apply(self, batch: Any, file: str) -> Any:
            return batch

    before = identity_of(Same())
    monkeypatch.setattr(Step, "detected", property(lambda _: "another text"))
    assert identity_of(Same()) == before
    monkeypatch.setattr(Same, "apply", lambda *_: None)
    assert identity_of(Same()) != before
