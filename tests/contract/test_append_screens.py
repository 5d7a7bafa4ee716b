"""What a user of the command line meets with appends of files that have changed."""

from __future__ import annotations

from typing import Any

import pytest
from shardmill.pipelines.cli import main

pytestmark = pytest.mark.usefixtures("without_engine")


def append(desk: Any, *args: str) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["append", *args, "-o", "out", "--workers", "1"])
    return ended.value.code, *desk.capsys.readouterr()


CHANGED = """error: a.csv: changed since the dataset took it in, and the records that it gave stay in it. Choose one of:
  --changed append   append all its rows, also those that the dataset has
  --changed skip     leave it out
"""


def test_a_table_that_grew_is_refused_and_the_choices_work(desk: Any) -> None:
    desk.put({"a.csv": b"id\n1\n"})
    assert desk.convert("a.csv").code == 0
    desk.put({"a.csv": b"id\n1\n2\n"})
    assert append(desk, "a.csv") == (2, "", CHANGED)
    assert append(desk, "a.csv", "--dry-run") == (2, "", CHANGED)
    code, out, _ = append(desk, "a.csv", "--changed", "skip")
    assert (code, out.splitlines()[0]) == (0, "Nothing to do: no file is left to append.")
    assert "Warning: a.csv: changed since the dataset took it in; left out" in out
    assert append(desk, "a.csv", "--changed", "no")[2] == (
        'error: --changed: "no" is not a choice; choices: append, skip\n'
    )
    assert append(desk, "a.csv", "--changed", "append")[0] == 0
    assert [row["id"] for row in desk.records()] == [1, 1, 2]
    assert append(desk, "a.csv")[1].startswith("Nothing to do: out holds the file")
