"""Read what Hugging Face writes beside files: which of them are data, and of which split each is.

    ---                                                    README.md of a repository of the hub
    configs:
    - config_name: de
      data_files:
      - {split: train, path: de/train-*.parquet}
      - {split: test, path: [de/test-*.parquet]}
    ---

    dict/dataset_dict.json              {"splits": ["clean", "noisy"]}                              save_to_disk
    dict/clean/state.json               {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], ...}
    dict/clean/data-00000-of-00001.arrow
    dict/clean/cache-1f2e.arrow         what map or filter left: the same rows again

    pets/default/0.0.0/1f2e/dataset_info.json   {"dataset_name": "pets", "splits": {"train": {...}}}        load_dataset
    pets/default/0.0.0/1f2e/pets-train.arrow

    datasets--me--pets/refs/main        1f2e                                                        a cache of the hub
    datasets--me--pets/snapshots/1f2e/1.jpg -> ../../blobs/3c4d

Source of the forms: huggingface.co/docs/hub/datasets-manual-configuration, where `*` ends at a slash as here;
huggingface/datasets, `arrow_dataset.py`, `dataset_dict.py`, `naming.py`; of caches of the hub: huggingface_hub,
`file_download.py`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...errors import InputError
from ...format.manifest.naming import is_split_name
from ...format.schema.arrow_types import OBJECT_CLASSES, names_of
from ...format.wording.hints import Add, Set
from ...format.wording.printable import first_names, printable
from ...inputs.contract.selection import Call, Globs, shown_path, typed_path
from ...inputs.contract.source import Listing
from ...inputs.files.listing import beginning_of
from ...inputs.files.object_listing import compiled, part_pattern
from ...inputs.files.open_file import is_object

_MOST_BYTES: Final = 1 << 20
_FRONT: Final = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_MOST_STORE_FOLDERS: Final = 100
_HOLDERS: Final = ("list", "sequence", "struct")
_OF_FOLDER: Final = b"state.json"
_REPOSITORY: Final = re.compile(r"(?:datasets|models|spaces)--.+")
_OF_ALL: Final = b"dataset_dict.json"
_OF_CACHE: Final = b"dataset_info.json"
_SPLIT: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Stated:
    """One config of a README.md: the globs of each split, of paths from its folder on."""

    name: str
    globs: Globs

    def splits_of(self, below: Sequence[str]) -> list[set[str]]:
        """Return the splits of each file; of a folder of pictures, which ends with a slash, those of its files."""
        tests = [(split, *_tests(glob)) for split, globs in self.globs for glob in globs]
        found = []
        for one in below:
            folder = one[:-1] if one.endswith("/") else None
            found.append({
                split
                for split, test, folders in tests
                if (test.fullmatch(one) if one and folder is None else folders.fullmatch(folder or ""))
            })  # fmt: skip
        return found


def stated_in(notable: Iterable[bytes], root: str) -> tuple[Stated, ...]:
    """Return what the README.md in a folder states, if it is among files that were left out.

    Raises:
        InputError: a split has a name that no split may have.
    """
    values, shown = _front_matter(notable, root)
    return tuple(_configs(values.get("configs"), shown))


def stated_classes(notable: Iterable[bytes], root: str) -> dict[str, list[str]]:
    """Return the names of the classes of columns that `dataset_info` of the README.md in a folder states.

    Of several configs it is that whose files are read.
    """
    values, shown = _front_matter(notable, root)
    given = values.get("dataset_info")
    infos = [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, dict)]
    if len(infos) > 1:
        names = [one.name for one in _configs(values.get("configs"), shown)]
        infos = [one for one in infos if [one.get("config_name")] == names]
    columns = infos[0].get("features") if len(infos) == 1 else None
    return dict(_classes_within(columns)) | _classes_of(columns)


def _classes_within(columns: Any, above: str = "") -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of structs that have classes, by the paths of their names, with these."""
    for one in columns if isinstance(columns, list) else ():
        path, inner = f"{above}{one.get('name')}" if isinstance(one, dict) else "", one
        while isinstance(inner, dict) and (key := next((key for key in _HOLDERS if key in inner), None)):
            inner = inner[key]
        if isinstance(inner, list):
            yield from _classes_within(inner, f"{path}/")
        elif above and (names := _class_names(inner)):
            yield path, names


def _classes_of(columns: Any) -> dict[str, list[str]]:
    """Return the names of the classes of columns, or of the fields of a struct, as the README.md writes them."""
    named = [one for one in (columns if isinstance(columns, list) else ()) if isinstance(one, dict)]
    found = {one["name"]: _class_names(one) for one in named if isinstance(one.get("name"), str)}
    return {name: names for name, names in found.items() if names}


def _class_names(feature: Any) -> list[str] | None:
    """Return the names of the classes of a feature, the items of a list, or objects, as the README.md has them."""
    if not isinstance(feature, dict):
        # Of `list` and `sequence`, as of `struct`, the fields of objects are a list.
        fields = _classes_of(feature)
        return next((fields[name] for name in OBJECT_CLASSES if name in fields), None)
    kind = feature.get("dtype")
    label = (kind if isinstance(kind, dict) else feature).get("class_label")
    if not isinstance(label, dict):
        return next((_class_names(feature[key]) for key in _HOLDERS if key in feature), None)
    names = label.get("names")
    listed = [names.get(str(number)) for number in range(len(names))] if isinstance(names, dict) else names
    found: list[str] | None = names_of({"_type": "ClassLabel", "names": listed})
    return found


def _front_matter(notable: Iterable[bytes], root: str) -> tuple[dict[str, Any], str]:
    """Return what a README.md in a folder states of it, if it is among files that were left out, and its name."""
    import yaml  # no worker needs it

    paths = (path for path in notable if path.lower().endswith(b"/readme.md"))
    path = next((path for path in paths if os.fsdecode(path)[: -len("/readme.md")] == root.rstrip("/")), None)
    try:
        if path is None:
            return {}, ""
        front = _FRONT.match(beginning_of(path, _MOST_BYTES).decode("utf-8", "replace"))
        values = yaml.safe_load(front[1]) if front else None
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}, ""  # it is no file that is read, or is made for people, and was not made for us
    return values if isinstance(values, dict) else {}, shown_path(path)


def snapshot_of(path: str, call: Call) -> str | None:
    """Return the snapshot that `refs/main` names, where a path is a repository in a cache of the hub; else None.

    Raises:
        InputError: there are several snapshots, and it names none of them.
    """
    stem = path.rstrip("/").removesuffix("/snapshots")
    inner = os.path.join(stem, "snapshots")
    if not _REPOSITORY.fullmatch(os.path.basename(stem)) or not os.path.isdir(inner):
        return None
    found = sorted(one for one in os.listdir(inner) if os.path.isdir(os.path.join(inner, one)))
    main = beginning_of(os.path.join(stem, "refs", "main"), 64).decode("utf-8", "replace").strip()
    chosen = [main] if main in found else found
    if len(chosen) > 1:
        commands = "".join(f"\n  {call.reading([typed_path(os.path.join(inner, one))])}" for one in chosen)
        raise InputError(f"{shown_path(path)}: holds {len(chosen)} snapshots; choose one of{commands}")
    return os.path.join(inner, chosen[0]) if chosen else None


def without_caches(listing: Listing, named: Iterable[bytes]) -> tuple[Listing, tuple[str, ...]]:
    """Return the Arrow files that `state.json` names, where it is beside them, and what to say of others.

    Files that are `named` by themselves stay.

    Raises:
        InputError: a file that it names is not there, or it picks some of the rows.
    """
    folders = {os.path.dirname(entry.path) for entry in listing.entries} if listing.format == "arrow" else set()
    if len(folders) > _MOST_STORE_FOLDERS and any(map(is_object, folders)):
        return listing, ()
    states = {folder: _state_of(folder) or {*loaded_in(folder)} for folder in sorted(folders)}
    if not any(states.values()):
        return listing, ()
    there, stay = {entry.path for entry in listing.entries}, set(named)
    for folder, names in states.items():
        gone = next((name for name in names if not _is_there(os.path.join(folder, name), there)), None)
        if gone is not None:
            state = shown_path(os.path.join(folder, _stating(folder)))
            raise InputError(f"{state}: names {shown_path(gone)}, which is not there; copy the whole folder again")
    kept = [
        number
        for number, entry in enumerate(listing.entries)
        if entry.path in stay
        or not (names := states[os.path.dirname(entry.path)])
        or os.path.basename(entry.path) in names
    ]
    known = set(kept)
    others = [entry.name for number, entry in enumerate(listing.entries) if number not in known]
    what = f"{len(others):,} files are" if len(others) > 1 else "1 file is"
    states_it = _stating(next(folder for folder, names in states.items() if names)).decode()
    line = f"{what} left out, which {states_it} does not name: {first_names(others, 2)}"
    views = [view for folder, names in states.items() if names and (view := _view_of(folder))]
    return listing.keep(kept), (*([line] if others else []), *views[:1])


def _view_of(folder: bytes) -> str:
    """Return what to say where `datasets` shows some columns of a folder alone."""
    state = _json_in(folder, _OF_FOLDER)
    columns = state.get("_format_columns")
    if (
        not isinstance(columns, list)
        or state.get("_output_all_columns")
        or not all(isinstance(o, str) for o in columns)
    ):
        return ""
    shown, only = first_names([printable(one) for one in columns], 8), Add("--columns", ",".join(columns))
    return f"state.json shows {shown} alone (set_format), and all columns are read; to read these alone: {only}"


def saved_splits(root: str, folders: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the split of each folder below a root, None where it is no folder of a dataset, or one says none."""
    path = os.fsencode(root)
    if set(folders) == {""}:
        split = _json_in(path, _OF_FOLDER).get("_split")
        return {"": split} if isinstance(split, str) and is_split_name(split) else None
    named = _json_in(path, _OF_ALL).get("splits")
    if not isinstance(named, list) or not set(folders) <= {one for one in named if isinstance(one, str)}:
        return None
    shown = shown_path(os.path.join(path, _OF_ALL))
    refuse_missing_folders(path)
    found = {one: split_named(one, shown) for one in folders}
    if len({*found.values()}) < len(found):
        globs = {f"{split}_{at}" if at else split: f"{one}/**" for at, one, split in _numbered(found)}
        raise InputError(
            f"{shown}: names of splits differ only in signs that names here do not have; say what each is called: "
            f"{Set('input.splits', globs)}"
        )
    return found


def refuse_missing_folders(path: bytes) -> None:
    """Raises `InputError` where the `dataset_dict.json` in a folder names splits whose folders are not there."""
    named = _json_in(path, _OF_ALL).get("splits")
    texts = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
    gone = [one for one in texts if not _is_there(os.path.join(path, os.fsencode(one)), set())]
    if gone:
        names = first_names([f'"{printable(one)}"' for one in gone], 8)
        splits, are, them = ("split", "folder is", "name") if len(gone) == 1 else ("splits", "folders are", "names")
        raise InputError(
            f"{shown_path(os.path.join(path, _OF_ALL))}: names the {splits} {names}, whose {are} not there; copy the "
            f"whole folder again, or take the {them} out of the file"
        )


def _numbered(splits: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """Yield each folder with its split, and how many before it have the same."""
    seen = list[str]()
    for folder, split in splits.items():
        yield seen.count(split), folder, split
        seen.append(split)


def loaded_in(folder: bytes) -> dict[bytes, str]:
    """Return the files, with the split of each, of a folder in the cache of `load_dataset`; none of another folder."""
    info, found = _json_in(folder, _OF_CACHE), dict[bytes, str]()
    name, splits = info.get("dataset_name"), info.get("splits")
    if not isinstance(name, str) or not isinstance(splits, dict):
        return found
    for split, one in splits.items():
        lengths = one.get("shard_lengths") if isinstance(one, dict) else None
        count = len(lengths) if isinstance(lengths, list) else 1
        shards = [f"-{n:05}-of-{count:05}" for n in range(count)] if count > 1 else [""]
        known = split_named(split, shown_path(os.path.join(folder, _OF_CACHE)))
        found |= {os.fsencode(f"{name}-{split}{shard}.arrow"): known for shard in shards}
    return found


def loaded_splits(files: Sequence[str], call: Call) -> list[str] | None:
    """Return the split of each file in the cache of `load_dataset`; None where one is in none.

    Raises:
        InputError: there are files of several configs or versions.
    """
    folders = dict.fromkeys(map(os.path.dirname, files))
    if len(folders) > _MOST_STORE_FOLDERS:
        return None
    stated = {folder: loaded_in(os.fsencode(folder)) for folder in folders}
    if not all(stated.values()):
        return None
    if len(stated) > 1:
        commands = "".join(f"\n  {call.reading([typed_path(one)])}" for one in stated)
        raise InputError(
            f"the files are {len(stated)} configs or versions in a cache of load_dataset; choose{commands}"
        )
    found = [stated[os.path.dirname(file)].get(os.fsencode(os.path.basename(file)), "") for file in files]
    return found if all(found) else None


def _stating(folder: bytes) -> bytes:
    return _OF_FOLDER if _json_in(folder, _OF_FOLDER) else _OF_CACHE


def _configs(configs: Any, shown: str) -> Iterator[Stated]:
    for number, one in enumerate(configs if isinstance(configs, list) else ()):
        if isinstance(one, dict) and one.get("data_files") is not None:
            folder = one.get("data_dir")
            above = f"{folder.strip('/')}/" if isinstance(folder, str) and folder.strip("./") else ""
            by_split = dict[str, list[str]]()
            for split, paths in _data_files(one["data_files"]):
                by_split.setdefault(split_named(split, shown), []).extend(_below(above, path) for path in paths)
            name = str(one.get("config_name", f"config {number + 1}"))
            globs = tuple((split, tuple(paths)) for split, paths in by_split.items() if paths)
            if globs and not any("://" in path for _, paths in globs for path in paths):
                yield Stated(name, globs)


def _data_files(given: Any) -> Iterator[tuple[Any, list[str]]]:
    """Yield splits and their globs; files without a split are of `train`."""
    items = given if isinstance(given, list) else [given]
    for item in items:
        if isinstance(item, str):
            yield "train", [item]
        elif isinstance(item, dict) and "path" in item:
            yield item.get("split", "train"), _texts(item["path"])
        elif isinstance(item, dict):
            yield from ((split, _texts(paths)) for split, paths in item.items())


def _texts(given: Any) -> list[str]:
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]


def _below(above: str, path: str) -> str:
    return above + re.sub(r"^(?:\./|/)+", "", path)


def split_named(given: Any, shown: str) -> str:
    name = re.sub(r"[^a-z0-9_]", "_", str(given).lower())
    if not _SPLIT.fullmatch(name):
        raise InputError(
            f'{shown}: calls a split "{printable(given)}", and the name of a split begins with a letter; say which '
            f"files are of which split: {Set('input.splits', '{train: GLOB, test: GLOB}')}"
        )
    return name


def _tests(glob: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what the paths of files match that a glob names, or the folder that it names, and what folders match."""
    folder = glob.rpartition("/")[0] if re.search(r"[*?\[]|\.[^/]+$", glob) else glob
    inner = "(?:/.*)?" if folder == glob else ""
    below = "(?:/.*)?" if folder == glob or glob.endswith("**") else ""
    return compiled(glob, _pattern(glob) + inner), compiled(folder, _pattern(folder) + below)


def _pattern(glob: str) -> str:
    """Return a glob as a regular expression, in which `*` ends at a slash, and `**` does not.

    >>> bool(re.fullmatch(_pattern("a/**/b-*.csv"), "a/b-1.csv")), bool(re.fullmatch(_pattern("a/*"), "a/b/c"))
    (True, False)
    """
    *above, last = glob.split("/")
    steps = ["(?:.*/)?" if part == "**" else f"{part_pattern(part)}/" for part in above]
    return "".join(steps) + (".*" if last == "**" else part_pattern(last))


def _state_of(folder: bytes) -> set[bytes]:
    """Return the names of the files that a folder's data are in, none where nothing says so."""
    state = _json_in(folder, _OF_FOLDER)
    files = state.get("_data_files")
    picks = state.get("_indices_data_files") or state.get("_indices_files")
    if picks:
        raise InputError(
            f"{shown_path(os.path.join(folder, _OF_FOLDER))}: an old release of datasets wrote it, and picks rows by "
            f"another file ({printable(str(picks))}), which is not read; load it with that release, and save it again "
            f"after flatten_indices()"
        )
    names = [one.get("filename") for one in files if isinstance(one, dict)] if isinstance(files, list) else []
    return {os.fsencode(name) for name in names if isinstance(name, str)}


def _is_there(path: bytes, listed: set[bytes]) -> bool:
    return path in listed or is_object(path) or os.path.exists(path)


def _json_in(folder: bytes, name: bytes) -> dict[str, Any]:
    """Return an object of JSON in a folder, empty where there is none."""
    try:
        found = json.loads(beginning_of(os.path.join(folder, name), _MOST_BYTES))
    except (ValueError, RecursionError):
        return {}  # it is not of Hugging Face
    return found if isinstance(found, dict) else {}
