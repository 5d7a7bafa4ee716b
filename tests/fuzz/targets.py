"""What is fuzzed: each target makes hostile inputs, and holds our code to its word on each of them.

make(rng)      an input: mutations of sound ones, some with their checksums mended, so that the lies are believed
check(data)    the outcome in a word; it raises whatever is a fault: an error that is not ours, a broken invariant
"""

from __future__ import annotations

import atexit
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from shardmill.transforms.errors import ShardmillError
from shardmill.transforms.inputs.contract.source import Source
from shardmill.transforms.inputs.files.file_names import FORMATS
from shardmill.transforms.sources.registry.settings import Limits, Settings

FOLDER = tempfile.mkdtemp(prefix="shardmill-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
"""Where inputs that must be files are put: no disk is worn out."""

atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


@dataclass(frozen=True)
class Target:
    make: Callable[[random.Random], bytes]
    check: Callable[[bytes], str]


def file_of(data: bytes, name: str) -> str:
    path = os.path.join(FOLDER, name)
    with open(path, "wb") as file:
        file.write(data)
    return path


def source_of(kind: str, name: str, limits: Limits | None = None, **options: object) -> Source:
    """Return the source of a file in that folder."""
    found = FORMATS[kind].load()
    model = found.options.model_validate({"format": kind, "paths": [name], **options})
    return found.source(model, Settings(FOLDER, limits=limits or Limits()))


def ours(error: ShardmillError) -> str:
    """Return the outcome of an error of ours; its text must be safe for a terminal, and no book."""
    text = str(error)
    assert text.replace("\n", "").isprintable(), ascii(text)
    assert len(text) < 20_000, len(text)
    assert not isinstance(error.__cause__, MemoryError), "memory ran out, and an error of ours hid it"
    return type(error).__name__


def target(name: str) -> Target:
    """Return the target of a name."""
    if name in ("tfrecord", "salvage", "example", "gzip"):
        import targets_records as module
    elif name in ("manifest", "schema", "config"):
        import targets_documents as module  # type: ignore[no-redef]
    elif name == "arrow":
        import targets_arrow as module  # type: ignore[no-redef]
    elif name == "manifest_parts":
        import targets_parts as module  # type: ignore[no-redef]
    elif name in ("csv_split", "csv", "parquet", "parquet_footer", "numpy"):
        import targets_tables as module  # type: ignore[no-redef]
    else:
        import targets_images as module  # type: ignore[no-redef]
    found: Target = module.TARGETS[name]
    return found
