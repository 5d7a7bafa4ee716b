"""The step that sees the results of all tasks: it checks the counts of rows, and plans the shards of every split."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal, overload

from ...format.batches.observers import Finding, LeftOut, Observer, Went
from ...format.batches.rejects import rejects_allowed
from ...format.batches.rows import Narrowing
from ...format.batches.summaries import DEALT, Summaries, image_formats_in, merged, narrowings_in, warnings_check
from ...format.manifest.manifest import RowCounts
from ...format.manifest.naming import shard_file_name
from ...format.splits.shard_plan import CUTS_PER_SHARD, Part, PlannedShard, plan_shards
from ...format.splits.splitter import TOO_MANY_SPLITS
from ...format.tfrecord.framing import add_digests, crc32c_combine, crc32c_range
from ..stage.spec import JOIN_TWO, OWN_PIPELINE, DatasetSpec
from ..stage.task_stager import NO_TASK, TaskResult
from .accounting import REFUSAL_FILE, Accounts, Ledger, Refusal, carried_lines, leave_tally, source_lines
from .assemble_shards import ShardJob
from .rewrite_parts import leave_out, settle
from .second_pass import ShuffleTask, leave_findings, lost_between, plan_second_pass, read_findings, respill

_SHOWN_PROBLEMS = 20

_OF_OWN_PIPELINES: Final = (
    "does a step of yours leave out rows? ReadRows(map=...) does it; are there two ReadRows before one WriteShards? "
    f"write two folders, and {JOIN_TWO}"
)


@dataclass(frozen=True, slots=True)
class SplitTotals:
    """What a manifest states of a split beside its shards."""

    unit_bytes: int
    digest: int


@dataclass(frozen=True, slots=True)
class Draft:
    """What the manifest will state, once all `shards` have been made; `notes` are what the user should know of rows.

    `checks` are the findings of observers. `is_counted` says that statistics were counted of rows on their way.
    """

    counts: RowCounts
    by_code: dict[str, int]
    narrowed: tuple[Narrowing, ...]
    image_formats: tuple[str, ...]
    splits: dict[str, SplitTotals]
    shards: int
    notes: dict[str, int]
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    is_counted: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done: a draft of the manifest, and the jobs."""

    draft: Draft
    jobs: tuple[ShardJob, ...]


def plan_dataset(spec: DatasetSpec, results: Iterable[TaskResult], *, committed: bool = False) -> Plan | Refusal:
    """Plan the dataset, or refuse it; leaves `rejects.jsonl`, and `sources.jsonl` or `refusal.json`, in staging.

    A run that has committed has left its lists there, which may not be published yet: they stay. Observers have
    finished then, and are not asked again; nor is settled again where records go that were set aside.

    The same results, in any order, give the same plan: an engine may try this step again. They are taken one by one:
    of a shuffled source each covers many entries, and is let go of when that is added up.
    """
    first, second = _by_pass(spec, results)
    ledger = Ledger()
    ordered = _in_order([ledger.enter(result) for result in first])
    accounts = ledger.settle(spec.source_entries, spec.tasks)
    files = [result.rejects.path for result in ordered if result.rejects]
    if files and not committed:
        spec.storage.concatenate(f"{spec.staging}/rejects.jsonl", [f"{spec.staging}/{path}" for path in files])
    refusal = _decide(spec, ordered, accounts) or _compare(spec, ordered, second)
    if refusal is not None:
        leave_refusal(spec, refusal)
        return refusal
    observed: Summaries = {}
    for result in ordered:
        observed = merged(observed, result.observed, spec.observers)
    checks: dict[str, dict[str, Any]] = {}
    if spec.shuffle is not None:  # observers have finished between the passes
        checks, dropped = read_findings(spec)
        accounts = accounts.leaving_out(dropped)
        ordered = _in_order(second)
    elif not committed:
        ordered, findings = _settle_and_finish(spec, ordered, observed)
        for name, finding in findings.items():
            checks[name] = dict(finding.check)
            ordered, accounts = _leave_out(spec, ordered, accounts, name, finding)
    checks |= warnings_check(observed)
    if spec.source_entries and not committed:
        constants = spec.append_to.constants if spec.append_to else None
        lines = source_lines(spec.source_entries, accounts, constants)
        spec.storage.replace(f"{spec.staging}/sources.jsonl", b"".join([lines, *carried_lines(spec.carries)]))
    return _plan(spec, ordered, accounts, observed, checks, committed=committed)


def plan_shuffle(spec: DatasetSpec, results: Iterable[TaskResult]) -> list[ShuffleTask]:
    """Return what the second pass of a shuffle is to do, given the results of the first, and those of the second.

    There is nothing to do where `plan_dataset` will refuse the run.
    """
    first, second = _by_pass(spec, results)
    ledger = Ledger()
    ordered = _in_order([ledger.enter(result) for result in first])
    if _decide(spec, ordered, ledger.settle(spec.source_entries, spec.tasks)) is not None:
        return []
    observed: Summaries = {}
    for result in ordered:
        observed = merged(observed, result.observed, spec.observers)
    ordered, findings = _settle_and_finish(spec, ordered, observed)
    left_out = [one for name, finding in findings.items() for one in _left_out(ordered, name, finding)]
    leave_findings(spec, {name: dict(finding.check) for name, finding in findings.items()}, left_out)
    if spec.settling is not None:
        ordered = [respill(spec, result) for result in ordered]
    done = {result.task for result in second}
    return [task for task in plan_second_pass(spec, ordered) if task.number not in done]


def _by_pass(spec: DatasetSpec, results: Iterable[TaskResult]) -> tuple[Iterable[TaskResult], list[TaskResult]]:
    """Return the results of the source's tasks, and those of the second pass of a shuffle."""
    if spec.shuffle is None:
        return results, []
    known, tasks = list(results), spec.tasks or 0
    return [one for one in known if one.task < tasks], [one for one in known if one.task >= tasks]


def _compare(spec: DatasetSpec, first: Sequence[TaskResult], second: Sequence[TaskResult]) -> Refusal | None:
    lost = None if spec.shuffle is None else lost_between(spec, first, second)
    if lost is None:
        return None
    message = f"records do not add up between the two passes of the shuffle; nothing was committed\n{lost}"
    return Refusal("failed", message, again=True)


def leave_refusal(spec: DatasetSpec, refusal: Refusal) -> None:
    spec.storage.replace(f"{spec.staging}/{REFUSAL_FILE}", refusal.to_json())


def read_refusal(spec: DatasetSpec) -> Refusal | None:
    path = f"{spec.staging}/{REFUSAL_FILE}"
    return Refusal.from_json(spec.storage.read(path)) if spec.storage.size(path) is not None else None


def _in_order(results: Iterable[TaskResult]) -> list[TaskResult]:
    """Sort by task. Bundles that are not tasks come last, and get numbers of their own in their parts."""
    ordered = sorted(results, key=lambda result: (result.task == NO_TASK, result.task, result.attempt))
    number = max((result.task for result in ordered), default=0) + 1
    for i, result in enumerate(ordered):
        if result.task == NO_TASK:
            splits = {
                name: replace(split, parts=tuple(replace(part, task=number) for part in split.parts))
                for name, split in result.splits.items()
            }
            ordered[i] = replace(result, splits=splits)
            number += 1
    return ordered


def _decide(spec: DatasetSpec, results: Sequence[TaskResult], accounts: Accounts) -> Refusal | None:
    total = accounts.total
    known = f"{spec.staging}/rejects.jsonl" if total.rejected else None

    def refuse(kind: Literal["failed", "rejects"], message: str) -> Refusal:
        return Refusal(kind, message, total.read, total.rejected, accounts.by_code, known)

    failures = list(dict.fromkeys(text for result in results for text in result.failures))
    if failures:  # the counts of a task that broke do not add up: that is not a second problem
        return refuse("failed", _lines(failures))
    if accounts.changed:
        return replace(refuse("failed", _lines(accounts.changed)), again=True)
    if accounts.problems:
        text = _lines(["rows do not add up; nothing was committed", *accounts.problems])
        if spec.runner == OWN_PIPELINE:
            text = f"{text}\n{_OF_OWN_PIPELINES}"
        return replace(refuse("failed", text), again=True)
    named = {name for result in results for name in result.splits}
    if spec.most_splits is not None and len(named) > spec.most_splits:
        return refuse("failed", TOO_MANY_SPLITS)
    allowed = rejects_allowed(spec.max_rejects, total.read)
    if total.rejected > allowed:
        codes = ", ".join(f"{code} {count}" for code, count in accounts.by_code.items())
        was = "was" if total.rejected == 1 else "were"
        return refuse(
            "rejects",
            f"{total.rejected} of {total.read} rows {was} rejected ({codes}), max_rejects is {spec.max_rejects}; "
            f"nothing was committed",
        )
    return None


def _lines(problems: Sequence[str]) -> str:
    shown = list(problems[:_SHOWN_PROBLEMS])
    if len(problems) > len(shown):
        shown.append(f"... and {len(problems) - len(shown)} more")
    return "\n".join(shown)


_ObservedFile = tuple[str, Mapping[str, Went], Sequence[Callable[[], LeftOut | None]]]


class _ObservedFiles(Sequence[bytes]):
    """The files that an observer has left of some tasks, each read when it is asked for; the last one is kept."""

    def __init__(self, spec: DatasetSpec, observer: Observer, files: Sequence[_ObservedFile]) -> None:
        self._spec, self._observer, self._files = spec, observer, files
        self._last: tuple[int, bytes] | None = None

    def __len__(self) -> int:
        return len(self._files)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> _ObservedFiles: ...
    def __getitem__(self, index: int | slice) -> bytes | _ObservedFiles:
        if isinstance(index, slice):
            return _ObservedFiles(self._spec, self._observer, self._files[index])
        if self._last is not None and index == self._last[0]:  # most examples of a check are in one file
            return self._last[1]
        path, went, left_out = self._files[index]
        data = self._spec.storage.read(f"{self._spec.staging}/{path}")
        data = self._observer.settled(data, went) if went else data
        for left in filter(None, (find() for find in left_out)):
            data = self._observer.without(data, left)
        self._last = index, data
        return data


def _settle_and_finish(
    spec: DatasetSpec, results: Sequence[TaskResult], observed: Summaries
) -> tuple[list[TaskResult], dict[str, Finding]]:
    """Put records that were set aside into their splits, then let observers finish; return the results, and findings.

    An observer does not see what one before it leaves out. Nothing is left out of records that splits have counted
    (`pipelines/prepare/conversion.py`).
    """
    settled, went = list(results), [dict[str, Went]() for _ in results]
    if spec.settling is not None:
        settled, went = settle(spec, spec.settling, results, observed.get(DEALT))
    findings: dict[str, Finding] = {}
    left_out: list[list[Callable[[], LeftOut | None]]] = [[] for _ in results]
    for observer in spec.observers:
        spilling = [number for number, one in enumerate(settled) if observer.name in one.spilled]
        files = [(settled[number].spilled[observer.name], went[number], left_out[number]) for number in spilling]
        found = observer.finish(observed.get(observer.name), _ObservedFiles(spec, observer, files))
        if found is None:
            continue
        findings[observer.name] = found
        if found.left_out is not None:
            for file, number in enumerate(spilling):
                left_out[number] = [*left_out[number], partial(found.left_out, file)]
    return settled, findings


def _leave_out(
    spec: DatasetSpec, results: Sequence[TaskResult], accounts: Accounts, name: str, finding: Finding
) -> tuple[list[TaskResult], Accounts]:
    kept = list(results)
    for number, left in _left_out(results, name, finding):
        kept[number] = leave_out(spec, kept[number], left)
        accounts = accounts.leaving_out(left.entries)
    return kept, accounts


def _left_out(results: Sequence[TaskResult], name: str, finding: Finding) -> Iterator[tuple[int, LeftOut]]:
    if finding.left_out is not None:
        spilling = (number for number, result in enumerate(results) if name in result.spilled)
        for file, number in enumerate(spilling):
            left = finding.left_out(file)
            if left is not None:
                yield number, left


def _plan(
    spec: DatasetSpec,
    results: Sequence[TaskResult],
    accounts: Accounts,
    observed: Summaries,
    checks: dict[str, dict[str, Any]],
    *,
    committed: bool,
) -> Plan:
    parts: dict[str, list[Part]] = defaultdict(list)
    digests: dict[str, list[int]] = defaultdict(list)
    for result in results:
        for name, split in result.splits.items():
            parts[name] += split.parts
            digests[name].append(split.digest)
    jobs: list[ShardJob] = []
    splits: dict[str, SplitTotals] = {}
    for name in sorted(parts):
        shards = plan_shards(parts[name], spec.shard_size, "source" if spec.order == "source" else "task")
        first = spec.append_to.shards.get(name, 0) if spec.append_to else 0
        for index, shard in enumerate(shards, first):
            path = shard_file_name(spec.shard_name, name, index, len(shards), spec.compression)
            jobs.append(ShardJob(name, index, path, shard.light, shard.records, shard.bytes, shard_crc(shard)))
        unit = max(spec.shard_size // CUTS_PER_SHARD, *(part.unit_bytes for part in parts[name]))
        splits[name] = SplitTotals(unit, add_digests(digests[name]))
    records: Counter[str] = Counter()
    for job in jobs:
        records[job.split] += job.records
    is_counted = leave_tally(spec, observed, records, committed=committed)
    if spec.statistics is not None and spec.schema is not None and not is_counted:
        jobs = [replace(job, counts=True) for job in jobs]
    draft = Draft(
        counts=accounts.total,
        by_code=accounts.by_code,
        narrowed=narrowings_in(observed),
        image_formats=image_formats_in(observed),
        splits=splits,
        shards=len(jobs),
        notes=accounts.notes_total,
        checks=checks,
        is_counted=is_counted,
    )
    return Plan(draft, tuple(jobs))


def shard_crc(shard: PlannedShard) -> int:
    """Return the CRC32C of a shard, from those at the cut points: no byte is read."""
    crc = 0
    for _, start, end in shard.ranges:
        length = end.offset - start.offset
        crc = crc32c_combine(crc, crc32c_range(start.crc, end.crc, length), length)
    return crc
