"""Batches for training, shuffled: ours for PyTorch, grain and TensorFlow beside what else there is; CPU for each row.

    uv run --group readers python benchmarks/training.py
    UV_PROJECT_ENVIRONMENT=.venv-torch uv run --group torch python benchmarks/training.py

The records of `reading.py`: 400,000 of 12 columns in 32 MiB shards, in the page cache, all columns asked for, batches
of 256. Each reader is a process of its own that reads one epoch (the slow ones a part) twice, and gives the CPU of all
its threads for each row of the second one. ArrayRecord holds the same records with `group_size:1`; its rows are parsed
by protobuf, as its users do it. No worker processes: they do not change what a row costs.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Final

from cpu_of_readers import DESCRIPTION, ROWS, SLOW_ROWS, Reader, compare, spec_of

BATCH: Final = 256
BUFFER: Final = 10_000
"""Rows of a shuffle buffer, of those that have one."""

Read = tuple[int, Callable[[], object]]


def _count(batches: Any, batches_read: int | None = None) -> Callable[[], int]:
    return lambda: sum(1 for _ in islice(batches, batches_read))


def _ours(folder: str) -> Any:
    from shardmill.pipelines import open_dataset

    return open_dataset(folder)["train"]


def _torch(shuffle: str) -> Reader:
    return lambda folder: (ROWS, _count(_ours(folder).torch(batch_rows=BATCH, shuffle=shuffle)))


def _torch_of_tfrecord(folder: str) -> Read:
    from tfrecord.torch.dataset import TFRecordDataset
    from torch.utils.data import DataLoader

    shard = str(min(Path(folder).glob("train-*.tfrecord")))
    dataset = TFRecordDataset(shard, None, DESCRIPTION, shuffle_queue_size=BUFFER)
    return SLOW_ROWS, _count(DataLoader(dataset, batch_size=BATCH), SLOW_ROWS // BATCH)


def _ours_by_tf(folder: str) -> Read:
    return ROWS, _count(_ours(folder).tf(batch_rows=BATCH, shuffle_rows=BUFFER, seed=1))


def _tf_data(folder: str) -> Read:
    import tensorflow as tf

    files = tf.data.Dataset.from_tensor_slices(sorted(map(str, Path(folder).glob("train-*.tfrecord"))))
    records = files.interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE)
    features = spec_of(tf)
    batches = records.shuffle(BUFFER).batch(BATCH)
    return ROWS, _count(batches.map(lambda batch: tf.io.parse_example(batch, features)).prefetch(tf.data.AUTOTUNE))


def _tf_data_of_tutorials(folder: str) -> Read:
    import tensorflow as tf

    files = tf.data.Dataset.from_tensor_slices(sorted(map(str, Path(folder).glob("train-*.tfrecord"))))
    records = files.interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE)
    features = spec_of(tf)
    rows = records.take(SLOW_ROWS).shuffle(BUFFER).map(lambda one: tf.io.parse_single_example(one, features))
    return SLOW_ROWS, _count(rows.batch(BATCH).prefetch(tf.data.AUTOTUNE))


def _grain(source: Any, rows: int) -> Read:
    import grain

    batches = grain.MapDataset.source(source).shuffle(seed=1).batch(BATCH)
    return rows, lambda: sum(1 for at in range(rows // BATCH) if batches[at] is not None)


def _ours_by_grain(folder: str) -> Read:
    return _grain(_ours(folder).grain(), SLOW_ROWS)


def _array_record(folder: str) -> Read:
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    from array_record.python.array_record_module import ArrayRecordWriter
    from shardmill.transforms.format.examples.decode_examples import parse_example

    path = Path(folder).parent / "train.array_record"
    if not path.exists():
        writer = ArrayRecordWriter(str(path), "group_size:1")
        for record in _ours(folder).records():
            writer.write(record)
        writer.close()

    class Rows:
        """The records as dicts of values."""

        def __init__(self) -> None:
            self.source = ArrayRecordDataSource([str(path)])

        def __len__(self) -> int:
            return len(self.source)

        def __getitem__(self, index: int) -> dict[str, Any]:
            example = parse_example(self.source[index])
            assert example is not None
            features = example.features.feature
            return {name: getattr(one, one.WhichOneof("kind")).value[0] for name, one in features.items()}

    return _grain(Rows(), 2048)


READERS: Final[dict[str, tuple[str, Reader]]] = {
    '`torch(shuffle="none")`': ("torch", _torch("none")),
    '`torch(shuffle="blocks")`': ("torch", _torch("blocks")),
    '`torch(shuffle="global")`, each row read by itself': ("torch", _torch("global")),
    "`tfrecord` package and `DataLoader`, a buffer of 10,000": ("torch", _torch_of_tfrecord),
    "`tf(shuffle_rows=10_000)`": ("tensorflow", _ours_by_tf),
    "tf.data, a buffer of 10,000, batch, then `parse_example`": ("tensorflow", _tf_data),
    "tf.data, a buffer of 10,000, `parse_single_example`, then batch": ("tensorflow", _tf_data_of_tutorials),
    "grain on `dataset.grain()`, shuffled as a whole": ("grain", _ours_by_grain),
    "grain on ArrayRecord and protobuf, shuffled as a whole": ("grain", _array_record),
}
"""What each needs to be installed, and how it reads."""


if __name__ == "__main__":
    compare({name: read for name, (package, read) in READERS.items() if find_spec(package)}, __doc__)
