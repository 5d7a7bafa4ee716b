"""The options of archives, and the source that they make, for tar and zip alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from pydantic import Field, StringConstraints

from ..registry.format import Format, partition_steps
from ..registry.options import Options, Partitions
from ..registry.settings import Limits, Settings

if TYPE_CHECKING:
    from ...recipe.step import Step
    from ..contract.source import Source


class ArchiveInput(Options):
    """Archives of samples, or of pictures alone."""

    layout: Literal["auto", "label", "split", "split_label", "flat"] = "auto"
    key: Literal["first_dot", "last_dot"] | None = None
    pictures: Literal["image", "suffix"] = "image"
    json_: Annotated[Literal["columns", "text"], Field(alias="json")] = "columns"
    ignore: list[Annotated[str, StringConstraints(min_length=1)]] = Field([])
    partitions: Partitions = None


_STARTER: Final = """\
  layout: auto                # label | split | split_label | flat: what the folders in the archives mean
  # ignore: ["*.npy"]         # members that are left out
schema:
  columns: {}                 # {cls: {label: [cat, dog]}}
"""


class ArchiveFormat(Format[ArchiveInput]):
    """Archives whose members are read in their order, without unpacking them."""

    kind: ClassVar[str]
    choosing_keys = ("ignore",)
    projects = True
    takes_types = True
    numbered = ("image/class/label", "cls")

    def source(self, options: ArchiveInput, settings: Settings) -> Source:
        from .samples import ArchiveLimits, Naming
        from .source import ArchiveSource

        limits = settings.limits
        key, ignore = options.key or "first_dot", tuple(options.ignore)
        return ArchiveSource(
            self.kind,
            tuple(options.paths),
            settings.base,
            layout=options.layout,
            naming=Naming(key, options.pictures, options.json_, ignore, key_is_chosen=options.key is not None),
            columns=options.kept,
            exclude=tuple(options.exclude_columns),
            infer=settings.infer,
            rules={name: rule for name, rule in settings.rules.items() if name not in settings.paths},
            limits=ArchiveLimits(limits.image_bytes, limits.field_bytes, limits.record_bytes, limits.columns),
            partitions=options.partitions or "read",
            call=settings.call,
        )

    def steps(self, options: ArchiveInput) -> tuple[Step, ...]:
        return partition_steps(options, options.partitions)

    def starter(self, options: ArchiveInput, columns: str, column: str) -> str:  # noqa: ARG002
        return _STARTER

    def field_bytes(self, limits: Limits) -> int:
        return max(limits.field_bytes, limits.image_bytes)
