"""What the screen says of the order of rows, and that it is so."""

from __future__ import annotations

from typing import Any

NOTE = (
    "Order: rows follow the source within each shard, and the last shards hold rows from between the others; "
    "to keep the order of the source throughout: --order source (writes some bytes twice)\n"
)


def put_rows(desk: Any) -> None:
    for file in range(6):
        rows = b"".join(b"%d,%s\n" % (number, b"x" * 100) for number in range(1000 * file, 1000 * file + 1000))
        desk.put({f"part-{file}.csv": b"id,text\n" + rows})


def test_a_table_whose_tasks_fill_shards_is_said_not_to_follow_its_source_and_the_option_named_keeps_the_order(
    desk: Any,
) -> None:
    put_rows(desk)
    for args in (["--dry-run"], []):
        assert NOTE in desk.convert("part-*.csv", "--shard-size", "64KiB", *args).out
    ids = [row["id"] for row in desk.records()]
    assert (len(ids), ids == sorted(ids)) == (6000, False)
    kept = ["--order", "source", "--overwrite"]
    for args in (["--dry-run"], []):
        assert "Order:" not in desk.convert("part-*.csv", "--shard-size", "64KiB", *kept, *args).out
    assert [row["id"] for row in desk.records()] == sorted(ids)


def test_a_table_in_one_shard_follows_its_source_and_nothing_is_said(desk: Any) -> None:
    put_rows(desk)
    assert "Order:" not in desk.convert("part-*.csv").out
    assert [row["id"] for row in desk.records()] == list(range(6000))
