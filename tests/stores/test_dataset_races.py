"""Datasets in stores under stress: runs that race, runs that die, networks that lose what is sent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from shardmill.pipelines import convert, open_dataset
from shardmill.transforms.dataset.commit import publish
from shardmill.transforms.dataset.commit.publish import finish_publish
from shardmill.transforms.dataset.integrity.verify import verify_dataset
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.dataset.storage.object_storage import ObjectStorage
from shardmill.transforms.errors import ShardmillError

from ..tiers import but_some_thorough
from . import servers
from .conftest import ROWS, S3_TOO, Local, files_of, limit
from .faulty_proxy import Fault, Proxy, faulty_proxy
from .generations import add, create
from .pause import Pause

pytestmark = pytest.mark.engine


@pytest.mark.thorough("commands that load the engine; faults/test_races.py has eight at once on a disk")
def test_of_appends_that_race_all_land_and_nothing_is_lost_or_doubled(table: str, tmp_path: Path, out: str) -> None:
    convert({"input": {"paths": [table]}}, output=out)
    files = [tmp_path / f"part-{number}.csv" for number in range(3)]
    for number, file in enumerate(files):
        file.write_text("id,text\n" + "".join(f"{ROWS + 10 * number + i},x\n" for i in range(10)))
    program = (
        "import sys; from shardmill.pipelines import append\n"
        "append({'input': {'paths': [sys.argv[1]]}}, output=sys.argv[2])"
    )
    racers = [subprocess.Popen([sys.executable, "-c", program, file, out]) for file in files]
    assert [racer.wait(300) for racer in racers] == [0] * 3
    manifest = read_manifest(out)
    assert (manifest.generation, manifest.parent) == (4, 3)
    ids = open_dataset(out).to_arrow("train", ["id"])["id"].to_pylist()
    assert sorted(ids) == [*range(ROWS), *(ROWS + i for i in range(30))]
    assert verify_dataset(out).ok
    assert json.loads(ObjectStorage(out).read("manifest.json"))["generation"] == 4
    assert ObjectStorage(out).list(".staging") == []


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_of_conversions_that_race_one_wins(table: str, out: str) -> None:
    def run(size: str) -> object:
        try:
            return convert({"input": {"paths": [table]}}, output=out, shard_size=size).manifest.generation
        except ShardmillError as error:
            return type(error).__name__

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(run, ["64KiB", "128KiB"]))
    assert results.count(1) == 1
    assert {*results} <= {1, "TargetError", "RunError", "CommitError"}
    assert verify_dataset(out).ok


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
@pytest.mark.parametrize(
    "moment",
    but_some_thorough(
        ["publish -00002"], ["put_if_absent manifests/", "publish -00002"], "a command that dies loads the engine"
    ),
)
def test_whoever_dies_leaves_the_old_generation_or_the_new_one(table: str, local: Local, out: str, moment: str) -> None:
    program = (
        "import os, re, sys\n"
        "from shardmill.pipelines import convert\n"
        "from shardmill.transforms.dataset.storage.object_storage import ObjectStorage\n"
        "method, _, pattern = sys.argv[3].partition(' ')\n"
        "real = getattr(ObjectStorage, method)\n"
        "def call(self, *args):\n"
        "    if any(re.search(pattern, str(arg)) for arg in args): os.kill(os.getpid(), 9)\n"
        "    return real(self, *args)\n"
        "setattr(ObjectStorage, method, call)\n"
        "convert({'input': {'paths': [sys.argv[1]]}}, output=sys.argv[2], shard_size='64KiB')\n"
    )
    died = subprocess.run([sys.executable, "-c", program, table, out, moment], check=False)
    assert died.returncode == -signal.SIGKILL
    committed = not moment.startswith("put_if_absent")
    if committed:
        assert sorted(open_dataset(out).to_arrow("train", ["id"])["id"].to_pylist()) == list(range(ROWS))
        assert verify_dataset(out).ok
        assert finish_publish(out) is not None
        assert ObjectStorage(out).list(".staging") == []
    summary = convert({"input": {"paths": [table]}}, output=out, shard_size="64KiB")
    assert summary.nothing_to_do == committed
    known = files_of(local(table, shard_size="64KiB"))
    assert {name: data for name, data in files_of(out).items() if name in known and "manifest" not in name} == {
        name: data for name, data in known.items() if "manifest" not in name and name != "dataset_info.json"
    } | {"dataset_info.json": ObjectStorage(out).read("dataset_info.json")}


@pytest.fixture(params=["before it looks who is the latest", "before it removes"])
def slow_remover(request: pytest.FixtureRequest, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Pause:
    """Hold the first who removes what a replaced generation had; what it notes it has noted by then."""
    removes = request.param == "before it removes"
    # publishing looks at staged files and their targets; removing, at what the replaced generation had
    pause = Pause() if removes else Pause(lambda _, paths: not any(path.startswith(".staging/") for path in paths))
    if removes:  # nothing but the condition of the removal is left to save what is new
        proxy.strict = True
        monkeypatch.setattr(ObjectStorage, "remove_seen", pause.before(ObjectStorage.remove_seen))
    else:
        monkeypatch.setattr(publish, "_files", pause.after(publish._files))
    return pause


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_what_an_append_publishes_under_an_old_name_stays_when_a_slow_replacement_clears_up(
    out: str, slow_remover: Pause
) -> None:
    kinds = ("tfds", "tfx")  # S3 knows nothing but the bytes of a file, and each index has the same here: see decisions
    create(out, 1, rows=5000, sidecars=kinds)
    old = {shard.path for shard in read_manifest(out).splits["train"].shards}
    with ThreadPoolExecutor(1) as pool:
        replaced = pool.submit(create, out, 2, rows=100, if_exists="replace", sidecars=kinds)
        slow_remover.wait_until_held(replaced)
        assert add(out, 3, rows=2000, sidecars=kinds) == 3
        slow_remover.go_on.set()
        assert replaced.result(60) == 2
    new = [shard.path for shard in read_manifest(out).splits["train"].shards if shard.generation == 3]
    assert len(old.intersection(new)) > 1
    assert sum(1 for _ in open_dataset(out).records("train")) == 3 * 2100
    report = verify_dataset(out)
    assert (report.findings, report.notes) == ((), ())
    assert [name for name in ObjectStorage(out).list("") if name.startswith("train-")] == ["train-00000.tfrecord", *new]


@pytest.fixture
def bad_network(out: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Fault]]:
    """Lose the reply to every fifth request, and refuse every seventh for the moment, for a while."""

    class Sometimes(Fault):
        def takes(self, method: str, path: str) -> bool:
            self.times += 1
            self.what = "drop" if self.times % 5 == 0 else 503
            return self.times % 5 == 0 or self.times % 7 == 0

    scheme = out.partition("://")[0]
    with faulty_proxy(os.environ[servers.SERVED[scheme].variable]) as proxy:
        for name, value in servers.environment(scheme, proxy.url).items():
            monkeypatch.setenv(name, value)
        limit(out, first_pause=0.01)  # how long is waited: see `test_faults`
        proxy.faults.append(Sometimes("drop", times=0))
        yield proxy.faults


@pytest.mark.parametrize("bucket_url", S3_TOO, indirect=True)
def test_a_conversion_over_a_bad_network_has_the_same_bytes(
    table: str, local: Local, out: str, bad_network: list[Fault]
) -> None:
    convert({"input": {"paths": [table]}, "name": "rows"}, output=out, shard_size="64KiB")
    bad_network.clear()
    assert files_of(out) == files_of(local(table, shard_size="64KiB"))
