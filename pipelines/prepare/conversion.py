"""`Conversion`: what is read, what happens to its rows, what is written; and its plan.

    source = CsvSource(CsvInput(paths=["a.csv"]), Settings(""))
    Conversion(name="sales", source=source, output=OutputConfig(path="/out/sales"))

`conversion_of` makes one of a config. Everything behind it has this value, and never the config.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from ...transforms.dataset.stage.spec import NO_FINGERPRINT, AppendTo, DatasetSpec, EntryInfo
from ...transforms.dataset.stage.spill import Shuffle
from ...transforms.dataset.storage.manifest_files import list_generations
from ...transforms.errors import TargetError, UsageError
from ...transforms.format.batches.rows import Block, Rows
from ...transforms.format.examples.encode_rows import RowEncoder
from ...transforms.format.manifest.naming import is_split_name
from ...transforms.format.splits.by_row import ColumnSplits, FolderSplits, HashSplits, TimeSplits, settling
from ...transforms.format.splits.exact import ExactKeySplits, ExactSplits
from ...transforms.format.splits.splitter import MOST_SPLITS, OneSplit, Splitter
from ...transforms.format.wording.printable import format_size, nearest_name, printable, printable_path
from ...transforms.inputs.contract.selection import refuse_columns
from ...transforms.inputs.contract.source import Frozen, Listing, Source, SourceEntry, Survey, Traits
from ...transforms.inputs.contract.tasks import Plan, make_plan
from ...transforms.inputs.files.file_names import FORMATS
from ...transforms.inputs.files.open_file import is_object
from ...transforms.pictures.facts import Check
from ...transforms.recipe.steps.label import told_by_flags
from ...transforms.recipe.steps.pictures import ENCODED
from ...transforms.recognise.beside.class_names import ClassNames
from ...transforms.recognise.beside.tables import told_by_paths
from ...transforms.recognise.rules import told_by_column
from ...transforms.sources.registry.options import Options
from ...transforms.sources.registry.settings import Limits
from ...transforms.stores.store_url import is_store_url
from ..config.model import OutputConfig, SplitConfig
from ..config.runners import AnyRunner, LocalRunner
from ..workers.worker_processes import WorkerProcesses
from .known_inputs import in_part, shared_warnings, with_readable_lists
from .prepared import Prepared
from .staged_plan import Fingerprints, ListedSource, find_stopped, mark_of

if TYPE_CHECKING:
    from ...transforms.format.batches.observers import Observer
    from ...transforms.observers.checks import Duplicates, Leaks
    from ...transforms.observers.figures import Level


_GZIP_RATIO: Final = 4
"""Bytes of records for one of a shard: only how many buckets a shuffle has depends on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What a run does: frozen, and pickled as it is.

    name               the dataset's
    source             what is read, with the steps that rows go through
    output             where shards go, and of which size and kind
    input              the options of the format; None for data that are given in Python
    base               the folder that the paths of `input` are relative to
    split              the rule of splits; None where rows have the split of the source, or of `output`
    wanted_split       the split of `output`, if the user names it
    split_of_dataset   the rule is the dataset's, for rows to which their source gives no split
    shuffle            the seed of the order of all records; None for the order of the source
    checks             checks of records, which are among the observers
    observers          all that sees the rows on their way
    limits             the largest values
    max_rejects        the most rows that may be rejected: a number, or a percentage
    statistics         what is counted of the values
    image              the codec that changes pictures, as the manifest states it
    picture_check      how far pictures are checked
    named              the columns that the user declares
    declared           the features that these become, where they are no others
    by_content         no column holds a file, so that the content of a listed file is all of its rows
    names_pictures     a column holds the paths of pictures
    runner             what runs it
    detected           what was detected in the input, for the screen
    fingerprint        the digest of all that the bytes of the dataset depend on
    constants          in an append, the columns of one value, where they are not the dataset's
    remembered         the normal form of what makes the dataset, as its manifest states it
    held               in an append, what the dataset remembered as this was made
    """

    name: str
    source: Source
    output: OutputConfig
    input: Options | None = None
    base: str = ""
    split: SplitConfig | None = None
    wanted_split: str | None = None
    split_of_dataset: bool = False
    shuffle: int | None = None
    checks: tuple[Duplicates | Leaks, ...] = ()
    observers: tuple[Observer, ...] = ()
    limits: Limits = field(default_factory=Limits)
    max_rejects: int | str = 0
    statistics: Level | None = None
    image: Mapping[str, Any] = field(default_factory=dict)
    picture_check: Check = "structure"
    named: frozenset[str] = frozenset()
    declared: frozenset[str] = frozenset()
    by_content: bool = True
    names_pictures: bool = False
    runner: AnyRunner = field(default_factory=LocalRunner)
    detected: tuple[str, ...] = ()
    fingerprint: str = NO_FINGERPRINT
    constants: str | None = None
    remembered: Mapping[str, Any] = field(default_factory=dict)
    held: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        recipe, output = getattr(self.source, "recipe", None), self.output
        steps = [type(step).__name__ for step in recipe.steps] if recipe is not None else []
        read = self.source if recipe is None else getattr(self.source, "source", self.source)
        lines = {
            "dataset": f"{self.name} in {printable_path(output.path)}",
            "source": printable(repr(read)),
            "steps": ", ".join(steps) or "none",
            "observers": ", ".join(one.name for one in self.observers) or "none",
            "split": output.split if self.split is None else printable(self.split.stated),
            "order": output.order if self.shuffle is None else f"shuffled with seed {self.shuffle}",
            "shards": f"{format_size(output.shard_size)}, compression {output.compression}, {output.shard_name}",
            "limits": ", ".join(f"{name} {value}" for name, value in vars(self.limits).items()),
            "rejects": f"at most {self.max_rejects}",
            "runner": self.runner.name,
        }
        return "\n".join(f"{name:9}  {value}" for name, value in lines.items())

    @property
    def reading(self) -> str:
        """What staged work depends on beside the fingerprint: how the source is read, limits and observers."""
        return repr((self.source, astuple(self.limits), self.observers))

    def knows_by_content(self, traits: Traits) -> bool:
        """Return whether an append knows a file by its content, whatever its path."""
        pictures = self.names_pictures if traits.names_pictures is None else traits.names_pictures
        return traits.in_files and self.by_content and not pictures

    def encoder_of(self, frozen: Frozen) -> RowEncoder:
        """Return the encoder of what the source froze.

        Raises:
            UsageError: the rule splits what the source's folders split already.
            SchemaError: the column that decides the split is not there, or none that can.
        """
        self._refuse_check_of_nothing(frozen)
        if self.split is not None and self.split.of is None and frozen.splits and not self.split_of_dataset:
            raise UsageError(f"split: the source is in splits already ({', '.join(frozen.splits)}); leave split out")
        for check in self.checks:
            check.check(frozen.schema)
        of_format = None if self.input is None else FORMATS[self.input.format].load()
        return RowEncoder(
            frozen.schema,
            self._splitter_of(frozen),
            splits_by_code=frozen.splits,
            record_bytes_limit=self.limits.record_bytes,
            field_bytes_limit=self.limits.field_bytes if of_format is None else of_format.field_bytes(self.limits),
            observers=self.observers,
        )

    def spec_of(
        self,
        plan: Plan,
        prints: Fingerprints,
        run_id: str,
        encoder: RowEncoder,
        *,
        operation: Literal["create", "merge"] = "create",
        append_to: AppendTo | None = None,
    ) -> DatasetSpec:
        listing, frozen, output, expected = plan.listing, plan.survey.frozen, self.output, plan.expected_rows()
        shuffle = self._shuffle_of(plan)
        return DatasetSpec(
            path=output.path,
            name=self.name,
            shard_size=output.shard_size,
            compression=output.compression,
            order="shuffled" if shuffle is not None else output.order,
            shard_name=output.shard_name,
            sidecars=output.sidecar_groups,
            if_exists=output.if_exists,
            max_rejects=self.max_rejects,
            schema=None if frozen.opaque else frozen.schema,
            labels=frozen.labels,
            columns=frozen.columns,
            tasks=len(plan.tasks),
            source_format=listing.format,
            source_entries=tuple(
                EntryInfo(entry.name, entry.bytes, _held_as(entry, index, plan), entry.files, expected.get(index, 0))
                for index, entry in enumerate(listing.entries)
            ),
            source_files=listing.files,
            source_bytes=listing.bytes,
            skipped=listing.skipped,
            carries=listing.datasets,
            config_fingerprint=prints.config,
            source_fingerprint=prints.listing,
            run_id=run_id,
            runner=self.runner.name,
            append_to=append_to,
            operation=operation,
            observers=self.observers,
            image=dict(self.image),
            most_splits=self._most_splits,
            settling=settling(encoder.split),
            shuffle=shuffle,
            statistics=None if frozen.opaque else self.statistics,
            conversion=dict(self.remembered) if append_to else {**recognised(plan), **self.remembered},
        )

    def joined_splits(self, frozen: Frozen) -> tuple[str, ...]:
        """Return the splits of the source to which records are added that are cut out of another, `split.of`."""
        rule = self.split
        if rule is None or rule.of is None:
            return ()
        return tuple(name for name in rule.named if name in frozen.splits and name != rule.of)

    @property
    def _most_splits(self) -> int | None:
        """How many splits the values of a column may name, None where they name none."""
        rule = self.split
        return MOST_SPLITS if rule is not None and rule.column is not None and rule.names is None else None

    def _shuffle_of(self, plan: Plan) -> Shuffle | None:
        """Return how all records are shuffled, None where they keep the order in which they are read.

        A run that resumes another must have its buckets: they follow from the estimate, which is staged with the plan.
        """
        gzip = _GZIP_RATIO if self.output.compression == "gzip" else 1
        return None if self.shuffle is None else Shuffle.of(self.shuffle, plan.estimate.bytes * gzip)

    def _refuse_check_of_nothing(self, frozen: Frozen) -> None:
        """Refuse to check pictures where there are none, or only in records that are copied as they are."""
        form = None if self.input is None else self.input.format
        if self.picture_check == "structure" or form == "images":
            return
        copied = form == "tfrecord"
        if copied or not any(feature.name.endswith(f"/{ENCODED}") for feature in frozen.schema):
            why = "existing records are copied as they are" if copied else "there are no pictures"
            raise UsageError(f"input.check is {self.picture_check}, and {why}; leave the key out")

    def _splitter_of(self, frozen: Frozen) -> Splitter:
        """Return what says which split a row goes to.

        Raises:
            UsageError: the folder that is to be cut is not there.
        """
        rule = self.split
        if rule is None:
            return OneSplit(self.output.split)
        if rule.of is None:
            return _splitter(rule, frozen)
        if frozen.opaque or rule.of not in frozen.splits:
            no = "the source has no folders that are splits"
            hint = nearest_name(rule.of, frozen.splits) if frozen.splits else no
            raise UsageError(f'split.of: "{printable(rule.of)}" is no folder that is a split; {hint}')
        return FolderSplits(_splitter(rule, frozen), rule.of)


def recognised(plan: Plan) -> dict[str, Any]:
    """Return how rows got their splits by their files, as a manifest remembers it: nothing where these showed none."""
    found = plan.listing.recognised
    rule = plan.survey.rule if found.rule == "none" else found.rule
    return {"recognised": {"rule": rule} | ({"arguments": found.arguments} if found.arguments else {})} if rule else {}


def _splitter(rule: SplitConfig, frozen: Frozen) -> Splitter:
    if rule.column is not None:
        classes = frozen.labels.get(rule.column)
        return ColumnSplits(rule.column, _named(rule.names, classes))
    if rule.before is not None:
        bounds = [(name, text) for name, text in rule.before.items() if name not in ("column", "rest")]
        return TimeSplits(rule.before["column"], tuple(bounds), rule.before.get("rest"))
    if rule.by == "hash":
        return HashSplits.by_fraction(rule.shares(), rule.key, word=0 if rule.of is None else 1)
    if rule.key is not None:
        return ExactKeySplits.by_fraction(rule.shares(), rule.key)
    return ExactSplits.by_fraction(rule.shares(), rule.stratify)


def _named(names: Mapping[str, str] | None, classes: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """Return the splits of values; those of a label, whose records hold numbers, are named by their classes."""
    if classes is None:
        return tuple((names or {}).items())
    splits = {name: name for name in classes if is_split_name(name)} if names is None else names
    found = ((str(number), splits.get(name, splits.get(str(number)))) for number, name in enumerate(classes))
    return tuple((number, split) for number, split in found if split is not None)


def _held_as(entry: SourceEntry, index: int, plan: Plan) -> str:
    """Return the fingerprint by which a later append knows a file: one that was read in part is another file."""
    limit = plan.survey.limit
    if limit is None or index not in limit.partial:
        return entry.fingerprint
    return in_part(entry.fingerprint)


# Make a conversion ready to run: list and survey the source, freeze its schema, cut it into tasks. No Beam here.


def prepare(
    conversion: Conversion, workers: WorkerProcesses, operation: Literal["create", "merge"] = "create"
) -> Prepared:
    """List and survey the source, freeze its schema and cut it into tasks; nothing is written.

    `workers` help with planning: processes where the input is large, which are started as soon as that is known. Where
    a run that stopped has done all tasks, its survey is taken over.

    Raises:
        UsageError: a rule or a check does not go with the source, or a column has no feature.
        TargetError: the output is the folder of the source.
        SourceError: a file is corrupt as a whole, or has changed since a run of the same command stopped.
    """
    source, output = conversion.source, conversion.output
    listing, lost = with_readable_lists(source.list_files())
    _refuse_source_folder(conversion, listing)
    prints = Fingerprints.of(conversion.fingerprint, listing)
    mark = mark_of(prints, conversion.reading, operation)
    listed = ListedSource.of(listing, prints.images)
    stopped = find_stopped(output.path, mark, listing, listed, resume=conversion.runner.resume)
    plan = stopped.finished(mark, listing)
    if plan is not None:
        encoder = conversion.encoder_of(plan.survey.frozen)
    else:
        survey = source.survey(listing, workers.planning(listing.bytes))
        detected = tuple(dict.fromkeys((*conversion.detected, *survey.detected)))
        warnings = (*survey.warnings, *lost, *shared_warnings(listing.datasets))
        survey = replace(survey, detected=detected, warnings=warnings)
        refuse_columns("", len(survey.frozen.schema), conversion.limits.columns)
        encoder = conversion.encoder_of(survey.frozen)
        plan = _plan(conversion, listing, survey, encoder)
    spec = conversion.spec_of(plan, prints, run_id_of(output.path, prints), encoder, operation=operation)
    read_by = plan.survey.source or source
    return Prepared(read_by, plan, encoder, spec, mark, listed, stopped, conversion.joined_splits(plan.survey.frozen))


def _plan(conversion: Conversion, listing: Listing, survey: Survey, encoder: RowEncoder) -> Plan:
    """Plan, and say what columns of sampled rows show: files that they name, names of classes, flags, splits."""
    labels = survey.frozen.labels
    named = {name for name, classes in labels.items() if not all(one.isdecimal() for one in classes)}
    told, names = dict[str, None](), ClassNames(listing, named)
    rules: list[Callable[[Rows], Sequence[str]]] = []
    if conversion.input is None or conversion.input.detect is None:
        rules = [
            lambda rows: told_by_paths(rows.batch, listing, rows.entry_of(0)),
            lambda rows: names.told(rows.batch),
            lambda rows: told_by_flags(rows.batch),
        ]
        if conversion.split is None and not survey.frozen.splits:
            rules.append(lambda rows: told_by_column(rows.batch))

    def encode(rows: Rows) -> Block:
        for rule in [*rules] if rows.batch.num_rows else ():
            if lines := rule(rows):
                told.update(dict.fromkeys(lines))
                rules.remove(rule)
        return encoder.encode(rows)

    output = conversion.output
    plan = make_plan(conversion.source, listing, survey, output.shard_size, encode, output.compression)
    return replace(plan, survey=replace(plan.survey, detected=(*plan.survey.detected, *told))) if told else plan


def _refuse_source_folder(conversion: Conversion, listing: Listing) -> None:
    """Refuse to begin a dataset in a folder that holds files of its source, where one would be taken for the other."""
    path, read = conversion.output.path, conversion.input
    if listing.traits.whole_records or not listing.traits.in_files:
        return
    target = _real(path, "")
    named = {_real(name, conversion.base) for name in read.paths} if read is not None else set()
    for entry in listing.entries:
        within = target in named or target in (entry.path.rstrip(b"/"), os.path.dirname(entry.path))
        if within and not list_generations(path):
            raise TargetError(
                f"{printable_path(path)} holds the source ({entry.name}), and a dataset needs a folder of its own: "
                f"-o {printable_path(path)}-tfrecords"
            )


def _real(path: str, base: str) -> bytes:
    raw = os.fsencode(path)
    return raw.rstrip(b"/") if is_object(raw) else os.path.abspath(os.path.join(os.fsencode(base), raw))


def run_id_of(path: str, prints: Fingerprints) -> str:
    """Return the name of a conversion's staging folder: the same of the same command, where a folder can be held."""
    if is_store_url(path):
        return uuid.uuid4().hex[:16]
    return hashlib.sha256(f"{prints.config}\n{prints.listing}\n".encode()).hexdigest()[:16]
