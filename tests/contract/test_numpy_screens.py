"""What a user of the command line meets with NumPy files that are tables."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from shardmill.pipelines import open_dataset
from shardmill.pipelines.cli import main

pytestmark = pytest.mark.usefixtures("without_engine")

X, Y = np.arange(24, dtype=np.uint8).reshape(6, 2, 2), np.arange(6)


def warnings(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("Warning")]


def run_program(err: str) -> None:
    """Run the program that an error prints, as it stands."""
    lines = [line for line in err.splitlines() if line.startswith("  ")]
    exec(textwrap.dedent("\n".join(lines)), {})


MNIST = {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]}


def assert_mnist(path: str) -> None:
    for split, rows in (("train", 6), ("test", 2)):
        table = open_dataset(path).to_arrow(split)
        assert table.column("y").to_pylist() == Y[:rows].tolist()
        assert table.column("x").to_pylist() == X[:rows].reshape(rows, 4).tolist()


def test_a_file_of_training_and_test_arrays_is_refused_with_the_program_that_keeps_all(desk: Any) -> None:
    np.savez(desk.root / "mnist.npz", **MNIST)
    screen = desk.convert("mnist.npz")
    assert (screen.code, screen.out) == (2, "")
    assert screen.err == (
        "error: mnist.npz: x_train and y_train: 6 rows each, of different types; x_test and y_test: 2 rows each, of "
        "different types: they look like columns of tables; convert them together, in Python (or keep one record "
        "with all arrays: --set input.rows=false):\n"
        "  import numpy as np\n"
        "  from shardmill.pipelines import append, convert\n"
        "  arrays = np.load('mnist.npz')\n"
        "  convert(data={'x': arrays['x_train'], 'y': arrays['y_train']}, output='out', output__split='train')\n"
        "  append(data={'x': arrays['x_test'], 'y': arrays['y_test']}, output='out', output__split='test')\n"
    )
    run_program(screen.err)
    assert_mnist("out")


def test_a_file_of_such_arrays_is_one_record_where_that_is_asked_for(desk: Any) -> None:
    np.savez(desk.root / "mnist.npz", **MNIST)
    screen = desk.convert("mnist.npz", "--set", "input.rows=false")
    assert (screen.code, warnings(screen.out)) == (0, [])
    assert len(desk.records()) == 1


def test_a_file_of_columns_of_one_length_is_refused_with_the_option_that_makes_rows(desk: Any) -> None:
    np.savez(desk.root / "a.npz", x=X, y=Y)
    screen = desk.convert("a.npz")
    assert (screen.code, screen.err) == (
        2,
        "error: a.npz: x and y: 6 rows each, of different types: they look like columns of one table; choose: --set "
        "input.rows=true (6 rows); or keep one record with all arrays: --set input.rows=false\n",
    )
    assert desk.convert("a.npz", "--set", "input.rows=true").code == 0
    assert [row["y"] for row in desk.records()] == Y.tolist()


@pytest.mark.parametrize("name", ["one.npy", "one.npz"])
def test_a_file_of_arrays_of_one_length_does_too(desk: Any, name: str) -> None:
    (np.save if name.endswith("npy") else np.savez)(desk.root / name, X)
    (warning,) = warnings(desk.convert(name).out)
    assert warning.endswith("if the first axis is the row: --set input.rows=true (6 rows)")


def test_several_npy_files_are_a_record_each_with_one_warning_of_all(desk: Any) -> None:
    (desk.root / "in").mkdir()
    for number in range(3):
        np.save(desk.root / f"in/{number}.npy", X)
    said = [
        "Warning: in/0.npy and 2 more: each file is one record with its whole array; if the first axis is the row: "
        "--set input.rows=true (6 rows in the first file)"
    ]
    assert warnings(desk.convert("in", "--dry-run").out) == warnings(desk.convert("in").out) == said
    again = ("--set", "output.if_exists=replace")
    assert warnings(desk.convert("in", "--set", "input.rows=false", *again).out) == []
    assert desk.convert("in", "--set", "input.rows=true", *again).code == 0
    assert len(desk.records()) == 18


def test_several_npz_files_and_one_row_are_records_without_a_word(desk: Any) -> None:
    for number in range(3):
        np.savez(desk.root / f"{number}.npz", X)
    np.save(desk.root / "row.npy", X[:1])
    assert warnings(desk.convert("0.npz", "1.npz", "2.npz").out) == []
    assert warnings(desk.convert("row.npy", "--set", "output.if_exists=replace").out) == []


def test_rows_of_two_lengths_name_the_columns_to_keep(desk: Any) -> None:
    np.savez(desk.root / "mnist.npz", x=X, y=Y, z=Y[:2])
    screen = desk.convert("mnist.npz", "--set", "input.rows=true")
    assert (screen.code, 'keep some: --set \'input.columns=["x", "y"]\', or --set' in screen.err) == (1, True)


@pytest.mark.parametrize("rows", ["true", "false"])
@pytest.mark.parametrize("form", ["{0}_{1}.npy", "{1}/{0}.npy", "data/{1}-{0}.npy"])
def test_pairs_of_files_are_refused_with_the_program_that_converts_all_of_them(desk: Any, rows: str, form: str) -> None:
    names = [form.format(*name.split("_")) for name in MNIST]
    for name, array in zip(names, MNIST.values(), strict=True):
        (desk.root / name).parent.mkdir(exist_ok=True)
        np.save(desk.root / name, array)
    screen = desk.convert(*names, "--set", f"input.rows={rows}")
    assert screen.code == 2
    assert screen.err.startswith(f"error: {names[0]} and {names[1]}: 6 rows each, of different types; {names[2]} and")
    run_program(screen.err)
    assert_mnist("out")


def test_splits_of_as_many_rows_are_not_mixed_up(desk: Any) -> None:
    for split, factor in (("train", 1), ("val", 2)):
        (desk.root / split).mkdir()
        np.save(desk.root / split / "x.npy", X * factor)
        np.save(desk.root / split / "y.npy", Y * factor)
    run_program(desk.convert("train", "val").err)
    assert open_dataset("out").to_arrow("val").column("y").to_pylist() == (Y * 2).tolist()


def test_pairs_that_state_no_split_become_a_dataset_each(desk: Any) -> None:
    for name, array in {"a": X, "b": Y, "c": X[:2], "d": Y[:2]}.items():
        np.save(desk.root / f"{name}.npy", array)
    run_program(desk.convert("a.npy", "b.npy", "c.npy", "d.npy").err)
    assert open_dataset("out/a").to_arrow("train").column("b").to_pylist() == Y.tolist()
    assert open_dataset("out/c").to_arrow("train").column("d").to_pylist() == Y[:2].tolist()


def test_labels_of_another_length_are_refused_with_both_lengths_and_the_program_once_they_fit(desk: Any) -> None:
    np.save(desk.root / "X.npy", X)
    np.save(desk.root / "y.npy", Y[:5])
    screen = desk.convert("X.npy", "y.npy")
    assert (screen.code, screen.err) == (
        2,
        "error: X.npy has 6 rows, y.npy has 5 rows: they look like columns of one table; they must be of one length: "
        "save both again with the same rows, in the same order; separate files are not joined, so convert "
        "them together, in Python:\n"
        "  import numpy as np\n"
        "  from shardmill.pipelines import convert\n"
        "  convert(data={'X': np.load('X.npy', mmap_mode='r'), 'y': np.load('y.npy', mmap_mode='r')}, output='out')\n",
    )
    np.save(desk.root / "y.npy", Y)
    run_program(screen.err)
    assert [row["y"] for row in desk.records()] == Y.tolist()


def test_an_append_of_pairs_is_refused_with_a_program_that_appends(desk: Any) -> None:
    np.save(desk.root / "x.npy", X)
    np.save(desk.root / "y.npy", Y)
    run_program(desk.convert("x.npy", "y.npy").err)
    np.save(desk.root / "x.npy", X + 1)
    with pytest.raises(SystemExit):
        main(["append", "x.npy", "y.npy", "-o", "out"])
    run_program(desk.capsys.readouterr().err)
    assert [row["y"] for row in desk.records()] == [*Y, *Y]
