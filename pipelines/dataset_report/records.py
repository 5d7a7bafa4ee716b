"""The parts of the page on single records: pictures, rejected rows, duplicates and leaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...transforms.format.flow.observers import PICTURES
from ...transforms.format.wording.printable import counted
from .facts import ReportFacts
from .markup import note, number, section, table, text_of
from .pictures import Picture


def pictures_section(facts: ReportFacts) -> str:
    """Return some pictures of each split."""
    if not facts.pictures:
        return ""
    words = note("Some pictures of each split, spread evenly over its records, with their boxes and words.")
    return section("pictures", "Pictures", words, f"<div class=pictures>{''.join(map(_picture, facts.pictures))}</div>")


def _picture(one: Picture) -> str:
    place = f"{one.split}, record {one.record:,}"
    words = "; ".join(one.words)
    if one.problem is not None:
        return f"<figure><figcaption>{text_of(place)}: {text_of(one.problem)}</figcaption></figure>"
    alt = text_of(f"{place}{': ' if words else ''}{words}")
    boxes = ""
    for box in one.boxes:
        left, top = box.left * one.width, box.top * one.height
        size = f'width="{(box.right - box.left) * one.width:.1f}" height="{(box.bottom - box.top) * one.height:.1f}"'
        label = (
            f'<text x="{left + 2:.1f}" y="{max(top - 3, 10):.1f}">{text_of(box.label, 24)}</text>' if box.label else ""
        )
        boxes += f'<rect x="{left:.1f}" y="{top:.1f}" {size}/>{label}'
    drawn = f'<svg viewBox="0 0 {one.width} {one.height}" aria-hidden=true>{boxes}</svg>' if boxes else ""
    counts = f" · {len(one.boxes):,} box{'' if len(one.boxes) == 1 else 'es'}" if one.boxes else ""
    return (
        f'<figure><div class=picture style="max-width:{one.width}px"><img src="{one.url}" width={one.width} '
        f'height={one.height} alt="{alt}">{drawn}</div>'
        f"<figcaption>{text_of(place)}{counts}{f'<br>{text_of(words)}' if words else ''}</figcaption></figure>"
    )


def rejects_section(facts: ReportFacts) -> str:
    """Return how many rows were rejected, why, and a few of them."""
    rejects = facts.rejects
    if not rejects.records:
        return section("rejects", "Rejected rows", note("None."))
    rows = [
        [text_of(code), number(count), *_reject(example)]
        for code, count in rejects.by_code.items()
        for example in (rejects.examples.get(code) or [{}])
    ]
    head = ["code", "rows with it", "where", "column", "value", "what is wrong, and the fix"]
    return section(
        "rejects",
        "Rejected rows",
        note(f"{counted(rejects.records, 'row')} could not become records; each of them is in the folder rejects."),
        table("Rejected rows by their code, with examples", head, rows, numbers_from=9),
    )


def _reject(error: Mapping[str, Any]) -> list[str]:
    if not error:
        return ["", "", "", ""]
    row = "" if error.get("row") is None else f", row {error['row']}"
    place = f"{error['source']}{row}"
    return [
        text_of(place),
        text_of(error.get("column") or ""),
        text_of(error["value"], 60),
        text_of(error["message"], 300),
    ]


def checks_section(facts: ReportFacts) -> str:
    """Return what was found of duplicates and of leaks between splits."""
    parts = []
    for generation, checks in facts.checks:
        for name, check in checks.items():
            parts.append(_check(generation, name, check))
    if not parts:
        how = "<code>--set checks.duplicates.action=report --set 'checks.leaks.columns=[NAME]'</code>"
        return section("checks", "Duplicates and leaks", note(f"Not looked for; a conversion with {how} does."))
    return section("checks", "Duplicates and leaks", *parts)


def _check(generation: int, name: str, check: Mapping[str, Any]) -> str:
    if name == PICTURES:
        title = f"<h3>Damaged or padded JPEG pictures in generation {generation}</h3>"
        first = "".join(f"<li>{text_of(place)}</li>" for example in check["examples"] for place in example["places"])
        return title + note(f"libjpeg warns of {number(check['records'])}. The first of them:") + f"<ul>{first}</ul>"
    columns = ", ".join(check["columns"]) or "the whole record"
    title = f"<h3>{text_of(name.capitalize())} in generation {generation}, by {text_of(columns)}</h3>"
    if "not_compared" in check:
        return title + note(f"Nothing to compare: {text_of(check['not_compared'])}.")
    what = "values in several splits" if name == "leaks" else "groups of equal records"
    of = "records have them" if name == "leaks" else "records repeat an earlier one"
    dropped = "; these were left out" if check.get("action") == "drop" else ""
    words = note(f"{number(check['groups'])} {what}; {number(check['records'])} {of}{dropped}.")
    shared = "".join(
        f"<li>{' and '.join(map(text_of, sorted(pair.split())))}: {number(count)}</li>"
        for pair, count in sorted(check.get("splits", {}).items(), key=lambda one: -one[1])
    )
    examples = "".join(
        f"<li>{number(example['records'])} records: {', '.join(map(text_of, example['places']))}</li>"
        for example in check.get("examples", ())
    )
    lists = (f"<p>In both:</p><ul>{shared}</ul>" if shared else "") + (
        f"<p>The first of them:</p><ul>{examples}</ul>" if examples else ""
    )
    return title + words + lists
