"""Commands that messages about CSV files propose; each works as it is typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ...format.wording.nearest import nearest_name
from ...format.wording.options import set_list
from ...format.wording.printable import printable
from ..contract.call import Call

_MOST_NAMES: Final = 20
"""A list of more names is not a command that anybody reads."""

_MOST_FILES: Final = 8


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
        return f"{text}; to name all {len(known)} in their order: --set 'input.names=[a, b, ...]'"
    which = "it" if len(known) == 1 else "all" if len(own) == len(known) else "all in their order"
    return f"{text}; to name {which}: {set_list('input.names', names)}"


@dataclass(frozen=True, slots=True)
class PandasCall:
    """The call from Python that converts CSV files as pandas reads them: for what is not read here yet."""

    files: tuple[str, ...]
    delimiter: str
    encoding: str
    names: tuple[str, ...] | None
    call: Call = field(default_factory=Call)

    def with_nulls(self, nulls: Sequence[str]) -> str:
        """Return the call in which these words are null too, also in quotes.

        >>> print(PandasCall(("a.csv",), ";", "utf-8", None).with_nulls(["-"]))
        convert(data=pandas.read_csv('a.csv', sep=';', na_values=['-']), output='out')
        """
        options = {"sep": self.delimiter, "encoding": self.encoding}
        usual = {"sep": ",", "encoding": "utf-8"}
        given: dict[str, object] = {key: value for key, value in options.items() if value != usual[key]}
        given["na_values"] = list(nulls)
        if self.names is not None:
            given |= {"header": None, "names": list(self.names)}
        text = "".join(f", {key}={value!r}" for key, value in given.items())
        if len(self.files) == 1:
            return self.call.of_data(f"pandas.read_csv({self.files[0]!r}{text})")
        files = list(self.files) if len(self.files) <= _MOST_FILES else "files"
        return self.call.of_data(f"pandas.concat(pandas.read_csv(file{text}) for file in {files})")
