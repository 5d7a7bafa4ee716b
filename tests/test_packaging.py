"""The built wheel holds what the tree holds, and works where nothing else of the repository is."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(["uv", "build", "--wheel", "--quiet", "--out-dir", str(out), str(ROOT)], check=True)
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_every_module_of_the_tree(wheel: Path) -> None:
    tree = {
        f"shardmill/{path.relative_to(ROOT).as_posix()}"
        for folder in ("pipelines", "transforms")
        for pattern in ("*.py", "py.typed", "*.jars", "*.schema.json", "*.html", "*.jinja")
        for path in (ROOT / folder).rglob(pattern)
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if not name.split("/")[0].endswith(".dist-info")}
    assert held == tree


def test_nothing_stands_bare_in_site_packages(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"shardmill"}
    assert "shardmill/__init__.py" not in zipfile.ZipFile(wheel).namelist()


@pytest.mark.thorough("an environment is made and filled; `.ci/run` ends with it")
def test_the_wheel_alone_with_the_locked_packages_converts_and_verifies(wheel: Path, tmp_path: Path) -> None:
    export = ["uv", "export", "--frozen", "--no-dev", "--no-emit-project", "--quiet", "--project", str(ROOT)]
    requirements = tmp_path / "requirements.txt"
    requirements.write_bytes(subprocess.run(export, check=True, capture_output=True).stdout)
    venv = tmp_path / "venv"
    subprocess.run(["uv", "venv", "--quiet", "--python", sys.executable, str(venv)], check=True)
    install = ["uv", "pip", "install", "--quiet", "--python", str(venv / "bin" / "python")]
    subprocess.run([*install, "--requirements", str(requirements)], check=True)
    subprocess.run([*install, "--no-deps", str(wheel)], check=True)
    shutil.copytree(ROOT / "configs", tmp_path / "configs")

    def shardmill(*args: str) -> str:
        command = [str(venv / "bin" / "shardmill"), *args]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    assert shardmill("--version").startswith("shardmill 0.1.0")
    assert shardmill("convert", "configs/quickstart.yaml").startswith("Wrote out/quickstart: 24 records in 3 shards")
    assert shardmill("verify", "out/quickstart").startswith("OK: generation 1 of out/quickstart")
