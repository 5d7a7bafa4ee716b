"""Different values are counted up to 10,000, and estimated beyond: the same whatever comes first and in which parts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardmill.transforms.format.columns.feature_column import feature_column
from shardmill.transforms.format.schema.schema import Feature
from shardmill.transforms.observers.distinct import (
    MOST_EXACT,
    TOP,
    Values,
    hashes_of_bytes,
    hashes_of_numbers,
    least_of,
)

from ..tiers import examples

TEXT = Feature("name", "bytes", "string")


def of_texts(texts: list[str]) -> Values:
    column = feature_column(pa.array(texts, pa.string()), TEXT).column
    values = Values()
    values.add_views(column.values, column.buffers)
    return values


def of_numbers(numbers: np.ndarray) -> Values:
    values = Values()
    values.add_numbers(numbers)
    return values


def of_integers(numbers: list[int]) -> Values:
    return of_numbers(np.array(numbers, np.int64))


def of_floats(numbers: list[int]) -> Values:
    return of_numbers(np.array(numbers, np.float32) / 8)


def of_strings(numbers: list[int]) -> Values:
    return of_texts([f"{n}{'é' * (n % 90)}" for n in numbers])


MAKERS: dict[str, Callable[[list[int]], Values]] = {"int64": of_integers, "float": of_floats, "bytes": of_strings}
kinds = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@kinds
def test_few_values_are_counted_exactly(make: Callable[[list[int]], Values]) -> None:
    numbers = [n * n % 97 for n in range(70_000)]
    values = make(numbers)
    assert values.distinct().exact
    assert values.distinct().count == len(set(numbers))
    counts = sorted(Counter(numbers).values(), reverse=True)
    assert [one.count for one in values.top()] == counts[:TOP]


@kinds
@pytest.mark.parametrize("count", [MOST_EXACT, MOST_EXACT + 1, 60_000])
def test_beyond_ten_thousand_values_their_number_is_estimated(make: Callable[[list[int]], Values], count: int) -> None:
    found = make([*range(count), *range(0, count, 7)]).distinct()
    assert found.exact == (count <= MOST_EXACT)
    assert abs(found.count - count) <= (0 if found.exact else 0.1 * count)


@kinds
@pytest.mark.parametrize("count", [50, MOST_EXACT, MOST_EXACT + 1, 40_000])
def test_what_is_known_does_not_depend_on_order_or_parts(make: Callable[[list[int]], Values], count: int) -> None:
    rng = np.random.default_rng(count)
    numbers = np.concatenate([np.arange(count), rng.integers(0, count, count // 2)])
    whole = make(numbers.tolist())
    rng.shuffle(numbers)
    parts = [make(part.tolist()) for part in np.array_split(numbers, 7)]
    through_json = [Values.from_json(json.loads(json.dumps(part.to_json()))) for part in parts[:3]]
    total = Values()
    for part in [*parts[5:], *through_json, *parts[3:5]]:
        total.merge(part)
    assert total.to_json() == whole.to_json()
    assert (total.distinct(), total.top()) == (whole.distinct(), whole.top())


@given(st.lists(st.text(max_size=200), max_size=60), st.integers(0, 60))
@settings(max_examples=examples(200))
def test_texts_of_any_length_are_counted(texts: list[str], cut: int) -> None:
    values = of_texts(texts[:cut])
    values.merge(of_texts(texts[cut:]))
    assert values.distinct().count == len(set(texts))
    shown = {one.value: one.count for one in values.top()}
    counts = Counter(texts)
    assert sorted(shown.values(), reverse=True) == sorted(counts.values(), reverse=True)[:TOP]
    assert all(counts[text] == count for text, count in shown.items() if len(text.encode()) <= 96)


def test_long_texts_that_differ_at_their_end_are_different_and_kept_short() -> None:
    values = of_texts([f"{'ä' * 500}{n}" for n in range(10)])
    assert values.distinct().count == 10
    assert all(len(str(one.value).encode()) <= 128 for one in values.top())


def test_numbers_that_are_not_finite_do_not_count_and_zero_has_one_sign() -> None:
    values = of_numbers(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5], np.float32))
    assert values.to_json() == {"counts": [[0.0, 2], [1.5, 1]]}


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=50))
@settings(max_examples=examples(200))
def test_the_hash_of_bytes_depends_on_these_bytes_alone(texts: list[bytes]) -> None:
    together = hashes_of_bytes(pa.array(texts, pa.large_binary())).tolist()
    alone = [hashes_of_bytes(pa.array([b"x", text], pa.large_binary()).slice(1)).tolist()[0] for text in texts]
    assert together == alone
    assert len(set(together)) == len(set(texts))


def test_hashes_are_the_same_on_every_machine() -> None:
    numbers: Any = hashes_of_numbers(np.array([0, -1, 2**62]))
    texts: Any = hashes_of_bytes(pa.array([b"", b"a", b"abcdefgh", b"abcdefghi"], pa.large_binary()))
    assert numbers.tolist() == NUMBERS
    assert texts.tolist() == TEXTS


NUMBERS = [16294208416658607535, 16490336266968443936, 47939714376772075]
TEXTS = [16294208416658607535, 13879280871373904419, 12103518853415627159, 17160904272286396036]


@given(st.lists(st.integers(0, 500), max_size=400), st.integers(1, 20))
@settings(max_examples=examples(100))
def test_the_least_hashes_are_the_least_different_ones(hashes: list[int], most: int) -> None:
    assert least_of(np.array(hashes, np.uint64), most).tolist() == sorted(set(hashes))[:most]
