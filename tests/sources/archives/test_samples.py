from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.sources.archives.samples import Form, Naming, Skipped, samples_of
from shardmill.transforms.sources.archives.tar import Member


class Names:
    """An archive of empty members."""

    end = 0

    def __init__(self, names: list[bytes]) -> None:
        self.names = names

    def members(self, start: int, stop: int | None) -> Iterator[Member]:
        for at, name in enumerate(self.names[start:stop]):
            yield Member(at, at, name, at, 0)

    def read(self, member: Member) -> bytes:
        return b""


def grouped(names: list[bytes], naming: Naming | None = None) -> tuple[list[tuple[bytes, list[bytes]]], Skipped]:
    skipped = Skipped()
    found = samples_of(Names(names), 0, None, naming or Naming(), lambda *_: None, skipped)
    return [(one.key, [part.suffix for part in one.parts]) for one in found], skipped


STEMS = st.sampled_from([b"a", b"b", b"d/a", b"d/b", b"d.e/a", b"./a"])
SUFFIXES = st.sampled_from([b"jpg", b"JSON", b"in.png", b"cls"])


@given(names=st.lists(st.tuples(STEMS, SUFFIXES), max_size=12))
def test_samples_are_the_runs_of_members_of_one_key(names: list[tuple[bytes, bytes]]) -> None:
    found, _ = grouped([stem + b"." + suffix for stem, suffix in names])
    runs: list[tuple[bytes, list[bytes]]] = []
    for stem, suffix in names:
        key = stem.removeprefix(b"./")
        if not runs or runs[-1][0] != key:
            runs.append((key, []))
        runs[-1][1].append(suffix.lower())
    assert found == runs


def test_what_is_no_sample_is_counted_by_its_reason_and_the_first_of_each_is_known() -> None:
    names = [
        b"._1.jpg",
        b".DS_Store",
        b"__MACOSX/1.jpg",
        b"a/.git/x.jpg",
        b"README.md",
        b"noext",
        b"1.jpg",
    ]
    found, skipped = grouped(names)
    assert found == [(b"1", [b"jpg"])]
    assert skipped.counts == {"hidden": 4, "of notes": 1, "without a suffix": 1}
    assert skipped.first == {"hidden": "._1.jpg", "of notes": "README.md", "without a suffix": "noext"}


@pytest.mark.parametrize("name", [b"_abc.jpg", b"a__b.jpg", b"../x.jpg", b"/abs/x.jpg", b"d/_e/__f.jpg"])
def test_names_with_underscores_and_absolute_ones_are_only_names(name: bytes) -> None:
    assert [key for key, _ in grouped([name])[0]] == [name.removesuffix(b".jpg")]


def test_globs_leave_members_out_in_whatever_case_and_folders_too() -> None:
    naming = Naming(ignore=("*.txt", "raw"))
    found, skipped = grouped([b"1.jpg", b"1.TXT", b"raw/2.jpg", b"x/raw/y/3.jpg"], naming)
    assert (found, skipped.counts) == ([(b"1", [b"jpg"])], {"ignored": 3})


def test_a_key_may_end_at_the_last_dot() -> None:
    assert grouped([b"IMG.2024.jpg"])[0] == [(b"IMG", [b"2024.jpg"])]
    assert grouped([b"IMG.2024.jpg"], Naming(key="last_dot"))[0] == [(b"IMG.2024", [b"jpg"])]


@pytest.mark.parametrize(
    ("suffix", "name", "form"),
    [
        ("jpg", "image", Form.PICTURE),
        ("tiff", "image", Form.PICTURE),
        ("in.png", "in", Form.PICTURE),
        ("json", "json", Form.JSON),
        ("meta.json", "meta.json", Form.TEXT),
        ("cls", "cls", Form.VALUE),
        ("txt", "txt", Form.TEXT),
        ("npy", "npy", Form.BYTES),
        ("seg.npy", "seg.npy", Form.BYTES),
    ],
)
def test_a_suffix_names_the_column(suffix: str, name: str, form: Form) -> None:
    column = Naming().column_of(suffix.encode())
    assert column is not None
    assert (column.name, column.form) == (name, form)


def test_pictures_may_be_called_by_their_suffix_and_json_may_stay_text() -> None:
    naming = Naming(pictures="suffix", json="text")
    found = [naming.column_of(suffix) for suffix in (b"jpg", b"in.png", b"json", b"\xff")]
    assert [one and (one.name, one.form.name) for one in found] == [
        ("jpg", "PICTURE"), ("in", "PICTURE"), ("json", "TEXT"), None,
    ]  # fmt: skip
