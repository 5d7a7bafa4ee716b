"""Turn columns of pictures into the features that images of a folder have: `schema.columns.NAME.image: path | bytes`.

    photo              photo/encoded   photo/format  photo/height  photo/width  photo/channels  photo/colorspace
    FF D8 FF E0 ... ─▶ FF D8 FF E0 ... jpeg          480           640          3               RGB
    00 01 02        ─▶ NOT_AN_IMAGE: a reject of its row
    null            ─▶ null in all of them

The bytes stay as they are. `{bytes, path}`, as Hugging Face exports pictures, is known by itself: its bytes are the
picture. Of lists of pictures each feature is a list.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SchemaError
from ...format.batches.arrow_memory import array_of, int_array, raw_values, text_array, true_mask, views_of
from ...format.batches.rejects import CellError, CellProblem
from ...format.columns.flatten import stored
from ...format.columns.keys import is_any_list, stored_type
from ...format.schema.arrow_types import media_of
from ...format.schema.column_types import is_binary, is_string
from ...format.schema.schema import ColumnRule
from ...format.wording.hints import Python, set_column
from ...format.wording.printable import NoColumnError, printable
from ...inputs.contract.selection import Selection
from ...pictures.facts import ImageFacts, ImageProblem, notes_of
from ...pictures.structure import ImageCheck
from ..step import Column, Step, StepByType, Stepped, as_text, is_text, with_column
from .beside_tables import FILENAME
from .columns import Keep
from .objects import OBJECTS, fields_of

_DATA_URL: Final = re.compile(r"^\s*data:[^,]*;base64,")
ENCODED: Final = "encoded"
ABSENT: Final = "absent"
DROP_ROW: Final = "drop_row"
ERROR: Final = "error"

FACTS: Final[dict[str, pa.DataType]] = {
    "channels": pa.int64(),
    "colorspace": pa.string(),
    "format": pa.string(),
    "height": pa.int64(),
    "width": pa.int64(),
}


@dataclass(frozen=True, slots=True)
class Pictures(Step):
    """Look at the pictures of some columns, which hold their bytes, and say what is in them.

    `columns` are names, and what becomes of nulls: `absent`, `drop_row` or `error`. They are `by_type` if types alone
    say that they are pictures, so that they may hold sounds as well. With `noted` no later step changes them.
    """

    columns: tuple[tuple[str, str], ...]
    check: ImageCheck = field(default_factory=partial(ImageCheck, by_key=False))
    by_type: bool = False
    noted: bool = True

    @property
    def is_of_file(self) -> bool:
        return self.by_type

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known, nulls = {column.name: column for column in columns}, dict(self.columns)
        for name in nulls:
            if name not in known:
                raise NoColumnError("schema.columns", name, list(known))
            _check_type(known[name])
        planned: list[Column] = []
        there = {f"{name}/{FILENAME}" for name, null in self.columns if null != ABSENT}
        for column in columns:
            if column.name in nulls:
                planned += _planned(column, nulls[column.name])
            else:
                planned.append(_never_null(column) if column.name in there else column)
        return planned

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:
        arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
        keep: pa.BooleanArray | None = None
        problems: list[CellProblem] = []
        warned: list[tuple[int, str]] = []
        notes: list[tuple[int, str]] = []
        boxed = _with_boxes(batch)
        for name, null in self.columns:
            if name not in arrays:
                continue
            cells = PictureCells.of(stored(arrays.pop(name)))
            facts = list(self._looked_at(name, cells, null, problems, file))
            arrays |= _features(name, cells, facts)
            there = [(row, one) for row, one in zip(cells.rows(), facts, strict=True) if one is not None]
            warned += [(row, one.warning) for row, one in there if one.warning]
            for row, one in there if self.noted else ():
                notes += [(row, note) for note in notes_of(one, boxes=bool(boxed[row]))]
            if null == DROP_ROW:
                there = cells.there()
                keep = there if keep is None else pc.and_(keep, there)
        batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
        return Stepped(batch, keep, tuple(problems), notes=tuple(notes), warned=tuple(warned))

    def _looked_at(
        self, name: str, cells: PictureCells, null: str, problems: list[CellProblem], file: str
    ) -> Iterator[ImageFacts | None]:
        rows = cells.rows()
        for index, picture in enumerate(cells.views()):
            facts = None
            if picture is not None:
                try:
                    facts = self.check.check(picture)
                except ImageProblem as problem:
                    problems.append(CellProblem(rows[index], self._error(name, problem, empty=not len(picture))))
            elif (
                error := _missing(name, cells.values[index], ERROR if cells.lists is not None else null, file)
            ) is not None:
                problems.append(CellProblem(rows[index], error))
            yield facts
        if cells.lists is not None and null == ERROR:
            gone = pc.indices_nonzero(cells.lists.is_null()).to_pylist()
            problems += [CellProblem(row, _null_error(name)) for row in gone]

    def _error(self, name: str, problem: ImageProblem, *, empty: bool) -> CellError:
        error = problem.to_cell_error(name)
        if empty or not self.by_type or problem.code not in ("NOT_AN_IMAGE", "UNSUPPORTED"):
            return error
        fix = f"if the column holds no pictures: {set_column(name, 'image', 'none')}"
        return replace(error, message=f"{error.message}; {fix}")


@dataclass(frozen=True, slots=True)
class FromBase64(Step):
    """Read the base64 text of pictures, with or without `data:image/png;base64,` in front, as their bytes."""

    column: str

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        known = {column.name: column for column in columns}
        if self.column not in known:
            raise NoColumnError("schema.columns", self.column, list(known))
        if not is_text(known[self.column]):
            kind, fix = printable(str(known[self.column].field.type)), set_column(self.column, "image", "bytes")
            name = printable(self.column)
            raise SchemaError(f'column "{name}": image: base64 reads text, and it holds {kind}; for bytes: {fix}')
        made = known[self.column].computed(pa.large_binary())
        return [made if column.name == self.column else column for column in columns]

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        values, problems = list[bytes | None](), list[CellProblem]()
        for row, text in enumerate(as_text(batch[self.column]).to_pylist()):
            try:
                values.append(
                    None if text is None else b64decode("".join(_DATA_URL.sub("", text).split()), validate=True)
                )
            except ValueError:
                values.append(None)
                shown = printable(text)
                said = f'"{shown}" is not base64; fix the cell, or leave image out'
                problems.append(CellProblem(row, CellError(self.column, "NOT_AN_IMAGE", shown, "base64", said)))
        return Stepped(with_column(batch, self.column, pa.array(values, pa.large_binary())), None, tuple(problems))


@dataclass(frozen=True, slots=True)
class ExportedPictures(StepByType):
    """The columns of `{bytes, path}` are pictures, and a null there is an error; but for those in `declared`."""

    declared: frozenset[str] = frozenset()
    check: ImageCheck = field(default_factory=partial(ImageCheck, by_key=False))
    noted: bool = True

    def step(self, columns: Sequence[Column]) -> Pictures | None:
        others = self.declared.union(one.name for one in columns if media_of(one.field))
        found = [one.name for one in columns if _is_export(one.field.type) and one.name not in others]
        return (
            Pictures(tuple((name, ERROR) for name in found), self.check, by_type=True, noted=self.noted)
            if found
            else None
        )


_NO_PICTURE: Final = array_of(np.zeros(1, np.int64))[0]


@dataclass(frozen=True, slots=True)
class PictureCells:
    """The pictures of a column: `values` as they are stored, their bytes, and the lists that they are in, if any."""

    values: pa.Array
    pictures: pa.Array
    lists: pa.Array | None = None

    @classmethod
    def of(cls, column: pa.Array) -> PictureCells:
        lists = column.cast(pa.large_list(column.type.value_type)) if is_any_list(column.type) else None
        values = stored(column if lists is None else lists.flatten())
        pictures = pc.struct_field(values, "bytes") if pa.types.is_struct(values.type) else values
        if not (pa.types.is_binary(pictures.type) or pa.types.is_binary_view(pictures.type)):
            pictures = pictures.cast(pa.large_binary())
        return cls(values, pictures, lists)

    def views(self) -> list[memoryview | None]:
        """Return the bytes of each picture, without a copy; None where there is none."""
        return views_of(self.pictures)

    def rows(self) -> Sequence[int]:
        if self.lists is None:
            return range(len(self.pictures))
        rows: list[int] = pc.list_parent_indices(self.lists).to_pylist()
        return rows

    def there(self) -> pa.BooleanArray:
        return self.pictures.is_valid() if self.lists is None else self.lists.is_valid()

    def in_rows(self, values: pa.Array) -> pa.Array:
        """Return what is known of each picture, for each row; a list in which it is null is null, as its row is bad."""
        if self.lists is None:
            return values
        sizes = raw_values(pc.if_else(self.lists.is_valid(), pc.list_value_length(self.lists), _NO_PICTURE), np.int64)
        bad = np.zeros(len(self.lists), bool)
        bad[np.array(self.rows(), np.int64)[true_mask(values.is_null())]] = True
        ends = array_of(np.concatenate([[0], np.cumsum(sizes)]))
        return pa.LargeListArray.from_arrays(ends, values, mask=array_of(bad | true_mask(self.lists.is_null())))


def _missing(name: str, value: pa.Scalar, null: str, file: str) -> CellError | None:
    path = value["path"].as_py() if pa.types.is_struct(value.type) and value.is_valid else None
    if path is not None:
        text = "there is a path without the bytes of the picture; write them into the table, or make it null"
        how = "from_file" if file.endswith(".arrow") else "from_parquet" if file.endswith(".parquet") else ""
        if how:
            data = Python(f"convert(data=datasets.Dataset.{how}({file!r}), output=...)")
            text = f"{text}; where the path leads to the file, Hugging Face's library reads it: {data}"
        return CellError(name, "MISSING_FILE", printable(path), "the bytes of a picture", text)
    return _null_error(name) if null == ERROR else None


def _null_error(name: str) -> CellError:
    fix = f"give it a value, or leave such rows out: {set_column(name, 'null', DROP_ROW)}"
    return CellError(name, "DECLARED_NOT_NULL", "null", "a picture", f"there is no picture; {fix}")


def _never_null(column: Column) -> Column:
    """Return the column of the names of pictures, without which there is no record."""
    reason = f'the path of the picture; "{printable(column.origin or column.name)}" in the source'
    return replace(column, field=column.field.with_nullable(False), origin=None, form=column.origin, reason=reason)


def _check_type(column: Column) -> None:
    kind = item_type(column.field.type)
    if is_binary(kind) or _is_export(kind):
        return
    name = printable(column.name)
    as_path = f"if it holds paths: {set_column(column.name, 'image', 'path')}, or base64: image=base64"
    fix = as_path if is_text(column) else "leave image out"
    raise SchemaError(f'column "{name}": image takes the bytes of pictures, and it holds {printable(str(kind))}; {fix}')


def item_type(kind: pa.DataType) -> pa.DataType:
    kind = stored_type(kind)
    return stored_type(kind.value_type) if is_any_list(kind) else kind


def _is_export(kind: pa.DataType) -> bool:
    """Return whether values are `{bytes, path}`, in any order, or lists of these."""
    kind = item_type(kind)
    if not pa.types.is_struct(kind) or sorted(one.name for one in kind) != ["bytes", "path"]:
        return False
    path = stored_type(kind.field("path").type)
    return bool(is_binary(kind.field("bytes").type) and (is_string(path) or pa.types.is_null(path)))


def _planned(column: Column, null: str) -> list[Column]:
    nullable, name = column.field.nullable and null == ABSENT, column.name
    lists = is_any_list(stored_type(column.field.type))

    def of(key: str, kind: pa.DataType, *, nullable: bool = nullable) -> pa.Field:
        return pa.field(f"{name}/{key}", pa.large_list(kind) if lists else kind, nullable)

    reason = f'of the picture{"s" if lists else ""} "{printable(name)}"'
    rule = None if lists else ColumnRule("image")
    planned = [Column(of(ENCODED, pa.large_binary()), reason=f"{reason}, as it is", rule=rule, null=null)]
    planned += [Column(of(fact, kind), reason=reason) for fact, kind in FACTS.items()]
    if _is_export(column.field.type):
        always = item_type(column.field.type).field("path").nullable is False
        named = of(FILENAME, pa.large_string(), nullable=nullable or not always)
        planned.append(Column(named, reason=reason))
    return planned


def fact_array(facts: Sequence[ImageFacts | None], fact: str) -> pa.Array:
    values = [None if one is None else getattr(one, fact) for one in facts]
    return int_array(values) if pa.types.is_integer(FACTS[fact]) else text_array(values)


def _with_boxes(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    if OBJECTS not in batch.schema.names or not fields_of(batch.schema.field(OBJECTS).type):
        return np.zeros(batch.num_rows, bool)
    return true_mask(batch[OBJECTS].is_valid())


def _features(name: str, cells: PictureCells, facts: Sequence[ImageFacts | None]) -> dict[str, pa.Array]:
    arrays = {f"{name}/{fact}": cells.in_rows(fact_array(facts, fact)) for fact in FACTS}
    arrays[f"{name}/{ENCODED}"] = cells.in_rows(cells.pictures.cast(pa.large_binary()))
    if pa.types.is_struct(cells.values.type):
        names = pc.struct_field(cells.values, "path").cast(pa.large_string())
        arrays[f"{name}/{FILENAME}"] = cells.in_rows(names if cells.lists is None else names.fill_null(""))
    return arrays


# `input.columns` and `input.exclude_columns` name features of pictures as records do:
#
#     columns: [caption, image/encoded]            caption  image/encoded
#     exclude_columns: [image/filename]            all but that
#     columns: [caption]                           caption, and all features of the pictures


def is_feature_of(picture: str, name: str) -> bool:
    """Return whether a name, or a glob, is that of a feature of a picture, and of no column beside it.

    >>> is_feature_of("image", "image/width"), is_feature_of("image", "image/object/area")
    (True, True)
    >>> is_feature_of("image", "image/source_id"), is_feature_of("mask", "image/width")
    (False, False)
    """
    of, _, feature = name.partition(f"{picture}/")
    return not of and (feature in (ENCODED, FILENAME, *FACTS) or feature.startswith("object/"))


@dataclass(frozen=True, slots=True)
class ChosenFeatures(StepByType):
    """Keep the features of pictures that are named, or that are not left out; these are names and globs.

    A picture of which no feature is to be kept by its name has all of them.
    """

    pictures: tuple[str, ...]
    keep: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def step(self, columns: Sequence[Column]) -> Keep | None:
        """Raise `SchemaError` where a name is none of the columns, or no column is left."""
        names = [column.name for column in columns]
        for key, wanted in (("input.columns", self.keep), ("input.exclude_columns", self.exclude)):
            for one in wanted:
                if not any(fnmatchcase(name, one) for name in names):
                    raise NoColumnError(key, one, names)
        gone = [name for name in names if any(fnmatchcase(name, one) for one in self.exclude)]
        for picture in self.pictures:
            kept = [one for one in self.keep if is_feature_of(picture, one)]
            own = [name for name in names if kept and is_feature_of(picture, name)]
            gone += [name for name in own if not any(fnmatchcase(name, one) for one in kept)]
        if gone and len(set(gone)) == len(names):
            raise SchemaError("input.exclude_columns leaves no column; keep at least one")
        return Keep(Selection(exclude=tuple(dict.fromkeys(gone)))) if gone else None
