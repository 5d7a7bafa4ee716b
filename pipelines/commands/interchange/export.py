"""Export a dataset: one command over `dataset/export`, which chooses what to write by the name of the target."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....transforms.dataset.export.exported_rows import ExportedRows
from ....transforms.dataset.export.new_target import check_new, new_file, new_folder
from ....transforms.dataset.reading.open_dataset import open_dataset
from ....transforms.errors import UsageError
from ....transforms.format.wording.printable import counted, printable_path
from ....transforms.format.wording.sizes import format_size

if TYPE_CHECKING:
    from ...screens.screen import Screen


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What of a dataset is exported: a generation (None: the latest), one split and some columns (None: all)."""

    split: str | None = None
    columns: Sequence[str] | None = None
    generation: int | None = None
    overwrite: bool = False


def export_command(path: str, target: str, options: ExportOptions, screen: Screen) -> int:
    """Write a dataset as a table or a folder of pictures; return 0.

    Raises:
        InputError: there is no dataset, or no such generation.
        UsageError: the target is of no known kind, or the dataset has nothing for it.
        TargetError: the target exists, or cannot be written.
        DamageError: the dataset is damaged; nothing was written.
    """
    from ....transforms.dataset.export.tables import TABLES

    suffix = os.path.splitext(os.path.basename(target))[1].lower()
    is_folder = suffix == "" or target.endswith("/")
    if not is_folder and suffix not in TABLES:
        raise UsageError(
            f"{printable_path(target)}: an export is {', '.join(TABLES)}, or a folder of pictures, whose name has no "
            f"ending"
        )
    check_new(target, overwrite=options.overwrite)
    dataset = open_dataset(path, options.generation)
    rows = ExportedRows.plan(dataset, options.split, options.columns, one_table=not is_folder)
    pictures = None
    if is_folder:
        pictures = _export_pictures(rows, target)
    else:
        with new_file(target) as file:
            TABLES[suffix](rows, file)
    _print(rows, target, pictures, screen)
    return 0


def _export_pictures(rows: ExportedRows, target: str) -> int:
    from ....transforms.dataset.export.picture_folder import PictureFolder
    from ....transforms.dataset.export.picture_plan import PicturePlan

    schema = rows.dataset.schema
    assert schema is not None  # ExportedRows.plan refuses plain bytes
    plan = PicturePlan.of(schema, rows.dataset.labels, rows.columns, printable_path(rows.dataset.path))
    with new_folder(target) as root:
        folder = PictureFolder(root, rows, plan)
        folder.write()
    return folder.pictures


def _print(rows: ExportedRows, target: str, pictures: int | None, screen: Screen) -> None:
    from ...screens.terminal import shown_path

    splits = {name: rows.dataset.manifest.splits[name].records for name in rows.splits}
    if screen.as_json:
        document = {
            "path": printable_path(rows.dataset.path),
            "target": printable_path(target),
            "records": rows.records,
        }
        screen.data(document | {"splits": splits, "columns": rows.schema.names, "pictures": pictures})
    elif not screen.quiet:
        size = format_size(os.path.getsize(target)) if pictures is None else counted(pictures, "picture")
        of = f" ({', '.join(f'{name} {records:,}' for name, records in splits.items())})" if len(splits) > 1 else ""
        screen.text(f"Wrote {shown_path(target)}: {counted(rows.records, 'record')}{of}, {size}.", "bold green")
