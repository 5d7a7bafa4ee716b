"""Write a first config for some sources: every key that matters, with a word on each."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import yaml

from ..transforms.errors import RunError, TargetError
from ..transforms.format.naming import dataset_name
from ..transforms.format.printable import printable
from ..transforms.sources.csv_delimiter import detect_delimiter
from ..transforms.sources.listing import tell_format
from ..transforms.stores.store_url import is_store_url

if TYPE_CHECKING:
    from .screen import Screen

_INPUTS: Final = {
    "csv": """\
  delimiter: {delimiter}
  header: true                # false: give the names of the columns in `names`
  encoding: utf-8
  null_values: [""]           # unquoted cells that are null; NA is text
  # columns: [a, b]           # keep only these
schema:
  infer: auto                 # full: look at every row | none: all columns are text
  columns: {}                 # {zip: {type: string}, joined: {type: timestamp, unit: us}}
""",
    "parquet": """\
  checksums: true             # verify the pages that carry one
  # columns: [a, b]           # keep only these
schema:
  columns: {}                 # {price: {as: bytes}} keeps float64 exact
""",
    "images": """\
  layout: auto                # flat | label | split | split_label: what the folders mean
  check: structure            # header | structure | decode: how closely each image is looked at
# shuffle: {seed: 7}
""",
    "numpy": """\
  rows: false                 # true: the first axis of an array is the row
  feature: array              # the name of the feature
""",
    "tfrecord": """\
  records: example            # opaque: records need not be Examples
""",
}

_FRAME: Final = """\
# Run it: shardmill convert {file}
version: 1
input:
  format: {format}
  paths: {paths}  # relative to this file
{input}# split: {{fractions: {{train: 0.9, val: 0.1}}, key: id}}
output:
  path: {output}
  shard_size: 128MiB          # bytes on disk of a shard
  compression: none           # gzip
max_rejects: 0                # rows that may be rejected: a number, or "1%"
"""


def starter_text(sources: Sequence[str], config: str) -> str:
    """Return a config that reads `sources`, to stand in the file `config`.

    Raises:
        InputError: a path matches nothing, or the format cannot be told.
    """
    kind = tell_format(sources, os.getcwd())
    folder = os.path.dirname(os.path.abspath(config))
    paths = [source if is_store_url(source) else os.path.relpath(source, folder) for source in sources]
    name = dataset_name(os.path.splitext(os.path.abspath(config))[0] if config != "-" else os.getcwd())
    return _FRAME.format(
        file=config if config != "-" else "FILE",
        format=kind,
        paths=yaml.safe_dump(paths, default_flow_style=True, width=10**6, allow_unicode=True).strip(),
        input=_input_keys(kind, sources),
        output=f"out/{name}",
    )


def _input_keys(kind: str, sources: Sequence[str]) -> str:
    if kind != "csv":
        return _INPUTS[kind]
    sign = detect_delimiter(sources, os.getcwd()).sign.replace("\t", "\\t")
    return _INPUTS[kind].replace("{delimiter}", f'"{sign}"')


def write_starter(sources: Sequence[str], config: str, screen: Screen) -> None:
    """Write the starter config, or print it where `config` is `-`; a file that is there is left alone.

    As JSON both are one document: `path` is null where nothing was written, `text` is the config.

    Raises:
        InputError: a path matches nothing, or the format cannot be told.
        TargetError: the file is there already.
        RunError: it cannot be written.
    """
    text = starter_text(sources, config)
    if config == "-":
        if screen.as_json:
            screen.data({"command": "init", "path": None, "text": text})
        else:
            sys.stdout.write(text)
        return
    try:
        with open(config, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise TargetError(f"{printable(config)}: is there already; give another name with -o, or -o -") from error
    except OSError as error:
        raise RunError(f"{printable(config)}: cannot be written: {error.strerror}") from error
    if screen.as_json:
        screen.data({"command": "init", "path": config, "text": text})
    screen.note(f"Wrote {printable(config)}; now: shardmill convert {printable(config)} --dry-run")
