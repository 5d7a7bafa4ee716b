"""Splits by a hash that got nothing, or what no chance explains."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from shardmill.pipelines.outcomes.summary import share_warnings

from ...command_line import Shardmill

ASKED = {"train": 0.8, "val": 0.2}


@pytest.mark.parametrize("records", [(8, 2), (80, 20), (70, 30), (801_000, 199_000)])
def test_what_chance_explains_is_not_warned_of(records: tuple[int, int]) -> None:
    assert share_warnings(ASKED, dict(zip(ASKED, records, strict=True)), None) == []


def test_a_split_that_is_empty_or_far_from_its_fraction_is_named_with_what_was_expected() -> None:
    (said,) = share_warnings(ASKED, {"train": 7, "val": 0}, None)
    assert said == "split val has 0 of 7 records (about 1 expected); to split by counts: --set split.by=exact"
    (said,) = share_warnings(ASKED, {"train": 790_000, "val": 210_000}, None)
    assert said.startswith(
        "split train has 790,000 of 1,000,000 records (about 800,000 expected): records that a hash has"
    )
    assert share_warnings(ASKED, {"train": 790_000, "val": 210_000}, "user") == [], "groups may be that large"
    assert share_warnings(ASKED, {"train": 0, "val": 0}, None) == []


def test_a_key_of_few_values_is_warned_of_and_the_options_for_classes_put_each_into_every_split(
    shardmill: Shardmill,
) -> None:
    rows = "".join(f"{n},{('good', 'bad', 'good')[n % 3]}\n" for n in range(300))
    Path("t.csv").write_text(f"n,the kind\n{rows}")
    shares = ["--split-fractions", "train=0.8,val=0.2"]
    leak = ["--set", "checks.leaks.columns=[the kind]"]
    shown = shardmill("convert", "t.csv", "-o", "out", *shares, "--split-key", "the kind").out
    (said,) = re.findall(r"Warning: (split .*)", shown)
    assert "of 300 records" in said
    assert "rows of one the kind are in one split" in said
    options = shlex.split(said.rpartition("not --split-key: ")[2])
    again = shardmill("convert", "t.csv", "-o", "classes", *shares, *options, *leak).out
    assert "Fractions: train 0.8 (0.8 asked), val 0.2 (0.2 asked)" in again
    assert "Leaks of the kind: 2 values are in more than one split, with 300 records" in again
    Path("more.csv").write_text("n,the kind\n300,good\n301,good\n302,good\n303,good\n304,good\n")
    assert "expected)" not in shardmill("append", "more.csv", "-o", "out").out, "it may be small"


def test_numbers_with_fractions_are_not_taken_for_classes(shardmill: Shardmill) -> None:
    Path("t.csv").write_text("n,k\n" + "".join(f"{n},{n % 2}.5\n" for n in range(300)))
    shown = shardmill("convert", "t.csv", "-o", "out", "--split-fractions", "train=0.8,val=0.2", "--split-key", "k").out
    assert "rows of one k are in one split; to split by counts: --set split.by=exact\n" in shown
