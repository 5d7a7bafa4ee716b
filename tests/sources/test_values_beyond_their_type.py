"""Decimals of more digits than their type and times of 24 hours: Arrow holds no such batch, so none is converted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shardmill.pipelines import convert
from shardmill.transforms.errors import SourceError, UsageError

DIGITS = np.array([[value, value >> 63] for value in (150, 999_999_999_999_999_990, -25)], np.int64)
VALUES = {
    "decimal": (
        pa.Array.from_buffers(pa.decimal128(15, 2), 3, [None, pa.py_buffer(DIGITS.tobytes())]),
        "Decimal value 999999999999999990 does not fit in precision of",
        "write the column as a decimal of more digits, or as text",
    ),
    "time": (
        pa.array([1, 86_400 * 10**6, 2], pa.int64()).view(pa.time64("us")),
        "time64[us] 86400000000 is not within the acceptable range of",
        "write the column as a duration, or as text",
    ),
}


@pytest.mark.parametrize("case", VALUES)
def test_a_value_that_its_type_does_not_have_is_damage_with_its_place_column_and_fix(case: str, tmp_path: Path) -> None:
    values, said, fix = VALUES[case]
    table = pa.table({"id": [1, 2, 3], "x": values})
    pq.write_table(table, tmp_path / "a.parquet", store_decimal_as_integer=True)
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    for name, where in (("a.parquet", "row group 0 (rows from 1)"), ("a.arrow", "its record batch 0 (rows from 1)")):
        with pytest.raises(SourceError) as refused:
            convert(tmp_path / name, output=tmp_path / "out", max_rejects=3)
        assert f'{name}: {where}: column "x": {said}' in str(refused.value)
        assert str(refused.value).endswith(f"; {fix}")
    with pytest.raises(UsageError) as wrong:
        convert(data=table, output=tmp_path / "out")
    assert str(wrong.value).startswith(f'Arrow table: it is not sound Arrow data: column "x": {said}')
    assert str(wrong.value).endswith(f"; {fix}")
    assert not (tmp_path / "out" / "manifest.json").exists()
