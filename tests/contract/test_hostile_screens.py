"""What the user of the command line sees of files that were made to do harm: one screen a case, word for word."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shardmill.transforms.format.tfrecord.gzip_members import compress_member

from ..command_line import Shardmill
from ..tiers import but_some_thorough


def contents(*folders: Path) -> dict[str, bytes | None]:
    """Return all that lies below some folders: bytes of files, None for folders and links."""
    found = [path for folder in folders for path in folder.rglob("*") if path.suffix != ".lock"]
    return {str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else None for path in found}


# A dataset from anyone


@pytest.fixture
def hostile(tmp_path: Path, shardmill: Shardmill) -> Callable[[Callable[[str], str]], Path]:
    """Return what makes a dataset whose manifest was changed, beside a folder that it has no business in."""
    (tmp_path / "a.csv").write_text("id,name\n1,Ada\n2,Bob\n")
    assert shardmill("convert", "a.csv", "-o", "out", "--workers", "1", "-q").code == 0
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("mine")

    def change(edit: Callable[[str], str]) -> Path:
        text = (tmp_path / "out/manifest.json").read_text()
        changed = edit(text)
        assert changed != text
        for name in ("manifest.json", "manifests/00000001.json"):
            (tmp_path / "out" / name).write_text(changed)
        return tmp_path / "out"

    return change


STAYS = "not a relative path of letters, digits and ._=/- that stays in the folder"

MANIFESTS: dict[str, tuple[Callable[[str], str], str]] = {
    "a shard outside": (
        lambda text: text.replace('"path": "train-00000.tfrecord"', '"path": "../outside/secret"'),
        f'splits.train.shards[0].path is "../outside/secret", {STAYS}',
    ),
    "an absolute shard": (
        lambda text: text.replace('"path": "train-00000.tfrecord"', '"path": "/etc/passwd"'),
        f'splits.train.shards[0].path is "/etc/passwd", {STAYS}',
    ),
    "a URL for a shard": (
        lambda text: text.replace('"path": "train-00000.tfrecord"', '"path": "s3://k:pw@b/x?sig=1"'),
        f'splits.train.shards[0].path is "s3://…@b/x?…", {STAYS}',
    ),
    "a staging folder outside": (
        lambda text: text.replace('"staging": ".staging/', '"staging": "../outside/'),
        "run.staging is ",
    ),
    "a list outside": (
        lambda text: text.replace('"sources/00000001.jsonl"', '"../outside/secret"'),
        f'source.list is "../outside/secret", {STAYS}',
    ),
    "a sidecar outside": (
        lambda text: text.replace('"stats.tfdv"]', '"stats.tfdv", "../outside/secret"]'),
        'sidecars[6] is "../outside/secret", not the name of a sidecar',
    ),
    "a key twice": (
        lambda text: text.replace('"order":', '"order": "task", "order":'),
        "order appears twice in one object",
    ),
    "an unknown key": (lambda text: text.replace('"labels": {}', '"labels": {}, "x": 1'), "x is not known"),
    "NaN": (lambda text: text.replace('"shard_size": 134217728', '"shard_size": NaN'), "NaN is not a JSON number"),
    "a number without end": (
        lambda text: text.replace('"shard_size": 134217728', '"shard_size": 1e999'),
        "1e999 is beyond the largest number of 64 bits",
    ),
    "many levels": (
        lambda text: text.replace('"labels": {}', '"labels": ' + '{"a":' * 90_000 + "1" + "}" * 90_000),
        "the document is nested too deeply: over 80 levels",
    ),
    "millions of values": (
        lambda text: text.replace('"labels": {}', '"labels": {"a": [' + "[]," * 4_000_000 + "[]]}"),
        "the document holds too many values: they would take over 805306368 bytes of memory",
    ),
    "a terminal's commands": (
        lambda text: text.replace('"order": "task"', '"order": "\\u001b[2J\\nerror: fine\\u202e"'),
        'order is "\\x1b[2J\\nerror: fine\\u202e", not one of task, source',
    ),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_hostile_manifest_is_refused_by_every_command_and_nothing_is_touched(
    case: str, hostile: Any, shardmill: Shardmill, tmp_path: Path
) -> None:
    edit, told = MANIFESTS[case]
    out = hostile(edit)
    before = contents(out, tmp_path / "outside")
    for command in (
        ["verify", "out"],
        ["verify", "out", "--quick"],
        ["inspect", "out"],
        ["gc", "out", "--older-than", "0s", "--delete"],
        ["append", "a.csv", "-o", "out"],
        ["merge", "out", "-o", "merged"],
        ["convert", "a.csv", "-o", "out"],
    ):
        screen = shardmill(*command)
        assert (screen.code, screen.out) == (3, ""), command
        assert "out/manifests/00000001.json: " in screen.err
        assert told in screen.err
        assert len(screen.err) < 400
    log = shardmill("log", "out")
    assert log.code == 3
    assert told in log.out
    assert contents(out, tmp_path / "outside") == before
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("name", ["train-00000.tfrecord", "sources/00000001.jsonl", "schema.pbtxt", "manifest.json"])
def test_a_link_in_the_place_of_a_file_is_damage_and_what_it_leads_to_is_not_read(
    name: str, shardmill: Shardmill, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,name\n1,Ada\n2,Bob\n")
    assert shardmill("convert", "a.csv", "-o", "out", "--workers", "1", "-q").code == 0
    (tmp_path / "outside").mkdir()
    (tmp_path / "out" / name).rename(tmp_path / "outside/secret")
    (tmp_path / "out" / name).symlink_to(tmp_path / "outside/secret")
    before = contents(tmp_path / "out", tmp_path / "outside")
    for quick in ([], ["--quick"]):
        screen = shardmill("verify", "out", *quick)
        assert screen.code == 3
        assert screen.out.startswith(f"{name}: a link; a dataset's files are its own\n")
    if name.startswith("train"):
        assert shardmill("inspect", "out").code == 3
        assert shardmill("merge", "out", "-o", "merged").code == 3
    assert shardmill("gc", "out", "--older-than", "0s", "--delete").code in (0, 3)
    assert contents(tmp_path / "out", tmp_path / "outside") == before


def test_files_that_no_generation_names_are_told_escaped(shardmill: Shardmill, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    assert shardmill("convert", "a.csv", "-o", "out", "--workers", "1", "-q").code == 0
    (tmp_path / "out/train-\x1b[2J\n00009.tfrecord").write_bytes(b"")
    (tmp_path / "out" / os.fsdecode(b"caf\xe9\n.txt")).write_bytes(b"")
    for option in ([], ["--quick"], ["--json"]):
        assert shardmill("verify", "out", *option).code == 3
    screen = shardmill("verify", "out")
    assert screen.out.splitlines()[:2] == [
        "train-\\x1b[2J\\n00009.tfrecord: no generation names this file: remove it, or move it away",
        "Note: caf\\xe9\\n.txt: no part of the dataset",
    ]


# Sources


def npy(array: Any) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def header_of(descr: str, shape: str) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def npz(*members: tuple[str, bytes], zeros: int = 0) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members:
            with archive.open(name, "w", force_zip64=True) as file:
                file.write(data)
                for _ in range(zeros):
                    file.write(bytes(1 << 20))
    return sink.getvalue()


NONE = "none of the files holds an array that can be written (1); "
ARRAYS: dict[str, tuple[str, bytes | Callable[[], bytes], int, str]] = {
    "a pickle": (
        "x.npy", npy(np.array([{}], dtype=object)), 2,
        f"{NONE}x.npy: it holds Python objects (a pickle), which are never loaded; save it with a numeric dtype",
    ),
    "a size that lies": (
        "x.npy", header_of("'<f8'", "(99999999999,)"), 1,
        f"{NONE}x.npy: the header says float64 of shape (99999999999), which is a file of 800000000120 bytes; this one "
        "has 128",
    ),
    "code": ("x.npy", header_of("__import__('os').mkdir('x')", "(1,)"), 1, f"{NONE}x.npy: its header is not a dict"),
    "many levels": ("x.npy", header_of("[" * 5000 + "]" * 5000, "(1,)"), 1, f"{NONE}x.npy: its header is "),
    "a zip bomb": (
        "x.npz", lambda: npz(("a.npy", header_of("'|u1'", f"({30 << 20},)")), zeros=30), 4,
        "x.npz: RECORD_TOO_LARGE: unpacked it has 31457408 bytes, over limits.record_bytes = 1048576",
    ),
    "an empty archive": ("x.npz", b"PK\x05\x06" + bytes(18), 2, f"{NONE}x.npz: it holds no array"),
}  # fmt: skip


@pytest.mark.parametrize("case", ARRAYS)
def test_a_hostile_array_is_refused_by_its_file(case: str, shardmill: Shardmill, tmp_path: Path) -> None:
    name, data, code, told = ARRAYS[case]
    (tmp_path / name).write_bytes(data() if callable(data) else data)
    screen = shardmill("convert", name, "-o", "out", "--workers", "1", "--set", "limits.record_bytes=1MiB")
    assert (screen.code, screen.out) == (code, ""), screen
    assert screen.err.startswith("error: ")
    assert told in screen.err
    assert not (tmp_path / "x").exists()
    assert not (tmp_path / "out/manifest.json").exists()


CSV: dict[str, tuple[bytes | Callable[[], bytes], list[str], int, str]] = {
    "a gzip bomb": (
        lambda: compress_member(b"id\n" + bytes(300 << 20)), [], 1, "a decompression bomb?",
    ),
    "a field of many bytes": (
        b'id,name\n1,"' + b"x" * 3_000_000 + b'"\n', ["--set", "limits.field_bytes=1MiB"], 4, "FIELD_TOO_LARGE",
    ),
    "a record without an end": (
        b'id,name\n1,"' + b"x,\n" * 1_000_000, ["--set", "limits.record_bytes=1MiB"], 1, "byte 10",
    ),
    "columns without an end": (
        b",".join(b"c%d" % i for i in range(100_001)) + b"\n" + b"1," * 100_000 + b"1\n", [], 2,
        "x.csv: 100001 columns are more than limits.columns (100000); keep some: input.columns, or raise it: --set "
        "limits.columns=100001",
    ),
    "a header that commands": (b"id,\x1b[2J\nerror: fine\n1,2\n1,2,3\n", [], 4, "BAD_WIDTH"),
}  # fmt: skip


@pytest.mark.parametrize("case", but_some_thorough(set(CSV) - {"a gzip bomb"}, CSV, "300 MB are inflated and parsed"))
def test_a_hostile_table_is_refused_by_its_file(case: str, shardmill: Shardmill, tmp_path: Path) -> None:
    data, options, code, told = CSV[case]
    (tmp_path / "x.csv").write_bytes(data() if callable(data) else data)
    screen = shardmill("convert", "x.csv", "-o", "out", "--workers", "1", *options)
    assert (screen.code, screen.out) == (code, ""), screen
    assert told in screen.err
    assert "x.csv" in screen.err
    assert not (tmp_path / "out/manifest.json").exists()


# Configs

CONFIGS: dict[str, tuple[str, str]] = {
    "a key twice": ("name: a\nname: b\n", "c.yaml:2:1: name: the key appears twice; the first is on line 1"),
    "a billion laughs": (
        "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)),
        "c.yaml:1:1: is far too large or too deep for a config",
    ),
    "many levels": ("[" * 100_000, "c.yaml:1:1: is far too large or too deep for a config"),
    "a tag that runs code": (
        "name: !!python/object/apply:os.mkdir [x]\n",
        "python/object/apply:os.mkdir is not for a config",
    ),
    "a terminal's commands": ('name: "\\e[2J"\n', "\\x1b[2J"),
    "no text": ("name: \0\n", "c.yaml:1:"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_hostile_config_is_refused_by_its_line(case: str, shardmill: Shardmill, tmp_path: Path) -> None:
    text, told = CONFIGS[case]
    (tmp_path / "c.yaml").write_text(text)
    screen = shardmill("convert", "c.yaml", "-o", "out")
    assert (screen.code, screen.out) == (2, "")
    assert told in screen.err
    assert [path.name for path in tmp_path.iterdir()] == ["c.yaml"]
