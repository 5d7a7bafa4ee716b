from __future__ import annotations

from pathlib import Path

import pytest

from ..command_line import Shardmill

pytestmark = pytest.mark.usefixtures("without_engine")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 3:0.5 7:1.0 # a\n-1 1:0.25\n", True),
        ("2 qid:1 1:0.5 2:0.1 #doc=1\n0 qid:1 1:1e-3\n", True),
        ("12:30 we met\n13 2:1 to them\n", False),
    ],
)
def test_text_in_the_form_of_libsvm_is_said_to_stay_text(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, said: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(text)
    screen = shardmill("convert", "a.txt", "-o", "out")
    assert screen.code == 0, screen.err
    assert ("they look like LibSVM" in screen.out) == said
