from __future__ import annotations

import dataclasses
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.dataset.integrity import verify_shard
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.integrity.verify_shard import Finding, Report
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import DamageError, InputError
from shardmill.transforms.format.batches.rejects import CODES
from shardmill.transforms.format.manifest.manifest import Manifest, RejectSummary, RowCounts, SourceSummary
from shardmill.transforms.format.manifest.naming import index_path
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.sidecars.sidecar_files import index_data
from shardmill.transforms.format.tfrecord.framing import FRAME_BYTES

from ...examples import example_from_values

SCHEMA = Schema((Feature("id", "int64", "int64"), Feature("name", "bytes", "string", nullable=True)))


def row(number: int, **more: Any) -> bytes:
    return example_from_values({"id": number, "name": f"row {number}"} | more).SerializeToString(deterministic=True)


ROWS = [row(number) for number in range(10)]
FRAME = len(ROWS[0]) + FRAME_BYTES
FIRST = "train-00000.tfrecord"


@pytest.fixture
def build(tmp_path: Path, build_dataset: Any) -> Callable[..., Manifest]:
    def build(*shards: list[bytes], **changes: Any) -> Manifest:
        return build_dataset(tmp_path, {"train": list(shards or (ROWS[:6], ROWS[6:]))}, SCHEMA, **changes)

    return build


@pytest.fixture
def sound(tmp_path: Path, build: Callable[..., Manifest]) -> Path:
    build()
    return tmp_path


def findings(root: Path) -> list[str]:
    return [str(finding) for finding in verify_dataset(root).findings]


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x40
    path.write_bytes(data)


def restate(root: Path, manifest: Manifest, **changes: Any) -> None:
    """Change what the dataset's manifest states."""
    changed = dataclasses.replace(manifest, **changes).to_bytes()
    (root / "manifests" / "00000001.json").write_bytes(changed)
    (root / "manifest.json").write_bytes(changed)


def test_a_sound_dataset_has_no_findings(sound: Path) -> None:
    report = verify_dataset(sound)
    assert report == Report(str(sound), 1, 2, 10, 10 * FRAME, (), ())
    assert report.ok


def test_a_sound_gzip_dataset_has_no_findings(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    build(compression="gzip")
    assert findings(tmp_path) == []


def test_shards_are_verified_by_any_map_with_the_same_report(sound: Path) -> None:
    flip(sound / FIRST, 20)
    with ThreadPoolExecutor(2) as pool:
        assert verify_dataset(sound, run=pool.map) == verify_dataset(sound)


def test_a_damaged_payload_is_named_by_its_record_and_byte(sound: Path) -> None:
    flip(sound / FIRST, 2 * FRAME + 20)
    found = findings(sound)
    assert found[0].startswith(f"{FIRST}: the checksum of its bytes is ")
    assert found[1] == f"{FIRST} record 2 at byte {2 * FRAME}: the checksum of its data is wrong"
    assert len(found) == 2


def test_every_damaged_payload_is_named(sound: Path) -> None:
    for record in (0, 2, 5):
        flip(sound / FIRST, record * FRAME + 20)
    assert [finding.record for finding in verify_dataset(sound).findings[1:]] == [0, 2, 5]


def test_a_record_whose_length_is_damaged_is_named_and_the_shard_is_read_on(sound: Path) -> None:
    flip(sound / FIRST, FRAME)
    flip(sound / FIRST, 3 * FRAME + 20)
    flip(sound / "train-00001.tfrecord", 20)
    found = findings(sound)
    whole = "the checksum of its length is wrong; its data are whole"
    assert found[1:3] == [
        f"{FIRST} record 1 at byte {FRAME}: {whole}",
        f"{FIRST} record 3 at byte {3 * FRAME}: the checksum of its data is wrong",
    ]
    assert "train-00001.tfrecord record 0 at byte 0: the checksum of its data is wrong" in found
    assert len(found) == 5


def test_each_damage_of_a_shard_is_named_and_records_are_found_again_after_it(sound: Path) -> None:
    shard = sound / FIRST
    data = bytearray(shard.read_bytes())
    data[FRAME : FRAME + 20] = bytes(20)
    data[3 * FRAME + 20] ^= 1
    data[5 * FRAME - 1] ^= 1
    shard.write_bytes(data)
    assert findings(sound)[1:] == [
        f"{FIRST}: 5 whole records, the manifest states 6",
        f"{FIRST} record 1 at byte {FRAME}: zeros where it should begin; no record can be read up to byte {2 * FRAME}",
        f"{FIRST} record 3 at byte {3 * FRAME}: the checksum of its data is wrong",
        f"{FIRST} record 4 at byte {4 * FRAME}: the checksum of its data is wrong",
    ]


def test_records_behind_a_damage_are_held_against_the_schema_too(
    tmp_path: Path, build: Callable[..., Manifest]
) -> None:
    build([*ROWS[:3], row(1, id=1.5), *ROWS[3:]])
    flip(tmp_path / FIRST, FRAME)
    assert any(f"{FIRST} record 3 at byte {3 * FRAME}: feature " in finding for finding in findings(tmp_path))


def test_the_first_damaged_gzip_member_is_named(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    big = [row(number, name=os.urandom(400_000).hex()) for number in range(6)]
    build(big, compression="gzip", shard_size=100 << 20)
    shard = tmp_path / "train-00000.tfrecord.gz"
    for part in (1, 5):
        flip(shard, shard.stat().st_size * part // 6)
    found = verify_dataset(tmp_path).findings
    members = [finding for finding in found if "of the compressed file: the " in finding.reason]
    assert [finding.record in range(3) for finding in members] == [True]


@pytest.mark.parametrize("offset", range(FRAME))
def test_a_flipped_bit_is_found_wherever_it_is(sound: Path, offset: int) -> None:
    flip(sound / FIRST, offset)
    assert not verify_dataset(sound).ok


def test_a_shard_cut_between_two_records_is_found(sound: Path) -> None:
    os.truncate(sound / FIRST, 5 * FRAME)
    assert findings(sound) == [
        f"{FIRST}: {5 * FRAME} bytes, the manifest states {6 * FRAME}",
        f"{FIRST}: 5 whole records, the manifest states 6",
    ]


def test_a_cut_gzip_shard_is_found(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    build(compression="gzip")
    shard = tmp_path / "train-00000.tfrecord.gz"
    os.truncate(shard, shard.stat().st_size - 8)
    found = findings(tmp_path)
    assert any("is cut" in finding for finding in found), found


def test_a_missing_shard_is_found_and_the_others_are_verified_on(sound: Path) -> None:
    (sound / FIRST).unlink()
    flip(sound / "train-00001.tfrecord", 20)
    found = findings(sound)
    assert found[0] == f"{FIRST}: missing"
    assert found[-1] == "train-00001.tfrecord record 0 at byte 0: the checksum of its data is wrong"


def test_a_shard_that_was_replaced_by_another_of_the_same_size_is_found(sound: Path) -> None:
    write_records(sound / FIRST, list(reversed(ROWS[:6])))
    (found,) = findings(sound)
    assert found.startswith(f"{FIRST}: the checksum of its bytes is ")


def test_a_shard_that_is_a_link_is_found(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other") / "x"
    (sound / FIRST).rename(other)
    (sound / FIRST).symlink_to(other)
    assert findings(sound)[0] == f"{FIRST}: a link; a dataset's files are its own"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\xff\xff", "it is not a tf.train.Example"),
        (row(1, id=1.5), 'feature "id" holds float values, where the schema has int64'),
        (row(1, id=[1, 2]), 'feature "id" holds 2 values, where the schema has 1'),
        (example_from_values({"name": "x"}).SerializeToString(), 'feature "id" is missing'),
        (row(1, name=b"\xff"), 'feature "name": \\xff does not fit the type string'),
    ],
)
def test_a_record_that_is_no_example_of_the_schema_is_named(
    tmp_path: Path, build: Callable[..., Manifest], payload: bytes, reason: str
) -> None:
    build([*ROWS[:3], payload, *ROWS[3:]])
    (found,) = findings(tmp_path)
    assert found.startswith(f"{FIRST} record 3 at byte {3 * FRAME}: {reason}")


def test_a_digest_that_is_not_that_of_the_records_is_found(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    manifest = build()
    split = dataclasses.replace(manifest.splits["train"], records_digest="sum128:" + "0" * 32)
    restate(tmp_path, manifest, splits={"train": split})
    (found,) = findings(tmp_path)
    assert found.startswith("split train: the digest of its records is sum128:")


def test_a_record_over_the_unit_that_the_manifest_states_is_found(
    tmp_path: Path, build: Callable[..., Manifest]
) -> None:
    manifest = build([*ROWS, row(10, name="x" * 500)])
    restate(tmp_path, manifest, splits={"train": dataclasses.replace(manifest.splits["train"], unit_bytes=256)})
    (found,) = findings(tmp_path)
    assert found == f"{FIRST} record 10 at byte {10 * FRAME}: {len(row(10, name='x' * 500)) + 16} bytes, over the " + (
        "manifest's unit_bytes of 256"
    )


def test_shards_that_break_the_promise_on_sizes_are_found(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    build(ROWS[:1], ROWS[1:], shard_size=300)
    assert findings(tmp_path) == [
        f"{FIRST}: {FRAME} bytes, and no shard is to have less than half of {300 - FRAME}",
        f"train-00001.tfrecord: {9 * FRAME} bytes in 9 records, over the shard size of 300",
    ]


@pytest.mark.parametrize("name", ["features.json", "dataset_info.json", "schema.pbtxt", "manifest.json"])
def test_a_sidecar_that_was_changed_or_removed_is_found(sound: Path, name: str) -> None:
    (sound / name).write_bytes((sound / name).read_bytes() + b" ")
    assert findings(sound) == [f"{name}: does not agree with the manifest"]
    (sound / name).unlink()
    assert findings(sound) == [f"{name}: missing"]


def test_a_sidecar_that_the_manifest_should_list_is_missed(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    manifest = build()
    restate(tmp_path, manifest, sidecars=tuple(name for name in manifest.sidecars if name != "dataset_info.json"))
    assert findings(tmp_path) == ["dataset_info.json: the manifest does not list this sidecar, which follows from it"]


def test_an_index_is_held_against_its_shard(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    manifest = build(ROWS)
    index = tmp_path / index_path(FIRST, "text")
    index.parent.mkdir()
    index.write_bytes(index_data(FRAME * np.arange(11, dtype=np.int64), "text"))
    restate(tmp_path, manifest, sidecars=(*manifest.sidecars, index_path(FIRST, "text")))
    assert findings(tmp_path) == []
    index.write_bytes(index.read_bytes().replace(b"0 ", b"1 ", 1))
    assert findings(tmp_path) == [f"index/train-00000.idx: is not the index of {FIRST}"]


IMAGES = Schema((Feature("image/encoded", "bytes", "image"), Feature("image/format", "bytes", "string")))


def image(format_: str) -> bytes:
    return example_from_values({"image/encoded": b"x", "image/format": format_}).SerializeToString(deterministic=True)


@pytest.mark.parametrize(("format_", "sound"), [("jpeg", True), ("webp", False)])
def test_features_json_may_call_images_decodable_only_if_all_of_them_are(
    tmp_path: Path, build_dataset: Any, format_: str, sound: bool
) -> None:
    records = [image("jpeg"), image(format_)]
    build_dataset(tmp_path, {"train": [records]}, IMAGES, image_formats=frozenset({"jpeg"}))
    assert findings(tmp_path) == ([] if sound else ["features.json: does not agree with the manifest"])


@pytest.mark.parametrize(
    "name", ["train-00002.tfrecord", "x.tfrecord.gz", "manifests/notes.txt", "rejects/00000002.jsonl", "index/x.idx"]
)
def test_a_file_that_passes_for_a_part_of_the_dataset_is_found(sound: Path, name: str) -> None:
    (sound / name).parent.mkdir(exist_ok=True)
    (sound / name).write_bytes(b"")
    assert findings(sound) == [f"{name}: no generation names this file: remove it, or move it away"]


@pytest.mark.parametrize("name", ["README.md", ".DS_Store", ".train-00002.tfrecord.0a1b"])
def test_a_file_that_is_none_of_the_datasets_is_a_note(sound: Path, name: str) -> None:
    (sound / name).write_bytes(b"")
    report = verify_dataset(sound)
    assert report.ok
    assert report.notes == (f"{name}: no part of the dataset",)


def test_what_a_failed_run_left_is_a_note_with_its_size(sound: Path) -> None:
    staged = sound / ".staging" / "0123456789abcdef" / "parts"
    staged.mkdir(parents=True)
    (staged / "x").write_bytes(b"12345")
    assert verify_dataset(sound).notes == (".staging/0123456789abcdef: left by a run that did not end, 5 bytes",)


def test_a_commit_that_is_not_wholly_published_is_sound(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    manifest = build()
    staged = tmp_path / manifest.run.staging / "shards"
    staged.mkdir(parents=True)
    (tmp_path / FIRST).rename(staged / FIRST)
    (tmp_path / "features.json").unlink()
    report = verify_dataset(tmp_path)
    assert report.findings == ()
    assert report.notes[:2] == (
        "the last commit is not wholly published; the next command that writes to the dataset ends it",
        "features.json: missing",
    )
    flip(staged / FIRST, 20)
    assert not verify_dataset(tmp_path).ok


def test_the_files_of_an_older_generation_are_no_strays(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    build(ROWS[:6], ROWS[6:])
    build(ROWS[:6], generation=2, parent=1)
    assert findings(tmp_path) == []


def test_a_damaged_older_manifest_is_found(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    build(ROWS[:6])
    build(ROWS[:6], generation=2, parent=1)
    (tmp_path / "manifests" / "00000001.json").write_bytes(b"{}")
    assert findings(tmp_path) == ["manifests/00000001.json: format is missing"]
    (tmp_path / "manifests" / "00000001.json").unlink()
    assert findings(tmp_path) == ["manifests/00000001.json: missing"]


def test_a_damaged_latest_manifest_is_an_error_since_nothing_else_states_what_should_be_there(sound: Path) -> None:
    path = sound / "manifests" / "00000001.json"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DamageError, match=r"manifests/00000001\.json: "):
        verify_dataset(sound)


REJECT = (
    b'{"source": "a.csv", "split": null, "row": 1, "errors": [{"column": "x", "code": "BAD_TYPE", "value": "y", '
    b'"expected": "int", "message": "no"}]}\n'
)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (REJECT, []),
        (REJECT * 2, ["rejects/00000001.jsonl: 2 rejected rows, the manifest states 1"]),
        (
            REJECT.replace(b"BAD_TYPE", b"BAD_UTF8"),
            ["rejects/00000001.jsonl: its rows by code are {'BAD_UTF8': 1}, the manifest states {'BAD_TYPE': 1}"],
        ),
        (REJECT[:-5], ["rejects/00000001.jsonl: line 1 is not JSON"]),
        (b"{}\n", ["rejects/00000001.jsonl: line 1: source is missing"]),
        (
            REJECT.replace(b"BAD_TYPE", b"BAD"),
            [f'rejects/00000001.jsonl: line 1: errors[0].code is "BAD", not one of {", ".join(CODES)}'],
        ),
        (REJECT[: REJECT.index(b"[")] + b"[]}\n", ["rejects/00000001.jsonl: line 1: errors is empty"]),
        (
            REJECT.replace(b'"row": 1', b'"row": 0'),
            ['rejects/00000001.jsonl: line 1: row is "0", not an integer from 1 to 2**63 - 1'],
        ),
        (REJECT.replace(b'"row"', b'"raw"'), ["rejects/00000001.jsonl: line 1: raw is not known"]),
        (None, ["rejects/00000001.jsonl: missing"]),
    ],
)
def test_the_reject_file_is_held_against_the_manifest(
    tmp_path: Path, build: Callable[..., Manifest], content: bytes | None, found: list[str]
) -> None:
    name = "rejects/00000001.jsonl"
    build(rejects=RejectSummary(name, 1, {"BAD_TYPE": 1}), counts=RowCounts(11, 10, 1, 0))
    (tmp_path / "rejects").mkdir()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert findings(tmp_path) == found


LISTED = "sources/00000001.jsonl: "
SOURCE = (
    b'{"source": "a.csv", "bytes": 100, "fingerprint": "sha256:' + b"0" * 64 + b'", "files": 1, "read": 10, '
    b'"written": 10, "rejected": 0, "dropped": 0}\n'
)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (SOURCE, []),
        (SOURCE.replace(b"10", b"5") * 2, [LISTED + "its lines add up to 2 files, the manifest states 1"]),
        (
            SOURCE * 2,
            [
                "sources/00000001.jsonl: its lines add up to 20 rows read, the manifest states 10",
                "sources/00000001.jsonl: its lines add up to 20 rows written, the manifest states 10",
                "sources/00000001.jsonl: its lines add up to 2 files, the manifest states 1",
                "sources/00000001.jsonl: its lines add up to 200 bytes, the manifest states 100",
            ],
        ),
        (b"{}\n", ["sources/00000001.jsonl: line 1: source is missing"]),
        (
            SOURCE.replace(b'"written": 10', b'"written": 9'),
            [LISTED + "line 1 has rows that are not accounted for: 10 read, 9 written, 0 rejected, 0 dropped"],
        ),
        (
            SOURCE.replace(b"sha256:", b"md5:"),
            [
                f'{LISTED}line 1: fingerprint is "md5:{"0" * 64}", not of the form '
                "sha256:[0-9a-z]+|etag:[!-~]+|crc32c:[0-9a-f]{8}-[0-9]+"
            ],
        ),
        (SOURCE[:-1], ["sources/00000001.jsonl: line 1 is not a whole JSON object"]),
        (None, ["sources/00000001.jsonl: missing"]),
    ],
)
def test_the_list_of_sources_is_held_against_the_manifest(
    tmp_path: Path, build: Callable[..., Manifest], content: bytes | None, found: list[str]
) -> None:
    name = "sources/00000001.jsonl"
    build(source=SourceSummary("csv", 1, 100, name))
    (tmp_path / "sources").mkdir()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert findings(tmp_path) == found


def test_a_tfrecord_file_alone_is_verified_and_cannot_be_proven_complete(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    write_records(path, ROWS)
    report = verify_dataset(path)
    assert (report.generation, report.shards, report.records, report.findings) == (None, 1, 10, ())
    assert report.notes[0].startswith("no manifest: that it is complete cannot be proven")
    flip(path, FRAME + 20)
    assert verify_dataset(path).findings == (Finding("x.tfrecord", "the checksum of its data is wrong", 1, FRAME),)


def test_a_folder_without_a_dataset_is_a_wrong_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no dataset"):
        verify_dataset(tmp_path)


def test_verifying_imports_neither_beam_nor_pandas(sound: Path) -> None:
    program = (
        "import sys; from shardmill.transforms.dataset.integrity.verify import verify_dataset; "
        f"assert verify_dataset({os.fspath(sound)!r}).ok; "
        "print([name for name in ('apache_beam', 'pandas', 'pyarrow.dataset') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"


def quick_findings(root: Path) -> list[str]:
    return [str(finding) for finding in verify_dataset(root, quick=True).findings]


def test_a_quick_look_holds_sizes_against_the_manifest_and_reads_no_record(sound: Path) -> None:
    report = verify_dataset(sound, quick=True)
    assert report == Report(str(sound), 1, 2, 10, 10 * FRAME, (), (), quick=True)
    flip(sound / FIRST, 20)
    assert quick_findings(sound) == []
    os.truncate(sound / FIRST, 5 * FRAME)
    (sound / "train-00001.tfrecord").unlink()
    (sound / "features.json").write_bytes(b"{}")
    (sound / "train-00002.tfrecord").write_bytes(b"")
    assert quick_findings(sound) == [
        "train-00001.tfrecord: missing",
        f"{FIRST}: {5 * FRAME} bytes, the manifest states {6 * FRAME}",
        "features.json: does not agree with the manifest",
        "train-00002.tfrecord: no generation names this file: remove it, or move it away",
    ]


@pytest.mark.parametrize("formats", [{"jpeg"}, {"gif"}, {"jpeg", "gif"}, None])
def test_a_quick_look_takes_images_of_any_format(
    tmp_path: Path, build_dataset: Callable[..., Manifest], formats: set[str] | None
) -> None:
    records = [image(name) for name in sorted(formats or {"tiff"})]
    build_dataset(tmp_path, {"train": [records]}, IMAGES, image_formats=formats and frozenset(formats))
    assert quick_findings(tmp_path) == []
    (tmp_path / "features.json").write_text("{}")
    assert quick_findings(tmp_path) == ["features.json: does not agree with the manifest"]


def test_an_error_of_the_disk_at_an_index_is_of_the_index_and_not_of_the_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert(data={"a": [1, 2]}, output=tmp_path / "out")
    real = verify_shard.read_file

    def fail(root: str, path: str, limit: int) -> bytes:
        if path.startswith("index/"):
            raise OSError(5, "Input/output error")
        return real(root, path, limit)

    monkeypatch.setattr(verify_shard, "read_file", fail)
    (finding,) = verify_dataset(str(tmp_path / "out")).findings
    assert str(finding) == "index/train-00000.offsets: cannot be read: Input/output error"


def test_a_quick_look_wants_lists_and_indexes_to_be_there(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    manifest = build(ROWS, source=SourceSummary("csv", 1, 100, "sources/00000001.jsonl"))
    restate(tmp_path, manifest, sidecars=(*manifest.sidecars, index_path(FIRST, "text")))
    assert sorted(quick_findings(tmp_path)) == ["index/train-00000.idx: missing", "sources/00000001.jsonl: missing"]


def test_a_quick_look_at_a_file_alone_can_tell_nothing(tmp_path: Path) -> None:
    write_records(tmp_path / "x.tfrecord", ROWS)
    with pytest.raises(InputError, match="no manifest states the size: leave --quick out"):
        verify_dataset(tmp_path / "x.tfrecord", quick=True)


def test_the_lists_of_each_generation_of_the_lineage_are_verified(
    tmp_path: Path, build: Callable[..., Manifest]
) -> None:
    first = build(source=SourceSummary("csv", 1, 100, "sources/00000001.jsonl"))
    second = dataclasses.replace(
        first, generation=2, parent=1, source=SourceSummary("csv", 1, 100, "sources/00000002.jsonl")
    )
    for name in ("manifests/00000002.json", "manifest.json"):
        (tmp_path / name).write_bytes(second.to_bytes())
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/00000001.jsonl").write_bytes(SOURCE * 2)
    (tmp_path / "sources/00000002.jsonl").write_bytes(SOURCE)
    assert {finding.file for finding in verify_dataset(tmp_path).findings} == {"sources/00000001.jsonl"}


def test_the_lists_of_a_generation_that_is_not_published_are_verified_where_they_are_staged(
    tmp_path: Path, build: Callable[..., Manifest]
) -> None:
    manifest = build(source=SourceSummary("csv", 1, 100, "sources/00000001.jsonl"))
    staged = tmp_path / manifest.run.staging / "sources.jsonl"
    staged.parent.mkdir(parents=True)
    staged.write_bytes(SOURCE)
    assert findings(tmp_path) == []
    staged.write_bytes(SOURCE * 2)
    assert len(findings(tmp_path)) == 4


@pytest.mark.parametrize(
    ("number", "note"),
    [
        (2, "manifests/00000001.json: missing; no other generation was made from it"),
        (
            9,
            "manifests/00000001.json to manifests/00000008.json: missing; no other generation was made from them",
        ),
    ],
)
def test_manifests_that_no_other_generation_comes_from_may_be_gone(
    number: int, note: str, tmp_path: Path, build: Callable[..., Manifest]
) -> None:
    manifest = build()
    entries = [dataclasses.replace(shard, generation=number) for shard in manifest.splits["train"].shards]
    split = dataclasses.replace(manifest.splits["train"], shards=tuple(entries))
    later = dataclasses.replace(manifest, generation=number, splits={"train": split})
    for name in (f"manifests/{number:08d}.json", "manifest.json"):
        (tmp_path / name).write_bytes(later.to_bytes())
    (tmp_path / "manifests/00000001.json").unlink()
    report = verify_dataset(tmp_path)
    assert report.findings == ()
    assert report.notes == (note,)


def test_verifying_changes_nothing(sound: Path) -> None:
    flip(sound / FIRST, 20)
    (sound / "features.json").unlink()

    def state() -> list[tuple[str, int, bytes]]:
        files = sorted(path for path in sound.rglob("*") if path.is_file())
        return [(str(path), path.stat().st_mtime_ns, path.read_bytes()) for path in files]

    before = state()
    assert not verify_dataset(sound).ok
    assert state() == before


def test_a_manifest_that_was_changed_and_still_reads_is_found(sound: Path) -> None:
    path = sound / "manifests" / "00000001.json"
    path.write_bytes(path.read_bytes().replace(b'"parent": null', b'"parent":  null'))
    assert findings(sound) == ["manifests/00000001.json: does not agree with the manifest"]


def test_an_emptied_folder_of_manifests_is_damage_and_a_copy_without_it_is_not(sound: Path) -> None:
    (sound / "manifests" / "00000001.json").unlink()
    assert findings(sound) == ["manifests/00000001.json: missing"]
    (sound / "manifests").rmdir()
    report = verify_dataset(sound)
    assert report.ok
    assert report.notes == ("no manifests/ folder: older generations are not known",)


def test_links_to_folders_and_folders_with_a_shards_name_are_told_like_files(
    sound: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (sound / "train-00007.tfrecord").mkdir()
    (sound / "more").symlink_to(tmp_path_factory.mktemp("outside"))
    report = verify_dataset(sound)
    assert [str(finding) for finding in report.findings] == [
        "train-00007.tfrecord: no generation names this file: remove it, or move it away"
    ]
    assert report.notes == ("more: no part of the dataset",)


def test_a_folder_that_cannot_be_read_is_an_error_since_strays_may_lie_there(
    sound: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sound / "more").mkdir()
    scan = os.scandir

    def refusing(path: Any) -> Any:
        if not isinstance(path, int) and os.path.basename(path) == "more":
            raise PermissionError(13, "Permission denied", path)  # chmod does not stop root
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(InputError, match="more: cannot be read: Permission denied"):
        verify_dataset(sound)


def test_no_changed_byte_of_any_file_of_a_dataset_stays_unseen(tmp_path: Path, build: Callable[..., Manifest]) -> None:
    """But the free text of the two lists, and the fingerprints in them, which nothing states a second time."""
    manifest = build(
        source=SourceSummary("csv", 1, 100, "sources/00000001.jsonl"),
        rejects=RejectSummary("rejects/00000001.jsonl", 1, {"BAD_TYPE": 1}),
        counts=RowCounts(11, 10, 1, 0),
    )
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/00000001.jsonl").write_bytes(
        SOURCE.replace(b'"read": 10', b'"read": 11').replace(b'"rejected": 0', b'"rejected": 1')
    )
    (tmp_path / "rejects").mkdir()
    (tmp_path / "rejects/00000001.jsonl").write_bytes(REJECT)
    (tmp_path / "index").mkdir()
    indexes = []
    for entry in manifest.splits["train"].shards:
        indexes.append(index_path(entry.path, "text"))
        (tmp_path / indexes[-1]).write_bytes(index_data(FRAME * np.arange(entry.records + 1), "text"))
    restate(tmp_path, manifest, sidecars=tuple(sorted((*manifest.sidecars, *indexes))))
    assert findings(tmp_path) == []
    rng = random.Random(4)
    free = re.compile(rb'"(source|fingerprint|column|value|expected|message|row)": ("[^"]*"|\d+)')
    for path in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        data = path.read_bytes()
        spans = [match.span(2) for match in free.finditer(data)] if path.suffix == ".jsonl" else []
        for place in rng.sample(range(len(data)), min(len(data), 30)):
            changed = bytearray(data)
            changed[place] ^= 1 << rng.randrange(8)
            path.write_bytes(changed)
            assert is_damaged(tmp_path) or any(a <= place < b for a, b in spans), (path, place, bytes(changed))
        for changed in (b"", data[: len(data) // 2], data[:-1], data + b"\n", data + bytes(1)):
            path.write_bytes(changed)
            assert is_damaged(tmp_path), (path, len(changed))
        path.unlink()
        assert is_damaged(tmp_path), path
        path.write_bytes(data)


def is_damaged(root: Path) -> bool:
    try:
        return not verify_dataset(root).ok
    except DamageError:
        return True
