"""`init`: the config that it writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines.cli import main
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.first_look.starter import starter_text
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import ConfigError

from ...command_line import Shardmill
from ...examples import example_from_values


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("a.csv", "csv"),
        ("a.tsv", "csv"),
        ("a.parquet", "parquet"),
        ("a.npy", "numpy"),
        ("a.jpg", "images"),
        ("a.tfrecord", "tfrecord"),
    ],
)
def test_the_config_loads_and_names_the_sources_from_its_own_folder(
    file: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    if kind == "parquet":
        pq.write_table(pa.table({"a": [1]}), tmp_path / "data" / file)
    elif kind == "numpy":
        np.save(tmp_path / "data" / file, np.arange(3))
    elif kind == "tfrecord":
        write_records(tmp_path / "data" / file, [example_from_values({"a": [1]}).SerializeToString()])
    else:
        (tmp_path / "data" / file).write_text("a\tb\n1\t2\n" if file.endswith(".tsv") else "a,b\n1,2\n")
    (tmp_path / "conf").mkdir()
    monkeypatch.chdir(tmp_path)
    Path("conf/My Pets.yaml").write_text(starter_text([f"data/{file}"], "conf/My Pets.yaml"))
    config = load_config("conf/My Pets.yaml")
    assert config.input is not None
    assert (config.input.format, config.input.paths) == (kind, [str(tmp_path / "data" / file)])
    assert config.output.path == str(tmp_path / "conf/out/my_pets")
    plain = load_config(
        {"input": {"format": kind, "paths": [f"data/{file}"]}, "output": {"path": "o"}, "name": "my_pets"}
    )
    assert {**config.to_json(), "input": None, "output": None} == {**plain.to_json(), "input": None, "output": None}


def test_the_commands_that_init_prints_quote_the_path_of_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shardmill: Shardmill
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my c [0].csv").write_text("a,b\n1,2\n")
    screen = shardmill("init", "my c [0].csv", "-o", "my c.yaml")
    assert (screen.code, screen.err) == (0, "Wrote my c.yaml; now: shardmill convert 'my c.yaml' --dry-run\n")
    assert "# Run it: shardmill convert 'my c.yaml'\n" in Path("my c.yaml").read_text()
    assert shardmill("convert", "my c.yaml", "--dry-run").code == 0


def test_names_that_yaml_would_misread_are_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a: b.csv", "[x], 'y'.csv", "#.csv"):
        Path(name).write_text("x\n1\n")
        Path("c.yaml").write_text(starter_text([name], "c.yaml"))
        config = load_config("c.yaml")
        assert config.input is not None
        assert config.input.paths == [name]


def test_sources_that_are_not_there_or_of_no_known_kind_are_input_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.doc").write_text("x")
    with pytest.raises(ConfigError, match=r"gone\.csv: no such file"):
        starter_text(["gone.csv"], "c.yaml")
    with pytest.raises(ConfigError, match="unknown kind of file"):
        starter_text(["a.doc"], "c.yaml")


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        (["zip,order_id,n", "1,7,1", "2,7,2", "3,8,3"], "key: order_id}"),
        (["name,Patient", "Ada,x1", "Bob,x1", "Eve,x2"], "key: Patient}"),
        (["zip,order_id,n", "1,7,1", "2,8,2"], "val: 0.1}}"),
        (["n,x", "1,0.5", "1,1.5"], "val: 0.1}}"),
        (["user_id", "7"], "val: 0.1}}"),
        (["user_id,x", "1,1", "1,1", ",2"], "val: 0.1}}"),
    ],
)
def test_the_key_of_a_split_is_a_column_whose_equal_values_belong_together_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str], key: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("\n".join(rows) + "\n")
    text = starter_text(["a.csv"], "c.yaml")
    (line,) = [line for line in text.splitlines() if line.startswith("# split: ")]
    assert key in line
    assert f"  # columns: [{rows[0].replace(',', ', ')}]" in text.splitlines()
    Path("c.yaml").write_text(text.replace("# split:", "split:").replace("  # columns:", "  columns:"))
    load_config("c.yaml")


def test_images_have_no_key_and_what_is_set_is_in_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pets").mkdir()
    Path("pets/a.jpg").write_bytes(b"x")
    assert "key:" not in starter_text(["pets"], "c.yaml")
    Path("a.txt").write_bytes("1;caf\xe9\n2;x\n".encode("cp1252"))
    args = ["--format", "csv", "--delimiter", ";", "--no-header", "--set", "input.encoding=cp1252"]
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "init",
                "a.txt",
                *args,
                "--set",
                "max_rejects=1%",
                "--set",
                "schema.columns.column_0.type=string",
                "-o",
                "-",
            ]
        )
    assert ended.value.code == 0
    lines = [line.split("  #")[0].rstrip() for line in capsys.readouterr().out.splitlines()]
    for line in ("  format: csv", "  delimiter: ;", "  header: false", "  encoding: cp1252", "max_rejects: 1%"):
        assert line in lines
    assert "  columns: {column_0: {type: string}}" in lines
    Path("c.yaml").write_text("\n".join(lines) + "\n")
    assert load_config("c.yaml").max_rejects == "1%"


def test_what_an_error_advises_init_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_bytes("a,b\n1,caf\xe9\n".encode("cp1252"))
    with pytest.raises(SystemExit):
        main(["init", "a.csv", "-o", "-"])
    assert "--set input.encoding=cp1252" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["init", "a.csv", "-o", "-", "--set", "input.encoding=cp1252"])
    assert ended.value.code == 0


def test_init_looks_at_the_table_below_titles_and_says_so_as_the_other_screens_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shardmill: Shardmill
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text(
        "Sales;;\n;;\nshop;n;day\n" + "".join(f"{'ab'[n % 2]};{n};0{n}.01.2024\n" for n in range(1, 10))
    )
    assert shardmill("init", "a.csv", "-o", "c.yaml").code == 0
    text = Path("c.yaml").read_text()
    assert (
        "# Warning: a.csv: the first line looks like a title; to begin with the header: --set input.skip_lines=2"
        in text
    )
    assert ("  skip_lines: 2\n" in text, "day: {format: '%d.%m.%Y'}" in text, "column_1" in text) == (True, True, False)
    for words in (("-o", "out"), ("-o", "two", "--dry-run")):
        screen = shardmill("convert", "a.csv", *words).out
        assert ("looks like a title" in screen, "the first line is the header" in screen) == (True, False)
