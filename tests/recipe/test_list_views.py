"""Nested columns whose lists are views in one Arrow file and lists in another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.runs.convert import run_convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.format.columns.lists import cast_lists

pytestmark = pytest.mark.usefixtures("without_engine")

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
    run_convert(load_config({"input": {"paths": [str(tmp_path / "*.arrow")]}, "output": {"path": out}}))
    assert open_dataset(out).to_table("train")["x"].to_pylist() == [*values, *values]


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
