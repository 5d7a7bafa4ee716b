"""What messages about CSV files propose: names of columns, and the call from Python that reads files as pandas does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...format.schema.schema import Feature
from ...format.wording.hints import Set
from ...format.wording.printable import nearest_name, printable
from ...inputs.contract.selection import Call

_MOST_NAMES: Final = 20
"""A list of more names is not a command that anybody reads."""

_MOST_FILES: Final = 8
_SPLIT: Final = "split"
"""The column of a frame with the split of each row."""

_FEWEST_NUMBERED: Final = 32
"""From here on columns that are named by numbers, such as the pixels of a picture, are said to be many features."""


def no_such_column(name: str, known: Sequence[str], wanted: Sequence[str], *, named: bool) -> str:
    """Return what ends a message about a column that is not there; of files without names, how to name the columns.

    `wanted` are all columns that were asked for, `known` those of the file; `named` says that these are names of its
    header, or of the user.
    """
    if named:
        return nearest_name(name, known)
    own = [column for column in wanted if column not in known]
    names = [*own, *known[len(own) :]]
    there = f"{known[0]} to {known[-1]}" if len(known) > 1 else known[0]
    text = f"without a header {'they are' if len(known) > 1 else 'it is'} {printable(there)}"
    if len(names) > len(known) or len(names) > _MOST_NAMES:
        return f"{text}; to name all {len(known)} in their order: {Set('input.names', '[a, b, ...]')}"
    which = "it" if len(known) == 1 else "all" if len(own) == len(known) else "all in their order"
    return f"{text}; to name {which}: {Set('input.names', names)}"


@dataclass(frozen=True, slots=True)
class PandasCall:
    """The call from Python that converts CSV files as pandas reads them: for what is not read here yet.

    `given` returns the options of pandas that mean what else was given. `splits` are those of the files, if they have
    some: rows keep them in a column.
    """

    files: tuple[str, ...]
    delimiter: str
    encoding: str
    names: tuple[str, ...] | None
    call: Call = field(default_factory=Call)
    given: Callable[[], Mapping[str, object]] = dict
    splits: tuple[str, ...] = ()

    def with_list(self, name: str, prefix: str) -> str:
        some = f"(some := all.filter(regex={f'^{re.escape(prefix)}[0-9]+$'!r}))"
        return self._of_data(
            f"{self._frame({})}.pipe(lambda all: all.drop(columns={some}.columns)"
            f".assign(**{{{name!r}: some.values.tolist()}}))"
        )

    def _of_data(self, data: str) -> str:
        return str(self.call.of_data(data, **({"split__column": _SPLIT} if self.splits else {})))

    def _frame(self, more: dict[str, object]) -> str:
        """Return the expression that reads the files, with more options."""
        options = {"sep": self.delimiter, "encoding": self.encoding}
        usual = {"sep": ",", "encoding": "utf-8"}
        given: dict[str, object] = {key: value for key, value in options.items() if value != usual[key]}
        given |= more
        if self.names is not None:
            given |= {"header": None, "names": list(self.names)}
        given |= self.given()
        if self.splits:  # a column that one file lacks would make the numbers of the others floats
            given["dtype_backend"] = "numpy_nullable"
        text = "".join(f", {key}={value!r}" for key, value in given.items())
        if len(self.files) == 1:
            one = f".assign({_SPLIT}={self.splits[0]!r})" if self.splits else ""
            return f"pandas.read_csv({self.files[0]!r}{text}){one}"
        few = len(self.files) <= _MOST_FILES
        if self.splits:
            pairs = list(zip(self.files, self.splits, strict=True)) if few else "files"
            return f"pandas.concat(pandas.read_csv(file{text}).assign({_SPLIT}=split) for file, split in {pairs})"
        files = list(self.files) if few else "files"
        return f"pandas.concat(pandas.read_csv(file{text}) for file in {files})"


def numbered_notes(features: Sequence[Feature], names: Sequence[str], call: PandasCall) -> tuple[str, ...]:
    """Return the note that columns of numbers, such as `pixel0` to `pixel783`, become a feature each.

    There is none for columns that only the number tells apart as nobody named them: the last may be a class.
    """
    numbers = {feature.name for feature in features if feature.kind != "bytes"}
    found: dict[str, list[int]] = {}
    for name in names:
        parts = re.fullmatch(r"(.*\D)(0|[1-9][0-9]*)", name)
        if parts is not None and name in numbers:
            found.setdefault(parts[1], []).append(int(parts[2]))
    return tuple(
        f'the {len(many)} columns "{printable(prefix)}{many[0]}" to "{printable(prefix)}{many[-1]}" become a feature '
        f"each; to have them as one list: {call.with_list(prefix.rstrip('_-. '), prefix)}"
        for prefix, many in found.items()
        if len(many) >= _FEWEST_NUMBERED
        and many == list(range(many[0], many[0] + len(many)))
        and prefix.rstrip("_-. ") not in ("", *names)
        and (prefix != "column_" or call.names is None)
    )
