"""Choose the columns of archives: members and fields of JSON, their types, and what folders mean."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

import pyarrow as pa

from ...errors import SchemaError, SourceError, UsageError
from ...format.batches.rejects import NEW_DATASET
from ...format.schema.arrow_types import feature_of
from ...format.schema.schema import Choice, ColumnRule, Feature, Schema
from ...format.sidecars.tfds import labels_file_name
from ...format.wording.hints import Foreign, Set
from ...format.wording.printable import counted, printable
from ...inputs.files.file_names import suffixes_of
from ...recipe.steps.label import MOST_CLASSES, in_order_of_numbers
from ...recognise.evidence.names import is_split_folder, split_of_folder
from ...recognise.pictures.layout import Layout, Meaning
from ..images.pieces import LABEL
from ..jsonl.columns import MOST_ODD, Evidence, JsonFrozen, PieceEvidence, choose_columns, key_fields, known_columns
from .samples import CLASS, KEY, Form
from .survey import ArchiveEvidence, ColumnEvidence

CLASS_TEXT: Final = "image/class/text"
PICTURE: Final = pa.struct([("bytes", pa.binary()), pa.field("path", pa.string(), nullable=False)])


_NUMBER: Final = re.compile("[0-9]+")
MOST_VIEWS: Final = 16
_TABLES: Final = tuple(
    suffix for kind in ("csv", "parquet", "jsonl", "arrow", "tfrecord") for suffix in suffixes_of(kind)
)


@dataclass(frozen=True, slots=True)
class ArchiveFrozen(JsonFrozen):
    """What all tasks share: `members` are the columns of members that are read, with what becomes of their bytes.

    Folders mean what `layout` says, below the folder `root`. With `bare_json` there is JSON without a field, which is
    read all the same, as it may be damaged.
    """

    members: tuple[tuple[str, Form], ...] = field(default=(), kw_only=True)
    layout: Layout = field(default="flat", kw_only=True)
    root: bytes = field(default=b"", kw_only=True)
    bare_json: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Found:
    """What all archives show together."""

    samples: int
    columns: dict[str, ColumnEvidence]
    json: PieceEvidence
    folders: set[bytes] | None

    @classmethod
    def of(cls, archives: Sequence[ArchiveEvidence]) -> Found:
        columns: dict[str, ColumnEvidence] = {}
        for one in archives:
            for name, more in one.columns.items():
                columns[name] = columns[name].plus(more) if name in columns else more
        folders: set[bytes] | None = set()
        for one in archives:
            folders = None if folders is None or one.folders is None else folders | one.folders
        json = reduce(PieceEvidence.plus, (one.json for one in archives), PieceEvidence())
        return cls(sum(one.samples for one in archives), columns, json, folders)

    @property
    def evidence(self) -> dict[str, Evidence]:
        """The evidence of the columns whose values are text: the fields of JSON, and members of text."""
        own = {name: one.values for name, one in self.columns.items() if one.form in (Form.TEXT, Form.VALUE)}
        return {**self.json.columns, **own}

    @property
    def pictures_alone(self) -> bool:
        return all(one.form is Form.PICTURE for one in self.columns.values())

    @property
    def pictures(self) -> tuple[str, ...]:
        return tuple(name for name, one in self.columns.items() if one.form is Form.PICTURE)


def check_names(found: Found) -> None:
    """Raise `SchemaError` for columns of one name: a field of JSON and a member, or pictures called by their suffix."""
    for name in found.json.columns:
        one = found.columns.get(name)
        if name == KEY or (one is not None and one.form is not Form.JSON):
            taken = "the key of each sample" if one is None else f'members ".{one.suffix}"'
            fix = "" if one is None else f", or leave those members out: {Set('input.ignore', [f'*.{one.suffix}'])}"
            raise SchemaError(
                f'column "{printable(name)}" is a field of the .json members, and {taken} would be called so too; keep '
                f"the text of JSON as one column: {Set('input.json', 'text')}{fix}"
            )


def _tables(found: Found) -> Iterator[ColumnEvidence]:
    return (one for one in found.columns.values() if f".{one.suffix}".endswith(_TABLES))


def table_beside(found: Found) -> str:
    """Return the suffix of tables that are few, or in no sample with a picture; empty without such, or pictures."""
    pictures = sum(found.columns[name].count for name in found.pictures)
    tables = _tables(found) if pictures else ()
    return next(
        (one.suffix for one in tables if 2 * one.count <= pictures or one.count + pictures <= found.samples), ""
    )


def check_kind(found: Found, name: str, unpack: Foreign) -> None:
    """Raise `SourceError` for archives of tables; `unpack` is the command for the archive `name`."""
    table = next((one.suffix for one in _tables(found)), None)
    if table is not None and not found.pictures:
        raise SourceError(name, f"holds .{table} files, which are not read within archives; unpack it first: {unpack}")


def check_numbers(found: Found, name: str) -> None:
    """Refuse kinds of members that differ in a number only, such as frames of a film; `name` is an archive.

    A number alone between dots is a part of a name. Views of a sample may have one: cam0.jpg, cam1.jpg.
    """
    kinds: dict[str, list[str]] = {}
    for one in found.columns.values():
        kinds.setdefault(_NUMBER.sub("#", one.suffix), []).append(one.suffix)
    for alike, suffixes in kinds.items():
        if len(suffixes) > (1 if "#" in alike.split(".") else MOST_VIEWS):
            shown = " and ".join(f'".{printable(one)}"' for one in sorted(suffixes)[:2])
            raise SchemaError(
                f"{name}: {len(suffixes)} kinds of members differ in a number only, such as {shown}; if the number is "
                f"a part of the name: {Set('input.key', 'last_dot')}; if each number is a feature of one sample: "
                f"{Set('input.key', 'first_dot')}"
            )


@dataclass(frozen=True, slots=True)
class Folders:
    """What the folders in archives mean: their layout below a `root`, the classes and splits that they name."""

    layout: Layout
    root: bytes
    classes: tuple[str, ...]
    splits: tuple[str, ...]
    why: str

    @classmethod
    def of(cls, found: Found, layout: str, *, splits: bool = True, numeric: bool = False) -> Folders:
        """Return what folders mean; with `auto` they are classes only where nothing beside pictures says classes.

        Without `splits` no folder is one.
        """
        if not found.pictures or layout == "flat":
            return cls("flat", b"", (), (), "")
        if layout == "auto" and not found.pictures_alone:
            beside = next(one.suffix for one in found.columns.values() if one.form is not Form.PICTURE)
            why = f"folders are no classes, since .{beside} members are beside pictures"
            root = _root_of(found.folders or ())
            tops = {folder[len(root) :].partition(b"/")[0] for folder in found.folders or ()}
            if not splits or not tops or not all(map(is_split_folder, tops)):
                return cls("flat", b"", (), (), why)
            return cls("split", root, (), Meaning.of(sorted(tops), "split").splits, why)
        if found.folders is None:
            raise UsageError(
                "it is unclear what the folders mean: more than 100,000 folders in an archive; "
                f"{Set('input.layout', 'flat')}"
            )
        root = _root_of(found.folders)
        meaning = Meaning.of(sorted(folder[len(root) :] for folder in found.folders), layout, splits=splits)
        classes = in_order_of_numbers(meaning.classes, "input.labels") if numeric else meaning.classes
        return cls(meaning.layout, root, tuple(classes), meaning.splits, "")

    @property
    def labelled(self) -> bool:
        return "label" in self.layout

    def splits_in(self, folders: Iterable[bytes]) -> set[str]:
        tops = {os.fsdecode(folder[len(self.root) :].partition(b"/")[0]) for folder in folders}
        return {split for top in tops if (split := split_of_folder(top))}


def _root_of(folders: Iterable[bytes]) -> bytes:
    """Return the folder that holds all others and says nothing of pictures, with its slash: archives often have one.

    >>> _root_of([b"pets/cat", b"pets/dog"]), _root_of([b"train/cat"]), _root_of([b"cat"])
    (b'pets/', b'', b'')
    """
    root, below = b"", list(folders)
    while below and all(b"/" in folder for folder in below):
        top = below[0].partition(b"/")[0]
        if is_split_folder(top) or any(folder.partition(b"/")[0] != top for folder in below):
            break
        root, below = root + top + b"/", [folder[len(top) + 1 :] for folder in below]
    return root


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the config says of columns: which are read, declared types, and what a dataset has."""

    pick: Callable[[Sequence[str]], list[str]]
    rules: Mapping[str, ColumnRule]
    infer: str
    nested: Mapping[str, pa.Field]
    labels: Mapping[str, tuple[str, ...]] | None = None
    numbers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Columns:
    """What is read: what tasks share, the Arrow fields of batches, and the reasons."""

    frozen: ArchiveFrozen
    fields: tuple[pa.Field, ...]
    choices: tuple[Choice, ...]


def columns_of(found: Found, folders: Folders, wanted: Wanted, name: str) -> Columns:
    """Return the columns that are read; `name` is that of the first archive."""
    check_names(found)
    texts = found.evidence
    rules = {one: rule for one, rule in wanted.rules.items() if one not in found.columns or one in texts}
    _refuse_types(found, wanted, wanted.rules.keys() - rules.keys())
    if texts or rules:
        texts = known_columns(texts, rules, whole=True, name=name)
    named = _names(found, folders, texts)
    _refuse_twins(named, found)
    kept = wanted.pick(named)
    chosen = choose_columns(
        texts, [one for one in kept if one in texts], rules, rows=found.samples, infer=wanted.infer, whole=True,
        name=name, known=wanted.nested, most_odd=MOST_ODD,
    )  # fmt: skip
    features, fields, choices = list(chosen.features), list(chosen.fields), list(chosen.choices)
    labels: dict[str, tuple[str, ...]] = {}
    if CLASS in kept and (names := _class_numbers(found.columns.get(CLASS), wanted)):
        _as_label(features, choices, names, found)
        labels[CLASS] = names
    for column in kept:
        if column not in texts:
            more = _other(column, found, folders)
            fields.append(more)
            features += [] if pa.types.is_struct(more.type) else [_feature(more, folders, choices, found)]
    if LABEL in kept:
        known = (wanted.labels or {}).get(LABEL, ())
        labels[LABEL] = known + tuple(one for one in folders.classes if one not in known)
    members = tuple((one, found.columns[one].form) for one in kept if one in found.columns)
    schema = Schema(tuple(sorted(features, key=lambda feature: feature.name)))
    frozen = ArchiveFrozen(
        schema, splits=folders.splits, labels=labels, keys=key_fields(texts), kept=len(chosen.fields), ignores=True,
        empty=tuple(one for one, evidence in texts.items() if not evidence.values), nested=chosen.nested,
        members=members, layout=folders.layout, root=folders.root,
        bare_json=not found.json.columns and any(one.form is Form.JSON for one in found.columns.values()),
    )  # fmt: skip
    order = {one: number for number, one in enumerate(kept)}
    fields.sort(key=lambda one: order[one.name])
    return Columns(frozen, tuple(fields), tuple(choices))


def _refuse_types(found: Found, wanted: Wanted, bytes_of_members: Iterable[str]) -> None:
    for column in bytes_of_members:
        if wanted.rules[column].type is not None:
            what = f"holds the bytes of .{found.columns[column].suffix} members"
            raise SchemaError(f'column "{printable(column)}" {what}, which have no type; leave the type out')


def _names(found: Found, folders: Folders, texts: Iterable[str]) -> list[str]:
    named = [*(one for one, is_ in found.columns.items() if is_.form is not Form.JSON)]
    named += [one for one in texts if one not in found.columns or found.columns[one].form is Form.JSON]
    named += [] if found.pictures_alone else [KEY]
    return [*named, LABEL, CLASS_TEXT] if folders.labelled else named


def _refuse_twins(names: Sequence[str], found: Found) -> None:
    """Raise `SchemaError` where a column has the name of the key of each sample, or of one that folders give."""
    twin = next((name for name, count in Counter(names).items() if count > 1), None)
    if twin is not None:
        leave = f"leave those members out: {Set('input.ignore', [f'*.{twin}'])}"
        fix = leave if twin in found.columns else f"keep the text of JSON as one column: {Set('input.json', 'text')}"
        raise SchemaError(f'two columns would be named "{printable(twin)}"; {fix}')


def _class_numbers(one: ColumnEvidence | None, wanted: Wanted) -> tuple[str, ...]:
    if one is None or CLASS in wanted.rules or wanted.infer == "none" or CLASS in wanted.numbers:
        return ()
    known = () if wanted.labels is None else wanted.labels.get(CLASS, ())
    if one.form is not Form.VALUE or one.values.type != pa.int64() or one.values.mixed is not None:
        return ()
    if not known and (one.least < 0 or one.most >= MOST_CLASSES):
        return ()
    if known and one.most >= len(known) and any(name != str(i) for i, name in enumerate(known)):
        raise SchemaError(
            f'column "{CLASS}": there is a class {one.most}, and the dataset has {len(known)} classes with names; '
            f"convert all archives to a new dataset ({NEW_DATASET})"
        )
    return known + tuple(str(number) for number in range(len(known), min(one.most + 1, MOST_CLASSES)))


def _as_label(features: list[Feature], choices: list[Choice], names: Sequence[str], found: Found) -> None:
    index = next(i for i, one in enumerate(features) if one.name == CLASS)
    old = features[index]
    features[index] = Feature(CLASS, "int64", "label", nullable=old.nullable, labels=labels_file_name(CLASS))
    index = next(i for i, one in enumerate(choices) if one.column == CLASS)
    nulls = found.samples - found.columns[CLASS].count
    reason = f"{counted(len(names), 'class')}, the numbers of .cls members"
    choices[index] = Choice(CLASS, "label", reason, nulls)


def _other(column: str, found: Found, folders: Folders) -> pa.Field:
    if column in found.columns:
        one = found.columns[column]
        kind = PICTURE if one.form is Form.PICTURE else pa.binary()
        return pa.field(column, kind, one.count < found.samples)
    kind = pa.int64() if folders.labelled and column == LABEL else pa.string()
    return pa.field(column, kind, nullable=False)


def _feature(one: pa.Field, folders: Folders, choices: list[Choice], found: Found) -> Feature:
    if one.name == LABEL:
        classes = "1 class" if len(folders.classes) == 1 else f"{len(folders.classes)} classes"
        choices.append(Choice(LABEL, "label", f"layout {folders.layout}, from the names of folders: {classes}"))
        return Feature(LABEL, "int64", "label", labels=labels_file_name(LABEL))
    feature, _ = feature_of(one, ColumnRule())
    nulls = found.samples - found.columns[one.name].count if one.name in found.columns else 0
    why = {KEY: "the key of each sample", CLASS_TEXT: "from the names of folders"}.get(one.name)
    if why is None:
        why = f"the bytes of .{found.columns[one.name].suffix} members"
    choices.append(Choice(one.name, feature.type, why, nulls))
    return feature
