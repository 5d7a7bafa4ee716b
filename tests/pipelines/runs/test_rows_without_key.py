"""Rows without the key by which rows are split: each is counted, and the note has an option that leaves it out."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from shardmill.pipelines import convert

from ...command_line import Shardmill

RULE = ("--split-fractions", "train=0.5,val=0.5", "--split-key")


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, start in (("a", 0), ("b", 60)):
        rows = [f"{n},{f'u{n % 7}' if n % 3 else ''}\n" for n in range(start, start + 60)]
        Path(f"{name}.csv").write_text("".join(["n,user name\n", *rows]))


def said(warnings: list[str]) -> list[str]:
    return [text for text in warnings if "split.key" in text]


@pytest.mark.parametrize("by", ["hash", "exact"])
def test_rows_without_the_key_are_counted_and_the_option_that_is_named_leaves_them_out(
    shardmill: Shardmill, by: str
) -> None:
    options = ("a.csv", "b.csv", *RULE, "user name", "--set", f"split.by={by}")
    shown = shardmill("convert", *options, "-o", "out")
    (text,) = said(json.loads(shardmill("convert", *options, "-o", "json", "--json").out)["warnings"])
    start = (
        "rows whose user name (split.key) is null, so that their whole record decides their split (to leave them out: "
    )
    assert text.startswith(start)
    assert text.endswith("): 40")
    assert f"Warning: {text}" in " ".join(shown.out.split())
    again = shardmill("convert", *options, "-o", "json", "--json")
    assert said(json.loads(again.out)["warnings"]) == [text], "of a generation that was made before it is read"
    option = shlex.split(re.findall(r"out: (.*)\): 40", text)[0])
    left = json.loads(shardmill("convert", *options, "-o", "some", *option, "--json").out)
    assert (left["counts"]["written"], said(left["warnings"])) == (80, [])


def test_existing_records_without_the_key_are_counted_too(shardmill: Shardmill) -> None:
    convert("a.csv", output="out")
    shown = json.loads(shardmill("rebuild", "out", "-o", "new", *RULE, "user name", "--json").out)
    (text,) = said(shown["warnings"])
    assert text == "rows whose user name (split.key) is null, so that their whole record decides their split: 20"
