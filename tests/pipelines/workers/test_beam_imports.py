from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFIGS = Path(__file__).parents[3] / "configs"

SCRIPT = """
import sys

from shardmill.pipelines.workers.beam_imports import hide_pandas_from_beam

hide_pandas_from_beam()
import apache_beam

assert "pandas" not in sys.modules
import pyarrow as pa

assert pa.table({"a": [1, 2]}).to_pandas()["a"].sum() == 3
"""


def test_beam_is_imported_without_pandas_and_a_users_function_still_gets_it() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


@pytest.mark.parametrize("config", ["parquet.yaml", "quickstart.yaml", "csv.yaml", "jsonl.yaml"])
def test_a_conversion_never_imports_pandas(tmp_path: Path, config: str) -> None:
    command = ["-m", "shardmill.pipelines", "convert", str(CONFIGS / config), "-o", str(tmp_path / "out")]
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        check=False,
        capture_output=True,
        text=True,
        cwd=CONFIGS.parent,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    imported = {line.rsplit("|", 1)[-1].strip() for line in run.stderr.splitlines()}
    assert "apache_beam" in imported
    assert "pandas.core" not in imported  # that Beam asked is listed too
