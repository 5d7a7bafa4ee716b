"""What everyone types first in Python: a path, rows, the dataset; and what comes back."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.pipelines.cli import main
from shardmill.pipelines.commands.flags import FLAGS
from shardmill.pipelines.runs.python_api import _key_of, load_call
from shardmill.transforms.errors import DataError, ShardmillWarning, TargetError, TooManyRejects, UsageError
from shardmill.transforms.sources.registry.options import CsvInput


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("id,name\n1,Ada\n2,Bob\n3,Cleo\n")
    return tmp_path


def test_a_path_is_converted_as_the_command_does_and_read_back(folder: Path) -> None:
    summary = convert("data.csv", output="out")
    size = sum(shard.bytes for shard in summary.manifest.own_shards)
    assert repr(summary) == f"<Summary {folder}/out: generation 1, 3 records in 1 shard, {size} B>"
    dataset = open_dataset("out")
    assert repr(dataset) == "<Dataset out: generation 1, records: train 3>"
    assert len(dataset) == len(dataset["train"]) == 3
    rows = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}, {"id": 3, "name": "Cleo"}]
    assert list(dataset) == list(dataset["train"]) == rows
    assert dataset["train"].to_pandas(columns=["id"]).id.tolist() == [1, 2, 3]
    assert "train" in dataset
    assert "val" not in dataset
    with pytest.raises(KeyError, match="no split 'val' in out; it has: train"):
        _ = dataset["val"]


def test_paths_globs_lists_and_configs_are_told_apart(folder: Path) -> None:
    (folder / "more.csv").write_text("id,name\n4,Dan\n")
    (folder / "c.yaml").write_text("input: {paths: [data.csv]}\noutput: {path: elsewhere}\n")
    for what, paths in (
        ("*.csv", ["*.csv"]),
        (folder / "data.csv", ["data.csv"]),
        (["data.csv", folder / "more.csv"], ["data.csv", "more.csv"]),
        (["c.yaml", "more.csv"], ["more.csv"]),
        ("c.yaml", ["data.csv"]),
    ):
        config = load_call(what, "out", {}, data_given=False)
        assert config.input is not None
        assert (config.input.paths, config.output.path) == (paths, str(folder / "out"))
    called = load_call("data.csv", "out", {"delimiter": ";", "header": False, "shard_size": "1MiB"}, data_given=False)
    assert isinstance(called.input, CsvInput)
    assert (called.input.delimiter, called.input.header, called.output.shard_size) == (";", False, 1 << 20)


def test_data_where_a_path_belongs_is_an_error_that_says_how(folder: Path) -> None:
    for data in ([{"id": 1}], pd.DataFrame({"id": [1]}), iter([])):
        with pytest.raises(DataError, match=r"nor a config; if it is the data: convert\(data=\.\.\., output=\.\.\.\)"):
            convert(data, output="out")  # type: ignore[arg-type]
    for data, fix in (
        (pd.Series([1, 2]), r'data=series.to_frame\("name"\)'),
        ("data.csv", r"a path is the first argument: convert\('data.csv', output=...\)"),
        (np.ones(3), r'give the array a name: data=\{"x": array\}'),
        ([1, 2], "list of int; pass a pandas DataFrame"),
        ({1, 2}, "data is a set; pass a pandas DataFrame"),
    ):
        with pytest.raises(TypeError, match=fix):
            convert(data=data, output="out")  # type: ignore[arg-type]
    assert not (folder / "out").exists()


@pytest.mark.parametrize("setting", [{"where": "id > 1"}, {"columns": ["id"]}, {"input__limit": 2}], ids=str)
def test_a_setting_of_files_beside_data_is_refused_by_its_name(folder: Path, setting: dict[str, object]) -> None:
    words = (
        f"{next(iter(setting))}: is a key of files, and the data are given in Python; choose rows and columns before"
    )
    for call in (convert, append):
        with pytest.raises(UsageError) as caught:
            call(data=[{"id": 1}], output=folder / "out", **setting)  # type: ignore[operator]
        assert str(caught.value) == words
    assert not (folder / "out").exists()


def test_dicts_in_a_list_and_from_a_generator_become_records(folder: Path) -> None:
    convert(data=[{"id": 1}, {"id": 2, "name": "Bob"}], output="out")
    append(data=({"name": f"n{i}", "id": i} for i in range(3, 5)), output="out")
    assert [tuple(row.values()) for row in open_dataset("out")] == [(1, None), (2, "Bob"), (3, "n3"), (4, "n4")]
    assert not (folder / "out/.staging").exists()


def test_a_generator_that_fails_leaves_its_error_and_no_folder(folder: Path) -> None:
    def rows() -> object:
        yield {"id": 1}
        raise ConnectionError("the database is gone")

    with pytest.raises(ConnectionError, match="the database is gone"):
        convert(data=rows(), output="out")  # type: ignore[arg-type]
    assert not (folder / "out").exists()


def test_warnings_are_those_of_python_at_the_line_of_the_call(folder: Path) -> None:
    (folder / "data.csv").write_text("id,n\n1,1\n\n2,2\n")
    with pytest.warns(ShardmillWarning, match=r"^data.csv: 1 blank line skipped$") as caught:
        convert("data.csv", output="out")
    assert [warning.filename for warning in caught] == [__file__]


def test_what_was_detected_is_said_before_an_error_that_may_come_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "data.csv").write_text("id;n\n1;1\n2;x\n")
    evidence = 'Detected: data.csv: the delimiter is ";": 2 columns in the first 3 records; if it is not: '
    with pytest.raises(TooManyRejects) as caught:
        convert("data.csv", output="out", schema__columns={"n": {"type": "int64"}})
    assert [note.startswith(evidence) for note in caught.value.__notes__] == [True]
    with pytest.raises(SystemExit):
        main(["convert", "data.csv", "-o", "out", "--set", "schema.columns.n.type=int64", "-q"])
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first.startswith(evidence)
    assert second.startswith("error: 1 of 2 rows was rejected")


def test_too_many_rejects_have_their_file_counts_and_codes(folder: Path) -> None:
    (folder / "data.csv").write_text("id,n\n1,1\n2,x\n3,3\n")
    with pytest.raises(TooManyRejects) as caught:
        convert("data.csv", output="out", schema__columns={"n": {"type": "int64"}})
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert (error.counts, error.codes) == ({"read": 3, "rejected": 1}, {"BAD_TYPE": 1})
        assert '"row": 2' in Path(str(error.path)).read_text()
        assert "1 of 3 rows was rejected" in str(error)


class TestSettingsThatAreCalledLikeFlags:
    def test_every_flag_of_convert_is_a_setting_of_its_name(self) -> None:
        here = {
            flag.name: flag for flag in FLAGS if "convert" in flag.commands.split() and flag.panel != "Dataflow options"
        }
        del here["output"], here["no_header"]  # an argument of its own, and `header=False`
        found = {name: _key_of(name, {"train": 1.0} if name == "split_fractions" else "x") for name in here}
        assert found == {name: flag.key for name, flag in here.items()}

    def test_overwrite_replaces_the_dataset_and_false_does_not(self, tmp_path: Path) -> None:
        for rows, settings in ((1, {"overwrite": False}), (2, {"overwrite": True})):
            convert(data=[{"id": i} for i in range(rows)], output=tmp_path / "out", **settings)
        with pytest.raises(TargetError):
            convert(data=[{"id": 7}], output=tmp_path / "out", overwrite=False)
        with pytest.raises(UsageError, match="overwrite: 1 is neither True nor False"):
            convert(data=[{"id": 7}], output=tmp_path / "out", overwrite=1)
        assert len(open_dataset(tmp_path / "out")) == 2

    def test_splits_and_a_shuffle_are_given_as_on_the_command_line(self, tmp_path: Path) -> None:
        rows = [{"id": i} for i in range(100)]
        flags = {"split_fractions": {"train": 0.5, "val": 0.5}, "split_key": "id", "shuffle": 7, "workers": 2}
        keys = {"split": {"fractions": {"train": 0.5, "val": 0.5}, "key": "id"}, "shuffle__seed": 7}
        convert(data=rows, output=tmp_path / "flags", **flags)
        convert(data=rows, output=tmp_path / "keys", **keys)
        for name in ("train", "val"):
            assert list(open_dataset(tmp_path / "flags").records(name)) == list(
                open_dataset(tmp_path / "keys").records(name)
            )
