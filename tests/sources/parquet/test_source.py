from __future__ import annotations

import os
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.errors import SchemaError, SourceError
from shardmill.transforms.format.batches.rejects import Place
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.format.schema.schema import ColumnRule
from shardmill.transforms.inputs.contract.source import Survey, Task, map_in_turn
from shardmill.transforms.sources.parquet.pages import read_groups
from shardmill.transforms.sources.parquet.source import ParquetPiece, ParquetSource

from ...file_sources import assert_same_source, made_source
from ...tiers import examples


def write(path: Path, columns: dict[str, Any], **options: Any) -> pa.Table:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns)
    pq.write_table(table, path, **{"write_page_checksum": True, **options})
    return table


def survey(source: ParquetSource) -> Survey:
    return source.survey(source.list_files(), map_in_turn)


def read(source: ParquetSource, *pieces: int) -> list[Rows]:
    found = survey(source)
    chosen = tuple(found.pieces[i] for i in pieces) if pieces else found.pieces
    return list(source.read(Task(7, chosen), found.frozen))


def joined(rows: Iterable[Rows]) -> pa.Table:
    return pa.Table.from_batches([each.batch for each in rows])


def test_all_rows_of_several_files_come_in_order_with_their_place(tmp_path: Path) -> None:
    one = write(tmp_path / "a.parquet", {"id": range(10), "name": [f"n{i}" for i in range(10)]}, row_group_size=4)
    two = write(tmp_path / "b.parquet", {"id": range(10, 13), "name": ["x", "y", "z"]})
    rows = read(made_source("parquet", ("*.parquet",), str(tmp_path)))
    assert joined(rows).to_pydict() == pa.concat_tables([one, two]).to_pydict()
    assert [each.ordinal for each in rows] == [0, 1, 2, 3]
    assert {each.task for each in rows} == {7}
    assert [each.entry for each in rows] == [0, 0, 0, 1]
    assert rows[1].origin.place(2) == Place("a.parquet", row=7, row_group=1)
    assert rows[3].origin.place(0) == Place("b.parquet", row=1, row_group=0)


def test_a_row_group_is_a_piece_with_its_rows_and_the_bytes_of_the_chosen_columns(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"id": range(10), "text": ["x" * 100] * 10}, row_group_size=6)
    source = made_source("parquet", ("a.parquet",), str(tmp_path), columns=("id",))
    metadata = pq.ParquetFile(tmp_path / "a.parquet").metadata
    pieces = survey(source).pieces
    assert [(p.entry, p.rows, p.first_row) for p in pieces] == [(0, 6, 0), (0, 4, 6)]
    assert [p.bytes for p in pieces] == [metadata.row_group(i).column(0).total_compressed_size for i in (0, 1)]


def test_a_task_may_begin_at_any_row_group(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"id": range(10)}, row_group_size=4)
    (rows,) = read(made_source("parquet", ("a.parquet",), str(tmp_path)), 1)
    assert rows.batch.column(0).to_pylist() == [4, 5, 6, 7]
    assert rows.origin.place(0).row == 5


def test_source_and_pieces_travel_to_workers(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"id": range(3)})
    source = made_source("parquet", ("a.parquet",), str(tmp_path), rules={"id": ColumnRule(nullable=True)})
    found = survey(source)
    assert_same_source(pickle.loads(pickle.dumps(source)), source)
    assert pickle.loads(pickle.dumps(found)) == found


def test_columns_are_chosen_by_index_so_that_a_dot_is_no_path(tmp_path: Path) -> None:
    columns = {"a": pa.array([{"b": 1, "c": [1]}, {"b": 2, "c": []}]), "a.b": [10, 20], "z": [True, False]}
    write(tmp_path / "a.parquet", columns)
    source = made_source("parquet", ("a.parquet",), str(tmp_path), columns=("z", "a.b"))
    assert joined(read(source)).to_pydict() == {"a.b": [10, 20], "z": [True, False]}
    assert [feature.name for feature in survey(source).frozen.schema] == ["a.b", "z"]


def test_a_chosen_column_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"price": [1.0], "id": [1]})
    with pytest.raises(SchemaError) as caught:
        survey(made_source("parquet", ("a.parquet",), str(tmp_path), columns=("prise",)))
    assert str(caught.value) == 'a.parquet: input.columns names "prise", which is not a column; did you mean "price"?'


def test_a_rule_for_no_column_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"price": [1.0]})
    with pytest.raises(SchemaError, match=r'schema.columns names "prise", which is not a column; did you mean "price"'):
        survey(made_source("parquet", ("a.parquet",), str(tmp_path), rules={"prise": ColumnRule(as_="bytes")}))


def test_a_rule_shapes_the_feature(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"price": [1.5]})
    source = made_source("parquet", ("a.parquet",), str(tmp_path), rules={"price": ColumnRule(as_="bytes")})
    (feature,) = survey(source).frozen.schema
    assert (feature.kind, feature.dtype) == ("bytes", "<f8")


NULLABILITY = {
    "required": (pa.field("c", pa.int64(), nullable=False), [1, 2, 3], {}, False, "required in the file"),
    "counted none": (pa.field("c", pa.int64()), [1, 2, 3], {}, False, "no nulls (file statistics)"),
    "counted some": (pa.field("c", pa.int64()), [1, 2, None], {}, True, "1 null (file statistics)"),
    "not counted": (pa.field("c", pa.int64()), [1, 2, 3], {"write_statistics": False}, True, "does not count nulls"),
    "list": (pa.field("c", pa.list_(pa.int64())), [[1], [], [2]], {}, True, "nullable: optional in the file"),
    "null": (pa.field("c", pa.null()), [None] * 3, {}, True, "its type is null"),
}


@pytest.mark.parametrize("case", NULLABILITY)
def test_a_column_is_nullable_unless_the_file_proves_it_is_not_and_the_reason_is_told(
    tmp_path: Path, case: str
) -> None:
    field, values, options, nullable, reason = NULLABILITY[case]
    table = pa.table([pa.array(values, field.type)], schema=pa.schema([field]))
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2, **options)
    found = survey(made_source("parquet", ("a.parquet",), str(tmp_path)))
    (feature,), (choice,) = found.frozen.schema, found.choices
    assert feature.nullable is nullable
    assert choice.reason.endswith(reason)


def test_a_column_is_nullable_if_any_file_has_nulls(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"c": [1]})
    write(tmp_path / "b.parquet", {"c": [None, 2]})
    found = survey(made_source("parquet", ("*.parquet",), str(tmp_path)))
    assert [feature.nullable for feature in found.frozen.schema] == [True]
    assert "b.parquet" in found.choices[0].reason


def test_files_may_order_their_columns_differently(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"x": [1], "y": ["a"]})
    write(tmp_path / "b.parquet", {"y": ["b"], "x": [2]})
    rows = read(made_source("parquet", ("*.parquet",), str(tmp_path)))
    assert [each.batch.to_pydict() for each in rows] == [{"x": [1], "y": ["a"]}, {"y": ["b"], "x": [2]}]


def test_files_may_differ_in_layout_where_the_values_mean_the_same(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"s": pa.array(["a"]), "l": pa.array([[1]], pa.list_(pa.int64()))})
    write(
        tmp_path / "b.parquet",
        {"s": pa.array(["b"]).dictionary_encode(), "l": pa.array([[2]], pa.large_list(pa.int64()))},
    )
    write(tmp_path / "c.parquet", {"s": pa.array(["c"], pa.large_string()), "l": pa.array([[3]])})
    rows = read(made_source("parquet", ("*.parquet",), str(tmp_path)))
    assert [each.batch.to_pydict() for each in rows] == [
        {"s": [s], "l": [[n]]} for s, n in (("a", 1), ("b", 2), ("c", 3))
    ]


def test_every_supported_type_arrives_as_it_was_written(tmp_path: Path) -> None:
    columns = {
        "bool": pa.array([True, None]),
        "u64": pa.array([2**64 - 1, 0], pa.uint64()),
        "f16": pa.array([np.float16(1.5), None], pa.float16()),
        "bin": pa.array([b"\xff", b""]),
        "fsb": pa.array([b"ab", b"cd"], pa.binary(2)),
        "date": pa.array([1, None], pa.date32()),
        "ts": pa.array([1, 2], pa.timestamp("ns", "UTC")),
        "time": pa.array([1, 2], pa.time64("ns")),
        "duration": pa.array([1, 2], pa.duration("ms")),
        "list": pa.array([[1, 2], []]),
        "fsl": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        "dict": pa.array(["a", "b"]).dictionary_encode(),
        "null": pa.nulls(2),
    }
    table = write(tmp_path / "a.parquet", columns)
    (rows,) = read(made_source("parquet", ("a.parquet",), str(tmp_path)))
    assert rows.batch.schema.types == table.schema.types
    assert rows.batch.equals(table.combine_chunks().to_batches()[0])


def test_a_null_among_fixed_size_lists_is_a_null_and_every_other_column_stays_what_it_was(tmp_path: Path) -> None:
    tensors = pa.fixed_shape_tensor(pa.float32(), (1, 2))
    pairs = pa.array([[1.0, 2.0], None, [3.0, 4.0], [5.0, 6.0]], tensors.storage_type)
    tensor = pa.ExtensionArray.from_storage(tensors, pairs)
    columns = {
        "fsl": pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.int32(), 2)),
        "text": pa.array([["a"], ["b"], None, ["c"]], pa.list_(pa.large_string(), 1)),
        "tensor": tensor,
        "duration": pa.array([1, 2, None, 4], pa.duration("ms")),
        "ts": pa.array([1, 2, None, 4], pa.timestamp("s", "UTC")),
        "dict": pa.array(["a", "b", None, "a"]).dictionary_encode(),
        "f16": pa.array([np.float16(1.5), None, None, np.float16(2)], pa.float16()),
        "u8": pa.array([255, None, 0, 1], pa.uint8()),
        "json": pa.array(["{}", None, "[]", "1"], pa.json_()),
        "ARROW:schema": pa.array([1, 2, 3, 4]),
    }
    table = write(tmp_path / "a.parquet", columns, row_group_size=3)
    source = made_source("parquet", ("a.parquet",), str(tmp_path))
    assert [piece.null_lists for piece in survey(source).pieces if isinstance(piece, ParquetPiece)] == [True, False]
    found = joined(read(source))
    assert found.column_names == table.column_names
    for name in set(columns) - {"tensor", "json"}:
        assert found[name].to_pylist() == table[name].to_pylist(), name
    assert found["json"].to_pylist() == ["{}", None, "[]", "1"]
    assert found["tensor"].type == tensor.type
    assert found["tensor"].combine_chunks().storage.equals(tensor.storage)
    assert joined(read(source, 0)).slice(0, 3).equals(found.slice(0, 3))
    assert joined(read(source, 1))["fsl"].to_pylist() == [[5, 6]]  # by the writer's own schema


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ([{"a": 1}, {"a": 2}], pa.struct({"a": pa.int64()})),
        ([{"a": 1, "b": None}, {"a": 2, "b": "x"}], pa.struct({"a": pa.int64(), "b": pa.string()})),
        ([{"a": [1, 2]}, {"a": [3, 4]}], pa.struct({"a": pa.list_(pa.int32(), 2)})),
        ([[1, 2, 3], [4, 5, 6]], pa.list_(pa.int32(), 3)),
    ],
    ids=["struct", "struct of two", "struct of a list", "list"],
)
def test_nulls_among_fixed_size_lists_of_nested_values_are_read_though_no_writer_counts_them(
    tmp_path: Path, value: list[Any], kind: pa.DataType
) -> None:
    table = write(tmp_path / "a.parquet", {"x": pa.array([value, None, value], pa.list_(kind, 2))})
    assert (
        joined(read(made_source("parquet", ("a.parquet",), str(tmp_path))))["x"].to_pylist() == table["x"].to_pylist()
    )


def test_fixed_size_lists_whose_nulls_nobody_counted_are_read_alike(tmp_path: Path) -> None:
    values = [[1.0, 2.0], None, [3.0, 4.0]]
    write(tmp_path / "a.parquet", {"v": pa.array(values, pa.list_(pa.float32(), 2))}, write_statistics=False)
    source = made_source("parquet", ("a.parquet",), str(tmp_path))
    assert joined(read(source))["v"].to_pylist() == values
    assert survey(source).frozen.schema.features[0].shape == (2,)


def test_extension_types_are_read_as_their_storage_but_tensors_keep_their_shape(tmp_path: Path) -> None:
    uuid = pa.array([b"0123456789abcdef"], pa.uuid())
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(6, dtype=np.float32).reshape(1, 2, 3))
    write(tmp_path / "a.parquet", {"u": uuid, "t": tensor})
    source = made_source("parquet", ("a.parquet",), str(tmp_path))
    (rows,) = read(source)
    assert rows.batch.schema.field("u").type == pa.binary(16)
    assert {f.name: (f.type, f.shape) for f in survey(source).frozen.schema} == {
        "t": ("float32", (2, 3)),
        "u": ("binary", ()),
    }


def test_batches_have_fewer_rows_where_rows_are_large(tmp_path: Path) -> None:
    # A dictionary makes the file small, and the rows are large all the same.
    table = write(tmp_path / "a.parquet", {"text": ["x" * 1000, "y" * 1000] * 50})
    rows = read(made_source("parquet", ("a.parquet",), str(tmp_path), batch_bytes=10_000))
    assert os.path.getsize(tmp_path / "a.parquet") < 10_000
    assert max(each.batch.num_rows for each in rows) <= 10
    assert joined(rows).equals(table)
    assert [each.origin.place(0).row for each in rows] == list(
        np.cumsum([1] + [each.batch.num_rows for each in rows[:-1]])
    )


def test_a_batch_has_at_most_32000_rows(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"id": np.arange(70_000)})
    assert [each.batch.num_rows for each in read(made_source("parquet", ("a.parquet",), str(tmp_path)))] == [
        32000,
        32000,
        6000,
    ]


def test_pages_without_checksums_are_told_and_those_with_are_not(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"id": range(3)})
    write(tmp_path / "b.parquet", {"id": range(3)}, write_page_checksum=False)
    write(tmp_path / "c.parquet", {"id": range(3)}, write_page_checksum=False, use_dictionary=False)
    found = survey(made_source("parquet", ("*.parquet",), str(tmp_path)))
    (remark,) = found.remarks
    assert remark.startswith("b.parquet and 1 more: no checksums present")
    assert found.warnings == ()
    assert survey(made_source("parquet", ("a.parquet",), str(tmp_path))).remarks == ()
    assert survey(made_source("parquet", ("*.parquet",), str(tmp_path), checksums=False)).remarks == ()


def test_a_table_of_very_many_columns_is_read_and_warned_of(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {f"c{i}": [i] for i in range(1500)})
    source = made_source("parquet", ("a.parquet",), str(tmp_path))
    assert [w for w in survey(source).warnings if "1500 columns" in w]
    assert read(source)[0].batch.num_columns == 1500


def test_a_path_that_is_not_utf8_is_read(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"id": [1]})
    os.rename(tmp_path / "a.parquet", os.fsencode(tmp_path) + b"/\xff.parquet")
    (rows,) = read(made_source("parquet", (".",), str(tmp_path)))
    assert rows.origin.place(0).source == "\\xff.parquet"


def test_a_file_that_changed_since_it_was_listed_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"id": range(3)})
    source = made_source("parquet", ("a.parquet",), str(tmp_path))
    found = survey(source)
    write(tmp_path / "a.parquet", {"id": range(4)})
    with pytest.raises(SourceError, match=r"a.parquet: changed while it was read"):
        list(source.read(Task(0, found.pieces), found.frozen))
    os.unlink(tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"a.parquet: cannot be read any more: No such file"):
        list(source.read(Task(0, found.pieces), found.frozen))


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"id": np.arange(70_000)})
    source = made_source("parquet", ("a.parquet",), str(tmp_path))
    found = survey(source)
    reading = source.read(Task(0, found.pieces), found.frozen)
    next(reading)
    os.utime(tmp_path / "a.parquet", ns=(0, 0))
    with pytest.raises(SourceError, match="was written to after it was listed"):
        list(reading)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(-9, 9)), st.text(max_size=9)), min_size=1, max_size=40),
    st.integers(1, 9),
    st.sampled_from(["NONE", "SNAPPY", "ZSTD"]),
    st.booleans(),
)
def test_the_parsed_row_groups_are_those_that_pyarrow_reports(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int | None, str]], size: int, codec: str, plain: bool
) -> None:
    path = tmp_path_factory.mktemp("footer") / "a.parquet"
    columns = {"n": pa.array([n for n, _ in rows], pa.int64()), "s": [s for _, s in rows], "l": [[1, 2]] * len(rows)}
    write(path, columns, row_group_size=size, compression=codec, use_dictionary=not plain)
    data = path.read_bytes()
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    metadata = pq.ParquetFile(path).metadata
    total, groups = read_groups(footer, [0, 1, 2], 3)
    assert total == metadata.num_rows
    assert len(groups) == metadata.num_row_groups
    for i, group in enumerate(groups):
        assert group.rows == metadata.row_group(i).num_rows
        for j, chunk in enumerate(group.chunks):
            theirs = metadata.row_group(i).column(j)
            start = theirs.dictionary_page_offset or theirs.data_page_offset
            assert (chunk.start, chunk.compressed) == (start, theirs.total_compressed_size)
            assert chunk.values == theirs.num_values
            assert chunk.nulls == theirs.statistics.null_count
            assert chunk.unpacked >= theirs.total_uncompressed_size


def test_a_piece_knows_the_size_of_its_rows_unpacked(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", {"text": ["x" * 1000] * 500})
    (piece,) = survey(made_source("parquet", ("a.parquet",), str(tmp_path))).pieces
    assert isinstance(piece, ParquetPiece)
    assert piece.bytes < 5000
    assert piece.row_bytes >= 1000
