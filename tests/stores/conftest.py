"""Files on a disk and the same in a bucket, behind a gateway; datasets in both."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.storage.object_storage import ObjectStorage
from shardmill.transforms.stores.object_store import ObjectStore, StoreLimits, store_at
from shardmill.transforms.stores.store_url import parse_store_url

from . import servers
from .faulty_proxy import Proxy, faulty_proxy
from .gateway import Gateway, gateway_to

ROWS = 3000

S3_TOO = [
    pytest.param("s3", marks=pytest.mark.thorough("S3 too, whose server takes three times as long")),
    *(scheme for scheme in servers.SERVED if scheme != "s3"),
]
"""The stores of a test whose quick one is GCS: what differs between them is in the quick tier for all."""


class Bucket:
    """A bucket behind a gateway; `store` goes past it, straight to the server."""

    def __init__(self, url: str, store: ObjectStore, gateway: Gateway) -> None:
        self.url = url
        self.scheme = url.partition(":")[0]
        self.store = store
        self.gateway = gateway

    def put_folder(self, folder: Path, prefix: str) -> None:
        """Put all files below a folder."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.store.put(f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())


@pytest.fixture(params=servers.SERVED)
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A new bucket of each store in turn."""
    scheme = request.param
    endpoint = request.getfixturevalue(servers.SERVED[scheme].endpoint)
    url = f"{scheme}://{servers.make_bucket(scheme, endpoint)}"
    with gateway_to(endpoint) as gateway:
        past = f"{scheme}://{servers.make_bucket(scheme, endpoint)}"
        for name, value in servers.environment(scheme, endpoint).items():
            monkeypatch.setenv(name, value)
        direct = store_at(parse_store_url(past))
        direct = _in_bucket(direct, parse_store_url(url).bucket)
        for name, value in servers.environment(scheme, gateway.url).items():
            monkeypatch.setenv(name, value)
        yield Bucket(url, direct, gateway)


@pytest.fixture
def proxy(bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before the server of a new bucket, which the environment names instead of it."""
    scheme = bucket_url.partition("://")[0]
    with faulty_proxy(os.environ[servers.SERVED[scheme].variable]) as proxy:
        for name, value in servers.environment(scheme, proxy.url).items():
            monkeypatch.setenv(name, value)
        yield proxy


def _in_bucket(store: ObjectStore, bucket: str) -> ObjectStore:
    """Return the same client for another bucket: that of the process for this bucket goes through the gateway."""
    if hasattr(store, "handle"):
        return type(store)(bucket, store.handle.client.bucket(bucket))  # type: ignore[call-arg]
    return type(store)(bucket, store.client)  # type: ignore[attr-defined, call-arg]


def limit(url: str, **limits: Any) -> None:
    """Set other limits of this process's client of a bucket; the next test has a new client."""
    store_at(parse_store_url(url)).limits = StoreLimits(**limits)


def shards(dataset: Path) -> dict[str, str]:
    """Return the digest of each shard."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in dataset.glob("*.tfrecord*")}


@pytest.fixture(params=["local", *servers.SERVED])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a dataset may lie: a folder of the disk, or of each store."""
    scheme = request.param
    if scheme == "local":
        return str(tmp_path / "out")
    endpoint = request.getfixturevalue(servers.SERVED[scheme].endpoint)
    for name, value in servers.environment(scheme, endpoint).items():
        monkeypatch.setenv(name, value)
    return f"{scheme}://{servers.make_bucket(scheme, endpoint)}/data/out"


@pytest.fixture
def out(bucket_url: str) -> str:
    return f"{bucket_url}/data/out"


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A CSV file of some 300 KB."""
    path = tmp_path_factory.mktemp("source") / "rows.csv"
    path.write_text("id,text\n" + "".join(f"{i},{'abc' * (i % 50)}-{i}\n" for i in range(ROWS)))
    return str(path)


def files_of(root: str) -> dict[str, bytes]:
    """Return all files of a dataset, staging too, but for what differs from run to run."""
    if "://" in root:
        storage = ObjectStorage(root)
        names = [path for path, _ in storage.files_below("")]
        names += [f".staging/{path}" for path, _ in storage.files_below(".staging")]
        files = {name: storage.read(name) for name in names}
    else:
        files = {str(path.relative_to(root)): path.read_bytes() for path in Path(root).rglob("*") if path.is_file()}
    return {name: _without_run(data) if "manifest" in name else data for name, data in files.items()}


def _without_run(data: bytes) -> bytes:
    document = json.loads(data)
    document.pop("run", None)  # parts have none
    return json.dumps(document).encode()


Local = Callable[..., str]


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Local:
    """Converts to disk, and the same only once."""
    known: dict[str, str] = {}

    def converted(paths: str, **settings: Any) -> str:
        key = json.dumps([paths, settings])
        if key not in known:
            known[key] = str(tmp_path_factory.mktemp("local") / "out")
            convert({"input": {"paths": [paths]}, "name": "rows"}, output=known[key], **settings)
        return known[key]

    return converted
