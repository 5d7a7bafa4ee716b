"""A link where a dataset has a file or folder: no command reads what it leads to, or changes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..tiers import but_some_thorough

Program = Callable[..., dict[str, Any]]

_LISTED = ("records", "train-00000.tfrecord")
"""`adopt` lists the files that it is given, with a fingerprint of each, before it refuses a link among them."""


@pytest.mark.parametrize(
    "what", but_some_thorough(["records"], ["records", "dataset"], "each command meets each link: 480 commands")
)
def test_no_command_reads_or_writes_through_a_link_in_a_dataset_or_where_adopt_makes_one(
    program: Program, what: str
) -> None:
    cases = program("links", what)["cases"]
    assert len(cases) == {"records": 10, "dataset": 23 * 21}[what]
    for case in cases:
        assert not case["read"] or ((what, case["name"]) == _LISTED and case["code"] == 2), case
        assert not case["changed"], case
        assert case["code"] in (0, 1, 2, 3), case
        assert "Traceback" not in case["err"], case
        assert "fault of Shardmill" not in case["err"], case
        if case["code"] == 1:
            assert f"{case['name']} is in the way" in case["err"], case
    refused = [case for case in cases if ": a link; " in case["err"]]
    assert len(refused) >= {"records": 5, "dataset": 100}[what]
    if what == "dataset":
        found = {case["name"] for case in cases if case["command"] == "verify out" and case["code"] == 3}
        assert {case["name"] for case in cases} - found == {".staging"}
