from __future__ import annotations

import pytest
from shardmill.transforms.dataset.integrity.verify import size_breaches
from shardmill.transforms.format.manifest.manifest import ShardEntry

S = 65536
UNIT = 1000


def breaches(*sizes: int | tuple[int, int], unit: int = UNIT) -> list[tuple[str, str]]:
    pairs = [size if isinstance(size, tuple) else (size, 9) for size in sizes]
    shards = [ShardEntry(str(place), 1, records, size, "0" * 8) for place, (size, records) in enumerate(pairs)]
    return list(size_breaches(shards, S, unit))


@pytest.mark.parametrize(
    "sizes",
    [
        (),
        (1,),
        (S,),
        (S - UNIT + 1, S, S - UNIT + 1, 40_000, 32_268),
        (32_268, 32_268),
        (S, 32_268),
    ],
)
def test_sizes_that_keep_the_promise_are_no_breach(sizes: tuple[int, ...]) -> None:
    assert breaches(*sizes) == []


def test_a_shard_over_the_size_is_a_breach_unless_one_record_stands_alone_in_it() -> None:
    assert breaches(S + 1) == [("0", "65537 bytes in 9 records, over the shard size of 65536")]
    assert breaches((S + 1, 1), unit=S + 1) == []
    assert breaches((S + 1, 2), unit=S + 1) == [("0", "65537 bytes in 2 records, over the shard size of 65536")]


def test_all_but_the_last_two_are_to_be_nearly_full() -> None:
    assert breaches(S - UNIT, S, S) == [
        ("0", "64536 bytes, and all but the last two shards are to have more than 64536")
    ]
    assert breaches(S - UNIT, S) == []


def test_no_shard_is_to_be_under_half_where_there_is_enough_for_one() -> None:
    assert breaches(S, 32_267) == [("1", "32267 bytes, and no shard is to have less than half of 64536")]
    assert breaches(32_267) == []


def test_a_record_over_the_size_lifts_the_lower_bounds_of_its_split() -> None:
    assert breaches(100, (S + 1, 1), 100, unit=S + 1) == []


def test_the_unit_is_at_least_a_256th_of_the_size() -> None:
    assert breaches(S - 256, S, S, unit=1) == [
        ("0", "65280 bytes, and all but the last two shards are to have more than 65280")
    ]
    assert breaches(S - 255, S, S, unit=1) == []


def test_an_empty_shard_is_a_breach() -> None:
    assert breaches((0, 0)) == [("0", "an empty shard")]
