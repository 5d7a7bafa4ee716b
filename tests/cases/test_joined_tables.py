from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

from ..command_line import Shardmill


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


PART = "id,score,name\n" + "".join(f"{number},{number}.5,n{number}\n" for number in range(3))
ROWS = [{"id": number, "score": number + 0.5, "name": f"n{number}"} for number in range(3)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (PART + PART + PART, ROWS * 3),
        (PART + "\ufeff" + PART, ROWS * 2),
        (PART + '"id","score",name\n\n' + PART.partition("\n")[2], ROWS * 2),
        (PART.replace("\n", "\r\n") * 2, ROWS * 2),
        (PART.replace(",", ";") * 2, ROWS * 2),
        (PART, ROWS),
        ("name,city\na,b\nname,city\nc,d\nname,town\n", [
            {"name": "a", "city": "b"}, {"name": "c", "city": "d"}, {"name": "name", "city": "town"},
        ]),
        ("a\nx\na\na \n", [{"a": "x"}, {"a": "a "}]),
    ],
)  # fmt: skip
def test_the_key_that_is_said_leaves_headers_out_that_come_again_and_counts_them(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, rows: list[dict[str, object]]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(text, newline="")
    Path("b.csv.gz").write_bytes(gzip.compress(text.encode()))
    said = "--set input.repeated_header=drop" in shardmill("convert", "a.csv", "-o", "plain").out
    for name in ("a.csv", "b.csv.gz"):
        screen = shardmill("convert", name, "-o", name[0], "--set", "input.repeated_header=drop")
        assert screen.code == 0, screen.err
        assert [dict(record) for record in open_dataset(name[0])["train"]] == rows
        assert ("dropped" in screen.out) == said
    assert said == (text != PART)


def test_headers_that_come_again_are_left_out_beside_a_where_and_bad_rows(
    shardmill: Shardmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(PART + '1,2\n1,"2" 3,x\n' + PART)
    keys = ["--set", "input.repeated_header=drop", "--set", "input.where=id > 0", "--max-rejects", "2"]
    screen = shardmill("convert", "a.csv", "-o", "out", *keys)
    assert "9 rows of 1 file" in screen.out, screen.err
    assert "4 written, 2 rejected, 3 dropped" in screen.out
    assert [dict(record) for record in open_dataset("out")["train"]] == ROWS[1:] * 2
    screen = shardmill("convert", "a.csv", "-o", "few", *keys, "--set", "input.limit=4")
    assert "repeated_header: drop goes with a header, and without limit" in screen.err
