from __future__ import annotations

import pytest
from shardmill.transforms.errors import UsageError
from shardmill.transforms.recognise.pictures.layout import FolderRole, choose_layout, class_warnings, role_of


@pytest.mark.parametrize(
    ("folders", "layout"),
    [
        ([b"cat", b"dog"], "label"),
        ([b"train", b"test"], "split"),
        ([b"Train", b"VAL"], "split"),
        ([b"train"], "split"),
        ([b"train2017", b"val_2017"], "split"),
        ([b"train", b"cat"], "label"),
        ([b"images", b"cat"], "label"),
        ([b"train/cat", b"val/dog"], "split_label"),
        ([b"Training/cat", b"TEST/cat", b"dev/cat", b"eval/x"], "split_label"),
        ([b""], "flat"),
        ([], "flat"),
        ([b"caf\xe9"], "label"),
    ],
)
def test_auto_tells_the_layout_by_the_folders_that_hold_files(folders: list[bytes], layout: str) -> None:
    assert choose_layout(folders, "auto") == layout


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        ([b"", b"cat"], 'there are files in the root and in "cat"'),
        ([b"cat", b"cat/black"], 'there are files in "cat" and in "cat/black"'),
        ([b"2023/cat", b"train/cat"], '"2023" is not the name of a split (in "2023/cat")'),
        ([b"train/cat/black"], 'there are files 3 levels down (in "train/cat/black")'),
        ([b"train", b"val/cat"], 'there are files in "train" and in "val/cat"'),
        ([b"images", b"Masks"], '"Masks", "images" look like parts of each example, not classes'),
        ([b"images"], '"images" is the name of a folder for all pictures, not of a class; read that folder by its own'),
        ([b"masks"], '"masks" looks like a part of each example, not a class'),
        ([b"train/images", b"train/labels", b"val/images"], '"images", "labels" look like parts of each example'),
    ],
)
def test_any_other_layout_is_asked_for(folders: list[bytes], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose_layout(folders, "auto")
    assert message in str(caught.value)
    assert str(caught.value).startswith("it is unclear what the folders mean: ")
    assert str(caught.value).endswith(
        "choose one of:\n"
        "  --set input.layout=flat        root/1.jpg            no classes\n"
        "  --set input.layout=label       root/cat/1.jpg        a class in each folder\n"
        "  --set input.layout=split       root/train/1.jpg      a split in each folder\n"
        "  --set input.layout=split_label root/train/cat/1.jpg  splits, with a class in each folder\n"
        "  --set input.layout=inner_label root/p1/cat/1.jpg     classes in folders of something else, such as patients"
    )


def test_a_layout_that_is_named_is_taken() -> None:
    assert choose_layout([b"", b"a/b/c"], "label") == "label"
    with pytest.raises(
        UsageError, match='"labels" is not a layout; choose one of auto, flat, label, split, split_label'
    ):
        choose_layout([b""], "labels")


def test_a_class_is_the_path_below_the_root_or_the_split() -> None:
    assert role_of(b"cat", "label") == FolderRole(None, "cat")
    assert role_of(b"wild/cat", "label") == FolderRole(None, "wild/cat")
    assert role_of(b"Train/wild/cat", "split_label") == FolderRole("train", "wild/cat")
    assert role_of(b"cat", "flat") == FolderRole()
    assert role_of(b"", "label") == FolderRole()
    assert role_of(b"train", "split_label") == FolderRole("train", None)
    assert role_of(b"Train", "split") == FolderRole("train", None)
    assert role_of(b"train/batch1", "split") == FolderRole("train", None)
    assert role_of(b"", "split") == FolderRole()
    assert role_of("café noir".encode(), "label") == FolderRole(None, "café noir")


def test_a_folder_that_is_not_utf8_gives_no_class() -> None:
    assert role_of(b"caf\xe9", "label") == FolderRole()


@pytest.mark.parametrize("top", [b"2023", b"my split", "été".encode(), b"a-b"])
def test_a_split_that_cannot_be_named_is_an_error(top: bytes) -> None:
    with pytest.raises(UsageError, match="a split begins with a letter"):
        role_of(top + b"/cat", "split_label")


def test_a_line_break_in_a_class_is_an_error_that_shows_it_escaped() -> None:
    with pytest.raises(UsageError, match=r'the class folder "a\\nb" has a line break in its name; rename it'):
        role_of(b"a\nb", "label")


def test_classes_that_differ_in_case_or_unicode_form_only_are_warned_of() -> None:
    assert class_warnings(["Cat", "cat", "dog"], "label") == (
        'the classes "Cat" and "cat" differ only in case, blanks or Unicode form; they stay two classes',
    )
    (warning,) = class_warnings(["cafe\u0301", "caf\u00e9"], "label")
    assert '"cafe\\u0301" and "caf\\xe9"' in warning
    assert class_warnings(["Poodle", "poodle "], "label") == (
        'the classes "Poodle" and "poodle " differ only in case, blanks or Unicode form; they stay two classes',
    )
    assert class_warnings(["cat", "dog", "hot dog", "hotdog"], "label") == ()


def test_classes_that_are_named_like_splits_are_warned_of() -> None:
    named = "classes are named like splits: test, train; if they are splits: "
    assert class_warnings(["test", "train"], "label") == (named + "--set input.layout=split",)
    assert class_warnings(["cat", "test", "train"], "label") == (named + "keep them in a folder of their own",)
    assert class_warnings(["test", "train"], "split_label") == ()
