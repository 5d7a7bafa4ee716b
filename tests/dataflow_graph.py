"""Build the graph of a Dataflow job, where Google's libraries are: `python dataflow_graph.py CONFIG OUT PROTO [INPUT]`.

Prints what the job would be as JSON, and writes its pipeline to PROTO. Every connection is refused meanwhile.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

from apache_beam.options.pipeline_options import GoogleCloudOptions, SetupOptions, WorkerOptions
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.runners import DataflowRunner
from shardmill.pipelines.engines.dataflow import check_dataflow, make_job
from shardmill.pipelines.prepare.conversion import prepare
from shardmill.pipelines.prepare.from_config import conversion_of
from shardmill.pipelines.runs.python_api import workers_of

RUNNER = DataflowRunner(
    name="dataflow",
    project="my-project",
    region="europe-west1",
    staging="gs://my-bucket/staging",
    image="europe-docker.pkg.dev/my-project/images/shardmill:0.1.0",
    workers=20,
    service_account="mill@my-project.iam.gserviceaccount.com",
)


def refuse(*_: Any) -> None:
    raise AssertionError("a connection")


def steps_of(proto: Any) -> list[tuple[str, str, list[str]]]:
    """Return the steps in order, as we name them: name, what it does, and the steps that it reads from."""
    transforms = proto.components.transforms
    made_by, kinds, inputs = {}, {}, {}
    for transform in transforms.values():
        step = "/".join(transform.unique_name.split("/")[:2])
        if transform.subtransforms or not transform.spec.urn:
            continue
        made_by.update(dict.fromkeys(transform.outputs.values(), step))
        kinds.setdefault(step, set()).add(transform.spec.urn.split(":")[2])
        inputs.setdefault(step, []).extend(transform.inputs.values())
    return [
        (step, "+".join(sorted(kinds[step])), sorted({made_by[i] for i in inputs[step]} - {step})) for step in kinds
    ]


def side_inputs_of(proto: Any) -> list[str]:
    return [t.unique_name for t in proto.components.transforms.values() if len(t.inputs) > 1 and "pardo" in t.spec.urn]


def main(config: str, out: str, target: str, *paths: str) -> None:
    socket.socket.connect = refuse  # type: ignore[method-assign, assignment]
    flags = {"output.path": out, "output.shard_size": "64KiB", "max_rejects": 10}
    loaded = load_config(config, flags={**flags, **({"input.paths": list(paths)} if paths else {})})
    check_dataflow(RUNNER, ["--dry_run=True", "--machine_type=n2-standard-8"])
    prepared = prepare(conversion_of(loaded), workers_of(loaded.runner)).in_files()
    pipeline = make_job(prepared, RUNNER, ["--dry_run=True", "--machine_type=n2-standard-8"], raise_refusal=True)
    job = pipeline.run().job
    proto = job.proto_pipeline
    with open(target, "wb") as file:
        file.write(proto.SerializeToString())
    cloud, setup = job.options.view_as(GoogleCloudOptions), job.options.view_as(SetupOptions)
    document = {
        "name": job.proto.name,
        "staging": job.root_staging_location,
        "temp": cloud.temp_location,
        "service_account": cloud.service_account_email,
        "machines": [
            job.options.view_as(WorkerOptions).machine_type,
            job.options.view_as(WorkerOptions).max_num_workers,
        ],
        "save_main_session": setup.save_main_session,
        "environments": [
            (environment.urn, environment.payload.decode("latin-1"), len(environment.dependencies))
            for environment in proto.components.environments.values()
        ],
        "steps": steps_of(proto),
        "side_inputs": side_inputs_of(proto),
    }
    sys.stdout.write(json.dumps(document))


main(*sys.argv[1:])
