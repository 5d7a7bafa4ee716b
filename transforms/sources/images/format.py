"""Images in the registry: their options, the source that they make, their starter text, what an append settles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..registry.format import Format
from ..registry.settings import Limits, Settings
from .options import ImagesInput

if TYPE_CHECKING:
    from ...inputs.contract.source import Source

_STARTER: Final = """\
  layout: auto                # label | split | split_label | inner_label | flat: what the folders mean
  check: structure            # header | structure | decode: how closely each image is looked at
# shuffle: {{seed: 7}}
"""


class ImagesFormat(Format[ImagesInput]):
    """Files of which each is one row."""

    options = ImagesInput
    refused_keys = ("schema.columns",)
    is_shuffled = True
    projects = True
    starter_text = _STARTER

    def source(self, options: ImagesInput, settings: Settings) -> Source:
        from .source import ImageSource

        return ImageSource(options, settings)

    def field_bytes(self, limits: Limits) -> int:
        return limits.image_bytes


FORMAT: Final = ImagesFormat()
