"""How many rows may be rejected: what a config and a pipeline of a user's own may say of it."""

from __future__ import annotations

from typing import Any

import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.errors import ConfigError, UsageError
from shardmill.transforms.format.batches.rejects import parse_max_rejects, rejects_allowed


@pytest.mark.parametrize(
    ("max_rejects", "read", "allowed"),
    [
        (0, 5, 0),
        (7, 0, 7),
        ("7", 100, 7),
        ("1%", 199, 1),
        ("0.5%", 1000, 5),
        ("0.5 %", 1000, 5),
        ("100%", 9, 9),
        ("0%", 9, 0),
    ],
)
def test_max_rejects_is_a_number_or_a_share_of_the_rows(max_rejects: int | str, read: int, allowed: int) -> None:
    assert rejects_allowed(max_rejects, read) == allowed
    assert rejects_allowed(parse_max_rejects(max_rejects), read) == allowed


@pytest.mark.parametrize(
    "max_rejects",
    [-1, True, "", "%", "-1%", "101%", "nan", "inf", "1.5", "x", 1.5, "1e1%", "007%", " 3%", "3.0", "1_0", "+3", "-0"],
)
def test_what_is_no_number_of_rejects_is_refused_by_a_config_and_by_a_pipeline(max_rejects: Any) -> None:
    with pytest.raises(
        UsageError, match=r"max_rejects: .* is not a number of rows \(0 or more\) or a percentage"
    ) as said:
        rejects_allowed(max_rejects, 100)
    with pytest.raises(ConfigError) as caught:
        load_config({"output": {"path": "o"}, "max_rejects": max_rejects}, data_given=True)
    assert str(said.value) in str(caught.value)
