"""An append takes no content twice: after rebuild and merge, and where a file or its folder has another path."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert, open_dataset
from shardmill.pipelines.runs.merge import plan_merge
from shardmill.transforms.dataset.commit.accounting import read_held_sources
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.errors import UsageError

from ...command_line import Shardmill


def put(name: str, first: int, last: int) -> str:
    """Write a CSV file of rows with ids."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("id,text\n" + "".join(f"{n},row {n}\n" for n in range(first, last)))
    return name


def ids(out: str, column: str = "id") -> list[Any]:
    return sorted(open_dataset(out).to_pandas(columns=[column])[column].tolist())


def merge(*paths: str, output: str, overwrite: bool = False) -> None:
    flags: dict[str, object] = {"output.path": output} | ({"output.if_exists": "replace"} if overwrite else {})
    plan_merge("rebuild" if len(paths) == 1 else "merge", paths, flags).run()


def left_out(paths: list[str] | str, output: str = "out", **settings: Any) -> dict[str, str | None]:
    """Append, and return what was left out, with the path under which it is held."""
    paths = [paths] if isinstance(paths, str) else paths
    summary = append({"input": {"paths": paths, **settings.pop("input", {})}}, output=output, **settings)
    return {file.name: file.under for file in summary.unchanged}


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def out() -> str:
    """A dataset of two generations: data/a.csv and data/b.csv."""
    convert(put("data/a.csv", 0, 3), output="out")
    append(put("data/b.csv", 3, 6), output="out")
    return "out"


def test_a_rebuild_over_itself_is_a_compaction_that_knows_its_sources(out: str, shardmill: Shardmill) -> None:
    for _ in range(3):
        assert shardmill("rebuild", out, "-o", out, "--overwrite").code == 0
        screen = shardmill("append", "data", "-o", out)
        assert (screen.code, "Nothing to do: out holds all 2 files" in screen.out) == (0, True)
    assert verify_dataset(out).findings == ()
    manifest = read_manifest(out)
    assert manifest.parent is None
    names = [held.name for held in read_held_sources(out, manifest)]
    assert sorted(names) == ["data/a.csv", "data/b.csv", "out/train-00000.tfrecord"]
    put("data/c.csv", 6, 8)
    assert set(left_out("data/*.csv")) == {"data/a.csv", "data/b.csv"}
    assert ids(out) == list(range(8))


def test_sources_stay_known_after_appends_to_what_was_rebuilt(out: str) -> None:
    merge(out, output=out, overwrite=True)
    append(put("data/c.csv", 6, 8), output=out)
    merge(out, output=out, overwrite=True)
    assert len(left_out("data/*.csv")) == 3
    assert ids(out) == list(range(8))


def test_a_merge_knows_the_sources_and_the_shards_of_each_of_its_datasets(out: str) -> None:
    convert(put("more/x.csv", 10, 12), output="other")
    merge(out, "other", output="both")
    assert set(left_out(["data/*.csv", "more/x.csv"], "both")) == {"data/a.csv", "data/b.csv", "more/x.csv"}
    assert set(left_out("other", "both")) == {"other/train-00000.tfrecord"}
    assert ids("both") == [0, 1, 2, 3, 4, 5, 10, 11]
    assert verify_dataset("both").findings == ()
    merge("both", output="both", overwrite=True)
    assert set(left_out("other", "both")) == {"other/train-00000.tfrecord"}
    assert set(left_out("more/x.csv", "both")) == {"more/x.csv"}


def test_an_append_of_a_dataset_knows_its_sources_too(out: str) -> None:
    convert(put("more/x.csv", 10, 12), output="other")
    append("other", output=out)
    assert set(left_out("more/x.csv")) == {"more/x.csv"}
    assert verify_dataset(out).findings == ()


def test_a_part_of_a_dataset_carries_no_sources(out: str) -> None:
    convert(put("more/x.csv", 10, 12), output="other")
    merge("other", f"{out}/train-00000.tfrecord", output="both")
    assert left_out("data/b.csv", "both") == {}
    assert ids("both") == [0, 1, 2, 3, 4, 5, 10, 11]


def test_what_was_adopted_has_no_sources_to_carry(out: str, shardmill: Shardmill) -> None:
    Path("mine").mkdir()
    shutil.copy(f"{out}/train-00000.tfrecord", "mine")
    assert shardmill("adopt", "mine").code == 0
    merge("mine", output="again")
    assert left_out("data/a.csv", "again") == {}


def test_sources_are_carried_through_shuffles_splits_and_worker_processes(out: str, shardmill: Shardmill) -> None:
    for number, options in enumerate(
        (["--shuffle", "7"], ["--split-fractions", "train=0.5,val=0.5"], ["--workers", "2"], ["--compression", "gzip"])
    ):
        again = f"again{number}"
        assert shardmill("rebuild", out, "-o", again, *options).code == 0
        assert shardmill("verify", again).code == 0
        assert "Nothing to do" in shardmill("append", "data", "-o", again).out


@pytest.mark.parametrize("how", ["renamed", "copied", "link to the folder", "link to the file", "another name"])
def test_a_file_of_equal_content_under_another_path_is_left_out(how: str, shardmill: Shardmill) -> None:
    convert(put("data/a.csv", 0, 3), output="out")
    if how == "renamed":
        os.rename("data", "new")
    elif how == "copied":
        shutil.copytree("data", "new")
    elif how == "link to the folder":
        os.symlink("data", "new")
    else:
        Path("new").mkdir()
        if how == "link to the file":
            os.symlink("../data/a.csv", "new/a.csv")
        else:
            os.rename("data/a.csv", "new/b.csv")
    name = "new/b.csv" if how == "another name" else "new/a.csv"
    screen = shardmill("append", name, "-o", "out")
    what = "the file" if how.startswith("link") else "the rows of the file"
    assert (screen.code, f"Nothing to do: out holds {what}" in screen.out) == (0, True)
    assert (f"{name} (held as data/a.csv)" in screen.out) == (not how.startswith("link"))
    put("new/c.csv", 3, 5)
    screen = shardmill("append", name, "new/c.csv", "-o", "out")
    assert f"Left out: 1 file held already (generation 1): {name}" in screen.out
    assert ("(held as data/a.csv)" in screen.out) == (not how.startswith("link"))
    assert ids("out") == [0, 1, 2, 3, 4]
    document = json.loads(shardmill("append", "new/*.csv", "-o", "out", "--json").out)
    found = {"name": name, "generation": 1, "files": 1}
    found |= {} if how.startswith("link") else {"held_as": "data/a.csv"}
    assert found in document["added"]["unchanged"]
    assert shardmill("append", name, "-o", "out", "--force").code == 0
    assert ids("out") == [0, 0, 1, 1, 2, 2, 3, 4]


def test_a_rebuild_and_a_rename_together_are_known(out: str) -> None:
    merge(out, output=out, overwrite=True)
    os.rename("data", "new")
    assert left_out("new/*.csv") == {"new/a.csv": "data/a.csv", "new/b.csv": "data/b.csv"}


def test_equal_files_of_one_run_are_all_taken() -> None:
    convert([put("data/a.csv", 0, 2), put("data/copy.csv", 0, 2)], output="out")
    assert ids("out") == [0, 0, 1, 1]
    assert left_out([put("data/c.csv", 5, 6), put("data/d.csv", 5, 6)]) == {}
    assert ids("out") == [0, 0, 1, 1, 5, 5]


def test_equal_bytes_in_two_partition_folders_are_different_rows() -> None:
    for day in (1, 2, 3):
        Path(f"sales/day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), f"sales/day={day}/a.parquet")
    convert("sales/day=1", output="out")
    assert left_out("sales/day=2") == {}
    assert left_out("sales") == {"sales/day=1/a.parquet": None, "sales/day=2/a.parquet": None}
    assert ids("out", "day") == [1, 1, 2, 2, 3, 3]
    os.rename("sales", "old")
    assert set(left_out("old").values()) == {f"sales/day={day}/a.parquet" for day in (1, 2, 3)}


def test_equal_bytes_in_folders_of_two_splits_are_different_rows() -> None:
    convert(put("data/train/a.csv", 0, 2), output="out")
    assert left_out(put("data/test/a.csv", 0, 2), output__split="test") == {}
    assert len(open_dataset("out")["test"]) == 2


def test_folders_above_a_path_that_happen_to_have_the_name_of_a_split_say_nothing_of_its_rows(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    convert(put(f"{elsewhere}/dev/in/a.csv", 0, 2), output="out")
    os.renames(f"{elsewhere}/dev/in/a.csv", f"{elsewhere}/test/b.csv")
    assert list(left_out(f"{elsewhere}/test")) == [f"{elsewhere}/test/b.csv"]
    os.renames(f"{elsewhere}/test/b.csv", "c.csv")
    assert list(left_out("c.csv")) == ["c.csv"]


def test_a_changed_file_with_the_content_of_another_is_left_out_and_one_with_new_content_is_asked_about(
    out: str,
) -> None:
    shutil.copy("data/b.csv", "data/a.csv")
    assert left_out("data/*.csv") == {"data/a.csv": "data/b.csv", "data/b.csv": None}
    put("data/a.csv", 20, 22)
    with pytest.raises(UsageError, match=r"data/a\.csv: changed since the dataset took it in"):
        append("data/a.csv", output=out)


def test_a_file_that_was_read_in_part_is_asked_about_under_another_path_too() -> None:
    convert(put("data/a.csv", 0, 10), output="out", input__limit=4)
    os.rename("data", "new")
    with pytest.raises(UsageError, match=r"new/a\.csv: read in part \(--limit\)"):
        append("new/a.csv", output="out")


def test_a_part_of_a_file_that_is_held_is_held() -> None:
    convert(put("data/a.csv", 0, 10), output="out")
    os.rename("data", "new")
    assert left_out("new/a.csv", input={"limit": 3}) == {"new/a.csv": "data/a.csv"}


def test_other_options_make_other_records_of_equal_content(out: str) -> None:
    os.rename("data", "new")
    assert left_out("new/b.csv", output__split="val") == {}
    assert len(open_dataset(out)["val"]) == 3


def test_a_file_with_rejects_is_known_under_another_path() -> None:
    Path("bad.csv").write_text("id,text\n0,a\nx,b\n")
    convert("bad.csv", output="out", max_rejects=1, schema__columns={"id": {"type": "int64"}})
    os.rename("bad.csv", "again.csv")
    assert left_out("again.csv", max_rejects=1) == {"again.csv": "bad.csv"}


def test_large_files_that_begin_and_end_alike_are_not_taken_for_each_other() -> None:
    Path("scans").mkdir()
    for number in (1, 2):
        scan = np.zeros((1, 512, 512), np.uint8)
        scan[0, 250:262, 200:300] = number
        np.save(f"scans/{number}.npy", scan)
    convert("scans/1.npy", output="out")
    assert left_out("scans/2.npy") == {}
    os.rename("scans", "new")
    assert left_out("new") == {"new/1.npy": "scans/1.npy", "new/2.npy": "scans/2.npy"}


def test_a_table_that_names_files_is_known_by_its_path_alone() -> None:
    for folder, color in (("one", "red"), ("two", "blue")):
        Path(folder).mkdir()
        Image.new("RGB", (8, 8), color).save(f"{folder}/0.png")
        Path(f"{folder}/list.csv").write_text("picture,n\n0.png,1\n")
    columns = {"picture": {"image": "path"}}
    convert("one/list.csv", output="out", schema__columns=columns)
    assert left_out("two/list.csv", schema__columns=columns) == {}
    os.symlink("two", "link")
    assert left_out("link/list.csv", schema__columns=columns) == {"link/list.csv": None}


def pictures(folder: str, **colors: int) -> None:
    """Write a picture of one color into the folder of each class; all files have one size."""
    for name, color in colors.items():
        Path(folder, name).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (color, 0, 0)).save(f"{folder}/{name}/0.bmp")


def labels(out: str) -> list[str]:
    return sorted(open_dataset(out).to_pandas(columns=["image/class/label"])["image/class/label"].tolist())


@pytest.mark.parametrize("how", ["renamed", "copied", "link"])
def test_pictures_of_a_folder_under_another_path_are_left_out(how: str) -> None:
    pictures("pets", cat=1, dog=2)
    convert("pets", output="out")
    if how == "link":
        os.symlink("pets", "animals")
    else:
        shutil.copytree("pets", "animals")
    if how == "renamed":
        shutil.rmtree("pets")
    assert set(left_out("animals")) == {"animals/cat", "animals/dog"}
    merge("out", output="out", overwrite=True)
    assert set(left_out("animals")) == {"animals/cat", "animals/dog"}
    assert labels("out") == ["cat", "dog"]


@pytest.mark.parametrize("ready", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_a_picture_that_was_copied_or_renamed_inside_its_folder_is_left_out_and_one_of_another_class_is_not(
    flat: bool, ready: bool
) -> None:
    pictures("pets", cat=1, dog=2)
    source, cat = ("pets/cat", "") if flat else ("pets", "cat/")
    settings = {"image": {"resize": 4}} if ready else {}
    convert(source, output="out", **settings)
    shutil.copy("pets/cat/0.bmp", "pets/cat/copy.bmp")
    os.rename("pets/dog/0.bmp", "pets/dog/renamed.bmp")
    shutil.copy("pets/cat/0.bmp", "pets/dog/cat.bmp")
    Image.new("RGB", (8, 8), (3, 0, 0)).save("pets/cat/new.bmp")
    left = left_out(source, **settings)
    assert left.pop("pets/cat") is None
    assert left.pop("pets/cat/copy.bmp") == f"{cat}0.bmp"
    assert left == ({} if flat else {"pets/dog/renamed.bmp": "dog/0.bmp"})
    assert len(open_dataset("out")) == (2 if flat else 4)


def test_other_pictures_of_equal_names_and_sizes_are_new_and_so_are_equal_ones_of_another_class() -> None:
    pictures("monday", cat=1, dog=2)
    pictures("tuesday", cat=3, dog=2)
    pictures("wednesday", cat=2, dog=1)
    convert("monday", output="out")
    assert set(left_out("tuesday")) == {"tuesday/dog"}
    assert left_out("wednesday") == {}
    assert labels("out") == ["cat", "cat", "cat", "dog", "dog"]


def test_data_in_memory_are_known_as_before(out: str) -> None:
    frame = pd.DataFrame({"id": [7], "text": ["x"]})
    append(data=frame, output=out)
    merge(out, output=out, overwrite=True)
    append(data=pd.DataFrame({"id": [8], "text": ["y"]}), output=out)
    assert ids(out) == [0, 1, 2, 3, 4, 5, 7, 8]


def test_archives_of_pictures_are_known_under_another_path() -> None:
    pictures("pets", cat=1, dog=2)
    Path("tars").mkdir()
    for name in ("cat", "dog"):
        shutil.make_archive(f"tars/{name}", "tar", f"pets/{name}")
    convert("tars/cat.tar", output="out")
    os.rename("tars", "new")
    assert left_out("new") == {"new/cat.tar": "tars/cat.tar"}
    assert len(open_dataset("out")) == 2


def test_a_dataset_whose_sources_are_all_held_is_left_out_and_one_with_others_too_is_refused(
    out: str, shardmill: Shardmill
) -> None:
    convert("data/a.csv", output="one")
    assert left_out("one") == {"one/train-00000.tfrecord": "data/a.csv"}
    append(put("more/x.csv", 10, 12), output="one")
    with pytest.raises(UsageError, match=r"one: was made of data/a\.csv, of which .*out holds the rows, and of others"):
        append("one", output=out)
    assert shardmill("append", "one", "-o", out, "--force").code == 0
    assert ids(out) == [0, 0, 1, 1, 2, 2, 3, 4, 5, 10, 11]


def test_a_dataset_that_grows_is_appended_night_after_night(out: str) -> None:
    convert(put("more/x.csv", 10, 12), output="other")
    append("other", output=out)
    append(put("more/y.csv", 12, 14), output="other")
    assert set(left_out("other")) == {"other/train-00000.tfrecord"}
    assert ids(out) == [0, 1, 2, 3, 4, 5, 10, 11, 12, 13]


def test_a_merge_of_datasets_that_share_sources_warns(out: str, shardmill: Shardmill) -> None:
    convert(["data/b.csv", put("more/x.csv", 10, 12)], output="other")
    screen = shardmill("merge", out, "other", "-o", "both")
    assert "Warning: data/b.csv: more than one of the datasets was made of this content" in screen.out
    assert "Warning" not in shardmill("rebuild", out, "-o", "again").out
    assert set(left_out("data", "both")) == {"data/a.csv", "data/b.csv"}


def test_datasets_of_pictures_of_equal_names_and_sizes_are_appended() -> None:
    pictures("monday", cat=1)
    pictures("tuesday", cat=3)
    convert("monday", output="out")
    convert("tuesday", output="other")
    assert left_out("other") == {}
    assert labels("out") == ["cat", "cat"]


def test_a_dataset_whose_list_of_sources_is_lost_is_merged_with_a_warning(out: str, shardmill: Shardmill) -> None:
    Path(out, "sources/00000001.jsonl").unlink()
    screen = shardmill("rebuild", out, "-o", "again")
    assert screen.code == 0
    assert "00000001.jsonl: missing; sources are not carried on" in screen.out
    assert ids("again") == list(range(6))
    convert(put("more/x.csv", 10, 12), output="other")
    Path("other/sources/00000001.jsonl").write_text("{")
    assert "sources are not carried on" in shardmill("append", "other", "-o", "again").out
    assert left_out("more/x.csv", "again") == {}


def test_equal_files_for_another_split_that_the_user_names_are_other_rows(shardmill: Shardmill) -> None:
    shutil.copy(put("a.csv", 0, 3), "b.csv")
    convert("a.csv", output="out")
    assert shardmill("append", "b.csv", "-o", "out", "--set", "output.split=test").code == 0
    assert open_dataset("out").splits == ("test", "train")
    shutil.copy("a.csv", "c.csv")
    for split in ("test", "train"):
        assert left_out("c.csv", output__split=split) == {"c.csv": "b.csv" if split == "test" else "a.csv"}


def test_equal_files_beside_other_constants_are_other_rows() -> None:
    shutil.copy(put("a.csv", 0, 3), "b.csv")
    convert("a.csv", output="out", schema={"constants": {"day": 1}})
    append("b.csv", output="out", schema={"constants": {"day": 2}})
    assert ids("out", "day") == [1, 1, 1, 2, 2, 2]
