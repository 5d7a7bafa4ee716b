"""`shardmill stats` shows the figures of what is there, and writes them where that is asked for."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from shardmill.pipelines import convert as convert_rows
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.append import run_append
from shardmill.pipelines.runs.convert import run_convert
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.record_file import read_records, write_records

from ...command_line import Shardmill

ROWS = ["id,name,price,kind,day", "1,Ann,0.5,cat,2024-02-29", "2,,nan,dog,1970-01-01", "3,Bob,,cat,2030-12-31"]


@pytest.fixture(autouse=True)
def _work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def convert(out: str = "out", *, stats: object = "basic", compression: str = "none") -> None:
    Path("a.csv").write_text("\n".join(ROWS) + "\n")
    columns = {"kind": {"label": True}, "price": {"type": "float32"}, "day": {"type": "date"}}
    output = {"path": out, "compression": compression}
    config = {"input": {"paths": ["a.csv"]}, "schema": {"columns": columns}, "output": output, "stats": stats}
    run_convert(conversion_of(load_config(config)))


SCREEN = """\
train: 3 records
feature  missing         min        mean         max   deviation  zeros
day               1970-01-01  2008-05-21  2030-12-31  9,966 days
id                         1           2           3    0.816497
kind                       0    0.333333           1    0.471405      2  cat 2, dog 1
name           1         3 B         3 B         3 B
price          1         0.5         0.5         0.5           0         1 NaN
"""


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("stats", ["basic", "none"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_what_was_counted_and_what_is_counted_now_look_the_same(
    shardmill: Shardmill, stats: str, compression: str
) -> None:
    convert(stats=stats, compression=compression)
    screen = shardmill("stats", "out")
    assert (screen.code, lines(screen.out)) == (0, lines(SCREEN))
    assert Path("out/stats.json").exists() == (stats == "basic")


def test_write_makes_the_bytes_that_the_conversion_would_have_made(shardmill: Shardmill) -> None:
    convert()
    convert("later", stats=False)
    screen = shardmill("stats", "later", "--write")
    assert screen.code == 0
    assert lines(screen.out)[-2:] == ["Wrote later/stats.json", "Wrote later/stats.tfdv"]
    for name in ("stats.json", "stats.tfdv"):
        assert Path("later", name).read_bytes() == Path("out", name).read_bytes()
    report = verify_dataset("later")
    assert (report.findings, report.notes) == ((), ())


def test_an_append_adds_to_what_was_written_later(shardmill: Shardmill) -> None:
    convert(stats=False)
    assert shardmill("stats", "out", "--write").code == 0
    Path("b.csv").write_text(f"{ROWS[0]}\n4,Eve,1.5,dog,2000-01-01\n")
    run_append(
        conversion_of(
            load_config({"input": {"paths": ["b.csv"]}, "output": {"path": "out"}}, command="append"), "append"
        )
    )
    stats = open_dataset("out").stats
    assert stats is not None
    numbers = stats.splits["train"].features["id"].numbers
    assert numbers is not None
    assert (stats.records, numbers.mean) == (4, 2.5)
    assert "stats.json" in open_dataset("out").manifest.sidecars


@pytest.mark.parametrize("of", ["json", "features"])
def test_the_records_are_counted_again_where_stats_json_is_damaged(shardmill: Shardmill, of: str) -> None:
    convert()
    stats = Path("out/stats.json")
    stats.write_text("{" if of == "json" else stats.read_text().replace('"name"', '"unknown"'))
    assert lines(shardmill("stats", "out", "--write").out)[:7] == lines(SCREEN)
    assert verify_dataset("out").ok


def test_files_of_other_writers_are_counted_by_split(shardmill: Shardmill) -> None:
    convert(stats=False)
    os.mkdir("files")
    for name in ("train-00000-of-00002", "train-00001-of-00002", "val-00000-of-00001"):
        shutil.copy("out/train-00000.tfrecord", f"files/{name}.tfrecord")
    screen = shardmill("stats", "files", "--json")
    splits = json.loads(screen.out)["splits"]
    assert {name: split["records"] for name, split in splits.items()} == {"train": 6, "val": 3}
    assert splits["train"]["features"]["id"]["numbers"]["mean"] == 2.0


def test_full_adds_median_distinct_and_the_most_frequent_values(shardmill: Shardmill) -> None:
    convert(stats=True)
    shown = {line.split()[0]: line.rstrip() for line in shardmill("stats", "out", "--full").out.splitlines() if line}
    assert shown["id"].endswith("median 2; 3 distinct")
    assert shown["kind"].endswith("cat 2, dog 1; 2 distinct")
    assert shown["price"].endswith("1 NaN; median 0.5; 1 distinct")
    Path("a.csv").write_text("name,x\n" + "Ann,0.1\n" * 3 + "Bob,0.1\n" * 2)
    config = {
        "input": {"paths": ["a.csv"]},
        "schema": {"columns": {"x": {"type": "float32"}}},
        "output": {"path": "few"},
    }
    run_convert(conversion_of(load_config(config | {"stats": True})))
    shown = {line.split()[0]: line.rstrip() for line in shardmill("stats", "few").out.splitlines() if line}
    assert shown["name"].endswith("2 distinct; Ann 3, Bob 2")
    assert shown["x"].endswith("median 0.1; 1 distinct; 0.1 5")


def test_counts_that_are_estimated_are_called_so(shardmill: Shardmill) -> None:
    names = ["x0" if i % 2 else f"x{i // 2}" for i in range(30_000)]
    convert_rows(data={"name": names}, output="many", stats=True)
    (line,) = (line for line in shardmill("stats", "many").out.splitlines() if line.startswith("name"))
    assert re.search(r"about [0-9,]+ distinct; x0 about [0-9,]+(, x[0-9]+ about [0-9,]+)*$", line.rstrip()), line


def test_json_has_all_figures(shardmill: Shardmill) -> None:
    convert()
    document = json.loads(shardmill("stats", "out", "--json").out)
    written = json.loads(Path("out/stats.json").read_text())
    assert document["splits"] == written["splits"]
    assert (document["generation"], document["level"], document["written"]) == (1, "basic", [])


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["nothing"], 2, "nothing"),
        (["files", "--write"], 2, "shardmill merge files -o FOLDER --set stats=true"),
        (["opaque"], 2, "no Examples"),
        (["plain"], 2, "plain bytes"),
    ],
)
def test_what_cannot_be_counted_is_said_in_one_line(
    shardmill: Shardmill, arguments: list[str], code: int, text: str
) -> None:
    convert(stats=False)
    os.mkdir("files")
    os.mkdir("opaque")
    shutil.copy("out/train-00000.tfrecord", "files/train-00000.tfrecord")
    write_records("opaque/a.tfrecord", [b"\xff" * 9])
    opaque = {"format": "tfrecord", "paths": ["opaque"], "records": "opaque"}
    run_convert(conversion_of(load_config({"input": opaque, "output": {"path": "plain"}})))
    screen = shardmill("stats", *arguments)
    assert screen.code == code
    assert text in screen.err
    assert screen.err.startswith("error: ")
    assert screen.err.count("\n") == 1


def test_a_record_that_is_no_example_is_named_by_its_number(shardmill: Shardmill) -> None:
    convert()
    records = [*read_records(Path("out/train-00000.tfrecord"))]
    write_records(Path("odd.tfrecord"), [*(records * 2000), b"\xff"])
    screen = shardmill("stats", "odd.tfrecord")
    before = 2000 * sum(len(record) + 16 for record in records)
    said = f"odd.tfrecord record {2000 * len(records)} at byte {before}: it is not a tf.train.Example"
    assert (screen.code, said in screen.err) == (3, True), screen.err


def test_a_damaged_shard_is_named(shardmill: Shardmill) -> None:
    convert(stats=False)
    path = Path("out/train-00000.tfrecord")
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    screen = shardmill("stats", "out")
    assert screen.code == 3
    assert "out/train-00000.tfrecord" in screen.err
