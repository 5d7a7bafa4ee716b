"""A step that calls a user's own function on record batches.

The function travels to workers by value (cloudpickle), also from a notebook. A fingerprint has its text and the values
that it uses (`identity_of`), so that another function is another conversion.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import inspect
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pickle import PicklingError
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeAlias

import pyarrow as pa

from ..errors import RunError, SchemaError, UsageError
from ..format.wording.printable import printable
from .source import is_untyped
from .step import Column, Step, Stepped

# What a user's own function does, as one digest: its text, and every value that it uses from outside of its text.
#
#     LIMIT = 18                               the value of a global name
#     def above(column): ...                   the text of another function of the user, and what that uses
#     def adults(batch, strict=True): ...      defaults; what a closure holds; the state of an object that is called
#
# Of code of installed packages, of this one and of Python itself, the digest has the name. A function that uses
# nothing is its text.


_PLAIN: Final = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
_UNPICKLABLE: Final = (TypeError, ValueError, AttributeError, RuntimeError, PicklingError)
_OWN: Final = os.path.dirname(os.path.dirname(__file__))
_INSTALLED: Final = tuple(
    {os.path.realpath(path) + os.sep for path in (_OWN, *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))}
)


def identity_of(value: object) -> str:
    return _Digests().of_root(value)


class _Digests:
    """The digests of values within one; a value within itself is the number of values around its first place."""

    def __init__(self) -> None:
        self._done: dict[int, tuple[str, object]] = {}  # with the value, so that its id is given to no other
        self._open: dict[int, int] = {}

    def of_root(self, value: object) -> str:
        if isinstance(value, FunctionType):
            self._open[id(value)] = 0
            return _digest(_text_of(value).encode(), *self._used(value))
        return self._of(value)

    def _of(self, value: object) -> str:
        if isinstance(value, _PLAIN):
            return _digest(type(value).__name__.encode(), repr(value).encode())
        if id(value) in self._open:
            return _digest(b"within", str(self._open[id(value)]).encode())
        if id(value) not in self._done:
            self._open[id(value)] = len(self._open)
            self._done[id(value)] = _digest(type(value).__qualname__.encode(), *self._parts(value)), value
            del self._open[id(value)]
        return self._done[id(value)][0]

    def _parts(self, value: object) -> Iterable[bytes]:
        if isinstance(value, FunctionType):
            return (
                [_name(value)]
                if _is_installed(value.__code__.co_filename)
                else [_text_of(value).encode(), *self._used(value)]
            )
        if isinstance(value, MethodType):
            return self._all((value.__func__, value.__self__))
        if isinstance(value, functools.partial):
            return self._all((value.func, value.args, value.keywords))
        if isinstance(value, type):
            return self._of_class(value)
        if isinstance(value, ModuleType | BuiltinFunctionType):
            return [_name(value)]
        if callable(value) and hasattr(value, "__wrapped__"):  # functools.cache
            return self._all((value.__wrapped__,))
        if isinstance(value, list | tuple):
            return self._all(value)
        if isinstance(value, set | frozenset):
            return sorted(self._all(value))
        if isinstance(value, dict):
            return self._all(item for pair in value.items() for item in pair)
        if isinstance(value, bytearray | memoryview):
            return [bytes(value)]
        return self._all(_reduced(value))

    def _of_class(self, value: type) -> list[bytes]:
        """Return the name of a class, and what its methods and attributes are where it is the user's."""
        if _is_installed(_file_of(value.__module__)):
            return [_name(value)]
        parts: list[object] = list(value.__bases__)
        for name, one in sorted(vars(value).items()):
            one = _unwrapped(one)
            if isinstance(one, FunctionType) or not (name.startswith("__") or inspect.isdatadescriptor(one)):
                parts += [name, one]
        return [_name(value), *self._all(parts)]

    def _used(self, function: FunctionType) -> list[bytes]:
        values: dict[str, object] = dict(inspect.getclosurevars(function).nonlocals)
        for name in sorted(_global_names(function.__code__)):
            if name in function.__globals__:
                values[name] = function.__globals__[name]
        if function.__defaults__:
            values["defaults"] = function.__defaults__
        if function.__kwdefaults__:
            values["keyword defaults"] = function.__kwdefaults__
        own = {name: value for name, value in values.items() if not isinstance(value, ModuleType)}
        return self._all(part for name in sorted(own) for part in (name, own[name]))

    def _all(self, values: Iterable[object]) -> list[bytes]:
        return [self._of(value).encode() for value in values]


def _digest(*parts: bytes) -> str:
    sizes = b" ".join(str(len(part)).encode() for part in parts[1:])
    return hashlib.sha256(b"\n".join(parts if not sizes else (*parts, sizes))).hexdigest()


def _text_of(function: FunctionType) -> str:
    """Return the text of a function; in a shell, where there is none, what its code does."""
    try:
        return inspect.getsource(function.__code__)
    except (OSError, TypeError):
        return repr(_in_code(function.__code__))


def _in_code(code: CodeType) -> tuple[object, ...]:
    constants = [_in_code(one) if isinstance(one, CodeType) else _sorted(one) for one in code.co_consts]
    return code.co_code, constants, code.co_names


def _sorted(constant: object) -> object:
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant


def _global_names(code: CodeType) -> set[str]:
    """Return the global names that a code reads, also in the functions within it."""
    names = {str(one.argval) for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_global_names(one) for one in code.co_consts if isinstance(one, CodeType)))


def _is_installed(file: str) -> bool:
    return os.path.realpath(file).startswith(_INSTALLED) if file else True


def _file_of(module: str) -> str:
    """Return the file of a module: of one without, as a shell, its name; of one within Python itself, nothing."""
    if module in sys.builtin_module_names:
        return ""
    return getattr(sys.modules.get(module), "__file__", None) or module


def _unwrapped(attribute: object) -> object:
    if isinstance(attribute, staticmethod | classmethod):
        return attribute.__func__
    return attribute.fget if isinstance(attribute, property) else attribute


def _name(value: Any) -> bytes:
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}".encode()


def _reduced(value: object) -> tuple[object, ...]:
    """Return what an object is made of, as pickle sees it; of one that cannot be pickled, as a lock, nothing."""
    try:
        known = copyreg.dispatch_table.get(type(value))
        made = known(value) if known is not None else value.__reduce_ex__(2)
    except _UNPICKLABLE:  # a function of a module, which workers import, may use such an object all the same
        return ()
    if isinstance(made, str):
        return (made,)
    return tuple(tuple(part) if isinstance(part, Iterator) else part for part in made)


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

    is_of_file = True

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
                    length=own.length if own is not None and same else None,
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

    is_of_file = True

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
