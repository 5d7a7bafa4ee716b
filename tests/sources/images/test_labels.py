from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines import append, convert, open_dataset
from shardmill.transforms.errors import SchemaError, TooManyRejects, UsageError

from ...command_line import Shardmill
from ...label_numbers import in_numbers

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*(is no class|are no classes):UserWarning"),
]

PETS = Path(__file__).parents[3] / "configs/samples/pets"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("cat", "dog", "owl"):
        picture = sorted(PETS.glob(f"{kind}/*.jpg"))[1]
        for name in ("1.jpg", "2.jpg"):
            (tmp_path / "pets" / kind).mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, tmp_path / "pets" / kind / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def to(*labels: Any, **more: Any) -> dict[str, Any]:
    """Return the settings of a conversion to `out` with these classes."""
    return {"output": "out", "input__labels": list(labels), **more}


def numbers() -> dict[str, int]:
    """Return the number of each class that has records."""
    table = in_numbers(open_dataset("out").to_arrow("train"))
    return dict(zip(table["image/class/text"].to_pylist(), table["image/class/label"].to_pylist(), strict=True))


def test_classes_have_the_numbers_of_the_list_and_need_no_images() -> None:
    convert("pets", **to("owl", "emu", "cat", "dog"))
    assert numbers() == {"owl": 0, "cat": 2, "dog": 3}
    assert open_dataset("out").labels == {"image/class/label": ("owl", "emu", "cat", "dog")}
    assert Path("out/image-class-label.labels.txt").read_text() == "owl\nemu\ncat\ndog\n"


def test_the_label_offset_comes_before_the_list() -> None:
    convert("pets", **to("owl", "cat", "dog", input__label_offset=1))
    assert numbers() == {"owl": 1, "cat": 2, "dog": 3}


def test_images_of_a_folder_that_is_no_class_are_rejects_with_commands_that_work() -> None:
    with pytest.raises(TooManyRejects) as refused:
        convert("pets", **to("dog", "cat"))
    text = str(refused.value)
    fixes = re.findall(r"--set ('[^']+'|\S+)", text)[:2]
    assert '"owl" is no class: dog, cat; add it: --set ' in text
    summary = convert("pets", **to("dog", "cat", max_rejects=2))
    assert numbers() == {"dog": 0, "cat": 1}
    assert summary.manifest.rejects is not None
    assert summary.manifest.rejects.by_code == {"UNKNOWN_CLASS": 2}
    for fix in fixes:
        shutil.rmtree("out")
        key, _, value = shlex.split(fix)[0].partition("=")
        names = [name.strip(' "') for name in value.strip("[],; ").split(",")]
        convert("pets", **to("dog", "cat", **{key.replace(".", "__"): names}))
    assert numbers() == {"dog": 0, "cat": 1}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["dog", "cat"], '"owl" is no class: dog, cat; '),
        (["dog"], "2 folders are no classes of input.labels: cat, owl;"),
    ],
)
def test_a_dry_run_names_the_folders_that_are_no_class(shardmill: Shardmill, given: list[str], shown: str) -> None:
    screen = shardmill("convert", "pets", "-o", "out", "--set", f"input.labels=[{', '.join(given)}]", "--dry-run")
    assert screen.code == 0
    assert f"Warning: {shown}" in " ".join(f"{screen.out} {screen.err}".split())


def test_layouts_without_classes_take_no_list() -> None:
    with pytest.raises(UsageError, match=r"input\.labels: the folders are no classes \(input.layout is flat"):
        convert("pets/cat", **to("cat"))
    with pytest.raises(UsageError, match=r"input.layout is split: root/train/1.jpg\).*--set input.layout=split_label"):
        convert("pets", **to("cat", input__layout="split"))


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ([], "is no list of classes"),
        (["a", "a"], '"a" appears twice'),
        ([True], "put it in quotes"),
        ("cat", "no list"),
    ],
)
def test_a_list_that_is_none_is_refused_by_the_config(labels: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        convert("pets", output="out", input__labels=labels)


def test_an_append_extends_the_classes_of_the_dataset_at_the_end() -> None:
    shutil.move("pets/owl", "owl")
    convert("pets", **to("dog", "cat", input__label_offset=1))
    shutil.move("owl", "pets/owl")
    append("pets", **to("dog", "cat", "owl"))
    assert numbers() == {"dog": 1, "cat": 2, "owl": 3}
    assert append("pets", **to("dog", "cat", "owl")).nothing_to_do


@pytest.mark.parametrize("given", [["cat", "dog"], ["owl", "dog", "cat"]])
def test_an_append_whose_list_gives_other_numbers_is_refused_with_the_fix(given: list[str]) -> None:
    convert("pets", **to("dog", "cat", max_rejects=2))
    with pytest.raises(SchemaError, match=f'input.labels: class 0 is "{given[0]}", and "dog" in the dataset'):
        append("pets", **to(*given, force=True))


def test_an_append_without_a_list_has_the_classes_of_the_dataset_and_new_ones_after_them() -> None:
    shutil.move("pets/owl", "owl")
    convert("pets", **to("dog", "cat"))
    shutil.move("owl", "pets/owl")
    append("pets", output="out")
    assert numbers() == {"dog": 0, "cat": 1, "owl": 2}
    assert append("pets", output="out").nothing_to_do
