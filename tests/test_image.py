"""The image: its versions are those of the lock; what its install lines make is a worker, a launcher, and a CLI."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import ExternalEnvironment
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms import EncodeExamples, ReadRows, WriteShards
from shardmill.transforms.stores.object_store import store_at
from shardmill.transforms.stores.store_url import StoreUrl

from .dataflow_service import DataflowService, counted, dataflow_service, lines_until
from .dockerfile import ROOT, ScratchBuild, Stage, read_dockerfile
from .stores import servers

pytestmark = pytest.mark.engine

VERSIONS, STAGES = read_dockerfile((ROOT / "Dockerfile").read_text())
BEAM, BUILD, IMAGE = STAGES
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())


def locked(name: str) -> str:
    (version,) = (package["version"] for package in LOCK["package"] if package["name"] == name)
    return version


def test_the_boot_program_and_the_locked_beam_are_one_release() -> None:
    assert Stage(f"apache/beam_python{VERSIONS['PYTHON_VERSION']}_sdk:{locked('apache-beam')}", "beam", ()) == BEAM
    assert "--from=beam /opt/apache/beam /opt/apache/beam" in IMAGE.all("COPY")
    assert IMAGE.all("ENTRYPOINT") == ['["/opt/apache/beam/boot"]']


def test_all_stages_have_one_python_that_the_lock_allows() -> None:
    assert re.match(r"python:(\d+\.\d+)-slim", BUILD.base)[1] == VERSIONS["PYTHON_VERSION"]
    assert IMAGE.base == BUILD.base
    least, below = re.fullmatch(r">=3\.(\d+), <3\.(\d+)", LOCK["requires-python"]).groups()
    assert int(least) <= int(VERSIONS["PYTHON_VERSION"].split(".")[1]) < int(below)


def test_packages_come_from_the_lock_alone() -> None:
    for command in BUILD.all("RUN"):
        assert ("uv sync --locked" in command) != ('pip install --no-cache-dir "uv==${UV_VERSION}"' in command)
    assert not [command for command in IMAGE.all("RUN") if "install" in command]


def test_everything_that_is_copied_is_sent_to_the_engine() -> None:
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [name.rstrip("/") for text in BUILD.all("COPY") for name in text.split()[:-1]]
    assert sorted(copied) == sorted(sent)


def test_every_image_has_a_version() -> None:
    assert all(re.search(r":.*\d", stage.base) for stage in STAGES)
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSIONS["UV_VERSION"])


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> ScratchBuild:
    """Carry out the stage that installs, by its own lines and its own uv, and set what the image sets."""
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    if running != VERSIONS["PYTHON_VERSION"]:
        pytest.skip(f"the image has Python {VERSIONS['PYTHON_VERSION']}, and this is {running}")
    made = ScratchBuild(tmp_path_factory.mktemp("image"), VERSIONS)
    made.carry_out(BUILD)
    made.carry_out(Stage(IMAGE.base, None, tuple(line for line in IMAGE.lines if line[0] == "ENV")))
    return made


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
def test_the_install_lines_make_an_environment_that_converts(scratch: ScratchBuild, tmp_path: Path) -> None:
    (check,) = IMAGE.all("RUN")
    assert "shardmill 0.1.0" in scratch.run(check)
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    command = f"cd {tmp_path} && shardmill convert configs/quickstart.yaml && shardmill verify out/quickstart"
    assert scratch.run(command).startswith("Wrote out/quickstart: 24 records in 3 shards")
    where = scratch.run("python -c 'import shardmill.pipelines as p; print(p.__file__)'")
    assert where.startswith(scratch.environment["UV_PROJECT_ENVIRONMENT"]), (
        "the copy in the environment, not the sources"
    )


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
def test_a_worker_pool_of_the_environment_gives_the_bytes_of_the_local_engine(
    scratch: ScratchBuild, tmp_path: Path
) -> None:
    """What `boot --worker_pool` starts, and what it starts of each worker, but for the boot program between them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pool = ["python", "-m", "apache_beam.runners.worker.worker_pool_main", f"--service_port={port}"]
    config = {"input": {"paths": [str(ROOT / "configs/samples/people/*.csv")]}, "max_rejects": 10}
    here = convert(config, output=tmp_path / "here", shard_size="64KiB").manifest
    with subprocess.Popen(pool, env=scratch.environment, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_port(port, process)
            read = ReadRows(str(ROOT / "configs/samples/people"), shard_size="64KiB")
            with beam.Pipeline(FnApiRunner(ExternalEnvironment(f"127.0.0.1:{port}"))) as pipeline:
                write = WriteShards(str(tmp_path / "there"), info=read.info, shard_size="64KiB", max_rejects=10)
                _ = pipeline | read | EncodeExamples(read.info) | write
        finally:
            process.terminate()
    there = open_dataset(tmp_path / "there").manifest
    assert there.run.tool == here.run.tool, "the very same packages"
    assert there.counts == here.counts
    assert [s.crc32c for s in there.splits["train"].shards] == [s.crc32c for s in here.splits["train"].shards]


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while True:
        assert process.poll() is None
        assert time.monotonic() < deadline
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return


GRAPH = """
Read/Spread tasks           group_by_key+pardo                  <- Read/List tasks
Read/Read rows              pardo                               <- Read/Spread tasks
Encode/Encode rows          pardo                               <- Read/Read rows
Write/Stage parts           pardo                               <- Encode/Encode rows
Write/Gather results        flatten+group_by_key+impulse+pardo  <- Write/Stage parts
Write/Plan shards           pardo                               <- Write/Gather results
Write/Spread shards         group_by_key+pardo                  <- Write/Plan shards
Write/Assemble shards       pardo                               <- Write/Spread shards
Write/Gather shards         flatten+group_by_key+impulse+pardo  <- Write/Assemble shards
Write/Commit                pardo                               <- Write/Gather shards
Write/Spread files          group_by_key+pardo                  <- Write/Commit
Write/Publish shards        pardo                               <- Write/Spread files
Write/Gather files          flatten+group_by_key+impulse+pardo  <- Write/Publish shards
Write/Complete              pardo                               <- Write/Gather files
Write/Gather outcome        flatten+group_by_key+impulse+pardo  <- Write/Complete
Write/Report                pardo                               <- Write/Gather outcome
"""
"""What Dataflow must store between workers are the edges into `group_by_key`. Blocks of records leave `Read rows` and
`Encode rows` only, into one `pardo` each; what leaves `Stage parts` is a descriptor."""


SMALL_PLAN = """
Read/List tasks             impulse+pardo
"""
LARGE_PLAN = """
Read/List files of tasks    impulse+pardo
Read/List tasks             pardo                               <- Read/List files of tasks
"""
"""A plan over 256 KiB stays in files of the staging folder, which the graph only names."""


@pytest.fixture(scope="module")
def job(scratch: ScratchBuild, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Build the job's graph where the image's packages are, with every connection refused."""
    folder = tmp_path_factory.mktemp("job")
    script, config = ROOT / "tests/dataflow_graph.py", ROOT / "configs/csv.yaml"
    out = scratch.run(f"python {script} {config} {folder}/out {folder}/pipeline.pb")
    return {**json.loads(out), "folder": folder}


@pytest.fixture(scope="module")
def large_job(scratch: ScratchBuild, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Build the graph for 6,000 images."""
    folder = tmp_path_factory.mktemp("large")
    image = min((ROOT / "configs/samples/pets/cat").glob("*.jpg"), key=lambda path: path.stat().st_size).read_bytes()
    for name in ("cats", "dogs"):
        (folder / name).mkdir()
        for number in range(3000):
            (folder / name / f"a-picture-with-a-long-name-number-{number:06d}.jpg").write_bytes(image)
    script, config = ROOT / "tests/dataflow_graph.py", ROOT / "configs/images.yaml"
    out = scratch.run(f"python {script} {config} {folder}/out {folder}/pipeline.pb {folder}/cats {folder}/dogs")
    return {**json.loads(out), "folder": folder}


def steps_told(summary: str) -> list[list[str | list[str]]]:
    lines = [line for line in summary.splitlines() if line]
    return sorted(
        [line[:28].strip(), line[28:64].strip(), line[67:].split(", ") if line[67:] else []] for line in lines
    )


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
def test_the_graph_of_a_large_plan_names_files_of_tasks(large_job: dict[str, Any]) -> None:
    assert sorted(large_job["steps"]) == steps_told(LARGE_PLAN + GRAPH)
    assert (large_job["folder"] / "pipeline.pb").stat().st_size < 150_000
    assert large_job["side_inputs"] == []


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
def test_no_edge_that_dataflow_stores_carries_records(job: dict[str, Any]) -> None:
    assert sorted(job["steps"]) == steps_told(SMALL_PLAN + GRAPH)
    readers_of = {name: [s for s, _, before in job["steps"] if name in before] for name, _, _ in job["steps"]}
    assert readers_of["Read/Read rows"] == ["Encode/Encode rows"]
    assert readers_of["Encode/Encode rows"] == ["Write/Stage parts"]
    assert job["side_inputs"] == []


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
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


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
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


@pytest.fixture(scope="module")
def cloud(gcs_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataflowService]:
    """The interface of Dataflow, with jobs that run here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", gcs_endpoint)
        with dataflow_service(gcs_endpoint, tmp_path_factory.mktemp("jobs")) as service:
            yield service


@pytest.fixture
def bucket(cloud: DataflowService, gcs_endpoint: str) -> str:
    """A new bucket, with the sample tables below `in`."""
    cloud.refusal, cloud.metrics, cloud.too_late = None, [], False
    cloud.jobs.clear()
    name = servers.make_bucket("gs", gcs_endpoint)
    store = store_at(StoreUrl("gs", name))
    for path in (ROOT / "configs/samples/people").glob("*.csv"):
        store.put(f"in/{path.name}", path.read_bytes())
    return name


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
def test_a_launcher_tells_how_far_its_job_is_by_metrics_and_what_it_committed(
    scratch: ScratchBuild, cloud: DataflowService, bucket: str, tmp_path: Path
) -> None:
    cloud.let_go.clear()
    cloud.metrics = [counted("records", 17, tentative="true"), counted("records", 11), counted("other", 99)]
    cloud.metrics += [counted("bytes", 3000, tentative="true"), counted("bytes", 2000)]
    with cloud.launched(bucket, scratch.environment) as process:
        lines_until(process, "Converting  17 of about 121 records")
        cloud.let_go.set()
        out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    assert out.startswith(f"Wrote gs://{bucket}/out: 121 records in 1 shard, 21.9 KiB (generation 1).")
    samples = ROOT / "configs/samples/people/*.csv"
    here = convert({"input": {"paths": [str(samples)]}, "max_rejects": 10}, output=tmp_path, shard_size="64KiB")
    there = open_dataset(f"gs://{bucket}/out").manifest
    assert (there.splits, there.counts) == (here.manifest.splits, here.manifest.counts)
    left = [info.key.rpartition("/")[2] for info in store_at(StoreUrl("gs", bucket)).walk("staging/")]
    assert left == ["pipeline.pb"], "nothing else was uploaded"


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
def test_an_interrupted_launcher_ends_its_job_and_leaves_the_old_generation(
    scratch: ScratchBuild, cloud: DataflowService, bucket: str
) -> None:
    samples = ROOT / "configs/samples/people/people-1.csv"
    old = convert({"input": {"paths": [str(samples)]}, "max_rejects": 10}, output=f"gs://{bucket}/out").manifest
    cloud.let_go.clear()
    with cloud.launched(bucket, scratch.environment, "--set", "output.if_exists=replace") as process:
        job = cloud.followed_job(process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert (process.returncode, job.state) == (130, "JOB_STATE_CANCELLED"), "it has waited until the job has ended"
    assert said.splitlines()[-1].startswith(f"Interrupted: nothing was committed; what was staged is in gs://{bucket}/")
    cloud.let_go.set()
    assert job.ended.wait(300)
    assert open_dataset(f"gs://{bucket}/out").manifest == old


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
def test_a_job_that_commits_before_it_can_be_ended_is_said_to_have(
    scratch: ScratchBuild, cloud: DataflowService, bucket: str
) -> None:
    cloud.let_go.clear()
    cloud.too_late = True
    with cloud.launched(bucket, scratch.environment) as process:
        cloud.followed_job(process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("Interrupted: generation 1 was committed before, and can be read;")
    assert open_dataset(f"gs://{bucket}/out").manifest.counts.written == 121


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
def test_a_launcher_that_may_not_ask_for_its_job_any_more_says_that_it_goes_on(
    scratch: ScratchBuild, cloud: DataflowService, bucket: str
) -> None:
    cloud.let_go.clear()
    with cloud.launched(bucket, scratch.environment) as process:
        job = cloud.followed_job(process)
        cloud.refusal = (403, "permission was taken away")
        _, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "error: Dataflow did not answer; the job continues by itself: https://console.cloud.google.com/" in said
    assert job.id in said
    assert "Traceback" not in said
    cloud.let_go.set()
    assert job.ended.wait(300)
    assert open_dataset(f"gs://{bucket}/out").manifest.counts.written == 121


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
def test_a_job_that_nobody_waits_for_is_submitted_once_and_commits_by_itself(
    scratch: ScratchBuild, cloud: DataflowService, bucket: str
) -> None:
    cloud.let_go.clear()

    def submitted() -> tuple[int, str, str]:
        with cloud.launched(bucket, scratch.environment, "--no-wait") as process:
            out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    code, said, _ = submitted()
    (job,) = cloud.jobs
    code_again, _, again = submitted()
    cloud.refusal = (403, "Dataflow API has not been used in project my-project")
    code_refused, _, refused = submitted()
    assert (code, code_again, code_refused) == (0, 1, 1)
    assert said.startswith(f"Submitted {job.id} ({job.asked['name']}). It commits gs://{bucket}/out by itself.\n")
    assert again.startswith("error: Dataflow did not take the job: There is already active job named shardmill-out-")
    assert refused.startswith("error: Dataflow did not take the job: 403 POST ")
    assert refused.endswith(" Dataflow API has not been used in project my-project; nothing was started\n")
    assert "Traceback" not in again + refused
    cloud.let_go.set()
    assert job.ended.wait(300)
    assert job.state == "JOB_STATE_DONE"
    assert open_dataset(f"gs://{bucket}/out").manifest.counts.written == 121


def engine() -> str:
    """Return the container engine that is there, or skip."""
    for name in ("docker", "podman"):
        if shutil.which(name) is not None:
            done = subprocess.run([name, "info"], capture_output=True, check=False)
            if done.returncode == 0:
                return name
    pytest.skip("no container engine runs here (docker, podman): the image is not built")


@pytest.mark.thorough("an environment is made by the image's lines, and a launcher or an engine runs in it")
def test_the_image_builds_and_is_a_worker_and_a_command_line(tmp_path: Path) -> None:
    name = engine()
    build = [name, "build", "--quiet", "--tag", "shardmill-test", str(ROOT)]
    subprocess.run(build, check=True, env={**os.environ, "DOCKER_BUILDKIT": "1"})
    version = subprocess.run(
        [name, "run", "--rm", "--entrypoint", "shardmill", "shardmill-test", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout.startswith("shardmill 0.1.0")
    boot = subprocess.run([name, "run", "--rm", "shardmill-test"], capture_output=True, text=True, check=False)
    assert "No id provided" in boot.stdout + boot.stderr
