"""Turn a Python call of `convert` or `append` into a config, an engine and a source.

convert("data.csv", output="out")           paths, as on the command line
convert("conf.yaml", shard_size="64MiB")    a config; its keys by keyword
convert(data=frame, output="out")           data in memory
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ...transforms.errors import DataError, ShardmillError, ShardmillWarning, UsageError
from ...transforms.format.wording.hints import Command, Python
from ...transforms.format.wording.printable import printable
from ...transforms.inputs.contract.source import Source
from ...transforms.pictures.structure import ImageCheck
from ...transforms.recipe.function import Mapped, steps_of
from ...transforms.stores.store_url import is_store_url
from ..config.load import load_config, split_sources
from ..config.model import Config, input_keys
from ..config.runners import AnyRunner, DataflowRunner, FlinkRunner, LocalRunner
from ..engines.dataflow import DataflowEngine
from ..engines.engine import Engine, LocalEngine
from ..engines.flink.pipeline import FlinkEngine
from ..outcomes.summary import Summary
from ..prepare.conversion import Conversion
from ..prepare.from_config import conversion_of
from ..prepare.of_dataset import dataset_in
from ..workers.worker_processes import WorkerProcesses

# The engine that a config names, and the workers of this machine that it asks for.


def engine_of(runner: AnyRunner, beam_options: Sequence[str] = ()) -> Engine:
    match runner:
        case LocalRunner():
            return LocalEngine(beam_options)
        case FlinkRunner():
            return FlinkEngine(runner, beam_options)
        case DataflowRunner():
            return DataflowEngine(runner, beam_options)


def require_waiting(engine: Engine) -> None:
    if not engine.waits:
        raise UsageError(
            "runner.wait: what is written is known when the job has ended, so this waits for it; leave the key out, or "
            f"submit with the command line: {Command('convert', '...', '--no-wait')}"
        )


def workers_of(runner: AnyRunner) -> WorkerProcesses:
    """Return the workers of this machine: they plan, and convert where the engine is this machine too."""
    return WorkerProcesses(runner.planners, asked=runner.processes)


# The settings.


if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from ...transforms.sources.memory.source import MemorySource

    Row: TypeAlias = Mapping[str, Any]
    Table: TypeAlias = pd.DataFrame | pa.Table | pa.RecordBatch
    Data: TypeAlias = Table | pa.RecordBatchReader | Mapping[str, np.ndarray] | Iterable[Row] | Iterable[Table]

Path: TypeAlias = str | os.PathLike[str]
What: TypeAlias = Path | Sequence[Path] | Mapping[str, Any]

_LIKE_FLAGS: Final = {
    "overwrite": "output.if_exists", "split_fractions": "split.fractions", "split_key": "split.key",
    "workers": "runner.workers", "runner": "runner.name", "shuffle": "shuffle.seed", "split": "output.split",
}  # fmt: skip
"""Settings that are called like a flag of the command line, and the keys that they set."""

_OUTPUT_KEYS: Final = frozenset({"shard_size", "compression", "order", "shard_name", "sidecars", "index", "if_exists"})


@contextmanager
def called(
    command: Literal["convert", "append"],
    what: What | None,
    output: Path | None,
    settings: Mapping[str, object],
    *,
    data: Data | None = None,
    mapped: Mapped | None = None,
) -> Iterator[Conversion]:
    """Yield the conversion of a call from Python.

    `settings` have double underscores for dots, `mapped` are the user's own steps. Data in memory are an Arrow file
    beside the staged work until the call ends.

    Raises:
        DataError: `what` is data.
        ConfigError: the config or a setting is wrong.
        UsageError: a step is none, or a setting of files comes with data.
    """
    settings = dict(settings)
    check = settings.pop("check", None) if data is not None else None
    config, steps = load_call(what, output, settings, data_given=data is not None, command=command), steps_of(mapped)
    require_waiting(engine_of(config.runner))
    if data is None:
        with noting(config):
            yield conversion_of(config, command, steps=steps, writes=True)
        return
    if command == "append":
        dataset_in(config.output.path)
    with _spooled(config, data) as source:
        level = None if check is None else ImageCheck(check).level  # type: ignore[arg-type]
        yield conversion_of(config, command, source=source, steps=steps, check=level, writes=True)


def load_call(
    what: What | None,
    output: Path | None,
    settings: Mapping[str, object],
    *,
    data_given: bool,
    command: str = "convert",
) -> Config:
    """Return the config of a call from Python."""
    settings = dict(settings)
    overwrite = settings.pop("overwrite", False)
    if not isinstance(overwrite, bool):
        raise UsageError(f"overwrite: {overwrite!r} is neither True nor False")
    settings |= {"overwrite": "replace"} if overwrite else {}
    flags: dict[str, object] = {_key_of(key, value): (key, value) for key, value in settings.items()}
    of_files = next((key for key in settings if _dotted(key).startswith("input.")), None)
    if data_given and of_files is not None:
        raise UsageError(
            f"{of_files}: is a key of files, and the data are given in Python; choose rows and columns before"
        )
    if output is not None:
        flags["output.path"] = ("output", os.fspath(output))
    if what is None or isinstance(what, Mapping):
        return load_config(what, flags=flags, data_given=data_given, command=command)
    given = [what] if isinstance(what, str | os.PathLike) else what
    if not isinstance(given, list | tuple) or not all(isinstance(path, str | os.PathLike) for path in given):
        kind = printable(type(what).__name__)
        call = Python("convert(data=..., output=...)")
        raise DataError(f"a {kind} is neither a path nor a config; if it is the data: {call}")
    config, paths = split_sources([os.fspath(path) for path in given])
    return load_config(config, flags=flags, paths=paths, data_given=data_given, command=command)


@contextmanager
def _spooled(config: Config, data: Data) -> Iterator[Source]:
    """Yield the source of data in memory, without a recipe: an Arrow file beside the staged work, written once."""
    from ...transforms.sources.memory.source import spool

    if not engine_of(config.runner).sees_this_machine:
        raise UsageError("runner.name: data in memory are on this machine alone; write them to gs://, or convert here")
    if config.input is not None:
        raise UsageError("input: the data are given in Python; leave input out of the config")
    if is_store_url(config.output.path):
        with TemporaryDirectory(prefix="shardmill-") as folder:
            yield _in_splits_of(spool(data, folder, rules=config.schema_.rules), config)
        return
    folder = os.path.join(config.output.path, ".staging")
    source = spool(data, folder, rules=config.schema_.rules)
    try:
        yield _in_splits_of(source, config)
    finally:
        for path in {one.path for one in source.files}:
            os.unlink(path)
        if os.path.isdir(folder) and not os.listdir(folder):
            os.rmdir(folder)


def _in_splits_of(source: MemorySource, config: Config) -> MemorySource:
    """Raise `UsageError` where all rows are to be of one split, and the data are in splits."""
    splits, wanted = [one.split for one in source.files if one.split is not None], config.output.wanted_split
    if splits and wanted is not None:
        one = Python(f"data=data[{splits[0]!r}]")
        raise UsageError(f"output.split ({wanted}): the data are in splits ({', '.join(splits)}); give one: {one}")
    return source


@contextmanager
def noting(config: Config) -> Iterator[None]:
    """Add to an error what was detected in the data, as a note of Python's: the error may come of it."""
    try:
        yield
    except ShardmillError as error:
        for text in config.detected:
            error.add_note(f"Detected: {text}")
        raise


def warn_of(summary: Summary, *, stacklevel: int = 3) -> Summary:
    """Raise the warnings of a summary as Python's own, for the caller of our caller; return the summary."""
    for text in summary.warnings:
        warnings.warn(text, ShardmillWarning, stacklevel=stacklevel)
    return summary


def _key_of(setting: str, value: object) -> str:
    """Return the key of the config that a setting sets; a mapping is the section of that name."""
    is_section = isinstance(value, Mapping) and setting != "split_fractions"
    return _dotted(setting) if is_section else _LIKE_FLAGS.get(setting) or _dotted(setting)


def _dotted(key: str) -> str:
    if key in input_keys() - {"paths"}:
        return f"input.{key}"
    return f"output.{key}" if key in _OUTPUT_KEYS else key.replace("__", ".")
