"""The results of commands as plain data: `summary_screen` shows them to people, `--json` gives them to programs.

convert            -> Summary      (what was written, what was rejected, and why columns are what they are)
convert --dry-run  -> PlanReport   (the same, estimated, before a row is converted)
too many rejects   -> TooManyRejects with the `rejects_text` of `reject_groups` as its text
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from ...transforms.format.batches.observers import Observer
from ...transforms.format.batches.rejects import may_be_left_out
from ...transforms.format.batches.summaries import PICTURES
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.manifest.naming import generation_file
from ...transforms.format.schema.schema import Choice, Schema
from ...transforms.format.wording.hints import Add, Set
from ...transforms.format.wording.printable import counted, format_duration, format_size, printable, printable_path
from ...transforms.observers.tally import STATISTICS
from .reject_groups import RejectGroup, SampledRejects

if TYPE_CHECKING:
    from ...transforms.inputs.contract.source import Traits


# How the records of a run are split, ordered and checked as a whole, in words; and what an append leaves unchecked.


_BEYOND_CHANCE: Final = 6.0
"""Standard deviations: by chance one split of 500 million is that far from its fraction."""

_FAR: Final = 0.1
"""Of groups, which may be large: so much of all records."""


FOUND_BY: Final = {
    "folders": "names of folders",
    "roots": "names of folders",
    "names": "names that tools write",
    "readme": "README.md",
    "lists": "lists of pictures",
    "tfds": "dataset_info.json",
    "words": "words in names",
    "globs": "input.splits",
    "off": "none (input.splits)",
    "unused": "not used",
}
"""How files got their splits, by the rule that a dataset remembers."""


def rule_text(rule: Mapping[str, Any]) -> str:
    """Return how rows were cut into splits, by the section `split` of a config or a manifest.

    >>> rule_text({"by": "exact", "stratify": "kind", "fractions": {"train": 0.8, "val": 0.2}})
    'exactly, in each class of kind: train 0.8, val 0.2'
    >>> rule_text({"before": {"column": "day", "train": "2024-02-01", "rest": "val"}})
    'by day: train before 2024-02-01, val the rest'
    """
    if "column" in rule:
        text = f"by the values of {printable(rule['column'])}"
        parts = [f"{printable(value)} is {split}" for value, split in rule.get("names", {}).items()]
    elif "before" in rule:
        bounds = dict(rule["before"])
        text, rest = f"by {printable(bounds.pop('column'))}", bounds.pop("rest", None)
        parts = [f"{split} before {printable(bound)}" for split, bound in bounds.items()]
        parts += [f"{rest} the rest"] if rest is not None else []
    else:
        text = "exactly" if rule.get("by") == "exact" else "by a hash"
        text += f", rows of one {printable(rule['key'])} together" if "key" in rule else ""
        text += f", in each class of {printable(rule['stratify'])}" if "stratify" in rule else ""
        parts = [f"{split} {fraction}" for split, fraction in rule.get("fractions", {}).items()]
        parts += [f"{rule['folds']} folds"] if "folds" in rule else []
    return f"{text}{': ' if parts else ''}{', '.join(parts)}{'; only of ' + rule['of'] if 'of' in rule else ''}"


def shares_of(manifest: Manifest) -> dict[str, float]:
    """Return the part of all records that each split has; nothing of a dataset without records."""
    total = sum(split.records for split in manifest.splits.values())
    return {name: split.records / total for name, split in manifest.splits.items()} if total else {}


def added_records(manifest: Manifest, names: Iterable[str]) -> dict[str, int]:
    found = dict.fromkeys(names, 0)
    for name in found.keys() & manifest.splits.keys():
        shards = manifest.splits[name].shards
        found[name] = sum(shard.records for shard in shards if shard.generation == manifest.generation)
    return found


def share_warnings(
    asked: Mapping[str, float], found: Mapping[str, int], key: str | None, *, classes: bool = True
) -> list[str]:
    """Return which split got nothing by a hash, or what no chance explains; of groups with a key, what is far off.

    `classes` says that the values of the key may be classes.
    """
    total = sum(found.values())
    expected = {name: total * share for name, share in asked.items()}
    counted = f"to split by counts: {Set('split.by', 'exact')}"
    why = "records that a hash has split before, and equal ones, are not split evenly by a hash"
    if key is not None:
        why = f"rows of one {printable(key)} are in one split"
    if key is not None and classes:
        exact = Add(Set("split.by", "exact"), Set("split.stratify", key))
        counted += f"; if its values are classes that every split needs, not --split-key: {exact}"
    empty = [name for name, count in expected.items() if count >= 1 and not found[name]]
    uneven = [name for name, share in asked.items() if _is_far(found[name], total, share, grouped=key is not None)]
    for name in (empty or uneven)[:1]:
        got = f"{found[name]:,} of {total:,} records (about {round(expected[name]):,} expected)"
        return [f"split {name} has {got}{f': {why}' if uneven or key is not None else ''}; {counted}"]
    return []


def _is_far(count: int, total: int, share: float, *, grouped: bool) -> bool:
    chance = _BEYOND_CHANCE * (1 + sqrt(total * share * (1 - share)))
    return abs(count - total * share) > max(chance, total * _FAR if grouped else 0)


def shuffle_note(*, levels: int, in_append: bool) -> str:
    """Return the note on records that are in a random order; `levels` of a run that is still to be made, else 0."""
    order = "records are in a random order"
    note = f"{order} within what is added, after those that were there" if in_append else f"{order} within each split"
    if not levels:
        return note
    spilled = "they are spilled to the staging folder first, which takes as many bytes again"
    twice = (
        ", and since they are more than 100 GB each task of the second pass spills its part once more: 2.1 times in all"
    )
    return f"{note}; {spilled}{twice if levels > 1 else ''}"


def order_note(traits: Traits, order: str, tasks: int, shards: Sequence[int]) -> str:
    """Return the note on tasks that wrote full shards, so that what each had left over is in the last ones.

    `shards` are the shards of each split. With fewer shards than tasks all are made of left over rows, which follow
    the source; so does a single task.
    """
    if not traits.has_order or order != "task" or not 1 < tasks <= max(shards, default=0):
        return ""
    return (
        "rows follow the source within each shard, and the last shards hold rows from between the others; "
        f"to keep the order of the source throughout: {Add('--order', 'source')} (writes some bytes twice)"
    )


def planned_checks(observers: Sequence[Observer]) -> tuple[str, ...]:
    if all(one.name == STATISTICS for one in observers):
        return ()
    from ...transforms.observers.checks import Duplicates, Leaks

    texts = []
    for one in observers:
        if isinstance(one, Duplicates):
            over = f" over {_names(one.columns)}" if one.columns else ", compared as a whole,"
            texts.append(f"duplicate records{over} are {'left out' if one.action == 'drop' else 'reported'}")
        elif isinstance(one, Leaks):
            texts.append(f"values of {_names(one.columns)} that are in several splits are reported")
    return tuple(texts)


def unchecked_append(latest: Manifest, observers: Sequence[Observer]) -> tuple[str, ...]:
    before = latest.details.checks.get("duplicates", {})
    if before.get("action") != "drop" or any(one.name == "duplicates" for one in observers):
        return ()
    columns = [Set("checks.duplicates.columns", before["columns"])] if before["columns"] else []
    compare = Add(*columns, Set("checks.duplicates.action", "drop"))
    return (
        f"generation {latest.generation} left out duplicate records, and new records are not looked at for them; to "
        f"compare new records with each other, and with no earlier ones: {compare}",
    )


def _names(columns: Sequence[str]) -> str:
    return ", ".join(printable(name) for name in columns)


# The results.


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What a run found out, as a dry run does.

    unchanged        files that an append leaves out
    rejected_before  files that it leaves out since an earlier generation rejected them
    new_classes      the classes that it brings, with their numbers, by feature
    done_before      tasks that a stopped run had done, which are not done again
    detected         what was detected in the data, with its evidence
    remarks          facts for programs, too common for a screen
    order_note       says that rows do not follow the source throughout
    """

    choices: tuple[Choice, ...] = ()
    warnings: tuple[str, ...] = ()
    command: str = "convert"
    unchanged: tuple[Unchanged, ...] = ()
    rejected_before: tuple[Unchanged, ...] = ()
    new_classes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    done_before: int = 0
    detected: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    order_note: str = ""

    def _appended(self) -> dict[str, Any]:
        left = {"unchanged": self.unchanged, "rejected_before": self.rejected_before}
        return {
            "classes": {feature: dict(classes) for feature, classes in self.new_classes.items()},
            **{
                key: [
                    {"name": file.name, "generation": file.generation, "files": file.files}
                    | ({} if file.under is None else {"held_as": file.under})
                    for file in files
                ]
                for key, files in left.items()
            },
        }


@dataclass(frozen=True, slots=True, repr=False)
class Summary(RunReport):
    """What a conversion, or an append, did.

    path           the dataset's folder as the user wrote it, or absolute
    seconds        of the clock
    first_rejects  the first lines of the reject file, 20 at most, as they are there
    reject_groups  all rejects, by column and code
    nothing_to_do  a generation held the same source and config before; of an append, the dataset holds all files
    left_behind    bytes that earlier runs staged, and left
    listed         how many files an append found
    asked          the fraction of the records that each split was to get, where fractions were asked for
    class_counts   the records of each class in each split, by label; of no split where values are not counted
    """

    path: str
    manifest: Manifest
    seconds: float
    first_rejects: tuple[str, ...] = ()
    reject_groups: tuple[RejectGroup, ...] = ()
    nothing_to_do: bool = False
    left_behind: int = 0
    listed: int = 0
    asked: Mapping[str, float] = field(default_factory=dict)
    class_counts: Mapping[str, Mapping[str, Mapping[str, int]]] = field(default_factory=dict)

    def __repr__(self) -> str:
        counts = self.manifest.counts
        rejected = f", {counts.rejected:,} rejected" if counts.rejected else ""
        done = "nothing to do, " if self.nothing_to_do else ""
        size = f"{counted(counts.written, 'record')} in {counted(self.shards, 'shard')}, {format_size(self.bytes)}"
        where = f"{printable_path(self.path)}: {done}generation {self.manifest.generation}"
        return f"<Summary {where}, {size}{rejected}>"

    @property
    def bytes(self) -> int:
        return sum(shard.bytes for shard in self.manifest.own_shards)

    @property
    def shards(self) -> int:
        return len(self.manifest.own_shards)

    @property
    def fractions(self) -> dict[str, float]:
        """The fraction of the records that were written which each split got that was asked for one."""
        added = added_records(self.manifest, self.asked)
        total = sum(added.values())
        return {name: count / total for name, count in added.items()} if total else {}

    def to_json(self) -> dict[str, Any]:
        """Return the document that `convert --json` prints."""
        manifest = self.manifest
        return {
            "command": self.command,
            "path": self.path,
            "nothing_to_do": self.nothing_to_do,
            "generation": manifest.generation,
            **({"added": self._added()} if self.command == "append" else {}),
            "name": manifest.name,
            "counts": asdict(manifest.counts),
            "splits": {
                name: {
                    "records": split.records,
                    "bytes": split.bytes,
                    "shards": [{"path": s.path, "records": s.records, "bytes": s.bytes} for s in split.shards],
                }
                for name, split in manifest.splits.items()
            },
            "shares": shares_of(manifest),
            "classes": {
                feature: {
                    name: {split: counts.get(name, 0) for split, counts in self.class_counts.get(feature, {}).items()}
                    for name in names
                }
                for feature, names in manifest.labels.items()
            },
            **({"fractions": {"asked": dict(self.asked), "found": self.fractions}} if self.asked else {}),
            "rejects": {
                **asdict(manifest.rejects),
                "first": [json.loads(line) for line in self.first_rejects],
                "groups": [group.to_json() for group in self.reject_groups],
            },
            "schema": _schema_json(manifest.schema),
            "choices": [asdict(choice) for choice in self.choices],
            "narrowed": [{key.removesuffix("_"): value for key, value in asdict(e).items()} for e in manifest.narrowed],
            **({"checks": manifest.details.checks} if manifest.details.checks else {}),
            "skipped": dict(manifest.source.skipped),
            "sidecars": list(manifest.sidecars),
            "warnings": list(self.warnings),
            "detected": list(self.detected),
            "remarks": list(self.remarks),
            **({"done_before": self.done_before} if self.done_before else {}),
            **({"left_behind": self.left_behind} if self.left_behind else {}),
            **({"order_note": self.order_note} if self.order_note else {}),
            "seconds": round(self.seconds, 3),
        }

    def _added(self) -> dict[str, Any]:
        shards = () if self.nothing_to_do else self.manifest.own_shards
        return {
            "records": sum(shard.records for shard in shards),
            "bytes": sum(shard.bytes for shard in shards),
            "shards": [shard.path for shard in shards],
            **self._appended(),
        }


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job that was submitted, and runs by itself; its id is None where Beam was asked for the graph alone."""

    path: str
    name: str
    project: str
    region: str
    job_id: str | None

    @property
    def url(self) -> str:
        return f"https://console.cloud.google.com/dataflow/jobs/{self.region}/{self.job_id}?project={self.project}"

    @property
    def commands(self) -> dict[str, str]:
        """What one may do with the job, and the command for it."""
        where = f"{self.job_id} --region {self.region} --project {self.project}"
        return {"see it": f"gcloud dataflow jobs show {where}", "stop it": f"gcloud dataflow jobs cancel {where}"}

    def to_json(self) -> dict[str, Any]:
        """Return the document that `convert --no-wait --json` prints."""
        place = {"project": self.project, "region": self.region}
        return {"command": "convert", "path": self.path, "job": {"id": self.job_id, "name": self.name, **place}}


@dataclass(frozen=True, slots=True)
class SplitEstimate:
    """The expected contents of a split: `bytes` are those of its shards."""

    name: str
    records: int
    bytes: int
    shards: int


@dataclass(frozen=True, slots=True)
class PlanReport(RunReport):
    """The plan of a conversion; nothing was written.

    rows            of the source: counted if `rows_exact`, else estimated
    sampled         rows that were converted to estimate sizes; of these `sampled_rejects` will be rejected
    splits_sampled  `splits` are those of these rows, and others may have more
    checks          what will be checked
    forecast        how long the run would take, and how sure that is; None where all is done already
    """

    path: str
    name: str
    source_format: str
    files: int
    bytes: int
    schema: Schema
    tasks: int
    rows: int
    splits: tuple[SplitEstimate, ...]
    shard_size: int
    compression: str = "none"
    rows_exact: bool = False
    skipped: Mapping[str, int] = field(default_factory=dict)
    sampled: int = 0
    splits_sampled: bool = False
    sampled_rejects: SampledRejects = field(default_factory=SampledRejects)
    checks: tuple[str, ...] = ()
    forecast: Forecast | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the document that `convert --dry-run --json` prints."""
        return {
            "command": self.command,
            "dry_run": True,
            "path": self.path,
            "name": self.name,
            "source": {
                "format": self.source_format,
                "files": self.files,
                "bytes": self.bytes,
                "skipped": dict(self.skipped),
            },
            "rows": self.rows,
            "rows_exact": self.rows_exact,
            "tasks": self.tasks,
            **({"done_before": self.done_before} if self.done_before else {}),
            "shard_size": self.shard_size,
            "compression": self.compression,
            "splits": {s.name: {"records": s.records, "bytes": s.bytes, "shards": s.shards} for s in self.splits},
            **({"splits_sampled": True} if self.splits_sampled else {}),
            "schema": _schema_json(self.schema),
            "choices": [asdict(choice) for choice in self.choices],
            "warnings": list(self.warnings),
            "detected": list(self.detected),
            "remarks": list(self.remarks),
            **({"forecast": self.forecast.to_json()} if self.forecast is not None else {}),
            "sample": {"rows": self.sampled, "rejects": [group.to_json() for group in self.sampled_rejects.groups]},
            **({"order_note": self.order_note} if self.order_note else {}),
            **({"checks": list(self.checks)} if self.checks else {}),
            **(self._appended() if self.command == "append" else {}),
        }


@dataclass(frozen=True, slots=True)
class Counted:
    """The progress of a job according to its engine; `ending` is true from its cancellation until it has ended.

    `waiting` says what the job needs and does not have, and what to do about it.
    """

    records: int = 0
    bytes: int = 0
    ending: bool = False
    waiting: str = ""


Count: TypeAlias = Callable[[], Counted]
"""Asks an engine; `Counted` itself is one that says nothing."""


class Watch(Protocol):
    """Shows how a run gets on, from its staging folder and what the engine counts, while the context is open."""

    def __call__(
        self, staging: str, notes: Sequence[str] = (), count: Count | None = None
    ) -> AbstractContextManager[object]:
        """Report the notes; return the context in which the run writes below the folder `staging`."""


def oversize_warnings(manifest: Manifest) -> list[str]:
    return [
        f"split {name}: its largest record takes {format_size(split.unit_bytes)}, over the shard size: such records "
        "have shards of their own"
        for name, split in manifest.splits.items()
        if split.unit_bytes > manifest.shard_size
    ]


def picture_warnings(checks: Mapping[str, Mapping[str, Any]], *, sampled: bool = False) -> list[str]:
    check = checks.get(PICTURES)
    if check is None:
        return []
    count, first = check["records"], [text for example in check["examples"] for text in example["places"]]
    more = f" and {count - len(first):,} more" if count > len(first) else ""
    where, they = " in the sample" if sampled else "", "it" if count == 1 else "them"
    verb = "is" if count == 1 else "are"
    return [
        f"{counted(count, 'JPEG picture')}{where} {verb} damaged or padded, says libjpeg (input.check=strict rejects "
        f"{they}): {', '.join(first)}{more}"
    ]


def _schema_json(schema: Schema | None) -> list[dict[str, Any]] | None:
    return None if schema is None else schema.to_json()


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a sample of the rows says of the whole.

    rows            were converted, from so many `places`: a `share` of all, None where nobody knows how many there are
    cpu_seconds     of all processors
    seconds         of the clock; None where other machines work
    exact           all rows were sampled, and their bytes counted, which gzip compresses otherwise in a run
    splits_counted  each split has the records and bytes of the sample, which had all rows
    rejects         are expected of all rows, from `rejects_at_least` to `rejects_at_most`; the run allows `allowed`
    disk_bytes      are taken at most on the disk of the output, where `free_bytes` are free (None: unknown)
    warnings        of pictures in the sample
    """

    rows: int
    places: int
    share: float | None
    cpu_seconds: float
    seconds: float | None
    workers: int
    exact: bool
    splits_counted: bool
    rejects: int
    allowed: int
    disk_bytes: int
    free_bytes: int | None
    rejects_at_least: int = 0
    rejects_at_most: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        return self.rejects > self.allowed

    def to_json(self) -> dict[str, Any]:
        """Return the member `forecast` of what `--dry-run --json` prints."""
        shown = {key: round(one, 3) if isinstance(one, float) else one for key, one in asdict(self).items()}
        del shown["warnings"]  # they are among those of the plan
        return {**shown, "fails": self.fails}

    def lines(self, path: str) -> Iterator[str]:
        """Yield the lines for people; `path` is the dataset's folder."""
        what = "all rows" if self.share == 1 else f"{counted(self.rows, 'row')} from {counted(self.places, 'place')}"
        part = "" if self.share in (None, 1) else f", {_percent(self.share or 0)} of the source"
        if self.share is None:
            sure = "the number of rows is a guess by the size of the files, and so are the sizes"
        elif self.exact:
            sure = "sizes are exact" if self.splits_counted else "sizes are exact in all, and estimates for each split"
        else:
            sure = "sizes are estimates"
        yield f"Sample: {what}{part}; {sure}"
        cpu = f"{_time(self.cpu_seconds)} of CPU"
        if self.seconds is None:
            yield f"Time:   {cpu}, as measured here; how long that takes, the cluster decides"
        else:
            yield f"Time:   about {_time(self.seconds)} with {counted(self.workers, 'worker')}; {cpu}"
        if line := room_line(path, self.disk_bytes, self.free_bytes):
            yield f"Disk:   {line}"

    def reject_line(self) -> str:
        least, most = (self.rejects,) * 2 if self.share == 1 else (self.rejects_at_least, self.rejects_at_most)
        about = counted(self.rejects, "reject")
        if least < most:
            about = f"about {about} ({least:,} were seen; {most:,} at most, if the sample is like the rest)"
        about = f"Expected in all: {about}"
        if most <= self.allowed:
            return f"{about}; {self.allowed:,} are allowed"
        ends = "would" if least > self.allowed else "would probably" if self.fails else "may"
        # without a share nobody knows how many rows there are
        of_rows = (least, self.rows) if self.share is None else (most, round(self.rows / (self.share or 1)))
        fix = f"; to allow them: {Add('--max-rejects', str(most))}" if may_be_left_out(*of_rows) else ""
        return f"{about}, and max_rejects allows {self.allowed:,}: the run {ends} fail{fix}"


def room_line(path: str, needed: int, free: int | None) -> str:
    """Return that a disk has too little room for a dataset; nothing where it has enough, or nobody knows."""
    if free is None or free >= needed:
        return ""
    return f"too little room for {printable_path(path)}: {format_size(needed)} needed, {format_size(free)} free"


def _percent(share: float) -> str:
    """Return a share as people write it.

    >>> _percent(0.031), _percent(0.25), _percent(0.00004)
    ('3.1 %', '25 %', 'less than 0.1 %')
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{share * 100:.1f} %" if share < 0.1 else f"{share * 100:.0f} %"


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else format_duration(round(seconds))


_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Unchanged:
    """An input file, or the `files` of a folder of images, that a generation read, and that was left out.

    `rejected` says that the generation has no record of it. `under` is the path under which the generation read a file
    of equal content, None where it is the file's own.
    """

    name: str
    generation: int
    files: int = 1
    rejected: bool = False
    under: str | None = None


def unchanged_line(unchanged: Sequence[Unchanged]) -> str:
    generations = sorted({file.generation for file in unchanged})
    by = f"generation{'s' * (len(generations) > 1)} {', '.join(map(str, generations))}"
    files = sum(file.files for file in unchanged)
    count = "1 file held already" if files == 1 else f"{files:,} files held already"
    return f"{count} ({by}): {names_of(sorted({_named(file) for file in unchanged}))}"


def _named(file: Unchanged) -> str:
    more = [f"{file.files:,} files"] if file.files > 1 else []
    more += [f"held as {file.under}"] if file.under is not None else []
    return f"{file.name} ({', '.join(more)})" if more else file.name


def rejected_line(rejected: Sequence[Unchanged], where: str) -> str:
    """Return in words what was left out since it was rejected before, and the reject files; `where` is the dataset."""
    files = sum(file.files for file in rejected)
    count = "1 file was" if files == 1 else f"{files:,} files were"
    lists = sorted({file.generation for file in rejected})
    see = names_of([f"{where}/{generation_file('rejects', generation, 'jsonl')}" for generation in lists])
    again = "it is replaced" if files == 1 else "they are replaced"
    return f"{count} rejected before, unchanged, and not read again until {again}: see {see}"


def names_of(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED:,} more"
