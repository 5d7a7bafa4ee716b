"""Runs that stopped: which of them this command can resume, and which it must not.

A run that was killed, interrupted or refused leaves its staging folder, and `plan.json` in it describes it. Those that
no live process holds, and from which no generation was made:

    the same command, the same source        is resumed, if all else is the same: see `runs/resume`
    the same command, another source         refused, by the names of the files; but where the run was itself refused
                                             (for rejects, for a corrupt file), fixing the source is what was asked for
    another config                           is left where it is, and reported
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from ...transforms.dataset.integrity.garbage import staging_folders
from ...transforms.dataset.shards.accounting import REFUSAL_FILE
from ...transforms.dataset.stage.run_lock import is_held
from ...transforms.dataset.stage.task_result import count_results, read_done_tasks
from ...transforms.dataset.storage.contract import Storage
from ...transforms.dataset.storage.object_storage import storage_at
from ...transforms.errors import SourceError
from ...transforms.format.manifest.naming import STAGING_FOLDER
from ...transforms.format.wording.hints import Set
from ...transforms.format.wording.printable import counted, printable, printable_path
from ...transforms.sources.contract.planning import Plan
from ...transforms.sources.contract.source import Listing
from ...transforms.sources.files.open_file import is_object
from ...transforms.sources.images.listing import ImageListing
from .staged_plan import PLAN_FILE, ListedEntry, ListedSource, RunMark, StagedPlan, read_staged_plan

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
            others += staged.mark.operation == mark.operation
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
