from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from shardmill.transforms.format.buffers.arrow_memory import text_array


@given(st.lists(st.text(max_size=9) | st.none(), max_size=20))
def test_texts_become_the_array_that_arrow_makes_of_them(values: list[str | None]) -> None:
    array = text_array(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.string()))
