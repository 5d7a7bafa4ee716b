"""The table of stores: one that the product has never heard of, given to it by a line of the table alone."""

from __future__ import annotations

import re
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError, StoreAccessError
from shardmill.transforms.stores import object_store
from shardmill.transforms.stores.object_store import store_at
from shardmill.transforms.stores.store_url import STORES, StoreEntry, StoreUrl, parse_store_url

from ..command_line import Shardmill
from . import toy_store

FIRST = [{"id": 1}, {"id": 2}]


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    entry = StoreEntry(toy_store.__name__, "toys", "open the toy box", re.compile("box-[a-z0-9]+"))
    monkeypatch.setitem(STORES, "toy", entry)
    monkeypatch.chdir(tmp_path)
    url = f"toy://box-{uuid.uuid4().hex}"
    store = store_at(parse_store_url(url))
    store.put("in/a.csv", b"id\n1\n2\n")
    store.put("in/deep/b.txt", b"no data\n")
    return url


def test_the_command_line_reads_files_of_a_store_of_one_line(bucket: str, shardmill: Shardmill) -> None:
    for number, path in enumerate(("in/a.csv", "in", "in/*.csv")):
        assert shardmill("convert", f"{bucket}/{path}", "-o", f"out{number}").code == 0
        assert open_dataset(f"out{number}").to_arrow("train").to_pylist() == FIRST
        assert open_dataset(f"out{number}").manifest.source.files == 1


@pytest.mark.parametrize("lists_crc32c", [False, True])
def test_the_command_line_writes_a_dataset_to_it_and_appends(
    lists_crc32c: bool, bucket: str, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STORES, "toy", replace(STORES["toy"], lists_crc32c=lists_crc32c))
    assert shardmill("convert", f"{bucket}/in/a.csv", "-o", f"{bucket}/out").code == 0
    Path("b.csv").write_text("id\n3\n")
    append([f"{bucket}/in/a.csv", "b.csv"], output=f"{bucket}/out")
    assert open_dataset(f"{bucket}/out").to_arrow("train").to_pylist() == [*FIRST, {"id": 3}]
    assert verify_dataset(f"{bucket}/out").findings == ()
    assert shardmill("verify", f"{bucket}/out").code == 0
    assert not list(store_at(parse_store_url(bucket)).walk("out/.staging"))


def test_messages_name_it_among_the_others_with_its_extra_and_its_login(bucket: str) -> None:
    with pytest.raises(
        ConfigError, match=r"give a local path, s3://bucket/path or gs://bucket/path or (.* or )?toy://bucket/path"
    ):
        convert("az://bucket/a.csv", output="out")
    with pytest.raises(StoreAccessError, match="toy://sack/a: no bucket can have this name; write toy://bucket/path"):
        parse_store_url("toy://sack/a")
    assert str(object_store.missing_client("toy")).startswith("toy:// needs the extra toys; ")
    assert str(object_store.no_credentials(StoreUrl("toy", "box-1"))).endswith(
        "no credentials for it; open the toy box"
    )
    config = {"input": {"paths": ["a.csv"], "format": "csv"}, "output": {"path": f"{bucket}/out"}}
    with pytest.raises(ConfigError, match="it must be gs:// or s3:// or toy://"):
        load_config(config, flags={"runner.name": "dataflow"})


def test_without_its_line_it_is_no_store() -> None:
    with pytest.raises(ConfigError, match=r"toy:// is not supported; give a local path, s3://bucket/path or gs://"):
        convert("toy://box-1/a.csv", output="out")
