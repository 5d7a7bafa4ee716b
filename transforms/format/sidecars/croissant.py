"""`croissant.json`: a dataset as MLCommons' Croissant 1.1 describes it, for search engines and for machines.

    distribution   the shards, by globs
    recordSet      splits     their names and records, inline, which mlcroissant loads
                   a label    the numbers and names of its classes, inline
                   records    a field for each feature, by its key in the Example, and the split by the name of the file

The file belongs beside the shards, whose paths begin there. Shards are TFRecord files, which mlcroissant does not load:
the fields say what `tf.io` finds. Source: http://mlcommons.org/croissant/1.1, whose context is that of its examples, as
the one of its appendix does not pass the validator (mlcommons/croissant, `datasets/1.1`).
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from pyarrow import types

from ..manifest.manifest import Manifest
from ..schema.column_types import DEFAULT_UNIT, column_type
from ..schema.schema import Feature

NAME: Final = "croissant.json"

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

_TYPES: Final = (
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
    return next((name for is_one, name in _TYPES if is_one(arrow)), _KINDS[feature.kind])


def _field(identity: str, name: str, kind: str) -> dict[str, Any]:
    return {"@type": "cr:Field", "@id": identity, "name": name, "dataType": kind}
