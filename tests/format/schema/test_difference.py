from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.schema.schema import Feature, Schema, differing_features, schemas_side_by_side

FARE = Feature("fare", "float", "float64")
STOPS = Feature("stops", "int64", "int64", (-1,))
TIP = Feature("tip", "int64", "timestamp", nullable=True, unit="us", timezone="UTC")


def schema_of(*features: Feature) -> Schema:
    return Schema(tuple(sorted(features, key=lambda feature: feature.name)))


def test_two_schemas_stand_side_by_side_with_a_word_behind_each_feature_that_differs() -> None:
    expected = schema_of(FARE, STOPS, Feature("id", "int64", "int64"))
    other = schema_of(replace(FARE, kind="bytes", type="string"), TIP, Feature("id", "int64", "int64", nullable=True))
    marked = differing_features(expected, other)
    assert marked == {"fare": "re-typed", "stops": "missing", "tip": "added"}
    assert schemas_side_by_side(expected, other, ("out", "source"), marked=marked).splitlines() == [
        "  feature  out                         source",
        "  fare     float64 (float)             string (bytes)               re-typed",
        "  id       int64 (int64)               int64 (int64)",
        "  stops    list of int64 (int64 list)  -                            missing",
        "  tip      -                           timestamp (us, UTC) (int64)  added",
    ]


def test_of_a_wide_schema_only_what_differs_is_shown() -> None:
    wide = [Feature(f"c{i:03d}", "int64", "int64") for i in range(500)]
    other = schema_of(*wide[1:-60], *(replace(feature, type="bool") for feature in wide[-60:]))
    marked = differing_features(schema_of(*wide), other)
    lines = schemas_side_by_side(schema_of(*wide), other, ("a", "b"), marked=marked).splitlines()
    assert len(lines) == 1 + 40 + 1
    assert lines[-1] == "  (21 more differ, 439 are equal)"


@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")), st.booleans())
def test_schemas_of_the_same_features_do_not_differ_and_others_do(one: set[str], two: set[str], nulls: bool) -> None:
    schemas = [
        schema_of(*(Feature(name, "int64", "int64", nullable=n) for name in s)) for s, n in ((one, 0), (two, nulls))
    ]
    found = differing_features(*schemas)
    assert set(found) == one ^ two
    assert {name for name, how in found.items() if how == "added"} == two - one


def test_a_name_from_data_cannot_write_to_the_terminal() -> None:
    expected, other = schema_of(Feature("a\x1b[31m", "int64", "int64")), Schema(())
    text = schemas_side_by_side(expected, other, ("a", "b"), marked=differing_features(expected, other))
    assert "\x1b" not in text
