"""What stores and people do while a conversion reads: it is borne, or told in one line; nothing half is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import ConfigError, RunError, SourceError, UsageError
from shardmill.transforms.inputs.contract.source import Source, Task, map_in_turn

from ..file_sources import made_source
from ..memory import peak_bytes
from . import servers
from .conftest import Bucket, limit, shards
from .gateway import Request

ROWS = 20_000


def make(folder: Path, kind: str) -> Path:
    """Make a file of about a megabyte."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(3)
    if kind == "csv":
        rows = "".join(f"{i},{x!r}\n" for i, x in enumerate(rng.random(ROWS).tolist()))
        (folder / "a.csv").write_text("id,x\n" + rows)
    elif kind == "parquet":
        table = pa.table({"id": np.arange(ROWS), "x": rng.random(ROWS)})
        pq.write_table(table, folder / "a.parquet", row_group_size=2000, write_page_checksum=True)
    elif kind == "npy":
        np.save(folder / "a.npy", rng.random((ROWS, 8)))
    elif kind == "npz":
        np.savez(folder / "a.npz", x=rng.random((ROWS, 8)))
    else:
        write_records(folder / "a.tfrecord", [rng.bytes(50) for _ in range(ROWS)])
    return next(folder.iterdir())


def source_of(url: str, kind: str) -> Source:
    if kind == "tfrecord":
        return made_source("tfrecord", (url,), "/", records="opaque")
    if kind in ("npy", "npz"):
        return made_source("numpy", (url,), rows=True)
    return made_source("csv", (url,)) if kind == "csv" else made_source("parquet", (url,))


@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "npz", "tfrecord"])
@pytest.mark.parametrize("fate", ["replaced", "removed"])
def test_an_object_that_changes_between_listing_and_reading_is_refused(
    bucket: Bucket, tmp_path: Path, kind: str, fate: str
) -> None:
    path = make(tmp_path / "in", kind)
    key, data = f"in/{path.name}", path.read_bytes()
    source = source_of(f"{bucket.url}/in", kind)
    problem = {
        "replaced": "changed while it was read: it was replaced after it was listed; run again",
        "removed": "cannot be read any more: there is no such object; run again",
    }[fate]

    def act() -> None:
        if fate == "replaced":
            bucket.store.put(key, data)  # the same bytes, but who could know
            bucket.store.put(key, data[:-1] + b" ")
        else:
            bucket.store.delete([key])

    bucket.store.put(key, data)
    listing = source.list_files()
    survey = source.survey(listing, map_in_turn)
    act()
    with pytest.raises(SourceError, match=rf"{bucket.url}/{key}: {problem}"):
        list(source.read(Task(0, tuple(survey.pieces)), survey.frozen))
    if kind != "tfrecord":  # which lists anew, and finds another file
        with pytest.raises(SourceError, match=rf"{bucket.url}/{key}: {problem}"):
            source.survey(listing, map_in_turn)


def test_a_run_whose_object_is_replaced_meanwhile_writes_nothing(bucket: Bucket, tmp_path: Path) -> None:
    data = make(tmp_path / "in", "csv").read_bytes()
    bucket.store.put("in/a.csv", data)
    reads: list[Request] = []

    def rule(request: Request) -> None:
        if request.reads:
            reads.append(request)
            if len(reads) == 4:  # the planner has had its three: the first bytes, the header, the records
                bucket.store.put("in/a.csv", data + b" ")

    bucket.gateway.rules.append(rule)
    with pytest.raises(RunError, match=r"in/a\.csv: changed while it was read: it was replaced after it was listed"):
        convert({"input": {"paths": [f"{bucket.url}/in"]}}, output=tmp_path / "out")
    assert not [path for path in (tmp_path / "out").rglob("*") if path.suffix == ".tfrecord"]


@pytest.mark.parametrize(
    ("bucket", "status"),
    [
        pytest.param("s3", 503, marks=pytest.mark.thorough("S3 too, whose server takes three times as long")),
        ("gs", 503),
        ("gs", 429),
    ],
    indirect=["bucket"],
)
def test_failures_of_the_moment_change_nothing(bucket: Bucket, tmp_path: Path, status: int) -> None:
    limit(bucket.url, first_pause=0.01)  # how long is waited: see `test_faults`
    path = make(tmp_path / "in", "parquet")
    bucket.store.put("in/a.parquet", path.read_bytes())
    bucket.gateway.rules.append(lambda request: status if request.number % 3 else None)
    convert({"input": {"paths": [str(path)]}}, output=tmp_path / "local")
    convert({"input": {"paths": [f"{bucket.url}/in"]}}, output=tmp_path / "out")
    assert shards(tmp_path / "out") == shards(tmp_path / "local")
    assert len({request.path for request in bucket.gateway.requests}) < len(bucket.gateway.requests)


def test_damaged_pages_are_found_by_their_checksums(bucket: Bucket, tmp_path: Path) -> None:
    data = bytearray(make(tmp_path / "in", "parquet").read_bytes())
    data[len(data) // 2] ^= 1
    bucket.store.put("in/a.parquet", bytes(data))
    source = made_source("parquet", (f"{bucket.url}/in",))
    survey = source.survey(source.list_files(), map_in_turn)
    with pytest.raises(SourceError, match=r"/in/a\.parquet: row group \d+ .* is damaged: .*(CRC|crc)"):
        list(source.read(Task(0, tuple(survey.pieces)), survey.frozen))


def run(folder: Path, *args: str) -> tuple[int, str]:
    """Run a command in a process of its own; return its exit code, and what it showed."""
    done = subprocess.run(
        [sys.executable, "-m", "shardmill.pipelines", *args],
        check=False,
        capture_output=True,
        cwd=folder,
        env=os.environ,
    )
    return done.returncode, (done.stdout + done.stderr).decode()


COMMANDS = pytest.mark.thorough("a command is started for each")
SECRETS = ("canary-secret-of-the-store", "AKIDCANARY0000000001", "secret-in-a-message")


@pytest.mark.parametrize(
    ("bucket", "what"),
    [pytest.param("s3", "list", marks=COMMANDS), pytest.param("gs", "read", marks=COMMANDS), ("s3", "read")],
    indirect=["bucket"],
)
def test_denied_access_is_told_in_one_line_and_without_secrets(bucket: Bucket, tmp_path: Path, what: str) -> None:
    bucket.store.put("in/a.csv", b"a,b\n1,2\n")
    bucket.gateway.rules.append(lambda request: 403 if request.reads == (what == "read") else None)
    code, shown = run(tmp_path, "convert", f"{bucket.url}/in/*.csv", "-o", "out")
    (line,) = [line for line in shown.splitlines() if line.startswith("error")]
    assert re.search(r"access denied \((read|list|look at) it\); the credentials of the environment need", line)
    assert "Traceback" not in shown
    assert code == {"list": 2, "read": 1}[what]
    assert not [secret for secret in SECRETS if secret in shown]
    assert not (tmp_path / "out").exists() or not [p for p in (tmp_path / "out").rglob("*") if p.is_file()]


def test_what_is_not_there_is_told_in_one_line(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for path, problem in [
        (f"{bucket.url}/gone.csv", "gone.csv: no such object or folder"),
        (f"{bucket.scheme}://no-such-bucket-of-ours/a.csv", "no-such-bucket-of-ours: no such bucket; make it"),
        (f"{bucket.scheme}://AKIA:canary@bucket/a.csv", "credentials have no place in a URL"),
        ("s3:///a.csv", "no bucket can have this name"),
        ("https://host/a.csv?token=canary", "https:// is not supported; give a local path, s3://bucket/path or gs://"),
    ]:
        with pytest.raises(SystemExit) as ended:
            main(["convert", path, "-o", "out"])
        shown = capsys.readouterr().err
        assert (ended.value.code, problem in shown) == (2, True), shown
        assert "canary" not in shown
        assert "Traceback" not in shown
    assert not (tmp_path / "out").exists()


def test_a_store_without_credentials_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "STORAGE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    code, shown = run(tmp_path, "convert", "s3://some-bucket/a.csv", "-o", "out")
    assert (code, "the environment has no credentials for it; set AWS_PROFILE" in shown) == (2, True), shown


@pytest.mark.parametrize("bucket", ["s3"], indirect=True)
def test_an_append_knows_objects_by_what_the_store_says_of_them(bucket: Bucket, tmp_path: Path) -> None:
    path = make(tmp_path / "in", "csv")
    config = {"input": {"paths": [f"{bucket.url}/in"]}, "output": {"path": str(tmp_path / "out")}}
    bucket.store.put("in/a.csv", path.read_bytes())
    first = convert(config)
    assert convert(config).nothing_to_do
    bucket.store.put("in/a.csv", path.read_bytes())  # written again, the same
    held = append(config)
    assert (held.nothing_to_do, held.manifest.generation) == (True, 1)
    bucket.store.put("in/b.csv", path.read_bytes()[:-20] + b"19999,0.12500000000\n")
    assert append(config).manifest.counts.written == first.manifest.counts.written == ROWS
    bucket.store.put("in/b.csv", path.read_bytes()[:-20] + b"19999,0.25000000000\n")  # as long as before
    with pytest.raises(UsageError, match=r"b\.csv: changed since the dataset took it in"):
        append(config)
    changed = append(config, changed="append")
    assert changed.manifest.generation == 3
    assert any("b.csv: changed since the dataset took it in" in warning for warning in changed.warnings)


@pytest.mark.thorough("200 MB pass through a gateway while memory is sampled")
@pytest.mark.parametrize("bucket", ["gs"], indirect=True)
def test_a_large_object_passes_through_little_memory(bucket: Bucket, tmp_path: Path) -> None:
    line = b"1234567,some text that goes on for a while,0.123456789,another column of text\n"
    data = b"id,text,x,more\n" + line * (200_000_000 // len(line))
    bucket.store.put("in/a.csv", data)
    size, data = len(data), b""
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", "-q", "--workers", "1"]
    peak = peak_bytes([*command, f"{bucket.url}/in/a.csv", "-o", str(tmp_path / "out")], tmp_path)
    assert peak < 450e6
    assert max(bucket.gateway.sizes) <= 4 << 20
    assert sum(bucket.gateway.sizes) < 2.2 * size  # once to find the records, once to read them
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["counts"]["written"] == size // len(line)


def test_a_wrong_scheme_in_a_config_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("input:\n  paths: ['ftp://host/a.csv']\noutput: {path: o}\n")
    with pytest.raises(ConfigError, match=r"c\.yaml:2:11: .*ftp:// is not supported"):
        convert(tmp_path / "c.yaml")


@pytest.mark.thorough("worker processes are started")
@pytest.mark.parametrize("bucket", ["gs"], indirect=True)
def test_worker_processes_read_from_stores_too(bucket: Bucket, tmp_path: Path) -> None:
    path = make(tmp_path / "in", "csv")
    bucket.store.put("in/a.csv", path.read_bytes())
    convert({"input": {"paths": [str(path)]}}, output=tmp_path / "local")
    remote = {"input": {"paths": [f"{bucket.url}/in"]}, "runner": {"processes": True, "workers": 2}}
    convert(remote, output=tmp_path / "out")
    assert shards(tmp_path / "out") == shards(tmp_path / "local") != {}
    assert servers.environment(bucket.scheme, bucket.gateway.url).items() <= os.environ.items()


@pytest.mark.thorough("400,000 rows, a command that is killed, and two that run after it")
@pytest.mark.parametrize("bucket", ["s3"], indirect=True)
def test_a_run_that_was_killed_goes_on_only_with_the_objects_that_it_read(bucket: Bucket, tmp_path: Path) -> None:
    rows = "".join(f"{i},{i * 7919 % 1000003},{'x' * (i % 50)}\n" for i in range(400_000))
    data = ("id,n,text\n" + rows).encode()
    (tmp_path / "a.csv").write_bytes(data)
    convert({"input": {"paths": [str(tmp_path / "a.csv")]}}, output=tmp_path / "local")
    bucket.store.put("in/a.csv", data)
    command = ["convert", f"{bucket.url}/in/a.csv", "-o", "out", "--workers", "1", "-q"]

    def kill_it(request: Request) -> None:
        if request.reads and list((tmp_path / "out").glob(".staging/*/tasks/*.json")):
            process.kill()

    bucket.gateway.rules.append(kill_it)
    with subprocess.Popen([sys.executable, "-m", "shardmill.pipelines", *command], cwd=tmp_path) as process:
        assert process.wait(300) == -9
    bucket.gateway.rules.clear()
    bucket.store.put("in/a.csv", data[:-1] + b" ")
    code, shown = run(tmp_path, *command)
    assert (code, f"{bucket.url}/in/a.csv: was written to since a run of this command stopped" in shown) == (1, True), (
        shown
    )
    bucket.store.put("in/a.csv", data)
    bucket.gateway.requests.clear()
    code, shown = run(tmp_path, *[arg for arg in command if arg != "-q"])
    assert code == 0, shown
    assert "resuming: " in shown, shown
    assert shards(tmp_path / "out") == shards(tmp_path / "local") != {}
