"""What a user's own function does, as one digest: its text, and every value that it uses from outside of its text.

    LIMIT = 18                               the value of a global name
    def above(column): ...                   the text of another function of the user, and what that uses
    def adults(batch, strict=True): ...      defaults; what a closure holds; the state of an object that is called

Of code of installed packages, of this one and of Python itself, the digest has the name. A function that uses nothing
is its text.
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
from collections.abc import Iterable, Iterator
from pickle import PicklingError
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final

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
