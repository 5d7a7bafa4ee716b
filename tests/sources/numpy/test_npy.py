from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from shardmill.transforms.sources.numpy.npy import NpyError, dtype_text, parse_header


def saved(array: npt.NDArray[Any], version: tuple[int, int] | None = None) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def with_header(text: str, version: bytes = b"\x01\x00", data: bytes = b"") -> bytes:
    body = text.encode()
    length = struct.pack("<H" if version == b"\x01\x00" else "<I", len(body))
    return b"\x93NUMPY" + version + length + body + data


def refusal(data: bytes) -> NpyError:
    with pytest.raises(NpyError) as caught:
        parse_header(data).check_size(len(data))
    return caught.value


DTYPES = ("?", "<i1", ">i2", "<i8", ">u8", "<f2", ">f4", "<f8", ">c8", "<c16", "<M8[us]", ">M8[D]")


@given(
    hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)),
    st.booleans(),
    st.sampled_from([(1, 0), (2, 0), (3, 0)]),
)
def test_bytes_are_those_of_the_array_in_little_endian_c_order(
    array: npt.NDArray[Any], fortran: bool, version: tuple[int, int]
) -> None:
    data = saved(np.asfortranarray(array) if fortran and array.ndim else array, version)
    header = parse_header(data)
    header.check_size(len(data))
    expected = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    assert header.shape == array.shape
    assert header.dtype == expected.dtype
    assert bytes(header.little_c_bytes(memoryview(data)[header.data_offset :])) == expected.tobytes()


def test_bytes_that_are_in_order_already_are_not_copied() -> None:
    data = saved(np.arange(6, dtype="<f4").reshape(2, 3))
    header = parse_header(data)
    assert header.little_c_bytes(data).obj is data


def test_an_object_array_is_refused_without_unpickling() -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("it was unpickled",))

    file = io.BytesIO()
    np.save(file, np.array([Bomb()], object), allow_pickle=True)
    error = refusal(file.getvalue())
    assert error.code == "BAD_DTYPE"
    assert "Python objects (a pickle), which are never loaded" in str(error)


REFUSED = {
    "empty": (b"", "TRUNCATED", "the file is empty"),
    "cut in the magic": (b"\x93NUM", "TRUNCATED", "inside of its header, after 4 bytes"),
    "cut in the length": (saved(np.zeros(3))[:9], "TRUNCATED", "inside of its header, after 9 bytes"),
    "cut in the header": (saved(np.zeros(3))[:40], "TRUNCATED", "inside of its header, after 40 bytes"),
    "cut in the data": (saved(np.zeros(3))[:-1], "TRUNCATED", "float64 of shape (3), which is a file of 152 bytes"),
    "more data": (saved(np.zeros(3)) + b"!", "CORRUPT", "1 bytes follow the array"),
    "two arrays": (saved(np.zeros(3)) * 2, "CORRUPT", "152 bytes follow the array"),
    "no magic": (b"PNG\r\n" * 9, "CORRUPT", "signature of a .npy file"),
    "a pickle": (b"\x80\x04\x95" + b"x" * 50, "CORRUPT", "signature of a .npy file"),
    "version 4": (b"\x93NUMPY\x04\x00" + bytes(99), "CORRUPT", "format is 4.0; 1.0 to 3.0 are known"),
    "a header of 4 GiB": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(99), "CORRUPT", "is 4294967295 bytes long"),
    "no dictionary": (with_header("[1, 2]"), "CORRUPT", "descr, fortran_order and shape"),
    "code": (with_header("__import__('os').getcwd()"), "CORRUPT", "not a dictionary of literals"),
    "deep nesting": (with_header("(" * 9000), "CORRUPT", "not a dictionary of literals"),
    "a key too many": (
        with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (), 'x': 1}"),
        "CORRUPT",
        "descr, fortran_order and shape",
    ),
    "order is not a bool": (
        with_header("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}"),
        "CORRUPT",
        "fortran_order is 0",
    ),
    "negative shape": (
        with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
        "CORRUPT",
        "its shape (-1,) is not a tuple of sizes",
    ),
    "shape of bools": (
        with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}"),
        "CORRUPT",
        "is not a tuple of sizes",
    ),
    "huge shape": (
        with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
        "TRUNCATED",
        "which is a file of 73786976294838206549 bytes; this one has 85",
    ),
    "huge axis": (
        with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 10000000000000000000)}"),
        "CORRUPT",
        "is not a tuple of sizes",
    ),
    "65 axes": (
        with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1," * 65 + ")}"),
        "CORRUPT",
        "its shape has 65 axes",
    ),
    "text of no bytes": (
        with_header("{'descr': '<U0', 'fortran_order': False, 'shape': (4611686018427387904,)}"),
        "BAD_DTYPE",
        "its dtype <U0 is not supported",
    ),
    "structured": (saved(np.zeros(1, [("x", "f4")])), "BAD_DTYPE", "is not supported"),
    "extended precision": (saved(np.zeros(1, np.longdouble)), "BAD_DTYPE", "is not supported"),
    "no such dtype": (
        with_header("{'descr': '<f3', 'fortran_order': False, 'shape': ()}"),
        "BAD_DTYPE",
        "its dtype <f3 is not supported",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_has_a_code_and_says_why(case: str) -> None:
    data, code, message = REFUSED[case]
    error = refusal(data)
    assert error.code == code
    assert message in str(error)


def test_a_header_that_python_2_wrote_is_read() -> None:
    data = with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }\n", data=bytes(24))
    assert parse_header(data).shape == (2, 3)


@example(b"\x93NUMPY\x01\x00\x00\x00")
@given(st.binary(max_size=80))
def test_any_bytes_are_a_header_or_an_error(tail: bytes) -> None:
    with pytest.raises(NpyError):
        parse_header(b"\x93NUMPY"[: len(tail) % 7] + tail).check_size(0)


def test_the_text_of_a_dtype_is_little_endian() -> None:
    assert [dtype_text(d) for d in (">f4", "?", "i1", ">M8[ns]")] == ["<f4", "|b1", "|i1", "<M8[ns]"]
