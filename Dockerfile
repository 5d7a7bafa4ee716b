# syntax=docker/dockerfile:1
#
# One image for all parts of a conversion on a cluster, so that they have the same packages to the last digit:
#
#     worker         docker run IMAGE --id=1 --provision_endpoint=...   Beam's boot program, as Dataflow and Flink start it
#     worker pool    docker run -p 50000:50000 IMAGE --worker_pool
#     launcher, CLI  docker run --entrypoint shardmill IMAGE convert ...
#
# Every package comes from uv.lock; tests/test_image.py holds the versions below against it.

ARG PYTHON_VERSION=3.11
ARG BEAM_VERSION=2.77.0
ARG UV_VERSION=0.13.8

FROM apache/beam_python${PYTHON_VERSION}_sdk:${BEAM_VERSION} AS beam

FROM python:${PYTHON_VERSION}-slim-bookworm AS build
ARG UV_VERSION
RUN pip install --no-cache-dir "uv==${UV_VERSION}"
WORKDIR /src
ENV UV_PROJECT_ENVIRONMENT=/opt/shardmill \
    UV_PYTHON_DOWNLOADS=never \
    UV_LINK_MODE=copy \
    UV_COMPILE_BYTECODE=1
COPY pyproject.toml uv.lock ./
RUN --mount=type=cache,target=/root/.cache/uv \
    uv sync --locked --no-default-groups --group image --all-extras --no-install-project
COPY README.md LICENSE ./
COPY pipelines/ pipelines/
COPY transforms/ transforms/
RUN --mount=type=cache,target=/root/.cache/uv \
    uv sync --locked --no-default-groups --group image --all-extras --no-editable

FROM python:${PYTHON_VERSION}-slim-bookworm
COPY --from=beam /opt/apache/beam /opt/apache/beam
COPY --from=build /opt/shardmill /opt/shardmill
# Without the second one the boot program makes an environment of its own, which does not have the packages of this one.
ENV PATH=/opt/shardmill/bin:${PATH} \
    RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
# The first is what the boot program asks before it starts a worker.
RUN python -m pip show --quiet apache-beam && python -m pip check && shardmill --version
ENTRYPOINT ["/opt/apache/beam/boot"]
