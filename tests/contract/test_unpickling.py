"""Nothing that comes from outside is unpickled, evaluated or run: planted traps stay unsprung."""

from __future__ import annotations

import ast
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.cli import main

ROOT = Path(__file__).parent.parent.parent
MODULES = sorted(path for folder in ("pipelines", "transforms") for path in (ROOT / folder).rglob("*.py"))
FORBIDDEN = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "code", "runpy"}
UNPICKLED_HERE = {"transforms/elements.py", "transforms/recipe/function.py"}
"""They carry values from one step of a pipeline to the next, in memory, and the user's own function to workers.

`identity` only names pickle's error. None of these was ever in a file.
"""


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_has_a_way_to_a_pickle_or_to_code(module: Path) -> None:
    tree = ast.parse(module.read_text())
    imported = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    imported |= {
        (n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level
    }
    if str(module.relative_to(ROOT)) not in UNPICKLED_HERE:
        assert not imported & FORBIDDEN
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
    assert not names & {"eval", "exec", "compile", "__import__"}
    attributes = {
        (ast.unparse(node.func.value), node.func.attr) for node in calls if isinstance(node.func, ast.Attribute)
    }
    assert not attributes & {
        ("np", "load"),
        ("numpy", "load"),
        ("pd", "read_pickle"),
        ("yaml", "load"),
        ("os", "system"),
    }
    assert not any(keyword.arg == "allow_pickle" for node in calls for keyword in node.keywords)


Run = Callable[..., tuple[int, str]]


class Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process and the test's folder; return its exit code, and what it showed."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        return int(ended.value.code or 0), "".join(capfd.readouterr())

    return run


def test_an_array_of_objects_is_refused_and_not_loaded(run: Run, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap = np.array([Trap(sprung)], dtype=object)
    (tmp_path / "in").mkdir()
    np.save(tmp_path / "in" / "a.npy", np.arange(3))
    np.save(tmp_path / "in" / "b.npy", trap, allow_pickle=True)
    sink = io.BytesIO()
    np.save(sink, trap, allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "in" / "c.npz", "w") as archive:
        archive.writestr("array.npy", sink.getvalue())
    (tmp_path / "in" / "d.npy").write_bytes(pickle.dumps(Trap(sprung)))
    code, shown = run("convert", "in", "-o", "out", "--max-rejects", "3", "--set", "input.format=numpy")
    assert code == 0, shown
    assert shown.count("which are never loaded") == 2
    assert not sprung.exists()


def test_pickles_in_the_place_of_a_datasets_own_files_are_damage_and_not_loaded(run: Run, tmp_path: Path) -> None:
    sprung, out = tmp_path / "sprung", tmp_path / "out"
    trap = pickle.dumps(Trap(sprung))
    (tmp_path / "a.csv").write_text("a\n1\n2\nx\n")
    args = ("convert", "a.csv", "-o", "out", "--set", "schema.columns.a.type=int")
    assert run(*args)[0] == 4  # leaves its staging folder
    for path in [path for path in (out / ".staging").rglob("*") if path.is_file()]:
        path.write_bytes(trap)
    assert run(*args, "--max-rejects", "1")[0] == 0
    for path in [path for path in out.rglob("*") if path.is_file()]:
        path.write_bytes(trap)
    for command in (("inspect", "out"), ("verify", "out"), args, ("inspect", "out/train-00000.tfrecord")):
        code, shown = run(*command)
        assert code == 3, shown
        assert "fault of Shardmill" not in shown
    assert not sprung.exists()


def test_a_pickle_in_the_metadata_of_a_parquet_file_is_not_loaded(run: Run, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    hidden = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Trap(sprung)),
    }
    schema = pa.schema([pa.field("a", pa.int64(), metadata=hidden)], metadata={b"pandas": pickle.dumps(Trap(sprung))})
    pq.write_table(pa.table([[1, 2]], schema=schema), tmp_path / "a.parquet")
    code, shown = run("convert", "a.parquet", "-o", "out")
    assert (code, sprung.exists()) == (0, False), shown


def test_the_tags_of_yaml_that_run_code_are_refused(run: Run, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    (tmp_path / "c.yaml").write_text(f"input: !!python/object/apply:os.mkdir ['{sprung}']\noutput: {{path: out}}\n")
    code, shown = run("convert", "c.yaml")
    assert code == 2
    assert "the tag tag:yaml.org,2002:python/object/apply:os.mkdir is not for a config" in shown
    assert not sprung.exists()
