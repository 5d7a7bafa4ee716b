"""What a user of the command line meets who writes a dataset into the folder of its source."""

from __future__ import annotations

from typing import Any

import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.pipelines.cli import main
from shardmill.transforms.errors import ConfigError


@pytest.mark.parametrize("args", [["data"], ["data/a.csv"], ["data/*.csv"], ["data/a.csv", "--dry-run"]])
@pytest.mark.parametrize("output", ["data", "./data/"])
def test_a_dataset_is_not_written_into_the_folder_of_its_source(desk: Any, args: list[str], output: str) -> None:
    desk.put({"data/a.csv": b"id\n1\n"})
    with pytest.raises(SystemExit) as ended:
        main(["convert", *args, "-o", output])
    path = desk.root / "data"
    said = f"error: {path} holds the source (data/a.csv), and a dataset needs a folder of its own"
    assert (ended.value.code, desk.capsys.readouterr().err) == (2, f"{said}: -o {path}-tfrecords\n")
    assert [path.name for path in (desk.root / "data").iterdir()] == ["a.csv"]


def test_a_folder_of_images_is_none_either(desk: Any) -> None:
    desk.put({"pets/train/cat/1.jpg": b"x"})
    for output in ("pets", "pets/train", "pets/train/cat"):
        with pytest.raises(SystemExit):
            main(["convert", "pets", "-o", output])
        assert f"{output} holds the source (pets/train/cat)" in desk.capsys.readouterr().err


@pytest.mark.parametrize("output", ["data/out", "data2"])
def test_a_folder_below_or_beside_the_source_is_fine(desk: Any, output: str) -> None:
    desk.put({"data/a.csv": b"id\n1\n"})
    for said in ("Wrote", "Nothing to do"):
        with pytest.raises(SystemExit):
            main(["convert", "data", "-o", output])
        assert said in desk.capsys.readouterr().out


@pytest.mark.parametrize("command", ["convert", "merge", "rebuild"])
def test_the_error_of_a_folder_that_holds_a_dataset_names_the_option_that_writes_over_it(
    desk: Any, command: str
) -> None:
    desk.put({"a.csv": b"id\n1\n", "b.csv": b"id\n2\n"})
    for name in ("a", "b"):
        with pytest.raises(SystemExit):
            main(["convert", f"{name}.csv", "-o", name])
    desk.capsys.readouterr()
    line = [command, "b.csv" if command == "convert" else "b", "-o", "a"]
    with pytest.raises(SystemExit) as refused:
        main(line)
    err = desk.capsys.readouterr().err
    assert (refused.value.code, "choose another folder (-o), or write over it: --overwrite (in Python" in err) == (
        2,
        True,
    )
    with pytest.raises(SystemExit) as ended:
        main([*line, "--overwrite"])
    assert (ended.value.code, open_dataset("a").to_arrow("train").column("id").to_pylist()) == (0, [2])


@pytest.mark.parametrize("command", ["convert", "append"])
def test_a_missing_output_is_named_by_its_option(desk: Any, command: str) -> None:
    desk.put({"a.csv": b"id\n1\n"})
    with pytest.raises(SystemExit) as ended:
        main([command, "a.csv"])
    said = 'the folder of the dataset is missing; say where to write: -o out/ (in Python: output="out/")'
    assert (ended.value.code, desk.capsys.readouterr().err) == (2, f"error: {said}\n")
    with pytest.raises(ConfigError, match="is missing; say where to write: -o out/"):
        convert("a.csv")
    convert("a.csv", output="out/")
