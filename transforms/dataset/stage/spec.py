"""`DatasetSpec`: what a run writes. Staging, shard plan, commit and publishing must agree on it."""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Literal

from ...errors import UsageError
from ...format.batches.observers import Observer
from ...format.batches.rejects import rejects_allowed
from ...format.manifest.manifest import OWN_PIPELINE as OWN_PIPELINE
from ...format.manifest.manifest import ColumnEntry
from ...format.manifest.naming import DATASET_NAME, DEFAULT_SHARD_NAME, STAGING_FOLDER, IndexKind, check_shard_name
from ...format.schema.schema import Schema
from ...format.splits.splitter import Settling
from ...format.wording.hints import Add, Command
from ...format.wording.printable import check_shard_size, printable
from ...observers.figures import Level
from ...observers.tally import Tally
from ...stores.store_url import is_store_url
from ..storage.contract import Storage
from ..storage.object_storage import storage_at
from .spill import Shuffle
from .split_stager import StageSettings

NO_FINGERPRINT: Final = "sha256:" + "0" * 64
"""The fingerprint of a config or a source that is not known: it is equal to none."""

JOIN_TWO: Final = f"join the two: {Command('merge', 'A', 'B', '-o', 'C')}"

_TOOLS: Final = ("shardmill", "apache-beam", "pyarrow", "isal")
_CHOICES: Final = {
    "compression": ("none", "gzip"),
    "order": ("task", "source", "shuffled"),
    "if_exists": ("refuse", "replace"),
}
_SIDECARS: Final = ("tfds", "tfx", "croissant", "label_map", "index", "offsets")


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """One input file (images: one folder of `files` files), as the list of sources will name it.

    `expected_rows` is what planning counted, None where only reading tells.
    """

    name: str
    bytes: int
    fingerprint: str
    files: int = 1
    expected_rows: int | None = None


@dataclass(frozen=True, slots=True)
class AppendTo:
    """The dataset that a run adds to, as it was when the run was planned.

    `generation` is its latest, `shards` are how many shards each split had, where its new ones are numbered on.
    `constants` are the columns of one value, where they are not those of the dataset: the list of sources keeps them.
    With `force`, files that the dataset holds are appended again.
    """

    generation: int
    shards: dict[str, int]
    constants: str | None = None
    force: bool = False


def tool_versions() -> dict[str, str]:
    return dict(_tool_versions())


@cache
def _tool_versions() -> dict[str, str]:
    versions: dict[str, str] = {}
    for tool in _TOOLS:
        try:
            versions[tool] = version(tool)
        except PackageNotFoundError:  # run from a checkout that was not installed
            versions[tool] = "unknown"
    return versions | {"python": platform.python_version()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSpec:
    """One run: where its dataset is, what it is, what it comes from.

    path         the dataset's folder, absolute, or its URL
    shard_size   in bytes on disk
    order        `task` or `source`; with `shuffle` it is `shuffled`
    replaces     the generation that a run with `if_exists: replace` saw as it began (0: none): it replaces no later one
    max_rejects  a number of rows, or a percentage of the rows read ("1%")
    columns      those of the source, where some are in several features, or in another form than their own
    tasks        how many there are, None where the runner's bundles are the tasks
    carries      the datasets whose lists of sources are carried on, each a folder and a generation
    run_id       names the staging folder
    commit_id    is fixed when the run is built, so that a commit of unknown outcome can be looked for
    append_to    the dataset that the run adds to, None for a run that makes one
    operation    how a dataset is made: `create`, or `merge` from records of others
    plan_file    what the launcher has written into the staging folder, None if nothing
    observers    see every batch
    image        the codec that changes pictures, and its releases
    conversion   the normal form of what makes the dataset
    most_splits  bounds splits that the data name, None where they do not
    settling     the splitter that sets records aside, None where none are
    shuffle      how all records of a split are shuffled, None where they keep their order
    statistics   are written beside the shards: the observer `CountValues` counts them, or else what makes the shards
    counted      what is known of records that are copied: it is taken over where all of them are
    """

    path: str
    name: str
    shard_size: int
    compression: str = "none"
    order: str = "task"
    shard_name: str = DEFAULT_SHARD_NAME
    sidecars: tuple[str, ...] = ("tfds", "tfx", "offsets")
    if_exists: str = "refuse"
    replaces: int | None = None
    max_rejects: int | str = 0
    schema: Schema | None = None
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    columns: tuple[ColumnEntry, ...] = ()
    tasks: int | None = None
    source_format: str = "records"
    source_entries: Sequence[EntryInfo] = ()
    source_files: int = 0
    source_bytes: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    carries: tuple[tuple[str, int], ...] = ()
    config_fingerprint: str = NO_FINGERPRINT
    source_fingerprint: str = NO_FINGERPRINT
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    commit_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    runner: str = OWN_PIPELINE
    created: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    tool: dict[str, str] = field(default_factory=tool_versions)
    append_to: AppendTo | None = None
    operation: Literal["create", "merge"] = "create"
    plan_file: str | None = None
    observers: tuple[Observer, ...] = ()
    image: dict[str, Any] = field(default_factory=dict)
    most_splits: int | None = None
    settling: Settling | None = None
    shuffle: Shuffle | None = None
    statistics: Level | None = None
    counted: Tally | None = None
    conversion: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, choices in _CHOICES.items():
            if getattr(self, key) not in choices:
                raise UsageError(f'{key} is "{getattr(self, key)}": choose one of {", ".join(choices)}')
        for sidecar in self.sidecars:
            if sidecar not in _SIDECARS:
                raise UsageError(f'sidecars names "{sidecar}": choose among {", ".join(_SIDECARS)}')
        if DATASET_NAME.fullmatch(self.name) is None:
            raise UsageError(
                f'name is "{printable(self.name)}": lowercase letters, digits and _, starting with a letter'
            )
        if not os.path.isabs(self.path) and not is_store_url(self.path):
            raise UsageError(f'path is "{self.path}": a dataset\'s folder is named by an absolute path')
        try:
            check_shard_size(self.shard_size)
        except ValueError as error:
            raise UsageError(f"shard_size: {error}") from error
        try:
            check_shard_name(self.shard_name)
        except ValueError as error:
            raise UsageError(str(error)) from error
        rejects_allowed(self.max_rejects, 0)

    @property
    def level(self) -> Level | None:
        return self.statistics if self.counted is None else self.counted.level

    @property
    def staging(self) -> str:
        """The run's staging folder, relative to the dataset's."""
        return f"{STAGING_FOLDER}/{self.run_id}"

    @property
    def storage(self) -> Storage:
        return storage_at(self.path)

    @property
    def index_kinds(self) -> tuple[IndexKind, ...]:
        """Index files to write. Their readers need uncompressed shards."""
        groups: dict[str, IndexKind] = {"index": "text", "offsets": "binary"}
        wanted = [kind for group, kind in groups.items() if group in self.sidecars]
        return tuple(wanted) if self.compression == "none" else ()

    @property
    def ways_out(self) -> str:
        if self.runner == OWN_PIPELINE:
            return f'write into another folder, and {JOIN_TWO}; if_exists="replace" removes what is there'
        return f'choose another folder (-o), or write over it: {Add("--overwrite")} (in Python: if_exists="replace")'

    @property
    def proof(self) -> str | None:
        """The file by which a worker proves that it sees the dataset's folder: see `check_shared`."""
        return None if self.plan_file is None or is_store_url(self.path) else f"{self.staging}/{self.plan_file}"

    @property
    def stage_settings(self) -> StageSettings:
        in_append = self.append_to is not None
        return StageSettings(
            self.shard_size,
            self.compression,
            self.order,
            in_append=in_append,
            proof=self.proof,
            observers=self.observers,
            most_splits=self.most_splits,
            sets_aside=self.settling is not None,
            shuffle=self.shuffle,
            index=bool(self.index_kinds),
        )
