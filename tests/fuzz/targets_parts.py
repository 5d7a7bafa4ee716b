"""Manifests in parts: documents that name others by the digests of their bytes. Parts have two shards here."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager

from mutate import mutate
from shardmill.transforms.errors import DamageError
from shardmill.transforms.format.manifest import manifest as manifest_parts
from shardmill.transforms.format.manifest.manifest import Manifest, ShardEntry, parse_part
from shardmill.transforms.format.manifest.parser import parse_manifest
from targets import Target, ours
from targets_documents import TOKENS, document

BETWEEN = b"\x1e"
"""Between the documents of an input: a byte that JSON has none of."""


@contextmanager
def by_two() -> Iterator[None]:
    real, manifest_parts.PART_SHARDS = manifest_parts.PART_SHARDS, 2  # type: ignore[misc]
    try:
        yield
    finally:
        manifest_parts.PART_SHARDS = real  # type: ignore[misc]


def path_of(part: bytes) -> str:
    return f"manifests/shards-{hashlib.sha256(part).hexdigest()[:32]}.json"


def _documents() -> list[bytes]:
    plain = document(None)
    shards = [
        {"path": f"train-{i:05d}.tfrecord", "generation": 1 + i % 2, "records": 8, "bytes": 80, "crc32c": "9a71c4d0"}
        for i in range(5)
    ]
    plain["splits"]["train"] |= {"records": 40, "bytes": 400, "shards": shards}
    with by_two():
        main, parts = parse_manifest(json.dumps(plain).encode(), "m").to_documents()
    return [main, *parts.values()]


MAIN, *PARTS = _documents()


def make_parts(rng: random.Random) -> bytes:
    """Return documents some of which are changed; most parts are named by what they are now, so that they are read."""
    main, parts = MAIN, list(PARTS)
    for i in rng.sample(range(len(parts)), rng.choice((0, 1, 1, 2))):
        changed = parts[i].replace(b"8", rng.choice((b"9", b"80", b"x")))
        if rng.random() < 0.6:
            changed = bytes(mutate(rng, PARTS, TOKENS))
        if rng.random() < 0.8:
            main = main.replace(path_of(parts[i]).encode(), path_of(changed).encode())
        parts[i] = changed
    if rng.random() < 0.4:
        main = bytes(mutate(rng, [main], [*TOKENS, b'"parts": [', b'"shards": [', PARTS[0][:300]]))
    return BETWEEN.join([main, *parts])


def check_parts(data: bytes) -> str:
    main, *parts = data.split(BETWEEN)
    with by_two():
        try:
            manifest = _read(main, {path_of(part): part for part in parts})
        except DamageError as error:
            assert len(str(error)) < 2000
            return ours(error)
        again, own = manifest.to_documents()
        assert _read(again, own) == manifest
    return "manifest"


def _read(main: bytes, parts: dict[str, bytes]) -> Manifest:
    def read_part(path: str) -> tuple[ShardEntry, ...]:
        if path not in parts:
            raise DamageError(f"{path}: missing")
        return parse_part(parts[path], path, path)

    return parse_manifest(main, "m", read_part)


TARGETS = {"manifest_parts": Target(make_parts, check_parts)}
