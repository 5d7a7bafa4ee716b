"""What files are, in S3 and Google Cloud Storage: the same splits and refusals as on a disk."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import DamageError, InputError, UsageError
from shardmill.transforms.format.examples.decode_examples import Example
from shardmill.transforms.inputs.contract.selection import FileSplits

from ..command_line import Shardmill
from ..file_sources import made_source
from ..tfds_folder import LABELS, example, write_tfds
from .conftest import Bucket

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 12345\n"


def records(path: object) -> dict[str, int]:
    dataset = open_dataset(str(path))
    return {name: len(dataset[name]) for name in dataset.splits}


def test_files_in_a_store_have_the_splits_that_their_paths_state(bucket: Bucket, tmp_path: Path) -> None:
    for name in ("train/a", "train/b", "test/a"):
        bucket.store.put(f"in/{name}.csv", b"n\n1\n")
        Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
        bucket.store.put(f"pets/{name}.png", (tmp_path / "a.png").read_bytes())
    for number, source in enumerate((["in"], ["in/*/*.csv"], ["in/train", "in/test"], ["pets"])):
        out = str(tmp_path / str(number))
        convert([f"{bucket.url}/{one}" for one in source], output=out)
        assert records(out) == {"train": 2, "test": 1}
    bucket.store.put("in/test/LICENSE", b"free")
    bucket.store.put("in/test/b.csv", b"n\n2\n")
    convert(f"{bucket.url}/in/test/*", output=str(tmp_path / "glob"))
    assert records(tmp_path / "glob") == {"train": 2}, "without the note that the glob takes along"
    append(f"{bucket.url}/in", output=str(tmp_path / "0"))
    assert records(tmp_path / "0") == {"train": 2, "test": 2}
    append(f"{bucket.url}/in/test/b.csv", output=str(tmp_path / "1"))
    assert records(tmp_path / "1") == {"train": 2, "test": 2}, "one folder of a split is enough"
    bucket.store.put("more/a.csv", b"n\n3\n")
    with pytest.raises(UsageError, match=rf"shardmill append {bucket.url}/more -o .* --split train"):
        append(f"{bucket.url}/more", output=str(tmp_path / "0"))
    for name in ("train", "test"):
        bucket.store.put(f"words/{name}.csv", b"n\n1\n")
    with pytest.raises(InputError, match=rf"shardmill convert {bucket.url}/words -o .* --set input\.splits=names"):
        convert(f"{bucket.url}/words", output=str(tmp_path / "words"))


def test_tables_with_a_log_and_pointers_in_a_store_are_refused(bucket: Bucket, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    for name in ("delta", "ice/data"):
        bucket.store.put(f"{name}/a.parquet", (tmp_path / "a.parquet").read_bytes())
    bucket.store.put("delta/_delta_log/00000000000000000000.json", b"{}")
    bucket.store.put("ice/metadata/v2.metadata.json", b"{}")
    for source in ("delta", "delta/*.parquet", "delta/a.parquet"):
        with pytest.raises(InputError, match=rf"{bucket.url}/delta: is a table of Delta Lake"):
            convert(f"{bucket.url}/{source}", output=str(tmp_path / "out"))
    with pytest.raises(InputError, match=rf"from_metadata\('{bucket.url}/ice/metadata/v2\.metadata\.json'\)"):
        convert(f"{bucket.url}/ice/data", output=str(tmp_path / "out"))
    bucket.store.put("lfs/a.csv", POINTER)
    with pytest.raises(InputError, match=r"lfs/a\.csv: is a Git LFS pointer"):
        convert(f"{bucket.url}/lfs", output=str(tmp_path / "out"))


def test_a_readme_states_splits_and_files_are_ignored_in_a_store_too(bucket: Bucket, tmp_path: Path) -> None:
    for name in ("a-1", "b-1", "old/b-2", "b_copy"):
        bucket.store.put(f"hub/{name}.csv", b"n\n1\n")
    files = "  - {split: train, path: a-*}\n  - {split: test, path: '**/b-*'}\n"
    bucket.store.put("hub/README.md", f"---\nconfigs:\n- data_files:\n{files}---\n".encode())
    for number, (ignore, wanted) in enumerate([(["old"], 1), (["*/gone"], 2)]):
        out = tmp_path / str(number)
        summary = convert(f"{bucket.url}/hub", output=str(out), input__ignore=["*_copy.csv", *ignore])
        assert records(out) == {"train": 1, "test": wanted}
        assert summary.manifest.source.skipped == {".md": 1, "ignored": 3 - wanted}


def test_classes_are_named_by_a_data_yaml_above_labels_in_a_store(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "images" / "1.jpg")
    bucket.store.put("pets/labels/1.txt", b"1 0.5 0.5 0.2 0.4\n")
    bucket.store.put("pets/data.yaml", b"names: [cat, dog]\n")
    out = str(tmp_path / "out")
    convert(str(tmp_path / "images"), output=out, input__annotations__yolo=f"{bucket.url}/pets/labels")
    (row,) = open_dataset(out).to_arrow("train").to_pylist()
    assert row["image/object/class/label"] == ["dog"]


def test_files_beside_pictures_in_a_store_are_named_with_the_commands_that_read_them(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shardmill: Shardmill
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pets").mkdir()
    Image.new("RGB", (8, 8)).save("pets/1.jpg")
    objects = [{"image_id": 7, "category_id": 0, "bbox": [1, 1, 3, 4]}]
    images, classes = [{"id": 7, "file_name": "1.jpg"}], [{"id": 0, "name": "cat"}]
    document = {"images": images, "annotations": objects, "categories": classes}
    Path("pets/instances_train.json").write_text(json.dumps(document))
    for name, text in (("train.txt", "1.jpg 0\n"), ("LICENSE", "")):
        Path("pets", name).write_text(text)
    bucket.put_folder(Path("pets"), "sets/pets")
    url = f"{bucket.url}/sets/pets"
    done = shardmill("convert", url, "-o", "out", "--dry-run")
    assert done.code == 2, "on a disk the boxes would be read"
    said = " ".join(done.err.split())
    assert said.endswith(f"; the pictures alone: shardmill convert {url} -o out --set input.detect=none")
    alone = shardmill("convert", url, "-o", "alone", "--set", "input.detect=none")
    assert (alone.code, records("alone")) == (0, {"train": 1})
    layout = shardmill("convert", url, "-o", "layout", "--set", "input.layout=flat")
    assert f"{url}/instances_train.json, {url}/train.txt are beside pictures in a store" in " ".join(layout.out.split())
    assert f"{url}/instances_train.json, {url}/train.txt are beside pictures in a store" in said
    copy = "aws s3 sync" if bucket.scheme == "s3" else "gcloud storage rsync --recursive"
    assert f"copy all to a disk first: {copy} {url} pets && shardmill convert pets -o out" in said
    bucket.store.put("sets/pets/labels.csv", b"file,class\n1.jpg,cat\n")
    stopped = shardmill("convert", url, "-o", "out")
    assert stopped.code == 2
    assert f"to read it, copy all to a disk first: {copy} {url} pets && shardmill convert pets -o out" in stopped.err
    Path("bin").mkdir()
    Path("bin", copy.partition(" ")[0]).write_text('#!/bin/sh\nfor to; do :; done\ncp -r there "$to"\n')
    Path("bin", copy.partition(" ")[0]).chmod(0o755)
    Path("pets").rename("there")
    monkeypatch.setenv("PATH", "bin", prepend=os.pathsep)
    program, command = said.partition(" to a disk first: ")[2].partition("; the pictures")[0].split(" && ")
    subprocess.run(shlex.split(program), check=True)
    assert shardmill(*command.split()[1:5]).code == 0
    assert open_dataset("out").to_arrow("train")["image/object/bbox/ymax"].to_pylist() == [[0.625]]


def test_a_store_is_asked_for_16_heads_and_4_levels_at_most(bucket: Bucket) -> None:
    for number in range(40):
        bucket.store.put(f"in/{number % 8}/{number}.parquet", b"PAR1")

    def requests(how: FileSplits) -> int:
        source = made_source("parquet", [f"{bucket.url}/in"], "/")
        bucket.gateway.requests.clear()
        replace(source, settings=replace(source.settings, splits=how)).list_files()
        return len(bucket.gateway.requests)

    assert requests(FileSplits()) - requests(FileSplits("none", looks=False)) == 16 + 4


def test_a_folder_of_tfds_in_a_store_is_read_with_its_splits_types_and_classes(bucket: Bucket, tmp_path: Path) -> None:
    rows = [example(number) for number in range(6)]
    write_tfds(tmp_path / "pets/1.0.0", {"train": [rows[:3], rows[3:]], "other": [rows]})
    for path in (tmp_path / "pets/1.0.0").iterdir():
        bucket.store.put(f"pets/1.0.0/{path.name}", path.read_bytes())
    convert(f"{bucket.url}/pets", output=str(tmp_path / "out"))
    assert records(tmp_path / "out") == {"other": 6, "train": 6}
    assert open_dataset(str(tmp_path / "out")).labels["label"] == tuple(LABELS["label"])
    bucket.store.delete(["pets/1.0.0/pets-train.tfrecord-00001-of-00002"])
    missing = r"train\.tfrecord-00001-of-00002: is missing, and dataset_info.json states 3 records in it"
    with pytest.raises(InputError, match=missing) as error:
        convert(f"{bucket.url}/pets", output=str(tmp_path / "less"))
    assert str(error.value).endswith(f"shardmill convert '{bucket.url}/pets/1.0.0/*tfrecord*' -o {tmp_path}/less")
    convert(f"{bucket.url}/pets/1.0.0/*tfrecord*", output=str(tmp_path / "less"))
    assert records(tmp_path / "less") == {"other": 6, "train": 3}
    write_tfds(tmp_path / "cut", {"train": [rows[:2], rows[3:]]})
    name = "pets-train.tfrecord-00000-of-00002"
    bucket.store.put(f"pets/1.0.0/{name}", (tmp_path / "cut" / name).read_bytes())
    with pytest.raises(DamageError, match=r"00000-of-00002 holds 2 records, and dataset_info.json states 3"):
        convert(f"{bucket.url}/pets/1.0.0/*tfrecord*", output=str(tmp_path / "cut-out"))


@pytest.mark.parametrize("table", ["metadata.csv", "metadata.jsonl"])
def test_pictures_in_a_store_beside_a_table_of_them_are_not_read_without_a_word(
    bucket: Bucket, tmp_path: Path, shardmill: Shardmill, table: str
) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "1.png")
    bucket.store.put("pets/1.png", (tmp_path / "1.png").read_bytes())
    rows = {"metadata.csv": b"file_name,age\n1.png,3\n", "metadata.jsonl": b'{"file_name": "1.png"}\n'}
    bucket.store.put(f"pets/{table}", rows[table])
    stopped = shardmill("convert", f"{bucket.url}/pets", "-o", "out", "--format", "images")
    assert stopped.code == 2
    assert f"pets/{table} is beside pictures in a store, and is not read; to read it, copy all to" in stopped.err
    assert shardmill("convert", f"{bucket.url}/pets", "-o", "out", "--set", "input.metadata=none", "--format", "images")
    assert records("out") == {"train": 1}


def test_lists_of_splits_and_label_maps_beside_files_in_a_store_are_read(
    bucket: Bucket, tmp_path: Path, shardmill: Shardmill
) -> None:
    box = "<object><name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>4</xmax><ymax>5</ymax></bndbox></object>"
    (tmp_path / "pictures").mkdir()
    for name in ("1", "2", "3"):
        Image.new("RGB", (8, 8)).save(tmp_path / f"pictures/{name}.jpg")
        size = "<size><width>8</width><height>8</height></size>"
        text = f"<annotation><filename>{name}.jpg</filename>{size}{box}</annotation>"
        bucket.store.put(f"pets/Annotations/{name}.xml", text.encode())
        bucket.store.put(f"yolo/labels/{name}.txt", b"0 0.5 0.5 0.2 0.4\n")
    for name, pictures in (("train", "12"), ("val", "3")):
        bucket.store.put(f"pets/ImageSets/Main/{name}.txt", "\n".join(pictures).encode())
        bucket.store.put(f"yolo/{name}.txt", "".join(f"./images/{one}.jpg\n" for one in pictures).encode())
    bucket.store.put("pets/labelmap.txt", b"# label:color:parts:actions\ndog:::\ncat:::\n")
    root = str(tmp_path / "pictures")
    for kind, files in (("voc", "pets/Annotations"), ("yolo", "yolo/labels")):
        out = str(tmp_path / kind)
        convert(root, output=out, **{f"input__annotations__{kind}": f"{bucket.url}/{files}"})
        assert records(out) == {"train": 2, "val": 1}
    assert open_dataset(str(tmp_path / "voc")).labels["image/object/class/label"] == ("dog", "cat")
    bucket.store.put("yolo/data.yaml", b"train: images\nval: images\nnames: [cat]\n")
    words = ("convert", root, "-o", "one", "--set", f"input.annotations.yolo={bucket.url}/yolo/labels")
    stopped = shardmill(*words)
    assert stopped.code == 2
    assert "data.yaml beside" in stopped.err
    assert "or read all files as one split: --set input.splits=none" in " ".join(stopped.err.split())
    assert shardmill(*words, "--set", "input.splits=none").code == 0
    assert records(tmp_path / "one") == {"train": 3}


def test_a_label_map_beside_records_in_a_store_names_their_classes(bucket: Bucket, tmp_path: Path) -> None:
    made = Example()
    made.features.feature["image/object/class/label"].int64_list.value.extend([1, 2])
    write_records(tmp_path / "a.tfrecord", [made.SerializeToString()])
    bucket.store.put("cells/cells.tfrecord", (tmp_path / "a.tfrecord").read_bytes())
    bucket.store.put("cells/cells_label_map.pbtxt", b'item { name: "rbc" id: 1 } item { name: "wbc" id: 2 }')
    convert(f"{bucket.url}/cells", output=str(tmp_path / "out"))
    assert open_dataset(str(tmp_path / "out")).labels == {"image/object/class/label": ("_unused_0", "rbc", "wbc")}
