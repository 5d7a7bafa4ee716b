"""The jars of Flink: `shardmill flink install` fetches them with Maven, and each is checked against its SHA-256.

`flink.jars`, beside this module, pins them: SHA-256, size and coordinates of each. Maven is asked for these files and
nothing else (no descriptors, in which other repositories are named), so what a mirror answers is right or refused.

    <cache>/flink/1.19.0-<digest of flink.jars>/
      flink-runtime-1.19.0.jar ...       all of them, or the folder is not there
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ....transforms.errors import RunError, UsageError
from ....transforms.format.wording.hints import Command
from ....transforms.format.wording.printable import escaped, format_size, printable_path

CACHE_VARIABLE: Final = "SHARDMILL_CACHE_DIR"
"""The environment variable that names another folder than the platform's for what can be fetched again."""

_PINNED: Final = Path(__file__).with_name("flink.jars")
_FLINK: Final = "org.apache.flink:flink-runtime:"
INSTALL: Final = str(Command("flink", "install"))


@dataclass(frozen=True, slots=True)
class Jar:
    """One pinned file: `coordinates` are group, artifact and version."""

    sha256: str
    bytes: int
    coordinates: tuple[str, str, str]

    @property
    def name(self) -> str:
        return f"{self.coordinates[1]}-{self.coordinates[2]}.jar"


@dataclass(frozen=True, slots=True)
class Pinned:
    """The contents of `flink.jars`; `plugin` are the coordinates of Maven's plugin that copies files."""

    plugin: tuple[str, str, str]
    jars: tuple[Jar, ...]
    digest: str

    @property
    def bytes(self) -> int:
        return sum(jar.bytes for jar in self.jars)

    @property
    def version(self) -> str:
        return next(jar.coordinates[2] for jar in self.jars if ":".join(jar.coordinates).startswith(_FLINK))


@cache
def pinned() -> Pinned:
    text = _PINNED.read_text(encoding="ascii")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    plugin = next(_coordinates(line[1]) for line in lines if line[0] == "plugin")
    jars = [Jar(line[0], int(line[1]), _coordinates(line[2])) for line in lines if line[0] != "plugin"]
    return Pinned(plugin, tuple(jars), hashlib.sha256(text.encode()).hexdigest())


def cache_folder() -> Path:
    """Return where things are kept that can be fetched again: the platform's folder, or what the user names."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "shardmill"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shardmill"


def jars_folder() -> Path:
    return cache_folder() / "flink" / f"{pinned().version}-{pinned().digest[:12]}"


def is_installed() -> bool:
    """Return whether all jars are there, by name and size; their contents were checked when they came."""
    folder = jars_folder()
    try:
        sizes = {entry.name: entry.stat().st_size for entry in os.scandir(folder)}
    except FileNotFoundError:
        return False
    return sizes == {jar.name: jar.bytes for jar in pinned().jars}


def class_path() -> str:
    if not is_installed():
        size = format_size(pinned().bytes)
        raise UsageError(f"runner flink: Flink is not installed; fetch it once ({size}) with: {INSTALL}")
    return str(jars_folder() / "*")


def java() -> str:
    return _program("java", "JAVA_HOME", "Flink runs on Java 11 or 17: install it (apt-get install openjdk-17-jre)")


def maven() -> str:
    return _program("mvn", "MAVEN_HOME", "its jars are fetched with Maven: install it (apt-get install maven)")


def install(tell: Callable[[str], None]) -> bool:
    """Fetch the jars, unless they are there; return whether anything was fetched. `tell` hears what is to happen."""
    if is_installed() and not _wrong_jars(jars_folder()):
        return False
    java()
    mvn = maven()
    target = jars_folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.parent):
        return _install(mvn, target, tell)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other command fetches: Maven's own cache is not made for two at once."""
    with (folder / ".fetching.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(mvn: str, target: Path, tell: Callable[[str], None]) -> bool:
    if is_installed() and not _wrong_jars(target):  # by whom we waited for
        return False
    jars, size = len(pinned().jars), format_size(pinned().bytes)
    tell(f"Fetching Flink {pinned().version} with Maven: {jars} jars, {size}, to {printable_path(str(target))}")
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=target.parent) as folder:
        fetched = Path(folder, "jars")
        _fetch(mvn, Path(folder), fetched)
        wrong = _wrong_jars(fetched)
        if wrong:
            raise RunError(
                f"Maven gave another {wrong[0]} than the one that is pinned by SHA-256 ({len(wrong)} such files); "
                f"nothing was installed. Remove it from Maven's local repository, or fix the mirror, and try again"
            )
        _put(fetched, target)
    return True


def _put(fetched: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    fetched.rename(target)


def _program(name: str, home: str, fix: str) -> str:
    where = os.environ.get(home)
    found = shutil.which(name, path=os.path.join(where, "bin")) if where else None
    found = found or shutil.which(name)
    if found is None:
        raise UsageError(f"runner flink: {name} is not on the path (and not in {home}); {fix}")
    return found


def _coordinates(text: str) -> tuple[str, str, str]:
    group, artifact, version = text.split(":")
    return group, artifact, version


def _fetch(mvn: str, work: Path, target: Path) -> None:
    project, log = work / "pom.xml", work / "maven.log"
    project.write_text(_project(), encoding="utf-8")
    goal = f"{':'.join(pinned().plugin)}:copy"
    command = [mvn, "--batch-mode", "--file", str(project), goal, f"-DoutputDirectory={target}"]
    with log.open("wb") as out:
        code = subprocess.run(  # noqa: S603  (a list, no shell)
            command, cwd=work, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False
        ).returncode
    if code == 0:
        return
    lines = [line.removeprefix("[ERROR] ") for line in log.read_text(errors="replace").splitlines()]
    why = next((line for line in lines if line.startswith("Failed to execute goal")), lines[-1] if lines else "")
    why = why.partition(": ")[2].partition(" -> [Help")[0] or why
    raise RunError(f"Maven could not fetch Flink: {escaped(why)[:400]}; see that it reaches its repository ({INSTALL})")


def _project() -> str:
    items = "".join(
        f"<artifactItem><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"</artifactItem>\n"
        for group, artifact, version in (jar.coordinates for jar in pinned().jars)
    )
    group, artifact, version = pinned().plugin
    return (
        f'<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>shardmill</groupId><artifactId>flink</artifactId><version>1</version><packaging>pom</packaging>"
        f"<build><plugins><plugin><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><configuration><artifactItems>\n{items}"
        f"</artifactItems></configuration></plugin></plugins></build></project>\n"
    )


def _wrong_jars(folder: Path) -> list[str]:
    def is_wrong(jar: Jar) -> bool:
        try:
            with (folder / jar.name).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() != jar.sha256
        except FileNotFoundError:
            return True

    with ThreadPoolExecutor() as pool:  # hashing releases the interpreter's lock
        wrong = list(pool.map(is_wrong, pinned().jars))
    return [jar.name for jar, is_it in zip(pinned().jars, wrong, strict=True) if is_it]
