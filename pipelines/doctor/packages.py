"""The packages that are installed, checked against what the metadata of Shardmill asks for (pyproject.toml)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from ...transforms.format.wording.extras import install_line, reinstall_line
from ...transforms.format.wording.printable import escaped
from .finding import CORE, Finding, State

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NAME: Final = "shardmill"

MODULES: Final[dict[str, tuple[str, str]]] = {
    "apache-beam": ("apache_beam", "all conversions: the steps of the pipeline"),
    "cloudpickle": ("cloudpickle", "functions of yours in worker processes"),
    "crc32c": ("crc32c", "the checksums of records"),
    "isal": ("isal.isal_zlib", "gzip, of inputs and shards"),
    "loky": ("loky", "worker processes"),
    "numpy": ("numpy", "all commands"),
    "packaging": ("packaging", "this report"),
    "pandas": ("pandas", "DataFrames"),
    "pillow": ("PIL.Image", "pictures made ready, input.check: decode"),
    "protobuf": ("google.protobuf", "sidecars for TFX"),
    "pyarrow": ("pyarrow", "all commands; Parquet, Arrow and CSV"),
    "pydantic": ("pydantic", "configs"),
    "pyyaml": ("yaml", "configs"),
    "rich": ("rich", "tables and progress on a terminal"),
    "typer": ("typer", "the command line"),
    "boto3": ("boto3", "s3:// URLs"),
    "google-cloud-storage": ("google.cloud.storage", "gs:// URLs"),
    "simplejpeg": ("simplejpeg", "JPEG made ready faster than with Pillow, input.check: strict"),
    "cykooz-resizer": ("cykooz_resizer", "pictures resized faster than with Pillow"),
    "pi-heif": ("pi_heif", "HEIC pictures"),
}
"""The module of each distribution, and what needs it."""

_EXTRAS: Final = {"aws": "s3", "gcp": "gs", "dataflow": "dataflow", "images": ""}
"""Who needs an extra: without `images` Pillow does the same, slower, and reports no damage of JPEGs."""

_DATAFLOW: Final = "runner.name: dataflow"

_SLOW: Final = frozenset({"apache_beam", "pandas"})
"""Their import takes seconds: they are looked for, and not imported."""


def python_finding() -> Finding:
    """Return whether this Python is one that the package is made for."""
    found = ".".join(map(str, sys.version_info[:3]))
    try:
        from packaging.specifiers import SpecifierSet

        asked = metadata(NAME)["Requires-Python"]
        state: State = "ok" if SpecifierSet(asked).contains(found) else "missing"
    except (ImportError, PackageNotFoundError):
        asked, state = ">=3.11,<3.14", "ok" if (3, 11) <= sys.version_info < (3, 14) else "missing"
    fix = "in your clone of Shardmill: uv tool install --python 3.12 --reinstall ."
    return Finding("Python", state, f"{found} ({_in_order(asked)})", "all commands", fix, CORE)


def package_findings() -> Iterator[Finding]:
    """Yield a finding for each package of the core, and for each of each extra."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        yield Finding(
            "packaging", "missing", "not installed", "this report: no package was checked", reinstall_line(), CORE
        )
        return
    try:
        asked = [Requirement(text) for text in requires(NAME) or ()]
        extras = metadata(NAME).get_all("Provides-Extra") or []
    except PackageNotFoundError:
        yield Finding(NAME, "missing", "not installed as a package", "all commands", reinstall_line(), CORE)
        return
    for requirement in asked:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield _package(requirement, None)
    for extra in extras:
        for requirement in asked:
            marker = requirement.marker
            if marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
                yield _package(requirement, extra)


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
    """Return whether what every screen imports can be imported."""
    return all(_import_problem(MODULES[name][0]) is None for name in ("numpy", "pyarrow", "crc32c"))


def _package(requirement: Requirement, extra: str | None) -> Finding:
    """Return whether a requirement of the core, or of an extra, is met."""
    name = requirement.name.lower()
    shown = f"{name}[{','.join(sorted(requirement.extras))}]" if requirement.extras else name
    module, use = MODULES.get(name, (name.replace("-", "_"), "what it is asked for by"))
    if extra == "dataflow":
        use = _DATAFLOW
    fix = reinstall_line() if extra is None else install_line(extra)
    need = CORE if extra is None else _EXTRAS.get(extra, "")
    if extra is not None:
        use = f"{use} (extra {extra})"
    problem = _problem(requirement) or _import_problem(module)
    if problem is not None:
        return Finding(shown, "missing", problem, use, fix, need)
    asked = f" ({_in_order(str(requirement.specifier))})" if requirement.specifier else ""
    return Finding(shown, "ok", version(name) + asked, use, fix, need)


def _problem(requirement: Requirement) -> str | None:
    """Return why a requirement is not met, the extras that it names included; None if it is."""
    from packaging.requirements import Requirement as Parsed

    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        return "not installed"
    if not requirement.specifier.contains(found, prereleases=True):
        return f"{found}, asked for is {_in_order(str(requirement.specifier))}"
    for extra in sorted(requirement.extras):
        for inner in map(Parsed, requires(requirement.name) or ()):
            marker = inner.marker
            if marker is not None and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
                problem = _problem(inner)
                if problem is not None:
                    return f"{found} without {inner.name} ({problem})"
    return None


def _in_order(specifier: str) -> str:
    """Return the bounds of a release as people write them.

    >>> _in_order("<6,>=5")
    '>=5, <6'
    """
    return ", ".join(sorted(specifier.split(","), reverse=True))


def _import_problem(module: str) -> str | None:
    """Return why a module cannot be imported; None if it can."""
    try:
        if module in _SLOW:
            return None if find_spec(module) is not None else f"no module {module}"
        import_module(module)
    except Exception as error:  # noqa: BLE001  (whatever an import raises is the finding)
        lines = str(error).strip().splitlines()
        return f"installed, but its import fails: {type(error).__name__}: {escaped(lines[0] if lines else '')[:200]}"
    return None
