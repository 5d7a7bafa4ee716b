from __future__ import annotations

import os
import tarfile
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.inputs.files.listing import list_file
from shardmill.transforms.sources.archives.samples import Naming, Skipped, samples_of
from shardmill.transforms.sources.archives.survey import WHOLE, Walk, look_at_archive, open_archive

from ...archives import tar_of, zip_of

NAMES = st.sampled_from(
    ["a.jpg", "a.json", "b.jpg", "./b.txt", "c/a.jpg", "c/a.cls", "._a.jpg", "README.md", "noext", "d/"]
)
ARCHIVES = st.lists(st.lists(NAMES, max_size=6), min_size=1, max_size=3)
FORMS = st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])


@pytest.mark.filterwarnings("ignore:Duplicate name")
@given(archives=ARCHIVES, form=FORMS, piece_bytes=st.integers(1, 3000), kind=st.sampled_from(["tar", "zip"]))
def test_the_pieces_of_an_archive_have_its_samples_each_once_in_order(
    archives: list[list[str]], form: int, piece_bytes: int, kind: str
) -> None:
    members = [[(name, b"x" * (37 * number)) for number, name in enumerate(names)] for names in archives]
    joined = [one for part in members for one in part]
    data = b"".join(tar_of(part, form) for part in members) if kind == "tar" else zip_of(joined)
    naming = Naming()
    with tempfile.NamedTemporaryFile(suffix=f".{kind}") as file:
        file.write(data)
        file.flush()
        entry = list_file(file.name.encode(), os.path.dirname(file.name).encode())
        found = look_at_archive(entry, Walk(kind, naming, piece_bytes))
        whole: list[tuple[bytes, int]] = []
        parts: list[tuple[bytes, int]] = []
        again: list[bool] = []
        with open_archive(entry, kind, WHOLE) as archive:
            whole += [
                (one.key, len(one.parts)) for one in samples_of(archive, 0, None, naming, lambda *_: None, Skipped())
            ]
        for cut in found.cuts:
            with open_archive(entry, kind, WHOLE) as archive:
                some = list(samples_of(archive, cut.start, cut.stop, naming, lambda *_: None, Skipped()))
            assert len(some) == cut.rows
            parts += [(one.key, len(one.parts)) for one in some]
            again += [bool(cut.again) and bool(cut.again[i // 8] >> i % 8 & 1) for i in range(cut.rows)]
    assert parts == whole
    assert found.samples == len(whole)
    keys = [key for key, _ in whole]
    assert again == [key in keys[:number] for number, key in enumerate(keys)]
