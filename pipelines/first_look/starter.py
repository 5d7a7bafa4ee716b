"""Write the config that `init` proposes: what was seen in the data, and every key that matters with a comment."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from ...transforms.errors import RunError, TargetError
from ...transforms.format.batches.rejects import may_be_left_out
from ...transforms.format.examples.decode_examples import feature_values, iter_features, other_message, parse_example
from ...transforms.format.manifest.naming import dataset_name
from ...transforms.format.wording.hints import Command
from ...transforms.format.wording.printable import counted, escaped, more, printable, shell_words
from ...transforms.inputs.files.file_names import FORMATS
from ...transforms.stores.store_url import is_store_url
from ..commands.inspect_records import shown_value
from ..config import load
from ..config.load import load_config, split_set
from ..outcomes.reject_groups import RejectedRun, SampledRejects, rejects_text
from ..prepare.conversion import prepare
from ..prepare.from_config import conversion_of
from ..prepare.proposals import (
    NULLS_MADE,
    Looked,
    Proposal,
    columns_of,
    look_at_rows,
    proposals_of,
    with_proposals,
    without_totals,
)
from ..runs.forecast import take_sample
from ..screens.summary_screen import MOST_FEATURES, name_text, schema_table
from ..workers.worker_processes import WorkerProcesses

if TYPE_CHECKING:
    from ..config.model import Config
    from ..prepare.conversion import Conversion
    from ..prepare.prepared import Prepared
    from ..runs.forecast import Sample
    from ..screens.summary_screen import Screen


# The JSON Schema of configs: the file of the package, the copy beside a config, and the line that names it.
#
# Editors that know yaml-language-server (VS Code, Neovim, the IDEs of JetBrains) read the first line of a config:
# they check it and complete its keys, without a network. A copy beside the config works on every machine that has the
# folder.


SCHEMA_NAME: Final = "shardmill.schema.json"

PACKAGED: Final = Path(load.__file__).with_name("config.schema.json")

_TITLE: Final = "Shardmill config"


def schema_line(config: str) -> str:
    where = SCHEMA_NAME if config != "-" else PACKAGED.as_uri()
    return f"# yaml-language-server: $schema={where}\n"


def put_schema(folder: str) -> str | None:
    """Put the schema into a folder, in the place of another release's; return its path, None if it was there."""
    return _put(os.path.join(folder, SCHEMA_NAME))


def write_schema(output: str | None, screen: Screen) -> None:
    """Write the schema to a file, by default beside what is in the working folder; `-` is stdout."""
    if output == "-":
        screen.out.file.write(PACKAGED.read_text(encoding="utf-8"))
        return
    path = SCHEMA_NAME if output is None else output
    is_new = _put(path) is not None
    if screen.as_json:
        screen.data({"command": "init", "path": path, "written": is_new})
    line = f"the first line of a config beside it: # yaml-language-server: $schema={os.path.basename(path)}"
    screen.note(f"{'Wrote' if is_new else 'Nothing to do:'} {printable(path)}; {line}")


def _put(path: str) -> str | None:
    text = PACKAGED.read_text(encoding="utf-8")
    there = _text_at(path)
    if there == text:
        return None
    if there is not None and not _is_schema(there):
        raise TargetError(
            f"{printable(path)}: already exists, and is no schema of Shardmill; give another name with -o"
        )
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise RunError(f"{printable(path)}: cannot be written: {error.strerror}") from error
    return path


def _text_at(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{printable(path)}: cannot be read: {error.strerror}") from error


def _is_schema(text: str) -> bool:
    try:
        document = json.loads(text)
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("title") == _TITLE


_FRAME: Final = """\
{schema}# Run it: {run}
#
{found}
version: 1
input:
  format: {format}
  paths: {paths}  # relative to this file
{input}{split}output:
  path: {output}
  shard_size: 128MiB          # bytes on disk of a shard
  compression: none           # gzip
max_rejects: {rejects}  # {why_rejects}
"""

_TITLE_LINES: Final = re.compile(r"looks like a title; .*skip_lines=([0-9]+)$")
_SHOWN_COLUMNS: Final = 8


def starter_text(
    sources: Sequence[str],
    config: str,
    *,
    set_values: Sequence[str] = (),
    flags: Mapping[str, tuple[str, object]] | None = None,
    above: Sequence[str] = (),
) -> str:
    """Return a config that reads `sources`, to be saved as the file `config`, with the values of flags in it.

    Where the first lines are titles, the config reads the table below them, and its comment begins with `above`.
    """
    folder = os.path.dirname(os.path.abspath(config))
    name = dataset_name(os.path.splitext(os.path.abspath(config))[0] if config != "-" else os.getcwd())
    given = dict(flags or {})
    output = os.path.join(folder, "out", name)
    loaded = load_config(None, set_values=set_values, flags={"output.path": output, **given}, paths=sources)
    section = loaded.input
    assert section is not None
    look = look_at(loaded)
    titles = [found[1] for line in look.lines if (found := _TITLE_LINES.search(line))]
    if titles and not above:
        skip = f"input.skip_lines={max(titles, key=int)}"
        above = [
            *(line for line in look.lines if _TITLE_LINES.search(line)),
            "What follows is read so: input.skip_lines is set.",
        ]
        return starter_text(sources, config, set_values=[*set_values, skip], flags=flags, above=above)
    paths = [source if is_store_url(source) else os.path.relpath(source, folder) for source in sources]
    shown = [*look.columns[:_SHOWN_COLUMNS]] or ["a", "b"]
    form = FORMATS[section.format].load()
    example = look.example if form.example_type is not None else shown[0]
    text = _FRAME.format(
        schema=schema_line(config),
        run=Command("convert", config if config != "-" else "FILE"),
        format=section.format,
        paths=_flow(paths),
        input=form.starter(section, _flow(shown), "" if example is None else _flow(example)),
        split=_split_line(look.key) if "split" not in form.refused_keys else "",
        output=f"out/{name}",
        found="\n".join(f"# {line}".rstrip() for line in (*above, *look.lines)),
        rejects=f"{look.max_rejects:<15}",
        why_rejects=look.why_rejects,
    )
    stated = loaded.model_dump(mode="json", by_alias=True, exclude_unset=True)
    paths_set = [split_set(value)[0][:2] for value in set_values] + [tuple(key.split(".")) for key in given]
    for path in dict.fromkeys(paths_set):
        value: Any = stated
        for part in path:
            value = value[part]
        text = _set_in_text(text, path, value)
    return _with_proposals(text, loaded.schema_.model_dump(mode="json", exclude_unset=True), look.proposals)


def _with_proposals(text: str, schema: Mapping[str, Any], proposals: Sequence[Proposal]) -> str:
    """Return a config with a comment for each proposal, which is a key of its column once the sign is taken away."""
    lines, columns = text.splitlines(), schema.get("columns", {})
    at = next((at for at, line in enumerate(lines) if line.startswith("  columns:")), None)
    of_columns: dict[str, Proposal] = {}
    for one in proposals:
        if one.column not in columns:
            of_columns[one.column] = of_columns[one.column].plus(one) if one.column in of_columns else one
    if at is None or not of_columns or "schema:" not in lines[:at]:
        return text
    own = [f"    {_flow(name)}: {_flow(rule)}" for name, rule in columns.items()]
    proposed = [
        f"    # {_flow(one.column)}: {_flow(dict(one.keys))}  # {escaped(one.evidence)}" for one in of_columns.values()
    ]
    head = "  columns:                    # take the # of a line away to read its column so"
    return "\n".join([*lines[:at], head, *own, *proposed, *lines[at + 1 :]]) + "\n"


def _split_line(key: str | None) -> str:
    """Return the comment that shows how rows are cut into splits: by a key, or where there is none by the record."""
    by = f", key: {_flow(key)}" if key is not None else ""
    return f"# split: {{fractions: {{train: 0.9, val: 0.1}}{by}}}\n"


def write_starter(
    sources: Sequence[str],
    config: str,
    screen: Screen,
    *,
    set_values: Sequence[str] = (),
    flags: Mapping[str, tuple[str, object]] | None = None,
) -> None:
    """Write the starter config and its JSON Schema, or print it where `config` is `-`; one that exists is left alone.

    As JSON both are one document: `path` is null where nothing was written, `text` is the config.
    """
    text = starter_text(sources, config, set_values=set_values, flags=flags)
    if config == "-":
        if screen.as_json:
            screen.data({"command": "init", "path": None, "text": text})
        else:
            screen.out.file.write(text)
        return
    try:
        with open(config, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise TargetError(f"{printable(config)}: already exists; give another name with -o, or -o -") from error
    except OSError as error:
        raise RunError(f"{printable(config)}: cannot be written: {error.strerror}") from error
    put_schema(os.path.dirname(config))
    if screen.as_json:
        screen.data({"command": "init", "path": config, "text": text})
    screen.note(f"Wrote {printable(config)}; now: {Command('convert', config, '--dry-run')}")


def _set_in_text(text: str, path: Sequence[str], value: object) -> str:
    """Return the text of a config with one value set: `path` is a key, or a section and a key in it.

    A line that has the key, also after `# `, is replaced; else the key is added to its section, or at the end.

    >>> print(_set_in_text("# split: {}", ["split"], 1), end="")
    split: 1
    """
    line = f"{path[-1]}: {_flow(value)}"
    lines = text.splitlines()
    start, stop, indent = 0, len(lines), ""
    if len(path) > 1:
        indent, head = "  ", f"{path[0]}:"
        if head not in lines:
            return f"{text}{head}\n{indent}{line}\n"
        start = lines.index(head) + 1
        stop = next((at for at in range(start, len(lines)) if not lines[at].startswith("  ")), len(lines))
    known = re.compile(rf"{indent}(# )?{re.escape(path[-1])}:( |$)")
    at = next((at for at in range(start, stop) if known.match(lines[at])), None)
    lines[at if at is not None else stop : at + 1 if at is not None else stop] = [indent + line]
    return "\n".join(lines) + "\n"


class _InOneLine(yaml.SafeDumper):
    """Writes text with line ends in double quotes, where they are signs."""


def _represent(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_InOneLine.add_representer(str, _represent)


def _flow(value: object) -> str:
    r"""Return a value as YAML in one line.

    >>> _flow({"a": [1, "yes"]})
    "{a: [1, 'yes']}"
    >>> print(_flow("two\nlines"))
    "two\nlines"
    """
    text = yaml.dump(value, Dumper=_InOneLine, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n...\n").strip()


# A conversion is prepared and some of its rows are converted, as for a dry run; nothing is written. What is much data
# is looked at in part.


_WHOLE_BYTES: Final = 64 << 20
"""Up to this size all rows are surveyed, as a run with `infer: auto` does; a larger source is looked at in part."""

_ROWS: Final = 10_000
"""The rows of a larger source that are looked at."""

_SHOWN_FEATURES: Final = 12
_SHOWN_VALUES: Final = 4
_WIDTH: Final = 60
"""The most characters of a value in a record, the most values of a list, and the most features of a record."""

_PAGE: Final = 114
"""Characters of a line of the table, so that `#   ` before it makes 118."""

_SHARES: Final = (1, 2, 5, 10, 20, 50)
"""Percentages that `max_rejects` is set to where rows were rejected."""


@dataclass(frozen=True, slots=True)
class Look:
    """Findings: the `columns` of a table, a `key` whose rows belong together, lines for the head, and `max_rejects`.

    `example` is the first column of the type that the format gives an example of, if it gives one and there is one.
    """

    columns: tuple[str, ...] = ()
    example: str | None = None
    key: str | None = None
    proposals: tuple[Proposal, ...] = ()
    lines: tuple[str, ...] = ()
    max_rejects: str = "0"
    why_rejects: str = 'rows that may be rejected: a number, or "1%"'


def look_at(config: Config) -> Look:
    with WorkerProcesses(1, asked=False) as workers:
        prepared = prepare(_conversion_of(config), workers)
    sample = take_sample(prepared)
    survey = prepared.plan.survey
    columns, looked, example = tuple[str, ...](), Looked(False, {}, {}, None), None
    form = FORMATS[config.input.format].load() if config.input is not None else None
    if form is not None and form.shows_columns:
        columns, looked = columns_of(survey), look_at_rows(prepared.source, prepared.plan)
        of_type = (one.name for one in survey.fields if str(one.type) == form.example_type)
        example = next((name for name in of_type if name in columns), None)
    share, why = _allowed(sample)
    looked, totals = without_totals(looked, prepared.source, prepared.plan)
    proposals = (*_stated(survey.detected), *proposals_of(looked, survey.detected))
    keyed = [*totals, *map(str, proposals)]
    detected = with_proposals(survey.detected, keyed)[: len(survey.detected)]
    lines = tuple(_lines(prepared, sample, [*detected, *totals]))
    return Look(columns, example, looked.key, proposals, lines, share, why)


def _stated(detected: Sequence[str]) -> Iterator[Proposal]:
    """Yield the keys of each column whose options end a line of what was detected."""
    seen = set[str]()
    for line in detected:
        evidence, option, rest = line.partition("--set ")
        words = shell_words(option + rest)
        sets = [split_set(word) for word in words[1::2]]
        of_columns = all(len(path) == 4 and path[:2] == ("schema", "columns") for path, _ in sets)
        if set(words[::2]) != {"--set"} or not of_columns or line.startswith(NULLS_MADE):
            continue
        columns: dict[str, dict[str, Any]] = {}
        for path, value in sets:
            columns.setdefault(path[2], {})[path[3]] = _value_of(value)
        yield from (Proposal(name, columns[name], evidence.rstrip(" ;:")) for name in columns if name not in seen)
        seen.update(columns)


def _value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _conversion_of(config: Config) -> Conversion:
    """Return the conversion of a config, of its first rows alone where they are many."""
    section, whole = config.input, conversion_of(config)
    if section is None or section.limit is not None or whole.source.list_files().bytes <= _WHOLE_BYTES:
        return whole
    return conversion_of(config.model_copy(update={"input": section.model_copy(update={"limit": _ROWS})}))


def _lines(prepared: Prepared, sample: Sample, detected: Sequence[str]) -> Iterator[str]:
    """Yield the lines that say what was found, without the sign of a comment."""
    plan = prepared.plan
    files = counted(plan.listing.files, "file")
    what = "all" if sample.whole else "some"
    yield f"Looked at: {counted(sample.rows, 'row')} ({what}) of {files}, {plan.listing.format}."
    for text in detected:
        yield f"Detected: {escaped(text)}"
    for text in plan.survey.warnings:
        yield f"Warning: {escaped(text)}"
    if sample.rejects:
        yield f"Rejected: {counted(len(sample.rejects), 'row')} of these:"
        documents = [json.loads(reject.to_json_line()) for reject in sample.rejects]
        run = RejectedRun.of(sample.rows, plan.listing.format, prepared.spec.conversion, in_append=False)
        rejects = SampledRejects.of(documents, run)
        yield from escaped(rejects_text(sample.rows, rejects.by_code, rejects.groups), keep="\n").splitlines()
    if len(plan.survey.frozen.schema):
        yield from ("", "Features, their types, and why:", "", *_table(prepared))
    if sample.payloads:
        yield from ("", f"The first {counted(len(sample.payloads), 'record')}:")
    for payload in sample.payloads:
        yield ""
        yield from _record(payload)


def _table(prepared: Prepared) -> Iterator[str]:
    from rich.console import Console

    survey = prepared.plan.survey
    file = io.StringIO()
    console = Console(file=file, width=_PAGE, markup=False, highlight=False, emoji=False, color_system=None)
    console.print(schema_table(survey.frozen.schema, survey.choices, reasons=True))
    yield from (f"  {line.rstrip()}" for line in file.getvalue().splitlines())
    if len(survey.frozen.schema) > MOST_FEATURES:
        yield f"  and {more(len(survey.frozen.schema) - MOST_FEATURES, 'feature')}"


def _record(payload: bytes) -> Iterator[str]:
    example = parse_example(payload) if other_message(payload) is None else None
    if example is None:
        yield f"  {_cut(shown_value(payload))}"
        return
    features = list(iter_features(example))
    for name, feature in features[:_SHOWN_FEATURES]:
        _, values = feature_values(feature)
        shown = ", ".join(_cut(shown_value(value)) for value in values[:_SHOWN_VALUES])
        rest = f", and {len(values) - _SHOWN_VALUES:,} more" if len(values) > _SHOWN_VALUES else ""
        yield f"  {name_text(name)}: {shown or '(empty)'}{rest}"
    if len(features) > _SHOWN_FEATURES:
        yield f"  and {more(len(features) - _SHOWN_FEATURES, 'feature')}"


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _allowed(sample: Sample) -> tuple[str, str]:
    """Return the value of `max_rejects` with which the rows that were looked at pass, and the words for it."""
    rejected, rows = len(sample.rejects), sample.rows
    default = Look()
    if not rejected:
        return default.max_rejects, default.why_rejects
    if not may_be_left_out(rejected, rows):
        return "0", f"{rejected:,} of {counted(rows, 'row')} that were looked at are rejects: see above"
    needed = 100 * rejected * (1 if sample.whole else 2) / rows
    share = next((one for one in _SHARES if one >= needed), _SHARES[-1])
    return f"{share}%", f"{rejected:,} of {counted(rows, 'row')} {'was' if rejected == 1 else 'were'}; 0 allows none"
