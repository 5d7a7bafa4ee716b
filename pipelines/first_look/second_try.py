"""Say what to type next: one command with all keys that a stop, or the lines of a summary, propose.

    stop        not UTF-8: --set input.encoding=cp1252     ──▶ the first rows are looked at with this key, and the lines
                                                               and the command name the keys of their columns too
    summary     the first line is a title: skip_lines=3    ──▶ the same, in place of what was said of wrong columns
    summary     column "day": ...: format=%d.%m.%Y         ──▶ the command

Keys whose values the first rows contradict are left out of the command, so that it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from ...transforms.errors import ShardmillError
from ...transforms.format.wording.hints import Add, Set
from ...transforms.format.wording.printable import shell_words
from ...transforms.inputs.contract.selection import Call, typed_path
from ...transforms.sources.text.cast import means_null
from ...transforms.stores.store_url import is_store_url
from ..config.errors import dotted
from ..config.load import load_config, split_set, split_sources
from ..config.runners import LocalRunner
from ..outcomes.reject_groups import RejectedRun, SampledRejects, rejects_text
from ..outcomes.summary import Submitted
from ..prepare.conversion import prepare
from ..prepare.from_config import conversion_of
from ..prepare.proposals import NULLS_MADE, first_of, lines_of_proposals, with_proposals
from ..runs.forecast import take_sample
from ..workers.worker_processes import WorkerProcesses

if TYPE_CHECKING:
    from ..config.model import Config
    from ..outcomes.summary import PlanReport, Summary
    from ..prepare.conversion import Conversion

Keys = dict[str, str]
"""Keys of a config as they are typed after `--set`, and the text of their values."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The words of a convert: its sources, the values of `--set` and of flags, and the dataset that it is like."""

    sources: Sequence[str]
    set_values: Sequence[str]
    flags: Mapping[str, object]
    like: str | None = None
    writes: bool = False

    @property
    def is_here(self) -> bool:
        """Whether the sources are on this machine: a store is not read a second time for advice."""
        return not any(map(is_store_url, self.sources))

    def config(self, keys: Keys) -> Config:
        """Return the config with more keys, in place of flags that give the same ones."""
        file, paths = split_sources(self.sources)
        flags = {key: flag for key, flag in self.flags.items() if key not in keys}
        values = [*self.set_values, *(f"{key}={value}" for key, value in keys.items())]
        return load_config(file, set_values=values, flags=flags, paths=paths, like=self.like)

    def first_rows(self, keys: Keys) -> Conversion:
        """Return the conversion with more keys, of the first rows alone where they are many."""
        whole = conversion_of(self.config(keys))
        if whole.input and whole.input.limit is None and whole.source.list_files().bytes > _WHOLE_BYTES:
            whole = conversion_of(self.config(keys | {"input.limit": str(_ROWS)}))
        return replace(whole, runner=LocalRunner(resume=False))  # what a stop has staged is not these rows

    def command(self, keys: Keys, *, written: bool) -> str:
        """Return the command with more keys; where it has `written`, it replaces the dataset."""
        config = self.config(keys)
        given = tuple(one for one in config.given if one.key not in keys)
        call = Call("convert", typed_path(config.output.path), given, self.writes, has_written=written and self.writes)
        like = [] if self.like is None else [Add("--like", self.like)]
        most = [Add("--max-rejects", keys["max_rejects"])] if "max_rejects" in keys else []
        of_splits = keys.get("split.column", "")  # whose words are no classes
        sets = [
            Set(key, value)
            for key, value in keys.items()
            if key != "max_rejects" and not (key.endswith(".label") and _column_of(key) == of_splits != "")
        ]
        return str(call.reading(self.sources, *like, *most, *sets))


_SET: Final = r"set (?:'(?:[^']|'\"'\"')*'|[^\s';()]+)"
_OPTION: Final = rf"--(?:{_SET}|no-header|max-rejects [0-9]+|delimiter (?:'[^']*'|[^\s;]+)|format \w+)"
_OPTIONS: Final = re.compile(rf"{_OPTION}(?: {_OPTION})*")
_FLAGS: Final = {"--max-rejects": "max_rejects", "--delimiter": "input.delimiter", "--format": "input.format"}

_OF_TEXT: Final = ("csv", "jsonl")
_KEYS_OF_FILES: Final = frozenset((
    "input.encoding", "input.skip_lines", "input.format", "input.trim", "input.row_names", "input.header",
    "input.delimiter", "input.names", "input.comment", "input.quote", "input.escape", "input.repeated_header",
))  # fmt: skip
"""Keys that change which cells a file has: what is said of its columns without them is said of others."""

_OF_ROWS: Final = frozenset(("input.null_values", "input.where", "max_rejects", "split.column", "split.names"))
_PLACEHOLDERS: Final = re.compile(r"ENCODING|SIGN|FORM|NAME|N|\[a, b, \.\.\.\]")
_UNLESS: Final = re.compile(
    r"(?:if (?:it is (?:not|data)|the first line(?:s are| is) data)|to declare it|say which it is)[^;]*\Z"
)
"""Words before keys that undo or repeat what is right as far as can be seen."""

_IN_DOUBT: Final = re.compile(r"if the first lines? (?:is|are) data[^;]*\Z")
_OF_FIRST_ROW: Final = re.compile(r'"([^"]*)" \(row 1\)')

_OF_HEADER: Final = re.compile("looks like a title|has two rows|has spaces around it")
_STAYS: Final = " text: all are numbers but "
_IN_ONE: Final = "all of this in one command: "
_MOST_STOPS: Final = 16
_MOST_LINES: Final = 12
_ROWS: Final = 10_000
_WHOLE_BYTES: Final = 16 << 20


Ended: TypeAlias = "Summary | PlanReport | Submitted"


def after_stop(error: ShardmillError, typed: Typed) -> tuple[str, ...]:
    """Return lines that say what to type after an error, where it names keys and the rows show more of them.

    There are none after an error that says what to do in Python.
    """
    if "in Python" in str(error):
        return ()
    keys = _keys_in(str(error).splitlines(), of_stop=True)
    tried, lines = _of_files(keys, typed) if keys and typed.is_here else ({}, ())
    shown = [f"Then detected: {line}" for line in lines]
    if tried.items() - keys.items():
        return (*shown, f"{_IN_ONE}{typed.command(tried, written=False)}")
    return tuple(one for one in shown if not _keys_in([one]))


def with_command(ended: Ended, typed: Typed) -> Ended:
    """Return what a run tells with one command for all that its lines propose, if they propose something.

    Where the first line was no header, lines of columns are replaced by those of the right ones.
    """
    if isinstance(ended, Submitted) or not typed.is_here:
        return ended
    keys = _keys_in(_below_titles(ended.detected, ended.warnings))
    of_files = {key: value for key, value in keys.items() if key in _KEYS_OF_FILES}
    lines, kept = tuple[str, ...](), ended.detected
    if of_files:
        keys, lines = _of_files(of_files, typed)
        kept = tuple(one for one in kept if not one.startswith(("column", "row "))) if lines else kept
    elif len([one for one in kept if _keys_in([one])]) > 1:
        keys = _tried(keys, typed)
    else:  # one line has all of them
        keys = {}
    last = [f"{_IN_ONE}{typed.command(keys, written=True)}"] if keys else []
    return replace(ended, detected=(*kept, *lines, *last))


def _of_files(keys: Keys, typed: Typed) -> tuple[Keys, tuple[str, ...]]:
    """Return keys of files with those of columns that are read so, and what shows these; no keys if none read them."""
    before = list[str]()
    for _ in range(_MOST_STOPS):
        lines, stops = tuple[str, ...](), False
        try:
            conversion = typed.first_rows(keys)
            if conversion.input is None or conversion.input.format not in _OF_TEXT:
                break
            with WorkerProcesses(1, asked=False) as workers:
                prepared = prepare(conversion, workers)
            survey = prepared.plan.survey
            first, tried = first_of(prepared.plan), {*map(_column_of, keys)}
            texts = {_column_of(key) for key, value in keys.items() if key.endswith(".type") and value == "string"}
            named = {*conversion.named} - texts
            proposed = lines_of_proposals(prepared.source, first, named, _MOST_LINES, tried, mixed=texts)
            notes = [one for one in survey.detected if _STAYS in one or _keys_in([one])]
            lines = with_proposals(notes, proposed)
            more = _keys_in(_below_titles(lines, survey.warnings))
        except ShardmillError as error:
            lines, stops = tuple(str(error).splitlines()), True
            more = _keys_in(lines, of_stop=True)
        if keys.get("input.header") == "false" and any(map(_has_name_as_null, lines)):
            break
        joined = _joined(keys, more)
        new = {key: value for key, value in joined.items() if key in _KEYS_OF_FILES and keys.get(key) != value}
        if stops and not more.keys() - keys.keys():
            break
        if not stops and not new:
            kept = {key: value for key, value in keys.items() if key not in more or _column_of(key) not in texts}
            return _tried(_joined(kept, more), typed), (*before, *lines)
        keys = _joined(keys, new or more)
        before += [line for line in lines if (new or more).keys() & _keys_in([line], of_stop=stops).keys()]
    return {}, ()


def _below_titles(lines: Sequence[str], warnings: Iterable[str]) -> list[str]:
    """Return lines and warnings that propose keys: below a title the first rows are others, and so are their units."""
    of_header = [one for one in warnings if _OF_HEADER.search(one)]
    if "input.skip_lines" in _keys_in(of_header):
        lines = [one for one in lines if "input.skip_lines" not in _keys_in([one])]
    return [*lines, *of_header]


def _has_name_as_null(line: str) -> bool:
    """Return whether a word of the first row would be null that is none elsewhere: some file has a header."""
    words = _OF_FIRST_ROW.findall(line.partition("; null: ")[2])
    return not all(map(means_null, words))


def _tried(keys: Keys, typed: Typed) -> Keys:
    """Return keys without those of columns that the first rows contradict, and with those that these need more."""
    for _ in range(_MOST_STOPS):
        try:
            conversion = typed.first_rows(keys)
            texts = _rejected(conversion)
            if not texts and conversion.input and conversion.input.limit is None:  # the rows that it left out are read
                keys = {key: value for key, value in keys.items() if key != "max_rejects"}
        except ShardmillError as error:
            texts = str(error).splitlines()
            if not _named(texts, keys):
                return {}
        bad = _named(texts, keys)
        more = {key: value for key, value in _keys_in(texts, of_stop=True).items() if _column_of(key) not in bad}
        if not bad and not more.keys() - keys.keys():
            return keys
        keys = _joined({key: value for key, value in keys.items() if _column_of(key) not in bad}, more)
    return {}


def _rejected(conversion: Conversion) -> list[str]:
    """Return what is said of the first rows that a conversion rejects."""
    with WorkerProcesses(1, asked=False) as workers:
        prepared = prepare(conversion, workers)
        sample = take_sample(prepared)
    documents = [json.loads(reject.to_json_line()) for reject in sample.rejects]
    run = RejectedRun.of(sample.rows, prepared.plan.listing.format, prepared.spec.conversion, in_append=False)
    return rejects_text(sample.rows, {}, SampledRejects.of(documents, run).groups).splitlines()


def _named(texts: Iterable[str], keys: Mapping[str, str]) -> set[str]:
    """Return the columns with keys that these texts name."""
    names = {name for key in keys if (name := _column_of(key))}
    return {name for name in names if any(f'column "{name}"' in text for text in texts)}


def _column_of(key: str) -> str:
    path, _ = split_set(f"{key}=")
    return path[2] if path[:2] == ("schema", "columns") and len(path) == 4 else ""


def _joined(keys: Keys, more: Mapping[str, str]) -> Keys:
    """Return keys with more of them; words for null of one column are those of both, lines to skip the most."""
    joined = keys | {key: value for key, value in more.items() if key not in keys}
    for key in keys.keys() & more.keys():
        if key == "input.skip_lines":
            joined[key] = max(keys[key], more[key], key=int)
        with suppress(ValueError):  # words that a user typed as YAML
            both = [*json.loads(keys[key]), *json.loads(more[key])] if key.endswith("null_values") else []
            joined[key] = json.dumps([*dict.fromkeys(both)], ensure_ascii=False) if both else joined[key]
    return joined


def _keys_in(texts: Iterable[str], *, of_stop: bool = False) -> Keys:
    """Return the keys that texts propose, of each the first that are no placeholders."""
    found: Keys = {}
    for text in texts:
        if not text.startswith(NULLS_MADE):
            found = _joined(found, next(_runs(text, of_stop=of_stop), {}))
    return found


def _runs(text: str, *, of_stop: bool) -> Iterator[Keys]:
    for one in _OPTIONS.finditer(text):
        pairs = [*_pairs(shell_words(one[0]))]
        keys = {key for key, _ in pairs}
        known = all(key in _KEYS_OF_FILES | _OF_ROWS or _column_of(key) for key in keys)
        if not known or any(map(_PLACEHOLDERS.fullmatch, (value for _, value in pairs))):
            continue
        several = text[one.end() :].startswith(" or --") or re.search("is unclear|by itself", text[: one.start()])
        if several:  # ways, or files: the user knows which is right
            return
        if _IN_DOUBT.search(text[: one.start()]):
            continue
        is_list = any(key.endswith(".as") for key in keys)  # the type is that of its items
        undone = _UNLESS.search(text[: one.start()]) is not None or any(
            key.endswith((".nullable", ".type")) and value in ("false", "string") and not is_list
            for key, value in pairs
        )
        if of_stop or not undone:
            yield dict(pairs)


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    left = iter(words)
    for word in left:
        if word == "--set":
            path, value = split_set(next(left, ""))
            yield dotted(path), value if value.endswith("=,") or value == "," else value.removesuffix(",")
        elif word == "--no-header":
            yield "input.header", "false"
        else:
            value = next(left, "")
            yield _FLAGS[word], value if value.strip() else json.dumps(value)
