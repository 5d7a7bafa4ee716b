"""The map of the house in CONTRIBUTING.md: a newcomer finds each package there, and none that is gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
HOUSES = ("pipelines", "transforms")
PACKAGES = {
    folder.relative_to(ROOT).as_posix()
    for house in HOUSES
    for folder in (ROOT / house).rglob("*")
    if (folder / "__init__.py").exists()
}
PLACES = {
    path.relative_to(ROOT).with_suffix("").as_posix() for house in HOUSES for path in (ROOT / house).rglob("*.py")
}
NAMED = sorted(set(re.findall(r"`(?!docs/|tests/)([a-z_]+(?:/[a-z_]+)+)/?(?:\.[a-z_]+)?`", PAGE)))


def packages_of_the_map() -> set[str]:
    """Return what the first block of the page names: a package a line, and those within it in its text or below it."""
    block = re.search(r"(?:^    .*\n)+", PAGE.partition("## Architecture")[2], re.MULTILINE)
    assert block is not None
    found, above, package = set[str](), dict[int, str](), ""
    for line in block.group().splitlines():
        if match := re.match(r"( +)([a-z_]+)/ {2,}", line):
            depth, name = len(match[1]), match[2]
            package = above[depth] = f"{above.get(depth - 2, '')}/{name}".lstrip("/")
            found.add(package)
            line = line[match.end() :]
        found |= {f"{package}/{name}" for name in re.findall(r"(?<![\w/])([a-z_]+)/", line)}
    return {one for one in found if one.startswith(tuple(f"{house}/" for house in HOUSES))}


def test_the_map_names_every_package_and_none_that_is_gone() -> None:
    assert sorted(packages_of_the_map()) == sorted(PACKAGES)


@pytest.mark.parametrize("name", NAMED)
def test_a_module_that_the_page_names_is_there(name: str) -> None:
    assert any(f"/{place}".endswith(f"/{name}") for place in PLACES | PACKAGES)
