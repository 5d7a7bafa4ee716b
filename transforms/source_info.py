"""What a reader tells the steps after it, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import UsageError
from .format.encode.encode_rows import RowEncoder
from .format.manifest.details import ColumnEntry
from .format.schema.schema import Schema
from .format.wording.printable import printable


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What is known of a source before a row is read: `ReadRows.info`, for `EncodeExamples` and `WriteShards`.

    `schema` are the features that rows become, None if records are opaque bytes. `labels` are the class names of each
    label feature. `splits` are those that the source's folders name, in the order of the rows' split codes. `tasks` is
    how many tasks the rows arrive in, so that the sink notices a missing one; None if that is unknown. `columns` are
    those of the source, where some are nested or decimals.
    """

    schema: Schema | None
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    splits: tuple[str, ...] = ()
    tasks: int | None = None
    columns: tuple[ColumnEntry, ...] = ()

    def __post_init__(self) -> None:
        for feature in self.schema or ():
            if feature.type == "label" and feature.name not in self.labels:
                raise UsageError(
                    f'"{printable(feature.name)}" is a label, and its class names are not given: pass on `read.info` '
                    f"of ReadRows instead of its schema, or give labels={{...}}"
                )

    def encoder(self) -> RowEncoder:
        """Return the encoder of the source's rows, with the default limits."""
        return RowEncoder(self.schema or Schema(()), splits_by_code=self.splits)
