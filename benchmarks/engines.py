"""The same work on every engine: 8 M rows of Parquet on one machine, wall clock and CPU of all processes.

    uv run python benchmarks/engines.py                      three runs of each, in turn; 12 minutes
    uv run python benchmarks/engines.py --runs 1 --engine "local, 2 processes" --engine "Flink, embedded, 2 processes"

Each engine converts the full size and a small one; the figures are the difference, so that start-up (Java, Beam,
a cluster's workers) is left out; the whole commands stand beside. A cluster is started once, before; its CPU is that
of its processes while the command runs, its Python workers included.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from measure import Measured, measure, warm_files, warm_memory
from run import machine
from workloads import WORKLOADS, prepare

HERE = Path(__file__).parent
SHARDMILL = str(Path(sys.executable).with_name("shardmill"))


@dataclass(frozen=True)
class Cluster:
    """A cluster that is up: the options of a run on it, and its processes."""

    options: tuple[str, ...]
    processes: tuple[int, ...]

    def cpu(self) -> float:
        """Return the seconds of CPU of its processes until now, and of their children, ended or not."""
        total = 0.0
        for pid in self.processes:
            process = psutil.Process(pid)
            for each in (process, *process.children(recursive=True)):
                try:
                    times = each.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                total += times.user + times.system
            ended = process.cpu_times()
            total += ended.children_user + ended.children_system
        return total


ENGINES = {
    "local, 1 thread": ("--workers", "1", "--set", "runner.processes=false"),
    "local, 2 threads": ("--workers", "2", "--set", "runner.processes=false"),
    "local, 1 process": ("--workers", "1", "--set", "runner.processes=true"),
    "local, 2 processes": ("--workers", "2", "--set", "runner.processes=true"),
    "Flink, embedded, 2 threads": ("--workers", "2", "--runner", "flink", "--set", "runner.processes=false"),
    "Flink, embedded, 2 processes": ("--workers", "2", "--runner", "flink", "--set", "runner.processes=true"),
    "Flink, standalone, 2 task managers": ("--workers", "2", "--runner", "flink"),
}
STANDALONE = "Flink, standalone, 2 task managers"


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start a cluster of two task managers of one slot each, and stop it."""
    where = ("--folder", str(folder))
    up = [SHARDMILL, "flink", "up", "--task-managers", "2", "--slots", "1", "--port", "0", "--pool-port", "0", *where]
    document = json.loads(subprocess.run([*up, "--json"], check=True, capture_output=True).stdout)
    options = (
        "--set", f"runner.master={document['master']}", "--set", f"runner.worker_pool={document['worker_pool']}"
    )  # fmt: skip
    try:
        yield Cluster(options, tuple(process["pid"] for process in document["processes"].values()))
    finally:
        subprocess.run([SHARDMILL, "flink", "down", *where], check=True, capture_output=True)


def run_once(engine: str, source: Path, work: Path, up: Cluster | None) -> Measured:
    """Convert a folder once; the output is removed again."""
    out = work / "out"
    shutil.rmtree(out, ignore_errors=True)
    warm_memory()
    warm_files(source)
    command = [SHARDMILL, "convert", str(source), "-o", str(out), "-q", *ENGINES[engine]]
    if engine != STANDALONE or up is None:
        measured = measure(command, work / "engine.log")
    else:
        before = up.cpu()
        measured = measure([*command, *up.options], work / "engine.log")
        measured = Measured(measured.wall, measured.cpu + up.cpu() - before, measured.peak)
    shutil.rmtree(out)
    return measured


def table(results: dict[str, dict[str, list[Measured]]], rows: int) -> str:
    """Return the figures as Markdown."""
    lines = ["| engine | wall s, start-up left out (min, median, max) | CPU us a row | whole command: wall s | CPU s |"]
    lines.append("|---|---|---|---|---|")
    for engine, sizes in results.items():
        pairs = list(zip(sizes["full"], sizes["small"], strict=True))
        wall = sorted(full.wall - small.wall for full, small in pairs)
        cpu = statistics.median(full.cpu - small.cpu for full, small in pairs) / rows * 1e6
        whole = [statistics.median(getattr(full, figure) for full, _ in pairs) for figure in ("wall", "cpu")]
        walls = f"{wall[0]:.2f}, **{statistics.median(wall):.2f}**, {wall[-1]:.2f}"
        lines.append(f"| {engine} | {walls} | {cpu:.2f} | {whole[0]:.2f} | {whole[1]:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the engines in turn and print the table; the raw figures go to `.work/raw/engines.json`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", action="append", choices=list(ENGINES), help="default: all")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--work", type=Path, default=HERE / ".work", help="scratch folder: 20 GB")
    args = parser.parse_args()
    (args.work / "raw").mkdir(parents=True, exist_ok=True)
    workload = WORKLOADS["parquet"]
    sizes = {"small": workload.small_rows, "full": workload.rows}
    folders = {size: prepare(workload, rows, args.work / "data") for size, rows in sizes.items()}
    engines = args.engine or list(ENGINES)
    results: dict[str, dict[str, list[Measured]]] = {engine: {"small": [], "full": []} for engine in engines}
    for turn in range(args.runs):
        for engine in engines:
            with cluster(args.work / "flink") if engine == STANDALONE else _nothing() as up:
                if up is not None:  # the first job of a cluster loads its classes
                    run_once(engine, folders["small"], args.work, up)
                for size, folder in folders.items():
                    measured = run_once(engine, folder, args.work, up)
                    results[engine][size].append(measured)
                    print(f"{size} {turn + 1}/{args.runs} {engine}: {measured.wall:.2f} s wall, "
                          f"{measured.cpu:.2f} s CPU", file=sys.stderr, flush=True)  # fmt: skip
    raw = {
        engine: {size: [asdict(m) for m in runs] for size, runs in sizes_.items()} for engine, sizes_ in results.items()
    }
    (args.work / "raw" / "engines.json").write_text(json.dumps(raw, indent=1))
    print(machine(), "\n")
    print(f"{workload.rows:,} rows of Parquet less {workload.small_rows:,}:\n")
    print(table(results, workload.rows - workload.small_rows))


@contextmanager
def _nothing() -> Iterator[None]:
    yield None


if __name__ == "__main__":
    main()
