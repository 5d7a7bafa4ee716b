"""Write the report of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....transforms.dataset.generations.opened_generation import open_generation
from ....transforms.dataset.storage.incomplete_file import check_new, new_file
from ....transforms.errors import UsageError
from ....transforms.format.wording.printable import printable_path
from ....transforms.format.wording.sizes import format_size
from ...dataset_report.facts import gather_facts
from ...dataset_report.page import html_page
from .stats import statistics_of

if TYPE_CHECKING:
    from ...screens.screen import Screen


def report_command(
    path: str, target: str, screen: Screen, generation: int | None, *, quick: bool, overwrite: bool
) -> int:
    """Report a generation (None: the latest)."""
    root = path.rstrip("/") or path
    if not target.endswith((".html", ".htm")):
        raise UsageError(f"{printable_path(target)}: a report is an HTML file; name it so: -o report.html")
    check_new(target, overwrite=overwrite)
    opened = open_generation(root, generation)
    root, manifest, found = opened.path, opened.manifest, None
    with opened.unchanged():
        if manifest.schema is not None:
            found = statistics_of(root, manifest, "full", count=not quick)
        page = html_page(gather_facts(root, found, manifest.generation)).encode()
    with new_file(target) as file:
        file.write(page)
    screen.done = f"{printable_path(target)} was written"
    if screen.as_json:
        screen.data({"path": target, "bytes": len(page), "generation": manifest.generation})
    elif not screen.quiet:
        screen.text(f"Wrote {printable_path(target)} ({format_size(len(page))}); any browser shows it.", "green")
    return 0
