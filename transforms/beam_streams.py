"""Keep Beam's local engine from losing elements.

Beam 2.77's `FnApiRunner` flushes its data streams once a second from a second thread, where its workers are threads or
processes of their own (`multi_threading`, `multi_processing`):

    writer    stream.write(element)                                       without a lock
    flusher   flush(get())  ........ an element written now is lost ....  clear()

With a time limit of 0 every stream, the runner's and its workers', is flushed by size, by the thread that writes.
"""

from __future__ import annotations

import warnings
from typing import Final

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions
from apache_beam.runners.direct.direct_runner import SwitchingDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner, worker_handlers

_WARNING: Final = (
    "direct_running_mode={mode}: Beam's local engine loses elements in this mode now and then, without an error, when "
    "a step takes longer than a second; before you run the pipeline, set\n"
    "    from apache_beam.runners.portability.fn_api_runner import worker_handlers\n"
    "    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0"
)


def flush_by_size() -> None:
    worker_handlers.DATA_BUFFER_TIME_LIMIT_MS = 0


def warn_of_timed_flushes(pipeline: beam.Pipeline) -> None:
    if not isinstance(pipeline.runner, FnApiRunner | SwitchingDirectRunner):
        return
    mode = pipeline.options.view_as(DirectOptions).direct_running_mode
    if mode != "in_memory" and worker_handlers.DATA_BUFFER_TIME_LIMIT_MS > 0:
        warnings.warn(_WARNING.format(mode=mode), RuntimeWarning, stacklevel=2)
