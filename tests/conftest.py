"""What every test shares: which tests run at all, and how long Hypothesis may take to draw."""

from __future__ import annotations

from importlib.util import find_spec

from hypothesis import HealthCheck, settings

# How fast values are drawn says something of the machine (its first tables of Unicode alone take a second), not of what
# is tested.
settings.register_profile("shardmill", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("shardmill")

READERS_MISSING = find_spec("tensorflow") is None

collect_ignore = ["readers"] if READERS_MISSING else []


def pytest_report_header() -> list[str]:
    if not READERS_MISSING:
        return []
    return ["tests/readers is left out, as TensorFlow is not installed: uv run --group readers pytest tests/readers"]
