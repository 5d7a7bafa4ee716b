"""Real servers of the stores, on free ports of loopback: moto's for S3, fake-gcs-server for Google Cloud Storage."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from shardmill.transforms.stores import object_store

from ..command_line import lacking

FAKE_GCS = "github.com/fsouza/fake-gcs-server@v1.56.1"


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """Yield the endpoint of moto's server."""
    program = Path(__file__).with_name("moto_one_by_one.py")
    with _stopped_at_the_end(
        subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"


@contextlib.contextmanager
def gcs_server() -> Iterator[str]:
    """Yield the endpoint of a fake-gcs-server."""
    program = fake_gcs_program()
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    arguments = ["-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    arguments += ["-external-url", url, "-public-host", f"127.0.0.1:{port}", "-log-level", "error"]
    with _stopped_at_the_end(
        subprocess.Popen([program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ) as server:
        until = time.monotonic() + 300
        while not _answers(f"{url}/storage/v1/b?project=test"):
            assert server.poll() is None
            assert time.monotonic() < until, "fake-gcs-server does not answer"
        yield url


def fake_gcs_program() -> str:
    """Return fake-gcs-server, built where it is not there yet."""
    version = FAKE_GCS.rpartition("@")[2]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "shardmill-tests"
    program = cache / f"fake-gcs-server-{version}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            _build(program)
    return str(program)


def _build(program: Path) -> None:
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        lacking("fake-gcs-server is built by Go, which is not installed")
        return
    folder = program.with_name(f"{program.name}.{uuid.uuid4().hex}")
    done = subprocess.run(
        [go, "install", FAKE_GCS],
        check=False,
        env={**os.environ, "GOBIN": str(folder)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        lacking(f"fake-gcs-server could not be built: go install {FAKE_GCS}: {done.stderr[-300:]}")
    (folder / "fake-gcs-server").rename(program)
    folder.rmdir()


def _bucket_of_s3(endpoint: str, name: str) -> urllib.request.Request:
    return urllib.request.Request(f"{endpoint}/{name}", method="PUT")


def _bucket_of_gcs(endpoint: str, name: str) -> urllib.request.Request:
    data, headers = json.dumps({"name": name}).encode(), {"Content-Type": "application/json"}
    return urllib.request.Request(f"{endpoint}/storage/v1/b?project=test", data, headers, method="POST")


@dataclass(frozen=True)
class Served:
    """A store that has a server: all tests of stores that are not of one store alone run on it.

    `endpoint` is the fixture that starts it, `variable` where the client finds it, `puts` the method of a `put`.
    """

    endpoint: str
    variable: str
    puts: str
    request_of_bucket: Callable[[str, str], urllib.request.Request]
    variables: dict[str, str] = field(default_factory=dict)


SERVED = {
    "s3": Served(
        "s3_endpoint",
        "AWS_ENDPOINT_URL",
        "PUT",
        _bucket_of_s3,
        {
            "AWS_ACCESS_KEY_ID": "AKIDCANARY0000000001",
            "AWS_SECRET_ACCESS_KEY": "canary-secret-of-the-store",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        },
    ),
    "gs": Served("gcs_endpoint", "STORAGE_EMULATOR_HOST", "POST", _bucket_of_gcs),
}


def make_bucket(scheme: str, endpoint: str) -> str:
    """Return the name of a new bucket."""
    name = f"b-{uuid.uuid4().hex[:16]}"
    with urllib.request.urlopen(SERVED[scheme].request_of_bucket(endpoint, name), timeout=300) as answer:
        answer.read()
    return name


def environment(scheme: str, endpoint: str) -> dict[str, str]:
    """Return the variables by which the clients find a server, as users set them."""
    return {SERVED[scheme].variable: endpoint, **SERVED[scheme].variables}


def forget_clients() -> None:
    """Close the clients of this process: it keeps one for each bucket, and each test has buckets of its own.

    A client takes some megabytes and, while its connections are open, threads of the servers in this process.
    """
    for store in object_store._stores.values():
        handle = getattr(store, "handle", store)
        if hasattr(handle, "client"):  # a store of the tests alone has none
            handle.client.close()
    object_store._stores.clear()


@contextlib.contextmanager
def _stopped_at_the_end(server: subprocess.Popen) -> Iterator[subprocess.Popen]:
    try:
        yield server
    finally:
        server.terminate()
        server.wait(300)
        for stream in (server.stdin, server.stdout):
            if stream is not None:
                stream.close()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False
