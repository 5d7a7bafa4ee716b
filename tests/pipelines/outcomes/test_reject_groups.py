"""Rejects on the screen: equal ones together, the fix once, the rest counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines.cli import main
from shardmill.pipelines.outcomes.reject_groups import RejectedRun, group_rejects, read_head, rejects_text

from ...command_line import Shardmill

FIX = "; fix the cell, or declare it: --set schema.columns.price.type=string"


def reject(row: int, *cells: tuple[str | None, str], source: str = "a.csv") -> dict[str, Any]:
    more = {"code": "BAD_TYPE", "value": "x", "expected": "float32"}
    errors = [{"column": column, "message": message, **more} for column, message in cells]
    return {"source": source, "split": None, "row": row, "line": row + 1, "errors": errors}


def text(rejects: list[dict[str, Any]], rows: int = 1000) -> list[str]:
    return rejects_text(rows, {}, group_rejects(rejects, RejectedRun(rows, "csv"))).splitlines()


def test_rejects_of_a_column_have_a_line_for_each_of_three_values_with_its_number_and_first_places() -> None:
    bad, other = ("price", f'"NA" is not a float{FIX}'), ("price", f'"-" is not a float{FIX}')
    rejects = [reject(1, other), *(reject(row, bad) for row in range(4, 104)), reject(7, other, source="b.csv")]
    assert text(rejects) == [
        f'  2 rows, a.csv row 1, b.csv row 7: column "price": BAD_TYPE: "-" is not a float{FIX}',
        '  100 rows, first a.csv rows 4, 5, 6: column "price": BAD_TYPE: "NA" is not a float',
    ]
    more = [reject(row, ("price", f'"{row}?" is not a float{FIX}')) for row in range(200, 231)]
    assert text([*rejects, *more])[2:] == [
        '  a.csv row 200: column "price": BAD_TYPE: "200?" is not a float',
        '  30 more rows with other values: column "price": BAD_TYPE',
    ]


def test_a_row_with_two_bad_cells_counts_in_both_columns_and_a_fix_stands_once_for_each() -> None:
    price, size = ("price", f'"x" is not a float{FIX}'), ("size", '"y" is not an int64; fix it')
    rejects = [reject(1, price, size), reject(2, ("price", f'"; z" is not a float{FIX}')), reject(3, price)]
    assert text(rejects) == [
        f'  2 rows, a.csv rows 1, 3: column "price": BAD_TYPE: "x" is not a float{FIX}',
        '  a.csv row 2: column "price": BAD_TYPE: "; z" is not a float',
        '  a.csv row 1: column "size": BAD_TYPE: "y" is not an int64; fix it',
    ]


def test_two_bad_values_of_a_list_are_one_row() -> None:
    clips = [("clips", f'"{name}.wav" is not below the folder') for name in ("a", "b")]
    (group,) = group_rejects([reject(1, *clips), reject(2, clips[0])], RejectedRun(9, "csv"))
    assert (group.rows, [one.rows for one in group.examples]) == (2, [2])


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
    (group,) = group_rejects(rejects, RejectedRun(9, file_format))
    assert group.examples[0].first == (f"a {places}",)


def test_rejects_are_counted_by_code_the_most_first_and_twenty_columns_are_shown() -> None:
    rejects = [reject(row, (f"c{row:02}", f'"{row}" is bad')) for row in range(25)]
    rejects += [reject(30 + row, ("c00", f'"{row}" is bad')) for row in range(5)]
    groups = group_rejects(rejects, RejectedRun(1000, "csv"))
    lines = rejects_text(1000, {"BAD_TYPE": 3, "BAD_WIDTH": 22, "BAD_UTF8": 3}, groups).splitlines()
    assert lines[0] == "  BAD_WIDTH 22, BAD_TYPE 3, BAD_UTF8 3"
    assert lines[1:3] == [
        '  2 rows, a.csv rows 0, 30: column "c00": BAD_TYPE: "0" is bad',
        '  4 more rows with other values: column "c00": BAD_TYPE',
    ]
    assert (len(lines), lines[-1]) == (23, "  and 5 more, of 5 other kinds")


def test_whole_rows_that_are_wrong_in_one_way_are_one_group_whatever_their_numbers_and_values() -> None:
    wide = [reject(row, (None, f'{row + 4} cells, the last of them "{row}"')) for row in range(30)]
    quote = reject(30, (None, "a quote is never closed"))
    assert text([*wide, quote]) == [
        *(f'  a.csv row {row}: BAD_TYPE: {row + 4} cells, the last of them "{row}"' for row in range(3)),
        "  27 more rows of this kind: BAD_TYPE",
        "  a.csv row 30: BAD_TYPE: a quote is never closed",
    ]


def test_of_thousands_of_bad_columns_the_first_have_examples_and_all_are_counted() -> None:
    cells = [(f"c{number}", "no float") for number in range(1500)]
    groups = group_rejects([reject(row, *cells) for row in range(5)], RejectedRun(100, "csv"))
    assert [group.rows for group in groups] == [5] * 1500
    assert [len(group.examples) for group in groups] == [1] * 1000 + [0] * 500


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
    assert lines[at + 2].startswith(
        '  2 rows, a.csv rows 2, 4: column "n": BAD_TYPE: "x" is not an int64; fix the cell'
    )
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
    run = RejectedRun(100, "csv")
    first, groups = read_head(str(tmp_path), "rejects.jsonl", run)
    assert (list(first), [group.rows for group in groups]) == (lines[:20], [30])
    assert read_head(str(tmp_path), None, run) == ((), ())


def test_the_screen_counts_all_rejects_and_is_the_same_however_the_run_is_cut_into_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    bad = {1: "x", 2: "n/a", 4: "y"}
    rows = "".join(f"{i},{bad.get(i % 7, i)},{'z' * 40}\n" for i in range(40_000))
    Path("a.csv").write_text(f"id,price,text\n{rows}")
    screens, tasks = [], []
    for name, size in (("few", "128MiB"), ("many", "64KiB")):
        with pytest.raises(SystemExit) as ended:
            main(["convert", "a.csv", "-o", name, "--set", "schema.columns.price.type=int64", "--shard-size", size])
        assert ended.value.code == 4
        screens.append([line for line in capsys.readouterr().err.splitlines() if "price" in line])
        tasks.append(len(list(Path(name).glob(".staging/*/tasks/*.json"))))
    assert tasks[0] < tasks[1]
    assert screens[0] == screens[1]
    fix = "declare it: --set schema.columns.price.type=string"
    assert [line.replace(f"; fix the cell, or {fix}", "") for line in screens[0]] == [
        '  5,715 rows, first a.csv rows 2, 9, 16: column "price": BAD_TYPE: "x" is not an int64',
        '  5,714 rows, first a.csv rows 3, 10, 17: column "price": BAD_TYPE: "n/a" is not an int64'
        f"; if it means null, --set 'schema.columns.price.null_values=[\"n/a\"]'; or {fix}",
        '  5,714 rows, first a.csv rows 5, 12, 19: column "price": BAD_TYPE: "y" is not an int64',
    ]


def test_a_run_that_rejects_more_than_half_of_its_rows_does_not_propose_to_leave_them_out(
    tmp_path: Path, shardmill: Shardmill
) -> None:
    declared = ["--set", "schema.columns.n.type=int64"]
    for bad, proposed in ((90, True), (180, False)):
        values = ["x"] * bad + ["1"] * (200 - bad)
        (tmp_path / "a.csv").write_text("\n".join(["n", *values]))
        done = shardmill("convert", str(tmp_path / "a.csv"), "-o", str(tmp_path / "out"), *declared)
        assert done.code != 0
        assert ("--max-rejects" in done.err) == proposed
