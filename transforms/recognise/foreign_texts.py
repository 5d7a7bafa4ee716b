"""Recognise texts that are no CSV or JSON lines, and give the command or line of Python that reads their rows.

@relation iris                        ARFF of Weka and OpenML: names and types, then rows between commas
INSERT INTO t VALUES (1, 'a');        a dump of a database
1 3:0.5 7:1                           LibSVM, svmlight: a label, then index:value of what is not 0
__label__pos It is good               fastText: labels, then a text
EU NNP B-ORG                          CoNLL: a token in each line, with its tag; sentences end with an empty line
"TOA5","Ridge","CR1000"               Campbell Scientific's loggers: the station, names, units, how each is measured
StartDate,EndDate,Status              surveys of Qualtrics: names, texts and ids of the questions, then rows
#group,false,false,true               annotated CSV of InfluxDB: lines of types, then a header and rows, again and again
#Fields: date time c-ip               extended logs of the W3C, as IIS writes them
#fields ts uid                        logs of Zeek, with tabs
::1 - - [30/Mar/2025:01:50:01 +0100]  common and combined logs of web servers
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ..format.wording.hints import Add, Command, Python, Set, read_csv, runnable, set_column
from ..format.wording.printable import first_names
from ..inputs.contract.selection import Call, typed_path
from ..inputs.files.open_file import is_object

LIBSVM: Final = re.compile(rb"[-+]?[0-9][0-9.,eE+-]*( qid:[0-9]+)?( +[0-9]+:[-+]?[0-9.][0-9.eE+-]*)+\s*(#.*)?$")
"""A line in the form of LibSVM: a label, and index:value."""

_ARFF: Final = re.compile(rb"@(?:relation|attribute)\s", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(
    r"\s*@attribute\s+(?P<name>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\s{]+)\s*(?P<type>\{.*\}|\S.*?)\s*",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_DATA: Final = re.compile(r"\s*@data\b", re.IGNORECASE)
_SQL: Final = re.compile(
    rb"(?:insert\s+into|create\s+table|drop\s+table|pragma\s+foreign_keys|begin\s+transaction)\b|copy\s.*\sfrom\s+stdin;"
    rb"|-- (?:mysql|mariadb|postgresql)\b.*\bdump\b",
    re.IGNORECASE,
)
_SQLITE: Final = re.compile(rb"\s*(?:pragma\s+foreign_keys|begin\s+transaction)", re.IGNORECASE)
_TABLE: Final = re.compile(r"^create\s+table\s+(?:if\s+not\s+exists\s+)?(?P<name>\"[^\"]+\"|\w+)", re.I | re.M)
_FIELDS: Final = b"#Fields:"
_OF_ZEEK: Final = b"#fields\t"
_ANNOTATED: Final = re.compile(rb"#(?:group|datatype|default),")
_IMPORTED: Final = b'{""ImportId"":'
_CLF: Final = re.compile(
    rb'\S+ \S+ [^"]+ \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] ".*" \d{3} (?:\d+|-)(?: ".*" ".*")?'
)
_MOST_BYTES: Final = 16 << 20
_MOST_FILES: Final = 8
_MOST_ARFF: Final = 16


def told_of_text(
    lines: Sequence[bytes], paths: Sequence[str], call: Call, pattern: str = "", splits: Sequence[str] = ()
) -> str:
    """Return what files are whose first lines are these, and how their rows are read; empty for others.

    Where they are many, a `pattern` matches all of them. `splits` are those of the files, if they have some.

    >>> told_of_text([b"1 3:0.5", b"0 1:2"], ["a.svm"], Call())[:43]
    'is LibSVM (a label, then index:value): in P'
    """
    if is_libsvm(lines):
        return f"is LibSVM (a label, then index:value): in Python: {_of_libsvm(lines, paths, call, pattern, splits)}"
    if is_fasttext(lines):
        return f"is fastText (labels, then a text): in Python: {_of_fasttext(paths, call, pattern, splits)}"
    if is_conll(lines):
        return (
            f"is CoNLL (a token with its tags in each line): in Python, a record for each sentence, without comments: "
            f"{_of_conll(lines, paths, call, pattern, splits)}"
        )
    starts = [line for line in lines if _SQL.match(line) or not line.startswith((b"%", b"/*", b"--"))]
    if starts and _ARFF.match(starts[0].lstrip()):
        return f"is ARFF (names and types, then rows){_of_arff(paths, call, splits)}"
    if lines and lines[0].startswith(b'"TOA5"') and len(lines) > 1:
        return f"is TOA5 of a data logger (four lines of heads); to read it: {_of_logger(lines[1], paths, call)}"
    if lines and lines[0].startswith(b"StartDate") and any(_IMPORTED in line for line in lines):
        rows = f"{read_csv(repr(paths[0]))}.drop(index=[0, 1])"
        what = "is an export of Qualtrics, whose first two rows are texts and ids of its questions"
        return f"{what}; to leave them out, in Python: {_written_first(rows, paths[0], call)}"
    if lines and _ANNOTATED.match(lines[0]):
        parts = rf"re.sub(r'(?m)^#.*\n', '', pathlib.Path({paths[0]!r}).read_text('utf-8-sig')).split('\n\n')"
        rows = f"pandas.concat([{read_csv('io.StringIO(part)')} for part in {parts} if part.strip()])"
        what = "is annotated CSV of InfluxDB (lines of types, then a header and rows, maybe several times)"
        return f"{what}; to read its rows, in Python: {_written_first(f'{rows}.iloc[:, 1:]', paths[0], call)}"
    if fields := next((line for line in lines if line.startswith(_FIELDS)), b""):
        apart = " (date and time, of UTC, stay two columns)" if b" date time" in fields else ""
        return f"is a log in the W3C's extended form{apart}; to read it: {_of_w3c(fields, paths, call)}"
    if fields := next((line for line in lines if line.startswith(_OF_ZEEK)), b""):
        return f"is a log of Zeek; to read it: {_of_zeek(fields, paths, call)}"
    if sum(map(bool, map(_CLF.match, lines))) > len(lines) / 2:
        what = "is the log of a web server (common or combined; a line of another form is kept as a request)"
        return f"{what}: in Python: {_of_clf(paths, call, pattern, splits)}"
    if any(map(_SQL.match, starts[:1])):
        return f"is a dump of a database (SQL), not a table{_of_sql(starts[0], paths[0], call)}"
    return ""


def _written_first(rows: str, path: str, call: Call) -> str:
    """Return what writes the rows of an expression of pandas into the working folder, and what reads them there."""
    made = f"rows-{os.path.basename(path)}"
    return f"{runnable(f'{rows}.to_csv({made!r}, index=False)')}; then: {call.reading([typed_path(made)])}"


def is_libsvm(lines: Sequence[bytes]) -> bool:
    return bool(lines) and all(map(LIBSVM.match, lines)) and any(b":" in line for line in lines)


def is_fasttext(lines: Sequence[bytes]) -> bool:
    return bool(lines) and all(line.startswith(b"__label__") for line in lines)


_TAG: Final = re.compile(rb"O|[BIESLUM]-[^\s-]\S*")
_DOCUMENT: Final = b"-DOCSTART-"
_FEWEST_TOKENS: Final = 3
_OF_CONLLU: Final = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def _tokens_in(lines: Sequence[bytes]) -> list[list[bytes]]:
    """Return the cells of lines of CoNLL, without documents and, where tokens are numbered, comments."""
    sign = b"\t" if any(b"\t" in line for line in lines) else b" "
    found = [line.strip(b"\r\n").split(sign) for line in lines if not line.startswith((_DOCUMENT, b"# "))]
    commented = [line.strip(b"\r\n").split(sign) for line in lines if line.startswith(b"# ")]
    numbered = all(row[0][:1].isdigit() for row in found)
    return found if numbered else found + commented


def is_conll(lines: Sequence[bytes]) -> bool:
    """Return whether all lines are tokens with tags of names, `B-PER` or `O`, or the ten cells of CoNLL-U."""
    rows = _tokens_in(lines)
    if len(rows) < _FEWEST_TOKENS or len(width := {len(row) for row in rows}) > 1 or len(rows[0]) < 2:
        return False
    of_treebank = width == {len(_OF_CONLLU)} and all(
        row[0][:1].isdigit() and (row[6].isdigit() or row[6] == b"_") for row in rows
    )
    return of_treebank or all(_TAG.fullmatch(row[-1]) for row in rows)


def _of_conll(lines: Sequence[bytes], paths: Sequence[str], call: Call, pattern: str, splits: Sequence[str]) -> Python:
    rows, sign = _tokens_in(lines), "\t" if any(b"\t" in line for line in lines) else " "
    numbered, tagged = all(row[0][:1].isdigit() for row in rows), all(_TAG.fullmatch(row[-1]) for row in rows)
    between = [f"column_{at}" for at in range(1, len(rows[0]) - 1)]
    names = ["column_0" if numbered else "tokens", *between, "tags"] if tagged else [*_OF_CONLLU]
    left = "('#', '-DOCSTART-')" if numbered else "'-DOCSTART-'"
    files, split, each = _files_and_splits(paths, pattern, splits)
    row = f"dict(zip({names}, map(list, zip(*rows, strict=True)), strict=True))"
    inner = f"[line.split({sign!r}) for line in text.split('\\n') if line.strip() and not line.startswith({left})]"
    return call.of_data(
        f"({f'{{{split}**{row}}}' if split else row} {each}for file in {files} "
        rf"for text in re.split(r'\n\s*\n', pathlib.Path(file).read_text('utf-8')) for rows in [{inner}] if rows)",
        **({"split__column": "split"} if splits else {}),
    )


def _text_of(path: str) -> str:
    """Return the text of a file on the disk; empty where it is large, or not there."""
    if is_object(os.fsencode(path)) or not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
        return ""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def python_of(paths: Sequence[str], pattern: str = "") -> str:
    """Return the expression of some paths: a list, or where they are many, the glob that matches all of them.

    >>> python_of(["b.svm", "a.svm"], "*.svm"), python_of([f"d/{n}.svm" for n in range(9)], "d/*.svm")
    ("['b.svm', 'a.svm']", "sorted(glob.glob('d/*.svm'))")
    """
    return f"sorted(glob.glob({pattern!r}))" if pattern and len(paths) > _MOST_FILES else repr([*paths])


def _of_libsvm(lines: Sequence[bytes], paths: Sequence[str], call: Call, pattern: str, splits: Sequence[str]) -> Python:
    grouped = b" qid:" in lines[0]
    several = any(b"," in line.partition(b" ")[0] for line in lines)
    label = "'labels': [*map(int, label.split(','))]" if several else "'label': float(label)"
    group, query = ("'qid': int(qid[4:]), ", "qid, ") if grouped else ("", "")
    row = (
        f"{label}, {group}'index': [int(one.split(':')[0]) for one in pairs], "
        "'value': [float(one.split(':')[1]) for one in pairs]"
    )
    words = f" if (words := line.partition('#')[0].split()) for label, {query}*pairs in [words]"
    return _of_lines(row, words, paths, call, pattern, splits)


def _of_fasttext(paths: Sequence[str], call: Call, pattern: str, splits: Sequence[str]) -> Python:
    row = r"'labels': re.findall('__label__([^ \t\n]+)', line), 'text': re.sub('__label__[^ \t\n]+', '', line).strip()"
    return _of_lines(row, " if line.strip()", paths, call, pattern, splits)


def _of_lines(row: str, chosen: str, paths: Sequence[str], call: Call, pattern: str, splits: Sequence[str]) -> Python:
    files, split, each = _files_and_splits(paths, pattern, splits)
    return call.of_data(
        f"({{{split}{row}}} {each}for line in fileinput.input({files}){chosen})",
        **({"split__column": "split"} if splits else {}),
    )


def _files_and_splits(paths: Sequence[str], pattern: str, splits: Sequence[str]) -> tuple[str, str, str]:
    of_splits: dict[str, list[str]] = {}
    for one, path in zip(splits, paths, strict=bool(splits)):
        of_splits.setdefault(one, []).append(path)
    loop = f"for split, files in {of_splits}.items() "
    return ("files", "'split': split, ", loop) if splits else (python_of(paths, pattern), "", "")


@dataclass(frozen=True)
class _Arff:
    """The line of `@data`, the attributes above it, and the lines below."""

    end: int
    found: tuple[tuple[str, str], ...]
    below: Sequence[str] = field(compare=False)

    @classmethod
    def of(cls, path: str) -> _Arff:
        lines = _text_of(path).splitlines()
        end = next((at for at, line in enumerate(lines) if _DATA.match(line)), len(lines))
        found = tuple((one["name"], one["type"]) for line in lines[:end] if (one := _ATTRIBUTE.fullmatch(line)))
        return cls(end, found, [line for line in lines[end + 1 :] if line.strip()])


def _of_arff(paths: Sequence[str], call: Call, splits: Sequence[str]) -> str:
    each = [_Arff.of(path) for path in paths[:_MOST_ARFF]]
    alike = len(each) == len(paths) and len({*each}) == 1
    below = [line for one in (each if alike else each[:1]) for line in one.below]
    rows = [line for line in below if not line.startswith("%")]
    escapes, blanks = any("\\" in row for row in rows), any(", " in _QUOTED.sub("", row) for row in rows)
    if not rows or rows[0].startswith("{") or (escapes and (blanks or len(rows) < len(below))):
        return "; write it as CSV with the program that it is of"
    names, quote = [_bare(name) for name, _ in each[0].found], '"' if any('"' in row for row in rows) else "'"
    options = [Set("input.skip_lines", each[0].end + 1), Set("input.names", names)]
    options += [Set("input.null_values", ["?"]), Set("input.quote", quote)]
    options += [Set("input.comment", "%")] if len(rows) < len(below) else []
    options += [Set("input.escape", "\\")] if escapes else []
    options += [Set("input.trim", True)] if blanks else []
    for name, (_, type_) in zip(names, each[0].found, strict=True):
        kind = type_.partition("%")[0].strip()
        classes = next(csv.reader([kind[1:-1]], quotechar=quote, skipinitialspace=True)) if kind[0] == "{" else []
        if len(classes) > 1:
            options.append(set_column(name, "label", [one.strip() for one in classes]))
        elif kind.lower() == "string":
            options.append(set_column(name, "type", "string"))
    options += [Set("input.splits", "names")] if splits and alike else []
    options += [Set("output.split", splits[0])] if not alike and [*splits[:1]] not in ([], ["train"]) else []
    shown = (
        f"; {first_names(paths, _MOST_FILES)} have other heads each; to read the first" if not alike else "; to read"
    )
    it = shown if len(paths) > 1 else "; to read it"
    read = call.reading(paths if alike else paths[:1], Add("--format", "csv", "--no-header"), *options)
    return f"{it}{' them' if alike and len(paths) > 1 else ''}: {read}"


def _bare(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name[1:-1]) if name[0] in "'\"" else name


def _of_logger(names: bytes, paths: Sequence[str], call: Call) -> Command:
    named = next(csv.reader([names.decode("utf-8", "replace")]))
    heads = [Set("input.skip_lines", 4), Set("input.names", named)]
    return call.reading(paths, Add("--format", "csv", "--no-header"), *heads)


def _of_w3c(fields: bytes, paths: Sequence[str], call: Call) -> Command:
    names = fields.removeprefix(_FIELDS).decode("utf-8", "replace").split()
    heads = [Add("--delimiter", " "), Set("input.comment", "#"), Set("input.quote", None), Set("input.names", names)]
    return call.reading(paths, Add("--format", "csv", "--no-header"), *heads, Set("input.null_values", ["", "-"]))


def _of_zeek(fields: bytes, paths: Sequence[str], call: Call) -> Command:
    names = fields.removeprefix(_OF_ZEEK).decode("utf-8", "replace").split("\t")
    heads = [Add("--delimiter", "tab"), Set("input.comment", "#"), Set("input.quote", None), Set("input.names", names)]
    exact = [set_column("ts", "as", "bytes")] if "ts" in names else []
    nulls = Set("input.null_values", ["-", "(empty)"])
    return call.reading(paths, Add("--format", "csv", "--no-header"), *heads, nulls, *exact)


def _of_clf(paths: Sequence[str], call: Call, pattern: str, splits: Sequence[str]) -> Python:
    """Return the call that converts each line: `-` is null, and the time has its offset.

    A line of another form is kept whole, as its request.
    """
    words = "re.fullmatch({!r}, line.strip())".format(
        r'(\S+) (\S+) (.+?) \[(.+?)\] "(.*?)" (\d+) (\d+|-)(?: "(.*?)" "(.*?)")?'
    )
    values = "host, name, user, time, request, status, size, referrer, agent"
    row = (
        "'host': host, 'user': user, 'time': time and datetime.datetime.strptime(time, "
        "'%d/%b/%Y:%H:%M:%S %z').astimezone(datetime.timezone.utc), 'request': request, 'status': status and "
        "int(status), 'bytes': size and int(size), 'referrer': referrer, 'agent': agent"
    )
    groups = "(found.groups() if found else [None] * 4 + [line.strip()] + [None] * 4)"
    every = f" for found in [{words}] for {values} in [[None if one == '-' else one for one in {groups}]]"
    return _of_lines(row, every, paths, call, pattern, splits)


def _of_sql(first: bytes, path: str, call: Call) -> str:
    text = _text_of(path)
    tables = list(dict.fromkeys(one["name"].strip('"') for one in _TABLE.finditer(text)))
    if not _SQLITE.match(first) or not tables:
        return "; load it into its database, write the table there as CSV, and convert that"
    others = f" (it holds {first_names(tables, _MOST_FILES)}; each is a dataset)" if len(tables) > 1 else ""
    query = f'SELECT * FROM "{tables[0]}"'  # noqa: S608 - it is shown, not run
    read = (
        "[dict(zip([one[0] for one in rows.description], row)) for db in [sqlite3.connect(':memory:')] "
        f"for _ in [db.executescript(pathlib.Path({path!r}).read_text('utf-8'))] "
        f"for rows in [db.execute({query!r})] for row in rows]"
    )
    return f"; in Python{others}: {call.of_data(read)}"
