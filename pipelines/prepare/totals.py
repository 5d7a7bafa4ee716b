"""Find the rows below a table, and amid it, that are totals or notes, and the condition that leaves them out."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from keyword import iskeyword
from typing import Final, NamedTuple

import pyarrow as pa

from ...transforms.errors import ShardmillError
from ...transforms.format.wording.hints import Add, Set, set_column
from ...transforms.format.wording.printable import printable
from ...transforms.inputs.contract.source import Source
from ...transforms.inputs.contract.tasks import Plan, batches_of
from ...transforms.recipe.step import as_text
from ...transforms.sources.text.cast import means_null

_TOTALS: Final = (
    "total", "totaal", "totale", "totals", "totalt", "subtotal", "subtotaal", "sub-total", "sous-total",
    "grand total", "summe", "sum", "gesamt", "gesamtsumme", "zwischensumme", "insgesamt", "somme", "suma", "razem",
    "ogółem", "łącznie", "soma", "summa", "celkem", "összesen", "toplam", "genel toplam", "ara toplam", "yhteensä",
    "итого", "всего", "всього", "разом", "σύνολο", "γενικό σύνολο", "μερικό σύνολο", "ukupno", "skupaj", "samtals",
    "kokku", "average", "avg", "mean", "moyenne", "média", "media", "promedio", "mittelwert", "durchschnitt",
    "gemiddelde", "średnia", "průměr", "medel", "ortalama", "среднее", "平均", "平均値", "평균", "iš viso", "kopā",
    "общо", "укупно", "tổng", "tổng cộng", "סה\"כ", "المجموع", "合計", "小計", "総計", "总计", "合计", "小计",
    "합계", "총계", "소계", "총합계", "i alt",
)  # fmt: skip
_TOTAL: Final = re.compile(rf"(?i)\W*(?:{'|'.join(_TOTALS)})\b")
"""How a row begins that is the sum, or the average, of those above it."""

_MOST_BEFORE_TOTAL: Final = 12
_LAST_BYTES: Final = 4 << 20
_LAST_ROWS: Final = 4


class Totals(NamedTuple):
    """The column whose cells begin with a word for a total, these cells, and what leaves their rows out.

    The condition `is_enough`, unless these cells have to be null in a column of numbers.
    """

    column: str
    words: Sequence[str]
    line: str
    is_enough: bool


def totals_of(source: Source, plan: Plan) -> Totals | None:
    """Return the totals among the last rows of a table; None where there are none, or it is not read again."""
    pieces = plan.survey.pieces
    if plan.listing.format != "csv" or not pieces or pieces[-1].bytes > _LAST_BYTES:
        return None
    try:
        batches = [*batches_of(source, pieces[-1], plan.survey.frozen)]
    except (ShardmillError, OSError):
        return None
    for name in batches[-1].batch.schema.names[:_MOST_BEFORE_TOTAL] if batches else ():
        rows = batches[-1]
        values = rows.batch.column(name)
        if not holds_text(values.type):
            continue
        above, words, amid = _before_totals(texts_of(values), rows.batch)
        if not words:
            continue
        numbered = [f"{rows.origin.number(row)[1] or row + 1:,}" for row in (*amid, len(above))]
        place = f"in rows {', '.join(numbered)}" if amid else f"from row {numbered[0]} on"
        column, other = _in_expression(name), _null_from(rows.batch, len(above), amid)
        numbers = all(text is None or is_number(text) for text in above) and any(above)
        if other:
            options = Add(Set("input.where", f"not is_null({_in_expression(other)})"))
        elif numbers:
            nulls = set_column(name, "null_values", words)
            options = Add(nulls, Set("input.where", f"not is_null({column})"))
        else:
            kept = " and ".join(f"{column} != {_quoted(word)}" for word in words)
            kept = f"is_null({column}) or ({kept})" if None in above else kept
            options = Add(Set("input.where", kept))
        shown = ", ".join(f'"{printable(word)}"' for word in words)
        kind = "total" if any(map(_TOTAL.match, words)) else "note"
        what = f"below the other rows, as a {kind} is ({place}); to leave it out"
        line = f'column "{printable(name)}": {shown} is {what}: {options}'
        return Totals(name, words, line, bool(other) or not numbers)
    return None


def _in_expression(name: str) -> str:
    return name if name.isidentifier() and not iskeyword(name) else f"col({_quoted(name)})"


def _null_from(batch: pa.RecordBatch, first: int, amid: Collection[int]) -> str:
    """Return a column that is null from a row on, in those `amid`, and else where no column has a value; or nothing."""
    nulls = {name: batch.column(name).is_null().to_pylist() for name in batch.schema.names}
    empty = [*map(all, zip(*nulls.values(), strict=True))][:first]
    empty = [all_null or row in amid for row, all_null in enumerate(empty)]
    for name, own in nulls.items():
        if all(own[first:]) and own[:first] == empty:
            texts = texts_of(batch.column(name)) if holds_text(batch.schema.field(name).type) else []
            if not any(text is not None and means_null(text) for text in texts):
                return str(name)
    return ""


def _before_totals(
    texts: Sequence[str | None], batch: pa.RecordBatch
) -> tuple[Sequence[str | None], list[str], list[int]]:
    """Return the cells of a column above the last totals, all totals, and the rows of those above them.

    Amid the rows a total lacks what the last one lacks.
    """
    first = len(texts)
    for row in range(len(texts) - 1, max(len(texts) - 1 - _LAST_ROWS, -1), -1):
        text = texts[row]
        if text is not None and _TOTAL.match(text) is None and not _is_note(text, row, batch):
            break
        first = first if text is None else row
    above, words = texts[:first], [text for text in texts[first:] if text is not None]
    is_below = len({*words}) == len(words) and not {*words} & {*above} and any(text is not None for text in above)
    if not words or not is_below:
        return above, [], []
    amid = [row for row, text in enumerate(above) if text is not None and _TOTAL.match(text)]
    lacking = [column for column in batch.columns if not column[first].is_valid]
    empty = [row for row in amid if any(not column[row].is_valid for column in lacking)]
    return above, [*dict.fromkeys(text for row in empty if (text := above[row]) is not None), *words], empty


def _is_note(text: str, row: int, batch: pa.RecordBatch) -> bool:
    """Return whether a row of some columns has a sentence alone, as the source of a table is below it."""
    is_alone = sum(column[row].is_valid for column in batch.columns) == 1
    return is_alone and len(batch.columns) >= _FEWEST_COLUMNS and _SENTENCE.search(text) is not None


_FEWEST_COLUMNS: Final = 3
_SENTENCE: Final = re.compile(r"\w:\s|\w\s+\w+\s+\w|^\W*[*(©]")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def texts_of(values: pa.Array) -> list[str | None]:
    """Return texts, with a sign for bytes that are not UTF-8, which the types of Parquet do not rule out."""
    cells = as_text(values).cast(pa.large_binary()).to_pylist()
    return [None if cell is None else cell.decode("utf-8", "replace") for cell in cells]


def holds_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?[0-9][0-9.,]*\s*", text) is not None
