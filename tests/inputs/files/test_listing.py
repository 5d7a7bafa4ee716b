from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.errors import InputError
from shardmill.transforms.inputs.files import listing
from shardmill.transforms.inputs.files.file_names import suffixes_of
from shardmill.transforms.inputs.files.listing import expand_paths, list_entries, some_paths
from shardmill.transforms.recognise.rules import Look

CSV = suffixes_of("csv")


def names(paths: list[str], base: Path, suffixes: tuple[str, ...] = CSV) -> list[str]:
    return [entry.name for entry in list_entries(paths, str(base), suffixes, file_format="csv").entries]


def put(path: Path, text: str = "a\n1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_of_a_folder_of_many_files_the_first_of_each_suffix_are_found_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_FIRST", 2)
    names = [
        "b.png",
        "a.png",
        "c.jpg",
        "3.csv",
        "1.csv",
        "2.csv",
        "0.csv.gz",
        "z.txt",
        "_h.csv",
        ".h.png",
        "x-00001-of-2",
    ]
    for name in [*names, "in/b.png", "in/a.PNG", "in/0.csv", "in/d.csv/deep.png", "_h/a.csv", "out.csv", "Thumbs.db"]:
        put(tmp_path / "set" / name)
    (tmp_path / "set/a.csv").symlink_to("in")
    (tmp_path / "set/9.csv").symlink_to("nowhere")
    put(tmp_path / "set/ds/manifest.json")
    put(tmp_path / "set/ds/manifests/a.csv")
    suffixes, few = (".png", ".jpg", ".csv", ".csv.gz"), (".png", ".jpg")
    for ignore, gone in (([], ()), (["in", "1.*"], ("in/", "1."))):
        every, _ = expand_paths(["set"], str(tmp_path), suffixes, names_only=True, ignore=ignore)
        groups: dict[tuple[bytes, bytes], list[bytes]] = {}
        for path in every:
            groups.setdefault((os.path.dirname(path), os.path.splitext(path)[1]), []).append(path)
        wanted = [
            one for (_, end), some in groups.items() for one in some[: 1 if os.fsdecode(end).lower() in few else 2]
        ]
        found = some_paths(["set"], str(tmp_path), suffixes, few=few, ignore=ignore)
        assert found == sorted(wanted)
        assert len(found) < len(every)
        below = [os.path.relpath(os.fsdecode(one), tmp_path / "set") for one in found]
        assert not [one for one in below if gone and one.startswith(gone)]
    with pytest.raises(InputError, match=r"one of the suffixes \.csv that input\.ignore does not leave out"):
        some_paths(["set/in"], str(tmp_path), (".csv",), ignore=["*.csv"])


def test_a_file_is_listed_with_its_size_time_and_the_digest_of_its_size_edges_and_places_between(
    tmp_path: Path,
) -> None:
    body = bytes(range(256)) * 1000
    (tmp_path / "a.csv").write_bytes(body)
    listing = list_entries(["a.csv"], str(tmp_path), CSV, file_format="csv")
    (entry,) = listing.entries
    places = [65536 + (256000 - 2 * 65536 - 4096) * number // 15 for number in range(16)]
    between = b"".join(body[place : place + 4096] for place in places)
    assert (places[0], places[-1] + 4096) == (65536, 256000 - 65536)
    expected = hashlib.sha256(b"256000\n" + body[:65536] + between + body[-65536:]).hexdigest()
    assert (entry.path, entry.name, entry.bytes) == (os.fsencode(tmp_path / "a.csv"), "a.csv", 256000)
    assert entry.mtime_ns == (tmp_path / "a.csv").stat().st_mtime_ns
    assert entry.fingerprint == "sha256:" + expected
    assert (listing.format, listing.files, listing.bytes, listing.skipped) == ("csv", 1, 256000, {})


def test_a_file_between_64_and_128_kib_is_digested_whole(tmp_path: Path) -> None:
    body = b"x" * 70000 + b"y" * 1000
    (tmp_path / "a.csv").write_bytes(body)
    (entry,) = list_entries(["a.csv"], str(tmp_path), CSV).entries
    assert entry.fingerprint == "sha256:" + hashlib.sha256(b"71000\n" + body).hexdigest()


def test_a_fingerprint_does_not_depend_on_time(tmp_path: Path) -> None:
    put(tmp_path / "a.csv")
    first = list_entries(["a.csv"], str(tmp_path), CSV).entries[0].fingerprint
    os.utime(tmp_path / "a.csv", (1, 1))
    assert list_entries(["a.csv"], str(tmp_path), CSV).entries[0].fingerprint == first


def test_entries_are_sorted_by_the_bytes_of_their_paths_and_listed_once(tmp_path: Path) -> None:
    for name in ("b.csv", "B.csv", "é.csv", "a/z.csv", "a.csv"):
        put(tmp_path / name)
    wanted = ["B.csv", "a.csv", "a/z.csv", "b.csv", "é.csv"]
    assert names(["é.csv", "*.csv", ".", "./b.csv", str(tmp_path / "a")], tmp_path) == wanted


def test_a_folder_is_recursed_and_counts_what_it_passes_over(tmp_path: Path) -> None:
    for name in ("in/x.csv", "in/deep/y.CSV", "in/.z.csv", "in/_temporary/part.csv", "in/notes.txt", "in/t.tsv.gz"):
        put(tmp_path / name)
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    listing = list_entries(["in"], str(tmp_path), CSV)
    assert [e.name for e in listing.entries] == ["in/deep/y.CSV", "in/t.tsv.gz", "in/x.csv"]
    assert list(listing.skipped.items()) == [
        (".txt", 1),
        ("hidden", 1),
        ("hidden folder", 1),
        ("links", 1),
    ]  # in this order in the manifest


def test_a_dataset_of_ours_below_a_folder_is_passed_over_and_counted(tmp_path: Path) -> None:
    for name in ("x.csv", "out/manifest.json", "out/manifests/00000001.json", "out/copy.csv", "other/manifest.json"):
        put(tmp_path / name)
    put(tmp_path / "other" / "y.csv")
    listing = list_entries(["."], str(tmp_path), CSV)
    assert [e.name for e in listing.entries] == ["other/y.csv", "x.csv"]
    assert listing.skipped == {"dataset": 1, ".json": 1}
    assert Look(["."], str(tmp_path)).detect() == "csv"


def test_a_file_that_is_named_is_taken_whatever_its_suffix(tmp_path: Path) -> None:
    put(tmp_path / "_data.txt")
    assert names(["_data.txt"], tmp_path) == ["_data.txt"]


def test_a_literal_name_with_brackets_is_not_a_glob(tmp_path: Path) -> None:
    put(tmp_path / "a[1].csv")
    put(tmp_path / "a1.csv")
    assert names(["a[1].csv"], tmp_path) == ["a[1].csv"]
    assert names(["a[1-2].csv"], tmp_path) == ["a1.csv"]


def test_a_glob_works_below_a_folder_whose_own_name_holds_brackets(tmp_path: Path) -> None:
    base = tmp_path / "run[7]"
    put(base / "x" / "a.csv")
    assert names(["**/*.csv"], base) == ["x/a.csv"]


def test_a_file_outside_the_base_folder_is_shown_by_its_whole_path(tmp_path: Path) -> None:
    put(tmp_path / "a.csv")
    (tmp_path / "sub").mkdir()
    assert names(["../a.csv"], tmp_path / "sub") == [str(tmp_path / "a.csv")]


def test_a_name_that_is_not_utf8_is_listed_and_shown_escaped(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9\n.csv"
    with open(raw, "wb") as file:
        file.write(b"a\n")
    (entry,) = list_entries(["."], str(tmp_path), CSV).entries
    assert entry.path == raw
    assert entry.name == "caf\\xe9\\n.csv"


@pytest.mark.parametrize("path", ["gone.csv", "gone/*.csv"])
def test_a_path_that_matches_nothing_is_named(tmp_path: Path, path: str) -> None:
    put(tmp_path / "a.csv")
    with pytest.raises(InputError) as caught:
        names(["a.csv", path], tmp_path)
    assert str(caught.value).startswith(f"{path}: no such file or folder")
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("dta/a.csv", "data"),
        ("data/pepole.csv", "data/people.csv"),
        ("dta/*.csv", "data"),
        ("data/*.tsv", None),
        ("zzz", None),
    ],
)
def test_the_nearest_name_is_proposed_for_the_first_step_of_a_path_that_is_missing(
    tmp_path: Path, path: str, meant: str | None
) -> None:
    put(tmp_path / "data/people.csv")
    for base in ("", f"{tmp_path}/"):
        with pytest.raises(InputError) as caught:
            names([base + path], tmp_path)
        assert str(caught.value).partition("; ")[2] == (f'did you mean "{base}{meant}"?' if meant else "")


def test_a_folder_without_a_file_of_the_format_is_an_error(tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.txt")
    with pytest.raises(InputError, match=r"^in: the folder holds no file with one of the suffixes .csv, .tsv"):
        names(["in"], tmp_path)


def test_no_path_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"input\.paths is empty"):
        names([], tmp_path)


@pytest.mark.parametrize("path", ["x.csv", ".", "*.csv"])
def test_a_named_pipe_is_refused_without_being_opened(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"x\.csv: is a named pipe; only regular files are read"):
        names([path], tmp_path)


def test_a_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path of a socket has a limit of about 100 bytes
        try:
            server.bind("x.csv")
        finally:
            os.chdir(here)
        with pytest.raises(InputError, match="is a socket"):
            names(["x.csv"], tmp_path)


@pytest.mark.parametrize("path", ["x.csv", "."])
def test_a_link_to_nothing_is_an_error(tmp_path: Path, path: str) -> None:
    (tmp_path / "x.csv").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match=r"x\.csv: cannot be read: No such file"):
        names([path], tmp_path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", "csv"),
        ("a.TSV", "csv"),
        ("a.csv.gz", "csv"),
        ("a.parquet", "parquet"),
        ("a.pq", "parquet"),
        ("a.npz", "numpy"),
        ("a.tfrecord", "tfrecord"),
        ("cats/a.JPG", "images"),
    ],
)
def test_the_format_is_told_by_suffix_of_a_file_or_of_a_folders_files(tmp_path: Path, name: str, kind: str) -> None:
    put(tmp_path / "in" / name)
    put(tmp_path / "in" / "readme.md")
    assert Look([f"in/{name}"], str(tmp_path)).detect() == kind
    assert Look(["in"], str(tmp_path)).detect() == kind


def test_a_format_that_cannot_be_told_names_the_setting(tmp_path: Path) -> None:
    put(tmp_path / "a.dat")
    put(tmp_path / "b" / "x.dat")
    put(tmp_path / "c" / "x.csv")
    put(tmp_path / "c" / "y.parquet")
    with pytest.raises(InputError, match=r"a\.dat: unknown kind of file; .*--set input\.format="):
        Look(["a.dat"], str(tmp_path)).detect()
    with pytest.raises(InputError, match=r"b: holds no file of a known kind; .*--set input\.format="):
        Look(["b"], str(tmp_path)).detect()
    with pytest.raises(InputError, match=r"several kinds of files .*--set input\.format="):
        Look(["c"], str(tmp_path)).detect()
    with pytest.raises(InputError, match="no such file or folder"):
        Look(["gone.csv"], str(tmp_path)).detect()


@pytest.mark.parametrize(("form", "kind"), [("file", "arrow"), ("stream", "arrow"), ("parquet", "parquet")])
def test_a_file_whose_name_shows_no_format_is_named_by_its_first_bytes_with_the_option_that_reads_it(
    tmp_path: Path, form: str, kind: str
) -> None:
    table = pa.table({"id": [1, 2]})
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.arrow_file"
    if form == "parquet":
        pq.write_table(table, path)
    else:
        with (pa.ipc.new_file if form == "file" else pa.ipc.new_stream)(path, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(InputError, match=rf"the first bytes are those of an? .*; read it as one: --format {kind}$"):
        Look([str(path)]).detect()
    with pytest.raises(
        InputError,
        match=rf"known kind; the first bytes .* 'in/\*\.arrow_file' -o out --format {kind}$",
    ):
        Look(["in"], str(tmp_path)).detect()
    assert convert(path, output=tmp_path / "out", format=kind).manifest.counts.written == 2


@pytest.mark.parametrize("note", ["README", "labels.csv", "notes.txt", "features.npy"])
def test_a_glob_of_class_folders_is_images_whatever_lies_beside_them(tmp_path: Path, note: str) -> None:
    for name in ("pets/cat/1.jpg", "pets/dog/1.jpg", f"pets/{note}"):
        put(tmp_path / name)
    assert Look(["pets/*"], str(tmp_path)).detect() == "images"
    assert Look(["pets/cat", "pets/dog", f"pets/{note}"], str(tmp_path)).detect() == "images"


def test_a_table_beside_one_folder_of_images_is_asked_about_with_commands_that_can_be_pasted(tmp_path: Path) -> None:
    put(tmp_path / "in/pics/x.jpg")
    put(tmp_path / "in/a.csv")
    with pytest.raises(InputError, match=r"say which to read: --set input\.format=csv or --set input\.format=images$"):
        Look(["in/*"], str(tmp_path)).detect()
