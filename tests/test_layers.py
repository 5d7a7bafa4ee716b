"""The layers of the product: which package may import which, and where Beam and I/O have no place."""

from __future__ import annotations

import ast
import functools
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    path.relative_to(ROOT).with_suffix("")
    for folder in ("pipelines", "transforms")
    for path in (ROOT / folder).rglob("*.py")
)
PACKAGES = """
transforms/format: wording schema batches tfrecord columns
transforms/format: manifest splits examples sidecars
transforms: limits observers stores pictures
transforms/dataset: storage stage commit rows
transforms/dataset: reading integrity
transforms/inputs: contract files
transforms/recognise: evidence beside pictures splits strangers .
transforms: recipe recipe/steps
transforms/sources: registry text csv jsonl txt arrow parquet
transforms/sources: annotations images archives numpy memory tfrecord .
transforms: .
pipelines: config outcomes screens workers prepare engines engines/flink runs
pipelines: commands first_look
pipelines: .
"""
"""All packages, a line for each layer, the lowest first: a module imports from its own package and those before it."""

ORDER = [
    os.path.normpath(f"{layer}/{package}")
    for layer, _, packages in (line.partition(":") for line in PACKAGES.strip().splitlines())
    for package in packages.split()
]
MOST_MODULES = 12
"""The most modules of a package: so many can be seen at once."""

MOST_LINES = 800
"""The longest module. A module is a subject, usually of 200 to 600 lines: length alone is no reason to split it."""

MOST_FUNCTION_LINES = 60

FRAMEWORKS = {
    "transforms/dataset/rows/tf_records": {"tensorflow"},
    "transforms/dataset/rows/torch_batches": {"torch"},
}
"""The modules that may import a framework, which nothing else of the product needs."""

BEAM_MAY_BE_IMPORTED_BY = {
    "transforms/elements",
    "transforms/read",
    "transforms/encode",
    "transforms/write",
    "pipelines/engines/beam_pipeline",
    "pipelines/engines/beam_options",
    "pipelines/engines/dataflow",
    "pipelines/engines/flink/pipeline",
    "pipelines/engines/flink/worker_pool",
}


@functools.cache
def tree_of(module: Path) -> ast.Module:
    """Return a module, parsed; all tests look at the same tree."""
    return ast.parse((ROOT / module).with_suffix(".py").read_text())


def package_of(module: Path) -> str:
    return "errors" if module.as_posix() == "transforms/errors" else module.parent.as_posix()


def imports_of(module: Path, *, top_level_only: bool = False) -> Iterator[str]:
    """Yield what a module imports: paths from the root for our own (`transforms/errors`), names for others."""
    tree = tree_of(module)
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
        elif isinstance(node, ast.ImportFrom):
            base = Path(os.path.normpath(module / Path(*[".."] * node.level) / (node.module or "").replace(".", "/")))
            for alias in node.names:
                inner = base / alias.name
                yield (inner if (ROOT / inner).with_suffix(".py").exists() else base).as_posix()


def type_only(module: Path) -> set[str]:
    """Return what a module imports for its annotations alone."""
    tree = tree_of(module)
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found |= {alias.name for inner in node.body if isinstance(inner, ast.Import) for alias in inner.names}
            found |= {inner.module or "" for inner in node.body if isinstance(inner, ast.ImportFrom)}
    return found


IN_PACKAGE = {
    package: [module for module in MODULES if module.parent.as_posix() == package]
    for package in sorted({module.parent.as_posix() for module in MODULES})
}
of_each_package = pytest.mark.parametrize("modules", IN_PACKAGE.values(), ids=IN_PACKAGE)


@of_each_package
def test_a_package_imports_only_those_below_it(modules: list[Path]) -> None:
    for module, name in [(one, name) for one in modules for name in imports_of(one)]:
        if not name.startswith(("pipelines", "transforms")) or name == "transforms/errors":
            continue
        here = package_of(module)
        there = package_of(Path(name)) if (ROOT / name).with_suffix(".py").exists() else name
        assert here != "errors", "every package imports the errors"
        if module.name == "__init__":  # a layer offers what is in its packages
            assert there.startswith(here) or ORDER.index(there) < ORDER.index(here)
        else:
            assert there == here or ORDER.index(there) < ORDER.index(here), f"{module} imports {name}"


@of_each_package
def test_what_a_step_a_source_or_an_observer_does_is_no_question_at_run_time(modules: list[Path]) -> None:
    """They are classes with defaults: a protocol that is checked at run time looks at names alone, and is slow."""
    for module in modules:
        assert "runtime_checkable" not in (ROOT / module).with_suffix(".py").read_text(), module


def test_no_circle_of_imports() -> None:
    graph = {m.as_posix(): {n for n in imports_of(m) if (ROOT / n).with_suffix(".py").exists()} for m in MODULES}
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail, module))
        if module not in done:
            for name in graph.get(module, ()):
                visit(name, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@of_each_package
def test_beam_is_imported_by_the_transforms_and_the_engines_only(modules: list[Path]) -> None:
    for module in modules:
        found = {name for name in imports_of(module) if name.split(".")[0] == "apache_beam"} - type_only(module)
        assert not found or module.as_posix() in BEAM_MAY_BE_IMPORTED_BY, module


@pytest.mark.parametrize("package", [package for package in IN_PACKAGE if package.startswith("transforms/format")])
def test_the_format_layer_does_no_io(package: str) -> None:
    for module in IN_PACKAGE[package]:
        nodes = list(ast.walk(tree_of(module)))
        calls = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert "open" not in calls, module
        assert not {"os", "pathlib", "shutil", "socket", "tempfile", "subprocess"} & set(imports_of(module)), module
        taken = {a.name for n in nodes if isinstance(n, ast.ImportFrom) and n.module == "io" for a in n.names}
        assert taken <= {"BytesIO"}, f"{module}: a BytesIO is memory; nothing else of io is"
        assert not any(a.name == "io" for n in nodes if isinstance(n, ast.Import) for a in n.names), module


@of_each_package
def test_a_config_is_loaded_above_and_goes_on_as_a_value(modules: list[Path]) -> None:
    """What plans, and what runs the plan, takes values of the config, and calls nothing that makes or changes one."""
    values = {"pipelines/config/model", "pipelines/config/runners"}
    for module in modules:
        if not module.as_posix().startswith(
            (
                "pipelines/config",
                "pipelines/runs",
                "pipelines/first_look",
                "pipelines/commands",
                "pipelines/cli",
                "pipelines/prepare/from_config",
                "pipelines/prepare/of_dataset",
            )
        ):
            assert {name for name in imports_of(module) if name.startswith("pipelines/config")} <= values, module


def test_nothing_that_plans_or_runs_reads_a_config_but_what_makes_a_conversion_of_it() -> None:
    readers = set()
    for module in MODULES:
        names = {a.name for n in ast.walk(tree_of(module)) if isinstance(n, ast.ImportFrom) for a in n.names}
        if "Config" in names and module.parts[1] in ("prepare", "runs", "outcomes", "engines", "workers"):
            readers.add(module.as_posix())
    makers = {"from_config", "of_dataset"}
    assert readers == {*(f"pipelines/prepare/{name}" for name in makers), "pipelines/runs/python_api"}


@of_each_package
def test_pandas_and_pyarrow_dataset_are_never_imported_at_the_top(modules: list[Path]) -> None:
    for module in modules:
        assert not {"pandas", "pyarrow.dataset"} & set(imports_of(module, top_level_only=True)), module


@of_each_package
def test_a_framework_is_imported_by_its_own_module_alone(modules: list[Path]) -> None:
    for module in modules:
        packages = {name.split(".")[0] for name in set(imports_of(module)) - type_only(module)}
        allowed = FRAMEWORKS.get(module.as_posix(), set())
        assert not packages & {"tensorflow", "tensorflow_datasets", "torch", "grain"} - allowed, module


@of_each_package
def test_no_module_imports_one_that_imports_a_framework_at_its_top(modules: list[Path]) -> None:
    for module in modules:
        assert not FRAMEWORKS.keys() & set(imports_of(module, top_level_only=True)), module


def test_only_the_table_of_types_knows_the_types_of_times_by_name() -> None:
    for module in MODULES:
        texts = {node.value for node in ast.walk(tree_of(module)) if isinstance(node, ast.Constant)}
        found = {"date", "time", "timestamp", "duration"} & {text for text in texts if isinstance(text, str)}
        assert not found or module.as_posix() == "transforms/format/schema/column_types", module


def test_the_wheel_has_every_package() -> None:
    """A package that `pyproject.toml` leaves out is there in a checkout, and missing where Shardmill is installed."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted({f"shardmill.{module.parent.as_posix().replace('/', '.')}" for module in MODULES})


def test_every_package_has_a_place_in_the_order() -> None:
    assert {module.parent.as_posix() for module in MODULES if module.name != "__init__"} == set(ORDER)


@pytest.mark.parametrize("package", ORDER)
def test_a_package_says_what_it_is_for_and_has_a_dozen_modules_at_most(package: str) -> None:
    said = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text()))
    assert said is not None
    assert len(said.splitlines()[0]) > 40
    assert len([m for m in MODULES if m.parent.as_posix() == package and m.name[0] != "_"]) <= MOST_MODULES


@of_each_package
def test_no_module_is_longer_than_a_subject_and_no_function_longer_than_a_page(modules: list[Path]) -> None:
    for module in modules:
        assert len((ROOT / module).with_suffix(".py").read_text().splitlines()) <= MOST_LINES, module
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                assert lines <= MOST_FUNCTION_LINES, f"{module}: {node.name}"


def test_the_sizes_of_the_product_are_shown(say: Callable[[str, str], None]) -> None:
    lines = sum(len((ROOT / module).with_suffix(".py").read_text().splitlines()) for module in MODULES)
    modules = sum(module.name != "__init__" for module in MODULES)
    say("sizes", f"{lines:,} lines in {modules} modules of {len(ORDER)} packages")
    assert lines > 0
