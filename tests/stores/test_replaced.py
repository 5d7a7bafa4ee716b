"""Readers of a dataset in a store that is replaced while they read, and what it costs to notice it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.dataset.storage.object_storage import ObjectStorage
from shardmill.transforms.errors import DamageError

from ..dataset.reading.test_replaced import WAYS, each_row, read_until_the_error, version
from .conftest import S3_TOO
from .test_requests import Bound
from .test_requests import at_most as at_most

stores = pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)

OUTPUTS: list[dict[str, Any]] = [{}, {"output__index": "binary"}, {"output__compression": "gzip"}]


def make(out: str, number: int, **output: Any) -> None:
    convert(data=version(number), output=out, output__shard_size="64KiB", **output)


def overwritten(out: str, output: dict[str, Any]) -> None:
    make(out, 2, if_exists="replace", **output)


def removed_and_made(out: str, output: dict[str, Any]) -> None:
    ObjectStorage(out).remove_tree("")
    make(out, 2, **output)


@stores
@pytest.mark.parametrize("output", OUTPUTS, ids=str)
@pytest.mark.parametrize("replaced", [overwritten, removed_and_made])
def test_a_pass_over_a_dataset_that_is_replaced_ends_with_an_error_before_the_first_new_row(
    out: str, replaced: Callable[[str, dict[str, Any]], None], output: dict[str, Any]
) -> None:
    make(out, 1, **output)
    passes = {way: way(open_dataset(out)) for way in WAYS}
    begun = {way: [next(found)] for way, found in passes.items()}
    replaced(out, output)
    for way, found in passes.items():
        rows, error = read_until_the_error(found)
        assert {*begun[way], *rows} == {"v1"}, way
        assert error is not None, way
    assert {row["version"] for row in open_dataset(out)} == {"v2"}


@stores
def test_a_pass_goes_on_in_the_folder_that_the_pointer_named_when_it_was_opened(out: str) -> None:
    """A store has no links: the pointer is an object that holds the URL of the folder."""
    storage = ObjectStorage(out)
    make(f"{out}/first", 1)
    make(f"{out}/second", 2)
    storage.replace("current", f"{out}/first".encode())
    passes = [way(open_dataset(storage.read("current").decode())) for way in WAYS]
    rows = {next(found) for found in passes}
    storage.replace("current", f"{out}/second".encode())
    assert rows.union(*passes) == {"v1"}
    assert {row["version"] for row in open_dataset(storage.read("current").decode())} == {"v2"}


@stores
def test_an_object_that_was_changed_by_another_program_ends_a_pass(out: str) -> None:
    make(out, 1)
    dataset = open_dataset(out)
    assert dataset[0]["version"] == "v1"
    storage, shard = ObjectStorage(out), dataset.manifest.splits["train"].shards[0].path
    storage.replace(shard, storage.read(shard).replace(b"v1", b"v2"))
    with pytest.raises(DamageError, match="changed while it was read, and is not the shard of the manifest"):
        dataset[1]


@stores
def test_an_object_that_was_put_there_again_is_read_on(out: str) -> None:
    make(out, 1)
    dataset = open_dataset(out)
    assert dataset[0]["version"] == "v1"
    storage, shard = ObjectStorage(out), dataset.manifest.splits["train"].shards[0].path
    storage.replace(shard, storage.read(shard))
    assert dataset[1]["id"] == 1


@stores
@pytest.mark.parametrize(("output", "each"), list(zip(OUTPUTS, (7, 6, 6), strict=True)), ids=str)
def test_opening_a_shard_takes_as_few_requests_as_before_appends(
    out: str, output: dict[str, Any], each: int, request: pytest.FixtureRequest
) -> None:
    bound: Bound = request.getfixturevalue("at_most")
    make(out, 1, **{"output__index": "none"} | output)
    dataset = open_dataset(out)
    shards = dataset.manifest.splits["train"].shards
    firsts = [0, *accumulate(shard.records for shard in shards[:-1])]
    append(data=version(1, rows=3), output=out)
    dataset._rows.generation.check()  # reads the manifest of the append
    with bound(5 * len(shards)):
        assert {*each_row(dataset)} == {"v1"}
    with bound(each * len(shards)):
        assert [dataset[number]["id"] for number in firsts] == firsts
