"""The options of archives, of tar and zip alike: the keys of `input`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..registry.options import Encoding, FileOptions


class ArchiveInput(FileOptions):
    """Archives of samples, or of pictures alone."""

    layout: Literal["auto", "label", "split", "split_label", "inner_label", "flat"] = "auto"
    labels: Literal["numeric"] | None = None
    key: Literal["first_dot", "last_dot"] | None = None
    pictures: Literal["image", "suffix"] = "image"
    json_: Annotated[Literal["columns", "text"], Field(alias="json")] = "columns"


class ZipInput(ArchiveInput):
    """Zip archives; `encoding` is that of names that are not marked as UTF-8."""

    format: Literal["zip"] = "zip"
    encoding: Encoding | None = None
