from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.manifest import naming


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(naming).failed == 0


@pytest.mark.parametrize(
    "template",
    ["{split}-{index:05d}", "{split}-{index:05d}-of-{count:05d}", "{split}_{index}", "data.{split}.{index:03d}"],
)
def test_a_template_with_split_and_index_is_taken(template: str) -> None:
    assert naming.check_shard_name(template) == template


@pytest.mark.parametrize(
    "template",
    [
        "{split}",
        "{index}",
        "shard",
        "../{split}-{index}",
        "a/{split}-{index}",
        ".{split}-{index}",
        "_{split}-{index}",
        "{split.__class__}-{index}",
        "{split}-{index!r}",
        "{split}-{index:x}",
        "{split:05d}-{index}",
        "{split}-{index} ",
        "{split}-{index}\n",
        "{}",
        "",
    ],
)
def test_a_template_that_cannot_name_shards_apart_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="shard_name"):
        naming.check_shard_name(template)


def test_only_a_template_with_the_count_names_its_count() -> None:
    assert naming.names_its_count("{split}-{index:05d}-of-{count:05d}")
    assert not naming.names_its_count("{split}-{index:05d}")


def test_an_index_beyond_its_width_keeps_all_its_digits() -> None:
    assert naming.shard_file_name("{split}-{index:05d}", "val", 123456, 1, "none") == "val-123456.tfrecord"


@pytest.mark.parametrize("name", ["train", "a", "val_2", "x" * 64])
def test_lower_case_words_name_splits(name: str) -> None:
    assert naming.is_split_name(name)


@pytest.mark.parametrize("name", ["", "Train", "2nd", "_x", "a-b", "a/b", "..", "é", "train\n", "x" * 65])
def test_other_words_do_not_name_splits(name: str) -> None:
    assert not naming.is_split_name(name)


@pytest.mark.parametrize(
    "path", ["..", ".", "a/..", "./a", "//", "a\\b", "a b", "a\x00", "a\n", "file:///a", "~/a?", "é", "a/./b"]
)
def test_a_path_that_may_leave_its_folder_is_not_safe(path: str) -> None:
    assert not naming.is_safe_path(path)


@given(st.text())
def test_every_folder_gives_a_name_of_the_allowed_form(path: str) -> None:
    name = naming.dataset_name(path)
    assert name[0].isascii()
    assert name[0].islower()
    assert all(c.isascii() and (c.islower() or c.isdigit() or c == "_") for c in name)


def test_names_are_short_enough_for_file_systems() -> None:
    assert naming.dataset_name("/data/" + "a" * 200) == "a" * 128
    with pytest.raises(ValueError, match="shard_name has 121 characters, and 120 is the most"):
        naming.check_shard_name("{split}-{index}" + "x" * 106)
