"""What is outside of Python: Java and the jars of Flink, Maven, and the credentials of stores. No request is made."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Final

from ...transforms.errors import ShardmillError
from ...transforms.format.wording.printable import printable_path
from ...transforms.stores.common.schemes import STORES
from ..engines.flink.jars import is_installed, jars_folder, java, maven, pinned
from .finding import Finding, State

_JAVAS: Final = ("11", "17")
"""The releases of Java that Flink 1.19 runs on."""

_PATIENCE_SECONDS: Final = 20
"""Java says its version in a tenth of a second; on a machine under load in some."""


def flink_findings() -> Iterator[Finding]:
    """Yield whether Java and the jars of Flink are there, and Maven, where they are to be fetched."""
    yield _java()
    use, fix = "runner.name: flink", "shardmill flink install"
    if is_installed():
        yield Finding("Flink", "ok", f"{pinned().version} in {printable_path(str(jars_folder()))}", use, fix, "flink")
        return
    yield Finding("Flink", "missing", "not installed", use, fix, "flink")
    try:
        yield Finding("Maven", "ok", printable_path(maven()), f"{fix}, once", "", "flink")
    except ShardmillError as error:
        yield Finding("Maven", "missing", "not found", f"{fix}, once", _fix_in(error), "flink")


def store_findings() -> Iterator[Finding]:
    """Yield whether the environment has credentials for each store; whether the store takes them is not asked."""
    for scheme, entry in STORES.items():
        what, use = f"credentials for {scheme}://", f"{scheme}:// URLs"
        try:
            from ...transforms.stores.connect import check_environment

            check_environment(scheme)
        except ImportError as error:  # a package of the core
            yield Finding(what, "missing", f"not looked for: {error}", use, entry.login, scheme)
        except ShardmillError as error:
            found = str(error).removeprefix(f"{scheme}://bucket: ").partition(";")[0]
            fix = entry.login if f"extra {entry.extra}" not in found else _fix_in(error)
            yield Finding(what, "missing", found, use, fix, scheme)
        else:
            yield Finding(what, "ok", "found; whether the store takes them was not asked", use, entry.login, scheme)


def _java() -> Finding:
    use = "runner.name: flink"
    try:
        command = java()
    except ShardmillError as error:
        return Finding("Java", "missing", "not found", use, _fix_in(error), "flink")
    fix = "install it (apt-get install openjdk-17-jre), and set JAVA_HOME"
    try:
        said = subprocess.run(  # noqa: S603  (a list, no shell)
            [command, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            check=False,
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        found = f"{printable_path(command)} does not run ({type(error).__name__})"
        return Finding("Java", "missing", found, use, fix, "flink")
    number = re.search(r'version "(?:1\.)?(\d+)[^"]*"', said)
    if number is None:
        return Finding("Java", "missing", f"{printable_path(command)} states no version", use, fix, "flink")
    state: State = "ok" if number[1] in _JAVAS else "poor"
    asked = "" if state == "ok" else f"; Flink runs on {' or '.join(_JAVAS)}"
    return Finding("Java", state, f"{number[1]}: {printable_path(command)}{asked}", use, fix, "flink")


def _fix_in(error: Exception) -> str:
    return str(error).rpartition("; ")[2] if "; " in str(error) else str(error)
