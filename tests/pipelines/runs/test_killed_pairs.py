"""Every split, shuffle, compression and check of duplicates: killed in each pass, the same command ends it."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.cli import main
from shardmill.pipelines.engines.engine import PlainEngine
from shardmill.pipelines.prepare import conversion as convert_planning
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.format.splits import shard_plan
from shardmill.transforms.inputs.contract.tasks import Plan

from ...faults.plain_run import run_plainly
from ...tiers import but_some_thorough
from ..killed import Death, on_storage, run_until
from .test_resume import contents

SPLITS: Final = {
    "one split": "",
    "hash": "split={fractions: {train: 0.8, val: 0.2}, key: id}",
    "exact": "split={fractions: {train: 0.8, val: 0.2}, by: exact}",
    "three exact": "split={fractions: {train: 0.7, val: 0.2, test: 0.1}, by: exact}",
    "exact by class": "split={fractions: {train: 0.8, val: 0.2}, by: exact, stratify: kind}",
    "exact by key": "split={fractions: {train: 0.8, val: 0.2}, by: exact, key: user}",
    "exact folds": "split={folds: 3, by: exact}",
    "column": "split={column: kind, names: {cat: train, dog: val}}",
    "time": "split={before: {column: day, train: 2024-03-01, rest: val}}",
}
ORDERS: Final = {"order task": "", "order source": "output.order=source", "shuffled": "shuffle.seed=7"}
COMPRESSIONS: Final = {"plain": "", "gzip": "output.compression=gzip"}
DUPLICATES: Final = {
    "unchecked": "",
    "reported": "checks.duplicates={columns: [text], action: report}",
    "dropped": "checks.duplicates={columns: [text], action: drop}",
}
REFUSED: Final = {
    ("exact", "order source"): "split.by: exact deals some records last",
    ("exact", "dropped"): "checks.duplicates.action: drop leaves records out after split.by: exact",
}
PAIRS: Final = [", ".join(pair) for pair in itertools.product(SPLITS, ORDERS, COMPRESSIONS, DUPLICATES)]

SHUFFLE: Final = ("--shuffle", "7")
EXACT: Final = ("--split-fractions", "train=0.8,val=0.2", "--set", "split.by=exact")
COMMON: Final = ("--shard-size", "128KiB", "--workers", "1")
RESULT: Final = "replace .*/tasks/"
LAST: Final = r"replace .*/sources\.jsonl"


class DiedError(BaseException):
    """The end of a command that dies; what it staged stays, as after a kill."""


@dataclass
class Desk:
    """A working folder with the sources; `staged` are the numbers of the tasks that were staged since the last look.

    A command dies of `death`: by an exception in this process, or by `kill -9` of its own with `kills`.
    """

    root: Path
    capsys: pytest.CaptureFixture[str]
    kills: bool = False
    staged: list[int] = field(default_factory=list)
    death: Death | None = None
    count: int = 0

    @property
    def out(self) -> Path:
        return self.root / "out"

    def told(self, event: str, before: bool) -> None:
        """Note what is staged; die when it is time."""
        death = self.death
        if death is not None and before == death.before and re.search(death.event, event):
            self.count += 1
            if self.count == death.count:
                raise DiedError
        if not before and (found := re.fullmatch(r"replace \.staging/[0-9a-f]{16}/tasks/(.*)\.json", event)):
            self.staged.append(int(found[1]))

    def begin(self, *args: str) -> None:
        """Put in place what a command adds to."""
        shutil.rmtree(self.out, ignore_errors=True)
        if args[0] == "append":
            shutil.copytree(self.root / "first", self.out)

    def run(self, *args: str) -> tuple[int, str]:
        """Run a command in this process; return its exit code and what it says beside its result."""
        self.staged.clear()
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        return int(ended.value.code or 0), self.capsys.readouterr().err

    def killed(self, death: Death, *args: str) -> set[int]:
        """Let a command die; return the numbers of the tasks that are done."""
        if self.kills:
            run_until(death, self.root, args)
        else:
            self.death, self.count = death, 0
            with pytest.raises(DiedError):
                main(list(args))
            self.death = None
            self.capsys.readouterr()
        return {int(path.stem) for path in self.out.glob(".staging/*/tasks/*.json")}

    def planned(self) -> int:
        """Return how many tasks the first pass of the run that died has."""
        (plan,) = self.out.glob(".staging/*/plan.json")
        return len(json.loads(plan.read_text())["tasks"])


def write_source(folder: Path, rows: int) -> None:
    """Write two files of 0.5 KB a row; every 9th row has the text of another row, of another task as a rule."""
    rng = np.random.default_rng(20261125)
    ids = np.arange(rows)
    texts = [rng.bytes(200).hex() for _ in ids]
    texts = [texts[n * 7 % rows] if n % 9 == 4 else text for n, text in enumerate(texts)]
    days = np.datetime64("2024-01-01", "us") + (ids % 80) * np.timedelta64(1, "D")
    kinds = np.where(ids % 5, "cat", "dog")
    table = pa.table({"id": ids, "kind": kinds, "user": ids * ids % 211, "day": days, "text": texts})
    for name, first in (("a", 0), ("b", rows // 2)):
        pq.write_table(table.slice(first, rows // 2), folder / f"{name}.parquet", row_group_size=rows // 40)


@contextmanager
def desk_with(rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """Give a desk with two files of so many rows, the working folder of this process."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path  # nothing waits for a disk there
    before = os.getcwd()
    with tempfile.TemporaryDirectory(dir=memory, prefix="shardmill-") as folder:
        write_source(Path(folder), rows)
        found = Desk(Path(folder), capsys)
        undo = on_storage(found.told)
        os.chdir(folder)
        try:
            yield found
        finally:
            os.chdir(before)
            undo()


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    monkeypatch.setattr(shard_plan, "MIN_TASK_BYTES", 100_000)  # several tasks, and buckets, of little data
    monkeypatch.setattr(PlainEngine, "run", lambda _, prepared, processes: run_plainly(prepared))
    with desk_with(1600, tmp_path, capsys) as found:
        yield found


def counts_of(first: int, second: int) -> list[int]:
    """Return 1, half, all but one and all tasks of each pass."""
    counts = {1, first // 2, first - 1, first}
    if second:
        counts |= {first + count for count in (1, second // 2, second - 1, second)}
    return sorted(counts - {0})


def deaths_of(first: int, second: int) -> list[Death]:
    """Return deaths after 0, 1, half, all but one and all tasks of each pass."""
    deaths = [Death(RESULT, before=True), *(Death(RESULT, count) for count in counts_of(first, second))]
    return [*deaths, *([Death(RESULT, first + 1, before=True)] if second else []), Death(LAST, before=True)]


def undisturbed(desk: Desk, *args: str) -> dict[str, bytes]:
    """Return what a command makes if nothing happens."""
    desk.begin(*args)
    code, err = desk.run(*args)
    assert code == 0, err
    assert verify_dataset(desk.out).findings == ()
    return contents(desk.out)


def assert_ended(desk: Desk, whole: dict[str, bytes], done: set[int], *args: str) -> None:
    """The same command ends what died, does nothing again that is done, and makes what it makes undisturbed."""
    code, err = desk.run(*args)
    assert code == 0, err
    assert not done & set(desk.staged)
    assert ("resuming: " in err) == bool(done)
    assert contents(desk.out) == whole
    assert not (desk.out / ".staging").exists()


def assert_resumed(desk: Desk, *args: str) -> tuple[int, int]:
    """Let a command die of each of its deaths, and resume it; return how many tasks it has in each pass."""
    whole = undisturbed(desk, *args)
    tasks = len(desk.staged)
    desk.begin(*args)
    desk.killed(Death(RESULT), *args)
    first = desk.planned()
    for death in deaths_of(first, tasks - first):
        desk.begin(*args)
        assert_ended(desk, whole, desk.killed(death, *args), *args)
    return first, tasks - first


def assert_resumed_on_and_on(desk: Desk, *args: str) -> None:
    """Let a command die of all its deaths, one after the other, and each time resume what is left by then."""
    whole = undisturbed(desk, *args)
    tasks = len(desk.staged)
    desk.begin(*args)
    done = desk.killed(Death(RESULT, before=True), *args)
    first = desk.planned()
    for count in counts_of(first, tasks - first):
        if count > len(done):
            before, done = done, desk.killed(Death(RESULT, count - len(done)), *args)
            assert before < done
    assert len(done) == tasks
    assert_ended(desk, whole, desk.killed(Death(LAST, before=True), *args), *args)


def command_of(pair: str) -> list[str]:
    kinds = (SPLITS, ORDERS, COMPRESSIONS, DUPLICATES)
    given = [settings[one] for settings, one in zip(kinds, pair.split(", "), strict=True)]
    return ["convert", "a.parquet", "b.parquet", "-o", "out", *COMMON, *(f"--set={one}" for one in given if one)]


def refusal_of(pair: str) -> str | None:
    """Return what is said of settings that do not go together."""
    return next((text for words, text in REFUSED.items() if all(word in pair for word in words)), None)


def assert_pair_is_resumed_or_refused(desk: Desk, pair: str) -> None:
    command, refusal = command_of(pair), refusal_of(pair)
    if refusal is not None:
        code, err = desk.run(*command)
        assert (code, desk.out.exists()) == (2, False)
        assert refusal in err
        return
    first, second = assert_resumed(desk, *command)
    assert first >= 3
    assert (second >= 3) == ("shuffled" in pair)


@pytest.mark.parametrize(
    "pair", but_some_thorough(filter(refusal_of, PAIRS), PAIRS, "a dozen deaths of each pair of settings", PAIRS[::7])
)
def test_settings_whose_run_died_at_any_task_give_the_bytes_of_an_undisturbed_run_or_are_refused(
    desk: Desk, pair: str
) -> None:
    assert_pair_is_resumed_or_refused(desk, pair)


SHUFFLED: Final = ("convert", "a.parquet", "b.parquet", "-o", "out", *COMMON, *SHUFFLE, *EXACT)
REBUILT: Final = ("rebuild", "first", "-o", "out", *COMMON, *SHUFFLE, *EXACT)
NEIGHBOURS: Final = {
    "leaks": (*SHUFFLED, "--set", "checks.leaks={columns: [text]}"),
    "full statistics": (*SHUFFLED, "--set", "stats=full"),
    "an append": ("append", "b.parquet", "-o", "out", *COMMON),
    "a rebuild": REBUILT,
    "a rebuild by class": (*REBUILT, "--set", "split.stratify=kind", "--compression", "gzip"),
    "csv": ("convert", "t.csv", *SHUFFLED[3:]),
    "folders": ("convert", "pets", "-o", "out", *COMMON, *SHUFFLE),
    "a folder is cut": ("convert", "pets", *SHUFFLED[3:], "--set", "split.of=train"),
    "a folder is cut by key": ("convert", "pets", *SHUFFLED[3:], "--set", "split.of=train", "--split-key", "who"),
}


def write_pets(folder: Path) -> None:
    """Write pictures of noise beside tables of their names, in folders that are splits."""
    from PIL import Image

    rng = np.random.default_rng(7)
    for split, count in (("train", 80), ("test", 30)):
        (folder / split).mkdir(parents=True)
        rows = [{"file_name": f"{number}.png", "who": number % 11} for number in range(count)]
        for row in rows:
            Image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8)).save(folder / split / str(row["file_name"]))
        (folder / split / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def first(desk: Desk) -> Desk:
    """A desk with the other sources: a dataset, a CSV file, and folders of pictures."""
    command = ["a.parquet" if word == "first" else word for word in REBUILT]
    code, err = desk.run("convert", *(word if word != "out" else "first" for word in command[1:]))
    assert code == 0, err
    pq.read_table("a.parquet").to_pandas().to_csv("t.csv", index=False)
    write_pets(desk.root / "pets")
    return desk


@pytest.mark.parametrize(
    "command",
    but_some_thorough(
        [], NEIGHBOURS, "a dozen deaths of each", ["leaks", "an append", "a rebuild by class", "a folder is cut by key"]
    ),
)
def test_whatever_shuffles_and_splits_exactly_resumes_after_each_of_its_deaths(first: Desk, command: str) -> None:
    _, second = assert_resumed(first, *NEIGHBOURS[command])
    assert second > 0


PAIRS_IN_A_ROW: Final = [
    "exact by class, shuffled, plain, reported",
    "exact by key, shuffled, gzip, unchecked",
    "hash, shuffled, plain, dropped",
    "three exact, order task, plain, unchecked",
]


@pytest.mark.parametrize("command", [*PAIRS_IN_A_ROW, "an append", "a rebuild", "a folder is cut"])
def test_a_run_that_died_in_each_pass_one_after_the_other_resumes_each_time(first: Desk, command: str) -> None:
    assert_resumed_on_and_on(first, *(NEIGHBOURS.get(command) or command_of(command)))


def test_too_many_rejects_of_an_exact_split_that_is_shuffled_are_allowed_later(desk: Desk) -> None:
    table = pq.read_table("a.parquet").to_pandas().astype({"user": str})
    table.loc[::97, "user"] = "nobody"
    table.to_csv("t.csv", index=False)
    args = ("convert", "t.csv", *SHUFFLED[3:], "--set", "schema.columns.user.type=int64")
    code, err = desk.run(*args)
    assert code == 4, err
    rejects = int(re.findall(r"--max-rejects (\d+) resumes it", err)[0])
    for allowed, wanted in ((rejects - 1, 4), (rejects, 0)):
        code, err = desk.run(*args, "--max-rejects", str(allowed))
        assert (code, desk.staged[:1] == [0]) == (wanted, False), err
    assert contents(desk.out) == undisturbed(desk, *args, "--max-rejects", str(rejects))


def test_a_sample_that_gives_another_size_than_in_the_interrupted_run_starts_over(desk: Desk) -> None:
    """Files that could not be read were in the sample of the first run: its buckets were others."""
    whole = undisturbed(desk, *SHUFFLED)
    desk.begin(*SHUFFLED)
    with pytest.MonkeyPatch.context() as patch:
        made = convert_planning.make_plan

        def larger(*args: Any, **settings: Any) -> Plan:
            plan = made(*args, **settings)
            return replace(plan, estimate=replace(plan.estimate, bytes=plan.estimate.bytes * 2))

        patch.setattr(convert_planning, "make_plan", larger)
        desk.killed(Death(RESULT, 3), *SHUFFLED)
    code, err = desk.run(*SHUFFLED)
    assert (code, contents(desk.out)) == (0, whole)
    assert err == "starting over: the sample of the source gives another size than in the interrupted run\n"


@pytest.mark.parametrize("cut", [8, 30_000])
def test_a_spilled_file_that_is_damaged_names_what_starts_over(desk: Desk, cut: int) -> None:
    whole = undisturbed(desk, *SHUFFLED)
    desk.begin(*SHUFFLED)
    desk.killed(Death(r"replace .*/findings\.json", before=True), *SHUFFLED)
    (result,) = desk.out.glob(".staging/*/tasks/000001.json")
    victim = result.parents[1] / json.loads(result.read_text())["splits"]["train"]["parts"][0]["path"]
    data = bytearray(victim.read_bytes())
    data[-cut:] = bytes(len(data[-cut:]))
    victim.write_bytes(data)
    code, err = desk.run(*SHUFFLED)
    assert code == 3
    assert "is not what was spilled" in err
    assert "; --set runner.resume=false starts over" in err
    assert "same command" not in err
    assert desk.run(*SHUFFLED, "--set", "runner.resume=false")[0] == 0
    assert contents(desk.out) == whole


@pytest.mark.thorough("real kills of worker processes and of the local engine; all pairs are in faults/long")
@pytest.mark.parametrize("processes", ["true", "false"])
def test_worker_processes_and_threads_that_are_killed_are_resumed(
    processes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = (*SHUFFLED, "--shard-size", "1MiB", "--workers", "2")
    deaths = [Death("stage ", 3) if processes == "true" else Death(RESULT, 3)]
    with desk_with(22_000, tmp_path, capsys) as desk:
        whole = undisturbed(desk, *args)
        args = (*args, "--set", f"runner.processes={processes}")
        desk.kills = True
        for death in (*deaths, Death(r"replace .*/findings\.json", before=True), Death(LAST, before=True)):
            desk.begin(*args)
            assert_ended(desk, whole, desk.killed(death, *args), *args)
