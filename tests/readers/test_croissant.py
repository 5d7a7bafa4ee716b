"""mlcroissant, the official library, validates `croissant.json` and loads what is inline in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlcroissant
import pyarrow as pa
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import Dataset
from shardmill.transforms.format.sidecars.sidecar_files import croissant

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def read(path: Path) -> Any:
    found = mlcroissant.Dataset(str(path))  # raises where it finds an error
    recommended = ("citeAs", "datePublished", "license")  # what nobody but the owner of the data knows
    assert [issue for issue in found.metadata.issues.warnings if not any(one in issue for one in recommended)] == []
    assert not found.metadata.issues.errors
    return found


def test_every_sample_is_valid_and_its_splits_and_classes_are_loaded(any_sample: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "croissant.json"
    path.write_bytes(croissant(any_sample.manifest))
    found = read(path)
    splits = {_text(row["splits/name"]): row["splits/records"] for row in found.records("splits")}
    assert splits == {name: len(any_sample[name]) for name in any_sample.splits}
    for name, classes in any_sample.labels.items():
        rows = list(found.records(f"classes/{name}"))
        assert [_text(row[f"classes/{name}/name"]) for row in rows] == list(classes)
    (records,) = [one for one in found.metadata.record_sets if one.id == "records"]
    assert any_sample.schema is not None
    named = [field.name for field in records.fields if field.name != "split"]
    assert named == [feature.name for feature in any_sample.schema]


def test_odd_names_and_several_labels_are_valid(tmp_path: Path) -> None:
    table = pa.table({"a b/ü": ["x", "y"], "kind": ["é", 'q"'], "m": pa.array([[1.0], None], pa.list_(pa.float64()))})
    columns = {name: {"label": True} for name in ("a b/ü", "kind")}
    convert(data=table, output=tmp_path / "out", sidecars=["croissant"], schema={"columns": columns})
    found = read(tmp_path / "out/croissant.json")
    assert {one.id for one in found.metadata.record_sets} == {
        "splits",
        "classes/kind",
        "classes/a%20b/%C3%BC",
        "records",
    }
    assert [_text(row["classes/kind/name"]) for row in found.records("classes/kind")] == ['q"', "é"]


def test_the_validator_does_find_errors(any_sample: Dataset, tmp_path: Path) -> None:
    document = json.loads(croissant(any_sample.manifest))
    document["recordSet"][-1]["field"][0]["source"]["fileSet"] = {"@id": "nowhere"}
    (tmp_path / "croissant.json").write_text(json.dumps(document))
    with pytest.raises(mlcroissant.ValidationError):
        mlcroissant.Dataset(str(tmp_path / "croissant.json"))


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
