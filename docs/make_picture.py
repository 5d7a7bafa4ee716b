"""Draw `picture.svg`, which README shows: what goes in, what a dataset is, who reads it.

    uv run python docs/make_picture.py

`tests/test_docs.py` compares the file with what this module draws.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PICTURE: Final = Path(__file__).with_name("picture.svg")

SHARDS: Final = ("train-00000.tfrecord", "train-00001.tfrecord", "val-00000.tfrecord")

COLUMNS: Final = (
    ("your data", ("CSV, TSV", "Parquet", "folders of images", "NumPy arrays", "DataFrames", "TFRecords"), "#e8f0fe"),
    ("shardmill", ("plan", "check types", "encode", "cut into shards", "commit"), "#fef3e0"),
    ("one dataset", (*SHARDS, "manifest.json", "rejects"), "#e6f4ea"),
    ("readers", ("tf.data, Keras", "TFDS", "PyTorch", "TFX, DALI, grain", "open_dataset"), "#f3e8fd"),
)  # fmt: skip
"""The heading, the lines and the colour of each box."""

WIDTH: Final = 190
GAP: Final = 40
LINE: Final = 24
TOP: Final = 20
HEAD: Final = 40


def draw() -> str:
    """Return the picture as SVG: a box for each column, and arrows between."""
    rows = max(len(lines) for _, lines, _ in COLUMNS)
    height = HEAD + rows * LINE + 14
    full = len(COLUMNS) * WIDTH + (len(COLUMNS) - 1) * GAP + 2 * TOP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {height + 2 * TOP}" role="img"'
        ' font-family="sans-serif" font-size="14" fill="#202124">',
        "<title>Your data becomes one dataset of TFRecord shards, which many libraries read</title>",
        f'<rect width="{full}" height="{height + 2 * TOP}" rx="12" fill="#ffffff"/>',
    ]
    for place, (heading, lines, colour) in enumerate(COLUMNS):
        left = TOP + place * (WIDTH + GAP)
        middle = left + WIDTH // 2
        parts.append(
            f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{height}" rx="8" fill="{colour}" stroke="#5f6368"/>'
        )
        parts.append(f'<text x="{middle}" y="{TOP + 26}" text-anchor="middle" font-weight="bold">{heading}</text>')
        for row, line in enumerate(lines):
            parts.append(f'<text x="{middle}" y="{TOP + HEAD + 18 + row * LINE}" text-anchor="middle">{line}</text>')
        if place:
            parts.append(_arrow(left - GAP, TOP + height // 2))
    return "\n".join([*parts, "</svg>", ""])


def _arrow(left: int, y: int) -> str:
    """Return an arrow from one box to the next."""
    tip = left + GAP - 6
    return f'<path d="M{left + 6} {y} H{tip} m-8 -6 l8 6 l-8 6" fill="none" stroke="#5f6368" stroke-width="2"/>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
