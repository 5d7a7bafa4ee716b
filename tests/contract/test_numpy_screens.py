"""What a user of the command line meets with NumPy files that are tables."""

from __future__ import annotations

import re
import shlex
from typing import Any

import numpy as np
import pytest
from shardmill.pipelines import convert, open_dataset

pytestmark = pytest.mark.usefixtures("without_engine")

X, Y = np.arange(24, dtype=np.uint8).reshape(6, 2, 2), np.arange(6)


def warnings(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("Warning")]


def test_a_file_of_arrays_of_two_lengths_says_how_it_becomes_rows_and_the_command_does_it(desk: Any) -> None:
    np.savez(desk.root / "mnist.npz", x_train=X, y_train=Y, x_test=X[:2], y_test=Y[:2])
    screen = desk.convert("mnist.npz")
    (warning,) = warnings(screen.out)
    assert warning == (
        "Warning: mnist.npz: is one record with all of its arrays; if the first axis is the row: --set input.rows=true "
        '--set \'input.columns=["x_train", "y_train"]\' (6 rows), or --set input.rows=true --set '
        '\'input.columns=["x_test", "y_test"]\' (2 rows)'
    )
    options = shlex.split(warning.partition("the row: ")[2].partition(" (6 rows)")[0])
    screen = desk.convert("mnist.npz", *options, "--set", "output.if_exists=replace")
    assert (screen.code, warnings(screen.out)) == (0, [])
    assert [row["y_train"] for row in desk.records()] == Y.tolist()


@pytest.mark.parametrize("name", ["one.npy", "one.npz"])
def test_a_file_of_arrays_of_one_length_does_too(desk: Any, name: str) -> None:
    (np.save if name.endswith("npy") else np.savez)(desk.root / name, X)
    (warning,) = warnings(desk.convert(name).out)
    assert warning.endswith("if the first axis is the row: --set input.rows=true (6 rows)")


def test_several_files_and_one_row_are_records_without_a_word(desk: Any) -> None:
    for number in range(3):
        np.save(desk.root / f"{number}.npy", X)
    np.save(desk.root / "row.npy", X[:1])
    assert warnings(desk.convert("0.npy", "1.npy", "2.npy").out) == []
    assert warnings(desk.convert("row.npy", "--set", "output.if_exists=replace").out) == []


def test_rows_of_two_lengths_name_the_columns_to_keep(desk: Any) -> None:
    np.savez(desk.root / "mnist.npz", x=X, y=Y, z=Y[:2])
    screen = desk.convert("mnist.npz", "--set", "input.rows=true")
    assert (screen.code, 'keep some: --set \'input.columns=["x", "y"]\', or --set' in screen.err) == (1, True)


@pytest.mark.parametrize("rows", ["true", "false"])
def test_pairs_of_files_are_refused_with_the_call_that_joins_them(desk: Any, rows: str) -> None:
    for name, array in {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]}.items():
        np.save(desk.root / f"{name}.npy", array)
    screen = desk.convert("x_test.npy", "x_train.npy", "y_test.npy", "y_train.npy", "--set", f"input.rows={rows}")
    assert screen.code == 2
    assert screen.err.startswith("error: x_train.npy and y_train.npy: 6 rows each, of different types: they look like")
    (call,) = re.findall(r"convert\(.*\)", screen.err)
    eval(call, {"convert": convert, "np": np})
    assert [row["y_train"] for row in open_dataset("out").to_table("train").to_pylist()] == Y.tolist()
