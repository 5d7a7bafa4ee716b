"""A run that is ready to start: a source, its plan, and its target, with the report of a dry run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from ...transforms.dataset.stage.spec import DatasetSpec
from ...transforms.dataset.stage.task_stager import TaskResult
from ...transforms.format.examples.encode_rows import RowEncoder
from ...transforms.format.splits.by_row import FolderSplits, settling
from ...transforms.inputs.contract.source import LazyPieces, Source
from ...transforms.inputs.contract.tasks import Amount, Plan, PlanLimits, entries_in_files, tasks_in_files
from ..outcomes.reject_groups import RejectedRun, SampledRejects
from ..outcomes.summary import PlanReport, SplitEstimate, order_note, planned_checks, shuffle_note
from .staged_plan import ListedSource, RunMark, StoppedRuns, plan_document


@dataclass(frozen=True, slots=True)
class Prepared:
    """A conversion that is ready to run: nothing of it has been written yet.

    mark     identifies the run
    listed   the whole source as it was listed
    stopped  what stopped runs have left
    joined   splits of the source to which records are added that are cut out of another
    done     results of stopped runs, where the run resumes them: `plan` then has the tasks that are left
    limits   what of the plan stays in the graph
    """

    source: Source
    plan: Plan
    encoder: RowEncoder
    spec: DatasetSpec
    mark: RunMark
    listed: ListedSource
    stopped: StoppedRuns
    joined: tuple[str, ...] = ()
    done: tuple[TaskResult, ...] = ()
    notes: tuple[str, ...] = ()
    limits: PlanLimits = field(default_factory=PlanLimits)

    @property
    def name(self) -> str:
        """The run's name, of its job too: known before the job is, and after the command that started it died."""
        return f"shardmill-{self.spec.name}-{self.spec.run_id}"

    @property
    def restored(self) -> bool:
        """Whether the plan is that of a run whose tasks are all done: they know their numbers only."""
        return len(self.plan.outputs) < len(self.plan.tasks)

    @property
    def cautions(self) -> tuple[str, ...]:
        of = self.encoder.split.of if isinstance(self.encoder.split, FolderSplits) else None
        return tuple(
            f"split.of: the source has a split {name} already, and records cut out of {of} are added to it; to keep "
            f"them apart, choose another name than {name}"
            for name in self.joined
        )

    def report(self) -> PlanReport:
        plan, spec, splits = self.plan, self.spec, self._split_estimates()
        return PlanReport(
            path=spec.path,
            name=spec.name,
            source_format=plan.listing.format,
            files=plan.listing.files,
            bytes=plan.listing.bytes,
            schema=plan.survey.frozen.schema,
            tasks=len(plan.tasks),
            rows=self._source_rows(),
            splits=splits,
            shard_size=spec.shard_size,
            compression=spec.compression,
            rows_exact=plan.rows_exact,
            skipped=plan.listing.skipped,
            choices=plan.survey.choices,
            warnings=(*plan.survey.warnings, *self.cautions),
            detected=plan.survey.detected,
            remarks=plan.survey.remarks,
            sampled=plan.estimate.sampled,
            sampled_rejects=self.sampled_rejects(),
            checks=planned_checks(self.encoder.observers),
            splits_sampled=not self.encoder.split_shares() and not self.splits_counted,
            order_note=shuffle_note(levels=spec.shuffle.levels, in_append=spec.append_to is not None)
            if spec.shuffle is not None
            else order_note(plan.listing.traits, spec.order, len(plan.tasks), [s.shards for s in splits]),
        )

    def _source_rows(self) -> int:
        """Return the rows of the source; where they are not counted, about as many as there will be records."""
        known = [] if self.restored else [rows for rows in self.plan.expected_rows().values() if rows is not None]
        counted = bool(known) and len(known) == len(self.plan.listing.entries)
        return sum(known) if counted else self.plan.estimate.rows

    def sampled_rejects(self) -> SampledRejects:
        in_append, sample = self.spec.append_to is not None, self.plan.estimate
        documents = [json.loads(reject.to_json_line(in_append=in_append)) for reject in sample.rejects]
        form, conversion = self.plan.listing.format, self.spec.conversion
        return SampledRejects.of(documents, RejectedRun.of(sample.sampled, form, conversion, in_append=in_append))

    def plan_document(self) -> bytes:
        shards = sum(split.shards for split in self._split_estimates())
        rows = [entry.expected_rows for entry in self.spec.source_entries]
        return plan_document(self.plan, self.mark, self.listed, shards, rows)

    def in_files(self) -> Prepared:
        """Return it with what is much of the plan in files of the staging folder, so that the graph only names them.

        What was put there is let go of here, if the caller keeps nothing of what it had.
        """
        plan, spec = self.plan, entries_in_files(self.spec, self.limits)
        tasks = tasks_in_files(spec, plan.tasks, self.limits)
        if tasks == plan.tasks:
            return replace(self, spec=spec)
        if isinstance(plan.survey.pieces, LazyPieces):
            plan.survey.pieces.forget()
        survey, listing = replace(plan.survey, pieces=()), replace(plan.listing, entries=())
        plan = replace(plan, listing=listing, survey=survey, tasks=tasks)
        return replace(self, spec=spec, plan=plan, listed=ListedSource(()))

    @property
    def splits_counted(self) -> bool:
        """Whether all rows were sampled, and what became of each of them says its split."""
        return self.plan.estimate.whole and settling(self.encoder.split) is None

    def _split_estimates(self) -> tuple[SplitEstimate, ...]:
        size = self.spec.shard_size
        return tuple(
            SplitEstimate(name, round(amount.records), int(amount.bytes), -(-int(amount.bytes) // size))
            for name, amount in self._amounts().items()
        )

    def _amounts(self) -> dict[str, Amount]:
        estimate = self.plan.estimate
        found = dict(sorted(estimate.splits.items()))
        shares = self.encoder.split_shares(self.plan.survey.split_rows)
        if self.splits_counted:
            return {name: Amount(0, 0) for name in shares} | found
        all_records, all_bytes = (max(sum(amount[at] for amount in found.values()), 1) for at in range(2))
        if not shares:  # the rows themselves tell
            rows, size = estimate.rows / all_records, estimate.bytes / all_bytes
            return {name: Amount(amount.records * rows, amount.bytes * size) for name, amount in found.items()}
        lengths = dict.fromkeys(shares, 1.0)
        if self.encoder.splits_by_code:  # the source has splits itself, whose records may differ in their sizes
            average = Amount(all_records, all_bytes)
            lengths = {name: _length(found.get(name, average)) for name in shares}
        total = sum(share * lengths[name] for name, share in shares.items()) or 1.0
        return {
            name: Amount(estimate.rows * share, estimate.bytes * share * lengths[name] / total)
            for name, share in shares.items()
        }


def _length(amount: Amount) -> float:
    return amount.bytes / amount.records
