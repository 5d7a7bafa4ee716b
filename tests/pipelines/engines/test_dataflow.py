"""Dataflow: what is wrong is told before anything is sent, all of it at once, with what was meant."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from shardmill.pipelines.cli import main
from shardmill.pipelines.config.load import load_config
from shardmill.pipelines.config.runners import DataflowRunner, LocalRunner
from shardmill.pipelines.engines import dataflow
from shardmill.pipelines.outcomes.summary import Submitted
from shardmill.pipelines.screens.summary_screen import Screen
from shardmill.transforms.dataset.stage.spec import DatasetSpec
from shardmill.transforms.errors import ConfigError, UsageError

pytestmark = pytest.mark.engine

RUNNER = {
    "name": "dataflow",
    "project": "my-project",
    "region": "europe-west1",
    "staging": "gs://my-bucket/staging/",
    "image": "europe-docker.pkg.dev/my-project/images/shardmill:0.1.0",
}


def problem_of(key: str, value: object) -> str:
    config = {"output": {"path": "gs://my-bucket/out"}, "runner": {**RUNNER, key: value}}
    with pytest.raises(ConfigError) as caught:
        load_config(config, data_given=True)
    (line,) = [line for line in str(caught.value).splitlines() if f"runner.{key}: " in line]
    return line.split(f"runner.{key}: ")[1]


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (
            "project",
            "My Project",
            '"My Project" is not a project id (6 to 30 lowercase letters, digits and -); did you mean "my-project"?',
        ),
        ("project", "123456789", '"123456789" is the project\'s number; give its id, like my-project'),
        ("project", "p", '"p" is not a project id (6 to 30 lowercase letters, digits and -)'),
        ("region", "europe", '"europe" is not a region of Google Cloud, like europe-west1'),
        ("region", "us-east-1", '"us-east-1" is not a region of Google Cloud, like europe-west1'),
        ("region", "us-east1-b", '"us-east1-b" is not a region of Google Cloud; did you mean "us-east1"?'),
        ("region", "mars", '"mars" is not a region of Google Cloud, like europe-west1'),
        (
            "staging",
            "my-bucket/staging",
            '"my-bucket/staging" is not a folder that Dataflow can stage in, gs://bucket/folder; did you mean '
            '"gs://my-bucket/staging"?',
        ),
        (
            "staging",
            "gs:/My-Bucket/x",
            '"gs:/My-Bucket/x" is not a folder that Dataflow can stage in, gs://bucket/folder; did you mean '
            '"gs://my-bucket/x"?',
        ),
        ("staging", "/tmp/x", '"/tmp/x" is not a folder that Dataflow can stage in, gs://bucket/folder'),
        ("temp", "gs://b/x", '"gs://b/x" is not a folder that Dataflow can stage in, gs://bucket/folder'),
        (
            "image",
            "host.dev/p/shardmill",
            '"host.dev/p/shardmill" has no tag, so that workers may get any release; write host.dev/p/shardmill:0.1.0',
        ),
        (
            "image",
            "https://host.dev/p/Mill:1",
            '"https://host.dev/p/Mill:1" is not the name of an image, like host/project/shardmill:0.1.0; did you mean '
            '"host.dev/p/mill:1"?',
        ),
        (
            "service_account",
            "key.json",
            '"key.json" is not a service account, like name@my-project.iam.gserviceaccount.com; no key is wanted',
        ),
        ("workers", 0, "0 is not a number of machines (1 to 4000) or auto"),
        ("wait", "no", '"no" is not true or false'),
        ("processes", True, "unknown key for the dataflow runner; it is a key of local and flink"),
    ],
)
def test_a_value_that_is_wrong_is_told_with_what_was_meant(key: str, value: object, problem: str) -> None:
    assert problem_of(key, value) == problem


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("project", "example.com:my-project"),
        ("region", "europe-west23"),  # newer than any list
        ("temp", "gs://my-bucket"),
        ("image", "localhost:5000/mill@sha256:" + "0" * 64),
        ("workers", 1000),
    ],
)
def test_a_value_that_is_right_is_taken(key: str, value: object) -> None:
    assert DataflowRunner.model_validate({**RUNNER, key: value})


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    command = ["convert", str(tmp_path / "a.csv"), "-o", str(tmp_path / "out"), "--runner", "DataflowRunner"]
    command += ["--set", "schema.files_root=/clips"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--project", "1", "--region", "europe-west", "--no-wait"])
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: config: 7 problems"
    reach = "is on this machine, where Dataflow's workers cannot see it; it must be gs:// or s3://"
    alone = (
        "is on this machine, where Dataflow's workers cannot see it; convert these rows on this machine, or on Flink"
    )
    assert f'  -o: output.path: "{tmp_path}/out" {reach}' in lines
    assert f'  "{tmp_path}/a.csv" {reach}' in lines
    assert f'  --set schema.files_root=/clips: schema.files_root: "/clips" {alone}' in lines
    assert '  --project: runner.project: "1" is the project\'s number; give its id, like my-project' in lines
    mend = "is missing; name a folder for the job's files: --staging gs://my-bucket/staging"
    assert f"  --runner: runner.staging: {mend}" in lines
    assert [line.split(": ")[1] for line in lines[2:]] == [
        "schema.files_root", "output.path", "runner.project", "runner.region", "runner.staging", "runner.image",
    ]  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_a_config_of_dataflow_runs_here_where_the_command_line_says_so(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text(f"output: {{path: gs://my-bucket/out}}\nrunner: {RUNNER}\n")
    flags = {"runner.name": ("--runner", "local"), "output.path": ("-o", str(tmp_path / "out"))}
    assert load_config(config, flags=flags, data_given=True).runner == LocalRunner()
    with pytest.raises(ConfigError, match="unknown key for the local runner; it is a key of dataflow"):
        load_config(config, flags={**flags, "runner.region": ("--region", "us-east1")}, data_given=True)


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("--project=other", "--project: is runner.project here; give it there: --set runner.project=..."),
        ("--machine_tpye=x", "--machine_tpye: Beam has no such option; what comes after `--` goes to Beam"),
        ("--s3_secret_access_key=x", "--s3_secret_access_key: keys are not taken on the command line"),
    ],
)
def test_an_option_of_beam_that_is_wrong_is_told(option: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataflow, "_is_installed", lambda: True)
    with pytest.raises(UsageError) as caught:
        dataflow.check_dataflow(DataflowRunner.model_validate(RUNNER), [option])
    assert str(caught.value).startswith(problem)


def test_packages_that_are_missing_are_told_before_anything_is_read() -> None:
    if dataflow._is_installed():
        pytest.skip("Google's libraries are installed here")
    with pytest.raises(UsageError, match=r"uv tool install '\.\[aws,coco,dataflow,gcp,images\]'"):
        dataflow.check_dataflow(DataflowRunner.model_validate(RUNNER), [])


def test_a_job_has_the_same_name_for_the_same_run_that_dataflow_takes() -> None:
    spec = DatasetSpec(path="gs://b/out", name="a" + "_" * 60, shard_size=1 << 20, source_fingerprint="sha256:01")
    again = replace(spec, run_id=uuid.uuid4().hex[:16], commit_id=str(uuid.uuid4()))  # in a store each run has its own
    assert re.fullmatch(r"shardmill-a-[0-9a-f]{8}", dataflow.job_name(spec))
    assert dataflow.job_name(again) == dataflow.job_name(spec)
    others = [replace(spec, source_fingerprint="sha256:02"), replace(spec, path="gs://b/other")]
    assert dataflow.job_name(spec) not in map(dataflow.job_name, others)


def test_what_was_submitted_is_told_with_how_to_see_it(capsys: pytest.CaptureFixture[str]) -> None:
    job = Submitted("gs://my-bucket/out", "shardmill-out-01234567", "my-project", "europe-west1", "2026-11-21_1")
    Screen(as_json=False).ended(job)
    assert capsys.readouterr().out == (
        "Submitted 2026-11-21_1 (shardmill-out-01234567). It commits gs://my-bucket/out by itself.\n"
        "  see it:  gcloud dataflow jobs show 2026-11-21_1 --region europe-west1 --project my-project\n"
        "  stop it: gcloud dataflow jobs cancel 2026-11-21_1 --region europe-west1 --project my-project\n"
        "  then:    shardmill log gs://my-bucket/out\n"
        "  https://console.cloud.google.com/dataflow/jobs/europe-west1/2026-11-21_1?project=my-project\n"
    )


def test_a_wrong_flag_is_told_without_loading_beam() -> None:
    script = (
        "import sys\nfrom shardmill.pipelines.cli import main\n"
        "try:\n    main(['convert', 'gs://b/a.csv', '-o', 'gs://b/o', '--runner', 'dataflow'])\n"
        "except SystemExit as ended:\n    print(ended.code, 'apache_beam' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]
