"""Folders as Hugging Face's libraries write them; `tests/readers/test_hugging_face.py` has them from `datasets`."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import InputError

from ..command_line import Shardmill


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def stream(path: Path, *values: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"n": values})
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


def saved(folder: str, *parts: list[int], **state: Any) -> None:
    """Write a folder with a file of each part, and one that `map` left."""
    names = [f"data-{number:05}-of-{len(parts):05}.arrow" for number in range(len(parts))]
    for name, values in zip(names, parts, strict=True):
        stream(Path(folder, name), *values)
    stream(Path(folder, "cache-0f1e.arrow"), 99)
    files = [{"filename": name} for name in names]
    Path(folder, "state.json").write_text(json.dumps({"_data_files": files, "_split": None, **state}))
    Path(folder, "dataset_info.json").write_text("{}")


def saved_dict(folder: str, **splits: list[int]) -> None:
    for name, values in splits.items():
        saved(f"{folder}/{name}", values)
    Path(folder, "dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))


def held(path: str = "out") -> dict[str, list[int]]:
    dataset = open_dataset(path)
    return {name: dataset.to_arrow(name)["n"].to_pylist() for name in dataset.splits}


def test_the_files_that_state_json_names_are_read_and_others_are_left_out_with_a_line(shardmill: Shardmill) -> None:
    saved("d", [1, 2], [3])
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, held()) == (0, {"train": [1, 2, 3]}), screen.err
    assert "1 file is left out, which state.json does not name: d/cache-0f1e.arrow" in screen.out
    convert("d/*.arrow", output="globs")
    assert held("globs") == {"train": [1, 2, 3]}
    convert(["d/cache-0f1e.arrow", "d/data-00001-of-00002.arrow"], output="named")
    assert held("named") == {"train": [99, 3]}
    convert("d", output="off", input__detect="none")
    assert held("off") == {"train": [99, 1, 2, 3]}


def test_the_splits_of_dataset_dict_json_are_read_whatever_their_names(shardmill: Shardmill) -> None:
    saved_dict("d", clean=[1, 2], Noisy=[3])
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, held()) == (0, {"clean": [1, 2], "noisy": [3]}), screen.err
    assert "Detected: splits clean, noisy, from what save_to_disk wrote" in screen.out
    convert("d", output="one", split="val")
    assert held("one") == {"val": [3, 1, 2]}
    saved_dict("more", clean=[4], Noisy=[5])
    append("more", output="out")
    assert held() == {"clean": [1, 2, 4], "noisy": [3, 5]}


def test_splits_of_one_name_here_are_read_by_the_option_of_the_refusal_and_others_are_said(
    shardmill: Shardmill,
) -> None:
    saved_dict("d", testA=[1], testa=[2], train=[3])
    refused = shardmill("convert", "d", "-o", "out")
    assert refused.code == 2
    options = shlex.split(refused.err.partition("what each is called: ")[2])
    assert shardmill("convert", "d", "-o", "out", *options).code == 0
    assert held() == {"testa": [1], "testa_1": [2], "train": [3]}
    saved_dict("e", **{"dev.clean": [1], "train": [2]})
    screen = shardmill("convert", "e", "-o", "other")
    assert held("other") == {"dev_clean": [1], "train": [2]}
    assert "from what save_to_disk wrote (dev.clean is dev_clean)" in screen.out


def test_a_split_of_dataset_dict_json_that_is_not_there_is_refused_by_its_name(shardmill: Shardmill) -> None:
    saved_dict("d", train=[1], val=[2])
    shutil.rmtree("d/val")
    screen = shardmill("convert", "d", "-o", "out")
    assert (screen.code, Path("out").exists()) == (2, False)
    assert 'd/dataset_dict.json: names the split "val", whose folder is not there' in screen.err
    shutil.rmtree("d/train")
    assert shardmill("convert", "d", "-o", "out").err == (
        'error: d/dataset_dict.json: names the splits "train", "val", whose folders are not there; copy the whole '
        "folder again, or take the names out of the file\n"
    )


def test_a_shard_of_parquet_that_is_not_there_is_said(shardmill: Shardmill) -> None:
    Path("d").mkdir()
    pq.write_table(pa.table({"n": [1]}), "d/train-00000-of-00002.parquet")
    said = "train-00001-of-00002.parquet is not here: 1 of 2 files of this name"
    assert said in shardmill("convert", "d", "-o", "out").out
    assert said not in shardmill("convert", "d/train-00000-of-00002.parquet", "-o", "one").out


def test_columns_that_set_format_leaves_out_of_view_are_said_with_the_option_that_does(shardmill: Shardmill) -> None:
    saved("d", [1])
    table = pa.table({"n": [1], "k": [2], "m": [3]})
    with pa.ipc.new_stream("d/data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table)
    state = json.loads(Path("d/state.json").read_text())
    Path("d/state.json").write_text(json.dumps(state | {"_format_columns": ["n", "k"], "_output_all_columns": False}))
    screen = shardmill("convert", "d", "-o", "out")
    said = re.search(r"state.json shows n, k alone \(set_format\).*: (--columns \S+)", screen.out)
    assert said is not None, screen.out
    assert set(open_dataset("out").to_arrow("train").column_names) == {"n", "k", "m"}
    assert shardmill("convert", "d", "-o", "few", *shlex.split(said[1])).code == 0
    assert set(open_dataset("few").to_arrow("train").column_names) == {"n", "k"}


def loaded(folder: str, **splits: list[list[int]]) -> None:
    """Write a folder of the cache of `load_dataset`, and a file that `map` left there."""
    stated = {}
    for split, parts in splits.items():
        stated[split] = {"name": split, "shard_lengths": list(map(len, parts)) if len(parts) > 1 else None}
        for number, values in enumerate(parts):
            shard = f"-{number:05}-of-{len(parts):05}" if len(parts) > 1 else ""
            stream(Path(folder, f"my-pets-{split}{shard}.arrow"), *values)
    stream(Path(folder, "cache-0f1e.arrow"), 99)
    Path(folder, "dataset_info.json").write_text(json.dumps({"dataset_name": "my-pets", "splits": stated}))


def test_the_cache_of_load_dataset_has_its_splits_and_no_file_that_map_left(shardmill: Shardmill) -> None:
    loaded("cache/my-pets/default/0.0.0/1f2e", train=[[1, 2], [3]], dev_clean=[[4]])
    screen = shardmill("convert", "cache/my-pets", "-o", "out")
    assert (screen.code, held()) == (0, {"dev_clean": [4], "train": [1, 2, 3]}), screen.err
    assert "Detected: splits dev_clean, train, from what load_dataset wrote" in screen.out
    assert "1 file is left out, which dataset_info.json does not name: cache/" in screen.out
    loaded("cache/my-pets/other/0.0.0/3c4d", train=[[5]])
    refused = shardmill("convert", "cache/my-pets", "-o", "both")
    assert refused.code == 2
    assert "2 configs or versions in a cache of load_dataset" in refused.err
    (command,) = [line for line in refused.err.splitlines() if "/other/" in line]
    assert shardmill(*shlex.split(command)[1:]).code == 0
    assert held("both") == {"train": [5]}
    Path("cache/my-pets/other/0.0.0/3c4d/my-pets-train.arrow").unlink()
    gone = shardmill("convert", "cache/my-pets/other", "-o", "gone")
    assert gone.code == 2
    assert "dataset_info.json: names" in gone.err


def test_the_one_split_of_a_folder_is_read() -> None:
    saved("d", [1], _split="test")
    convert("d", output="out")
    assert held() == {"test": [1]}
    for number, split in enumerate(["train+test", "train[:10%]", None, 7]):
        saved(f"e{number}", [number], _split=split)
        convert(f"e{number}", output=f"o{number}")
        assert held(f"o{number}") == {"train": [number]}


def test_neighbours_of_what_save_to_disk_writes_are_read_as_any_others() -> None:
    for number, state in enumerate(["", "[]", "{}", '{"_data_files": 7}', '{"_data_files": [7, {"filename": 1}]}']):
        stream(Path(f"d{number}/a.arrow"), 1)
        stream(Path(f"d{number}/cache-1.arrow"), 2)
        Path(f"d{number}/state.json").write_text(state)
        convert(f"d{number}", output=f"o{number}")
        assert held(f"o{number}") == {"train": [1, 2]}
    saved_dict("d", a=[1], b=[2])
    Path("d/dataset_dict.json").write_text('{"splits": ["a"]}')
    convert("d", output="out")
    assert held() == {"train": [1, 2]}


def test_a_folder_without_a_file_that_its_state_names_is_refused() -> None:
    saved("d", [1], [2])
    Path("d/data-00001-of-00002.arrow").unlink()
    with pytest.raises(InputError, match=r"d/state\.json: names data-00001-of-00002\.arrow, which is not there; copy"):
        convert("d", output="out")
    saved("e", [1, 2, 3], _indices_data_files=[{"filename": "indices.arrow"}])
    with pytest.raises(InputError, match=r"e/state\.json: an old release of datasets wrote it, and picks rows"):
        convert("e", output="out")


def cached(repository: str, snapshot: str, name: str, data: bytes) -> None:
    """Write a file as huggingface_hub keeps it: a link to a blob."""
    blob = Path(repository, "blobs", hashlib.sha256(data).hexdigest())
    link = Path(repository, "snapshots", snapshot, name)
    for path in (blob, link):
        path.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(data)
    link.symlink_to("../" * len(link.relative_to(repository).parent.parts) + f"blobs/{blob.name}")


def cached_table(repository: str, snapshot: str, name: str, *values: int) -> None:
    pq.write_table(pa.table({"n": values}), "made.parquet")
    cached(repository, snapshot, name, Path("made.parquet").read_bytes())


def cached_pictures(repository: str) -> dict[str, bytes]:
    pictures = {}
    for number, name in enumerate(("train/cat/0.png", "train/dog/1.png", "test/cat/2.png")):
        Image.new("RGB", (4, 3 + number)).save("made.png")
        pictures[name] = Path("made.png").read_bytes()
        cached(repository, "1f2e", name, pictures[name])
    cached(repository, "1f2e", "README.md", b"# Pets")
    Path(repository, "refs").mkdir()
    Path(repository, "refs/main").write_text("1f2e")
    return pictures


@pytest.mark.parametrize("below", ["", "/snapshots", "/snapshots/1f2e", "/snapshots/1f2e/"])
def test_the_links_of_a_cache_of_the_hub_are_read_as_pictures_and_its_blobs_are_not(
    below: str, shardmill: Shardmill
) -> None:
    pictures = cached_pictures("hub/datasets--me--pets")
    screen = shardmill("convert", f"hub/datasets--me--pets{below}", "-o", "out")
    assert screen.code == 0, screen.err
    dataset = open_dataset("out")
    rows = {
        f"{split}/{row['image/filename'].removeprefix(f'{split}/')}": row["image/encoded"]
        for split in dataset.splits
        for row in dataset.to_arrow(split).to_pylist()
    }
    assert (rows, dataset.labels) == (pictures, {"image/class/label": ("cat", "dog")})
    said = "Detected: a cache of the Hugging Face hub: read is hub/datasets--me--pets/snapshots/1f2e\n" in screen.out
    assert said == (below in ("", "/snapshots"))


def test_pictures_that_a_table_in_a_cache_names_are_read(shardmill: Shardmill) -> None:
    pictures = cached_pictures("hub/datasets--me--pets")
    lines = "".join(json.dumps({"file_name": f"cat/{n}.png", "n": n}) + "\n" for n in (0,))
    cached("hub/datasets--me--pets", "1f2e", "train/metadata.jsonl", lines.encode())
    convert("hub/datasets--me--pets/snapshots/1f2e/train", output="out")
    assert open_dataset("out").to_arrow("train")["image/encoded"].to_pylist() == [pictures["train/cat/0.png"]]


def test_of_several_snapshots_that_of_main_is_read_or_one_is_asked_for_with_commands(shardmill: Shardmill) -> None:
    for number, snapshot in enumerate(("1f2e", "3c4d")):
        cached_table("datasets--me--tab", snapshot, "data/train-00000-of-00001.parquet", number)
    screen = shardmill("convert", "datasets--me--tab", "-o", "out")
    assert (screen.code, "datasets--me--tab: holds 2 snapshots; choose one of\n" in screen.err) == (2, True)
    commands = [shlex.split(one) for one in re.findall(r"^  shardmill (.*)$", screen.err, re.M)]
    for number, args in enumerate(commands):
        args[args.index("-o") + 1] = f"o{number}"
        assert shardmill(*args).code == 0
        assert held(f"o{number}") == {"train": [number]}
    assert len(commands) == 2
    Path("datasets--me--tab/refs").mkdir()
    Path("datasets--me--tab/refs/main").write_text("3c4d")
    convert("datasets--me--tab", output="out")
    assert held() == {"train": [1]}
    convert("datasets--me--tab", output="off", input__detect="none")
    assert held("off") == {"train": [0, 1]}


def test_other_links_out_of_a_folder_are_rejects_as_ever(shardmill: Shardmill) -> None:
    cached_pictures("datasets--me--pets")
    cached_pictures("other--pets")
    Path("datasets--me--pets/snapshots/1f2e/train/cat/8.png").symlink_to(Path("made.png").resolve())
    blob = next(Path("other--pets/blobs").iterdir())
    Path("datasets--me--pets/snapshots/1f2e/train/cat/9.png").symlink_to(blob.resolve())
    for folder, count in (("datasets--me--pets", "OUTSIDE_ROOT 2"), ("other--pets/snapshots/1f2e", "OUTSIDE_ROOT 3")):
        screen = shardmill("convert", folder, "-o", "out")
        assert (screen.code, count in screen.err) == (4, True), screen.err
    assert shardmill("convert", "datasets--none", "-o", "out").code == 2
