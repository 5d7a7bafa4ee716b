"""PyTorch reads a dataset: in batches of tensors, under ranks and workers, and from where it stopped."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.dataset.reading.open_dataset import Dataset
from shardmill.transforms.dataset.rows.numpy_columns import Ragged
from shardmill.transforms.errors import ShardmillWarning, UsageError
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from .conftest import ROWS

SHUFFLES = ("global", "blocks", "none")


def rows_of(loader: Any) -> list[list[int]]:
    return [batch["n"].tolist() for batch in loader]


def of_ranks(
    dataset: Dataset, world: int, workers: int, start: dict[str, Any] | None = None, **how: Any
) -> Iterator[list[list[int]]]:
    """Yield the batches of each rank, as its DataLoader gives them."""
    for rank in range(world):
        batches = dataset.torch(["n"], batch_rows=64, rank=rank, world=world, seed=3, **how)
        if start is not None:
            batches.load_state_dict(start)
        yield rows_of(DataLoader(batches, batch_size=None, num_workers=workers))


def test_a_batch_is_a_dict_of_tensors(numbers: Dataset) -> None:
    batch = next(iter(numbers.torch(batch_rows=5, shuffle="none")))
    assert batch["n"].tolist() == [0, 1, 2, 3, 4]
    assert (batch["x"].shape, batch["x"].dtype) == ((5, 4), torch.float32)
    assert batch["text"] == [f"row {i}" for i in range(5)]
    assert batch["maybe"].tolist() == [0, 1, 2, 0, 4]
    assert batch["maybe/present"].tolist() == [False, True, True, False, True]
    assert isinstance(batch["tags"], Ragged)
    assert (batch["tags"].values.tolist(), batch["tags"].row_splits.tolist()) == (
        [0, 0, 1, 0, 1, 2],
        [0, 0, 1, 3, 6, 6],
    )
    assert batch["pet"].tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_all_ranks_and_workers_together_read_each_row_once(
    numbers: Dataset, world: int, workers: int, shuffle: str
) -> None:
    ranks = list(of_ranks(numbers, world, workers, shuffle=shuffle, even="none"))
    assert sorted(row for rank in ranks for batch in rank for row in batch) == list(range(ROWS))


def in_turn(ranks: Iterator[list[list[int]]]) -> list[list[int]]:
    return [batch for turn in itertools.zip_longest(*ranks) for batch in turn if batch is not None]


@pytest.mark.parametrize("shuffle", ["global", "none"])
def test_the_global_order_is_that_of_one_reader_whatever_the_ranks_and_workers(numbers: Dataset, shuffle: str) -> None:
    (alone,) = of_ranks(numbers, 1, 0, shuffle=shuffle, even="none")
    assert (alone == sorted(alone)) == (shuffle == "none")
    for world, workers in ((1, 2), (2, 0), (3, 2)):
        assert in_turn(of_ranks(numbers, world, workers, shuffle=shuffle, even="none")) == alone


@pytest.mark.parametrize("world", [1, 2])
def test_the_global_order_of_blocks_is_that_of_the_number_of_ranks_whatever_the_workers(
    numbers: Dataset, world: int
) -> None:
    how = {"shuffle": "blocks", "even": "none"}
    found = [in_turn(of_ranks(numbers, world, workers, **how)) for workers in (0, 1, 2)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("even", ["drop", "pad"])
def test_ranks_stay_in_step_and_what_that_costs_is_counted(numbers: Dataset, even: str) -> None:
    ranks = list(of_ranks(numbers, 3, 2, even=even))
    assert len({len(rank) for rank in ranks}) == 1
    assert {len(batch) for rank in ranks for batch in rank} == {64}
    read = [row for rank in ranks for batch in rank for row in batch]
    batches = numbers.torch(batch_rows=64, world=3, even=even)
    assert (batches.left_out, batches.repeated) == (ROWS - len(set(read)), len(read) - len(set(read)))
    assert (batches.left_out > 0) == (even == "drop")
    assert len(batches) == len(ranks[0])


def test_more_than_one_rank_drops_by_default_and_one_reads_all(numbers: Dataset) -> None:
    assert numbers.torch(batch_rows=64, world=3).left_out > 0
    assert numbers.torch(batch_rows=64).left_out == 0


@pytest.mark.parametrize("persistent", [False, True])
def test_each_epoch_has_its_own_order_for_workers_that_persist_too(numbers: Dataset, persistent: bool) -> None:
    batches = numbers.torch(["n"], batch_rows=64)
    loader = DataLoader(batches, batch_size=None, num_workers=2, persistent_workers=persistent)
    epochs = []
    for epoch in range(3):
        batches.set_epoch(epoch)
        epochs.append(rows_of(loader))
    assert all(sorted(itertools.chain(*epoch)) == list(range(ROWS)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    batches.set_epoch(0)
    assert rows_of(loader) == epochs[0]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_may_be_forked_and_spawned(numbers: Dataset, method: str) -> None:
    batches = numbers.torch(["n"], batch_rows=512)
    next(iter(batches))  # files are open before there are workers
    loader = DataLoader(batches, batch_size=None, num_workers=2, multiprocessing_context=method)
    assert sorted(itertools.chain(*rows_of(loader))) == list(range(ROWS))


def test_an_iteration_that_was_broken_off_begins_again(numbers: Dataset) -> None:
    batches = numbers.torch(["n"], batch_rows=64)
    first = next(iter(batches))["n"].tolist()
    assert next(iter(batches))["n"].tolist() == first


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize(("before", "after"), [((2, 2), (3, 1)), ((1, 3), (4, 0)), ((3, 0), (1, 2))])
def test_a_state_is_small_and_goes_on_under_any_other_ranks_and_workers(
    numbers: Dataset, before: tuple[int, int], after: tuple[int, int], shuffle: str
) -> None:
    consumed, (world, workers) = 9, before
    read = [rank[:consumed] for rank in of_ranks(numbers, world, workers, shuffle=shuffle, even="none")]
    how: dict[str, Any] = {"batch_rows": 64, "world": world, "seed": 3, "shuffle": shuffle, "even": "none"}
    states = [numbers.torch(rank=rank, **how).state_dict(consumed) for rank in range(world)]
    assert states == [states[0]] * world
    assert len(json.dumps(states[0])) < 1024
    rest = of_ranks(numbers, *after, start=json.loads(json.dumps(states[0])), shuffle=shuffle, even="none")
    assert sorted(row for rank in [*read, *rest] for batch in rank for row in batch) == list(range(ROWS))


def test_the_epoch_of_a_state_goes_on_though_it_is_set_and_the_next_one_is_whole(numbers: Dataset) -> None:
    before = numbers.torch(["n"], batch_rows=64, seed=5)
    before.set_epoch(2)
    state, whole = before.state_dict(10), rows_of(before)
    batches = numbers.torch(["n"], batch_rows=64, seed=999)
    batches.load_state_dict(state)
    batches.set_epoch(2)
    assert rows_of(batches) == whole[10:]
    batches.set_epoch(3)
    before.set_epoch(3)
    assert rows_of(batches) == rows_of(before)


def test_a_state_of_another_dataset_or_size_of_batches_is_refused(numbers: Dataset) -> None:
    state = numbers.torch(batch_rows=64).state_dict(3)
    with pytest.raises(UsageError, match="the state has batch_rows 64, this dataset 65; make it with that"):
        numbers.torch(batch_rows=65).load_state_dict(state)
    with pytest.raises(UsageError, match="has rows"):
        numbers.torch(batch_rows=64).load_state_dict(state | {"rows": 5})
    with pytest.raises(UsageError, match="157 from here on"):
        numbers.torch(batch_rows=64).state_dict(158)


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_stateful_dataloader_goes_on_with_as_many_workers(numbers: Dataset, workers: int, shuffle: str) -> None:
    def loader() -> StatefulDataLoader:
        return StatefulDataLoader(
            numbers.torch(["n"], batch_rows=64, shuffle=shuffle), batch_size=None, num_workers=workers
        )

    first, before = loader(), []
    for batch in itertools.islice(first, 20):
        before.append(batch["n"].tolist())
        state = first.state_dict()
    second = loader()
    second.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert before + rows_of(second) == rows_of(loader())


def test_a_state_of_a_worker_is_refused_by_another_one(numbers: Dataset) -> None:
    batches = numbers.torch(["n"], batch_rows=64)
    next(iter(batches))
    state = batches.state_dict()
    other = numbers.torch(["n"], batch_rows=64, rank=1, world=2)
    other.load_state_dict(state)
    with pytest.raises(UsageError, match=r"save state_dict\(batches_consumed\)"):
        next(iter(other))


TRAIN = """
import json, sys, os
from torch.utils.data import DataLoader
from shardmill.pipelines import open_dataset

if __name__ == "__main__":
    path, rank, world, workers, state = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    batches = open_dataset(path)["train"].torch(["n"], batch_rows=64, rank=rank, world=world, seed=3, even="none")
    if os.path.exists(state):
        batches.load_state_dict(json.load(open(state)))
    loader = DataLoader(batches, batch_size=None, num_workers=workers)
    for step, batch in enumerate(loader, 1):
        print(json.dumps([batch["n"].tolist(), batches.state_dict(step)]), flush=True)
"""


def test_a_run_that_is_killed_in_mid_epoch_goes_on_under_other_ranks_and_workers(out: Path, tmp_path: Path) -> None:
    program, state = tmp_path / "train.py", tmp_path / "state.json"
    program.write_text(TRAIN)

    def start(rank: int, world: int, workers: int) -> subprocess.Popen[str]:
        arguments = [sys.executable, program, out, rank, world, workers, state]
        return subprocess.Popen([*map(str, arguments)], stdout=subprocess.PIPE, text=True, start_new_session=True)

    ranks = [start(rank, 2, 2) for rank in range(2)]
    found = []
    for process in ranks:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(7)]
        found += [rows for rows, _ in lines]
        state_of_all = lines[-1][1]
    for process in ranks:
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert process.stdout is not None
        process.stdout.close()
    state.write_text(json.dumps(state_of_all))
    for process in [start(rank, 3, 1) for rank in range(3)]:
        text, _ = process.communicate()
        assert process.returncode == 0
        found += [json.loads(line)[0] for line in text.splitlines()]
    assert sorted(itertools.chain(*found)) == list(range(ROWS))


STEPS = """
import sys
import torch.distributed as dist
import torch
from torch.utils.data import DataLoader
from shardmill.pipelines import open_dataset

if __name__ == "__main__":
    dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=int(sys.argv[3]), world_size=3)
    dataset = open_dataset(sys.argv[1])["train"]
    batches = dataset.torch(["n"], batch_rows=64, rank=dist.get_rank(), world=dist.get_world_size())
    steps, total = 0, 0
    for batch in DataLoader(batches, batch_size=None, num_workers=1):
        found = batch["n"].sum()
        dist.all_reduce(found)  # every rank waits for every other one
        steps, total = steps + 1, total + int(found)
    print(steps, total, batches.left_out)
    dist.destroy_process_group()
"""


def test_ranks_that_wait_for_each_other_come_to_the_end_of_the_epoch(out: Path, tmp_path: Path) -> None:
    program = tmp_path / "steps.py"
    program.write_text(STEPS)
    command = [sys.executable, str(program), str(out), str(tmp_path / "rendezvous")]
    ranks = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(3)]
    answers = {process.communicate(timeout=300)[0] for process in ranks}
    (answer,) = answers
    steps, _, left_out = map(int, answer.split())
    assert steps * 3 * 64 + left_out == ROWS


def test_a_map_style_loader_with_a_sampler_reads_each_row_once(numbers: Dataset) -> None:
    loader = DataLoader(numbers.torch_map(["n", "x", "maybe"]), batch_size=100, shuffle=True, num_workers=2)
    batches = list(loader)
    assert sorted(row for batch in batches for row in batch["n"].tolist()) == list(range(ROWS))
    assert batches[0]["x"].shape == (100, 4)
    assert batches[0]["maybe/present"].dtype == torch.bool


def test_pictures_decode_to_tensors(tmp_path: Path) -> None:
    from PIL import Image

    for at in range(4):
        path = tmp_path / "pics" / ("cat", "dog")[at % 2] / f"{at}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 5), (at, 0, 0)).save(path)
    convert(str(tmp_path / "pics"), output=tmp_path / "out")
    (batch,) = open_dataset(tmp_path / "out").torch(["image/encoded", "image/class/label"], decode=True)
    assert (batch["image/encoded"].shape, batch["image/encoded"].dtype) == ((4, 5, 6, 3), torch.uint8)
    assert sorted(batch["image/class/label"].tolist()) == [0, 0, 1, 1]


@pytest.mark.parametrize("wrong", [{"rank": 2, "world": 2}, {"batch_rows": 0}, {"shuffle": "yes"}, {"even": "odd"}])
def test_what_cannot_be_is_refused_with_the_choices(numbers: Dataset, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"choices: |ranks are 0 to world - 1"):
        numbers.torch(**wrong)


def test_nothing_of_torch_is_imported_until_it_is_asked_for(out: Path) -> None:
    program = f"""
import sys
from shardmill.pipelines import open_dataset
dataset = open_dataset({str(out)!r})["train"]
next(dataset.numpy(rows=10)), dataset.grain()[0]
assert not {{"torch", "tensorflow", "grain"}} & set(sys.modules)
dataset.torch()
assert "torch" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_epoch_behind_a_resumed_one_is_whole_also_where_it_is_not_set(numbers: Dataset, workers: int) -> None:
    batches = numbers.torch(["n"], batch_rows=64)
    batches.load_state_dict(batches.state_dict(100))
    loader = DataLoader(batches, batch_size=None, num_workers=workers)
    assert len(loader) == 157
    assert [len(rows_of(loader)) for _ in range(3)] == [57, 157, 157]


@pytest.mark.parametrize("workers", [0, 2])
def test_passes_with_one_seed_of_pytorch_are_told_apart(numbers: Dataset, workers: int) -> None:
    batches = numbers.torch(["n"], batch_rows=64)
    batches.load_state_dict(batches.state_dict(100))
    found = []
    for _ in range(3):
        torch.manual_seed(0)
        found.append(len(rows_of(DataLoader(batches, batch_size=None, num_workers=workers))))
    assert found == [57, 157, 157]


def test_a_state_of_a_reader_that_has_taken_nothing_may_be_loaded_by_any_others(numbers: Dataset) -> None:
    batches = numbers.torch(["n"], batch_rows=64)
    batches.load_state_dict(batches.state_dict())
    loader = DataLoader(batches, batch_size=None, num_workers=2)
    assert sorted(itertools.chain(*rows_of(loader))) == list(range(ROWS))


def test_a_state_that_names_no_shards_is_refused(numbers: Dataset) -> None:
    batches = numbers.torch(["n"], batch_rows=64)
    state = batches.state_dict(1)
    del state["shards"]
    with pytest.raises(UsageError, match="of other shards"):
        batches.load_state_dict(state)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_a_pass_behind_a_resumed_one_that_was_broken_off_is_whole(
    numbers: Dataset, workers: int, persistent: bool
) -> None:
    batches = numbers.torch(["n"], batch_rows=64)
    batches.load_state_dict(batches.state_dict(153))
    loader = DataLoader(batches, batch_size=None, num_workers=workers, persistent_workers=persistent and workers > 0)
    for _ in itertools.islice(loader, 1):
        pass
    assert [len(rows_of(loader)) for _ in range(2)] == [157, 157]


def test_an_epoch_that_leaves_a_loaded_state_unread_is_warned_of(numbers: Dataset) -> None:
    batches = numbers.torch(["n"], batch_rows=64)
    batches.load_state_dict(batches.state_dict(100) | {"epoch": 1})
    assert batches.epoch == 1
    with pytest.warns(ShardmillWarning, match=r"leaves epoch 1 of the state unread; begin with range\(1, \.\.\.\)"):
        batches.set_epoch(0)


def test_an_epoch_behind_a_state_at_the_end_of_one_is_begun_without_a_warning(numbers: Dataset) -> None:
    batches = numbers.torch(["n"], batch_rows=64)
    batches.load_state_dict(batches.state_dict(157))
    batches.set_epoch(1)
    assert len(rows_of(batches)) == 157


def stateful(numbers: Dataset, workers: int, *, persistent: bool = False) -> tuple[Any, StatefulDataLoader]:
    batches = numbers.torch(["n"], batch_rows=64, seed=1)
    loader = StatefulDataLoader(
        batches, batch_size=None, num_workers=workers, persistent_workers=persistent and workers > 0
    )
    return batches, loader


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("persistent", [False, True])
def test_a_stateful_dataloader_that_is_saved_behind_an_epoch_goes_on_with_the_next_one(
    numbers: Dataset, workers: int, persistent: bool
) -> None:
    batches, loader = stateful(numbers, workers, persistent=persistent)
    epochs = []
    for epoch in range(4):
        batches.set_epoch(epoch)
        epochs.append(rows_of(loader))
        if epoch == 1:
            state = pickle.loads(pickle.dumps(loader.state_dict()))
    batches, loader = stateful(numbers, workers, persistent=persistent)
    loader.load_state_dict(state)
    for epoch in (2, 3):
        batches.set_epoch(epoch)
        assert rows_of(loader) == epochs[epoch]


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("taken", [20, 155, 156, 157])
def test_a_stateful_dataloader_goes_on_in_the_epoch_that_was_saved_and_then_with_the_next_ones(
    numbers: Dataset, workers: int, taken: int
) -> None:
    batches, loader = stateful(numbers, workers)
    for epoch in range(3):
        batches.set_epoch(epoch)
        whole = rows_of(loader)
    batches, loader = stateful(numbers, workers)
    batches.set_epoch(1)
    before = [batch["n"].tolist() for batch in itertools.islice(loader, taken)]
    state = loader.state_dict()
    batches, loader = stateful(numbers, workers)
    loader.load_state_dict(state)
    batches.set_epoch(1)
    found = before + rows_of(loader)
    assert sorted(itertools.chain(*found)) == list(range(ROWS))
    batches.set_epoch(2)
    assert rows_of(loader) == whole


def test_a_stateful_dataloader_that_goes_on_in_another_epoch_than_was_set_says_so(numbers: Dataset) -> None:
    batches, loader = stateful(numbers, 0)
    batches.set_epoch(2)
    next(iter(loader))
    state = loader.state_dict()
    batches, loader = stateful(numbers, 0)
    loader.load_state_dict(state)
    batches.set_epoch(0)
    with pytest.warns(ShardmillWarning, match=r"the state is of epoch 2, which goes on, and set_epoch\(0\) was called"):
        assert len(rows_of(loader)) == 156


def test_a_stateful_dataloader_behind_a_state_of_the_dataset_reads_whole_epochs(numbers: Dataset) -> None:
    batches, loader = stateful(numbers, 0)
    batches.load_state_dict(batches.state_dict(40))
    assert len(rows_of(loader)) == 117
    state = loader.state_dict()
    batches, loader = stateful(numbers, 0)
    loader.load_state_dict(state)
    assert [len(rows_of(loader)) for _ in range(2)] == [157, 157]


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("taken", [1, 56, 57])
def test_a_stateful_dataloader_goes_on_in_the_rest_of_an_epoch_that_another_one_had_begun(
    numbers: Dataset, workers: int, taken: int
) -> None:
    begun = numbers.torch(["n"], batch_rows=64, seed=1).state_dict(100)
    batches, loader = stateful(numbers, workers)
    batches.load_state_dict(begun)
    before = [batch["n"].tolist() for batch in itertools.islice(loader, taken)]
    state = loader.state_dict()
    batches, loader = stateful(numbers, workers)
    loader.load_state_dict(state)
    batches.set_epoch(0)
    found = before + rows_of(loader)
    assert found == rows_of(numbers.torch(["n"], batch_rows=64, seed=1))[100:]
    assert len(rows_of(loader)) == 157


def test_a_state_of_another_generation_or_of_other_shards_is_refused(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 1)):
        convert(data={"n": np.arange(first, first + 100)}, output=tmp_path / name)
    state = open_dataset(tmp_path / "a")["train"].torch(batch_rows=10).state_dict(3)
    with pytest.raises(UsageError, match=rf"of commit [0-9a-f-]+, which {tmp_path}/b does not hold"):
        open_dataset(tmp_path / "b")["train"].torch(batch_rows=10).load_state_dict(state)
    append(data={"n": np.arange(5)}, output=str(tmp_path / "a"))
    with pytest.raises(UsageError, match=rf'generation 1, and this is 2; open_dataset\("{tmp_path}/a", 1\) opens that'):
        open_dataset(tmp_path / "a")["train"].torch(batch_rows=10).load_state_dict(state)
    open_dataset(tmp_path / "a", 1)["train"].torch(batch_rows=10).load_state_dict(state)


def test_numbers_of_numpy_are_taken_and_others_are_refused_by_name(numbers: Dataset) -> None:
    batches = numbers.torch(batch_rows=np.int64(64), seed=np.int64(3))  # type: ignore[arg-type]
    json.dumps(batches.state_dict(1))
    with pytest.raises(UsageError, match="seed is None; it is a whole number"):
        numbers.torch(seed=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        batches.set_epoch(1.5)  # type: ignore[arg-type]


def test_batches_consumed_are_a_whole_number(numbers: Dataset) -> None:
    with pytest.raises(TypeError):
        numbers.torch(batch_rows=64).state_dict(2.5)  # type: ignore[arg-type]


def test_times_are_collated_as_numbers(tmp_path: Path) -> None:
    table = pa.table({"day": pa.array([1, None], pa.date32()), "at": pa.array([5, 6], pa.timestamp("ms"))})
    convert(data=table, output=tmp_path / "out")
    dataset = open_dataset(tmp_path / "out")["train"]
    (batch,) = DataLoader(dataset.torch_map(), batch_size=2)
    assert (batch["day"].tolist(), batch["at"].tolist()) == ([1, 0], [5000, 6000])
    (batch,) = dataset.torch(shuffle="none")
    assert (batch["day"].tolist(), batch["at"].tolist()) == ([1, 0], [5000, 6000])


def test_gzip_shards_are_shuffled_in_blocks_of_inflated_bytes_unless_rows_are_asked_for(tmp_path: Path) -> None:
    rows = 20_000
    data = {"n": np.arange(rows), "same": np.zeros((rows, 64))}  # which compress well
    convert(data=data, output=tmp_path / "gzip", shard_size="64KiB", compression="gzip")
    convert(data=data, output=tmp_path / "plain", shard_size="1MiB")
    gzip, plain = (open_dataset(tmp_path / name)["train"] for name in ("gzip", "plain"))
    blocks = gzip.torch(["n"], batch_rows=100)
    assert blocks.state_dict(0)["shuffle"] == "blocks"
    assert plain.torch(["n"]).state_dict(0)["shuffle"] == "global"
    assert gzip.torch(["n"], shuffle="global").state_dict(0)["shuffle"] == "global"
    wanted = plain.torch(["n"], shuffle="blocks").state_dict(0)["block_rows"]
    assert 0.9 * wanted < blocks.state_dict(0)["block_rows"] < 1.1 * wanted
    numbers = [number for batch in blocks for number in batch["n"].tolist()]
    assert sorted(numbers) == [*range(rows)]
    assert numbers[:100] != [*range(100)]
