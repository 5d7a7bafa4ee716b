"""Programs with TensorFlow: tf.data, Keras, and TensorFlow Datasets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from ...errors import UsageError
from ..nested.keys import FLAT_VALUES, ROW_LENGTHS
from ..schema.schema import Feature
from ..wording.printable import printable, printable_path, shell_path
from .subject import Subject, quoted

_DTYPES: Final = {"int64": "tf.int64", "float": "tf.float32", "bytes": "tf.string"}
_SIDE: Final = 224
_BATCH: Final = 32
_BATCHES: Final = (
    f"batches = records.shuffle(10_000).batch({_BATCH}).map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)"
)


def tf_program(subject: Subject) -> str:
    return _join(
        "import tensorflow as tf",
        "",
        *_features(subject.features),
        "",
        "",
        "def parse(records):",
        "    batch = tf.io.parse_example(records, features)",
        *_decoded(subject),
        "    return batch",
        "",
        "",
        *_records(subject),
        _BATCHES,
        "for batch in batches.take(1):",
        "    for name, values in batch.items():",
        "        print(name, values.dtype, values.shape)",
    )


def keras_program(subject: Subject) -> str:
    """Train on the first picture, or on all numbers. Raises `UsageError` where there is nothing to learn."""
    pictures = [one for one in subject.pictures if one.name in subject.decoded]
    numbers = [one for one in subject.numbers if one != subject.label]
    scalars = [one for one in numbers if one.shape == ()]
    always = [one for one in scalars if not one.nullable] or scalars
    target = subject.label or (always[-1] if always else None)
    inputs = pictures[:1] or [one for one in numbers if one != target]
    if target is None or not inputs:
        raise UsageError(f"{printable_path(subject.path)}: {_nothing_to_learn(subject)}")
    count = subject.manifest.splits[subject.split].records
    classes = len(subject.manifest.labels.get(target.name, ()))
    loss = "sparse_categorical_crossentropy" if classes else "mse"
    last = f'keras.layers.Dense({classes}, activation="softmax")' if classes else "keras.layers.Dense(1)"
    body = _picture_model(pictures[0]) if pictures else _number_model(inputs)
    return _join(
        "import keras",
        "import tensorflow as tf",
        "",
        *_features([*inputs, target], unknown=target if classes else None),
        "",
        "",
        "def parse(records):",
        "    batch = tf.io.parse_example(records, features)",
        *body[0],
        *_answer(target, unknown=bool(classes) and target.nullable),
        "",
        "",
        *_records(subject),
        f"records = records.apply(tf.data.experimental.assert_cardinality({count}))",
        _BATCHES,
        "model = keras.Sequential(",
        "    [",
        *(f"        {layer}," for layer in [*body[1], last]),
        "    ]",
        ")",
        f'model.compile("adam", {quoted(loss)})',
        "model.fit(batches, epochs=1, shuffle=False)  # tf.data shuffles",
    )


def _nothing_to_learn(subject: Subject) -> str:
    if subject.pictures and not subject.decoded:
        return (
            f"TensorFlow does not decode {printable(subject.pictures[0].name)}, as some pictures are WebP, or GIF "
            f"beside others; convert them again with --set image.encode.format=jpeg"
        )
    return (
        "Keras needs numbers or pictures to learn from, and a label or a number to predict; make one of a column: "
        "--set schema.columns.NAME.label=true"
    )


def tfds_program(subject: Subject) -> str:
    """Raise `UsageError` where the dataset does not have the files by which TFDS opens it."""
    if "dataset_info.json" not in subject.manifest.sidecars:
        why = "compressed datasets have none, nor do those whose output.sidecars lack tfds"
        if subject.manifest.details.adopted and not subject.gzip:
            why = "files that were adopted have none where their names are not those that TFDS takes"
        raise UsageError(
            f"{printable_path(subject.path)}: has no dataset_info.json, by which TFDS opens a folder; {why}: shardmill "
            f"rebuild {shell_path(subject.path)} -o out/for-tfds --compression none --set 'output.sidecars=[tfds, tfx]'"
        )
    return _join(
        "import tensorflow_datasets as tfds",
        "",
        f"builder = tfds.builder_from_directory({quoted(subject.path)})",
        "print(builder.info.features)",
        f"dataset = builder.as_dataset(split={quoted(subject.split)}, shuffle_files=True)",
        f"for batch in dataset.ragged_batch({_BATCH}).take(1):",
        "    print(batch)",
    )


def _features(features: Iterable[Feature], unknown: Feature | None = None) -> list[str]:
    """Return the lines that say how an Example is parsed; lists of lists are one ragged feature."""
    features = list(features)
    names = {feature.name for feature in features}
    lines = []
    for feature in features:
        base, _, last = feature.name.rpartition("/")
        if last == FLAT_VALUES:
            rows = [f"{base}/{ROW_LENGTHS}{level}" for level in range(len(names))]
            parts = ", ".join(f"tf.io.RaggedFeature.RowLengths({quoted(row)})" for row in rows if row in names)
            dtype = _DTYPES[feature.kind]
            spec = f"tf.io.RaggedFeature({dtype}, {quoted(feature.name)}, [{parts}], row_splits_dtype=tf.int64)"
            lines.append(f"    {quoted(base)}: {spec},")
        elif not last.startswith(ROW_LENGTHS):
            lines.append(
                f"    {quoted(feature.name)}: {_spec(feature, is_unknown=feature == unknown)},{_note(feature)}"
            )
    return ["features = {", *lines, "}"]


def _answer(target: Feature, *, unknown: bool) -> list[str]:
    """Return what `parse` returns beside the input; without a class a record weighs nothing."""
    name = f"batch[{quoted(target.name)}]"
    if not unknown:
        return [f"    return x, {name}"]
    return [
        f"    label = {name}  # -1 where a record has none, which then weighs nothing",
        "    return x, tf.maximum(label, 0), tf.cast(label >= 0, tf.float32)",
    ]


def _spec(feature: Feature, *, is_unknown: bool) -> str:
    dtype = _DTYPES[feature.kind]
    if -1 in feature.shape:
        return f"tf.io.RaggedFeature({dtype}, row_splits_dtype=tf.int64)"
    zero = "-1" if is_unknown else {"int64": "0", "float": "0.0", "bytes": '""'}[feature.kind]
    default = zero if feature.shape == () else f"tf.fill({list(feature.shape)}, tf.constant({zero}, {dtype}))"
    return f"tf.io.FixedLenFeature({list(feature.shape)}, {dtype}{f', {default}' if feature.nullable else ''})"


def _note(feature: Feature) -> str:
    what = feature.type if feature.type not in ("int64", "float32", "string", "binary") else ""
    if feature.unit is not None:
        what = f"{what} in {feature.unit}"
    if feature.dtype is not None:
        what = f"raw {feature.dtype}: tf.io.decode_raw"
    notes = [one for one in (what, "may be absent" if feature.nullable and -1 not in feature.shape else "") if one]
    return f"  # {', '.join(notes)}" if notes else ""


def _decoded(subject: Subject) -> list[str]:
    pictures = [one for one in subject.pictures if one.name in subject.decoded]
    return [line for one in pictures for line in _pixels(one, f"batch[{quoted(one.name)}]")]


def _pixels(feature: Feature, to: str) -> list[str]:
    return [
        f"    {to} = tf.map_fn(",
        "        lambda picture: tf.image.resize(",
        f"            tf.io.decode_image(picture, channels=3, expand_animations=False), [{_SIDE}, {_SIDE}]",
        "        ),",
        f"        batch[{quoted(feature.name)}],",
        "        fn_output_signature=tf.float32,",
        "    )",
    ]


def _picture_model(picture: Feature) -> tuple[list[str], list[str]]:
    layers = [
        f"keras.layers.Input(({_SIDE}, {_SIDE}, 3))",
        "keras.layers.Rescaling(1 / 255)",
        'keras.layers.Conv2D(16, 3, strides=4, activation="relu")',
        "keras.layers.GlobalAveragePooling2D()",
    ]
    return [*_pixels(picture, "x"), f"    x = tf.ensure_shape(x, [None, {_SIDE}, {_SIDE}, 3])"], layers


def _number_model(inputs: Sequence[Feature]) -> tuple[list[str], list[str]]:
    sizes = {one.name: math.prod(one.shape) for one in inputs}
    cast = "tf.reshape(tf.cast(batch[{}], tf.float32), [-1, {}])"
    columns = [f"        {cast.format(quoted(name), size)}," for name, size in sizes.items()]
    lines = ["    columns = [", *columns, "    ]", "    x = tf.concat(columns, axis=1)"]
    layers = [
        f"keras.layers.Input(({sum(sizes.values())},))",
        "keras.layers.BatchNormalization()",
        'keras.layers.Dense(16, activation="relu")',
    ]
    return lines, layers


def _records(subject: Subject) -> list[str]:
    kind = ', compression_type="GZIP"' if subject.gzip else ""
    return [
        f"files = tf.data.Dataset.list_files({subject.listed(subject.globs)}, shuffle=True)",
        "records = files.interleave(",
        f"    lambda path: tf.data.TFRecordDataset(path{kind}), num_parallel_calls=tf.data.AUTOTUNE",
        ")",
    ]


def _join(*lines: str) -> str:
    return "\n".join(lines) + "\n"
