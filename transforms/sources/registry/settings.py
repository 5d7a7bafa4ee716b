"""What a source is built from beside its own options: settings of the whole conversion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...pictures.preprocess.options import Preprocess
from ..contract.call import Call

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

    Relative paths start from the folder `base`. `rules` are declared types, by column, `infer` is how the others are
    found. Columns of `paths` hold those of files, as text or lists of text. Rows are shuffled by `seed`, None for the
    order of the source. Records go to `split`, or where none was named to `default_split`, if the source knows none. Of
    existing records a rule of splits looks at the features
    `looked_at`; it is for all of them with `splits_anew`, whatever splits they are in, and for those of no split
    without a `default_split`. `detected` says for the user what was detected in the files before, `call` is what the
    user typed. `pictures` is what is done to pictures after they are read.
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
    detected: tuple[str, ...] = ()
    call: Call = field(default_factory=Call)
    pictures: Preprocess = field(default_factory=Preprocess)
