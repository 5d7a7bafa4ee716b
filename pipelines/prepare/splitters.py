"""The splitter that a config asks for, or in an append that says nothing of splits, its dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import ValidationError

from ...transforms.errors import DamageError, UsageError
from ...transforms.format.manifest.manifest import Manifest
from ...transforms.format.manifest.naming import is_split_name
from ...transforms.format.splits.by_column import ColumnSplits
from ...transforms.format.splits.by_hash import HashSplits
from ...transforms.format.splits.by_time import TimeSplits
from ...transforms.format.splits.exact import ExactSplits
from ...transforms.format.splits.exact_keys import ExactKeySplits
from ...transforms.format.splits.folders import FolderSplits
from ...transforms.format.splits.splitter import DEFAULT_SPLIT, MOST_SPLITS, OneSplit, Splitter
from ...transforms.format.wording.nearest import nearest_name
from ...transforms.format.wording.printable import printable, printable_path
from ...transforms.sources.contract.source import Frozen, Survey
from ..config.model import Config, SplitConfig
from ..report.split_rule import rule_text

_NO_SPLIT: Final = ""
"""In the counts of a survey: rows of no split."""


def splitter_of(config: Config, frozen: Frozen) -> Splitter:
    rule = config.split
    if rule is None:
        return OneSplit(config.output.split)
    if not rule.follows_source:
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
        return HashSplits.by_fraction(rule.shares(), rule.key, word=0 if rule.of is None else 1)
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
    rule = config.split
    return MOST_SPLITS if rule is not None and rule.column is not None and rule.names is None else None


def with_split_of(config: Config, latest: Manifest) -> Config:
    """Return the config of an append that says nothing of splits with the rule of the dataset, or its one split."""
    rule = _rule_of(config, latest)
    if rule is not None or len(latest.splits) > 1:
        return config.with_split_of_dataset(rule)
    split = next(iter(latest.splits), config.output.split)
    return config.model_copy(update={"output": config.output.model_copy(update={"split": split})})


def _rule_of(config: Config, latest: Manifest) -> SplitConfig | None:
    stated = latest.details.split_rule
    if not stated or stated["by"] == "folders":
        return None
    try:
        rule = SplitConfig.of_rule(stated)
    except ValidationError as error:
        raise DamageError(
            f"{printable_path(config.output.path)}: details.split_rule of generation {latest.generation} is no rule "
            f"({error.errors()[0]['msg']}); say the split of the rows: --split {next(iter(latest.splits), 'train')}"
        ) from None
    records = config.input is not None and config.input.format == "tfrecord"
    if records and rule.of is not None:
        return None  # the splits of existing records are no folders
    return rule if rule.follows_source or latest.order != "source" else None  # another writer made both


def with_fitting_split(config: Config, latest: Manifest, survey: Survey) -> Config:
    """Return the config of an append with the rule of the dataset only where its source has rows for it.

    Raise if nothing says to which split a row goes, or if the rule would part rows of one key.
    """
    if not config.split_of_dataset:
        return config
    splits, rule, where = survey.frozen.splits, config.split, printable_path(config.output.path)
    if rule is not None and rule.of is not None and rule.of not in splits:
        config, rule = config.model_copy(update={"split": None}), None
    if splits and _NO_SPLIT not in survey.split_rows:
        return config
    if rule is None:
        known = list(latest.splits) or [config.output.split]
        has = f"the splits {', '.join(known)}" if len(known) > 1 else f"the split {known[0]}"
        raise UsageError(
            f"{where} has {has}, and states no rule for these rows: say where they go: --split {_first(known)}, or a "
            f"rule, like --split-fractions train=0.9,val=0.1"
        )
    if rule.by == "exact" and rule.key is not None:
        raise UsageError(
            f"{where} was split {rule_text(rule.rule())}; {_parts_groups(rule.key)}, or say so: {rule.options}"
        )
    return config


def _first(splits: Sequence[str]) -> str:
    return DEFAULT_SPLIT if DEFAULT_SPLIT in splits else splits[0]


def _parts_groups(key: str) -> str:
    return (
        f"an append counts its own rows alone, so that rows of one {printable(key)} may be in another split than those "
        f"that the dataset has; to keep them together, convert all sources to a new dataset (-o)"
    )


def split_notes(config: Config, survey: Survey) -> tuple[str, ...]:
    rule = config.split
    if rule is None or not config.split_of_dataset:
        return ()
    if rule.of is None and survey.frozen.splits and _NO_SPLIT not in survey.split_rows:
        return ()  # the source is in splits
    return (f"rows are split as the dataset was, {rule_text(rule.rule())}; to say otherwise: --split NAME, or a rule",)


def split_warnings(config: Config, latest: Manifest) -> tuple[str, ...]:
    rule, stated, found = config.split, latest.details.split_rule, list[str]()
    if rule is not None and stated and json.dumps(rule.rule()) != json.dumps(stated):  # the order of fractions counts
        found.append(
            f"rows are split {rule_text(rule.rule())}, and the dataset was split {rule_text(stated)}; to split them as "
            f"it was, leave the rule out"
        )
    if rule is not None and rule.by == "exact" and rule.key is not None:
        found.append(f"split.by: exact: {_parts_groups(rule.key)}")
    return tuple(found)
