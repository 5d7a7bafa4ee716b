"""Make the tables of the docs from the code (types, config keys, reject codes, the Python API), and the JSON Schema.

    uv run python docs/make_tables.py

Each table stands between `<!-- table NAME -->` and `<!-- end -->` in a page; what is around it is written by hand.
`tests/test_tables.py` compares the pages with what this module makes.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
from make_readers import reader_programs
from make_schema import SCHEMA_FILE, schema_text
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo
from shardmill.pipelines.config import model as config_inputs
from shardmill.pipelines.config import model as config_model
from shardmill.pipelines.config import runners as config_runners
from shardmill.pipelines.config import sections as config_pictures
from shardmill.pipelines.config.remembered import DECISIONS
from shardmill.transforms import errors
from shardmill.transforms.dataset.reading.open_dataset import Dataset
from shardmill.transforms.format.batches.rejects import CODES
from shardmill.transforms.format.columns.flatten import empty_array, flatten_column
from shardmill.transforms.format.columns.keys import type_document, type_of_document, unheld
from shardmill.transforms.format.manifest.manifest import ColumnEntry
from shardmill.transforms.format.schema.arrow_types import arrow_type_of, feature_of
from shardmill.transforms.format.schema.column_types import TYPES
from shardmill.transforms.format.schema.schema import Feature, Schema
from shardmill.transforms.format.sidecars.tfds import features as tfds_features
from shardmill.transforms.format.wording.printable import parse_size
from shardmill.transforms.sources.images.pieces import image_schema
from shardmill.transforms.sources.registry.options import InputOfUnknownFormat
from table_words import CONFIG_WORDS, IMAGE_WORDS, REJECT_WORDS

DOCS: Final = Path(__file__).parent

Row = Sequence[str]


def table(head: Row, rows: Sequence[Row]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "&#124;") for cell in line) + " |" for line in lines)


def code(text: object) -> str:
    """Return text as code, or nothing for nothing."""
    return f"`{text}`" if text != "" else ""


# types


ARROW: Final[tuple[pa.DataType, ...]] = (
    *(one.arrow("us", zone) for one in TYPES.values() if one.declarable for zone in (None, "UTC")[: 1 + one.timezone]),
    pa.timestamp("ns"), pa.dictionary(pa.int32(), pa.string()), pa.null(), pa.list_(pa.int64()), pa.list_(pa.float32()),
    pa.list_(pa.string()), pa.list_(pa.float32(), 4),
    pa.fixed_shape_tensor(pa.int16(), (2, 3)),
)  # fmt: skip
"""The types of columns that the table shows."""

REFUSED: Final[tuple[pa.DataType, ...]] = (
    pa.month_day_nano_interval(), pa.dense_union([pa.field("a", pa.int64())]), pa.struct([]),
)  # fmt: skip

DTYPES: Final = {"int64": "tf.int64", "float": "tf.float32", "bytes": "tf.string"}
LOWEST: Final = {"int64": "-2^63", "float": "-3.4e38", "bytes": 'b""'}


def _in_tfds(feature: Feature) -> str:
    """Return the class and dtype that `features.json` gives a feature."""
    document = json.loads(tfds_features(Schema((feature,)), {}))["featuresDict"]["features"]
    entry = document[feature.name]
    name = entry["pythonClassName"].rpartition(".")[2]
    dtype = entry.get("tensor", {}).get("dtype", "")
    return f"{name} {dtype}".strip()


def _null_in_tfds(feature: Feature) -> str:
    if feature.shape == (-1,):
        return "`[]`"
    return f"`{LOWEST[feature.kind]}`" + (" in each place" if feature.shape else "")


def _in_tf_io(feature: Feature) -> str:
    dtype = DTYPES[feature.kind]
    if -1 in feature.shape:
        return f"VarLenFeature({dtype})"
    return f"FixedLenFeature({list(feature.shape)}, {dtype})"


def type_rows() -> Iterator[Row]:
    """Yield what becomes of a column of each type."""
    for arrow in ARROW:
        some, _ = feature_of(pa.field("x", arrow, nullable=pa.types.is_null(arrow)))
        null, _ = feature_of(pa.field("x", arrow, nullable=True))
        shape = "" if not some.shape else " list" if some.shape == (-1,) else f" {list(some.shape)}"
        null_type = _in_tfds(null)
        other = null_type != _in_tfds(some) and null.kind != "bytes"
        shown = _null_in_tfds(null) + (f", as {null_type.split()[-1]}" if other else "")
        yield (
            code(_arrow_name(arrow)),
            f"{some.kind}{shape}",
            code(_in_tf_io(some)),
            _in_tfds(some),
            shown,
            code(_arrow_name(arrow_type_of(some))),
        )


def _arrow_name(arrow: pa.DataType) -> str:
    if pa.types.is_dictionary(arrow):
        return f"dictionary of {arrow.value_type}"
    if isinstance(arrow, pa.FixedShapeTensorType):
        return f"tensor of {arrow.value_type}, shape {arrow.shape}"
    text = re.sub(r"\bdouble\b", "float64", re.sub(r"\bfloat\b", "float32", str(arrow)))
    return text.replace("halffloat", "float16").replace("item: ", "")


NESTED: Final[tuple[pa.DataType, ...]] = (
    pa.decimal128(10, 2), pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]),
    pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.float32()))])), pa.map_(pa.string(), pa.int64()),
    pa.list_(pa.list_(pa.int64())), pa.list_(pa.list_(pa.list_(pa.string()))), pa.list_(pa.list_(pa.float32(), 4)),
    pa.list_(pa.decimal128(10, 2)), pa.decimal256(50, 2), pa.run_end_encoded(pa.int32(), pa.string()),
    pa.list_view(pa.list_view(pa.int64())),
)  # fmt: skip
"""The types of columns that become several features, or text."""


def nested_rows() -> Iterator[Row]:
    """Yield the keys of a nested column `x` that may be null, what readers give, and what comes back."""
    for arrow in NESTED:
        found = flatten_column("x", empty_array(arrow), nullable=True).columns
        features = [feature_of(pa.field(one.name, one.values.type, one.nullable))[0] for one in found]
        schema = Schema(tuple(sorted(features, key=lambda feature: feature.name)))
        entry = ColumnEntry("x", type_document(arrow), tuple(feature.name for feature in features))
        document = json.loads(tfds_features(schema, {}, None, (entry,)))["featuresDict"]["features"]
        back = type_of_document(type_document(arrow))
        yield (
            code(_arrow_name(arrow)),
            ", ".join(f"{code(f.name)} ({f.kind}{' list' if f.shape else ''})" for f in features),
            ", ".join(_tf_io_nested(features)),
            ", ".join(f"{code(key)} {_tfds_class(entry)}" for key, entry in document.items()),
            code(_arrow_name(back)),
        )


def _tf_io_nested(features: Sequence[Feature]) -> Iterator[str]:
    """Yield how tf.io reads each key, and the parts of a ragged list at once."""
    for feature in features:
        name, ragged, part = feature.name.partition("/ragged_")
        if not ragged:
            may_lack = feature.nullable and not feature.shape  # then a fixed length has no value to give
            yield f"{code(name)} {code(_in_tf_io(replace(feature, shape=(-1,)) if may_lack else feature))}"
        elif part == "flat_values":
            lengths = sum(other.name.startswith(f"{name}/ragged_row_lengths_") for other in features)
            several = "s" if lengths > 1 else ""
            yield f"{code(name)} {code(f'RaggedFeature({DTYPES[feature.kind]})')} in {lengths} partition{several}"


def _tfds_class(entry: dict[str, Any]) -> str:
    """Return a TFDS feature in words, its parts too."""
    name = entry["pythonClassName"].rpartition(".")[2]
    if "sequence" in entry:
        return f"{name} of {_tfds_class(entry['sequence']['feature'])}"
    if "featuresDict" in entry:
        parts = entry["featuresDict"]["features"]
        return "{" + ", ".join(f"{code(key)} {_tfds_class(part)}" for key, part in parts.items()) + "}"
    tensor = entry.get("tensor", {})
    sizes = [size for size in tensor.get("shape", {}).get("dimensions", []) if size != "-1"]
    return f"{name} {tensor.get('dtype', '')}{' [' + ', '.join(sizes) + ']' if sizes else ''}".strip()


def refused_text() -> str:
    """Return examples of types that are refused.

    Raises:
        ValueError: one of them is not.
    """
    for arrow in REFUSED:
        if unheld(arrow) is None:
            raise ValueError(f"{arrow} has a feature")
    return ", ".join(code(_arrow_name(arrow)) for arrow in REFUSED)


def image_rows() -> Iterator[Row]:
    """Yield the features of an image."""
    for feature in image_schema(labelled=True, hashed=True):
        yield code(feature.name), feature.kind, IMAGE_WORDS[feature.name]


# config


def _type_text(field: FieldInfo) -> str:
    if any(isinstance(given, BeforeValidator) and given.func is parse_size for given in field.metadata):
        return "size"
    return _annotation_text(field.annotation)


def _annotation_text(kind: Any) -> str:
    if kind is type(None):
        return "null"
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _annotation_text(typing.get_args(kind)[0])
    if origin is Literal:
        return ", ".join(
            str(value).lower() if isinstance(value, bool) else str(value) for value in typing.get_args(kind)
        )
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_annotation_text(part) for part in typing.get_args(kind))
    if origin is list:
        return f"list of {_annotation_text(typing.get_args(kind)[0])}"
    if origin is dict:
        return "map"
    names = {str: "text", int: "integer", bool: "true, false", float: "number"}
    return names.get(kind, "map")


def _default_text(name: str, field: FieldInfo) -> str:
    if field.is_required():
        return "from the path" if name == "name" else "required"
    if any(isinstance(given, BeforeValidator) and given.func is parse_size for given in field.metadata):
        return code(_size_text(field.default))
    value = field.default
    return code(json.dumps(value, ensure_ascii=False)) if not isinstance(value, BaseModel) else ""


def _size_text(size: int) -> str:
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size % 2**power == 0:
            return f"{size >> power}{unit}"
    return str(size)


def _keys(section: str, model: type[BaseModel], without: Collection[str] = ()) -> Iterator[Row]:
    """Yield the rows of a model's keys, but those that are said elsewhere."""
    for name, field in model.model_fields.items():
        if name in without:
            continue
        key = field.alias or name
        path = f"{section}.{key}" if section else key
        yield code(path), _type_text(field), _default_text(path, field), CONFIG_WORDS[path]


def config_tables() -> dict[str, str]:
    """Return a table for each section of a config, by its name."""
    head = ("key", "type", "default", "meaning")
    parts = ("input", "schema_", "split", "shuffle", "image", "checks", "output", "limits", "runner")
    of_all = (*InputOfUnknownFormat.model_fields, "format")
    sections: dict[str, list[Row]] = {
        "config": list(_keys("", config_model.Config, parts)),
        "input": list(_keys("input", InputOfUnknownFormat)),
        "schema": [
            *_keys("schema", config_model.SchemaConfig, ["columns"]),
            *_keys("schema.columns.<name>", config_model.ColumnConfig),
        ],
        "split": [*_keys("split", config_model.SplitConfig), *_keys("shuffle", config_model.ShuffleConfig)],
        "image": [
            *_keys("image.resize", config_pictures.ResizeConfig),
            *_keys("image.encode", config_pictures.EncodeConfig),
            *_keys("image", config_pictures.ImageConfig, ["resize", "encode", "filter"]),
            *_keys("image.filter", config_pictures.FilterConfig),
        ],
        "checks": [
            *_keys("checks.duplicates", config_model.DuplicatesConfig),
            *_keys("checks.leaks", config_model.LeaksConfig),
        ],
        "output": list(_keys("output", config_model.OutputConfig)),
        "limits": list(_keys("limits", config_model.LimitsConfig)),
    }
    sections |= {name: list(_keys("input", model, of_all)) for name, model in config_inputs.options_by_format().items()}
    for name, runner in config_runners.RUNNERS.items():
        sections[f"{name} runner"] = list(_keys("runner", runner, ["name"]))
    return {name: table(head, rows) for name, rows in sections.items()}


def append_rows() -> Iterator[Row]:
    """Yield each row of the table that says who decides a key in an append."""
    for one in DECISIONS:
        yield code(one.key), one.who, "remembered" if one.stated else "", one.note


# reject codes


def reject_rows() -> Iterator[Row]:
    """Yield each reject code, what it means, and how to fix it."""
    for reject in CODES:
        meaning, fix = REJECT_WORDS[reject]
        yield code(reject), meaning, fix


# Python


def _signature(name: str, thing: Callable[..., object]) -> str:
    found = inspect.signature(thing)
    given = [one.replace(annotation=one.empty) for one in found.parameters.values() if one.name != "self"]
    shown = found.replace(parameters=given, return_annotation=found.empty)
    return f"{name}{shown}".replace("<factory>", "{}")


def _described(thing: object) -> str:
    """Return a docstring with its examples and sections as Markdown."""
    text = inspect.getdoc(thing) or ""
    text = re.sub(r"^Returns:\n +", "**Returns** ", text, flags=re.MULTILINE)
    text = re.sub(r"^(Args|Raises):$", r"**\1**\n", text, flags=re.MULTILINE)
    text = re.sub(r"^    (\*{0,2}\w+): (.*(?:\n {8}.*)*)", _as_item, text, flags=re.MULTILINE)
    return re.sub(r"^( {4}.*(?:\n(?: {4}.*|(?=\n {4})))*)", _as_block, text, flags=re.MULTILINE)


def _as_item(found: re.Match[str]) -> str:
    return f"- `{found[1]}`: " + re.sub(r"\n +", "\n  ", found[2])


def _as_block(found: re.Match[str]) -> str:
    return "```python\n" + inspect.cleandoc(found[1]) + "\n```"


def python_text(package: str) -> str:
    """Return the public names of a package with their signatures and docstrings."""
    module = importlib.import_module(package)
    parts = []
    for name in sorted(module.__all__):
        thing = getattr(module, name)
        parts.append(f"### {name}\n\n```python\n{_signature(name, thing)}\n```\n\n{_described(thing)}")
    return "\n\n".join(parts)


def dataset_rows() -> Iterator[Row]:
    """Yield what a `Dataset` has, with the first sentence of its docstring."""
    for name, thing in vars(Dataset).items():
        if name.startswith("_") or not (inspect.isfunction(thing) or isinstance(thing, property)):
            continue
        words = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
        yield code(name if isinstance(thing, property) else _signature(name, thing)), words


def error_rows() -> Iterator[Row]:
    """Yield every error with its exit code, bases and meaning, in the order of the source."""
    for name, thing in vars(errors).items():
        if inspect.isclass(thing) and issubclass(thing, errors.ShardmillError):
            bases = ", ".join(code(base.__name__) for base in thing.__bases__)
            words = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
            yield code(name), bases, str(thing.exit_code), words


def tables() -> dict[str, str]:
    """Return the text of each table by its name."""
    columns = ("column", "in a record", "tf.io", "TFDS", "TFDS, null", "open_dataset")
    return {
        "types": table(columns, list(type_rows())),
        "nested types": table(("column", "in a record", "tf.io", "TFDS", "open_dataset"), list(nested_rows())),
        "refused types": refused_text(),
        "image features": table(("feature", "in a record", "what it is"), list(image_rows())),
        **config_tables(),
        "appends": table(("key", "who decides", "by the dataset", "note"), list(append_rows())),
        "reject codes": table(("code", "meaning", "fix"), list(reject_rows())),
        "pipelines": python_text("shardmill.pipelines"),
        "transforms": python_text("shardmill.transforms"),
        "dataset": table(("name", ""), list(dataset_rows())),
        **reader_programs(),
        "errors": table(("error", "is a", "exit code", "meaning"), list(error_rows())),
    }


def filled(text: str, made: dict[str, str]) -> str:
    """Return a page with its tables replaced.

    Raises:
        KeyError: the page has a table that is not made.
    """

    def replaced(found: re.Match[str]) -> str:
        return f"<!-- table {found[1]} -->\n{made[found[1]]}\n<!-- end -->"

    return re.sub(r"<!-- table ([\w ]+) -->\n.*?<!-- end -->", replaced, text, flags=re.DOTALL)


PAGES: Final = (
    *(DOCS / name for name in ("types.md", "config.md", "rejects.md", "python.md")),
    *sorted((DOCS / "readers").glob("*.md")),
)

if __name__ == "__main__":
    made = tables()
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), made), encoding="utf-8")
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
