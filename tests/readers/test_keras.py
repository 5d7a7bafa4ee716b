"""Keras trains on the image shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from shardmill.transforms.dataset.reading.open_dataset import Dataset

SIDE = 32
SPEC = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
}


def image_and_label(record: Any) -> tuple[Any, Any]:
    example = tf.io.parse_single_example(record, SPEC)
    image = tf.io.decode_image(example["image/encoded"], channels=3, expand_animations=False)
    return tf.image.resize(image, (SIDE, SIDE)) / 255.0, example["image/class/label"]


def test_a_small_model_trains_one_epoch_on_the_image_shards(sample: Callable[..., Dataset]) -> None:
    dataset = sample("quickstart")
    records = tf.data.TFRecordDataset(dataset.shard_paths("train"))
    counted = records.apply(tf.data.experimental.assert_cardinality(dataset.manifest.splits["train"].records))
    images = counted.map(image_and_label).batch(8)
    classes = len(dataset.labels["image/class/label"])
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.layers.Input((SIDE, SIDE, 3)),
            keras.layers.Conv2D(4, 3, strides=4, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(classes, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    before = [weight.numpy() for weight in model.trainable_variables]
    history = model.fit(images, epochs=1, shuffle=False, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    assert any(not np.array_equal(old, new.numpy()) for old, new in zip(before, model.trainable_variables, strict=True))
    shown = sum(int(labels.shape[0]) for _, labels in images)
    assert shown == dataset.manifest.splits["train"].records
    assert model.predict(images, verbose=0).shape == (shown, classes)
