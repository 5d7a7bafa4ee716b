"""Choose the columns of JSON lines and their types: declared, or those of the values that were looked at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ...errors import SchemaError
from ...format.nested.flatten import refuse_unsupported, without_json
from ...format.nested.keys import is_flat
from ...format.nested.type_documents import type_of_document
from ...format.schema.arrow_types import feature_of
from ...format.schema.column_types import column_type
from ...format.schema.schema import Choice, ColumnRule, Feature, Schema
from ...format.wording.nearest import NoColumnError
from ..contract.dataset_schema import DatasetSchema
from ..contract.selection import Selection, exclude_columns
from ..contract.source import Frozen
from ..text.declared import as_cast, declared_type, text_type
from .build import Column
from .evidence import Evidence, explain, refuse_mixed
from .parse import LineParser
from .types import fits, is_list, wire_type


@dataclass(frozen=True, slots=True)
class JsonFrozen(Frozen):
    """What all tasks share: `keys` are all that were found, in order, with their types; `kept` how many are read.

    With `ignores` no line is asked for other keys: all lines were looked at, or the user named the columns. `empty` are
    the keys of which no value was found, `nested` the columns that no one feature holds.
    """

    keys: tuple[pa.Field, ...] = field(default=(), kw_only=True)
    kept: int = field(default=0, kw_only=True)
    ignores: bool = field(default=True, kw_only=True)
    empty: tuple[str, ...] = field(default=(), kw_only=True)
    nested: tuple[pa.Field, ...] = field(default=(), kw_only=True)


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
) -> Chosen:
    """Return the feature of each column that is kept, and the reason of each.

    `name` is that of the first file; `known` are the nested columns of a dataset that is appended to. Raises
    `SchemaError` where values of a column have no common type, no feature holds them, or a declared type does not fit.
    """
    columns = []
    for column in kept:
        evidence, rule = found[column], rules.get(column, ColumnRule())
        if rule.type is None and infer != "none":
            refuse_mixed(column, evidence)
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
    wanted |= {name: nested[name] for name in selection.of_some(list(nested))}
    keys = frozen.keys if isinstance(frozen, JsonFrozen) else ()
    order = dict.fromkeys([*(key.name for key in keys if key.name in wanted), *wanted])
    columns, targets = [], []
    for name in order:
        target = wanted[name]
        declared = rules.get(name, ColumnRule()).type is not None
        as_json = pa.types.is_string(target) and (declared or infer == "none")
        columns.append(Column(name, wire_type(target), declared, as_json))
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
