"""What a user should know of images that are written: counted by file, and shown at the end of a run."""

from __future__ import annotations

from typing import Final

from .facts import ImageFacts

ANIMATED: Final = "animated images, of which most readers decode the first frame only"
_PIXELS_IN_TFDS: Final = frozenset({"jpeg", "png", "bmp", "gif"})


def notes_of(facts: ImageFacts, fix: str) -> list[str]:
    """Return what to say of an image as it is written; `fix` is how images get a format that TFDS decodes.

    >>> notes_of(ImageFacts("gif", 1, 1, 3, "RGB", animated=True), "convert them")
    ['animated images, of which most readers decode the first frame only']
    """
    notes = [ANIMATED] if facts.animated else []
    if facts.format not in _PIXELS_IN_TFDS:
        of_all = "so that it gives image/encoded of all records as bytes, not pixels"
        notes.append(f"{facts.format} images, which TFDS does not decode, {of_all}; {fix}")
    return notes
