"""The section `runner` of a config: the engines that it may name, and the keys of each.

    runner: {name: local, workers: auto, processes: auto}
    runner: {name: flink, master: "[local]"}
    runner: {name: flink, master: flink.example:8081, worker_pool: localhost:50000}
    runner: {name: dataflow, project: my-project, region: europe-west1, staging: gs://my-bucket/staging,
             image: europe-docker.pkg.dev/my-project/images/shardmill:0.1.0}

What is wrong with a value is found before anything is sent anywhere, and reported with what was probably meant.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from ...transforms.format.wording.printable import nearest, quoted
from ...transforms.sources.registry.options import STRICT
from ...transforms.stores.store_url import STORES, is_store_url

MAX_WORKERS: Final = 256
"""Workers are threads of one machine: far more of them than it has processors only wait for each other."""

EMBEDDED: Final = "[local]"
"""The `master` of a Flink that is started for one run, and runs inside of it."""

_ADDRESS: Final = re.compile(r"(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:]+\]):([0-9]{1,5})")

_MAX_MACHINES: Final = 4_000
"""Dataflow has no more for one job."""

_PROJECT: Final = re.compile(r"(?:[a-z][a-z0-9.-]{2,60}[a-z0-9]:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")
_REGION: Final = re.compile(r"[a-z]+-[a-z]+[0-9]+")
_ZONE: Final = re.compile(r"([a-z]+-[a-z]+[0-9]+)-[a-z]")
_BUCKET: Final = r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]"
_GCS_FOLDER: Final = re.compile(rf"gs://{_BUCKET}(?:/[^\s\\*?\[\]]*)?")
_IMAGE: Final = re.compile(
    r"(?:[a-z0-9]+(?:[._-][a-z0-9]+)*(?::[0-9]+)?/)?[a-z0-9]+(?:(?:[._/]|__|-+)[a-z0-9]+)*"
    r"(?P<version>(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?)"
)
_ACCOUNT: Final = re.compile(r"[^@\s]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+")


def _number_of(what: str, most: int) -> BeforeValidator:
    def check(value: object) -> int | str:
        if value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most):
            return value
        raise ValueError(f"{quoted(value)} is not a number of {what} (1 to {most}) or auto")

    return BeforeValidator(check)


def _check_processes(value: object) -> bool | str:
    if value == "auto" or isinstance(value, bool):
        return value
    raise ValueError(f"{quoted(value)} is not true, false or auto")


def _check_address(value: str) -> str:
    found = _ADDRESS.fullmatch(value)
    if found is None or not 0 < int(found[1]) < 65536:
        raise ValueError(f"{quoted(value)} is not an address, host:port")
    return value


def _check_master(value: str) -> str:
    if value == EMBEDDED or _ADDRESS.fullmatch(value):
        return value if value == EMBEDDED else _check_address(value)
    meant = re.sub(r"^[a-z]+://", "", value).rstrip("/")
    meant = EMBEDDED if meant in ("local", "localhost", "embedded") else meant
    hint = f'; did you mean "{meant}"?' if meant == EMBEDDED or _ADDRESS.fullmatch(meant) else ""
    raise ValueError(f'{quoted(value)} is not a cluster\'s address, host:port, and not "{EMBEDDED}"{hint}')


def _check_project(value: str) -> str:
    if _PROJECT.fullmatch(value):
        return value
    if value.isdecimal():
        raise ValueError(f"{quoted(value)} is the project's number; give its id, like my-project")
    meant = re.sub(r"[^a-z0-9-]+", "-", value.lower()).strip("-")
    hint = f'; did you mean "{meant}"?' if _PROJECT.fullmatch(meant) else ""
    raise ValueError(f"{quoted(value)} is not a project id (6 to 30 lowercase letters, digits and -){hint}")


def _check_region(value: str) -> str:
    if _REGION.fullmatch(value):
        return value
    zone = _ZONE.fullmatch(value)
    hint = f'; did you mean "{zone[1]}"?' if zone else ", like europe-west1"
    raise ValueError(f"{quoted(value)} is not a region of Google Cloud{hint}")


def _check_gcs_folder(value: str) -> str:
    if _GCS_FOLDER.fullmatch(value):
        return value.rstrip("/")
    meant = "gs://" + re.sub(r"^([A-Za-z]+:)?/*", "", value).lower()
    hint = f'; did you mean "{meant}"?' if _GCS_FOLDER.fullmatch(meant) and not value.startswith("/") else ""
    raise ValueError(f"{quoted(value)} is not a folder that Dataflow can stage in, gs://bucket/folder{hint}")


def _check_image(value: str) -> str:
    form = _IMAGE.fullmatch(value)
    if form is None:
        meant = re.sub(r"^[a-z]+://", "", value.strip()).lower()
        found = _IMAGE.fullmatch(meant)
        hint = f'; did you mean "{meant}"?' if found and found["version"] else ""
        raise ValueError(f"{quoted(value)} is not the name of an image, like host/project/shardmill:0.1.0{hint}")
    if not form["version"]:
        raise ValueError(f"{quoted(value)} has no tag, so that workers may get any release; write {value}:0.1.0")
    return value


def _check_account(value: str) -> str:
    if not _ACCOUNT.fullmatch(value):
        raise ValueError(
            f"{quoted(value)} is not a service account, like name@my-project.iam.gserviceaccount.com; no key is wanted"
        )
    return value


class _Runner(BaseModel):
    model_config = STRICT


class LocalRunner(_Runner):
    """This machine; `workers` is a number, or `auto` for one on each processor.

    `processes` makes the workers processes (true) or threads (false); `auto` takes what is faster for the plan. With
    `resume` a run resumes what one of the same command left that stopped; without it all is done again.
    """

    name: Literal["local"] = "local"
    workers: Annotated[int | Literal["auto"], _number_of("workers", MAX_WORKERS)] = "auto"
    processes: Annotated[bool | Literal["auto"], BeforeValidator(_check_processes)] = "auto"
    resume: bool = True

    @property
    def planners(self) -> int | str:
        return self.workers

    @property
    def elsewhere(self) -> bool:
        """Whether other machines convert."""
        return False


class FlinkRunner(_Runner):
    """Apache Flink; `master` is the REST address of a cluster, or `[local]` for a Flink that is started for the run.

    `workers` is how many tasks are done at once, `auto` one on each processor, or in each slot of a cluster. Embedded,
    the workers are those of this machine, as `processes` says. On a cluster each task manager asks at `worker_pool` for
    its Python workers.
    """

    name: Literal["flink"]
    master: Annotated[str, AfterValidator(_check_master)] = EMBEDDED
    workers: Annotated[int | Literal["auto"], _number_of("workers", MAX_WORKERS)] = "auto"
    processes: Annotated[bool | Literal["auto"], BeforeValidator(_check_processes)] = "auto"
    worker_pool: Annotated[str, AfterValidator(_check_address)] = "localhost:50000"
    resume: bool = True

    @property
    def is_embedded(self) -> bool:
        return self.master == EMBEDDED

    @property
    def elsewhere(self) -> bool:
        return not self.is_embedded

    @property
    def planners(self) -> int | str:
        """How many workers plan: embedded, those that convert; for a cluster the submitting process plans alone."""
        return self.workers if self.is_embedded else "auto"


class DataflowRunner(_Runner):
    """Google Cloud Dataflow; `workers` are machines at most, `auto` leaves their number to Dataflow.

    `temp` is `staging` + "/temp" if it is left out. `image` is what the workers run (`docs/image.md`). Without `wait`
    the job is submitted and left alone; it commits by itself.
    """

    name: Literal["dataflow"]
    project: Annotated[str, AfterValidator(_check_project)]
    region: Annotated[str, AfterValidator(_check_region)]
    staging: Annotated[str, AfterValidator(_check_gcs_folder)]
    image: Annotated[str, AfterValidator(_check_image)]
    temp: Annotated[str, AfterValidator(_check_gcs_folder)] | None = None
    workers: Annotated[int | Literal["auto"], _number_of("machines", _MAX_MACHINES)] = "auto"
    wait: bool = True
    service_account: Annotated[str, AfterValidator(_check_account)] | None = None

    @property
    def elsewhere(self) -> bool:
        return True

    @property
    def planners(self) -> int | str:
        """How many workers plan: the process that submits the job plans alone."""
        return "auto"

    @property
    def processes(self) -> bool:
        return False

    @property
    def resume(self) -> bool:
        """Whether the run resumes another one's work: that one may still be running."""
        return False


AnyRunner: TypeAlias = LocalRunner | FlinkRunner | DataflowRunner
"""All engines. Each has a `name`, and says how many workers plan, as what, who converts, and whether it resumes."""

RUNNERS: Final[dict[str, type[BaseModel]]] = {
    get_args(model.model_fields["name"].annotation)[0]: model for model in get_args(AnyRunner)
}

RUNNER_ALIASES: Final = {"DirectRunner": "local", "FlinkRunner": "flink", "DataflowRunner": "dataflow"}
"""What Beam calls them."""

RunnerSection: TypeAlias = Annotated[AnyRunner, Field(discriminator="name")]


def not_a_runner(value: object) -> str:
    near = nearest(str(value), RUNNERS)
    hint = f'; did you mean "{near}"?' if near else ";"
    return f"{quoted(value)} is not a runner{hint} choices: {', '.join(RUNNERS)}"


def out_of_reach(runner: object, path: str, *, local_only: bool = False) -> str | None:
    """Return why the machines of a runner cannot see a path, or None if they can.

    What is `local_only` is not read from a store.
    """
    if runner != "dataflow" or is_store_url(path):
        return None
    stores = " or ".join(f"{scheme}://" for scheme in sorted(STORES))  # Google's own first
    fix = "convert these rows on this machine, or on Flink" if local_only else f"it must be {stores}"
    return f"{quoted(path)} is on this machine, where Dataflow's workers cannot see it; {fix}"
