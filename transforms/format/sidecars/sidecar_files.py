"""The files beside the shards that let other tools open a dataset; all of them follow from its manifest.

tfds     dataset_info.json  features.json  *.labels.txt
tfx      schema.pbtxt
croissant    croissant.json
label_map    label_map.pbtxt, or *.label_map.pbtxt
index    index/*.idx, one for each shard (these follow from the shards: see `record_index.py`)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from ..manifest.manifest import Manifest, SplitEntry
from .croissant import NAME as CROISSANT
from .croissant import croissant
from .label_map import ONE as LABEL_MAP
from .label_map import label_maps
from .tfds import SplitShards, tfds_files
from .tfx import schema_text

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
            schema=manifest.schema,
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
