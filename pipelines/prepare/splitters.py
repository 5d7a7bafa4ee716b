"""The splitter that a config asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...transforms.errors import UsageError
from ...transforms.format.manifest.naming import is_split_name
from ...transforms.format.splits.by_column import ColumnSplits
from ...transforms.format.splits.by_hash import HashSplits
from ...transforms.format.splits.by_time import TimeSplits
from ...transforms.format.splits.exact import ExactSplits
from ...transforms.format.splits.exact_keys import ExactKeySplits
from ...transforms.format.splits.folders import FolderSplits
from ...transforms.format.splits.splitter import MOST_SPLITS, OneSplit, Splitter
from ...transforms.format.wording.nearest import nearest_name
from ...transforms.format.wording.printable import printable
from ...transforms.sources.contract.source import Frozen
from ..config.model import Config, SplitConfig


def splitter_of(config: Config, frozen: Frozen) -> Splitter:
    """Return what says which split a row goes to.

    Raises:
        UsageError: the folder that is to be cut is not there, or something else does not go with exact splits.
    """
    rule = config.split
    if rule is None:
        return OneSplit(config.output.split)
    if rule.by == "exact":
        _check_exact(config)
    if rule.of is None:
        return _splitter(rule, frozen)
    if frozen.opaque or rule.of not in frozen.splits:
        hint = nearest_name(rule.of, frozen.splits) if frozen.splits else "the source has no folders that are splits"
        raise UsageError(f'split.of: "{printable(rule.of)}" is no folder that is a split; {hint}')
    return FolderSplits(_splitter(rule, frozen), rule.of)


def joined_splits(config: Config, frozen: Frozen) -> tuple[str, ...]:
    """Return the splits of the source to which records are added that are cut out of another, `split.of`."""
    rule = config.split
    if rule is None or rule.of is None:
        return ()
    return tuple(name for name in rule.named if name in frozen.splits and name != rule.of)


def _splitter(rule: SplitConfig, frozen: Frozen) -> Splitter:
    if rule.column is not None:
        classes = frozen.labels.get(rule.column)
        return ColumnSplits(rule.column, _named(rule.names, classes))
    if rule.before is not None:
        bounds = [(name, text) for name, text in rule.before.items() if name not in ("column", "rest")]
        return TimeSplits(rule.before["column"], tuple(bounds), rule.before.get("rest"))
    if rule.by == "hash":
        return HashSplits.by_fraction(rule.shares(), rule.key)
    if rule.key is not None:
        return ExactKeySplits.by_fraction(rule.shares(), rule.key)
    return ExactSplits.by_fraction(rule.shares(), rule.stratify)


def _named(names: Mapping[str, str] | None, classes: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """Return the splits of values; those of a label, whose records hold numbers, are named by their classes."""
    if classes is None:
        return tuple((names or {}).items())
    splits = {name: name for name in classes if is_split_name(name)} if names is None else names
    found = ((str(number), splits.get(name, splits.get(str(number)))) for number, name in enumerate(classes))
    return tuple((number, split) for number, split in found if split is not None)


def _check_exact(config: Config) -> None:
    if config.output.order == "source":
        raise UsageError(
            "split.by: exact deals some records last, so that a split does not follow the source throughout; leave "
            "order: source out, or split by: hash"
        )
    duplicates = None if config.checks is None else config.checks.duplicates
    if duplicates is not None and duplicates.action == "drop":
        raise UsageError(
            "checks.duplicates.action: drop leaves records out after split.by: exact has counted them; report them, or "
            "split by: hash"
        )


def most_splits_of(config: Config) -> int | None:
    """Return how many splits the values of a column may name, None where they name none."""
    rule = config.split
    return MOST_SPLITS if rule is not None and rule.column is not None and rule.names is None else None
