"""What most steps and sources do is the default: one that has what it must have alone does no more, and no less."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from shardmill.transforms.errors import UsageError
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.format.schema.schema import Schema
from shardmill.transforms.inputs.contract.selection import EVERY_COLUMN
from shardmill.transforms.inputs.contract.source import (
    DatasetSchema,
    Frozen,
    Listing,
    ParallelMap,
    Source,
    Survey,
    Task,
)
from shardmill.transforms.recipe.function import MapBatches, UserStep, as_step
from shardmill.transforms.recipe.step import Column, Step, StepByType

COLUMN = Column(pa.field("n", pa.int64()), "n")
BATCH = pa.record_batch({"n": [1, 2]})
DATASET = DatasetSchema("a", Schema(()), {})


@dataclass(frozen=True, slots=True)
class Same(Step):
    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        return columns

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch:
        return batch


class OnlyAlike:
    """Has the two methods, and no base."""

    plan, apply = Same.plan, Same.apply


@dataclass(frozen=True, slots=True)
class Files(Source):
    def list_files(self) -> Listing:
        return Listing("a", (), 0, 0)

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        return Survey(Frozen(Schema(())), (), ())

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        return iter(())


def test_a_step_with_plan_and_apply_alone_may_look_at_any_column_and_adds_nothing() -> None:
    step = Same()
    assert step.reads is None, "no column may be left out of what it gets"
    assert (step.detected, step.splits, step.told_by_files, step.learns, step.takes_parts) == ("", (), (), False, False)
    assert step.of_files(Listing("csv", (), 0, 0)) is step.at(b"/a.csv") is step.under({}, {}) is step


def test_a_step_by_type_is_not_asked_for_and_is_the_same_in_an_append() -> None:
    class Never(StepByType):
        def step(self, columns: Sequence[Column]) -> None:
            return None

    assert not Never().is_asked_for
    assert isinstance(Never().under({}, {}), Never)


def test_a_source_with_three_methods_alone_reads_all_columns_by_its_own_rules_also_in_an_append() -> None:
    source = Files()
    assert (source.selection, source.union, source.rules, source.typed) == (None, None, {}, False)
    assert source.selecting(EVERY_COLUMN) is source.with_rules({}) is source.following(DATASET) is source
    survey = source.survey(source.list_files(), lambda function, items, **_: [function(one) for one in items])
    assert source.cast_to(survey, DATASET) is survey
    assert survey.source is None, "it is read by the source that was asked"


@pytest.mark.parametrize("step", [Same(), OnlyAlike()])
def test_an_object_with_the_two_methods_is_a_step_whatever_its_class_is(step: Any) -> None:
    made = as_step(step)
    assert isinstance(made, UserStep)
    assert made.plan([COLUMN]) == [COLUMN]
    assert made.apply(BATCH, "a.csv") == BATCH


def test_a_function_is_a_step_and_what_is_neither_is_refused_by_its_type() -> None:
    made = as_step(lambda batch: batch)
    assert isinstance(made, MapBatches)
    assert made.apply(BATCH, "").batch == BATCH
    for odd, name in ((7, "int"), ({"n": 1}, "dict"), ("n > 5", "str")):
        with pytest.raises(UsageError, match=f"map: {name} is neither a function over batches nor a step"):
            as_step(odd)
