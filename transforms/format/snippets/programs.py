"""The programs by the name of what reads; a new one is a line here, and its test in tests/readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .subject import Subject
from .with_others import croissant_program, dali_program, grain_program, tfrecord_program, torch_program
from .with_tensorflow import keras_program, tf_program, tfds_program

PROGRAMS: Final[dict[str, Callable[[Subject], str]]] = {
    "tf": tf_program,
    "keras": keras_program,
    "tfds": tfds_program,
    "torch": torch_program,
    "grain": grain_program,
    "dali": dali_program,
    "tfrecord": tfrecord_program,
    "mlcroissant": croissant_program,
}
