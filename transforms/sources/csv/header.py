"""Find the header of a CSV file, name its columns, and cut what follows into pieces."""

from __future__ import annotations

import itertools
import json
import os
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, islice, pairwise, zip_longest
from typing import TYPE_CHECKING, Final

import numpy as np

from ...errors import SchemaError, SourceError
from ...format.schema.schema import Feature
from ...format.wording.hints import Add, Set
from ...format.wording.printable import counted, printable
from ...inputs.contract.selection import UNITE, Call, as_one_column, same_but_capitals
from ...inputs.contract.source import SourceEntry
from ...inputs.files.file_names import with_tabs
from ...inputs.files.open_file import SHORTER, DiskErrors, expect, open_file, read_blocks
from ...recognise.evidence.names import table_in_path
from ...recognise.foreign_texts import LIBSVM, told_of_text
from ...recognise.strangers.files import MOST_HEADS
from ...recognise.strangers.tables import one_of
from ..registry.settings import wrong_signs
from ..text.open_text import (
    BLOCK_BYTES,
    Cut,
    TextForm,
    TextPiece,
    joined,
    plain_encoding,
    says_packed,
    sniff_text,
    stream_text,
    times_wider,
)
from .chunks import Chunk, StreamLimits, UnclosedQuoteError, cut_stream, skip_lines, skip_sep_line
from .dialect import Dialect
from .obstacles import quotes_are_text
from .parse import QUOTES_ARE_TEXT, CsvLimits, Parser, header_cells
from .record_starts import FileScan, record_ends

if TYPE_CHECKING:
    from ..registry.options import CsvInput


_A_TITLE: Final = "the first line looks like a title"
_YEARS: Final = range(1800, 2101)
_NULL_NAMES: Final = frozenset((
    "-", "--", ".", "..", "?", "??", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "nil", "\\N",
    "(null)", "<NA>", "<null>",
))  # fmt: skip
"""What means null where it is the name of a column of numbers; "Na", "missing" and "unknown" may be names."""

_FIGURES: Final = re.compile(r"[+-]?[0-9]+[.:/-][0-9]|[+-]?(?!(?:18|19|20)[0-9]{2}$)[0-9]{3,}$")
_LINE_CELLS: Final = 20
_COMMENTED: Final = 20
_FEWEST_NAMES: Final = 2
_TITLES: Final = 20
_COMMENT_SIGNS: Final = tuple("|#%;!*@")
_NARROW: Final = 2
"""One column more may be what a header lacks."""

COMMENT: Final = "# "
"""What `numpy.savetxt` writes before its header, and before each line of it."""

NO_HEADER: Final = Add("--no-header")
_TRIM: Final = f"; to take blanks off all cells: {Set('input.trim', True)}"
_SHOWN: Final = 5
"""Columns that a message shows of the first line, and a note of its names."""


@dataclass(frozen=True, slots=True)
class FileHead:
    """The start of a file: how its text is read, its column names, and what is before the first data record.

    `names` is None if the file holds no record at all. `data` counts the header and the blank lines before it. `cells`
    is the first record, as it is in the file, `skipped` the lines before all that is read, `sep` the line among these
    that names the delimiter.
    """

    name: str
    form: TextForm
    names: tuple[str, ...] | None
    data: Cut
    warnings: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    skipped: int = 0
    sep: str = ""


def read_head(entry: SourceEntry, options: CsvInput, limits: CsvLimits, call: Call = Call()) -> FileHead:  # noqa: B008
    """Read a file up to its first record, and name its columns; `call` is what the user typed."""
    form, dialect = sniff_text(entry, options.encoding), dialect_of(options)
    blocks = stream_text(entry, options.encoding, form, whole=False)
    skip, skipped, blocks = skip_lines(blocks, options.skip_lines)
    line, blocks = skip_sep_line(blocks)
    sep, skipped = line.decode("latin-1").strip("\r\n"), skipped + bool(line)
    begin = Cut(form.start + skip + len(line), 0, 0, 0)
    form = replace(form, start=begin.offset)
    try:
        text, data = _first_record(blocks, begin, entry.name, dialect, limits, header=options.header)
    except UnclosedQuoteError as error:
        raise with_plain_quotes(error, entry, form, options) from None
    if text is None:
        return FileHead(entry.name, form, None, data, skipped=skipped, sep=sep)
    inner = plain_encoding(options.encoding) if form.located else "utf-8"
    cells = header_cells(text, dialect, inner, entry.name, limits.columns, header=options.header)
    cells = cells if options.row_names is None else (options.row_names, *cells)
    _refuse_json(text, entry.name)
    if "header" not in options.model_fields_set:
        block = text
        if text.startswith((b"#", b"StartDate")):  # logs of the W3C and exports of Qualtrics are known by lines below
            block = next(stream_text(entry, options.encoding, form, whole=False), text)
        _refuse_foreign_text(text, entry.name, block.splitlines()[:_COMMENTED], call)
    if options.names is not None and len(cells) < len(options.names):
        refuse_odd_first_line(entry, cells, options, limits, len(options.names), "input.names has")
    names, warnings = _name_columns(cells, entry.name, options.names, header=options.header)
    if not options.header:
        data = begin
    warnings = (*warnings, *_delimiter_warning(cells, entry.name, options.delimiter))
    may_be_merged = options.header and options.names is None and "" in cells[1:]
    if may_be_merged and (both := names_of_two_rows(entry, options, limits, cells)):
        joined = Add(Set("input.skip_lines", options.skip_lines + 1), Set("input.names", both))
        warning = f"{entry.name}: the header has two rows, as merged cells make it; to read both: {joined}"
        return FileHead(entry.name, form, names, data, (*warnings, warning), cells, skipped, sep)
    is_title = options.header and len(cells) > 1 and (not any(cells[1:]) or 2 * sum(map(bool, cells)) < len(cells))
    if is_title and (lines := title_lines(entry, options, limits, len(cells))):
        fix = f"{_A_TITLE}; to begin with the header: {Set('input.skip_lines', lines)}"
        warnings = (*warnings, f"{entry.name}: {fix}")
    return FileHead(entry.name, form, names, data, warnings, cells, skipped, sep)


def shared_names(
    heads: Sequence[FileHead],
    *,
    union: bool = False,
    assumed: bool = False,
    named: bool = True,
    call: Call = Call(),  # noqa: B008
) -> tuple[str, ...]:
    """Return the column names that all files have, in the order of the first; with `union` those of any file.

    `named` says that files have a header, and `assumed` that nobody declared it: they may have none. `call` is what the
    user typed.
    """
    full = [head for head in heads if head.names is not None]
    if not full:
        others = {1: "", 2: ", and so is the other file"}.get(
            len(heads), f", and so are the {len(heads) - 1} other files"
        )
        lines = heads[0].skipped
        after = f" after the {lines} lines that input.skip_lines skips" if lines else ""
        raise SourceError(heads[0].name, f"is empty{after}{others}: there is no header and no row")
    first = full[0]
    names = first.names or ()
    if union:
        return tuple(dict.fromkeys(name for head in full for name in head.names or ()))
    for head in full[1:]:
        if head.names != names and set(head.names or ()) != set(names):
            differ = _difference(first, head, assumed=assumed) if named else _other_count(first, head)
            raise SchemaError((_several_tables(full, call) if named else "") or differ)
    return names


def _several_tables(heads: Sequence[FileHead], call: Call) -> str:
    """Return that files of other names are other tables, as each has columns that the other lacks; else nothing."""
    tables = defaultdict[str, list[str]](list)
    for head in heads:
        tables[table_in_path(os.path.basename(head.name))].append(head.name)
    of_first = {head.name: head.names or () for head in reversed(heads)}
    columns = {name: {*of_first[some[0]]} for name, some in tables.items()}
    pairs = [*combinations(columns.values(), 2)]
    is_data = any(_may_be_data(cell) for head in heads for cell in head.cells[1:])
    if (
        is_data
        or len(tables) > MOST_HEADS
        or all(min(len(one - two), len(two - one)) < _FEW_OTHERS for one, two in pairs)
    ):
        return ""
    alike = all(2 * len(one & two) >= min(len(one), len(two)) for one, two in pairs)
    said = one_of(tables, {name: [one] for name, one in columns.items()}, call)
    return f"{said}\nif all are rows of one table, null where a file lacks a column: {UNITE}" if alike else said


_FEW_OTHERS: Final = 2


def _other_count(first: FileHead, second: FileHead) -> str:
    """Say that files without a header have other columns: if one lacks the first, all of its others move by one."""
    counts = " and ".join(f"{counted(len(one.names or ()), 'column')} in {one.name}" for one in (first, second))
    return f"there are {counts}; without a header columns match by their place: convert the files separately"


def _difference(first: FileHead, second: FileHead, *, assumed: bool) -> str:
    one, other = first.name, second.name
    names, others = first.names or (), second.names or ()
    here, there = set(names), set(others)
    missing = [name for name in names if name not in there]
    extra = [name for name in others if name not in here]
    if missing and extra:
        differ = f'{one} has a column "{printable(missing[0])}", and {other} has "{printable(extra[0])}" instead'
    else:
        longer, shorter, name = (one, other, missing[0]) if missing else (other, one, extra[0])
        differ = f'{longer} has a column "{printable(name)}", and {shorter} has none'
    alike = next(
        (pair for pair in same_but_capitals([*missing, *extra]) if pair[-1] in extra and pair[0] in missing), None
    )
    if alike:
        differ = f'{one} has a column "{printable(alike[0])}", and {other} has "{printable(alike[-1])}" instead'
        differ = f"{differ}; {as_one_column(alike[0], alike[-1])}"
    match = "columns match by name: rename it in one of the files, or convert them separately"
    headless = assumed and len(names) == len(others)
    if headless and any(_may_be_data(cell) for head in (first, second) for cell in head.cells[1:]):
        return f"{differ}, and the first lines look like data; if they are: {NO_HEADER}; if not, {match}"
    also = f"; or, if the first lines are data: {NO_HEADER}" if headless else ""
    return f"{differ}; {match}; or read the columns of all files, null where a file lacks one: {UNITE}{also}"


def _may_be_data(cell: str) -> bool:
    """Return whether a cell is no usual name: nothing, a word for null or truth, or what begins as a number or date."""
    return not cell or cell in _NULL_NAMES or cell.lower() in ("true", "false") or bool(_FIGURES.match(cell))


def _is_name(cell: str) -> bool:
    number = _number(cell)
    return not _may_be_data(cell) and (number is None or number in _YEARS)


def header_warnings(heads: Sequence[FileHead]) -> list[str]:
    files: dict[str, list[str]] = {}
    for head in heads:
        for warning in head.warnings:
            files.setdefault(warning.removeprefix(f"{head.name}: "), []).append(head.name)
    return [f"{first_and_more(names)}: {text}" for text, names in files.items()]


def first_and_more(files: Sequence[str]) -> str:
    return files[0] + (f" and {len(files) - 1:,} more" if len(files) > 1 else "")


def commented_headers(heads: Sequence[FileHead]) -> tuple[str, ...]:
    """Return that the sign of a comment before the header is no part of a name."""
    named = [one for one in heads if one.cells and one.names and one.cells[0] == COMMENT + one.names[0]]
    found = [one for one in named if not any(_A_TITLE in warning for warning in one.warnings)]
    if not found:
        return ()
    files = first_and_more([one.name for one in found])
    name, own = printable(found[0].cells[0]), printable((found[0].names or ("",))[0])
    return (f'{files}: the header begins with "{name}", as in a comment: the column is "{own}"',)


def commented_lines(entry: SourceEntry, options: CsvInput, limits: CsvLimits) -> int:
    """Return how many lines are before a header in comments, as `numpy.savetxt` writes it; 0 where it is none."""
    widths = list[int]()
    for lines in range(_COMMENTED):
        line = options.model_copy(update={"header": False, "names": None, "skip_lines": options.skip_lines + lines})
        cells = read_head(entry, line, limits).cells
        widths.append(len(cells))
        if not cells or not cells[0].startswith(COMMENT):
            found = lines > 1 and widths[-2:] == [len(cells)] * 2
            return options.skip_lines + lines - 1 if found else 0
    return 0


def names_of_two_rows(entry: SourceEntry, options: CsvInput, limits: CsvLimits, cells: Sequence[str]) -> list[str]:
    """Return the names that two rows give together, "Q1 units" of "Q1" and "units"; none where the second is data.

    The first has cells that were merged with the one before, and below the second there are numbers.
    """
    if len(cells) - cells.count("") < _FEWEST_NAMES or "" not in cells[1:]:
        return []
    lines = [{"header": False, "names": None, "skip_lines": options.skip_lines + more} for more in (1, 2)]
    below, first = (read_head(entry, options.model_copy(update=line), limits).cells for line in lines)
    if not len(below) == len(cells) == len(first) or not all(_is_name(one) for one in below if one):
        return []
    upper: Iterator[str] = accumulate(cells, lambda before, cell: cell or before)
    names = [f"{one} {name}".strip() for one, name in zip(upper, below, strict=True)]
    inner = [*filter(None, below)]
    is_second = all(map(any, zip(cells, below, strict=True))) and len({*inner}) < len(inner)
    is_second &= len({*names}) == len(names)
    return names if is_second and any(_number(cell) is not None for cell in first) else []


def title_lines(entry: SourceEntry, options: CsvInput, limits: CsvLimits, least: int) -> int:
    """Return how many lines are to be skipped for a header with so many columns at least; 0 where there is none."""
    for lines in range(options.skip_lines + 1, options.skip_lines + _TITLES):
        line = options.model_copy(update={"header": False, "names": None, "skip_lines": lines})
        cells = read_head(entry, line, limits).cells
        names = cells[:-1] if cells and not cells[-1] else cells
        if not cells:
            return 0
        if len(cells) >= least and names_of_two_rows(entry, line, limits, cells):
            return lines
        below = read_head(entry, line.model_copy(update={"skip_lines": lines + 1}), limits).cells
        if len(cells) >= least and "" not in names and (not below or len(below) == len(cells)):
            return lines if all(map(_is_name, names)) else 0
    return 0


def narrower(heads: Sequence[FileHead]) -> Iterator[tuple[int, FileHead]]:
    """Yield the numbers of files whose first line has fewer cells than that of the widest, and the widest."""
    full = [(number, head) for number, head in enumerate(heads) if head.names is not None]
    widest = max((head for _, head in full), key=lambda head: len(head.cells), default=None)
    if widest is not None:
        yield from ((number, widest) for number, head in full if len(head.cells) < len(widest.cells))


def refuse_odd_first_line(
    entry: SourceEntry, cells: Sequence[str], options: CsvInput, limits: CsvLimits, width: int, as_: str
) -> None:
    """Raise `SourceError` for a file whose first line is one cell above rows that are as wide as another file's."""
    if len(cells) > 1 or width <= _NARROW:
        return
    for lines in (1, 2):
        skipped = {"header": False, "names": None, "skip_lines": options.skip_lines + lines}
        if len(read_head(entry, options.model_copy(update=skipped), limits).cells) != width:
            return
    fix = f"take it off, or convert the file by itself: {Set('input.skip_lines', options.skip_lines + 1)}"
    sign, given = cells[0][:1], (options.null_values, options.trim)
    if sign in _COMMENT_SIGNS and not wrong_signs(options.delimiter, options.quote, options.escape, sign, *given):
        fix = f"if lines that begin with {sign} are comments: {Set('input.comment', sign)}; else {fix}"
    what = f'the first line, "{_line(cells)}", has 1 column, and the lines below it have {width}, as {as_}'
    raise SourceError(entry.name, f"{what}; {fix}")


def sep_lines(heads: Sequence[FileHead]) -> tuple[str, ...]:
    found = [head for head in heads if head.sep]
    if not found:
        return ()
    files = first_and_more([one.name for one in found])
    return (f'{files}: the first line, "{printable(found[0].sep)}", names the delimiter, and is no row',)


def compressed_files(heads: Sequence[FileHead]) -> tuple[str, ...]:
    files: dict[str, list[str]] = {}
    for head in heads:
        if head.form.packing is not None and not says_packed(head.name):
            files.setdefault(head.form.packing, []).append(head.name)
    return tuple(
        f"{first_and_more(names)}: compressed with {kind}, by the first bytes" for kind, names in files.items()
    )


def refuse_names_of_other_headers(heads: Sequence[FileHead]) -> None:
    """Raise `SchemaError` for `names` of files whose headers differ: a column would get the name of another."""
    full = [head for head in heads if head.names is not None]
    for head in full[1:]:
        if head.cells != full[0].cells:
            ours, theirs = next((a, b) for a, b in zip_longest(full[0].cells, head.cells, fillvalue="") if a != b)
            raise SchemaError(
                f"input.names: the headers of {full[0].name} and {head.name} differ "
                f'("{printable(ours)}" and "{printable(theirs)}" in one place), so that one list of names would mix up '
                f"their columns; leave input.names out (columns match by name), or convert the files separately; if "
                f"the first lines are data: {NO_HEADER}"
            )


def refuse_data_as_header(
    heads: Sequence[FileHead],
    features: Sequence[Feature],
    rules: Container[str],
    null_values: Sequence[str],
    *,
    renamed: bool,
) -> tuple[str, ...]:
    """Refuse a header that looks like a row: raise `SourceError`.

    A column of numbers has a number for a name, or a word that means null; or a column of bools has `true` or `false`.
    Years, and numbers in even steps, are names (pandas' own 0, 1, 2). Where the columns of files differ, each header is
    looked at. Columns that are declared have no say, unless the header is `renamed` to names of a user's own: then a
    first row would be lost without a word.

    Return what is to be said of one that may be a row, and is taken for names: of numbers, or where all is text.
    """
    headers = {frozenset(head.names): head for head in reversed(heads) if head.names is not None}
    nulls = _NULL_NAMES.union(null_values) - {""}
    found: list[str] = []
    for head in reversed(headers.values()):
        cells = dict(zip(head.names or (), head.cells, strict=True))
        own = [feature for feature in features if feature.name in cells]
        undeclared = [feature for feature in own if renamed or feature.name not in rules]
        if len(undeclared) == len(own) and all(feature.type == "string" for feature in own):
            found += _header_of_text(heads, head)
            continue
        numbers = [cells[feature.name] for feature in undeclared if feature.type in ("int64", "float64")]
        bools = [cells[feature.name].lower() for feature in undeclared if feature.type == "bool"]
        known = [number for number in map(_number, numbers) if number is not None]
        is_data = not nulls.isdisjoint(numbers) or not {"true", "false"}.isdisjoint(bools)
        # a column without a name, beside an index or beside numbers that have a name in words
        of_pandas = known == [0] and (head.cells[0] == "" or len(numbers) > 1)
        if is_data or not (of_pandas or _are_even(known) or all(number in _YEARS for number in known)):
            raise _looks_like_data(head.name, head.cells, f"{Set('input.header', True)}", renamed=renamed)
        if known:
            what = f"{head.name}: the first line is the header, though it holds numbers"
            found.append(f"{what}: {_line(head.cells)}; if it is data: {NO_HEADER}")
    return tuple(found)


def _are_even(numbers: Sequence[float]) -> bool:
    """Return whether numbers are names by their order: two that follow each other, or more in even steps."""
    steps = {b - a for a, b in pairwise(numbers)}
    if not all(number.is_integer() for number in numbers) or len(steps) > 1 or 0 in steps:
        return False
    return not numbers or steps == {1} or len(numbers) > 2


def _header_of_text(heads: Sequence[FileHead], head: FileHead) -> tuple[str, ...]:
    """Return what is taken for the names of a table of text, where no second file has the same names."""
    if sum(head.names is not None for head in heads) > 1 or any(_A_TITLE in one for one in head.warnings):
        return ()
    more = [", ..."] if len(head.cells) > _SHOWN else []
    line = "".join([", ".join(printable(cell) for cell in head.cells[:_SHOWN]), *more])
    return (f"{head.name}: the first line is the header: {line}; if it is data: {NO_HEADER}",)


def with_plain_quotes(error: UnclosedQuoteError, entry: SourceEntry, form: TextForm, options: CsvInput) -> SourceError:
    """Return the error with the key that reads quotes as text, where each line is a row by it."""
    text = next(stream_text(entry, options.encoding, form, whole=False), b"")
    if not quotes_are_text(text, dialect_of(options)):
        return error
    return SourceError(
        error.source, f"{error.problem}; without quotes each line is a row; if they are plain text: {QUOTES_ARE_TEXT}"
    )


def _looks_like_data(file: str, cells: Sequence[str], else_: str, *, renamed: bool = False) -> SourceError:
    names = "" if renamed else f", or with names of your own: {NO_HEADER} {Set('input.names', '[a, b, ...]')}"
    return SourceError(
        file,
        f"the first line looks like data, not like a header: {_line(cells)}; if it is data: {NO_HEADER}{names}; if it "
        f"is a header: {else_}",
    )


def _line(cells: Sequence[str]) -> str:
    return printable(",".join([*cells[:_LINE_CELLS], *(["..."] if len(cells) > _LINE_CELLS else [])]))


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _refuse_json(text: bytes, file: str) -> None:
    if text.lstrip().startswith(b"{"):
        try:
            json.loads(text)
        except ValueError:
            return
        raise SourceError(
            file, f"each line is a JSON object, not CSV; read it as JSON lines: {Add('--format', 'jsonl')}"
        )


def _refuse_foreign_text(text: bytes, file: str, lines: Sequence[bytes], call: Call) -> None:
    told = told_of_text(lines, [file], call)
    if told and LIBSVM.match(text):
        told += f"; to read each line as text: {call.plain([file], Add('--format', 'txt'))}; as one column: {NO_HEADER}"
    if told:
        raise SourceError(file, told)


def dialect_of(options: CsvInput) -> Dialect:
    return Dialect.of(options.delimiter, options.quote, options.escape, options.comment, trim=options.trim)


def _first_record(
    blocks: Iterator[bytes], before: Cut, file: str, dialect: Dialect, limits: CsvLimits, *, header: bool
) -> tuple[bytes | None, Cut]:
    """Return the first record that is not blank, and where it ends."""
    most = StreamLimits(limits.field_bytes, limits.record_bytes)
    for text, counts, size, long in cut_stream(blocks, file, dialect, before.offset, most):
        if long and header and counts.records:
            raise SourceError(
                file,
                f"the header has a name of {long[0].size} bytes, more than limits.field_bytes ({limits.field_bytes}); "
                f"if it is data: {NO_HEADER}",
            )
        if not counts.records:
            before = Cut(before.offset + size, 0, before.blanks + counts.blanks, before.lines + counts.lines)
            continue
        found = record_ends(np.frombuffer(text, np.uint8), dialect)
        solid = np.flatnonzero(found.of_records)
        first = int(solid[0]) if len(solid) else len(found.ends)
        begin = int(found.ends[first - 1]) + 1 if first else 0
        end = int(found.ends[first]) + 1 if len(solid) else len(text)
        lines = int(found.lines[first]) if len(solid) else counts.lines
        blanks = before.blanks + int(np.count_nonzero(found.blank[:first]))
        # without a header, blank lines in front are the data's
        return text[begin:end], Cut(before.offset + end, 1, blanks, before.lines + lines)
    return None, before


def _name_columns(
    cells: Sequence[str], file: str, given: Sequence[str] | None, *, header: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if given is not None:
        if len(given) != len(cells):
            raise SourceError(file, f"has {len(cells)} columns, and input.names gives {len(given)} names")
        names, warnings = list(given), list[str]()
    elif not header:
        return tuple(f"column_{i}" for i in range(len(cells))), ()
    else:
        names, warnings = [cells[0].removeprefix(COMMENT) or cells[0], *cells[1:]], []
        bare = {i: f"column_{i}" for i, cell in enumerate(cells) if not cell.strip()}
        if bare:
            shown = ", ".join([*islice(bare.values(), 5), *(["..."] if len(bare) > 5 else [])])
            what = "a column without a name is" if len(bare) == 1 else f"{len(bare)} columns without a name are"
            warnings.append(f"{file}: {what} called by number, the first column being 0: {shown}")
        for i, cell in enumerate(cells):
            if i in bare:
                names[i] = bare[i]
            elif cell != cell.strip():
                warnings.append(f'{file}: the name of column {i + 1}, "{printable(cell)}", has spaces around it{_TRIM}')
    _refuse_twins(names, file)
    return tuple(names), tuple(warnings)


def _refuse_twins(names: Sequence[str], file: str) -> None:
    seen: dict[str, int] = {}
    for i, name in enumerate(names, 1):
        if name in seen and (_number(name) is not None or name in _NULL_NAMES):
            raise _looks_like_data(file, names, f"rename one of columns {seen[name]} and {i}")
        if name in seen:
            raise SourceError(
                file,
                f'columns {seen[name]} and {i} are both named "{printable(name)}": one would overwrite the other; '
                f"if the first line is data: {NO_HEADER}; if it is a header, rename one, or replace it by names of "
                f"your own: {Set('input.names', _numbered(names) if len(names) <= _FEW_NAMES else '[a, b, ...]')}",
            )
        seen[name] = i


def _numbered(names: Sequence[str]) -> list[str]:
    """Return names of which each that comes again has a number: a, a_2.

    >>> _numbered(["a", "b", "a", "a_2", "a"])
    ['a', 'b', 'a_2', 'a_2_2', 'a_3']
    """
    found = list[str]()
    for name in names:
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        found.append(next(one for one in itertools.chain([name], numbered) if one not in found))
    return found


_FEW_NAMES: Final = 24


def _delimiter_warning(cells: Sequence[str], file: str, delimiter: str) -> tuple[str, ...]:
    if len(cells) != 1:
        return ()
    if tabs := with_tabs(file, [cells[0].encode()]):
        return (f"{file}: 1 column: {tabs}",)
    other = next((sign for sign in ";\t|," if sign in cells[0] and sign != delimiter), None)
    if other is None:
        return ()
    shown = printable(other)
    return (
        f'{file}: 1 column, and its first line holds "{shown}": wrong delimiter? '
        f"declare it: {Add('--delimiter', shown)}",
    )


# The pieces of CSV files, and the chunks of text that reading them gives.


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvPiece(TextPiece):
    """Records after the header of a file.

    `columns` are the names of all columns of the file, in its order, `header_lines` the lines that its header ends
    after. Where `torn` is false, no text follows a quote that closes a cell. Rows that are `again` are left out.
    """

    columns: tuple[str, ...]
    header_lines: int = 0
    torn: bool = True
    again: tuple[str, ...] = ()


def file_pieces(
    index: int, entry: SourceEntry, head: FileHead, scan: FileScan | None, *, again: bool
) -> list[CsvPiece]:
    """Return the pieces of one file: none if it holds no row; `scan` is None for a stream."""
    if head.names is None:
        return []
    origin = head.data

    def piece(start: Cut, stop: int, rows: int | None) -> CsvPiece:
        first = _since(start, origin)
        return CsvPiece(
            **entry.place(index),
            rows=rows,
            first_row=_rows(first, head.names),
            bytes=stop - start.offset if scan else entry.bytes,
            before=first,
            stop=stop,
            streamed=scan is None,
            columns=head.names or (),
            header_lines=origin.lines + head.skipped,
            torn=scan is None or scan.is_torn(start.offset),
            again=head.cells if again else (),
        )

    if scan is None:
        return [piece(origin, entry.bytes, None)]
    edges = [origin, *(cut for cut in scan.cuts if origin.offset < cut.offset < scan.end.offset), scan.end]
    found = []
    for start, stop in itertools.pairwise(edges):
        rows = _rows(stop, head.names) - _rows(start, head.names)
        if rows:
            found.append(piece(start, stop.offset, rows))
    return found


def read_chunks(pieces: Sequence[CsvPiece], parser: Parser, encoding: str) -> Iterator[tuple[CsvPiece, Chunk]]:
    """Yield the text of pieces of one file, in order; small ones that follow each other come as one."""
    plain = [piece for piece in pieces if not piece.streamed]
    torn = [piece.before.offset for piece in plain if piece.torn]
    for piece in pieces:
        if piece.streamed:
            for chunk in _stream_chunks(piece, parser, encoding):
                yield piece, chunk
    if not plain:
        return
    with DiskErrors(plain[0].name), open_file(plain[0]) as file:
        expect(file, [(plain[0].before.offset, plain[-1].stop)])
        most = parser.limits.joined_bytes * times_wider(len(parser.names))
        for piece in joined(plain, most):
            file.seek(piece.before.offset)
            size = piece.stop - piece.before.offset
            if size > max(most, min(parser.limits.field_bytes, parser.limits.long_bytes)):
                for chunk in _cut(read_blocks(file, size, BLOCK_BYTES, piece.name), piece, parser):
                    yield piece, chunk
                continue
            text = file.read(size)
            if len(text) != size:
                raise SourceError(piece.name, SHORTER)
            odd = bisect_left(torn, piece.before.offset) < bisect_left(torn, piece.stop)
            yield piece, Chunk(text, piece.before, header_lines=piece.header_lines, torn=odd)


def check_count(piece: CsvPiece, chunk: Chunk, rows: int, parser: Parser) -> None:
    """Raise `SourceError` where the rows of a chunk are not as many as the records that the split found in it."""
    expected = piece.rows
    if chunk.counts is not None:
        expected = _rows(chunk.counts, parser.names)
    if rows != expected:
        first = _rows(chunk.before, parser.names) + 1
        raise SourceError(
            piece.name, f"rows from {first} on: the split found {expected} rows and the parser {rows}; please report it"
        )


def _stream_chunks(piece: CsvPiece, parser: Parser, encoding: str) -> Iterator[Chunk]:
    form = sniff_text(piece, encoding)
    blocks = _skip(stream_text(piece, encoding, form), piece.before.offset - form.start)
    yield from _cut(blocks, piece, parser)


def _cut(blocks: Iterable[bytes], piece: CsvPiece, parser: Parser) -> Iterator[Chunk]:
    done, start = piece.before, piece.before.offset
    own = parser.limits
    block_bytes = own.block_bytes * times_wider(len(parser.names))
    limits = StreamLimits(own.field_bytes, own.record_bytes, block_bytes, own.long_bytes, rejects=not piece.streamed)
    for text, counts, size, long in cut_stream(blocks, piece.name, parser.dialect, start, limits):
        whole = size == len(text) or not counts.records
        yield Chunk(text, done, counts, piece.header_lines, size=None if whole else size, long=long)
        done = Cut(
            offset=done.offset + size,
            records=done.records + counts.records,
            blanks=done.blanks + counts.blanks,
            lines=done.lines + counts.lines,
        )


def _skip(blocks: Iterable[bytes], count: int) -> Iterator[bytes]:
    for block in blocks:
        if len(block) <= count:
            count -= len(block)
        else:
            yield block[count:]
            count = 0


def _since(cut: Cut, origin: Cut) -> Cut:
    return Cut(cut.offset, cut.records - origin.records, cut.blanks - origin.blanks, cut.lines - origin.lines)


def _rows(cut: Cut, names: Sequence[str] | None) -> int:
    """Return the rows that a count stands for: in a file of one column blank lines are rows too."""
    return cut.records + (cut.blanks if names is not None and len(names) == 1 else 0)
