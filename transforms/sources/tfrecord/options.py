"""The options of TFRecord files: the keys of `input`."""

from __future__ import annotations

from typing import Literal

from ..registry.options import Options


class TfrecordInput(Options):
    """TFRecord files; `opaque` records need not be Examples."""

    format: Literal["tfrecord"] = "tfrecord"
    records: Literal["example", "opaque"] = "example"
