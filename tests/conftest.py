"""What every test shares: which tests run at all, how long Hypothesis may take to draw, what is reported at the end."""

from __future__ import annotations

import contextlib
import gc
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from shardmill.pipelines.cli import main
from shardmill.pipelines.engines.engine import LocalEngine
from shardmill.pipelines.prepare.prepared import Prepared
from shardmill.pipelines.workers.process_start import collect_rarely
from shardmill.pipelines.workers.worker_processes import WorkerProcesses
from shardmill.transforms.errors import DamageError

from . import followed_hints, tiers
from .command_line import Screen, Shardmill, lacking
from .faults.plain_run import run_plainly
from .flink import running
from .stores import servers

# As in a process of the command: a tenth of the suite's time went to searches for cycles.
collect_rarely()

# How fast values are drawn says something of the machine (its first tables of Unicode alone take a second), not of what
# is tested.
settings.register_profile(
    tiers.PROFILE,
    suppress_health_check=[HealthCheck.too_slow],
    deadline=None,
    derandomize=tiers.PROFILE == "ci",  # the same examples each time; a campaign tries new ones
    max_examples=tiers.examples(100),
    print_blob=True,
)
settings.load_profile(tiers.PROFILE)

READERS = {
    "readers": ("tensorflow", "TensorFlow", "uv run --group readers pytest tests/readers"),
    "torch_readers": ("torch", "PyTorch", "uv run --group torch pytest tests/torch_readers"),
}
"""The folders of tests that need a large package, its name, and how they are run."""

collect_ignore = [folder for folder, (package, _, _) in READERS.items() if find_spec(package) is None]


def pytest_report_header() -> list[str]:
    left_out = [(folder, *READERS[folder][1:]) for folder in collect_ignore]
    return [f"tests/{folder} is left out, as {name} is not installed: {command}" for folder, name, command in left_out]


COLLECTED: pytest.StashKey[list[pytest.Item]] = pytest.StashKey()
"""All tests of the files that are run, also those of the other tier."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[COLLECTED] = list(items)
    items[:], left = tiers.of_this_run(items)
    config.hook.pytest_deselected(items=left)
    tiers.longest_first(items)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later search for cycles."""
    gc.collect()
    gc.freeze()


_said: dict[str, list[str]] = {}


@pytest.fixture(scope="session")
def say() -> Callable[[str, str], None]:
    """Return what takes a heading and a line below it, which pytest prints at its end."""
    return lambda heading, line: _said.setdefault(heading, []).append(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what was said in a process of pytest-xdist to the one that prints, and how much memory it took."""
    if hasattr(session.config, "workeroutput"):
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        _said.setdefault("memory of the processes that ran tests", []).append(f"{megabytes:.0f} MB at most")
        session.config.workeroutput["said"] = _said


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for heading, lines in getattr(node, "workeroutput", {}).get("said", {}).items():
        _said.setdefault(heading, []).extend(lines)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for heading, lines in _said.items():
        terminalreporter.section(heading)
        for line in lines:
            terminalreporter.line(line)


_built: list[threading.Thread] = []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Build the server of GCS while the first tests run: on a new machine that takes a minute."""
    if not _built and any("[gs" in name for name in ids):
        _built.append(threading.Thread(target=_build_early))
        _built[0].start()


def _build_early() -> None:
    with contextlib.suppress(pytest.skip.Exception, pytest.fail.Exception):  # the tests that need it say so
        servers.fake_gcs_program()


@pytest.fixture(autouse=True)
def _engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversions run their tasks one after the other (`faults/plain_run.py`) but in tests of the engine (`engine`)."""
    if request.node.get_closest_marker("engine") is not None:
        return
    run_on_engine = LocalEngine.run

    def run(engine: LocalEngine, prepared: Prepared, processes: WorkerProcesses) -> None:
        if processes.asked is True:
            run_on_engine(engine, prepared, processes)
        else:
            run_plainly(prepared)

    monkeypatch.setattr(LocalEngine, "run", run)


@pytest.fixture(autouse=True)
def hints(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail where a test does not follow a hint that `followed_hints.txt` says it follows."""
    claimed = followed_hints.claims().get(followed_hints.name_of(request.node))
    if claimed is None:
        yield
        return
    with followed_hints.following(monkeypatch) as followed:
        yield
    assert claimed <= followed.typed, sorted(claimed - followed.typed)


@pytest.fixture
def shardmill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shardmill:
    """Run commands in this process, in a folder of the test; none prints a traceback, or what steers a terminal."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Screen:
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        assert isinstance(ended.value.code, int)
        out, err = capsys.readouterr()
        assert (out + err).replace("\n", "").isprintable(), ascii(out + err)
        assert "Traceback" not in out + err
        found_damage = args[:1] in (("verify",), ("salvage",)) and ended.value.code == DamageError.exit_code
        followed_hints.typed([*args] if ended.value.code == 0 or found_damage else [], out + err)
        return Screen(ended.value.code, out, err)

    return run


@pytest.fixture(scope="session")
def flink() -> None:
    """Fetch Flink's jars, or skip with the reason."""
    missing = [program for program in ("java", "mvn") if shutil.which(program) is None]
    if missing:
        lacking(f"{' and '.join(missing)} missing: Flink is not tested")
    running.shardmill("flink", "install", cwd=Path.cwd())


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """The URL of a real server that speaks S3."""
    with servers.s3_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def gcs_endpoint() -> Iterator[str]:
    """The URL of a real server that speaks Google Cloud Storage."""
    with servers.gcs_server() as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def _no_client_is_kept() -> Iterator[None]:
    yield
    servers.forget_clients()


@pytest.fixture(params=servers.SERVED)
def bucket_url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket of each store in turn, in an environment in which the clients find its server."""
    endpoint = request.getfixturevalue(servers.SERVED[request.param].endpoint)
    for name, value in servers.environment(request.param, endpoint).items():
        monkeypatch.setenv(name, value)
    return f"{request.param}://{servers.make_bucket(request.param, endpoint)}"
