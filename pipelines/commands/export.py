"""The commands `export` and `snippet`: a dataset as files of another format, or a program that reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from ...transforms.dataset.storage.direct_file import check_new, new_file, new_folder
from ...transforms.dataset.storage.manifest_files import read_manifest
from ...transforms.dataset.storage.object_storage import storage_at
from ...transforms.errors import UsageError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.manifest.naming import index_path
from ...transforms.format.schema.schema import Feature
from ...transforms.format.sidecars.programs import READERS, Subject, program
from ...transforms.format.sidecars.sidecar_files import CROISSANT, LABEL_MAP, has_id_0, sidecar_files
from ...transforms.format.wording.hints import Command, Set, set_column
from ...transforms.format.wording.printable import counted, first_names, format_size, printable, printable_path

if TYPE_CHECKING:
    import pyarrow as pa

    from ...transforms.dataset.reading.exported_tables import ExportedRows
    from ..screens.summary_screen import Screen


_FEW: Final = 8
_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What of a dataset is exported: a generation (None: the latest), one split and some columns (None: all).

    Of the rows those for which an expression is true, and of these the first so many.
    """

    split: str | None = None
    columns: Sequence[str] | None = None
    generation: int | None = None
    overwrite: bool = False
    where: str | None = None
    limit: int | None = None

    @property
    def of_rows(self) -> dict[str, object]:
        """The options that were given of those that choose rows and columns."""
        given = {"--split": self.split, "--columns": self.columns, "--where": self.where, "--limit": self.limit}
        return {name: value for name, value in given.items() if value is not None}


def export_command(path: str, target: str, options: ExportOptions, screen: Screen) -> int:
    from ...transforms.dataset.reading.exported_tables import OF_TEXT, TABLES, ExportedRows
    from ...transforms.dataset.reading.open_dataset import open_dataset

    name = os.path.basename(target)
    if name in (CROISSANT, "schema.pbtxt") or name.endswith(LABEL_MAP):
        return _export_sidecar(path, target, options, screen)
    suffix = os.path.splitext(name)[1].lower()
    is_folder = suffix == "" or target.endswith("/")
    if not is_folder and suffix not in TABLES:
        raise UsageError(
            f"{printable_path(target)}: an export is {', '.join(TABLES)}, croissant.json, label_map.pbtxt, or a folder "
            f"of pictures, whose name has no ending"
        )
    check_new(target, overwrite=options.overwrite)
    dataset = replace(open_dataset(path, options.generation), whole=True)
    rows = ExportedRows.plan(dataset, options.split, options.columns, one_table=not is_folder)
    rows = _chosen(rows, options)
    pictures, classes = None, list[str]()
    if is_folder:
        pictures, classes = _export_pictures(rows, target)
    else:
        with new_file(target) as file:
            TABLES[suffix](rows, file)
    screen.done = f"{printable_path(target)} was written"
    _print(rows, target, pictures, screen)
    if suffix in OF_TEXT:
        _say_types(rows, target, options, screen)
    if classes:
        screen.note(f"metadata.jsonl has classes as text; converted so, they are classes again: {' '.join(classes)}")
    return 0


def _chosen(rows: ExportedRows, options: ExportOptions) -> ExportedRows:
    """Return the rows for which the expression is true, or the first of them. Raises `UsageError` where it is wrong."""
    if options.where is None:
        return replace(rows, limit=options.limit)
    from ...transforms.dataset.rows.numbered_rows import SourceColumns
    from ...transforms.recipe.step import Column
    from ...transforms.recipe.steps.expression import read_expression
    from ...transforms.recipe.steps.where import Where

    try:
        read_expression(options.where)
    except ValueError as error:
        raise UsageError(f"--where: {error}") from error
    dataset, where = rows.dataset, Where(options.where, "--where", declares=False)
    assert dataset.schema is not None  # ExportedRows.plan refuses plain bytes
    every = SourceColumns.plan(dataset.manifest, dataset.schema, None, printable_path(dataset.path)).schema
    where.plan([Column(one, one.name) for one in every])

    def keep(batch: pa.RecordBatch) -> pa.BooleanArray:
        return where.apply(batch, "").keep

    return replace(rows, keep=keep, looked_at=where.reads, limit=options.limit)


def _say_types(rows: ExportedRows, target: str, options: ExportOptions, screen: Screen) -> None:
    from ...transforms.dataset.reading.exported_tables import without_types
    from ..screens.terminal import shown_path

    if names := without_types(rows.schema):
        given = options.of_rows | ({} if options.generation is None else {"--generation": options.generation})
        more = [
            part for key, value in given.items() for part in (key, str(value) if key == "--where" else _typed(value))
        ]
        whole = os.path.splitext(shown_path(target))[0] + ".parquet"
        what = "text there (bytes as base64) or numbers (durations), and come back as such"
        keep = Command("export", shown_path(rows.dataset.path), "-o", whole, *more)
        screen.note(f"{first_names(names, _FEW)}: {what}; to keep the types: {keep}")


def _typed(value: object) -> str:
    """Return an option's value as it is typed: names with a comma or quotes are in quotes."""
    names = value if isinstance(value, list) else [str(value)]
    return ",".join('"{}"'.format(name.replace('"', '""')) if {*name} & {",", '"'} else name for name in names)


def _export_pictures(rows: ExportedRows, target: str) -> tuple[int, list[str]]:
    """Write a folder of pictures; return how many there are, and the options that make classes of what lines say."""
    from ...transforms.dataset.reading.exported_pictures import PictureFolder, PicturePlan

    schema = rows.dataset.schema
    assert schema is not None  # ExportedRows.plan refuses plain bytes
    plan = PicturePlan.of(schema, rows.dataset.labels, rows.columns, printable_path(rows.dataset.path))
    with new_folder(target) as root:
        folder = PictureFolder(root, rows, plan)
        folder.write()
    said = plan.columns if plan.with_lines else ()
    labels = [one for one in schema if one.name in said and one.name in rows.dataset.labels and not one.shape]
    return folder.pictures, [option for one in labels for option in _label_options(one, rows.dataset.labels[one.name])]


def _label_options(label: Feature, names: Sequence[str]) -> list[str]:
    """Return the options that read a column of names as a label again, with the numbers that the classes have."""
    listed, more = set_column(label.name, "label", list(names)), ""
    if len(names) > _SHOWN:
        listed = set_column(label.name, "label", "[...]")
        more = f" (all {len(names):,} classes, in the order of info --json)"
    absent = [set_column(label.name, "null", "absent")] if label.nullable else []
    return [*map(str, absent), f"{listed}{more}"]


def _export_sidecar(path: str, target: str, options: ExportOptions, screen: Screen) -> int:
    from ...transforms.dataset.reading.open_dataset import open_dataset
    from ..screens.terminal import shown_path

    if (alien := next(iter(options.of_rows), None)) is not None:
        raise UsageError(f"{alien} is for tables and pictures; {printable_path(target)} is of the whole dataset")
    check_new(target, overwrite=options.overwrite)
    manifest = open_dataset(path, options.generation).manifest
    name, where = os.path.basename(target), printable_path(path)
    files = sidecar_files(manifest, ("tfx", "croissant", "label_map"), None)
    if manifest.schema is None:
        raise UsageError(f"{where}: its records are plain bytes without a schema, so {name} has nothing to say")
    if name not in files and not manifest.labels:
        raise UsageError(
            f"{where}: no feature is a label, so there is no label map; a column becomes one where it is converted: "
            f"{Set('schema.columns.NAME.label', True)}"
        )
    if name not in files:
        maps = ", ".join(one for one in files if one.endswith(LABEL_MAP))
        raise UsageError(f"{where}: has several labels, each with a map of its own; choose among {maps}")
    with new_file(target) as file:
        file.write(files[name])
    screen.done = f"{printable_path(target)} was written"
    if screen.as_json:
        screen.data({"path": where, "target": printable_path(target)})
    elif not screen.quiet:
        screen.text(f"Wrote {shown_path(target)}: {format_size(len(files[name]))}.", "bold green")
    if name.endswith(LABEL_MAP) and has_id_0(files[name]):
        screen.note(_below_1(manifest), "yellow")
    return 0


def _below_1(manifest: Manifest) -> str:
    fix = ""
    if manifest.source.format == "images":
        fix = f"; convert again {Set('input.label_offset', 1)}"
    elif manifest.source.format not in ("coco", "voc", "yolo"):
        label = Set("schema.columns.NAME.label", "[_unused_0, ...]")
        fix = f"; convert again with _unused_0 as the first class of its text: {label}"
    return f"Warning: TensorFlow's Object Detection API takes no id below 1, and a class has 0{fix}"


def _print(rows: ExportedRows, target: str, pictures: int | None, screen: Screen) -> None:
    from ..screens.terminal import shown_path

    splits, records = dict(rows.written), sum(rows.written.values())
    if screen.as_json:
        document = {
            "path": printable_path(rows.dataset.path),
            "target": printable_path(target),
            "records": records,
        }
        screen.data(document | {"splits": splits, "columns": rows.schema.names, "pictures": pictures})
    elif not screen.quiet:
        size = format_size(os.path.getsize(target)) if pictures is None else counted(pictures, "picture")
        of = f" ({', '.join(f'{name} {records:,}' for name, records in splits.items())})" if len(splits) > 1 else ""
        screen.text(f"Wrote {shown_path(target)}: {counted(records, 'record')}{of}, {size}.", "bold green")


def snippet_command(reader: str, path: str, split: str | None, screen: Screen) -> int:
    if reader not in READERS:
        raise UsageError(f"there is no snippet for {printable(reader)}; choose among {', '.join(READERS)}")
    manifest = read_manifest(path)
    subject = Subject.of(path, manifest, split, _decoded(path, manifest))
    first = manifest.splits[subject.split].shards[0].path
    if reader == "dali" and not subject.gzip and storage_at(path).size(index_path(first, "text")) is None:
        raise UsageError(
            f"{printable_path(path)}: DALI reads shards by text indexes, which are missing: "
            f"{Command('index', path, '--text')}"
        )
    if reader == "mlcroissant" and storage_at(path).size(CROISSANT) is None:
        raise UsageError(
            f"{printable_path(path)}: croissant.json is missing: {Command('export', path, '-o', f'{path}/{CROISSANT}')}"
        )
    code = program(reader, subject)
    if screen.as_json:
        screen.data({"path": printable_path(path), "reader": reader, "split": subject.split, "code": code})
    else:
        for line in code.splitlines():
            screen.text(line)
    return 0


def _decoded(path: str, manifest: Manifest) -> tuple[str, ...]:
    """Return the features whose pictures TensorFlow decodes, as `features.json` says; without it, all of pictures."""
    pictures = [one.name for one in manifest.schema or () if one.type == "image"]
    if "features.json" not in manifest.sidecars or not pictures:
        return tuple(pictures)
    document = json.loads(storage_at(path).read("features.json"))
    return tuple(name for name in pictures if _class_of(document, name).endswith(".Image"))


def _class_of(document: Any, name: str) -> str:
    for step in [name] if name in document["featuresDict"]["features"] else name.split("/"):
        document = document["featuresDict"]["features"][step]
    return str(document["pythonClassName"])
