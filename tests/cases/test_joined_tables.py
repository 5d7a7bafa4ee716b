from __future__ import annotations

from pathlib import Path

import pytest

from ..command_line import Shardmill

pytestmark = pytest.mark.usefixtures("without_engine")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_header_that_comes_again_is_named_by_its_place_and_never_proposed_as_a_null(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    monkeypatch.chdir(tmp_path)
    part = "id,score,name\n" + "".join(f"{number},{number}.5,n{number}\n" for number in range(5))
    Path("a.csv").write_text(part + mark + part + part)
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert screen.code == 0, screen.err
    assert "text: the header comes again (a.csv row 6), as in files that were joined" in screen.out
    assert "null_values" not in screen.out
