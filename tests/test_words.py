"""The words that docs/dev/style.md avoids are in no page, config, `--help`, message, docstring or comment."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tokenize
from pathlib import Path

import pytest
from shardmill.pipelines.cli import app, main
from shardmill.pipelines.commands import flink_commands

REPO = Path(__file__).parent.parent
STYLE = REPO / "docs/dev/style.md"
PAGES = [REPO / "README.md", REPO / "CONTRIBUTING.md", *(REPO / "docs").rglob("*.md")]
MODULES = [path for folder in ("pipelines", "transforms") for path in (REPO / folder).rglob("*.py")]
CONFIGS = list((REPO / "configs").glob("*.yaml"))
BANNED = re.compile(
    r"\b(?:anew|foret(?:old|ells?)|whoever|mend(?:s|ed|ing)?|in silence|reckoned|small letters|is there already"
    r"|told|tells? (?:of|how|what|it)|(?:gone|goes|go|going|went) on with|seldom|heed(?:s|ed)?|lest|thereof"
    r"|(?:lies?|stands?)(?! for| in for|-)|stood|held against|of the moment|in the mean|c[ao]me to be)\b"
    r"|(?:(?<=[.!?] )|(?<=\A)|(?<=\n\n))Of (?:a|all|each|several|the|those|two|what)\b",
    re.IGNORECASE,
)


def banned_in(text: str) -> list[str]:
    """Return each banned word with what is around it; code in backticks, such as a test's name, may hold any."""
    prose = re.sub(r"`[^`\n]*`", "`code`", text)
    return [prose[max(0, found.start() - 30) : found.end() + 30] for found in BANNED.finditer(prose)]


@pytest.mark.parametrize("page", sorted(PAGES + CONFIGS), ids=lambda page: page.name)
def test_a_page_or_config_has_no_word_that_the_style_avoids(page: Path) -> None:
    assert banned_in(page.read_text()) == []


def test_the_newest_section_of_the_changelog_has_none() -> None:
    newest = re.split(r"^## ", (REPO / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1]
    assert banned_in(newest) == []


def test_no_help_text_has_any() -> None:
    commands = [[command.name or command.callback.__name__] for command in app.registered_commands if command.callback]
    commands += [["flink", c.callback.__name__] for c in flink_commands.app.registered_commands if c.callback]
    for command in [[], *commands]:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), pytest.raises(SystemExit):
            main([*command, "--help"])
        assert "Usage" in shown.getvalue()
        assert banned_in(re.sub(r"\s+", " ", shown.getvalue())) == [], command


def texts_of(module: Path) -> tuple[list[str], list[str]]:
    """Return the docstrings and comments of a module, and its other literals, which messages are made of."""
    tree = ast.parse(module.read_text())
    bodies = [body for node in ast.walk(tree) if isinstance(body := getattr(node, "body", None), list)]
    docs = {id(item.value) for body in bodies for item in body if isinstance(item, ast.Expr)}
    literals = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    with tokenize.open(module) as file:
        comments = [token.string for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.COMMENT]
    docstrings = [str(literal.value) for literal in literals if id(literal) in docs]
    return docstrings + comments, [str(literal.value) for literal in literals if id(literal) not in docs]


def test_no_message_of_the_product_has_any() -> None:
    for module in MODULES:
        for text in texts_of(module)[1]:
            assert banned_in(f"…{text}") == [], module.name  # a literal may follow a value


def test_no_docstring_or_comment_of_the_product_has_any() -> None:
    found = {}
    for module in MODULES:
        bad = [words for text in texts_of(module)[0] for words in banned_in(text)]
        if bad:
            found[str(module.relative_to(REPO))] = bad
    assert found == {}


def test_the_words_that_the_style_lists_are_those_that_are_looked_for() -> None:
    listed = re.findall(r"^\| [^|`\n]*`([^`\n]+)`", STYLE.read_text().partition("## Also")[0], re.MULTILINE)
    assert len(listed) > 10
    assert [words for words in listed if not BANNED.search(f"{words} x")] == []
