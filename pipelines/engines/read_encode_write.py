"""The paragraph of the product, as a pipeline on any engine: read, encode, write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..prepare.prepared import Prepared
from .beam_pipeline import plain_labels

if TYPE_CHECKING:
    import apache_beam as beam

    from ...transforms.write import WriteShards


def add_steps(pipeline: beam.Pipeline, prepared: Prepared, *, raise_refusal: bool = False) -> None:
    """Put what is prepared on a pipeline; with `raise_refusal` a refusal fails it, in its very last step."""
    from ...transforms.encode import EncodeExamples
    from ...transforms.read import ReadRows

    with plain_labels():
        _ = (
            pipeline
            | "Read" >> ReadRows(prepared.source, prepared.plan)
            # Rows, ..., TaskEnd
            | "Encode" >> EncodeExamples(prepared.encoder)
            # Block, ..., TaskEnd
            | "Write" >> sink(prepared, raise_refusal=raise_refusal)
            # WriteOutcome
        )


def sink(prepared: Prepared, *, raise_refusal: bool = False) -> WriteShards:
    from ...transforms.write import WriteShards

    return WriteShards(prepared.spec.path, spec=prepared.spec, raise_refusal=raise_refusal, done=prepared.done)
