from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from shardmill.pipelines import append, convert
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.errors import ConfigError, SchemaError, SourceError, TooManyRejects, UsageError
from shardmill.transforms.sources.archives import source
from shardmill.transforms.sources.archives.tar import TarArchive
from shardmill.transforms.sources.archives.zip import ZipArchive

from ...archives import picture, sample, tar_of, write, zip_of
from ...label_numbers import in_numbers


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(path: Any = "a.tar", split: str = "train", output: str = "out", **settings: Any) -> list[dict[str, Any]]:
    convert(path, output=output, **settings)
    found: list[dict[str, Any]] = in_numbers(open_dataset(output).to_arrow(split)).to_pylist()
    return found


def rejects(path: Any = "a.tar", **settings: Any) -> list[str]:
    with pytest.raises(TooManyRejects) as refused:
        convert(path, output="out", **settings)
    return [line for line in str(refused.value).splitlines() if line.startswith("  ")]


def test_a_sample_is_a_row_with_its_picture_its_class_its_text_and_the_fields_of_its_json() -> None:
    members = [
        *sample("s/1", 1, {"caption": "a cat", "n": 1, "meta": {"w": [1, 2]}}, cls=b"0\n", txt=b"one\n", npy=b"\x93"),
        *sample("s/2", 2, {"caption": "a dog"}, cls=b"2", txt="zwei ü".encode()),
    ]
    write("a.tar", tar_of(members))
    one, two = rows()
    assert one == {
        "__key__": "s/1", "caption": "a cat", "cls": 0, "image/channels": 3, "image/colorspace": "RGB",
        "image/encoded": picture(1), "image/filename": "s/1.jpg", "image/format": "jpeg", "image/height": 10,
        "image/width": 20, "meta": {"w": [1, 2]}, "n": 1, "npy": b"\x93", "txt": "one\n",
    }  # fmt: skip
    assert (two["cls"], two["txt"], two["n"], two["npy"]) == (2, "zwei ü", None, None)
    assert open_dataset("out").labels["cls"] == ("0", "1", "2")


def test_pictures_alone_give_the_features_of_a_folder_of_images() -> None:
    for kind in ("cat", "dog"):
        for number in (1, 2):
            write(f"pets/{kind}/{number}.jpg", picture(number))
    with tarfile.open("pets.tar", "w") as tar:
        tar.add("pets", filter=lambda info: info)
    of_folder, of_tar = (rows(path, output=out) for path, out in (("pets", "a"), ("pets.tar", "b")))

    def order(row: dict[str, Any]) -> str:
        return str(row["image/filename"]).removeprefix("pets/")

    plain = [{**row, "image/filename": order(row)} for row in sorted(of_tar, key=order)]
    assert plain == sorted(of_folder, key=order)
    one, other = open_dataset("a").schema, open_dataset("b").schema
    assert one == other


def test_folders_in_an_archive_are_splits_and_classes_as_those_on_a_disk() -> None:
    write("a.tar", tar_of([(f"./{split}/{kind}/1.JPG", picture()) for split in ("train", "val") for kind in "ab"]))
    assert [(row["image/class/text"], row["image/filename"]) for row in rows(split="val")] == [
        ("a", "val/a/1.JPG"),
        ("b", "val/b/1.JPG"),
    ]
    flat = rows(output="flat", input__layout="flat")
    assert len(flat) == 4
    assert "image/class/label" not in flat[0]


def test_a_folder_that_no_class_can_be_is_refused_with_the_choices() -> None:
    write("a.tar", tar_of([("1.jpg", picture()), ("a/2.jpg", picture())]))
    with pytest.raises(UsageError, match=r"(?s)it is unclear what the folders mean.*--set input\.layout=flat"):
        convert("a.tar", output="out")
    assert rejects(input__layout="label") == [
        '  a.tar/1 row 1: DECLARED_NOT_NULL: no class folder holds "1"; move it into one, or set input.layout to flat'
    ]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_archive_is_read_in_one_stream(pack: Any) -> None:
    write("a.tar.gz", pack(tar_of([*sample("1", 1, {"a": 1}), *sample("2", 2, {"a": 2})])))
    assert [row["a"] for row in rows("a.tar.gz")] == [1, 2]


def test_samples_may_lack_members_and_their_fields_may_differ() -> None:
    write(
        "a.tar", tar_of([*sample("1", 1, {"a": 1, "b": "x"}), *sample("2", 2), *sample("3", 3, {"a": 2.5, "c": [1]})])
    )
    assert [(row["a"], row["b"], row["c"]) for row in rows()] == [
        (1.0, "x", None),
        (None, None, None),
        (2.5, None, [1]),
    ]


def test_json_over_several_lines_is_read_and_what_is_no_object_is_a_reject_by_its_place() -> None:
    texts = [b'{\n "a":\r\n 1}\n', b'{"a": 2', b"[1]", b'{"a": "x\ny"}', b'{"a": 3}{"a": 4}', b"{ }"]
    write(
        "a.tar",
        tar_of([(f"{i}.{end}", data) for i, t in enumerate(texts) for end, data in (("jpg", picture()), ("json", t))]),
    )
    lines = rejects()
    assert [line.split(": ")[0].strip() for line in lines] == [f"a.tar/{i} row {i + 1}" for i in (1, 2, 3, 4)]
    assert 'the .json member ends too soon: {"a": 2; fix the .json member: it must be one whole JSON object' in lines[0]
    assert [row["a"] for row in rows(max_rejects=4, output="kept")] == [1, None]


def test_values_of_two_types_are_refused_with_the_members_that_have_them() -> None:
    write("a.tar", tar_of([*sample("1", cls=b"7"), *sample("2", cls=b"cat\n")]))
    with pytest.raises(SchemaError, match=r"a\.tar/2\.cls: a value is text, and in a\.tar/1\.cls an integer"):
        convert("a.tar", output="out")
    assert [row["cls"] for row in rows(schema__columns={"cls": {"type": "string"}})] == ["7", "cat"]


@pytest.mark.parametrize(
    ("values", "kind"), [((b"-1", b"3"), "int64"), ((b"cat", b"dog"), "string"), ((b"1", b"0"), "label")]
)
def test_numbers_from_0_on_are_classes_and_others_stay_what_they_are(values: tuple[bytes, bytes], kind: str) -> None:
    write("a.tar", tar_of([*sample("1", cls=values[0]), *sample("2", cls=values[1])]))
    rows()
    assert {one.name: one.type for one in open_dataset("out").schema or ()}["cls"] == kind


def test_classes_may_be_given_names_and_the_name_of_tensorflow() -> None:
    write("a.tar", tar_of([*sample("1", cls=b"1"), *sample("2", cls=b"0")]))
    rule = {"label": ["cat", "dog"], "name": "image/class/label"}
    assert [row["image/class/label"] for row in rows(schema__columns={"cls": rule})] == [1, 0]
    assert open_dataset("out").labels["image/class/label"] == ("cat", "dog")


def test_two_pictures_of_a_sample_are_rejects_or_two_columns() -> None:
    write("a.tar", tar_of([("1.jpg", picture(1)), ("1.png", picture(2, "PNG"))]))
    assert '"1.jpg" and "1.png" would both be the column "image" of one sample' in rejects()[0]
    (row,) = rows(input__pictures="suffix", output="two")
    assert (row["jpg/filename"], row["png/filename"]) == ("1.jpg", "1.png")


def test_a_key_that_comes_back_later_is_a_reject() -> None:
    write("a.tar", tar_of([*sample("1"), *sample("2"), ("1.json", b'{"a": 1}')]))
    (line,) = rejects()
    assert line.startswith('  a.tar/1 row 3: BAD_WIDTH: the key "1" was in this archive before')
    assert line.endswith("tar --sort=name")


def test_links_and_names_that_are_not_utf_8_are_rejects_of_their_sample() -> None:
    with tarfile.open("a.tar", "w") as tar:
        for name, kind in (("1.jpg", tarfile.SYMTYPE), ("2.jpg", tarfile.LNKTYPE), ("3.jpg", tarfile.FIFOTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
    write("b.tar", tar_of(sample("x")) + tar_of([("caf\udce9.jpg", picture())]))
    lines = rejects(["a.tar", "b.tar"])
    assert ["NOT_A_FILE" in line for line in lines[:3]] == [True] * 3
    assert 'b.tar/caf\\xe9 row 2: BAD_UTF8: the name "caf\\xe9.jpg" is not UTF-8' in lines[3]
    assert '"1.jpg" is a link, which is not followed' in lines[0]


def test_a_text_that_is_not_utf_8_and_a_member_that_is_too_large_are_rejects() -> None:
    write("a.tar", tar_of([*sample("1", txt=b"caf\xe9"), *sample("2", txt=b"a" * 3000), *sample("3", txt=b"a")]))
    lines = rejects(limits__field_bytes=2000)
    assert '"1.txt" is not UTF-8 at byte 3; write it as UTF-8' in lines[0]
    assert "more than limits.field_bytes (2,000); raise it if they are meant: --set limits.field_bytes=3000" in lines[1]


def test_columns_of_one_name_are_refused_with_a_fix_that_works() -> None:
    write("a.tar", tar_of(sample("1", 1, {"txt": 1, "b": 2}, txt=b"a")))
    with pytest.raises(SchemaError, match=r'column "txt" is a field of the .json members, and members ".txt"'):
        convert("a.tar", output="out")
    (row,) = rows(input__json="text")
    assert (row["json"], row["txt"]) == ('{"txt": 1, "b": 2}', "a")
    (row,) = rows(input__ignore=["*.txt"], output="ignored")
    assert row["txt"] == 1


def test_names_with_dots_are_refused_or_warned_of() -> None:
    write("a.tar", tar_of([(f"IMG.{number}.jpg", picture()) for number in range(300)]))
    with pytest.raises(SchemaError, match=r"more than 256 kinds of members, of which IMG\.256\.jpg is one"):
        convert("a.tar", output="out")
    assert len(rows(input__key="last_dot")) == 300


def cut(data: bytes) -> dict[str, bytes]:
    """Return an archive of three samples that is broken in every way."""
    changed = bytearray(data)
    changed[1536] ^= 1
    return {
        "1-head.tar": data[:1700], "2-data.tar": data[:2100], "3-end.tar": data[:4608], "4-sum.tar": bytes(changed),
        "5-junk.tar": data + b"x", "6-text.tar": b"a text\n" * 300, "7-empty.tar": b"",
        "8-gzip.tar.gz": gzip.compress(data)[:-9],
    }  # fmt: skip


def test_broken_archives_of_every_kind_are_named_with_the_offset_and_the_others_are_read() -> None:
    data = tar_of([*sample("1"), *sample("2"), *sample("3")])
    for name, broken in {**cut(data), "9-whole.tar": data}.items():
        write(f"in/{name}", broken)
    lines = rejects("in")
    places = ["1-head.tar row 1", "2-data.tar row 2", "3-end.tar row 3", "4-sum.tar row 1", "5-junk.tar row 4"]
    places += ["6-text.tar row 1", "7-empty.tar row 1", "8-gzip.tar.gz row 1"]
    assert sorted(line.split(": ")[0].strip() for line in lines) == [f"in/{place}" for place in places]
    for offset in ("from byte 1,700 on", "from byte 2,100 on", "from byte 4,608 on", "from byte 1,536 on"):
        assert any(offset in line for line in lines), offset
    kept = [row["image/filename"] for row in rows("in", max_rejects=8)]
    assert kept == ["1.jpg", "1.jpg", "2.jpg", *["1.jpg", "2.jpg", "3.jpg"] * 2]


def test_archives_without_a_sample_are_refused_by_name() -> None:
    write("a.tar", tar_of([]))
    write("b.tar", tar_of([("noext", b"x")]))
    with pytest.raises(SourceError, match=r"a\.tar: holds no sample; the other 1 archives hold no sample either"):
        convert(["a.tar", "b.tar"], output="out")


def test_a_file_that_is_a_tar_archive_is_known_whatever_it_is_called() -> None:
    write("archive", tar_of(sample("1")))
    with pytest.raises(ConfigError, match=r"those of a tar archive; read it as one: --format tar"):
        convert("archive", output="out")
    write("table.csv", tar_of(sample("1")))
    with pytest.raises(SourceError, match=r"is a tar archive; read it as one: --format tar"):
        convert("table.csv", output="out")


def test_columns_are_left_out_rows_filtered_and_the_first_ones_read() -> None:
    write("a.tar", tar_of([one for i in range(9) for one in sample(str(i), i, {"n": i, "c": "x"}, txt=b"t")]))
    found = rows(input__exclude_columns=["c", "txt"], input__where="n >= 2", input__limit=5)
    assert [row["n"] for row in found] == [2, 3, 4]
    assert not {"c", "txt"} & found[0].keys()
    assert set(rows(input__columns=["n", "__key__"], output="two")[0]) == {"n", "__key__"}


def test_an_append_follows_the_classes_and_types_of_its_dataset() -> None:
    write("a.tar", tar_of([*sample("1", 1, {"n": 1.5, "t": "x"}, cls=b"0"), *sample("2", 2, {"n": 2}, cls=b"1")]))
    write("b.tar", tar_of([*sample("1", 3, {"n": 4}, cls=b"3")]))
    convert("a.tar", output="out")
    append(["a.tar", "b.tar"], output="out")
    table = in_numbers(open_dataset("out").to_arrow("train")).select(["n", "t", "cls"]).to_pylist()
    assert table == [{"n": 1.5, "t": "x", "cls": 0}, {"n": 2.0, "t": None, "cls": 1}, {"n": 4.0, "t": None, "cls": 3}]
    assert open_dataset("out").labels["cls"] == ("0", "1", "2", "3")


def test_an_append_numbers_the_classes_of_folders_as_its_dataset_does() -> None:
    write("a.tar", tar_of([("dog/1.jpg", picture()), ("owl/1.jpg", picture())]))
    write("b.tar", tar_of([("cat/1.jpg", picture()), ("owl/2.jpg", picture())]))
    convert("a.tar", output="out")
    append("b.tar", output="out")
    found = in_numbers(open_dataset("out").to_arrow("train")).to_pylist()
    assert [(row["image/class/text"], row["image/class/label"]) for row in found] == [
        ("dog", 0), ("owl", 1), ("cat", 2), ("owl", 1),
    ]  # fmt: skip


def test_any_number_of_workers_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_LEAST_PIECE", 2000)
    for name in ("a", "b"):
        write(
            f"in/{name}.tar",
            tar_of([one for i in range(60) for one in sample(f"{i}", i, {"n": i}, cls=b"%d" % (i % 3))]),
        )
    digests = []
    for out, workers in (("one", 1), ("three", 3)):
        summary = convert("in", output=out, runner__workers=workers, output__shard_size="64KiB")
        assert summary.manifest.counts.written == 120
        digests.append({path.name: path.read_bytes() for path in Path(out).glob("*.tfrecord")})
    assert digests[0] == digests[1]
    assert len(digests[0]) > 1


def test_nothing_is_kept_of_pictures_while_planning() -> None:
    from shardmill.transforms.inputs.files.listing import list_file
    from shardmill.transforms.sources.archives.samples import Naming
    from shardmill.transforms.sources.archives.survey import Walk, look_at_archive

    write("a.tar", tar_of([one for i in range(500) for one in sample(f"{i:04d}", 0, {"n": i}, cls=b"1", txt=b"x")]))
    entry = list_file(str(Path("a.tar").resolve()).encode(), str(Path.cwd()).encode())
    found = look_at_archive(entry, Walk("tar", Naming(), 1 << 20))
    assert (found.samples, len(found.cuts), found.folders) == (500, 1, {b""})
    assert set(found.columns) == {"image", "json", "cls", "txt"}
    assert found.json.columns["n"].type == pa.int64()


MEMBERS = [
    *sample("s/1", 1, {"n": 1}, cls=b"0", txt=b"one", npy=b"1"),
    *sample("s/2", 2, {"n": 2}, cls=b"1"),
    *sample("s/3", 3, {"n": 3}, txt=b"three"),
]


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_zip_archive_gives_the_rows_of_a_tar_archive(method: int) -> None:
    write("a.tar", tar_of(MEMBERS))
    write("a.zip", zip_of(MEMBERS, method))
    assert rows("a.zip", output="one") == rows("a.tar", output="two")
    assert open_dataset("one").schema == open_dataset("two").schema


def test_damaged_members_of_a_zip_archive_are_rejects_and_the_others_are_read() -> None:
    data = bytearray(zip_of([*sample("1", 1, {"n": 1}), *sample("2", 2, {"n": 2}), *sample("3", 3, {"n": 3})], 0))
    data[40] ^= 1  # a byte of the first picture
    data[data.find(b"2.json") + 9] ^= 1
    write("a.zip", bytes(data))
    lines = rejects("a.zip")
    assert '"1.jpg" has not the size and checksum that the archive states (header at byte 0)' in lines[0]
    assert lines[1].startswith('  a.zip/2 row 2: column "json": CORRUPT: "2.json" has not the size and checksum')
    assert [row["n"] for row in rows("a.zip", max_rejects=2)] == [3]


def test_broken_zip_archives_are_named_and_the_others_are_read() -> None:
    data = zip_of(MEMBERS)
    entry = data.replace(b"PK\x01\x02", b"PK\x01\x03")
    broken = {"cut": data[:-30], "entry": entry, "text": b"a text\n" * 30}
    for name, held in {**broken, "whole": data, "none": zip_of([])}.items():
        write(f"in/{name}.zip", held)
    lines = rejects("in")
    assert sorted(line.split(": ")[0].strip() for line in lines) == [f"in/{name}.zip row 1" for name in sorted(broken)]
    assert any("its central directory, which is at its end, is missing" in line for line in lines)
    assert [row["n"] for row in rows("in", max_rejects=3)] == [1, 2, 3]


def test_archives_of_tables_are_refused_with_the_command_that_unpacks_them() -> None:
    write("a b.zip", zip_of([("x/a.csv", b"a\n1\n"), ("b.csv.gz", b"")]))
    with pytest.raises(SourceError, match=r"a b\.zip: holds \.csv files, .*unpack it first: unzip 'a b\.zip'"):
        convert("a b.zip", output="out")


def test_a_zip_archive_in_parts_gives_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    members = [one for number in range(30) for one in sample(f"{number:02d}", number, {"n": number})]
    write("a.zip", zip_of([*members, ("00.npy", b"")]))
    monkeypatch.setattr(source, "_LEAST_PIECE", 2000)
    found = rows("a.zip", max_rejects=1)
    assert [row["n"] for row in found] == list(range(30))


def test_a_zip_archive_beside_other_files_is_not_what_a_folder_is_read_for() -> None:
    write("in/a.zip", zip_of(sample("1")))
    write("in/README.txt", b"two files")
    assert [row["image/filename"] for row in rows("in")] == ["1.jpg"]
    write("in/b.csv", b"a\n1\n")
    assert rows("in", output="table") == [{"a": 1}]


def test_classes_that_were_renamed_keep_their_numbers_in_an_append() -> None:
    write("a.tar", tar_of([*sample("1", cls=b"0"), *sample("2", cls=b"4")]))
    write("b.tar", tar_of([*sample("1", cls=b"2"), *sample("2", cls=b"6")]))
    columns = {"cls": {"name": "image/class/label"}}
    convert("a.tar", output="out", schema__columns=columns)
    append("b.tar", output="out", schema__columns=columns)
    table = in_numbers(open_dataset("out").to_arrow("train"))
    assert table["image/class/label"].to_pylist() == [0, 4, 2, 6]
    assert open_dataset("out").labels == {"image/class/label": tuple("0123456")}


def test_too_many_fields_of_json_are_refused() -> None:
    write("a.tar", tar_of([one for i in range(30) for one in sample(str(i), 0, {f"k{i}": 1})]))
    with pytest.raises(SchemaError, match=r"30 keys are more than limits\.columns \(20\)"):
        convert("a.tar", output="out", limits__columns=20)


def test_a_number_that_is_no_class_of_the_dataset_is_a_reject() -> None:
    write("a.tar", tar_of([*sample("1", cls=b"0"), *sample("2", cls=b"1")]))
    write("b.tar", tar_of([*sample("1", cls=b"-1"), *sample("2", cls=b"1")]))
    convert("a.tar", output="out")
    with pytest.raises(TooManyRejects, match=r'column "cls": UNKNOWN_CLASS: "-1" is no class: they are 0 to 1'):
        append("b.tar", output="out")


def test_the_values_of_a_field_may_be_classes_in_an_append_too() -> None:
    write("a.tar", tar_of([*sample("1", 0, {"kind": "dog"}), *sample("2", 0, {"kind": "owl"})]))
    write("b.tar", tar_of([*sample("1", 0, {"kind": "cat"}), *sample("2", 0, {"kind": "owl"})]))
    convert("a.tar", output="out", schema__columns={"kind": {"label": True}})
    append("b.tar", output="out")
    assert in_numbers(open_dataset("out").to_arrow("train"))["kind"].to_pylist() == [0, 1, 2, 1]
    assert open_dataset("out").labels == {"kind": ("dog", "owl", "cat")}


def test_splits_by_key_checks_of_duplicates_and_shuffle_take_archives() -> None:
    write("a.tar", tar_of([one for i in range(40) for one in sample(f"{i:02d}", i % 20, {"n": i % 20})]))
    convert(
        "a.tar", output="out", split__fractions={"train": 0.5, "val": 0.5}, split__key="n", shuffle__seed=7,
        checks__duplicates={"columns": ["image/encoded"], "action": "report"},
    )  # fmt: skip
    dataset = open_dataset("out")
    found = {name: in_numbers(dataset.to_arrow(name))["n"].to_pylist() for name in dataset.splits}
    assert sorted(found["train"] + found["val"]) == sorted([*range(20)] * 2)
    assert not set(found["train"]) & set(found["val"])


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_that_were_joined_are_read_in_parts_too(monkeypatch: pytest.MonkeyPatch, form: int) -> None:
    monkeypatch.setattr(source, "_LEAST_PIECE", 1)  # each sample is a piece
    parts = [[one for i in range(3) for one in sample(f"é{k}{i}", i, {"n": 3 * k + i})] for k in range(3)]
    hidden = [("._a.jpg", b"x"), ("README.md", b"x")]
    write("a.tar", b"".join(tar_of([*part, *hidden], form) for part in parts))
    assert [row["n"] for row in rows()] == list(range(9))


@pytest.mark.parametrize("text", [b"", b" \n", b"null", b"\xef\xbb\xbf{}", b'{"a": \xff}', b"[" * 100])
def test_json_that_is_no_object_is_a_reject_also_where_there_is_no_other(text: bytes) -> None:
    write("a.tar", tar_of([("1.jpg", picture()), ("1.json", text), ("2.jpg", picture())]))
    assert len(rejects()) == 1
    write("b.tar", tar_of(sample("1", 0, {"a": 1})))
    assert [row["a"] for row in rows(["a.tar", "b.tar"], max_rejects=1)] == [None, 1]


FRAMES = [(f"shot.{number:04d}.bin", b"%d" % number) for number in range(120)]


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        (FRAMES, 'a.tar: 120 kinds of members differ in a number only, such as ".0000.bin" and ".0001.bin"'),
        (
            [("a.1.jpg", picture()), ("a.2.jpg", picture())],
            '2 kinds of members differ in a number only, such as ".1.jpg"',
        ),
        ([("a.001", b"1"), ("a.002", b"2")], 'such as ".001" and ".002"'),
        ([(f"a.frame{number}.bin", b"1") for number in range(17)], "17 kinds of members differ in a number only"),
    ],
)
def test_kinds_that_differ_in_a_number_only_are_refused_with_both_keys(
    members: list[tuple[str, bytes]], shown: str
) -> None:
    write("a.tar", tar_of(members))
    with pytest.raises(SchemaError) as refused:
        convert("a.tar", output="out")
    assert shown in str(refused.value)
    assert "--set input.key=last_dot" in str(refused.value)
    assert "--set input.key=first_dot" in str(refused.value)
    assert len(rows(input__key="last_dot")) == len({name.rpartition(".")[0] for name, _ in members})
    assert len(rows(input__key="first_dot", output="one")) == 1


def test_views_of_a_sample_and_classes_may_be_numbered() -> None:
    views = [(f"{key}.{kind}", data) for key in "ab" for kind, data in
             [("cam0.jpg", picture()), ("cam1.jpg", picture()), ("cls", b"1"), ("cls2", b"2")]]  # fmt: skip
    write("a.tar", tar_of(views))
    assert {"cam0/encoded", "cam1/encoded", "cls", "cls2"} <= set(rows()[0])


@pytest.mark.parametrize(
    ("name", "pack"), [("a.tar", tar_of), ("a.zip", zip_of), ("a.tgz", lambda m: gzip.compress(tar_of(m)))]
)
def test_a_sample_above_the_limit_of_a_record_is_a_reject_of_which_nothing_is_read(
    name: str, pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [(f"1.{kind}", bytes(900)) for kind in ("a", "b", "c")] + [
        ("2.a", b"2"),
        ("3.a", bytes(3000)),
        ("3.b", b"3"),
    ]
    write(name, pack(members))
    read: list[bytes] = []
    for kind in (ZipArchive, TarArchive):
        real = kind.read
        monkeypatch.setattr(
            kind, "read", lambda self, member, real=real: read.append(member.name) or real(self, member)
        )
    lines = rejects(name, limits__record_bytes=2000, limits__field_bytes=2000)
    assert (
        'RECORD_TOO_LARGE: the members of "1" have 2,700 bytes together, more than limits.record_bytes (2,000)'
        in lines[0]
    )
    assert "FIELD_TOO_LARGE" in lines[1]
    assert set(read) == {b"2.a"}
    assert len(rows(name, columns=["__key__", "b"], limits__record_bytes=2000, output="fewer")) == 3


@pytest.mark.parametrize("above", ["", "pets/"])
@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_folders_of_splits_are_splits_where_captions_are_beside_pictures(above: str, pack: Any) -> None:
    members = [sample(f"{above}{split}/cat/{n}", n, txt=b"a cat") for split in ("train", "val") for n in (1, 2)]
    name = "a.tar" if pack is tar_of else "a.zip"
    write(name, pack([one for some in members for one in some]))
    assert [row["__key__"] for row in rows(name)] == [f"{above}train/cat/1", f"{above}train/cat/2"]
    assert [row["txt"] for row in rows(name, "val", "again")] == ["a cat", "a cat"]


def test_folders_that_are_not_all_of_splits_are_none_where_captions_are_beside_pictures() -> None:
    write("a.tar", tar_of([*sample("train/1", txt=b"a cat"), *sample("more/1", txt=b"a dog")]))
    assert [row["txt"] for row in rows()] == ["a cat", "a dog"]
