"""Set values in the text of a config, and leave its comments as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml


def set_in_text(text: str, path: Sequence[str], value: object) -> str:
    """Return the text of a config with one value set: `path` is a key, or a section and a key in it.

    A line that has the key, also after `# `, is replaced; else the key is added to its section, or at the end.

    >>> print(set_in_text("# split: {}", ["split"], 1), end="")
    split: 1
    """
    line = f"{path[-1]}: {flow(value)}"
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


def flow(value: object) -> str:
    """Return a value as YAML in one line.

    >>> flow({"a": [1, "yes"]})
    "{a: [1, 'yes']}"
    """
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n...\n").strip()
