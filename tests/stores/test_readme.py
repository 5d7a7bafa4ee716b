"""README's recipe for S3 runs, and prints what README shows."""

from __future__ import annotations

import contextlib
import io
import shlex
import urllib.request
from pathlib import Path

import pytest
from shardmill.pipelines.cli import main
from shardmill.transforms.stores.object_store import store_at
from shardmill.transforms.stores.store_url import parse_store_url

from ..readme import REPO, recipes
from . import servers

pytestmark = pytest.mark.engine


def test_the_recipe_for_s3_prints_what_it_shows(s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with urllib.request.urlopen(urllib.request.Request(f"{s3_endpoint}/my-bucket", method="PUT"), timeout=300):
        pass
    for name, value in servers.environment("s3", s3_endpoint).items():
        monkeypatch.setenv(name, value)
    store = store_at(parse_store_url("s3://my-bucket/sales"))
    for path in sorted(Path(REPO / "configs/samples/people").glob("*.csv")):
        store.put(f"sales/{path.name}", path.read_bytes())
    ((typed, shown),) = recipes("s3://")
    said = io.StringIO()
    for line in typed:
        with contextlib.redirect_stdout(said), pytest.raises(SystemExit):
            main(shlex.split(line)[1:])
    printed = said.getvalue().splitlines()
    assert [line for line in shown if line != "..." and line not in printed] == []
