"""What `init` sees in ugly data of each source: columns, types, reasons, records; and the config runs as it is."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import yaml
from jsonschema import Draft7Validator
from shardmill.pipelines.first_look.starter import PACKAGED, starter_text
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.format.wording.printable import printable

from ...archives import picture, sample, tar_of
from ...command_line import Shardmill
from ...examples import example_from_values

SCHEMA = Draft7Validator(json.loads(PACKAGED.read_text()))


def ugly_csv() -> list[str]:
    """A mark of UTF-8, semicolons, mixed line ends, quoted lines, signs of YAML in names, a row that is too short."""
    rows = ['\ufeffid;# a: b;zip;"two\nlines";price;[x]', '1;yes;01234;"a\n- b: c";1,5;{}', "2;no;00007;;2;'"]
    rows += [f'{number};yes;1;"# {number}";3;\t' for number in range(3, 60)] + ["short;row"]
    Path("a.csv").write_bytes("\r\n".join(rows).encode() + b"\n61;yes;2;x;4;\xe2\x80\xa8")
    return ["a.csv"]


def ugly_parquet() -> list[str]:
    """Nested, null, decimal and dictionary columns, and a name that is empty."""
    table = pa.table(
        {
            "": pa.array([1, None, 3]),
            "a.b: c #": pa.array([{"x": [1, 2], "y": "é\n"}, None, {"x": [], "y": "#"}]),
            "price": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("2.00")]),
            "when": pa.array([dt.datetime(2024, 1, 31, tzinfo=dt.UTC)] * 3),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "blob": pa.array([b"\x00\xff", b"", None]),
            "nan": pa.array([float("nan"), float("inf"), 0.1]),
        }
    )
    pq.write_table(table, "ugly 'name'.parquet")
    return ["ugly 'name'.parquet"]


def ugly_jsonl() -> list[str]:
    """Members that are missing, blank lines, numbers that are whole here and not there, a line that is no object."""
    rows = [{"id": 1, "t": ["a"]}, {"id": 2.5, "u": {"v": None}}, {"id": None, "t": [], "é: #": True}, {"id": 10**17}]
    text = "\n\n".join(json.dumps(row) for row in rows * 5)
    Path("a.jsonl").write_text(f"{text}\n[1, 2]\n{{broken\n")
    return ["a.jsonl"]


def ugly_pictures() -> list[str]:
    """Folders of classes with names of YAML's signs, pictures that are cut, empty, or of another suffix."""
    for name in ("no", "- yes: #", "ü"):
        Path("pets", name).mkdir(parents=True)
        for number in range(6):
            Path("pets", name, f"{number}.jpg").write_bytes(picture(number))
    Path("pets/no/cut.jpg").write_bytes(picture(1)[:-20])
    Path("pets/no/empty.png").touch()
    Path("pets/no/really.png").write_bytes(picture(2))
    Path("pets/README.md").write_text("pets")
    return ["pets"]


def ugly_numpy() -> list[str]:
    """Arrays of several shapes in one archive, one of them not a number."""
    for number in range(3):
        arrays = {"pixels": np.full((2, 3), number, np.uint8), "name: #": np.array(True), "x": np.array(np.nan)}
        np.savez(f"{number}.npz", **arrays)
    return ["*.npz"]


def ugly_tfrecord() -> list[str]:
    """Records of others, of which a few lack a feature and some have lists of another length."""
    values = [{"a": [1]}, {"a": [1, 2], "b: #": [b"\xff\x00"]}, {"c": [0.5]}]
    write_records("a.tfrecord", [example_from_values(one).SerializeToString() for one in values])
    return ["a.tfrecord"]


def ugly_arrow() -> list[str]:
    with pa.ipc.new_file("a.arrow", pa.schema([("x y", pa.large_string()), ("n", pa.null())])) as file:
        file.write_table(pa.table({"x y": pa.array(["a", None], pa.large_string()), "n": pa.nulls(2)}))
    return ["a.arrow"]


def ugly_text() -> list[str]:
    Path("a.txt").write_bytes(b"one\r\n\n# two: 3\n" + b"caf\xc3\xa9\n" * 40 + b"\xff\n")
    return ["a.txt"]


def ugly_tar() -> list[str]:
    Path("a.tar").write_bytes(tar_of([*sample("1", 1, {"n": 1}), *sample("2", 2, {"n": None, "more: #": "x"})]))
    return ["a.tar"]


UGLY = {
    "csv": ugly_csv,
    "parquet": ugly_parquet,
    "jsonl": ugly_jsonl,
    "images": ugly_pictures,
    "numpy": ugly_numpy,
    "tfrecord": ugly_tfrecord,
    "arrow": ugly_arrow,
    "txt": ugly_text,
    "tar": ugly_tar,
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def starter(sources: list[str], **more: list[str]) -> str:
    return starter_text(sources, "c.yaml", **more)


@pytest.mark.parametrize("kind", UGLY)
def test_the_config_of_ugly_data_is_valid_and_runs_as_it_is(kind: str, shardmill: Shardmill) -> None:
    make: Callable[[], list[str]] = UGLY[kind]
    ended = shardmill("init", *make(), "-o", "conf.yaml")
    assert ended.code == 0, ended.err
    text = Path("conf.yaml").read_text()
    document = yaml.safe_load(text)
    assert list(SCHEMA.iter_errors(document)) == []
    assert document["input"]["format"] == kind
    ran = shardmill("convert", "conf.yaml", "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert summary["counts"]["written"] > 0
    head = text.partition("\nversion: 1\n")[0].splitlines()
    assert all(line.startswith("#") for line in head)
    rejected = re.search(r"^# Rejected: (\d+) rows? of these:$", text, re.MULTILINE)
    assert (int(rejected[1]) if rejected else 0) == summary["counts"]["rejected"]
    shown = re.findall(r"^#   (.*?)  +(?:int64|float|bytes)(?: list)? ", text, re.MULTILINE)
    assert sorted(shown) == sorted(printable(feature["name"]) or '""' for feature in summary["schema"])


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_the_column_that_is_kept_exact_is_the_first_of_float64_or_none_is_named(
    suffix: str, shardmill: Shardmill
) -> None:
    write = pq.write_table if suffix == "parquet" else pa.feather.write_feather
    doubles = {"id": [1, 2], "half": pa.array([1.0, 2.0], pa.float32()), "price: eur": [0.1, 0.2], "x": [1.0, 2.0]}
    write(pa.table(doubles), f"a.{suffix}")
    write(pa.table({"id": [1, 2], "name": ["a", "b"]}), f"b.{suffix}")
    (line,) = [line for line in starter([f"a.{suffix}"]).splitlines() if line.startswith("  columns: {}")]
    assert line == "  columns: {}                 # {'price: eur': {as: bytes}} keeps float64 exact"
    assert "  columns: {}" in starter([f"b.{suffix}"]).splitlines()
    assert shardmill("init", f"a.{suffix}", "-o", "a.yaml").code == 0
    Path("a.yaml").write_text(Path("a.yaml").read_text().replace(line, "  columns: {'price: eur': {as: bytes}}"))
    assert shardmill("convert", "a.yaml", "--dry-run").code == 0


def test_each_type_has_its_reason_and_three_records_are_shown() -> None:
    Path("a.csv").write_text("id,zip\n" + "".join(f"{number},0{number}\n" for number in range(10, 60)))
    text = starter(["a.csv"])
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "# Looked at: 50 rows (all) of 1 file, csv." in lines
    assert "# id int64 int64 no every value is an integer in 50 rows" in lines
    assert '# zip bytes string no "010" (a.csv row 1) has a leading zero, which a number would lose; 50 rows' in lines
    at = lines.index("# The first 3 records:")
    assert lines[at + 1 : at + 9] == ["#", "# id: 10", '# zip: "010"', "#", "# id: 11", '# zip: "011"', "#", "# id: 12"]


def test_rejects_that_were_seen_are_said_and_allowed_and_none_otherwise() -> None:
    Path("a.jsonl").write_text('{"a": 1}\n' * 97 + '{"a": 1, "a": 2}\n' * 3)
    text = starter(["a.jsonl"])
    assert "# Rejected: 3 rows of these:" in text
    assert "#   BAD_WIDTH 3" in text.splitlines()
    assert "max_rejects: 5%               # 3 of 100 rows were; 0 allows none" in text.splitlines()
    assert "max_rejects: 7" in starter(["a.jsonl"], set_values=["max_rejects=7"]).splitlines()
    Path("b.jsonl").write_text('{"a": 1}\n')
    assert yaml.safe_load(starter(["b.jsonl"]))["max_rejects"] == 0
    Path("c.jsonl").write_text('{"a": 1}\n' * 9 + '{"a": 1, "a": 2}\n' * 10)
    line = "max_rejects: 0                # 10 of 19 rows that were looked at are rejects: see above"
    assert line in starter(["c.jsonl"]).splitlines()


def test_long_values_long_lists_and_many_columns_are_cut() -> None:
    row = {f"c{number:02d}": number for number in range(30)} | {"a": "x" * 1000, "b": list(range(100))}
    Path("a.jsonl").write_text(json.dumps(row) + "\n")
    text = starter(["a.jsonl"])
    (line,) = [line for line in text.splitlines() if line.startswith("#   a: ")]
    assert line == f'#   a: "{"x" * 58}…'
    assert "#   b: 0, 1, 2, 3, and 96 more" in text.splitlines()
    assert "#   and 20 more features" in text.splitlines()


def test_much_data_is_looked_at_in_part_and_soon() -> None:
    line = b"1234567,some text of a row that is there to fill the file\n"
    with Path("a.csv").open("wb") as file:
        file.write(b"id,text\n")
        for _ in range(12):
            file.write(line * 100_000)
    text = starter(["a.csv"])
    assert "# Looked at: 10,000 rows (some) of 1 file, csv." in text
    assert "limit:" not in text.split()


def test_what_is_written_can_be_set_and_is_looked_at_so() -> None:
    Path("a.csv").write_text("1;2\n3;4\n")
    text = starter(["a.csv"], set_values=["input.header=false", "schema.columns.column_0.type=string"])
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "# column_0 bytes string no declared" in lines
    assert "# column_1 int64 int64 no every value is an integer in 2 rows" in lines
