"""The registry of formats: one that the product has never heard of, given to it by a line of the table alone."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines import append, convert
from shardmill.pipelines.config.load import load_config
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError, InputError, SchemaError
from shardmill.transforms.inputs.contract.source import map_in_turn
from shardmill.transforms.inputs.contract.tasks import decode_pieces, encode_pieces
from shardmill.transforms.inputs.files.file_names import FORMATS, FormatEntry
from shardmill.transforms.read import pick_source
from shardmill.transforms.recipe.source import RecipeSource
from shardmill.transforms.recognise.rules import Look

from ...command_line import Shardmill
from ...file_sources import made_source
from .kv import format as kv_format


@pytest.fixture
def kv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(FORMATS, "kv", FormatEntry(kv_format.__name__, (".kv",), (b"#kv\n",), "a kv file"))
    monkeypatch.chdir(tmp_path)
    Path("a.kv").write_text("a:1\nb:2=3\n")
    return tmp_path


def rows_of(path: str = "out") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = open_dataset(path).to_arrow("train").to_pylist()
    return rows


@pytest.mark.usefixtures("kv")
class TestAFormatOfOneFolderAndOneLine:
    def test_the_command_line_converts_it_with_an_option_of_its_own(self, shardmill: Shardmill) -> None:
        done = shardmill("convert", "a.kv", "-o", "out", "--set", "input.sign=:")
        assert (done.code, rows_of()) == (0, [{"key": "a", "value": "1"}, {"key": "b", "value": "2=3"}])
        assert open_dataset("out").manifest.source.format == "kv"

    def test_its_files_are_found_by_their_suffix_in_a_folder_of_others(self, shardmill: Shardmill) -> None:
        Path("in").mkdir()
        Path("in/b.KV").write_text("c=4\n")
        Path("in/README").write_text("no data\n")
        assert shardmill("convert", "in", "-o", "out").code == 0
        assert rows_of() == [{"key": "c", "value": "4"}]

    def test_an_unknown_key_is_told_its_keys_and_a_bad_value_its_check(self) -> None:
        for key, value, said in [
            ("sgn", "=", 'unknown key; did you mean "sign"?'),
            (
                "zzz",
                "=",
                "keys here: paths, columns, exclude_columns, limit, where, ignore, splits, detect, check, format, sign",
            ),
            ("delimiter", ";", "unknown key for kv; it is a key of csv input"),
            ("sign", 1, "--set"),
        ]:
            flags = {f"input.{key}": ("--set", value), "output.path": "out"}
            with pytest.raises(ConfigError, match=re.escape(said)):
                load_config(None, paths=["a.kv"], flags=flags)

    def test_it_is_among_the_choices_where_the_format_is_wrong_or_unclear(self) -> None:
        others = list(FORMATS)[1:]
        assert others[-1] == "kv"
        with pytest.raises(ConfigError, match=f"choices: csv, {', '.join(others)}"):
            load_config(None, paths=["a.kv"], flags={"input.format": "vk", "output.path": "out"})
        Path("a.dat").write_text("a=1\n")
        with pytest.raises(ConfigError, match=re.escape(f"--set input.format=csv (or {', '.join(others)})")):
            load_config(None, paths=["a.dat"], flags={"output.path": "out"})

    def test_init_writes_its_starter_text_and_looks_at_its_columns(self, shardmill: Shardmill) -> None:
        done = shardmill("init", "a.kv", "-o", "-", "--set", "input.sign=:")
        assert "  format: kv\n" in done.out
        assert "  sign: ':'\n  # columns: [key, value]\n" in done.out
        Path("c.yaml").write_text(done.out)
        assert shardmill("convert", "c.yaml", "-o", "out").code == 0
        assert len(rows_of()) == 2

    def test_it_is_appended_to_a_dataset_under_its_schema(self) -> None:
        convert("a.kv", output="out", sign=":")
        Path("b.kv").write_text("c:3\n")
        append(["a.kv", "b.kv"], output="out", sign=":")
        assert [row["key"] for row in rows_of()] == ["a", "b", "c"]
        Path("b.csv").write_text("key\nd\n")
        with pytest.raises(SchemaError, match="1 feature missing"):
            append("b.csv", output="out")

    def test_types_are_refused_by_name_where_it_does_not_say_that_it_takes_them(
        self, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(kv_format.KvFormat, "takes_types", False)
        done = shardmill("convert", "a.kv", "-o", "out", "--set", "schema.columns.value.type=bytes")
        assert done.code == 2
        assert 'schema.columns: types do not go with kv yet; leave those of "value" out' in done.err
        done = shardmill("convert", "a.kv", "-o", "out", "--set", "input.sign=:", "--set", "schema.columns.key.name=k")
        assert (done.code, rows_of()[0]) == (0, {"k": "a", "value": "1"})

    def test_columns_are_kept_by_a_step_and_types_by_the_source_that_takes_them(self, shardmill: Shardmill) -> None:
        assert shardmill("convert", "a.kv", "-o", "out", "--columns", "v*", "--set", "input.sign=:").code == 0
        assert rows_of() == [{"value": "1"}, {"value": "2=3"}]
        assert shardmill("convert", "a.kv", "-o", "rest", "--set", "input.sign=:", "--exclude-columns", "v*").code == 0
        assert rows_of("rest") == [{"key": "a"}, {"key": "b"}]
        convert("a.kv", output="bytes", sign=":", schema={"columns": {"value": {"type": "bytes"}}})
        assert rows_of("bytes")[0] == {"key": "a", "value": b"1"}
        for setting, said in [
            ("input.columns=[vale]", 'input.columns names "vale", which is not a column'),
            ("schema.columns.value.type=int64", 'declares type "int64", but it holds string'),
            ("schema.columns.vale.type=bytes", 'schema.columns names "vale", which is not a column'),
        ]:
            done = shardmill("convert", "a.kv", "-o", "none", "--set", "input.sign=:", "--set", setting)
            assert done.code == 2
            assert said in done.err

    def test_a_bad_file_is_named(self, shardmill: Shardmill) -> None:
        Path("bad.kv").write_bytes(b"a=\xff\n")
        done = shardmill("convert", "bad.kv", "-o", "out")
        assert (done.code, done.err) == (1, "error: bad.kv: is not UTF-8; convert it before\n")

    def test_a_recipe_runs_over_its_rows(self) -> None:
        convert("a.kv", output="out", sign=":", schema={"columns": {"key": {"name": "name"}}}, limit=1)
        assert rows_of() == [{"name": "a", "value": "1"}]

    def test_it_is_shuffled_without_a_line_of_its_own(self) -> None:
        Path("many.kv").write_text("".join(f"{number}:x\n" for number in range(100)))
        convert("many.kv", output="out", sign=":", shuffle={"seed": 1})
        keys = [row["key"] for row in rows_of()]
        assert sorted(keys, key=int) == [str(number) for number in range(100)]
        assert keys != sorted(keys, key=int)

    def test_read_rows_picks_its_source(self) -> None:
        picked = pick_source(["a.kv"])
        assert isinstance(picked, RecipeSource)
        assert picked.source == kv_format.KvSource(("a.kv",), str(Path.cwd()), "=")
        assert not picked.recipe.steps

    def test_its_pieces_with_values_of_their_own_go_to_workers_as_text(self) -> None:
        source = kv_format.KvSource(("a.kv",), str(Path.cwd()), ":")
        pieces = source.survey(source.list_files(), map_in_turn).pieces
        assert decode_pieces(encode_pieces(pieces)) == tuple(pieces)

    def test_its_first_bytes_are_known_where_its_file_has_another_suffix(self) -> None:
        Path("a.csv").write_text("#kv\na=1\n")
        with pytest.raises(Exception, match=r"a\.csv: is a kv file; read it as one: --format kv"):
            convert("a.csv", output="out")


def test_every_format_is_picked_with_the_options_and_limits_of_a_config_that_says_nothing(tmp_path: Path) -> None:
    from shardmill.pipelines.prepare.from_config import conversion_of

    for name, file in (("csv", "a.csv"), ("parquet", "a.parquet"), ("images", "a.jpg"), ("numpy", "a.npy")):
        (tmp_path / file).write_text("a\n1\n")
        config = load_config({"input": {"format": name, "paths": [str(tmp_path / file)]}, "output": {"path": "out"}})
        assert repr(conversion_of(config).source) == repr(pick_source([str(tmp_path / file)], config.base))


def test_a_folder_of_a_dataset_is_of_records_though_its_lists_are_lines_of_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("a\n1\nx\n")
    columns = {"a": {"type": "int64"}}
    convert("a.csv", output="out", max_rejects=1, schema={"columns": columns})
    assert list(Path("out").glob("rejects/*.jsonl"))
    assert Look(["out"]).detect() == "tfrecord"
    Path("out/more.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="several kinds of files"):
        Look(["out"]).detect()


def test_formats_are_named_and_their_options_checked_without_pyarrow_and_beam(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from shardmill.transforms.inputs.files.file_names import FORMATS\n"
        "for name, entry in FORMATS.items():\n"
        "    options = entry.load().options.model_validate({'format': name, 'paths': ['a']})\n"
        "    entry.load().starter(options, '[a]', 'a')\n"
        "print([name for name in ('apache_beam', 'pyarrow', 'numpy', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("kind", FORMATS)
def test_a_worker_gets_a_source_without_loading_what_checks_its_options(kind: str, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(
        pickle.dumps(made_source(kind, ["a"], **({"images": ["a"]} if kind == "yolo" else {})))
    )
    code = "import pickle, sys; pickle.load(open('source', 'rb')); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "False\n"
