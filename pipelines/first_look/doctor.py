"""The checks of `doctor`, each a line of its report: packages, the machine, Flink, and credentials of stores.

No request is made. A finding says what was looked for, what was found, what needs it, and how it gets there.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...transforms.errors import ShardmillError
from ...transforms.format.wording.hints import Add, install_line, reinstall_line
from ...transforms.format.wording.printable import counted, escaped, format_size, printable_path
from ...transforms.stores.store_url import STORES, scheme_of
from ..engines.flink.jars import INSTALL, is_installed, jars_folder, java, maven, pinned

if TYPE_CHECKING:
    from ..screens.terminal import Terminal

State: TypeAlias = Literal["ok", "poor", "missing"]
"""`poor` is there, and does not do: a disk that is nearly full, a Java of another release."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of the report.

    `need` says who needs it: `core`, an engine (`flink`, `dataflow`), a store (`s3`, `gs`), or nobody ("").
    """

    what: str
    state: State
    found: str
    needed_for: str
    fix: str = ""
    need: str = ""

    def to_json(self, needs: frozenset[str]) -> dict[str, Any]:
        return {**asdict(self), "required": self.need in needs}


_STYLES: Final = {"ok": "green", "poor": "yellow", "missing": "yellow"}


@dataclass(frozen=True, slots=True)
class Report:
    """What was found; `needs` are the core's and those of what was named."""

    findings: Sequence[Finding]
    needs: frozenset[str]

    @property
    def required(self) -> list[Finding]:
        return [one for one in self.findings if one.state == "missing" and one.need in self.needs]

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": not self.required,
            "shardmill": version_of(NAME, "unknown"),
            "platform": platform.platform(),
            "checks": [one.to_json(self.needs) for one in self.findings],
        }


def examine(places: Sequence[str]) -> Report:
    """Look at this machine, and at what `places` need: configs, files and folders, URLs of stores."""
    needs, folders = needs_of(places)
    findings = [python_finding(), *package_findings(), crc_finding(), *machine_findings(folders), *flink_findings()]
    return Report([*findings, *store_findings()], needs)


def needs_of(places: Iterable[str]) -> tuple[frozenset[str], list[str]]:
    """Return who needs what in a run that names these places, and the folders of this machine among them."""
    needs, named = {CORE}, list[str]()
    for place in places:
        if not place.lower().endswith((".yaml", ".yml")):
            named.append(place)
            continue
        from ..config.load import load_config

        config = load_config(place)
        needs.add(config.runner.name)
        paths = config.input.paths if config.input is not None else []
        named += [*(path if scheme_of(path) else os.path.join(config.base, path) for path in paths), config.output.path]
    schemes = {place: scheme_of(place) for place in named}
    needs |= {scheme for scheme in schemes.values() if scheme is not None}
    return frozenset(needs), [
        place for place in dict.fromkeys(named) if schemes[place] is None and not set("*?[") & set(place)
    ]


def print_report(terminal: Terminal, report: Report) -> int:
    """Print the report; return the exit code: 0, or 1 if anything is missing that is needed."""
    if terminal.as_json:
        terminal.data(report.to_json())
        return 1 if report.required else 0
    terminal.text(f"Shardmill {version_of(NAME, 'unknown')}, {platform.platform()}\n", "bold")
    terminal.table(_table(report))
    lacking = [one for one in report.findings if one.state != "ok"]
    if lacking:
        terminal.text("")
    for one in lacking:
        what = "Missing" if one.state == "missing" else "Poor"
        style = "bold red" if one in report.required else "yellow"
        terminal.text(f"{what}: {escaped(one.what)}, for {one.needed_for}: {one.fix}", style)
    terminal.text("")
    if report.required:
        names = ", ".join(one.what for one in report.required)
        terminal.text(f"Not ready: {names} missing.", "bold red")
        return 1
    terminal.text("Ready: nothing that is needed is missing. Whether releases go together: uv pip check", "bold green")
    return 0


def _table(report: Report) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("state", "what", "found", "needed for"):
        table.add_column(title, overflow="fold")
    for one in report.findings:
        style = "bold red" if one in report.required else _STYLES[one.state]
        table.add_row(Text(one.state, style), *(Text(escaped(cell)) for cell in (one.what, one.found, one.needed_for)))
    return table


CORE: Final = "core"
"""What every command needs. The other needs are the names of engines, and the schemes of stores."""

NAME: Final = "shardmill"

MODULES: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "": {
        "apache-beam": ("apache_beam", "all conversions: the steps of the pipeline"),
        "cloudpickle": ("cloudpickle", "functions of yours in worker processes"),
        "crc32c": ("crc32c", "the checksums of records"),
        "isal": ("isal.isal_zlib", "gzip, of inputs and shards"),
        "jinja2": ("jinja2", "report, snippet"),
        "loky": ("loky", "worker processes"),
        "msgspec": ("msgspec", "files of COCO"),
        "numpy": ("numpy", "all commands"),
        "pandas": ("pandas", "DataFrames"),
        "pillow": ("PIL.Image", "pictures made ready, input.check: decode"),
        "protobuf": ("google.protobuf", "sidecars for TFX"),
        "pyarrow": ("pyarrow", "all commands; Parquet, Arrow and CSV"),
        "pydantic": ("pydantic", "configs"),
        "pyyaml": ("yaml", "configs"),
        "rich": ("rich", "tables and progress on a terminal"),
        "typer": ("typer", "the command line"),
    },
    "aws": {"boto3": ("boto3", "s3:// URLs")},
    "gcp": {"google-cloud-storage": ("google.cloud.storage", "gs:// URLs")},
    "images": {
        "simplejpeg": ("simplejpeg", "JPEG made ready faster than with Pillow, input.check: strict"),
        "cykooz-resizer": ("cykooz_resizer", "pictures resized faster than with Pillow"),
        "pi-heif": ("pi_heif", "HEIC pictures"),
    },
    "coco": {"pycocotools": ("pycocotools.mask", "masks of annotations: input.annotations.masks")},
    "dataflow": {"apache-beam[gcp]": ("apitools", "runner.name: dataflow")},
}
"""The module of each distribution of the core (under "") and of each extra, and what needs it."""

_NEEDS: Final = {"": CORE, "aws": "s3", "gcp": "gs", "dataflow": "dataflow", "images": "", "coco": ""}
"""Who needs them: without `images` Pillow does the same, slower, and reports no damage of JPEGs."""

_SLOW: Final = ("apache_beam", "pandas")
"""Their import takes seconds: they are looked for, and not imported."""


def python_finding() -> Finding:
    """Return which Python this is; an older one than the package asks for cannot install it."""
    return Finding("Python", "ok", ".".join(map(str, sys.version_info[:3])), "all commands", "", CORE)


def package_findings() -> Iterator[Finding]:
    """Yield a finding for each package of the core, and for each of each extra.

    Whether their releases go together is for `uv pip check` or `pip check` to say.
    """
    for extra, packages in MODULES.items():
        fix = install_line(extra) if extra else reinstall_line()
        for name, (module, use) in packages.items():
            used = f"{use} (extra {extra})" if extra else use
            problem = _import_problem(module)
            found = problem or version_of(name.partition("[")[0], "installed")
            yield Finding(name, "missing" if problem else "ok", found, used, fix, _NEEDS[extra])


def version_of(name: str, otherwise: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return otherwise


def crc_finding() -> Finding:
    """Return whether checksums are computed by an instruction of the processor."""
    use, fix = "the speed of all that reads or writes records", "use a wheel of crc32c for this processor; it has none"
    try:
        hardware = import_module("crc32c").hardware_based
    except Exception:  # noqa: BLE001  (that it is broken is the finding of its package)
        return Finding("CRC32C in hardware", "missing", "crc32c cannot be imported", use, reinstall_line())
    state: State = "ok" if hardware else "poor"
    return Finding("CRC32C in hardware", state, "yes" if hardware else "no: in software", use, fix)


def usable_core() -> bool:
    return all(_import_problem(MODULES[""][name][0]) is None for name in ("numpy", "pyarrow", "crc32c"))


def _import_problem(module: str) -> str | None:
    try:
        if find_spec(module) is None:
            return "not installed"
        if not module.startswith(_SLOW):
            import_module(module)
    except ModuleNotFoundError as error:
        return "not installed" if module.startswith(str(error.name)) else _failed(error)
    except Exception as error:  # noqa: BLE001  (whatever an import raises is the finding)
        return _failed(error)
    return None


def _failed(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"installed, but its import fails: {type(error).__name__}: {escaped(lines[0] if lines else '')[:200]}"


_WORKER_BYTES: Final = 300 * 10**6
"""Two workers take less than 600 MB, whatever the size of the data."""

_ROOM_BYTES: Final = 1 << 30
"""With less room a conversion of any size ends with a full disk."""

_CGROUP: Final = Path("/sys/fs/cgroup")


def machine_findings(places: Iterable[str]) -> Iterator[Finding]:
    yield _memory()
    yield _temporary_folder()
    yield _disk("working folder", os.getcwd(), "datasets that are written below it", required=False)
    for place in places:
        yield _disk("disk", os.path.abspath(place), "what is read or written there", required=True)


def available_bytes() -> int:
    """Return the memory that is free: of the machine, or less where a container has a limit."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for line in _text(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    for most, used in (
        (_CGROUP / "memory.max", _CGROUP / "memory.current"),
        (_CGROUP / "memory/memory.limit_in_bytes", _CGROUP / "memory/memory.usage_in_bytes"),
    ):
        limit, taken = _text(most).strip(), _text(used).strip()
        if limit.isdecimal() and taken.isdecimal():
            free = min(free, max(int(limit) - int(taken), 0))
    return free


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _memory() -> Finding:
    workers, free = len(os.sched_getaffinity(0)), available_bytes()
    state: State = "ok" if free >= workers * _WORKER_BYTES else "poor"
    fits = max(free // _WORKER_BYTES, 1)
    found = f"{format_size(free)} free, {counted(workers, 'processor')}"
    use = f"{counted(workers, 'worker')} at once, which take up to {_WORKER_BYTES // 10**6} MB each"
    return Finding("memory", state, found, use, f"fewer workers: {Add('--workers', str(fits))}", CORE)


def _temporary_folder() -> Finding:
    use = "Flink, data from Python, checks.duplicates and checks.leaks"
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:
        where = str(error.strerror or error)
        return Finding("temporary folder", "missing", where, use, "set TMPDIR to a folder that is writable", CORE)
    finding = _disk("temporary folder", folder, use, required=True)
    asked = os.environ.get("TMPDIR")
    if asked and os.path.abspath(asked) != os.path.abspath(folder):
        found = f"{finding.found}; TMPDIR is {printable_path(asked)}, which cannot be written"
        return Finding(finding.what, "poor", found, use, "set TMPDIR to a folder that is writable", CORE)
    return finding


def _disk(what: str, folder: str, use: str, *, required: bool) -> Finding:
    """Return how much room there is at a path, or where it would be made; `required` it must be writable."""
    there = folder
    while not os.path.exists(there):
        there = os.path.dirname(there)
    shown, need = printable_path(folder), CORE if required else ""
    free = shutil.disk_usage(there).free
    found = f"{shown}: {format_size(free)} free"
    target = there if os.path.isdir(there) else os.path.dirname(there)
    if what == "disk" and os.path.exists(folder):
        if not os.access(folder, os.R_OK):
            return Finding(what, "missing", f"{shown}: cannot be read", use, "let this user read it", need)
    elif not os.access(target, os.W_OK | os.X_OK):
        found = f"{shown}: {printable_path(target)} cannot be written"
        return Finding(what, "missing", found, use, "let this user write there, or write elsewhere", need)
    state: State = "ok" if free >= _ROOM_BYTES else "poor"
    return Finding(what, state, found, use, "make room there, or write elsewhere", need)


_JAVAS: Final = ("11", "17")
"""The releases of Java that Flink 1.19 runs on."""

_PATIENCE_SECONDS: Final = 20
"""Java says its version in a tenth of a second; on a machine under load in some."""


def flink_findings() -> Iterator[Finding]:
    """Yield whether Java and the jars of Flink are there, and Maven, where they are to be fetched."""
    yield _java()
    use, fix = "runner.name: flink", INSTALL
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
            from ...transforms.stores.object_store import check_environment

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
    return str(error).rpartition("; ")[2]
