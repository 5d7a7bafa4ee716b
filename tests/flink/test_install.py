"""What `flink install` fetches is what is pinned, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shardmill.pipelines.engines.flink import jars as flink_jars
from shardmill.transforms.errors import RunError

from .running import shardmill

pytestmark = pytest.mark.engine

SMALL = "org.slf4j:slf4j-simple"


@pytest.fixture
def two_jars(flink: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Pin two small jars only, in a file that the test may change, and install to a folder of its own."""
    lines = Path(flink_jars.__file__).with_name("flink.jars").read_text().splitlines()
    kept = [line for line in lines if line.startswith("plugin ") or SMALL in line or "flink-metrics-core" in line]
    pins = tmp_path / "flink.jars"
    pins.write_text("\n".join(kept) + "\n")
    monkeypatch.setattr(flink_jars, "_PINNED", pins)
    monkeypatch.setattr(flink_jars, "_FLINK", "org.apache.flink:flink-metrics-core:")
    monkeypatch.setenv(flink_jars.CACHE_VARIABLE, str(tmp_path / "cache"))
    flink_jars.pinned.cache_clear()
    yield pins
    flink_jars.pinned.cache_clear()


@pytest.mark.thorough("Maven runs twice")
def test_jars_are_fetched_once_and_again_if_one_has_changed(two_jars: Path) -> None:
    told: list[str] = []
    assert flink_jars.install(told.append)
    assert told[0].startswith("Fetching Flink 1.19.0 with Maven: 2 jars, ")
    assert not flink_jars.install(told.append)
    (jar,) = flink_jars.jars_folder().glob("slf4j-simple-*.jar")
    whole = jar.read_bytes()
    jar.write_bytes(whole[:-1] + b"!")
    assert flink_jars.install(told.append)
    assert jar.read_bytes() == whole


@pytest.mark.thorough("Maven runs")
def test_a_file_that_is_not_the_pinned_one_is_refused_and_nothing_is_installed(two_jars: Path) -> None:
    text = two_jars.read_text()
    (line,) = [line for line in text.splitlines() if SMALL in line]
    two_jars.write_text(text.replace(line.split()[0], "0" * 64))
    with pytest.raises(RunError, match=r"^Maven gave another slf4j-simple-1\.7\.30\.jar than the one that is pinned"):
        flink_jars.install(lambda _: None)
    assert not flink_jars.is_installed()
    assert [path.name for path in flink_jars.jars_folder().parent.iterdir()] == [".fetching.lock"]


def test_without_java_or_maven_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(flink_jars.CACHE_VARIABLE, str(tmp_path))
    for home in ("JAVA_HOME", "MAVEN_HOME"):
        monkeypatch.delenv(home, raising=False)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    ended = shardmill("flink", "install", cwd=tmp_path, check=False)
    assert ended.returncode == 2
    assert ended.stderr == (
        "error: runner flink: java is not on the path (and not in JAVA_HOME); Flink runs on Java 11 or 17: install it "
        "(apt-get install openjdk-17-jre)\n"
    )
    (tmp_path / "a.csv").write_text("a\n1\n")
    tried = shardmill("convert", "a.csv", "-o", "out", "--runner", "flink", cwd=tmp_path, check=False)
    assert (tried.returncode, tried.stderr) == (2, ended.stderr)


def test_where_flink_is_not_installed_one_line_says_how(
    flink: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(flink_jars.CACHE_VARIABLE, str(tmp_path))
    (tmp_path / "a.csv").write_text("a\n1\n")
    ended = shardmill("convert", "a.csv", "-o", "out", "--runner", "flink", cwd=tmp_path, check=False)
    assert ended.returncode == 2
    assert ended.stderr == (
        "error: runner flink: Flink is not installed; fetch it once (109.0 MiB) with: shardmill flink install\n"
    )
