"""Statistics are counted in the pass that writes the records: they are those of the records, by split and feature."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.append import run_append
from shardmill.pipelines.runs.convert import run_convert
from shardmill.pipelines.runs.merge import plan_merge
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.count_records import count_records, counts_of
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import DamageError, UsageError
from shardmill.transforms.observers.figures import FeatureFigures, SplitFigures

Settings = dict[str, Any]


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_parquet(path: str, first: int, rows: int, groups: int = 500) -> None:
    rng = np.random.default_rng(first)
    number = np.arange(first, first + rows)
    scores = [rng.normal(0, 1, n).astype(np.float32) for n in rng.integers(0, 4, rows)]
    table = {
        "id": number,
        "price": pa.array(rng.normal(0, 1e6, rows), mask=number % 7 == 0),
        "wild": np.where(number % 11 == 0, np.nan, np.where(number % 13 == 0, np.inf, number)).astype(np.float32),
        "when": pa.array(number * 10**9, pa.timestamp("us")),
        "ok": pa.array(number % 3 == 0),
        "name": pa.array([f"name {n % 5}" if n % 4 else "" for n in number.tolist()]),
        "kind": pa.array([("cat", "dog", "owl")[n % 3] for n in number.tolist()]),
        "scores": pa.array(scores, pa.list_(pa.float32())),
    }
    pq.write_table(pa.table(table), path, row_group_size=groups)


def settings_of(out: str = "out", *, paths: tuple[str, ...] = ("*.parquet",), **sections: Any) -> Settings:
    output = {"path": out, "shard_size": "64KiB", **sections.pop("output", {})}
    return {
        "input": {"paths": list(paths)},
        "schema": {"columns": {"kind": {"label": ["cat", "dog", "owl"]}}},
        "output": output,
        **sections,
    }


def convert(settings: Settings) -> None:
    run_convert(conversion_of(load_config(settings)))


def append(paths: list[str], **sections: Any) -> None:
    settings = {"input": {"paths": paths}, "output": {"path": "out"}, **sections}
    run_append(conversion_of(load_config(settings, command="append"), "append"))


def stats_of(out: str = "out", split: str = "train") -> SplitFigures:
    stats = open_dataset(out).stats
    assert stats is not None
    return stats.splits[split]


def check_split(found: SplitFigures, out: str = "out") -> None:
    """Compare figures with what NumPy finds in the records."""
    table = open_dataset(out).to_arrow(found.name)
    assert found.records == len(table)
    for name in ("id", "price", "wild"):
        column = table[name].drop_null().to_numpy().astype(np.float64)
        finite = column[np.isfinite(column)]
        numbers = found.features[name].numbers
        assert numbers is not None
        assert (numbers.min, numbers.max) == (finite.min(), finite.max())
        assert numbers.mean == pytest.approx(math.fsum(finite.tolist()) / len(finite), rel=1e-14)
        assert numbers.deviation == pytest.approx(finite.std(), rel=1e-9)
        assert numbers.zeros == int((finite == 0).sum())
        assert (numbers.nan, numbers.infinite) == (int(np.isnan(column).sum()), int(np.isinf(column).sum()))
        assert found.features[name].missing == table[name].null_count
    names = [len(one) for one in table["name"].to_pylist()]
    sizes = found.features["name"].sizes
    assert sizes is not None
    assert (sizes.min, sizes.max, sizes.total, sizes.empty) == (0, 6, sum(names), names.count(0))
    scores = [len(one) for one in table["scores"].to_pylist()]
    lengths = found.features["scores"].lengths
    assert lengths is not None
    assert (lengths.min, lengths.max, lengths.mean) == (0, 3, sum(scores) / len(scores))
    kinds = table["kind"].to_pylist()
    assert found.features["kind"].classes == {name: kinds.count(name) for name in ("cat", "dog", "owl")}


RULES = {
    "one split": {},
    "split by hash": {"split": {"key": "id", "fractions": {"train": 0.5, "val": 0.3, "test": 0.2}}},
    "split exactly": {"split": {"by": "exact", "stratify": "kind", "fractions": {"train": 0.7, "val": 0.3}}},
    "without duplicates": {"checks": {"duplicates": {"columns": ["name"], "action": "drop"}}},
    "shuffled": {"shuffle": {"seed": 3}},
    "gzip": {"output": {"compression": "gzip"}},
}


@pytest.mark.parametrize("rule", RULES)
def test_figures_are_those_of_the_records_that_were_written(rule: str) -> None:
    write_parquet("a.parquet", 1, 4000)
    convert(settings_of(**RULES[rule]))
    dataset = open_dataset("out")
    stats = dataset.stats
    assert stats is not None
    assert list(stats.splits) == list(dataset.splits)
    assert stats.records == len(dataset)
    if rule != "without duplicates":
        for split in stats.splits.values():
            check_split(split)
    report = verify_dataset("out")
    assert report.ok, report.findings
    assert {"stats.json", "stats.tfdv"} <= set(dataset.manifest.sidecars)


def test_stats_json_is_the_same_with_any_number_of_workers() -> None:
    write_parquet("a.parquet", 1, 3000, groups=300)
    write_parquet("b.parquet", 9000, 3000, groups=300)
    found = set()
    for workers, processes in ((1, False), (2, False), (2, True)):
        runner = {"name": "local", "workers": workers, "processes": processes}
        out = f"out-{workers}-{processes}"
        convert(settings_of(out, name="same", runner=runner, stats=True))
        found.add((Path(out, "stats.json").read_bytes(), Path(out, "stats.tfdv").read_bytes()))
    assert len(found) == 1


def without_generation(out: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(out, "stats.json").read_bytes())
    del document["generation"]
    return document


def test_appends_add_up_to_what_one_conversion_counts() -> None:
    for number in range(3):
        write_parquet(f"{number}.parquet", 1 + number * 1500, 1500)
    rule = RULES["split by hash"]
    convert(settings_of("whole", **rule))
    convert(settings_of(paths=("0.parquet",), **rule))
    append(["1.parquet"])
    append(["2.parquet"])
    assert without_generation("out") == without_generation("whole")
    assert Path("out/stats.tfdv").read_bytes() == Path("whole/stats.tfdv").read_bytes()
    assert verify_dataset("out").ok
    assert open_dataset("out", generation=2).stats is None


def test_appends_of_few_rows_have_the_histograms_and_frequent_values_of_all() -> None:
    write_parquet("a.parquet", 1, 400)
    write_parquet("b.parquet", 401, 500)
    convert(settings_of("whole", stats=True))
    convert(settings_of(paths=("a.parquet",), stats=True))
    append(["b.parquet"])
    whole, found, later = stats_of("whole"), stats_of(), stats_written_later("whole")
    assert without_choice(found) == without_choice(whole) == without_choice(later)
    assert len(found.features["price"].quantiles) == 11
    assert [(one.value, one.count) for one in found.features["name"].top][:2] == [("", 225), ("name 0", 135)]


def without_choice(split: SplitFigures) -> SplitFigures:
    """Leave out what depends on which value of a list is in the sample."""
    scores = replace(split.features["scores"], histogram=(), quantiles=())
    return replace(split, features={**split.features, "scores": scores})


def stats_written_later(out: str) -> SplitFigures:
    dataset = open_dataset(out)
    counts = counts_of(out, dataset.manifest, "full")
    assert dataset.schema is not None
    return count_records(counts, "full").statistics(dataset.schema, dataset.labels).splits["train"]


def test_a_dataset_without_statistics_gets_none_by_an_append() -> None:
    write_parquet("a.parquet", 1, 1000)
    write_parquet("b.parquet", 5000, 1000)
    convert(settings_of(paths=("a.parquet",), stats=False))
    assert open_dataset("out").stats is None
    assert not Path("out/stats.json").exists()
    append(["b.parquet"])
    assert open_dataset("out").stats is None
    with pytest.raises(UsageError, match=r"shardmill stats \S*/out --write"):
        append(["b.parquet"], stats="basic")


def merge(command: Any, *paths: str, **flags: object) -> None:
    plan_merge(command, paths, {key: (key, value) for key, value in {"output.path": "merged", **flags}.items()}).run()


@pytest.mark.parametrize("stats", ["basic", "full"])
def test_copied_records_keep_what_was_counted_of_them(stats: str) -> None:
    for number, split in enumerate(({}, RULES["split by hash"])):
        write_parquet("a.parquet", 1 + number * 5000, 700)
        convert(settings_of(f"out-{number}", stats=stats, **split))
    merge("rebuild", "out-1", **{"output.compression": "gzip"})
    assert without_generation("merged") == without_generation("out-1")
    assert verify_dataset("merged").ok
    merge("merge", "out-0", "out-1", **{"output.path": "both"})
    dataset = open_dataset("both")
    assert dataset.stats is not None
    assert dataset.stats.level == stats
    for split in dataset.stats.splits.values():
        check_split(split, "both")
    assert verify_dataset("both").ok


def test_copied_records_of_which_not_all_are_counted_are_counted_on_request() -> None:
    write_parquet("a.parquet", 1, 700)
    convert(settings_of("one"))
    convert(settings_of("two", stats=False))
    merge("merge", "one", "two")
    assert open_dataset("merged").stats is None
    merge("merge", "one", "two", **{"output.path": "counted", "stats": True})
    assert without_choice(stats_of("counted")) == without_choice(stats_written_later("counted"))
    merge("merge", "one", **{"output.path": "cut", "split.fractions": {"train": 0.5, "val": 0.5}})
    assert open_dataset("cut").stats is None
    merge("merge", "one", **{"output.path": "bare", "stats": False})
    assert open_dataset("bare").stats is None


def test_rejected_rows_are_not_counted() -> None:
    with Path("a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("n", "x"), *((i, "bad" if i % 10 == 3 else i) for i in range(100))])
    columns = {"n": {"type": "int64"}, "x": {"type": "float32"}}
    convert(
        settings_of(paths=("a.csv",), max_rejects="50%") | {"schema": {"columns": columns}},
    )
    found = stats_of()
    assert found.records == 90
    assert numbers_of(found.features["n"]) == (0, 99, sum(i for i in range(100) if i % 10 != 3) / 90)


def numbers_of(figures: FeatureFigures) -> tuple[float | None, ...]:
    assert figures.numbers is not None
    return figures.numbers.min, figures.numbers.max, figures.numbers.mean


def test_pictures_have_formats_and_sizes() -> None:
    for number, (kind, size, name) in enumerate(
        [("JPEG", (30, 20), "cat"), ("PNG", (10, 40), "cat"), ("PNG", (12, 40), "dog")]
    ):
        Path("pets", name).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size).save(f"pets/{name}/{number}.{kind.lower()}", kind)
    run_convert(
        conversion_of(load_config({"input": {"format": "images", "paths": ["pets"]}, "output": {"path": "out"}}))
    )
    found = stats_of().features
    image = found["image/encoded"].image
    assert image is not None
    assert image.height is not None
    assert image.width is not None
    assert dict(image.formats) == {"jpeg": 1, "png": 2}
    assert (image.height.min, image.height.max) == (20, 40)
    assert (image.width.min, image.width.max, image.width.mean) == (10, 30, 52 / 3)
    assert found["image/class/label"].classes == {"cat": 2, "dog": 1}


def test_a_damaged_stats_json_is_found_and_named() -> None:
    write_parquet("a.parquet", 1, 500)
    convert(settings_of())
    path = Path("out/stats.json")
    path.write_bytes(path.read_bytes().replace(b'"zeros": 0', b'"zeros": 1', 1))
    report = verify_dataset("out")
    assert [finding.file for finding in report.findings] == ["stats.json"]
    path.write_bytes(b"{}")
    with pytest.raises(DamageError, match=r"stats\.json: .*missing"):
        _ = open_dataset("out").stats
    write_parquet("b.parquet", 5000, 500)
    append(["b.parquet"])  # the records are whole: what cannot be added to is left out
    assert open_dataset("out").stats is None
    assert verify_dataset("out").ok
