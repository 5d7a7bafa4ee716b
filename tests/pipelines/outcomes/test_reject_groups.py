"""Rejects on the screen: equal ones together, the fix once, the rest counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines.cli import main
from shardmill.pipelines.outcomes.reject_groups import group_rejects, read_head, rejects_text

FIX = "; declare it: --set schema.columns.price.type=string"


def reject(row: int, *cells: tuple[str | None, str], source: str = "a.csv") -> dict[str, Any]:
    more = {"code": "BAD_TYPE", "value": "x", "expected": "float32"}
    errors = [{"column": column, "message": message, **more} for column, message in cells]
    return {"source": source, "split": None, "row": row, "line": row + 1, "errors": errors}


def text(rejects: list[dict[str, Any]], total: int | None = None) -> list[str]:
    return rejects_text(total or len(rejects), {}, group_rejects(rejects, "csv")).splitlines()


def test_equal_rejects_are_one_line_with_their_number_and_the_first_places() -> None:
    bad, other = ("price", f'"NA" is not a float{FIX}'), ("price", f'"-" is not a float{FIX}')
    rejects = [reject(1, other), *(reject(row, bad) for row in range(4, 104)), reject(7, other, source="b.csv")]
    assert text(rejects, 133) == [
        f'  100 rows, first a.csv rows 4, 5, 6: column "price": BAD_TYPE: "NA" is not a float{FIX}',
        '  2 rows, a.csv row 1, b.csv row 7: column "price": BAD_TYPE: "-" is not a float',
        "  and 31 more",
    ]


def test_a_row_with_two_bad_cells_is_one_line_and_a_fix_stands_once_for_each_column() -> None:
    price, size = ("price", f'"x" is not a float{FIX}'), ("size", '"y" is not an int64; fix it')
    rejects = [reject(1, price, size), reject(2, ("price", f'"; z" is not a float{FIX}')), reject(3, price)]
    assert text(rejects) == [
        f'  a.csv row 1: column "price": BAD_TYPE: "x" is not a float{FIX}; '
        'column "size": BAD_TYPE: "y" is not an int64; fix it',
        '  a.csv row 2: column "price": BAD_TYPE: "; z" is not a float',
        '  a.csv row 3: column "price": BAD_TYPE: "x" is not a float',
    ]


def test_places_without_a_row_and_records_are_shown() -> None:
    cells = [{"column": None, "code": "TRUNCATED", "message": "the JPEG is cut short"}]
    images = [{"source": f"cat/{i}.jpg", "errors": cells} for i in range(4)]
    assert text(images) == ["  4 rows, first cat/0.jpg, cat/1.jpg, cat/2.jpg: TRUNCATED: the JPEG is cut short"]
    records = [{"source": "a.tfrecord", "record": 3, "offset": 90, "errors": cells}]
    assert text(records) == ["  a.tfrecord record 3 at byte 90: TRUNCATED: the JPEG is cut short"]
    groups = [{"source": "a.parquet", "row_group": 2, "row": 5, "errors": cells}]
    assert text(groups) == ["  a.parquet row group 2 row 5: TRUNCATED: the JPEG is cut short"]


@pytest.mark.parametrize(
    ("file_format", "places"),
    [("jsonl", "lines 4, 9"), ("txt", "lines 4, 9"), ("csv", "rows 2, 5"), ("records", "rows 2, 5")],
)
def test_where_a_row_is_a_line_the_line_of_the_file_is_named(file_format: str, places: str) -> None:
    cells = [{"column": None, "code": "CORRUPT", "message": "not JSON"}]
    rejects = [{"source": "a", "row": row, "line": line, "errors": cells} for row, line in ((2, 4), (5, 9))]
    (group,) = group_rejects(rejects, file_format)
    assert group.first == (f"a {places}",)


def test_rejects_are_counted_by_code_the_most_first_and_twenty_groups_are_shown() -> None:
    groups = group_rejects((reject(row, ("price", f'"{row}" is bad')) for row in range(25)), "csv")
    lines = rejects_text(25, {"BAD_TYPE": 3, "BAD_WIDTH": 22, "BAD_UTF8": 3}, groups).splitlines()
    assert lines[0] == "  BAD_WIDTH 22, BAD_TYPE 3, BAD_UTF8 3"
    assert lines[1] == '  a.csv row 0: column "price": BAD_TYPE: "0" is bad'
    assert (len(lines), lines[21]) == (22, "  and 5 more")


def test_many_values_that_are_wrong_in_one_way_have_their_fix_once_and_leave_room_for_other_rejects() -> None:
    said = '"{}" is no date; declare how it is written: schema.columns.day.format'
    dates = [reject(row, ("day", said.format(f"{row}; 1.2024"))) for row in range(30)]
    null = reject(30, ("day", "null, and it says the split: fill it, or leave the row out: --where 'day is not None'"))
    late = reject(31, ("day", "not before 2024-01-01; name the split of later rows: split.before.rest"))
    lines = rejects_text(32, {}, group_rejects([*dates, null, late], "csv")).splitlines()
    assert len(lines) == 21
    assert sum("declare how it is written" in line for line in lines) == 1
    assert lines[1] == '  a.csv row 1: column "day": BAD_TYPE: "1; 1.2024" is no date'
    assert lines[5].endswith("--where 'day is not None'")
    assert lines[6].endswith("split.before.rest")
    assert lines[-1] == "  and 12 more"


def test_a_column_with_one_wrong_value_in_many_rows_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},{'n/a' if i % 3 == 0 else i}\n" for i in range(400))
    Path("a.csv").write_text(f"id,price\n{rows}")
    with pytest.raises(SystemExit) as ended:
        main(["convert", "a.csv", "-o", "out", "--set", "schema.columns.price.type=int64"])
    assert ended.value.code == 4
    lines = [line for line in capsys.readouterr().err.splitlines() if "n/a" in line]
    assert len(lines) == 1
    assert lines[0].startswith('  134 rows, first a.csv rows 1, 4, 7: column "price": BAD_TYPE: "n/a" is not a')


def test_a_dry_run_says_which_of_the_rows_that_it_looked_at_will_be_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,n\n1,1\n2,x\n3\n4,x\n")
    args = ["convert", "a.csv", "-o", "out", "--set", "schema.columns.n.type=int64", "--dry-run"]
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main([*args, *more])
        assert ended.value.code == 0
    text, document = capsys.readouterr().out.rsplit("\n{", 1)
    lines = text.splitlines()
    at = lines.index("Would reject 3 rows of the 4 that were looked at:")
    assert lines[at + 1] == "  BAD_TYPE 2, BAD_WIDTH 1"
    assert lines[at + 2].startswith('  2 rows, a.csv rows 2, 4: column "n": BAD_TYPE: "x" is not an int64; declare it')
    assert lines[at + 3].startswith("  a.csv row 3: BAD_WIDTH: ")
    sample = json.loads("{" + document)["sample"]
    assert (sample["rows"], [group["rows"] for group in sample["rejects"]]) == (4, [2, 1])


def test_a_dry_run_counts_the_rows_that_an_interrupted_run_has_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,n\n1,1\n2,x\n3\n4,x\n")
    for code, more in ((4, []), (0, ["--dry-run"])):
        with pytest.raises(SystemExit) as ended:
            main(["convert", "a.csv", "-o", "out", "--set", "schema.columns.n.type=int64", *more])
        assert ended.value.code == code
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("Warning: resuming: 1 of 1 task already done")
    assert lines[at + 1] == "Warning: 3 rows of these were rejected (BAD_TYPE 2, BAD_WIDTH 1)"


def test_the_start_of_a_reject_file_gives_its_first_lines_and_its_groups(tmp_path: Path) -> None:
    lines = [json.dumps(reject(row, ("price", "no float"))) for row in range(1, 31)]
    (tmp_path / "rejects.jsonl").write_text("\n".join(lines) + "\n")
    first, groups = read_head(str(tmp_path), "rejects.jsonl", "csv")
    assert (list(first), [group.rows for group in groups]) == (lines[:20], [30])
    assert read_head(str(tmp_path), None, "csv") == ((), ())
