from __future__ import annotations

from pathlib import Path

from PIL import Image

from ...command_line import Shardmill


def put(root: Path, counts: dict[str, int]) -> None:
    for folder, count in counts.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(root / folder / f"{number}.png")


def test_the_screen_shows_classes_with_their_counts_by_split_and_the_shares_of_splits(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    put(tmp_path / "in", {"train/cat": 4, "train/dog": 2, "test/cat": 2})
    screen = shardmill("convert", "in", "-o", "out")
    assert "\nShares of the records: test 25 %, train 75 %\n" in screen.out
    assert "\nClasses of image/class/label: cat 6 (test 2, train 4), dog 2 (test 0, train 2)\n" in screen.out
    put(tmp_path / "more", {"train/owl": 1, "test/owl": 1})
    screen = shardmill("append", "more", "-o", "out")
    assert "cat 6 (test 2, train 4), dog 2 (test 0, train 2), owl 2 (test 1, train 1)\n" in screen.out


def test_the_first_ten_classes_are_shown_and_the_others_counted(tmp_path: Path, shardmill: Shardmill) -> None:
    (tmp_path / "a.csv").write_text("kind\n" + "".join(f"k{number:02d}\n" for number in range(13)))
    screen = shardmill("convert", "a.csv", "-o", "out", "--set", "schema.columns.kind.label=true")
    assert "\nClasses of kind: k00 1, k01 1, k02 1" in screen.out
    assert "k09 1 and 3 more\n" in screen.out
    assert "Shares" not in screen.out


def test_nothing_is_said_of_classes_where_values_are_not_counted(tmp_path: Path, shardmill: Shardmill) -> None:
    (tmp_path / "a.csv").write_text("kind\na\nb\n")
    options = ["--set", "schema.columns.kind.label=true", "--set", "stats=none"]
    screen = shardmill("convert", "a.csv", "-o", "out", *options)
    assert (screen.code, "Classes of" in screen.out) == (0, False)
