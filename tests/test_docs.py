"""The docs are tests: every config is run, every command is documented, every command and program of the README is run.

In README and docs/guide.md each line of a fenced block that begins with `shardmill ` or `uv run shardmill ` is run in a
copy of `configs/`, in the order of the pages; of those that name the reader's own files (`data/`, `my-`), or what was
made of them, only the `--help` is; and of Flink, whose commands tests/flink runs. README's recipe for S3 is run by
tests/stores/test_readme.py. The programs are run behind them, those with TensorFlow by tests/readers/test_readme.py,
that with PyTorch by tests/torch_readers/test_readme.py.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.pipelines.cli import GROUPS, app, main

from .readme import PAGES, README, REPO, programs, recipes

pytestmark = pytest.mark.engine

YOUR_OWN = ("data/", "my-", "/path/", "s3://", "gs://")


def commands() -> list[list[str]]:
    text = "\n".join(page.read_text() for page in PAGES)
    blocks = re.findall(r"^( *)```\w*\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    lines = [line.partition(" #")[0].strip().removeprefix("$ ") for _, block in blocks for line in block.splitlines()]
    found = [re.split(r"uv run (?:--extra \w+ )?", line)[-1] for line in lines if "shardmill " in line]
    return [shlex.split(line)[1:] for line in found if line.startswith("shardmill ")]


@pytest.fixture(scope="module")
def pages_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run every command of the pages, and return the folder in which they ran."""
    folder = tmp_path_factory.mktemp("pages")
    shutil.copytree(REPO / "configs", folder / "configs")
    (folder / "keys.csv").write_text("id\n1000\n1001\n")  # as the guide shows it
    own_words = list(YOUR_OWN)
    found = commands()
    assert len(found) > 30
    for args in found:
        own = "flink" in args or any(word in arg for arg in args for word in own_words)
        if own and "-o" in args:
            own_words.append(args[args.index("-o") + 1])
        said = io.StringIO()
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            pytest.raises(SystemExit) as ended,
        ):
            main([args[0], "--help"] if own else args)
        assert ended.value.code in (0, None), (args, said.getvalue())
    return folder


@pytest.mark.parametrize("config", sorted(path.name for path in (REPO / "configs").glob("*.yaml")))
def test_every_config_is_run(config: str, tmp_path: Path) -> None:
    summary = convert(REPO / "configs" / config, output=tmp_path / "out")
    assert summary.manifest.counts.written > 0
    counts = summary.manifest.counts
    assert counts.read == counts.written + counts.rejected + counts.dropped


def test_every_command_is_documented_in_the_readme() -> None:
    text = README.read_text()
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        assert f"shardmill {name}" in text


def test_every_command_of_the_readme_runs(pages_folder: Path) -> None:
    assert {path.name for path in (pages_folder / "out").iterdir()} >= {"quickstart", "members", "by-zip", "shuffled"}


def test_the_recipes_of_the_readme_print_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(REPO / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    here = [one for one in recipes() if not any(word in line for line in one[0] for word in ("my-", "flink"))]
    assert len(here) == 3
    for typed, shown in here:
        said = io.StringIO()
        for line in typed:
            args = shlex.split(line.partition("shardmill ")[2])
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), pytest.raises(SystemExit):
                main(args)
        printed = said.getvalue().splitlines()
        assert [line for line in shown if line != "..." and line not in printed] == []


def test_the_programs_of_the_readme_run(pages_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pages_folder)
    names: dict[str, object] = {}
    found = programs(without=("tensorflow", "tensorflow_datasets", "torch", "apache_beam", "numpy"))
    assert len(found) == 5
    for program in found:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(program, "README.md", "exec"), names)
    assert (pages_folder / "out/people-2/manifest.json").is_file()
    visitors = open_dataset(pages_folder / "out/visitors")
    assert min(visitors.to_arrow("train")["visits"].to_pylist()) > 0


@pytest.mark.thorough("pipelines on Beam's engine")
def test_the_pipelines_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(REPO / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    found = programs(of="apache_beam")
    assert len(found) == 2
    for program in found:
        exec(compile(program, "guide.md", "exec"), {})
    plain, tipped = (list(open_dataset(f"out/{name}")) for name in ("mine", "with-tips"))
    assert [row["fare"] for row in tipped] == [
        None if row["fare"] is None else pytest.approx(1.1 * row["fare"]) for row in plain
    ]


@pytest.mark.parametrize("page", sorted([README, REPO / "CONTRIBUTING.md", *(REPO / "docs").rglob("*.md")]), ids=str)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        name, _, heading = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
            assert heading in slugs, target


@pytest.mark.parametrize("page", sorted([README, REPO / "CONTRIBUTING.md", *(REPO / "docs").rglob("*.md")]), ids=str)
def test_a_module_that_a_page_names_is_there(page: Path) -> None:
    said = page.read_text().replace("not `pipelines/convert.py`", "")
    folders = ("pipelines", "transforms", "tests", "docs", "benchmarks")
    there = [path.as_posix() for folder in folders for path in (REPO / folder).rglob("*.py")]
    for name in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", said):
        assert any(path.endswith(f"/{name}") for path in there), name


def headings(page: Path, level: int) -> list[str]:
    return re.findall(rf"^{'#' * level} (.*)$", page.read_text(), re.MULTILINE)


def test_the_readme_fits_on_a_few_screens_and_leads_from_what_it_is_to_what_else_there_is() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= 240
    assert text.index("docs/picture.svg") < text.index("## ")
    order = ["Install", "Try it", "Five recipes", "Read it", "What it reads", "Commands", "Promises"]
    assert headings(README, 2) == [*order, "When to use something else", "More"]


def test_the_readme_groups_the_commands_as_the_help_does() -> None:
    block = README.read_text().partition("## Commands")[2].partition("## ")[0]
    found: dict[str, list[str]] = {}
    for line in block.splitlines():
        if line.startswith("# "):
            found[line.removeprefix("# ")] = []
        elif line.startswith("shardmill "):
            found[list(found)[-1]].append(line.split()[1])
    assert found == {title: list(names) for title, names in GROUPS.items()}


def test_the_decisions_are_grouped_by_subjects_that_the_page_lists_first() -> None:
    page = REPO / "docs/dev/decisions.md"
    listed = re.findall(r"\[([^\]]*)\]\(#", page.read_text().partition("\n## ")[0])
    assert listed == headings(page, 2)
    assert len(listed) <= 12 < len(headings(page, 3))


def test_every_page_is_linked_from_the_index_of_pages() -> None:
    index = REPO / "docs/README.md"
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)\s#]+)\)", index.read_text())}
    assert set((REPO / "docs").rglob("*.md")) - linked == {index}
    assert headings(index, 2) == ["Use", "Reference", "Operate", "How it works"]
    assert "docs/README.md" in README.read_text()


def test_the_picture_is_what_its_script_draws() -> None:
    script = REPO / "docs/make_picture.py"
    spec = importlib.util.spec_from_file_location("make_picture", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (REPO / "docs/picture.svg").read_text() == module.draw(), f"uv run python {script.relative_to(REPO)}"


def test_the_recipe_for_a_nightly_dataset_keeps_readers_in_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (REPO / "docs/guide.md").read_text().partition("## Rebuilt every night")[2].partition("\n## ")[0]
    (swap,) = re.findall(r"^ln .*", section, re.MULTILINE)
    night = "night-2026-01-31"
    assert f"-o out/{night}" in section
    monkeypatch.chdir(tmp_path)
    convert(data={"id": [1, 2, 3]}, output=tmp_path / "out" / night)
    subprocess.run(["bash", "-ec", swap], check=True)
    read = iter(open_dataset("out/nightly"))
    convert(data={"id": [4, 5, 6]}, output=tmp_path / "out/night-2026-02-01")
    subprocess.run(["bash", "-ec", swap.replace(night, "night-2026-02-01")], check=True)
    assert [row["id"] for row in read] == [1, 2, 3]
    assert [row["id"] for row in open_dataset("out/nightly")] == [4, 5, 6]
