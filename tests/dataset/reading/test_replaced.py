"""Readers of a dataset that is replaced while they read: the rows that were opened, or an error before any other."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.dataset.commit import publish
from shardmill.transforms.dataset.reading.count_records import make_indexes
from shardmill.transforms.dataset.reading.open_dataset import Dataset
from shardmill.transforms.dataset.rows import record_access as open_files
from shardmill.transforms.dataset.storage import opened_generation
from shardmill.transforms.errors import DamageError, ReplacedError

ROWS = 1500

Replace = Callable[[Path], None]
Way = Callable[[Dataset], Iterator[str]]


def version(number: int, rows: int = ROWS) -> pa.Table:
    """Return rows whose version is in each of them; all versions have equal sizes."""
    random = np.random.default_rng(5)
    filler = [random.bytes(120).hex() for _ in range(rows)]
    return pa.table({"id": np.arange(rows), "version": [f"v{number}"] * rows, "filler": filler})


def made(path: Path, number: int, **output: Any) -> Dataset:
    convert(data=version(number), output=path, output__shard_size="64KiB", **output)
    return open_dataset(path)


def overwritten(path: Path) -> None:
    convert(data=version(2), output=path, output__shard_size="64KiB", if_exists="replace", **like(path))


def removed_and_made(path: Path) -> None:
    options = like(path)
    shutil.rmtree(path)
    convert(data=version(2), output=path, output__shard_size="64KiB", **options)


def pointer_swapped(path: Path) -> None:
    """Have the link `path` lead to another folder: what was opened is where it was."""
    other = path.with_name("second")
    convert(data=version(2), output=other, output__shard_size="64KiB", **like(path))
    link = path.with_name("link")
    link.symlink_to(other)
    os.replace(link, path)


def like(path: Path) -> dict[str, Any]:
    manifest = open_dataset(path).manifest
    return {"output__compression": manifest.compression, "output__index": kind_of_index(manifest.sidecars)}


def kind_of_index(sidecars: tuple[str, ...]) -> str:
    kinds = {os.path.splitext(name)[1] for name in sidecars if name.startswith("index/")}
    return {".offsets": "binary", ".idx": "text"}[kinds.pop()] if kinds else "none"


REPLACED = [overwritten, removed_and_made]


def each_row(dataset: Dataset) -> Iterator[str]:
    return (row["version"] for row in dataset)


def each_record(dataset: Dataset) -> Iterator[str]:
    return ("v1" if b"v1" in record else "v2" for record in dataset.records())


def each_batch(dataset: Dataset) -> Iterator[str]:
    return (one for batch in dataset.batches(columns=["version"], rows=7) for one in batch["version"].to_pylist())


def from_a_row_on(dataset: Dataset) -> Iterator[str]:
    return (one for batch in dataset.batches(start=40, rows=7) for one in batch["version"].to_pylist())


def each_numpy_batch(dataset: Dataset) -> Iterator[str]:
    return (one for batch in dataset.numpy(columns=["version"], rows=7) for one in batch["version"])


def by_number(dataset: Dataset) -> Iterator[str]:
    return (dataset[number]["version"] for number in range(0, ROWS, 50))


def by_record(dataset: Dataset) -> Iterator[str]:
    return ("v1" if b"v1" in dataset.record(number) else "v2" for number in range(0, ROWS, 50))


def by_slices(dataset: Dataset) -> Iterator[str]:
    return (row["version"] for first in range(0, ROWS, 100) for row in dataset[first : first + 100])


def taken(dataset: Dataset) -> Iterator[str]:
    return (one for number in range(0, ROWS, 50) for one in dataset.take([number])["version"].to_pylist())


def of_a_map(dataset: Dataset) -> Iterator[str]:
    rows = dataset["train"].torch_map()
    return (rows[number]["version"] for number in range(0, ROWS, 50))


def of_grain(dataset: Dataset) -> Iterator[str]:
    rows = dataset["train"].grain(["version"])
    return (row["version"] for number in range(0, ROWS, 50) for row in rows.__getitems__([number]))


def of_another_process(dataset: Dataset) -> Iterator[str]:
    """Return what a worker reads that got the rows of a parent, and opens its own files."""
    rows = pickle.loads(pickle.dumps(dataset["train"].grain()))
    return (rows[number]["version"] for number in range(0, ROWS, 50))


WAYS = [
    each_row,
    each_record,
    each_batch,
    from_a_row_on,
    each_numpy_batch,
    by_number,
    by_record,
    by_slices,
    taken,
    of_a_map,
    of_grain,
    of_another_process,
]


def read_until_the_error(found: Iterator[str]) -> tuple[list[str], str | None]:
    rows: list[str] = []
    try:
        rows.extend(found)  # what came before the error is there
    except ReplacedError as error:
        return rows, str(error)
    return rows, None


@pytest.mark.parametrize("output", [{}, {"output__index": "binary"}, {"output__compression": "gzip"}], ids=str)
@pytest.mark.parametrize("replaced", REPLACED)
def test_a_pass_over_a_dataset_that_is_replaced_ends_with_an_error_before_the_first_new_row(
    tmp_path: Path, replaced: Replace, output: dict[str, Any]
) -> None:
    dataset = made(tmp_path / "out", 1, **output)
    assert len(dataset.manifest.splits["train"].shards) > 3
    passes = {way: way(open_dataset(tmp_path / "out")) for way in WAYS}
    begun = {way: [next(found)] for way, found in passes.items()}
    replaced(tmp_path / "out")
    for way, found in passes.items():
        rows, error = read_until_the_error(found)
        assert {*begun[way], *rows} == {"v1"}, way
        assert error is not None, way
        assert "open the dataset again" in error
    assert {row["version"] for row in open_dataset(tmp_path / "out")} == {"v2"}


@pytest.mark.parametrize("way", WAYS)
def test_a_pass_goes_on_in_the_folder_that_the_pointer_named_when_it_was_opened(tmp_path: Path, way: Way) -> None:
    made(tmp_path / "first", 1)
    (tmp_path / "current").symlink_to("first")
    dataset = open_dataset(tmp_path / "current")
    found = way(dataset)
    rows = [next(found)]
    pointer_swapped(tmp_path / "current")
    assert {*rows, *found} == {"v1"}
    assert {row["version"] for row in open_dataset(tmp_path / "current")} == {"v2"}


def test_a_pointer_above_the_folder_is_followed_once_too(tmp_path: Path) -> None:
    (tmp_path / "monday").mkdir()
    (tmp_path / "tuesday").mkdir()
    made(tmp_path / "monday/trips", 1)
    made(tmp_path / "tuesday/trips", 2)
    (tmp_path / "today").symlink_to("monday")
    dataset = open_dataset(tmp_path / "today/trips")
    (tmp_path / "link").symlink_to("tuesday")
    os.replace(tmp_path / "link", tmp_path / "today")
    assert {row["version"] for row in dataset} == {"v1"}


def test_the_path_that_was_given_stays_where_no_link_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "out", 1)
    monkeypatch.chdir(tmp_path)
    assert open_dataset("out").path == "out"


@pytest.mark.parametrize("replaced", REPLACED)
def test_splits_and_counts_that_were_taken_before_stay_and_their_unopened_shards_are_refused(
    tmp_path: Path, replaced: Replace
) -> None:
    dataset = made(tmp_path / "out", 1)
    split = dataset["train"]
    assert split[0]["version"] == "v1"
    replaced(tmp_path / "out")
    assert len(split) == len(dataset) == ROWS
    assert split[1]["version"] == "v1"  # its shard is open
    for ask in (
        lambda: split[ROWS - 1],
        lambda: split.record(ROWS - 1),
        lambda: dataset.take([0, ROWS - 1]),
        lambda: dataset[-3:],
        lambda: dataset["train"][ROWS - 1],
        dataset.shard_paths,
        lambda: dataset.stats,
        dataset.to_pandas,
    ):
        with pytest.raises(ReplacedError):
            ask()


@pytest.mark.parametrize("replaced", REPLACED)
def test_a_shard_that_was_closed_to_open_others_is_checked_when_it_is_opened_again(
    tmp_path: Path, replaced: Replace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files, "MOST_OPEN", 2)
    for kind in ("binary", "none"):
        dataset = made(tmp_path / kind, 1, output__index=kind)
        assert {dataset[number]["version"] for number in range(0, ROWS, 50)} == {"v1"}  # all were open
        replaced(tmp_path / kind)
        with pytest.raises(ReplacedError):
            dataset[0]


STEPS = ["locate_shard", "open_regular", "list_generations"]


class Died(BaseException):
    """Ends a run at once, as a kill does."""


def die(*_: object) -> None:
    raise Died


@pytest.mark.parametrize("way", [each_row, by_number])
@pytest.mark.parametrize("moment", ["committed", "published"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_whichever_step_of_opening_a_shard_a_replacement_comes_at_no_new_row_is_read(
    tmp_path: Path, way: Way, moment: str, step: str, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replacement comes at the first such step after the third row; where only committed, shards are not moved."""
    found = way(made(tmp_path / "out", 1))
    rows = [next(found) for _ in range(3)]
    real, left = getattr(opened_generation, step), [1]

    def at_step(*args: Any) -> Any:
        if left and not after:
            left.pop()
            come()
        result = real(*args)
        if left:
            left.pop()
            come()
        return result

    def come() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(opened_generation, step, real)
            if moment == "published":
                overwritten(tmp_path / "out")
                return
            patch.setattr(publish, "_move", die)
            with pytest.raises(Died):
                overwritten(tmp_path / "out")

    monkeypatch.setattr(opened_generation, step, at_step)
    more, error = read_until_the_error(found)
    assert {*rows, *more} == {"v1"}
    assert not left
    assert error is not None


def test_appends_during_a_pass_change_nothing_and_each_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, read = made(tmp_path / "out", 1), []
    rows = iter(dataset)
    first = next(rows)
    for number in range(3):
        append(data=version(2, rows=5 + number), output=tmp_path / "out")
    real = opened_generation.read_file
    monkeypatch.setattr(opened_generation, "read_file", lambda *args: read.append(args[1]) or real(*args))
    assert {row["version"] for row in [first, *rows]} == {"v1"}
    assert [*dataset[-5:]] == [*open_dataset(tmp_path / "out", 1)[-5:]]
    assert read[:3] == [f"manifests/{number:08d}.json" for number in (2, 3, 4)]
    assert len(read) == 6  # and by the dataset that was opened by its number
    overwritten(tmp_path / "out")
    with pytest.raises(ReplacedError, match="generation 1 was replaced by generation 5 after it was opened"):
        list(dataset)


def test_a_copy_and_a_restored_folder_are_the_dataset_that_was_opened(tmp_path: Path) -> None:
    dataset = made(tmp_path / "out", 1)
    shutil.move(tmp_path / "out", tmp_path / "away")
    shutil.copytree(tmp_path / "away", tmp_path / "out")  # other files, the same commit
    assert {row["version"] for row in dataset} == {"v1"}
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(ReplacedError, match="generation 1 was removed after it was opened"):
        list(dataset)


def test_a_copy_without_its_manifests_is_read_and_noticed_when_it_is_another(tmp_path: Path) -> None:
    for number in (1, 2):
        made(tmp_path / f"v{number}", number)
    shutil.copytree(tmp_path / "v1", tmp_path / "copy", ignore=shutil.ignore_patterns("manifests"))
    dataset = open_dataset(tmp_path / "copy")
    assert {row["version"] for row in dataset} == {"v1"}
    shutil.copyfile(tmp_path / "v2/manifest.json", tmp_path / "copy/manifest.json")
    with pytest.raises(ReplacedError):
        list(dataset)


def test_indexes_that_are_made_while_a_dataset_is_read_are_those_of_its_shards(tmp_path: Path) -> None:
    dataset = made(tmp_path / "out", 1, output__index="none")
    wanted = [row["id"] for row in dataset]
    assert dataset[0]["id"] == 0
    make_indexes(dataset.shard_paths(), overwrite=True)
    assert [dataset[number]["id"] for number in range(ROWS)] == wanted
    make_indexes(dataset.shard_paths(), overwrite=True)
    assert [dataset[number]["id"] for number in range(ROWS)] == wanted


def test_a_damaged_newer_manifest_ends_a_pass_as_nobody_knows_what_it_replaced(tmp_path: Path) -> None:
    dataset = made(tmp_path / "out", 1)
    (tmp_path / "out/manifests/00000002.json").write_bytes(b"{")
    with pytest.raises(DamageError, match=r"00000002\.json"):
        list(dataset)
