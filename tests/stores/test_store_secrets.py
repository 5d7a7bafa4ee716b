"""A canary: the credentials of a store reach no screen, log or object, whatever happens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shardmill.transforms.dataset.storage.object_storage import ObjectStorage

from . import servers
from .faulty_proxy import Fault, faulty_proxy

CANARY = "c4n4ryF00dD3adB33f"


def run(*args: str, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "shardmill.pipelines", *args],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.thorough("six commands load the engine")
def test_no_key_is_printed_or_kept(s3_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n2\n")
    keys = {
        "AWS_ACCESS_KEY_ID": f"AKIA{CANARY}",
        "AWS_SECRET_ACCESS_KEY": CANARY,
        "AWS_SESSION_TOKEN": f"token-{CANARY}",
    }
    bucket = servers.make_bucket("s3", s3_endpoint)
    out = f"s3://{bucket}/out"
    with faulty_proxy(s3_endpoint) as proxy:
        environment = servers.environment("s3", proxy.url) | keys
        code, shown = run("convert", str(tmp_path / "a.csv"), "-o", out, "--debug", "--json", **environment)
        assert code == 0, shown
        proxy.faults.append(Fault(403, times=10**9))
        for args in (["convert", str(tmp_path / "a.csv"), "-o", f"{out}2", "--debug"], ["verify", out], ["log", out]):
            code, text = run(*args, **environment)
            assert code == 2, text
            assert "access denied" in text
            shown += text
    assert CANARY not in shown
    for name, value in servers.environment("s3", s3_endpoint).items():
        monkeypatch.setenv(name, value)
    storage = ObjectStorage(f"s3://{bucket}")
    kept = [storage.read(path) for path, _ in storage.files_below("")]
    assert len(kept) > 4
    assert not [data for data in kept if CANARY.encode() in data]


@pytest.mark.parametrize(
    "command", [["convert", "a.csv", "-o"], ["append", "a.csv", "-o"], ["verify"], ["log"], ["gc"]]
)
@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_key_in_a_url_is_refused_and_not_repeated(
    command: list[str], scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from shardmill.pipelines.cli import main

    (tmp_path / "a.csv").write_text("id\n1\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([*command, f"{scheme}://AKIA:{CANARY}@bucket/out"])
    shown = "".join(capfd.readouterr())
    assert ended.value.code == 2
    assert CANARY not in shown
    assert f"{scheme}://…@bucket" in shown
    assert "credentials have no place in a URL" in shown
