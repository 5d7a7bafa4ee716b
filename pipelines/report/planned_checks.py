"""What a run is going to check of the records as a whole, and what an append leaves unchecked."""

from __future__ import annotations

from collections.abc import Sequence

from ...transforms.format.flow.observers import Observer
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.wording.hints import Add, Set
from ...transforms.format.wording.printable import printable
from ...transforms.observers.tally import STATISTICS


def planned_checks(observers: Sequence[Observer]) -> tuple[str, ...]:
    if all(one.name == STATISTICS for one in observers):
        return ()
    from ...transforms.observers.checks import (
        Duplicates,  # they take pandas
        Leaks,
    )

    texts = []
    for one in observers:
        if isinstance(one, Duplicates):
            over = f" over {_names(one.columns)}" if one.columns else ", compared as a whole,"
            texts.append(f"duplicate records{over} are {'left out' if one.action == 'drop' else 'reported'}")
        elif isinstance(one, Leaks):
            texts.append(f"values of {_names(one.columns)} that are in several splits are reported")
    return tuple(texts)


def unchecked_append(latest: Manifest, observers: Sequence[Observer]) -> tuple[str, ...]:
    before = latest.details.checks.get("duplicates", {})
    if before.get("action") != "drop" or any(one.name == "duplicates" for one in observers):
        return ()
    columns = [Set("checks.duplicates.columns", before["columns"])] if before["columns"] else []
    compare = Add(*columns, Set("checks.duplicates.action", "drop"))
    return (
        f"generation {latest.generation} left out duplicate records, and new records are not looked at for them; to "
        f"compare new records with each other, and with no earlier ones: {compare}",
    )


def _names(columns: Sequence[str]) -> str:
    return ", ".join(printable(name) for name in columns)
