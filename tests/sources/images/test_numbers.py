from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import UsageError

from ...command_line import Shardmill

LABEL = "image/class/label"


def put(root: Path, *folders: str) -> None:
    for number, folder in enumerate(folders):
        (root / folder).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(root / folder / f"{number}.png")


def test_folders_named_by_numbers_say_which_label_they_get_and_are_ordered_as_numbers_on_request(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    put(tmp_path / "in", *map(str, range(12)))
    screen = shardmill("convert", "in", "-o", "out")
    assert open_dataset(tmp_path / "out").manifest.labels[LABEL][2] == "10"
    said = re.search(r'Detected: folders are named by numbers, .*: "10" is label 2; to order numbers: (.*)', screen.out)
    assert said is not None
    assert "named by numbers" not in shardmill("convert", "in", "-o", "right", *said[1].split()).out
    assert open_dataset(tmp_path / "right").manifest.labels[LABEL] == tuple(map(str, range(12)))


def test_an_append_of_folders_named_by_numbers_keeps_their_labels(tmp_path: Path) -> None:
    put(tmp_path / "in", "2", "10")
    convert(str(tmp_path / "in"), output=str(tmp_path / "out"), input__labels="numeric")
    put(tmp_path / "more", "10", "1")
    append(str(tmp_path / "more"), output=str(tmp_path / "out"), input__labels="numeric")
    assert open_dataset(tmp_path / "out").manifest.labels[LABEL] == ("2", "10", "1")


def test_a_folder_whose_name_is_no_number_is_refused_where_numbers_are_asked_for(tmp_path: Path) -> None:
    put(tmp_path / "in", "1", "two")
    with pytest.raises(UsageError, match=r'input\.labels: is numeric, and the class "two" is no whole number'):
        convert(str(tmp_path / "in"), output=str(tmp_path / "out"), input__labels="numeric")


def test_numbers_that_do_not_begin_at_zero_are_named(tmp_path: Path, shardmill: Shardmill) -> None:
    put(tmp_path / "in", "1", "2")
    assert 'Detected: folders are named by numbers: "1" is label 0\n' in shardmill("convert", "in", "-o", "out").out
    put(tmp_path / "words", "cat", "dog")
    assert "named by numbers" not in shardmill("convert", "words", "-o", "plain").out
