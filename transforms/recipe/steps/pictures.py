"""Columns of pictures become the features that images of a folder have: `schema.columns.NAME.image: path | bytes`.

    photo              photo/encoded   photo/format  photo/height  photo/width  photo/channels  photo/colorspace
    FF D8 FF E0 ... ─▶ FF D8 FF E0 ... jpeg          480           640          3               RGB
    00 01 02        ─▶ NOT_AN_IMAGE: a reject of its row
    null            ─▶ null in all of them

The bytes stay as they are. `{bytes, path}`, as Hugging Face exports pictures, is taken too: its bytes are the picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError
from ...format.flow.rejects import CellError, CellProblem
from ...format.nested.flatten import stored
from ...format.nested.keys import stored_type
from ...format.schema.column_types import is_binary
from ...format.schema.schema import ColumnRule
from ...format.wording.nearest import not_a_column
from ...format.wording.printable import printable
from ...pictures.check import ImageCheck
from ...pictures.facts import ImageFacts, ImageProblem
from ...sources.contract.call import set_column
from ..step import Column, Stepped, is_text
from .files import FILENAME

ENCODED: Final = "encoded"
ABSENT: Final = "absent"
DROP_ROW: Final = "drop_row"
ERROR: Final = "error"

_FACTS: Final[dict[str, pa.DataType]] = {
    "channels": pa.int64(),
    "colorspace": pa.string(),
    "format": pa.string(),
    "height": pa.int64(),
    "width": pa.int64(),
}


@dataclass(frozen=True, slots=True)
class Pictures:
    """Look at the pictures of some columns, which hold their bytes, and say what is in them.

    `columns` are names, and what becomes of nulls: `absent`, `drop_row` or `error`.
    """

    columns: tuple[tuple[str, str], ...]
    check: ImageCheck = field(default_factory=ImageCheck)

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        """Return the columns, those of pictures as the features of pictures.

        Raises:
            SchemaError: there is no such column, or it holds no bytes.
        """
        known, nulls = {column.name: column for column in columns}, dict(self.columns)
        for name in nulls:
            if name not in known:
                raise SchemaError(not_a_column("schema.columns", name, list(known)))
            _check_type(known[name])
        planned: list[Column] = []
        for column in columns:
            planned += _planned(column, nulls[column.name]) if column.name in nulls else [column]
        return planned

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        """Return the batch with the features of its pictures; what is no picture, or a damaged one, is a problem."""
        arrays, nulls = dict(zip(batch.schema.names, batch.columns, strict=True)), dict(self.columns)
        keep: pa.BooleanArray | None = None
        problems: list[CellProblem] = []
        for name in nulls.keys() & arrays.keys():
            values = stored(arrays.pop(name))
            pictures = _bytes_of(values)
            facts = list(self._looked_at(name, values, pictures, nulls[name], problems))
            arrays |= _features(name, values, pictures, facts)
            if nulls[name] == DROP_ROW:
                keep = pictures.is_valid() if keep is None else pc.and_(keep, pictures.is_valid())
        return Stepped(pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays)), keep, tuple(problems))

    def _looked_at(
        self, name: str, values: pa.Array, pictures: pa.Array, null: str, problems: list[CellProblem]
    ) -> Iterator[ImageFacts | None]:
        """Yield the facts of each picture, None where there is none; what is wrong is added to the problems."""
        for row, picture in enumerate(pictures):
            facts = None
            if picture.is_valid:
                try:
                    facts = self.check.check(memoryview(picture.as_buffer()))
                except ImageProblem as problem:
                    problems.append(CellProblem(row, problem.to_cell_error(name)))
            elif (error := _missing(name, values[row], null)) is not None:
                problems.append(CellProblem(row, error))
            yield facts


def _missing(name: str, value: pa.Scalar, null: str) -> CellError | None:
    """Return what is wrong with a picture that is not there, None if nothing is."""
    path = value["path"].as_py() if pa.types.is_struct(value.type) and value.is_valid else None
    if path is not None:
        text = "there is a path without the bytes of the picture; write them into the table, or make it null"
        return CellError(name, "MISSING_FILE", printable(path), "the bytes of a picture", text)
    if null != ERROR:
        return None
    fix = f"give it a value, or leave such rows out: {set_column(name, 'null', DROP_ROW)}"
    return CellError(name, "DECLARED_NOT_NULL", "null", "a picture", f"there is no picture; {fix}")


def _check_type(column: Column) -> None:
    kind = stored_type(column.field.type)
    if is_binary(kind) or _is_export(kind):
        return
    name = printable(column.name)
    as_path = f"if it holds paths: {set_column(column.name, 'image', 'path')}"
    fix = as_path if is_text(column) else "leave image out"
    raise SchemaError(f'column "{name}": image takes the bytes of pictures, and it holds {printable(str(kind))}; {fix}')


def _is_export(kind: pa.DataType) -> bool:
    """Return whether values are `{bytes, path}`, in any order."""
    if not pa.types.is_struct(kind) or sorted(one.name for one in kind) != ["bytes", "path"]:
        return False
    return bool(is_binary(kind.field("bytes").type))


def _planned(column: Column, null: str) -> list[Column]:
    """Return the columns of the features of a picture."""
    nullable, name = column.field.nullable and null == ABSENT, column.name
    reason = f'of the picture "{printable(name)}"'
    picture = pa.field(f"{name}/{ENCODED}", pa.large_binary(), nullable)
    planned = [Column(picture, reason=f"{reason}, as it is", rule=ColumnRule("image"), null=null)]
    planned += [Column(pa.field(f"{name}/{fact}", kind, nullable), reason=reason) for fact, kind in _FACTS.items()]
    if _is_export(stored_type(column.field.type)):
        planned.append(Column(pa.field(f"{name}/{FILENAME}", pa.large_string(), nullable=True), reason=reason))
    return planned


def _bytes_of(values: pa.Array) -> pa.Array:
    pictures = pc.struct_field(values, "bytes") if pa.types.is_struct(values.type) else values
    return pictures.cast(pa.large_binary())


def _features(
    name: str, values: pa.Array, pictures: pa.Array, facts: Sequence[ImageFacts | None]
) -> dict[str, pa.Array]:
    """Return the columns of pictures with these facts."""

    def of(fact: str) -> list[Any]:
        return [None if one is None else getattr(one, fact) for one in facts]

    arrays = {f"{name}/{fact}": pa.array(of(fact), kind) for fact, kind in _FACTS.items()}
    arrays[f"{name}/{ENCODED}"] = pictures
    if pa.types.is_struct(values.type):
        arrays[f"{name}/{FILENAME}"] = pc.struct_field(values, "path").cast(pa.large_string())
    return arrays
