"""Choose the columns of JSON lines and their types: declared, or those of the values that were looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType, NoneType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ...errors import SchemaError
from ...format.batches.arrow_memory import true_mask
from ...format.columns.flatten import JSON, refuse_unsupported, without_json
from ...format.columns.keys import is_flat, type_of_document
from ...format.schema.arrow_types import feature_of
from ...format.schema.column_types import column_type
from ...format.schema.schema import Choice, ColumnRule, Feature, Schema
from ...format.wording.hints import Set, set_column
from ...format.wording.printable import NoColumnError, first_names, printable, quoted
from ...inputs.contract.selection import Selection, as_one_column, exclude_columns, same_but_capitals
from ...inputs.contract.source import DatasetSchema, Frozen
from ..text.cast import as_cast, declared_type, means_null, text_type, without_words
from ..text.lines import I64, Lines, LineSizes, read_lines
from ..text.open_text import TextPiece
from .lanes import CELLS, both_lanes, count_of, is_sparse, keys_in, may_be_inferred, run_arrow, seed_of
from .parse import Column, LineParser
from .values import (
    LineError,
    MixedTypes,
    Words,
    as_found,
    count_features,
    count_keys,
    fits,
    holds_objects,
    is_list,
    noun,
    same_kind,
    shared_type,
    type_of,
    type_of_all,
    values_of_line,
    wire_type,
    without_nulls,
)


@dataclass(frozen=True, slots=True)
class JsonFrozen(Frozen):
    """What all tasks share: `keys` are all that were found, in order, with their types; `kept` how many are read.

    With `ignores` no line is asked for other keys: all lines were looked at, or the user named the columns. `empty` are
    the keys of which no value was found, `nested` the columns that no one feature holds, `mixed` those with members of
    several types, which are text.
    """

    keys: tuple[pa.Field, ...] = field(default=(), kw_only=True)
    kept: int = field(default=0, kw_only=True)
    ignores: bool = field(default=True, kw_only=True)
    empty: tuple[str, ...] = field(default=(), kw_only=True)
    nested: tuple[pa.Field, ...] = field(default=(), kw_only=True)
    mixed: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The columns that are read: their features and Arrow fields, and why they are what they are.

    Nested columns have fields alone.
    """

    features: tuple[Feature, ...]
    fields: tuple[pa.Field, ...]
    choices: tuple[Choice, ...]

    @property
    def nested(self) -> tuple[pa.Field, ...]:
        return tuple(one for one in self.fields if not is_flat(one.type))


def known_columns(
    found: dict[str, Evidence], rules: Mapping[str, ColumnRule], *, whole: bool, name: str
) -> dict[str, Evidence]:
    """Return the columns of a source: also those that are declared, where not all lines were looked at.

    Raises `SchemaError` where a rule is for a key that no line has, or no line has any key; `name` is a file's.
    """
    for column, rule in rules.items():
        if column in found:
            continue
        if whole or rule.type is None:
            hint = None if found else "no line has a key"
            raise NoColumnError("schema.columns", column, list(found), hint=hint)
        found = {**found, column: Evidence(pa.null(), 0, "")}
    if not found:
        raise SchemaError(f"{name}: no line has a key, so that there is no column")
    return found


def choose_columns(
    found: Mapping[str, Evidence],
    kept: Sequence[str],
    rules: Mapping[str, ColumnRule],
    *,
    rows: int,
    infer: str,
    whole: bool,
    name: str,
    known: Mapping[str, pa.Field],
    most_odd: float,
) -> Chosen:
    """Return the feature of each column that is kept, and the reason of each.

    `name` is that of the first file; `known` are the nested columns of a dataset that is appended to. Raises
    `SchemaError` where values of a column have no common type, but for a share of `most_odd`, no feature holds them, or
    a declared type does not fit.
    """
    columns = []
    for column in kept:
        evidence, rule = found[column], rules.get(column, ColumnRule())
        if rule.type is None and infer != "none":
            refuse_mixed(column, evidence, most_odd, rule.nulls)
        nullable = evidence.values < rows or not whole
        kind = _arrow_type(column, evidence, rule, infer)
        if column in known and rule.type is None and fits(evidence.type, known[column].type):
            kind, nullable = known[column].type, nullable or known[column].nullable
        columns.append(pa.field(column, kind, nullable))
    refuse_unsupported(without_json(columns, rules), name, exclude_columns)
    features, choices, fields = [], [], []
    for one in columns:
        if not is_flat(one.type):
            fields.append(one)
            continue
        rule, evidence = rules.get(one.name, ColumnRule()), found[one.name]
        reason = explain(evidence, rows, whole=whole)
        if rule.type is not None:
            reason = "declared"
            rule = ColumnRule(None, rule.as_, rule.unit, rule.timezone, rule.nullable)
        elif infer == "none":
            reason = "infer is none: every column is the text of its values unless it is declared"
        feature, how = feature_of(one, rule)
        features.append(feature)
        fields.append(field_of(feature))
        also = f" ({how})" if how != str(one.type) else ""
        choices.append(Choice(one.name, feature.type, f"{reason}{also}", rows - evidence.values))
    return Chosen(tuple(features), tuple(fields), tuple(choices))


def capitals_warnings(found: Mapping[str, Evidence], kept: Sequence[str], rows: int) -> tuple[str, ...]:
    """Return what to say of keys that differ in capitals only, and together have no more values than there are rows."""
    return tuple(
        as_one_column(
            name, twin, also=f", and hold {found[name].values:,} and {found[twin].values:,} values in {rows:,} rows"
        )
        for name, *twins in same_but_capitals(kept)
        for twin in twins
        if found[name].values > 0 and 0 < found[twin].values <= rows - found[name].values
    )


def _arrow_type(name: str, evidence: Evidence, rule: ColumnRule, infer: str) -> pa.DataType:
    if rule.type is not None:
        declared = declared_type(name, rule)
        return pa.list_(declared) if is_list(evidence.type) and not pa.types.is_string(declared) else declared
    return pa.string() if infer == "none" else _with_text(evidence.type)


def _with_text(kind: pa.DataType) -> pa.DataType:
    """Return a type whose nulls, of which nothing is known, are text."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(one.name, _with_text(one.type)) for one in kind])
    return pa.list_(_with_text(kind.value_type)) if is_list(kind) else kind


def field_of(feature: Feature) -> pa.Field:
    return pa.field(feature.name, target_type(feature), feature.nullable)


def nested_columns(dataset: DatasetSchema) -> dict[str, pa.Field]:
    """Return the nested columns of a dataset that values of JSON can be parsed as; nullable where it keeps nulls."""
    found = [pa.field(one.name, type_of_document(one.type), one.null == "present") for one in dataset.columns]
    return {one.name: one for one in found if not is_flat(one.type) and wire_type(one.type) == one.type}


def target_type(feature: Feature) -> pa.DataType:
    return text_type(feature) if feature.shape == () else pa.list_(text_type(feature))


def parser_of(
    frozen: Frozen, rules: Mapping[str, ColumnRule], infer: str, record_bytes: int, selection: Selection
) -> LineParser:
    wanted = {feature.name: target_type(feature) for feature in frozen.schema}
    nested = {one.name: one.type for one in frozen.nested} if isinstance(frozen, JsonFrozen) else {}
    written = {name for name, rule in rules.items() if rule.as_ == JSON}  # their text, which no type has to hold
    wanted |= {name: pa.string() if name in written else nested[name] for name in selection.of_some(list(nested))}
    keys = frozen.keys if isinstance(frozen, JsonFrozen) else ()
    order = dict.fromkeys([*(key.name for key in keys if key.name in wanted), *wanted])
    columns, targets = [], []
    for name in order:
        target = wanted[name]
        declared = name in written or rules.get(name, ColumnRule()).type is not None
        as_json = pa.types.is_string(target) and (declared or infer == "none")
        as_json |= pa.types.is_timestamp(target) and declared  # numbers may count the time since 1970
        rule, mixed = rules.get(name, ColumnRule()), isinstance(frozen, JsonFrozen) and name in frozen.mixed
        columns.append(Column(name, wire_type(target), declared, as_json, rule.nulls, rule.decimal, mixed))
        targets.append(target)
    ignores = not isinstance(frozen, JsonFrozen) or frozen.ignores or len(wanted) < frozen.kept
    others = () if ignores else tuple(key for key in keys if key.name not in wanted)
    return LineParser(tuple(columns), tuple(targets), others, ignores, record_bytes)


def ignores_others(selection: Selection, *, all_known: bool) -> bool:
    """Return whether other keys need not be looked at: they are not wanted, or `all_known`, so that none is new."""
    named = selection.columns is not None and not any(sign in one for one in selection.columns for sign in "*?[")
    return all_known or named


def key_fields(found: Mapping[str, Evidence]) -> tuple[pa.Field, ...]:
    """Return the keys that were found, as pyarrow is to parse them where their values are not read."""
    return tuple(pa.field(name, wire_type(_with_text(one.type))) for name, one in found.items())


def cast_schema(
    rules: Mapping[str, ColumnRule], found: Schema, no_values: Collection[str], dataset: DatasetSchema
) -> Schema:
    """Return the schema of values that are cast to the dataset's types.

    A column of which no line has a value is null in all rows: also one that no line names. `no_values` are such
    columns.
    """
    wanted = {feature.name: feature for feature in dataset.schema}
    features = []
    for feature in as_cast(rules, found, dataset):
        other = wanted.get(feature.name)
        lists = other is not None and other.shape == feature.shape == (-1,)
        empty = other is not None and other.shape in ((), (-1,)) and feature.name in no_values
        castable = other is not None and (lists or empty) and column_type(other).text
        declared = rules.get(feature.name, ColumnRule()).type is not None
        features.append(other if castable and not declared and other is not None else feature)
    names = {feature.name for feature in features}
    features += [
        one for one in dataset.schema if one.name not in names and one.nullable and one.shape in ((), (-1,))
        and column_type(one).text
    ]  # fmt: skip
    return Schema(tuple(sorted(features, key=lambda feature: feature.name)))


_MOST_WORDS: Final = 8

AUTO_ROWS: Final = 10_000
"""Above `LineSizes.auto_bytes`, `infer: auto` reads this many rows of each file."""


MOST_ODD: Final = 0.1
"""The share of the values of a column that may be of other kinds than most: their rows are rejects.

Of more the column has no type, and the fix is to declare one. The dataset of an append has one, whatever the share.
"""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What some lines show of a column: its type, how many values it has, and the place of the first one.

    Where values are of several `kinds` (numbers, text, lists, ...), these are what each shows, in the order in which
    they are met, and the type is that of the most values. `mixed` are two types of one kind that nothing holds
    together, each with the place of a value, of the member `within`. `texts` are the members of several types that text
    holds. `words` are its texts, if all of them are words that mostly mean null; None if there are others.
    """

    type: pa.DataType
    values: int
    place: str
    mixed: tuple[tuple[pa.DataType, str], tuple[pa.DataType, str]] | None = None
    within: tuple[str, ...] = ()
    texts: tuple[tuple[str, ...], ...] = ()
    kinds: tuple[Evidence, ...] = ()
    words: tuple[str, ...] | None = ()

    @property
    def odd(self) -> int:
        """How many values are of another kind than most."""
        return self.values - max((one.values for one in self.kinds), default=self.values)

    def plus(self, more: Evidence) -> Evidence:
        found: list[Evidence] = []
        for one in (*(self.kinds or (self,)), *(more.kinds or (more,))):
            at = next((at for at, other in enumerate(found) if same_kind(other.type, one.type)), None)
            if at is None:
                found.append(one)
            else:
                found[at] = found[at]._with_same(one)
        if len(found) == 1:
            return found[0]
        values, most = sum(one.values for one in found), max(found, key=lambda one: one.values)
        return replace(most, values=values, place=self.place or more.place, kinds=tuple(found))

    def _with_same(self, more: Evidence) -> Evidence:
        """Return what two of one kind show together."""
        values, place = self.values + more.values, self.place or more.place
        if self.mixed or more.mixed:
            first = self if self.mixed else more
            return Evidence(self.type, values, place, first.mixed, first.within)
        texts = [*self.texts, *more.texts]
        try:
            kind = shared_type(self.type, more.type, texts if holds_objects(self.type) else None)
        except MixedTypes as error:
            one, other = error.types
            return Evidence(self.type, values, place, ((one, self.place), (other, more.place)), error.within)
        return Evidence(kind, values, place, texts=(*dict.fromkeys(texts),), words=joined_words((self, more)))

    @classmethod
    def of_all(cls, found: Sequence[Evidence]) -> Evidence:
        """Return what several show together, which takes as long as they are, and not as wide as they become."""
        if len(found) == 1:
            return found[0]
        if not any(one.mixed or one.texts or one.kinds for one in found):
            try:
                kind = type_of_all(one.type for one in found)
            except MixedTypes:
                pass  # the halves show which two it is
            else:
                place = next((one.place for one in found if one.place), "")
                return cls(kind, sum(one.values for one in found), place, words=joined_words(found))
        half = len(found) // 2
        return cls.of_all(found[:half]).plus(cls.of_all(found[half:]))


def joined_words(found: Sequence[Evidence]) -> tuple[str, ...] | None:
    words = dict.fromkeys(word for one in found for word in one.words or ())
    return None if any(one.words is None for one in found) or len(words) > _MOST_WORDS else (*words,)


@dataclass(frozen=True, slots=True)
class PieceEvidence:
    """What a piece shows: the lines that were read of it, those that are none, why the first is none, its columns.

    `blanks` are the blank lines among them.
    """

    rows: int = 0
    rejects: int = 0
    first_reject: str = ""
    columns: Mapping[str, Evidence] = field(default_factory=dict)
    blanks: int = 0

    def plus(self, more: PieceEvidence) -> PieceEvidence:
        return PieceEvidence(
            self.rows + more.rows,
            self.rejects + more.rejects,
            self.first_reject or more.first_reject,
            joined_columns((self.columns, more.columns)),
            self.blanks + more.blanks,
        )


def all_evidence(parts: Iterable[PieceEvidence]) -> PieceEvidence:
    """Return what several pieces show together; columns are in the order in which they are met."""
    found = list(parts)
    first = next((one.first_reject for one in found if one.first_reject), "")
    rows, rejects = sum(one.rows for one in found), sum(one.rejects for one in found)
    return PieceEvidence(rows, rejects, first, joined_columns(one.columns for one in found))


def joined_columns(found: Iterable[Mapping[str, Evidence]]) -> dict[str, Evidence]:
    """Return the columns of several parts of a source, in the order in which they are met."""
    columns: dict[str, Evidence] = {}
    for part in found:
        for name, evidence in part.items():
            columns[name] = columns[name].plus(evidence) if name in columns else evidence
    return columns


def look_at_piece(
    piece: TextPiece, *, sizes: LineSizes, limit: int | None, most_columns: int, nulls: Words
) -> PieceEvidence:
    """Return what a piece shows of its columns; rows of the file from `limit` on are not looked at."""
    found = PieceEvidence()
    for _, lines in read_lines([piece], sizes, blank_rows=False):
        index = lines.records
        records = len(index)
        if limit is not None:
            records = max(min(records, limit - lines.before.records), 0)
        number = _Numbers(piece.name, lines.before.lines, index)
        seen = look_at_lines(lines, records, number, sizes.record_bytes, nulls)
        found = found.plus(replace(seen, blanks=int(np.count_nonzero(lines.blank))))
        check_columns(piece.name, found.columns, most_columns)
        if limit is not None and lines.before.records + len(index) >= limit:
            break
    return found


def check_columns(name: str, columns: Mapping[str, Evidence], most: int) -> None:
    """Raise `SchemaError` for more than `most` keys, those of objects within included."""
    count = sum(count_features(one.type) for one in columns.values())
    if count > most:
        raise SchemaError(
            f"{name}: {count} keys are more than limits.columns ({most}), as if each were a value; keep some: "
            f"input.columns, or raise it: {Set('limits.columns', count)}"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """How messages call the records of some lines: by the number of their line in its file."""

    name: str
    before: int
    index: I64

    def __call__(self, record: int) -> str:
        return f"{self.name} line {self.before + int(self.index[record]) + 1}"


def look_at_lines(
    lines: Lines, records: int, place: Callable[[int], str], record_bytes: int, nulls: Words = MappingProxyType({})
) -> PieceEvidence:
    """Return what the first records of some lines show; `place` says how messages call one, given its number.

    `nulls` are the words that are null, by column.
    """
    work = _Look(lines, lines.records, place, record_bytes, nulls)
    return all_evidence(both_lanes(lines, records, work.fast, work.slow))


@dataclass(slots=True, eq=False)
class _Look:
    """How to look at some lines; `known` are the types of the keys that pyarrow found so far.

    Where a text may have many keys, pyarrow is given the known ones, which bounds the memory that it takes. Lines are
    `sparse` where each has few of the keys: Python then takes less time than pyarrow, one line after the other.
    """

    lines: Lines
    index: I64
    place: Callable[[int], str]
    record_bytes: int
    nulls: Words
    known: dict[str, pa.DataType] = field(default_factory=dict)
    sparse: bool = False

    def fast(self, text: bytes, part: I64) -> PieceEvidence | None:
        if len(text) > self.record_bytes:
            return None
        table = self._parsed(text, len(part))
        if table is None:
            return None
        columns = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            kind = as_found(column.type)
            words: tuple[str, ...] | None = ()
            if name in self.nulls and pa.types.is_string(column.type):
                cells = column.combine_chunks().view(pa.binary())
                column = pa.chunked_array([without_words(cells, self.nulls[name]).view(pa.string())])
            values, place = len(column) - column.null_count, ""
            if values:
                first = int(np.argmax(true_mask(column.is_valid().combine_chunks()))) if column.null_count else 0
                place = self.place(int(part[first]))
                words = _words_of(column, first) if pa.types.is_string(column.type) else ()
            columns[name] = Evidence(kind if values else pa.null(), values, place, words=words)
        return PieceEvidence(len(part), columns=columns)

    def _parsed(self, text: bytes, rows: int) -> pa.Table | None:
        small = may_be_inferred(text)
        if not small and not self.known and not self.sparse and (seed := seed_of(text)) is not None:
            self.sparse = is_sparse(seed, count_of(b"{", seed) * len(keys_in(seed)))
            if not self.sparse:
                self._learn(run_arrow(seed, None, None, "infer"))
        if self.sparse:
            return None
        table = None
        if self.known and count_of(b"{", text) * count_keys(self.known.values()) <= CELLS:
            schema = pa.schema(list(self.known.items()))
            table = run_arrow(text, rows, schema, "error")
        if table is None and small:
            table = run_arrow(text, rows, None, "infer")
            self._learn(table)
        return table

    def _learn(self, table: pa.Table | None) -> None:
        for column in () if table is None else table.schema:
            kind = as_found(column.type)
            try:
                self.known[column.name] = shared_type(self.known.get(column.name, pa.null()), kind)
            except MixedTypes:  # which the evidence will say
                continue

    def slow(self, part: I64) -> PieceEvidence:
        columns: dict[str, list[Evidence]] = {}
        scalars: dict[tuple[str, type | str], int] = {}
        counts = Counter[tuple[str, type | str]]()  # of the values of a key that are of one kind
        rejects, first, any_nested = 0, "", False
        for record in part.tolist():
            try:
                members = self._members(record)
            except LineError as error:
                rejects, first = rejects + 1, first or f"{self.place(record)}: {error.text}"
                continue
            known = len(counts)
            # a word that mostly means null is a kind of its own
            kinds = [one if type(one) is str and means_null(one) else type(one) for one in members.values()]
            counts.update(zip(members, kinds, strict=True))
            new = zip(members.items(), kinds, strict=True) if len(counts) > known or any_nested else ()
            for (name, value), kind in new:
                is_nested = isinstance(value, (list, dict))
                if counts[name, kind] > 1 and not is_nested:
                    continue
                any_nested = any_nested or is_nested
                seen = columns.setdefault(name, [])
                if not is_nested:
                    scalars[name, kind] = len(seen)
                seen.append(self._evidence(value, record))
        for (name, kind), at in scalars.items():
            if kind is not NoneType:
                columns[name][at] = replace(columns[name][at], values=counts[name, kind])
        return PieceEvidence(len(part), rejects, first, {name: Evidence.of_all(seen) for name, seen in columns.items()})

    def _members(self, record: int) -> dict[str, Any]:
        lines, index = self.lines, self.index[record]
        if (large := lines.too_large(int(index), self.record_bytes)) is not None:
            raise LineError(*large)
        return without_nulls(values_of_line(lines.text[lines.starts[index] : lines.ends[index]]), self.nulls)

    def _evidence(self, value: Any, record: int) -> Evidence:
        place = self.place(record) if value is not None else ""
        words = () if type(value) is not str else (value,) if means_null(value) else None
        try:
            return Evidence(type_of(value), int(value is not None), place, words=words)
        except MixedTypes as error:
            one, other = error.types
            return Evidence(pa.null(), 1, place, ((one, place), (other, place)), error.within)


def _words_of(texts: pa.ChunkedArray, first: int) -> tuple[str, ...] | None:
    """Return the different texts of which one is `first`, if all are words that mostly mean null."""
    if not means_null(texts[first].as_py()):
        return None
    found = texts.unique().drop_null().to_pylist()
    return tuple(found) if len(found) <= _MOST_WORDS and all(map(means_null, found)) else None


def explain(evidence: Evidence, rows: int, *, whole: bool) -> str:
    """Return the reason for a column's type in words: `rows` were read, all there are if `whole`."""
    seen = f"{rows:,} row{'' if rows == 1 else 's'}"
    seen = seen if whole else f"the first {seen}"
    nulls = rows - evidence.values
    also = f", {nulls:,} null or absent" if nulls else ""
    if evidence.type == pa.null():
        text = f"no value in {seen}; declare the type if there will be one"
    elif evidence.odd:
        odd = next(one for one in evidence.kinds if not same_kind(one.type, evidence.type))
        others = f"{evidence.odd:,} (the first in {odd.place}: {noun(odd.type)})"
        text = f"every value is {noun(evidence.type)} in {seen} but for {others}, whose rows are rejects{also}"
    else:
        text = f"every value is {noun(evidence.type)} in {seen}{also}"
    return text if whole else f"{text}; nullable, since not all rows were read"


def told_of_members(found: Mapping[str, Evidence], names: Collection[str]) -> tuple[str, ...]:
    """Return what is said of objects with members of several types."""
    shown = {name: [f'"{printable(".".join(path))}"' for path in found[name].texts] for name in names}
    return tuple(
        f'column "{printable(name)}": values of {first_names(members, _MOST_WORDS)} are of several types, and become '
        "text; the other members keep their types"
        for name, members in shown.items()
    )


def refuse_mixed(name: str, evidence: Evidence, most_odd: float, nulls: Sequence[str]) -> None:
    """Raise `SchemaError` for a column whose values have types that nothing holds together, but for few odd values.

    Where all texts are words that mostly mean null, few are named too; `nulls` are the words that are null already.
    """
    mixed, words = evidence.mixed, next((one.words for one in evidence.kinds if one.words), None)
    if evidence.odd > most_odd * evidence.values or (words and most_odd < 1):
        first, second, *_ = evidence.kinds
        mixed = (first.type, first.place), (second.type, second.place)
    if mixed is None:
        return
    (one, here), (other, there) = mixed
    of = f' of "{printable(".".join((name, *evidence.within)))}"' if evidence.within else ""
    what = f"{here}: a value{of} is {noun(one)}, and in {there} {noun(other)}"
    if here == there:
        what = f"{here}: an array{of} holds {noun(one)} and {noun(other)}"
    empty = any(is_list(kind) and pa.types.is_null(kind.value_type) for kind in (one, other))
    fix = "write null where there is no value" if empty else "fix one"
    if words:
        said = f"{' and '.join(map(quoted, words))} {'mean' if len(words) > 1 else 'means'} null"
        fix = f"if {said}: {set_column(name, 'null_values', [*nulls, *words])}"
    raise SchemaError(
        f'column "{printable(name)}": {what}; {fix}, or keep the text of all values: '
        f"{set_column(name, 'type', 'string')}"
    )
