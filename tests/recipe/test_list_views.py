"""Nested columns whose lists are views in one Arrow file and lists in another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import run_convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.format.columns.feature_column import cast_lists

LIST: Any = pa.list_
NESTED: list[tuple[Any, list[Any]]] = [
    (lambda lists: pa.struct([("a", lists(pa.int64()))]), [{"a": [1, 2]}, {"a": []}, {"a": [3]}]),
    (lambda lists: pa.list_(lists(pa.int64()), 2), [[[1], [2, 3]], [[], [4]], [[5, 6], []]]),
]
VIEWS = pytest.mark.parametrize("views", [pa.list_view, pa.large_list_view])


@pytest.mark.parametrize(("made", "values"), NESTED, ids=["struct", "fixed-size list"])
@pytest.mark.parametrize("order", ["views first", "lists first"])
@VIEWS
def test_values_under_list_views_of_one_file_and_lists_of_another_read_back(
    made: Any, values: list[Any], order: str, views: Any, tmp_path: Path
) -> None:
    layouts = (views, LIST) if order == "views first" else (LIST, views)
    for name, lists in zip("ab", layouts, strict=True):
        table = pa.table({"x": pa.array(values, made(lists))})
        with pa.ipc.new_file(tmp_path / f"{name}.arrow", table.schema) as writer:
            writer.write_table(table)
    out = str(tmp_path / "out")
    run_convert(conversion_of(load_config({"input": {"paths": [str(tmp_path / "*.arrow")]}, "output": {"path": out}})))
    assert open_dataset(out).to_arrow("train")["x"].to_pylist() == [*values, *values]


@pytest.mark.parametrize(("made", "values"), NESTED, ids=["struct", "fixed-size list"])
@VIEWS
def test_an_array_with_list_views_is_cast_to_a_valid_one_also_sliced_and_with_nulls(
    made: Any, values: list[Any], views: Any
) -> None:
    held = [*values, None, values[0]]
    array = pa.array(held, made(views))
    for start in range(3):
        cast = cast_lists(array[start:], made(LIST))
        cast.validate(full=True)
        assert (cast.type, cast.to_pylist()) == (made(LIST), held[start:])


@pytest.mark.parametrize("of", [pa.list_view, pa.large_list_view])
def test_list_views_that_pyarrow_writes_to_parquet_read_back_alone_and_beside_lists(of: Any, tmp_path: Path) -> None:
    values = {"x": [[1], None, [2, 3]], "s": [{"a": [1]}, {"a": []}, None], "n": [[[1], []], [], None]}
    kinds = [
        {"x": lists(pa.int64()), "s": pa.struct([("a", lists(pa.int64()))]), "n": lists(lists(pa.int64()))}
        for lists in (of, LIST)
    ]
    for name, kind in zip("ab", kinds, strict=True):
        table = pa.table({column: pa.array(values[column], kind[column]) for column in kind})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    assert "list_view" in str(pq.read_schema(tmp_path / "a.parquet").field("x").type)
    for files, times in (("a.parquet", 1), ("*.parquet", 2)):
        out = str(tmp_path / f"out{times}")
        run_convert(conversion_of(load_config({"input": {"paths": [str(tmp_path / files)]}, "output": {"path": out}})))
        assert open_dataset(out).to_arrow("train").to_pydict() == {name: held * times for name, held in values.items()}
