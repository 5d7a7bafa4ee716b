"""What a user of the command line meets where the columns of files differ: `input.columns_differ`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.cli import main
from shardmill.transforms.format.examples.decode_examples import Example

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a49444154789c636000000002000148afa4710000000049454e44ae426082"
)
"""One grey pixel."""

UNION = ("--set", "input.columns_differ=union")


def parquet(columns: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def arrow(columns: Any) -> bytes:
    table, sink = pa.table(columns), io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def csv(columns: Any) -> bytes:
    table = pa.table(columns).to_pydict()
    lines = [
        ",".join(table),
        *(",".join("" if c is None else str(c) for c in row) for row in zip(*table.values(), strict=True)),
    ]
    return "\n".join([*lines, ""]).encode()


MADE = {"csv": csv, "parquet": parquet, "arrow": arrow}
FORMATS = pytest.mark.parametrize("kind", MADE)
TABLES: dict[str, Any] = {
    "a": {"id": pa.array([1, 2]), "x": pa.array([1, 2], pa.int32())},
    "b": {"y": ["foo", None], "x": [1.5, 2.5], "id": pa.array([3, 4], pa.int16())},
    "c": {"id": [5]},
}
ROWS = [
    {"id": [1], "x": [1.0]},
    {"id": [2], "x": [2.0]},
    {"id": [3], "x": [1.5], "y": [b"foo"]},
    {"id": [4], "x": [2.5]},
    {"id": [5]},
]


def put(desk: Any, kind: str, tables: Any = TABLES) -> list[str]:
    desk.put({f"{name}.{kind}": MADE[kind](table) for name, table in tables.items()})
    return [f"{name}.{kind}" for name in tables]


def parsed(root: Path) -> list[dict[str, Any]]:
    """Return the records as protobuf parses them."""
    rows = []
    for path in sorted(root.glob("*.tfrecord")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            size = int.from_bytes(data[at : at + 8], "little")
            features = Example.FromString(data[at + 12 : at + 12 + size]).features.feature
            kinds = {name: getattr(one, one.WhichOneof("kind")).value for name, one in features.items()}
            rows.append({name: list(values) for name, values in sorted(kinds.items())})
            at += 16 + size
    return rows


def reasons(screen: Any) -> dict[str, str]:
    lines = screen.out[screen.out.index("feature ") :].splitlines()[1:]
    return {line.split()[0]: line for line in lines if line}


@FORMATS
def test_a_column_that_a_file_lacks_is_null_in_its_rows(desk: Any, kind: str) -> None:
    assert desk.convert(*put(desk, kind), *UNION).code == 0
    assert parsed(desk.root / "out") == ROWS


@FORMATS
def test_one_worker_and_two_write_the_same_bytes(desk: Any, kind: str) -> None:
    files = put(desk, kind)
    for out, options in {"one": ["--workers", "1"], "two": ["--workers", "2"]}.items():
        with pytest.raises(SystemExit) as ended:
            main(["convert", *files, *UNION, "-o", out, *options])
        assert ended.value.code == 0
    shards = [sorted(path.read_bytes() for path in (desk.root / out).glob("*.tfrecord")) for out in ("one", "two")]
    assert shards[0] == shards[1]


@FORMATS
def test_the_dry_run_names_a_file_that_lacks_a_column(desk: Any, kind: str) -> None:
    found = reasons(desk.convert(*put(desk, kind), *UNION, "--dry-run"))
    assert list(found) == ["id", "x", "y"]
    assert " no " in found["id"]
    assert "missing" not in found["id"]
    assert found["x"].endswith(f"; missing in c.{kind}")
    assert found["y"].endswith(f"; missing in a.{kind} and 1 more")


@FORMATS
def test_without_the_key_such_files_are_refused_with_the_option_that_reads_them(desk: Any, kind: str) -> None:
    screen = desk.convert(*put(desk, kind))
    assert screen.code == 2
    assert "; or read the columns of all files" in screen.err or "; read the columns of all files" in screen.err
    assert "--set input.columns_differ=union" in screen.err


@FORMATS
def test_a_column_that_one_file_lacks_is_refused_with_the_option_and_one_of_no_file_by_its_name(
    desk: Any, kind: str
) -> None:
    for names in ("ac", "ca"):
        files = put(desk, kind, {name: TABLES[name] for name in names})
        screen = desk.convert(*files, "--columns", "x")
        assert (screen.code, UNION[1] in screen.err, f"c.{kind}" in screen.err) == (2, True, True), screen.err
        for options in (["--columns", "y"], ["--set", "schema.columns.y.type=string"]):
            assert 'names "y", which is not a column; there are: id, x' in desk.convert(*files, *options).err


@FORMATS
def test_columns_of_some_files_are_chosen_left_out_and_declared(desk: Any, kind: str) -> None:
    files = put(desk, kind)
    assert desk.convert(*files, *UNION, "--columns", "y,id").code == 0
    assert parsed(desk.root / "out") == [{k: v for k, v in row.items() if k != "x"} for row in ROWS]
    declared = ["--set", "schema.columns.y.type=binary", "--exclude-columns", "x", "--set", "output.if_exists=replace"]
    assert desk.convert(*files, *UNION, *declared).code == 0
    assert [feature["type"] for feature in manifest(desk)["schema"]] == ["int64", "binary"]


def manifest(desk: Any) -> Any:
    return json.loads((desk.root / "out/manifest.json").read_text())


@FORMATS
def test_a_file_with_none_of_the_columns_gives_empty_records(desk: Any, kind: str) -> None:
    files = put(desk, kind)
    ran = desk.convert(*files, *UNION, "--columns", "y")
    assert ran.code == 0
    assert parsed(desk.root / "out") == [{k: v for k, v in row.items() if k == "y"} for row in ROWS]


@FORMATS
def test_files_without_a_common_column_are_named_in_a_warning(desk: Any, kind: str) -> None:
    files = put(desk, kind, {"a": {"id": [1]}, "b": {"id": [2], "x": [1]}, "c": {"other": ["q"]}})
    ran = desk.convert(*files, *UNION)
    assert ran.code == 0
    assert (
        f"c.{kind}: has no column, ids apart, in common with the other files: is it of the same table?"
        in ran.out + ran.err
    )
    assert parsed(desk.root / "out") == [{"id": [1]}, {"id": [2], "x": [1]}, {"other": [b"q"]}]


@FORMATS
@pytest.mark.parametrize("option", ["--columns", "--exclude-columns"])
def test_a_name_that_no_file_has_is_an_error(desk: Any, kind: str, option: str) -> None:
    ran = desk.convert(*put(desk, kind), *UNION, option, "idd")
    assert (ran.code, ran.err.endswith('names "idd", which is not a column; did you mean "id"?\n')) == (2, True)


@FORMATS
def test_declaring_a_column_that_no_file_has_is_an_error(desk: Any, kind: str) -> None:
    ran = desk.convert(*put(desk, kind), *UNION, "--set", "schema.columns.idd.type=string")
    assert (ran.code, ran.err) == (
        2, 'error: schema.columns names "idd", which is not a column; did you mean "id"?\n'
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_that_is_no_float_is_a_reject_with_its_place(desk: Any, kind: str, sign: int) -> None:
    exact = 1 << 53
    files = put(desk, kind, {"a": {"x": [sign * exact, None, sign * (exact + 1)]}, "b": {"x": [0.5]}})
    ran = desk.convert(*files, *UNION, "--max-rejects", "1", "--set", "schema.columns.x.as=bytes")
    assert ran.code == 0
    assert [row["x"] for row in desk.records() if row] == [sign * exact, 0.5]
    (line,) = (desk.root / "out/rejects/00000001.jsonl").read_text().splitlines()
    reject = json.loads(line)
    (error,) = reject["errors"]
    assert (reject["source"], reject["row"]) == (f"a.{kind}", 3)
    assert (error["column"], error["code"], error["value"]) == ("x", "PRECISION_LOSS", str(sign * (exact + 1)))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_what_a_nested_column_lacks_is_null_as_a_whole_or_in_some_fields(desk: Any, kind: str) -> None:
    files = put(desk, kind, {"a": {"id": [1]}, "b": {"id": [2], "s": [{"k": 7, "l": [1, 2]}]}})
    assert desk.convert(*files, *UNION).code == 0
    assert desk.records() == [{"id": 1}, {"id": 2, "s": {"k": 7, "l": [1, 2]}}]
    files = put(desk, kind, {"a": {"s": [{"k": 1}]}, "b": {"s": [{"k": 2, "m": 3}]}})
    ran = desk.convert(*files, *UNION, "--set", "output.if_exists=replace")
    assert ran.code == 0
    assert desk.records() == [{"s": {"k": 1, "m": None}}, {"s": {"k": 2, "m": 3}}]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_column_without_a_type_takes_that_of_the_other_files(desk: Any, kind: str) -> None:
    tables = {
        "a": {"n": pa.nulls(1), "l": pa.array([[]], pa.list_(pa.null()))},
        "b": {"n": ["q"], "l": pa.array([[1]], pa.list_(pa.int32()))},
        "c": {"n": ["r"], "l": pa.array([[1.5]], pa.list_(pa.float64()))},
    }
    assert desk.convert(*put(desk, kind, tables), *UNION).code == 0
    assert parsed(desk.root / "out") == [{"l": []}, {"l": [1.0], "n": [b"q"]}, {"l": [1.5], "n": [b"r"]}]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_lists_of_wide_integers_are_not_read_as_floats(desk: Any, kind: str) -> None:
    ran = desk.convert(*put(desk, kind, {"a": {"l": [[1]]}, "b": {"l": [[0.5]]}}), *UNION)
    assert ran.code == 2
    assert 'column "l" is list<' in ran.err
    assert "columns_differ" not in ran.err


def test_files_without_a_header_match_by_number(desk: Any) -> None:
    desk.put({"a.csv": b"1,2\n", "b.csv": b"3,4,x\n"})
    assert desk.convert("a.csv", "b.csv", "--no-header", *UNION).code == 0
    assert parsed(desk.root / "out") == [
        {"column_0": [1], "column_1": [2]},
        {"column_0": [3], "column_1": [4], "column_2": [b"x"]},
    ]


def test_a_row_of_another_width_than_its_own_header_is_a_reject(desk: Any) -> None:
    desk.put({"a.csv": b"id,x\n1,2\n3\n", "b.csv": b"id,x,y\n4,5,6\n7,8\n"})
    assert desk.convert("a.csv", "b.csv", *UNION, "--max-rejects", "2").code == 0
    lines = (desk.root / "out/rejects/00000001.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [(one["source"], one["row"], one["errors"][0]["expected"]) for one in found] == [
        ("a.csv", 2, "2 columns"),
        ("b.csv", 2, "3 columns"),
    ]


def test_a_blank_line_is_a_row_of_a_file_of_one_column_alone(desk: Any) -> None:
    desk.put({"a.csv": b"id,x\n\n1,2\n", "b.csv": b"id\n\n5\n"})
    ran = desk.convert("a.csv", "b.csv", *UNION, "--dry-run")
    assert [line for line in ran.out.splitlines() if "blank" in line] == ["Warning: a.csv: 1 blank line skipped"]
    assert desk.convert("a.csv", "b.csv", *UNION).code == 0
    assert parsed(desk.root / "out") == [{"id": [1], "x": [2]}, {}, {"id": [5]}]


def test_a_cell_that_does_not_fit_is_rejected_with_its_own_column(desk: Any) -> None:
    desk.put({"a.csv": b"id,x\n1,2\n", "b.csv": b"y,id\nq,1\nr,oops\n"})
    options = ["--set", "schema.columns.id.type=int64", "--max-rejects", "1"]
    assert desk.convert("a.csv", "b.csv", *UNION, *options).code == 0
    (line,) = (desk.root / "out/rejects/00000001.jsonl").read_text().splitlines()
    reject = json.loads(line)
    assert (reject["source"], reject["row"], reject["errors"][0]["column"]) == ("b.csv", 2, "id")
    assert reject["errors"][0]["value"] == "oops"


def test_json_lines_have_no_such_key_since_they_are_always_read_so(desk: Any) -> None:
    desk.put({"a.jsonl": b'{"a": 1}\n', "b.jsonl": b'{"b": 2}\n'})
    ran = desk.convert("a.jsonl", "b.jsonl", *UNION)
    assert ran.code == 2
    assert "columns_differ" in ran.err
    assert desk.convert("a.jsonl", "b.jsonl").code == 0


def append(desk: Any, *args: str) -> Any:
    desk.capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["append", *args, "-o", "out"])
    out, err = desk.capsys.readouterr()
    return ended.value.code, out, err


@FORMATS
@pytest.mark.parametrize("options", [[], ["--set", "schema.constants.origin=web"]], ids=["", "with a step"])
def test_an_append_whose_files_lack_a_nullable_column_has_nulls_there(desk: Any, kind: str, options: list[str]) -> None:
    files = put(desk, kind)
    assert desk.convert(*files, *UNION, *options).code == 0
    desk.put({f"d.{kind}": MADE[kind]({"x": [7.5], "id": pa.array([6])})})
    code, _, err = append(desk, f"d.{kind}", *options)
    assert (code, "read missing columns as nulls: --set input.columns_differ=union; or convert" in err) == (2, True)
    code, out, err = append(desk, f"d.{kind}", *UNION, *options, "--dry-run")
    assert (code, err) == (0, "")
    assert "Detected: y: a column that no file has, so null in all rows" in out
    assert append(desk, f"d.{kind}", *UNION, *options)[0] == 0
    extra = {"origin": [b"web"]} if options else {}
    rows = [row | extra for row in [*ROWS, {"id": [6], "x": [7.5]}]]
    assert sorted(parsed(desk.root / "out"), key=str) == sorted(rows, key=lambda row: str(dict(sorted(row.items()))))


@FORMATS
def test_an_append_may_name_columns_that_the_dataset_alone_has(desk: Any, kind: str) -> None:
    options = [*UNION, "--columns", "id,x,y", "--set", "schema.columns.y.type=string"]
    assert desk.convert(*put(desk, kind), *options).code == 0
    desk.put({f"d.{kind}": MADE[kind]({"id": pa.array([6]), "zz": [1]})})
    assert append(desk, f"d.{kind}", *options)[0] == 0
    assert {"id": [6]} in parsed(desk.root / "out")
    desk.put({f"e.{kind}": MADE[kind]({"id": pa.array([7]), "zz": [1]})})
    code, _, err = append(desk, f"e.{kind}", *UNION, "--columns", "id,yy")
    assert (code, 'input.columns names "yy", which is not a column' in err) == (2, True)


@FORMATS
def test_an_append_whose_files_lack_a_column_without_nulls_is_refused(desk: Any, kind: str) -> None:
    assert desk.convert(*put(desk, kind), *UNION).code == 0
    desk.put({f"d.{kind}": MADE[kind]({"x": [7.5]})})
    code, _, err = append(desk, f"d.{kind}", *UNION)
    assert (code, "columns_differ" in err) == (2, False)
    assert "1 feature missing" in err


LABEL = ("--set", "schema.columns.kind.label=true")


@FORMATS
def test_an_append_without_the_label_column_names_the_file_and_takes_one_class_for_all_rows(
    desk: Any, kind: str
) -> None:
    tables = {"a": {"id": [1, 2], "kind": ["cat", "dog"]}, "d": {"id": [3]}, "e": {"id": [4]}}
    first, *more = put(desk, kind, tables)
    assert desk.convert(first, *LABEL).code == 0
    code, _, err = append(desk, *more)
    said, end = (
        f'error: d.{kind} and 1 more: no column "kind", which is a label of ',
        "--set schema.constants.kind=VALUE",
    )
    assert (code, err.startswith(said), err.rstrip().endswith(end)) == (2, True, True)
    code, _, err = append(desk, *more, *LABEL)  # who wrote it is told that
    assert (code, err) == (2, 'error: schema.columns names "kind", which is not a column; did you mean "id"?\n')
    assert append(desk, *more, "--set", "schema.constants.kind=dog")[0] == 0
    assert [row["kind"] for row in parsed(desk.root / "out")] == [[0], [1], [1], [1]]


@pytest.mark.parametrize("rule", ["image=path", "file=path", "null=error"])
def test_an_append_names_the_file_that_lacks_a_column_of_another_rule(desk: Any, rule: str) -> None:
    desk.put({"1.png": PNG, "a.csv": b"id,pic\n1,1.png\n", "d.csv": b"id\n2\n"})
    assert desk.convert("a.csv", "--set", f"schema.columns.pic.{rule}").code == 0
    code, _, err = append(desk, "d.csv")
    assert (code, err.startswith('error: d.csv: no column "pic", which is a column of ')) == (2, True)


@FORMATS
def test_a_constant_can_be_a_label(desk: Any, kind: str) -> None:
    put(desk, kind, {"d": {"id": [3]}})
    assert desk.convert(f"d.{kind}", "--set", "schema.constants.kind=dog", *LABEL).code == 0
    assert desk.records() == [{"id": 3, "kind": "dog"}]


@FORMATS
@pytest.mark.parametrize(
    ("table", "args", "warning"),
    [
        ({"id": pa.array([], pa.int64())}, (), "no rows were read: generation 1 holds no record"),
        ({"id": [1, 2]}, ("--where", "id > 2"), "none of the 2 rows became a record: generation 1 holds no record"),
    ],
)
def test_a_run_that_writes_no_record_warns_of_it(
    desk: Any, kind: str, table: Any, args: tuple[str, ...], warning: str
) -> None:
    put(desk, kind, {"a": table, "b": {"id": [5]}})
    screen = desk.convert(f"a.{kind}", *args)
    assert (screen.code, f"Warning: {warning}\n" in screen.out) == (0, True)
    assert desk.convert(f"b.{kind}", "--overwrite").code == 0
    code, out, _ = append(desk, f"a.{kind}", *args)
    assert (code, f"Warning: {warning.replace('1 holds', '3 adds')}\n" in out) == (0, True)


@FORMATS
def test_an_append_with_the_key_skips_the_files_that_the_dataset_has(desk: Any, kind: str) -> None:
    desk.put({f"a.{kind}": MADE[kind](TABLES["a"])})
    assert desk.convert(f"a.{kind}").code == 0
    code, out, _ = append(desk, f"a.{kind}", *UNION)
    assert (code, out.startswith("Nothing to do")) == (0, True)
