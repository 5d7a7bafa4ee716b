"""The types of columns: all that is known of each, in one table. A new type is one entry of `TYPES`, and its tests.

Other modules ask it in place of comparing names, but where one type alone has a rule: the encoder, the decoder,
manifests, configs, CSV, appends, the files for TFDS and TFX, `arrays()`, and the tables of the docs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from ...errors import SchemaError
from .schema import Feature, Kind

UNITS: Final = ("s", "ms", "us", "ns")
DEFAULT_UNIT: Final = "us"

Test = Callable[[pa.DataType], bool]
Mask = npt.NDArray[np.bool_]
MakeArrow = Callable[[str, str | None], pa.DataType]
"""Returns an Arrow type for a unit and a time zone; most types have neither, and look at none."""


@dataclass(frozen=True, slots=True)
class Form:
    """One form in which records keep the values of a type.

    kind    the list that holds them; a type has one form of a kind, which a config chooses by `as`
    takes   whether values of an Arrow type may be written in this form, exact or as rejects
    numpy   the dtype of `arrays()`, None if they do not show the values; `{unit}` is the unit
    note    what is said of it where types are explained; `{unit}` is the unit
    arrow   what the values read back as, where that is not the type's own
    dtype   that of the raw bytes of one value: the manifest's, and TFDS's
    write   makes Arrow values of which `columns/` makes the kind: integers, floats, times, text or bytes
    read    makes values of an Arrow type from int64, float32 or binary ones, and says which do not fit it; None where
            `decode_examples` makes them: booleans, integers, floats, times, text and bytes
    """

    kind: Kind
    takes: Test
    numpy: str | None = None
    note: str = ""
    arrow: MakeArrow | None = None
    dtype: str | None = None
    write: Callable[[pa.Array], pa.Array] | None = None
    read: Callable[[pa.Array, pa.DataType], tuple[pa.Array, Mask]] | None = None


def _never(_: pa.DataType) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ColumnType:
    """All that is known of a type.

    name           `Feature.type` in manifests, and `type` in configs
    arrow          the Arrow type that the values read back as, and that CSV cells are cast to
    forms          the default first; appends keep the form of the dataset
    natural        the Arrow types whose columns have this type if no config declares another; the first entry wins
    reads          the types whose columns may be declared as this one: values are converted, exactly or as rejects
    stays          the types whose columns may be declared as this one and keep their own: records do not differ
    aliases        names that are as good in configs; `foreign` are those of other tools
    unit           whether values count a unit of time; `timezone`: whether they may have a time zone
    text           whether CSV cells can be cast to it
    utf8           whether bytes are checked to be UTF-8
    own_limit      whether something else than `limits.field_bytes` bounds a value: its source, or the record
    tfds           the dtype in TFDS, where no null needs a wider one; None: that of the kind
    tfds_feature   the TFDS feature that shows what the values mean, where it can
    domains        what TFX says of the values, by unit; "" where there is none
    """

    name: str
    arrow: MakeArrow
    forms: tuple[Form, ...]
    natural: Test = _never
    reads: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    unit: bool = False
    timezone: bool = False
    text: bool = True
    utf8: bool = False
    own_limit: bool = False
    tfds: str | None = None
    tfds_feature: str | None = None
    domains: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.aliases, self.name, *self.foreign)

    @property
    def declarable(self) -> bool:
        """Whether a config may declare it; other types belong to one source."""
        return self.natural is not _never

    @property
    def has_forms(self) -> bool:
        """Whether datasets may keep its values in several forms: an append takes over that of its dataset."""
        return self.unit or len(self.forms) > 1

    def form(self, kind: str) -> Form | None:
        return next((form for form in self.forms if form.kind == kind), None)


def like(*samples: pa.DataType) -> Test:
    """Return a test for the types of these samples, whatever their unit, time zone, width or values are.

    >>> like(pa.timestamp("s"))(pa.timestamp("ns", "UTC"))
    True
    """
    ids = frozenset(one.id for one in samples)
    return lambda arrow: arrow.id in ids


_INTEGERS: Final = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_TEXT: Final = (pa.string(), pa.large_string(), pa.string_view())
_BYTES: Final = (pa.binary(), pa.large_binary(), pa.binary(1), pa.binary_view())
_WHOLE: Final = tuple(map(pa.type_for_alias, ("bool", *_INTEGERS)))
_FLOATING: Final = (pa.float16(), pa.float32(), pa.float64())

is_string: Final = like(*_TEXT)
is_binary: Final = like(*_BYTES)
_is_whole: Final = like(*_WHOLE)
_is_floating: Final = like(*_FLOATING)
_is_number: Final = like(*_FLOATING, *_WHOLE)
_is_moment: Final = like(pa.timestamp("us"), pa.date32(), pa.date64())
_is_bytes: Final = like(*_TEXT, *_BYTES)


def _as_float64(values: pa.Array) -> pa.Array:
    return values if types.is_float64(values.type) else values.cast(pa.float64())  # of a file that has narrower ones


def _with_digits(values: pa.Array) -> pa.Array:
    return values.cast(pa.string()) if types.is_integer(values.type) else values


def _always(arrow: pa.DataType) -> MakeArrow:
    return lambda _unit, _timezone: arrow


def _integer(name: str) -> ColumnType:
    """Return a type of integers: it reads booleans, and those integers of which it holds every value."""
    ranges = {one: (int(np.iinfo(one).min), int(np.iinfo(one).max)) for one in _INTEGERS}
    low, high = ranges.pop(name)
    held = [one for one, (least, most) in ranges.items() if low <= least and most <= high]
    high = min(high, (1 << 63) - 1)  # no Example holds a larger uint64
    domains = {"": f"int_domain {{ min: {low} max: {high} }}"} if name != "int64" else {}
    foreign = ("int",) if name == "int64" else ()
    arrow, forms = pa.type_for_alias(name), (Form("int64", _is_whole, name),)
    return ColumnType(
        name, _always(arrow), forms, arrow.equals, ("bool", *held), foreign=foreign, tfds=name, domains=domains
    )


_FLOAT64: Final = (
    Form("float", _is_number, "float32", ", narrowed to float32 (as: bytes keeps it exact)", _always(pa.float32())),
    Form("bytes", _is_floating, "float64", ", kept exact as bytes of <f8", dtype="<f8", write=_as_float64),
    Form("int64", _is_floating, "int64", ", whole numbers, kept exact", _always(pa.int64())),
)
_CLOCKS: Final = {
    unit: f"time_domain {{ integer_format: UNIX_{prefix}SECONDS }}"
    for unit, prefix in zip(UNITS, ("", "MILLI", "MICRO", "NANO"), strict=True)
}

# fmt: off
_TABLE: Final = (
    ColumnType("bool", _always(pa.bool_()), (Form("int64", _is_whole, "bool"),), types.is_boolean,
               tfds="bool", domains={"": "bool_domain { }"}),
    *map(_integer, _INTEGERS),
    ColumnType("float16", _always(pa.float16()), (Form("float", _is_floating, "float16"),), types.is_float16,
               tfds="float16"),
    ColumnType("float32", _always(pa.float32()), (Form("float", _is_number, "float32"),), types.is_float32,
               reads=("bool", *_INTEGERS), stays=("float16", "float64")),
    ColumnType("float64", _always(pa.float64()), _FLOAT64, types.is_float64,
               reads=("bool", *_INTEGERS), stays=("float16", "float32"), foreign=("float", "double")),
    ColumnType("string", _always(pa.string()), (Form("bytes", like(*_TEXT, *_BYTES, *_WHOLE[1:]), write=_with_digits),),
               like(*_TEXT, pa.null()),
               reads=("binary", *_INTEGERS), foreign=("text",), utf8=True, tfds_feature="Text"),
    ColumnType("binary", _always(pa.binary()), (Form("bytes", _is_bytes),), is_binary,
               reads=("string",), aliases=("bytes",)),
    ColumnType("date", _always(pa.date32()), (Form("int64", types.is_date, "datetime64[D]", " in days"),),
               types.is_date, domains={"": "time_domain { integer_format: UNIX_DAYS }"}),
    ColumnType("time", lambda unit, _: pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit),
               (Form("int64", types.is_time, "timedelta64[{unit}]", " in {unit}"),), types.is_time, unit=True),
    ColumnType("timestamp", pa.timestamp, (Form("int64", _is_moment, "datetime64[{unit}]", " in {unit}"),),
               types.is_timestamp, unit=True, timezone=True, reads=("date",), domains=_CLOCKS),
    ColumnType("duration", lambda unit, _: pa.duration(unit),
               (Form("int64", types.is_duration, "timedelta64[{unit}]", " in {unit}"),), types.is_duration,
               unit=True, text=False),
    ColumnType("label", _always(pa.int64()), (Form("int64", _is_whole, "int64"),), text=False),
    ColumnType("image", _always(pa.binary()), (Form("bytes", _is_bytes),), reads=("binary",),
               text=False, own_limit=True, tfds_feature="Image", domains={"": "image_domain { }"}),
    ColumnType("array_shape", _always(pa.int64()), (Form("int64", _is_whole),), text=False),
    ColumnType("array_data", _always(pa.binary()), (Form("bytes", _is_bytes),),
               text=False, own_limit=True, tfds_feature="Tensor"),
)
# fmt: on
TYPES: Final = {one.name: one for one in _TABLE}


def column_type(feature: Feature) -> ColumnType:
    """Raise `SchemaError` where there is no type of its name."""
    found = TYPES.get(feature.type)
    if found is None:
        raise SchemaError(f"feature {json.dumps(feature.name)}: type {json.dumps(feature.type)} is unknown")
    return found


def form_of(feature: Feature) -> Form:
    """Raise `SchemaError` where the type has no such form."""
    form = column_type(feature).form(feature.kind)
    if form is None:
        raise SchemaError(f"feature {json.dumps(feature.name)}: no {feature.type} is kept as {feature.kind}")
    return form


def natural_type(arrow: pa.DataType) -> ColumnType | None:
    return next((one for one in TYPES.values() if one.natural(arrow)), None)


def named_type(name: str | None) -> ColumnType | None:
    return next((one for one in TYPES.values() if one.declarable and name in one.names), None)


def declarable_names() -> tuple[str, ...]:
    """Return the names by which a config may declare types: those of other tools come last."""
    found = [one for one in TYPES.values() if one.declarable]
    return (
        *(name for one in found for name in (*one.aliases, one.name)),
        *(name for one in found for name in one.foreign),
    )


def is_kept_as(name: str, kind: str) -> bool:
    return name in TYPES and TYPES[name].form(kind) is not None


def types_of_kind(kind: str) -> list[str]:
    """Return the types that have a form of a kind: those of which it is not the first come last."""
    found = [one for one in TYPES.values() if one.form(kind) is not None]
    return [one.name for one in sorted(found, key=lambda one: one.forms[0].kind != kind)]
