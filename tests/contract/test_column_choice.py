"""What a user of the command line meets when choosing columns: names and globs to keep, and to leave out."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.cli import main


def parquet(columns: Any) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


TABLE = {"id": [1, 2], "raw_a": [3, 4], "raw_b": [5, 6], "name": ["x", "y"]}
FILES: dict[str, Any] = {
    "a.csv": b"id,raw_a,raw_b,name\n1,3,5,x\n2,4,6,y\n",
    "a.parquet": parquet(TABLE),
}


def columns_of(desk: Any) -> list[str]:
    return sorted(desk.records()[0])


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--exclude-columns", "name"], ["id", "raw_a", "raw_b"]),
        (["--exclude-columns", "raw_*"], ["id", "name"]),
        (["--columns", "raw_*,id"], ["id", "raw_a", "raw_b"]),
        (["--columns", "raw_?", "--exclude-columns", "raw_b"], ["raw_a"]),
        (["--set", "input.exclude_columns=[id, 'r*']"], ["name"]),
    ],
)
def test_columns_are_kept_and_left_out_by_names_and_globs(
    desk: Any, file: str, options: list[str], kept: list[str]
) -> None:
    desk.put({file: FILES[file]})
    assert desk.convert(file, *options).code == 0
    assert columns_of(desk) == kept


def test_the_arrays_of_a_numpy_file_are_left_out_by_name(desk: Any) -> None:
    np.savez("a.npz", x=np.arange(3), y=np.arange(3), z=np.arange(3))
    assert desk.convert("a.npz", "--set", "input.rows=true", "--exclude-columns", "y,z").code == 0
    assert columns_of(desk) == ["x"]


def test_a_column_with_the_name_of_a_glob_is_that_column(desk: Any) -> None:
    desk.put({"a.csv": b"a*,ab,id\n1,2,3\n"})
    assert desk.convert("a.csv", "--exclude-columns", "a*").code == 0
    assert columns_of(desk) == ["ab", "id"]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            ["--exclude-columns", "nam"],
            'input.exclude_columns names "nam", which is not a column; did you mean "name"?',
        ),
        (["--exclude-columns", "x_*"], 'input.exclude_columns: "x_*" matches no column'),
        (["--columns", "x_*"], 'input.columns: "x_*" matches no column'),
        (["--exclude-columns", "*"], "input.exclude_columns leaves no column; keep at least one"),
    ],
)
def test_a_name_or_a_glob_that_matches_nothing_is_an_error(
    desk: Any, file: str, options: list[str], error: str
) -> None:
    desk.put({file: FILES[file]})
    ran = desk.convert(file, *options)
    assert (ran.code, ran.err.strip().removeprefix("error: ").removeprefix(f"{file}: ")) == (2, error)


def test_a_column_of_one_file_only_is_left_out(desk: Any) -> None:
    desk.put({"a.parquet": parquet(TABLE), "b.parquet": parquet({**TABLE, "more": [1, 2]})})
    ran = desk.convert("a.parquet", "b.parquet")
    fix = "--set 'input.exclude_columns=[\"more\"]'"
    message = (
        f'b.parquet has a column "more" (int64), and a.parquet has none; read the columns of all files, null where a '
        f"file lacks one: --set input.columns_differ=union; or leave the column out: {fix}; or convert them apart"
    )
    assert (ran.code, ran.err) == (2, f"error: {message}\n")
    assert desk.convert("a.parquet", "b.parquet", "--exclude-columns", "more").code == 0
    assert columns_of(desk) == sorted(TABLE)


def test_an_append_that_leaves_the_same_columns_out_has_nothing_to_do(desk: Any) -> None:
    desk.put(FILES)
    assert desk.convert("a.csv", "--exclude-columns", "raw_*").code == 0
    with pytest.raises(SystemExit) as ended:
        main(["append", "a.csv", "-o", "out", "--exclude-columns", "raw_*"])
    assert ended.value.code == 0
    assert desk.capsys.readouterr().out.startswith("Nothing to do: out holds the file")
