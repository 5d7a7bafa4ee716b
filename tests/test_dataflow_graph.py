"""The job that Dataflow is given: its graph, built without credentials or network, and run by somebody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from shardmill.pipelines import convert, open_dataset

from .dockerfile import ROOT, ScratchBuild

pytestmark = pytest.mark.slow

GRAPH = """
Read/List tasks             impulse+pardo
Read/Spread tasks           group_by_key+pardo  <- Read/List tasks
Read/Read rows              pardo               <- Read/Spread tasks
Encode/Encode rows          pardo               <- Read/Read rows
Write/Stage parts           pardo               <- Encode/Encode rows
Write/Results of before     impulse+pardo
Write/Results and seed      flatten             <- Write/Results of before, Write/Stage parts
Write/Gather results        group_by_key        <- Write/Results and seed
Write/Plan shards           pardo               <- Write/Gather results
Write/Spread shards         group_by_key+pardo  <- Write/Plan shards
Write/Assemble shards       pardo               <- Write/Spread shards
Write/Gather shards         group_by_key        <- Write/Assemble shards
Write/Commit                pardo               <- Write/Gather shards
Write/Spread files          group_by_key+pardo  <- Write/Commit
Write/Publish shards        pardo               <- Write/Spread files
Write/Gather files          group_by_key        <- Write/Publish shards
Write/Complete              pardo               <- Write/Gather files
"""
"""What Dataflow must store between workers are the edges into `group_by_key`. Blocks of records leave `Read rows` and
`Encode rows` only, into one `pardo` each; what leaves `Stage parts` is a descriptor."""


@pytest.fixture(scope="module")
def job(scratch: ScratchBuild, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Build the job's graph where the image's packages are, with every connection refused."""
    folder = tmp_path_factory.mktemp("job")
    script, config = ROOT / "tests/dataflow_graph.py", ROOT / "configs/csv.yaml"
    out = scratch.run(f"python {script} {config} {folder}/out {folder}/pipeline.pb")
    return {**json.loads(out), "folder": folder}


def test_no_edge_that_dataflow_stores_carries_records(job: dict[str, Any]) -> None:
    lines = [line for line in GRAPH.splitlines() if line]
    assert sorted(job["steps"]) == sorted(
        [line[:28].strip(), line[28:48].strip(), line[51:].split(", ") if line[51:] else []] for line in lines
    )
    readers_of = {name: [s for s, _, before in job["steps"] if name in before] for name, _, _ in job["steps"]}
    assert readers_of["Read/Read rows"] == ["Encode/Encode rows"]
    assert readers_of["Encode/Encode rows"] == ["Write/Stage parts"]
    assert job["side_inputs"] == []


def test_the_job_is_what_the_config_says_and_nothing_of_this_machine_goes_with_it(job: dict[str, Any]) -> None:
    assert job["name"].startswith("shardmill-people-")
    assert (job["staging"], job["service_account"]) == (
        "gs://my-bucket/staging",
        "mill@my-project.iam.gserviceaccount.com",
    )
    assert job["temp"].startswith("gs://my-bucket/staging/temp/shardmill-people-")
    assert job["machines"] == ["n2-standard-8", 20]
    assert job["save_main_session"] is False
    (environment,) = job["environments"]
    assert environment[0] == "beam:env:docker:v1"
    assert environment[1].endswith("europe-docker.pkg.dev/my-project/images/shardmill:0.1.0")
    assert environment[2] == 0, "files that would be uploaded"


def test_the_job_commits_when_whoever_built_it_is_gone(job: dict[str, Any], tmp_path: Path) -> None:
    """The same pipeline, to the byte, is given to another engine; the launcher ended long ago."""
    pipeline = beam_runner_api_pb2.Pipeline.FromString((job["folder"] / "pipeline.pb").read_bytes())
    for environment in pipeline.components.environments.values():
        environment.urn, environment.payload = "beam:env:embedded_python:v1", b""
    FnApiRunner().run_via_runner_api(pipeline, PipelineOptions())
    there = open_dataset(job["folder"] / "out").manifest
    config = ROOT / "configs/csv.yaml"
    here = convert(config, output=tmp_path / "out", shard_size="64KiB", max_rejects=10).manifest
    assert there.run.runner == "local", "what the config said: it was not Dataflow that ran it"
    assert there.counts == here.counts
    assert there.splits == here.splits
