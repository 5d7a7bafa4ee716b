"""README's column "not read": each of these ends with an error, or a reject, that says what helps."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ..readme import README

CSV = b"id;price\n1;2,50\n"


def made(write: Callable[[io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _tar(file: io.BytesIO) -> None:
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("a.csv")
        member.size = len(CSV)
        archive.addfile(member, io.BytesIO(CSV))


def _zip(file: io.BytesIO) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", CSV)


NOT_READ: dict[str, tuple[str, bytes, int, str]] = {
    "ZIP": ("a.zip", made(_zip), 1, "not read within archives; unpack it first: unzip a.zip"),
    "tables in archives": ("a.tar", made(_tar), 1, "not read within archives; unpack it first: tar -xf a.tar"),
    "files that are one JSON array": ("a.jsonl", b'[{"a": 1}]', 1, "jq -c '.[]' a.jsonl"),
    "nulls within lists": (
        "a.parquet",
        made(lambda file: pq.write_table(pa.table({"x": [[1, None]]}), file)),
        4,
        'column "x": NULL_IN_LIST: null is in a list; fill such nulls: --set schema.columns.x.null_item=-1',
    ),
    "other encodings than UTF-8": ("a.txt", "café\n".encode("latin-1"), 4, "iconv -f cp1252 -t utf-8 a.txt"),
    "camera raw, video": ("a.mp4", b"\0\0\0\x18ftypmp42", 2, "a.mp4: unknown kind of file"),
    "object arrays (pickles)": (
        "a.npy",
        made(lambda file: np.save(file, np.array([{}, 2], object), allow_pickle=True)),
        2,
        "it holds Python objects (a pickle), which are never loaded; save it with a numeric dtype",
    ),
}


@pytest.mark.parametrize("what", NOT_READ)
def test_what_readme_says_is_not_read_ends_with_what_helps(desk: Any, what: str) -> None:
    name, data, code, says = NOT_READ[what]
    assert what in README.read_text()
    desk.put({name: data})
    screen = desk.convert(name)
    assert (screen.code, says in screen.err) == (code, True), screen.err


@pytest.mark.parametrize("place", ["http://host/a.csv", "hdfs://host/a.csv", "abfs://host/a.csv", "az://host/a.csv"])
def test_other_places_are_refused_with_those_that_are_read(desk: Any, place: str) -> None:
    screen = desk.convert(place)
    assert (screen.code, "is not supported; give a local path, s3://" in screen.err) == (2, True), screen.err


def test_a_table_aligned_with_spaces_is_refused_with_the_option_that_cuts_it(desk: Any) -> None:
    desk.put({"a.csv": b"id   name\n1    ann\n22   bob\n"})
    assert "to cut there: --set input.trim=true" in desk.convert("a.csv", "--dry-run").err
    assert desk.convert("a.csv", "--set", "input.trim=true").code == 0
    assert desk.records() == [{"id": 1, "name": "ann"}, {"id": 22, "name": "bob"}]
