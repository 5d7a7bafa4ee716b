"""The tables of the docs are those that docs/make_tables.py makes from the code."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parent.parent / "docs"
COMMAND = "uv run python docs/make_tables.py"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("make_tables")
    finally:
        sys.path.remove(str(DOCS))


def test_every_table_is_what_the_code_says(maker: ModuleType) -> None:
    made = maker.tables()
    stale = [page.name for page in maker.PAGES if page.read_text() != maker.filled(page.read_text(), made)]
    assert not stale, f"made from the code again by: {COMMAND}"


def test_the_schema_of_configs_is_what_the_models_say(maker: ModuleType) -> None:
    assert maker.SCHEMA_FILE.read_text() == maker.schema_text(), f"made from the code again by: {COMMAND}"


def test_every_table_is_in_a_page(maker: ModuleType) -> None:
    shown = [name for page in maker.PAGES for name in re.findall(r"<!-- table ([\w ]+) -->", page.read_text())]
    assert sorted(shown) == sorted(maker.tables())


def test_every_line_of_words_is_of_a_key_or_code_that_there_is(maker: ModuleType) -> None:
    text = "\n".join(page.read_text() for page in maker.PAGES)
    words = (*maker.CONFIG_WORDS, *maker.REJECT_WORDS, *maker.IMAGE_WORDS)
    assert [word for word in words if f"`{word}`" not in text] == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_a_page_that_says_it_is_made_by_the_script_is_one_that_the_script_makes(page: Path, maker: ModuleType) -> None:
    assert ("<!-- table " in page.read_text()) == (page in maker.PAGES)
