"""The samples that the repo ships are what their script makes, and hold what the configs promise."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import convert, open_dataset

CONFIGS = Path(__file__).parent.parent / "configs"
SAMPLES = CONFIGS / "samples"
DATA_FOLDERS = (
    "pets",
    "people",
    "trips",
    "arrays",
    "reviews",
    "clips",
    "orders",
    "stations",
    "rides",
    "lines",
    "albums",
    "shelter",
    "shards",
    "street",
)


def files_below(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix()
        for name in DATA_FOLDERS
        for path in (folder / name).rglob("*")
        if path.is_file()
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = importlib.util.spec_from_file_location("make_samples", SAMPLES / "make_samples.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder = tmp_path_factory.mktemp("samples")
    script.make_all(folder)
    return folder


def test_the_script_makes_the_files_that_are_shipped(made: Path) -> None:
    assert files_below(made) == files_below(SAMPLES)


MADE_BY_US = (".csv", ".npy", ".db", ".json", ".jsonl", ".txt")


@pytest.mark.parametrize("name", [name for name in files_below(SAMPLES) if name.endswith(MADE_BY_US)])
def test_text_and_numpy_files_are_made_again_byte_by_byte(made: Path, name: str) -> None:
    assert (made / name).read_bytes() == (SAMPLES / name).read_bytes()


@pytest.mark.parametrize("name", [name for name in files_below(SAMPLES) if name.endswith(".parquet")])
def test_parquet_files_are_made_again_with_the_same_rows(made: Path, name: str) -> None:
    ours, theirs = pq.ParquetFile(SAMPLES / name), pq.ParquetFile(made / name)
    assert ours.schema_arrow.equals(theirs.schema_arrow, check_metadata=True)
    assert ours.num_row_groups == theirs.num_row_groups == 3
    assert ours.read().equals(theirs.read())


@pytest.mark.parametrize("name", [name for name in files_below(SAMPLES) if name.endswith((".jpg", ".png"))])
def test_pictures_are_made_again_with_the_same_pixels(made: Path, name: str) -> None:
    if name.endswith((".draft.jpg", "dog-7.jpg")):  # no image, and one that is cut short
        assert (made / name).stat().st_size == (SAMPLES / name).stat().st_size
        return
    with Image.open(SAMPLES / name) as ours, Image.open(made / name) as theirs:
        assert (ours.format, ours.size, ours.mode) == (theirs.format, theirs.size, theirs.mode)
        distance = np.abs(np.asarray(ours).astype(int) - np.asarray(theirs).astype(int)).mean()
    # JPEG encoders may differ from release to release; PNG keeps what was drawn, where font-less drawing is stable
    assert distance <= (2.0 if name.endswith(".jpg") else 0.5)


def test_the_pets_are_25_images_in_three_classes_of_which_one_is_cut() -> None:
    images = [
        name for name in files_below(SAMPLES) if name.startswith("pets/") and "/." not in name and ".db" not in name
    ]
    assert len(images) == 25
    assert {name.split("/")[1] for name in images} == {"cat", "dog", "owl"}
    assert 2 * 64 * 1024 < sum((SAMPLES / name).stat().st_size for name in images) < 200_000
    assert not (SAMPLES / "pets/dog/dog-7.jpg").read_bytes().endswith(b"\xff\xd9")


def test_the_people_have_quotes_nulls_and_line_breaks() -> None:
    rows = []
    for part in (1, 2):
        with (SAMPLES / f"people/people-{part}.csv").open(newline="", encoding="utf-8") as file:
            rows += list(csv.DictReader(file))
    assert len(rows) == 121
    assert any("\n" in row["note"] for row in rows)
    assert any('"' in row["name"] for row in rows)
    assert any(row["zip"].startswith("0") for row in rows)
    assert any(not row["score"] for row in rows)
    assert any(not row["name"].isascii() for row in rows)
    assert b"\r\n" in (SAMPLES / "people/people-2.csv").read_bytes()


def test_the_trips_have_lists_nulls_time_stamps_and_page_checksums() -> None:
    table = pq.read_table(SAMPLES / "trips/trips-1.parquet", page_checksum_verification=True)
    assert table.num_rows == 150
    assert table["stops"].null_count > 0
    assert table["fare"].null_count > 0
    assert any(stops == [] for stops in table["stops"].to_pylist())
    assert str(table.schema.field("start").type) == "timestamp[us, tz=UTC]"
    damaged = bytearray((SAMPLES / "trips/trips-1.parquet").read_bytes())
    damaged[600] ^= 1
    with pytest.raises(OSError, match="CRC"):
        pq.read_table(pa.BufferReader(bytes(damaged)), page_checksum_verification=True)


@pytest.mark.parametrize(("name", "batches"), [("rides", 2), ("rides-2", 1)])
def test_the_arrow_files_are_made_again_with_the_same_rows(made: Path, name: str, batches: int) -> None:
    ours, theirs = (pa.ipc.open_file(folder / f"rides/{name}.arrow") for folder in (SAMPLES, made))
    assert ours.num_record_batches == theirs.num_record_batches == batches
    assert ours.read_all().equals(theirs.read_all())


def test_the_config_of_arrow_files_joins_those_whose_columns_differ(tmp_path: Path) -> None:
    convert(CONFIGS / "arrow.yaml", output=tmp_path / "out")
    first, second = (pa.ipc.open_file(SAMPLES / f"rides/{name}.arrow").read_all() for name in ("rides-2", "rides"))
    read = open_dataset(tmp_path / "out").to_arrow("train")
    assert read["weather"].to_pylist() == first["weather"].to_pylist() + [None] * len(second)
    assert read["stops"].to_pylist() == [None] * len(first) + second["stops"].to_pylist()
    assert read["taken"].to_pylist() == first["taken"].to_pylist() + second["taken"].to_pylist()


def test_the_config_that_splits_by_date_counts_the_authors_in_several_splits(tmp_path: Path) -> None:
    done = convert(CONFIGS / "split_by_date.yaml", output=tmp_path / "out")
    dataset = open_dataset(tmp_path / "out")
    authors = {split: dataset.to_arrow(split)["author"].drop_null().to_pylist() for split in dataset.splits}
    held = [name for names in authors.values() for name in set(names)]
    several = {name for name in held if held.count(name) > 1}
    found = done.manifest.details.checks["leaks"]
    assert found["columns"] == ["author"]
    assert found["groups"] == len(several) > 0
    assert found["records"] == sum(name in several for names in authors.values() for name in names)


def test_the_arrays_share_one_type_and_rank_in_several_lengths() -> None:
    arrays = [np.load(path) for path in sorted((SAMPLES / "arrays").glob("*.npy"))]
    assert {array.dtype.newbyteorder("<").str for array in arrays} == {"<f4"}
    assert {array.ndim for array in arrays} == {2}
    assert len({array.shape for array in arrays}) == len(arrays) == 8
    assert any(array.dtype.byteorder == ">" for array in arrays)
    assert any(not array.flags.c_contiguous for array in arrays)


def test_the_samples_stay_small() -> None:
    assert sum((SAMPLES / name).stat().st_size for name in files_below(SAMPLES)) < 1_500_000


@pytest.mark.parametrize("name", sorted(path.stem for path in CONFIGS.glob("*.yaml")))
def test_every_line_of_a_config_stays_within_the_page(name: str) -> None:
    lines = (CONFIGS / f"{name}.yaml").read_text().splitlines()
    assert max(map(len, lines)) <= 120
    assert lines[0].startswith("# ")
