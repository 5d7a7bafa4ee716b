from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.errors import DamageError
from shardmill.transforms.format.manifest.manifest import ColumnEntry, Details
from shardmill.transforms.format.manifest.parser import parse_manifest

from ...manifests import manifest_with

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=5)
LEAVES = st.sampled_from([
    "null", "bool", "int8", "uint64", "float16", "string", "binary", "date", "decimal(38, -3)", "time[ns]",
    "duration[s]", "timestamp[us]", "timestamp[ms, Europe/Berlin]",
])  # fmt: skip


def fields(types: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"name": NAMES, "type": types, "nullable": st.booleans()})


TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"list": fields(inner)}),
        st.fixed_dictionaries({"struct": st.lists(fields(inner), max_size=3)}),
        st.fixed_dictionaries({"map": st.lists(fields(inner), min_size=2, max_size=2)}),
    ),
    max_leaves=6,
)
COLUMNS = st.builds(
    ColumnEntry,
    NAMES,
    TYPES,
    st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    st.sampled_from(["absent", "mask", "present", "drop_row", "error"]),
    file=st.sampled_from([None, "path"]),
)
DETAILS = st.builds(
    Details,
    st.lists(COLUMNS, max_size=3).map(tuple),
    st.sampled_from([{}, {"codec": "x", "version": "1"}]),
    st.sampled_from([{}, {"leaks": {"columns": ["user"], "records": 3, "groups": 1}}]),
)


@given(details=DETAILS)
def test_every_manifest_with_details_reads_back_as_it_is(details: Details) -> None:
    manifest = manifest_with(schema=None, details=details)
    data = manifest.to_bytes()
    assert parse_manifest(data, "m") == manifest
    assert json.loads(data)["format_version"] == 1
    assert ("details" in json.loads(data)) == (details != Details())


COLUMN = {"name": "a", "type": "int64", "features": ["a"]}


def nested(levels: int) -> Any:
    kind: Any = "int64"
    for _ in range(levels):
        kind = {"list": {"name": "item", "type": kind, "nullable": True}}
    return kind


@pytest.mark.parametrize(
    ("details", "problem"),
    [
        ({"columns": [{**COLUMN, "type": "int63"}]}, 'details.columns[0].type is "int63", not a type'),
        ({"columns": [{**COLUMN, "type": {"union": []}}]}, "details.columns[0].type is not a type"),
        ({"columns": [{**COLUMN, "type": nested(33)}]}, "has more than 32 levels"),
        ({"columns": [{**COLUMN, "type": {"map": []}}]}, "map has not two fields"),
        ({"columns": [{**COLUMN, "features": []}]}, "details.columns[0].features is empty"),
        ({"columns": [{**COLUMN, "null": "fill"}]}, "details.columns[0].fill and null disagree"),
        ({"columns": [{**COLUMN, "null": "zero"}]}, 'details.columns[0].null is "zero", not one of'),
        ({"columns": [{**COLUMN, "file": "link"}]}, 'details.columns[0].file is "link", not one of path'),
        ({"image": {"codec": "pillow"}}, "details.image.version is missing"),
        ({"split_rule": {}}, "details.split_rule is not known"),
        ({"shuffle": {}}, "details.shuffle is not known"),
        ({"more": {}}, "details.more is not known"),
    ],
)
def test_what_no_writer_writes_is_refused_with_its_place(details: dict[str, Any], problem: str) -> None:
    manifest = replace(manifest_with(schema=None), details=Details(adopted={"files": 1}))
    document = json.loads(manifest.to_bytes())
    with pytest.raises(DamageError) as refused:
        parse_manifest(json.dumps({**document, "details": details}).encode(), "m")
    assert problem in str(refused.value)
