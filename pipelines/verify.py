"""Verify a dataset: one command over `dataset.verify`, on all processors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..transforms.dataset.verify import verify_dataset
from ..transforms.errors import DamageError
from .runners import count_workers, threads

if TYPE_CHECKING:
    from .screen import Screen


def verify_command(path: str, screen: Screen) -> int:
    """Print what is wrong with a dataset's folder or a TFRecord file; return 0, or 3 if anything is.

    Raises:
        InputError: there is no dataset and no TFRecord file.
        DamageError: the latest manifest is damaged.
    """
    report = verify_dataset(path, run=threads(count_workers("auto")))
    screen.verified(report)
    return 0 if report.ok else DamageError.exit_code
