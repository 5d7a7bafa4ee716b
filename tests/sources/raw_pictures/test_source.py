from __future__ import annotations

import gzip
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import InputError, SchemaError, SourceError, TooManyRejects
from shardmill.transforms.sources.raw_pictures import source

from ...archives import write
from ...label_numbers import in_numbers

pytestmark = pytest.mark.usefixtures("without_engine")

PIXELS = np.random.default_rng(7).integers(0, 256, (70, 5, 4), np.uint8)
LABELS = np.arange(70, dtype=np.uint8) % 10


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def idx(values: npt.NDArray[Any], kind: int = 8) -> bytes:
    return bytes((0, 0, kind, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def mnist(folder: str = "in", suffix: str = "", pack: Any = bytes) -> None:
    for split, part in (("train", slice(0, 60)), ("t10k", slice(60, 70))):
        write(f"{folder}/{split}-images-idx3-ubyte{suffix}", pack(idx(PIXELS[part])))
        write(f"{folder}/{split}-labels-idx1-ubyte{suffix}", pack(idx(LABELS[part])))


def rows(path: Any = "in", split: str = "train", output: str = "out", **settings: Any) -> list[dict[str, Any]]:
    convert(path, output=output, **settings)
    found: list[dict[str, Any]] = in_numbers(open_dataset(output).to_arrow(split)).to_pylist()
    return found


def pixels(row: dict[str, Any]) -> npt.NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(row["image/encoded"])))


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".gz", gzip.compress)])
def test_the_files_of_mnist_become_png_pictures_with_labels_in_splits(suffix: str, pack: Any) -> None:
    mnist(suffix=suffix, pack=pack)
    train = rows()
    test = in_numbers(open_dataset("out").to_arrow("test")).to_pylist()
    for found, part in ((train, slice(0, 60)), (test, slice(60, 70))):
        assert np.array_equal([pixels(row) for row in found], PIXELS[part])
        assert [row["image/class/label"] for row in found] == LABELS[part].tolist()
    assert open_dataset("out").labels == {"image/class/label": tuple("0123456789")}
    assert {name: value for name, value in train[3].items() if name != "image/encoded"} == {
        "image/channels": 1, "image/class/label": 3, "image/class/text": "3", "image/colorspace": "L",
        "image/filename": f"train-images-idx3-ubyte{suffix}/03.png", "image/format": "png", "image/height": 5,
        "image/width": 4,
    }  # fmt: skip


def test_labels_are_found_beside_the_pictures_that_are_named_and_may_be_missing() -> None:
    mnist()
    assert rows("in/t10k-images-idx3-ubyte", split="test")[0]["image/class/label"] == 0
    write("in/a.idx", idx(PIXELS[:2]))
    assert "image/class/label" not in rows("in/a.idx", output="plain")[0]
    with pytest.raises(SchemaError, match=r"a\.idx: has no labels, and other files have some"):
        convert("in", output="mixed")
    with pytest.raises(InputError, match=r"holds labels, and no pictures; name the file of pictures too"):
        convert("in/t10k-labels-idx1-ubyte", output="labels")


IMAGES, NAMES = idx(PIXELS[:3]), idx(LABELS[:3])


@pytest.mark.parametrize(
    ("images", "labels", "text"),
    [
        (IMAGES[:-5], NAMES, r"is cut at byte 71, in picture 3: 3 pictures of 20 bytes end at byte 76"),
        (IMAGES + b"x", NAMES, r"has bytes after its end, from byte 76 on"),
        (IMAGES, NAMES[:-1], r"is cut at byte 10, in picture 3"),
        (IMAGES, idx(LABELS[:2]), r"has 3 pictures, and in/train-labels-idx1-ubyte 2 labels"),
        (b"\1" + IMAGES[1:], NAMES, r"is no IDX file: it begins with 01 00 08 03"),
        (IMAGES[:9], NAMES, r"is cut at byte 9, in its header"),
        (b"", NAMES, r"is no IDX file: it begins with nothing"),
        (idx(np.zeros((2, 0, 4), np.uint8)), NAMES, r"its pictures are of 0 x 4 pixels"),
        (gzip.compress(IMAGES, mtime=0)[:-9], NAMES, r"the gzip stream is cut"),
    ],
)
def test_a_damaged_file_is_refused_with_the_byte(images: bytes, labels: bytes, text: str) -> None:
    write("in/train-images-idx3-ubyte", images)
    write("in/train-labels-idx1-ubyte", labels)
    with pytest.raises(SourceError, match=text):
        convert("in", output="out")


def test_numbers_of_another_kind_are_refused_with_the_call_of_numpy_that_reads_them() -> None:
    values = np.arange(12, dtype=">f4").reshape(3, 4)
    write("in/a.idx", idx(values, 0x0D))
    with pytest.raises(SourceError, match=r"numbers of type float32 and rank 2, and no pictures") as refused:
        convert("in", output="out")
    call = str(refused.value).partition("for NumPy: ")[2]
    exec(call, {"numpy": np})
    assert np.array_equal(np.load("a.npy"), values)


def cifar(count: int, classes: tuple[int, ...]) -> bytes:
    dice = np.random.default_rng(count)
    labels = [dice.integers(0, most, (count, 1), np.uint8) for most in classes]
    return np.hstack([*labels, dice.integers(0, 256, (count, 3072), np.uint8)]).tobytes()


def test_cifar_10_becomes_png_pictures_with_the_names_of_its_classes() -> None:
    names = [f"class {number}" for number in range(10)]
    write("in/batches.meta.txt", ("\n".join(names) + "\n\n").encode())
    write("in/data_batch_1.bin", data := cifar(30, (10,)))
    write("in/test_batch.bin", cifar(5, (10,)))
    found = rows()
    held = np.frombuffer(data, np.uint8).reshape(30, 3073)
    assert np.array_equal([pixels(row) for row in found], held[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    assert [row["image/class/label"] for row in found] == held[:, 0].tolist()
    assert found[0]["image/class/text"] == names[held[0, 0]]
    assert len(in_numbers(open_dataset("out").to_arrow("test"))) == 5


def test_cifar_100_has_two_labels() -> None:
    write("in/train.bin", data := cifar(4, (20, 100)))
    write("in/fine_label_names.txt", "\n".join(f"fine {number}" for number in range(100)).encode())
    held = np.frombuffer(data, np.uint8).reshape(4, 3074)
    found = rows()
    assert [row["image/class/coarse_label"] for row in found] == held[:, 0].tolist()
    assert [row["image/class/text"] for row in found] == [f"fine {number}" for number in held[:, 1].tolist()]
    assert found[0]["image/class/coarse_text"] == str(held[0, 0])


def test_a_file_of_cifar_that_is_cut_and_a_label_that_is_none_are_named_with_their_bytes() -> None:
    data = cifar(3, (10,))
    write("data_batch_1.bin", data[:-100])
    with pytest.raises(SourceError, match=r"is cut at byte 9,119, in picture 3: 3 pictures of 3,073 bytes end at"):
        convert("data_batch_1.bin", output="out")
    write("data_batch_1.bin", data[:3073] + b"\x0b" + data[3074:])
    with pytest.raises(TooManyRejects) as refused:
        convert("data_batch_1.bin", output="out")
    assert 'data_batch_1.bin row 2: column "image/class/label": UNKNOWN_CLASS: "11" is no class' in str(refused.value)
    assert len(rows("data_batch_1.bin", max_rejects=1)) == 2


def test_other_files_are_no_cifar_and_its_kinds_are_not_mixed() -> None:
    write("in/x.bin", b"a" * 5000)
    with pytest.raises(SourceError, match=r"has 5,000 bytes, and records of CIFAR have 3,073 \(CIFAR-10\) or 3,074"):
        convert("in/x.bin", output="out", input__format="cifar")
    write("two/data_batch_1.bin", cifar(1, (10,)))
    write("two/train.bin", cifar(1, (20, 100)))
    with pytest.raises(SchemaError, match="are of CIFAR-10 and CIFAR-100; convert them one by one"):
        convert("two", output="out")


def test_an_append_keeps_the_classes_of_its_dataset() -> None:
    mnist()
    write("more/train-images-idx3-ubyte", idx(PIXELS[:12]))
    write("more/train-labels-idx1-ubyte", idx((LABELS[:12] + 1).astype(np.uint8)))
    convert("in", output="out")
    append(["in", "more"], output="out")
    table = in_numbers(open_dataset("out").to_arrow("train"))
    assert (len(table), open_dataset("out").labels["image/class/label"][-1]) == (72, "10")
    write("c/test_batch.bin", cifar(2, (10,)))
    write("c/batches.meta.txt", "\n".join("abcdefghij").encode())
    with pytest.raises(SchemaError, match=r'class 0 is "a" in these files, and "0" in the dataset'):
        append("c", output="out")


def test_files_in_parts_and_the_first_rows_of_them_are_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    mnist()
    whole = rows()
    monkeypatch.setattr(source, "_PIECE_BYTES", 100)
    monkeypatch.setattr(source, "_BATCH_ROWS", 3)
    assert rows(output="parts") == whole
    few = rows("in/train-images-idx3-ubyte", output="few", input__limit=7, input__where='col("image/class/label") > 2')
    assert few == [row for row in whole[:7] if row["image/class/label"] > 2]


def test_a_file_that_is_there_packed_and_unpacked_is_not_read_twice() -> None:
    mnist()
    mnist(suffix=".gz", pack=gzip.compress)
    with pytest.raises(InputError, match=r"would be read twice; name one: 'in/\*-ubyte'"):
        convert("in", output="out")
    assert len(rows("in/*-ubyte")) == 60
