"""A canary: no key, password or signature reaches a screen, a log, or a file that a run leaves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from shardmill.pipelines.cli import main

CANARY = "c4n4ryF00dD3adB33f"
URL = (
    f"https://ada:{CANARY}@host.example/a.csv?X-Amz-Credential={CANARY}&X-Amz-Signature={CANARY}#access_token={CANARY}"
)
LONG_URL = f"s3://AKIA:{CANARY}{'x' * 300}@bucket/a.csv?sig={CANARY}"
KEYS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_CONNECTION_STRING", "HF_TOKEN", "DATABASE_URL")

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process and the test's folder; return its exit code, and what it showed."""
    monkeypatch.chdir(tmp_path)
    for key in KEYS:
        monkeypatch.setenv(key, CANARY)

    def run(*args: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        return int(ended.value.code or 0), "".join(capfd.readouterr())

    return run


def left_in(folder: Path) -> list[str]:
    """Return the files below a folder that hold the canary, in their names or contents."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if CANARY in str(path) or CANARY.encode() in path.read_bytes()]


@pytest.mark.parametrize("flags", [[], ["--json"], ["--debug"]], ids=["screen", "json", "debug"])
def test_signed_urls_in_bad_rows_reach_neither_rejects_nor_manifest_nor_screen(
    run: Run, tmp_path: Path, flags: list[str]
) -> None:
    rows = [f"{i},{i}" for i in range(50)] + [f"{URL},1", f"{LONG_URL},2", f"{URL},{URL},{URL}", "7,8"]
    (tmp_path / "a.csv").write_text("id,n\n" + "\n".join(rows) + "\n")
    declared = ["--set", "schema.columns.id.type=int", "--set", "schema.columns.n.type=int"]
    code, shown = run("convert", "a.csv", "-o", "out", "--max-rejects", "10", *declared, *flags)
    assert code == 0, shown
    assert "https://…@host.example/a.csv?…" in shown.replace("\\u2026", "…")
    code, refused = run("convert", "a.csv", "-o", "out2", *declared, *flags)
    assert code == 4, refused
    assert CANARY not in shown + refused
    assert left_in(tmp_path / "out") == left_in(tmp_path / "out2") == []
    assert "https://…@host.example/a.csv?…" in (tmp_path / "out" / "rejects" / "00000001.jsonl").read_text()


@pytest.mark.parametrize(
    ("args", "exit_code"),
    [
        (["convert", URL, "-o", "out"], 2),
        (["convert", "a.csv", "-o", URL], 2),
        (["convert", "e.yaml", "--set", f"input.paths=[{URL}]"], 2),
        (["convert", "e.yaml", "--set", f"input.paths={URL}"], 2),
        (["convert", "a.csv", "-o", "out", "--set", f"nope={URL}"], 2),
        (["convert", "a.csv", "-o", "out", "--shard-size", URL], 2),
        (["convert", "a.csv", "-o", "out", "--name", URL], 2),
        (["convert", "c.yaml"], 2),
        (["convert", "d.yaml", "--json"], 2),
        (["convert", "a.csv", "-o", "out", "--", f"--s3_secret_access_key={CANARY}"], 2),
        (["convert", "a.csv", "-o", "out", "--", "--s3_session_token", CANARY], 2),
        (["convert", "a.csv", "-o", "out", "--", f"--s3_secret_acces={CANARY}"], 2),
        (["convert", "a.csv", "-o", "out", "--", f"--nope={CANARY}"], 2),
        (["inspect", URL], 2),
        (["verify", URL, "--json"], 2),
        (["init", URL, "-o", "x.yaml"], 2),
        (["append", "a.csv", "-o", URL], 2),
        (["append", URL, "-o", "out"], 2),
        (["merge", URL, "-o", "out"], 2),
        (["merge", "a.csv", "-o", URL], 2),
        (["rebuild", URL, "-o", "out"], 2),
        (["salvage", URL, "-o", "saved"], 2),
        (["log", URL], 2),
        (["log", URL, "--json"], 2),
        (["gc", URL, "--delete"], 2),
        (["gc", ".", "--older-than", URL], 2),
    ],
    ids=lambda value: " ".join(value).replace(URL, "URL").replace(CANARY, "KEY") if isinstance(value, list) else "",
)
def test_no_command_prints_or_keeps_the_secrets_that_it_is_given(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    args: list[str],
    exit_code: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    for key in KEYS:
        monkeypatch.setenv(key, CANARY)
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "c.yaml").write_text(f"input: {{paths: ['{URL}']}}\noutput: {{path: out}}\n")
    (tmp_path / "d.yaml").write_text(f"input: {{paths: [a.csv], format: '{URL}'}}\noutput: {{path: '{URL}'}}\n")
    (tmp_path / "e.yaml").write_text("input: {paths: [a.csv]}\noutput: {path: out}\n")
    before = set(tmp_path.rglob("*"))
    with pytest.raises(SystemExit) as ended:
        main(args)
    shown = "".join(capfd.readouterr())
    assert ended.value.code == exit_code, shown
    assert shown.strip()
    assert CANARY not in shown
    assert set(tmp_path.rglob("*")) == before
