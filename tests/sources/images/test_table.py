"""Listings of images by column: they hold what tuples would, in the order of whole paths, at a tenth of the memory."""

from __future__ import annotations

import hashlib
import itertools
import os
import pickle
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.errors import InputError
from shardmill.transforms.sources.images.listing import list_images, shuffled
from shardmill.transforms.sources.images.pieces import ImagePieces, ReadFolder, cut_images
from shardmill.transforms.sources.images.walk import FolderEntry, ImageColumns, ImageFile, ImageFolder, ImageTable

FILES = st.lists(
    st.builds(
        ImageFile,
        st.integers(0, 5),
        st.binary(min_size=1, max_size=8),
        st.integers(-1, 1 << 40),
        st.integers(0, 1 << 62),
    ),
    max_size=40,
)


@given(FILES, st.integers(-50, 50), st.integers(-50, 50))
def test_a_table_is_the_sequence_of_its_files(files: list[ImageFile], start: int, stop: int) -> None:
    table = ImageTable.of(files)
    assert list(table) == files
    assert list(table[start:stop]) == files[start:stop]
    assert list(pickle.loads(pickle.dumps(table[start:stop]))) == files[start:stop]
    assert [table[i] for i in range(-len(files), len(files))] == files + files
    assert list(table.in_order_of_names()) == sorted(files, key=lambda file: file.name) or len(
        {file.name for file in files}
    ) < len(files)
    sums = [sum(max(file.size, 0) for file in files if file.folder == i) for i in range(6)]
    assert table.bytes_by_folder(6) == sums


@given(FILES, FILES, st.data())
def test_columns_that_are_extended_hold_all_files(
    one: list[ImageFile], two: list[ImageFile], data: st.DataObject
) -> None:
    columns = ImageColumns()
    for folder, files in itertools.groupby(one, key=lambda file: file.folder):
        columns.add_all(folder, [file[1:] for file in files])
    first = data.draw(st.integers(0, len(two)))
    columns.extend(ImageTable.of(two)[first:])
    columns.extend(ImageTable.of(two)[:first])
    assert list(columns.table()) == one + two[first:] + two[:first]


def test_a_table_that_is_forgotten_is_empty_for_all_who_hold_it() -> None:
    files = [ImageFile(0, b"%d.jpg" % i, 2000, i) for i in range(10)]
    pieces = pieces_of(files, None)
    alone = pickle.loads(pickle.dumps(pieces[2:4]))
    pieces.forget()
    assert list(pieces.table) == []
    assert list(alone.files()) == files[2:4]


def test_a_pickled_view_takes_no_more_than_it_shows() -> None:
    table = ImageTable.of([ImageFile(0, b"%07d.jpg" % i, i, i) for i in range(10_000)])
    assert len(pickle.dumps(table[5000:5010])) < 1000


NAMES = st.sampled_from([b"a", b"a-", b"a.", b"a.jpg", b"b", b"a0", b"a b", b"\xe9", b"B", b"a-b"])


@given(st.sets(st.lists(NAMES, min_size=1, max_size=3).map(b"/".join), min_size=1, max_size=12))
def test_a_walk_comes_to_files_in_the_order_of_their_paths(paths: set[bytes]) -> None:
    files = [path for path in paths if not any(other.startswith(path + b"/") for other in paths)]
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        for i, path in enumerate(files):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            Path(os.fsdecode(os.path.join(root, path))).write_bytes(b"x" * i)
        listing = list_images([folder], "/")
    found = [(listing.folders[i.folder].path[len(root) :] + b"/" + i.name)[1:] for i in listing.images]
    assert found == sorted(files)
    assert [image.size for image in listing.images] == [files.index(path) for path in found]
    assert [folder.path for folder in listing.folders] == sorted(folder.path for folder in listing.folders)
    for entry, at in zip(listing.entries, listing.folders, strict=True):
        own = sorted((i.name, i.size) for i in listing.images if listing.folders[i.folder] == at)
        assert (entry.path, entry.files, entry.bytes) == (at.path, len(own), sum(size for _, size in own))
        digest = hashlib.sha256(b"".join(b"%d %s\0" % (size, name) for name, size in own)).hexdigest()
        assert entry.fingerprint == "sha256:" + digest


def test_a_folder_and_files_that_are_named_come_in_the_order_of_paths_too(tmp_path: Path) -> None:
    for name in ("a.jpg", "b/1.jpg", "b.jpg", "c/1.jpg", "b-c/1.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    listing = list_images(["c", "b.jpg", "b", "a.jpg", "b-c"], str(tmp_path))
    paths = [listing.folders[image.folder].path + b"/" + image.name for image in listing.images]
    root = os.fsencode(tmp_path)
    assert paths == [root + name for name in (b"/a.jpg", b"/b-c/1.jpg", b"/b.jpg", b"/b/1.jpg", b"/c/1.jpg")]
    assert listing.folders[0] == ImageFolder(root, root, root)
    assert listing.entries[0].files == 2
    with pytest.raises(InputError, match=r"c/1\.jpg is in c, which is read too"):
        list_images(["c", "b", "c/1.jpg"], str(tmp_path))


@dataclass
class Level:
    """A folder in a folder, or the file at the end."""

    name: bytes
    path: bytes

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.name == b"d"

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(__file__)


def test_folders_are_walked_however_deep_they_lie(tmp_path: Path) -> None:
    @contextmanager
    def scan(path: bytes) -> Iterator[list[FolderEntry]]:
        name = b"d" if path.count(b"/d") < 3000 else b"x.jpg"
        yield [Level(name, path + b"/" + name)]

    (image,) = list_images([str(tmp_path)], "/", scan).images
    assert (image.name, image.size) == (b"x.jpg", os.path.getsize(__file__))


def test_parts_of_a_listing_keep_what_is_theirs(tmp_path: Path) -> None:
    for name in ("a/1.jpg", "a/2.jpg", "b/1.jpg", "c/1.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    listing = list_images([str(tmp_path)], str(tmp_path))
    kept = listing.keep([0, 2])
    assert [(entry.name, entry.files) for entry in kept.entries] == [("a", 2), ("c", 1)]
    assert [(image.folder, image.name) for image in kept.images] == [(0, b"1.jpg"), (0, b"2.jpg"), (1, b"1.jpg")]
    less = listing.without([listing.images[1]])
    assert [(entry.files, entry.bytes) for entry in less.entries] == [(1, 7), (1, 7), (1, 7)]
    assert (less.files, less.bytes, len(less.images)) == (3, 21, 3)


def test_images_follow_their_digests_and_those_whose_digests_begin_alike_the_listing(tmp_path: Path) -> None:
    for i in range(40):
        (tmp_path / f"{i:02}.jpg").write_bytes(b"x")
    listing = list_images([str(tmp_path)], "/")
    wanted = sorted(range(40), key=lambda i: hashlib.sha256(b"7\n" + listing.images[i].name).digest())
    assert shuffled(listing, 7).tolist() == wanted
    for bits in (6, 7, 8, 10):  # of which six are the row's: 1, 2, 4 and 16 beginnings for 40 digests
        beginning = [hashlib.sha256(b"7\n" + image.name).digest()[0] >> (8 - (bits - 6)) for image in listing.images]
        assert shuffled(listing, 7, key_bits=bits).tolist() == sorted(range(40), key=beginning.__getitem__)


def pieces_of(files: Sequence[ImageFile], order: list[int] | None, **limits: int) -> ImagePieces:
    folders = [ReadFolder(i, b"/r/%d/" % i, b"/r", f"r/{i}", f"{i}/", i, str(i), None) for i in range(6)]
    wanted = {"piece_bytes": 1000, "piece_rows": 4} | limits
    rows = None if order is None else np.array(order, np.int32)
    return cut_images(ImageTable.of(files), rows, folders, with_bytes=True, **wanted)


@given(FILES, st.data())
def test_pieces_are_cut_behind_their_bytes_or_files_and_travel_alone(
    files: list[ImageFile], data: st.DataObject
) -> None:
    order = data.draw(st.none() | st.permutations(range(len(files))))
    pieces = pieces_of(files, order)
    in_order = [files[i] for i in order] if order is not None else files
    assert [image for piece in pieces for image in piece.images] == in_order
    for i, piece in enumerate(pieces):
        assert len(piece.images) == piece.rows <= 4
        assert sum(max(image.size, 0) for image in piece.images[:-1]) < 1000
        whole = piece.bytes >= 1000 or piece.rows == 4
        assert whole or i == len(pieces) - 1
        assert piece.output_bytes == piece.bytes + 330 * piece.rows
    first = data.draw(st.integers(0, len(pieces)))
    part = pieces[first : data.draw(st.integers(first, len(pieces)))]
    again = pickle.loads(pickle.dumps(part))
    assert again.mark() == part.mark()
    assert list(again.files()) == list(part.files()) == [image for piece in part for image in piece.images]
    assert [piece.folders for piece in again] == [piece.folders for piece in part]
    assert again.rows_by_entry() == part.rows_by_entry()
    assert part.rows_by_entry() == Counter(image.folder for image in part.files())
    assert sum(part.rows_by_entry().values(), 0) == part.rows == len(list(part.files()))
