"""Lists of one length, lists with nulls, odd values and blank lines: what a newcomer's records have."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from shardmill.pipelines import convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import SchemaError

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def put(name: str, *rows: Mapping[str, Any]) -> None:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def column(name: str, path: str = "out") -> list[Any]:
    found: list[Any] = open_dataset(path)["train"].to_arrow()[name].to_pylist()
    return found


@pytest.mark.parametrize(
    ("usual", "odd", "said"),
    [("u-{}", 17, '"17" is an integer, and not text'), (1, "u-17", '"u-17" is text, and not an integer')],
)
def test_an_odd_id_rejects_its_row_and_names_it(shardmill: Shardmill, usual: Any, odd: Any, said: str) -> None:
    ids = [usual.format(i) if isinstance(usual, str) else usual + i for i in range(400)]
    ids[250] = odd
    put("users.jsonl", *({"id": one, "n": i} for i, one in enumerate(ids)))
    failed = shardmill("convert", "users.jsonl", "-o", "out")
    assert failed.code != 0
    assert f'users.jsonl line 251: column "id": BAD_TYPE: {said}' in failed.err + failed.out
    done = shardmill("convert", "users.jsonl", "-o", "out", "--max-rejects", "1")
    assert done.code == 0, done.err
    assert column("id") == [one for one in ids if one != odd]
    assert (
        "but for 1 (the first in users.jsonl line 251"
        in shardmill("convert", "users.jsonl", "-o", "x", "--dry-run").out
    )
    kept = shardmill("convert", "users.jsonl", "-o", "out", "--set", "schema.columns.id.type=string", "--overwrite")
    assert kept.code == 0, kept.err
    assert column("id") == [str(one) for one in ids]


def test_more_than_a_tenth_of_odd_values_has_no_type(shardmill: Shardmill) -> None:
    put("users.jsonl", *({"id": str(i) if i % 10 else i} for i in range(40)), {"id": 7})
    refused = shardmill("convert", "users.jsonl", "-o", "out")
    assert refused.code == 2
    assert "users.jsonl line 1: a value is an integer, and in users.jsonl line 2 text; fix one" in refused.err


def test_the_dataset_of_an_append_says_which_values_are_odd(shardmill: Shardmill) -> None:
    put("a.jsonl", {"id": "a"}, {"id": "b"})
    assert shardmill("convert", "a.jsonl", "-o", "out").code == 0
    put("b.jsonl", {"id": 1}, {"id": 2}, {"id": "c"})
    done = shardmill("append", "b.jsonl", "-o", "out", "--max-rejects", "2")
    assert done.code == 0, done.err
    assert column("id") == ["a", "b", "c"]


@pytest.mark.parametrize("odd", [{"id": 7}, {"text": "7"}])
def test_an_odd_value_of_an_archive_rejects_its_sample(shardmill: Shardmill, odd: dict[str, Any]) -> None:
    with tarfile.open("a.tar", "w") as archive:
        for i in range(20):
            one = {"id": f"u-{i}", "text": "words"} | (odd if i == 11 else {})
            for suffix, data in ((".json", json.dumps({"id": one["id"]})), (".txt", one["text"])):
                member = tarfile.TarInfo(f"{i:02}{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data.encode()))
    done = shardmill("convert", "a.tar", "-o", "out", "--max-rejects", "1")
    assert done.code == 0, done.err
    assert column("id") == [f"u-{i}" for i in range(20) if "text" in odd or i != 11]


def test_blank_lines_are_counted(shardmill: Shardmill) -> None:
    text = '\n{"a": 1}\n\n  \n{"a": 2}\n\n'
    Path("a.jsonl").write_text(text)
    Path("b.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    Path("c.jsonl").write_text('{"a": 3}\n' + "\n" * 3_000_000 + '{"a": 4}')
    done = shardmill("convert", "a.jsonl", "b.jsonl.gz", "c.jsonl", "-o", "out")
    assert done.code == 0, done.err
    said = done.out + done.err
    assert "a.jsonl: 4 blank lines skipped" in said
    assert "b.jsonl.gz: 4 blank lines skipped" in said
    assert "c.jsonl: 3,000,000 blank lines skipped" in said
    assert column("a") == [1, 2, 1, 2, 3, 4]


VECTORS = {"id": ["a", "b", "c", "d"], "v": [[1.0, 2.0, 3.0], [4.0, None, 6.0], None, [7.0, 8.0, 9.0]]}
LONGER = {"id": ["e", "f"], "v": [[1.0, 2.0], [0.0, 1.0, 2.0]]}
FILL = ("--set", "schema.columns.v.null_item=0")
FIXED = ("--set", "schema.columns.v.length=3")


def files(name: str, values: Mapping[str, list[Any]]) -> dict[str, str]:
    """Write rows in each format; return the files."""
    table = pa.table({"id": values["id"], "v": pa.array(values["v"], pa.list_(pa.float64()))})
    put(f"{name}.jsonl", *table.to_pylist())
    pq.write_table(table, f"{name}.parquet")
    feather.write_feather(table, f"{name}.arrow", compression="uncompressed")
    cells = (
        "{},{}\n".format(i, "" if v is None else f'"{json.dumps(v)}"')
        for i, v in zip(values["id"], values["v"], strict=True)
    )
    Path(f"{name}.csv").write_text("id,v\n" + "".join(cells))
    return {form: f"{name}.{form}" for form in ("jsonl", "parquet", "arrow", "csv")}


def options(form: str, *more: str) -> list[str]:
    return ["--set", "schema.columns.v.as=list", *more] if form == "csv" else [*more]


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow", "csv"])
def test_lists_are_held_to_a_length_and_their_nulls_filled(shardmill: Shardmill, form: str) -> None:
    file, more = files("a", VECTORS)[form], files("b", LONGER)[form]
    failed = shardmill("convert", file, "-o", "out", *options(form))
    assert failed.code != 0
    assert "schema.columns.v.null_item=nan" in failed.err, failed.err
    told = shardmill("convert", file, "-o", "told", *options(form, "--set", "schema.columns.v.null_item=nan"))
    assert told.code == 0, told.err
    done = shardmill("convert", file, "-o", "out", *options(form, *FIXED, *FILL))
    assert done.code == 0, done.err
    assert column("v") == [[1, 2, 3], [4, 0, 6], None, [7, 8, 9]]
    (feature,) = (one for one in open_dataset("out").manifest.schema or () if one.name == "v")
    assert feature.shape == (3,)
    assert json.loads(Path("out/features.json").read_text())["featuresDict"]["features"]["v"]["tensor"]["shape"] == {
        "dimensions": ["3"]
    }
    rejected = shardmill("append", more, "-o", "out")
    assert rejected.code != 0
    assert (
        'column "v": BAD_WIDTH: "[1.0, 2.0]" has 2 items, and lists of the dataset have 3; fix the file' in rejected.err
    )
    done = shardmill("append", more, "-o", "out", "--max-rejects", "1")
    assert done.code == 0, done.err
    assert column("v")[-1] == [0, 1, 2]
    put("none.jsonl", {"id": "g", "v": None}, {"id": "h"})
    done = shardmill("append", "none.jsonl", "-o", "out")
    assert done.code == 0, done.err
    assert column("v")[-2:] == [None, None]


def test_a_length_is_one_of_readers_masks_and_data_in_memory(shardmill: Shardmill) -> None:
    columns = {"v": {"length": 3, "null": "mask", "null_item": 7}}
    rows = {"v": [[1, 2, None], None, [4, 5, 6]]}
    convert(data=pa.table(rows), output="out", schema={"columns": columns})
    assert column("v") == [[1, 2, 7], None, [4, 5, 6]]
    held = [json.loads(line)["features"] for line in shardmill("inspect", "out", "--json").out.splitlines()]
    assert held == [{"v": v, "v/mask": [m]} for v, m in (([1, 2, 7], 1), ([0, 0, 0], 0), ([4, 5, 6], 1))]
    said = shardmill("snippet", "tf", "out").out
    assert '"v": tf.io.FixedLenFeature([3], tf.int64' in said, said
    fixed = pa.table({"v": pa.array([[1, 2, 3]], pa.list_(pa.int64(), 3))})
    with pytest.raises(SchemaError, match=r'column "v": length is 2, and the file says .* shape \[3\]; leave the key'):
        convert(data=fixed, output="x", schema={"columns": {"v": {"length": 2}}})
    convert(data=fixed, output="x", schema={"columns": {"v": {"length": 3}}})
    assert column("v", "x") == [[1, 2, 3]]
    plain = pa.table({"v": [[1, 2, 3], [4, 5, 6]]})
    convert(data=plain, output="y", schema={"columns": {"v": {"length": 3}}}, map=lambda batch: batch)
    assert open_dataset("y")["train"].to_numpy()["v"].shape == (2, 3)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("null_item", "none", "null_item is 'none', which is no value of the items of its lists, double; give one: "),
        ("null_item", True, "null_item is True, which is no value of the items of its lists, double; give one: "),
        ("length", 0, "schema.columns.v.length: 0 is "),
        ("length", 3, 'column "id": length is of lists of plain values, and the column holds string; leave the key'),
    ],
    ids=["text", "bool", "no length", "no list"],
)
def test_a_key_of_lists_that_does_not_fit_says_so(shardmill: Shardmill, key: str, value: Any, said: str) -> None:
    files("a", VECTORS)
    name = "id" if "id" in said else "v"
    refused = shardmill("convert", "a.jsonl", "-o", "out", "--set", f"schema.columns.{name}.{key}={json.dumps(value)}")
    assert refused.code == 2
    assert said in refused.err
    if key == "null_item":
        fix = shlex.split(refused.err.partition("give one: ")[2])
        assert shardmill("convert", "a.jsonl", "-o", "out", *fix).code == 0


def test_nulls_in_lists_of_lists_are_filled_as_the_reject_says(shardmill: Shardmill) -> None:
    put("m.jsonl", {"m": [[1, None], []], "tags": ["a", None]}, {"m": [[2]], "tags": []})
    failed = shardmill("convert", "m.jsonl", "-o", "out")
    fixes = ["--set", "schema.columns.m.null_item=-1", "--set", "schema.columns.tags.null_item=unknown"]
    assert all(" ".join(fixes[at : at + 2]) in failed.err for at in (0, 2)), failed.err
    done = shardmill("convert", "m.jsonl", "-o", "out", *fixes)
    assert done.code == 0, done.err
    assert column("m") == [[[1, -1], []], [[2]]]
    assert column("tags") == [["a", "unknown"], []]
