"""The built wheel holds what the tree holds, and works where nothing else of the repository is."""

from __future__ import annotations

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
        for pattern in ("*.py", "py.typed")
        for path in (ROOT / folder).rglob(pattern)
    }
    held = {name for name in zipfile.ZipFile(wheel).namelist() if not name.split("/")[0].endswith(".dist-info")}
    assert held == tree


def test_nothing_stands_bare_in_site_packages(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"shardmill"}
    assert "shardmill/__init__.py" not in zipfile.ZipFile(wheel).namelist()


def test_the_wheel_alone_runs_the_command_line(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); import shardmill;"
        f"shardmill.__path__ = [{str(tmp_path / 'site' / 'shardmill')!r}];"
        "from shardmill.pipelines.cli import main; sys.argv = ['shardmill', '--version']; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("shardmill 0.1.0")
