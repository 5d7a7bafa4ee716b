"""How rows were cut into splits, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...transforms.format.wording.printable import printable


def rule_text(rule: Mapping[str, Any]) -> str:
    """Return how rows were cut into splits, by the members of the manifest.

    >>> rule_text({"by": "exact", "stratify": "kind", "fractions": {"train": 0.8, "val": 0.2}})
    'exactly, in each class of kind: train 0.8, val 0.2'
    >>> rule_text({"by": "before", "column": "day", "before": {"train": "2024-02-01"}, "rest": "val"})
    'by day: train before 2024-02-01, val the rest'
    """
    by, column = rule["by"], printable(rule.get("column", ""))
    if by == "column":
        text = f"by the values of {column}"
        parts = [f"{printable(value)} is {split}" for value, split in rule.get("names", {}).items()]
    elif by == "before":
        text = f"by {column}"
        parts = [f"{split} before {printable(bound)}" for split, bound in rule["before"].items()]
        parts += [f"{rule['rest']} the rest"] if "rest" in rule else []
    else:
        text = "exactly" if by == "exact" else "by a hash"
        text += f", rows of one {printable(rule['key'])} together" if "key" in rule else ""
        text += f", in each class of {printable(rule['stratify'])}" if "stratify" in rule else ""
        parts = [f"{split} {fraction}" for split, fraction in rule.get("fractions", {}).items()]
        parts += [f"{rule['folds']} folds"] if "folds" in rule else []
    return f"{text}{': ' if parts else ''}{', '.join(parts)}{'; only of ' + rule['of'] if 'of' in rule else ''}"
