"""What observers found, between the two passes of a shuffle: the second leaves out what they leave out.

findings.json    {"checks": {...}, "dropped": [[entry, records], ...], "left_out": {task: [[split, path], ...]}}
shuffle/...u32   the numbers of the records that are left out of a task and split, ascending
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...format.flow.observers import LeftOut
from ..stage.spec import DatasetSpec

FOLDER: Final = "shuffle"
"""In the run's staging folder: files for the second pass."""

_FILE: Final = "findings.json"


def leave_findings(
    spec: DatasetSpec, checks: Mapping[str, Mapping[str, Any]], left_out: Sequence[tuple[int, LeftOut]]
) -> None:
    dropped: Counter[int] = Counter()
    paths: dict[str, list[tuple[str, str, int]]] = {}
    for task, left in left_out:
        dropped.update(left.entries)
        for split, numbers in left.records.items():
            path = f"{FOLDER}/left-out-{task:06d}-{split}.u32"
            spec.storage.replace(f"{spec.staging}/{path}", numbers.astype("<u4").tobytes())
            paths.setdefault(str(task), []).append((split, path, len(numbers)))
    document = {"checks": checks, "dropped": sorted(dropped.items()), "left_out": paths}
    spec.storage.replace(f"{spec.staging}/{_FILE}", json.dumps(document).encode())


def read_findings(spec: DatasetSpec) -> tuple[dict[str, dict[str, Any]], dict[int, int]]:
    """Return what checks found, and how many records of each entry are left out; nothing where no pass was planned."""
    document = _document(spec)
    return document["checks"], dict(document["dropped"])


def left_out_of(spec: DatasetSpec, split: str) -> dict[int, tuple[str, int]]:
    """Return where the numbers of the records are that are left out of a split, by task, and how many these are."""
    found = _document(spec)["left_out"]
    return {int(task): (path, count) for task, all_ in found.items() for name, path, count in all_ if name == split}


def left_out_in_all(spec: DatasetSpec) -> int:
    return sum(count for _, count in _document(spec)["dropped"])


def read_left_out(spec: DatasetSpec, path: str) -> npt.NDArray[np.uint64]:
    return np.frombuffer(spec.storage.read(f"{spec.staging}/{path}"), "<u4").astype(np.uint64)


def _document(spec: DatasetSpec) -> dict[str, Any]:
    path = f"{spec.staging}/{_FILE}"
    if spec.storage.size(path) is None:
        return {"checks": {}, "dropped": [], "left_out": {}}
    document: dict[str, Any] = json.loads(spec.storage.read(path))
    return document
