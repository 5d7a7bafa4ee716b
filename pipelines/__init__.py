"""The commands of Shardmill, and the only folder that knows argv, config files and runners.

    from shardmill.pipelines import append, convert, open_dataset

Nothing is imported before it is used, so that `shardmill --help` answers at once.

    commands       cli              argv; runs a command under interrupts, which turns its end into an exit code
                                    ── options       what unknown ones were meant to be, and values that are lists
                                    ── dataset_commands    those that look at datasets
                                    ── disk_errors   as opposed to bugs
                   conversion       convert: prepare; what is prepared is run by the pipeline of runners; report
                                    ── worker_processes  that stage the tasks of large plans
                                    ── dataflow          a job that runs by itself;  dataflow_job  waited for
                                    ── steps             of every pipeline;  beam_options  parsed once
                   calls            from Python: paths, a config or data, and settings by keyword
                   resuming         continue where a run stopped
                                    ── stopped_runs  what there is;  staged_plan  what it was
                   appending        append: finish, prepare_append, the same run, again where that is void
                                    ── held_files  held_images  rejected_images  unchanged   what is held already
                   merge_commands   merge, rebuild: merging stages existing records without an engine
                   verify  show  info  starter    the other commands: verify, inspect, info, init
                   salvage  upkeep             salvage, log and gc
                                    ── process_map   verify's worker processes
    config         config           files, --set and flags laid over each other
                                    ── config_yaml  config_model  config_errors  config_sources  config_runners
                                    ── config_text   values set in the text of one
    Flink          flink_run        a pipeline on Flink, embedded or a cluster; the job server around it
                                    ── flink_jars    what is fetched with Maven;  flink_processes  Java ones
                                    ── flink_pool    Python workers;  flink_rest  what a cluster says of itself
                                    ── flink_watch   what is asked of it while it works for a run
                   flink_commands   flink install, up, down  ── flink_cluster  a cluster of this machine
                   worker_errors    why a job failed, as engines report it
    words          screen           all that is printed;  report  what there is to say
                                    ── reject_groups  equal rejects together;  schema_table
                   progress         the live line  ── seldom_count  by what an engine says
    memory         freed_memory     kept by workers for the next batch
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..transforms.dataset.open import open_dataset as open_dataset
    from .appending import append as append
    from .conversion import convert as convert

__all__ = ["append", "convert", "open_dataset"]


def __getattr__(name: str) -> object:
    if name == "append":
        from .appending import append

        return append
    if name == "convert":
        from .conversion import convert

        return convert
    if name == "open_dataset":
        from ..transforms.dataset.open import open_dataset

        return open_dataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, loaded or not, so that `help` finds them."""
    return sorted({*globals(), *__all__})
