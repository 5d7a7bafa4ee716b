"""Commands that messages about CSV files propose; each works as it is typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ...format.wording.hints import Set
from ...format.wording.nearest import nearest_name
from ...format.wording.printable import printable, quoted
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
        return f"{text}; to name all {len(known)} in their order: {Set('input.names', '[a, b, ...]')}"
    which = "it" if len(known) == 1 else "all" if len(own) == len(known) else "all in their order"
    return f"{text}; to name {which}: {Set('input.names', names)}"


def wrong_signs(
    delimiter: str,
    quote: str | None,
    escape: str | None,
    comment: str | None,
    null_values: Sequence[str],
    trim: bool,  # noqa: FBT001 - all are keys of the config
) -> str | None:
    """Return why records cannot be read by these signs, None if they can."""
    signs = {"delimiter": delimiter, "quote": quote, "escape": escape, "comment": comment}
    seen: dict[str, str] = {}
    for key, sign in signs.items():
        if sign is not None and sign in seen:
            return f"{seen[sign]} and {key} are both {quoted(sign)}; they must differ"
        if sign is not None:
            seen[sign] = key
        if trim and key != "delimiter" and sign is not None and sign in " \t":
            return f"{key} is a blank, and trim takes blanks away; leave one of them out"
    if escape is not None and comment is not None:
        return "escape and comment do not go together: an escape at the end of a comment may or may not belong to it"
    for word in null_values:
        if escape is not None and escape in word:
            return (
                f"null_values: {quoted(word)} holds the escape {quoted(escape)}, which is taken out of cells before; "
                f"name the word without it ({quoted(word.replace(escape, ''))}), or leave the escape out"
            )
    return None


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
