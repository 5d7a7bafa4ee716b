"""Which keys an append has to give, where the text of the dataset was read with some."""

from __future__ import annotations

import pytest
from shardmill.transforms.format.schema.schema import Feature
from shardmill.transforms.sources.text.misfits import missing_keys

pytestmark = pytest.mark.usefixtures("without_engine")


@pytest.mark.parametrize(
    ("values", "type_", "keys"),
    [
        (["1,234", "5,678"], "float64", "thousands=,"),
        (["1,5", "2,25"], "float64", "decimal=,"),
        (["1.5"], "float64", ""),
        (["$1,234.50", "$3"], "float64", "strip=$ thousands=,"),
        (["-$1,234.50", "$-3"], "float64", "strip=$ thousands=,"),
        (["5-"], "float64", None),
        (["€ 5"], "int64", "strip=€ type=int64"),
        ([" 5 ", "6"], "int64", "strip=true type=int64"),
        (["cheap"], "float64", None),
        (["(5)"], "float64", None),  # a bookkeeper's -5
        (["2024/12/31", "2024/01/02"], "date", "format=%Y/%m/%d"),
        (["12/31/2024"], "date", "format=%m/%d/%Y"),
        (["01/02/2024"], "date", "format=FORM"),  # the 1st of February, or the 2nd of January
        (["31.12.2024 13:05"], "timestamp", "format=%d.%m.%Y %H:%M"),
        (["13.05"], "time", "format=%H.%M"),
    ],
)
def test_keys_are_named_that_read_all_values_and_none_where_the_values_do_not_tell(
    values: list[str], type_: str, keys: str | None
) -> None:
    kind, unit = ("float", None) if type_ == "float64" else ("int64", "us" if type_ in ("timestamp", "time") else None)
    found = missing_keys({"x": values}, {"x": Feature("x", kind, type_, unit=unit)})
    shown = " ".join(str(one).removeprefix("--set ").strip("'").removeprefix("schema.columns.x.") for one in found)
    assert shown == (keys or "")
