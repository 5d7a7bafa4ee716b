"""PyTorch reads a dataset that is replaced: workers read what their parent opened, and states name their dataset."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.errors import ReplacedError, ShardmillWarning, UsageError
from torch.utils.data import DataLoader, IterableDataset
from torchdata.stateful_dataloader import StatefulDataLoader

ROWS = 20_000


def make(path: Path, version: int, **more: Any) -> None:
    filler = np.random.default_rng(1).integers(0, 1 << 60, (ROWS, 4))
    data = {"n": np.arange(ROWS), "version": np.full(ROWS, version), "filler": filler}
    convert(data=data, output=path, output__shard_size="64KiB", **more)


def overwritten(path: Path) -> None:
    make(path, 2, if_exists="replace")


def removed_and_made(path: Path) -> None:
    shutil.rmtree(path)
    make(path, 2)


class OpensAgain(IterableDataset):  # type: ignore[misc]
    """A user's dataset that opens the folder by its path in each worker, and loads the state of its parent."""

    def __init__(self, path: Path, state: dict[str, Any]) -> None:
        self.path, self.state = path, state

    def __iter__(self) -> Iterator[Any]:
        batches = open_dataset(self.path)["train"].torch(batch_rows=100)
        batches.load_state_dict(self.state)
        return iter(batches)


@pytest.mark.parametrize("replaced", [overwritten, removed_and_made])
@pytest.mark.parametrize(("method", "loader"), [("fork", DataLoader), ("spawn", StatefulDataLoader)])
def test_workers_read_what_their_parent_opened_or_end_with_an_error(
    tmp_path: Path, replaced: Callable[[Path], None], method: str, loader: Any
) -> None:
    make(tmp_path / "out", 1)
    batches = open_dataset(tmp_path / "out")["train"].torch(batch_rows=100, shuffle="blocks")
    options = {"batch_size": None, "num_workers": 2, "multiprocessing_context": method, "prefetch_factor": 1}
    begun = iter(loader(batches, **options))
    versions = set(next(begun)["version"].tolist())
    replaced(tmp_path / "out")
    with contextlib.suppress(ReplacedError):  # where not all shards were open
        for batch in begun:
            versions |= set(batch["version"].tolist())
    assert versions == {1}
    with pytest.raises(ReplacedError, match="open the dataset again"):
        next(iter(loader(batches, **options)))  # whose workers start now


@pytest.mark.parametrize("replaced", [overwritten, removed_and_made])
def test_a_state_of_a_dataset_that_was_replaced_is_refused_also_by_a_worker_that_opens_it_again(
    tmp_path: Path, replaced: Callable[[Path], None]
) -> None:
    make(tmp_path / "out", 1)
    state = open_dataset(tmp_path / "out")["train"].torch(batch_rows=100).state_dict(3)
    replaced(tmp_path / "out")
    said = r"generation 1 of commit [0-9a-f-]+, which .*/out does not hold: the dataset was replaced"
    with pytest.raises(UsageError, match=said):
        open_dataset(tmp_path / "out")["train"].torch(batch_rows=100).load_state_dict(state)
    with pytest.raises(UsageError, match=said):
        next(iter(StatefulDataLoader(OpensAgain(tmp_path / "out", state), batch_size=None, num_workers=1)))


def test_a_state_goes_on_in_a_dataset_of_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make(tmp_path / name, 1)
    state = open_dataset(tmp_path / "a")["train"].torch(batch_rows=100, seed=1).state_dict(199)
    batches = open_dataset(tmp_path / "b")["train"].torch(batch_rows=100)
    batches.load_state_dict(state)
    wanted = [*open_dataset(tmp_path / "a")["train"].torch(batch_rows=100, seed=1)][-1]
    assert [batch["n"].tolist() for batch in batches] == [wanted["n"].tolist()]


class TestLeftOut:
    """What an epoch leaves out so that ranks have equally many full batches."""

    @pytest.fixture
    def rows(self, tmp_path: Path) -> Any:
        convert(data={"n": np.arange(1003)}, output=tmp_path / "out")
        return open_dataset(tmp_path / "out")["train"]

    @pytest.mark.parametrize("world", [1, 2])
    def test_an_epoch_without_a_batch_is_refused_with_a_size_that_works(self, rows: Any, world: int) -> None:
        said = rf"an epoch has no batch at all: 1,003 rows .* take batch_rows={1003 // world} or less, or even=\"pad\""
        with pytest.raises(UsageError, match=said):
            rows.torch(batch_rows=1200 // world, world=world, even="drop")
        assert len(rows.torch(batch_rows=1003 // world, world=world, even="drop")) == 1
        assert len(rows.torch(batch_rows=1200 // world, world=world, even="pad")) == 1

    def test_more_than_a_tenth_is_a_warning(self, rows: Any) -> None:
        with pytest.warns(ShardmillWarning, match='leaves out 203 of 1,003 rows.*batch_rows=400.*even="pad"'):
            assert rows.torch(batch_rows=400, world=2).left_out == 203
        assert rows.torch(batch_rows=100, world=5).left_out == 3  # warnings are errors

    def test_a_rank_without_a_batch_is_a_warning(self, rows: Any) -> None:
        with pytest.warns(ShardmillWarning, match=r'rank 2 of world=3 has no batch.*batch_rows=600, or|even="pad"'):
            assert [*rows.torch(batch_rows=600, rank=2, world=3, even="none")] == []
        assert len([*rows.torch(batch_rows=600, rank=1, world=3, even="none")]) == 1

    def test_the_rest_of_an_epoch_is_warned_of_too_and_its_end_is_not(self, rows: Any) -> None:
        one = rows.torch(batch_rows=100)
        states = [one.state_dict(9), one.state_dict(8), one.state_dict(11)]
        for state, left_out in zip(states, (103, 3, 0), strict=True):
            many = rows.torch(batch_rows=100, world=2)
            with (
                pytest.warns(ShardmillWarning, match="leaves out 103") if left_out == 103 else contextlib.nullcontext()
            ):
                many.load_state_dict(state)
