"""All formats of files: the source that reads each, the lines that `init` writes, and the keys that it refuses.

A source is imported when it is asked for: a config is checked with this module, and needs no pyarrow.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..errors import UsageError
from ..inputs.contract.selection import Call
from .registry.format import Detected, Format
from .registry.options import (
    AnnotationInput,
    ArchiveInput,
    ArrowInput,
    BoxesInput,
    CocoInput,
    CsvInput,
    ImagesInput,
    JsonLinesInput,
    NamedClassesInput,
    NumpyInput,
    ParquetInput,
    TarInput,
    TextInput,
    TfrecordInput,
    VocInput,
    YoloInput,
    ZipInput,
)
from .registry.settings import Limits, Settings

if TYPE_CHECKING:
    from ..inputs.contract.source import Source
    from .annotations.rows import AnnotationOptions, PictureFolder


_CSV_STARTER: Final = """\
  delimiter: "{sign}"
  header: true                # false: give the names of the columns in `names`
  encoding: utf-8
  null_values: [""]           # unquoted cells that are null; NA is text
  # columns: {columns}
schema:
  infer: auto                 # full: look at every row | none: all columns are text
  columns: {{}}                 # {{{column}: {{type: string}}}}
"""


class CsvFormat(Format[CsvInput]):
    """Text whose records are lines, but for line ends in quotes."""

    options = CsvInput
    detected_option = "delimiter"
    projects = True
    takes_types = True
    takes_null_words = "all"
    shows_columns = True

    def source(self, options: CsvInput, settings: Settings) -> Source:
        from .csv.parse import CsvLimits
        from .csv.source import CsvSource

        return CsvSource(options, settings, limits=CsvLimits.of(settings.limits))

    def detect(self, given: Mapping[str, Any], paths: Sequence[str], base: str, call: Call) -> Detected:  # noqa: ARG002
        from .csv.delimiter import SampleOptions, detect_delimiter

        ignore = [one for one in given.get("ignore") or () if isinstance(one, str)]
        found = detect_delimiter(paths, base, SampleOptions.of(given), ignore)
        return Detected(found.sign, found.evidence)

    def starter(self, options: CsvInput, columns: str, column: str) -> str:
        sign = options.delimiter.replace("\t", "\\t")
        return _CSV_STARTER.format(sign=sign, columns=columns, column=column)


CSV: Final = CsvFormat()


_PARQUET_STARTER: Final = """\
  checksums: true             # verify the pages that carry one
  # columns: {columns}
schema:
  columns: {{}}{exact}
"""
_EXACT: Final = "                 # {{{column}: {{as: bytes}}}} keeps float64 exact"


class ParquetFormat(Format[ParquetInput]):
    """Tables with types, in row groups."""

    options = ParquetInput
    projects = True
    takes_types = True
    shows_columns = True
    example_type = "double"

    def source(self, options: ParquetInput, settings: Settings) -> Source:
        from .parquet.source import ParquetSource

        return ParquetSource(options, settings)

    def starter(self, options: ParquetInput, columns: str, column: str) -> str:  # noqa: ARG002
        return _PARQUET_STARTER.format(columns=columns, exact=_EXACT.format(column=column) if column else "")


PARQUET: Final = ParquetFormat()


_ARROW_STARTER: Final = """\
  # columns: {columns}
schema:
  columns: {{}}{exact}
"""


class ArrowFormat(Format[ArrowInput]):
    """Tables with types, in record batches."""

    options = ArrowInput
    projects = True
    takes_types = True
    shows_columns = True
    example_type = "double"

    def source(self, options: ArrowInput, settings: Settings) -> Source:
        from .arrow.source import ArrowSource

        return ArrowSource(options, settings)

    def starter(self, options: ArrowInput, columns: str, column: str) -> str:  # noqa: ARG002
        return _ARROW_STARTER.format(columns=columns, exact=_EXACT.format(column=column) if column else "")


ARROW: Final = ArrowFormat()


_LINES_STARTER: Final = """\
  # columns: {columns}
schema:
  infer: auto                 # full: look at every value | none: all columns are the text of their values
  columns: {{}}                 # {{{column}: {{type: string}}}}
"""


class JsonLinesFormat(Format[JsonLinesInput]):
    """Lines that are objects, whose keys are the columns."""

    options = JsonLinesInput
    projects = True
    takes_types = True
    takes_null_words = "text"
    rows_are_lines = True
    shows_columns = True
    starter_text = _LINES_STARTER

    def source(self, options: JsonLinesInput, settings: Settings) -> Source:
        from .jsonl.source import JsonLinesSource
        from .text.lines import LineSizes

        limits = settings.limits
        return JsonLinesSource(options, settings, LineSizes(limits.record_bytes, limits.field_bytes, json=True))


JSONL: Final = JsonLinesFormat()


class TextFormat(Format[TextInput]):
    """Lines of text."""

    options = TextInput
    rows_are_lines = True

    def source(self, options: TextInput, settings: Settings) -> Source:
        from .text.lines import LineSizes
        from .txt.source import TextSource

        limits = settings.limits
        return TextSource(options, settings, LineSizes(limits.record_bytes, limits.field_bytes))


TXT: Final = TextFormat()


_NUMPY_STARTER: Final = """\
  rows: false                 # true: the first axis of an array is the row
  feature: array              # the name of the feature
"""


class NumpyFormat(Format[NumpyInput]):
    """Arrays, one in a file or several."""

    options = NumpyInput
    projects = True
    takes_types = True
    starter_text = _NUMPY_STARTER

    def source(self, options: NumpyInput, settings: Settings) -> Source:
        from .numpy.source import NumpySource

        return NumpySource(options, settings)

    def field_bytes(self, limits: Limits) -> int:
        """Return the largest array, which may fill a record."""
        return limits.record_bytes


NUMPY: Final = NumpyFormat()


_TFRECORD_STARTER: Final = """\
  records: example            # opaque: records need not be Examples
"""


class TfrecordFormat(Format[TfrecordInput]):
    """Existing records, which are passed on unchanged: what decides their split is read in them, and no more."""

    options = TfrecordInput
    refused_keys = (
        "input.columns",
        "input.exclude_columns",
        "input.limit",
        "schema.columns",
        "map",
        "checks",
    )
    has_rows = False
    starter_text = _TFRECORD_STARTER

    def source(self, options: TfrecordInput, settings: Settings) -> Source:
        from .tfrecord.source import TfrecordSource

        return TfrecordSource(options, settings)


TFRECORD: Final = TfrecordFormat()


_ARCHIVE_STARTER: Final = """\
  layout: auto                # label | split | split_label | inner_label | flat: what the folders in the archives mean
  # ignore: ["*.npy"]         # members that are left out
schema:
  columns: {{}}                 # {{cls: {{label: [cat, dog]}}}}
"""


class ArchiveFormat(Format[ArchiveInput]):
    """Archives whose members are read in their order, without unpacking them."""

    kind: ClassVar[str]
    projects = True
    takes_types = True
    numbered = ("image/class/label", "cls")
    starter_text = _ARCHIVE_STARTER

    def source(self, options: ArchiveInput, settings: Settings) -> Source:
        from .archives.samples import Naming
        from .archives.source import ArchiveSource

        key, ignore = options.key or "first_dot", tuple(options.ignore)
        naming = Naming(key, options.pictures, options.json_, ignore, key_is_chosen=options.key is not None)
        return ArchiveSource(options, settings, naming)

    def field_bytes(self, limits: Limits) -> int:
        return max(limits.field_bytes, limits.image_bytes)


class TarFormat(ArchiveFormat):
    """Tar archives: WebDataset's shards, and folders of pictures that were packed."""

    options = TarInput
    kind = "tar"


class ZipFormat(ArchiveFormat):
    """Zip archives."""

    options = ZipInput
    kind = "zip"


TAR: Final = TarFormat()
ZIP: Final = ZipFormat()


_IMAGES_STARTER: Final = """\
  layout: auto                # label | split | split_label | inner_label | flat: what the folders mean
  check: structure            # header | structure | decode: how closely each image is looked at
# shuffle: {{seed: 7}}
"""


class ImagesFormat(Format[ImagesInput]):
    """Files of which each is one row."""

    options = ImagesInput
    refused_keys = ("schema.columns",)
    is_shuffled = True
    projects = True
    starter_text = _IMAGES_STARTER

    def source(self, options: ImagesInput, settings: Settings) -> Source:
        from .images.source import ImageSource

        return ImageSource(options, settings)

    def field_bytes(self, limits: Limits) -> int:
        return limits.image_bytes


IMAGES: Final = ImagesFormat()


def _folders(options: AnnotationInput, base: str) -> tuple[tuple[bytes, PictureFolder], ...]:
    from .annotations.rows import PictureFolder

    images = [os.path.abspath(os.path.join(base, one)) for one in options.images or ()]
    files = [os.fsencode(os.path.abspath(os.path.join(base, one))) for one in options.paths]
    if len(images) < 2:
        return tuple((one, PictureFolder(folder)) for one in files for folder in images)
    if len(images) != len(files):
        raise UsageError(f"input.images: has {len(images)} folders for {len(files)} paths; give one for each")
    root = os.path.commonpath(images)
    pairs = zip(files, images, strict=True)
    return tuple((one, PictureFolder(folder, os.path.relpath(folder, root))) for one, folder in pairs)


def _annotations(options: AnnotationInput, settings: Settings, wanted: AnnotationOptions) -> Source:
    from .annotations.source import AnnotationSource

    kind, paths, ignore = options.format, tuple(options.paths), tuple(options.ignore)
    return AnnotationSource(kind, paths, settings.base, wanted, ignore=ignore, splits=settings.splits)


class NamedClassesFormat(Format[NamedClassesInput]):
    """Files that name classes, and do not number them."""

    def source(self, options: NamedClassesInput, settings: Settings) -> Source:
        from .annotations.rows import AnnotationOptions

        wanted = AnnotationOptions(
            label_offset=options.label_offset,
            names=tuple(options.classes) if isinstance(options.classes, list) else None,
            folders=_folders(options, settings.base),
            numeric=options.classes == "numeric",
        )
        return _annotations(options, settings, wanted)


class CocoFormat(Format[CocoInput]):
    """Files that list pictures, and what is in them."""

    options = CocoInput

    def source(self, options: CocoInput, settings: Settings) -> Source:
        from .annotations.rows import AnnotationOptions

        folders = _folders(options, settings.base)
        wanted = AnnotationOptions(masks=options.masks, folders=folders, dense=options.classes == "dense")
        return _annotations(options, settings, wanted)


class VocFormat(NamedClassesFormat):
    """Files of which each names a picture, and what is in it."""

    options = VocInput


class BoxesFormat(NamedClassesFormat):
    """Tables of which each row is a box in the picture that it names."""

    options = BoxesInput


class YoloFormat(Format[YoloInput]):
    """Files of which each has the name of a picture, and says what is in it."""

    options = YoloInput

    def source(self, options: YoloInput, settings: Settings) -> Source:
        if not options.images:
            raise UsageError("input.images: is missing; name the folder of the pictures")
        from .annotations.rows import AnnotationOptions

        wanted = AnnotationOptions(
            masks=options.masks,
            label_offset=options.label_offset,
            names=None if options.classes is None else tuple(options.classes),
            folders=_folders(options, settings.base),
        )
        return _annotations(options, settings, wanted)


COCO: Final = CocoFormat()
VOC: Final = VocFormat()
BOXES: Final = BoxesFormat()
YOLO: Final = YoloFormat()
