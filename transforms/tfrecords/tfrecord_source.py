"""TFRecord files as a source: their records become those of the new dataset, byte for byte.

    list      datasets in the order of their manifests, files in the order of their paths
    survey    schema and labels that hold for all of them; where to cut
    read      2 MiB at a time: both CRCs of each record are checked, and its frame is passed on where it stands

Records of a dataset have its splits. Those of other files go to the split that is asked for, or that the file's name
states (`val-00001-of-00010.tfrecord`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from ..dataset.record_file import read_record_batches
from ..errors import InputError, SourceError
from ..format.rows import Rows
from ..format.scan import RECORD_BYTES_LIMIT
from ..format.schema import Schema
from ..sources.source import Frozen, Listing, ParallelMap, Survey, Task
from ..sources.stamp import check_stamp
from .agreement import Labels, agree_on_labels, agree_on_schema, agree_with_files
from .inputs import InputFile, Inputs, find_inputs, split_in_name
from .observed_schema import Observation
from .piece_reader import PieceReader, pass_over, rows_without
from .records_piece import RecordsPiece, cut_run, is_compressed, whole_file


@dataclass(frozen=True, slots=True)
class TfrecordSource:
    """TFRecord files and datasets, relative to the folder `base`.

    `records` is "example" where they are Examples of one schema, or "opaque" where nobody looks into them. `split` is
    where records of foreign files go. With `shard_size` files are cut where shards of that size will end; without it
    they are read whole. `in_turn` keeps the order of `paths`; else files are sorted by their paths.
    """

    paths: tuple[str, ...]
    base: str
    records: Literal["example", "opaque"] = "example"
    split: str | None = None
    default_split: str = "train"
    shard_size: int | None = None
    in_turn: bool = False
    record_bytes: int = RECORD_BYTES_LIMIT

    def list_files(self) -> Listing:
        """Return the files to read.

        Raises:
            InputError: a path matches nothing, or a file is named twice.
            DamageError: a dataset's manifest is damaged.
        """
        inputs = self._inputs()
        entries = tuple(file.entry for file in inputs.files)
        return Listing("tfrecord", entries, len(entries), sum(e.bytes for e in entries), inputs.skipped)

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        """Return the schema that all inputs have, and the ranges of their files.

        Raises:
            SchemaError: two inputs differ in schema or labels.
            SourceError: a foreign file is damaged, so that its schema cannot be told.
        """
        inputs = self._inputs()
        if tuple(file.entry for file in inputs.files) != listing.entries:
            raise InputError("the input files changed while they were listed; run again")
        foreign = [file for file in inputs.files if file.dataset is None]
        observed: dict[bytes, Observation] = {}
        labels: Labels = {}
        if self._is_opaque(inputs):
            schema = Schema(())
        else:
            known = agree_on_schema(inputs.datasets) if inputs.datasets else None
            labels = agree_on_labels(inputs.datasets)
            found = run(self._observe, foreign)
            observed = {file.entry.path: one for file, one in zip(foreign, found, strict=True)}
            name = inputs.datasets[0].name if inputs.datasets else "these files"
            schema = agree_with_files(name, known, found)
        pieces, groups = self._cut(inputs, observed)
        splits = tuple(sorted({piece.split for piece in pieces}))
        return Survey(
            Frozen(schema, splits, labels, opaque=self._is_opaque(inputs)),
            (),
            tuple(pieces),
            tuple(self._warnings(inputs, labels)),
            _split_rows(pieces),
            groups if self.shard_size is not None else None,
        )

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        """Yield the records of a task, framed as they stand; damaged ones are rejects.

        Raises:
            SourceError: the framing is damaged, so that what follows cannot be found, or the file changed.
        """
        ordinal = 0
        for piece in task.pieces:
            assert isinstance(piece, RecordsPiece)
            check_stamp(piece.path, piece.name, piece.stamp)
            for rows in PieceReader(piece, frozen, self.record_bytes).read(task.ordinal, ordinal):
                yield rows
                ordinal += 1
            check_stamp(piece.path, piece.name, piece.stamp)

    def _inputs(self) -> Inputs:
        inputs = find_inputs(self.paths, self.base)
        if not self.in_turn:
            inputs.files.sort(key=lambda file: file.entry.path)
        return inputs

    def _is_opaque(self, inputs: Inputs) -> bool:
        if self.records == "opaque":
            return True
        nobody_looked = [dataset for dataset in inputs.datasets if dataset.manifest.schema is None]
        return bool(nobody_looked) and all(
            file.dataset is not None and inputs.datasets[file.dataset].manifest.schema is None for file in inputs.files
        )

    def _observe(self, file: InputFile) -> Observation:
        """Read a foreign file for its schema; records with damaged data are left to the second reading."""
        seen = Observation(file.entry.name)
        try:
            for run in read_record_batches(file.entry.path, record_bytes_limit=self.record_bytes, on_damage=pass_over):
                payloads = run.payloads
                if run.damaged:
                    payloads = payloads.take(rows_without(len(run), run.damaged))
                    seen.bad += len(run.damaged)
                seen.add(payloads)
        except InputError as error:
            raise SourceError(file.entry.name, str(error)) from error
        return seen

    def _split_of(self, file: InputFile) -> str:
        return file.split or self.split or split_in_name(file.entry.path) or self.default_split

    def _cut(self, inputs: Inputs, observed: dict[bytes, Observation]) -> tuple[list[RecordsPiece], tuple[range, ...]]:
        """Return the pieces, split by split, and which of them make a task."""
        opaque = self._is_opaque(inputs)
        numbered = [(self._split_of(file), index, file) for index, file in enumerate(inputs.files) if file.entry.bytes]
        numbered.sort(key=lambda item: item[0])
        told: set[int] = set()
        pieces: list[RecordsPiece] = []
        tasks: list[range] = []
        for (_, compressed), group in groupby(numbered, key=lambda item: (item[0], is_compressed(item[2].entry))):
            whole: list[RecordsPiece] = []
            for split, index, file in group:
                piece = whole_file(file.entry, index, split, file.records, compressed=compressed)
                seen = observed.get(file.entry.path)
                if seen is not None and (inputs.datasets or seen.bad):
                    piece = replace(piece, check=True)
                if file.dataset is not None and file.dataset not in told and not opaque:
                    told.add(file.dataset)
                    piece = replace(piece, narrowed=inputs.datasets[file.dataset].manifest.narrowed)
                whole.append(piece)
            for members in cut_run(whole, None if compressed else self.shard_size):
                tasks.append(range(len(pieces), len(pieces) + len(members)))
                pieces += members
        return pieces, tuple(tasks)

    def _warnings(self, inputs: Inputs, labels: Labels) -> Iterator[str]:
        foreign = [file.entry.name for file in inputs.files if file.dataset is None]
        if foreign:
            more = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
            yield (
                f"{foreign[0]}{more}: no manifest says how many records there are, so that a file which was cut "
                f"between two records cannot be told from a whole one"
            )
        if foreign and labels:
            yield f"{', '.join(sorted(labels))}: the numbers in foreign files are taken for the labels of the datasets"


def _split_rows(pieces: Sequence[RecordsPiece]) -> dict[str, int]:
    """Return the records of each split, where all are known; else their bytes, which say as much of their shares."""
    known = all(piece.rows is not None for piece in pieces)
    rows: dict[str, int] = {}
    for piece in pieces:
        rows[piece.split] = rows.get(piece.split, 0) + ((piece.rows or 0) if known else (piece.output_bytes or 0))
    return rows
