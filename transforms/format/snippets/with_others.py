"""Programs with PyTorch, grain, NVIDIA DALI and vahidk's `tfrecord`."""

from __future__ import annotations

import math
from typing import Final

from ...errors import UsageError
from ..manifest.naming import index_path
from ..schema.schema import Feature
from ..sidecars.croissant import NAME as CROISSANT
from ..sidecars.croissant import classes_of
from ..wording.printable import printable, printable_path, shell_path
from .subject import Subject, quoted

_SIDE: Final = 224
_BATCH: Final = 32


def torch_program(subject: Subject) -> str:
    decode = ", decode=True" if subject.pictures else ""
    return _join(
        "from shardmill.pipelines import open_dataset",
        "from torch.utils.data import DataLoader",
        "",
        'if __name__ == "__main__":',
        f"    dataset = open_dataset({quoted(subject.path)})[{quoted(subject.split)}]",
        f"    batches = dataset.torch(batch_rows={_BATCH}, seed=1{decode})",
        "    loader = DataLoader(batches, batch_size=None, num_workers=2)",
        "    for epoch in range(batches.epoch, 2):",
        "        batches.set_epoch(epoch)",
        "        for batch in loader:",
        "            pass",
        "    for name, values in batch.items():",
        '        print(name, getattr(values, "shape", type(values)))',
    )


def grain_program(subject: Subject) -> str:
    """Return a program that reads shuffled batches with grain: numbers and pictures, which can be stacked."""
    pictures = [one.name for one in subject.pictures]
    columns = [one.name for one in subject.numbers] + pictures
    stacked = f"[{', '.join(map(quoted, columns))}]" if columns else ""
    resize = [f"    row[{quoted(name)}] = pixels(row[{quoted(name)}])" for name in pictures]
    steps = [".shuffle(seed=1)", *([".map(ready)"] if pictures else []), *([f".batch({_BATCH})"] if columns else [])]
    return _join(
        *(["import io", ""] if pictures else []),
        "import grain",
        *(["import numpy as np", "from PIL import Image"] if pictures else []),
        "from shardmill.pipelines import open_dataset",
        *(["", "", *_pixels(), "", "", "def ready(row):", *resize, "    return row", "", ""] if pictures else [""]),
        f"source = open_dataset({quoted(subject.path)})[{quoted(subject.split)}].grain({stacked})",
        f"batches = grain.MapDataset.source(source){''.join(steps)}",
        "for name, values in batches[0].items():",
        '    print(name, getattr(values, "shape", values))',
    )


def _pixels() -> list[str]:
    return [
        "def pixels(content):",
        f'    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB").resize(({_SIDE}, {_SIDE})))',
    ]


def dali_program(subject: Subject) -> str:
    """Raise `UsageError` where the shards are compressed, or no feature is one that DALI reads. Needs no GPU."""
    if subject.gzip:
        raise UsageError(
            f"{printable_path(subject.path)}: DALI reads no compressed shards; rebuild it: shardmill rebuild "
            f"{shell_path(subject.path)} -o out/for-dali --compression none"
        )
    read = [one for one in subject.features if not one.nullable and (one.kind != "bytes" or one.shape == ())]
    left = [one for one in subject.features if one not in read]
    if not read:
        raise UsageError(
            f"{printable(subject.path)}: every feature may be absent or is a list of text, neither of which DALI reads"
        )
    decoded = [one for one in read if one in subject.pictures]
    return _join(
        "from glob import glob",
        "",
        f"from nvidia.dali import fn, pipeline_def{', types' if decoded else ''}",
        "from nvidia.dali import tfrecord as tfrec",
        "",
        f"shards = sorted({' + '.join(f'glob({quoted(one)})' for one in subject.globs)})",
        f"indexes = sorted({' + '.join(f'glob({quoted(one)})' for one in _index_globs(subject))})",
        "features = {",
        *(f"    {quoted(one.name)}: {_dali_spec(one)}," for one in read),
        "}",
        *(["# DALI does not read lists of text, nor what may be absent:"] if left else []),
        *(f"#     {quoted(one.name)}" for one in left),
        "",
        "",
        f"@pipeline_def(batch_size={_BATCH}, num_threads=2, device_id=None)  # device_id=0: the first GPU",
        "def batches():",
        "    inputs = fn.readers.tfrecord(path=shards, index_path=indexes, features=features, random_shuffle=True)",
        *(line for one in decoded for line in _dali_pixels(one)),
        "    return tuple(inputs[name] for name in features)",
        "",
        "",
        "pipeline = batches()",
        "pipeline.build()",
        "for name, values in zip(features, pipeline.run()):",
        "    print(name, values.shape()[0])",
    )


def _dali_spec(feature: Feature) -> str:
    kind, zero = {"int64": ("int64", "0"), "float": ("float32", "0.0"), "bytes": ("string", '""')}[feature.kind]
    if -1 in feature.shape:
        return f"tfrec.VarLenFeature(tfrec.{kind}, {zero})"
    shape = [] if feature.kind == "bytes" else [math.prod(feature.shape)]
    return f"tfrec.FixedLenFeature({shape}, tfrec.{kind}, {zero})"


def _dali_pixels(feature: Feature) -> list[str]:
    name = quoted(feature.name)
    return [
        f'    pictures = fn.decoders.image(inputs[{name}], device="cpu", output_type=types.RGB)',
        f"    inputs[{name}] = fn.resize(pictures, size=[{_SIDE}, {_SIDE}])",
    ]


def _index_globs(subject: Subject) -> list[str]:
    return [f"{subject.folder_glob}/{index_path(glob, 'text')}" for glob in subject.names]


def tfrecord_program(subject: Subject) -> str:
    kinds = {"int64": "int", "float": "float", "bytes": "byte"}
    described = {one.name: kinds[one.kind] for one in subject.features}
    always = not any(one.nullable for one in subject.features)
    lines = [f"    {quoted(name)}: {quoted(kind)}," for name, kind in described.items()]
    kind = ', compression_type="gzip"' if subject.gzip else ""
    description = ["description = None  # what is named has to be in every record"]
    if always:
        description = ["description = {", *lines, "}"]
    return _join(
        "from glob import glob",
        "",
        "from tfrecord.reader import tfrecord_loader",
        "",
        *description,
        f"for shard in sorted({' + '.join(f'glob({quoted(one)})' for one in subject.globs)}):",
        f"    for example in tfrecord_loader(shard, None, description{kind}):",
        "        pass",
        "for name, values in example.items():",
        "    print(name, type(values))",
    )


def croissant_program(subject: Subject) -> str:
    """Return a program that reads what `croissant.json` says of a dataset with mlcroissant, which reads no TFRecord."""
    labels = [name for name in subject.manifest.labels if name]
    classes = [
        f"for row in dataset.records({quoted(classes_of(name))}):  # the names of classes, by number\n    print(row)"
        for name in labels
    ]
    return _join(
        "import mlcroissant",
        "",
        f"dataset = mlcroissant.Dataset({quoted(subject.path.rstrip('/') + '/' + CROISSANT)})",
        "for files in dataset.metadata.file_sets:",
        "    print(files.id, files.includes)",
        "for records in dataset.metadata.record_sets:",
        "    print(records.id, [field.name for field in records.fields])",
        'for row in dataset.records("splits"):',
        "    print(row)",
        *classes,
    )


def _join(*lines: str) -> str:
    return "\n".join(lines) + "\n"
