"""The files that let TensorFlow Datasets open a dataset's folder with no code: `tfds.builder_from_directory(folder)`.

    dataset_info.json    name, version, and for each split the records of each shard and how shards are named
    features.json        what each key of the Example becomes
    *.labels.txt         the names of a label's classes, one a line, found by the feature's path

The formats are those of TFDS 4.9: its `core/proto/{dataset_info,feature}.proto` as JSON, which refuses unknown keys.

A key with slashes is a nested dict, as everywhere in TFDS: `image/class/label` is `example["image"]["class"]["label"]`.

What a feature becomes:

    nullable scalar, fixed shape    Scalar or Tensor with `optional`: an absent value reads as the dtype's lowest (b""
                                    for bytes), so integers read as int64, whose lowest no narrower type holds
    list of any length              Tensor of shape (None,): an absent list reads as an empty one
    string, label                   Text, ClassLabel; list of labels: Sequence of ClassLabel
    image                           Image, if all are JPEG, PNG or BMP, or all are GIF (whose decoded form has frames
                                    first); a mixture, or a format that TensorFlow does not decode, stays bytes
    array data                      Tensor of shape (None,) in the array's own dtype; its shape is the key beside it
    lists of lists                  Sequence of Sequence, read as a RaggedTensor; of fixed-size lists Sequence of
                                    Tensor; NAME/present is a key beside them
    anything else                   Scalar or Tensor of its own type
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ..columns.keys import FLAT_VALUES, MASK, PRESENT, ROW_LENGTHS, inner_shapes, ranks_of
from ..manifest.manifest import ColumnEntry
from ..schema.column_types import column_type
from ..schema.schema import Feature, Schema

_STILL_IMAGES: Final = frozenset({"jpeg", "png", "bmp"})
"""The image formats that `tf.image.decode_image` reads as (height, width, channels); a GIF has frames before them."""

_SHARD_LIMIT: Final = 100_000
"""TFDS numbers shards with as many digits as their count has, five at least; ours never change, so 100,000 differ."""

_CLASSES: Final = "tensorflow_datasets.core.features."

_RAW_DTYPES: Final = {
    "|b1": "bool", "|i1": "int8", "|u1": "uint8", "<i2": "int16", "<u2": "uint16", "<i4": "int32",
    "<i8": "int64", "<u8": "uint64", "<f2": "float16", "<f4": "float32", "<f8": "float64",
}  # fmt: skip
"""The array dtypes that TFDS restores from bytes; `tf.io.decode_raw` knows no uint32 and no datetime64."""

_Shape = tuple[int, ...]
_DTYPES: Final = {"int64": "int64", "float": "float32", "bytes": "string"}


@dataclass(frozen=True, slots=True)
class SplitShards:
    """One split as TFDS counts it: the records of each shard in the order of their indices, and the bytes of all."""

    name: str
    shard_records: tuple[int, ...]
    bytes: int
    paths: tuple[str, ...] = ()


def tfds_files(
    *,
    name: str,
    version: str,
    compression: str,
    shard_name: str,
    schema: Schema,
    labels: Mapping[str, Sequence[str]],
    splits: Sequence[SplitShards],
    image_formats: Collection[str] | None,
    columns: Sequence[ColumnEntry] = (),
    adopted: bool = False,
) -> dict[str, bytes]:
    """Return every TFDS file of a dataset, by its name in the dataset's folder.

    `image_formats` are the formats (`image/format`) that occur in the records, or None where they are not known.
    `dataset_info.json` is left out where TFDS could not find or read the shards: see `dataset_info`.
    """
    files = {"features.json": features(schema, labels, image_formats, columns)}
    info = dataset_info(name, version, compression, shard_name, splits, adopted=adopted)
    if info is not None:
        files["dataset_info.json"] = info
    return files | label_files(schema, labels)


def dataset_info(
    name: str,
    version: str,
    compression: str,
    shard_name: str,
    splits: Sequence[SplitShards],
    *,
    adopted: bool = False,
) -> bytes | None:
    """Return `dataset_info.json`, or None where TFDS could not find or read the shards.

    That is so if they are compressed, if `shard_name`, or the names of adopted files, have no counterpart among TFDS's
    templates, or if a split has 100,000 shards or more. A split without records is left out: TFDS would look for its
    one shard.
    """
    template = template_of(splits) if adopted else _file_template(shard_name)
    if compression != "none" or template is None or any(len(s.shard_records) >= _SHARD_LIMIT for s in splits):
        return None
    return _json_bytes(
        {
            "name": name,
            "version": version,
            "fileFormat": "tfrecord",
            "splits": [
                {
                    "name": split.name,
                    "filepathTemplate": template,
                    "shardLengths": [str(records) for records in split.shard_records],
                    "numBytes": str(split.bytes),
                }
                for split in splits
                if sum(split.shard_records)
            ],
        }
    )


def features(
    schema: Schema,
    labels: Mapping[str, Sequence[str]],
    image_formats: Collection[str] | None = None,
    columns: Sequence[ColumnEntry] = (),
) -> bytes:
    """Return `features.json`; `columns` say which lists are of fixed-size lists."""
    return _json_bytes(_features_dict(_nested(schema, columns), labels, _image_shape(image_formats)))


def label_files(schema: Schema, labels: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    return {labels_file_name(f.name, schema): _label_lines(labels[f.name]) for f in schema if _has_labels(f, labels)}


_NO_NAME: Final = re.compile(r"^\.|[\\\x00-\x1f\x7f]")
"""What no file of ours is called by: such a name is not the one that TFDS looks for."""


def labels_file_name(name: str, schema: Schema | None = None) -> str:
    """Return the name of the file in which TFDS looks for the classes of a feature.

    >>> labels_file_name("image/class/label")
    'image-class-label.labels.txt'
    """
    flat = schema is not None and name in _nested(schema)
    stem = name.replace("/", ".") if flat else name.replace("/", "-")
    return _NO_NAME.sub("-", stem) + ".labels.txt"


def template_of(splits: Sequence[SplitShards]) -> str | None:
    """Return the TFDS template of the names that files have, or None where they have not one.

    >>> template_of([SplitShards("test", (3,), 9, ("mnist-test.tfrecord-00000-of-00001",))])
    'mnist-{SPLIT}.{FILEFORMAT}-{SHARD_INDEX}-of-{NUM_SHARDS}'
    """
    found = set()
    for split in splits:
        for index, path in enumerate(split.paths):
            name = path.replace(f"{index:05d}-of-{len(split.paths):05d}", "{SHARD_INDEX}-of-{NUM_SHARDS}")
            name = name if "{SHARD_INDEX}" in name else path.replace(f"{index:05d}", "{SHARD_INDEX}")
            found.add(name.replace(split.name, "{SPLIT}", 1).replace("tfrecord", "{FILEFORMAT}", 1))
    (template,) = found if len(found) == 1 else (None,)
    needed = ("{SPLIT}", "{FILEFORMAT}", "{SHARD_INDEX}")
    return template if template is not None and all(field in template for field in needed) else None


def _file_template(shard_name: str) -> str | None:
    """Return the TFDS template of a shard name, or None where TFDS would write the numbers otherwise."""
    template = shard_name.replace("{split}", "{SPLIT}").replace("{index:05d}", "{SHARD_INDEX}")
    template = template.replace("{count:05d}", "{NUM_SHARDS}")
    left = template.replace("{SPLIT}", "").replace("{SHARD_INDEX}", "").replace("{NUM_SHARDS}", "")
    return None if "{" in left or "}" in left else template + ".{FILEFORMAT}"


def _image_shape(formats: Collection[str] | None) -> _Shape | None:
    """Return the one shape in which TensorFlow decodes images of these formats, -1 for open sizes, or None."""
    if formats is None or not _STILL_IMAGES.issuperset(formats):
        return (-1, -1, -1, 3) if formats is not None and set(formats) == {"gif"} else None
    return (-1, -1, 3)


@dataclass(frozen=True, slots=True)
class _Sequence:
    """Lists within each other, of so many levels, of tensors of a shape: `feature` has their values."""

    feature: Feature
    levels: int
    shape: _Shape


def _nested(schema: Schema, columns: Sequence[ColumnEntry] = ()) -> dict[str, Any]:
    """Return the features as nested dicts, or as one flat dict if a name is another's folder or has an empty step."""
    tree: dict[str, Any] = {}
    entries = list(_entries(schema, columns))
    for steps, entry in entries:
        node = tree
        for step in steps[:-1]:
            node = node.setdefault(step, {})
            if not isinstance(node, dict):
                return {"/".join(steps): entry for steps, entry in entries}
        if "" in steps or steps[-1] in node:
            return {"/".join(steps): entry for steps, entry in entries}
        node[steps[-1]] = entry
    return tree


def _entries(schema: Schema, columns: Sequence[ColumnEntry]) -> Iterator[tuple[list[str], Feature | _Sequence]]:
    """Yield what TFDS shows, with its path: several keys may be one feature."""
    known = {feature.name for feature in schema}
    ranks = ranks_of(known)
    shapes = {name: sizes for column in columns for name, sizes in inner_shapes(column.name, column.type).items()}
    for feature in schema:
        name, _, last = feature.name.rpartition("/")
        if name in ranks and last == FLAT_VALUES:
            yield name.split("/"), _Sequence(feature, ranks[name], shapes.get(name, ()))
        elif (name in ranks and last == PRESENT) or (name in known and last == MASK):
            *folder, own = name.split("/")
            yield [*folder, f"{own}/{last}"], feature
        elif feature.shape == (-1,) and feature.name in shapes:
            yield feature.name.split("/"), _Sequence(feature, 1, shapes[feature.name])
        elif name not in ranks or not last.startswith(ROW_LENGTHS):
            yield feature.name.split("/"), feature


def _features_dict(
    tree: Mapping[str, Any], labels: Mapping[str, Sequence[str]], image_shape: _Shape | None
) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, node in tree.items():
        if isinstance(node, Feature):
            entries[key] = _feature(node, labels, image_shape)
        elif isinstance(node, _Sequence):
            entries[key] = _sequence(node)
        else:
            entries[key] = _features_dict(node, labels, image_shape)
    return {"pythonClassName": _CLASSES + "features_dict.FeaturesDict", "featuresDict": {"features": entries}}


def _feature(feature: Feature, labels: Mapping[str, Sequence[str]], image_shape: _Shape | None) -> dict[str, Any]:
    shown = column_type(feature).tfds_feature
    if feature.pixels is not None and len(feature.shape) < 2 and not feature.nullable:
        image = {"shape": _shape(feature.pixels.shape), "dtype": feature.pixels.dtype}
        image |= {"encodingFormat": feature.pixels.encoding} if feature.pixels.encoding else {}
        picture = {"pythonClassName": _CLASSES + "image_feature.Image", "image": image}
        return _in_sequence(picture) if feature.shape else picture
    if shown == "Image" and image_shape is not None and not feature.nullable:
        image = {"shape": _shape(image_shape), "dtype": "uint8"}
        return {"pythonClassName": _CLASSES + "image_feature.Image", "image": image}
    if _has_labels(feature, labels) and (feature.shape or not feature.nullable):
        inner = {"numClasses": str(len(labels[feature.name]))}
        label = {"pythonClassName": _CLASSES + "class_label_feature.ClassLabel", "classLabel": inner}
        return _in_sequence(label) if feature.shape else label
    if shown == "Text" and feature.shape == () and not feature.nullable:
        return {"pythonClassName": _CLASSES + "text_feature.Text", "text": {}}
    raw = _raw_dtype(feature)
    if raw is not None:
        return _tensor((-1,) if shown == "Tensor" else (), raw, encoding="bytes")
    # A list has no default of its own: TFDS builds one of the declared shape, and fails where a dimension is open.
    optional = feature.nullable and -1 not in feature.shape
    return _tensor(feature.shape, _dtype(feature), optional=optional)


def _sequence(node: _Sequence) -> dict[str, Any]:
    entry = _feature(replace(node.feature, shape=node.shape, nullable=False), {}, None)
    for _ in range(node.levels):
        entry = _in_sequence(entry)
    return entry


def _in_sequence(entry: dict[str, Any]) -> dict[str, Any]:
    inner = {"feature": entry, "length": "-1"}
    return {"pythonClassName": _CLASSES + "sequence_feature.Sequence", "sequence": inner}


def _has_labels(feature: Feature, labels: Mapping[str, Sequence[str]]) -> bool:
    return feature.kind == "int64" and feature.shape in ((), (-1,)) and feature.name in labels


def _raw_dtype(feature: Feature) -> str | None:
    if feature.kind != "bytes" or feature.nullable or feature.shape != () or feature.dtype is None:
        return None
    return _RAW_DTYPES.get(feature.dtype)


def _dtype(feature: Feature) -> str:
    """Return the dtype that TFDS casts the values of a feature to."""
    plain = _DTYPES[feature.kind]
    widened = feature.nullable and (feature.kind == "float" or -1 not in feature.shape)
    return plain if widened else column_type(feature).tfds or plain


def _tensor(shape: _Shape, dtype: str, *, encoding: str = "none", optional: bool = False) -> dict[str, Any]:
    tensor: dict[str, Any] = {"shape": _shape(shape), "dtype": dtype, "encoding": encoding}
    if optional:
        tensor["optional"] = True
    scalar = shape == () and encoding == "none"
    return {"pythonClassName": _CLASSES + ("scalar.Scalar" if scalar else "tensor_feature.Tensor"), "tensor": tensor}


def _shape(shape: _Shape) -> dict[str, Any]:
    return {"dimensions": [str(size) for size in shape]} if shape else {}


def _label_lines(names: Sequence[str]) -> bytes:
    r"""Return names one a line; where a name cannot be on a line of its own, all are written with escapes.

    TFDS strips lines and leaves out empty ones, so `"\n"`, `" cat"` and `""` would shift every name after them.
    """
    if any(name != name.strip() or name == "" or "\n" in name or "\r" in name for name in names):
        names = [_escaped(name) for name in names]
    return ("\n".join(names) + "\n").encode()


def _escaped(name: str) -> str:
    body = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    if body == "":
        return '\\"\\"'
    head = body[: len(body) - len(body.lstrip())]
    tail = body[len(body.rstrip()) :] if body.strip() else ""
    middle = body[len(head) : len(body) - len(tail)]
    return "".join(f"\\u{ord(c):04x}" for c in head) + middle + "".join(f"\\u{ord(c):04x}" for c in tail)


def _json_bytes(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()
