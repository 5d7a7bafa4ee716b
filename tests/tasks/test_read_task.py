"""Tasks whose files cannot be read on: the error has their names."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines import convert
from shardmill.pipelines.cli import main
from shardmill.transforms.sources.csv.source import CsvSource
from shardmill.transforms.sources.jsonl.source import JsonLinesSource
from shardmill.transforms.sources.parquet import source as parquet_source


@pytest.mark.parametrize(("call", "end"), [(1, "; look"), (2, ": nothing was committed")], ids=["planning", "a task"])
@pytest.mark.parametrize(("name", "reader"), [("a.csv", CsvSource), ("a.jsonl", JsonLinesSource)])
def test_an_error_of_the_disk_while_a_file_is_read_names_it(
    tmp_path: Path,
    name: str,
    reader: Any,
    call: int,
    end: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id\n1\n2\n")
    Path("a.jsonl").write_text('{"id": 1}\n{"id": 2}\n')
    real, calls = reader.read, itertools.count(1)

    def read(*args: Any) -> Iterator[Any]:
        yield from real(*args)
        if next(calls) >= call:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(reader, "read", read)
        with pytest.raises(SystemExit) as ended:
            main(["convert", name, "-o", "out", "-q"])
    assert ended.value.code == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: Input/output error: {name}{end}")
    assert "look after the disk" in err
    assert convert(name, output="out").manifest.counts.written == 2


def test_an_error_of_the_disk_is_no_damage_of_a_parquet_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"id": [1, 2]}), "a.parquet")

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "Error reading bytes from file")

    with monkeypatch.context() as patch:
        patch.setattr(parquet_source, "check_pages", fail)
        with pytest.raises(SystemExit) as ended:
            main(["convert", "a.parquet", "-o", "out", "-q"])
    assert ended.value.code == 1
    err = capsys.readouterr().err
    assert "a.parquet: cannot be read: Input/output error; look after its disk, and run the command again" in err
    assert "damaged" not in err
    assert convert("a.parquet", output="out").manifest.counts.written == 2
