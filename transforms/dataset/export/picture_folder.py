"""Write a dataset as a folder of pictures, as `shardmill convert` and Hugging Face's imagefolder read it.

    train/cat/1.jpg                splits and classes are folders
    train/metadata.jsonl           {"file_name": "cat/1.jpg", "caption": "...", "objects": {"bbox": [...]}}

Where nothing is known of the pictures but their classes there is no metadata.jsonl: once there is one, folders are no
classes to readers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa

from ...format.wording.printable import printable_path
from ..storage.incomplete_file import new_file_named
from .exported_rows import ExportedRows
from .picture_names import kind_of, picture_path, safe_name, write_new
from .picture_objects import OBJECTS
from .picture_plan import Picture, PicturePlan
from .plain_values import plain_list


@dataclass(slots=True)
class PictureFolder:
    """Writes rows below `root`, one after the other; `pictures` counts the files."""

    root: str
    rows: ExportedRows
    plan: PicturePlan
    pictures: int = 0
    _lines: dict[str, BinaryIO] = field(default_factory=dict)

    def write(self) -> None:
        number = 0
        with ExitStack() as opened:
            for split, batch in self.rows.batches():
                root = os.path.join(self.root, split)
                if split not in self._lines:
                    os.makedirs(root, exist_ok=True)
                    if self.plan.with_lines:
                        path = os.path.join(root, "metadata.jsonl")
                        self._lines[split] = opened.enter_context(new_file_named(path))
                for line in self._batch(root, batch, number):
                    if self.plan.with_lines:
                        self._lines[split].write((json.dumps(line, ensure_ascii=False) + "\n").encode())
                number += batch.num_rows

    def _batch(self, root: str, batch: pa.RecordBatch, first: int) -> Iterator[dict[str, Any]]:
        named = dict(zip(batch.schema.names, batch.columns, strict=True))
        shown = {name: plain_list(name, named[name]) for name in self.plan.columns}
        known = self._known(named)
        place = printable_path(self.rows.dataset.path)
        for row in range(batch.num_rows):
            facts = {name: values[row] for name, values in known.items()}
            line: dict[str, Any] = {}
            for picture in self.plan.pictures:
                content = named[f"{picture.stem}/encoded"][row]
                line[picture.column] = self._paths(root, picture, content, facts, first + row)
            line |= {name: values[row] for name, values in shown.items()}
            if self.plan.objects is not None:
                line[OBJECTS] = self.plan.objects.value(facts, f"{place} row {first + row}")
            yield line

    def _known(self, named: Mapping[str, pa.Array]) -> dict[str, list[Any]]:
        wanted = [f"{one.stem}/{what}" for one in self.plan.pictures for what in ("filename", "format")]
        wanted += [] if self.plan.class_name is None else [self.plan.class_name]
        if self.plan.objects is not None:
            stem = self.plan.objects.stem
            wanted += [*self.plan.objects.features, f"{stem}/width", f"{stem}/height"]
        return {name: _python_values(name, named[name]) for name in wanted if name in named}

    def _paths(self, root: str, picture: Picture, content: pa.Scalar, facts: Mapping[str, Any], number: int) -> Any:
        if not content.is_valid:
            return None
        names, kinds = (facts.get(f"{picture.stem}/{what}") for what in ("filename", "format"))
        if not picture.many:
            return self._write(root, names, self._folder(picture, names, facts), number, content.as_buffer(), kinds)
        contents = [one.as_buffer() for one in content.values]
        some = zip(contents, _each(names, len(contents)), _each(kinds, len(contents)), strict=True)
        return [
            self._write(root, name, self._folder(picture, name, facts), number, one, kind) for one, name, kind in some
        ]

    def _folder(self, picture: Picture, name: str | None, facts: Mapping[str, Any]) -> str | None:
        """Return the folder of a picture that does not stay in its own: that of its class, or of its feature."""
        if picture != self.plan.pictures[0]:
            return None if name is not None and "/" in name else safe_name(picture.stem)
        of_class = None if self.plan.class_name is None else facts[self.plan.class_name]
        return None if of_class is None else safe_name(str(of_class))

    def _write(
        self, root: str, name: str | None, folder: str | None, number: int, content: pa.Buffer, kind: str | None
    ) -> str:
        self.pictures += 1
        kind = kind or kind_of(content[:16].to_pybytes())
        return write_new(root, picture_path(name, folder, number, kind), number, content)


def _python_values(name: str, values: pa.Array) -> list[Any]:
    """Return a column as Python's values; names that no manifest says to be text are read as such, masks are not."""
    found: list[Any] = values.to_pylist()
    kind = values.type.value_type if pa.types.is_list(values.type) else values.type
    if name.endswith("/mask") or not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        return found
    return [[_text(one) for one in row] if isinstance(row, list) else _text(row) for row in found]


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def _each(values: Any, count: int) -> list[Any]:
    return values if isinstance(values, list) and len(values) == count else [None] * count
