from __future__ import annotations

from pathlib import Path

from PIL import Image
from shardmill.pipelines import convert


def test_what_is_noted_of_good_rows_is_a_counted_warning_also_when_nothing_is_left_to_do(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue")]
    for name in ("cat/1.gif", "cat/2.gif", "dog/1.gif"):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        frames[0].save(path, save_all=True, append_images=frames[1:])
    frames[0].save(tmp_path / "pets/dog/2.gif")
    config = {
        "version": 1,
        "input": {"format": "images", "paths": [str(tmp_path / "pets")]},
        "output": {"path": str(tmp_path / "out"), "shard_size": "64KiB"},
    }
    warnings = ("animated images, of which most readers decode the first frame only: 3",)
    first, again = convert(config), convert(config)
    assert (first.warnings, first.nothing_to_do) == (warnings, False)
    assert (again.warnings, again.nothing_to_do) == (warnings, True)


def test_records_over_the_shard_size_are_a_warning_also_when_nothing_is_left_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"text\n{'x' * 100_000}\nshort\n")
    config = {
        "version": 1,
        "input": {"paths": [str(tmp_path / "a.csv")]},
        "output": {"path": str(tmp_path / "out"), "shard_size": "64KiB"},
    }
    warnings = (
        "split train: its largest record takes 97.7 KiB, over the shard size: such records have shards of their own",
    )
    first, again = convert(config), convert(config)
    assert (first.warnings, first.nothing_to_do) == (warnings, False)
    assert (again.warnings, again.nothing_to_do) == (warnings, True)
