from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import DamageError, InputError, SchemaError, UsageError
from shardmill.transforms.format.schema.schema import Feature, Schema

from ...command_line import Shardmill
from ...examples import example_from_values

PEOPLE = Schema(
    (
        Feature("born", "int64", "date", nullable=True),
        Feature("id", "int64", "int32"),
        Feature("name", "bytes", "string", nullable=True),
        Feature("tags", "bytes", "string", shape=(-1,)),
    )
)


def serialized(values: dict[str, Any], **kinds: str) -> bytes:
    return example_from_values(values, kinds).SerializeToString(deterministic=True)


ROWS = [
    serialized({"born": 19000, "id": 1, "name": "Ann", "tags": ["a", "b"]}),
    serialized({"id": 2, "tags": []}, tags="bytes"),
    serialized({"born": -1, "id": -3, "name": "", "tags": ["ü"]}),
]


@pytest.fixture
def people(tmp_path: Path, build_dataset: Any) -> Path:
    build_dataset(tmp_path, {"train": [ROWS[:2], ROWS[2:]], "val": [ROWS[1:2]]}, PEOPLE)
    return tmp_path


def test_a_dataset_has_its_splits_and_the_paths_of_their_shards(people: Path) -> None:
    dataset = open_dataset(people)
    assert dataset.splits == ("train", "val")
    assert dataset.manifest.generation == 1
    assert dataset.schema == PEOPLE
    assert dataset.shard_paths("train") == [str(people / f"train-0000{i}.tfrecord") for i in range(2)]


def test_records_come_as_they_were_written_shard_after_shard(people: Path) -> None:
    assert list(open_dataset(people).records("train")) == ROWS


def test_gzip_shards_read_alike(tmp_path: Path, build_dataset: Any) -> None:
    build_dataset(tmp_path, {"train": [ROWS]}, PEOPLE, compression="gzip")
    dataset = open_dataset(tmp_path)
    assert dataset.shard_paths("train") == [str(tmp_path / "train-00000.tfrecord.gz")]
    assert list(dataset.records("train")) == ROWS


def test_batches_have_the_schemas_types_and_nulls_for_absent_features(people: Path) -> None:
    batches = list(open_dataset(people).batches("train"))
    assert batches[0].schema == pa.schema(
        [
            pa.field("born", pa.date32()),
            pa.field("id", pa.int32(), nullable=False),
            pa.field("name", pa.string()),
            pa.field("tags", pa.list_(pa.string()), nullable=False),
        ]
    )
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["id"] for row in rows] == [1, 2, -3]
    assert [row["name"] for row in rows] == ["Ann", None, ""]
    assert [row["tags"] for row in rows] == [["a", "b"], [], ["ü"]]


def test_columns_are_chosen_and_ordered_by_name(people: Path) -> None:
    table = open_dataset(people).to_arrow("train", ["name", "id"])
    assert table.to_pydict() == {"name": ["Ann", None, ""], "id": [1, 2, -3]}


def test_a_split_becomes_a_data_frame(people: Path) -> None:
    frame = open_dataset(people).to_pandas("train")
    assert list(frame.columns) == ["born", "id", "name", "tags"]
    assert frame["id"].tolist() == [1, 2, -3]


def test_an_older_generation_is_opened_by_its_number(tmp_path: Path, build_dataset: Any) -> None:
    build_dataset(tmp_path, {"train": [ROWS[:1]]}, PEOPLE)
    build_dataset(tmp_path, {"train": [ROWS[:1], ROWS[1:]]}, PEOPLE, generation=2, parent=1, operation="append")
    assert len(list(open_dataset(tmp_path).records("train"))) == 3
    assert len(list(open_dataset(tmp_path, generation=1).records("train"))) == 1
    with pytest.raises(InputError, match=r"no generation 3: it holds 1 to 2$"):
        open_dataset(tmp_path, generation=3)


def test_the_latest_generation_counts_and_not_the_copy_that_a_crash_left_behind(
    tmp_path: Path, build_dataset: Any
) -> None:
    build_dataset(tmp_path, {"train": [ROWS[:1]]}, PEOPLE)
    old = (tmp_path / "manifest.json").read_bytes()
    build_dataset(tmp_path, {"train": [ROWS[:1], ROWS[1:]]}, PEOPLE, generation=2, parent=1, operation="append")
    (tmp_path / "manifest.json").write_bytes(old)
    assert open_dataset(tmp_path).manifest.generation == 2


def test_shards_and_manifest_json_alone_are_a_dataset(people: Path) -> None:
    (people / "manifests" / "00000001.json").unlink()
    (people / "manifests").rmdir()
    assert list(open_dataset(people).records("train")) == ROWS


def test_a_committed_shard_that_is_not_moved_yet_is_read_from_staging(people: Path) -> None:
    dataset = open_dataset(people)
    staged = people / dataset.manifest.run.staging / "shards"
    staged.mkdir(parents=True)
    (people / "train-00001.tfrecord").rename(staged / "train-00001.tfrecord")
    assert dataset.shard_paths("train")[1] == str(staged / "train-00001.tfrecord")
    assert list(dataset.records("train")) == ROWS


def test_a_folder_of_tfrecord_files_is_no_dataset_until_it_is_adopted(tmp_path: Path) -> None:
    folder = tmp_path / "their files"
    folder.mkdir()
    for name in ("b.tfrecord-00000-of-00001", "a.record", "c.txt"):
        (folder / name).touch()
    with pytest.raises(InputError) as found:
        open_dataset(folder)
    assert str(found.value) == (
        f"{folder}: no dataset: it has neither manifests/ nor manifest.json, but TFRecord files. To make a dataset of "
        f"them, without changing them: shardmill adopt '{folder}'; inspect and verify also take a single file: "
        f"'{folder}/a.record'"
    )


def test_a_folder_without_a_manifest_is_no_dataset(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no dataset: it has neither manifests/ nor manifest\.json$"):
        open_dataset(tmp_path)


def test_a_path_that_is_not_there_gets_the_nearest_name(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f'{people}s: no such file or folder (looked in {people.parent}); did you mean "{people}"?'
    with pytest.raises(InputError) as found:
        open_dataset(f"{people}s")
    assert str(found.value) == said
    monkeypatch.chdir(people.parent)
    with pytest.raises(InputError, match=rf"^{people.name}s: no such .* did you mean \"{people.name}\"\?$"):
        open_dataset(f"{people.name}s")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^other/data: no such file or folder \(looked in [^)]*\)$"):
        open_dataset("other/data")


def test_a_file_is_no_dataset_and_what_reads_it_is_named(
    people: Path, tmp_path: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard, table = people / "train-00000.tfrecord", tmp_path / "tables/a table.csv"
    table.parent.mkdir()
    table.touch()
    ways = {
        shard: f"; see its records: shardmill inspect {shard} or open its folder: {people}",
        people / "manifest.json": f"; open its folder: {people}",
        table: "",
    }
    for path, way in ways.items():
        with pytest.raises(InputError) as found:
            open_dataset(path)
        assert str(found.value) == f"{path}: a file, not the folder of a dataset{way}"
        for command in ("log", "report"):
            assert shardmill(command, str(path)).err == f"error: {found.value}\n"
    assert shardmill("inspect", str(shard)).code == 0
    monkeypatch.chdir(people)
    with pytest.raises(InputError, match=r"shardmill inspect train-00000\.tfrecord or open its folder: \.$"):
        open_dataset(shard.name)
    with pytest.raises(InputError, match="no such file or folder"):
        open_dataset(f"{shard}/below")


def test_a_manifest_that_states_another_generation_than_its_name_is_damage(people: Path) -> None:
    (people / "manifests" / "00000001.json").rename(people / "manifests" / "00000002.json")
    with pytest.raises(DamageError, match=r"00000002.json: it states generation 1$"):
        open_dataset(people)


def test_an_unknown_split_names_those_that_there_are(people: Path) -> None:
    with pytest.raises(UsageError, match=r"no split test; it has: train, val$"):
        open_dataset(people).records("test")


def test_an_unknown_column_names_those_that_there_are(people: Path) -> None:
    with pytest.raises(UsageError, match=r'no feature "age"; it has: born, id, name, tags$'):
        open_dataset(people).batches("train", ["age"])


def test_a_missing_shard_is_damage(people: Path) -> None:
    (people / "train-00001.tfrecord").unlink()
    with pytest.raises(DamageError, match=r"train-00001.tfrecord: missing$"):
        list(open_dataset(people).records("train"))


def test_a_shard_that_is_a_link_is_not_followed(people: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "x.tfrecord"
    (people / "train-00001.tfrecord").rename(other)
    (people / "train-00001.tfrecord").symlink_to(other)
    with pytest.raises(DamageError, match=r"train-00001.tfrecord: a link"):
        list(open_dataset(people).records("train"))


def test_a_folder_that_is_reached_by_a_link_is_a_dataset(people: Path, tmp_path_factory: Any) -> None:
    link = tmp_path_factory.mktemp("links") / "people"
    link.symlink_to(people)
    assert list(open_dataset(link).records("train")) == ROWS


def test_a_shard_cut_between_two_records_is_damage_after_its_last_record(people: Path) -> None:
    write_records(people / "train-00000.tfrecord", ROWS[:1])
    found = []
    with pytest.raises(DamageError, match=r"train-00000.tfrecord: 1 records, the manifest states 2"):
        found.extend(open_dataset(people).records("train"))
    assert found == ROWS[:1]


def test_a_record_that_is_no_example_of_the_schema_is_named(people: Path) -> None:
    write_records(people / "train-00000.tfrecord", [ROWS[0], serialized({"id": 1.5, "tags": ["a"]})])
    place = f'train-00000.tfrecord record 1 at byte {len(ROWS[0]) + 16}: feature "id" holds float values'
    with pytest.raises(DamageError, match=place):
        list(open_dataset(people).batches("train"))


def test_plain_bytes_have_records_and_no_batches(tmp_path: Path, build_dataset: Any) -> None:
    build_dataset(tmp_path, {"train": [[b"x", b""]]})
    dataset = open_dataset(tmp_path)
    assert dataset.schema is None
    assert list(dataset.records("train")) == [b"x", b""]
    with pytest.raises(UsageError, match=r"plain bytes without a schema; use records\(\)"):
        dataset.batches("train")


ARRAYS = Schema(
    (
        Feature("born", "int64", "date", nullable=True),
        Feature("emb/data", "bytes", "array_data", dtype="<f4", rank=2),
        Feature("emb/shape", "int64", "array_shape", shape=(2,), rank=2),
        Feature("exact", "bytes", "float64", dtype="<f8"),
        Feature("grid", "int64", "int16", shape=(2, 3)),
        Feature("half", "float", "float16", shape=(-1,), nullable=True),
        Feature("name", "bytes", "string"),
        Feature("on", "int64", "bool"),
        Feature("taken", "int64", "timestamp", unit="ms", timezone="UTC"),
    )
)


def array_row(emb: np.ndarray, **more: Any) -> bytes:
    values = {"emb/data": emb.astype("<f4").tobytes(), "emb/shape": list(emb.shape), "name": "x"}
    values |= {"exact": np.float64(0.1).tobytes(), "grid": list(range(6)), "on": 1, "taken": 1_700_000_000_123}
    return serialized(values | more, half="float")


@pytest.fixture
def arrays(tmp_path: Path, build_dataset: Any) -> Path:
    rows = [
        array_row(np.arange(6).reshape(2, 3), half=[0.5, 1.0], born=19000),
        array_row(np.arange(4).reshape(4, 1)),
        array_row(np.zeros((0, 5)), half=[]),
    ]
    build_dataset(tmp_path, {"train": [rows[:2], rows[2:]]}, ARRAYS)
    return tmp_path


def test_arrays_have_their_own_dtype_and_shape(arrays: Path) -> None:
    first, second, third = open_dataset(arrays).arrays("train")
    assert {name: (a.dtype.str, a.shape) for name, a in first.items()} == {
        "born": ("<M8[D]", ()),
        "emb": ("<f4", (2, 3)),
        "exact": ("<f8", ()),
        "grid": ("<i2", (2, 3)),
        "half": ("<f2", (2,)),
        "on": ("|b1", ()),
        "taken": ("<M8[ms]", ()),
    }
    np.testing.assert_array_equal(first["emb"], np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(first["grid"], np.arange(6).reshape(2, 3))
    assert first["exact"] == 0.1
    assert first["on"]
    assert first["born"] == np.datetime64("2022-01-08")
    assert first["taken"] == np.datetime64("2023-11-14T22:13:20.123")
    assert second["emb"].shape == (4, 1)
    assert third["emb"].shape == (0, 5)


def test_an_absent_feature_is_absent_and_an_empty_list_is_an_empty_array(arrays: Path) -> None:
    first, second, third = open_dataset(arrays).arrays("train", ["half", "born"])
    assert sorted(first) == ["born", "half"]
    assert second == {}
    assert third["half"].shape == (0,)
    assert "born" not in third


def test_bare_shape_and_data_are_the_array_without_a_name(tmp_path: Path, build_dataset: Any) -> None:
    schema = Schema(
        (
            Feature("data", "bytes", "array_data", dtype="<c8", rank=1),
            Feature("shape", "int64", "array_shape", shape=(1,), rank=1),
        )
    )
    wanted = np.array([1 + 2j, 3], "<c8")
    build_dataset(tmp_path, {"train": [[serialized({"data": wanted.tobytes(), "shape": [2]})]]}, schema)
    (found,) = open_dataset(tmp_path).arrays("train")
    np.testing.assert_array_equal(found[""], wanted)
    assert found[""].dtype == wanted.dtype


def test_the_dtype_and_rank_that_a_reader_counts_on_may_be_said(arrays: Path) -> None:
    dataset = open_dataset(arrays)
    read = dataset.arrays("train", ["emb"], dtypes={"emb": "<f4", "grid": np.int16}, ranks={"emb": 2, "half": 1})
    assert len(list(read)) == 3


def test_another_dtype_is_an_error_that_names_the_feature_and_both(arrays: Path) -> None:
    message = r'^feature "emb": asked for dtype float64 \(<f8\), its arrays are float32 \(<f4\): ask for that'
    with pytest.raises(SchemaError, match=message):
        open_dataset(arrays).arrays("train", dtypes={"emb": np.float64})


def test_another_rank_is_an_error_that_names_the_feature_and_both(arrays: Path) -> None:
    with pytest.raises(SchemaError, match=r'^feature "emb": asked for rank 3, its arrays have rank 2: ask for that'):
        open_dataset(arrays).arrays("train", ranks={"emb": 3})


def test_a_string_is_no_array(arrays: Path) -> None:
    with pytest.raises(
        UsageError, match='feature "name" is not an array of numbers or times; arrays are: "born", "emb"'
    ):
        open_dataset(arrays).arrays("train", ["name"])


def test_bytes_that_do_not_fill_the_shape_are_damage(arrays: Path) -> None:
    bad = array_row(np.zeros((2, 2)), **{"emb/shape": [2, 3]})
    write_records(arrays / "train-00001.tfrecord", [bad])
    message = (
        r'train-00001.tfrecord record 0: feature "emb": 16 bytes do not fill shape \[2, 3\] of float32, which takes 24'
    )
    with pytest.raises(DamageError, match=message):
        list(open_dataset(arrays).arrays("train", ["emb"]))


@pytest.mark.parametrize("shape", [[-1, -6], [2, -3]])
def test_a_negative_shape_is_damage(arrays: Path, shape: list[int]) -> None:
    write_records(arrays / "train-00001.tfrecord", [array_row(np.zeros((2, 3)), **{"emb/shape": shape})])
    with pytest.raises(DamageError, match="do not fill shape"):
        list(open_dataset(arrays).arrays("train", ["emb"]))


def test_reading_records_and_batches_imports_neither_beam_nor_pandas(people: Path) -> None:
    program = (
        "import sys; from shardmill.transforms.dataset.reading.open_dataset import open_dataset; "
        f"dataset = open_dataset({os.fspath(people)!r}); list(dataset.batches('train')); "
        "print([name for name in ('apache_beam', 'pandas', 'pyarrow.dataset') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"
