"""The line of the summary that has the fractions of a split beside those that were asked for."""

from __future__ import annotations

from pathlib import Path

from ...command_line import Shardmill


def test_the_summary_shows_the_fractions_that_came_out_and_those_that_were_asked_for(shardmill: Shardmill) -> None:
    for name, rows in (("a.csv", range(9)), ("b.csv", range(9, 14))):
        Path(name).write_text("id\n" + "".join(f"{row}\n" for row in rows))
    split = ("--split-fractions", "train=0.75,val=0.25", "--set", "split.by=exact")
    made = shardmill("convert", "a.csv", "-o", "out", *split)
    lines = [line for line in made.out.splitlines() if line.startswith("Fractions")]
    assert lines == ["Fractions: train 0.7778 (0.75 asked), val 0.2222 (0.25 asked)"]
    added = shardmill("append", "b.csv", "-o", "out", *split)
    lines = [line for line in added.out.splitlines() if line.startswith("Fractions")]
    assert lines == ["Fractions of the new records: train 0.8 (0.75 asked), val 0.2 (0.25 asked)"]
    assert "Fractions" not in shardmill("convert", "a.csv", "-o", "whole").out
