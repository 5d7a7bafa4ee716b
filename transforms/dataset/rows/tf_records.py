"""Batches for TensorFlow: `tf.data` reads the shards and parses whole batches, as in a pipeline written by hand.

    shards ─▶ interleaved ─▶ shuffled ─▶ batched ─▶ parse_example ─▶ what the schema says of each feature

fixed shape         a tensor of (rows, *shape)
any length          `tf.RaggedTensor`
may be absent       the value, or NaN, 0 or "" where `NAME/present` is False; a list is empty, which TensorFlow cannot
                    tell from one that is there
lists of lists      `tf.RaggedTensor` of their name, put together from the features that hold them
pictures, decoded   `tf.RaggedTensor` of (rows, height, width, 3); `.to_tensor()` of one picture, or of equal ones
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import tensorflow as tf

from ...errors import ShardmillWarning, UsageError
from ...format.columns.keys import FLAT_VALUES, ROW_LENGTHS
from ...format.schema.schema import Feature
from .epoch import too_much_left_out
from .numbered_rows import NumberedRows
from .numpy_columns import PRESENT

_FILES_AT_ONCE: Final = 16
_VALUES: Final = "/" + FLAT_VALUES
_LENGTHS: Final = "/" + ROW_LENGTHS

_DTYPES: Final = {"int64": tf.int64, "float": tf.float32, "bytes": tf.string}


@dataclass(frozen=True, slots=True)
class TensorFlowOptions:
    """How rows are batched: `shuffle_rows` is the size of the buffer, 0 for none; `seed` is that of files and rows.

    Raises:
        UsageError: a number is below its least.
    """

    batch_rows: int
    shuffle_rows: int
    seed: int | None
    drop_remainder: bool
    repeat: bool
    decode: bool

    def __post_init__(self) -> None:
        if self.batch_rows < 1 or self.shuffle_rows < 0:
            raise UsageError(
                f"tf: batch_rows is {self.batch_rows}, shuffle_rows is {self.shuffle_rows}; these are 1 and 0 at least"
            )


def tf_dataset(
    rows: NumberedRows, shards: Sequence[str], features: Sequence[Feature], options: TensorFlowOptions
) -> Any:
    """Return a `tf.data.Dataset` of dicts of tensors, whose cardinality is known."""
    kind = "" if rows.manifest.compression == "none" else "GZIP"
    files = tf.data.Dataset.from_tensor_slices(list(shards) or tf.zeros([0], tf.string))
    shuffled = options.shuffle_rows > 0
    if shuffled:
        files = files.shuffle(max(len(shards), 1), seed=options.seed)
    records = files.interleave(
        lambda path: tf.data.TFRecordDataset(path, compression_type=kind, buffer_size=1 << 20),
        cycle_length=min(_FILES_AT_ONCE, max(len(shards), 1)) if shuffled else 1,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    records = records.apply(tf.data.experimental.assert_cardinality(len(rows)))
    if shuffled:
        records = records.shuffle(min(options.shuffle_rows, max(len(rows), 1)), seed=options.seed)
    if options.repeat:
        records = records.repeat()
    if options.drop_remainder and not options.repeat:
        left_out = len(rows) % options.batch_rows
        said = too_much_left_out(len(rows), left_out, options.batch_rows, 1, "drop_remainder=False")
        if said is not None:
            warnings.warn(said, ShardmillWarning, stacklevel=3)
    batches = records.batch(options.batch_rows, drop_remainder=options.drop_remainder)
    present = {f"{column.name}{PRESENT}" for column in rows.manifest.columns if column.null == "present"}
    spec, plain = _nested_spec(features)
    spec |= {feature.name: _parsed_as(feature) for feature in plain}

    def parse(serialized: Any) -> dict[str, Any]:
        parsed = tf.io.parse_example(serialized, spec)
        found: dict[str, Any] = parsed | _restored(parsed, plain, present, decode=options.decode)
        return found

    return batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def _nested_spec(features: Sequence[Feature]) -> tuple[dict[str, Any], list[Feature]]:
    """Return how lists of lists are parsed, by their names, and the features that hold none."""
    names = {feature.name for feature in features}
    spec, used = {}, set()
    for feature in features:
        if feature.name.endswith(_VALUES):
            base = feature.name.removesuffix(_VALUES)
            lengths = [name for i in range(len(names)) if (name := f"{base}{_LENGTHS}{i}") in names]
            parts = [tf.io.RaggedFeature.RowLengths(name) for name in lengths]
            dtype = _DTYPES[feature.kind]
            spec[base] = tf.io.RaggedFeature(dtype, feature.name, parts, row_splits_dtype=tf.int64)
            used |= {feature.name, *lengths}
    return spec, [feature for feature in features if feature.name not in used]


def _parsed_as(feature: Feature) -> Any:
    dtype = _DTYPES[feature.kind]
    if -1 in feature.shape or feature.nullable:
        return tf.io.RaggedFeature(dtype, row_splits_dtype=tf.int64)
    return tf.io.FixedLenFeature(feature.shape, dtype)


def _restored(
    parsed: Mapping[str, Any], features: Sequence[Feature], present: Container[str], *, decode: bool
) -> dict[str, Any]:
    """Return what was parsed: dense where the shape is fixed, with whether it is there; booleans; decoded pictures.

    `present` are the features that say whether a nested column is there.
    """
    found: dict[str, Any] = {}
    for feature in features:
        values = parsed[feature.name]
        if feature.nullable and -1 not in feature.shape:
            found[feature.name + PRESENT] = values.row_lengths() > 0
            values = _dense(values, feature)
        if feature.type == "bool" or feature.name in present:
            values = tf.cast(values, tf.bool)
        if decode and feature.type == "image" and not feature.shape:
            values = tf.map_fn(_decoded, values, fn_output_signature=tf.RaggedTensorSpec([None, None, 3], tf.uint8, 1))
        found[feature.name] = values
    return found


def _dense(values: Any, feature: Feature) -> Any:
    size = 1
    for axis in feature.shape:
        size *= axis
    default = {"int64": 0, "float": float("nan"), "bytes": ""}[feature.kind]
    dense = values.to_tensor(default, shape=[None, size])
    return tf.reshape(dense, [-1, *feature.shape])


def _decoded(picture: Any) -> Any:
    pixels = tf.io.decode_image(picture, channels=3, expand_animations=False)
    pixels = tf.ensure_shape(pixels, [None, None, 3])
    return tf.RaggedTensor.from_tensor(pixels, ragged_rank=1)
