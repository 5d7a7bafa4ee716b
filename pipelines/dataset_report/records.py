"""The parts of the page on single records: rejected rows, duplicates and leaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...transforms.format.flow.observers import PICTURES
from .facts import Rejects
from .markup import Table, number, shown


def rejects_table(rejects: Rejects) -> Table | None:
    if not rejects.records:
        return None
    rows = [
        [shown(code), number(count), *_reject(example)]
        for code, count in rejects.by_code.items()
        for example in (rejects.examples.get(code) or [{}])
    ]
    head = ["code", "rows with it", "where", "column", "value", "what is wrong, and the fix"]
    return Table("Rejected rows by their code, with examples", head, rows, 9)


def _reject(error: Mapping[str, Any]) -> list[str]:
    if not error:
        return ["", "", "", ""]
    place = error["source"] if error.get("row") is None else f"{error['source']}, row {error['row']}"
    return [
        shown(place), shown(error.get("column") or ""), shown(error["value"], 60), shown(error["message"], 300),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """What a check found, in words; `lists` have a heading each, which may be empty."""

    title: str
    words: str
    lists: Sequence[tuple[str, Sequence[str]]] = ()


def checks_of(checks: Sequence[tuple[int, Mapping[str, Any]]]) -> list[Check]:
    return [_check(generation, name, one) for generation, found in checks for name, one in found.items()]


def _check(generation: int, name: str, check: Mapping[str, Any]) -> Check:
    if name == PICTURES:
        first = [shown(place) for example in check["examples"] for place in example["places"]]
        words = f"libjpeg warns of {check['records']:,}. The first of them:"
        return Check(f"Damaged or padded JPEG pictures in generation {generation}", words, [("", first)])
    columns = ", ".join(check["columns"]) or "the whole record"
    title = f"{name.capitalize()} in generation {generation}, by {columns}"
    if "not_compared" in check:
        return Check(title, f"Nothing to compare: {shown(check['not_compared'])}.")
    what = "values in several splits" if name == "leaks" else "groups of equal records"
    of = "records have them" if name == "leaks" else "records repeat an earlier one"
    dropped = "; these were left out" if check.get("action") == "drop" else ""
    pairs = sorted(check.get("splits", {}).items(), key=lambda one: -one[1])
    shared = [f"{' and '.join(map(shown, sorted(pair.split())))}: {count:,}" for pair, count in pairs]
    examples = [
        f"{one['records']:,} records: {', '.join(map(shown, one['places']))}" for one in check.get("examples", ())
    ]
    lists = [("In both:", shared), ("The first of them:", examples)]
    words = f"{check['groups']:,} {what}; {check['records']:,} {of}{dropped}."
    return Check(title, words, [(heading, lines) for heading, lines in lists if lines])
