"""README's program from a DataFrame to PyTorch runs, and prints what README shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from ..readme import README, programs


def test_the_program_makes_a_dataset_and_trains_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (program,) = programs(of="torch")
    names: dict[str, Any] = {}
    exec(compile(program, "README.md", "exec"), names)
    (shown,) = re.findall(r"^```python\n[^`]*torch[^`]*^```\n+```text\n(.*?)^```", README.read_text(), re.DOTALL | re.M)
    assert capsys.readouterr().out == shown
    assert names["scores"].dtype == torch.float32
    assert names["state"]["epoch"] == 1
