"""The files beside the shards that let other tools open a dataset; all of them follow from its manifest.

tfds     dataset_info.json  features.json  *.labels.txt
tfx      schema.pbtxt
croissant    croissant.json
label_map    label_map.pbtxt, or *.label_map.pbtxt
index    index/*.idx, one for each shard (these follow from the shards)
"""

from __future__ import annotations

import fnmatch
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
from pyarrow import types

from ..manifest.manifest import Manifest, SplitEntry
from ..manifest.naming import IndexKind
from ..schema.column_types import DEFAULT_UNIT, column_type
from ..schema.schema import Feature, Schema
from .tfds import SplitShards, labels_file_name, tfds_files

_LAST: Final = ("features.json", "dataset_info.json")
"""TFDS opens a folder by `dataset_info.json`: it is replaced when everything that it leads to is there."""


def sidecar_files(
    manifest: Manifest, wanted: Collection[str], image_formats: Collection[str] | None
) -> dict[str, bytes]:
    """Return the sidecars of a generation by their names, in the order in which they are to be replaced.

    `wanted` are the groups of `output.sidecars`; the manifest's own list of sidecars is not looked at, so it can be
    made from the names returned here. `image_formats` are the formats (`image/format`) that occur among the dataset's
    records, or None where that is not known: then images stay bytes for TFDS.
    Records without a schema have none of these files.
    """
    if manifest.schema is None:
        return {}
    files: dict[str, bytes] = {}
    if "tfx" in wanted:
        files["schema.pbtxt"] = schema_text(manifest.schema, manifest.labels)
    if "croissant" in wanted:
        files[CROISSANT] = croissant(manifest)
    if "label_map" in wanted:
        files |= label_maps(manifest.schema, manifest.labels)
    if "tfds" in wanted:
        files |= tfds_files(
            name=manifest.name,
            version=manifest.version,
            compression=manifest.compression,
            shard_name=manifest.shard_name,
            schema=manifest.schema if manifest.parent is None else manifest.schema.with_any_sizes(),
            labels=manifest.labels,
            splits=[
                SplitShards(name, tuple(one.records for one in split.shards), split.bytes, _paths(split))
                for name, split in manifest.splits.items()
            ],
            image_formats=image_formats,
            columns=manifest.columns,
            adopted=bool(manifest.details.adopted),
        )
    return {name: files[name] for name in in_publishing_order(files)}


def _paths(split: SplitEntry) -> tuple[str, ...]:
    return tuple(shard.path for shard in split.shards)


def groups_of(names: Collection[str]) -> tuple[str, ...]:
    """Return the groups that some sidecars are of, the indexes of shards aside.

    >>> groups_of(["features.json", "kind.labels.txt", "label_map.pbtxt", "index/train-00000.idx"])
    ('tfds', 'label_map')
    """
    marks = {"tfds": "features.json", "tfx": "schema.pbtxt", "croissant": CROISSANT}
    groups = [group for group, name in marks.items() if name in names]
    return (*groups, *(["label_map"] if any(name.endswith(LABEL_MAP) for name in names) else []))


def in_publishing_order(names: Iterable[str]) -> list[str]:
    """Return the names of sidecars in the order in which they are to be replaced: what readers begin with comes last.

    >>> in_publishing_order(["dataset_info.json", "schema.pbtxt", "features.json"])
    ['schema.pbtxt', 'features.json', 'dataset_info.json']
    """
    return sorted(names, key=lambda name: (_LAST.index(name) + 1 if name in _LAST else 0, name))


# The index of a shard: where each record begins. One file beside the shard, as numbers or as text.
#
#     index/train-00000.offsets     0 142 281 ...     uint64, little-endian: record i is bytes [i] to [i + 1]
#     index/train-00000.idx         0 142             text: `offset length`, a line a record
#                                   142 139
#
# All numbers are bytes, framing included (8 bytes length, its CRC, the payload, its CRC). Offsets are what this
# project reads, mapped as they are: n records have n + 1 of them, the last one is the size of the shard. The text is
# what NVIDIA DALI and vahidk/tfrecord read. Source: DALI's and tfrecord's own `tfrecord2idx`.


def index_data(offsets: npt.NDArray[np.int64], kind: IndexKind) -> bytes:
    r"""Return the index of an uncompressed shard; `offsets` are where its records begin, and its size.

    >>> index_data(np.array([0, 142, 281]), "text")
    b'0 142\n142 139\n'
    >>> index_data(np.array([0, 142]), "binary")
    b'\x00\x00\x00\x00\x00\x00\x00\x00\x8e\x00\x00\x00\x00\x00\x00\x00'
    """
    if kind == "binary":
        return offsets.astype("<u8").tobytes()
    pairs = zip(offsets[:-1].tolist(), np.diff(offsets).tolist(), strict=True)
    return b"".join(b"%d %d\n" % pair for pair in pairs)


def offsets_in(data: bytes, kind: IndexKind) -> npt.NDArray[np.int64]:
    """Raise `ValueError` where the data are not an index of this kind."""
    if kind == "binary":
        return np.frombuffer(data, "<i8")
    numbers = np.array(data.split(), np.int64).reshape(-1, 2)
    return np.concatenate((np.zeros(1, np.int64), numbers.sum(axis=1)))


# `croissant.json`: a dataset as MLCommons' Croissant 1.1 describes it, for search engines and for machines.
#
#     distribution   the shards, by globs
#     recordSet      splits     their names and records, inline, which mlcroissant loads
#                    a label    the numbers and names of its classes, inline
#                    records    a field for each feature, by its key in the Example, and the split by the file's name
#
# The file belongs beside the shards, whose paths begin there. Shards are TFRecord files, which mlcroissant does not
# load: the fields say what `tf.io` finds. Source: http://mlcommons.org/croissant/1.1, whose context is that of its
# examples, as the one of its appendix does not pass the validator (mlcommons/croissant, `datasets/1.1`).


CROISSANT: Final = "croissant.json"

_CONTEXT: Final = {
    "@language": "en", "@vocab": "https://schema.org/", "arrayShape": "cr:arrayShape", "citeAs": "cr:citeAs",
    "column": "cr:column", "conformsTo": "dct:conformsTo", "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/", "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty", "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract", "field": "cr:field", "fileObject": "cr:fileObject", "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet", "format": "cr:format", "includes": "cr:includes", "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset", "jsonPath": "cr:jsonPath", "key": "cr:key", "md5": "cr:md5",
    "rai": "http://mlcommons.org/croissant/RAI/", "samplingRate": "cr:samplingRate",
    "parentField": "cr:parentField", "path": "cr:path", "recordSet": "cr:recordSet", "references": "cr:references",
    "regex": "cr:regex", "repeated": "cr:repeated", "replace": "cr:replace", "sc": "https://schema.org/",
    "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField", "transform": "cr:transform",
}  # fmt: skip

_ARROW_TYPES: Final = (
    (types.is_boolean, "sc:Boolean"), (types.is_date, "sc:Date"), (types.is_time, "sc:Time"),
    (types.is_timestamp, "sc:DateTime"), (types.is_string, "sc:Text"), (types.is_float16, "cr:Float16"),
    (types.is_float32, "cr:Float32"), (types.is_float64, "cr:Float64"),
)  # fmt: skip
"""The types that have a name there; of others the kind of list that holds their values is stated."""

_KINDS: Final = {"int64": "cr:Int64", "float": "cr:Float32", "bytes": "sc:Text"}
_RECORDS: Final = "records"
_SPLITS: Final = "splits"
_SHARDS: Final = "shards"


def croissant(manifest: Manifest) -> bytes:
    total = sum(split.records for split in manifest.splits.values())
    count = sum(len(split.shards) for split in manifest.splits.values())
    document: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": manifest.name,
        "version": manifest.version,
        "description": f"{total:,} records of tf.train.Example in {count:,} TFRecord files.",
        "distribution": [_shards(manifest)] if manifest.splits else [],
        "recordSet": [
            *([_splits(manifest)] if manifest.splits else []),
            *(_classes(name, names) for name, names in manifest.labels.items()),
            _records(manifest),
        ],
    }
    return (json.dumps(document, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")


def _shards(manifest: Manifest) -> dict[str, Any]:
    gzip = ["application/gzip"] if manifest.compression == "gzip" else []
    globs: list[str] = []
    for name, split in manifest.splits.items():
        others = [shard.path for other, entry in manifest.splits.items() if other != name for shard in entry.shards]
        globs += shard_globs([shard.path for shard in split.shards], others)
    return {
        "@type": "cr:FileSet",
        "@id": _SHARDS,
        "encodingFormat": ["application/x-tfrecord", *gzip],
        "includes": globs,
    }


def shard_globs(paths: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return a glob that matches these files and no other one of the dataset, or all of them where there is none.

    >>> shard_globs(["train-00000.tfrecord", "train-00001.tfrecord"], ["val-00000.tfrecord"])
    ['train-*.tfrecord']
    >>> shard_globs(["a-00000.tfrecord", "a-00001.tfrecord"], ["a-b-00000.tfrecord"])
    ['a-[0-9][0-9][0-9][0-9][0-9].tfrecord']
    >>> shard_globs(["one.tfrecord", "two.tfrecord"], [])
    ['one.tfrecord', 'two.tfrecord']
    """
    numbers = re.findall(r"\d+", paths[0])
    for sign in ("*", "[0-9]"):
        for number in numbers:
            glob = paths[0].replace(number, sign if sign == "*" else sign * len(number))
            match = re.compile(fnmatch.translate(glob)).match
            if all(map(match, paths)) and not any(map(match, others)):
                return [glob]
    return list(paths)


def _splits(manifest: Manifest) -> dict[str, Any]:
    rows = [{"splits/name": name, "splits/records": split.records} for name, split in manifest.splits.items()]
    return {
        "@type": "cr:RecordSet",
        "@id": _SPLITS,
        "dataType": "cr:Split",
        "key": {"@id": f"{_SPLITS}/name"},
        "field": [_field(f"{_SPLITS}/name", "name", "sc:Text"), _field(f"{_SPLITS}/records", "records", "cr:Int64")],
        "data": rows,
    }


def _classes(feature: str, names: Sequence[str]) -> dict[str, Any]:
    identity = classes_of(feature)
    return {
        "@type": "cr:RecordSet",
        "@id": identity,
        "description": f"The classes of {feature}, by their numbers.",
        "dataType": "sc:Enumeration",
        "key": {"@id": f"{identity}/number"},
        "field": [_field(f"{identity}/number", "number", "cr:Int64"), _field(f"{identity}/name", "name", "sc:Text")],
        "data": [{f"{identity}/number": number, f"{identity}/name": name} for number, name in enumerate(names)],
    }


def classes_of(feature: str) -> str:
    return f"classes/{quote(feature)}"


def _records(manifest: Manifest) -> dict[str, Any]:
    assert manifest.schema is not None  # without one there are no sidecars
    return {
        "@type": "cr:RecordSet",
        "@id": _RECORDS,
        "description": "The records of all splits: tf.train.Example, a field for each key.",
        "field": [*_split_of_file(manifest), *(_feature(feature, manifest.labels) for feature in manifest.schema)],
    }


def _split_of_file(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yield the field of the split, where the names of all shards begin with it."""
    paths = [(name, shard.path) for name, split in manifest.splits.items() for shard in split.shards]
    if paths and all(path.startswith(f"{name}-") for name, path in paths):
        names = "|".join(map(re.escape, sorted(manifest.splits, key=len, reverse=True)))
        source = {"extract": {"fileProperty": "filename"}, "transform": {"regex": f"^({names})-.*$"}}
        yield _field(f"{_RECORDS}/-split", "split", "sc:Text") | {
            "references": {"field": {"@id": f"{_SPLITS}/name"}},
            "source": {"fileSet": {"@id": _SHARDS}} | source,
        }


def _feature(feature: Feature, labels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    field = _field(f"{_RECORDS}/{quote(feature.name)}", feature.name, _type_of(feature))
    if feature.shape:
        field |= {"isArray": True, "arrayShape": ",".join(map(str, feature.shape))}
    if feature.name in labels:
        field["references"] = {"field": {"@id": f"{classes_of(feature.name)}/number"}}
    return field | {"source": {"fileSet": {"@id": _SHARDS}, "extract": {"column": feature.name}}}


def _type_of(feature: Feature) -> str:
    known = column_type(feature)
    if known.tfds_feature == "Image":
        return "sc:ImageObject"
    arrow = known.arrow(feature.unit or DEFAULT_UNIT, feature.timezone)
    if types.is_integer(arrow):
        return f"cr:{'U' * types.is_unsigned_integer(arrow)}Int{arrow.bit_width}"
    return next((name for is_one, name in _ARROW_TYPES if is_one(arrow)), _KINDS[feature.kind])


def _field(identity: str, name: str, kind: str) -> dict[str, Any]:
    return {"@type": "cr:Field", "@id": identity, "name": name, "dataType": kind}


# `label_map.pbtxt`: the classes of a label as TensorFlow's Object Detection API reads them, a `StringIntLabelMap`.
#
#     item {
#       id: 1
#       name: "cat"
#     }
#
# Ids are the numbers in the records. Names that only fill the numbers below `input.label_offset` are left out: 0 is
# the background's there. Source of the format: tensorflow/models,
# `object_detection/protos/string_int_label_map.proto`.


LABEL_MAP: Final = "label_map.pbtxt"
_UNUSED: Final = "_unused_"


def label_maps(schema: Schema, labels: Mapping[str, Sequence[str]]) -> dict[str, bytes]:
    """Return the label maps of a dataset by the names of their files: that of the one label, or one named by each."""
    if len(labels) == 1:
        (names,) = labels.values()
        return {LABEL_MAP: label_map(names)}
    stems = {name: labels_file_name(name, schema).removesuffix("labels.txt") for name in labels}
    return {f"{stem}{LABEL_MAP}": label_map(labels[name]) for name, stem in stems.items()}


def has_id_0(data: bytes) -> bool:
    """Return whether a label map has the id 0, which TensorFlow's Object Detection API refuses.

    >>> has_id_0(label_map(["cat"])), has_id_0(label_map(["_unused_0", "cat"]))
    (True, False)
    """
    return data.startswith(b"item {\n  id: 0\n")


def label_map(names: Sequence[str]) -> bytes:
    r"""Return the label map of classes, which are numbered from 0.

    >>> label_map(["_unused_0", "cat"])
    b'item {\n  id: 1\n  name: "cat"\n}\n'
    """
    named = [(number, name) for number, name in enumerate(names) if name != f"{_UNUSED}{number}"]
    return "".join(f"item {{\n  id: {number}\n  name: {quoted(name)}\n}}\n" for number, name in named).encode()


# `schema.pbtxt`: the schema as TFX and TensorFlow Data Validation read it, a `tensorflow.metadata.v0.Schema` as text.
#
# What a feature becomes (tensorflow/metadata, `proto/v0/schema.proto`):
#
#     scalar or fixed shape      `shape`, present in every example: a FixedLenFeature
#     nullable                   `value_count`, since `shape` demands presence: a VarLenFeature
#     list of any length         `value_count { min: 0 }` without presence: an empty list counts as missing there
#     bool, labels, integers narrower than int64, dates and timestamps, images      the domain that says so


_TYPES: Final = {"int64": "INT", "float": "FLOAT", "bytes": "BYTES"}

_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def schema_text(schema: Schema, labels: Mapping[str, Sequence[str]] | None = None) -> bytes:
    blocks = [_block("feature", _feature_lines(feature, labels or {})) for feature in schema]
    return "".join(f"{line}\n" for block in blocks for line in block).encode()


def _feature_lines(feature: Feature, labels: Mapping[str, Sequence[str]]) -> list[str]:
    lines = [f"name: {quoted(feature.name)}", f"type: {_TYPES[feature.kind]}"]
    values = math.prod(feature.shape)
    if -1 in feature.shape:
        lines += ["presence { min_count: 0 }", "value_count { min: 0 }"]
    elif feature.nullable:
        lines += ["presence { min_count: 0 }", f"value_count {{ min: {values} max: {values} }}"]
    else:
        lines += ["presence { min_fraction: 1.0 min_count: 1 }"]
        lines += _block("shape", [f"dim {{ size: {size} }}" for size in feature.shape])
    return lines + _domain_lines(feature, len(labels.get(feature.name, ())))


def _domain_lines(feature: Feature, classes: int) -> list[str]:
    """Return what the values of a feature may be, where its kind does not say it all."""
    if feature.kind == "int64" and classes:
        name = quoted(feature.name)
        return _block("int_domain", [f"name: {name}", "min: 0", f"max: {classes - 1}", "is_categorical: true"])
    domain = column_type(feature).domains.get(feature.unit or "")
    return [] if domain is None else [domain]


def _block(name: str, lines: Iterable[str]) -> list[str]:
    body = [f"  {line}" for line in lines]
    return [f"{name} {{", *body, "}"] if body else [f"{name} {{ }}"]


def quoted(text: str) -> str:
    """Return a string literal of protobuf's text format; control characters are octal escapes."""
    return '"' + "".join(_ESCAPES.get(c, f"\\{ord(c):03o}" if ord(c) < 32 or ord(c) == 127 else c) for c in text) + '"'
