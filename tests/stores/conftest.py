"""Files on a disk and the same in a bucket, behind a gateway."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from shardmill.transforms.stores.connect import store_at
from shardmill.transforms.stores.object_store import ObjectStore
from shardmill.transforms.stores.store_url import parse_store_url

from . import servers
from .gateway import Gateway, gateway_to


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


@pytest.fixture(params=["s3", "gs"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A new bucket on S3, and then on GCS."""
    scheme = request.param
    endpoint = request.getfixturevalue({"s3": "s3_endpoint", "gs": "gcs_endpoint"}[scheme])
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


def _in_bucket(store: ObjectStore, bucket: str) -> ObjectStore:
    """Return the same client for another bucket: that of the process for this bucket goes through the gateway."""
    if store.scheme == "s3":
        return type(store)(bucket, store.client)  # type: ignore[attr-defined, call-arg]
    return type(store)(bucket, store.handle.client.bucket(bucket))  # type: ignore[attr-defined, call-arg]


def shards(dataset: Path) -> dict[str, str]:
    """Return the digest of each shard."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in dataset.glob("*.tfrecord*")}
