"""What a user of the command line meets with NumPy files that are tables."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.pipelines.cli import main

GUIDE = Path(__file__).parents[2] / "docs/guide.md"
X, Y = np.arange(24, dtype=np.uint8).reshape(6, 2, 2), np.arange(6)


def warnings(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith("Warning")]


MNIST = {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:2]}


def assert_mnist(path: str) -> None:
    for split, rows in (("train", 6), ("test", 2)):
        table = open_dataset(path).to_arrow(split)
        assert table.column("y").to_pylist() == Y[:rows].tolist()
        assert table.column("x").to_pylist() == X[:rows].reshape(rows, 4).tolist()


SPLITS = {
    "as Keras has them": (MNIST, "", "x", "y"),
    "as MedMNIST has them": (
        {"train_images": X, "train_labels": Y[:, None], "val_images": X[:2], "val_labels": Y[:2, None],
         "test_images": X[:2], "test_labels": Y[:2, None]},
        "", "images", "labels",
    ),
    "of one length": ({"X_train": X, "y_train": Y, "X_valid": X, "y_valid": Y}, "", "X", "y"),
    "with another": ({**MNIST, "mean": np.zeros(3)}, " (without mean)", "x", "y"),
}  # fmt: skip


def run_python(err: str, begin: str) -> None:
    """Run the line of Python between the beginning and the next choice."""
    exec(err.partition(begin)[2].partition("; or keep one record")[0].partition("; if it is meant")[0], {})


@pytest.mark.parametrize("case", SPLITS)
def test_a_file_of_arrays_of_splits_is_refused_with_the_lines_that_convert_each(desk: Any, case: str) -> None:
    arrays, without, x, y = SPLITS[case]
    np.savez_compressed(desk.root / "mnist.npz", **arrays)
    screen = desk.convert("mnist.npz")
    assert (screen.code, screen.out) == (2, "")
    assert "different types: they look like columns of" in screen.err
    run_python(screen.err, f"of splits by their names; to convert each split, in Python{without}: ")
    splits = {name.replace(x, "").strip("_") for name in arrays if x in name}
    dataset = open_dataset("out")
    assert {*dataset.manifest.splits} == splits
    for split in splits:
        wanted = [next(one for name, one in arrays.items() if {*name.split("_")} == {split, key}) for key in (x, y)]
        table = dataset.to_arrow(split)
        assert [np.ravel(one).tolist() for one in table.column(y).to_pylist()] == [
            np.ravel(n).tolist() for n in wanted[1]
        ]
        assert table.column(x).to_pylist() == wanted[0].reshape(len(wanted[0]), 4).tolist()


@pytest.mark.parametrize(
    "arrays",
    [{"x_train": X, "y_train": Y, "x_test": X[:2]}, {"x_train": X, "y_train": Y, "x_test": X[:2], "y_test": Y[:3]}],
)
def test_arrays_of_splits_that_do_not_go_together_get_no_line_that_converts_them(desk: Any, arrays: Any) -> None:
    np.savez(desk.root / "mnist.npz", **arrays)
    screen = desk.convert("mnist.npz")
    assert (screen.code, "in Python: " in screen.err, "in Python: docs" in screen.err) in (
        (2, True, True),
        (2, False, False),
    )


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_images_and_labels_in_files_of_their_own_are_joined_by_the_lines_of_the_refusal(desk: Any, save: Any) -> None:
    for split, rows in (("train", 6), ("test", 2)):
        save(desk.root / f"kmnist-{split}-imgs.npz", X[:rows])
        save(desk.root / f"kmnist-{split}-labels.npz", Y[:rows])
    screen = desk.convert("*.npz", "--set", "input.splits=names")
    assert screen.code == 2
    assert screen.err.startswith(
        "error: kmnist-test-imgs.npz, kmnist-test-labels.npz: features and their answers in two"
    )
    run_python(screen.err, "to join them, in Python: ")
    assert_mnist("out")


def test_archives_of_several_arrays_and_damaged_ones_are_no_pair(desk: Any) -> None:
    np.savez(desk.root / "a-imgs.npz", X, X)
    np.savez(desk.root / "a-labels.npz", Y)
    (desk.root / "b-imgs.npz").write_bytes(b"PK\3\4" + bytes(40))
    np.savez(desk.root / "b-labels.npz", Y)
    assert "whose rows belong to each other" not in desk.convert("*.npz").err


def test_the_lines_of_the_guide_convert_a_file_of_training_and_test_arrays(desk: Any) -> None:
    np.savez(desk.root / "mnist.npz", **MNIST)
    program = GUIDE.read_text().partition("\n## NumPy\n")[2].partition("```python\n")[2].partition("```")[0]
    exec(program, {})
    assert_mnist("out/mnist")


def test_idx_files_are_converted_by_the_lines_of_the_guide(desk: Any) -> None:
    images, labels = desk.root / "train-images-idx3-ubyte.gz", desk.root / "train-labels-idx1-ubyte.gz"
    pixels = np.arange(3 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(3, 28, 28)
    images.write_bytes(gzip.compress(struct.pack(">4I", 0x803, *pixels.shape) + pixels.tobytes()))
    labels.write_bytes(gzip.compress(struct.pack(">2I", 0x801, 3) + bytes([7, 0, 9])))
    program = GUIDE.read_text().partition("MNIST as it is published")[2].partition("```python\n")[2].partition("```")[0]
    exec(program, {})
    rows = desk.records()
    assert [row["label"] for row in rows] == [7, 0, 9]
    assert [row["image"] for row in rows] == pixels.reshape(3, -1).tolist()


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


def test_many_npz_files_and_one_row_are_records_without_a_word_and_few_files_have_one(desk: Any) -> None:
    names = [f"{number}.npz" for number in range(9)]
    for name in names:
        np.savez(desk.root / name, X)
    np.save(desk.root / "row.npy", X[:1])
    assert warnings(desk.convert(*names).out) == []
    (line,) = warnings(desk.convert(*names[:2], "--overwrite").out)
    assert "0.npz and 1 more: each file is one record with its whole array; if the first axis is the row" in line
    assert warnings(desk.convert("row.npy", "--set", "output.if_exists=replace").out) == []


def test_rows_of_two_lengths_name_the_columns_to_keep(desk: Any) -> None:
    np.savez(desk.root / "mnist.npz", x=X, y=Y, z=Y[:2])
    screen = desk.convert("mnist.npz", "--set", "input.rows=true")
    assert (screen.code, 'keep some: --set \'input.columns=["x", "y"]\', or --set' in screen.err) == (1, True)


@pytest.mark.parametrize("rows", ["true", "false"])
@pytest.mark.parametrize("form", ["{0}_{1}.npy", "{1}/{0}.npy", "data/{1}-{0}.npy"])
def test_pairs_of_files_are_refused_with_the_calls_that_convert_them(desk: Any, rows: str, form: str) -> None:
    names = [form.format(*name.split("_")) for name in MNIST]
    for name, array in zip(names, MNIST.values(), strict=True):
        (desk.root / name).parent.mkdir(exist_ok=True)
        np.save(desk.root / name, array)
    screen = desk.convert(*names, "--set", f"input.rows={rows}", "--set", "input.splits=names")
    assert screen.code == 2
    assert screen.err.startswith(f"error: {names[2]}, {names[3]}: features and their answers in two arrays, whose rows")
    train, test = (f"{{'x': numpy.load('{x}'), 'y': numpy.load('{y}')}}" for x, y in (names[:2], names[2:]))
    assert f"import convert; convert(data={train}, output='out'); import numpy; from shardmill" in screen.err
    assert f"import append; append(data={test}, output='out', output__split='test')" in screen.err


def test_labels_of_another_length_are_no_record_beside_their_arrays(desk: Any) -> None:
    np.save(desk.root / "X.npy", X)
    np.save(desk.root / "y.npy", Y[:5])
    screen = desk.convert("X.npy", "y.npy")
    assert screen.code == 4
    assert '"array/data" has dtype int64 and rank 1; the schema has dtype uint8 and rank 3' in screen.err


def test_an_append_of_pairs_is_refused_alike(desk: Any) -> None:
    np.save(desk.root / "x.npy", X)
    np.save(desk.root / "y.npy", Y)
    convert(data={"x": X, "y": Y}, output="out")
    with pytest.raises(SystemExit):
        main(["append", "x.npy", "y.npy", "-o", "out"])
    call = "append(data={'x': numpy.load('x.npy'), 'y': numpy.load('y.npy')}, output='out')"
    assert call in desk.capsys.readouterr().err
