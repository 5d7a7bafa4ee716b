from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.pipelines.cli import main
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import dry_run
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import UsageError
from shardmill.transforms.inputs.contract.source import Task, map_in_turn
from shardmill.transforms.recipe.source import first_rows, until

from ..file_sources import made_source

ROWS = 250


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def as_csv(folder: Path) -> str:
    for i in range(0, ROWS, 100):
        lines = [f"{n}" for n in range(i, min(i + 100, ROWS))]
        (folder / f"{i:03d}.csv").write_text("n\n" + "\n".join(lines) + "\n")
    return "*.csv"


def as_gzip(folder: Path) -> str:
    as_csv(folder)
    for path in folder.glob("*.csv"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    return "*.csv.gz"


def as_utf16(folder: Path) -> Any:
    as_csv(folder)
    for path in folder.glob("*.csv"):
        path.write_bytes(path.read_bytes().decode().encode("utf-16"))
    return {"input": {"paths": ["*.csv"], "encoding": "utf-16"}}


def as_parquet(folder: Path) -> str:
    for i in range(0, ROWS, 100):
        table = pa.table({"n": list(range(i, min(i + 100, ROWS)))})
        pq.write_table(table, folder / f"{i:03d}.parquet", row_group_size=30)
    return "*.parquet"


def as_numpy(folder: Path) -> Any:
    np.savez(folder / "a.npz", n=np.arange(ROWS))
    return {"input": {"paths": ["a.npz"], "rows": True}}


def values_of(path: str = "out") -> list[int]:
    dataset = open_dataset(path)
    values: list[int] = [v for split in dataset.splits for v in dataset.to_arrow(split)["n"].to_pylist()]
    return sorted(values)


@pytest.mark.parametrize("limit", [1, 99, 100, 101, 230, 250, 10**9])
@pytest.mark.parametrize("data", [as_csv, as_gzip, as_utf16, as_parquet, as_numpy])
def test_the_first_rows_of_the_whole_source_are_read_exactly(data: Any, limit: int, work: Path) -> None:
    summary = convert(data(work), output="out", limit=limit)
    counts = summary.manifest.counts
    assert values_of() == list(range(min(limit, ROWS)))
    assert (counts.read, counts.written) == (min(limit, ROWS), min(limit, ROWS))
    assert verify_dataset("out").ok


def test_bad_rows_count_as_rows(work: Path) -> None:
    (work / "a.csv").write_text("n\n" + "".join("x\n" if n % 3 == 1 else f"{n}\n" for n in range(10)))
    schema = {"columns": {"n": {"type": "int64"}}}
    summary = convert("a.csv", output="out", limit=5, schema=schema, max_rejects=9)
    assert (summary.manifest.counts.read, summary.manifest.counts.rejected) == (5, 2)
    assert values_of() == [0, 2, 3]


@given(limit=st.integers(1, 40), ragged=st.lists(st.booleans(), min_size=40, max_size=40))
@settings(deadline=None)
def test_whole_rows_that_are_rejected_count_where_they_are(
    limit: int, ragged: list[bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    lines = [f"{n},{n}" if bad else f"{n}" for n, bad in enumerate(ragged)]
    (folder / "a.csv").write_text("n\n-1\n" + "\n".join(lines) + "\n")
    source = made_source("csv", ("a.csv",), str(folder), infer="none")
    survey = first_rows(source, source.survey(source.list_files(), map_in_turn), limit)
    assert survey.limit is not None
    last = survey.limit.last
    read = source.read(Task(0, survey.pieces), survey.frozen)
    batches = list(read if last is None else until(read, last))
    rows = [value for rows in batches for value in rows.batch["n"].to_pylist()]
    rejected = [reject.place.row for rows in batches for reject in rows.rejects]
    wanted = ["-1", *(str(n) for n, bad in enumerate(ragged) if not bad and n + 2 <= limit)]
    assert [r.decode() if isinstance(r, bytes) else r for r in rows] == wanted
    assert rejected == [n + 2 for n, bad in enumerate(ragged) if bad and n + 2 <= limit]


@pytest.mark.parametrize("limit", [1, 7, 20, 99])
def test_the_first_images_are_read_exactly(limit: int, work: Path) -> None:
    for kind in ("cat", "dog"):
        (work / "pets" / kind).mkdir(parents=True)
        for width in range(1, 11):
            Image.new("RGB", (width, 2)).save(work / "pets" / kind / f"{width:02d}.png")
    convert("pets", output="out", limit=limit)
    names = open_dataset("out").to_arrow("train")["image/filename"].to_pylist()
    whole = sorted(f"{kind}/{width:02d}.png" for kind in ("cat", "dog") for width in range(1, 11))
    assert names == whole[:limit]
    assert open_dataset("out").manifest.labels == {"image/class/label": ("cat", "dog")}
    convert("pets", output="mixed", limit=limit, shuffle={"seed": 1})
    shuffled = open_dataset("mixed").to_arrow("train")["image/filename"].to_pylist()
    assert len(set(shuffled)) == min(limit, 20)


def test_a_dry_run_and_the_command_line_say_how_many_rows(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = dry_run(conversion_of(load_config(paths=[as_csv(work)], flags={"output.path": "out", "input.limit": 120})))
    assert (plan.rows, sum(split.records for split in plan.splits)) == (120, 120)
    whole = dry_run(conversion_of(load_config(paths=["*.csv"], flags={"output.path": "out"})))
    expected = sum(split.bytes for split in whole.splits) * 120 / ROWS
    assert 0.8 * expected < sum(split.bytes for split in plan.splits) < 1.2 * expected
    with pytest.raises(SystemExit) as ended:
        main(["convert", "*.csv", "-o", "out", "--limit", "120"])
    assert (ended.value.code, values_of()) == (0, list(range(120)))


def test_a_file_of_which_only_some_rows_were_read_is_not_taken_as_held(work: Path) -> None:
    as_csv(work)
    convert("*.csv", output="out", limit=120)
    assert append("000.csv", output="out").nothing_to_do
    with pytest.raises(UsageError, match=r"^100\.csv: read in part \(--limit\) when the dataset took it in, and"):
        append("100.csv", output="out")
    append("200.csv", output="out")
    assert values_of() == [*range(120), *range(200, 250)]


def test_rows_after_the_limit_are_not_read(work: Path) -> None:
    (work / "a.csv").write_text("n\n1\n2\n")
    (work / "b.csv").write_text("n\nnot a number\n")
    summary = convert("*.csv", output="out", limit=2, schema={"columns": {"n": {"type": "int64"}}})
    assert (summary.manifest.counts.rejected, values_of()) == (0, [1, 2])
