"""The splits of a table beside pictures: the folder with a split's name that the table is in, or the picture itself.

pets/train/metadata.csv    0.jpg          train
pets/metadata.csv          test/7.jpg     test
pets/metadata.csv          7.jpg          a reject, as other rows have a split
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ...format.flow.rejects import CellError, CellProblem
from ...format.wording.hints import Set
from ...format.wording.printable import printable
from ...recognise.names import FileSplits, split_of_folder
from ...recognise.splits import refuse_splits_inside
from ..step import Step, Stepped


@dataclass(frozen=True, slots=True)
class FolderSplits(Step):
    """Give each row the split that the folder of its table has the name of, or that of the picture in its `column`.

    `roots` are the folders whose pictures are read. `splits` are found by `of_files`.
    """

    column: str
    roots: tuple[str, ...]
    how: FileSplits
    splits: tuple[str, ...] = ()

    splits_rule = "folders"

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def detected(self) -> str:
        return f"splits {', '.join(self.splits)}, from the names of folders" if self.splits else ""

    def of_files(self, files: Sequence[str]) -> FolderSplits | None:
        found = {_split_of_table(file) for file in files}
        if None in found:
            found |= {split_of_folder(folder) for root in self.roots for folder in _folders_in(root)}
        splits = tuple(sorted(filter(None, found)))
        refuse_splits_inside(splits, self.how, self.roots, Set("input.splits", "names"))
        return replace(self, splits=splits) if splits else None

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:
        known: dict[str | None, int] = {split: code for code, split in enumerate(self.splits)}
        table = known.get(_split_of_table(file))
        if table is not None:
            return Stepped(batch, split_codes=np.full(batch.num_rows, table, np.int64))
        paths = [path[0] if isinstance(path, list) and path else path for path in batch[self.column].to_pylist()]
        codes = np.array([known.get(split_of_folder(_first_folder(path)), -1) for path in paths], np.int64)
        problems = tuple(CellProblem(row, self._no_split(paths[row])) for row in np.flatnonzero(codes < 0).tolist())
        return Stepped(batch, None, problems, codes)

    def _no_split(self, path: object) -> CellError:
        shown = "null" if not path else printable(str(path))
        known = ", ".join(self.splits)
        text = f'"{shown}" is in no folder of a split ({known}), as other pictures are; move it into one'
        return CellError(self.column, "DECLARED_NOT_NULL", shown, "a picture in a split folder", text)


def _split_of_table(file: str) -> str | None:
    return split_of_folder(os.path.basename(os.path.dirname(file)))


def _first_folder(path: object) -> str:
    parts = [part for part in str(path or "").split("/") if part not in ("", ".")]
    return parts[0] if len(parts) > 1 else ""


def _folders_in(root: str) -> list[str]:
    with os.scandir(root) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
