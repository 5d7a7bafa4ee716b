"""The sections `split` and `image` of a config: how rows are divided into splits, and what is done to pictures."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from ...transforms.format.manifest.naming import is_split_name
from ...transforms.format.splits.by_row import microseconds, parse_moment
from ...transforms.format.splits.exact import MOST_EXACT_SPLITS
from ...transforms.format.splits.splitter import MOST_SPLITS
from ...transforms.format.wording.hints import Add, Set
from ...transforms.format.wording.printable import printable, quoted
from ...transforms.pictures.codec import Codec
from ...transforms.pictures.options import Preprocess, Resize, Wanted
from ...transforms.sources.registry.options import STRICT, Count
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


# The section `image`.


_LARGEST: Final = 16_383
"""The most pixels of a side: what WebP takes."""

Side: TypeAlias = Annotated[int, Field(ge=1, le=_LARGEST)]


class _Section(BaseModel):
    model_config = STRICT


class SizeConfig(_Section):
    """Two sides, in pixels."""

    width: Side
    height: Side


def _check_size(value: object) -> object:
    if isinstance(value, dict | SizeConfig):
        return value
    if type(value) is not int or not 1 <= value <= _LARGEST:
        raise ValueError(f"{quoted(value)} is no side of 1 to {_LARGEST} pixels, nor two: {{width: 320, height: 240}}")
    return value


def _as_size(value: object) -> object:
    return {"size": value} if isinstance(value, int) and not isinstance(value, bool) else value


class ResizeConfig(_Section):
    """The size that pictures get."""

    size: Annotated[int | SizeConfig, BeforeValidator(_check_size)]
    mode: Literal["keep_ratio", "keep_ratio_largest", "center_crop", "border", "exact"] = "keep_ratio"
    upscale: bool = False

    @model_validator(mode="after")
    def _one_side_where_ratios_stay(self) -> ResizeConfig:
        if self.mode == "keep_ratio" and isinstance(self.size, SizeConfig):
            raise ValueError(
                "mode: keep_ratio takes one number, the length of the shorter side; give that (size: 256), or choose "
                "center_crop, border, keep_ratio_largest or exact"
            )
        return self


class EncodeConfig(_Section):
    """The format of the files that are written."""

    format: Literal["keep", "jpeg", "png", "webp"] = "keep"
    quality: Annotated[int, Field(ge=1, le=100)] = 95


class FilterConfig(_Section):
    """Which pictures stay, by the sizes in their headers."""

    min_side: Count | None = None
    max_aspect: Annotated[float, Field(ge=1)] | None = None
    min_pixels: Count | None = None
    max_pixels: Count | None = None


class ImageConfig(_Section):
    """What is done to each picture."""

    resize: Annotated[
        ResizeConfig | None, BeforeValidator(_as_size, json_schema_input_type=int | ResizeConfig | None)
    ] = None
    encode: EncodeConfig = EncodeConfig()
    orientation: Literal["keep", "apply"] = "keep"
    color: Literal["keep", "rgb", "gray"] = "keep"
    filter: FilterConfig = FilterConfig()
    masks: list[str] = []
    boxes_on: Literal["stored", "turned"] | None = None

    @model_validator(mode="after")
    def _keys_agree(self) -> ImageConfig:
        if self.encode.format == "webp" and self.color == "gray":
            raise ValueError("WebP has no gray; choose encode: {format: jpeg} or png, or leave color out")
        if self.boxes_on == "turned" and self.orientation == "keep":
            raise ValueError(
                "boxes_on: turned is for pictures that are turned; add orientation: apply, or leave it out"
            )
        return self

    def options(self) -> Preprocess:
        resize = None
        if self.resize is not None:
            size = self.resize.size
            sides = (size.width, size.height) if isinstance(size, SizeConfig) else (size, size)
            resize = Resize(*sides, self.resize.mode, self.resize.upscale)
        return Preprocess(
            resize,
            self.encode.format,
            self.encode.quality,
            self.orientation,
            self.color,
            Wanted(**self.filter.model_dump()),
            tuple(self.masks),
            self.boxes_on,
        )

    def stated(self) -> dict[str, Any]:
        """Return the codec that changes pictures, as the manifest states it; nothing where they stay as they are."""
        return Codec.installed().to_json() if self.options().changes_pictures else {}


def image_shown(steps: Mapping[str, Any]) -> str:
    """Return steps as they are stated.

    >>> image_shown({"resize": 256, "mode": "keep_ratio"}), image_shown({})
    ('written with resize 256, mode keep_ratio', 'written as they are')
    """
    return f"written with {steps_text(steps)}" if steps else "written as they are"


def image_text(section: Mapping[str, Any], codec: Mapping[str, str]) -> str:
    """Return what was done to the pictures of a dataset, for the screen, by the section `image` of its conversion.

    >>> image_text({"resize": {"size": 256}}, {"codec": "simplejpeg, pillow", "version": "1.9.0, 12.3.0"})
    'resize 256, mode keep_ratio, quality 95; by simplejpeg 1.9.0, pillow 12.3.0'
    """
    by = zip(codec.get("codec", "").split(", "), codec.get("version", "").split(", "), strict=False)
    text = steps_text(ImageConfig.model_validate(section).options().to_json())
    return f"{text}; by {', '.join(map(' '.join, by))}" if codec else text


def steps_text(steps: Mapping[str, Any]) -> str:
    """Return the steps of a manifest, for the screen.

    >>> steps_text({"resize": 256, "upscale": True})
    'resize 256, upscale true'
    """
    return ", ".join(
        f"{key} {str(value).lower() if isinstance(value, bool) else value}" for key, value in steps.items()
    )
