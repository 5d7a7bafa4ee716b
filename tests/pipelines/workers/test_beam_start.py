from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.coders import VarIntCoder
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms import userstate
from shardmill.pipelines.engines.beam_pipeline import make_pipeline

pytestmark = pytest.mark.engine

CONFIGS = Path(__file__).parents[3] / "configs"

SCRIPT = """
import sys

from shardmill.pipelines.workers.process_start import hide_pandas_from_beam

hide_pandas_from_beam()
import apache_beam

assert "pandas" not in sys.modules
import pyarrow as pa

assert pa.table({"a": [1, 2]}).to_pandas()["a"].sum() == 3
"""


def test_beam_is_imported_without_pandas_and_a_users_function_still_gets_it() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


@pytest.mark.parametrize("config", ["parquet.yaml", "quickstart.yaml", "csv.yaml", "jsonl.yaml"])
def test_a_conversion_never_imports_pandas(tmp_path: Path, config: str) -> None:
    command = ["-m", "shardmill.pipelines", "convert", str(CONFIGS / config), "-o", str(tmp_path / "out")]
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        check=False,
        capture_output=True,
        text=True,
        cwd=CONFIGS.parent,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    imported = {line.rsplit("|", 1)[-1].strip() for line in run.stderr.splitlines()}
    assert "apache_beam" in imported
    assert "pandas.core" not in imported  # that Beam asked is listed too


class _Counts(beam.DoFn):
    SEEN = userstate.ReadModifyWriteStateSpec("seen", VarIntCoder())
    PARAMETER = beam.DoFn.StateParam(SEEN)

    def process(self, element, seen=PARAMETER):  # type: ignore[no-untyped-def]
        number = (seen.read() or 0) + 1
        seen.write(number)
        yield element[0], number


def test_steps_with_state_and_without_work_in_one_pipeline() -> None:
    with make_pipeline(1) as pipeline:
        counted = pipeline | beam.Create([("a", 1), ("b", 2), ("a", 3)]) | beam.ParDo(_Counts())
        plain = counted | beam.Map(lambda pair: pair)
        assert_that(plain, equal_to([("a", 1), ("a", 2), ("b", 1)]))


def test_beam_looks_at_a_class_of_steps_once_and_at_a_step_with_methods_of_its_own_each_time() -> None:
    make_pipeline(1)
    one, other, own = beam.DoFn(), beam.DoFn(), beam.DoFn()
    own.process = one.process  # type: ignore[method-assign]
    assert userstate.get_dofn_specs(one) is userstate.get_dofn_specs(other)
    assert userstate.get_dofn_specs(own) is not userstate.get_dofn_specs(one)
    assert userstate.get_dofn_specs(_Counts())[0] == {_Counts.SEEN}
