"""What the screen shows: whole screens as literals, and that data cannot forge them."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path

import pytest
from shardmill.pipelines.outcomes.reject_groups import RejectedRun, group_rejects
from shardmill.pipelines.outcomes.summary import PlanReport, SplitEstimate, Summary
from shardmill.pipelines.screens.summary_screen import Screen
from shardmill.transforms.dataset.integrity.verify_shard import Finding, Report
from shardmill.transforms.errors import ConfigError, TooManyRejects
from shardmill.transforms.format.batches.rows import Narrowing
from shardmill.transforms.format.manifest.manifest import (
    Manifest,
    RejectSummary,
    RowCounts,
    ShardEntry,
    SourceSummary,
    SplitEntry,
)
from shardmill.transforms.format.schema.schema import Choice, Feature, Schema

from ...manifests import manifest_with

SCHEMA = Schema(
    (
        Feature("price", "float", "float64", nullable=True),
        Feature("taken", "int64", "timestamp", unit="us", timezone="UTC"),
        Feature("vec", "float", "float32", shape=(3, 2)),
        Feature("words", "bytes", "string", shape=(-1,)),
    )
)
CHOICES = (Choice("price", "float64", "all 25 values are numbers"), Choice("taken", "timestamp", "declared"))
REJECT = json.dumps(
    {
        "source": "data/a.csv",
        "split": None,
        "row": 1041,
        "line": 1047,
        "errors": [
            {
                "column": "price",
                "code": "BAD_TYPE",
                "value": "12,50",
                "expected": "float",
                "message": '"12,50" is not a float',
            }
        ],
    }
)


def manifest(
    compression: str = "none", *, sidecars: tuple[str, ...] = ("dataset_info.json",), rejected: int = 1
) -> Manifest:
    shards = (
        ShardEntry("train-00000.tfrecord", 1, 20, 65012, "9a71c4d0"),
        ShardEntry("train-00001.tfrecord", 1, 4, 59310, "03be5512"),
    )
    return manifest_with(
        name="pets",
        compression=compression,
        source=SourceSummary("csv", 2, 188204, "sources/00000001.jsonl", {"hidden": 1, "other": 0}),
        counts=RowCounts(24 + rejected, 24, rejected, 0),
        rejects=RejectSummary("rejects/00000001.jsonl" if rejected else None, rejected, {"BAD_TYPE": rejected}),
        schema=SCHEMA,
        narrowed=(Narrowing("price", "float64", "float32", 24, 5.9e-08, 2),),
        splits={"train": SplitEntry(24, 124322, 9112, "sum128:00", shards)},
        sidecars=sidecars,
    )


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def err() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def screen(out: io.StringIO, err: io.StringIO) -> Screen:
    return Screen(stdout=out, stderr=err)


def shown(stream: io.StringIO) -> str:
    return stream.getvalue().removesuffix("\n")


def test_the_summary_says_what_was_written_and_rejected_why_and_how_to_read_it(
    screen: Screen, out: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    summary = Summary(
        str(tmp_path / "out/pets"),
        manifest(),
        12.5,
        choices=CHOICES,
        warnings=("no checksums present",),
        first_rejects=(REJECT,),
        reject_groups=group_rejects([json.loads(REJECT)], RejectedRun(25, "csv")),
    )
    screen.summary(summary)
    assert shown(out) == SUMMARY


SUMMARY = """\
Wrote out/pets: 24 records in 2 shards, 121.4 KiB (generation 1).

split  records  shards      bytes           shard sizes
train       24       2  121.4 KiB  57.9 KiB to 63.5 KiB

Read 25 rows of 2 files (183.8 KiB): 24 written, 1 rejected
Left out: 1 hidden file
Warning: no checksums present

feature  kind        type                 nulls
price    float       float64              yes
taken    int64       timestamp (us, UTC)  no
vec      float list  float32[3, 2]        no
words    bytes list  list of string       no
Nulls possible in price: their records lack it, and TFDS reads the smallest number or empty text (docs/types.md, Nulls)
Narrowed price: float64 to float32, 24 values, relative error up to 5.9e-08, 2 became zero

Rejected 1 row (out/pets/rejects/00000001.jsonl):
  BAD_TYPE 1
  data/a.csv row 1041: column "price": BAD_TYPE: "12,50" is not a float

Read it:
  import tensorflow_datasets as tfds
  dataset = tfds.builder_from_directory('out/pets').as_dataset(split='train')
  for example in dataset.take(1): print(example)

Took 12.5 s, 2 rows/s, 0.02 MB/s read"""


def test_a_feature_without_a_name_is_shown_as_quotes_and_not_as_a_blank(screen: Screen, out: io.StringIO) -> None:
    nameless = Schema((Feature("", "int64", "int64"),))
    screen.summary(Summary("out/pets", dataclasses.replace(manifest(), schema=nameless), 0.5))
    assert '""       int64  int64  no' in shown(out)


def test_a_dataset_without_records_is_not_said_to_be_readable(screen: Screen, out: io.StringIO) -> None:
    screen.summary(Summary("out/pets", dataclasses.replace(manifest(), splits={}), 0.5))
    assert "Read it" not in shown(out)
    assert "builder_from_directory" not in shown(out)


def test_the_name_of_an_output_folder_cannot_forge_a_line(screen: Screen, out: io.StringIO) -> None:
    screen.summary(Summary("out/a\nWrote b\x1b[1m", manifest(), 0.5))
    assert shown(out).splitlines()[0].startswith(r"Wrote out/a\nWrote b\x1b[1m: 24 records in 2 shards")


def test_shards_of_one_size_are_shown_with_that_size(screen: Screen, out: io.StringIO) -> None:
    split = manifest().splits["train"]
    one = dataclasses.replace(split, shards=split.shards[:1])
    screen.summary(Summary("out/pets", dataclasses.replace(manifest(), splits={"train": one}), 0.5))
    assert "train       24       1  121.4 KiB     63.5 KiB" in shown(out)


def test_a_second_run_of_the_same_says_that_there_is_nothing_to_do(screen: Screen, out: io.StringIO) -> None:
    screen.summary(Summary("out/pets", manifest(rejected=0), 0.5, nothing_to_do=True))
    lines = shown(out).splitlines()
    assert lines[0] == "Nothing to do: generation 1 of out/pets holds it (24 records in 2 shards, 121.4 KiB)."
    assert len(lines) == 1


def test_rates_are_shown_of_ten_seconds_and_more_where_all_rows_were_read_by_this_run(
    screen: Screen, out: io.StringIO
) -> None:
    for seconds, done_before, shown_speed in (
        (0.9, 0, ""),
        (60.0, 0, "Took 60.0 s"),
        (20.0, 7, "Took 20.0 s"),
        (1.0, 0, "Took 1.0 s"),
        (9.9, 0, "Took 9.9 s"),
        (10.0, 0, "Took 10.0 s, 2 rows/s, 0.02 MB/s read"),
    ):
        out.truncate(0)
        screen.summary(Summary("out/pets", manifest(), seconds, done_before=done_before))
        assert [line for line in shown(out).splitlines() if line.startswith("Took")] == [shown_speed] * bool(
            shown_speed
        )


def test_features_are_in_the_order_of_the_source_and_train_is_what_is_read(screen: Screen, out: io.StringIO) -> None:
    base, split = manifest(), manifest().splits["train"]
    choices = tuple(Choice(name, "", "") for name in ("words", "vec", "taken", "price"))
    screen.summary(Summary("o", dataclasses.replace(base, splits={"a": split, "train": split}), 0.5, choices=choices))
    lines = shown(out).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("feature"))
    assert [line.split()[0] for line in lines[first + 1 : first + 5]] == ["words", "vec", "taken", "price"]
    assert "as_dataset(split='train')" in shown(out)


def test_a_compressed_dataset_is_read_without_tfds(screen: Screen, out: io.StringIO) -> None:
    screen.summary(Summary("out/pets", manifest("gzip", sidecars=()), 0.5))
    assert "Left out, as their readers do not read gzip: dataset_info.json (TFDS), index/ (DALI)" in shown(out)
    assert [line for line in shown(out).splitlines() if line.startswith("  ")][-3:] == [
        "  from shardmill.pipelines import open_dataset",
        "  dataset = open_dataset('out/pets')",
        "  for record in dataset.records('train'): ...  # bytes of one tf.train.Example",
    ]


def test_the_summary_as_json_is_one_document_with_the_same_facts(out: io.StringIO, err: io.StringIO) -> None:
    Screen(as_json=True, stdout=out, stderr=err).summary(
        Summary("out/pets", manifest(), 2.5, choices=CHOICES, first_rejects=(REJECT,))
    )
    (line,) = out.getvalue().splitlines()
    document = json.loads(line)
    assert document["counts"] == {"read": 25, "written": 24, "rejected": 1, "dropped": 0}
    assert document["splits"]["train"]["shards"][1] == {"path": "train-00001.tfrecord", "records": 4, "bytes": 59310}
    assert document["rejects"]["by_code"] == {"BAD_TYPE": 1}
    assert document["rejects"]["first"] == [json.loads(REJECT)]
    assert document["choices"][0]["reason"] == "all 25 values are numbers"
    assert (document["nothing_to_do"], document["seconds"]) == (False, 2.5)


PLAN = PlanReport(
    path="out/pets",
    name="pets",
    source_format="csv",
    files=2,
    bytes=188204,
    schema=SCHEMA,
    tasks=3,
    rows=25_000,
    splits=(SplitEstimate("train", 22_500, 1_900_000, 2), SplitEstimate("val", 2_500, 210_000, 1)),
    shard_size=2**20,
    rows_exact=True,
    skipped={"hidden": 2},
    choices=CHOICES,
)


def test_the_dry_run_shows_source_tasks_estimates_and_the_reason_of_each_type(screen: Screen, out: io.StringIO) -> None:
    screen.plan(PLAN)
    assert shown(out) == PLAN_SCREEN


PLAN_SCREEN = """\
Would write out/pets (dry run: nothing was written)
Source: csv, 2 files, 183.8 KiB, 25,000 rows
Left out: 2 hidden files
Tasks:  3; shards of 1.0 MiB, compression none

split       records            bytes  shards
train  about 22,500    about 1.8 MiB       2
val     about 2,500  about 205.1 KiB       1

feature  kind        type                 nulls  reason
price    float       float64              yes    all 25 values are numbers
taken    int64       timestamp (us, UTC)  no     declared
vec      float list  float32[3, 2]        no
words    bytes list  list of string       no"""


def test_the_dry_run_as_json_has_the_estimates(out: io.StringIO, err: io.StringIO) -> None:
    Screen(as_json=True, stdout=out, stderr=err).plan(PLAN)
    document = json.loads(out.getvalue())
    assert (document["dry_run"], document["tasks"], document["rows"]) == (True, 3, 25000)
    assert document["splits"]["val"] == {"records": 2500, "bytes": 210000, "shards": 1}


def test_a_schema_of_many_columns_is_cut_on_the_screen_and_whole_in_json(out: io.StringIO, err: io.StringIO) -> None:
    features = Schema(tuple(Feature(f"c{i:04d}", "int64", "int64") for i in range(500)))
    plan = PlanReport("o", "o", "csv", 1, 1, features, 1, 1, (), 65536)
    Screen(stdout=out, stderr=err).plan(plan)
    assert "c0199" in out.getvalue()
    assert "c0200" not in out.getvalue()
    assert "and 300 more features; to list all of them, add --json" in out.getvalue()
    assert len(plan.to_json()["schema"]) == 500


def test_quiet_prints_errors_only(out: io.StringIO, err: io.StringIO) -> None:
    screen = Screen(quiet=True, stdout=out, stderr=err)
    screen.summary(Summary("out/pets", manifest(), 2.5))
    screen.plan(PLAN)
    screen.note("a note")
    assert (out.getvalue(), err.getvalue()) == ("", "")
    screen.error(ConfigError("wrong"))
    assert err.getvalue() == "error: wrong\n"


def test_an_error_is_text_on_stderr_and_with_json_also_a_document_on_stdout(out: io.StringIO, err: io.StringIO) -> None:
    Screen(as_json=True, stdout=out, stderr=err).error(TooManyRejects("2 rows rejected\n  BAD_TYPE 2"))
    assert err.getvalue() == "error: 2 rows rejected\n  BAD_TYPE 2\n"
    assert json.loads(out.getvalue()) == {
        "error": {"type": "TooManyRejects", "exit_code": 4, "message": "2 rows rejected\n  BAD_TYPE 2"}
    }


def test_damage_is_shown_place_by_place(screen: Screen, out: io.StringIO) -> None:
    findings = (Finding("train-00000.tfrecord", "wrong CRC", 3, 120), Finding("manifest.json", "missing"))
    screen.verified(Report("out/pets", 1, 2, 24, 124322, findings, ("a note",)))
    assert shown(out).splitlines() == [
        "train-00000.tfrecord record 3 at byte 120: wrong CRC",
        "manifest.json: missing",
        "Note: a note",
        "Damaged, 2 findings: generation 1 of out/pets: 2 shards, 24 records, 121.4 KiB",
    ]


def test_a_sound_dataset_is_one_line(screen: Screen, out: io.StringIO) -> None:
    screen.verified(Report("out/pets", None, 1, 1, 100, ()))
    assert shown(out) == "OK: out/pets: 1 shard, 1 record, 100 B"


def test_what_data_hold_can_neither_forge_a_line_nor_move_the_cursor_nor_be_read_as_markup(
    out: io.StringIO, err: io.StringIO
) -> None:
    evil = "a\x1b[2J\r[red]b[/]:smile:\u202e"
    screen = Screen(stdout=out, stderr=err)
    reject = {"source": evil, "errors": [{"column": evil, "code": "BAD_TYPE", "message": evil}]}
    groups = group_rejects([reject], RejectedRun(25, "csv"))
    screen.summary(Summary("out/\x1b[0m", manifest(), 1, warnings=(evil,), reject_groups=groups))
    plan = PlanReport("o", "o", "csv", 1, 1, Schema((Feature(evil, "int64", "int64"),)), 1, 1, (), 65536)
    screen.plan(plan)
    screen.error(ConfigError(evil))
    base = manifest()
    odd = Schema((Feature("t", "int64", "timestamp", unit="us", timezone=evil),))
    skipped = dataclasses.replace(base.source, skipped={evil: 1})
    screen.summary(Summary("o", dataclasses.replace(base, schema=odd, source=skipped), 1))
    text = out.getvalue() + err.getvalue()
    assert not set("\x1b\r\u202e") & set(text)
    assert text.count("a\\x1b[2J\\r[red]b[/]:smile:\\u202e") == 8
