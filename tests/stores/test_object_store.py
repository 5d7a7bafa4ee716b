"""One contract, held by S3 and Google Cloud Storage alike."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from shardmill.transforms.errors import StoreAccessError
from shardmill.transforms.format.tfrecord.framing import crc32c
from shardmill.transforms.stores.object_store import ChangedObject, ObjectStore, StoreLimits, read_ahead, store_at
from shardmill.transforms.stores.store_url import parse_store_url


@pytest.fixture
def store(bucket_url: str) -> ObjectStore:
    return store_at(parse_store_url(bucket_url))


def test_what_was_put_is_read_and_described(store: ObjectStore) -> None:
    data = os.urandom(1000)
    assert store.put("a/b.bin", data)
    info = store.head("a/b.bin")
    assert info is not None
    assert (info.key, info.size, info.crc32c) == ("a/b.bin", 1000, crc32c(data))
    assert store.read("a/b.bin") == data
    assert store.read("a/b.bin", version=info.version) == data


def test_an_object_that_is_not_there_is_told(store: ObjectStore) -> None:
    assert store.head("none") is None
    with pytest.raises(FileNotFoundError):
        store.read("none")
    with pytest.raises(FileNotFoundError):
        store.copy("none", "other")
    store.delete(["none"])


def test_ranges_overlap_as_they_like(store: ObjectStore) -> None:
    data = os.urandom(100_000)
    store.put("x", data)
    ranges = [(start, start + 7000) for start in range(0, 99_000, 3000)]
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda r: store.read("x", *r), ranges))
    assert read == [data[start:end] for start, end in ranges]
    assert store.read("x", 99_999) == data[-1:]
    assert store.read("x", 5, 5) == b""
    assert store.read("x", 100_000, 100_010) == b""
    assert b"".join(read_ahead(store, "x", 10, 99_990, piece_bytes=7001)) == data[10:99_990]
    with pytest.raises(EOFError, match=r"/x: ends before byte 100001"):
        list(read_ahead(store, "x", 0, 100_001, piece_bytes=9000))


def test_an_object_that_was_replaced_is_not_read_as_the_one_it_was(store: ObjectStore) -> None:
    store.put("x", b"old")
    info = store.head("x")
    store.put("x", b"new")
    assert info is not None
    with pytest.raises(ChangedObject):
        store.read("x", version=info.version)


def test_lists_come_in_the_order_of_their_bytes_and_by_levels(store: ObjectStore) -> None:
    keys = ["a", "b/1", "b/2", "b/c/3", "b/é", "b0", "ba"]
    for key in keys:
        store.put(key, key.encode())
    assert [found.key for found in store.walk("")] == sorted(keys, key=str.encode)
    assert [found.key for found in store.walk("b/")] == ["b/1", "b/2", "b/c/3", "b/é"]
    level = store.level("b/")
    assert ([found.key for found in level.objects], level.prefixes) == (["b/1", "b/2", "b/é"], ("b/c/",))
    assert [found.size for found in store.walk("b/1")] == [3]
    assert list(store.walk("nothing/")) == []


def test_more_objects_than_a_page_holds_are_listed_and_removed(store: ObjectStore) -> None:
    store.limits = StoreLimits(page_keys=7)
    keys = [f"many/{number:05d}" for number in range(30)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda key: store.put(key, b""), keys))
    assert [found.key for found in store.walk("many/")] == keys
    assert len(store.level("many/").objects) == 30
    store.delete(keys)
    assert list(store.walk("many/")) == []


def test_of_sixteen_threads_one_puts_what_was_absent(store: ObjectStore) -> None:
    start = threading.Barrier(16)

    def write(number: int) -> bool:
        start.wait()
        return store.put("manifest", b"%d" % number, if_absent=True)

    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(write, range(16)))
    assert won.count(True) == 1
    assert store.read("manifest") == b"%d" % won.index(True)


@pytest.mark.parametrize("size", [0, 1, 8 << 20, (8 << 20) + 1, 21 << 20])
def test_a_stream_of_any_size_arrives_whole_or_not_at_all(store: ObjectStore, size: int) -> None:
    data = os.urandom(size)
    upload = store.upload("dir/stream")
    for start in range(0, size, 1_000_003):
        upload.write(memoryview(data)[start : start + 1_000_003])
        assert store.head("dir/stream") is None
    upload.finish()
    info = store.head("dir/stream")
    assert info is not None
    assert (info.size, info.crc32c) == (size, crc32c(data))
    assert store.read("dir/stream") == data
    assert [found.key for found in store.walk("")] == ["dir/stream"]


@pytest.mark.parametrize("size", [10, 17 << 20])
def test_a_stream_that_is_abandoned_leaves_nothing(store: ObjectStore, size: int) -> None:
    upload = store.upload("dir/stream")
    upload.write(memoryview(bytes(size)))
    upload.abandon()
    upload.abandon()
    assert list(store.walk("")) == []


def test_a_large_object_is_put_if_absent_too(store: ObjectStore) -> None:
    assert store.put("x", b"1" * (9 << 20), if_absent=True)
    assert not store.put("x", b"2" * (9 << 20), if_absent=True)
    assert store.read("x") == b"1" * (9 << 20)


@pytest.mark.parametrize("size", [0, 10, 17 << 20])
def test_a_copy_has_the_bytes_and_the_checksum(store: ObjectStore, size: int) -> None:
    data = os.urandom(size)
    upload = store.upload("source")
    upload.write(memoryview(data))
    upload.finish()
    assert store.copy("source", "first", if_absent=True)
    assert not store.copy("source", "first", if_absent=True)
    store.put("second", b"old")
    assert not store.copy("source", "second", if_absent=True)
    assert store.read("second") == b"old"
    assert store.copy("source", "second")
    for key in ("first", "second"):
        info = store.head(key)
        assert info is not None
        assert (info.size, info.crc32c) == (size, crc32c(data))
        assert store.read(key) == data


def test_a_bucket_that_is_not_there_is_told_in_one_line(store: ObjectStore) -> None:
    other = store_at(parse_store_url(f"{store.scheme}://there-is-none"))
    message = f"{store.scheme}://there-is-none: no such bucket; make it, or choose another"
    with pytest.raises(StoreAccessError, match=f"^{message}$"):
        other.put("x", b"")
    with pytest.raises(StoreAccessError, match=f"^{message}$"):
        list(other.walk(""))


@pytest.mark.parametrize(("scheme", "module", "extra"), [("s3", "boto3", "aws"), ("gs", "google.cloud.storage", "gcp")])
def test_a_client_that_is_not_installed_is_told_by_its_extra_beside_those_that_are_there(
    scheme: str, module: str, extra: str
) -> None:
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from shardmill.transforms.errors import StoreAccessError\n"
        "from shardmill.transforms.stores.object_store import store_at\n"
        "from shardmill.transforms.stores.store_url import parse_store_url\n"
        f"try: store_at(parse_store_url('{scheme}://bucket/x'))\n"
        "except StoreAccessError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    install = f"uv tool install '.[aws,coco,gcp,images]', or for one command: uv run --extra {extra} shardmill ..."
    assert done.stdout == f"{scheme}:// needs the extra {extra}; in your clone of Shardmill: {install}\n"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://key:secret@bucket/x", "s3://…@bucket/x: credentials have no place in a URL"),
        ("s3:///x", "s3:///x: no bucket can have this name"),
        ("gs://../x", "gs://../x: no bucket can have this name"),
    ],
)
def test_a_url_that_names_no_bucket_is_told(url: str, message: str) -> None:
    with pytest.raises(StoreAccessError) as caught:
        parse_store_url(url)
    assert str(caught.value).startswith(message)
    assert "secret" not in str(caught.value)
