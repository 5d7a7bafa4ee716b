"""The Dockerfile, read: its stages, and their lines run in a folder instead of an image."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Stage:
    base: str
    name: str | None
    lines: tuple[tuple[str, str], ...]  # ("RUN", "uv sync ..."), ...

    def all(self, keyword: str) -> list[str]:
        return [text for word, text in self.lines if word == keyword]


def read_dockerfile(text: str) -> tuple[dict[str, str], list[Stage]]:
    """Return the arguments before the first stage, and the stages, arguments put in."""
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    versions: dict[str, str] = {}
    stages: list[tuple[str, str | None, list[tuple[str, str]]]] = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, rest = line.split(maxsplit=1)
        if word == "ARG" and "=" in rest and not stages:
            name, versions[name] = rest.split("=")[0], rest.split("=")[1]
        elif word == "FROM":
            base, _, name = put_in(rest, versions).partition(" AS ")
            stages.append((base, name or None, []))
        else:
            stages[-1][2].append((word, rest))
    return versions, [Stage(base, name, tuple(lines)) for base, name, lines in stages]


def put_in(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], text)


class ScratchBuild:
    """A stage carried out below a folder: `/opt` is `folder/opt`, and `pip` that of a new environment.

    Left out is what only saves time to others: mounted caches, and bytecode made ahead.
    """

    def __init__(self, folder: Path, versions: dict[str, str]) -> None:
        self._folder = folder
        self._here = folder
        subprocess.run([sys.executable, "-m", "venv", str(folder / "usr")], check=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_PROJECT", "VIRTUAL_ENV"))}
        self.environment = {**kept, **versions, "PATH": f"{folder / 'usr/bin'}:{os.environ['PATH']}"}

    def carry_out(self, stage: Stage) -> None:
        for word, text in stage.lines:
            text = put_in(text, self.environment) if word != "RUN" else text
            if word == "WORKDIR":
                self._here = self._inside(text)
                self._here.mkdir(parents=True)
            elif word == "ENV":
                for name, value in re.findall(r"(\w+)=(\S+)", text):
                    self.environment[name] = re.sub(r"^/opt", f"{self._folder}/opt", value)
                self.environment.pop("UV_COMPILE_BYTECODE", None)
            elif word == "COPY":
                *sources, target = text.split()
                for source in sources:
                    self._copy(source, target)
            elif word == "RUN":
                self.run(re.sub(r"--mount=\S+ ", "", text))

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-ec", command],
            cwd=self._here,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _inside(self, path: str) -> Path:
        return self._folder / path.lstrip("/")

    def _copy(self, source: str, target: str) -> None:
        there = self._here / target
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, there, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, there)
