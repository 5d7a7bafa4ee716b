"""Settings of the whole conversion that a source needs beside its own options.

Workers load this module, and no options: a rule that both know is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...format.wording.printable import quoted
from ...inputs.contract.selection import Call, FileSplits
from ...pictures.options import Preprocess

if TYPE_CHECKING:
    from ...format.schema.schema import ColumnRule


@dataclass(frozen=True)
class Limits:
    """The largest values, in bytes; `columns` and `pixels` are counts."""

    field_bytes: int = 64 << 20
    record_bytes: int = 1 << 30
    columns: int = 100_000
    pixels: int = 50_000_000
    image_bytes: int = 256 << 20
    batch_bytes: int = 256 << 20


@dataclass(frozen=True)
class Settings:
    """The settings that a source may follow.

    base            the folder that relative paths start from
    rules           declared types, by column; `infer` is how the others are found
    paths           the columns that hold paths of files, as text or lists of text
    seed            rows are shuffled by it; None: they are in the order of the source
    split           where records go; where none was named and the source knows none, `default_split`
    looked_at       the features of existing records that a rule of splits looks at
    splits_anew     the rule is for all existing records, whatever splits they are in; without `default_split` it is for
                    those of no split
    detected        what was detected in the files before, for the user
    call            what the user typed
    pictures        what is done to pictures after they are read
    splits          how files get theirs
    """

    base: str
    rules: Mapping[str, ColumnRule] = field(default_factory=dict)
    paths: frozenset[str] = frozenset()
    infer: str = "auto"
    seed: int | None = None
    limits: Limits = Limits()
    split: str | None = None
    default_split: str | None = "train"
    looked_at: tuple[str, ...] = ()
    splits_anew: bool = False
    detected: tuple[str, ...] = field(default=(), compare=False, repr=False)
    call: Call = field(default_factory=Call, compare=False, repr=False)
    pictures: Preprocess = field(default_factory=Preprocess)
    splits: FileSplits = field(default_factory=FileSplits)


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
