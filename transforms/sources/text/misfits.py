"""Refuse text that is appended to a dataset none of whose types it fits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace

from ...format.flow.rows import Rows
from ...format.schema.difference import same_feature
from ...format.schema.schema import Schema
from ..contract.planning import first_pieces
from ..contract.source import Frozen, Survey, Task
from ..registry.conform import DatasetSchema, refuse_others
from .missing_keys import MOST_VALUES, missing_keys


def refuse_misfits(
    read: Callable[[Task, Frozen], Iterator[Rows]], survey: Survey, cast: Schema, dataset: DatasetSchema
) -> None:
    """Raise `SchemaError` for a column of which no cell, in a sample, can be cast to the dataset's type.

    Single cells that cannot are rejects; but if none can, and no reject is allowed, the column has become another one,
    or keys are missing that the dataset was made with. The text shows both schemas, and the keys.
    """
    if not dataset.no_rejects:
        return
    good, bad = Counter[str](), defaultdict[str, list[str]](list)
    for piece in first_pieces(survey):
        for rows in read(Task(0, (piece,)), replace(survey.frozen, schema=dataset.schema)):
            for column, array in zip(rows.batch.schema.names, rows.batch.columns, strict=True):
                good[column] += len(array) - array.null_count
            for problem in rows.problems:
                if problem.error.column is not None:
                    bad[problem.error.column].append(problem.error.value)
            if rows.batch.num_rows:
                break
    inferred = {feature.name: feature for feature in survey.frozen.schema}
    wanted = {feature.name: feature for feature in cast}
    misfits = {
        name: values[:MOST_VALUES]
        for name, values in bad.items()
        if name in wanted and not good[name] and not same_feature(inferred[name], wanted[name])
    }
    found = Schema(tuple(inferred[feature.name] if feature.name in misfits else feature for feature in cast))
    options = missing_keys(misfits, wanted)
    fix = f"give the keys that the dataset was made with; these read the values: {' '.join(options)}; or "
    refuse_others(dataset, found, f"{fix if options else ''}leave its rows out, where others fit: --max-rejects N")
