"""Write a first config for some sources: what was seen in the data, and every key that matters with a word on each."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from ...transforms.errors import RunError, TargetError
from ...transforms.format.manifest.naming import dataset_name
from ...transforms.format.wording.hints import Command
from ...transforms.format.wording.printable import printable
from ...transforms.sources.files.formats import FORMATS
from ...transforms.stores.common.store_url import is_store_url
from ..config import load
from ..config.load import load_config, split_set
from .look import look_at

if TYPE_CHECKING:
    from ..screens.screen import Screen


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

_SHOWN_COLUMNS: Final = 8


def starter_text(
    sources: Sequence[str],
    config: str,
    *,
    set_values: Sequence[str] = (),
    flags: Mapping[str, tuple[str, object]] | None = None,
) -> str:
    """Return a config that reads `sources`, to be saved as the file `config`, with the values of flags in it."""
    folder = os.path.dirname(os.path.abspath(config))
    name = dataset_name(os.path.splitext(os.path.abspath(config))[0] if config != "-" else os.getcwd())
    given = dict(flags or {})
    output = os.path.join(folder, "out", name)
    loaded = load_config(None, set_values=set_values, flags={"output.path": output, **given}, paths=sources)
    section = loaded.input
    assert section is not None
    look = look_at(loaded)
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
        found="\n".join(f"# {line}".rstrip() for line in look.lines),
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
    return text


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
