"""`shardmill doctor`: what is missing for what, in environments that lack it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from shardmill.pipelines.first_look.doctor import MODULES, available_bytes, examine, needs_of

from ...command_line import Shardmill
from ...readme import REPO

SITE = Path(sysconfig.get_path("purelib"))
CLOUD = ("AWS_", "GOOGLE_", "CLOUDSDK_", "BOTO_")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave an environment without credentials, in which no machine of a cloud is looked for."""
    for name in [name for name in os.environ if name.startswith(CLOUD)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")


def environment(folder: Path, *, without: tuple[str, ...] = ()) -> Path:
    """Make a folder of the packages that are installed here, but for those whose names begin with one of `without`."""
    folder.mkdir()
    for entry in SITE.iterdir():
        if not entry.name.startswith(without or ("\0",)) and not entry.name.startswith("__editable__"):
            (folder / entry.name).symlink_to(entry)
    (folder / "shardmill").mkdir()
    for layer in ("pipelines", "transforms"):
        (folder / "shardmill" / layer).symlink_to(REPO / layer)
    return folder


def doctor_in(folder: Path, *args: str) -> tuple[int, dict[str, dict[str, object]], str]:
    """Run `doctor --json` with the packages of a folder alone; return its code, its checks by name, and its stderr."""
    code = "from shardmill.pipelines.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code, "doctor", "--json", *args],
        env={**os.environ, "PYTHONPATH": str(folder)}, cwd=folder.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    checks = json.loads(ended.stdout)["checks"] if ended.stdout else []
    return ended.returncode, {check["what"]: check for check in checks}, ended.stderr


def test_a_machine_that_has_the_core_is_ready_and_says_what_else_is_missing(shardmill: Shardmill) -> None:
    ended = shardmill("doctor")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[-1] == "Ready: nothing that is needed is missing. Whether releases go together: uv pip check"
    assert any(line.split()[:2] == ["ok", "pyarrow"] for line in lines)
    (missing,) = [line for line in lines if line.startswith("Missing: credentials for s3://")]
    assert "for s3:// URLs: set AWS_PROFILE" in missing


def test_every_package_that_is_asked_for_is_checked_and_has_words_of_its_own() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(text for extra in project["optional-dependencies"].values() for text in extra)]
    names = {Requirement(text).name for text in asked}
    assert names == {name.partition("[")[0] for packages in MODULES.values() for name in packages}
    assert set(MODULES) == {"", *project["optional-dependencies"]}
    found = {finding.what: finding for finding in examine(()).findings}
    for text in project["dependencies"]:
        assert found[Requirement(text).name].state == "ok"


def test_what_the_core_lacks_is_named_with_the_command_that_installs_it_and_the_exit_code_is_1(tmp_path: Path) -> None:
    folder = environment(tmp_path / "site", without=("pyarrow", "crc32c", "boto3"))
    (crc,) = SITE.glob("crc32c-*.dist-info")
    (folder / crc.name).symlink_to(crc)
    (folder / "crc32c.py").write_text("raise ImportError('libcrc.so.1: cannot open shared object file')\n")
    code, checks, err = doctor_in(folder)
    assert (code, err) == (1, "")
    wrong = {
        name: check["found"] for name, check in checks.items() if check["required"] and check["state"] == "missing"
    }
    assert wrong == {
        "pyarrow": "not installed",
        "crc32c": "installed, but its import fails: ImportError: libcrc.so.1: cannot open shared object file",
    }
    reinstall = "in your clone of Shardmill: uv tool install --reinstall '.[coco,gcp,images]'"
    assert {checks[name]["fix"] for name in wrong} == {reinstall}
    assert checks["boto3"]["state"] == "missing"
    assert str(checks["boto3"]["fix"]).startswith(
        "in your clone of Shardmill: uv tool install '.[aws,coco,gcp,images]'"
    )
    assert not checks["boto3"]["required"]


def test_without_an_extra_the_machine_is_ready_until_a_place_needs_it(tmp_path: Path) -> None:
    folder = environment(tmp_path / "site", without=("boto3",))
    code, checks, _ = doctor_in(folder)
    assert (code, checks["boto3"]["state"]) == (0, "missing")
    assert "needs the extra aws" in str(checks["credentials for s3://"]["found"])
    code, checks, _ = doctor_in(folder, "s3://bucket/data")
    assert (code, checks["boto3"]["required"]) == (1, True)


def test_credentials_are_found_without_a_request_and_never_shown(
    shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shardmill("doctor", "s3://bucket/data").code == 1
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIASECRETSECRET")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "verysecretkey")
    ended = shardmill("doctor", "s3://bucket/data")
    assert ended.code == 0
    assert "SECRET" not in ended.out
    assert "verysecret" not in ended.out
    monkeypatch.setenv("AWS_PROFILE", "gone")
    ended = shardmill("doctor", "s3://bucket/data")
    assert ended.code == 1
    assert "settings for AWS cannot be used (ProfileNotFound)" in ended.out


def test_a_file_of_credentials_that_is_not_there_is_no_credential(
    shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "gone.json"))
    ended = shardmill("doctor", "gs://bucket/data")
    assert ended.code == 1
    assert ended.out.splitlines()[-1] == "Not ready: credentials for gs:// missing."


@pytest.mark.parametrize(
    ("script", "state", "found"),
    [
        ("echo 'openjdk version \"17.0.2\" 2022' >&2", "ok", "17: "),
        ("echo 'java version \"1.8.0_401\"' >&2", "poor", "8: "),
        ("echo 'openjdk version \"21\" 2023' >&2", "poor", "; Flink runs on 11 or 17"),
        ("exit 1", "missing", "states no version"),
        (None, "missing", "not found"),
    ],
)
def test_java_is_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, state: str, found: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "bin").mkdir()
    if script is not None:
        (tmp_path / "bin/java").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin/java").chmod(0o755)
    (java,) = [one for one in examine(()).findings if one.what == "Java"]
    assert (java.state, java.need) == (state, "flink")
    assert found in java.found
    assert "openjdk-17-jre" in java.fix


def test_a_config_needs_its_engine_and_stores(
    tmp_path: Path, shardmill: Shardmill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDMILL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("a\n1\n")
    Path("c.yaml").write_text("input: {paths: [a.csv]}\noutput: {path: 'gs://bucket/out'}\nrunner: {name: flink}\n")
    needs, folders = needs_of(["c.yaml"])
    assert needs == {"core", "flink", "gs"}
    assert folders == [str(tmp_path / "a.csv")]
    ended = shardmill("doctor", "c.yaml", "--json")
    missing = {one["what"] for one in json.loads(ended.out)["checks"] if one["required"] and one["state"] == "missing"}
    assert (ended.code, missing) == (1, {"Flink", "credentials for gs://"} | (missing & {"Maven"}))
    Path("c.yaml").write_text("input: {paths: [a.csv]}\noutput: {pth: out}\n")
    assert shardmill("doctor", "c.yaml").code == 2


def test_a_folder_is_checked_for_room_where_it_would_be_made(tmp_path: Path, shardmill: Shardmill) -> None:
    ended = shardmill("doctor", str(tmp_path / "out/sales"), "--json")
    (disk,) = [one for one in json.loads(ended.out)["checks"] if one["what"] == "disk"]
    assert ended.code == 0
    assert disk["found"].startswith(f"{tmp_path}/out/sales: ")
    assert disk["found"].endswith(" free")


def test_a_temporary_folder_that_is_not_there_is_said_with_the_one_that_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = environment(tmp_path / "site")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    code, checks, _ = doctor_in(folder)
    found = str(checks["temporary folder"]["found"])
    assert (code, checks["temporary folder"]["state"]) == (0, "poor")
    assert found.endswith(f"free; TMPDIR is {tmp_path}/gone, which cannot be written")


def test_memory_is_what_is_free_and_no_more_than_there_is() -> None:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < available_bytes() <= total
