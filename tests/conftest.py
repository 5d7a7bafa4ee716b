"""What every test shares: which tests run at all."""

from __future__ import annotations

from importlib.util import find_spec

READERS_MISSING = find_spec("tensorflow") is None

collect_ignore = ["readers"] if READERS_MISSING else []


def pytest_report_header() -> list[str]:
    if not READERS_MISSING:
        return []
    return ["tests/readers is left out, as TensorFlow is not installed: uv run --group readers pytest tests/readers"]
