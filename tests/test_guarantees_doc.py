"""docs/dev/proofs.md names tests that exist, for each promise; docs/guarantees.md states the bounds of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shardmill.pipelines.config import errors, load
from shardmill.pipelines.config.model import LimitsConfig
from shardmill.transforms.dataset.storage.manifest_files import LINE_LIMIT
from shardmill.transforms.format.batches.arrow_memory import FREE_ROWS, ROWS_PER_BYTE
from shardmill.transforms.format.manifest.strict_json import MEMORY_LIMIT
from shardmill.transforms.format.wording.printable import VALUE_LIMIT
from shardmill.transforms.limits.turns import PIXELS, ROW_BYTES
from shardmill.transforms.recipe.steps.label import MOST_CLASSES
from shardmill.transforms.recognise.evidence import label_names
from shardmill.transforms.sources.annotations.rows import MOST_BYTES
from shardmill.transforms.sources.archives import columns, survey, tar
from shardmill.transforms.sources.arrow import messages
from shardmill.transforms.sources.jsonl import lanes, values
from shardmill.transforms.sources.numpy import npy
from shardmill.transforms.sources.numpy import npy as npz
from shardmill.transforms.sources.parquet import pages as column_chunks
from shardmill.transforms.sources.text.lines import MOST_VALUES

REPO = Path(__file__).parent.parent
DOC = (REPO / "docs/guarantees.md").read_text()
PROOFS = (REPO / "docs/dev/proofs.md").read_text()


def named_tests() -> list[tuple[str, str | None]]:
    """Return the files and functions that the page names; `::name` goes with the file before it."""
    found: list[tuple[str, str | None]] = []
    for path, name in re.findall(r"`(tests/[\w/.]+)?(?:::(\w+))?`", PROOFS):
        if path or name:
            found.append((path or found[-1][0], name or None))
    return found


def test_every_test_that_is_named_exists() -> None:
    named = named_tests()
    assert len(named) > 50
    missing = []
    for path, name in named:
        there = (REPO / path).is_file() if name else (REPO / path).exists()
        if not there or (name and not re.search(rf"^ *def {name}\(", (REPO / path).read_text(), re.MULTILINE)):
            missing.append(f"{path}::{name}" if name else path)
    assert not missing


def test_every_promise_is_proven_by_a_test_or_more() -> None:
    promises = re.findall(r"^(\d)\. \*\*", (REPO / "docs/dev/design.md").read_text(), re.MULTILINE)
    assert re.findall(r"^(\d)\. \*\*", DOC, re.MULTILINE) == promises
    rows = re.findall(r"^\| (\d)\. [^|]+\| (.*) \|$", PROOFS, re.MULTILINE)
    assert [number for number, _ in rows] == promises
    assert all("`tests/" in proof for _, proof in rows)


def size(count: int) -> str:
    """Return a number of bytes as the page has it."""
    return f"{count >> 30} GiB" if count >> 30 and not count % (1 << 30) else f"{count >> 20} MiB"


LIMITS = LimitsConfig()
BOUNDS = {
    "`field_bytes`": [size(LIMITS.field_bytes)],
    "`record_bytes`": [size(LIMITS.record_bytes)],
    "`columns`": [f"{LIMITS.columns:,}"],
    "`batch_bytes`": [size(LIMITS.batch_bytes)],
    "`pixels`": [f"{LIMITS.pixels:,}"],
    "`image_bytes`": [size(LIMITS.image_bytes)],
    "pixels that are decoded at a time": [f"{PIXELS.alone:,}", f"{PIXELS.beside:,}"],
    "bytes that become rows at a time": [size(ROW_BYTES.alone), size(ROW_BYTES.beside)],
    "values in a line of JSON": [f"{MOST_VALUES:,}"],
    "levels of JSON": [f"{values.MOST_LEVELS}"],
    "rows times keys of JSON": [f"{lanes.CELLS:,}"],
    "rows that take no bytes": [f"{FREE_ROWS:,}", f"{ROWS_PER_BYTE} for each"],
    "metadata of an Arrow message": [size(messages.MOST_METADATA)],
    "classes of a label": [f"{MOST_CLASSES:,}"],
    "categories in files of COCO": [f"{MOST_CLASSES:,}"],
    "a config": [size(load.MAX_CONFIG_BYTES), f"{errors.MAX_NODES:,}", f"{errors.MAX_DEPTH}"],
    "a `data.yaml` of YOLO": [size(label_names.CONFIG_BYTES), f"{label_names.MOST_NODES:,}"],
    "a file of VOC or YOLO": [size(MOST_BYTES)],
    "levels of columns": [f"Parquet {column_chunks.MOST_LEVELS}"],
    "kinds of members of an archive": [f"{survey.MOST_COLUMNS:,}"],
    "kinds of members in an archive that differ": [f"one, and {columns.MOST_VIEWS}"],
    "an extended header of a tar": [size(tar.MOST_EXTENDED)],
    "a manifest": [size(MEMORY_LIMIT)],
    "a line of `sources/`": [size(LINE_LIMIT)],
    "the directory of a `.npz`": [size(npz.DIRECTORY_LIMIT)],
    "the header of a `.npy`": [f"{npy.HEADER_LIMIT:,} bytes"],
    "a value on the screen": [f"{VALUE_LIMIT} characters"],
}
"""The bounds of the code, by the beginning of their row in the table of limits."""


@pytest.mark.parametrize("what", BOUNDS)
def test_the_table_of_limits_states_the_bounds_of_the_code(what: str) -> None:
    table = DOC.partition("## Limits")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith(f"| {what}")]
    assert rows
    for bound in BOUNDS[what]:
        assert any(bound in row for row in rows), bound
