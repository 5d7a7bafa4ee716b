from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.pipelines import append, convert
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError, TooManyRejects, UsageError
from shardmill.transforms.format.sidecars.tfds import labels_file_name
from shardmill.transforms.recipe.step import Stepped
from shardmill.transforms.recipe.steps import label as label_module
from shardmill.transforms.recipe.steps.label import Label

from ...label_numbers import in_numbers

KINDS = ["dog", "cat", "owl", "cat", "dog"]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(columns: dict[str, Any], name: str = "a.parquet", **how: Any) -> None:
    pq.write_table(pa.table(columns), name, **how)


def labels_of(column: str = "kind", path: str = "out") -> tuple[list[Any], tuple[str, ...]]:
    """Return the numbers of a column in the order of records, and the names of its classes."""
    dataset = open_dataset(path)
    return in_numbers(dataset.to_arrow("train"))[column].to_pylist(), dataset.manifest.labels[column]


def settings(label: Any, column: str = "kind", **more: Any) -> dict[str, Any]:
    return {"schema": {"columns": {column: {"label": label, **more}}}}


@pytest.mark.parametrize("file", ["a.csv", "a.parquet"])
def test_the_values_of_a_column_are_its_classes_sorted(file: str) -> None:
    Path("a.csv").write_text("kind\n" + "\n".join(KINDS) + "\n")
    put({"kind": KINDS})
    summary = convert(file, output="out", **settings(True))
    assert labels_of() == ([1, 0, 2, 0, 1], ("cat", "dog", "owl"))
    assert Path("out/kind.labels.txt").read_text() == "cat\ndog\nowl\n"
    features = json.loads(Path("out/features.json").read_text())["featuresDict"]["features"]
    assert features["kind"]["classLabel"] == {"numClasses": "3"}
    assert {choice.column: choice.reason for choice in summary.choices}["kind"].startswith("3 classes, read from all")
    assert verify_dataset("out").ok


@pytest.mark.parametrize(
    ("values", "numbers", "names"),
    [
        ([10, 9, 10], [1, 0, 1], ("9", "10")),
        ([-1, 1], [0, 1], ("-1", "1")),
        ([True, False], [1, 0], ("false", "true")),
        (pa.array(["b", "a", "b"]).dictionary_encode(), [1, 0, 1], ("a", "b")),
        (["b", None, "a"], [1, None, 0], ("a", "b")),
        (["é", "z", "Z"], [2, 1, 0], ("Z", "z", "é")),
    ],
)
def test_numbers_are_sorted_by_size_and_nulls_stay_nulls(values: Any, numbers: list[Any], names: tuple[str]) -> None:
    put({"kind": values})
    convert("a.parquet", output="out", **settings(True))
    assert labels_of() == (numbers, names)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()], ids=str)
def test_text_of_any_arrow_type_becomes_classes_in_files_in_memory_and_in_an_append(kind: pa.DataType) -> None:
    put({"kind": pa.array(KINDS, kind)})
    convert("a.parquet", output="out", **settings(True))
    assert labels_of() == ([1, 0, 2, 0, 1], ("cat", "dog", "owl"))
    more = {"kind": pa.array(["owl", "ant"], kind)}
    put(more, "b.parquet")
    append("b.parquet", output="out")
    assert labels_of() == ([1, 0, 2, 0, 1, 2, 3], ("cat", "dog", "owl", "ant"))
    convert(data=pa.table(more), output="in_memory", max_rejects=1, **settings(["owl", "cat"]))
    assert labels_of(path="in_memory") == ([0], ("owl", "cat"))


def test_data_in_memory_get_the_labels_of_the_dataset_that_they_are_appended_to() -> None:
    convert(data={"kind": np.array(KINDS)}, output="out", **settings(True))
    append(data={"kind": np.array(["owl", "ant"])}, output="out")
    assert labels_of() == ([1, 0, 2, 0, 1, 2, 3], ("cat", "dog", "owl", "ant"))


@pytest.mark.parametrize("processes", [False, True])
def test_classes_are_the_same_whoever_looks_for_them(processes: bool) -> None:
    for file in range(4):
        put({"kind": [f"{(file * 977 + row) % 301:03d}" for row in range(2000)]}, f"{file}.parquet", row_group_size=300)
    convert("*.parquet", output="out", **settings(True), runner__workers=2, runner__processes=processes)
    numbers, names = labels_of()
    assert names == tuple(f"{n:03d}" for n in range(301))
    assert numbers == [(file * 977 + row) % 301 for file in range(4) for row in range(2000)]


def test_classes_that_are_given_keep_their_numbers() -> None:
    put({"kind": KINDS})
    convert("a.parquet", output="out", **settings(["owl", "cat", "dog", "emu"]))
    assert labels_of() == ([2, 1, 0, 1, 2], ("owl", "cat", "dog", "emu"))


def test_numbers_in_the_source_are_numbers_of_classes_that_have_names() -> None:
    put({"y": [0, 2, 1]})
    convert("a.parquet", output="out", **settings(["cat", "dog", "owl"], "y"))
    assert labels_of("y") == ([0, 2, 1], ("cat", "dog", "owl"))
    put({"y": [7, 3]}, "b.parquet")
    convert("b.parquet", output="named", **settings([3, 7], "y"))
    assert labels_of("y", "named") == ([1, 0], ("3", "7"))


def test_what_is_no_class_and_a_null_are_rejects() -> None:
    Path("a.csv").write_text("id,kind\n1,cat\n2,cta\n3,\n4,dog\n")
    with pytest.raises(TooManyRejects) as refused:
        convert("a.csv", output="out", **settings(["cat", "dog"]))
    assert '"cta" is no class: cat, dog; add it to schema.columns.kind.label, or fix the row' in str(refused.value)
    summary = convert("a.csv", output="out", **settings(["cat", "dog"]), max_rejects=2)
    assert labels_of() == ([0, 1], ("cat", "dog"))
    assert summary.manifest.rejects.by_code == {"DECLARED_NOT_NULL": 1, "UNKNOWN_CLASS": 1}


@pytest.mark.parametrize("file", ["a.csv", "a.parquet"])
@pytest.mark.parametrize(
    ("null", "numbers"), [("absent", [0, None, 1]), ("drop_row", [0, 1]), ({"fill": "dog"}, [0, 1, 1])]
)
def test_what_becomes_of_nulls_beside_given_classes_is_what_the_config_says(
    file: str, null: Any, numbers: list[Any]
) -> None:
    Path("a.csv").write_text("id,kind\n1,cat\n2,\n3,dog\n")
    put({"id": [1, 2, 3], "kind": ["cat", None, "dog"]})
    convert(file, output="out", **settings(["cat", "dog"], null=null))
    assert labels_of() == (numbers, ("cat", "dog"))
    assert verify_dataset("out").ok
    put({"id": [4, 5], "kind": ["dog", None]}, "b.parquet")
    if null == "absent":
        append("b.parquet", output="out")
        assert labels_of()[0] == [*numbers, 1, None]


def test_a_null_without_a_class_is_refused_with_a_setting_that_keeps_it_and_the_same_command_resumes() -> None:
    put({"id": [1, 2, 3], "kind": ["cat", None, "dog"]})
    with pytest.raises(TooManyRejects) as refused:
        convert("a.parquet", output="out", **settings(["cat", "dog"]))
    said = "there is no class for null; say what becomes of nulls: --set schema.columns.kind.null=absent, or drop_row"
    assert said in str(refused.value)
    convert("a.parquet", output="out", **settings(["cat", "dog"], null="absent"))
    assert labels_of()[0] == [0, None, 1]


def test_the_setting_that_keeps_nulls_can_be_typed_for_a_column_of_any_name() -> None:
    put({"id": [1, 2], "the kind": ["cat", None]})
    with pytest.raises(TooManyRejects, match=re.escape("""--set 'schema.columns."the kind".null=absent'""")):
        convert("a.parquet", output="out", **settings(["cat"], "the kind"))


@pytest.mark.parametrize("said", [True, False])
def test_an_append_keeps_the_numbers_and_adds_new_classes_at_the_end(said: bool) -> None:
    put({"kind": ["dog", "cat"]})
    convert("a.parquet", output="out", **settings(True))
    put({"kind": ["ant", "dog", "bee"]}, "b.parquet")
    summary = append("b.parquet", output="out", **(settings(True) if said else {}))
    assert labels_of() == ([1, 0, 2, 1, 3], ("cat", "dog", "ant", "bee"))
    assert summary.new_classes == {"kind": {"ant": 2, "bee": 3}}
    assert append("b.parquet", output="out").nothing_to_do
    assert verify_dataset("out").ok


def test_numbers_that_are_appended_to_classes_with_names_are_numbers_of_these_classes() -> None:
    put({"y": [0, 1, 1]})
    convert("a.parquet", output="out", **settings(["cat", "dog"], "y"))
    put({"y": [1, 0, 2]}, "b.parquet")
    with pytest.raises(TooManyRejects, match=r'"2" is no class: cat, dog'):
        append("b.parquet", output="out")
    summary = append("b.parquet", output="out", max_rejects=1)
    assert labels_of("y") == ([0, 1, 1, 1, 0], ("cat", "dog"))
    assert summary.new_classes == {}


@pytest.mark.parametrize(
    ("given", "numbers", "names"),
    [(["cat", "dog", "ant"], [2, 1], ("cat", "dog", "ant")), (["cat"], [], ("cat", "dog"))],
)
def test_classes_that_are_given_for_an_append_may_extend_those_of_the_dataset_or_be_the_first_of_them(
    given: list[str], numbers: list[int], names: tuple[str, ...]
) -> None:
    put({"kind": ["dog", "cat"]})
    convert("a.parquet", output="out", **settings(True))
    put({"kind": ["ant", "dog"]}, "b.parquet")
    append("b.parquet", output="out", max_rejects=2, **settings(given))
    assert labels_of() == ([1, 0, *numbers], names)


@pytest.mark.parametrize("given", [["dog", "cat"], ["dog", "ant"], ["ant", "cat", "dog"]])
def test_classes_that_are_given_for_an_append_with_other_numbers_are_refused_with_the_fix(given: list[str]) -> None:
    put({"kind": ["dog", "cat"]})
    convert("a.parquet", output="out", **settings(True))
    put({"kind": ["ant", "dog"]}, "b.parquet")
    with pytest.raises(SchemaError) as refused:
        append("b.parquet", output="out", max_rejects=2, **settings(given))
    assert f'schema.columns.kind.label: class 0 is "{given[0]}", and "cat" in the dataset' in str(refused.value)
    more = ', "ant"' if "ant" in given else ""
    assert str(refused.value).endswith(f"""--set 'schema.columns.kind.label=["cat", "dog"{more}]'""")
    assert labels_of() == ([1, 0], ("cat", "dog"))


def test_a_label_may_have_another_name() -> None:
    put({"kind": KINDS})
    convert("a.parquet", output="out", **settings(True, name="class"))
    assert labels_of("class")[1] == ("cat", "dog", "owl")
    append("a.parquet", output="out", force=True, **settings(True, name="class"))
    assert labels_of("class") == ([1, 0, 2, 0, 1] * 2, ("cat", "dog", "owl"))


def test_only_the_rows_that_are_read_have_classes() -> None:
    put({"kind": KINDS}, row_group_size=2)
    convert("a.parquet", output="out", **settings(True), limit=2)
    assert labels_of() == ([1, 0], ("cat", "dog"))


@pytest.mark.parametrize("file", ["a.csv", "a.parquet", "a.jsonl"])
@pytest.mark.parametrize(
    ("beside", "names"),
    [
        ({"where": "n < 3"}, ("cat", "dog")),
        ({"where": "n != 2 and n != 4", "columns": ["kind"]}, ("dog", "owl")),
        ({"schema": {"columns": {"kind": {"label": True}, "n": {"null": "drop_row"}}}}, ("cat", "dog", "owl")),
        ({"schema": {"columns": {"kind": {"label": True}, "s": {"null": "drop_row"}}}}, ("cat", "dog")),
        ({"schema": {"columns": {"kind": {"label": True, "name": "k"}, "s": {"null": "mask", "name": "z"}}}}, None),
        ({"schema": {"columns": {"kind": {"label": True}, "s": {"format": "%Y-%m-%d"}}}}, ("cat", "dog", "owl")),
    ],
    ids=["where", "where of a column that is not kept", "no nulls", "nulls", "other names", "written"],
)
def test_classes_are_learned_of_the_rows_that_other_settings_of_columns_leave(
    file: str, beside: dict[str, Any], names: tuple[str, ...] | None
) -> None:
    rows = [{"kind": kind, "n": n, "s": f"2024-01-0{n}" if n != 3 else None} for n, kind in enumerate(KINDS, 1)]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("a.csv").write_text("kind,n,s\n" + "".join(f"{r['kind']},{r['n']},{r['s'] or ''}\n" for r in rows))
    put({name: [row[name] for row in rows] for name in rows[0]})
    summary = convert(file, output="out", **settings(True) | beside)
    assert list(summary.manifest.labels.values()) == [names or ("cat", "dog", "owl")]


def test_a_column_that_is_no_label_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    put({"kind": [0.5, 1.5], "text": ["a", "b"]})
    with pytest.raises(SchemaError, match='"kind": a label is text, a whole number or a bool, and it holds double'):
        convert("a.parquet", output="out", **settings(True))
    with pytest.raises(
        SchemaError, match=r"or make it text \(CSV and JSON lines: --set schema\.columns\.kind\.type=string\)"
    ):
        convert("a.parquet", output="out", **settings(True))
    Path("halves.csv").write_text("kind\n0.5\n1.5\n")
    typed = {"schema": {"columns": {"kind": {"label": True, "type": "string"}}}}
    assert convert("halves.csv", output="halves", **typed).manifest.labels == {"kind": ("0.5", "1.5")}
    with pytest.raises(SchemaError, match=r'schema\.columns names "knd", which is not a column; did you mean "kind"'):
        convert("a.parquet", output="out", **settings(True, "knd"))
    monkeypatch.setattr(label_module, "MOST_CLASSES", 1)
    with pytest.raises(SchemaError, match='"text" has more than 1 different values, which are no classes'):
        convert("a.parquet", output="out", **settings(True, "text"))


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        ([True, False], "is no name of a class; put it in quotes"),
        (["a", "a"], "appears twice"),
        ([], "is neither true nor a list of classes"),
        ("cat", "is neither true nor a list of classes"),
    ],
)
def test_a_list_that_is_none_is_refused_by_the_config(label: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        convert("a.csv", output="out", format="csv", delimiter=",", **settings(label))


def test_only_the_column_is_read_to_learn_its_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    put({"big": ["x" * 50] * 5, "kind": KINDS})
    looked: list[list[str]] = []
    real = Label.look

    def look(self: Label, batch: pa.RecordBatch) -> Any:
        looked.append(batch.schema.names)
        return real(self, batch)

    monkeypatch.setattr(Label, "look", look)
    convert("a.parquet", output="out", **settings(True), runner__processes=False)
    assert looked == [["kind"]]


@pytest.mark.parametrize("options", [["--dry-run"], []], ids=["dry run", "run"])
def test_a_dry_run_and_a_run_say_that_all_rows_of_the_column_were_read(
    capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    put({"kind": KINDS})
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["convert", "a.parquet", "-o", "out", *options, "--set", "schema.columns.kind.label=true"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "Detected: kind: 3 classes, read from all rows of the column" in shown


def test_a_hundred_thousand_values_are_classes_and_one_more_are_none() -> None:
    label, numbers = Label.of("n", None), pa.array(range(100_001))
    most = label.look(pa.record_batch({"n": numbers[:-1]}))
    assert len(most) == 100_000
    with pytest.raises(SchemaError, match='"n" has more than 100,000 different values, which are no classes'):
        label.look(pa.record_batch({"n": numbers}))
    with pytest.raises(SchemaError, match="more than 100,000"):
        label.merge(most, [100_000])


def test_a_label_that_a_users_function_hands_on_stays_one() -> None:
    put({"kind": KINDS, "n": [1, 2, 3, 4, 5]})
    convert(
        "a.parquet", output="out", **settings(True), map=lambda batch: (batch, [n > 2 for n in batch["n"].to_pylist()])
    )
    assert labels_of() == ([2, 0, 1], ("cat", "dog", "owl"))


@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=20), st.integers(1, 5))
def test_numbers_name_the_values_however_rows_are_batched(values: list[str | None], rows: int) -> None:
    array = pa.array(values, pa.string())
    step = Label.of("kind", None)
    summary: list[Any] | None = None
    for start in range(0, len(values), rows):
        found = step.look(pa.record_batch({"kind": array.slice(start, rows)}))
        summary = found if summary is None else step.merge(summary, found)
    known = step.learned(summary)
    done = known.apply(pa.record_batch({"kind": array}), "")
    assert isinstance(done, Stepped)
    assert [None if n is None else known.numbered[n] for n in done.batch["kind"].to_pylist()] == values
    assert (list(known.numbered), done.problems) == (sorted(set(values) - {None}), ())  # type: ignore[type-var]


@pytest.mark.parametrize(
    "name", ["House Style", "Has Garage?", "Straße", "a:b", "a%", "(x)", "-", ".x", "a\\b", "a\tb", "a/b"]
)
def test_a_label_of_any_name_is_read_verified_appended_to_and_replaced(name: str) -> None:
    def settings(value: str) -> dict[str, Any]:
        return {
            "data": pa.table({"n": [1], name: [value]}),
            "output": "out",
            "schema__columns": {name: {"label": True}},
        }

    convert(**settings("a"))
    append(**settings("b"))
    dataset = open_dataset("out")
    assert dataset.labels[name] == ("a", "b")
    assert Path("out", labels_file_name(name)).read_text().split() == ["a", "b"]
    assert not verify_dataset("out").findings
    convert(**settings("c"), if_exists="replace")
    assert open_dataset("out").labels[name] == ("c",)
    assert not verify_dataset("out").findings
