"""What the tests of the steps share."""

from __future__ import annotations

import urllib.request

import pytest


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every download fail: nothing listens at the address of the proxies."""
    for proxy in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")
    monkeypatch.setattr(urllib.request, "_opener", None)  # it is made once, for good, with the proxies of that moment
