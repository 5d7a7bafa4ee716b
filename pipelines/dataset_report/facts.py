"""What a report is made of: the manifests, the statistics, some rejects, and some pictures of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from ...transforms.dataset.generations.history import GenerationInfo, list_history
from ...transforms.dataset.generations.manifest_files import lineage, read_manifest
from ...transforms.dataset.reading.open_dataset import Dataset
from ...transforms.dataset.shards.source_list import read_rejects
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.statistics.figures import Statistics
from ..report.splits_and_order import rule_text
from .pictures import Picture, sample_pictures

EXAMPLES: Final = 3
"""Rejected rows of each code that are shown."""

_LOOKED_AT: Final = 10_000
"""Lines of a list of rejects that are looked at for them."""

_GENERATIONS: Final = 50
"""Generations, the latest, whose rejects and checks are shown."""


@dataclass(frozen=True, slots=True)
class Rejects:
    """The rejected rows of all generations: how many of each code, and a few of each as the list states them."""

    records: int = 0
    by_code: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, list[Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """All that the page says of one generation of the dataset at `path`; plain bytes have no statistics."""

    path: str
    manifest: Manifest
    statistics: Statistics | None
    history: list[GenerationInfo]
    rejects: Rejects
    checks: Sequence[tuple[int, Mapping[str, Any]]]
    pictures: list[Picture]

    @property
    def split_rule(self) -> str:
        rule = self.manifest.conversion.get("split")
        return "" if rule is None else rule_text(rule)


def gather_facts(path: str, statistics: Statistics | None, generation: int | None = None) -> ReportFacts:
    manifest = read_manifest(path, generation)
    history = [one for one in list_history(path) if one.generation <= manifest.generation]
    recent = list(islice(lineage(path, manifest), _GENERATIONS))
    checks = [(one.generation, one.details.checks) for one in recent if one.details.checks]
    pictures = sample_pictures(Dataset(path, manifest))
    return ReportFacts(path, manifest, statistics, history, _rejects(path, recent), checks, pictures)


def _rejects(path: str, generations: list[Manifest]) -> Rejects:
    records, by_code = 0, dict[str, int]()
    examples: dict[str, list[Mapping[str, Any]]] = {}
    for manifest in generations:
        records += manifest.rejects.records
        for code, count in manifest.rejects.by_code.items():
            by_code[code] = by_code.get(code, 0) + count
        for line in islice(read_rejects(path, manifest), _LOOKED_AT):
            for error in line["errors"]:
                known = examples.setdefault(error["code"], [])
                if len(known) < EXAMPLES:
                    known.append({"source": line["source"], "row": line.get("row") or line.get("record"), **error})
    return Rejects(records, dict(sorted(by_code.items(), key=lambda one: -one[1])), examples)
