"""Print what the checks of a dataset found: after a run, and from its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.wording.hints import Add
from ...transforms.format.wording.printable import counted
from .terminal import Terminal, in_lines

_NOT_COMPARED: Final = {"one split": "all records are in one split", "no value": "no record has a value"}

_SHOWN_PAIRS: Final = 5
"""So many pairs of splits that share records are shown; the manifest has all."""


def print_checks(terminal: Terminal, manifest: Manifest, *, later: bool = False) -> None:
    """Print what was found among the records that a generation added; `later` names it."""
    where = " among the new records" if manifest.operation == "append" else ""
    if later:
        where = f" in what generation {manifest.generation} added"
    _duplicates(terminal, manifest, where)
    _leaks(terminal, manifest, where)


def _leaks(terminal: Terminal, manifest: Manifest, where: str) -> None:
    check = manifest.details.checks.get("leaks")
    if check is None:
        return
    names = ", ".join(in_lines(name) for name in check["columns"])
    if "not_compared" in check:
        why = _NOT_COMPARED[check["not_compared"]]
        terminal.text(f"Leaks of {names}: nothing to compare{where}: {why}", "yellow")
        return
    if not check["groups"]:
        terminal.text(f"Leaks of {names}: none{where}")
        return
    are = "is" if check["groups"] == 1 else "are"
    values = f"{counted(check['groups'], 'value')} {are} in more than one split{where}"
    terminal.text(f"\nLeaks of {names}: {values}, with {counted(check['records'], 'record')}:", "bold yellow")
    _shared(terminal, check, "value", "")
    _examples(terminal, check, "value")
    column = str(check["columns"][0])
    scalars = [feature.name for feature in manifest.schema or () if feature.shape == ()]
    key = next((name for name in scalars if name == column or name.startswith(f"{column}/")), None)
    terminal.text(f"  {_leaks_fix(manifest.conversion.get('split', {}), key)}", "yellow")


def _leaks_fix(rule: Mapping[str, Any], column: str | None) -> str:
    """Return how values are kept in one split each, given the rule of the dataset and a feature of one value a row."""
    keep, key = "to keep each in one split", Add("--split-key", column or "COLUMN")
    if column is None and rule:
        return f"{keep}, add a column with one text or number for each, and split by it: {key}"
    if not rule:
        return f"the splits are those of the source; {keep}, move its rows into one of them"
    if "of" in rule:
        return f"{keep} of those that are cut out of {rule['of']}: {key}; move the rows of the other splits"
    if "column" in rule or "before" in rule:
        return f"{keep}, instead of this rule: {Add('--split-fractions', 'train=0.9,val=0.1', key)}"
    if rule.get("key") == column:
        return f"{keep}, split the new records by the rule of the dataset: leave theirs out"
    instead = next((f" instead of {name}" for name in ("key", "stratify") if name in rule), "")
    return f"{keep}: {key}{instead}"


def _shared(terminal: Terminal, check: Mapping[str, Any], what: str, of: str) -> None:
    shared = sorted(check.get("splits", {}).items(), key=lambda pair: -pair[1])
    for splits, groups in shared[:_SHOWN_PAIRS]:
        alike = f"{counted(groups, what)}{of} {'is' if groups == 1 else 'are'}"
        terminal.text(f"  {alike} in both {' and '.join(sorted(splits.split()))}", "yellow")
    if len(shared) > _SHOWN_PAIRS:
        terminal.text(f"  and {counted(len(shared) - _SHOWN_PAIRS, 'pair')} of splits more", "yellow")


def _examples(terminal: Terminal, check: Mapping[str, Any], what: str) -> None:
    for example in check.get("examples", ()):
        more = example["records"] - len(example["places"])
        others = f" and {more:,} more" if more else ""
        terminal.text(f"  {' = '.join(in_lines(place) for place in example['places'])}{others}")
    if check["groups"] > len(check.get("examples", ())):
        terminal.text(f"  and {counted(check['groups'] - len(check['examples']), what)} more")


def _duplicates(terminal: Terminal, manifest: Manifest, where: str) -> None:
    check = manifest.details.checks.get("duplicates")
    if check is None:
        return
    names = [in_lines(name) for name in check["columns"]]
    alike = f" in {', '.join(names)}" if names else ""
    if not check["records"]:
        terminal.text(f"Duplicates{alike}: none{where}")
        return
    left = "left out" if check.get("action") == "drop" else "kept"
    repeats = f"{counted(check['records'], 'record')} {'repeats' if check['records'] == 1 else 'repeat'}"
    terminal.text(f"\nDuplicates{alike}: {repeats} an earlier one{where}, {left}:", "bold yellow")
    _shared(terminal, check, "group", " of equal records")
    _examples(terminal, check, "group")
