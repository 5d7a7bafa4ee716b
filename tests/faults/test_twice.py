"""Every step of a run is attempted twice, as an engine may do it: the bytes are those of one attempt."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.pipelines.runs import merge as merging
from shardmill.transforms import read, write
from shardmill.transforms.dataset.commit import publish
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.manifest_files import list_generations
from shardmill.transforms.format.batches.rows import TaskEnd
from shardmill.transforms.inputs.contract.tasks import TaskStaging

pytestmark = pytest.mark.engine

ROWS = 400


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Make every step of the engine run twice, losing what the first attempt gave. Return the file that notes each.

    The engine copies the steps, so that a counter would stay what it is.
    """
    notes = tmp_path / "attempts"

    def note(name: str) -> None:
        with notes.open("a") as file:
            file.write(f"{name}\n")

    def twice(name: str) -> None:
        real = getattr(write, name)

        class Twice(real):  # type: ignore[misc,valid-type]
            def process(self, element: Any) -> Iterator[Any]:
                lost = list(super().process(element))
                assert lost
                note(name)
                yield from super().process(element)

        monkeypatch.setattr(write, name, Twice)

    for name in ("_PlanShardsFn", "_AssembleShardFn", "_CommitFn", "_PublishFileFn"):
        twice(name)

    class ReadTwice(read._ReadTaskFn):
        def process(self, task: Any) -> Iterator[Any]:
            assert list(super().process(task))
            note("_ReadTaskFn")
            yield from super().process(task)

    class StageTwice(write._StagePartsFn):
        def start_bundle(self) -> None:
            super().start_bundle()
            self._elements: list[Any] = []

        def process(self, element: Any) -> Iterator[tuple[int, bytes]]:
            self._elements.append(element)
            results = list(super().process(element))
            if isinstance(element, TaskEnd):
                note("_StagePartsFn")
                results = [again for earlier in self._elements for again in super(StageTwice, self).process(earlier)]
                self._elements = []
            yield from results

    class CompleteTwice(write._CompleteFn):
        def process(self, gathered: Any) -> Iterator[Any]:
            gathered = (gathered[0], list(gathered[1]))
            assert list(super().process(gathered))
            note("_CompleteFn")
            yield from super().process(gathered)

    monkeypatch.setattr(read, "_ReadTaskFn", ReadTwice)
    monkeypatch.setattr(write, "_StagePartsFn", StageTwice)
    monkeypatch.setattr(write, "_CompleteFn", CompleteTwice)
    return notes


def put(path: Path, start: int) -> Path:
    path.write_text("id,text\n" + "".join(f"{i},{'x' * 300}{i}\n" for i in range(start, start + ROWS)))
    return path


def config(source: Path, **more: Any) -> dict[str, Any]:
    split = {"fractions": {"train": 0.8, "val": 0.2}, "key": "id"}
    return {"name": "same", "input": {"paths": [str(source)]}, "split": split, **more}


def tree(root: Path) -> dict[str, bytes]:
    """Return every file of a dataset; of manifests, all but their `run`."""
    found = {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    for name, data in found.items():
        if name == "manifest.json" or name.startswith("manifests/"):
            document = json.loads(data)
            del document["run"]
            found[name] = json.dumps(document).encode()
    return found


def make(folder: Path, sources: Path, between: Callable[[], None] = lambda: None) -> Path:
    """Convert one file and append another one."""
    output = {"path": str(folder / "out"), "shard_size": 65536, "sidecars": ["tfds", "tfx", "index"]}
    convert(config(sources / "a.csv", output=output, runner={"workers": 1}))
    between()
    append(config(sources / "b.csv"), output=folder / "out")
    return folder / "out"


STEPS = {
    "_ReadTaskFn", "_StagePartsFn", "_PlanShardsFn", "_AssembleShardFn", "_CommitFn", "_PublishFileFn", "_CompleteFn",
}  # fmt: skip


def test_every_task_every_step_and_the_commit_attempted_twice_give_the_bytes_of_one_attempt(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    put(tmp_path / "a.csv", 0)
    put(tmp_path / "b.csv", 1000)
    once = tree(make(tmp_path / "once", tmp_path))
    notes: Path = request.getfixturevalue("attempts")
    created: Counter[str] = Counter()
    out = make(tmp_path / "twice", tmp_path, lambda: created.update(notes.read_text().split()))
    assert tree(out) == once
    assert list(list_generations(str(out))) == [1, 2]  # a second attempt at a commit is no second generation
    for counted in (created, Counter(notes.read_text().split()) - created):
        assert counted.keys() == STEPS
        assert (counted["_CommitFn"], counted["_PlanShardsFn"], counted["_CompleteFn"]) == (1, 1, 1)
        assert counted["_AssembleShardFn"] > 3
        assert counted["_PublishFileFn"] > 4  # each shard, and the small files together
    report = verify_dataset(out)
    assert (report.findings, report.notes) == ((), ())


def test_a_merge_attempted_twice_in_every_step_gives_the_bytes_of_one_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start, name in ((0, "one"), (1000, "two")):
        output = {"path": str(tmp_path / name), "shard_size": 65536}
        convert(config(put(tmp_path / f"{name}.csv", start), output=output, runner={"workers": 1}))
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]

    def merge(out: str) -> dict[str, bytes]:
        flags = {"output.path": ("-o", str(tmp_path / out)), "name": ("--name", "same")}
        merging.plan_merge("merge", paths, flags).run()
        return tree(tmp_path / out)

    once = merge("once")
    counted: Counter[str] = Counter()

    def twice(module: Any, name: str) -> None:
        real = getattr(module, name)

        def run(*args: Any, **how: Any) -> Any:
            real(*args, **how)
            counted[name] += 1
            return real(*args, **how)

        monkeypatch.setattr(module, name, run)

    twice(TaskStaging, "stage")
    for name in ("plan_generation", "assemble_shard", "commit_generation", "publish_file", "complete_publish"):
        twice(publish, name)
    assert merge("twice") == once
    assert counted["commit_generation"] == counted["plan_generation"] == counted["complete_publish"] == 1
    assert min(counted["stage"], counted["assemble_shard"], counted["publish_file"]) >= 2
    assert list(list_generations(str(tmp_path / "twice"))) == [1]
    dataset = open_dataset(tmp_path / "twice")
    assert sum(1 for split in dataset.splits for _ in dataset.records(split)) == 2 * ROWS
