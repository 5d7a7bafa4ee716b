"""Groups of equal digests, against a dictionary that holds all of them."""

from __future__ import annotations

import tracemalloc
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.observers import groups
from shardmill.transforms.observers.groups import EXAMPLES, ROW, SHOWN_ROWS, Groups, Table, find_groups

HALVES = st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
ROWS = st.lists(st.tuples(HALVES, HALVES, st.integers(0, 3), st.integers(0, 9)), max_size=40)


def table_of(rows: list[tuple[int, int, int, int]]) -> Table:
    return np.array(rows, ROW) if rows else np.empty(0, ROW)


def expected_groups(files: list[list[tuple[int, int, int, int]]]) -> Groups:
    """Return the groups as a dictionary finds them."""
    places = defaultdict(list)
    for number, rows in enumerate(files):
        for row, (high, low, split, _) in enumerate(rows):
            places[high, low].append((number, row, split))
    alike = sorted(group for group in places.values() if len(group) > 1)
    across = Counter(pair for group in alike for pair in combinations(sorted({split for *_, split in group}), 2))
    gone = defaultdict(list)
    for group in alike:
        for number, row, _ in group[1:]:
            gone[number].append(row)
    bits = {number: np.zeros(-(-len(files[number]) // 8), np.uint8) for number in gone}
    for number, marked in gone.items():
        for row in marked:
            bits[number][row // 8] |= 1 << row % 8
    shown = [(len(group), tuple(place[:2] for place in group[:SHOWN_ROWS])) for group in alike[:EXAMPLES]]
    return Groups(sum(len(group) - 1 for group in alike), len(alike), across, shown, bits)


@given(st.lists(ROWS, max_size=5), st.sampled_from([1, 2, 7, 1000]))
def test_groups_are_those_of_a_dictionary_however_many_buckets_there_are(
    files: list[list[tuple[int, int, int, int]]], bucket_rows: int
) -> None:
    rows = sum(map(len, files))
    found = find_groups(map(table_of, files), rows, mark=True, bucket_rows=bucket_rows)
    wanted = expected_groups(files)
    assert (found.repeats, found.groups, found.across) == (wanted.repeats, wanted.groups, wanted.across)
    assert found.examples == wanted.examples
    assert {number: bits.tolist() for number, bits in found.gone.items()} == {
        number: bits.tolist() for number, bits in wanted.gone.items()
    }


def test_half_a_digest_makes_no_group() -> None:
    rows = [(7, low, 0, 0) for low in (1, 2, 1)]
    found = find_groups([table_of(rows)], 3, mark=True)
    assert (found.repeats, found.groups, found.examples) == (1, 1, [(2, ((0, 0), (0, 2)))])


def test_a_full_bucket_of_repeats_in_64_splits_takes_little_memory() -> None:
    rows = np.zeros(groups._BUCKET_ROWS, ROW)
    rows["high"] = np.arange(len(rows)) // 2
    rows["split"] = np.arange(len(rows)) % 64
    tracemalloc.start()
    found = find_groups([rows], len(rows), across=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.groups == len(rows) // 2
    assert sum(found.across.values()) == found.groups
    assert peak < 250e6
