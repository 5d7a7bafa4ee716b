"""The `plan.json` of a run, with which the same command resumes it, and what stopped runs have left.

totals, tasks     what progress is measured against; what each task reads
mark              what must be the same for staged work to be of use: see `RunMark`
listed            the source as it was listed: what has changed since, and is refused by name
survey            schema, labels, choices: where all tasks are done, the source need not be surveyed again
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self, TypeAlias

from ...transforms.dataset.commit.accounting import REFUSAL_FILE
from ...transforms.dataset.integrity.garbage import staging_folders
from ...transforms.dataset.stage.run_lock import is_held
from ...transforms.dataset.stage.spec import tool_versions
from ...transforms.dataset.stage.task_stager import count_results, read_done_tasks
from ...transforms.dataset.storage.contract import Storage
from ...transforms.dataset.storage.manifest_files import read_file
from ...transforms.dataset.storage.object_storage import storage_at
from ...transforms.errors import DamageError, SourceError
from ...transforms.format.manifest.manifest import column_documents, take_columns
from ...transforms.format.manifest.naming import STAGING_FOLDER
from ...transforms.format.schema.schema import Choice, Schema
from ...transforms.format.wording.hints import Set
from ...transforms.format.wording.printable import counted, printable, printable_path
from ...transforms.inputs.contract.source import Frozen, LazyPieces, Listing, Piece, Survey, Task
from ...transforms.inputs.contract.tasks import Estimate, Plan
from ...transforms.inputs.files.open_file import is_object
from ...transforms.sources.images.listing import ImageListing

PLAN_FILE: Final = "plan.json"

_PLAN_LIMIT: Final = 1 << 30
"""Bytes: a million input files take 200 MB."""


ListedEntry: TypeAlias = tuple[str, int, int | str, str, int]


@dataclass(frozen=True, slots=True)
class RunMark:
    """The identity of a run: `operation` and `config` are those of the command.

    `conditions` are all else that its bytes depend on, by what it is called.
    """

    operation: str
    config: str
    conditions: dict[str, str]

    def differences(self, other: RunMark) -> list[str]:
        names = sorted(self.conditions.keys() | other.conditions.keys())
        return [name for name in names if self.conditions.get(name) != other.conditions.get(name)]


@dataclass(frozen=True, slots=True)
class ListedSource:
    """A source as it was listed: (name, bytes, mtime in ns or version, fingerprint, files) of each entry.

    `images` is a digest over the sizes and times of all images, whose folders are the entries.
    """

    entries: tuple[ListedEntry, ...]
    images: str | None = None

    @classmethod
    def of(cls, listing: Listing, images: str | None) -> ListedSource:
        entries = ((e.name, e.bytes, e.version or e.mtime_ns, e.fingerprint, e.files) for e in listing.entries)
        return cls(tuple(entries), images)


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """The plan that is in the staging folder of the run `run_id`; `cut` is a digest over how tasks are cut."""

    run_id: str
    mark: RunMark
    listed: ListedSource
    tasks: int
    cut: str
    records: int
    bytes: int
    rows: tuple[int | None, ...] = ()
    survey: dict[str, Any] = field(default_factory=dict)

    @property
    def staging(self) -> str:
        """The staging folder, relative to the dataset's."""
        return f"{STAGING_FOLDER}/{self.run_id}"

    def restored(self, listing: Listing) -> Plan:
        """Return the plan of a run whose tasks are all done: they know their numbers, and not what to read.

        Raise `ValueError`, or another error of a wrong form, if the survey is not one that we write.
        """
        found = self.survey
        pieces = tuple(
            Piece(entry=i, path=e.path, name=e.name, stamp=e.stamp, rows=rows, first_row=0, bytes=e.bytes)
            for i, (e, rows) in enumerate(zip(listing.entries, self.rows, strict=True))
        )
        labels = {name: tuple(classes) for name, classes in found["labels"].items()}
        schema = Schema.from_json(found["schema"])
        columns = take_columns(found["columns"])
        survey = Survey(
            Frozen(schema, tuple(found["splits"]), labels, opaque=found["opaque"], columns=columns),
            tuple(Choice(*choice) for choice in found["choices"]),
            pieces,
            tuple(found["warnings"]),
            dict(found["split_rows"]),
            detected=tuple(found["detected"]),
            remarks=tuple(found["remarks"]),
            rule=found["rule"],
        )
        tasks = tuple(Task(number, ()) for number in range(self.tasks))
        return Plan(listing, survey, tasks, (), Estimate(self.records, self.bytes))


class Fingerprints(NamedTuple):
    """The fingerprints of a config, of what was listed for it and of its images, each `sha256:` and its digest."""

    config: str
    listing: str
    images: str | None

    @classmethod
    def of(cls, config: str, listing: Listing) -> Self:
        """Return the fingerprints, given that of the config."""
        return cls(config, _fingerprint_listing(listing), images_digest(listing))


def mark_of(prints: Fingerprints, reading: str, operation: str, dataset: str = "") -> RunMark:
    """Return the mark of a run.

    `reading` says how the source is read, `dataset` is the schema and the labels of the dataset that the run adds to.
    """
    conditions = {
        "the files to read": prints.listing + (prints.images or ""),
        "limits and options of reading": _digest(reading),
        "the dataset": _digest(dataset),
    }
    tools = {f"{tool} (its release)": version for tool, version in tool_versions().items()}
    return RunMark(operation, prints.config, conditions | tools)


def _fingerprint_listing(listing: Listing) -> str:
    digest = hashlib.sha256()
    for entry in listing.entries:
        fields = [entry.name, entry.bytes, entry.version or entry.mtime_ns, entry.fingerprint, entry.files]
        digest.update(json.dumps(fields).encode() + b"\n")
    return "sha256:" + digest.hexdigest()


def cut_of(plan: Plan) -> str:
    """Return a digest over how a plan cuts the source into tasks."""
    digest = hashlib.sha256()
    for task in plan.tasks:
        digest.update(_cut_of_task(task.pieces) + b"\n")
    return "sha256:" + digest.hexdigest()


def _cut_of_task(pieces: Sequence[Piece]) -> bytes:
    if isinstance(pieces, LazyPieces):
        return hashlib.sha256(pieces.mark()).digest()
    cuts = [[piece.entry, piece.first_row, piece.rows, piece.bytes, piece.output_bytes] for piece in pieces]
    return json.dumps(cuts).encode()


def plan_document(plan: Plan, mark: RunMark, listed: ListedSource, shards: int, rows: Sequence[int | None]) -> bytes:
    """Return the contents of `plan.json`; `shards` is how many are expected, `rows` how many of each entry."""
    survey, frozen = plan.survey, plan.survey.frozen
    document = {
        "totals": {
            "tasks": len(plan.tasks), "records": plan.estimate.rows, "bytes": plan.estimate.bytes, "shards": shards,
        },
        "tasks": [
            {"task": task.ordinal, "pieces": len(task.pieces), "bytes": output}
            for task, output in zip(plan.tasks, plan.outputs, strict=True)
        ],
        "mark": {"operation": mark.operation, "config": mark.config, "conditions": mark.conditions},
        "listed": {"entries": listed.entries, "images": listed.images},
        "cut": cut_of(plan),
        "rows": rows,
        "survey": {
            "schema": frozen.schema.to_json(), "splits": frozen.splits, "labels": frozen.labels,
            "opaque": frozen.opaque, "columns": column_documents(frozen.columns),
            "choices": [(one.column, one.type, one.reason, one.nulls) for one in survey.choices],
            "warnings": survey.warnings, "split_rows": survey.split_rows,
            "detected": survey.detected, "remarks": survey.remarks, "rule": survey.rule,
        },
    }  # fmt: skip
    return json.dumps(document).encode() + b"\n"


def read_staged_plan(storage: Storage, run_id: str) -> StagedPlan | None:
    """Return what is in the staging folder of a run; None where that is nothing, or nothing that we write."""
    try:
        document = json.loads(read_file(storage.root, f"{STAGING_FOLDER}/{run_id}/{PLAN_FILE}", _PLAN_LIMIT))
        mark, listed, totals = document["mark"], document["listed"], document["totals"]
        entries = tuple(tuple(entry) for entry in listed["entries"])
        return StagedPlan(
            run_id,
            RunMark(mark["operation"], mark["config"], dict(mark["conditions"])),
            ListedSource(entries, listed["images"]),
            tasks=int(totals["tasks"]),
            cut=document["cut"],
            records=totals["records"],
            bytes=totals["bytes"],
            rows=tuple(document["rows"]),
            survey=dict(document["survey"]),
        )
    except (DamageError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None  # there is none, or another release wrote it


def images_digest(listing: Listing) -> str | None:
    """Return a digest over the images themselves, where the entries are folders; their names are in those."""
    if not isinstance(listing, ImageListing):
        return None
    digest = hashlib.sha256(listing.images.sizes.tobytes())
    digest.update(listing.images.mtimes_ns.tobytes())
    return "sha256:" + digest.hexdigest()


def _digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


# A run that was killed, interrupted or refused leaves its staging folder, and `plan.json` in it describes it. Those
# that no live process holds, and from which no generation was made:
#
#     the same command, the same source        is resumed, if all else is the same: see `runs/convert`
#     the same command, another source         refused, by the names of the files; but where the run was itself refused
#                                              (for rejects, a corrupt file), fixing the source is what was asked for
#     another config                           is left where it is, and reported


_RUN_ID: Final = re.compile(r"[0-9a-f]{16}")

_SHOWN_CHANGES: Final = 20

START_OVER: Final = f"{Set('runner.resume', False)} starts over"


@dataclass(frozen=True, slots=True)
class StoppedRuns:
    """The staged work of stopped runs in `storage`: `same` are of this command and source.

    `outdated` are the run ids of what this command makes useless, `notes` what the user should know of it.
    """

    storage: Storage
    resume: bool = True
    same: tuple[StagedPlan, ...] = ()
    outdated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def finished(self, mark: RunMark, listing: Listing) -> Plan | None:
        """Return the plan of a run whose tasks are all done, if it is usable for the run of a mark."""
        for staged in self.same if self.resume else ():
            alike = staged.mark == mark and len(staged.rows) == len(listing.entries)
            if alike and len(read_done_tasks(self.storage, staged.staging, staged.tasks)) == staged.tasks:
                return _restored(staged, listing)
        return None


def find_stopped(path: str, mark: RunMark, listing: Listing, listed: ListedSource, *, resume: bool) -> StoppedRuns:
    """Look for runs in a dataset's folder that stopped; `listing` and `listed` are the whole source as it is now.

    Raise if one of the same command stopped midway and its source has changed since.
    """
    storage = storage_at(path)
    if not storage.has_locks:  # nobody could tell whether a run has stopped, so each has a folder of its own
        return StoppedRuns(storage, resume)
    found = _dead_runs(storage)
    same: list[StagedPlan] = []
    outdated: list[str] = []
    notes: list[str] = []
    others = 0
    for staged in found:
        if staged.mark.operation != mark.operation or staged.mark.config != mark.config:
            refused = storage.size(f"{staged.staging}/{REFUSAL_FILE}") is not None
            others += staged.mark.operation == mark.operation and not refused
        elif staged.listed == listed:
            same.append(staged)
        else:
            if resume and listing.traits.in_files and storage.size(f"{staged.staging}/{REFUSAL_FILE}") is None:
                raise _changed(storage, staged, listing, listed)
            outdated.append(staged.run_id)
            name, _, what = _changes(storage, staged, listing, listed)[0].partition(": ")
            notes.append(f"starting over: {name} {what} since the interrupted run")
    if others:
        what = "an earlier run" if others == 1 else f"{others} earlier runs"
        whose = "its" if others == 1 else "their"
        notes.append(f"{what} with other settings stopped here; {whose} unfinished work is not used")
    return StoppedRuns(storage, resume, tuple(same), tuple(outdated), tuple(notes))


def _restored(staged: StagedPlan, listing: Listing) -> Plan | None:
    try:
        return staged.restored(listing)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None  # another release wrote it


def _dead_runs(storage: Storage) -> list[StagedPlan]:
    """Return the runs with a task done that no process holds, and that no generation has come of."""
    names = [
        name
        for name in storage.list(STAGING_FOLDER)
        if _RUN_ID.fullmatch(name) and count_results(storage, f"{STAGING_FOLDER}/{name}")
    ]
    if not names:
        return []
    committed = staging_folders(storage.root)
    plans = (
        read_staged_plan(storage, name)
        for name in names
        if f"{STAGING_FOLDER}/{name}" not in committed and not is_held(storage, name)
    )
    return [plan for plan in plans if plan is not None]


def _changed(storage: Storage, staged: StagedPlan, listing: Listing, listed: ListedSource) -> SourceError:
    changes = _changes(storage, staged, listing, listed)
    first, more = changes[0], changes[1:_SHOWN_CHANGES]
    name, _, what = first.partition(": ")
    hidden = len(changes) - 1 - len(more)
    lines = [
        f"{what} since a run of this command stopped, with {count_results(storage, staged.staging)} of "
        f"{counted(staged.tasks, 'task')} done (in {printable_path(storage.path(staged.staging))}); put the source "
        f"back as it was; or {START_OVER}",
        *more,
        *([f"and {hidden} more"] if hidden else []),
    ]
    return SourceError(name, "\n".join(lines))


def _changes(storage: Storage, staged: StagedPlan, listing: Listing, listed: ListedSource) -> list[str]:
    before = {entry[0]: entry for entry in staged.listed.entries}
    now = {entry[0]: entry for entry in listed.entries}
    changes = []
    for name in sorted(before.keys() | now.keys()):
        if name not in now:
            changes.append(f"{name}: is gone")
        elif name not in before:
            changes.append(f"{name}: was added")
        elif before[name] != now[name]:
            changes.append(f"{name}: {_change(before[name], now[name])}")
    if isinstance(listing, ImageListing):
        written = _written_images(listing, os.stat(storage.path(f"{staged.staging}/{PLAN_FILE}")).st_mtime_ns)
        changes = [f"{name}: was written to, or added," for name in written] + changes
    return changes or ["its files: changed their order"]


def _change(before: ListedEntry, now: ListedEntry) -> str:
    if before[4] != now[4]:
        return f"held {counted(before[4], 'file')}, holds {now[4]:,} now,"
    if before[1] != now[1]:
        return f"changed ({before[1]:,} to {counted(now[1], 'byte')})"
    return "was written to"


def _written_images(listing: ImageListing, since: int) -> list[str]:
    """Return the images whose content, name or time was changed after a time, in ns: a listing of folders has none."""
    names = []
    for image in listing.images:
        folder = listing.folders[image.folder]
        if (
            image.size >= 0
            and not is_object(folder.path)
            and os.lstat(folder.path + b"/" + image.name).st_ctime_ns > since
        ):
            names.append(f"{listing.entries[image.folder].name}/{printable(os.fsdecode(image.name))}")
            if len(names) == _SHOWN_CHANGES:
                break
    return names
