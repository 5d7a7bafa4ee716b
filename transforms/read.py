"""`ReadRows`: pick the source of some paths, and read it as batches of rows, task after task."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam

from .elements import ELEMENTS, SourceInfo
from .errors import InputError
from .format.batches.rows import Rows, TaskEnd
from .format.examples.encode_rows import RowEncoder
from .format.schema.schema import Schema
from .format.wording.printable import DEFAULT_SHARD_SIZE, parse_size, printable_path
from .inputs.contract.selection import Call
from .inputs.contract.source import Frozen, Source, Task, map_in_turn
from .inputs.contract.tasks import Plan, TaskFile, by_file, make_plan, read_task
from .inputs.files.file_names import FORMATS
from .recipe.function import Mapped, steps_of
from .recipe.source import with_steps
from .recipe.steps.boxes import BoxesByType
from .recipe.steps.label import ClassesOfFiles
from .recipe.steps.pictures import ExportedPictures
from .recognise.rules import Look
from .sources.registry.settings import Settings


@dataclass(eq=False)
class ReadRows(beam.PTransform):
    """Read a source task by task: `Rows` batches, each task closed by its `TaskEnd`.

    `source` is a path, glob or folder, a list of them (their format is known by the suffixes), or a `Source` with
    options of its own. It is listed and surveyed when the transform is made, so that `info`, which the steps after it
    need, is known before the pipeline is; `shard_size` should be that of `WriteShards`, since tasks are cut so that
    they fill whole shards.

    The output stays in one fused chain with what follows, up to the stage step of `WriteShards`: a batch is never
    stored between stages. A corrupt file is reported in the `TaskEnd`, and refused by `WriteShards` before anything is
    committed; it is never raised here, where an engine would only try again. `plan` is what `make_plan` returned, where
    that was called before. `map` is a function over record batches, a step of a recipe, or a list of such: what
    `beam.Map` would be behind this, but that the schema of its result is known before the pipeline runs, and that the
    rows that it drops are counted.

        read = ReadRows("data/*.parquet")
        pipeline | read | EncodeExamples(read.info) | WriteShards("out/", info=read.info)

    Raises:
        InputError: a path matches nothing, or its format is unclear (when made).
        SchemaError: a column has no feature, or a step does not fit (when made).
        UsageError: `map` is something else (when made).
        SourceError: a file is corrupt as a whole (when made, if the survey finds it).
    """

    source: Source | str | Sequence[str]
    plan: Plan | None = None
    shard_size: int | str = DEFAULT_SHARD_SIZE
    map: Mapped | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__init__()
        if isinstance(self.source, str):
            self.source = pick_source([self.source], records=True)
        elif isinstance(self.source, Sequence):
            self.source = pick_source(self.source, records=True)
        self.source = with_steps(self.source, steps_of(self.map))
        if self.plan is None:
            listing = self.source.list_files()
            survey = self.source.survey(listing, map_in_turn)
            encoder = RowEncoder(survey.frozen.schema, splits_by_code=survey.frozen.splits)
            self.plan = make_plan(self.source, listing, survey, parse_size(self.shard_size), encoder.encode)
        self.source = self.plan.survey.source or self.source
        self._tasks = self.plan.tasks
        self._frozen = self.plan.survey.frozen

    @property
    def info(self) -> SourceInfo:
        """What `EncodeExamples` and `WriteShards` must know: schema, labels, splits, and the number of tasks."""
        frozen = self._frozen
        schema = None if frozen.opaque else frozen.schema
        return SourceInfo(schema, frozen.labels, frozen.splits, len(self._tasks), frozen.columns)

    @property
    def schema(self) -> Schema:
        return self._frozen.schema

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The class names that the source found, by feature."""
        return self._frozen.labels

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that the source's folders name."""
        return self._frozen.splits

    def expand(self, pbegin: beam.pvalue.PBegin) -> beam.PCollection:
        files = by_file(self._tasks)
        if files:
            tasks = (
                pbegin
                | "List files of tasks" >> beam.Create(files, reshuffle=False)
                # TaskFile
                | "List tasks" >> beam.FlatMap(TaskFile.tasks)
            )
        else:
            tasks = pbegin | "List tasks" >> beam.Create(self._tasks, reshuffle=False)
        return (
            tasks
            # Task
            | "Spread tasks" >> beam.Reshuffle()
            | "Read rows" >> beam.ParDo(_ReadTaskFn(self.source, self._frozen)).with_output_types(ELEMENTS)
            # Rows, Rows, ..., TaskEnd
        )


@dataclass
class _ReadTaskFn(beam.DoFn):
    source: Source
    frozen: Frozen = field(repr=False)

    def process(self, task: Task) -> Iterator[Rows | TaskEnd]:
        yield from read_task(self.source, task, self.frozen)


def pick_source(paths: Sequence[str], base: str | None = None, *, records: bool = False) -> Source:
    """Return the source that reads these files, globs or folders: by their suffixes, and CSV by its delimiter.

    `base` is the folder that relative paths start from, and that names are shown relative to: the working folder. With
    `records` it may be a source of whole records. Raises `InputError` where a path matches nothing, the formats differ,
    or a format is unknown or has a source elsewhere.
    """
    folder = os.getcwd() if base is None else base
    look = Look(paths, folder)
    kind = look.detect()
    found = FORMATS[kind].load()
    if not (found.has_rows or records):
        others = ", ".join(name for name, entry in FORMATS.items() if entry.load().has_rows)
        raise InputError(f"{kind} files have no rows to read; the formats are {others}")
    given: dict[str, Any] = {"format": kind, "paths": list(paths)}
    notes: tuple[str, ...] = ()
    if found.detected_option is not None:
        shown = found.detect(given, paths, folder, Call())
        given[found.detected_option] = shown.value
        notes = (shown.evidence,) if shown.evidence else ()
    if look.meaning_of(given) is not None:
        raise InputError(
            f"{printable_path(paths[0])}: a table beside the pictures names them: `convert` reads it, and this source "
            f"does not; read the folders alone: ImageSource(ImagesInput(paths={list(paths)!r}), Settings({folder!r}))"
        )
    options = found.options.model_construct(**given)  # as they are: a path need not be UTF-8
    source = found.source(options, Settings(folder, detected=notes))
    by_type = (ClassesOfFiles(), ExportedPictures(), BoxesByType(form="xywh"))
    return with_steps(source, found.steps(options), by_type=by_type) if found.has_rows else source
