"""Images in the registry: their options, the source that they make, their starter text, what an append settles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from ..registry.format import Format, Resolved
from ..registry.options import Options
from ..registry.settings import Limits, Settings
from .options import Annotations, ImagesInput

if TYPE_CHECKING:
    from ..contract.source import Source

_STARTER: Final = """\
  layout: auto                # label | split | split_label | flat: what the folders mean
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

    def resolved(self, given: Mapping[str, Any], paths: Sequence[str], base: str) -> Resolved | None:
        from ..image_tables.resolve import of_annotations, of_metadata

        fields = {
            key: one
            for key, one in ImagesInput.model_fields.items()
            if key not in Options.model_fields or key == "ignore"  # which is of the pictures here, and not of tables
        }
        own = {key: one.get_default(call_default_factory=True) for key, one in fields.items()}
        if given.get("annotations") is not None:
            try:
                files = Annotations.model_validate(given["annotations"])
            except ValidationError:
                return None  # the model of the section says what is wrong
            return of_annotations(given, own, paths, base, files.model_dump())
        beside = given.get("metadata") is None and given.get("detect") is None
        return of_metadata(given, own, paths, base) if beside else None

    def field_bytes(self, limits: Limits) -> int:
        return limits.image_bytes


FORMAT: Final = ImagesFormat()
