"""Archives in the registry: the source that their options make, for tar and zip alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal

from ..registry.format import Format
from ..registry.settings import Limits, Settings
from .options import ArchiveInput, ZipInput

if TYPE_CHECKING:
    from ...inputs.contract.source import Source

_STARTER: Final = """\
  layout: auto                # label | split | split_label | inner_label | flat: what the folders in the archives mean
  # ignore: ["*.npy"]         # members that are left out
schema:
  columns: {{}}                 # {{cls: {{label: [cat, dog]}}}}
"""


class TarInput(ArchiveInput):
    """Tar archives, compressed or not."""

    format: Literal["tar"] = "tar"


class ArchiveFormat(Format[ArchiveInput]):
    """Archives whose members are read in their order, without unpacking them."""

    kind: ClassVar[str]
    projects = True
    takes_types = True
    numbered = ("image/class/label", "cls")
    starter_text = _STARTER

    def source(self, options: ArchiveInput, settings: Settings) -> Source:
        from .samples import Naming
        from .source import ArchiveSource

        key, ignore = options.key or "first_dot", tuple(options.ignore)
        naming = Naming(key, options.pictures, options.json_, ignore, key_is_chosen=options.key is not None)
        return ArchiveSource(options, settings, naming)

    def field_bytes(self, limits: Limits) -> int:
        return max(limits.field_bytes, limits.image_bytes)


class TarFormat(ArchiveFormat):
    """Tar archives: WebDataset's shards, and folders of pictures that were packed."""

    options = TarInput
    kind = "tar"


class ZipFormat(ArchiveFormat):
    """Zip archives."""

    options = ZipInput
    kind = "zip"


TAR: Final = TarFormat()
ZIP: Final = ZipFormat()
