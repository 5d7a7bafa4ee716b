"""Read with vahidk's `tfrecord` and print what it read, one JSON value a line.

A program of its own: `tfrecord` and TensorFlow register the same messages in protobuf's default pool, so that one
process can import only one of them.

    python read_with_tfrecord.py load '{"data_path": ..., "index_path": ..., "description": ..., ...}'
    python read_with_tfrecord.py index SHARD INDEX
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import numpy as np
from tfrecord.reader import tfrecord_loader
from tfrecord.tools.tfrecord2idx import create_index


def as_json(value: Any) -> Any:
    if isinstance(value, (bytes, memoryview)):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    return np.asarray(value).tolist()


def main(command: str, *arguments: str) -> None:
    if command == "index":
        create_index(*arguments)
        return
    options = json.loads(arguments[0])
    if options.get("shard") is not None:
        options["shard"] = tuple(options["shard"])
    for example in tfrecord_loader(**options):
        sys.stdout.write(json.dumps({name: as_json(value) for name, value in example.items()}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
