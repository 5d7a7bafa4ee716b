"""Archives as a source: a row for each sample, in the order of members.

list_files   the archives
survey       headers and text of each archive, in parallel: types, and cuts between samples
read         members from cut to cut; what is no row is a reject, as is the rest of a damaged archive
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa

from ...errors import SourceError
from ...format.batches.rejects import CellError, Place, Reject
from ...format.batches.rows import Rows
from ...format.schema.schema import Feature, Schema
from ...format.wording.hints import Foreign, Set, set_column
from ...format.wording.printable import counted, first_names, printable, printable_path
from ...inputs.contract.selection import typed_path
from ...inputs.contract.source import (
    DatasetSchema,
    Frozen,
    Listing,
    ParallelMap,
    Piece,
    SourceEntry,
    Survey,
    Task,
    Traits,
    refuse_others,
)
from ...inputs.files.open_file import files_of, is_object
from ...limits.turns import ROW_BYTES, Turn
from ...recipe.steps.label import numbers_note
from ...recognise.beside.files import is_archive
from ...recognise.evidence.names import split_in_words
from ...recognise.pictures.layout import class_warnings
from ...recognise.splits.find import refuse_other_splits, refuse_splits_inside
from ..images.pieces import LABEL
from ..jsonl.columns import cast_schema, field_of, nested_columns, parser_of
from ..jsonl.parse import LineParser
from ..registry.file_source import FileSource
from ..text.written import refuse_misfits
from .columns import (
    CLASS_TEXT,
    ArchiveFrozen,
    Folders,
    Found,
    Wanted,
    check_kind,
    check_numbers,
    columns_of,
    table_beside,
)
from .rows import Numbered, SampleReader
from .samples import KEY, Form, Naming, Sample, Skipped, Visit, limit_of, samples_of
from .survey import WHOLE, ArchiveEvidence, OpenArchive, Walk, look_at_archive, open_archive
from .tar import Damage, Kind, Member, MemberError

if TYPE_CHECKING:
    from ..registry.options import ArchiveInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePiece(Piece):
    """Samples whose members begin from `start` on and before `stop`, as `Archive.members` counts.

    Their bytes are from `first` to `last` in the archive. `again` has a bit for each sample, set where its key was
    there before; it is empty where all keys are new. `large` has those of samples above a limit. A piece
    with an `error` is one reject, with a code and the offset from which on nothing can be read.
    """

    start: int
    stop: int
    first: int = 0
    last: int = 0
    again: bytes = b""
    large: bytes = b""
    error: str = ""
    code: str = ""
    offset: int = 0


_PIECES: Final = 4096
"""About how many pieces archives are cut into, where these are of 1 to 64 MiB each."""
_LEAST_PIECE: Final = 1 << 20
_MOST_PIECE: Final = 64 << 20
_SYNSET: Final = re.compile("n[0-9]{8}")
"""What ImageNet names a class, and the archive of its pictures."""

_UNPACK: Final = {"tar": ("tar", "-xf"), "zip": ("unzip",)}

_APART: Final = 4
"""How many times as long as the wanted bytes a range may be that is fetched from a store: zips may be in any order."""

_BATCH_ROWS: Final = 256
_BATCH_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class ArchiveSource(FileSource):
    """Read archives of tar or zip.

    `naming` says how members are grouped. `nested`, `labels` and `numbers` are what a dataset has that is appended to.
    """

    options: ArchiveInput
    naming: Naming = field(default_factory=Naming)
    nested: dict[str, pa.Field] = field(default_factory=dict)
    labels: dict[str, tuple[str, ...]] | None = None
    numbers: frozenset[str] = frozenset()

    traits = Traits(names_pictures=False)

    paths_may_be_lists = True

    @property
    def union(self) -> bool:
        return True

    @property
    def _encoding(self) -> str | None:
        return getattr(self.options, "encoding", None)  # tar has none

    def following(self, dataset: DatasetSchema) -> Self:
        numbers = frozenset(one.name for one in dataset.schema if one.type != "label")
        return replace(self, nested=nested_columns(dataset), labels=dict(dataset.labels), numbers=numbers)

    def survey(self, listing: Listing, run: ParallelMap) -> Survey:
        piece_bytes = min(max(listing.bytes // _PIECES, _LEAST_PIECE), _MOST_PIECE)
        looks = self.options.layout == "auto" and self.settings.splits.looks
        own = (self.options.format, self.naming, piece_bytes, self.settings.limits, self.selection, self._encoding)
        archives = run(partial(look_at_archive, walk=Walk(*own, looks)), listing.entries, heavy=True)
        found = Found.of(archives)
        if looks:
            self._refuse_exports(listing.entries, archives, found)
        if not found.samples:
            raise _no_sample(listing.entries, archives)
        first = listing.entries[0].name
        check_kind(found, first, Foreign(*_UNPACK[self.options.format], first))
        if self.naming.key == "first_dot" and not self.naming.key_is_chosen:
            check_numbers(found, first)
        layout, how = self.options.layout, self.settings.splits
        by_files = how.wanted is not None and layout == "auto" and any(one.split for one in listing.entries)
        are_splits = how.wanted != "none"
        folders = Folders.of(found, layout, splits=are_splits, numeric=self.options.labels == "numeric")
        if layout == "auto":
            means = Set("input.layout", folders.layout)
            refuse_splits_inside(folders.splits, how, self.options.paths, means)
            if by_files:
                folders = replace(folders, splits=())
            elif folders.splits:
                inside = [folders.splits_in(one.folders or ()) for one in archives]
                refuse_other_splits(listing.entries, inside, how, self.options.paths, means)
        pick = self.selection.pick
        wanted = Wanted(pick, self.rules, self.settings.infer, self.nested, self.labels, self.numbers)
        columns = columns_of(found, folders, wanted, first)
        return Survey(
            columns.frozen,
            columns.choices,
            listing.pieces(archives, _pieces),
            (*_warnings(listing.entries, archives, found), *class_warnings(folders.classes, folders.layout)),
            detected=(
                *_detected(found, folders, layout),
                *_guessed(listing.entries, archives),
                *self._named_by_classes(listing.entries, found),
                *(numbers_note(folders.classes, "input.labels") if self.labels is None else ()),
            ),
            fields=columns.fields,
            rule="folders" if folders.splits and layout == "auto" else "",
        )

    def cast_to(self, survey: Survey, dataset: DatasetSchema) -> Survey:
        frozen = survey.frozen
        assert isinstance(frozen, ArchiveFrozen)
        cast = cast_schema(self.rules, frozen.schema, frozen.empty, dataset)
        refuse_others(dataset, cast, "declare the dataset's type in schema.columns, or none")
        refuse_misfits(self.read, survey, cast, dataset)
        texts = {one.name for one in _text_features(replace(frozen, schema=dataset.schema))}
        new = {one.name: field_of(one) for one in dataset.schema if one.name in texts and one.type != "label"}
        fields = [new.pop(one.name, one) for one in survey.fields]
        return replace(survey, frozen=replace(frozen, schema=dataset.schema), fields=(*fields, *new.values()))

    def read(self, task: Task, frozen: Frozen) -> Iterator[Rows]:
        """Yield about 8 MiB at a time; the rest of a damaged archive is one reject."""
        assert isinstance(frozen, ArchiveFrozen)
        kept = set(self.selection.of_some([name for name, _ in frozen.members]))
        frozen = replace(frozen, members=tuple(one for one in frozen.members if one[0] in kept))
        reader = SampleReader(frozen, self.naming, self._parser(frozen), self.settings.limits.record_bytes)
        ordinal = 0
        for pieces in files_of(task, ArchivePiece):
            entry = pieces[0].entry
            for samples in self._batches([piece for piece in pieces if not piece.error], reader):
                rows = reader.rows(samples, pieces[0].name, task.ordinal, ordinal, entry)
                del samples
                yield rows
                del rows  # what is large is freed before more is read
                ordinal += 1
            for piece in pieces:
                if piece.error:
                    yield _damaged(piece, task.ordinal, ordinal, reader)
                    ordinal += 1

    def _parser(self, frozen: ArchiveFrozen) -> LineParser | None:
        features = _text_features(frozen)
        if not features and not frozen.bare_json and not self.selection.of_some([one.name for one in frozen.nested]):
            return None
        texts = replace(frozen, schema=Schema(features))
        return parser_of(texts, self.rules, self.settings.infer, self.settings.limits.record_bytes, self.selection)

    def _batches(self, pieces: Sequence[ArchivePiece], reader: SampleReader) -> Iterator[list[Numbered]]:
        """A sample that is larger than a batch comes by itself. Raises `SourceError` as `read` does."""
        if not pieces:
            return
        batch: list[Numbered] = []
        held = 0
        with open_archive(pieces[0], self.options.format, WHOLE, self._encoding) as archive, Turn(ROW_BYTES) as turn:
            first, last = min(piece.first for piece in pieces), max(piece.last for piece in pieces)
            if last - first <= _APART * sum(piece.bytes for piece in pieces):
                archive.expect(first, last)
            for piece in pieces:
                for one in self._numbered(archive, piece, reader, turn):
                    size = sum(len(p.value) for p in one.sample.parts if isinstance(p.value, bytes | memoryview))
                    if batch and size >= _BATCH_BYTES:
                        yield _emptied(batch)
                        held = 0
                    batch.append(one)
                    del one
                    held += size
                    if len(batch) == _BATCH_ROWS or held >= _BATCH_BYTES:
                        yield _emptied(batch)
                        held = 0
        if batch:
            yield _emptied(batch)

    def _numbered(
        self, archive: OpenArchive, piece: ArchivePiece, reader: SampleReader, turn: Turn
    ) -> Iterator[Numbered]:
        """Of samples that are rejects nothing is read, and large ones take turns."""
        count, held, held_of = 0, 0, -1

        def take(member: Member) -> bytes | memoryview:
            nonlocal held, held_of
            if held_of != count:  # the sample before is freed
                held, held_of = 0, count
                turn.give_back()
            held += member.size
            turn.take(held)
            return archive.read(member)

        def visit(member: Member, suffix: bytes) -> bytes | memoryview | MemberError | None:
            is_read = not _is_marked(piece.again, count) and not _is_marked(piece.large, count)
            return self._visit(take if is_read else None, reader, member, suffix)

        for sample in _samples(archive, piece, self.naming, visit):
            again, large = _is_marked(piece.again, count), _is_marked(piece.large, count)
            count += 1
            yield Numbered(piece.first_row + count, sample, again, large)
            del sample
        if count != piece.rows:
            text = f"samples from {piece.first_row + 1} on: {piece.rows} were counted, and {count} were read"
            raise SourceError(piece.name, f"{text}; run again")

    def _visit(
        self, read: Callable[[Member], bytes | memoryview] | None, reader: SampleReader, member: Member, suffix: bytes
    ) -> bytes | memoryview | MemberError | None:
        """Return the bytes of a member, what is wrong with it, or None if it is not read."""
        column = self.naming.column_of(suffix)
        if column is None or member.kind is not Kind.FILE or not reader.is_read(column):
            return None
        key, limit = limit_of(column.form, self.settings.limits)
        if member.size > limit:
            text = f"has {member.size:,} bytes, more than limits.{key} ({limit:,}); raise it if they are meant: "
            return MemberError("FIELD_TOO_LARGE", f"{text}{Set(f'limits.{key}', member.size)}")
        try:
            data = None if read is None else read(member)
            return data if data is None or column.form in (Form.PICTURE, Form.BYTES) else bytes(data)  # text, held once
        except MemberError as error:
            return error

    def _refuse_exports(
        self, entries: Sequence[SourceEntry], archives: Sequence[ArchiveEvidence], found: Found
    ) -> None:
        """Raise `SourceError` for pictures whose annotations are in other folders, or whose classes are in a table."""
        entry, export = next(
            ((at, it.export) for at, it in zip(entries, archives, strict=True) if it.export), (None, None)
        )
        table = table_beside(found)
        if entry is not None and export is not None:
            what = f"{export[0]} ({printable_path(export[1])})"
        elif table:
            entry, what = entries[0], f".{table} tables beside pictures"
        else:
            return
        means = f"to read its members as samples: {Set('input.detect', 'none')}"
        if is_object(entry.path):
            raise SourceError(entry.name, f"holds {what}, read from folders alone; unpack it on a disk first; {means}")
        unpack = self._unpacked([typed_path(os.fsdecode(one.path)) for one in entries], archives)
        raise SourceError(entry.name, f"holds {what}, read from folders alone; unpack it first: {unpack}; {means}")

    def _unpacked(self, files: Sequence[str], archives: Sequence[ArchiveEvidence]) -> str:
        stems = [os.path.join(os.path.dirname(one), os.path.basename(one).partition(".")[0]) for one in files]
        root = stems[0] if len(stems) == 1 else os.path.join(os.path.dirname(files[0]), "unpacked")
        said = [{one.export[1].rpartition(b"/")[0]} if one.export else one.folders or () for one in archives]
        tops = [folder for some in said for folder in {one.partition(b"/")[0] for one in some}]
        alone = b"" not in tops and len({*tops}) == len(tops)
        folders = [root if len(stems) == 1 or alone else os.path.join(root, os.path.basename(one)) for one in stems]
        into = "-C" if self.options.format == "tar" else "-d"
        steps = [Foreign("mkdir", "-p", *dict.fromkeys(folders))]
        for file, folder in zip(files, folders, strict=True):
            steps.append(Foreign(*_UNPACK[self.options.format], file, into, folder))
        return " && ".join(map(str, [*steps, self.settings.call.plain([root])]))

    def _named_by_classes(self, entries: Sequence[SourceEntry], found: Found) -> Iterator[str]:
        """Yield how pictures without classes get them, where each archive may be named by a class: cat.tar, dog.tar."""
        paths = [os.fsdecode(one.path) for one in entries]
        alone = [one for one in paths if sum(os.path.dirname(one) == os.path.dirname(other) for other in paths) == 1]
        alone = [] if len(alone) == len(paths) else alone
        others = [one for one in paths if one in alone or split_in_words(os.path.basename(one).partition(".")[0])]
        paths = [one for one in paths if one not in others]
        stems = {os.path.basename(one).partition(".")[0] for one in paths}
        words = {re.sub("[0-9]", "", one) for one in stems}
        classes = len(stems) == len(words) > 1 or (len(stems) > 1 and all(map(_SYNSET.fullmatch, stems)))
        plain = found.folders == {b""} and not found.json.columns and set(found.columns) == set(found.pictures)
        if not classes or not plain or is_object(entries[0].path):
            return
        first = typed_path(paths[0])
        folder = first.partition(".")[0] if first[0] != "." else first.rpartition(".")[0]
        into = "-C" if self.options.format == "tar" else "-d"
        unpack = Foreign(*_UNPACK[self.options.format], first, into, folder)
        roots = self.options.paths if all(map(os.path.isdir, self.options.paths)) else [os.path.dirname(first) or "."]
        roots = sorted({os.path.dirname(typed_path(one)) or "." for one in paths}) if others else roots
        read = self.settings.call.afterwards.reading(roots, Set("input.ignore", [f"*.{self.options.format}"]))
        left = f" (which leaves out {first_names([typed_path(one) for one in others], 8)})" if others else ""
        yield (
            f"the names of the archives are not read: {first_names(sorted(stems), 8)}; if they are classes, unpack "
            f"each into a folder of its name{left}: {Foreign('mkdir', folder)} && {unpack}; then: {read}"
        )


def _emptied(batch: list[Numbered]) -> list[Numbered]:
    """Return what a list holds, so that only the caller holds it."""
    taken = batch[:]
    batch.clear()
    return taken


def _is_marked(bits: bytes, number: int) -> bool:
    return bool(bits) and bool(bits[number // 8] >> number % 8 & 1)


def _samples(archive: OpenArchive, piece: ArchivePiece, naming: Naming, visit: Visit) -> Iterator[Sample]:
    try:
        yield from samples_of(archive, piece.start, piece.stop, naming, visit, Skipped())
    except Damage as damage:
        text = f"byte {damage.offset:,}: {damage.text}; it was sound when it was listed"
        raise SourceError(piece.name, text) from damage


def _text_features(frozen: ArchiveFrozen) -> tuple[Feature, ...]:
    bytes_of = {name for name, form in frozen.members if form in (Form.PICTURE, Form.BYTES)}
    others = bytes_of | {KEY, LABEL, CLASS_TEXT}
    features = [one for one in frozen.schema if one.name not in others]
    return tuple(
        Feature(one.name, "int64", "int64", nullable=one.nullable) if one.type == "label" else one for one in features
    )


def _pieces(index: int, entry: SourceEntry, found: ArchiveEvidence) -> Iterator[ArchivePiece]:
    first, total = 0, sum(cut.size for cut in found.cuts)
    for cut in found.cuts:
        size = entry.bytes * cut.size // max(total, 1)  # a compressed archive has fewer bytes than its members
        yield ArchivePiece(
            **entry.place(index), rows=cut.rows, first_row=first,
            bytes=size, start=cut.start, stop=cut.stop, first=cut.first, last=cut.last, again=cut.again,
            large=cut.large,
        )  # fmt: skip
        first += cut.rows
    if found.damage is not None:
        offset, code, text = found.damage
        yield ArchivePiece(
            **entry.place(index), rows=1, first_row=first, bytes=0, output_bytes=0, start=0, stop=0, error=text,
            code=code, offset=offset,
        )  # fmt: skip


def _damaged(piece: ArchivePiece, task: int, ordinal: int, reader: SampleReader) -> Rows:
    rows = reader.rows((), piece.name, task, ordinal, piece.entry)
    error = CellError(None, piece.code, "", "a whole archive", _damage_text(piece.offset, piece.error))
    place = Place(piece.name, row=piece.first_row + 1, offset=piece.offset)
    return replace(rows, rejects=(Reject(piece.entry, place, (error,)),))


def _damage_text(offset: int, text: str) -> str:
    return f"from byte {offset:,} on nothing can be read: {text}" if offset else f"nothing of it can be read: {text}"


def _no_sample(entries: Sequence[SourceEntry], archives: Sequence[ArchiveEvidence]) -> SourceError:
    number = next((i for i, one in enumerate(archives) if one.damage is not None), 0)
    damage = archives[number].damage
    skipped = _skipped_text(archives[number].skipped)
    reason = f"holds no sample{f', but {skipped}' if skipped else ''}"
    if damage is not None:
        reason = _damage_text(damage[0], damage[2])
    others = f"; the other {len(entries) - 1} archives hold no sample either" if len(entries) > 1 else ""
    return SourceError(entries[number].name, f"{reason}{others}")


def _warnings(entries: Sequence[SourceEntry], archives: Sequence[ArchiveEvidence], found: Found) -> tuple[str, ...]:
    warnings = []
    for entry, one in zip(entries, archives, strict=True):
        if one.damage is not None:
            warnings.append(f"{entry.name}: {_damage_text(one.damage[0], one.damage[2])}; that is one reject")
        elif not one.samples:
            warnings.append(f"{entry.name}: is empty: no sample")
        if one.again:
            keys = "key was" if one.again == 1 else "keys were"
            warnings.append(f"{entry.name}: {one.again:,} {keys} there before, not next to each other: rejects")
    skipped = _skipped_text(reduce(Skipped.plus, (one.skipped for one in archives), Skipped()))
    warnings += [f"passed over: {skipped}"] if skipped else []
    if packed := next((one.suffix for one in found.columns.values() if is_archive(os.fsencode(f".{one.suffix}"))), ""):
        warnings.append(
            f'members ".{printable(packed)}" are archives themselves: a record has the bytes of each, and what they '
            f"hold is not read; to read it, unpack them, and read the folder"
        )
    if dotted := [name for name in found.pictures if name[:1].isdigit()]:
        warnings.append(
            f'the pictures ".{found.columns[dotted[0]].suffix}" are the column "{printable(dotted[0])}", since a key '
            f"ends at the first dot of a name; if dots are a part of names: {Set('input.key', 'last_dot')}"
        )
    for name in found.pictures:
        lacking = found.samples - found.columns[name].count
        if lacking > 0:
            warnings.append(
                f'{counted(lacking, "sample")} of {found.samples:,} without the picture "{name}": rejects, but where '
                f"they are left out: {set_column(name, 'null', 'drop_row')}"
            )
    return tuple(warnings)


def _skipped_text(skipped: Skipped) -> str:
    parts = [
        f"{counted(count, 'member')} {reason} ({'' if count == 1 else 'the first: '}{skipped.first[reason]})"
        for reason, count in sorted(skipped.counts.items())
    ]
    return ", ".join(parts)


def _detected(found: Found, folders: Folders, layout: str) -> tuple[str, ...]:
    if layout != "auto" or not found.pictures or found.folders == {b""}:
        return ()
    if folders.why:
        splits = f"splits {', '.join(folders.splits)}, from the names of folders; " if folders.splits else ""
        return (f"{splits}{folders.why} (input.layout: {folders.layout})",)
    parts = [f"splits {', '.join(folders.splits)}"] if folders.splits else []
    if folders.labelled:
        count = len(folders.classes)
        parts.append("1 class" if count == 1 else f"{count} classes")
    what = f"{' and '.join(parts)}, from the names of folders" if parts else "pictures without classes and splits"
    return (f"{what} (input.layout: {folders.layout})",)


def _guessed(entries: Sequence[SourceEntry], archives: Sequence[ArchiveEvidence]) -> Iterator[str]:
    """Yield that names of a zip are in an encoding that it does not say."""
    for entry, one in zip(entries, archives, strict=True):
        if one.guessed:
            yield (
                f"{entry.name}: names that are not marked as UTF-8 are read as cp437, such as "
                f"{printable_path(one.guessed)}; if that looks wrong, name their encoding (shift_jis, gbk, cp1252): "
                f"{Set('input.encoding', 'ENCODING')}"
            )
            return
