"""An engine that loses one element, or delivers it twice, at an edge of the graph.

Behind every step of a pipeline that is built while `edges` is open comes one more step, which passes on all elements
but one. So no edge can be forgotten, nor one that is added later. What Beam's own `Create` and `Reshuffle` consist of
counts as one step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import apache_beam as beam
from apache_beam.pvalue import PCollection

Fault = Literal["lost", "doubled"]


@dataclass
class Edges:
    """What has crossed each edge; with a `fault`, element number `at` of `edge` is lost or doubled."""

    fault: Fault | None = None
    edge: str = ""
    at: int = 0
    crossed: Counter[str] = field(default_factory=Counter)
    shown: dict[tuple[str, int], str] = field(default_factory=dict)


_open: list[Edges] = []


class _EdgeFn(beam.DoFn):
    """Passes elements on. The engine pickles it, and runs it in this process: what it counts is in `_open`."""

    def __init__(self, edge: str) -> None:
        self._edge = edge

    def process(self, element: Any) -> Iterator[Any]:
        edges = _open[-1]
        number = edges.crossed[self._edge]
        edges.crossed[self._edge] += 1
        edges.shown[self._edge, number] = type(element).__name__
        hit = (edges.edge, edges.at) == (self._edge, number)
        times = {"lost": 0, "doubled": 2}[edges.fault] if hit and edges.fault else 1
        for _ in range(times):
            yield element


@contextmanager
def edges(monkeypatch: Any, fault: Fault | None = None, edge: str = "", at: int = 0) -> Iterator[Edges]:
    """Put an `_EdgeFn` after each primitive step of every pipeline that is built meanwhile."""
    apply = beam.Pipeline.apply

    inside = [0]  # of Create and Reshuffle

    def apply_with_edge(self: beam.Pipeline, transform: Any, *args: Any, **how: Any) -> Any:
        if isinstance(transform, beam.Create | beam.Reshuffle):
            inside[0] += 1
            try:
                result = apply(self, transform, *args, **how)
            finally:
                inside[0] -= 1
        else:
            result = apply(self, transform, *args, **how)
            if not isinstance(transform, beam.ParDo | beam.GroupByKey | beam.Flatten):
                return result
        if inside[0] or not isinstance(result, PCollection) or isinstance(_function(result), _EdgeFn):
            return result
        name = result.producer.full_label
        step = beam.ParDo(_EdgeFn(name)).with_output_types(result.element_type)
        return apply(self, step, result, f"Edge behind {name.replace('/', ' ')}")

    _open.append(Edges(fault, edge, at))
    with monkeypatch.context() as patch:
        patch.setattr(beam.Pipeline, "apply", apply_with_edge)
        try:
            yield _open[-1]
        finally:
            _open.pop()


def _function(result: PCollection) -> object:
    return getattr(result.producer.transform, "fn", None)
