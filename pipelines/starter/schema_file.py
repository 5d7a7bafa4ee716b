"""The JSON Schema of configs: the file of the package, the copy beside a config, and the line that names it.

Editors that know yaml-language-server (VS Code, Neovim, the IDEs of JetBrains) read the first line of a config: they
check it and complete its keys, without a network. A copy beside the config works on every machine that has the folder.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...transforms.errors import RunError, TargetError
from ...transforms.format.wording.printable import printable
from ..config import load

if TYPE_CHECKING:
    from ..screens.screen import Screen

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
