"""The packages that are installed: those of the core, and of each extra (pyproject.toml)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

from ...transforms.format.wording.extras import install_line, reinstall_line
from ...transforms.format.wording.printable import escaped
from .finding import CORE, Finding, State

NAME: Final = "shardmill"

MODULES: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "": {
        "apache-beam": ("apache_beam", "all conversions: the steps of the pipeline"),
        "cloudpickle": ("cloudpickle", "functions of yours in worker processes"),
        "crc32c": ("crc32c", "the checksums of records"),
        "isal": ("isal.isal_zlib", "gzip, of inputs and shards"),
        "jinja2": ("jinja2", "the page of report"),
        "loky": ("loky", "worker processes"),
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
    "dataflow": {"apache-beam[gcp]": ("apitools", "runner.name: dataflow")},
}
"""The module of each distribution of the core (under "") and of each extra, and what needs it."""

_NEEDS: Final = {"": CORE, "aws": "s3", "gcp": "gs", "dataflow": "dataflow", "images": ""}
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
            found = problem or _version(name.partition("[")[0])
            yield Finding(name, "missing" if problem else "ok", found, used, fix, _NEEDS[extra])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "installed"


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
