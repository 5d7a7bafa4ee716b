"""The Beam pipeline of a conversion (read, encode, write), and the options that every engine gives to Beam.

Tasks are encoded by the steps of the pipeline, or each is handed to a worker process as a whole.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import MethodType
from typing import TYPE_CHECKING, Any, Final

from ...transforms.errors import UsageError
from ...transforms.format.wording.printable import printable
from ...transforms.inputs.contract.tasks import TaskStaging
from ..prepare.prepared import Prepared

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    from ...transforms.write import WriteShards
    from ..workers.worker_processes import WorkerProcesses


_SECRET_OPTION: Final = re.compile(r"secret|password|token|credential|access_key|connection_string", re.IGNORECASE)
"""Beam options that hold a secret, which `display_data` of the pipeline would show."""


def make_pipeline(workers: int, beam_args: Sequence[str] = ()) -> beam.Pipeline:
    """Return an empty pipeline on the local engine.

    It is Beam's FnApiRunner with threads, chosen by class: Beam's own bare `DirectRunner` would first try to download a
    program at run time, and results would depend on the network. Its data streams are flushed by size (see
    `flush_by_size`).
    """
    quiet_beam()
    import apache_beam as beam
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    from ...transforms.elements import flush_by_size

    flush_by_size()
    _look_once_for_states()
    mode = "multi_threading" if workers > 1 else "in_memory"
    ours = [f"--direct_num_workers={workers}", f"--direct_running_mode={mode}", "--no_save_main_session"]
    return beam.Pipeline(runner=FnApiRunner(), options=parse_options(ours, beam_args))


def _look_once_for_states() -> None:
    """Let Beam look through the methods of each class of steps once; where a step has some of its own, always.

    To find states and timers it goes through the signatures of all of them eight times a step, for 0.1 s of CPU.
    """
    from apache_beam.transforms import userstate

    look: Callable[[beam.DoFn], tuple[set[Any], set[Any]]] = userstate.get_dofn_specs
    known = dict[type, tuple[set[Any], set[Any]]]()
    if look.__module__ != userstate.__name__:
        return

    def states_and_timers(step: beam.DoFn) -> tuple[set[Any], set[Any]]:
        if any(isinstance(value, MethodType) for value in vars(step).values()):
            return look(step)
        if type(step) not in known:
            known[type(step)] = look(step)
        return known[type(step)]

    userstate.get_dofn_specs = states_and_timers


@contextmanager
def plain_labels() -> Iterator[None]:
    """Let Beam leave the labels of steps alone that are put on a pipeline meanwhile, also in a notebook.

    There it puts the number of the cell before each, with an interactive environment that it loads for that: a second
    of CPU, and with pandas 3 an error (Beam 2.77: `DataFrame` has no attribute `first`).
    """
    from apache_beam import pipeline

    before = pipeline.alter_label_if_ipython
    pipeline.alter_label_if_ipython = _leave
    try:
        yield
    finally:
        pipeline.alter_label_if_ipython = before


def _leave(*_: object) -> None:
    """Leave a label as it is."""


def parse_options(
    ours: Sequence[str], beam_args: Sequence[str], engines: frozenset[str] = frozenset()
) -> PipelineOptions:
    """Return Beam's options: `ours`, and what is after `--`; `engines` are options that only the engine knows."""
    from .beam_options import ParsedOptions

    flags = [arg.removeprefix("--").split("=")[0] for arg in beam_args if arg.startswith("--")]
    for flag in flags:
        if _SECRET_OPTION.search(flag):
            raise UsageError(
                f"--{printable(flag)}: keys are not taken on the command line, where others can see them, and where "
                f"engines print them; give them in the environment, or let the machine's role have them"
            )
    options = ParsedOptions([*ours, *beam_args])
    known = {key for key, value in options.get_all_options(drop_default=False).items() if value is not None}
    for flag in flags:
        if not {flag, flag.removeprefix("no_")} & (known | engines):
            raise UsageError(f"--{printable(flag)}: Beam has no such option; what comes after `--` goes to Beam")
    return options


def quiet_beam() -> None:
    """Keep Beam's and its libraries' remarks off the screen: what matters of them, we say ourselves."""
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger("apache_beam").setLevel(logging.ERROR)


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


def run_on(
    engine: AbstractContextManager[beam.Pipeline],
    prepared: Prepared,
    processes: WorkerProcesses | None,
) -> None:
    """Run what is prepared on a pipeline: by its own steps, or by worker processes where they are wanted."""
    if processes is None or not processes.wanted(prepared.plan.work):
        with engine as pipeline:
            add_steps(pipeline, prepared)
        return
    staging = TaskStaging.of(prepared.spec, prepared.source, prepared.plan.survey.frozen, prepared.encoder)
    processes.begin(staging, prepared.plan.tasks)
    try:
        _run_in_processes(engine, prepared, processes)
    except Exception:
        if processes.broken is not None:
            raise processes.broken from None
        raise


def _run_in_processes(
    engine: AbstractContextManager[beam.Pipeline], prepared: Prepared, processes: WorkerProcesses
) -> None:
    from ...transforms.elements import StageTasks

    with engine as pipeline, plain_labels():
        _ = (
            pipeline
            | "Stage" >> StageTasks(prepared.plan.tasks, processes.stage)
            # TaskResult
            | "Write" >> sink(prepared)
            # WriteOutcome
        )
