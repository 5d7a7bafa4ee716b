"""The screen of `salvage`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.storage.record_file import read_records, write_records
from shardmill.transforms.format.tfrecord.framing import FRAME_BYTES

RECORDS = [bytes([65 + number]) * 84 for number in range(10)]
FRAME = 84 + FRAME_BYTES


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.tfrecord"
    write_records(path, RECORDS)
    data = bytearray(path.read_bytes())
    data[FRAME + 30] ^= 1  # data of record 1
    data[4 * FRAME : 4 * FRAME + 3] = b"\xff\xff\xff"  # the length of record 4
    data[6 * FRAME : 6 * FRAME + 50] = bytes(50)  # record 6
    path.write_bytes(data[:-10])
    return path


def run(*args: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(list(args))
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_what_was_saved_and_what_was_lost_is_said(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("salvage", "x.tfrecord", "-o", "saved", capsys=capsys)
    assert (code, err) == (3, "")
    assert out.splitlines() == [
        "record 1, bytes 100 to 200: the checksum of its data is wrong (lost: 1 record)",
        "record 4, bytes 400 to 500: the checksum of its length is wrong; its data are whole (recovered)",
        "record 6, bytes 600 to 700: zeros where it should begin (lost: what lay there)",
        "record 9, bytes 900 to 990: its data is cut: it takes 100 bytes, and 90 are left in the file (lost: 1 record)",
        "Wrote saved/x.tfrecord: 7 records, 588 B.",
        "Lost: at least 2 records, and what lay in 1 range that cannot be read (290 B).",
    ]
    assert list(read_records("saved/x.tfrecord")) == [r for n, r in enumerate(RECORDS) if n not in (1, 6, 9)]


def test_json_has_each_damage(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("salvage", "x.tfrecord", "-o", "saved", "--json", capsys=capsys)
    document = json.loads(out)
    assert code == 3
    assert (document["records"], document["lost_records"], document["lost_is_exact"]) == (7, 2, False)
    assert [damage["offset"] for damage in document["damages"]] == [100, 400, 600, 900]


def test_a_sound_file_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_records(tmp_path / "x.tfrecord", RECORDS)
    code, out, _ = run("salvage", str(tmp_path / "x.tfrecord"), "-o", str(tmp_path / "saved"), capsys=capsys)
    assert code == 0
    assert out.splitlines()[-1].startswith("Nothing is lost, unless the file was cut between two records")


def test_a_file_of_which_nothing_can_be_read_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.tfrecord").write_bytes(b"id,name\n1,Ada\n2,Bob\n")
    code, out, _ = run("salvage", "x.tfrecord", "-o", "saved", capsys=capsys)
    assert code == 3
    assert out.splitlines()[1:] == [
        "No record of x.tfrecord is intact; nothing was written.",
        "Lost: what lay in 1 range that cannot be read (20 B).",
    ]
    (tmp_path / "x.tfrecord").write_bytes(b"")
    code, out, _ = run("salvage", "x.tfrecord", "-o", "saved", capsys=capsys)
    assert (code, out) == (0, "x.tfrecord is empty; nothing was written.\n")
    assert not (tmp_path / "saved").exists()


def test_a_target_that_is_there_ends_with_2(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("salvage", "x.tfrecord", "-o", ".", capsys=capsys)
    assert (code, out) == (2, "")
    assert err == "error: ./x.tfrecord: already exists; choose another folder (-o)\n"
