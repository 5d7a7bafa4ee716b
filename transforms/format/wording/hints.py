"""What a message proposes to type: our commands, options for the command that ran, Python, other programs.

No other module builds commands and settings for messages, or quotes for a shell. tests/test_hints.py checks this, and
that each command, option and key exists; tests/followed_hints.txt lists each, with the test that follows it.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterable
from typing import Any, Final

from .printable import shell_path


class Add:
    """Options to add to the command that ran.

    >>> print(Add("--no-header", Set("input.names", ["a", "b"])))
    --no-header --set 'input.names=["a", "b"]'
    """

    def __init__(self, *words: str | Add) -> None:
        self.words: tuple[str, ...] = tuple(
            part for word in words for part in ((word,) if isinstance(word, str) else word.words)
        )

    def __str__(self) -> str:
        return " ".join(map(shell_path, self.words))


class Set(Add):
    """The option that sets a key, with the value as a config reads it.

    >>> print(Set("input.trim", True), Set("input.null_values", ["", "-"]), Set("split", None))
    --set input.trim=true --set 'input.null_values=["", "-"]' --set split=null
    """

    def __init__(self, key: str, value: Any) -> None:
        is_blank = isinstance(value, str) and value != value.strip()  # as the sign between thousands may be
        text = value if isinstance(value, str) and not is_blank else json.dumps(value, ensure_ascii=is_blank)
        self.key = key
        super().__init__("--set", f"{key}={text}")


class Command(Add):
    """A command of ours: its name, paths, options and settings.

    >>> print(Command("merge", "my data", "-o", "FOLDER", Set("stats", True)))
    shardmill merge 'my data' -o FOLDER --set stats=true
    """

    def __init__(self, *words: str | Add) -> None:
        super().__init__("shardmill", *words)


class Foreign(Add):
    """A command of another program, such as `git lfs pull`; `to` is the file for what it prints.

    >>> print(Foreign("iconv", "-f", "cp1252", "-t", "utf-8", "my data.txt", to="utf8.txt"))
    iconv -f cp1252 -t utf-8 'my data.txt' > utf8.txt
    """

    def __init__(self, *words: str, to: str = "") -> None:
        self.to = to
        super().__init__(*words)

    def __str__(self) -> str:
        return f"{super().__str__()} > {shell_path(self.to)}" if self.to else super().__str__()


class Python(str):
    """A line of Python, such as `convert(data=frame, output='out')`."""

    __slots__ = ()


def runnable(line: str) -> Python:
    """Return a line of Python with the imports that it needs, as it can be pasted.

    >>> print(runnable("convert(data=json.load(open('json.a')), output='out')"))
    import json; from shardmill.pipelines import convert; convert(data=json.load(open('json.a')), output='out')
    """
    nodes = [*ast.walk(ast.parse(line))]
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    parts = {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)} & _SUBMODULES
    modules = (read - bound) & (sys.stdlib_module_names | _MODULES)
    modules = {next((part for part in parts if part.startswith(f"{one}.")), one) for one in modules}
    calls = [f"from shardmill.pipelines import {one}" for one in ("append", "convert") if one in read]
    return Python("; ".join([*([f"import {', '.join(sorted(modules))}"] if modules else []), *calls, line]))


_MODULES: Final = {"datasets", "deltalake", "fastavro", "numpy", "pandas", "pyarrow", "pyiceberg"}
_SUBMODULES: Final = {"pyarrow.orc", "pyiceberg.table"}


def read_csv(file: str, sign: str = ",", **more: Any) -> str:
    """Return the expression of pandas that reads a CSV file, each cell as the text that it is: 00040, NA.

    >>> print(read_csv("x", "|", header=None))
    pandas.read_csv(x, sep='|', header=None, dtype=str, keep_default_na=False)
    """
    given = ({} if sign == "," else {"sep": sign}) | more | {"dtype": "str", "keep_default_na": False}
    texts = (f"{key}={value if key == 'dtype' else repr(value)}" for key, value in given.items())
    return f"pandas.read_csv({', '.join([file, *texts])})"


def set_column(name: str, key: str, value: Any) -> Set:
    """Return the option that sets a key of a column.

    >>> print(set_column("price", "decimal", ","), set_column("unit price", "thousands", "."))
    --set schema.columns.price.decimal=, --set 'schema.columns."unit price".thousands=.'
    """
    return Set(f"schema.columns.{quoted_name(name)}.{key}", value)


def set_constant(name: str, value: str) -> Set:
    return Set(f"schema.constants.{quoted_name(name)}", value)


def quoted_name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else json.dumps(name, ensure_ascii=False)


# How the package and its extras are installed: from a clone, since the package is in no index.


_MARKS: Final = {
    "aws": "boto3", "gcp": "google-cloud-storage", "dataflow": "google-cloud-dataflow-client", "images": "simplejpeg",
    "coco": "pycocotools",
}  # fmt: skip
"""A distribution of each extra that shows that the extra is there."""


def install_line(extra: str, others: Iterable[str] | None = None) -> str:
    """Return the commands that install an extra, to be run in a clone of the repository.

    `uv tool install` removes the extras that it does not name, so the command names the `others` that are there.

    >>> install_line("aws", ["images"])
    "in your clone of Shardmill: uv tool install '.[aws,images]', or for one command: uv run --extra aws shardmill ..."
    """
    names = ",".join(sorted({extra, *(_installed() if others is None else others)}))
    return (
        f"in your clone of Shardmill: uv tool install '.[{names}]', or for one command: uv run --extra {extra} "
        "shardmill ..."
    )


def reinstall_line() -> str:
    names = ",".join(sorted(_installed()))
    what = f"'.[{names}]'" if names else "."
    return f"in your clone of Shardmill: uv tool install --reinstall {what}"


def _installed() -> set[str]:
    from importlib.metadata import PackageNotFoundError, version  # takes 20 ms

    found = set()
    for extra, distribution in _MARKS.items():
        try:
            version(distribution)
        except PackageNotFoundError:
            continue
        found.add(extra)
    return found
