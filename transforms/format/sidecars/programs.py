"""Fill in the programs that `snippet` prints, a template for each reader, from the manifest of a dataset."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from typing import Any, Final

from ...errors import UsageError
from ..columns.keys import FLAT_VALUES, ROW_LENGTHS
from ..manifest.manifest import Manifest
from ..manifest.naming import index_path
from ..schema.schema import Feature
from ..wording.hints import Command, Set
from ..wording.printable import printable, printable_path
from .sidecar_files import CROISSANT, classes_of, shard_globs


@dataclass(frozen=True, slots=True)
class Subject:
    """A split of the dataset at `path`; `decoded` are the features with pictures that TensorFlow decodes."""

    path: str
    manifest: Manifest
    split: str
    decoded: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: str, manifest: Manifest, split: str | None, decoded: Sequence[str] = ()) -> Subject:
        """Choose a split, by default `train` or the first one; raises `UsageError` where there is nothing to read."""
        where, known = printable(path), ", ".join(manifest.splits) or "none"
        if manifest.schema is None:
            raise UsageError(f"{where}: its records are plain bytes without a schema, which no program can take apart")
        if split is not None and split not in manifest.splits:
            raise UsageError(f"{where}: no split {printable(split)}; it has: {known}")
        if not manifest.splits:
            raise UsageError(f"{where}: holds no record; append some first")
        chosen = split or ("train" if "train" in manifest.splits else next(iter(manifest.splits)))
        return cls(path, manifest, chosen, tuple(decoded))

    @property
    def records(self) -> int:
        return self.manifest.splits[self.split].records

    @property
    def features(self) -> tuple[Feature, ...]:
        assert self.manifest.schema is not None  # `of` refuses plain bytes
        return self.manifest.schema.features

    @property
    def gzip(self) -> bool:
        return self.manifest.compression == "gzip"

    @property
    def folder_glob(self) -> str:
        """The glob that matches the folder alone, for Python's `glob` and for TensorFlow."""
        return escape(self.path.rstrip("/"))

    @property
    def globs(self) -> list[str]:
        return [f"{self.folder_glob}/{name}" for name in self.names]

    @property
    def names(self) -> list[str]:
        splits = self.manifest.splits
        others = [shard.path for name, split in splits.items() if name != self.split for shard in split.shards]
        return shard_globs([shard.path for shard in splits[self.split].shards], others)

    @property
    def pictures(self) -> tuple[Feature, ...]:
        return tuple(one for one in self.features if one.type == "image" and one.shape == () and not one.nullable)

    @property
    def label(self) -> Feature | None:
        return next((one for one in self.features if one.name in self.manifest.labels and one.shape == ()), None)

    @property
    def numbers(self) -> tuple[Feature, ...]:
        """The features that are as many numbers in every record."""
        plain = [one for one in self.features if one.kind != "bytes" and -1 not in one.shape]
        stems = [one.name.rpartition("/")[0] for one in self.pictures]
        about = {f"{stem}/{what}" for stem in stems for what in ("height", "width", "channels")}
        return tuple(one for one in plain if one.name not in about and one.type != "array_shape")


# The programs, each a template named after its reader; a new one is a template, a line in `READERS`, and a test.


_DTYPES: Final = {"int64": "tf.int64", "float": "tf.float32", "bytes": "tf.string"}


def program(reader: str, subject: Subject) -> str:
    """Return the program of a reader, one of `READERS`.

    Raises:
        UsageError: it does not read this dataset, or there is nothing to train on.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - programs, not HTML
        trim_blocks=True, keep_trailing_newline=True, loader=PackageLoader(__package__, ""), undefined=StrictUndefined
    )
    environment.filters |= {"quoted": quoted, "dali_spec": _dali_spec}
    values_of = READERS[reader]
    values = values_of(subject) if values_of is not None else {}
    return environment.get_template(f"{reader}.jinja").render(subject=subject, globbed=_globbed, **values)


def quoted(text: str) -> str:
    r"""Return a text as a literal of Python.

    >>> print(quoted('a "b"'))
    "a \"b\""
    """
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _globbed(globs: Sequence[str]) -> str:
    return " + ".join(f"glob({quoted(one)})" for one in globs)


def _tf(subject: Subject, shown: Iterable[Feature] | None = None, unknown: Feature | None = None) -> dict[str, Any]:
    """Return what programs with TensorFlow need; they parse the features `shown`, of which `unknown` is -1 for none."""
    globs = [quoted(one) for one in subject.globs]
    features = _feature_lines(subject.features if shown is None else list(shown), unknown)
    return {"globs": globs[0] if len(globs) == 1 else f"[{', '.join(globs)}]", "features": features}


def _keras(subject: Subject) -> dict[str, Any]:
    """Return what is trained: a small model of the first picture, or of all numbers."""
    picture = next((one for one in subject.pictures if one.name in subject.decoded), None)
    numbers = [one for one in subject.numbers if one != subject.label]
    scalars = [one for one in numbers if one.shape == ()]
    always = [one for one in scalars if not one.nullable] or scalars
    target = subject.label or (always[-1] if always else None)
    inputs = [picture] if picture is not None else [one for one in numbers if one != target]
    if target is None or not inputs:
        raise UsageError(f"{printable_path(subject.path)}: {_nothing_to_learn(subject)}")
    classes = len(subject.manifest.labels.get(target.name, ()))
    sizes = {one.name: math.prod(one.shape) for one in inputs}
    parsed = _tf(subject, [*inputs, target], target if classes else None)
    return {**parsed, "picture": picture, "sizes": sizes, "target": target, "classes": classes}


def _nothing_to_learn(subject: Subject) -> str:
    if subject.pictures and not subject.decoded:
        return (
            f"TensorFlow does not decode {printable(subject.pictures[0].name)}, as some pictures are WebP, or GIF "
            f"beside others; convert them again with {Set('image.encode.format', 'jpeg')}"
        )
    return (
        "Keras needs numbers or pictures to learn from, and a label or a number to predict; make one of a column: "
        f"{Set('schema.columns.NAME.label', True)}"
    )


def _tfds(subject: Subject) -> Mapping[str, Any]:
    if "dataset_info.json" not in subject.manifest.sidecars:
        why = "compressed datasets have none, nor do those whose output.sidecars lack tfds"
        if subject.manifest.details.adopted and not subject.gzip:
            why = "files that were adopted have none where their names are not those that TFDS takes"
        rebuilt = "rebuild", subject.path, "-o", "out/for-tfds", "--compression", "none"
        raise UsageError(
            f"{printable_path(subject.path)}: has no dataset_info.json, by which TFDS opens a folder; {why}: "
            f"{Command(*rebuilt, Set('output.sidecars', '[tfds, tfx]'))}"
        )
    return {}


def _dali(subject: Subject) -> Mapping[str, Any]:
    if subject.gzip:
        raise UsageError(
            f"{printable_path(subject.path)}: DALI reads no compressed shards; rebuild it: "
            f"{Command('rebuild', subject.path, '-o', 'out/for-dali', '--compression', 'none')}"
        )
    read = [one for one in subject.features if not one.nullable and (one.kind != "bytes" or one.shape == ())]
    if not read:
        raise UsageError(
            f"{printable(subject.path)}: every feature may be absent or is a list of text, neither of which DALI reads"
        )
    left = [one for one in subject.features if one not in read]
    indexes = [f"{subject.folder_glob}/{index_path(glob, 'text')}" for glob in subject.names]
    return {"read": read, "left": left, "indexes": indexes}


def _dali_spec(feature: Feature) -> str:
    kind, zero = {"int64": ("int64", "0"), "float": ("float32", "0.0"), "bytes": ("string", '""')}[feature.kind]
    if -1 in feature.shape:
        return f"tfrec.VarLenFeature(tfrec.{kind}, {zero})"
    shape = [] if feature.kind == "bytes" else [math.prod(feature.shape)]
    return f"tfrec.FixedLenFeature({shape}, tfrec.{kind}, {zero})"


def _croissant(subject: Subject) -> Mapping[str, Any]:
    """Return the names in `croissant.json`: mlcroissant reads what it says of a dataset, and no TFRecord."""
    path = f"{subject.path.rstrip('/')}/{CROISSANT}"
    return {"croissant": path, "class_sets": [classes_of(name) for name in subject.manifest.labels if name]}


def _feature_lines(features: Sequence[Feature], unknown: Feature | None) -> list[str]:
    """Return the lines that say how an Example is parsed; lists of lists are one ragged feature."""
    names = {feature.name for feature in features}
    lines = []
    for feature in features:
        base, _, last = feature.name.rpartition("/")
        if last == FLAT_VALUES:
            rows = [f"{base}/{ROW_LENGTHS}{level}" for level in range(len(names))]
            parts = ", ".join(f"tf.io.RaggedFeature.RowLengths({quoted(row)})" for row in rows if row in names)
            dtype = _DTYPES[feature.kind]
            spec = f"tf.io.RaggedFeature({dtype}, {quoted(feature.name)}, [{parts}], row_splits_dtype=tf.int64)"
            lines.append(f"{quoted(base)}: {spec},")
        elif not last.startswith(ROW_LENGTHS):
            lines.append(f"{quoted(feature.name)}: {_spec(feature, is_unknown=feature == unknown)},{_note(feature)}")
    return lines


def _spec(feature: Feature, *, is_unknown: bool) -> str:
    dtype = _DTYPES[feature.kind]
    if -1 in feature.shape:
        return f"tf.io.RaggedFeature({dtype}, row_splits_dtype=tf.int64)"
    zero = "-1" if is_unknown else {"int64": "0", "float": "0.0", "bytes": '""'}[feature.kind]
    default = zero if feature.shape == () else f"tf.fill({list(feature.shape)}, tf.constant({zero}, {dtype}))"
    return f"tf.io.FixedLenFeature({list(feature.shape)}, {dtype}{f', {default}' if feature.nullable else ''})"


def _note(feature: Feature) -> str:
    what = feature.type if feature.type not in ("int64", "float32", "string", "binary") else ""
    if feature.unit is not None:
        what = f"{what} in {feature.unit}"
    if feature.dtype is not None:
        what = f"raw {feature.dtype}: tf.io.decode_raw"
    notes = [one for one in (what, "may be absent" if feature.nullable and -1 not in feature.shape else "") if one]
    return f"  # {', '.join(notes)}" if notes else ""


READERS: Final[dict[str, Callable[[Subject], Mapping[str, Any]] | None]] = {
    "tf": _tf,
    "keras": _keras,
    "tfds": _tfds,
    "torch": None,
    "grain": None,
    "dali": _dali,
    "tfrecord": None,
    "mlcroissant": _croissant,
}
"""By the name of a reader, how to get the values that its template takes beside the subject."""
