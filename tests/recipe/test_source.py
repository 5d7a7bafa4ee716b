"""A source with a recipe is planned once: the planned source reads the rows then, and tasks share facts alone."""

from __future__ import annotations

import dataclasses
import io
import pickle
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.transforms.inputs.contract.source import Source, Survey, Task, map_in_turn
from shardmill.transforms.recipe.function import steps_of
from shardmill.transforms.recipe.recipe import Recipe
from shardmill.transforms.recipe.source import RecipeFrozen, RecipeSource, merged
from shardmill.transforms.recipe.step import Step, StepByType


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for country in ("de", "fr"):
        (tmp_path / f"tables/country={country}").mkdir(parents=True)
        (tmp_path / f"tables/country={country}/a.csv").write_text("id,pet,score\n1,cat,\n2,dog,5\n3,cat,7\n")
        (tmp_path / "pets" / country).mkdir(parents=True)
        Image.new("RGB", (30, 20)).save(tmp_path / "pets" / country / "a.png")
    pq.write_table(
        pa.table({"id": [1, 2], "person": [{"name": "Ann", "age": 3}, {"name": "Bob", "age": None}]}), "n.parquet"
    )
    with tarfile.open("a.tar", "w") as archive:
        for name, data in (("1.json", b'{"n": 1}'), ("1.cls", b"7")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    (tmp_path / "a.jsonl").write_text('{"id": 1, "tags": ["x"]}\n{"id": 2, "tags": []}\n')
    return tmp_path


def twice(batch: pa.RecordBatch) -> dict[str, Any]:
    return {name: batch[name] for name in batch.schema.names} | {"again": batch["id"]}


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "steps of a table": (
        "tables",
        {
            "input.where": "id < 3",
            "schema.columns": {"pet": {"label": True, "name": "kind"}, "score": {"null": {"fill": -1}}},
            "schema.constants": {"day": "monday"},
        },
    ),
    "nested columns": ("n.parquet", {}),
    "some rows": ("a.jsonl", {"input.limit": 1}),
    "samples of an archive": ("a.tar", {"input.where": "n == 1"}),
    "pictures that are resized": ("pets", {"image.resize": 8}),
}


def planned(case: str) -> tuple[RecipeSource, Survey]:
    path, flags = CASES[case]
    steps = steps_of(twice) if case == "steps of a table" else ()
    source = conversion_of(load_config(paths=[path], flags={"output.path": "out", **flags}), steps=steps).source
    assert isinstance(source, RecipeSource)
    return source, source.survey(source.list_files(), map_in_turn)


def within(value: object) -> Iterator[object]:
    """Yield a value, and those that it is made of."""
    yield value
    parts: list[object] = []
    if dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    elif isinstance(value, Mapping):
        parts = [*value, *value.values()]
    elif isinstance(value, list | tuple):
        parts = list(value)
    for part in parts:
        yield from within(part)


@pytest.mark.parametrize("case", CASES)
def test_what_is_frozen_for_all_tasks_is_facts_without_a_source_or_a_step(case: str) -> None:
    _, survey = planned(case)
    assert isinstance(survey.frozen, RecipeFrozen)
    found = [type(one).__name__ for one in within(survey.frozen)]
    assert {"Schema", "Feature", "Frozen"} & set(found), "it looks within"
    held = [one for one in within(survey.frozen) if isinstance(one, Source | Step | StepByType) or callable(one)]
    assert held == []


def test_a_planned_source_reads_with_itself() -> None:
    asked, survey = planned("steps of a table")
    assert survey.source not in (None, asked)
    source, frozen = pickle.loads(pickle.dumps((survey.source, survey.frozen)))
    batches = [rows.batch.to_pydict() for rows in source.read(Task(0, tuple(survey.pieces)), frozen)]
    assert batches == [
        {
            "id": [1, 2, 1, 2],
            "country": ["de", "de", "fr", "fr"],
            "day": ["monday"] * 4,
            "kind": [0, 1, 0, 1],
            "score": [-1, 5, -1, 5],
            "again": [1, 2, 1, 2],
        }
    ]
    assert [step.learns for step in asked.recipe.steps].count(True) == 1, "the one that was asked has learned nothing"
    assert not any(step.learns for step in source.recipe.steps)


def test_a_survey_without_work_for_steps_reads_the_files_as_they_are() -> None:
    Path("b.csv").write_text("id\n1\n")
    source = conversion_of(load_config(paths=["b.csv"], flags={"output.path": "out"})).source
    survey = source.survey(source.list_files(), map_in_turn)
    assert not isinstance(survey.frozen, RecipeFrozen)
    assert survey.source is not None
    rows = list(survey.source.read(Task(0, tuple(survey.pieces)), survey.frozen))
    assert [one.batch.to_pydict() for one in rows] == [{"id": [1]}]


class Words(Step):
    """A step that learns all words, in their order; `moved` counts how many it has had to merge."""

    learns = True
    moved = 0

    def merge(self, one: list[int], other: list[int]) -> list[int]:
        self.moved += len(one) + len(other)
        return [*one, *other]


@pytest.mark.parametrize("pieces", [0, 1, 2, 5, 1000])
def test_what_pieces_say_is_merged_in_order_and_not_each_into_all_before(pieces: int) -> None:
    step = Words()
    found = merged(([[number]] for number in range(pieces)), Recipe((step,)))
    assert found == ([[*range(pieces)]] if pieces else None)
    assert step.moved <= 11 * pieces


@dataclasses.dataclass(frozen=True, slots=True)
class Batches(Step):
    """A step that learns the rows of the batches that it looks at, and keeps those that it is given with their file."""

    is_of_file: bool
    looked: tuple[int, ...] | None = None
    given: list[tuple[int, str]] = dataclasses.field(default_factory=list)

    @property
    def learns(self) -> bool:
        return self.looked is None

    def look(self, batch: pa.RecordBatch) -> tuple[int, ...]:
        return (batch.num_rows,)

    def merge(self, one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
        return (*one, *other)

    def learned(self, summary: tuple[int, ...]) -> Batches:
        return dataclasses.replace(self, looked=summary)

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:
        self.given.append((batch.num_rows, file))
        return batch


@pytest.mark.parametrize("is_of_file", [True, False])
def test_rows_of_small_files_go_through_steps_together_unless_one_has_to_know_the_file(is_of_file: bool) -> None:
    flags = {"output.path": "out", "input.partitions": "none", "input.format": "csv"}
    source = conversion_of(load_config(paths=["tables"], flags=flags)).source
    assert isinstance(source, RecipeSource)
    source = dataclasses.replace(source, recipe=Recipe((step := Batches(is_of_file),)))
    survey = source.survey(source.list_files(), map_in_turn)
    assert isinstance(survey.source, RecipeSource)
    assert survey.source.recipe.steps == (dataclasses.replace(step, looked=(3, 3) if is_of_file else (6,)),)
    (rows,) = survey.source.read(Task(0, tuple(survey.pieces)), survey.frozen)
    names = ["tables/country=de/a.csv", "tables/country=fr/a.csv"]
    assert step.given == ([(3, name) for name in names] if is_of_file else [(6, "")])
    assert [rows.origin.place(row).source for row in (0, 3)] == names
