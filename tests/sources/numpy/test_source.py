from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from shardmill.transforms.errors import RunError, SchemaError, SourceError, UsageError
from shardmill.transforms.format.batches.rejects import Place
from shardmill.transforms.format.batches.rows import Rows
from shardmill.transforms.format.schema.schema import ColumnRule, Feature
from shardmill.transforms.inputs.contract.source import Survey, Task, map_in_turn
from shardmill.transforms.inputs.files.listing import list_file
from shardmill.transforms.sources.numpy.npy import NpyError, NumpyLimits, open_npz
from shardmill.transforms.sources.numpy.source import NumpySource
from shardmill.transforms.sources.registry.settings import Limits

from ...file_sources import assert_same_source, made_source


def survey(source: NumpySource) -> Survey:
    return source.survey(source.list_files(), map_in_turn)


def read(source: NumpySource) -> list[Rows]:
    found = survey(source)
    return list(source.read(Task(0, found.pieces), found.frozen))


def source_of(folder: Path, **options: Any) -> NumpySource:
    return made_source("numpy", (".",), str(folder), **options)


def column(rows: list[Rows], name: str) -> list[Any]:
    return [value for each in rows for value in each.batch.column(name).to_pylist()]


def test_one_array_is_one_record_of_its_shape_and_its_bytes(tmp_path: Path) -> None:
    arrays = [
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.asfortranarray(np.ones((4, 1), "<f4")),
        np.zeros((0, 5), "f4"),
    ]
    for i, array in enumerate(arrays):
        np.save(tmp_path / f"{i}.npy", array)
    source = source_of(tmp_path, feature="emb")
    (rows,) = read(source)
    assert survey(source).frozen.schema.features == (
        Feature("emb/data", "bytes", "array_data", dtype="<f4", rank=2),
        Feature("emb/shape", "int64", "array_shape", (2,)),
    )
    assert column([rows], "emb/shape") == [[2, 3], [4, 1], [0, 5]]
    assert column([rows], "emb/data") == [array.astype("<f4").tobytes() for array in arrays]
    assert list(rows.entry) == [0, 1, 2]  # type: ignore[arg-type]
    assert rows.origin.place(1) == Place("1.npy")


def test_an_empty_feature_name_writes_bare_keys_and_a_scalar_has_an_empty_shape(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.float64(1.5))
    (rows,) = read(source_of(tmp_path, feature=""))
    assert rows.batch.to_pydict() == {"shape": [[]], "data": [np.float64(1.5).tobytes()]}


def test_a_npz_is_one_record_of_its_members(tmp_path: Path) -> None:
    x, y = np.arange(3, dtype="i2"), np.eye(2, dtype="c8")
    np.savez(tmp_path / "a.npz", x=x, y=y)
    np.savez_compressed(tmp_path / "b.npz", y=y * 2, x=x * 2)
    source = source_of(tmp_path)
    rows = read(source)
    assert column(rows, "x/data") == [x.tobytes(), (x * 2).tobytes()]
    assert column(rows, "y/data") == [y.tobytes(), (y * 2).tobytes()]
    assert column(rows, "y/shape") == [[2, 2], [2, 2]]
    assert [f.name for f in survey(source).frozen.schema] == ["x/data", "x/shape", "y/data", "y/shape"]


def test_only_the_chosen_members_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3), y=np.array(["text"]))
    (rows,) = read(source_of(tmp_path, columns=("x",)))
    assert rows.batch.schema.names == ["x/shape", "x/data"]
    with pytest.raises(SchemaError, match=r'input.columns names "z", which is not a column; there are: x, y'):
        survey(source_of(tmp_path, columns=("z",)))


def test_a_kind_of_file_is_told_by_its_content(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", array=np.arange(3))
    os.rename(tmp_path / "a.npz", tmp_path / "a.npy")
    (rows,) = read(source_of(tmp_path))
    assert column([rows], "array/shape") == [[3]]


def test_source_and_survey_travel_to_workers(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    for source in (source_of(tmp_path), source_of(tmp_path, rows=True)):
        found = survey(source)
        assert_same_source(pickle.loads(pickle.dumps(source)), source)
        assert pickle.loads(pickle.dumps(found)) == found


def put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def save_cut(path: Path, array: npt.NDArray[Any], size: int) -> None:
    np.save(path, array)
    cut(path, size)


def save_object(path: Path) -> None:
    np.save(path, np.array([{}], object), allow_pickle=True)


def save_flipped_npz(path: Path) -> None:
    with open(path, "wb") as file:
        np.savez_compressed(file, array=np.arange(1000, dtype="f4").reshape(10, 100))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def save_bomb(path: Path) -> None:
    with open(path, "wb") as file:
        np.savez_compressed(file, array=np.zeros((999, 999), "f4"))


def save_npz_of(path: Path, **arrays: npt.NDArray[Any]) -> None:
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def save_npz_with_a_far_member(path: Path) -> None:
    save_npz_of(path, array=np.ones((2, 2), "f4"))
    data = path.read_bytes()
    # The end record's offset of the directory: `zipfile` adds what it is off by to the offset of every member.
    path.write_bytes(data[:-6] + (2**31).to_bytes(4, "little") + data[-2:])


def save_cut_npz(path: Path) -> None:
    save_npz_of(path, array=np.ones((2, 2), "f4"))
    cut(path, 200)


def save_with_foreign_member(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")


BAD_FILES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "another dtype": (
        lambda path: np.save(path, np.ones((2, 2), "f8")),
        "BAD_DTYPE",
        '"array/data" has dtype float64 and rank 2; the schema has dtype float32 and rank 2',
    ),
    "another rank": (
        lambda path: np.save(path, np.ones(2, "f4")),
        "BAD_DTYPE",
        '"array/data" has dtype float32 and rank 1; the schema has dtype float32 and rank 2',
    ),
    "objects": (save_object, "BAD_DTYPE", "it holds Python objects (a pickle), which are never loaded"),
    "zero bytes": (lambda path: put(path, b""), "TRUNCATED", "the file is empty (0 bytes)"),
    "no array": (lambda path: put(path, b"text" * 9), "CORRUPT", "signature of a .npy file"),
    "damaged npz": (save_flipped_npz, "CORRUPT", "it is not a sound .npz file: Bad CRC-32"),
    "npz of other members": (
        lambda path: save_npz_of(path, array=np.ones((2, 2), "f4"), more=np.ones(1)),
        "BAD_WIDTH",
        "its arrays are array, more; the first file has array",
    ),
    "npz with another file": (save_with_foreign_member, "UNSUPPORTED", '"readme.txt" is not a .npy file'),
    "npz with a member outside": (save_npz_with_a_far_member, "CORRUPT", "is not inside the file"),
    "npz that is cut": (
        save_cut_npz,
        "TRUNCATED",
        "the file is cut",
    ),
    "array over the limit": (lambda path: np.save(path, np.ones((99, 99), "f4")), "RECORD_TOO_LARGE", "record_bytes"),
    "npz over the limit": (
        save_bomb,
        "RECORD_TOO_LARGE",
        "unpacked it has 3992132 bytes, over limits.record_bytes = 20000",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_cannot_be_a_record_is_a_reject_and_the_others_are_kept(tmp_path: Path, case: str) -> None:
    save, code, message = BAD_FILES[case]
    for name in ("a", "c"):
        np.save(tmp_path / f"{name}.npy", np.ones((3, 2), "f4"))
    save(tmp_path / "b.npy")
    (rows,) = read(source_of(tmp_path, limits=Limits(record_bytes=20_000)))
    (reject,) = rows.rejects
    (error,) = reject.errors
    assert (reject.entry, reject.place) == (1, Place("b.npy"))
    assert error.code == code
    assert message in error.message
    assert list(rows.entry) == [0, 2]  # type: ignore[arg-type]
    assert [rows.origin.place(i).source for i in range(2)] == ["a.npy", "c.npy"]


def test_the_directory_of_an_archive_is_bounded_before_it_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{f"a{number}": np.arange(2000) for number in range(20)})
    file = list_file(os.fsencode(tmp_path / "a.npz"), b"/")
    with open_npz(file) as archive:
        assert len(archive.read("a7.npy")) == 16128  # members may be larger than the bound
    with (
        pytest.raises(NpyError, match=r"the directory of its members has \d+ bytes; at most 1000 are read"),
        open_npz(file, directory_limit=1000),
    ):
        pass


def test_a_task_of_rejects_only_yields_them(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(3))
    (tmp_path / "b.npy").write_bytes(b"")
    source = source_of(tmp_path)
    found = survey(source)
    (rows,) = source.read(Task(0, found.pieces[1:]), found.frozen)
    assert rows.batch.num_rows == 0
    assert len(rows.rejects) == 1


def test_where_no_file_is_sound_there_is_no_schema(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"")
    save_object(tmp_path / "b.npy")
    with pytest.raises(SchemaError, match=r"none of the files .* a.npy: the file is empty"):
        survey(source_of(tmp_path))


def test_where_all_files_are_damaged_the_run_fails_and_no_config_is_blamed(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"")
    np.save(tmp_path / "b.npy", np.arange(5))
    with (tmp_path / "b.npy").open("r+b") as file:
        file.truncate(140)
    with pytest.raises(RunError, match=r"none of the files .* a.npy: the file is empty") as caught:
        survey(source_of(tmp_path))
    assert caught.value.exit_code == 1


def test_the_first_sound_file_sets_the_schema(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"")
    np.save(tmp_path / "b.npy", np.ones(3, "i1"))
    found = survey(source_of(tmp_path))
    assert found.frozen.schema.features[0].dtype == "|i1"
    assert "as in b.npy" in found.choices[0].reason


def test_files_are_batched_by_their_size(tmp_path: Path) -> None:
    for i in range(6):
        np.save(tmp_path / f"{i}.npy", np.full(10 if i != 3 else 5000, i, "i8"))
    rows = read(source_of(tmp_path, limits=NumpyLimits(file_batch=1000)))
    assert [each.ordinal for each in rows] == list(range(len(rows)))
    assert [list(each.entry) for each in rows] == [[0, 1, 2], [3], [4, 5]]  # type: ignore[arg-type]
    assert column(rows, "array/data")[3] == np.full(5000, 3, "i8").tobytes()


def test_a_file_that_changed_since_it_was_listed_fails_the_run(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(3))
    for time, source in enumerate((source_of(tmp_path), source_of(tmp_path, rows=True))):
        found = survey(source)
        os.utime(tmp_path / "a.npy", ns=(time, time))
        with pytest.raises(SourceError, match=r"a.npy: changed while it was read"):
            list(source.read(Task(0, found.pieces), found.frozen))


def test_rules_do_not_go_with_arrays_as_records() -> None:
    with pytest.raises(SchemaError, match=r"input\.rows: true"):
        made_source("numpy", ("a.npy",), rules={"x": ColumnRule(type="int64")})


def test_rows_of_text_bytes_and_durations_are_read_from_files_of_any_width(tmp_path: Path) -> None:
    for name, texts in (("a", ["a", "é\0b", ""]), ("b", ["a longer one", "\U0001f989", "z"])):
        took = np.array([1, "NaT", -3], "m8[ms]")
        raw = np.array([text.encode()[:4] for text in texts])
        np.savez(tmp_path / f"{name}.npz", text=np.array(texts).astype(">U12"), raw=raw, took=took)
    np.savez(tmp_path / "c.npz", text=np.array(["é"]), raw=np.array([b"\xff"]), took=np.zeros(1, "m8[ms]"))
    source = source_of(tmp_path, rows=True)
    assert [(feature.name, feature.kind, feature.type) for feature in survey(source).frozen.schema] == [
        ("raw", "bytes", "binary"),
        ("text", "bytes", "string"),
        ("took", "int64", "duration"),
    ]
    rows = read(source)
    assert column(rows, "text") == ["a", "é\0b", "", "a longer one", "\U0001f989", "z", "é"]
    assert column(rows, "raw") == [b"a", b"\xc3\xa9\0b", b"", b"a lo", b"\xf0\x9f\xa6\x89", b"z", b"\xff"]
    assert column(rows, "took")[1:3] == [None, timedelta(milliseconds=-3)]


def test_text_with_more_axes_is_a_list_of_text(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.asfortranarray([["a", "bc"], ["", "d"], ["é", "f"]]))
    rows = read(source_of(tmp_path, rows=True, feature="words"))
    assert column(rows, "words") == [["a", "bc"], ["", "d"], ["é", "f"]]


@pytest.mark.parametrize("code", [0x110000, 0xD800])
def test_text_that_is_no_unicode_fails_the_run_by_its_file(tmp_path: Path, code: int) -> None:
    np.save(tmp_path / "a.npy", np.array(["a", "b"]))
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole[:-4] + code.to_bytes(4, "little"))
    with pytest.raises(SourceError, match=rf'^a\.npy: column "array": {code:#x} is no Unicode character'):
        read(source_of(tmp_path, rows=True, feature="array"))


@pytest.mark.parametrize(
    ("array", "held"),
    [
        (["a", "é"], "text (dtype <U1)"),
        ([b"a"], "bytes (dtype |S1)"),
        (np.zeros(1, "m8[s]"), "durations (dtype <m8[s])"),
    ],
)
def test_text_in_a_record_of_a_whole_array_is_refused_with_the_key_that_takes_it(
    tmp_path: Path, array: Any, held: str
) -> None:
    np.save(tmp_path / "u.npy", np.array(array))
    with pytest.raises(SchemaError) as raised:
        read(source_of(tmp_path))
    assert f"u.npy: it holds {held}, which only rows do; make each row a record: --set input.rows=true" in str(
        raised.value
    )


def test_a_file_of_text_among_records_of_numbers_is_a_reject(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    np.save(tmp_path / "b.npy", np.array(["a", "b", "c"]))  # as long, and no column beside a record
    (rows,) = read(source_of(tmp_path))
    assert [reject.errors[0].code for reject in rows.rejects] == ["BAD_DTYPE"]


def test_rows_need_a_name() -> None:
    with pytest.raises(UsageError, match=r"input\.feature"):
        made_source("numpy", ("a.npy",), rows=True, feature="")


ROW_ARRAYS = {
    "scalars": np.arange(1000, dtype=">i4"),
    "bools": np.arange(1000) % 3 == 0,
    "half floats": np.arange(1000, dtype="f2"),
    "lists": np.arange(6000, dtype="f4").reshape(1000, 6),
    "tensors, big-endian": np.arange(6000, dtype=">f8").reshape(1000, 2, 3),
    "tensors in Fortran order": np.asfortranarray(np.arange(6000, dtype="u2").reshape(1000, 3, 2)),
    "times": np.arange(1000).astype("M8[ms]"),
}


@pytest.mark.parametrize("packed", [None, np.savez, np.savez_compressed])
@pytest.mark.parametrize("case", ROW_ARRAYS)
def test_the_first_axis_is_the_row(tmp_path: Path, case: str, packed: Callable[..., None] | None) -> None:
    array = ROW_ARRAYS[case]
    if packed is None:
        np.save(tmp_path / "a.npy", array)
    else:
        packed(tmp_path / "a.npz", array=array)
    source = source_of(tmp_path, rows=True, limits=NumpyLimits(piece=300, row_batch=400))
    found = survey(source)
    assert found.frozen.schema.features[0].shape == array.shape[1:]
    assert sum(piece.rows or 0 for piece in found.pieces) == 1000
    middle = len(found.pieces) // 2
    first_half = list(source.read(Task(0, found.pieces[:middle]), found.frozen)) if middle else []
    rows = first_half + list(source.read(Task(1, found.pieces[middle:]), found.frozen))
    values: list[Any] = []
    for each in rows:
        assert each.origin.place(0) == Place(each.origin.place(0).source, row=len(values) + 1)
        flat = each.batch.column("array")
        storage = flat.storage if isinstance(flat, pa.ExtensionArray) else flat
        values.extend(storage.to_pylist())
    assert len(rows) > 1
    assert values == array.reshape((1000, -1) if array.ndim > 1 else 1000).tolist()


def test_a_large_file_is_cut_into_pieces_of_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 1 << 20), "f4"))
    assert [(p.first_row, p.rows, p.bytes) for p in survey(source_of(tmp_path, rows=True)).pieces] == [
        (i, 1, 4 << 20) for i in range(3)
    ]


def test_members_of_a_npz_are_columns(tmp_path: Path) -> None:
    for i, name in enumerate("ab"):
        np.savez(tmp_path / f"{name}.npz", x=np.arange(3) + 3 * i, y=np.ones((3, 2), "f4"))
    source = source_of(tmp_path, rows=True)
    rows = read(source)
    assert column(rows, "x") == [0, 1, 2, 3, 4, 5]
    assert [(f.name, f.type, f.shape) for f in survey(source).frozen.schema] == [
        ("x", "int64", ()),
        ("y", "float32", (2,)),
    ]
    assert rows[1].origin.place(0) == Place("b.npz", row=1)


def test_no_time_is_a_null(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array(["2020-01-01", "NaT"], "M8[D]"))
    source = source_of(tmp_path, rows=True)
    assert column(read(source), "array")[1] is None
    assert survey(source).frozen.schema.features[0].nullable


ROW_ERRORS: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut": (
        lambda folder: save_cut(folder / "a.npy", np.ones(9), 150),
        r"^a.npy: the header says float64 of shape \(9\)",
    ),
    "objects": (lambda folder: save_object(folder / "a.npy"), "^a.npy: it holds Python objects"),
    "a scalar": (lambda folder: np.save(folder / "a.npy", np.float32(1)), '^a.npy: array "array" is a scalar'),
    "lengths": (
        lambda folder: np.savez(folder / "a.npz", x=np.ones(3), y=np.ones(4)),
        '^a.npz: array "x" has 3 rows, and "y" has 4',
    ),
}


@pytest.mark.parametrize("case", ROW_ERRORS)
def test_a_damaged_file_of_rows_fails_the_run_by_its_name(tmp_path: Path, case: str) -> None:
    save, message = ROW_ERRORS[case]
    save(tmp_path)
    with pytest.raises(SourceError, match=message):
        survey(source_of(tmp_path, rows=True))


def test_a_damaged_member_of_rows_fails_the_run_by_its_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", array=np.arange(100_000))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(SourceError, match=r"^a.npz: it cannot be unpacked: Bad CRC-32"):
        read(source_of(tmp_path, rows=True))


ROW_SCHEMA_ERRORS: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any], str]] = {
    "another dtype": (np.ones(3, "f4"), np.ones(3), "has rows of float32 () in a.npy, and of float64 () in b.npy"),
    "another shape": (np.ones((3, 2)), np.ones((3, 4)), "has rows of float64 (2,) in a.npy, and of float64 (4,) in b"),
    "complex": (np.ones(3, "c8"), np.ones(3, "c8"), 'a.npy: column "array": dtype complex64 has no feature'),
    "hours": (np.zeros(3, "M8[h]"), np.zeros(3, "M8[h]"), "convert its unit to one of D, s, ms, us, ns"),
    "no values": (np.ones((3, 0)), np.ones((3, 0)), "rows of shape (0,) hold no values"),
}


@pytest.mark.parametrize("case", ROW_SCHEMA_ERRORS)
def test_arrays_without_a_common_feature_are_an_error_at_the_start(tmp_path: Path, case: str) -> None:
    one, two, message = ROW_SCHEMA_ERRORS[case]
    np.save(tmp_path / "a.npy", one)
    np.save(tmp_path / "b.npy", two)
    with pytest.raises(SchemaError) as caught:
        survey(source_of(tmp_path, rows=True))
    assert message in str(caught.value)


def test_a_date_that_arrow_would_wrap_around_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([2**40], "i8").view("M8[D]"))
    with pytest.raises(SourceError, match=r"a.npy: .* a date is more than 2\*\*31 days from 1970"):
        read(source_of(tmp_path, rows=True))


def test_a_packed_array_in_fortran_order_over_the_limit_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.asfortranarray(np.ones((100, 100))))
    with pytest.raises(SourceError, match=r"a.npz: .*save it in C order"):
        read(source_of(tmp_path, rows=True, limits=Limits(record_bytes=10_000)))
