from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from shardmill.transforms.recognise.strangers.files import content_twice
from shardmill.transforms.sources.contract.source import SourceEntry

from ..command_line import Shardmill

pytestmark = pytest.mark.usefixtures("without_engine")


def entries(*names: str, prints: str = "same") -> list[SourceEntry]:
    return [
        SourceEntry(f"/{name}".encode(), name, 9, 0, prints if prints == "same" else name) for name in sorted(names)
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("d/a.csv", "d/a.csv.gz"),
        ("a.jsonl.bz2", "a.jsonl.zst"),
        ("a.tar.gz", "a.tgz"),
        ("a.parquet", "a (1).parquet"),
        ("a.csv.gz", "a(12).csv.gz"),
        ("a.csv", "a - Copy.csv"),
        ("a.csv", "a - Copy (2).csv"),
        ("a.csv", "Copy of a.csv"),
        ("a.csv", "a copy 2.csv"),
        ("a.csv", "a_copy.csv"),
        ("flights.csv", "flights/flights.csv"),
        ("flights.csv", "flights.csv/flights.csv"),
    ],
)
def test_one_content_twice_is_named(names: tuple[str, ...]) -> None:
    (warning,) = content_twice(entries(*names))
    assert all(name in warning for name in names)


@pytest.mark.parametrize(
    "names", [("a.csv", "b.csv"), ("a.csv", "d/a.csv"), ("a.csv.gz", "d/a.csv"), ("a (1).csv", "b.csv")]
)
def test_files_of_one_content_whose_names_say_nothing_of_it_are_files(names: tuple[str, ...]) -> None:
    assert content_twice(entries(*names)) == ()


@pytest.mark.parametrize("names", [("a.parquet", "a (1).parquet"), ("flights.csv", "flights/flights.csv")])
def test_other_content_is_no_copy_whatever_the_name(names: tuple[str, ...]) -> None:
    assert content_twice(entries(*names, prints="own")) == ()


def test_the_screen_warns_of_rows_that_come_twice(tmp_path: Path, shardmill: Shardmill) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.csv").write_text("n\n1\n")
    (tmp_path / "in/a.csv.gz").write_bytes(gzip.compress(b"n\n1\n"))
    (tmp_path / "in/b.csv").write_text("n\n2\n")
    (tmp_path / "in/b (1).csv").write_text("n\n2\n")
    screen = shardmill("convert", "in", "-o", "out")
    assert "Warning: in/a.csv and in/a.csv.gz: one name in two compressions, so that the same rows come" in screen.out
    assert "Warning: in/b.csv and in/b (1).csv: a copy by its name, with the same content" in screen.out
    assert "come twice" not in shardmill("convert", "in/a.csv", "in/b.csv", "-o", "one").out
