"""What sources of files have in common: each holds the options of its format and the settings of the conversion."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...format.schema.schema import ColumnRule
from ...inputs.contract.selection import Selection
from ...inputs.contract.source import Listing, Source, Traits
from ...inputs.files.formats import suffixes_of
from ...inputs.files.listing import list_entries
from ...recognise.rules import recognise
from .settings import Settings

if TYPE_CHECKING:
    from ...inputs.contract.source import DatasetSchema
    from .options import Options, TableOptions


@dataclass(frozen=True, slots=True)
class FileSource(Source):
    """A source of files, folders and globs, by the options of their format."""

    options: Options
    settings: Settings

    traits: ClassVar[Traits] = Traits()

    paths_may_be_lists: ClassVar[bool] = False
    """Whether a row may hold a list of paths: columns of paths then have no declared type."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Give a worker the values of the options alone: pydantic would take 0.2 s and 5 MB of each."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        if not isinstance(self.options, SimpleNamespace):
            plain = SimpleNamespace(**dict(self.options), model_fields_set=self.options.model_fields_set)
            values["options"] = plain
        return type(self), tuple(values.values())

    @property
    def rules(self) -> dict[str, ColumnRule]:
        without = self.settings.paths if self.paths_may_be_lists else ()
        return {name: rule for name, rule in self.settings.rules.items() if name not in without}

    @property
    def selection(self) -> Selection:
        return Selection.of(self.options.columns, self.options.exclude_columns)

    def selecting(self, selection: Selection) -> Self:
        columns = None if selection.columns is None else list(selection.columns)
        return self.with_options(columns=columns, exclude_columns=list(selection.exclude))

    def with_rules(self, rules: dict[str, ColumnRule]) -> Self:
        return replace(self, settings=replace(self.settings, rules=rules)) if self.typed else self

    def with_options(self, **changes: Any) -> Self:
        """Return the source with other values of some options."""
        return replace(self, options=self.options.model_copy(update=changes))

    def list_files(self) -> Listing:
        """Return the files to read.

        Raises:
            InputError: a path matches nothing, a file is not what its name says, or it is unclear of which split it is.
        """
        kind, paths = self.options.format, self.options.paths
        listing = list_entries(
            paths,
            self.settings.base,
            suffixes_of(kind),
            file_format=kind,
            traits=self.traits,
            ignore=self.options.ignore,
        )
        return recognise(listing, paths, self.settings.base, self.settings.splits)


@dataclass(frozen=True, slots=True)
class TableSource(FileSource):
    """A source of files whose columns may differ, where `columns_differ` says so; a dataset has those `elsewhere`."""

    options: TableOptions
    elsewhere: tuple[str, ...] = ()

    @property
    def union(self) -> bool:
        return self.options.columns_differ == "union"

    @property
    def selection(self) -> Selection:
        return Selection.of(
            self.options.columns, self.options.exclude_columns, union=self.union, elsewhere=self.elsewhere
        )

    def following(self, dataset: DatasetSchema) -> Self:
        return replace(self, elsewhere=dataset.may_lack) if self.union else self
