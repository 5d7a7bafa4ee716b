"""What a source is built from beside its own options: settings of the whole conversion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...inputs.contract.call import Call
from ...pictures.preprocess_options import Preprocess
from ...recognise.evidence.names import FileSplits

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
