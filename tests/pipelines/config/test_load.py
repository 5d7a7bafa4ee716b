"""The config: what it takes, what beats what, and what it says when it is wrong."""

from __future__ import annotations

import pickle
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.model import Config
from shardmill.transforms.errors import ConfigError

EVERY_KEY = """\
version: 1
name: people
input:
  format: csv
  paths: [data/*.csv]
  delimiter: ","
  quote: '"'
  header: true
  names: null
  columns: null
  exclude_columns: []
  limit: null
  encoding: utf-8
  null_values: [""]
schema:
  infer: auto
  columns: {}
  constants: {}
split: null
shuffle: null
output: {path: out/people, shard_size: 128MiB, compression: none, order: task, split: train,
         shard_name: "{split}-{index:05d}", sidecars: [tfds, tfx], if_exists: refuse}
accept_map: false
max_rejects: 0
limits: {field_bytes: 64MiB, record_bytes: 1GiB, columns: 100000, pixels: 50000000, image_bytes: 256MiB,
         batch_bytes: 256MiB}
runner: {name: local, workers: auto, processes: auto, resume: true}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("x\n1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problems(text: str, **overrides: Any) -> list[str]:
    """Load a config that is wrong, and return the lines of its error."""
    Path("c.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config("c.yaml", **overrides)
    lines = str(caught.value).splitlines()
    return [lines[0], *(line.removeprefix("  ") for line in lines[1:])]


def minimal(extra: str) -> str:
    return f"input: {{format: csv, paths: [data/a.csv]}}\noutput: {{path: out}}\n{extra}\n"


TABS = "indent with spaces, not tabs"


class TestValues:
    def test_every_key_with_its_default_is_the_same_config_as_none_of_them(self, folder: Path) -> None:
        Path("full.yaml").write_text(EVERY_KEY)
        Path("short.yaml").write_text("input: {paths: [data/*.csv]}\noutput: {path: out/people}")
        full, short = load_config("full.yaml"), load_config("short.yaml")
        assert full == short
        assert full.to_json() == {
            "version": 1,
            "name": "people",
            "input": {
                "paths": ["data/*.csv"],
                "columns": None,
                "exclude_columns": [],
                "limit": None,
                "where": None,
                "ignore": [],
                "splits": None,
                "detect": None,
                "check": "structure",
                "format": "csv",
                "delimiter": ",",
                "quote": '"',
                "header": True,
                "names": None,
                "row_names": None,
                "encoding": "utf-8",
                "null_values": [""],
                "skip_lines": 0,
                "comment": None,
                "escape": None,
                "trim": False,
                "short_rows": "reject",
                "repeated_header": "keep",
                "partitions": None,
                "columns_differ": "refuse",
            },
            "schema": {
                "infer": "auto",
                "columns": {},
                "constants": {},
                "classes": {},
                "files_root": None,
                "files_suffix": None,
                "boxes": "reject",
                "box_format": "xywh",
            },
            "split": None,
            "shuffle": None,
            "image": None,
            "checks": None,
            "output": {
                "path": str(folder / "out/people"),
                "shard_size": 134217728,
                "compression": "none",
                "order": "task",
                "split": "train",
                "shard_name": "{split}-{index:05d}",
                "sidecars": ["tfds", "tfx"],
                "index": "binary",
                "if_exists": "refuse",
            },
            "stats": "basic",
            "accept_map": False,
            "max_rejects": 0,
            "limits": {
                "field_bytes": 67108864,
                "record_bytes": 1073741824,
                "columns": 100000,
                "pixels": 50000000,
                "image_bytes": 268435456,
                "batch_bytes": 268435456,
            },
            "runner": {"name": "local", "workers": "auto", "processes": "auto", "resume": True},
        }

    @pytest.mark.parametrize(
        ("section", "expected"),
        [
            (
                "{format: parquet, paths: [t], columns: [id, fare], checksums: false}",
                {
                    "format": "parquet",
                    "paths": ["t"],
                    "columns": ["id", "fare"],
                    "exclude_columns": [],
                    "limit": None,
                    "where": None,
                    "ignore": [],
                    "splits": None,
                    "detect": None,
                    "check": "structure",
                    "checksums": False,
                    "partitions": None,
                    "columns_differ": "refuse",
                },
            ),
            (
                "{format: images, paths: [t]}",
                {
                    "format": "images",
                    "paths": ["t"],
                    "columns": None,
                    "exclude_columns": [],
                    "limit": None,
                    "where": None,
                    "ignore": [],
                    "splits": None,
                    "detect": None,
                    "check": "structure",
                    "layout": "auto",
                    "label_offset": 0,
                    "labels": None,
                    "metadata": None,
                    "annotations": None,
                    "sha256": False,
                    "formats": ["jpeg", "png", "gif", "webp", "bmp"],
                },
            ),
            (
                "{format: numpy, paths: [t]}",
                {
                    "format": "numpy",
                    "paths": ["t"],
                    "columns": None,
                    "exclude_columns": [],
                    "limit": None,
                    "where": None,
                    "ignore": [],
                    "splits": None,
                    "detect": None,
                    "check": "structure",
                    "rows": False,
                    "feature": "array",
                },
            ),
            (
                "{format: tfrecord, paths: [t]}",
                {
                    "format": "tfrecord",
                    "paths": ["t"],
                    "columns": None,
                    "exclude_columns": [],
                    "limit": None,
                    "where": None,
                    "ignore": [],
                    "splits": None,
                    "detect": None,
                    "check": "structure",
                    "records": "example",
                    "columns_differ": "refuse",
                    "drop": None,
                    "drop_where": None,
                },
            ),
            (
                "{format: arrow, paths: [t]}",
                {
                    "format": "arrow",
                    "paths": ["t"],
                    "columns": None,
                    "exclude_columns": [],
                    "limit": None,
                    "where": None,
                    "ignore": [],
                    "splits": None,
                    "detect": None,
                    "check": "structure",
                    "partitions": None,
                    "columns_differ": "refuse",
                },
            ),
            (
                "{format: txt, paths: [t]}",
                {
                    "format": "txt",
                    "paths": ["t"],
                    "columns": None,
                    "exclude_columns": [],
                    "limit": None,
                    "where": None,
                    "ignore": [],
                    "splits": None,
                    "detect": None,
                    "check": "structure",
                    "partitions": None,
                },
            ),
            (
                "{format: jsonl, paths: [t]}",
                {
                    "format": "jsonl",
                    "paths": ["t"],
                    "columns": None,
                    "exclude_columns": [],
                    "limit": None,
                    "where": None,
                    "ignore": [],
                    "splits": None,
                    "detect": None,
                    "check": "structure",
                    "partitions": None,
                },
            ),
        ],
    )
    def test_each_format_has_its_own_keys_and_defaults(
        self, folder: Path, section: str, expected: dict[str, object]
    ) -> None:
        Path("c.yaml").write_text(f"input: {section}\noutput: {{path: out}}")
        assert load_config("c.yaml").to_json()["input"] == expected

    @pytest.mark.parametrize(
        ("section", "delimiter"),
        [
            ("paths: [tabs]", "\t"),
            ("paths: [tabs/a.tsv]", "\t"),
            ("format: csv, paths: ['tabs/*']", "\t"),
            ("paths: [tabs], delimiter: ','", ","),
            ("paths: [tabs, data/a.csv]", ","),
            ("format: csv, paths: [not/yet.tsv]", ","),
        ],
    )
    def test_the_delimiter_is_a_tab_where_all_files_are_tsv_and_none_is_given(
        self, folder: Path, section: str, delimiter: str
    ) -> None:
        Path("tabs").mkdir()
        for name in ("a.tsv", "B.TSV.gz"):
            (Path("tabs") / name).write_text("x\ty\n1\t2\n")
        config = load_config(yaml.safe_load(f"{{input: {{{section}}}, output: {{path: out}}}}"))
        assert config.to_json()["input"]["delimiter"] == delimiter
        told = load_config(config.to_json())
        assert (told, told.to_json()) == (config, config.to_json())

    @pytest.mark.parametrize(
        ("typed", "sign"),
        [(",", ","), ("|", "|"), (";", ";"), ("\\t", "\t"), ("\t", "\t"), ("tab", "\t"), ("'|'", "|")],
    )
    def test_a_sign_that_is_set_is_taken_as_it_is_typed(self, folder: Path, typed: str, sign: str) -> None:
        config = load_config(None, set_values=[f"input.delimiter={typed}", "output.path=out"], paths=["data/a.csv"])
        assert config.to_json()["input"]["delimiter"] == sign

    def test_columns_of_a_schema_may_have_any_name(self, folder: Path) -> None:
        Path("c.yaml").write_text(
            minimal("schema: {columns: {no: {type: int64}, 5: {type: string}, a.b: {as: bytes}, when: {unit: us}}}")
        )
        columns = load_config("c.yaml").schema_.columns
        assert list(columns) == ["no", "5", "a.b", "when"]
        assert (columns["no"].type, columns["a.b"].as_, columns["when"].unit) == ("int64", "bytes", "us")

    @pytest.mark.parametrize(("value", "kept"), [(3, 3), ("7", 7), ("1%", "1%"), ("0.5 %", "0.5%"), ("100%", "100%")])
    def test_max_rejects_is_a_number_or_a_percentage(self, folder: Path, value: object, kept: object) -> None:
        assert load_config({"output": {"path": "o"}, "max_rejects": value}, data_given=True).max_rejects == kept

    def test_the_other_name_of_the_local_runner_is_the_same_runner(self, folder: Path) -> None:
        config = load_config({"output": {"path": "o"}, "runner": {"name": "DirectRunner"}}, data_given=True)
        assert config.runner.name == "local"

    def test_a_byte_order_mark_before_the_config_does_not_matter(self, folder: Path) -> None:
        Path("c.yaml").write_bytes(b"\xef\xbb\xbf" + minimal("").encode())
        assert load_config("c.yaml").name == "out"

    def test_a_config_crosses_a_pickle_with_its_folder(self, folder: Path) -> None:
        config = load_config(None, paths=["data/a.csv"], flags={"output.path": "o"})
        again = pickle.loads(pickle.dumps(config))
        assert (again, again.base, again.to_json()) == (config, str(folder), config.to_json())


class TestPaths:
    def test_paths_of_a_file_are_relative_to_its_folder_and_those_of_the_command_line_to_the_working_folder(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (folder / "conf").mkdir()
        (folder / "conf/c.yaml").write_text("input: {paths: [../data/a.csv]}\noutput: {path: ../out}")
        config = load_config("conf/c.yaml")
        assert config.base == str(folder / "conf")
        assert config.input is not None
        assert config.input.paths == [str(folder / "data/a.csv")]  # not below the config's folder
        assert config.output.path == str(folder / "out")
        assert load_config("conf/c.yaml", set_values=["output.path=there"]).output.path == str(folder / "there")
        assert load_config("conf/c.yaml", flags={"output.path": ("-o", "there")}).output.path == str(folder / "there")
        on_line = load_config("conf/c.yaml", paths=["data/a.csv"])
        assert on_line.input is not None
        assert (on_line.base, on_line.input.paths) == (str(folder), ["data/a.csv"])
        by_set = load_config("conf/c.yaml", set_values=["input.paths=[data/a.csv]"])
        assert by_set.input is not None
        assert by_set.input.paths == [str(folder / "data/a.csv")]

    def test_the_format_is_told_by_the_suffixes_of_the_files(self, folder: Path) -> None:
        (folder / "data/b.parquet").write_bytes(b"PAR1")
        for path, kind in (("data/*.csv", "csv"), ("data/b.parquet", "parquet")):
            config = load_config(None, paths=[path], flags={"output.path": "o"})
            assert config.input is not None
            assert config.input.format == kind

    def test_the_name_is_made_from_the_output_folder(self, folder: Path) -> None:
        assert load_config({"output": {"path": "out/My Pets-2"}}, data_given=True).name == "my_pets_2"


class TestPrecedence:
    def test_a_flag_beats_set_and_set_beats_the_file(self, folder: Path) -> None:
        Path("c.yaml").write_text(minimal("max_rejects: 1"))
        assert load_config("c.yaml").max_rejects == 1
        assert load_config("c.yaml", set_values=["max_rejects=2"]).max_rejects == 2
        assert load_config("c.yaml", set_values=["max_rejects=2", "max_rejects=3"]).max_rejects == 3
        assert load_config("c.yaml", set_values=["max_rejects=2"], flags={"max_rejects": 4}).max_rejects == 4

    def test_set_values_are_yaml_and_names_with_dots_are_quoted(self, folder: Path) -> None:
        Path("c.yaml").write_text(minimal(""))
        config = load_config(
            "c.yaml",
            set_values=[
                'schema.columns."a.b".type=string',
                "schema.columns.price={type: float32}",
                "split.fractions={train: 0.5, val: 0.5}",
                "output.sidecars=[]",
                "input.null_values=['', 'a=b']",
                "output.shard_size=1GB",
            ],
        )
        assert {name: rule.type for name, rule in config.schema_.columns.items()} == {
            "a.b": "string",
            "price": "float32",
        }
        assert config.split is not None
        assert config.split.fractions == {"train": 0.5, "val": 0.5}
        assert (config.output.sidecars, config.output.shard_size) == ([], 10**9)
        assert config.to_json()["input"]["null_values"] == ["", "a=b"]


class TestProblems:
    @pytest.mark.parametrize(
        ("extra", "problem"),
        [
            ("shard_size: 1GB", "c.yaml:3:1: shard_size: unknown key; did you mean output.shard_size?"),
            ("limit: {pixels: 5}", 'c.yaml:3:1: limit: unknown key; did you mean "limits"?'),
            ("limits: {pixel: 5}", 'c.yaml:3:10: limits.pixel: unknown key; did you mean "pixels"?'),
            ("runner: {zzz: 5}", "c.yaml:3:10: runner.zzz: unknown key; keys here: name, workers, processes, resume"),
            ("version: 2", "c.yaml:3:1: version: 2 is not a choice; choices: 1"),
            (
                "name: 2024-Pets",
                'c.yaml:3:1: name: "2024-Pets" is not a name: lowercase letters, digits and _, starting with a letter',
            ),
            (
                "schema: {columns: {price: {type: strin}}}",
                'c.yaml:3:28: schema.columns.price.type: "strin" is not a choice; did you mean "string"? choices: '
                "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, string, "
                "bytes, binary, date, time, timestamp, duration, int, float, double, text",
            ),
            (
                "schema: {columns: {price: string}}",
                'c.yaml:3:20: schema.columns.price: "string" is not a mapping: write price: {type: string}',
            ),
            (
                "max_rejects: 101%",
                'c.yaml:3:1: max_rejects: "101%" is not a number of rows (0 or more) or a percentage of them ("1%")',
            ),
            (
                "max_rejects: -1",
                'c.yaml:3:1: max_rejects: -1 is not a number of rows (0 or more) or a percentage of them ("1%")',
            ),
            ("limits: {field_bytes: 0}", "c.yaml:3:10: limits.field_bytes: must be at least 1 byte"),
            ("limits: {columns: 0}", "c.yaml:3:10: limits.columns: 0 is out of bounds; it must be at least 1"),
            ("limits: {columns: 1.5}", "c.yaml:3:10: limits.columns: 1.5 is not a whole number"),
            (
                "limits: {field_bytes: 64M}",
                'c.yaml:3:10: limits.field_bytes: "64M": "M" is not a unit of size; write 64MiB or 64MB',
            ),
            (
                "runner: {name: spark}",
                'c.yaml:3:10: runner.name: "spark" is not a runner; choices: local, flink, dataflow',
            ),
            (
                "runner: {name: flink, master: 'http://flink.example:8081'}",
                'c.yaml:3:23: runner.master: "http://flink.example:8081" is not a cluster\'s address, host:port, and '
                'not "[local]"; did you mean "flink.example:8081"?',
            ),
            (
                "runner: {name: flink, master: local}",
                'c.yaml:3:23: runner.master: "local" is not a cluster\'s address, host:port, and not "[local]"; '
                'did you mean "[local]"?',
            ),
            (
                "runner: {name: flink, worker_pool: 'localhost:70000'}",
                'c.yaml:3:23: runner.worker_pool: "localhost:70000" is not an address, host:port',
            ),
            (
                "runner: {master: 'flink.example:8081'}",
                "c.yaml:3:10: runner.master: unknown key for the local runner; it is a key of flink",
            ),
            (
                "runner: {workers: 0}",
                "c.yaml:3:10: runner.workers: 0 is not a number of workers (1 to 256) or auto",
            ),
            (
                "split: {fractions: {a: 0.9, b: 0.2}}",
                "c.yaml:3:1: split: fractions: they add up to 1.1, and must add up to 1",
            ),
            (
                "split: {fractions: {A: 1.0}}",
                'c.yaml:3:21: split.fractions.A: "A" is not a name: lowercase letters, digits and _, '
                "starting with a letter",
            ),
            (
                "split: {fractions: {a: 2}}",
                "c.yaml:3:21: split.fractions.a: 2 is out of bounds; it must be at most 1.0",
            ),
            (
                "split: {key: id}",
                "c.yaml:3:9: split.key: says no splits; add fractions: {train: 0.9, val: 0.1} or folds: 5",
            ),
            ("name: yes", "c.yaml:3:1: name: yes is read as true or false, and text is wanted; put it in quotes"),
            (
                "name: 2024-01-01",
                "c.yaml:3:1: name: 2024-01-01 is read as a date, and text is wanted; put it in quotes",
            ),
            ("name: a\nname: b", "c.yaml:4:1: name: the key appears twice; the first is on line 3"),
            (
                "name: !!python/name:os.system x",
                'c.yaml:3:7: "x": the tag tag:yaml.org,2002:python/name:os.system is not for a config; write plain '
                "YAML, and text in quotes",
            ),
            ("name: [", "c.yaml:4:1: is not YAML: expected the node content, but found '<stream end>'"),
            *(
                (extra, f"c.yaml:{place}: is not YAML: found character '\\t' that cannot start any token; {TABS}")
                for extra, place in (
                    ("schema:\n\tcolumns: {}", "4:1"),
                    ("schema:\n  columns: {}\n\tx: {}", "5:1"),
                    ("schema: {columns: {},\n\tx: {}}", "4:1"),
                    ("schema:\n  x:\n  - a\n \t- b", "6:2"),
                )
            ),
            ("name: @x", "c.yaml:3:7: is not YAML: found character '@' that cannot start any token"),
            ("? [a, b]\n: c", "c.yaml:3:3: a key must be plain text"),
        ],
    )
    def test_a_wrong_value_is_one_line_with_its_place_and_a_mend(self, folder: Path, extra: str, problem: str) -> None:
        assert problems(minimal(extra)) == [problem]

    @pytest.mark.parametrize("values", [("data", "out"), ("[data/a.csv, 'data/[a]*.csv']", "'a: b'")])
    def test_a_value_in_the_place_of_its_mapping_gets_the_mapping_to_write(
        self, folder: Path, values: tuple[str, str]
    ) -> None:
        found = problems(f"input: {values[0]}\noutput: {values[1]}\nrunner: flink\n")
        assert [line.partition(": ")[2].partition(" is not a mapping")[0].split(":")[0] for line in found[1:]] == [
            "input", "output", "runner",
        ]  # fmt: skip
        Path("c.yaml").write_text("\n".join(line.partition(" is not a mapping: write ")[2] for line in found[1:]))
        config = load_config("c.yaml")
        assert (config.runner.name, config.output.path.endswith(yaml.safe_load(values[1]))) == ("flink", True)
        assert list(config.input.paths) == (["data"] if values[0] == "data" else yaml.safe_load(values[0]))

    def test_a_value_that_no_mapping_can_hold_gets_an_example(self, folder: Path) -> None:
        assert problems("input: 3\noutput: {path: out}") == ["c.yaml:1:1: input: 3 is not a mapping, like {a: b}"]

    @pytest.mark.parametrize(
        ("section", "problem"),
        [
            ("{delimeter: ;}", 'c.yaml:1:23: input.delimeter: unknown key; did you mean "delimiter"?'),
            (
                "{label_offset: 1}",
                "c.yaml:1:23: input.label_offset: unknown key for csv; it is a key of images and voc and yolo and "
                "boxes input",
            ),
            ("{header: 'no'}", 'c.yaml:1:23: input.header: "no" is not true or false'),
            (
                "{columns: [a, no]}",
                "c.yaml:1:36: input.columns[1]: no is read as true or false, and text is wanted; put it in quotes",
            ),
            ("{delimiter: '||'}", 'c.yaml:1:23: input.delimiter: "||" is not one ASCII character'),
            ("{delimiter: '\"'}", 'c.yaml:1:1: input: delimiter and quote are both """; they must differ'),
            (
                "{encoding: utf8000}",
                'c.yaml:1:23: input.encoding: "utf8000" is not an encoding that Python knows, like '
                "utf-8, latin-1, utf-16",
            ),
            ("{columns: []}", "c.yaml:1:23: input.columns: is an empty list; name at least one, or leave the key out"),
            ("{columns: [a, b, a]}", 'c.yaml:1:1: input: columns: "a" appears twice'),
            ("{columns: a}", 'c.yaml:1:23: input.columns: "a" is not a list: write [a]'),
        ],
    )
    def test_a_wrong_input_key_is_told_with_its_format(self, folder: Path, section: str, problem: str) -> None:
        text = f"input: {{paths: [data],{section[1:-1]}}}\noutput: {{path: out}}"
        assert problems(text) == [problem]

    @pytest.mark.parametrize(
        ("section", "problem"),
        [
            ("shard_size: 64KB", "c.yaml:2:21: output.shard_size: 64000 bytes is too small; the least is 64KiB"),
            (
                "compression: zip",
                'c.yaml:2:21: output.compression: "zip" is not a choice; did you mean "gzip"? choices: none, gzip',
            ),
            (
                "sidecars: [tfds, tfe]",
                'c.yaml:2:38: output.sidecars[1]: "tfe" is not a choice; did you mean "tfx"? '
                "choices: tfds, tfx, croissant, label_map, index",
            ),
            (
                "shard_name: x",
                'c.yaml:2:21: output.shard_name: shard_name "x" gives shards the same name: {split} and {index} are '
                'needed; use letters, digits, "._=-", and the fields of "{split}-{index:05d}" or "{count:05d}"',
            ),
        ],
    )
    def test_a_wrong_output_key_is_told(self, folder: Path, section: str, problem: str) -> None:
        text = f"input: {{paths: [data]}}\noutput: {{path: out, {section}}}"
        assert problems(text) == [problem]

    def test_a_path_on_another_store_is_told_to_come(self, folder: Path) -> None:
        text = "input: {format: csv, paths: [data, 'ftp://b/x', 's3://A:pw@b/x']}\noutput: {path: 'ftp://b/out'}"
        assert problems(text) == [
            "c.yaml: 3 problems",
            'c.yaml:1:36: input.paths[1]: "ftp://b/x": ftp:// is not supported; give a local path, s3://bucket/path or '
            "gs://bucket/path",
            "c.yaml:1:49: input.paths[2]: s3://…@b/x: credentials have no place in a URL; leave them to the "
            "environment (a profile, a role, variables)",
            'c.yaml:2:10: output.path: "ftp://b/out": ftp:// is not supported; give a local path, s3://bucket/path or '
            "gs://bucket/path",
        ]

    def test_all_problems_are_told_at_once_in_the_order_of_the_file(self, folder: Path) -> None:
        text = "version: 3\ninput:\n  format: cvs\n  paths: data\noutput:\n  shard_size: 1M\n  shard_size: 1K\n"
        assert problems(
            text, set_values=["runner.workers=no", "a", "name.b=5"], flags={"max_rejects": ("--max-rejects", "x")}
        ) == [
            "c.yaml: 10 problems",
            "c.yaml:1:1: version: 3 is not a choice; choices: 1",
            'c.yaml:3:3: input.format: "cvs" is not a choice; did you mean "csv"? choices: csv, parquet, images, '
            "numpy, tfrecord, jsonl, arrow, txt, coco, voc, yolo, boxes, tar, zip",
            'c.yaml:4:3: input.paths: "data" is not a list: write [data]',
            "c.yaml:5:1: output.path: is missing; say where to write: -o out/",
            'c.yaml:6:3: output.shard_size: "1M": "M" is not a unit of size; write 1MiB or 1MB',
            "c.yaml:7:3: output.shard_size: the key appears twice; the first is on line 6",
            '--set a: is not "key=value", like output.shard_size=256MiB',
            "--set name.b=5: name: a mapping is not text",
            '--max-rejects: max_rejects: "x" is not a number of rows (0 or more) or a percentage of them ("1%")',
            "--set runner.workers=no: runner.workers: False is not a number of workers (1 to 256) or auto",
        ]

    @pytest.mark.parametrize(
        ("form", "problem"),
        [
            (
                "format: cvs",
                'c.yaml:2:3: input.format: "cvs" is not a choice; did you mean "csv"? choices: csv, parquet, images, '
                "numpy, tfrecord, jsonl, arrow, txt, coco, voc, yolo, boxes, tar, zip",
            ),
            (
                "format: [csv]",
                "c.yaml:2:3: input.format: a list is not a choice; choices: csv, parquet, images, numpy, tfrecord, "
                "jsonl, arrow, txt, coco, voc, yolo, boxes, tar, zip",
            ),
            ("columns: []", "c.yaml:2:3: input.columns: is an empty list; name at least one, or leave the key out"),
        ],
    )
    def test_an_input_of_no_known_format_hides_nothing_that_is_wrong_with_its_other_keys(
        self, folder: Path, form: str, problem: str
    ) -> None:
        text = f"input:\n  {form}\n  pathes: [data]\n  delimiter: ab\n  rows: 7\noutput: {{path: out}}\n"
        assert problems(text) == [
            "c.yaml: 5 problems",
            "c.yaml:1:1: input.paths: is missing; name files, globs or folders to read",
            problem,
            'c.yaml:3:3: input.pathes: unknown key; did you mean "paths"?',
            'c.yaml:4:3: input.delimiter: "ab" is not one ASCII character',
            "c.yaml:5:3: input.rows: 7 is not true or false",
        ]

    def test_a_set_value_with_signs_of_yaml_is_told_how_it_is_quoted(self, folder: Path) -> None:
        (line,) = problems(minimal(""), set_values=["output.shard_name={split}-{index:05d}"])
        assert line == (
            "--set output.shard_name={split}-{index:05d}: the value is not YAML: expected '<document start>', but "
            "found '<scalar>'; text with such signs needs quotes inside: "
            "--set 'output.shard_name=\"{split}-{index:05d}\"'"
        )
        (_, mend) = shlex.split(line[line.rindex("--set ") :])
        assert load_config("c.yaml", set_values=[mend]).output.shard_name == "{split}-{index:05d}"
        (line,) = problems(minimal(""), set_values=['name="a'])
        assert line.endswith("found unexpected end of stream")

    @pytest.mark.parametrize("typed", ["*.txt", '"*.txt"', "[*.txt]"])
    def test_the_way_that_is_told_to_set_a_list_of_globs_works(self, folder: Path, typed: str) -> None:
        text = "input: {format: images, paths: [data]}\noutput: {path: out}\n"
        (line,) = problems(text, set_values=[f"input.ignore={typed}"])
        *_, written = shlex.split(line) if typed.startswith("[") else [f"input.ignore={line.partition('write ')[2]}"]
        config = load_config("c.yaml", set_values=[written])
        assert config.to_json()["input"]["ignore"] == ["*.txt"]

    def test_an_empty_config_says_what_is_needed(self, folder: Path) -> None:
        assert problems("") == [
            "c.yaml: 2 problems",
            "c.yaml:1:1: input: is missing; say what to read: input: {paths: [data/*.csv]}",
            "c.yaml:1:1: output: is missing; say where to write: output: {path: out/} (or -o out/)",
        ]

    def test_a_config_that_is_a_list_or_text_is_refused(self, folder: Path) -> None:
        assert problems("- a") == ['c.yaml:1:1: a config is a mapping of keys, like "input: {...}"']

    def test_a_path_that_matches_nothing_is_told_where_it_is_written(self, folder: Path) -> None:
        text = "input:\n  paths: [nothing/*.csv]\noutput: {path: out}"
        assert problems(text) == [
            f"c.yaml:2:3: input.paths: nothing/*.csv: no such file or folder (looked in {folder})"
        ]

    def test_aliases_that_mean_billions_of_values_are_refused(self, folder: Path) -> None:
        bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        bomb += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
        assert problems(bomb) == ["c.yaml:1:1: is far too large or too deep for a config"]

    @pytest.mark.thorough("a document of many megabytes is parsed by Python")
    def test_a_config_of_millions_of_values_is_refused_while_it_is_read(self, folder: Path) -> None:
        assert problems("a: [" + "b," * 3_000_000 + "]") == ["c.yaml:1:1: is far too large or too deep for a config"]

    def test_a_scalar_that_its_tag_does_not_fit_is_told(self, folder: Path) -> None:
        for tag in ("timestamp", "bool", "int", "float", "binary"):
            (line,) = problems(minimal(f"name: !!{tag} x"))[:1]
            assert f"the tag tag:yaml.org,2002:{tag} is not for a config" in line

    def test_an_alias_to_itself_is_refused(self, folder: Path) -> None:
        assert problems("input: &a [*a]") == ["c.yaml:1:1: is far too large or too deep for a config"]

    def test_a_config_that_cannot_be_read_is_an_error_of_one_line(self, folder: Path) -> None:
        with pytest.raises(ConfigError, match=r"^gone.yaml: the config cannot be read: No such file or directory$"):
            load_config("gone.yaml")
        Path("c.yaml").write_bytes(b"name: \xff")
        with pytest.raises(ConfigError, match=r"^c.yaml: the config is not UTF-8 at byte 6$"):
            load_config("c.yaml")

    def test_control_characters_in_a_value_do_not_reach_the_terminal(self, folder: Path) -> None:
        (line,) = problems(minimal('name: "a\\e[2J"'))
        assert "\x1b" not in line
        assert r"\x1b[2J" in line


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from([*Config.model_fields, "schema", "x"])


@given(st.dictionaries(keys, json_values, max_size=5), st.sampled_from(["csv", "parquet", "images", "x", None]))
def test_whatever_stands_in_a_config_the_answer_is_a_config_or_a_config_error(
    values: dict[str, object], kind: str | None
) -> None:
    values.setdefault("output", {"path": "o"})
    if isinstance(values.get("input", {}), dict):
        values["input"] = {**values.get("input", {}), "format": kind, "paths": ["x.csv"]}  # type: ignore[dict-item]
    text = yaml.safe_dump(values, allow_unicode=True)
    for source in (values, yaml.safe_load(text)):
        with suppress(ConfigError):
            assert load_config(source).output.path


def test_a_mapping_that_is_given_in_python_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pics").mkdir()
    (tmp_path / "pics" / "1.png").write_bytes(b"")
    (tmp_path / "pics" / "metadata.csv").write_text("file_name\n1.png\n")
    given: dict[str, object] = {"paths": ["pics"]}
    assert load_config(None, flags={"input": given, "output.path": "out"}).input is not None
    assert given == {"paths": ["pics"]}
