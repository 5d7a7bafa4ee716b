"""Propose keys for columns of text by their values: money, units, dates, yes and no, null words, classes.

Nothing here changes a run: `init` writes the keys as comments that run when the sign is taken away, and a dry run
prints them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any, Final
from unicodedata import category

import pyarrow as pa
import pyarrow.compute as pc

from ...transforms.errors import ShardmillError
from ...transforms.format.batches.arrow_memory import binary_array
from ...transforms.format.columns.feature_column import item_for_null
from ...transforms.format.schema.arrow_types import feature_of, is_list
from ...transforms.format.wording.hints import Add, Set, set_column
from ...transforms.format.wording.printable import counted, first_names, more, printable
from ...transforms.inputs.contract.source import Source, Survey
from ...transforms.inputs.contract.tasks import Plan, batches_of, first_pieces
from ...transforms.inputs.files.file_names import SPLITS
from ...transforms.recipe.source import RecipeSource
from ...transforms.sources.csv.header import CsvPiece
from ...transforms.sources.text.cast import (
    CLEAR_BOOLS,
    bool_words,
    is_answer,
    is_null_number,
    means_null,
    null_numbers,
    prove_column,
    type_noun,
)
from ...transforms.sources.text.cell_lists import look_of
from ...transforms.sources.text.written import OFFSET, Written, forms_together, ways_to_read
from .totals import holds_text, is_number, texts_of, totals_of

_MOST_VALUES: Final = 1_000
NULLS_MADE: Final = "input.null_values made"
"""How a line begins that says what a key has done: it proposes nothing else for a column."""

_MOST_COLUMNS: Final = 200
_MOST_BATCHES: Final = 16
"""A first line that is no header is a batch of its own, and so is a small file."""

_LARGE_ROW: Final = 1 << 20
_LARGE_CELL: Final = 4 << 10
"""Bytes, on average, of what is a document or a picture: no cell of a table, and too large to hold twice."""

_FEWEST: Final = 3
_MOST_CLASSES: Final = 20
_ROWS_OF_A_CLASS: Final = 5
_LONGEST_CLASS: Final = 40
_SHOWN: Final = 4
_ENTITY: Final = re.compile(
    r"(?i)(?:^|.*_)(?:user|customer|client|patient|subject|person|speaker|session|group|order|document|video)s?(?:_?id)?"
)
"""The name of a column whose equal values belong to one split: rows of one person are alike."""

_YES_OR_NO: Final = re.compile(
    r"(?i:is|has|czy|ist|hat|est)(?:[_ .-]|(?<=[a-z])[A-Z])"
    r"|(?i:(?:.*[_ .-])?(?:in)?(?:active|flag|enabled|deleted|aktiv|actif|"
    r"activo|ativo|attivo|actief|aktywny|newsletter|open|paid|shipped|verified|bezahlt|betaald|pagato|pagado|spedito)$)"
    r"|.*(?:異常|フラグ|有無|済)$"
)
"""The name of a column in which 0 and 1 are no and yes."""

_CURRENCIES: Final = frozenset((
    "R$", "US$", "A$", "C$", "S$", "HK$", "NT$", "EUR", "USD", "GBP", "CHF", "PLN", "BRL", "JPY", "SEK", "NOK", "DKK",
    "CZK", "HUF", "RON", "BGN", "TRY", "RUB", "UAH", "CNY", "KRW", "INR", "AUD", "CAD", "MXN", "ILS", "kr", "Kr", "Fr",
    "Rs", "\\",
))  # fmt: skip
"""Currencies before amounts; the last is how the yen of Shift JIS is decoded."""

_PIECES: Final = frozenset((
    "개", "명", "건", "대", "個", "件", "人", "名", "枚", "台", "szt", "szt.", "Stk", "Stk.", "Stück", "st", "st.",
    "pc", "pcs", "pcs.", "ks", "db", "adet", "шт", "шт.", "τεμ", "τεμ.", "uds", "uds.", "un", "un.", "pz", "pz.", "kpl",
))  # fmt: skip
"""Words for pieces, of which there are whole numbers."""

_TYPE: Final = re.compile(r"(?:Nullable\()?(?:u?int|float|datetime|decimal|date)[0-9]+(?:\([^)]*\))?\)?", re.IGNORECASE)
_MOST_NAMES: Final = 64
_ODD_WORDS: Final = 4
_ODD_SHARE: Final = 0.3
"""Words without a digit may mean null: so few of them, and so small a share of values that are read otherwise."""

_ONE_DIGIT: Final = re.compile(r":[0-9](?![0-9])")
_ONE_AND_ZERO: Final = {"true_values": ["1"], "false_values": ["0"]}
_NAME_OF_EPOCH: Final = re.compile(
    r"(?i)(?:.*[_ .-])?(?:epoch|unix|timestamp|ts|time|utc|date|at|"
    r"created|updated|modified|started|ended|seen|expires)"
    r"(?:[_ .-]?(?:time|ts|s|secs?|seconds|ms|millis|us|ns))?"
)
_EPOCH_UNITS: Final = {
    "s": ("seconds", 1), "ms": ("milliseconds", 10**3), "us": ("microseconds", 10**6), "ns": ("nanoseconds", 10**9),
}  # fmt: skip
_FIRST_EPOCH, _LAST_EPOCH = 946_684_800, 2_051_222_400
"""The years 2000 to 2034."""

_DIGITS_OF_US: Final = 6

_EPOCH: Final = re.compile(r"1[0-9]{9}(\.[0-9]+)?|1[0-9]{12}")
_WORDS_FOR_MONEY: Final = frozenset(
    ("lei", "kč", "zł", "ft", "\u0440\u0443\u0431", "грн", "лв", "tl", "euro", "euros", "dollars", "元", "円", "원")
)
_SIGN: Final = "[$£€¥₽₺₴₩₹]"
_BEFORE: Final = "|".join(map(re.escape, sorted(_CURRENCIES, key=len, reverse=True)))
_UNIT: Final = re.compile(
    rf"\s*({_BEFORE}|{_SIGN})?\s*-?[0-9](?:[0-9.,'\u2019\s]*[0-9])?(\s*[^\W\d_]{{2,}}\.?|\s*[元円원]|\s+[^\W\d_]|\s*{_SIGN})?\s*"
)
"""A number with a currency on one side, or a unit behind it."""

_MULTIPLE: Final = re.compile(
    rf"\s*{_SIGN}?\s*[+-]?[0-9]+([.,][0-9]*)*\s?(K|k|M|B|T|Mio\.?|Mrd\.?|mln|mlrd|tys\.|[万億亿만억])?\s*"
)
"""`1M` may be a size of clothes, and `1.5M` is none."""

_VERSION: Final = re.compile(
    r"(?i)version|(?<![a-z])(?:v|ver|vers|fw|firmware|build|release|os)(?![a-z])|版本|バージョン|버전|верси|έκδοση"
)
"""In the names of members whose numbers are none: `1.10` is not `1.1`."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The keys of `schema.columns` that read a column otherwise, if any do, and the values that show it."""

    column: str
    keys: Mapping[str, Any]
    evidence: str

    def plus(self, more: Proposal) -> Proposal:
        keys = {**more.keys, **self.keys}
        nulls = [word for one in (self, more) for word in one.keys.get("null_values", ())]
        keys |= {"null_values": [*dict.fromkeys(nulls)]} if nulls else {}
        return Proposal(self.column, keys, f"{self.evidence}; {more.evidence}")

    @property
    def typed(self) -> Proposal:
        """The same with the type of numbers, or of yes and no, that its keys imply."""
        number = self.keys.keys() & {"decimal", "thousands", "strip", "negative"}
        kind = "float64" if number else "bool" if "true_values" in self.keys else ""
        return replace(self, keys={**self.keys, "type": kind}) if kind and "type" not in self.keys else self

    @property
    def has_no_zone(self) -> bool:
        """Whether it reads times that no key gives a time zone."""
        forms = "".join(self.keys.get("format", ()))
        timed = self.keys.get("type") == type_noun(pa.timestamp("us")) or ({"%Y", "%H"} <= {*re.findall("%.", forms)})
        return timed and "timezone" not in self.keys

    def __str__(self) -> str:
        options = Add(*(set_column(self.column, key, value) for key, value in self.keys.items()))
        how = f"; to read it so: {options}" if self.keys else ""
        return f'column "{printable(self.column)}": {self.evidence}{how}'


@dataclass(frozen=True, slots=True)
class Looked:
    """What the first rows of some files hold: `texts` are the values of columns of text, `key` is one to split by.

    `places` says where the first of each text is; `numbers` are numbers, and were text in the file
    if it is not `typed`, those of a nested column with the name of the member, as the texts of `members` are. `items`
    are lists. Text that is declared to be numbers or dates is cast if `casts`. `codes`
    are numbers that mean null in some column; some text `writes_null`. `left_out` are cells of totals.
    """

    casts: bool
    texts: Mapping[str, Sequence[str]]
    places: Mapping[tuple[str, str], str]
    key: str | None
    numbers: Mapping[tuple[str, str], Sequence[float]] = field(default_factory=dict)
    items: Mapping[str, Sequence[pa.Array]] = field(default_factory=dict)
    typed: bool = False
    members: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    codes: Collection[float] = ()
    writes_null: bool = False
    left_out: Collection[str] = ()


def columns_of(survey: Survey) -> tuple[str, ...]:
    stated = tuple(column.name for column in survey.frozen.columns)
    return stated or tuple(choice.column for choice in survey.choices)


def first_of(plan: Plan) -> Plan:
    """Return of a plan what the first rows are read by: a run lets go of all else that it planned."""
    entries = {piece.entry for piece in first_pieces(plan.survey)}
    there = (piece for piece in plan.survey.pieces if piece.entry in entries and piece.rows != 0)
    pieces = [*islice(there, _MOST_BATCHES)]
    last = plan.survey.pieces[len(plan.survey.pieces) - 1] if pieces else None
    if last is not None and last not in pieces:  # totals may be below the rows
        pieces.append(last)
    survey = replace(plan.survey, pieces=tuple(pieces))
    return replace(plan, listing=replace(plan.listing, entries=()), survey=survey, tasks=(), outputs=())


def look_at_rows(source: Source, plan: Plan, most: int | None = None) -> Looked:
    """Return what the first rows of up to eight files hold, at most a thousand; of so many columns at `most`."""
    survey = plan.survey
    columns = dict.fromkeys(columns_of(survey)[:most])
    texts: dict[str, list[str]] = {name: [] for name in columns}
    numbers, items = dict[tuple[str, str], list[float]](), dict[str, list[pa.Array]]()
    members = dict[tuple[str, str], list[str]]()
    places, counts, rows_seen = dict[tuple[str, str], str](), dict[str, Counter[Any]](), 0
    firsts = {piece.entry for piece in first_pieces(survey)}
    pieces = (piece for piece in survey.pieces if piece.entry in firsts and piece.rows != 0)
    batches = (rows for piece in pieces for rows in batches_of(source, piece, survey.frozen))
    for rows in islice(batches, _MOST_BATCHES):
        if rows.batch.nbytes > _LARGE_ROW * rows.batch.num_rows:
            break
        batch = rows.batch.slice(0, _MOST_VALUES - rows_seen)
        rows_seen += batch.num_rows
        for path in batch.schema.names:
            name, member = (path, "") if path in columns else (path.partition("/")[::2])
            kind, values = batch.schema.field(path).type, batch.column(path)
            if name not in columns or values.nbytes > _LARGE_CELL * len(values):
                continue
            of_text = holds_text(kind) and not member
            if of_text or (pa.types.is_integer(kind) and not member):
                listed = texts_of(values) if of_text else values.to_pylist()
                counts.setdefault(name, Counter()).update(one for one in listed if one is not None)
            if not of_text and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                numbers.setdefault((name, member), []).extend(values.drop_null().to_pylist())
            if is_list(kind) and not member:
                items.setdefault(name, []).append(values)
            if member and holds_text(kind):
                members.setdefault((name, member), []).extend(filter(None, texts_of(values)))
            if of_text:
                texts[name] += (text for text in listed if text is not None)
                at = {text: row for row, text in reversed([*enumerate(listed)]) if text is not None}
                firsts_at = {(name, text): f"row {rows.origin.number(row)[1] or row + 1}" for text, row in at.items()}
                places.update((key, place) for key, place in firsts_at.items() if key not in places)
        if rows_seen >= _MOST_VALUES:
            break
    key = next((one for one in columns if one in counts and _is_entity(one, counts[one], rows_seen)), None)
    casts = plan.listing.format in ("csv", "jsonl")
    held = {name: found for name, found in texts.items() if found}
    return Looked(casts, held, places, key, numbers, items, typed=plan.listing.format != "csv", members=members)


def _is_entity(name: str, counts: Counter[Any], rows: int) -> bool:
    return _ENTITY.fullmatch(name) is not None and 1 < len(counts) < counts.total() == rows


def lines_of_proposals(
    source: Source,
    plan: Plan,
    declared: Collection[str],
    most: int | None = None,
    tried: Collection[str] = (),
    mixed: Collection[str] = (),
) -> tuple[str, ...]:
    """Return a line for each column that may be read otherwise, but for those that the user declares.

    Of those whose keys are `tried`, it says what no key reads. Values of `mixed` columns are of several types, which no
    key reads without a type.

    After `most` lines, one says how many are left; of many columns the first are looked at. A file that cannot be read
    again has no proposals.
    """
    try:
        looked = look_at_rows(source, plan, _MOST_COLUMNS if most else None)
    except (ShardmillError, OSError):
        return ()
    looked, found = without_totals(looked, source, plan)
    proposed = [one.typed if one.column in mixed else one for one in proposals_of(looked, plan.survey.detected)]
    if units := _units_of(proposed, looked, source, plan):
        found.append(units)
        proposed = [one for one in proposed if "row 1" not in _nulls_at(one, looked).values()]
    for at in [at for at, one in enumerate(proposed) if one.has_no_zone][:1]:
        said = f"{proposed[at].evidence} (of no time zone; the key timezone, such as Europe/Berlin, gives one)"
        proposed[at] = replace(proposed[at], evidence=said)
    steps = source.recipe.steps if isinstance(source, RecipeSource) else ()
    bare = {step.column for step in steps if isinstance(step, Written) and step.lacks_a_type}
    found += [
        str(one)
        for one in proposed
        if (one.column not in declared and (one.column not in mixed or "type" in one.keys))
        or (one.column in tried and not one.keys)
        or (one.column in bare and "type" in one.keys)
    ]
    left = len(found) - most if most is not None else 0
    last = [f"{more(left, 'column')} may be read otherwise; to see all: {Add('--overwrite', '--dry-run')}"]
    return (*found[:most], *(last if left > 0 else []))


def without_totals(looked: Looked, source: Source, plan: Plan) -> tuple[Looked, list[str]]:
    """Return what rows hold without the cells of totals, and a line that says how these are left out, if any are."""
    found = totals_of(source, plan)
    if found is None or not found.is_enough:
        return looked, [] if found is None else [found.line]
    kept = [text for text in looked.texts.get(found.column, ()) if text not in found.words]
    return replace(looked, texts={**looked.texts, found.column: kept}, left_out=found.words), [found.line]


def with_proposals(detected: Sequence[str], lines: Sequence[str]) -> tuple[str, ...]:
    """Return notes with the lines of proposals: no note says to fix in the file what keys of these read."""
    keyed = "".join(line for line in lines if "--set " in line)

    def mended(note: str) -> str:
        words = _WORDS.findall(note)
        reads = words and all(f'"{word}"' in keyed for word in words)
        return _FIX_IN_FILE.sub(lambda found: "; " if "then" in found[0] else "", note) if reads else note

    return (*map(mended, detected), *lines)


_FIX_IN_FILE: Final = re.compile(
    r"; fix [^;]* in the file(?:, then (?=--set)|, or name in null_values of the column what means null)"
)


def _units_of(proposed: Sequence[Proposal], looked: Looked, source: Source, plan: Plan) -> str:
    """Return what leaves a first row out that has units, or types, of several columns; empty if there is none.

    pandas writes the name of an index below columns of several levels: it is alone in its row.
    """
    pieces = [one for one in first_pieces(plan.survey) if isinstance(one, CsvPiece)]
    words = [word for one in proposed for word, place in _nulls_at(one, looked).items() if place == "row 1"]
    words = [word for word in words if word.strip("-=_ ")]  # a line of dashes has a line of its own
    heads = {(one.columns, one.header_lines) for one in pieces}
    if len(heads) != 1:
        return ""
    names, lines = heads.pop()
    if not lines or len(names) > _MOST_NAMES or (not words and lines == 1):
        return ""
    if len(words) < 2:
        rows = next(batches_of(source, pieces[0], plan.survey.frozen), None)
        first = rows.batch.slice(0, 1).to_pylist() if rows else []
        words = [str(value) for one in first for value in one.values() if value is not None]
        if len(words) != 1 or len(names) == 1:
            return ""
    shown = first_names([f'"{printable(word)}"' for word in words], _SHOWN)
    options = Add(Set("input.skip_lines", lines), Set("input.names", [*map(str.strip, names)]))  # else it is the header
    what = f"row 1 ({shown}) is text in columns of numbers or times, as units and types are"
    if len(words) == 1:
        what = f"row 1 has one value alone ({shown}), as the line has that names an index"
    return f"{what}; to leave it out: {options}"


def _nulls_at(proposal: Proposal, looked: Looked) -> dict[str, str]:
    """Return where words come first that would be null in a column, and in no other way are."""
    words = proposal.keys.get("null_values", ())
    return {
        word: looked.places.get((proposal.column, word), "")
        for word in words
        if not (means_null(word) or is_null_number(word))
    }


def proposals_of(looked: Looked, detected: Sequence[str]) -> Iterator[Proposal]:
    """Yield what columns of text may be read as, but for those for which `detected` proposes keys already."""
    told = [line for line in detected if not line.startswith(NULLS_MADE)]
    if any("input.repeated_header" in line for line in told):  # whose words are in all columns
        return
    writes = any(text in ("NULL", "null", "\\N") for some in looked.texts.values() for text in {*some})
    looked = replace(looked, codes=_codes_of(looked), writes_null=writes)
    for name in dict.fromkeys((*looked.texts, *(name for name, _ in looked.numbers))):
        said = (f"schema.columns.{name}.", f'schema.columns."{name}".', f'column "{printable(name)}" stays text')
        if lines := [line for line in told if any(key in line for key in said)]:
            found = _proposal(name, looked.texts.get(name, ()), looked) if _FIX in "".join(lines) else None
            if found is not None and _reads_all(found, lines, looked):
                yield _with_codes(found, looked)
                continue
            comma = any(f"{key}decimal=," in line for line in lines for key in said)
            if comma or any("null_values=" in line for line in lines):
                yield from filter(None, [_null_numbers_of_text(name, looked, comma=comma)])
            continue
        if len(texts := looked.texts.get(name, ())) >= _FEWEST:
            if (found := _proposal(name, texts, looked)) is not None:
                yield _with_codes(found, looked)
        elif len(numbers := looked.numbers.get((name, ""), ())) >= _FEWEST:
            yield from filter(None, [_of_numbers(name, numbers, looked)])
    for (name, member), numbers in looked.numbers.items():
        if member and (found := _of_numbers(name, numbers, replace(looked, typed=True, casts=False))):
            yield replace(found, evidence=f'"{printable(member)}": {found.evidence}')
    yield from _of_infinity(looked)
    yield from _of_nested(looked)


def _of_infinity(looked: Looked) -> Iterator[Proposal]:
    """Yield that columns of numbers have infinity among them, as programs write what they cannot divide."""
    texts = {name: some for name, some in looked.texts.items() if 3 * sum(map(is_number, some)) > len(some)}
    words = {name: sum(one.lstrip("+-").lower() in ("inf", "infinity") for one in some) for name, some in texts.items()}
    words |= {name: sum(map(math.isinf, some)) for (name, _), some in looked.numbers.items() if not looked.typed}
    for name, count in words.items():
        if count:
            yield Proposal(name, {}, f"Inf {_times(count)}, which is read as infinity (null_values makes it null)")


_FIX: Final = "; fix "
"""How a note proposes to change words in a file, where these may also be named as null."""


def _reads_all(found: Proposal, lines: Iterable[str], looked: Looked) -> bool:
    """Return whether a proposal reads its column as something else than text, with the words null that lines name.

    A word that no row has that was looked at is further down.
    """
    words = {word for line in lines for word in _WORDS.findall(line)}
    own, seen = {*looked.texts.get(found.column, ())}, {*chain.from_iterable(looked.texts.values())}
    nulls = {*found.keys.get("null_values", ())}
    return words & own <= nulls and words <= seen | {*looked.left_out} and bool(found.keys.keys() - {"null_values"})


_WORDS: Final = re.compile(r'(?:fix|but|\),) "([^"]*)" \(')
"""Words in a note that are no numbers, each with its place."""


def _with_codes(found: Proposal, looked: Looked) -> Proposal:
    """Return a proposal for numbers with those among them that mean null too: -999,0 beside a word for an error."""
    keys = found.keys
    if not (keys.keys() & {"decimal", "strip"} or keys.get("type") in ("int64", "float64")):
        return found
    more = _null_numbers_of_text(found.column, looked, comma=keys.get("decimal") == ",", unit=keys.get("strip", ""))
    return found if more is None else found.plus(more)


def _codes_of(looked: Looked) -> set[float]:
    """Return the numbers that mean null in some column: they do so in others, in which each comes once."""
    texts = ((text, count) for some in looked.texts.values() for text, count in Counter(some).items())
    words = {float(text.replace(",", ".")) for text, count in texts if count > 1 and is_null_number(text)}
    return words.union(*map(null_numbers, looked.numbers.values()))


def _of_nested(looked: Looked) -> Iterator[Proposal]:
    """Yield what is seen of the members of objects, and of lists."""
    for (name, member), texts in looked.members.items() if looked.casts else ():
        keys, evidence = _of_values(name, texts, f'"{printable(texts[0])}"', casts=True) if texts else ({}, "")
        if len(texts) >= _FEWEST and keys.keys() & {"type", "format"} and not _is_version(member, texts):
            only = "no key reads text within objects, so it stays text unless you write it as a column of its own"
            yield Proposal(name, {}, f'"{printable(member)}": {evidence}: {only}')
    for name, lists in looked.items.items():
        items = [pc.list_flatten(one) for one in lists]
        lengths = {*chain.from_iterable(pc.list_value_length(one).drop_null().unique().to_pylist() for one in lists)}
        length, total = max(lengths, default=0), sum(map(len, items))
        count, item = sum(one.null_count for one in items), item_for_null(items[0].type)
        is_number = pa.types.is_integer(items[0].type) or pa.types.is_floating(items[0].type)
        if count and item is not None:
            written = f'is written as the text "{item}"' if holds_text(items[0].type) else f"becomes {item}"
            said = f"{counted(count, 'null')} in its lists, where records hold none; each {written}"
            yield Proposal(name, {"null_item": item}, said)
        elif looked.casts and is_number and len(lengths) == 1 < length and total >= _FEWEST * length:
            yield Proposal(name, {"length": length}, f"{length} items in each of its lists")


def _is_version(member: str, texts: Iterable[str]) -> bool:
    """Return whether numbers are those of versions: 1.10 beside 1.9, or by the name of the member."""
    lengths = {len(text.partition(".")[2]) for text in texts if "." in text}
    return _VERSION.search(member) is not None or (
        len(lengths) > 1 and any(re.search(r"[.].*0$", one) for one in texts)
    )


def _null_words(counts: Mapping[str, int], looked: Looked) -> list[str]:
    """Return the words among the values of a column that mean null there."""
    nulls = [] if _is_pair(counts) else [word for word in counts if means_null(word)]
    numbers = [word for word in counts if is_null_number(word)]
    if not any(map(is_number, counts.keys() - {*numbers})):  # -99 among words
        nulls += [word for word in numbers if counts[word] > 1 or float(word.replace(",", ".")) in looked.codes]
        nulls += [word for word in counts if word.lower() in ("infinity", "-infinity")]
    beside = {*nulls} - {"NA"} or looked.writes_null
    code = "[A-Z]{2,5}" if beside else "[A-Z]{2}"  # NA is Namibia among countries, a region beside NULL
    if all(re.fullmatch(code, word) for word in counts if word not in nulls):
        nulls = [word for word in nulls if word != "NA"]
    if not any(map(str.isdigit, "".join(counts.keys() - {*nulls}))):  # none, mild and severe are classes
        nulls = [word for word in nulls if word.lower() not in _NO_AMOUNT]
    return nulls


def _proposal(name: str, texts: Sequence[str], looked: Looked) -> Proposal | None:
    nulls = _null_words(Counter(texts), looked)
    values = [text for text in texts if text not in nulls]
    if len(values) < _FEWEST:
        return None

    def shown(word: str) -> str:
        return f'"{printable(word)}" ({looked.places[name, word]})'

    keys, evidence = _of_values(name, values, shown(values[0]), casts=looked.casts)
    odd = [word for word in dict.fromkeys(values) if not any(map(str.isdigit, word)) or _TYPE.fullmatch(word)]
    rest = [text for text in values if text not in odd] if len(odd) <= _ODD_WORDS else []
    if not keys.keys() - {"label"} and odd and len(rest) >= (1 - _ODD_SHARE) * len(values):
        other, why = _of_values(name, rest, shown(rest[0]), casts=looked.casts)
        if other.keys() - {"label"}:
            keys, evidence, values, nulls = other, why, rest, [*nulls, *odd]
        elif why and not other:
            keys, evidence = other, f"{why}; beside them: {first_names([*map(shown, odd)], _SHOWN)}"
    epochs = [text for text in values if _EPOCH.fullmatch(text)] if not keys.keys() - {"label"} else []
    if epochs and (rest := [text for text in values if text not in {*epochs}]):
        found = re.search(r" are (times|dates)", _of_values(name, rest, "", casts=looked.casts)[1])
        if found:
            sides = ((rest, found[1]), (epochs, "seconds or milliseconds since 1970"))
            both = " and ".join(f"{len(some):,} are {what}, the first {shown(some[0])}" for some, what in sides)
            keys = _keys_of_both(values) if looked.casts else {}
            zone = "" if all(map(OFFSET.search, rest)) else " (those without an offset are taken for UTC)"
            evidence = both + (zone if keys else ": no key reads both forms, so the column stays text")
    answers = {word for word in nulls if is_answer(word)}
    if answers and not keys.keys() - {"label"}:  # among words of other answers they are classes
        nulls = [word for word in nulls if word not in answers]
        values = [text for text in texts if text not in nulls]
        keys, evidence = _of_values(name, values, shown(values[0]), casts=looked.casts)
    count = len(texts) - len(values)
    if nulls and (keys or (count > 1 and not evidence)):
        keys = {"null_values": nulls, **keys}
        words = ", ".join(map(shown, nulls[:_SHOWN]))
        evidence += f"{'; ' if evidence else ''}null: {count:,} of {len(texts):,}, {words}"
    return Proposal(name, keys, evidence) if evidence else None


def _keys_of_both(values: Sequence[str]) -> dict[str, Any]:
    """Return the keys that read times beside counts since 1970, which are all of one unit; none where no keys do."""
    cells = [binary_array([value.encode()]) for value in dict.fromkeys(values)]
    for target in (pa.timestamp("s", "UTC"), pa.timestamp("ms", "UTC")):
        if all(prove_column(cell, target) is not None for cell in cells):
            return {"type": type_noun(target), "unit": target.unit, "timezone": target.tz}
    return {}


_NO_AMOUNT: Final = ("none", "nil", "无")


def _is_pair(words: Iterable[str]) -> bool:
    """Return whether words are one pair of yes and no, true and false beside it left out."""
    low = {word.lower() for word in words}
    return (low - {"true", "false"} or low) in map(set, CLEAR_BOOLS)


def _of_numbers(name: str, numbers: Sequence[float], looked: Looked) -> Proposal | None:
    """Return the keys for numbers that mean null, are times, or are no and yes: 0 and 1 beside these or by the name."""
    typed, columns = looked.typed, {one for one, _ in looked.numbers} | looked.texts.keys()
    if name == "column_0" and "column_1" not in columns and _count_rows(numbers):
        keys = {"name": "row" if "row" not in columns else "row_number"}
        said = f"{numbers[0]} to {numbers[-1]:,} number the rows, as R and pandas do in a column without a name"
        return Proposal(name, keys, f"{said} (input.exclude_columns leaves it out)")
    if not typed and (count := sum(number != number for number in numbers)):
        more = _of_numbers(name, [number for number in numbers if number == number], looked)
        said = f"nan {_times(count)}, which is read as that number"
        nan = Proposal(name, {"null_values": ["nan", "NaN", "NAN"]}, f"{said}, and would be null")
        return nan if more is None else nan.plus(more)
    of_text = None if typed else _yes_or_no(name, numbers) or _days(name, numbers)
    if found := of_text or (_epoch(name, numbers) if looked.casts else None):
        return found
    nulls = null_numbers(numbers, looked.codes)
    if not nulls:
        return None
    others = [one for one in numbers if one not in nulls]
    words = [form for one in nulls for form in ([f"{one:g}"] if typed or type(one) is int else _forms(one))]
    whole = {f"{one}" for one in others} == {"0", "1"} and not typed
    shown = ", ".join(f"{one:g} {_times(numbers.count(one))}" for one in nulls)
    far = f"far from all others ({min(others):g} to {max(others):g})"
    said = f"{shown}, {far}, as numbers that mean null are"
    return Proposal(name, {"null_values": words} | (_ONE_AND_ZERO if whole else {}), said)


def _count_rows(numbers: Sequence[float]) -> bool:
    return numbers[0] in (0, 1) and all(one == numbers[0] + row for row, one in enumerate(numbers))


def _times(count: int) -> str:
    return f"{count:,} times" if count > 1 else "once"


def _days(name: str, numbers: Sequence[float]) -> Proposal | None:
    """Return the key for whole numbers that are all days, as 20240131 is."""
    if not all(type(one) is int and _FIRST_DAY <= one <= _LAST_DAY for one in numbers):
        return None
    try:
        days = {datetime.strptime(str(one), "%Y%m%d") for one in {*numbers}}
    except ValueError:
        return None
    said = f"{numbers[0]} and {len(numbers) - 1:,} more are dates, {min(days):%Y-%m-%d} to {max(days):%Y-%m-%d}"
    return Proposal(name, {"format": "%Y%m%d"}, said)


_FIRST_DAY, _LAST_DAY = 19000101, 20991231


def _epoch(name: str, numbers: Sequence[float]) -> Proposal | None:
    """Return the keys for numbers that count the time since 1970, by the name of their column."""
    if not _NAME_OF_EPOCH.fullmatch(name):
        return None
    is_whole = all(type(one) is int for one in numbers)
    for unit, (noun, size) in _EPOCH_UNITS.items() if is_whole else [("us", ("seconds", 1))]:
        if all(_FIRST_EPOCH <= one / size < _LAST_EPOCH for one in numbers):
            digits = 0 if is_whole else max(len(f"{one}".partition(".")[2]) for one in numbers)
            unit = "ns" if digits > _DIGITS_OF_US else unit
            first = datetime.fromtimestamp(numbers[0] / size, UTC)
            said = (
                f"{numbers[0]} and {len(numbers) - 1:,} more are {noun} since 1970 (the first {first:%Y-%m-%d %H:%M})"
            )
            return Proposal(name, {"type": type_noun(pa.timestamp("us")), "unit": unit, "timezone": "UTC"}, said)
    return None


def _yes_or_no(name: str, numbers: Sequence[float]) -> Proposal | None:
    if set(numbers) != {0, 1} or not _YES_OR_NO.match(name):
        return None
    shown = f"0 {numbers.count(0):,}, 1 {numbers.count(1):,} times, and nothing else"
    return Proposal(name, _ONE_AND_ZERO, shown)


def _null_numbers_of_text(name: str, looked: Looked, *, comma: bool, unit: str = "") -> Proposal | None:
    """Return the key for numbers that mean null among others that have a decimal `comma`, a unit, or words for null."""
    texts = looked.texts.get(name, ())
    values = [text for text in texts if not means_null(text)]
    if {*values} == {"0", "1"} and (both := _yes_or_no(name, [*map(int, values)])):
        return both
    pointed = {text: text.replace(".", "").replace(",", ".") if comma else text for text in {*texts}}
    plain = {text: one.replace(unit, "").strip() for text, one in pointed.items()}
    found = {text: float(one) for text, one in plain.items() if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?", one)}
    nulls = null_numbers([found[text] for text in texts if text in found], looked.codes)
    words = sorted(text for text, number in found.items() if number in nulls)
    if not words:
        return None
    shown = ", ".join(f"{word} {_times(texts.count(word))}" for word in words)
    bools = _ONE_AND_ZERO if {*values} - {*words} == {"0", "1"} else {}
    words += [] if comma else sorted(filter(means_null, plain))
    return Proposal(
        name, {"null_values": words} | bools, f"{shown}, far from all others, as numbers that mean null are"
    )


def _forms(number: float) -> list[str]:
    """Return how a file may have written a number among decimal ones."""
    return [form for digits in range(4) if float(form := f"{number:.{digits}f}") == number]


def _of_values(name: str, values: Sequence[str], first: str, *, casts: bool) -> tuple[dict[str, Any], str]:
    """Return the keys that read values as something else than text, and what was seen; no keys for text."""
    seen = f"{first} and {len(values) - 1:,} more are"
    cells = binary_array([value.encode() for value in values])
    for target, noun in (*_TYPES, *_CAST_ALONE) if casts else ():
        few = cells.slice(0, _FEWEST)  # most text shows there that it is nothing else
        is_number = target in (pa.int64(), pa.float64())
        if all(prove_column(some, target) is not None for some in (few, cells)) and not (
            is_number and _has_codes(values)
        ):
            feature = feature_of(pa.field(name, target))[0]
            extra: dict[str, Any] = {"unit": feature.unit} if target in _IN_NS else {}
            extra |= {"timezone": feature.timezone} if feature.timezone else {}
            return {"type": feature.type} | extra, f"{seen} {noun}"
    different = Counter(values)
    is_pair = _is_pair(different) or (len(different) > 1 and _YES_OR_NO.match(name))  # S and N are directions elsewhere
    words = bool_words(sorted(different)) if is_pair else None
    if words is not None:
        shown = ", ".join(f'"{one}" {different[one]:,}' for one in sorted(different))
        return {"true_values": words[0], "false_values": words[1]}, f"{shown} times, and nothing else"
    for target, noun in _TYPES[2 if _has_codes(values) else 1 :]:
        feature, _ = feature_of(pa.field(name, target))
        ways = [*islice((way for way in ways_to_read(values, feature) if way and _is_clear(way, values)), 2)]
        ways.sort(key=lambda way: "%p" in way.get("format", "") and not way["format"].startswith("%m"))  # American
        if ways:
            ways[0] = _of_whole_numbers(ways[0], values)
            unit = ways[0].get("strip", "")
            noun += f' with "{unit}"' if unit != "true" and any(map(str.isalpha, unit)) else ""
            noun += ", and those in brackets are less than zero" if "negative" in ways[0] else ""
            other = ways[1].get("format") if len(ways) > 1 and "format" in ways[0] else None
            other = None if other == ways[0].get("format", "").replace("%b", "%B") else other  # all are May
            unclear = f" (no day is above 12: they may also be {other})" if other else ""
            return ways[0], f"{seen} {noun}{unclear}"
    if together := _of_forms(name, values):
        return together[0], f"{seen} {together[1]}"
    if casts and all(value[:1] in ("{", "[") for value in values) and (items := look_of(values)):
        return {"as": "list"}, f"{seen} lists of {items}"
    said, is_sure = _of_units(values)
    if is_sure:
        return {}, f"{seen} {said}"
    few = len(different) <= _MOST_CLASSES and len(values) >= _ROWS_OF_A_CLASS * len(different) and len(different) > 1
    is_json = any(value.startswith("{") for value in different)
    if few and max(map(len, different)) <= _LONGEST_CLASS and not _has_codes(values) and not is_json:
        names = ", ".join(printable(one) for one, _ in different.most_common(_SHOWN))
        rest = f" and {more(len(different) - _SHOWN, 'class')}" if len(different) > _SHOWN else ""
        return {"label": True}, f"{len(different):,} different values in {len(values):,}: {names}{rest}"
    return {}, f"{seen} {said}" if said else ""


def _of_units(values: Sequence[str]) -> tuple[str, bool]:
    """Return what is said of numbers of several units or currencies, or with letters that multiply some of them.

    Units alone may be parts of the names of classes.
    """
    many = [*map(_MULTIPLE.fullmatch, values)]
    if all(many) and any(one[1] and one[2] for one in many if one):
        return "numbers with letters that multiply them (K, M): no key does, so write them out before", True
    found = [_UNIT.fullmatch(value) for value in values]
    units = Counter((one[1] or one[2] or "").strip() for one in found if one)
    named = [unit for unit in units if unit]
    is_money = all(
        unit in _CURRENCIES or unit.rstrip(".").lower() in _WORDS_FOR_MONEY or re.fullmatch(_SIGN, unit)
        for unit in named
    )
    few = "" not in units and len(units) <= _SHOWN and min(units.values(), default=0) > 1
    if None in found or len(named) < 2 or not (few or (is_money and len(units) <= 2 * _SHOWN)):
        return "", False
    shown = ", ".join(f'"{unit}" {count:,}' if unit else f"none {count:,}" for unit, count in units.most_common())
    return f"numbers of different units ({shown} times): text, unless you make them of one unit before", is_money


def _of_forms(name: str, values: Sequence[str]) -> tuple[dict[str, Any], str] | None:
    """Return the keys that read times in forms of a list; those without an offset are of the zone of the others."""
    offsets = Counter(found[0].strip() for value in values if (found := OFFSET.search(value)))
    zone = next(iter(offsets), "") if len(offsets) == 1 else "UTC"
    zone = zone if re.fullmatch(r"[+-](?!00:00)..:..", zone) else "UTC"
    target = pa.timestamp("us", zone if offsets else None)
    feature = feature_of(pa.field(name, target))[0]
    forms = forms_together(values, feature)
    if not forms:
        return None
    shown = ", ".join(f"{form} {count:,} times" for form, count in forms.items())
    said = f"times in {len(forms)} forms ({shown})" if len(forms) > 1 else "times with an offset from UTC"
    if not offsets:
        return {"format": [*forms]}, said
    local = len(values) - offsets.total()
    said += (
        f", and the {local:,} without an offset are taken for local times of {zone} (timezone names another)"
        if local
        else ""
    )
    keys = {"format": [*forms] if len(forms) > 1 else next(iter(forms)), "type": feature.type, "timezone": zone}
    return keys, said


def _of_whole_numbers(way: dict[str, str], values: Sequence[str]) -> dict[str, str]:
    """Return the keys with the type of whole numbers, where thousands are the only signs, or pieces are counted."""
    point = way.get("decimal", ".")
    if not ("thousands" in way or way.get("strip") in _PIECES) or any(
        re.search(rf"{re.escape(point)}|(?i:nan|inf)", value) for value in values
    ):
        return way
    kept = {
        key: value
        for key, value in way.items()
        if key != "decimal" or "." in (way.get("thousands", "") + way.get("strip", ""))
    }
    return kept | {"type": "int64"}


def _is_clear(way: Mapping[str, str], values: Sequence[str]) -> bool:
    """Return whether signs around numbers mean percent or a currency, or are the unit behind each of them.

    The `N` of `N1`, the `A` of `12A` and the `test` of `2012test` are parts of names; `+34 600 123 456` is to call.
    """
    strip = way.get("strip", "")
    if "format" in way and any(map(_ONE_DIGIT.search, values)):  # 1:0 is no time
        return False
    if (way.get("thousands") == " " and any(value.startswith("+") for value in values)) or strip in SPLITS:
        return False
    if strip in ("true", "%", ";", "") or strip in _CURRENCIES or (len(strip) == 1 and category(strip) == "Sc"):
        return True
    plain = [value.strip(" ()") for value in values if "(" not in value or strip in value]
    point = any(re.search("[0-9][.,][0-9]", value) for value in plain)  # 3.60V is no part of a name
    gap = r"\s+" if len(strip) == 1 and strip.isascii() and not point else r"\s*"
    return all(re.search(rf"[0-9]{gap}{re.escape(strip)}\s*$", value) for value in plain)


def _has_codes(values: Sequence[str]) -> bool:
    """Return whether some values have zeros in front, which numbers would lose."""
    return any(re.match(r"[+-]?0[0-9]", one) for one in values)


_TYPES: Final = (
    (pa.int64(), "whole numbers"), (pa.float64(), "numbers"), (pa.date32(), "dates"), (pa.timestamp("us"), "times"),
    (pa.time64("us"), "times of day"),
)  # fmt: skip
_CAST_ALONE: Final = (
    (pa.timestamp("ns"), "times in nanoseconds"), (pa.timestamp("us", "UTC"), "times with an offset from UTC"),
    (pa.timestamp("ns", "UTC"), "times in nanoseconds with an offset from UTC"),
)  # fmt: skip
_IN_NS: Final = (pa.timestamp("ns"), pa.timestamp("ns", "UTC"))
"""Types of times that are written as they are cast; none of another form is looked for."""
