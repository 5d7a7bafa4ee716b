"""Pick the format of some paths by the suffixes of their files; say what other files are, and what to do."""

from __future__ import annotations

import glob
import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final

from ..errors import InputError, SourceError
from ..format.manifest.naming import is_list_path
from ..format.tfrecord.framing import HEADER_BYTES
from ..format.tfrecord.scan import is_record_header
from ..format.wording.hints import Add, Command, Foreign, Set
from ..format.wording.printable import first_names, printable_path, shell_path
from ..inputs.contract.selection import Call, shown_path, typed_path
from ..inputs.files.file_names import (
    FORMATS,
    HEAD_BYTES,
    RECORD_NAMES,
    files_below,
    format_of_first_bytes,
    format_of_name,
    has_suffix,
    is_other_file,
    notes_among,
    pictures_below,
    with_tabs,
)
from ..inputs.files.listing import beginning_of, glob_of_files, list_file, some_paths, unpacked
from ..inputs.files.open_file import is_object, open_file, open_listed, read_at
from .beside.files import MOST_NAMES, Around, archives_beside, is_archive, kept_in_a_store
from .beside.tables import files_of_labels, tables_of_pictures
from .evidence.hugging_face import refuse_missing_folders
from .evidence.json_documents import (
    columns_in_manifest,
    columns_of_document,
    document_in,
    has_splits,
    of_equal_columns,
    rows_of_document,
    tables_apart,
)
from .evidence.names import as_split, is_split_folder, split_in_words, table_in_path
from .evidence.picture_tables import by_metadata, is_picture_table
from .evidence.tfds import OTHER_SHARDS, OTHER_SUFFIXES, refuse_other_records
from .foreign_texts import is_conll, is_fasttext, is_libsvm, python_of, told_of_text
from .pictures.layout import classes_of_folders
from .strangers.pictures import refuse_mnist, refuse_other_sets
from .strangers.tables import told_of_translations

_BESIDE: Final = 100
_PICTURES: Final = tuple(suffix for entry in FORMATS.values() if entry.has_notes for suffix in entry.suffixes)


class UnclearFormat(InputError):
    """The names of the files show no format, or several."""


@dataclass(frozen=True)
class Paths:
    """Files, folders and globs as they were typed, relative to `base`; `call` is the command that an error proposes."""

    typed: Sequence[str]
    base: str = ""
    call: Call = field(default_factory=Call)
    ignore: Sequence[str] = ()

    @cached_property
    def known(self) -> list[bytes]:
        """The files of known suffixes: of a folder of pictures the first of each, of others the first ones."""
        return _known_files(self.typed, self.base, self.ignore)

    @cached_property
    def files(self) -> list[bytes]:
        """The known files without the lists of datasets, and tables where pictures are."""
        return _without_tables(_without_lists(self.known))

    @cached_property
    def by_format(self) -> dict[str | None, bytes]:
        """A file of each format that names show."""
        whole = len(self.typed) == 1 and not glob.has_magic(self.typed[0])
        found: dict[str | None, bytes] = {}
        for path in self.files if whole else _without_notes(self.files):
            found.setdefault(_format_of(path), path)
        return found


def pictures_of_a_table(paths: Paths) -> str | None:
    """Tables name pictures whose own names have no suffix that shows it."""
    if not paths.files or not all(map(_is_picture_table, paths.files)):
        return None
    folders = [os.fsencode(os.path.join(paths.base, path)) for path in paths.typed]
    beside = [path for folder in folders if os.path.isdir(folder) for path in islice(pictures_below(folder), _BESIDE)]
    if beside and all(map(is_archive, beside)):
        unpack = next(archives_beside(Around(form="images", call=paths.call, notable=beside)))
        raise InputError(f"{printable_path(paths.typed[0])}: holds a table of pictures, and no pictures; {unpack}")
    try:
        return "images" if beside and by_metadata({"format": "images"}, paths.typed, paths.base, paths.call) else None
    except InputError:
        return None


def records_of_spark(paths: Paths) -> str | None:
    """Files that Spark calls part-r-00000, and others beside them none, begin as records do."""
    if any(paths.by_format):
        return None
    try:
        found = some_paths(paths.typed, paths.base, RECORD_NAMES, ignore=paths.ignore)
        if not all(has_suffix(os.fsdecode(one), RECORD_NAMES) for one in found):
            return None
        with open_listed(list_file(found[0], b"/"), open_file) as file:
            return _format_by_head(read_at(file)(HEAD_BYTES, 0))
    except (InputError, SourceError, OSError):
        return None  # the rules below say what is wrong


def arrays_of_mnist(paths: Paths) -> None:
    """A folder of MNIST's arrays is refused, with the lines of Python that read them."""
    refuse_mnist(paths.typed, paths.base, paths.call)


def records_of_tfds(paths: Paths) -> None:
    """Files of TFDS in another format than TFRecord are refused: of Parquet, each row would be an Example's bytes."""
    names = [one for one in paths.files if not one.endswith(b".labels.txt")]
    if not names or _format_of(names[0]) is None:
        try:
            names = some_paths(paths.typed, paths.base, OTHER_SUFFIXES, ignore=paths.ignore)
        except InputError:
            return  # there is none
    if OTHER_SHARDS.search(os.fsdecode(names[0])):
        refuse_other_records(os.path.dirname(os.fsdecode(names[0])), paths.call)


def lists_of_sounds(paths: Paths) -> None:
    """Lists that name sounds beside them are no texts: a line of Python reads these, with the splits of the lists."""
    root = os.path.join(paths.base, paths.typed[0])
    named = [one for one in paths.files if _LISTS_OF_SPLITS.fullmatch(os.path.basename(one))]
    if len(paths.typed) > 1 or not named or not os.path.isdir(root):
        return
    folder, lists, end = typed_path(root), dict[str, str](), ""
    for path in named:
        first = next(iter(_lines_of(_head(os.fsdecode(path)))), b"").strip()
        split = split_in_words(os.path.basename(os.fsdecode(path)))
        if split and first.lower().endswith(_SOUNDS) and os.path.isfile(os.path.join(os.fsencode(root), first)):
            lists[typed_path(os.fsdecode(path))], end = split, os.path.splitext(os.fsdecode(first))[1]
    if lists:
        lines = "pathlib.Path(file).read_text().splitlines()"
        said = f"{{line: split for file, split in {lists}.items() for line in {lines}}}"
        data = (
            f"[{{'name': path.name, 'folder': path.parent.name, 'split': splits.get(path.relative_to({folder!r})"
            f".as_posix(), 'train'), 'audio': path.read_bytes()}} for splits in [{said}] for path in "
            f"sorted(pathlib.Path({folder!r}).glob({f'[!_]*/*{end}'!r}))]"
        )
        what = f"{first_names(sorted(lists), 8)}: name the sounds of splits, and are no texts"
        how = "sounds are not decoded; a record for each file, with its bytes, in Python"
        raise InputError(f"{what}; {how}: {paths.call.of_data(data, split__column='split')}")


_LISTS_OF_SPLITS: Final = re.compile(rb".*\.(?:txt|lst)", re.IGNORECASE)
_SOUNDS: Final = (b".wav", b".flac", b".mp3", b".ogg")


def nothing_known(paths: Paths) -> None:
    """A folder without a known suffix, but for notes, is refused, with what its first file shows."""
    one = paths.typed[0]
    if not paths.files or _are_notes_of_others(paths.files, os.path.join(paths.base, one), len(paths.typed)):
        refuse_missing_folders(os.path.abspath(os.fsencode(os.path.join(paths.base, one))))
        inside = glob_of_files(one, os.path.abspath(os.fsencode(paths.base)))
        how = _how_unnamed_are_read(one, inside, paths.base, paths.call)
        named = shell_path(inside or os.path.join(one, "*"))
        fix = how or f"name its files ({named}), and say which they are: {_choices()}"
        raise UnclearFormat(f"{printable_path(one)}: holds no file of a known kind; {fix}")


def _are_notes_of_others(files: Sequence[bytes], folder: str, typed: int) -> bool:
    """Return whether files are notes on what a folder holds besides: a README.txt above, or among, other files."""
    if typed > 1 or not os.path.isdir(folder) or len(notes_among(files, folders=True)) < len(files):
        return False
    every = glob_of_files(os.path.abspath(folder), b"/")
    beside = [os.fsencode(one) for one in glob.iglob(every) if os.path.isfile(one)] if every else []
    return bool(beside) and len(notes_among(beside, folders=True)) < len(beside)


def texts_beside_data(paths: Paths) -> None:
    """Texts beside files of programs, whose format their names do not show, are more likely notes on these."""
    root = os.path.join(paths.base, paths.typed[0])
    if len(paths.typed) > 1 or not os.path.isdir(root) or {*map(_format_of, paths.files)} != {"txt"}:
        return
    every_file = [*islice(files_below(os.fsencode(root)), MOST_NAMES)]
    data = [path for path in every_file if _DATA.search(path)] or _lines_of_json(every_file)
    data = data or _in_splits_apart(every_file, paths.files)
    if not data:
        return
    every = sorted({f"*{_end_of(os.fsdecode(one))}" for one in data})
    beside = first_names([shown_path(one) for one in paths.files], 2)
    first = min(data)
    kind = "jsonl" if _end_of(os.fsdecode(first)) in _JSON else _kind_by_content(first)
    pattern = os.path.join(glob.escape(os.path.dirname(os.fsdecode(first))), f"*{_end_of(os.fsdecode(first))}")
    command = paths.call.reading([typed_path(pattern)], Add("--format", kind)) if kind else None
    read = f"; to read these: {command}" if command else ""
    raise UnclearFormat(
        f"{shown_path(os.fsencode(root))}: holds texts ({beside}) beside files of another kind "
        f"({first_names(every, 4)}){read}; to read the texts: {Set('input.format', 'txt')}"
    )


def _in_splits_apart(files: Sequence[bytes], texts: Sequence[bytes]) -> list[bytes]:
    """Return the files of no known kind that are in folders of splits, where no texts are: `train/seq.in`."""
    folders = {os.path.dirname(path) for path in files if is_split_folder(os.path.basename(os.path.dirname(path)))}
    folders -= {*map(os.path.dirname, texts)}
    return [path for path in files if os.path.dirname(path) in folders and _format_of(path) is None]


def _lines_of_json(files: Sequence[bytes]) -> list[bytes]:
    """Return the first few files of JSON if they hold lines of objects, as manifests of sounds do."""
    found = [path for path in files if _end_of(os.fsdecode(path).lower()) in _JSON][:_MOST_ENDS]
    lines = [_lines_of(unpacked(beginning_of(path, 1 << 14), 1 << 14)) for path in found]
    return found if all(len(some) > 1 and _options_for(some) == _JSON_LINES for some in lines) else []


_DATA: Final = re.compile(
    rb"\.(?:tf_?records?|rec|bin|mat|h5|hdf5|pkl|pickle|pt|pth|safetensors|mdb|lmdb|sav|dta|sas7bdat|rds|rdata|xlsx?|orc|"
    rb"avro|msgpack|db|sqlite3?)\Z",
    re.IGNORECASE,
)
"""Suffixes of files that programs write data to, and that no format of ours has."""


def unknown_kind(paths: Paths) -> None:
    """A file whose name shows no format is refused, with what its first bytes show."""
    path = paths.by_format.get(None)
    if path is None:
        return
    end = _end_of(os.fsdecode(path))
    alike = [one for one in paths.files if _end_of(os.fsdecode(one)) == end and _format_of(one) is None]
    if document := _why_document(paths, alike):
        raise InputError(document)
    if alike[0] in _lines_of_json(alike):
        raise UnclearFormat(f"{shown_path(path)}: is JSON whose lines are objects; to read it so: {_JSON_LINES}")
    if why := _why_unknown(alike, paths.call):
        raise InputError(f"{shown_path(path)}: {why}")
    if kind := _kind_by_content(path):
        found = f"the first bytes are those of {FORMATS[kind].called}; read it as one: {Add('--format', kind)}"
        raise UnclearFormat(f"{shown_path(path)}: its name shows no format, and {found}")
    lines = _lines_of(_head(os.fsdecode(path))) if os.path.isfile(path) else []
    alike, splits = _of_one_text(path, [one for one in paths.files if _format_of(one) is None], lines)
    if told := told_of_text(lines, _typed(alike), paths.call, splits=splits):
        raise InputError(f"{shown_path(path)}: {told}")
    if tabs := with_tabs(typed_path(os.fsdecode(path)), lines):
        raise UnclearFormat(f"{shown_path(path)}: its name shows no format, and {tabs}")
    if lines and (how := _options_for(lines)):
        shown = "its first lines show how to read it"
        raise UnclearFormat(f"{shown_path(path)}: its name shows no format, and {shown}: {how}")
    raise UnclearFormat(f"{shown_path(path)}: unknown kind of file; say which it is: {_choices()}")


def _why_document(paths: Paths, alike: Sequence[bytes]) -> str:
    """Return how files are left out that are JSON documents beside files of rows; nothing for other files."""
    if not alike[0].lower().endswith(b".json") or len(alike) > _MOST_FILES:
        return ""
    heads = {one: beginning_of(one, 1 << 14) for one in alike}
    rows = [one for one, head in heads.items() if _options_for(_lines_of(head))]
    documents = [one for one in alike if one not in rows]
    known = [file for kind, file in paths.by_format.items() if kind]
    if len(known) == 1 and not rows:
        beside, leave, options = known[0], ["*.json"], list[Add]()
    elif documents and not known and len(rows) >= len(documents):
        leave, options = [glob.escape(os.path.basename(os.fsdecode(one))) for one in documents], [_JSON_LINES]
        beside = rows[0]
    else:
        return ""
    left = {os.fsdecode(one) for one in documents}
    typed = [one for one in paths.typed if os.path.abspath(os.path.join(paths.base, one)) not in left]
    options += [Set("input.ignore", [*paths.ignore, *leave])] if any(map(glob.has_magic, typed)) else []
    what = f"is a JSON document{', as others are' if len(documents) > 1 else ''}, and {shown_path(beside)} holds rows"
    return f"{shown_path(documents[0])}: {what}; to read rows alone: {paths.call.reading(typed, *options)}"


def several_kinds(paths: Paths) -> None:
    """Files of several formats are refused."""
    by_format = paths.by_format
    if len(by_format) > 1:
        if "images" in by_format:
            refuse_other_sets({"format": "images"}, paths.typed, paths.base, paths.call)
        found = ", ".join(f"{shown_path(path)} is {kind}" for kind, path in by_format.items())
        options = " or ".join(f"{Set('input.format', kind)}" for kind in by_format)
        named = any(os.path.isfile(os.path.join(paths.base, path)) for path in paths.typed)  # read whatever the format
        fix = "name the files of one kind" if named else f"say which to read: {options}"
        if by_format.keys() == {"images", "csv"}:
            tables = [path for path in paths.files if _format_of(path) == "csv"]
            folders = dict.fromkeys(os.path.dirname(os.fsdecode(path)) for path in paths.files if _may_have_notes(path))
            one = paths.typed[0] if len(paths.typed) == 1 else ""
            root = one if "://" in one else os.path.join(paths.base, one)
            root = root if one and ("://" in one or os.path.isdir(root)) else ""
            texts = sorted(glob.glob(os.path.join(glob.escape(root), "*.json"))) if root else []
            pictures = islice(pictures_below(os.fsencode(root)), MOST_NAMES) if os.path.isdir(root) else ()
            around = Around(
                form="images",
                call=paths.call,
                notable=tables,
                texts=[*map(os.fsencode, texts)],
                folders=list(folders),
                root=root,
                files=[os.path.basename(os.fsdecode(path)) for path in pictures],
                others=False,
            )
            rules = (kept_in_a_store,) if "://" in root else (tables_of_pictures, files_of_labels)
            fix += "".join(f"\n  {line}" for rule in rules for line in rule(around))
        raise UnclearFormat(f"the paths hold several kinds of files ({found}); {fix}")


def one_kind(paths: Paths) -> str:
    """All files have suffixes of one format."""
    return str(next(iter(paths.by_format)))


KINDS: Final[tuple[Callable[[Paths], str | None], ...]] = (
    pictures_of_a_table, records_of_spark, arrays_of_mnist, records_of_tfds, lists_of_sounds, nothing_known,
    texts_beside_data, unknown_kind, several_kinds, one_kind,
)  # fmt: skip
"""The rules of formats: the first answer is it."""


def _choices() -> str:
    first, *others = FORMATS
    return f"{Set('input.format', first)} (or {', '.join(others)})"


def _without_lists(files: list[bytes]) -> list[bytes]:
    """Return the files without the lists of sources and rejects of datasets, which are lines of JSON beside records."""
    datasets = {os.path.dirname(path) for path in files if _format_of(path) == "tfrecord"}

    def is_list(path: bytes) -> bool:
        folder, name = os.path.split(path)
        dataset, kind = os.path.split(folder)
        return dataset in datasets and is_list_path(os.fsdecode(os.path.join(kind, name)), os.fsdecode(kind))

    return [path for path in files if not is_list(path)]


def _without_tables(files: list[bytes]) -> list[bytes]:
    """Return the files without tables that may name pictures, where pictures are: their format says what to do."""
    tables = {path for path in files if _is_picture_table(path)}
    pictures = tables and any(_may_have_notes(path) for path in files)
    return [path for path in files if path not in tables] if pictures else files


def _is_picture_table(path: bytes) -> bool:
    return not is_object(path) and is_picture_table(os.fsdecode(path))


def may_be_picture_table(path: bytes) -> bool:
    """Return whether a file, or one that comes after it in its folder, may be a table that names pictures."""
    return path.lower().endswith((b".csv", b".jsonl", b".parquet")) and not is_object(path)


def _without_notes(files: list[bytes]) -> list[bytes]:
    """Return what a glob found, of images without the files beside them that no image is: a README.txt, a labels.csv.

    Data of another format is that only beside several folders of images, as classes are.
    """
    folders = {os.path.dirname(path) for path in files if _may_have_notes(path)}
    if not folders:
        return files
    beside = {os.path.dirname(folder) for folder in folders} if len(folders) > 1 else set()

    def is_note(path: bytes) -> bool:
        known = _format_of(path)
        plain = known is None or FORMATS[known].may_be_notes > 0
        return is_other_file(os.path.basename(path)) and (plain or os.path.dirname(path) in beside)

    return [path for path in files if _may_have_notes(path) or not is_note(path)]


def _known_files(paths: Sequence[str], base: str, ignore: Sequence[str]) -> list[bytes]:
    """Return the files of known suffixes that paths name; of several, a folder that holds none has no say."""
    ranks = sorted({entry.may_be_notes for entry in FORMATS.values()})
    return next((files for rank in ranks if (files := _files_of(paths, base, ignore, rank))), [])


def _files_of(paths: Sequence[str], base: str, ignore: Sequence[str], rank: int) -> list[bytes]:
    entries = [entry for entry in FORMATS.values() if entry.may_be_notes <= rank]
    known = tuple(suffix for entry in entries for suffix in entry.suffixes)
    try:
        return some_paths(paths, base, known, few=_PICTURES, ignore=ignore)
    except InputError as error:
        if "one of the suffixes" not in str(error):
            raise
    apart = [_files_of([path], base, ignore, rank) for path in paths] if len(paths) > 1 else []
    return [file for files in apart for file in files]


_ROWS: Final = "[row for path in {every} for row in {read}]"
_FOREIGN: Final = {
    (".json",): (
        f"JSON is read where each line is an object ({Set('input.format', 'jsonl')}); one array",
        "json.loads(pathlib.Path({path}).read_bytes())",
        _ROWS,
    ),
    (".json.gz",): (
        f"JSON is read where each line is an object ({Set('input.format', 'jsonl')}); one array",
        "json.loads(gzip.open({path}).read())",
        _ROWS,
    ),
    (".avro",): (
        "Avro files are not supported yet;",
        "[*fastavro.reader(io.BytesIO(pathlib.Path({path}).read_bytes()))]",
        _ROWS,
    ),
    (".wav", ".flac", ".mp3", ".ogg"): (
        "sounds are not decoded; a record for each file, with its bytes,",
        "[{{'name': path.name, 'folder': path.parent.name, 'audio': path.read_bytes()}} "
        "for path in [pathlib.Path({path})]]",
        _ROWS,
    ),
    (".orc",): (
        "ORC files are not supported yet;",
        "pyarrow.orc.read_table({path})",
        "pyarrow.concat_tables({read} for path in {every})",
    ),
    (".xlsx", ".xls"): (
        "Excel files are not supported yet;",
        "pandas.read_excel({path}, keep_default_na=False, na_values=[''])",
        "pandas.concat([{read} for path in {every}], ignore_index=True)",
    ),
}
"""Files of other formats: what reads one with its values, and several; pandas.read_json makes 123 of "00123"."""

_JSON: Final = {".json": "json.loads(path.read_bytes())", ".json.gz": "json.loads(gzip.open(path).read())"}
"""Suffixes of files that may be lines or a document, and what reads a document."""

_SPLIT_ENDS: Final = {
    ".tra": "train", ".trn": "train", ".train": "train", ".tes": "test", ".tst": "test", ".test": "test", ".val": "val",
}  # fmt: skip
"""Suffixes that name splits, as UCI's data sets have them."""

_ARRAY: Final = re.compile(rb"\s*\[\s*(?:[\[{]|$)")
"""The beginning of an array of JSON, which holds objects or arrays."""

_FIGURE: Final = re.compile(rb'"?-?[0-9]+([.][0-9]+)?"?')
_JSON_LINES: Final = Add("--format", "jsonl")
_MOST_ENDS: Final = 16
_MOST_FILES: Final = 256
_PACKED: Final = {".7z": ("7z", "x")}
_CELLS_BETWEEN: Final = {"\x01": "\\x01", "|": "|", "\t": "tab", ";": ";", ",": ","}
"""Delimiters of files without a suffix, as Hive (control-A) and Redshift write them, and how they are typed."""


def _how_unnamed_are_read(path: str, inside: str | None, base: str, call: Call) -> str:
    """Return the command that reads the files of a folder on the disk by what they hold; none if unclear.

    `inside` is the glob of its highest files. Where suffixes differ, those are read whose first files look alike.
    """
    files = sorted(glob.glob(os.path.join(base, inside))) if inside else []
    files = [one for one in files if os.path.isfile(one) and os.path.basename(one)[0] not in "._"]
    if told := told_of_translations(files, call):
        return told
    _put_data_first(files)
    manifests = {
        one: names for one in files if "manifest" in one and (names := columns_in_manifest(_head(one))) is not None
    }
    files = [one for one in files if one not in manifests] or files
    by_end: dict[str, str] = {}
    for one in files:
        by_end.setdefault(_end_of(one), one)
    if not files or inside is None:
        return ""
    end = _end_of(files[0])
    alike, every = [os.fsencode(one) for one in files if one.endswith(end)], os.path.join(base, f"{inside}{end}")
    lines = _lines_of(_head(files[0]))
    texts, told_splits = _of_one_text(alike[0], [os.fsencode(one) for one in files], lines)
    told = told_of_text(lines, _typed(texts), call, every if texts == alike else "", told_splits)
    if end not in _JSON and (why := _why_unknown(alike, call, every) or told):
        return f"{printable_path(os.path.basename(files[0]))}: {why}"
    ends = {".data": by_end[".data"]} if ".data" in by_end else by_end  # UCI's, beside .names, .test and Index
    options = {end: how for end, one in islice(ends.items(), _MOST_ENDS) if (how := _options_of(one))}
    first = next(iter(options), next(iter(ends)))
    chosen = [end for end in options if str(options[end]) == str(options[first])] or [first]
    one, stem = ends[first], inside.removesuffix("*")
    if tabs := with_tabs(os.path.relpath(one, base or None), _lines_of(_head(one))):
        return f"of {printable_path(os.path.basename(one))}, {tabs}"
    of_splits = {_SPLIT_ENDS[end]: f"*{end}" for end in chosen if end in _SPLIT_ENDS}
    splits = [Set("input.splits", of_splits)] if len(of_splits) == len(chosen) > 1 else []
    hidden = any(name[0] in "._" for name in os.listdir(os.path.dirname(one)))
    patterns = [f"{stem}*{end}" for end in chosen]
    if len(chosen) == len(by_end) and (len(chosen) > 1 or not first) and not splits:
        patterns = [f"{stem}{'[!_]' if hidden else ''}*"]
    taken = [one for one in files if _end_of(one) in chosen]
    if first in options and 1 < len(taken) <= _MOST_ENDS:
        like = [one for one in taken if str(_options_of(one)) == str(options[first])]
        patterns, taken = (patterns, taken) if like == taken else ([typed_path(one) for one in like], like)
    more = _of_manifests(manifests, options.get(first), patterns, base)
    command = call.reading(patterns, options[first], *splits, *more) if first in options else None
    name = printable_path(os.path.basename(one))
    if first in _JSON and os.path.isdir(os.path.join(base, path)):
        levels = "*/" * (stem.count("/") - os.path.join(path, "").count("/"))
        inner = f"sorted(pathlib.Path({path!r}).glob({f'{levels}*{first}'!r}))"
        if told := _how_documents_are_read(
            [one for one in files if one.endswith(first)], inner, command, call, (alike, every)
        ):
            return told
    if command is None:
        return _how_texts_are_read(path, files, inside, base, call)
    left = first_names(sorted(os.path.basename(one) for one in [*files, *manifests] if one not in taken), 8)
    what = "bytes" if _format_by_head(_head(one)) else "lines"
    without = f" (without {left})" if left else ""
    return f"the first {what} of {name} show how to read them{without}: {command}"


def _how_documents_are_read(
    documents: Sequence[str], inner: str, command: Command | None, call: Call, alike: tuple[Sequence[bytes], str]
) -> str:
    """Return the line of Python that reads the rows of documents of JSON, `inner` those at these paths.

    The `command` reads each as a record.
    """
    one, end = documents[0], _end_of(documents[0])
    name = printable_path(os.path.basename(one))
    of_one_shape = _of_one_shape(documents, _JSON[end])
    if of_one_shape:  # dataset_info.json beside an array
        one, inner = of_one_shape[0], f"map(pathlib.Path, {[typed_path(each) for each in of_one_shape]!r})"
        others = [os.path.basename(each) for each in documents if each not in of_one_shape]
        name = f"without {first_names(others, _MOST_ENDS)}: {printable_path(os.path.basename(one))}"
    document = document_in(os.fsencode(one))
    if line := _rows_in_python(document, _JSON[end], call, inner, of_one_shape or documents):
        whole = f"; or a record a file: {command}" if command and not _tables_of(documents) else ""
        return f"{name} is one document, and its rows are read in Python: {line}{whole}"
    if document is None and _ARRAY.match(_head(one)):  # it is large
        return f"{name}: {_why_unknown(alike[0], call, alike[1])}"
    return ""


def _of_manifests(
    manifests: Mapping[str, Sequence[str]], how: Add | None, patterns: Sequence[str], base: str
) -> list[Set]:
    """Return the options by which the manifests of parts are no data, and give the columns their names."""
    found = {os.path.join(base, one) for pattern in patterns for one in glob.glob(os.path.join(base, pattern))}
    ignored = [glob.escape(os.path.basename(one)) for one in manifests if one in found]
    names = next(iter(manifests.values()), ())
    named = bool(names) and how is not None and "--no-header" in how.words
    left = [Set("input.ignore", ignored)] if ignored else []
    return [*left, Set("input.names", names)] if named else left


def _put_data_first(files: list[str]) -> None:
    """Put notes, and documents of JSON that describe other files, behind these."""
    files.sort(key=lambda one: bool(notes_among([os.fsencode(one)], folders=True)))
    texts_of_json = [one for one in files if _end_of(one) in _JSON] if len(files) <= _MOST_FILES else []
    documents = [one for one in texts_of_json if _options_of(one) is None]
    if 2 * len(documents) <= len(texts_of_json):
        files.sort(key=documents.__contains__)
    if len(files) <= _MOST_FILES:
        files.sort(key=lambda one: _DATA.search(os.fsencode(one)) is None)  # beside JSON that describes them


def _of_one_shape(files: Sequence[str], read: str) -> list[str]:
    """Return the documents of the shape that most have, which one line of Python reads; none where all are alike."""
    if not 1 < len(files) <= _MOST_ENDS:
        return []
    shapes = {one: rows_of_document(document_in(os.fsencode(one)), read) for one in files}
    counts = Counter(shapes.values())
    chosen = max(counts, key=lambda shape: (shape == read, counts[shape]))
    return [one for one, shape in shapes.items() if shape == chosen] if len(counts) > 1 and chosen else []


def _how_texts_are_read(path: str, files: Sequence[str], inside: str, base: str, call: Call) -> str:
    """Return the command that reads texts without a suffix in folders that may be classes, and the line of Python."""
    if any(map(_end_of, files)) or any(b"\0" in _head(one) for one in files[:_MOST_ENDS]):
        return ""
    root = os.path.abspath(os.path.join(base, path))
    folders = [os.path.dirname(os.path.abspath(one)) for one in files]
    below = [os.path.relpath(one, root).split(os.sep)[::-1] for one in {*folders}]
    splits = [next(filter(None, map(split_in_words, one)), None) for one in below]
    around = Around(
        form="txt",
        call=call,
        notable=(),
        folders=[*dict.fromkeys(folders)],
        root=root,
        splits=splits,
        files=files,
    )
    told = next(classes_of_folders(around), "")
    return f"to read them as text: {call.reading([inside], Add('--format', 'txt'))}; {told}" if told else ""


def _options_of(path: str) -> Add | None:
    head = _head(path)
    kind = _format_by_head(head)
    return Add("--format", kind) if kind else _options_for(_lines_of(head))


def _head(path: str) -> bytes:
    try:
        with gzip.open(path) if _end_of(path) == ".json.gz" else open(path, "rb") as file:
            head = file.read(1 << 14)
            return (zlib.decompressobj(31).decompress(head, 1 << 14) if _end_of(path) == ".gz" else b"") or head
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{shown_path(path)}: cannot be read: {why}") from error


def _end_of(path: str) -> str:
    """Return the suffix of a file, of JSON that is compressed both."""
    return ".json.gz" if path.endswith(".json.gz") else os.path.splitext(path)[1]


def _lines_of(head: bytes) -> list[bytes]:
    lines = head.splitlines()[: 20 if head.endswith(b"\n") else -1] or head.splitlines()
    return [line for line in lines if line.strip()]


def _of_one_text(path: bytes, files: list[bytes], lines: Sequence[bytes]) -> tuple[list[bytes], list[str]]:
    """Return the files that are read as one text of another program is, and their splits if each has one.

    LibSVM's own are `a9a` and `a9a.t`.
    """
    end = os.path.splitext(path)[1]
    alike = [one for one in files if os.path.splitext(one)[1] == end]
    form = next((form for form in (is_libsvm, is_fasttext, is_conll) if form(lines)), None)
    if form is not None and len(files) <= _MOST_ENDS:
        alike = [one for one in files if form(_lines_of(_head(os.fsdecode(one))))]
    words = [
        _OF_LIBSVM.get(os.path.splitext(one)[1]) or split_in_words(os.path.basename(one))
        for one in map(os.fsdecode, alike)
    ]
    if any(words) and words.count(None) == 1 and "train" not in words:
        words = [one or "train" for one in words]
    if any(words) and None in words:  # apart, each with its own name, in place of all in one
        words = [word or as_split(os.path.basename(os.fsdecode(one))) for one, word in zip(alike, words, strict=True)]
    splits = [one or "" for one in words]
    return alike, splits if all(splits) and len({*splits}) > 1 else []


_OF_LIBSVM: Final = {".tr": "train", ".val": "val", ".t": "test"}


def _options_for(lines: Sequence[bytes]) -> Add | None:
    """Return the options that read lines: of objects, or of cells between one sign; none if unclear."""
    if not lines or b"\0" in lines[0] or _ARRAY.match(lines[0]):
        return None
    if lines[0].startswith(b"{") and lines[0].rstrip().endswith(b"}"):
        return _JSON_LINES
    if under := _below_comments(lines):
        options = _options_for(under)
        csv = options is not None and options.words[:2] == ("--format", "csv")
        return Add(options, Set("input.comment", lines[0][:1].decode())) if options and csv else None
    for sign, typed in _CELLS_BETWEEN.items():
        is_escaped = any(f"\\{sign}".encode() in line for line in lines)
        signs = re.compile(rb"\\[\\" + re.escape(sign.encode()) + rb"]")
        bare = [signs.sub(b"", line) for line in lines] if is_escaped else lines
        counts = {line.count(sign.encode()) for line in bare}
        if len(counts) == 1 and counts != {0}:
            cells = [line.split(sign.encode()) for line in bare]
            numbers = any(_FIGURE.fullmatch(cell) for cell in cells[0])
            again = any(name.strip() in below for name, *below in zip(*cells, strict=True))  # a value, not a name
            nulls = any(b"\\N" in row for row in cells)
            header = ["--no-header"] if numbers or again else []
            given = [Set("input.null_values", "[\\N]")] if nulls else []
            blanks = sign != "\t" and all(cell.startswith(b" ") for row in cells for cell in row[1:])
            given += [Set("input.trim", True)] if blanks else []
            given += [Set("input.escape", "\\")] if is_escaped else []
            return Add("--format", "csv", "--delimiter", typed, *header, *given)
    rows = [line.split() for line in lines]
    numbers = all(_FIGURE.fullmatch(cell) for row in rows for cell in row)
    if len(rows[0]) > 1 and len({len(row) for row in rows}) == 1 and numbers:
        return Add("--format", "csv", "--no-header", Set("input.trim", True))
    return None


def _below_comments(lines: Sequence[bytes]) -> list[bytes]:
    """Return the lines below those that begin with a sign of comments, as `|` in UCI's `adult.test`; none if unclear.

    A first line of as many cells as the others is the header.
    """
    sign = lines[0][:1]
    rows = [line for line in lines if not line.startswith(sign)]
    if sign not in (b"|", b"#", b"%") or len(rows) < _FEWEST_ROWS:
        return []
    counts = {one: {line.count(one.encode()) for line in rows} for one in _CELLS_BETWEEN}
    return [] if any(count == {lines[0].count(one.encode())} != {0} for one, count in counts.items()) else rows


_FEWEST_ROWS: Final = 2


def _typed(paths: Iterable[bytes]) -> list[str]:
    return [typed_path(os.fsdecode(one)) for one in paths]


def _why_unknown(paths: Sequence[bytes], call: Call, pattern: str = "") -> str | None:
    """Return what is known of files of a format that is not read, by their suffix, and what to do.

    Where they are many, a `pattern` matches all of them.
    """
    name, shown = os.fsdecode(paths[0]).lower(), shown_path(paths[0])
    every = python_of(_typed(paths), pattern) if len(paths) > 1 else ""
    for suffixes, (kind, one, several) in _FOREIGN.items():
        if name.endswith(suffixes):
            read = one.format(path="path" if every else repr(shown))
            document = document_in(paths[0]) if suffixes[0] in _JSON else None
            if line := _rows_in_python(document, read, call, every, [*map(os.fsdecode, paths)] if every else ()):
                return f"{kind} in Python: {line}"
            read = several.format(every=every, read=read) if every else read
            return f"{kind} in Python: {call.of_data(f'[{read}]' if isinstance(document, dict) else read)}"
    for suffix, command in _PACKED.items():
        if name.endswith(suffix):
            return f"is an archive, which is not read; unpack it first: {Foreign(*command, shown)}"
    return None


def _rows_in_python(
    document: object,
    read: str,
    call: Call,
    paths: str = "",
    files: Sequence[str] = (),
    *,
    of_table: bool = False,
) -> str | None:
    """Return the call that converts the rows of a JSON document, or of those at `paths`; None where it shows none.

    Rows of several `files` with words of splits in their names are of these splits: train-v1.1.json, dev-v1.1.json.
    """
    rows = rows_of_document(document, read)
    if not rows:
        return None
    if tables := _tables_of(files):
        each = [
            _rows_in_python(
                document_in(os.fsencode(some[0])),
                read,
                call.apart(name or "other"),
                f"map(pathlib.Path, {some})",
                some,
                of_table=True,
            )
            for name, some in tables.items()
        ]
        return "; ".join(filter(None, each))
    by_rows = has_splits(document)
    words = {os.path.basename(one): split_in_words(os.path.basename(one)) for one in files}
    by_files = not by_rows and len(words) == len(files) and None not in words.values() and len({*words.values()}) > 1
    row = f"{{'split': {words}[pathlib.Path(path).name], **row}}" if by_files else "row"
    every = f"[{row} for path in {paths} for row in {rows}]"
    alone = next(iter(words.values()), None) if of_table and len(files) == 1 else None
    data = every if paths else f"list{rows}" if rows.startswith("(") else rows
    more = {"split__column": "split"} if by_rows or by_files else {}
    return call.of_data(data, **more, **({"output__split": alone} if alone not in (None, "train") and not more else {}))


def _tables_of(files: Sequence[str]) -> dict[str, list[str]]:
    """Return the documents of each of several tables by its name; none where they are of one table."""
    tables = dict[str, list[str]]()
    for one in files:
        tables.setdefault(table_in_path(os.path.basename(one)), []).append(typed_path(one))
    if not 1 < len(tables) <= _MOST_ENDS:
        return {}
    first = {name: columns_of_document(document_in(os.fsencode(some[0]))) for name, some in tables.items()}
    return of_equal_columns(tables, first) if tables_apart([*first.values()]) else {}


def _kind_by_content(path: bytes) -> str | None:
    if is_object(path) or not os.path.isfile(path):
        return None
    return _format_by_head(_head(os.fsdecode(path)))


def _format_by_head(head: bytes) -> str | None:
    """Return the format of a file that begins so; records may be compressed."""
    first = unpacked(head, HEADER_BYTES)[:HEADER_BYTES]
    return "tfrecord" if is_record_header(first) else format_of_first_bytes(head[:HEAD_BYTES])


def _format_of(path: bytes) -> str | None:
    return format_of_name(os.fsdecode(path))


def _may_have_notes(path: bytes) -> bool:
    kind = _format_of(path)
    return kind is not None and FORMATS[kind].has_notes
