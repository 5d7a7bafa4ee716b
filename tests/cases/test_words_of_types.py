"""Columns that are read as they stand, but hardly as they are meant: a word says so, and what it proposes is right."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
from PIL import Image
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError, UsageError
from shardmill.transforms.recognise.pictures.layout import choose_layout

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows_in(dataset: str) -> list[dict[str, Any]]:
    return open_dataset(dataset)["train"].to_arrow().to_pylist()


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_periods_of_pandas_are_said_to_be_numbers_and_the_line_that_is_proposed_makes_times(
    shardmill: Shardmill, suffix: str
) -> None:
    frame = pd.DataFrame({"p q": pd.period_range("2024-01", periods=2, freq="M"), "n": [1, 2]})

    def write() -> None:
        frame.to_parquet("a.parquet") if suffix == "parquet" else pa.feather.write_feather(frame, "a.arrow")

    write()
    screen = shardmill("convert", f"a.{suffix}", "-o", "out")
    found = re.search(r"holds Periods of pandas: .* write the file again after (frame\[.*\))\n", screen.out)
    assert found, screen.out + screen.err
    assert [row["p q"] for row in rows_in("out")] == [648, 649]
    exec(found[1], {"frame": frame})
    write()
    again = shardmill("convert", f"a.{suffix}", "-o", "times")
    assert (again.code, "Periods" in again.out) == (0, False)
    assert [str(row["p q"])[:10] for row in rows_in("times")] == ["2024-01-01", "2024-02-01"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_ids_beside_nulls_that_float32_would_change_are_said_and_kept_by_the_key_that_is_said(
    name: str, shardmill: Shardmill
) -> None:
    ids = [16777217, None, 16777216]
    frame = pd.DataFrame({"id": ids, "half": [0.1, 16777217, 2.0]})
    write = {"a.csv": frame.to_csv, "a.parquet": frame.to_parquet}.get(name)
    lines = '{"id": 16777217.0, "half": 0.1}\n{"id": null, "half": 1.5}\n{"id": 16777216.0, "half": 2.5}\n'
    Path(name).write_text(lines) if write is None else write(name, index=False)
    screen = shardmill("convert", name, "-o", "out")
    found = re.findall(r"Warning: (\w+): (.*); to keep all, convert again with --set (\S+)\n", screen.out)
    assert [(column, said) for column, said, _ in found] == [("id", "1 of 2 integers became another number")], (
        screen.out
    )
    again = shardmill("convert", name, "-o", "out", "--overwrite", "--set", found[0][2])
    assert (again.code, "Warning" in again.out) == (0, False), again.err
    assert [row["id"] for row in rows_in("out")] == ids


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pd.period_range("2024-01", periods=2, freq="M"), ["2024-01-01 00:00:00", "2024-02-01 00:00:00"]),
        (pd.interval_range(0, 2), ["(0, 1]", "(1, 2]"]),
    ],
)
def test_a_frame_with_periods_or_intervals_is_refused_with_the_line_that_converts_them(
    values: Any, wanted: list[str]
) -> None:
    frame = pd.DataFrame({"x": values})
    with pytest.raises(
        SchemaError, match=r'column "x": pandas\.\w+ has no feature; to have [\w ]+: (frame.*)'
    ) as error:
        convert(data=frame, output="out")
    exec(str(error.value).rpartition(": ")[2], {"frame": frame})
    convert(data=frame, output="out")
    assert [str(row["x"]) for row in rows_in("out")] == wanted


@pytest.mark.parametrize(
    "text", ["time,speed,temp\n,m/s,K\n" + "0,0.25,270\n1,1.5,271\n" * 4, "# of me\nx;y z\ns;m\n" + "1;2\n" * 8]
)
def test_a_row_of_units_below_the_header_is_left_out_by_the_options_that_are_proposed(
    shardmill: Shardmill, text: str
) -> None:
    Path("a.csv").write_text(text)
    skipped = ["--set", "input.skip_lines=1"] if text.startswith("#") else []
    screen = shardmill("convert", "a.csv", "-o", "out", *skipped)
    found = re.search(r"such as units, leave it out: (.*)\n", screen.out)
    assert found, screen.out + screen.err
    again = shardmill("convert", "a.csv", "-o", "numbers", *shlex.split(found[1]))
    assert again.code == 0, again.err
    names = text.removeprefix("# of me\n").splitlines()[0].replace(";", ",").split(",")
    lines = [line for line in text.replace(";", ",").splitlines() if re.match(r"[0-9]", line)]
    assert rows_in("numbers") == [
        dict(zip(sorted(names), [float(row.split(",")[names.index(n)]) for n in sorted(names)], strict=True))
        for row in lines
    ]


def test_a_typo_further_down_or_in_one_of_several_files_is_no_row_of_units(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("x,y\n1,2\n3,4\n5,m\n7,8\n")
    assert "units" not in shardmill("convert", "a.csv", "-o", "out").out
    Path("b.csv").write_text("x,y\n1,m\n3,4\n5,6\n7,8\n")
    Path("c.csv").write_text("x,y\n1,2\n")
    assert "units" not in shardmill("convert", "b.csv", "c.csv", "-o", "both").out


@pytest.mark.parametrize(("prefix", "name", "sep"), [("pixel", "pixel", ","), ("px.(1)_", "px.(1)", ";")])
def test_columns_of_pixels_are_said_to_be_many_features_and_the_line_that_is_proposed_makes_one_list(
    shardmill: Shardmill, prefix: str, name: str, sep: str
) -> None:
    header = sep.join(["label", *(f"{prefix}{n}" for n in range(40))])
    Path("a.csv").write_text("\n".join([header, *(sep.join(map(str, range(n, n + 41))) for n in (1, 2))]) + "\n")
    screen = shardmill("convert", "a.csv", "-o", "out")
    found = re.search(
        rf'the 40 columns "{re.escape(prefix)}0" to "{re.escape(prefix)}39" .* one list: (.*)\n', screen.out
    )
    assert found, screen.out + screen.err
    exec(found[1].replace("'out'", "'lists'"), {})
    assert rows_in("lists") == [{"label": n, name: list(range(n + 1, n + 41))} for n in (1, 2)]


def test_the_line_that_makes_one_list_keeps_splits_and_whole_numbers(shardmill: Shardmill) -> None:
    pixels = [f"pixel{n}" for n in range(40)]
    Path("digits").mkdir()
    row = ",".join(str(n) for n in range(40))
    Path("digits/train.csv").write_text(f"label,{','.join(pixels)}\n7,{row}\n8,{row}\n")
    Path("digits/test.csv").write_text(f"{','.join(pixels)}\n{row}\n")
    screen = shardmill(
        "convert", "digits", "-o", "out", "--set", "input.splits=names", "--set", "input.columns_differ=union"
    )
    line = re.search(r"one list: (.*)\n", screen.out)
    assert line, screen.out + screen.err
    exec(line[1].replace("'out'", "'lists'"), {})
    dataset = open_dataset("lists")
    assert [row["label"] for row in dataset["train"]] == [7, 8]
    assert [row["pixel"] for row in dataset["test"]] == [[*range(40)]]
    assert {"train", "test"} == {*dataset.splits}


def test_files_without_a_header_are_not_united_where_one_lacks_a_column(shardmill: Shardmill) -> None:
    Path("train.tsv").write_text("1\t2\t3\n")
    Path("test.tsv").write_text("2\t3\n")
    screen = shardmill("convert", "train.tsv", "test.tsv", "-o", "out", "--no-header", "--set", "input.splits=names")
    assert screen.code == 2
    assert "there are 2 columns in test.tsv and 3 columns in train.tsv; without a header columns match by" in screen.err
    assert "union" not in screen.err


@pytest.mark.parametrize(
    "names", [[f"c{n}" for n in range(20)], [f"c{n * 2}" for n in range(40)], [f"n{n}x" for n in range(40)]]
)
def test_other_columns_are_not_said_to_be_a_list(shardmill: Shardmill, names: list[str]) -> None:
    Path("a.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    screen = shardmill("convert", "a.csv", "-o", "out")
    assert (screen.code, "one list" in screen.out) == (0, False)


@pytest.mark.parametrize("other", [b"panoptic", b"panoptic_train2017", b"masks", b"train"])
def test_pictures_beside_their_panoptic_masks_are_no_classes(shardmill: Shardmill, other: bytes) -> None:
    for folder, suffix in (("images", "jpg"), (other.decode(), "png")):
        Path("root", folder).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(f"root/{folder}/1.{suffix}")
    screen = shardmill("convert", "root", "-o", "out")
    reason = "is the name of a folder for all pictures, not" if other == b"train" else "of each example, not"
    assert (screen.code, reason in screen.err) == (2, True)
    with pytest.raises(UsageError, match="panoptic"):
        choose_layout([b"train2017", b"panoptic_train2017"], "auto")


def test_records_whose_kinds_differ_are_kept_as_bytes_by_the_option_that_is_proposed(shardmill: Shardmill) -> None:
    for name, values in (("a", [1]), ("b", [0.5])):
        convert(data={"v": values}, output=name)
    Path("both.tfrecord").write_bytes(b"".join(next(Path(n).glob("*.tfrecord*")).read_bytes() for n in "ab"))
    screen = shardmill("convert", "both.tfrecord", "-o", "out")
    options = shlex.split(screen.err.partition("as plain bytes: ")[2])
    assert screen.code == 2, screen.err
    assert shardmill("convert", "both.tfrecord", "-o", "out", *options).code == 0
    assert len(list(open_dataset("out").records("train"))) == 2
