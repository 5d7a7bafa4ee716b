"""What a user of the command line meets with TFRecord files of messages that begin as an Example does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.format.batches.arrow_memory import varint
from shardmill.transforms.format.examples.decode_examples import other_message

from ..examples import example_from_values


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def example(**values: Any) -> bytes:
    return example_from_values(values).SerializeToString(deterministic=True)


def sequence(context: bytes, *steps: int) -> bytes:
    features = b"".join(field(1, field(3, field(1, varint(step)))) for step in steps)
    return context + field(2, field(1, field(1, b"clicks") + field(2, features)))


def elwc(context: bytes, *examples: bytes) -> bytes:
    return b"".join(field(1, one) for one in examples) + field(2, context)


SEQUENCES = [sequence(example(user=n, country="de"), 1, 2, 300) for n in range(200)]
LISTS = [elwc(example(query="boots"), example(price=1.5, rank=n), example(price=2.5, rank=0)) for n in range(200)]


@pytest.fixture
def run(desk: Any) -> Any:
    def run(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        return int(ended.value.code or 0), *desk.capsys.readouterr()

    return run


@pytest.mark.parametrize("command", ["merge", "rebuild", "convert"])
@pytest.mark.parametrize(
    ("records", "name"), [(SEQUENCES, "tf.train.SequenceExample"), (LISTS, "ExampleListWithContext")]
)
def test_they_are_refused_by_name_and_kept_where_records_are_opaque(
    run: Any, command: str, records: list[bytes], name: str
) -> None:
    write_records("x.tfrecord", records)
    code, _, err = run(command, "x.tfrecord", "-o", "out")
    assert (code, err) == (
        2,
        f"error: x.tfrecord: none of its records is a tf.train.Example, they are {name}; leave it out, or make a new "
        "dataset of all records as plain bytes: --set input.records=opaque\n",
    )
    assert run(command, "x.tfrecord", "-o", "out", "-q", "--set", "input.records=opaque")[0] == 0
    assert list(open_dataset("out").records("train")) == records


def test_one_among_examples_is_a_reject(run: Any) -> None:
    write_records("x.tfrecord", [example(user=1, country="de"), *SEQUENCES[:1], *[example(user=1, country="d")] * 99])
    code, _, err = run("merge", "x.tfrecord", "-o", "out")
    assert code == 4
    assert "CORRUPT: it is not a tf.train.Example but tf.train.SequenceExample; to keep such records as they are" in err
    code, out, _ = run("merge", "x.tfrecord", "-o", "out", "--max-rejects", "1")
    assert (code, "100 written, 1 rejected" in out) == (0, True)


def test_inspect_says_what_they_are(run: Any) -> None:
    write_records("x.tfrecord", [SEQUENCES[0], LISTS[0]])
    _, out, _ = run("inspect", "x.tfrecord")
    assert "not a tf.train.Example but tf.train.SequenceExample: " in out
    assert "not a tf.train.Example but ExampleListWithContext: " in out
    _, out, _ = run("inspect", "x.tfrecord", "--json", "-n", "1")
    assert json.loads(out)["problem"] == "not a tf.train.Example but tf.train.SequenceExample"
    assert json.loads(out)["features"] is None


@pytest.mark.parametrize(
    "payload",
    [b"", b"\x0a", b"\x12", b"\x12\x05a", example(a=1), b"\xff", b"\x12" + b"\xff" * 12,
     field(1, b"a") + field(2, b"b"), field(1, b"name") + field(2, b"other") + field(3, b"x"), SEQUENCES[0][:-1]],
)  # fmt: skip
def test_other_bytes_are_none_of_them(payload: bytes) -> None:
    assert other_message(payload) is None


def test_plain_bytes_of_two_fields_stay_opaque(run: Any, tmp_path: Path) -> None:
    write_records("x.tfrecord", [field(1, b"name") + field(2, b"other")] * 3)
    assert run("merge", "x.tfrecord", "-o", "out", "-q")[0] == 0


def test_info_names_the_command_that_keeps_them(run: Any) -> None:
    write_records("x.tfrecord", SEQUENCES)
    code, out, _ = run("info", "x.tfrecord")
    *_, command = out.splitlines()
    assert (code, command.partition(": shardmill ")[2]) == (0, "merge x.tfrecord -o FOLDER --records opaque")
    assert run(*command.partition(": shardmill ")[2].replace("FOLDER", "out").split())[0] == 0
    assert list(open_dataset("out").records("train")) == SEQUENCES
