"""Large pictures in a store take the memory that they take on a disk, and what a store takes beside."""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.stores.object_store import store_at
from shardmill.transforms.stores.store_url import parse_store_url

from ..contract.test_memory import picture, write_alpha
from ..memory import peak_bytes
from ..tiers import CAMPAIGN

pytestmark = pytest.mark.engine

LIMIT = 700e6
"""The page states 800. A picture of 200 MB that is held twice took 739 on S3 and 830 on GCS, held once under 580."""

OF_SAMPLE = 1.5
"""How many times its size a sample of an archive takes, beside what every run takes (500 MB with a store)."""


def write_files(path: Path) -> None:
    """Write three pictures of 200 MB, whose pixels nobody decodes."""
    for number in range(3):
        path.with_name(f"{number}.png").write_bytes(picture(200 << 20))


def write_archive(path: Path) -> None:
    """Write a tar of two samples, each with two pictures of 100 MB."""
    with tarfile.open(path.with_name("views.tar"), "w") as archive:
        for name in ("a.cam0.png", "a.cam1.png", "b.cam0.png", "b.cam1.png"):
            member, data = tarfile.TarInfo(name), picture(100 << 20)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.mark.thorough("large pictures are sent to a store and fetched while memory is sampled")
@pytest.mark.parametrize(
    ("bucket_url", "write", "options", "records", "limit"),
    [
        pytest.param(store, *case, id=f"{name}-{store}", marks=() if store == kept else CAMPAIGN)
        for name, kept, case in (
            ("pixels", "gs", (write_alpha, ["--set", "image.resize=100"], 2, LIMIT)),
            ("bytes", "s3", (write_files, [], 3, LIMIT)),
            ("samples", "s3", (write_archive, [], 2, 500e6 + OF_SAMPLE * (200 << 20))),
        )
        for store in ("s3", "gs")
    ],
    indirect=["bucket_url"],
)
def test_large_pictures_of_a_store_are_converted_in_the_memory_that_the_page_states(
    bucket_url: str,
    tmp_path: Path,
    write: Callable[[Path], None],
    options: list[str],
    records: int,
    limit: float,
    say: Callable[[str, str], None],
) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in/a.png")
    store, paths = store_at(parse_store_url(bucket_url)), list((tmp_path / "in").iterdir())
    for path in paths:
        store.put(f"in/{path.name}", path.read_bytes())
    command = [sys.executable, "-m", "shardmill.pipelines", "convert", f"{bucket_url}/in", "-o", "out", "-q"]
    peak = peak_bytes([*command, "--workers", "2", *options], tmp_path)
    assert read_manifest(str(tmp_path / "out")).counts.written == records
    say("memory of large pictures in a store", f"{bucket_url[:2]}: peak {peak / 1e6:.0f} MB")
    assert peak < limit
