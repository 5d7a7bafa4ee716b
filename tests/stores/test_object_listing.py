"""URLs name objects as paths name files."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.errors import InputError, StoreAccessError
from shardmill.transforms.inputs.files.file_names import suffixes_of
from shardmill.transforms.inputs.files.listing import expand_paths, list_entries
from shardmill.transforms.recognise.rules import Look
from shardmill.transforms.sources.csv.delimiter import detect_delimiter

from .conftest import Bucket, limit

CSV = suffixes_of("csv")
TREE = [
    "a.csv", "b.tsv", "c.txt", "d[1].csv", "a/1.csv", "a/2.CSV", "a/b/3.csv", "a/b/c/4.csv.gz", "a/_x.csv", "a/.y.csv",
    "_a/5.csv", ".b/6.csv", "old/manifest.json", "old/manifests/00000001.json", "old/7.csv", "é ü/8.csv",
    "a b/x#1?.csv",
]  # fmt: skip


@pytest.fixture
def tree(bucket: Bucket, tmp_path: Path) -> Path:
    for name in TREE:
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    bucket.put_folder(tmp_path / "in", "in")
    return tmp_path


def test_every_pattern_names_the_objects_whose_files_it_names_on_a_disk(bucket: Bucket, tree: Path) -> None:
    bucket.store.put("in/a/", b"")  # a folder as a console makes it
    for pattern in [
        "in", "in/", "in/a", "in/*.csv", "in/[ab].*sv", "in/a/*", "in/a/?.csv", "in/**/*.csv", "in/a/**", "in/**",
        "in/d[1].csv", "in/d[[]1].csv", "in/*/b", "in/*/b/*.csv", "in/a/_*", "in/a/.*", "in/*/[!1-2]*", "in/**/b/*.csv",
        "in/é*/*", "in/a b", "in/*b/**/*.csv",
    ]:  # fmt: skip
        local, skipped = expand_paths([pattern], str(tree), CSV)
        remote, skipped_there = expand_paths([f"{bucket.url}/{pattern}"], "/", CSV)
        expected = [path.decode().removeprefix(f"{tree}/") for path in local]
        assert [path.decode().removeprefix(f"{bucket.url}/") for path in remote] == expected, pattern
        if "**" not in pattern:  # there glob gives a folder and those in it, each of which is looked through
            assert skipped_there == skipped, pattern


def test_entries_have_size_version_and_fingerprint(bucket: Bucket, tree: Path) -> None:
    listing = list_entries([f"{bucket.url}/in/a", f"{bucket.url}/in/a.csv"], str(tree), CSV, file_format="csv")
    assert [(entry.name, entry.bytes) for entry in listing.entries] == [
        (f"{bucket.url}/in/{name}", len(name))
        for name in ("a.csv", "a/1.csv", "a/2.CSV", "a/b/3.csv", "a/b/c/4.csv.gz")
    ]
    heads = [bucket.store.head(entry.path.decode().removeprefix(f"{bucket.url}/")) for entry in listing.entries]
    assert [entry.version for entry in listing.entries] == [head.version for head in heads if head]
    before = listing.entries[0]
    assert list_entries([f"{bucket.url}/in/a.csv"], "/", CSV).entries[0] == before  # by itself, as in a list
    bucket.store.put("in/a.csv", b"other")
    after = list_entries([f"{bucket.url}/in/a.csv"], "/", CSV).entries[0]
    assert after.version != before.version
    assert after.fingerprint != before.fingerprint
    bucket.store.put("in/a.csv", b"a.csv")
    assert list_entries([f"{bucket.url}/in/a.csv"], "/", CSV).entries[0].fingerprint == before.fingerprint


def test_names_keep_what_a_url_would_lose(bucket: Bucket, tree: Path) -> None:
    (entry,) = list_entries([f"{bucket.url}/in/a b"], "/", CSV).entries
    assert entry.path.decode() == f"{bucket.url}/in/a b/x#1?.csv"
    assert entry.name == f"{bucket.url}/in/a b/x%231%3F.csv"


def test_local_paths_and_stores_are_read_together(bucket: Bucket, tree: Path) -> None:
    listing = list_entries([f"{bucket.url}/in/a.csv", "in/b.tsv"], str(tree), CSV)
    assert [entry.name for entry in listing.entries] == ["in/b.tsv", f"{bucket.url}/in/a.csv"]


def test_formats_are_told_and_levels_that_nobody_named_are_not_listed(bucket: Bucket, tree: Path) -> None:
    assert Look([f"{bucket.url}/in/a"]).detect() == "csv"
    assert Look([f"{bucket.url}/in/*.csv"]).detect() == "csv"
    assert detect_delimiter([f"{bucket.url}/in/b.tsv"]).sign == "\t"
    bucket.gateway.requests.clear()
    expand_paths([f"{bucket.url}/in/*.csv"], "/", CSV)
    assert len(bucket.gateway.requests) == 2  # the name itself, and one level
    assert "delimiter=%2F" in bucket.gateway.requests[1].path


def test_more_than_a_page_is_listed(bucket: Bucket) -> None:
    limit(bucket.url, page_keys=3)
    for number in range(10):
        bucket.store.put(f"in/{number}/a.csv", b"x")
        bucket.store.put(f"in/{number}.csv", b"x")
    assert len(expand_paths([f"{bucket.url}/in"], "/", CSV)[0]) == 20
    assert len(expand_paths([f"{bucket.url}/in/*"], "/", CSV)[0]) == 20
    assert len(expand_paths([f"{bucket.url}/in/*.csv"], "/", CSV)[0]) == 10


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("nothing", "nothing: no such object or folder"),
        ("in/*.none", r"in/\*\.none: no such object or folder, and nothing matches it as a glob"),
        ("in/old/manifests", "the folder holds no file with one of the suffixes"),
    ],
)
def test_what_names_nothing_is_refused(bucket: Bucket, tree: Path, path: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        expand_paths([f"{bucket.url}/{path}"], "/", CSV)


def test_a_bucket_that_is_not_there_and_urls_with_keys_are_refused(bucket: Bucket) -> None:
    with pytest.raises(StoreAccessError, match=r"no-such-bucket-here: no such bucket"):
        expand_paths([f"{bucket.scheme}://no-such-bucket-here/a.csv", ""], "/", CSV)
    with pytest.raises(StoreAccessError, match="credentials have no place in a URL") as refused:
        expand_paths([f"{bucket.scheme}://AKIA:canary@bucket/a.csv"], "/", CSV)
    assert "canary" not in str(refused.value)


def test_urls_in_configs_stay_as_they_are_and_paths_stay_local(bucket: Bucket, tree: Path) -> None:
    (tree / "conf").mkdir()
    (tree / "conf" / "c.yaml").write_text(
        f"input: {{paths: ['{bucket.url}/in/*.csv', ../in/a.csv]}}\noutput: {{path: o}}\n"
    )
    config = load_config(str(tree / "conf" / "c.yaml"))
    assert config.input is not None
    assert config.input.paths == [f"{bucket.url}/in/*.csv", str(tree / "in" / "a.csv")]
    assert config.output.path == str(tree / "conf" / "o")


def test_a_range_that_runs_backwards_is_an_error_and_no_traceback(bucket: Bucket, tree: Path) -> None:
    for pattern in ("in/[z-a].csv", "in/**/[z-a].csv"):
        with pytest.raises(InputError, match=r"\[z-a\]\.csv: as a glob it makes no sense"):
            expand_paths([f"{bucket.url}/{pattern}"], str(tree), CSV)
