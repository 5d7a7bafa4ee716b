"""README's programs that read with TensorFlow and TFDS run, and give what they say."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines import convert

from ..readme import REPO, programs

pytestmark = pytest.mark.engine


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Convert what the programs read, and return an empty namespace for them."""
    shutil.copytree(REPO / "configs", tmp_path / "configs")
    convert(tmp_path / "configs/quickstart.yaml")
    monkeypatch.chdir(tmp_path)
    return {}


def test_the_program_with_tf_data_gives_batches_of_decoded_pictures_and_labels(names: dict[str, Any]) -> None:
    (program,) = programs(of="tensorflow")
    exec(compile(program, "README.md", "exec"), names)
    batches = list(names["batches"])
    assert [tuple(pictures.shape) for pictures, _ in batches] == [(8, 64, 64, 3)] * 3
    assert {int(label) for _, labels in batches for label in labels} == {0, 1, 2}


def test_the_program_with_tfds_gives_pixels_and_labels(names: dict[str, Any]) -> None:
    (program,) = programs(of="tensorflow_datasets")
    exec(compile(program, "README.md", "exec"), names)
    assert names["picture"].dtype == "uint8"
    assert names["picture"].shape[2] == 3
    assert int(names["label"]) in (0, 1, 2)
