"""The section `split`: how rows are cut into splits."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from ...transforms.format.manifest.naming import is_split_name
from ...transforms.format.splits.by_time import microseconds, parse_moment
from ...transforms.format.splits.exact import MOST_EXACT_SPLITS
from ...transforms.format.splits.splitter import MOST_SPLITS
from ...transforms.format.wording.hints import Add, Set
from ...transforms.format.wording.printable import printable, quoted
from ...transforms.sources.registry.options import STRICT
from ...transforms.sources.registry.options import SplitName as SplitName

_WAYS: Final = {
    "fractions": "fractions: {train: 0.9, val: 0.1}",
    "folds": "folds: 5",
    "column": "column: NAME",
    "before": "before: {column: NAME, train: 2024-01-01, rest: val}",
}
_OPTIONS: Final = {
    "fractions": f"{Add('--split-fractions', 'train=0.9,val=0.1')}",
    "folds": f"{Set('split.folds', 5)}",
    "column": f"{Set('split.column', 'NAME')}",
}
"""The same as options, but for the longest."""

_SHARES: Final = ("fractions", "folds")
"""The ways that go with a key, `by` and `stratify`."""

_COLUMN: Final = "column"
_REST: Final = "rest"


def _check_names(value: object) -> object:
    if not isinstance(value, dict):
        return value
    if not value:
        raise ValueError('is empty; name at least one value, like {"0": train}')
    if len(set(map(str, value.values()))) > MOST_SPLITS:
        raise ValueError(f"names more than {MOST_SPLITS} splits")
    return {str(key): split for key, split in value.items()}  # a number is the text that it is


def _check_before(value: object) -> object:
    """Return the column, the bound of each split as text, and the rest."""
    if not isinstance(value, dict):
        return value
    stated = {str(key): one.isoformat() if isinstance(one, dt.date) else one for key, one in value.items()}
    if not isinstance(stated.get(_COLUMN), str):
        raise ValueError("names no column; give one: {column: day, train: 2024-01-01, rest: val}")
    bounds = [(name, text) for name, text in stated.items() if name not in (_COLUMN, _REST)]
    splits = [*(name for name, _ in bounds), *([stated[_REST]] if _REST in stated else [])]
    for name in splits:
        if not isinstance(name, str) or not is_split_name(name):
            raise ValueError(f"{quoted(name)} cannot name a split: lowercase letters, digits and _")
    if not bounds or len(splits) > MOST_SPLITS:
        raise ValueError(f"needs a bound, like train: 2024-01-01, and names at most {MOST_SPLITS} splits")
    moments = [(name, text, _moment(name, text)) for name, text in bounds]
    for (one, before, first), (other, after, second) in pairwise(moments):
        if first >= second:
            raise ValueError(
                f"{printable(other)} ends at {after}, which is not after {before}, where {printable(one)} ends; give "
                "bounds in their order"
            )
    return stated


def _moment(name: str, text: object) -> int:
    try:
        return microseconds(parse_moment(text if isinstance(text, str) else ""))
    except ValueError:
        raise ValueError(
            f"{printable(name)}: {quoted(text)} is no date or time, like 2024-01-31 or 2024-01-31T12:00:00"
        ) from None


class Disagreement(ValueError):
    """A key does not go with others, or not alone.

    `says` has a place for the name of each of the `others`: their keys, or options where they were typed. `typed` is
    what to say instead where the key was an option.
    """

    def __init__(self, key: str, says: str, *others: str, typed: str | None = None) -> None:
        super().__init__(f"{key}: {says.format(*others)}")
        self.key, self.others = key, others
        self.says, self.typed = says, typed or says


def _no_way(key: str, *ways: str) -> Disagreement:
    keys = " or ".join(_WAYS[way] for way in ways).replace("{", "{{").replace("}", "}}")
    options = " or ".join(_OPTIONS[way] for way in ways)
    return Disagreement(key, f"says no splits; add {keys}", typed=f"says no splits; add {options}")


class SplitConfig(BaseModel):
    """How rows are cut: in fractions or folds, by the values of a column, or by time."""

    model_config = STRICT

    fractions: dict[SplitName, Annotated[float, Field(gt=0, le=1)]] | None = None
    key: str | None = None
    by: Literal["hash", "exact"] = "hash"
    stratify: str | None = None
    folds: Annotated[int, Field(ge=2, le=MOST_SPLITS)] | None = None
    of: SplitName | None = None
    column: str | None = None
    names: Annotated[dict[str, SplitName] | None, BeforeValidator(_check_names)] = None
    before: Annotated[dict[str, str] | None, BeforeValidator(_check_before)] = None

    @model_validator(mode="after")
    def _fractions_are_whole(self) -> SplitConfig:
        if self.fractions is None:
            return self
        total = sum(Fraction(repr(share)) for share in self.fractions.values())  # as the decimals that were written
        if not self.fractions:
            raise ValueError("fractions: name at least one split, like {train: 0.9, val: 0.1}")
        if len(self.fractions) > MOST_SPLITS:
            raise ValueError(f"fractions: {len(self.fractions)} splits are more than {MOST_SPLITS}")
        if total != 1:
            raise ValueError(f"fractions: they add up to {float(total)}, and must add up to 1")
        return self

    @model_validator(mode="after")
    def _keys_agree(self) -> SplitConfig:
        ways = [name for name in _WAYS if getattr(self, name) is not None]
        if self.names is not None and self.column is None:
            raise _no_way("names", "column")
        given = [name for name in ("key", "stratify", "by") if name in self.model_fields_set and getattr(self, name)]
        if not ways and (given or self.of is not None):
            raise _no_way(given[0] if given else "of", *_SHARES)
        if not ways:
            raise ValueError(f"says no splits; give one of {', '.join(_WAYS.values())}")
        if len(ways) > 1:
            raise Disagreement(ways[0], "does not go with {}; leave one out", ways[1])
        for name in given:
            if ways[0] not in _SHARES and (name != "by" or self.by == "exact"):
                raise Disagreement(name, "does not go with {}; leave it out", ways[0])
        if self.stratify is not None and self.by == "hash":
            fix = "does not go with by: hash, which counts nothing; set by: exact"
            raise Disagreement("stratify", fix, typed=f"needs splits that are counted; add {Set('split.by', 'exact')}")
        if self.stratify is not None and self.key is not None:
            why = "does not go with {}: a group may have rows of several classes; leave one out"
            raise Disagreement("stratify", why, "key")
        if self.by == "exact" and self.key is not None and len(self.shares()) > MOST_EXACT_SPLITS:
            raise ValueError(f"by: exact with a key makes at most {MOST_EXACT_SPLITS} splits")
        return self

    @property
    def options(self) -> str:
        parts = ",".join(f"{name}={share}" for name, share in (self.fractions or {}).items())
        shares = Add("--split-fractions", parts) if parts else Set("split.folds", self.folds)
        return str(Add(shares, Set("split.by", self.by), "--split-key", self.key or ""))

    @property
    def follows_source(self) -> bool:
        """Whether the records of a split can follow the source throughout: exact splits deal some of them last."""
        return self.by != "exact"

    @property
    def looked_at(self) -> tuple[str, ...]:
        """The columns that decide the split of a row."""
        before = None if self.before is None else self.before[_COLUMN]
        return tuple(name for name in (self.column, before, self.key, self.stratify) if name is not None)

    @property
    def named(self) -> tuple[str, ...]:
        """The splits that the config names; the values of a column without `names` may be others."""
        before = [name for name in self.before or {} if name not in (_COLUMN, _REST)]
        rest = [self.before[_REST]] if self.before and _REST in self.before else []
        return tuple(dict.fromkeys([*self.shares(), *(self.names or {}).values(), *before, *rest]))

    def shares(self) -> dict[str, Fraction]:
        if self.folds is not None:
            return {f"fold_{number}": Fraction(1, self.folds) for number in range(self.folds)}
        return {name: Fraction(repr(share)) for name, share in (self.fractions or {}).items()}

    @property
    def stated(self) -> dict[str, Any]:
        """What a manifest states, with the defaults that a text of it needs."""
        return self.model_dump(mode="json", exclude_none=True)
