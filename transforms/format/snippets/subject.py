"""What a program reads: a split of a dataset, and its features as programs need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from glob import escape

from ...errors import UsageError
from ..manifest.manifest import Manifest
from ..schema.schema import Feature
from ..sidecars.croissant import shard_globs
from ..wording.printable import printable


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
