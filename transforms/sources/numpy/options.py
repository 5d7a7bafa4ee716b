"""The options of NumPy files: the keys of `input`."""

from __future__ import annotations

from typing import Literal

from ..registry.options import Options


class NumpyInput(Options):
    """`.npy` and `.npz` files; with `rows`, the first axis of an array is the batch."""

    format: Literal["numpy"] = "numpy"
    rows: bool = False
    feature: str = "array"
