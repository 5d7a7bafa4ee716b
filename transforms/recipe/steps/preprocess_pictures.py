"""Make pictures ready for training, in the same pass: the section `image` of a config.

    photo/encoded  photo/format  photo/height  photo/width  ...     image: {resize: 256, encode: {format: jpeg}}
    89 50 4E 47    png           1200          900
         │
         ▼
    FF D8 FF E0    jpeg          341           256                  photo/placement, where boxes have to follow

A picture that need not change keeps its bytes. One that `image.filter` does not take is dropped, with its row, and
counted. Where a row has lists of pictures, all of them have to pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from ...errors import SchemaError
from ...format.batches.arrow_memory import array_of, bitmap_of
from ...format.batches.rejects import CellProblem
from ...format.columns.flatten import stored
from ...format.columns.keys import is_any_list, stored_type
from ...format.schema.schema import ColumnRule
from ...format.wording.hints import Set
from ...format.wording.printable import NoColumnError
from ...pictures.codec import Codec
from ...pictures.facts import UPRIGHT, Check, ImageFacts, ImageProblem, notes_of
from ...pictures.options import Preprocess
from ...pictures.pillow_decode import PILLOW_NAMES
from ...pictures.preprocess import PictureMaker, Placement, Ready, make_mask
from ...pictures.structure import DECODED, ImageCheck
from ..step import Column, Step, StepByType, Stepped
from .boxes import PLACEMENT, PLACEMENT_TYPE, Boxes, BoxesByType, placement_array
from .pictures import ENCODED, FACTS, PictureCells, fact_array, item_type

_END: Final = f"/{ENCODED}"


@dataclass(frozen=True, slots=True)
class PreprocessPictures(Step):
    """Make the pictures of some columns ready, masks after the others; `placed` is the picture that boxes are in.

    A picture that stays as it is, and was not decoded for it, is checked as `level` says.
    """

    options: Preprocess
    codec: Codec
    pictures: tuple[str, ...]
    placed: str | None = None
    pixels_limit: int = 50_000_000
    level: Check = "structure"

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        planned = [self._planned(column) for column in columns]
        if self.placed is None:
            return planned
        return [*planned, Column(pa.field(_placement_of(self.placed), PLACEMENT_TYPE), reason="for the boxes")]

    def _planned(self, column: Column) -> Column:
        picture, _, key = column.name.rpartition("/")
        if not self.options.changes_pictures or picture not in self.pictures:
            return column
        if key == ENCODED:
            lists = is_any_list(stored_type(column.field.type))
            wide = pa.large_list(pa.large_binary()) if lists else pa.large_binary()
            rule = None if lists else ColumnRule("image")
            reason, null = _reason(self.options), column.null
            return Column(column.field.with_type(wide), reason=reason, rule=rule, null=null, form=column.origin)
        if key in FACTS and column.origin is not None:
            return Column(column.field.with_type(FACTS[key]), reason="of the picture that is written")
        return column

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:  # noqa: ARG002
        self.codec.check()
        work = _Work(self, dict(zip(batch.schema.names, batch.columns, strict=True)), np.ones(batch.num_rows, bool))
        for picture in self.pictures:
            work.do(picture)
        arrays = work.arrays
        keep = None if work.keep.all() else array_of(work.keep)
        batch = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
        return Stepped(batch, keep, tuple(work.problems), notes=tuple(work.notes), warned=tuple(work.warned))


@dataclass(slots=True)
class _Work:
    """A batch whose pictures are being made ready, one column after the other; masks come after what they are of."""

    step: PreprocessPictures
    arrays: dict[str, pa.Array]
    keep: np.ndarray[tuple[int], np.dtype[np.bool_]]
    problems: list[CellProblem] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    warned: list[tuple[int, str]] = field(default_factory=list)
    seen: dict[int, Ready] = field(default_factory=dict)

    def do(self, picture: str) -> None:
        cells = PictureCells.of(stored(self.arrays[f"{picture}/{ENCODED}"]))
        pictures = cells.views()
        becoming = self._made(picture, zip(cells.rows(), pictures, strict=True))
        if not self.step.options.changes_pictures:
            for _ in becoming:  # the filter alone
                pass
            return
        written = _Written(cells.pictures.nbytes)
        made = [written.add(*pair) for pair in zip(pictures, becoming, strict=True)]
        if cells.lists is None and picture not in self.step.options.masks:
            self.seen |= {row: one for row, one in enumerate(made) if one is not None}
        if picture == self.step.placed:
            self.arrays[_placement_of(picture)] = placement_array(
                made, drawn_turned=self.step.options.boxes_on == "turned"
            )
        self.arrays[f"{picture}/{ENCODED}"] = cells.in_rows(written.to_array())
        facts = [None if one is None else one.facts for one in made]
        for name in [f"{picture}/{key}" for key in FACTS if f"{picture}/{key}" in self.arrays]:
            self.arrays[name] = cells.in_rows(fact_array(facts, name.rpartition("/")[2]))

    def _made(self, picture: str, pictures: Iterable[tuple[int, memoryview | None]]) -> Iterator[Ready | None]:
        """Yield what becomes of each picture, with its row, None where there is none; problems and drops are noted."""
        check = ImageCheck("structure", tuple(PILLOW_NAMES), self.step.pixels_limit, loads_others=False)
        whole = replace(check, level=self.step.level)
        for row, data in pictures:
            ready: Ready | None = None
            if data is not None:
                try:
                    facts = check.check(data)
                    ready = _as_it_is(facts)
                    ready = self._ready(picture, row, data, facts, whole) or ready
                except ImageProblem as problem:
                    self.problems.append(CellProblem(row, problem.to_cell_error(picture)))
            yield ready

    def _ready(self, picture: str, row: int, data: memoryview, facts: ImageFacts, check: ImageCheck) -> Ready | None:
        options, maker = self.step.options, PictureMaker(self.step.options, self.step.codec, self.step.pixels_limit)
        is_mask = picture in options.masks
        self.keep[row] &= is_mask or options.wanted.takes(facts.width, facts.height)
        if not self.keep[row] or not options.changes_pictures:
            return None
        ready = make_mask(data, facts, maker, self.seen.get(row)) if is_mask else maker.make(data, facts)
        decoded = check.judged(facts._replace(warning=ready.warning))
        if ready.data is None and check.level in DECODED:
            decoded = check.check(data)
        self.warned += [(row, decoded.warning)] if decoded.warning else []
        self.notes += [
            (row, note) for note in (*ready.notes, *notes_of(ready.facts, boxes=picture == self.step.placed))
        ]
        return ready


class _Written:
    """The pictures of a column as they are written, one after the other in one buffer of Arrow's.

    A file that was made is copied there at once: between the pixels of the pictures, which come and go, the files of a
    batch would keep the allocator from using its memory again (100 MB in a worker, for 8 MB of pictures).
    """

    def __init__(self, size: int) -> None:
        self._buffer = pa.allocate_buffer(max(size, 1), resizable=True)
        self._ends: list[int] = [0]
        self._there: list[bool] = []

    def add(self, value: memoryview | None, ready: Ready | None) -> Ready | None:
        """Take the next picture, as it is or as it was made; return what is known of it, without its bytes."""
        made = None if ready is None else ready.data
        start, data = self._ends[-1], value if made is None else made
        data = b"" if data is None else data
        if start + len(data) > self._buffer.size:
            self._buffer.resize(2 * start + len(data))
        memoryview(self._buffer).cast("B")[start : start + len(data)] = data
        self._ends.append(start + len(data))
        self._there.append(value is not None)
        return ready if ready is None else ready._replace(data=None)

    def to_array(self) -> pa.Array:
        valid = bitmap_of(np.array(self._there, bool))
        ends = pa.py_buffer(np.array(self._ends, np.int64))
        self._buffer.resize(max(self._ends[-1], 1), shrink_to_fit=True)
        return pa.Array.from_buffers(pa.large_binary(), len(self._there), [valid, ends, self._buffer])


def _installed() -> Codec:
    return Codec.installed()


@dataclass(frozen=True, slots=True)
class PreprocessByType(StepByType):
    """All pictures of a row are made ready, if a config asks for it, before their boxes are looked at."""

    is_asked_for = True

    options: Preprocess
    boxes: BoxesByType
    codec: Codec = field(default_factory=_installed)
    pixels_limit: int = 50_000_000
    level: Check = "structure"

    def step(self, columns: Sequence[Column]) -> Step:
        """Raise `SchemaError` where there are no pictures, or no such mask."""
        found = [one.name.removesuffix(_END) for one in columns if one.name.endswith(_END) and _is_picture(one)]
        for name in self.options.masks:
            if name not in found:
                raise NoColumnError("image.masks", name, found)
        if not found:
            raise SchemaError(
                "image: there is no picture to make ready; say which column holds pictures, or their paths: "
                f"{Set('schema.columns.NAME.image', 'path')}"
            )
        boxes = self.boxes.step(columns)
        ordered = sorted(found, key=lambda name: name in self.options.masks)
        placed = boxes.image if isinstance(boxes, Boxes) and self.options.changes_pictures else None
        return PreprocessPictures(self.options, self.codec, tuple(ordered), placed, self.pixels_limit, self.level)


def _is_picture(column: Column) -> bool:
    kind = item_type(column.field.type)
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _as_it_is(facts: ImageFacts) -> Ready:
    size = (facts.width, facts.height)
    return Ready(None, facts, size, UPRIGHT, Placement(size, size))


def _placement_of(picture: str) -> str:
    return f"{picture}/{PLACEMENT}"


def _reason(options: Preprocess) -> str:
    resize, words = options.resize, []
    if resize is not None:
        size = f"{resize.width}" if resize.width == resize.height else f"{resize.width} x {resize.height}"
        words.append(f"resized to {size} ({resize.mode})")
    words += ["turned by EXIF"] if options.orientation == "apply" else []
    words += [f"in {options.color}"] if options.color != "keep" else []
    words += [f"as {options.format}"] if options.format != "keep" else []
    return ", ".join(words)
