"""The values of a feature on their way: what columns become, and records are written from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..buffers.views import I64
from ..schema.schema import Kind


@dataclass(frozen=True, slots=True, eq=False)
class FeatureColumn:
    """The values of one feature for each row of a batch.

    `values` are int64, float32 or, for bytes, views into `buffers`. A scalar feature has one value for each row and no
    `offsets`; row i of a list has the values from `offsets[i]` to `offsets[i + 1]`. `present` is None where every row
    has the feature; what stands for the others is arbitrary. A sparse column has the values of `rows` alone, which are
    all that have the feature.
    """

    name: str
    kind: Kind
    values: npt.NDArray[Any]
    buffers: tuple[pa.Buffer, ...] = ()
    offsets: I64 | None = None
    present: npt.NDArray[np.bool_] | None = None
    rows: I64 | None = None
