"""The features of the columns that several typed files share, and the reason of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from ...errors import SchemaError
from ...format.nested.keys import is_flat
from ...format.nested.unsupported import refuse_unsupported, without_json
from ...format.schema.arrow_checks import PERIOD
from ...format.schema.arrow_types import feature_of
from ...format.schema.schema import Choice, ColumnRule, Feature, Schema
from ...format.wording.hints import Python
from ...format.wording.nearest import NoColumnError
from ...format.wording.printable import printable
from ..contract.lacking import apart_warning
from ..contract.selection import Selection, exclude_columns
from ..contract.source import Frozen, Piece, Survey, UnitedFrozen
from .shared_schema import FileColumns, shared_columns

MANY_COLUMNS: Final = 1000
"""From here on a user is warned: 10,000 columns are read, but every one of them costs time for each batch."""


def survey_columns(
    files: Sequence[FileColumns], pieces: Sequence[Piece], rules: Mapping[str, ColumnRule], selection: Selection
) -> Survey:
    """Return the survey of some files with these pieces: what the chosen columns become, under declared types."""
    first = files[0]
    known = dict.fromkeys(name for file in files for name in file.columns)
    where = f"{first.name}: " if len(files) == 1 else ""
    if selection.union or len(files) > 1:
        selection.pick(list(known), where=where)
    selection.check_excluded(list(known), where=where)
    for name in rules:
        if name not in known and name not in selection.elsewhere:
            raise NoColumnError("schema.columns", name, list(known))
    found = shared_columns(files, union=selection.union)
    shared = found.schema
    refuse_unsupported(without_json(shared, rules), first.name, exclude_columns)
    features, choices = [], []
    for column, reason, file in zip(shared, found.reasons, found.files, strict=True):
        if not is_flat(column.type):
            continue
        feature, choice = _feature(column, rules.get(column.name), reason, file)
        features.append(feature)
        choices.append(choice)
    schema = Schema(tuple(sorted(features, key=lambda feature: feature.name)))
    warnings = apart_warning(found.apart)
    if len(shared) > MANY_COLUMNS:
        many = f"{first.name}: {len(shared)} columns are read for every row; input.columns keeps only some"
        warnings = (many, *warnings)
    periods = [column.name for column in shared if PERIOD in (column.metadata or {})]
    warnings += tuple(_period_warning(name) for name in periods)
    frozen = UnitedFrozen(schema, fields=shared) if selection.union else Frozen(schema)
    return Survey(frozen, tuple(choices), pieces, warnings, fields=tuple(shared))


def _period_warning(name: str) -> str:
    label = f"frame[{printable(repr(name))}]"
    return (
        f'column "{printable(name)}" holds Periods of pandas: written are their plain numbers, such as months since '
        f"1970; to have times, write the file again after {Python(f'{label} = {label}.dt.to_timestamp()')}"
    )


def _feature(column: pa.Field, rule: ColumnRule | None, reason: str, file: str) -> tuple[Feature, Choice]:
    try:
        feature, why = feature_of(column, rule)
    except SchemaError as error:
        raise SchemaError(f"{file}: {error}") from error
    return feature, Choice(column.name, feature.type, f"{why}; {reason}")
