"""`input.where`: the rows for which an expression over columns is true."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError, RunError, SchemaError
from shardmill.transforms.recipe.step import Column
from shardmill.transforms.recipe.steps.expression import read_expression
from shardmill.transforms.recipe.steps.where import Where

from ...command_line import Shardmill

BATCH = pa.record_batch(
    {
        "age": pa.array([17, 18, None, 40]),
        "country": pa.array(["DE", "FR", "US", None]),
        "first name": pa.array(["Ada", "Bob", "ada", "x"]).dictionary_encode(),
        "day": pa.array([dt.date(2024, 1, 1), dt.date(2024, 2, 1), dt.date(2024, 3, 1), None]),
        "user": pa.array([{"plan": "free"}, {"plan": "pro"}, None, {"plan": None}]),
        "tags": pa.array([["a"], [], None, ["a", "b"]]),
        "view": pa.array(["aa", "b", None, ""], pa.string_view()),
    }
)
YES, NO, NULL = True, False, None
CASES = {
    "age >= 18": [NO, YES, NULL, YES],
    "age >= 18 and country in ['DE', 'FR']": [NO, YES, NO, NULL],
    "not is_null(age)": [YES, YES, NO, YES],
    "age is not None": [YES, YES, NO, YES],
    "country not in ['DE']": [NO, YES, YES, NULL],
    "col('first name') == 'Ada' or starts_with(lower(col('first name')), 'b')": [YES, YES, NO, NO],
    "day >= '2024-02-01'": [NO, YES, YES, NULL],
    "user.plan != 'free'": [NO, YES, NULL, NULL],
    "length(tags) > 1": [NO, NO, NULL, YES],
    "length(view) == 1": [NO, YES, NULL, NO],
    "18 <= age < 40": [NO, YES, NULL, NO],
    "age / 2 > 8.6 and age * 2 - 1 < 79": [NO, YES, NULL, NO],
    "age > -1": [YES, YES, NULL, YES],
    "age in [17, 40.5]": [YES, NO, NULL, NO],
    "contains(country, 'E') or ends_with(country, 'S')": [YES, NO, YES, NULL],
}


@pytest.mark.parametrize("text", CASES)
def test_an_expression_means_what_it_reads_as_and_null_is_no(text: str) -> None:
    where = Where(text)
    where.plan([Column(field, field.name) for field in BATCH.schema])
    assert where.apply(BATCH, "").keep.to_pylist() == CASES[text]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("age = 5", "cannot be read at character 5; == compares, and, or, not join"),
        ("__import__('os').system('x')", "is no function here; there are col, contains"),
        ("(lambda: 1)()", "is no function here"),
        ("[x for x in age]", "is not part of an expression over columns"),
        ("age if age else 1", "is not part of an expression over columns"),
        ("age in country", "country is not a list of values"),
        ("tags == ['a']", "['a'] is a list, which `in` and `not in` take"),
        ("age % 2 == 0", "age % 2 has an operator that is none of + - * / and not"),
        ("country == None", "nothing is equal to None: write `is None`"),
        (" ", "is empty; leave it out"),
        ("age is 5", "`is` compares with None alone"),
        ("length(age, 1)", "length takes 1 arguments, not 2"),
        ("col(age)", "col takes the name of a column, in quotes"),
        ('not is_null("Uhr zeit")', "of a column it is is_null(col('Uhr zeit'))"),
        ('"Uhr zeit" is not None', "of a column it is col('Uhr zeit') is None"),
        ("age == b'x'", "is neither text, a number, true, false nor None"),
        ("(" * 300 + "age" + ")" * 300, "cannot be read"),
        ("not " * 60 + "(age > 1)", "has more than 50 levels"),
        ("age > " + "1" * 11_000, "is longer than 10,000 characters"),
    ],
)
def test_what_is_no_expression_over_columns_is_refused_with_the_config(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read_expression(text)
    with pytest.raises(ConfigError, match=r"input\.where: "):
        load_config({"input": {"paths": ["a.csv"], "format": "csv", "where": text}, "output": {"path": "out"}})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ages > 1", 'input.where names "ages", which is not a column; did you mean "age"'),
        ("age == 'x'", "age == 'x' does not fit: age is int64; compare with a value, like age == 5"),
        ("country == 5", 'country == 5 does not fit: country is string; compare with a value, like country == "a"'),
        ("age", 'is not true or false for a row ("age" is int64)'),
        ("1 == 1", "is not true or false for a row"),
        ("day > 'soon'", "day > 'soon' does not fit: day is date32[day]; compare with a value"),
        ("contains(country, country)", "takes text in quotes as its second argument"),
    ],
)
def test_what_does_not_fit_the_columns_is_told_with_their_types(text: str, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Where(text).plan([Column(field, field.name) for field in BATCH.schema])
    assert said in str(caught.value)


def test_a_number_beyond_its_type_ends_the_run_with_the_file() -> None:
    with pytest.raises(
        RunError, match=r"input\.where cannot be computed in rows of a\.csv: overflow; write it another way"
    ):
        Where("age * 9223372036854775807 > 5").apply(BATCH, "a.csv")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(path: str = "out") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = open_dataset(path).to_arrow().to_pylist()
    return found


class TestTheWholeWay:
    @pytest.fixture(autouse=True)
    def table(self) -> None:
        Path("a.csv").write_text(
            "id,age,country\n" + "".join(f"{n},{n % 50},{'DE' if n % 2 else 'FR'}\n" for n in range(200))
        )

    def test_rows_that_are_left_out_are_counted(self, shardmill: Shardmill) -> None:
        done = shardmill("convert", "a.csv", "-o", "out", "--where", "age >= 40 and country == 'DE'")
        assert done.code == 0, done.err
        assert [row["id"] for row in rows()] == [n for n in range(200) if n % 50 >= 40 and n % 2]
        counts = open_dataset("out").manifest.counts
        assert (counts.read, counts.written, counts.rejected) == (200, 20, 0)
        assert "Read 200 rows of 1 file (1.8 KiB): 20 written, 0 rejected, 180 dropped" in done.out

    def test_a_dry_run_tells_the_rows_of_the_source_and_the_records_that_are_left(self, shardmill: Shardmill) -> None:
        done = shardmill("convert", "a.csv", "-o", "out", "--where", "age >= 40", "--dry-run")
        assert "Source: csv, 1 file, 1.8 KiB, 200 rows\n" in done.out
        assert re.search(r"^train +40 ", done.out, re.MULTILINE)  # all rows were sampled

    @pytest.mark.parametrize("more", [("--columns", "id"), ("--exclude-columns", "age,country")])
    def test_it_may_look_at_columns_that_are_not_kept(self, shardmill: Shardmill, more: tuple[str, str]) -> None:
        assert shardmill("convert", "a.csv", "-o", "out", "--where", "age > 48", *more).code == 0
        assert rows() == [{"id": n} for n in range(200) if n % 50 == 49]

    def test_a_limit_counts_the_rows_of_the_source(self) -> None:
        convert("a.csv", output="out", where="age >= 40", limit=45)
        assert [row["id"] for row in rows()] == [40, 41, 42, 43, 44]

    def test_labels_are_learned_from_the_rows_that_are_kept(self) -> None:
        summary = convert(
            "a.csv", output="out", where="country == 'FR'", schema={"columns": {"country": {"label": True}}}
        )
        assert summary.manifest.labels == {"country": ("FR",)}

    def test_an_append_may_keep_other_rows(self) -> None:
        convert("a.csv", output="out", where="age == 1")
        Path("b.csv").write_text("id,age,country\n900,2,DE\n901,1,DE\n")
        append("b.csv", output="out", where="age == 2")
        assert [row["id"] for row in rows()] == [1, 51, 101, 151, 900]

    def test_rows_that_are_left_out_are_no_rejects(self) -> None:
        Path("b.csv").write_text("id,age\n1,2\n2,x\n")
        counts = convert(
            "b.csv", output="out", where="id == 1", schema={"columns": {"age": {"type": "int64", "name": "years"}}}
        ).manifest.counts
        assert (counts.rejected, counts.written, counts.dropped) == (0, 1, 1)

    @pytest.mark.parametrize("where", ["age == 2", "not is_null(age)", "id == 1 and age == 2"])
    def test_a_row_is_a_reject_whose_bad_cell_the_condition_asks_for(self, where: str) -> None:
        Path("b.csv").write_text("id,age\n1,2\n2,x\n")
        settings = {"schema": {"columns": {"age": {"type": "int64", "name": "years"}}}, "max_rejects": 1}
        counts = convert("b.csv", output="out", where=where, **settings).manifest.counts
        assert (counts.rejected, counts.written, counts.dropped) == (1, 1, 0)


def test_columns_of_folders_are_columns() -> None:
    for year in (2023, 2024):
        Path(f"in/year={year}").mkdir(parents=True)
        pq.write_table(pa.table({"n": [year]}), f"in/year={year}/a.parquet")
    convert("in", output="out", where="year == 2024", columns=["n"])
    assert rows() == [{"n": 2024}]


def test_pictures_are_chosen_by_their_columns() -> None:
    Path("pets/cat").mkdir(parents=True)
    for width in (8, 300):
        Image.fromarray(np.zeros((4, width, 3), np.uint8)).save(f"pets/cat/{width}.png")
    convert("pets", output="out", where="col('image/width') >= 256")
    assert [row["image/filename"] for row in rows()] == ["cat/300.png"]


def test_records_that_are_passed_on_are_left_out_as_rows_are() -> None:
    Path("a.csv").write_text("a\n1\n2\n3\n")
    convert("a.csv", output="one")
    counts = convert("one", output="out", where="a >= 2").manifest.counts
    assert (counts.read, counts.written, counts.dropped) == (3, 2, 1)
    assert sorted(row["a"] for row in open_dataset("out")["train"]) == [2, 3]
