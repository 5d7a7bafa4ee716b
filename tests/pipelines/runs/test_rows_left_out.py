"""rebuild --drop, --drop-where and --where: records that are left out, and counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.dataset.storage.record_file import write_records

from ...command_line import Screen, Shardmill
from ...examples import example_from_values

ROWS = 1000


@pytest.fixture
def people(tmp_path: Path, shardmill: Shardmill) -> Path:
    """Return a dataset of people, `out`: ids from 0 on, codes as text, two plans that are classes, days."""
    lines = ["id,code,plan,day,score"]
    lines += [
        f"{i},{i:03d},{('free', 'paid')[i % 2]},2024-01-{i % 28 + 1:02d},{'' if i % 10 == 9 else i / 4}"
        for i in range(ROWS)
    ]
    Path("people.csv").write_text("\n".join(lines) + "\n")
    convert(
        {
            "input": {"paths": ["people.csv"]},
            "schema": {"columns": {"plan": {"label": True}, "code": {"type": "string"}, "day": {"type": "date"}}},
        },
        output="out",
    )
    return tmp_path / "out"


def ids_of(folder: str) -> list[int]:
    assert verify_dataset(folder).findings == ()
    found: list[int] = open_dataset(folder).to_arrow()["id"].to_pylist()
    return found


def left(screen: Screen, dropped: int, folder: str = "new") -> None:
    """Check that a run left out so many rows: on its screen, in its JSON, and in the manifest and its sources."""
    assert screen.code == 0, screen.err
    counts = read_manifest(folder).counts
    assert (counts.read, counts.written, counts.rejected, counts.dropped) == (ROWS, ROWS - dropped, 0, dropped)
    assert json.loads(screen.out)["counts"] == {
        "read": ROWS, "written": ROWS - dropped, "rejected": 0, "dropped": dropped
    }  # fmt: skip


def test_records_with_a_key_of_the_file_go_and_all_others_stay_byte_for_byte(
    people: Path, shardmill: Shardmill
) -> None:
    Path("keys.csv").write_text("id\n17\n42\n17\n")
    left(shardmill("rebuild", "out", "-o", "new", "--drop", "keys.csv", "--json"), 2)
    kept = [one for at, one in enumerate(open_dataset(people).records()) if at not in (17, 42)]
    assert list(open_dataset("new").records()) == kept


def test_a_key_of_several_columns_goes_where_all_values_are_in_one_row(people: Path, shardmill: Shardmill) -> None:
    """Other signs between cells, a byte order mark and CRLF, as Excel writes them, are read."""
    Path("keys.csv").write_bytes("\ufeffplan;day\r\npaid;2024-01-02\r\nfree;2024-01-02\r\n".encode())
    screen = shardmill("rebuild", "out", "-o", "new", "--drop", "keys.csv", "--json")
    left(screen, len([i for i in range(ROWS) if i % 28 == 1]))
    assert json.loads(screen.out)["warnings"] == ["keys.csv: no record has 1 of 2 keys (plan, day; line 3)"]


def test_a_key_that_no_record_has_is_said_with_its_line(people: Path, shardmill: Shardmill) -> None:
    Path("keys.csv").write_text("id\n5000\n3\n5001\n")
    screen = shardmill("rebuild", "out", "-o", "new", "--drop", "keys.csv")
    assert "1,000 rows" in screen.out
    assert "999 written, 0 rejected, 1 dropped" in screen.out
    assert "Warning: keys.csv: no record has 2 of 3 keys (id; line 2, 4)" in screen.out


def test_ids_that_are_text_are_compared_as_text_and_numbers_as_numbers(people: Path, shardmill: Shardmill) -> None:
    Path("keys.csv").write_text("code\n7\n008\n")
    left(shardmill("rebuild", "out", "-o", "new", "--drop", "keys.csv", "--json"), 1)
    assert sorted({*range(ROWS)} - {*ids_of("new")}) == [8]
    Path("keys.csv").write_text("id\n007\n")
    assert shardmill("rebuild", "out", "-o", "other", "--drop", "keys.csv", "-q").code == 0
    assert sorted({*range(ROWS)} - {*ids_of("other")}) == [7]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("user\n17\n", 'keys.csv: the first line names "user", which is not a column; there are: code, day, id, plan'),
        ("ids\n17\n", 'keys.csv: the first line names "ids", which is not a column; did you mean "id"?'),
        ("id\nu17\n", 'keys.csv line 2: column "id": "u17" is not int64, as the dataset has it'),
        ("id,plan\n3,free\n17\n", "keys.csv line 3: a key has a value for each of id, plan, and this one has not"),
        ("id\n", "keys.csv: the first line names columns, each once, and each other line is a key; it has none"),
        ("", "keys.csv: the first line names columns, each once, and each other line is a key; it has none"),
        (None, "keys.csv: cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_no_table_of_keys_is_refused_by_its_line(
    text: str | None, says: str, people: Path, shardmill: Shardmill
) -> None:
    if text is not None:
        Path("keys.csv").write_text(text)
    screen = shardmill("rebuild", "out", "-o", "new", "--drop", "keys.csv", "-q")
    assert (screen.code, says in screen.err) == (2, True), screen.err
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("flag", "expression", "kept"),
    [
        ("--drop-where", 'plan == "paid" or day >= "2024-01-20"', lambda i: i % 2 == 0 and i % 28 < 19),
        ("--drop-where", "score > 100", lambda i: i % 10 == 9 or i / 4 <= 100),
        ("--where", "score > 100", lambda i: i % 10 != 9 and i / 4 > 100),
    ],
)
def test_an_expression_leaves_records_out_or_keeps_them_and_nulls_are_not_true(
    flag: str, expression: str, kept: object, people: Path, shardmill: Shardmill
) -> None:
    wanted = [i for i in range(ROWS) if kept(i)]  # type: ignore[operator]
    left(shardmill("rebuild", "out", "-o", "new", flag, expression, "--json"), ROWS - len(wanted))
    assert ids_of("new") == wanted


def test_an_expression_that_does_not_fit_is_named_as_the_flag_has_it(people: Path, shardmill: Shardmill) -> None:
    for expression, says in {
        "ids == 3": 'input.drop_where names "ids", which is not a column; did you mean "id"?',
        "id = 3": "--drop-where: input.drop_where: cannot be read",
        "code > 3": 'input.drop_where: code > 3 does not fit: code is string; compare with a value, like code == "a"\n',
    }.items():
        screen = shardmill("rebuild", "out", "-o", "new", "--drop-where", expression, "-q")
        assert (screen.code, says in screen.err) == (2, True), screen.err


def test_a_dry_run_counts_what_goes_and_other_keys_are_another_dataset(people: Path, shardmill: Shardmill) -> None:
    Path("keys.csv").write_text("id\n1\n2\n")
    planned = json.loads(shardmill("rebuild", "out", "-o", "new", "--drop", "keys.csv", "--dry-run", "--json").out)
    assert planned["splits"]["train"]["records"] == ROWS - 2
    assert shardmill("rebuild", "out", "-o", "new", "--drop", "keys.csv", "-q").code == 0
    assert "Nothing to do" in shardmill("rebuild", "out", "-o", "new", "--drop", "keys.csv").out
    Path("keys.csv").write_text("id\n1\n3\n")
    assert shardmill("rebuild", "out", "-o", "new", "--drop", "keys.csv", "-q").code == 2
    assert shardmill("rebuild", "out", "-o", "new", "--drop", "keys.csv", "--overwrite", "-q").code == 0
    assert {1, 2, 3} - {*ids_of("new")} == {1, 3}


def test_an_append_leaves_the_source_out_that_rows_were_deleted_of_and_force_brings_them_back(
    people: Path, shardmill: Shardmill
) -> None:
    Path("keys.csv").write_text("id\n1\n2\n")
    assert shardmill("rebuild", "out", "-o", "out", "--overwrite", "--drop", "keys.csv", "-q").code == 0
    assert not {1, 2} & {*ids_of("out")}
    screen = shardmill("append", "people.csv", "-o", "out")
    assert screen.out.startswith("Nothing to do: out holds the file; --force appends again.")
    assert shardmill("append", "people.csv", "-o", "out", "--force", "-q").code == 0
    assert len(ids_of("out")) == 2 * ROWS - 2


def test_what_is_counted_of_the_dataset_is_counted_anew(people: Path, shardmill: Shardmill) -> None:
    assert shardmill("rebuild", "out", "-o", "new", "--where", "id >= 500", "-q").code == 0
    stats = open_dataset("new").stats
    assert stats is not None
    numbers = stats.splits["train"].features["id"].numbers
    assert numbers is not None
    assert (numbers.min, numbers.max) == (500, 999)


def test_the_number_of_workers_and_of_shards_changes_no_byte_and_splits_are_cut_of_what_stays(
    people: Path, shardmill: Shardmill
) -> None:
    options = ("--drop-where", "id < 300", "--shard-size", "64KiB", "--split-fractions", "train=0.8,val=0.2", "-q")
    assert shardmill("rebuild", "out", "-o", "one", "--workers", "1", *options).code == 0
    assert shardmill("rebuild", "out", "-o", "two", "--set", "runner.processes=true", *options).code == 0
    files = sorted(path.name for path in Path("one").glob("*.tfrecord"))
    assert len(files) >= 2
    for name in files:
        assert (Path("one") / name).read_bytes() == (Path("two") / name).read_bytes()
    assert sorted(ids_of("one")) == list(range(300, ROWS))


def test_plain_bytes_have_no_columns_to_look_at_and_text_of_others_is_found_by_its_bytes(shardmill: Shardmill) -> None:
    write_records("a.tfrecord", [b"one", b"two"])
    screen = shardmill("rebuild", "a.tfrecord", "-o", "new", "--drop-where", "a > 1", "-q")
    assert (screen.code, "look at columns, and these records are plain bytes" in screen.err) == (2, True), screen.err
    write_records("b.tfrecord", [example_from_values({"name": name}).SerializeToString() for name in ("ada", "bob")])
    Path("keys.csv").write_text("name\nada\n")
    assert shardmill("rebuild", "b.tfrecord", "-o", "new", "--drop", "keys.csv", "-q").code == 0
    assert open_dataset("new").to_arrow()["name"].to_pylist() == [b"bob"]
