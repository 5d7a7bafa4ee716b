"""Images in folders of S3 and Google Cloud Storage: fetched ahead, and the same shards as from a disk."""

from __future__ import annotations

import io
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.pipelines.outcomes.summary import Summary
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.convert import run_convert
from shardmill.pipelines.runs.python_api import load_call
from shardmill.transforms.errors import InputError, SourceError, UsageError
from shardmill.transforms.format.batches.rejects import Reject
from shardmill.transforms.inputs.contract.source import Listing, Task, map_in_turn
from shardmill.transforms.recipe.source import RecipeSource
from shardmill.transforms.sources.images import bytes as image_bytes
from shardmill.transforms.sources.images.source import ImageLimits, ImageSource
from shardmill.transforms.sources.images.walk import ImageFile
from shardmill.transforms.stores.object_store import number_of

from ..file_sources import made_source
from .conftest import S3_TOO, Bucket, limit, shards
from .gateway import Request


def draw(seed: int, kind: str = "JPEG") -> bytes:
    noise = np.random.default_rng(seed).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, kind)
    return file.getvalue()


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    root = tmp_path / "pets"
    for number, name in enumerate(["cat", "a-b", "a", "dog"]):
        (root / name).mkdir(parents=True)
        for i in range(9):
            (root / name / f"{i}.jpg").write_bytes(draw(10 * number + i))
    (root / "a" / "é #1?.png").write_bytes(draw(99, "PNG"))
    (root / "a" / ".hidden.jpg").write_bytes(b"")
    (root / "dog" / "Thumbs.db").write_bytes(b"")
    return root


def in_small_batches(path: str, output: Path, settings: dict[str, Any]) -> Summary:
    """Convert images, 8 in a batch."""
    config = load_call({"input": {"paths": [path]}}, output, settings, data_given=False)
    conversion = conversion_of(config)
    source = conversion.source
    assert isinstance(source, RecipeSource)
    assert isinstance(source.source, ImageSource)
    images = replace(source.source, limits=ImageLimits(batch_rows=8))
    done = run_convert(replace(conversion, source=replace(source, source=images)))
    assert isinstance(done, Summary)
    return done


@pytest.mark.parametrize(
    ("bucket", "settings"),
    [
        pytest.param("s3", {}, marks=pytest.mark.thorough("S3 too, whose server takes three times as long")),
        ("gs", {"shuffle__seed": 7, "input__sha256": True}),
    ],
    ids=["s3-sorted", "gs-shuffled"],
    indirect=["bucket"],
)
def test_shards_are_those_of_the_same_images_on_a_disk(
    bucket: Bucket, pets: Path, tmp_path: Path, settings: dict[str, Any]
) -> None:
    bucket.put_folder(pets, "some/pets")
    options = {"input__format": "images", "shard_size": "64KiB", "runner__workers": 1, **settings}
    local = in_small_batches(str(pets), tmp_path / "local", options)
    remote = in_small_batches(f"{bucket.url}/some/pets", tmp_path / "remote", options)
    assert shards(tmp_path / "remote") == shards(tmp_path / "local") != {}
    assert remote.manifest.labels == local.manifest.labels
    assert remote.manifest.source.skipped == local.manifest.source.skipped == {"hidden": 1, "junk": 1}
    lines = [json.loads(line) for line in (tmp_path / "remote/sources/00000001.jsonl").read_text().splitlines()]
    assert [(line["source"], line["files"]) for line in lines] == [
        (f"{bucket.url}/some/pets/{name}", 10 if name == "a" else 9) for name in ("a", "a-b", "cat", "dog")
    ]
    reads = bucket.gateway.reads()
    assert len(reads) == len({request.key for request in reads}) == 37  # each once


def read(source: ImageSource, listing: Listing) -> tuple[int, list[Reject]]:
    """Return how many images a source reads, and its rejects."""
    survey = source.survey(listing, map_in_turn)
    batches = list(source.read(Task(0, survey.pieces), survey.frozen))  # type: ignore[arg-type]
    return sum(rows.batch.num_rows for rows in batches), [reject for rows in batches for reject in rows.rejects]


@pytest.mark.parametrize("bucket", S3_TOO, indirect=True)
def test_two_are_on_their_way_while_others_are_worked_on(bucket: Bucket, pets: Path) -> None:
    bucket.put_folder(pets, "pets")
    met = threading.Barrier(2)

    def wait_for_another(request: Request) -> None:
        if request.reads and len(bucket.gateway.reads()) <= 8:
            met.wait(300)  # breaks, and the reading with it, if there is never another one

    bucket.gateway.rules.append(wait_for_another)
    source = made_source("images", (f"{bucket.url}/pets",))
    assert read(source, source.list_files()) == (37, [])
    assert bucket.gateway.most_at_once == 2


def test_folders_files_and_globs_are_told_as_on_a_disk(bucket: Bucket, pets: Path) -> None:
    bucket.put_folder(pets, "pets")
    bucket.store.put("pets/", b"")  # as a console makes a folder
    bucket.store.put("pets/old/manifest.json", b"{}")
    bucket.store.put("pets/old/manifests/00000001.json", b"{}")
    bucket.store.put("pets/old/1.jpg", b"")

    def names(*paths: str) -> list[str]:
        listing = made_source("images", tuple(f"{bucket.url}/{path}" for path in paths), layout="flat").list_files()
        return [f"{listing.folders[i.folder].path.decode()}/{i.name.decode()}" for i in listing.images]  # type: ignore[attr-defined]

    assert len(names("pets")) == len(names("pets/")) == len(names("")) == 37
    assert names("pets/d*") == [f"{bucket.url}/pets/dog/{i}.jpg" for i in range(9)]
    assert names("pets/cat/[12].jpg", "pets/dog/3.jpg") == [
        f"{bucket.url}/pets/{name}.jpg" for name in ("cat/1", "cat/2", "dog/3")
    ]
    assert made_source("images", (f"{bucket.url}/pets",)).list_files().skipped == {"hidden": 1, "junk": 1, "dataset": 1}
    with pytest.raises(InputError, match=r"/nothing: the folder holds no file"):
        names("nothing")
    with pytest.raises(InputError, match=r"/no\*: matches nothing"):
        names("no*")
    with pytest.raises(InputError, match=r"pets/cat is in .*pets, which is read too"):
        names("pets", "pets/cat")


def test_a_flat_folder_of_several_pages_is_told_from_a_dataset(bucket: Bucket) -> None:
    limit(bucket.url, page_keys=3)
    for i in range(8):
        bucket.store.put(f"in/flat/{i}.jpg", b"x")
        bucket.store.put(f"in/old/{i}.jpg", b"x")
    bucket.store.put("in/old/manifest.json", b"{}")
    bucket.store.put("in/old/manifests/00000001.json", b"{}")
    listing = made_source("images", (f"{bucket.url}/in",)).list_files()
    assert (listing.files, listing.skipped) == (8, {"dataset": 1})


@pytest.mark.parametrize("bucket", S3_TOO, indirect=True)
def test_an_image_that_went_away_is_a_reject_and_one_that_was_replaced_ends_the_run(bucket: Bucket, pets: Path) -> None:
    bucket.put_folder(pets, "pets")
    source = made_source("images", (f"{bucket.url}/pets",))
    listing = source.list_files()
    bucket.store.delete(["pets/dog/8.jpg"])
    count, (reject,) = read(source, listing)
    assert (count, reject.errors[0].code, reject.place.source) == (36, "MISSING_FILE", f"{bucket.url}/pets/dog/8.jpg")
    assert "no such object" in reject.errors[0].message
    same_size = bytearray((pets / "dog" / "7.jpg").read_bytes())
    same_size[-100] ^= 1
    for data in (bytes(same_size), b"of another size", b""):
        bucket.store.put("pets/dog/7.jpg", data)
        with pytest.raises(SourceError, match=r"/pets/dog/7\.jpg: is not what it was when it was listed \(it was repl"):
            read(source, listing)


def test_a_large_image_is_read_in_pieces_all_of_the_version_that_was_listed(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_bytes, "PIECE_BYTES", 1000)
    first, second = draw(1) * 3, draw(2) * 3
    assert len(first) > 2000
    bucket.store.put("a.jpg", first)
    image = ImageFile(0, b"a.jpg", len(first), number_of(bucket.store.found("a.jpg").version))
    memory = memoryview(bytearray(len(first) + 1))
    path = f"{bucket.url}/a.jpg".encode()
    image_bytes.read_object_into(memory, path, image)
    assert memory[: len(first)] == first
    assert len(bucket.gateway.reads()) == -(-len(first) // 1000)

    def replace_it(request: Request) -> None:
        if request.reads and len(bucket.gateway.reads()) == -(-len(first) // 1000) + 2:
            bucket.store.put("a.jpg", second)

    bucket.gateway.rules.append(replace_it)
    with pytest.raises(SourceError, match="it was replaced"):
        image_bytes.read_object_into(memory, path, image)


def test_images_that_may_not_be_read_are_rejects(bucket: Bucket, pets: Path) -> None:
    bucket.put_folder(pets, "pets")
    bucket.store.put("pets/dog/empty.jpg", b"")
    bucket.gateway.rules.append(lambda request: 403 if request.reads and "cat/3" in request.key else None)
    source = made_source("images", (f"{bucket.url}/pets",))
    count, rejects = read(source, source.list_files())
    assert (count, [reject.errors[0].code for reject in rejects]) == (36, ["UNREADABLE", "NOT_AN_IMAGE"])
    assert "access denied" in rejects[0].errors[0].message
    assert "secret-in-a-message" not in rejects[0].errors[0].message


@pytest.mark.parametrize("bucket", ["gs"], indirect=True)
def test_an_append_takes_what_is_new_in_a_folder(bucket: Bucket, pets: Path, tmp_path: Path) -> None:
    bucket.put_folder(pets, "pets")
    config = {"input": {"paths": [f"{bucket.url}/pets"]}, "output": {"path": str(tmp_path / "out")}}
    convert(config)
    assert append(config).nothing_to_do
    bucket.store.put("pets/dog/new.jpg", draw(1234))
    bucket.store.put("pets/dog/1.jpg", (pets / "dog" / "1.jpg").read_bytes())  # again, the same
    summary = append(config)
    assert (summary.manifest.generation, summary.manifest.counts.written) == (2, 1)


def test_folders_without_a_name_are_refused(bucket: Bucket) -> None:
    bucket.store.put("in/a//1.jpg", b"")
    with pytest.raises(UsageError, match=r"in/a//: a folder without a name is not read"):
        made_source("images", (f"{bucket.url}/in",)).list_files()
