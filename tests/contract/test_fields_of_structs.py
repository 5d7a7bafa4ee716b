"""What a user meets where the fields of a struct differ from file to file, in order, in number or in type."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.reading.open_dataset import open_dataset

UNION = ("--set", "input.columns_differ=union")
FIELDS = {"a": pa.int64(), "b": pa.string(), "c": pa.list_(pa.int32())}
VALUES = {"a": 1, "b": "x", "c": [1, 2]}


def arrow(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def written(write: Any) -> Any:
    def as_bytes(table: pa.Table) -> bytes:
        sink = io.BytesIO()
        write(table, sink)
        return sink.getvalue()

    return as_bytes


def jsonl(table: pa.Table) -> bytes:
    rows = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


MADE: dict[str, Any] = {
    "parquet": written(pq.write_table),
    "arrow": arrow,
    "feather": written(feather.write_feather),
    "jsonl": jsonl,
}
TYPED = pytest.mark.parametrize("kind", ["parquet", "arrow", "feather"])


def struct(order: str, **types: Any) -> pa.DataType:
    return pa.struct([(name, types.get(name, FIELDS[name])) for name in order])


def table(order: str, wrap: Any = lambda kind: kind, value: Any = lambda value: value, **types: Any) -> pa.Table:
    """Return a column of a struct whose fields are in this order, plain or within another type."""
    row = {name: VALUES[name] for name in order}
    return pa.table({"s": pa.array([value(row), None], wrap(struct(order, **types)))})


def put(desk: Any, kind: str, *tables: pa.Table) -> list[str]:
    names = [f"{number}.{kind}" for number in range(1, len(tables) + 1)]
    desk.put({name: MADE[kind](one) for name, one in zip(names, tables, strict=True)})
    return names


def refused(desk: Any, files: list[str], *options: str) -> str:
    ran = desk.convert(*files, *options)
    assert (ran.code, ran.out) == (2, "")
    return str(ran.err)


def append(desk: Any, *args: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(["append", *args, "-o", "out", "--workers", "1"])
    assert isinstance(ended.value.code, int)
    return ended.value.code, desk.capsys.readouterr().err


def struct_of(desk: Any) -> list[str]:
    return [field.name for field in open_dataset(desk.root / "out").to_arrow("train").schema.field("s").type]


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize(
    ("wrap", "value"),
    [
        (lambda one: one, lambda row: row),
        (pa.list_, lambda row: [row, row]),
        (lambda one: pa.struct([("in", one)]), lambda row: {"in": row}),
    ],
    ids=["struct", "list of structs", "struct within a struct"],
)
def test_fields_are_taken_by_name_in_the_order_of_the_first_file(desk: Any, kind: str, wrap: Any, value: Any) -> None:
    assert desk.convert(*put(desk, kind, table("ab", wrap, value), table("ba", wrap, value))).code == 0
    assert [row["s"] for row in desk.records() if row] == [value({"a": 1, "b": "x"})] * 2
    kind_read = open_dataset(desk.root / "out").to_arrow("train").schema.field("s").type
    assert "<a: int64, b: string>" in str(kind_read)


@TYPED
def test_items_of_maps_and_of_fixed_size_lists_are_taken_by_name_too(desk: Any, kind: str) -> None:
    kinds: list[tuple[Any, Any]] = [
        (lambda one: pa.map_(pa.string(), one), lambda row: [("k", row)]),
        (lambda one: pa.list_(one, 2), lambda row: [row, row]),
    ]
    for wrap, value in kinds:
        files = put(desk, kind, *(table(order, wrap, value)[:1] for order in ("ab", "ba")))
        assert desk.convert(*files, "--set", "output.if_exists=replace").code == 0
        assert [row["s"] for row in desk.records() if row] == [value({"a": 1, "b": "x"})] * 2


@TYPED
def test_integers_of_a_field_widen_as_those_of_a_column_do(desk: Any, kind: str) -> None:
    files = put(desk, kind, table("ab", a=pa.int16()), table("ba", a=pa.int64()))
    assert desk.convert(*files).code == 0
    assert [row["s"] for row in desk.records() if row] == [{"a": 1, "b": "x"}] * 2


@TYPED
def test_a_field_of_a_later_file_alone_is_refused_by_its_name_and_read_as_nulls_on_request(
    desk: Any, kind: str
) -> None:
    files = put(desk, kind, table("ab"), table("bca"))
    assert refused(desk, files) == (
        f'error: 2.{kind} has a field "c" of column "s" (list<{item(kind)}: int32>), and 1.{kind} has none; read the '
        "fields of all files, null where a file lacks one: --set input.columns_differ=union; or leave the column out: "
        "--set 'input.exclude_columns=[\"s\"]'; or convert them apart\n"
    )
    assert desk.convert(*files, *UNION).code == 0
    assert [row["s"] for row in desk.records() if row] == [{"a": 1, "b": "x", "c": None}, VALUES]
    assert struct_of(desk) == ["a", "b", "c"]


def item(kind: str) -> str:
    return "element" if kind == "parquet" else "item"


@TYPED
def test_a_field_that_a_later_file_lacks_is_refused_by_its_name(desk: Any, kind: str) -> None:
    deep: Any = lambda one: pa.struct([("in", one)])  # noqa: E731
    files = put(desk, kind, *(table(order, deep, lambda row: {"in": row}) for order in ("ab", "a")))
    assert refused(desk, files).startswith(
        f'error: 2.{kind} has no field "in/b" of column "s", and 1.{kind} has it (string); read the fields of all files'
    )
    assert desk.convert(*files, *UNION).code == 0
    assert [row["s"] for row in desk.records() if row] == [{"in": {"a": 1, "b": "x"}}, {"in": {"a": 1, "b": None}}]


@TYPED
def test_a_field_that_some_lists_lack_is_refused_also_with_union_as_lists_hold_no_null(desk: Any, kind: str) -> None:
    files = put(desk, kind, *(table(order, pa.list_, lambda row: [row]) for order in ("ab", "a")))
    for options in ((), UNION):
        assert refused(desk, files, *options) == (
            f'error: 2.{kind} has no field "b" of column "s", and 1.{kind} has it (string); leave the column out: '
            "--set 'input.exclude_columns=[\"s\"]'; or convert them apart\n"
        )


@TYPED
@pytest.mark.parametrize("options", [(), UNION])
def test_a_field_of_two_types_is_refused_by_its_name_and_the_files_that_differ(
    desk: Any, kind: str, options: tuple[str, ...]
) -> None:
    files = put(desk, kind, table("ab"), table("ba"), table("ba", b=pa.binary()))
    assert refused(desk, files, *options) == (
        f'error: field "b" of column "s" is string in 1.{kind}, and binary in 3.{kind}; write one of them again with '
        "the other's type, or convert them apart\n"
    )


@TYPED
def test_an_append_takes_fields_in_another_order_and_with_union_without_some(desk: Any, kind: str) -> None:
    first, second, third = put(desk, kind, table("abc"), table("cab", a=pa.int8()), table("ca"))
    assert desk.convert(first).code == 0
    assert append(desk, second) == (0, "")
    assert append(desk, third)[0] == 2
    assert append(desk, third, *UNION)[0] == 0
    assert [row["s"] for row in desk.records() if row] == [VALUES, VALUES, {**VALUES, "b": None}]
    assert struct_of(desk) == ["a", "b", "c"]


def test_a_dictionary_in_one_file_and_a_view_of_text_in_another_are_one_column(desk: Any) -> None:
    kinds = (pa.dictionary(pa.int8(), pa.string()), pa.string_view())
    tables = [
        pa.table({"q": pa.array(["v", None], kind), "s": pa.array([{"b": "x"}, None], pa.struct([("b", kind)]))})
        for kind in kinds
    ]
    for files in (put(desk, "arrow", *tables), put(desk, "arrow", *reversed(tables))):
        assert desk.convert(*files, "--set", "output.if_exists=replace").code == 0
        assert desk.records() == [{"q": "v", "s": {"b": "x"}}, {}] * 2
