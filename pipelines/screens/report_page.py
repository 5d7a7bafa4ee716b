"""The whole page: what is shown, in `page.html`; light and dark as the reader's system is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...transforms.format.batches.observers import PICTURES
from ...transforms.format.wording.printable import counted
from ...transforms.format.wording.sizes import format_size
from .report_facts import Rejects, ReportFacts
from .report_sections import (
    Table,
    class_balance,
    differences_table,
    features_of,
    lineage_table,
    made_by,
    number,
    shard_sizes,
    shown,
    splits_table,
)

LIGHT: Final = {
    "page": "#ffffff", "text": "#1a1c1e", "quiet": "#55606b", "line": "#c9d1d9", "link": "#0b5cad",
    "bar": "#3b78c2", "mark": "#b3261e", "card": "#f5f7f9",
}  # fmt: skip
DARK: Final = {
    "page": "#14171a", "text": "#e6e9ec", "quiet": "#a9b4be", "line": "#454f59", "link": "#8fc1ff",
    "bar": "#6aa5e8", "mark": "#ff8a80", "card": "#1d2226",
}  # fmt: skip
"""The colours, by what they are for: tests check their contrast."""

PARTS: Final = {
    "splits": "Splits",
    "shards": "Shard sizes",
    "classes": "Class balance",
    "differences": "Splits side by side",
    "pictures": "Pictures",
    "features": "Features",
    "rejects": "Rejected rows",
    "checks": "Duplicates and leaks",
    "lineage": "Lineage",
}


def html_page(facts: ReportFacts) -> str:
    from jinja2 import Environment, PackageLoader

    manifest, statistics = facts.manifest, facts.statistics
    splits = manifest.splits.values()
    made = f"generation {manifest.generation} of {manifest.run.created}"
    shards = counted(sum(len(split.shards) for split in splits), "shard")
    records, size = counted(sum(s.records for s in splits), "record"), format_size(sum(s.bytes for s in splits))
    classes = class_balance(statistics)
    several = statistics is not None and len(statistics.splits) > 1
    hidden = {"classes": not classes, "differences": not several, "pictures": not facts.pictures}
    environment = Environment(autoescape=True, trim_blocks=True, loader=PackageLoader(__package__, ""))
    environment.filters |= {"shown": shown, "number": number}
    return environment.get_template("page.html").render(
        title=manifest.name,
        summary=f"{records} in {shards}, {size}; {made}",
        light=LIGHT,
        dark=DARK,
        parts={name: heading for name, heading in PARTS.items() if not hidden.get(name)},
        splits=splits_table(facts),
        rule=facts.split_rule,
        asked=not manifest.details.adopted,
        shards=shard_sizes(facts),
        classes=classes,
        differences=differences_table(facts),
        pictures=facts.pictures,
        features=features_of(statistics, manifest.schema),
        rejected=counted(facts.rejects.records, "row"),
        rejects=rejects_table(facts.rejects),
        checks=checks_of(facts.checks),
        lineage=lineage_table(facts),
        made=made_by(facts),
    )


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
