"""The examples in the docstrings hold, and what docstrings and comments name is there."""

from __future__ import annotations

import ast
import doctest
import importlib
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("pipelines", "transforms") for path in (ROOT / folder).rglob("*.py"))

QUOTED = re.compile(r"`([A-Za-z_]\w*(?:[./][A-Za-z_]\w*)*)`")
WORD = re.compile(r"[A-Za-z_]\w*")

NAMES_OF_OTHERS = """
DataLoader collate_fn RandomAccessDataSource MonitoringInfo display_data nohup wbits ftyp type_length ColumnChunk
tf.train.BytesList FloatList Int64List StringIntLabelMap _upb_mapsorter_cmpstr tfrecord2idx as_pascal_voc
tensorflow.metadata.v0.Schema tfdv.load_statistics DatasetFeatureStatisticsList
core/example_serializer.py proto/v0/schema.proto proto/v0/statistics.proto utils/stats_util.py file_download.py
tf_example_decoder.py create_coco_tf_record.py create_pascal_tf_record.py arrow_dataset.py dataset_dict.py
folder_based_builder.py tariterators.py autodecode.py
"""
"""Classes, functions and files of libraries and tools: what the product follows, and does not call."""

NAMES_IN_DATA = """
NO N1 tasks/NNNNNN.json meta/esc50.csv train2017 panoptic_train2017 minival2017 a9a GroundTruth is_train train_v1
train_v2 pixel0 pixel783 pets
"""
"""Files, folders, columns and values in examples of data."""


def _modules_with_examples() -> list[str]:
    """Return the names of the modules in whose source an example stands."""
    return [
        ".".join(("shardmill", *path.relative_to(ROOT).with_suffix("").parts))
        for path in FILES
        if ">>> " in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("name", _modules_with_examples())
def test_the_examples_of_a_module_are_what_it_does(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.Constant, str]]:
    """Yield the strings that are statements: docstrings, of constants and fields too."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)) as constant):
                yield constant, text


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a file, each with its line."""
    text = path.read_text(encoding="utf-8")
    yield from ((node.lineno, words) for node, words in _docstrings(ast.parse(text)))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _names_in(path: Path) -> Iterator[str]:
    """Yield the names that the code of a file has, and the words in its strings: keys, files, features."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node) for node, _ in _docstrings(tree)}
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name):
                yield name
            case ast.arg(arg=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield from WORD.findall(text)


@cache
def _names() -> frozenset[str]:
    parts = {part for path in ROOT.glob("docs/**/*.md") for part in WORD.findall(path.name)}
    for path in FILES:
        parts |= {word for part in path.relative_to(ROOT).parts for word in WORD.findall(part)}
        parts.update(_names_in(path))
    return frozenset(parts)


def _is_there(quoted: str, known: frozenset[str]) -> bool:
    """Return whether a name, or all parts of it, exist; of paths like `a.csv` those alone that begin with a name."""
    first, *others = WORD.findall(quoted)
    if others and first not in known and not quoted.endswith(".py"):
        return True
    return known.issuperset([first, *others])


@pytest.mark.parametrize("folder", ["pipelines", "transforms"])
def test_what_docstrings_and_comments_name_is_there(folder: str) -> None:
    known, spared = _names(), {*NAMES_OF_OTHERS.split(), *NAMES_IN_DATA.split()}
    found = [
        f"{path.relative_to(ROOT)}:{line}: `{quoted}`"
        for path in FILES
        if path.is_relative_to(ROOT / folder)
        for line, text in _prose(path)
        for quoted in QUOTED.findall(text)
        if quoted not in spared
        if not _is_there(quoted, known)
    ]
    assert found == [], "rename it, or say above that it is a name of others, or of data"
