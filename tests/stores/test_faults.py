"""What networks and busy stores do: replies are lost, requests refused for the moment, preconditions ignored."""

from __future__ import annotations

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from shardmill.transforms.dataset.commit.publish import prepare_target
from shardmill.transforms.dataset.stage.spec import DatasetSpec
from shardmill.transforms.errors import StoreAccessError, StoreError, TargetError
from shardmill.transforms.stores import object_store as retries
from shardmill.transforms.stores.object_store import ObjectStore, StoreLimits, store_at
from shardmill.transforms.stores.store_url import parse_store_url

from . import servers
from .faulty_proxy import Fault, Proxy

pytestmark = pytest.mark.engine

MIB = 1 << 20
CONFLICT = "409 ConditionalRequestConflict"
SOON = StoreLimits(first_pause=0.001)


@pytest.fixture
def store(bucket_url: str, proxy: Proxy) -> ObjectStore:
    return store_at(parse_store_url(bucket_url))


@pytest.fixture
def put(store: ObjectStore) -> Fault:
    """A fault of the requests that put objects."""
    return Fault("drop", servers.SERVED[store.scheme].puts)


class TestLostReplies:
    def test_a_put_that_was_first_is_known_as_ours(self, store: ObjectStore, proxy: Proxy, put: Fault) -> None:
        proxy.faults.append(put)
        assert store.put("manifest", b"mine", if_absent=True)
        assert len(proxy.failed) == 1
        assert not store.put("manifest", b"mine", if_absent=True)

    def test_a_put_that_was_late_is_known_as_anothers(self, store: ObjectStore, proxy: Proxy, put: Fault) -> None:
        store.put("manifest", b"the same", if_absent=True)
        proxy.faults.append(put)
        assert not store.put("manifest", b"the same", if_absent=True)
        assert len(proxy.failed) == 1

    def test_a_replacement_of_what_was_seen_is_known_as_ours(
        self, store: ObjectStore, proxy: Proxy, put: Fault
    ) -> None:
        store.put("sidecar", b"old")
        seen = store.head("sidecar")
        assert seen is not None
        proxy.faults.append(put)
        assert store.put("sidecar", b"new", if_version=seen.version)
        assert not store.put("sidecar", b"newer", if_version=seen.version)
        assert store.read("sidecar") == b"new"

    @pytest.mark.parametrize("number", range(5))
    def test_a_stream_arrives_whichever_of_its_replies_is_lost(
        self, store: ObjectStore, proxy: Proxy, number: int
    ) -> None:
        data = os.urandom(17 * MIB)
        seen = len(proxy.requests)
        upload = store.upload("stream")
        proxy.faults.append(_Nth("drop", number, ("PUT", "POST")))
        upload.write(memoryview(data))
        upload.finish()
        assert len(proxy.failed) == (1 if number < _writes(proxy, seen) else 0)
        assert store.read("stream") == data
        assert [found.key for found in store.walk("")] == ["stream"]

    @pytest.mark.parametrize("number", range(3))
    @pytest.mark.parametrize("if_absent", [True, False])
    def test_a_copy_is_made_whichever_of_its_replies_is_lost(
        self, store: ObjectStore, proxy: Proxy, number: int, if_absent: bool
    ) -> None:
        proxy.strict = True
        store.put("source", b"bytes")
        proxy.faults.append(_Nth("drop", number, ("PUT", "POST")))
        assert store.copy("source", "target", if_absent=if_absent)
        assert store.read("target") == b"bytes"

    def test_a_copy_that_was_late_by_a_moment_is_none(self, store: ObjectStore, proxy: Proxy) -> None:
        proxy.strict = True
        store.put("source", b"bytes")
        store.put("target", b"bytes")
        proxy.faults.append(Fault(404, method="GET", path="/o/target"))  # it was not there a moment ago
        proxy.faults.append(_Nth("drop", 2 if store.scheme == "s3" else 0, ("PUT", "POST")))  # what would make it
        assert not store.copy("source", "target", if_absent=True)

    def test_of_sixteen_copies_to_one_name_one_is_made(self, store: ObjectStore, proxy: Proxy) -> None:
        proxy.strict = True
        for number in range(16):
            store.put(f"source-{number}", b"%d" % number)
        start = threading.Barrier(16)

        def copy(number: int) -> bool:
            start.wait()
            return store.copy(f"source-{number}", "target", if_absent=True)

        with ThreadPoolExecutor(16) as pool:
            made = list(pool.map(copy, range(16)))
        assert made.count(True) == 1
        assert store.read("target") == b"%d" % made.index(True)

    def test_reading_listing_and_removing_go_on(self, store: ObjectStore, proxy: Proxy) -> None:
        data = os.urandom(3 * MIB)
        store.put("x", data)
        proxy.faults.append(Fault("drop", times=1))
        assert store.read("x") == data
        proxy.faults.append(Fault("drop", times=1))
        assert [found.key for found in store.walk("")] == ["x"]
        proxy.faults.append(Fault("drop", times=1))
        store.delete(["x"])
        assert len(proxy.failed) == 3
        assert store.head("x") is None


class TestBusyStores:
    @pytest.mark.parametrize("status", [429, 503])
    def test_what_is_refused_for_the_moment_is_tried_again_later_and_later(
        self, store: ObjectStore, proxy: Proxy, status: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retries.random, "uniform", lambda low, high: high)
        store.limits = StoreLimits(first_pause=0.05)
        proxy.faults.append(Fault(status, times=3))
        assert store.put("x", b"data", if_absent=True)
        method = servers.SERVED[store.scheme].puts
        pauses = [b - a for a, b in pairwise(proxy.times_of(method, ""))]
        assert [pause >= least for pause, least in zip(pauses, (0.05, 0.1, 0.2), strict=True)] == [True] * 3
        proxy.faults.append(Fault(status, times=2))
        assert store.read("x") == b"data"
        proxy.faults.append(Fault(status, times=2))
        assert [found.key for found in store.walk("")] == ["x"]

    def test_a_store_that_stays_down_is_given_up_in_one_line(self, store: ObjectStore, proxy: Proxy) -> None:
        store.limits = SOON
        proxy.faults.append(Fault(503, times=10**9))
        with pytest.raises(StoreError) as caught:
            store.read("folder/x")
        assert str(caught.value).startswith(
            f"{store.scheme}://{store.bucket}/folder/x: the store failed at each of several tries, last with "
        )
        assert "\n" not in str(caught.value)
        assert len(proxy.failed) == retries.TRIES

    def test_a_connection_that_is_refused_is_given_up_in_one_line(
        self, store: ObjectStore, bucket_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in servers.environment(store.scheme, "http://127.0.0.1:1").items():
            monkeypatch.setenv(name, value)
        other = store_at(parse_store_url(f"{store.scheme}://another-bucket"))
        other.limits = SOON
        with pytest.raises(StoreError, match=r"another-bucket/x: the store failed at each of several tries, last with"):
            other.head("x")

    @pytest.mark.parametrize(
        ("status", "text"), [(403, "access denied"), (401, "refuses the environment's credentials")]
    )
    def test_a_refusal_that_stays_is_told_at_once(
        self, store: ObjectStore, proxy: Proxy, status: int, text: str
    ) -> None:
        proxy.faults.append(Fault(status, times=10**9))
        for act in (lambda: store.head("x"), lambda: store.put("x", b""), lambda: list(store.walk(""))):
            with pytest.raises(StoreAccessError, match=text) as caught:
                act()
            assert "canary" not in str(caught.value)
            assert "AKID" not in str(caught.value)
        assert len(proxy.failed) == 3


def test_a_store_that_ignores_preconditions_is_refused_before_anything_is_written(
    bucket_url: str, proxy: Proxy
) -> None:
    proxy.faults.append(Fault("strip", times=10**9))
    spec = DatasetSpec(path=f"{bucket_url}/out", name="x", shard_size=65536)
    with pytest.raises(TargetError) as caught:
        prepare_target(spec)
    condition = store_at(parse_store_url(bucket_url)).conditions["if_absent"]
    assert str(caught.value) == (
        f"{bucket_url}/out: the store ignores {condition}: of two writers both would take themselves for the first; "
        f"write to a store that keeps it"
    )
    proxy.faults.clear()
    assert list(store_at(parse_store_url(bucket_url)).walk("")) == []
    assert prepare_target(spec) is None


@pytest.mark.parametrize("bucket_url", ["s3"], indirect=True)
def test_a_store_whose_copies_ignore_preconditions_is_refused_too(bucket_url: str, proxy: Proxy) -> None:
    completions = Fault("strip", "POST", "uploadId=", times=10**9)
    proxy.faults.append(completions)
    spec = DatasetSpec(path=f"{bucket_url}/out", name="x", shard_size=65536)
    with pytest.raises(TargetError, match=r"/out: the store ignores If-None-Match of CompleteMultipartUpload: of two"):
        prepare_target(spec)
    proxy.faults[:] = [Fault(403, "POST", "uploadId=", times=10**9)]
    with pytest.raises(StoreAccessError, match="access denied"):
        prepare_target(spec)
    proxy.faults.clear()
    assert list(store_at(parse_store_url(bucket_url)).walk("")) == []
    assert prepare_target(spec) is None


@pytest.mark.parametrize("bucket_url", ["s3"], indirect=True)
class TestConflictsOnS3:
    """Whoever completes an upload while another request for its key is under way is told 409: begin it anew."""

    @pytest.fixture(autouse=True)
    def soon(self, store: ObjectStore) -> None:
        store.limits = SOON

    def test_a_copy_is_begun_anew(self, store: ObjectStore, proxy: Proxy) -> None:
        store.put("source", b"bytes")
        proxy.faults.append(Fault(CONFLICT, "POST", "uploadId=", times=2))
        assert store.copy("source", "target", if_absent=True)
        assert store.read("target") == b"bytes"
        assert [len(proxy.times_of("POST", key)) for key in ("?uploads", "uploadId=")] == [3, 3]
        assert _unfinished(store) == []

    def test_a_copy_that_another_one_was_faster_than_is_none(self, store: ObjectStore, proxy: Proxy) -> None:
        store.put("source", b"bytes")
        store.put("target", b"other")
        proxy.faults.append(Fault(CONFLICT, "POST", "uploadId="))
        assert not store.copy("source", "target", if_absent=True)
        assert store.read("target") == b"other"
        assert len(proxy.times_of("POST", "?uploads")) == 1
        assert _unfinished(store) == []

    def test_a_copy_that_was_made_all_the_same_is_known_as_ours(self, store: ObjectStore, proxy: Proxy) -> None:
        store.put("source", b"bytes")
        proxy.faults.append(Fault(f"late {CONFLICT}", "POST", "uploadId="))
        assert store.copy("source", "target", if_absent=True)
        assert len(proxy.times_of("POST", "?uploads")) == 1

    def test_a_stream_is_completed_again_and_then_given_up_in_one_line(self, store: ObjectStore, proxy: Proxy) -> None:
        data = os.urandom(6 * MIB)
        for times, error in ((2, None), (10**9, "x: the store failed at each of several tries, last with Conditional")):
            proxy.faults[:] = [Fault(CONFLICT, "POST", "uploadId=", times=times)]
            upload = store.upload("x")
            upload.write(memoryview(data))
            with contextlib.nullcontext() if error is None else pytest.raises(StoreError, match=error):
                upload.finish()
            assert store.read("x") == data
            assert _unfinished(store) == []

    def test_an_upload_that_is_gone_is_looked_for_and_begun_anew(self, store: ObjectStore, proxy: Proxy) -> None:
        store.put("source", b"bytes")
        for fault in ("404 NoSuchUpload", "late 404 NoSuchUpload"):
            proxy.faults.append(Fault(fault, "POST", "uploadId="))
            assert store.copy("source", fault, if_absent=True)
            assert store.read(fault) == b"bytes"
        assert len(proxy.times_of("POST", "?uploads")) == 3
        proxy.faults.append(Fault("404 NoSuchUpload", "POST", "uploadId="))
        store.put("target", b"other")
        assert not store.copy("source", "target", if_absent=True)
        assert store.read("target") == b"other"
        assert _unfinished(store) == []


def _unfinished(store: ObjectStore) -> list[tuple[str, str]]:
    """Return the key and the id of each upload that is neither completed nor aborted."""
    found = store.client.list_multipart_uploads(Bucket=store.bucket)  # type: ignore[attr-defined]
    return [(upload["Key"], upload["UploadId"]) for upload in found.get("Uploads", ())]


class _Nth(Fault):
    """Takes the n-th request, from 0 on, of some methods."""

    def __init__(self, what: str, number: int, methods: tuple[str, ...]) -> None:
        super().__init__(what)
        self.number, self.methods = number, methods

    def takes(self, method: str, path: str) -> bool:
        if method not in self.methods:
            return False
        self.number -= 1
        return self.number == -1


def _writes(proxy: Proxy, since: int) -> int:
    return sum(method in ("PUT", "POST") for _, method, _ in proxy.requests[since:])
