"""README's program that reads with PyTorch runs, and gives what it says."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from shardmill.pipelines import convert

from ..readme import REPO, programs


def test_the_program_gives_pictures_and_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(REPO / "configs", tmp_path / "configs")
    convert(tmp_path / "configs/quickstart.yaml")
    monkeypatch.chdir(tmp_path)
    (program,) = programs(of="torch")
    names: dict[str, Any] = {}
    exec(compile(program, "README.md", "exec"), names)
    assert all(picture.dtype == torch.float32 and picture.ndim == 3 for picture in names["pictures"])
    assert set(names["labels"].tolist()) <= {0, 1, 2}
    assert names["state"]["epoch"] == 1
