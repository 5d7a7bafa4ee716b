from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.errors import DataError, SchemaError, SourceError, UsageError
from shardmill.transforms.format.batches.rejects import Place
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.format.examples.encode_rows import RowEncoder
from shardmill.transforms.format.schema.schema import ColumnRule
from shardmill.transforms.inputs.contract.source import Survey, Task, map_in_turn
from shardmill.transforms.sources.memory.source import MemorySource, spool
from shardmill.transforms.sources.memory.tables import BatchLimits, even

from ...tiers import examples


def survey(source: MemorySource) -> Survey:
    return source.survey(source.list_files(), map_in_turn)


def read(source: MemorySource) -> list[Rows]:
    found = survey(source)
    return list(source.read(Task(0, found.pieces), found.frozen))


def joined(source: MemorySource) -> pa.Table:
    return pa.Table.from_batches([rows.batch for rows in read(source)])


TABLE = pa.table({"id": [1, 2, None], "name": ["a", "b", "c"], "tags": [[1], [], [2, 3]]})


class OnlyAStream:
    """Any library's table that speaks the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


ARROW = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "stream": OnlyAStream,
}


@pytest.mark.parametrize("case", ARROW)
def test_arrow_data_comes_back_as_it_was(tmp_path: Path, case: str) -> None:
    source = spool(ARROW[case](), str(tmp_path))
    assert joined(source).equals(TABLE)
    assert [f.nullable for f in survey(source).frozen.schema] == [True, False, False]
    assert read(source)[0].origin.place(2) == Place(f"Arrow {case}", row=3)


WORDS = pa.array(["x", "y"]).cast(pa.string_view())
CATEGORIES = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1], pa.uint32()), WORDS)
IN_LISTS = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, 1], pa.uint32()), WORDS)
VIEWED = pa.table(
    {
        "c": CATEGORIES,
        "l": pa.ListArray.from_arrays(pa.array([0, 2, 2, 3, 4], pa.int32()), IN_LISTS),
        "n": pa.array([2**63, 1, 2, 3], pa.uint64()),
    }
)
"""What polars gives of categories: dictionaries of views, which Arrow cannot decode."""


def test_dictionaries_of_views_are_read_also_beside_a_reject(tmp_path: Path) -> None:
    source = spool(VIEWED, str(tmp_path))
    encoder = RowEncoder(survey(source).frozen.schema)
    (rows,) = read(source)
    assert rows.batch.select(["c", "l"]).to_pylist() == [
        {"c": "y", "l": ["y", "x"]}, {"c": "x", "l": []}, {"c": None, "l": ["y"]}, {"c": "y", "l": ["y"]},
    ]  # fmt: skip
    block = encoder.encode(rows)
    assert [(reject.place.row, reject.errors[0].code) for reject in block.rejects] == [(1, "INT_OVERFLOW")]


class OnlyColumns:
    """A table of another library in a dict of them, as Hugging Face has splits."""

    column_names = ("a",)


@pytest.mark.parametrize("one", [TABLE, pd.DataFrame({"a": [1]}), OnlyColumns()])
def test_a_dict_of_tables_is_refused_with_the_one_that_may_be_given(tmp_path: Path, one: object) -> None:
    with pytest.raises(DataError, match=r"^data is a dict of tables, .*; give one: data=tables\['train'\]$"):
        spool({"train": one}, str(tmp_path))


def test_lists_of_unequal_length_are_a_column_of_lists(tmp_path: Path) -> None:
    source = spool({"n": [1, 2, 3], "lists": [[1], [2, 3], []], "texts": [["a"], [], None]}, str(tmp_path))
    assert joined(source).select(["lists", "texts"]).to_pydict() == {
        "lists": [[1], [2, 3], []],
        "texts": [["a"], [], None],
    }


def test_an_array_is_a_column_and_further_axes_are_its_shape(tmp_path: Path) -> None:
    arrays = {
        "label": np.arange(4, dtype=">i2"),
        "emb": np.arange(8, dtype="f4").reshape(4, 2),
        "image": np.asfortranarray(np.arange(24, dtype="u1").reshape(4, 2, 3)),
        "when": np.array(["2020-01-01", "NaT", "2020-01-03", "2020-01-04"], "M8[s]"),
        "text": np.array(["a\0b", "", "é", "x"]),
        "mixed": np.array(["x", None, "y", "z"], object),
    }
    source = spool(arrays, tmp_path.as_posix())
    table = joined(source)
    assert table["label"].to_pylist() == [0, 1, 2, 3]
    assert table["emb"].to_pylist() == arrays["emb"].tolist()
    assert table["image"].chunk(0).storage.to_pylist() == arrays["image"].reshape(4, 6).tolist()
    assert table["when"].null_count == 1
    assert table["text"].to_pylist() == ["a\0b", "", "é", "x"]
    assert table["mixed"].to_pylist() == ["x", None, "y", "z"]
    assert {f.name: (f.type, f.shape, f.nullable) for f in survey(source).frozen.schema} == {
        "label": ("int16", (), False),
        "emb": ("float32", (2,), False),
        "image": ("uint8", (2, 3), False),
        "when": ("timestamp", (), True),
        "text": ("string", (), False),
        "mixed": ("string", (), True),
    }


def test_not_a_number_is_a_value_of_an_array_and_a_null_of_a_dataframe(tmp_path: Path) -> None:
    values = np.array([1.5, np.nan])
    array = joined(spool({"x": values}, str(tmp_path)))
    frame = spool(pd.DataFrame({"x": values}), str(tmp_path))
    assert array["x"].null_count == 0
    assert joined(frame)["x"].null_count == 1
    assert survey(frame).choices[0].reason.endswith("nullable: 1 nulls")


def test_a_dataframe_becomes_its_columns_without_its_index(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"n": [1, 2], 7: ["a", "b"], "c": pd.Categorical(["x", "y"]), "t": pd.to_datetime(["2020-01-01", None])}
    )
    source = spool(frame, str(tmp_path))
    table = joined(source)
    assert table.column_names == ["n", "7", "c", "t"]
    assert table["c"].to_pylist() == ["x", "y"]
    assert table["t"].null_count == 1
    assert survey(source).warnings == ()


def test_a_named_index_is_left_out_with_a_warning(tmp_path: Path) -> None:
    source = spool(pd.DataFrame({"n": [1]}, index=pd.Index([5], name="key")), str(tmp_path))
    assert joined(source).column_names == ["n"]
    assert survey(source).warnings == ("DataFrame: its index (key) is not written; reset_index() makes it columns",)


@pytest.mark.parametrize(
    "index",
    [
        ["k1", "k2"],
        pd.MultiIndex.from_tuples([(1, 2), (1, 3)]),
        pd.date_range("2024-01-01", periods=2),
        [0.5, 1.5],
    ],
    ids=lambda index: type(index).__name__,
)
def test_an_index_without_a_name_that_says_something_is_left_out_with_a_warning(tmp_path: Path, index: Any) -> None:
    source = spool(pd.DataFrame({"v": [1, 2]}, index=index), str(tmp_path))
    assert joined(source).column_names == ["v"]
    assert survey(source).warnings == (
        "DataFrame: its index, which has no name, is not written; reset_index() makes it columns",
    )


def test_an_index_of_whole_numbers_or_of_no_rows_is_left_out_without_a_word(tmp_path: Path) -> None:
    frame = pd.DataFrame({"v": [1, 2, 3]})
    (tmp_path / "filtered").mkdir()
    (tmp_path / "empty").mkdir()
    assert survey(spool(frame[frame["v"] > 1], str(tmp_path / "filtered"))).warnings == ()
    assert (
        survey(
            spool(
                pd.DataFrame({"v": pd.Series([], dtype="int64", index=pd.Index([], dtype=object))}),
                str(tmp_path / "empty"),
            )
        ).warnings
        == ()
    )


ERRORS: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "lengths": (
        lambda: {"x": np.ones(3), "y": np.ones(4)},
        UsageError,
        'data: array "x" has 3 rows, and "y" has 4; the first axis of all arrays is the row',
    ),
    "no arrays": (dict, UsageError, "data is an empty dict"),
    "a scalar": (lambda: {"x": np.float32(1)}, UsageError, '"x" is a scalar'),
    "a name that is not a string": (lambda: {1: np.ones(3)}, UsageError, "the name 1 is a int"),
    "a masked array": (lambda: {"x": np.ma.masked_equal([1, 2], 1)}, UsageError, 'array "x" is masked'),
    "a list": (lambda: [1, 2], UsageError, "data is a list of int; pass a pandas DataFrame"),
    "complex": (lambda: {"x": np.ones(2, "c8")}, SchemaError, 'column "x": dtype complex64 has no feature'),
    "objects": (
        lambda: {"x": np.array([1, "a"], object)},
        SchemaError,
        "data: column \"x\" has values of several types: int (row 1: 1), str (row 2: 'a'); give the array one type, as "
        "with array.astype(str)",
    ),
    "mixed objects": (
        lambda: pd.DataFrame({"good": [1, 2, 3], "bad": [None, b"x", 1]}),
        SchemaError,
        "DataFrame: column \"bad\" has values of several types: bytes (row 2: b'x'), int (row 3: 1); give the column "
        "one type, as with frame['bad'] = frame['bad'].astype(\"string\")",
    ),
    "a column whose name is a number": (
        lambda: pd.DataFrame({7: [True, "x"]}),
        SchemaError,
        'as with frame[7] = frame[7].astype("string")',
    ),
    "an object that is too large": (
        lambda: pd.DataFrame({"n": [1, 2**70]}),
        SchemaError,
        'DataFrame: column "n", row 2: 1180591620717411303424: no int64 holds it; give the column one type, as with ',
    ),
    "periods": (
        lambda: pd.DataFrame({"p": pd.period_range("2020", periods=2, freq="M")}),
        SchemaError,
        'column "p": pandas.period has no feature',
    ),
    "two columns": (
        lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]),
        SchemaError,
        'DataFrame: two columns are named "a"; rename one of them',
    ),
    "two columns by text": (lambda: pd.DataFrame({1: [1], "1": [2]}), SchemaError, 'two columns are named "1"'),
    "two Arrow columns": (
        lambda: pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
        SchemaError,
        'Arrow table: two columns are named "a"',
    ),
    "unsound Arrow": (
        lambda: pa.table({"s": pa.Array.from_buffers(pa.string(), 2, [None, *offsets_that_leave_the_data()])}),
        UsageError,
        "Arrow table: it is not sound Arrow data",
    ),
}


def offsets_that_leave_the_data() -> list[pa.Buffer]:
    return [pa.py_buffer(np.array([0, 99, 4], np.int32)), pa.py_buffer(b"abcd")]


@pytest.mark.parametrize("case", ERRORS)
def test_data_that_cannot_be_written_is_an_error_and_leaves_no_file(tmp_path: Path, case: str) -> None:
    make, kind, message = ERRORS[case]
    with pytest.raises(kind) as caught:
        spool(make(), str(tmp_path / "spool"))
    assert message in str(caught.value)
    assert not list(tmp_path.glob("spool/*"))


def test_an_interval_is_an_error_of_the_survey(tmp_path: Path) -> None:
    intervals = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    with pytest.raises(
        SchemaError, match=r'column "s": month_day_nano_interval is not supported, .*columns\.s\.as=json'
    ):
        survey(spool(pa.table({"s": intervals}), str(tmp_path)))


def test_only_the_chosen_columns_are_written(tmp_path: Path) -> None:
    assert joined(spool(TABLE, str(tmp_path), columns=["tags", "id"])).column_names == ["id", "tags"]
    with pytest.raises(SchemaError, match=r'"nme" is to be kept, but is not a column; did you mean "name"'):
        spool(TABLE, str(tmp_path), columns=["nme"])


def test_rules_shape_features_and_must_name_columns(tmp_path: Path) -> None:
    source = spool(TABLE, str(tmp_path), rules={"name": ColumnRule(type="bytes")})
    assert {f.name: f.type for f in survey(source).frozen.schema}["name"] == "binary"
    with pytest.raises(SchemaError, match=r'"nme", which is not a column; did you mean "name"'):
        survey(spool(TABLE, str(tmp_path), rules={"nme": ColumnRule()}))


def test_the_same_data_is_the_same_source(tmp_path: Path) -> None:
    first, second = spool(TABLE, str(tmp_path)), spool(TABLE.slice(0), str(tmp_path))
    assert first == second
    assert first.list_files() == second.list_files()
    assert len(list(tmp_path.iterdir())) == 1
    assert spool(TABLE.slice(1), str(tmp_path)) != first


def test_the_source_travels_to_workers(tmp_path: Path) -> None:
    source = spool(TABLE, str(tmp_path))
    found = survey(source)
    assert pickle.loads(pickle.dumps(source)) == source
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_spooled_file_that_changed_is_an_error(tmp_path: Path) -> None:
    source = spool(TABLE, str(tmp_path))
    found = survey(source)
    with open(source.files[0].path, "ab") as file:
        file.write(b"x")
    with pytest.raises(SourceError, match=r"Arrow table: changed while it was read"):
        list(source.read(Task(0, found.pieces), found.frozen))
    os.unlink(source.files[0].path)
    with pytest.raises(SourceError, match=r"Arrow table: cannot be read any more"):
        list(source.read(Task(0, found.pieces), found.frozen))


def test_a_task_reads_its_own_batches(tmp_path: Path) -> None:
    source = spool({"x": np.arange(100_000)}, str(tmp_path))
    found = survey(source)
    assert [(p.first_row, p.rows) for p in found.pieces] == [
        (0, 32000), (32000, 32000), (64000, 32000), (96000, 4000),
    ]  # fmt: skip
    (rows,) = source.read(Task(3, found.pieces[2:3]), found.frozen)
    assert rows.batch.column(0)[0].as_py() == 64000
    assert rows.origin.place(0).row == 64001


def test_dictionaries_that_differ_between_chunks_become_their_values(tmp_path: Path) -> None:
    chunks = [pa.array(["a", "b"] * 3000).dictionary_encode(), pa.array(["c", None] * 3000).dictionary_encode()]
    table = joined(spool(pa.table({"s": pa.chunked_array(chunks)}), str(tmp_path)))
    assert table["s"].type == pa.string()
    assert table["s"].to_pylist() == ["a", "b"] * 3000 + ["c", None] * 3000


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 20), st.integers(1, 20), st.integers(16, 400))
def test_batches_are_even_and_hold_every_row_in_order(sizes: list[int], small: int, most: int, size_bytes: int) -> None:
    ends = np.cumsum([0, *sizes])
    batches = [pa.record_batch({"x": np.arange(a, b)}) for a, b in pairwise(ends)]
    found = list(even(batches, BatchLimits(most, size_bytes, small)))
    assert [x for batch in found for x in batch.column(0).to_pylist()] == list(range(ends[-1]))
    assert all(1 <= batch.num_rows <= min(most, max(size_bytes // 8, 1)) for batch in found)


def test_the_columns_are_mapped_and_not_copied(tmp_path: Path) -> None:
    source = spool({"x": np.arange(100_000)}, str(tmp_path))
    found = survey(source)
    before = pa.total_allocated_bytes()
    rows = list(source.read(Task(0, found.pieces), found.frozen))
    assert sum(each.batch.nbytes for each in rows) == 800_000
    assert pa.total_allocated_bytes() - before < 10_000


def test_pandas_is_not_imported_for_arrow_data_and_arrays(tmp_path: Path) -> None:
    code = (
        "import sys, numpy, pyarrow\n"
        "from shardmill.transforms.sources.memory.source import spool\n"
        "data = {'x': numpy.ones((3, 2)), 'y': numpy.array([True, False, True]), 'z': numpy.zeros(3, 'M8[D]')}\n"
        f"source = spool(data, {str(tmp_path)!r})\n"
        "source.survey(source.list_files(), lambda function, items: list(map(function, items)))\n"
        f"spool(pyarrow.ipc.open_file(source.files[0].path.decode()).read_all(), {str(tmp_path)!r})\n"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
