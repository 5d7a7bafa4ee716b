"""The errors that Shardmill raises, as one tree.

    ShardmillError                      exit code
    ├── RunError                        1   the run failed
    │   ├── SourceError                     an input file is corrupt as a whole
    │   ├── CommitError                     another writer was first, or the outcome is unknown
    │   ├── UnseenError                     a worker does not see the folder that the launcher writes to
    │   ├── ReplacedError                   the dataset was replaced after it was opened
    │   └── StoreError                      an object store cannot be reached, or fails again and again
    ├── UsageError      (ValueError)    2   the call, the config or the target is wrong
    │   ├── ConfigError                     a config file, with every problem in it
    │   ├── SchemaError (TypeError)         a column's type has no feature, or two schemas differ
    │   ├── DataError   (TypeError)         data from Python is of a kind that cannot be converted
    │   ├── InputError                      a path matches nothing, or its kind is unknown
    │   ├── TargetError                     the output folder holds something else
    │   └── StoreAccessError                no client, credentials, bucket or permission for an object store
    ├── DamageError                     3   a dataset or a TFRecord file is damaged
    └── TooManyRejects                  4   more rejects than `max_rejects` allows

A message says what is wrong, where, the value, the bound or the choices, and the fix.
"""

from __future__ import annotations

from collections.abc import Mapping


class ShardmillError(Exception):
    """Any error that Shardmill raises on purpose; its text is meant for the person who made the mistake."""

    exit_code = 1


class RunError(ShardmillError, RuntimeError):
    """The run failed, and committed nothing; `again` says whether the same command may end it."""

    again = True


class SourceError(RunError):
    """An input file is corrupt as a whole: `source` is its printable name, `problem` what is wrong and the fix."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"{source}: {problem}")
        self.source = source
        self.problem = problem

    def __reduce__(self) -> tuple[type[SourceError], tuple[str, str]]:
        return type(self), (self.source, self.problem)


class CommitError(RunError):
    """A commit lost its race, or its outcome is unknown."""


class UnseenError(RunError):
    """A worker does not see the folder that the launcher writes to: trying again changes nothing."""


class ReplacedError(RunError):
    """The dataset was replaced after it was opened: its other rows are no longer there. Open it again."""


class StoreError(RunError):
    """An object store cannot be reached, or has failed at each of several tries."""


class UsageError(ShardmillError, ValueError):
    """The call is wrong: nothing was read or written."""

    exit_code = 2


class ConfigError(UsageError):
    """A config is wrong; the text lists every problem with its line and column."""


class SchemaError(UsageError, TypeError):
    """A column cannot become a feature, or two schemas differ."""


class DataError(UsageError, TypeError):
    """Data that was passed from Python is of a kind that cannot be converted."""


class InputError(UsageError):
    """An input path matches nothing, or the kind of a file is unclear."""


class TargetError(UsageError):
    """The output folder holds another dataset, or something that is not a dataset."""


class StoreAccessError(UsageError):
    """An object store is not accessible: its client, credentials, the bucket or a permission is missing."""


class DamageError(ShardmillError):
    """A dataset or a TFRecord file is damaged."""

    exit_code = 3


class TooManyRejects(ShardmillError):
    """More rows were rejected than `max_rejects` allows; nothing was committed.

    `path` is the file that lists the rejected rows, one JSON object a line, or None where there is none. `counts` are
    the rows: `{"read": 1000, "rejected": 3}`. `codes` says how many rows have each reject code.
    """

    exit_code = 4

    def __init__(
        self,
        message: str,
        path: str | None = None,
        counts: Mapping[str, int] | None = None,
        codes: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.path = path
        self.counts = dict(counts or {})
        self.codes = dict(codes or {})

    def __reduce__(self) -> tuple[type[TooManyRejects], tuple[object, ...]]:
        return type(self), (str(self), self.path, self.counts, self.codes)


class ShardmillWarning(UserWarning):
    """What a summary warns of, as Python's own warning: `convert` and `append` give it to their caller."""
