"""Beam's pipeline options with their views kept, as Beam asks for a view 300 times and parses each time."""

from __future__ import annotations

from typing import TypeVar, cast

from apache_beam.options.pipeline_options import PipelineOptions

View = TypeVar("View", bound=PipelineOptions)


class ParsedOptions(PipelineOptions):
    """Pipeline options that keep their views.

    Beam asks while it builds and runs a pipeline, and builds an argument parser each time: a quarter of the processor
    time that a small pipeline takes. All views share one dictionary of values, so that a kept
    one is never out of date.
    """

    def view_as(self, cls: type[View]) -> View:
        views: dict[type[PipelineOptions], PipelineOptions] = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return cast(View, views[cls])

    def __getstate__(self) -> dict[str, object]:
        """Leave the views behind: each process makes its own."""
        return {name: value for name, value in super().__getstate__().items() if name != "_views"}
