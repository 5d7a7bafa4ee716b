"""Appends from end to end: files in, the next generation out, or a refusal that says why."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.errors import SchemaError, TargetError, TooManyRejects, UsageError

from ...command_line import Shardmill
from ...label_numbers import in_numbers

SAMPLES = Path(__file__).parents[3] / "configs/samples"


def put(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def rows(out: Path, split: str = "train") -> list[dict[str, Any]]:
    return in_numbers(open_dataset(out).to_arrow(split)).to_pylist()


def ids(out: Path, split: str = "train") -> list[Any]:
    return [row["id"] for row in rows(out, split)]


def sources(*paths: str, **more: Any) -> dict[str, Any]:
    return {"input": {"paths": list(paths), **more}}


def assert_sound(out: Path) -> None:
    report = verify_dataset(out)
    assert (report.findings, report.notes) == ((), ())


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A dataset of two rows of CSV."""
    convert(sources(put(tmp_path / "a.csv", "id,name,price\n1,a,1.5\n2,b,2\n")), output=tmp_path / "out")
    return tmp_path / "out"


class TestText:
    def test_rows_are_added_and_what_was_there_stays(self, out: Path, tmp_path: Path) -> None:
        before = (out / "train-00000.tfrecord").read_bytes()
        summary = append(sources(put(tmp_path / "b.csv", "id,name,price\n3,c,3\n")), output=out)
        assert (summary.manifest.generation, summary.manifest.operation, summary.manifest.parent) == (2, "append", 1)
        assert ids(out) == [1, 2, 3]
        assert (out / "train-00000.tfrecord").read_bytes() == before
        assert_sound(out)

    def test_columns_are_cast_to_the_types_of_the_dataset_and_not_inferred_anew(
        self, out: Path, tmp_path: Path
    ) -> None:
        append(sources(put(tmp_path / "b.csv", "price,name,id\n3,007,3\n")), output=out)  # price int, name a number
        assert rows(out)[2] == {"id": 3, "name": "007", "price": 3.0}
        assert open_dataset(out).schema == open_dataset(out, 1).schema

    def test_a_cell_that_does_not_fit_is_a_reject(self, out: Path, tmp_path: Path) -> None:
        path = put(tmp_path / "b.csv", "id,name,price\nx,c,3\n4,d,4\n")
        with pytest.raises(TooManyRejects, match='row 1: column "id": BAD_TYPE'):
            append(sources(path), output=out)
        assert open_dataset(out).manifest.generation == 1
        summary = append(sources(path), output=out, max_rejects=1)
        assert (summary.manifest.counts.rejected, ids(out)) == (1, [1, 2, 4])
        assert_sound(out)

    def test_a_null_in_a_feature_that_has_none_is_a_reject(self, out: Path, tmp_path: Path) -> None:
        with pytest.raises(TooManyRejects, match="DECLARED_NOT_NULL"):
            append(sources(put(tmp_path / "b.csv", "id,name,price\n,c,3\n4,d,4\n")), output=out)

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("id,name\n3,c\n", "price float64 (float) - missing"),
            ("id,name,price,tip\n3,c,3,1\n", "tip - int64 (int64) added"),
            ("id,name,price\n3,c,cheap\n4,d,\n", "price float64 (float) string (bytes) re-typed"),
        ],
    )
    def test_another_schema_is_refused_with_both_side_by_side(
        self, out: Path, tmp_path: Path, text: str, line: str
    ) -> None:
        with pytest.raises(SchemaError) as refused:
            append(sources(put(tmp_path / "b.csv", text)), output=out)
        lines = [" ".join(found.split()) for found in str(refused.value).splitlines()]
        assert "feature the dataset the source" in lines
        assert line in lines
        assert "id int64 (int64) int64 (int64)" in lines
        assert os.listdir(out / "manifests") == ["00000001.json"]
        assert not (out / ".staging").exists()

    def test_a_declared_type_that_is_not_the_datasets_is_refused(self, out: Path, tmp_path: Path) -> None:
        path = put(tmp_path / "b.csv", "id,name,price\n3,c,3\n")
        with pytest.raises(SchemaError, match="1 feature re-typed"):
            append(sources(path), output=out, schema__columns={"id": {"type": "string"}})
        append(sources(path), output=out, schema__columns={"id": {"type": "int64"}})

    def test_the_mend_of_a_cell_is_none_that_an_append_refuses(self, out: Path, tmp_path: Path) -> None:
        path = put(tmp_path / "b.csv", "id,name,price\n3,c,\n4,d,cheap\nNA,e,5\n6,f,6\n")
        with pytest.raises(TooManyRejects) as refused:
            append(sources(path), output=out)
        assert "type=" not in str(refused.value)
        found = [line.partition(": ")[2] for line in str(refused.value).splitlines()[1:]]
        assert found == [
            'column "price": DECLARED_NOT_NULL: null, but the dataset\'s schema says that it never is: give it a value',
            'column "price": BAD_TYPE: "cheap" is not a float; the type is the dataset\'s: fix the file',
            'column "id": BAD_TYPE: "NA" is not an int64; the type is the dataset\'s: fix the file, '
            "or, if it means null, --set 'schema.columns.id.null_values=[\"NA\"]'",
        ]
        (lines,) = (tmp_path / "out/.staging").glob("*/rejects.jsonl")
        assert "type=" not in lines.read_text()

    def test_a_declared_column_that_the_dataset_lacks_is_added_and_null_in_older_rows(
        self, out: Path, tmp_path: Path
    ) -> None:
        with pytest.raises(SchemaError, match=r"or add the others, null in the rows that it has: --set"):
            append(sources(put(tmp_path / "b.csv", "id,name,price,tip\n3,c,3,1.5\n4,d,4,\n")), output=out)
        more = {"tip": {"type": "float32"}}
        summary = append(sources(str(tmp_path / "b.csv")), output=out, schema__columns=more)
        assert summary.manifest.details.added == {"tip": 2}
        assert verify_dataset(str(out)).findings == ()
        before = len(open_dataset(out, 1))
        assert open_dataset(out).to_arrow()["tip"].to_pylist() == [None] * before + [1.5, None]
        assert open_dataset(out, 1).to_arrow().schema.names == ["id", "name", "price"]
        stats = open_dataset(out).stats
        assert stats is not None
        assert stats.splits["train"].features["tip"].missing == before + 1
        with pytest.raises(
            SchemaError, match=r"no column .tip., .* add it, or read it as nulls: --set input.columns_differ=union"
        ):
            append(sources(put(tmp_path / "c.csv", "id,name,price\n9,z,9\n")), output=out)
        append(sources(str(tmp_path / "c.csv")), output=out, columns_differ="union")
        manifest = append(sources(put(tmp_path / "d.csv", "id,name,price,tip\n10,z,9,2\n")), output=out).manifest
        assert (manifest.details.added, manifest.generation) == ({"tip": 2}, 4)
        assert open_dataset(out).to_arrow()["tip"].to_pylist()[before:] == [1.5, None, None, 2.0]

    def test_an_added_label_has_its_classes_and_the_next_append_knows_them(self, out: Path, tmp_path: Path) -> None:
        text = "id,name,price,kind\n3,c,3,cat\n4,d,4,owl\n"
        more = {"kind": {"label": True}}
        manifest = append(sources(put(tmp_path / "b.csv", text)), output=out, schema__columns=more).manifest
        assert (manifest.labels, manifest.details.added) == ({"kind": ("cat", "owl")}, {"kind": 2})
        assert open_dataset(out).to_arrow()["kind"].to_pylist()[-2:] == ["cat", "owl"]
        append(sources(put(tmp_path / "c.csv", "id,name,price,kind\n5,e,5,owl\n6,f,6,fox\n")), output=out)
        assert open_dataset(out).to_arrow()["kind"].to_pylist() == [None, None, "cat", "owl", "owl", "fox"]

    @pytest.mark.parametrize(
        ("text", "declared", "mend"),
        [
            (
                "id,name,price,tip\n3,c,3,1\n",
                {},
                "leave out what the dataset has not: --set 'input.exclude_columns=",
            ),
            ("id,name,price\n3,c,cheap\n", {}, "convert to a new dataset"),
            (
                "id,name,price\n3,c,3\n",
                {"id": {"type": "string"}},
                "declare the dataset's type in schema.columns, or none",
            ),
            ("id,name\n3,c\n", {}, "convert to a new dataset"),
            ("id,nom,price\n3,c,4\n", {}, "convert to a new dataset"),
        ],
    )
    def test_another_schema_is_refused_with_what_helps(
        self, out: Path, tmp_path: Path, text: str, declared: dict[str, Any], mend: str
    ) -> None:
        with pytest.raises(SchemaError) as refused:
            append(sources(put(tmp_path / "b.csv", text)), output=out, schema__columns=declared)
        assert str(refused.value).splitlines()[-1].startswith(mend)

    def test_columns_that_the_dataset_has_not_may_be_left_out(self, out: Path, tmp_path: Path) -> None:
        path = put(tmp_path / "b.csv", "id,name,price,tip\n3,c,3,1\n")
        append(sources(path, exclude_columns=["tip"]), output=out)
        assert ids(out) == [1, 2, 3]


class TestOtherSources:
    def test_parquet_keeps_the_form_that_the_dataset_has(self, tmp_path: Path) -> None:
        for name, first in (("a", 0), ("b", 10)):
            at = pa.array([first * 10**9], pa.timestamp("ns"))
            table = pa.table({"id": [first], "fare": [0.1], "at": at, "stops": [[1, 2]]})
            pq.write_table(table, tmp_path / f"{name}.parquet")
        rules = {"fare": {"as": "bytes"}, "at": {"unit": "ns", "timezone": "UTC"}}
        out = tmp_path / "out"
        convert(sources(str(tmp_path / "a.parquet")), output=out, schema__columns=rules)
        append(sources(str(tmp_path / "b.parquet")), output=out)
        assert [row["fare"] for row in rows(out)] == [0.1, 0.1]
        assert ids(out) == [0, 10]
        assert_sound(out)

    def test_parquet_of_another_type_is_refused(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "b.parquet")
        convert(sources(str(tmp_path / "a.parquet")), output=tmp_path / "out")
        with pytest.raises(SchemaError, match=r"id +int64 \(int64\) +int32 \(int64\) +re-typed"):
            append(sources(str(tmp_path / "b.parquet")), output=tmp_path / "out")
        declared = {"id": {"type": "int64"}}
        append(sources(str(tmp_path / "b.parquet")), output=tmp_path / "out", schema__columns=declared)
        assert ids(tmp_path / "out") == [1, 1]

    def test_text_may_be_appended_to_what_came_from_parquet(self, tmp_path: Path) -> None:
        table = pa.table({"id": pa.array([1], pa.int32()), "day": pa.array([1], pa.date32())})
        pq.write_table(table, tmp_path / "a.parquet")
        convert(sources(str(tmp_path / "a.parquet")), output=tmp_path / "out")
        append(sources(put(tmp_path / "b.csv", "id,day\n2,1970-01-03\n")), output=tmp_path / "out")
        assert [str(row["day"]) for row in rows(tmp_path / "out")] == ["1970-01-02", "1970-01-03"]

    def test_numpy_arrays_of_another_dtype_are_refused(self, tmp_path: Path) -> None:
        for name, dtype in (("a", "f4"), ("b", "f4"), ("c", "f8")):
            np.save(tmp_path / f"{name}.npy", np.full((2, 3), ord(name), dtype))
        convert(sources(str(tmp_path / "a.npy")), output=tmp_path / "out")
        append(sources(str(tmp_path / "b.npy")), output=tmp_path / "out")
        with pytest.raises(SchemaError, match="re-typed"):
            append(sources(str(tmp_path / "c.npy")), output=tmp_path / "out")
        assert len(list(open_dataset(tmp_path / "out").arrays("train"))) == 2

    def test_the_mend_of_a_parquet_value_is_none_that_an_append_refuses(self, tmp_path: Path) -> None:
        at = pa.array([0], pa.timestamp("us"))
        pq.write_table(pa.table({"x": [0.5], "at": at, "n": pa.array([1], pa.uint64())}), tmp_path / "a.parquet")
        late = pa.array([1], pa.timestamp("ns"))
        pq.write_table(
            pa.table({"x": [1e300], "at": late, "n": pa.array([2**63], pa.uint64())}), tmp_path / "b.parquet"
        )
        convert(sources(str(tmp_path / "a.parquet")), output=tmp_path / "out")
        with pytest.raises(TooManyRejects) as refused:
            append(sources(str(tmp_path / "b.parquet")), output=tmp_path / "out")
        assert "schema.columns" not in str(refused.value)
        assert str(refused.value).count("the type is the dataset's: fix the file") == 2
        assert str(refused.value).count("the unit is the dataset's: fix the file, or convert all files to a new") == 1

    def test_arrays_of_another_shape_are_not_to_be_declared(self, tmp_path: Path) -> None:
        for name, width in (("a", 2), ("b", 3)):
            np.save(tmp_path / f"{name}.npy", np.ones((4, width), "f4"))
        convert(sources(str(tmp_path / "a.npy"), rows=True), output=tmp_path / "out")
        with pytest.raises(SchemaError, match=r"float32\[2\].*float32\[3\].*re-typed\nconvert to a new dataset"):
            append(sources(str(tmp_path / "b.npy"), rows=True), output=tmp_path / "out")

    def test_data_in_memory_is_appended_once(self, tmp_path: Path) -> None:
        frame = pd.DataFrame({"id": [1, 2], "x": [0.5, 1.5]})
        out = tmp_path / "out"
        convert(data=frame, output=out)
        assert append(data=frame, output=out).nothing_to_do
        more = pd.DataFrame({"id": [3], "x": [2.5]})
        assert append(data=more, output=out).manifest.generation == 2
        assert append(data=more, output=out).nothing_to_do
        assert ids(out) == [1, 2, 3]
        assert append(data=more, output=out, force=True).manifest.generation == 3
        assert_sound(out)


class TestImages:
    @pytest.fixture
    def pets(self, tmp_path: Path) -> Path:
        """Two of the three classes, and a dataset of them."""
        for name in ("cat", "owl"):
            shutil.copytree(SAMPLES / "pets" / name, tmp_path / "pets" / name)
        convert(sources(str(tmp_path / "pets"), sha256=True), output=tmp_path / "out", max_rejects=9)
        return tmp_path / "pets"

    def test_a_new_class_comes_at_the_end_and_the_others_keep_their_numbers(self, pets: Path, tmp_path: Path) -> None:
        out, new = tmp_path / "out", tmp_path / "new"
        before = rows(out)
        for name in ("dog", "owl"):
            shutil.copytree(SAMPLES / "pets/dog", new / name)
        summary = append(sources(str(new)), output=out, max_rejects=9)
        assert summary.manifest.labels == {"image/class/label": ("cat", "owl", "dog")}
        assert (out / "image-class-label.labels.txt").read_text() == "cat\nowl\ndog\n"
        after = rows(out)
        assert after[: len(before)] == before
        numbers = {(row["image/class/text"], row["image/class/label"]) for row in after}
        assert numbers == {("cat", 0), ("owl", 1), ("dog", 2)}
        assert "image/key/sha256" in after[-1]
        assert_sound(out)

    def test_of_a_folder_that_got_new_images_only_those_are_appended(self, pets: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        held = [row["image/filename"] for row in rows(out)]
        image = next((SAMPLES / "pets/dog").iterdir())
        shutil.copy(image, pets / "cat/new.jpg")
        shutil.copytree(SAMPLES / "pets/dog", pets / "dog")
        summary = append(sources(str(pets)), output=out, max_rejects=9)
        files = Counter(row["image/filename"] for row in rows(out))
        assert files.most_common(1)[0][1] == 1
        added = set(files) - set(held)
        assert {name.split("/")[0] for name in added} == {"cat", "dog"}
        assert "cat/new.jpg" in added
        left_out = {file.name.rsplit("/", 1)[-1]: file.files for file in summary.unchanged}
        assert left_out == {
            "cat": sum(name.startswith("cat/") for name in held),
            "owl": len(list((pets / "owl").iterdir())),
        }
        assert append(sources(str(pets)), output=out).nothing_to_do
        assert_sound(out)

    def test_an_image_that_was_replaced_is_appended_where_that_is_wanted(self, pets: Path, tmp_path: Path) -> None:
        cats = sorted(path for path in (pets / "cat").iterdir() if not path.name.startswith("."))
        shutil.copy(cats[1], cats[0])
        before = len(rows(tmp_path / "out"))
        with pytest.raises(UsageError, match=f"{cats[0].name}: changed since the dataset took it in"):
            append(sources(str(pets)), output=tmp_path / "out", max_rejects=9)
        append(sources(str(pets)), output=tmp_path / "out", max_rejects=9, changed="append")
        assert len(rows(tmp_path / "out")) == before + 1

    def test_an_image_of_the_same_size_in_a_folder_of_the_same_names_is_left_out_with_a_warning(
        self, pets: Path, tmp_path: Path
    ) -> None:
        cat = min(path for path in (pets / "cat").iterdir() if not path.name.startswith("."))
        cat.write_bytes(cat.read_bytes()[:-3] + b"\1\xff\xd9")
        os.utime(cat, (4e9, 4e9))
        summary = append(sources(str(pets)), output=tmp_path / "out", max_rejects=9)
        assert summary.nothing_to_do
        assert "cat: written to since, but of the same size and fingerprint" in summary.warnings[0]

    def test_another_order_is_no_reason_to_append_again(self, pets: Path, tmp_path: Path) -> None:
        shutil.copytree(SAMPLES / "pets/dog", pets / "dog")
        append(sources(str(pets)), output=tmp_path / "out", max_rejects=1)
        assert append(sources(str(pets)), output=tmp_path / "out", shuffle__seed=7).nothing_to_do

    def test_class_numbers_and_features_that_are_asked_for_are_the_datasets_or_refused(
        self, pets: Path, tmp_path: Path
    ) -> None:
        out, flat = tmp_path / "out", tmp_path / "plain"
        with pytest.raises(UsageError, match="label_offset is 1, and 0 in dataset out"):
            append(sources(str(pets), label_offset=1), output=out, force=True)
        convert(sources(str(pets), label_offset=1), output=flat, max_rejects=9)
        append(sources(str(pets), label_offset=1), output=flat, force=True, max_rejects=9)
        assert open_dataset(flat).labels == {"image/class/label": ("_unused_0", "cat", "owl")}
        with pytest.raises(SchemaError, match=r"image/key/sha256 +- +string \(bytes\) +added"):
            append(sources(str(pets), sha256=True), output=flat, force=True)

    def test_images_without_classes_are_refused(self, pets: Path, tmp_path: Path) -> None:
        shutil.copytree(pets / "cat", tmp_path / "flat")
        with pytest.raises(SchemaError, match=r"image/class/label .* missing"):
            append(sources(str(tmp_path / "flat")), output=tmp_path / "out")


class TestOnceOnly:
    def test_the_same_sources_twice_are_nothing_to_do(self, out: Path, tmp_path: Path) -> None:
        path = put(tmp_path / "b.csv", "id,name,price\n3,c,3\n")
        append(sources(path), output=out)
        before = {file: (out / file).read_bytes() for file in os.listdir(out) if (out / file).is_file()}
        summary = append(sources(path), output=out)
        assert summary.nothing_to_do
        assert [(Path(file.name).name, file.generation) for file in summary.unchanged] == [("b.csv", 2)]
        assert {file: (out / file).read_bytes() for file in os.listdir(out) if (out / file).is_file()} == before
        assert len(os.listdir(out / "manifests")) == 2

    def test_force_appends_again(self, out: Path, tmp_path: Path) -> None:
        path = put(tmp_path / "b.csv", "id,name,price\n3,c,3\n")
        for _ in range(3):
            append(sources(path), output=out, force=True)
        assert ids(out) == [1, 2, 3, 3, 3]
        assert len({open_dataset(out, g).manifest.run.run_id for g in (1, 2, 3, 4)}) == 4
        assert_sound(out)

    def test_unchanged_files_among_others_are_left_out(self, out: Path, tmp_path: Path) -> None:
        paths = [str(tmp_path / "a.csv")] + [put(tmp_path / f"{i}.csv", f"id,name,price\n{i},c,3\n") for i in (3, 4)]
        summary = append(sources(*paths), output=out)
        assert [Path(file.name).name for file in summary.unchanged] == ["a.csv"]
        assert ids(out) == [1, 2, 3, 4]

    def test_a_file_that_has_changed_is_refused_until_it_is_said_what_to_do(self, out: Path, tmp_path: Path) -> None:
        path = put(tmp_path / "a.csv", "id,name,price\n1,a,1.5\n2,b,2\n3,c,3\n")
        with pytest.raises(
            UsageError, match=r"a\.csv: changed since the dataset took it in, and the records that it gave"
        ):
            append(sources(path), output=out)
        skipped = append(sources(path), output=out, changed="skip")
        assert (skipped.nothing_to_do, ids(out)) == (True, [1, 2])
        assert [w for w in skipped.warnings if w.endswith("a.csv: changed since the dataset took it in; left out")]
        assert append(sources(path, put(tmp_path / "b.csv", "id,name,price\n4,d,4\n")), output=out, changed="skip")
        assert ids(out) == [1, 2, 4]

    def test_a_file_that_has_changed_is_appended_whole_where_that_is_wanted(self, out: Path, tmp_path: Path) -> None:
        path = put(tmp_path / "a.csv", "id,name,price\n1,a,1.5\n2,b,2\n3,c,3\n")
        summary = append(sources(path), output=out, changed="append")
        assert ids(out) == [1, 2, 1, 2, 3]
        assert any("a.csv: changed since the dataset took it in; all rows are appended" in w for w in summary.warnings)

    def test_a_file_is_known_from_another_folder(
        self, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert append(sources("a.csv"), output=out).nothing_to_do
        monkeypatch.chdir("/")
        assert append(sources(str(tmp_path / "a.csv")), output=out).nothing_to_do

    def test_a_file_that_is_held_goes_to_another_split_that_is_named(self, out: Path, tmp_path: Path) -> None:
        path = put(tmp_path / "b.csv", "id,name,price\n3,c,3\n")
        append(sources(path), output=out)
        summary = append(sources(path), output=out, output__split="val")
        assert any("in another split or with other constants" in warning for warning in summary.warnings)
        assert (ids(out), ids(out, "val")) == ([1, 2, 3], [3])
        assert append(sources(path), output=out, output__split="val").nothing_to_do
        assert append(sources(path), output=out, output__split="train").nothing_to_do

    def test_a_large_file_that_was_written_to_is_named(self, tmp_path: Path) -> None:
        lines = ["id,name"] + [f"{i},{'x' * 50}" for i in range(10_000)]
        path = put(tmp_path / "a.csv", "\n".join(lines) + "\n")
        os.utime(path, (1, 1))
        convert(sources(path), output=tmp_path / "out")
        assert append(sources(path), output=tmp_path / "out").warnings == ()
        os.utime(path, (4e9, 4e9))
        (warning,) = append(sources(path), output=tmp_path / "out").warnings
        assert "a.csv: written to since, but of the same size and fingerprint" in warning

    def test_a_file_of_the_second_in_which_it_was_taken_in_is_not_suspected(self, tmp_path: Path) -> None:
        path = put(tmp_path / "a.csv", "id,name\n" + f"1,{'x' * 200_000}\n")
        convert(sources(path), output=tmp_path / "out")
        made = open_dataset(tmp_path / "out").manifest.run.created
        then = datetime.strptime(made, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
        os.utime(path, (then + 0.9, then + 0.9))
        assert append(sources(path), output=tmp_path / "out").warnings == ()

    def test_an_empty_file_beside_files_that_are_held_is_a_warning(self, out: Path, tmp_path: Path) -> None:
        empty = put(tmp_path / "empty.csv", "")
        summary = append(sources(str(tmp_path / "a.csv"), empty), output=out)
        assert (summary.nothing_to_do, len(summary.warnings)) == (True, 1)
        assert summary.warnings[0].endswith("empty.csv: is empty: no header and no row")

    def test_the_conversion_that_made_the_dataset_is_still_nothing_to_do(self, out: Path, tmp_path: Path) -> None:
        append(sources(put(tmp_path / "b.csv", "id,name,price\n3,c,3\n")), output=out)
        summary = convert(sources(str(tmp_path / "a.csv")), output=out)
        assert (summary.nothing_to_do, summary.manifest.generation) == (True, 1)


class TestWhatTheDatasetDecides:
    def test_shards_are_compressed_sized_and_ordered_as_those_there_are(self, tmp_path: Path) -> None:
        paths = [put(tmp_path / f"{i}.csv", "id\n" + "\n".join(map(str, range(i, i + 20_000))) + "\n") for i in (1, 2)]
        kinds = {"compression": "gzip", "shard_size": "64KiB", "order": "source", "name": "things"}
        convert(sources(paths[0]), output=tmp_path / "out", **kinds)
        manifest = append(sources(paths[1]), output=tmp_path / "out").manifest
        found = (manifest.compression, manifest.shard_size, manifest.order, manifest.name)
        assert found == ("gzip", 65536, "source", "things")
        assert "dataset_info.json" not in manifest.sidecars
        assert_sound(tmp_path / "out")

    def test_the_shard_size_may_be_another(self, tmp_path: Path) -> None:
        paths = [put(tmp_path / f"{i}.csv", "id\n" + "\n".join(map(str, range(i, i + 20_000))) + "\n") for i in (1, 2)]
        convert(sources(paths[0]), output=tmp_path / "out", shard_size="64KiB")
        manifest = append(sources(paths[1]), output=tmp_path / "out", shard_size="256KiB").manifest
        assert len(manifest.own_shards) < len(manifest.splits["train"].shards) - len(manifest.own_shards)
        assert_sound(tmp_path / "out")

    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            ({"compression": "gzip"}, 'output.compression is "gzip", and "none" in dataset out'),
            ({"order": "source"}, "output.order"),
            ({"shard_name": "{split}_{index:05d}"}, "output.shard_name"),
            ({"name": "other"}, 'name is "other", but that is dataset out'),
        ],
    )
    def test_what_an_append_cannot_change_is_refused(
        self, out: Path, tmp_path: Path, settings: dict[str, str], problem: str
    ) -> None:
        path = put(tmp_path / "b.csv", "id,name,price\n3,c,3\n")
        with pytest.raises(UsageError, match=problem.replace("{", r"\{")):
            append(sources(path), output=out, **settings)

    def test_an_index_is_written_where_the_dataset_has_one(self, tmp_path: Path) -> None:
        a, b = (put(tmp_path / f"{i}.csv", f"id\n{i}\n") for i in (1, 2))
        convert(sources(a), output=tmp_path / "out", sidecars=["tfx"], index="text")
        append(sources(b), output=tmp_path / "out")
        assert sorted(os.listdir(tmp_path / "out/index")) == ["train-00000.idx", "train-00001.idx"]
        convert(sources(a), output=tmp_path / "both", sidecars=["index"])
        append(sources(b), output=tmp_path / "both")
        assert len(os.listdir(tmp_path / "both/index")) == 4
        convert(sources(a), output=tmp_path / "none", index="none")
        append(sources(b), output=tmp_path / "none")
        assert not (tmp_path / "none/index").exists()
        assert_sound(tmp_path / "both")
        assert not (tmp_path / "out/features.json").exists()
        assert_sound(tmp_path / "out")

    def test_shards_that_are_named_by_their_count_take_no_append(self, tmp_path: Path) -> None:
        a = put(tmp_path / "a.csv", "id\n1\n")
        convert(sources(a), output=tmp_path / "out", shard_name="{split}-{index:05d}-of-{count:05d}")
        with pytest.raises(TargetError, match="named by their count"):
            append(sources(put(tmp_path / "b.csv", "id\n2\n")), output=tmp_path / "out")

    def test_a_folder_without_a_dataset_takes_no_append(self, tmp_path: Path) -> None:
        path = put(tmp_path / "b.csv", "id\n3\n")
        with pytest.raises(TargetError, match="holds no dataset to append to"):
            append(sources(path), output=tmp_path / "out")
        with pytest.raises(TargetError, match="holds no dataset to append to"):
            append(data={"x": np.arange(3)}, output=tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_a_copy_without_its_folders_is_read_and_not_written_to(self, tmp_path: Path) -> None:
        path, copy = put(tmp_path / "b.csv", "id\n3\n"), tmp_path / "the copy"
        convert(sources(path), output=tmp_path / "out")
        copy.mkdir()
        for file in (tmp_path / "out").glob("*.*"):
            if file.is_file():
                shutil.copy(file, copy)
        assert len(open_dataset(copy)) == 1
        for write in (convert, append):
            with pytest.raises(TargetError, match=r"manifests/ is missing beside manifest.json") as found:
                write(sources(path), output=copy)
            command = str(found.value).partition("; copy the whole folder: ")[2]
            assert command == f"cp -r DATASET/. '{copy}'"
        subprocess.run(shlex.split(command.replace("DATASET", str(tmp_path / "out"))), check=True)
        assert append(sources(path), output=copy).nothing_to_do
        assert_sound(copy)

    def test_rows_go_to_the_one_split_there_is(self, tmp_path: Path) -> None:
        a, b = (put(tmp_path / f"{i}.csv", f"id\n{i}\n") for i in (1, 2))
        convert(sources(a), output=tmp_path / "out", output__split="test")
        append(sources(b), output=tmp_path / "out")
        assert ids(tmp_path / "out", "test") == [1, 2]

    def test_of_several_splits_one_is_to_be_named(self, tmp_path: Path) -> None:
        a, b, c = (put(tmp_path / f"{i}.csv", f"id\n{i}\n") for i in (1, 2, 3))
        out = tmp_path / "out"
        convert(sources(a), output=out, output__split="test")
        append(sources(b), output=out, output__split="dev")
        with pytest.raises(
            UsageError,
            match="has the splits dev, test, and states no rule for these rows: say where they go: --split dev, or a "
            r"rule, like --split-fractions train=0\.9,val=0\.1",
        ):
            append(sources(c), output=out)
        append(sources(c), output=out, output__split="dev")
        assert ids(out, "dev") == [2, 3]

    def test_no_rows_are_a_generation_too(self, out: Path, tmp_path: Path) -> None:
        path = put(tmp_path / "b.csv", "id,name,price\n")
        assert append(sources(path), output=out).manifest.generation == 2
        assert append(sources(path), output=out).nothing_to_do
        assert ids(out) == [1, 2]
        assert_sound(out)

    def test_a_dataset_without_records_takes_its_first(self, tmp_path: Path) -> None:
        config = sources(put(tmp_path / "a.csv", "id\n"))
        convert(config, output=tmp_path / "out", schema__columns={"id": {"type": "int64"}})
        append(sources(put(tmp_path / "b.csv", "id\n3\n")), output=tmp_path / "out")
        assert ids(tmp_path / "out") == [3]
        assert_sound(tmp_path / "out")


class TestScreen:
    def shardmill(self, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([*args, "--workers", "1"])
        return ended.value.code, *capsys.readouterr()

    def test_the_command_says_what_it_did_and_ends_with_the_code_for_it(
        self, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        put(tmp_path / "b.csv", "id,name,price\n3,c,3\n")
        put(tmp_path / "wide.csv", "id,name,price,tip\n3,c,3,4\n")
        code, text, _ = self.shardmill(capsys, "append", "a.csv", "b.csv", "-o", "out", "--dry-run")
        assert (code, text.splitlines()[:2]) == (
            0,
            [
                "Would append to out (dry run: nothing was written)",
                "Would leave out: 1 file held already (generation 1): a.csv",
            ],
        )
        code, text, _ = self.shardmill(capsys, "append", "a.csv", "b.csv", "-o", "out")
        assert (code, "Left out: 1 file held already" in text) == (0, True)
        assert text.startswith("Appended to out: 1 record in 1 shard")
        lines = [" ".join(line.split()) for line in text.splitlines()]
        assert "split added records in all shards in all bytes in all shard sizes" in lines
        assert any(line.startswith("train 1 3 2 ") for line in lines)
        assert "Narrowed price: float64 to float32, 3 values in all generations, none changed" in lines
        code, text, _ = self.shardmill(capsys, "append", "a.csv", "b.csv", "-o", "out")
        assert (code, text.splitlines()[0]) == (0, "Nothing to do: out holds all 2 files; --force appends again.")
        code, text, _ = self.shardmill(capsys, "append", "b.csv", "-o", "out", "--json")
        assert (code, json.loads(text)["nothing_to_do"], json.loads(text)["added"]["records"]) == (0, True, 0)
        code, text, error = self.shardmill(capsys, "append", "wide.csv", "-o", "out")
        assert (code, text, error.startswith("error: the source does not match the schema of ")) == (2, "", True)

    def test_new_classes_are_named_with_their_numbers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for name in ("made/cat", "more/cat", "more/owl", "more/dog"):
            (tmp_path / name).mkdir(parents=True)
            shutil.copy(SAMPLES / "pets/cat/cat-1.jpg", tmp_path / name / f"{name[:2]}.jpg")
        assert self.shardmill(capsys, "convert", "made", "-o", "out")[0] == 0
        for dry in (["--dry-run"], []):
            code, text, _ = self.shardmill(capsys, "append", "more", "-o", "out", *dry)
            new = "2 new classes, and their numbers in image/class/label: dog = 1, owl = 2"
            assert (code, new in text.splitlines()) == (0, True)
            assert "Detected: 3 classes in these files, from the names of folders (input.layout: label)" in text
        code, text, _ = self.shardmill(capsys, "append", "more", "-o", "out", "--force", "--json")
        assert json.loads(text)["added"]["classes"] == {}


class TestAtOnce:
    def command(self, *args: str) -> subprocess.Popen[str]:
        line = [sys.executable, "-m", "shardmill.pipelines", "append", *args, "--workers", "1", "--json"]
        return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ends(self, running: list[subprocess.Popen[str]]) -> list[tuple[str, int]]:
        """Wait for all of them, and return what they printed and their exit codes."""
        return [(process.communicate()[0], process.returncode) for process in running]

    @pytest.mark.thorough("four commands load the engine; faults/test_races.py has eight at once")
    def test_what_several_processes_append_at_once_is_held_once(self, out: Path, tmp_path: Path) -> None:
        one, two, three = (put(tmp_path / f"p{i}.csv", f"id,name,price\n{i},n,1\n") for i in (3, 4, 5))
        sets = [(one, two), (two, three), (one, two), (three,)]
        ended = self.ends([self.command(*names, "-o", str(out)) for names in sets])
        assert [code for _, code in ended] == [0] * 4, ended
        assert sorted(ids(out)) == [1, 2, 3, 4, 5]
        assert_sound(out)

    @pytest.mark.thorough("three commands load the engine; faults/test_races.py has eight at once")
    def test_new_classes_of_several_processes_get_numbers_of_their_own(self, tmp_path: Path) -> None:
        image = next(path for path in (SAMPLES / "pets/cat").iterdir() if path.read_bytes()[:2] == b"\xff\xd8")
        for name in ("made/cat", "p0/emu", "p1/fox", "p2/gnu"):
            (tmp_path / name).mkdir(parents=True)
            shutil.copy(image, tmp_path / name / "1.jpg")
        out = tmp_path / "out"
        convert(sources(str(tmp_path / "made")), output=out)
        ended = self.ends([self.command(str(tmp_path / f"p{i}"), "-o", str(out)) for i in range(3)])
        assert [code for _, code in ended] == [0] * 3, ended
        labels = open_dataset(out).labels["image/class/label"]
        assert (labels[0], sorted(labels)) == ("cat", ["cat", "emu", "fox", "gnu"])
        assert all(labels[row["image/class/label"]] == row["image/class/text"] for row in rows(out))
        assert len(rows(out)) == 4
        assert_sound(out)


class TestInterrupted:
    def test_a_publish_that_was_cut_short_is_finished_by_the_next_append(
        self, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from shardmill.transforms.dataset.commit import publish

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        paths = [put(tmp_path / f"{i}.csv", f"id,name,price\n{i},n,1\n") for i in (3, 4)]
        with monkeypatch.context() as patch:
            patch.setattr(publish, "publish_file", die)
            with pytest.raises((KeyboardInterrupt, RuntimeError)):
                append(sources(paths[0]), output=out, runner__workers=1)
        assert ids(out) == [1, 2, 3], "it was committed, and is read from staging"
        assert not (out / "train-00001.tfrecord").exists()
        summary = append(sources(*paths), output=out)
        assert [(Path(file.name).name, file.generation) for file in summary.unchanged] == [("3.csv", 2)]
        assert ids(out) == [1, 2, 3, 4]
        assert_sound(out)


def test_the_option_that_an_append_of_more_columns_proposes_adds_them(shardmill: Shardmill) -> None:
    Path("a.csv").write_text("id,name\n1,a\n2,b\n")
    Path("b.csv").write_text("id,name,tip\n3,c,1.5\n4,d,\n")
    assert shardmill("convert", "a.csv", "-o", "out", "-q").code == 0
    refused = shardmill("append", "b.csv", "-o", "out", "-q")
    option = "--set schema.columns.tip.type=float64"
    assert (refused.code, f"or add the others, null in the rows that it has: {option};" in refused.err) == (2, True)
    assert shardmill("append", "b.csv", "-o", "out", *option.split(), "-q").code == 0
    assert "tip is there since generation 2, and null in older rows" in shardmill("info", "out").out
    assert json.loads(shardmill("info", "out", "--json").out)["added"] == {"tip": 2}
