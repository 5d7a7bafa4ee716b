"""A user's own function over record batches, as a step of the recipe.

The function travels to workers by value (cloudpickle), also from a notebook. A fingerprint has its text and the values
that it uses (`identity.py`), so that another function is another conversion.
"""

from __future__ import annotations

import functools
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa

from ..errors import RunError, SchemaError, UsageError
from ..format.wording.printable import printable
from .identity import identity_of
from .planned import is_untyped
from .step import Column, Step, Stepped

MapFunction: TypeAlias = "Callable[[pa.RecordBatch], pa.RecordBatch | pa.Table | Mapping[str, Any] | tuple[Any, Any]]"
Mapped: TypeAlias = "MapFunction | Step | Sequence[MapFunction | Step]"

_PLANNED = "by which its columns are planned"
_CHANGED = "give back as many rows as came, and to drop some, a tuple of the batch and a boolean for each row"


@dataclass(frozen=True, slots=True)
class MapBatches(Step):
    """Call a function with every batch: it returns a batch, or a dict of arrays, with as many rows.

    To drop rows, it returns a tuple: the batch, and a boolean for each row. The columns are those that it returns for a
    batch without rows when the conversion is planned. `text` identifies it.
    """

    name: str
    text: str
    pickled: bytes = field(repr=False)

    @classmethod
    def of(cls, function: MapFunction) -> MapBatches:
        """Raise `UsageError` where the function cannot be sent to workers."""
        name = printable(getattr(function, "__qualname__", type(function).__name__))
        pickled = _pickled(function, name)
        return cls(name, identity_of(function), pickled)

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        """Raise `SchemaError` where the function fails for no rows, or gives something else than a batch."""
        empty = pa.RecordBatch.from_pylist([], pa.schema([column.field for column in columns]))
        before = {column.name: column for column in columns}
        try:
            batch, _ = _taken(self._function(empty))
        except Exception as error:
            raise SchemaError(
                f"map: {self.name} failed for a batch without rows, {_PLANNED}: {_said(error)}"
            ) from error
        if not batch.num_columns:
            raise SchemaError(f"map: {self.name} gave no columns for a batch without rows, {_PLANNED}")
        planned = []
        for one in batch.schema:
            own = before.get(one.name)
            if is_untyped(one.type) and (own is None or own.field.type != one.type):
                raise SchemaError(
                    f'map: {self.name} gave column "{printable(one.name)}" without a type for a batch without rows, '
                    f"{_PLANNED}; give it one, as in pa.array(values, pa.int64())"
                )
            same = own is not None and own.field.type == one.type
            planned.append(
                Column(
                    pa.field(one.name, one.type, own.field.nullable if own is not None and same else True),
                    reason=f"made by {self.name}",
                    form=(own.origin or own.form) if own is not None and same else None,
                    labels=own.labels if own is not None and same else None,
                )
            )
        return planned

    def apply(self, batch: pa.RecordBatch, file: str) -> Stepped:
        """Raise `RunError` where the function fails, or gives other columns, or another number of rows."""
        where = f" (rows of {file})" if file else ""
        try:
            made, keep = _taken(self._function(batch))
        except Exception as error:
            raise RunError(f"map: {self.name} failed{where}: {_said(error)}") from error
        if made.num_rows != batch.num_rows:
            raise RunError(f"map: {self.name} gave {made.num_rows} rows for {batch.num_rows}{where}; {_CHANGED}")
        if keep is not None and len(keep) != batch.num_rows:
            raise RunError(f"map: {self.name} gave {len(keep)} booleans for {batch.num_rows} rows{where}; {_CHANGED}")
        return Stepped(made, keep)

    @property
    def _function(self) -> MapFunction:
        function: MapFunction = _loaded(self.pickled)
        return function


@dataclass(frozen=True, slots=True)
class UserStep(Step):
    """A step that a user wrote, of which `plan` and `apply` are called; it travels to workers by value.

    `shown` and `text` identify it.
    """

    shown: str
    text: str
    pickled: bytes = field(repr=False)

    @classmethod
    def of(cls, step: Step) -> UserStep:
        """Raise `UsageError` where the step cannot be sent to workers."""
        shown = printable(repr(step))
        pickled = _pickled(step, shown)
        return cls(shown, identity_of(step), pickled)

    def plan(self, columns: Sequence[Column]) -> Sequence[Column]:
        step: Step = _loaded(self.pickled)
        return step.plan(columns)

    def apply(self, batch: pa.RecordBatch, file: str) -> pa.RecordBatch | Stepped:
        step: Step = _loaded(self.pickled)
        return step.apply(batch, file)


def steps_of(given: object) -> tuple[Step, ...]:
    """Take functions over batches, steps, or a list of them; for anything else raise `UsageError`."""
    return tuple(map(as_step, given if isinstance(given, list | tuple) else [] if given is None else [given]))


def as_step(given: Any) -> MapBatches | UserStep:
    """Return the step of a user's function, or of an object with `plan` and `apply`, whatever its class is."""
    is_step = callable(getattr(given, "plan", None)) and callable(getattr(given, "apply", None))
    if is_step and not isinstance(given, type):
        return UserStep.of(given)
    if callable(given):
        return MapBatches.of(given)
    raise UsageError(f"map: {printable(type(given).__name__)} is neither a function over batches nor a step")


def functions_in(steps: Sequence[Step]) -> list[dict[str, str]]:
    """Return the name and the digest of each of the user's own steps, as a manifest states them."""
    return [
        {"name": one.name if isinstance(one, MapBatches) else one.shown, "digest": one.text}
        for one in steps
        if isinstance(one, MapBatches | UserStep)
    ]


@functools.lru_cache(maxsize=16)
def _loaded(pickled: bytes) -> Any:
    import cloudpickle

    return cloudpickle.loads(pickled)


def _pickled(value: object, name: str) -> bytes:
    import cloudpickle

    try:
        pickled: bytes = cloudpickle.dumps(value)
    except Exception as error:  # whatever the user's own objects raise
        raise UsageError(f"map: {name} cannot be sent to workers: {printable(error)}") from error
    return pickled


def _said(error: Exception) -> str:
    text = f"{type(error).__name__}: {printable(error)}"
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is our call
    own = [frame for frame in frames if frame.filename != __file__][:1]
    return f"{text} (line {own[0].lineno} of {printable(os.path.basename(own[0].filename))})" if own else text


def _taken(made: Any) -> tuple[pa.RecordBatch, pa.BooleanArray | None]:
    """Return a function's result as a batch, and which rows stay."""
    keep = None
    if isinstance(made, tuple):
        if len(made) != 2:
            raise TypeError(f"it returned a tuple of {len(made)}, not the batch and a boolean for each row")
        made, keep = made
        keep = pa.array(keep) if not isinstance(keep, pa.Array) else keep
        keep = keep.combine_chunks() if isinstance(keep, pa.ChunkedArray) else keep
        keep = keep.cast(pa.bool_())
    if isinstance(made, Mapping):
        made = pa.table(dict(made))
    if isinstance(made, pa.Table):
        batches = made.combine_chunks().to_batches()
        made = batches[0] if batches else pa.RecordBatch.from_pylist([], made.schema)
    if not isinstance(made, pa.RecordBatch):
        if type(made).__name__ == "DataFrame":
            raise TypeError("it returned a DataFrame; give back pyarrow.RecordBatch.from_pandas(frame)")
        raise TypeError(f"it returned a {type(made).__name__}, not a pyarrow.RecordBatch or a dict of arrays")
    return made, keep
