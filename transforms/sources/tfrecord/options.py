"""The options of TFRecord files: the keys of `input`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from ..registry.options import ColumnsDiffer, InputPath, Options, check_where


class TfrecordInput(Options):
    """TFRecord files; `opaque` records need not be Examples. Some may be left out, by keys or by an expression."""

    format: Literal["tfrecord"] = "tfrecord"
    records: Literal["example", "opaque"] = "example"
    columns_differ: ColumnsDiffer = "refuse"
    drop: InputPath | None = None
    drop_where: Annotated[str, AfterValidator(check_where)] | None = None
