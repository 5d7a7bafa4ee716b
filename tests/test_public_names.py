"""The names that users import: they are there, `help` explains them, and looking costs nothing."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pydoc
import re
import subprocess
import sys

import pytest

PUBLIC = {
    "shardmill.pipelines": ["append", "convert", "open_dataset"],
    "shardmill.transforms": ["EncodeExamples", "ReadRows", "WriteShards", "read_records", "write_records"],
}
NAMES = [(module, name) for module, names in PUBLIC.items() for name in names]


@pytest.mark.parametrize("module", PUBLIC)
def test_a_package_offers_its_public_names_and_no_other(module: str) -> None:
    package = importlib.import_module(module)
    assert sorted(package.__all__) == PUBLIC[module]
    assert set(PUBLIC[module]) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("module", PUBLIC)
def test_help_on_a_package_shows_its_public_names_with_their_words(module: str) -> None:
    text = pydoc.plain(pydoc.render_doc(importlib.import_module(module)))
    for name in PUBLIC[module]:
        words = inspect.getdoc(getattr(importlib.import_module(module), name))
        assert words is not None
        assert words.splitlines()[0] in text


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_help_explains_every_argument_and_what_is_raised(module: str, name: str) -> None:
    thing = getattr(importlib.import_module(module), name)
    words = inspect.getdoc(thing)
    assert words is not None
    if dataclasses.is_dataclass(thing):
        arguments = [field.name for field in dataclasses.fields(thing)]
    else:
        arguments = list(inspect.signature(thing).parameters)
    assert [a for a in arguments if not re.search(rf"[ *`]{a}[:`]", words)] == []
    assert "Raises:" in words or name == "EncodeExamples"


@pytest.mark.parametrize("module", PUBLIC)
def test_looking_at_a_package_imports_neither_beam_nor_pandas(module: str) -> None:
    code = f"import sys, {module} as m; dir(m); print(*{{'apache_beam', 'pandas', 'pyarrow'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
