"""docs/format.md says what the code does: its examples are read and made again, and every key and code is in it."""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
from pathlib import Path

import pyarrow as pa
import pytest
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.remembered import remembered
from shardmill.transforms.dataset.commit.accounting import Accounts, source_lines
from shardmill.transforms.dataset.stage.spec import EntryInfo
from shardmill.transforms.format.batches.rejects import CODES, CellError, Place, Reject
from shardmill.transforms.format.batches.rows import EntryCounts, Narrowing
from shardmill.transforms.format.manifest import manifest as manifest_module
from shardmill.transforms.format.manifest.manifest import Manifest, PartEntry, RowCounts, ShardEntry, SplitEntry
from shardmill.transforms.format.manifest.parser import parse_manifest
from shardmill.transforms.format.schema.schema import Feature
from shardmill.transforms.format.tfrecord.framing import crc32c, frame_records

from .examples import example_from_values

DOC = (Path(__file__).parent.parent / "docs/format.md").read_text()
MANIFEST, _DETAILS, CONVERSION, SOURCE, REJECT, STATISTICS = re.findall(r"```json\n(.*?)```", DOC, re.DOTALL)
STATED = [
    Manifest,
    PartEntry,
    Narrowing,
    Feature,
    *(getattr(manifest_module, name) for name in ("ShardEntry", "SplitEntry", "RunInfo")),
    *(getattr(manifest_module, name) for name in ("SourceSummary", "RowCounts", "RejectSummary")),
]
PREFIXES = {"SourceSummary": "source.", "RowCounts": "counts.", "RejectSummary": "rejects."}


def example() -> Manifest:
    return parse_manifest(MANIFEST.encode(), "docs/format.md")


def hex_in(text: str) -> bytes:
    return bytes.fromhex(re.sub(r"\s+", " ", text))


def test_the_manifest_is_a_manifest_in_canonical_form() -> None:
    assert example().to_bytes() == MANIFEST.encode()


def test_the_conversion_that_is_shown_is_one() -> None:
    document = json.loads(CONVERSION)
    manifest = dataclasses.replace(example(), conversion=document)
    assert parse_manifest(manifest.to_bytes(), "m").conversion == document
    functions = document.pop("map")
    config = load_config({**document, "input": {**document["input"], "paths": ["a.csv"]}, "output": {"path": "o"}})
    assert remembered(config, functions) == document | {"map": functions}


def test_the_split_and_the_part_that_are_shown_are_written_so() -> None:
    shards = tuple(
        ShardEntry(f"train-{i:05d}.tfrecord", 1, 100 + i % 7, 100_000_000 + i, f"{i:08x}") for i in range(20_001)
    )
    records, size = sum(shard.records for shard in shards), sum(shard.bytes for shard in shards)
    split = SplitEntry(records, size, 409_600, "sum128:20d61d8972eef9a782d5b26f26a85342", shards)
    main, parts = dataclasses.replace(example(), splits={"train": split}).to_documents()
    shown_split, shown_part = (
        textwrap.dedent(DOC.partition(f"<!-- {name} -->\n")[2].partition("\n\n")[0])
        for name in ("a split in parts", "a part")
    )
    assert f" {shown_split}\n" in main.decode()
    first = next(iter(parts.values())).decode()
    begin, end = shown_part.split("  …\n")
    assert first.startswith(begin)
    assert first.endswith(f"{end}\n")
    assert f"of {first.count(chr(10)):,} lines" in DOC


@pytest.mark.parametrize("stated", STATED, ids=lambda stated: stated.__name__)
def test_every_key_of_a_manifest_is_explained(stated: type) -> None:
    names = [field.name.removesuffix("_") for field in dataclasses.fields(stated)]
    missing = [name for name in names if f"`{PREFIXES.get(stated.__name__, '')}{name}`" not in DOC]
    assert not missing


def test_the_keys_of_the_table_are_those_of_the_manifest_in_order() -> None:
    table = DOC.partition("| `format` | string")[2].partition("\n\n")[0]
    keys = ["format", *re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)]
    assert keys == list(json.loads(MANIFEST))


def test_every_reject_code_is_listed() -> None:
    listed = re.findall(r"`([A-Z][A-Z0-9_]+)`", DOC.partition("The codes:")[2].partition("\n\n")[0])
    assert tuple(listed) == CODES


def test_the_line_of_a_source_is_written_so() -> None:
    line = json.loads(SOURCE)
    counts = EntryCounts(0, line["read"], line["written"], line["rejected"], line["dropped"])
    notes = {(0, "odd rows"): 2}
    entry = EntryInfo(line["source"], line["bytes"], line["fingerprint"], line["files"])
    plain = Accounts({0: counts}, RowCounts(8, 7, 1, 0), {}, (), {})
    assert source_lines((entry,), plain) == SOURCE.encode()
    noted = json.loads(source_lines((entry,), dataclasses.replace(plain, notes=notes)))
    assert noted == line | {"notes": {"odd rows": 2}}
    assert all(f"`{key}`" in DOC for key in noted)


def test_the_line_of_a_reject_is_written_so() -> None:
    line = json.loads(REJECT)
    errors = tuple(CellError(**error) for error in line["errors"])
    assert Reject(0, Place(line["source"]), errors, line["split"]).to_json_line() + "\n" == REJECT
    keys = [field.name for field in dataclasses.fields(Place)] + list(line["errors"][0])
    assert all(f"`{key}`" in DOC for key in keys)


def test_the_record_of_the_example_is_framed_and_mixed_so() -> None:
    payload = hex_in(DOC.partition("payload of 51 bytes,\n")[2].partition("\n\nand is framed")[0])
    head, foot = (hex_in(text) for text in re.findall(r"between `([0-9a-f ]+)` and `([0-9a-f ]+)`", DOC)[0])
    values = {"id": [7], "name": [b"Ada"], "score": [0.5]}
    assert example_from_values(values).SerializeToString(deterministic=True) == payload
    frames = frame_records(pa.array([payload], pa.large_binary()))
    assert b"".join(frames.buffers) == head + payload + foot
    assert f"`{crc32c(payload):08x}`" in DOC
    assert f"`sum128:{frames.digest:032x}`" in DOC


def test_the_digest_is_computed_as_the_page_says() -> None:
    low = (1 << 64) - 1

    def mix(x: int) -> int:
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & low
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & low
        return x ^ x >> 31

    seed = 51 << 32 | 0x0E7C04A0
    digest = mix(seed + 0x9E3779B97F4A7C15 & low) << 64 | mix(seed + 2 * 0x9E3779B97F4A7C15 & low)
    assert f"`sum128:{digest:032x}`" in DOC


def test_the_files_of_the_example_are_in_the_drawing_of_the_folder() -> None:
    drawing = DOC.partition("## The folder")[2].partition("Generations are")[0]
    names = [*example().sidecars, "manifests/00000001.json", "sources/00000001.jsonl", "rejects/00000001.jsonl"]
    assert all(re.sub(r"^.*(\.labels\.txt)$", r"*\1", name) in drawing for name in names)
