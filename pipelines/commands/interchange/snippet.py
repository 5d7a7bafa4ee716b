"""Print a program that reads a dataset: one command over `format/snippets`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ....transforms.dataset.generations.manifest_files import read_manifest
from ....transforms.dataset.storage.storage_at import storage_at
from ....transforms.errors import UsageError
from ....transforms.format.manifest.manifest import Manifest
from ....transforms.format.manifest.naming import index_path
from ....transforms.format.sidecars.croissant import NAME as CROISSANT
from ....transforms.format.snippets.programs import READERS, Subject, program
from ....transforms.format.wording.hints import Command
from ....transforms.format.wording.printable import printable, printable_path

if TYPE_CHECKING:
    from ...screens.screen import Screen


def snippet_command(reader: str, path: str, split: str | None, screen: Screen) -> int:
    if reader not in READERS:
        raise UsageError(f"there is no snippet for {printable(reader)}; choose among {', '.join(READERS)}")
    manifest = read_manifest(path)
    subject = Subject.of(path, manifest, split, _decoded(path, manifest))
    first = manifest.splits[subject.split].shards[0].path
    if reader == "dali" and not subject.gzip and storage_at(path).size(index_path(first, "text")) is None:
        raise UsageError(
            f"{printable_path(path)}: DALI reads shards by text indexes, which are missing: "
            f"{Command('index', path, '--text')}"
        )
    if reader == "mlcroissant" and storage_at(path).size(CROISSANT) is None:
        raise UsageError(
            f"{printable_path(path)}: croissant.json is missing: {Command('export', path, '-o', f'{path}/{CROISSANT}')}"
        )
    code = program(reader, subject)
    if screen.as_json:
        screen.data({"path": printable_path(path), "reader": reader, "split": subject.split, "code": code})
    else:
        for line in code.splitlines():
            screen.text(line)
    return 0


def _decoded(path: str, manifest: Manifest) -> tuple[str, ...]:
    """Return the features whose pictures TensorFlow decodes, as `features.json` says; without it, all of pictures."""
    pictures = [one.name for one in manifest.schema or () if one.type == "image"]
    if "features.json" not in manifest.sidecars or not pictures:
        return tuple(pictures)
    document = json.loads(storage_at(path).read("features.json"))
    return tuple(name for name in pictures if _class_of(document, name).endswith(".Image"))


def _class_of(document: Any, name: str) -> str:
    for step in [name] if name in document["featuresDict"]["features"] else name.split("/"):
        document = document["featuresDict"]["features"][step]
    return str(document["pythonClassName"])
