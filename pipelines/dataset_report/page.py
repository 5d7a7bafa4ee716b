"""The whole page: what is shown, in `page.html`; light and dark as the reader's system is."""

from __future__ import annotations

from typing import Final

from ...transforms.format.wording.printable import counted
from ...transforms.format.wording.sizes import format_size
from .facts import ReportFacts
from .features import features_of
from .markup import number, shown
from .overview import class_balance, differences_table, lineage_table, made_by, shard_sizes, splits_table
from .records import checks_of, rejects_table

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
