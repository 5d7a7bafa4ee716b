"""Run the benchmarks, side by side with what a user would pick instead, and print the tables of RESULTS.md.

    uv run python benchmarks/run.py                    everything (hours: the slow peers are slow)
    uv run python benchmarks/run.py --workload parquet --peer tfx_bsl --runs 5

Every tool converts the same files with two workers on the same disk, one after the other, in turn (A B C, A B C, ...),
in the full size and in a small one. Rows a second and CPU a row come from the difference of the two, so that start-up
is left out; a second table gives the whole commands. Every peer has an environment of its own below `.work/`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import Measured, measure, warm_files, warm_memory
from workloads import WORKLOADS, Workload, prepare

HERE = Path(__file__).parent
PYTHON = "3.11"


@dataclass(frozen=True)
class Peer:
    """A tool to compare with: its script, the packages of its environment, and the workloads it can do at all."""

    name: str
    script: str
    packages: tuple[str, ...]
    workloads: tuple[str, ...]
    slow: bool = False


FLAT = tuple(name for name in WORKLOADS if name not in ("nested", "tar"))
LOOP = ("protobuf<7", "crc32c", "pyarrow", "numpy", "pillow")

PEERS = {
    peer.name: peer
    for peer in (
        Peer("tfx_bsl", "tfx_bsl_encoder.py", ("tfx-bsl==1.21.0",), ("parquet", "csv", "floats", "floats_x8")),
        Peer("tutorial", "tutorial_loop.py", ("tensorflow==2.21.0", "pyarrow", "pillow"), FLAT, slow=True),
        Peer("protobuf", "protobuf_loop.py", LOOP, FLAT),
        Peer("protobuf by hand", "nested_loop.py", LOOP, ("nested",)),
        Peer("tfrecord", "tfrecord_package.py", ("tfrecord", "pyarrow", "pillow"), FLAT, slow=True),
        Peer(
            "beam",
            "beam_map.py",
            ("apache-beam[tfrecord]==2.77.0", "pyarrow", "crc32c"),
            ("parquet", "floats", "floats_x8"),
            slow=True,
        ),
    )
}


def environment(peer: Peer, work: Path) -> Path:
    """Return the Python of the peer's environment; make it if it is not there."""
    venv = work / "venvs" / peer.name
    if not (venv / "made").exists():
        shutil.rmtree(venv, ignore_errors=True)
        subprocess.run(["uv", "venv", "--quiet", "--python", PYTHON, str(venv)], check=True)
        python = str(venv / "bin" / "python")
        subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, *peer.packages], check=True)
        (venv / "made").touch()
    return venv / "bin" / "python"


def command_of(tool: str, source: Path, out: Path, work: Path) -> list[str]:
    """Return the command with which a tool converts a folder."""
    if tool.startswith("shardmill"):
        command = [
            str(Path(sys.executable).with_name("shardmill")),
            "convert",
            str(source),
            "-o",
            str(out),
            "--workers",
            "2",
        ]
        return [*command, "--compression", "gzip"] if tool == "shardmill (gzip)" else command
    peer = PEERS[tool]
    return [str(environment(peer, work)), str(HERE / "peers" / peer.script), str(source), str(out)]


def run_once(tool: str, source: Path, work: Path) -> Measured:
    """Convert a folder once; the output is removed again."""
    out = work / "out"
    shutil.rmtree(out, ignore_errors=True)
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(HERE / "peers")}
    warm_memory()
    warm_files(source)
    measured = measure(command_of(tool, source, out, work), work / f"{tool}.log", env)
    shutil.rmtree(out)
    return measured


def compare(
    workload: Workload, tools: list[str], runs: int, slow_runs: int, work: Path
) -> dict[str, dict[str, list[Measured]]]:
    """Run the tools in turn, `runs` times, in both sizes; return tool -> size -> runs.

    Of millions of rows, the slow peers run in the first `slow_runs` turns only.
    """
    sizes = {"small": workload.small_rows, "full": workload.rows}
    folders = {size: prepare(workload, rows, work / "data") for size, rows in sizes.items()}
    for peer in tools:
        if peer in PEERS:
            environment(PEERS[peer], work)
    results: dict[str, dict[str, list[Measured]]] = {tool: {"small": [], "full": []} for tool in tools}
    for turn in range(runs):
        for size in sizes:
            for tool in tools:
                if turn >= slow_runs and workload.rows >= 1_000_000 and tool in PEERS and PEERS[tool].slow:
                    continue
                measured = run_once(tool, folders[size], work)
                results[tool][size].append(measured)
                used = f"{measured.wall:.2f} s wall, {measured.cpu:.2f} s CPU, {measured.peak / 1e6:.0f} MB"
                print(f"{workload.name} {size} {turn + 1}/{runs} {tool}: {used}", file=sys.stderr, flush=True)
    return results


def tables(workload: Workload, results: dict[str, dict[str, list[Measured]]]) -> str:
    """Return the two tables of a workload as Markdown."""
    rows = workload.rows - workload.small_rows

    def differences(tool: str, figure: str) -> list[float]:
        pairs = zip(results[tool]["full"], results[tool]["small"], strict=True)
        return [getattr(full, figure) - getattr(small, figure) for full, small in pairs]

    ours = differences("shardmill", "wall")
    lines = [f"### {workload.name}: {workload.rows:,} rows less {workload.small_rows:,}, start-up left out", ""]
    lines += [
        "| tool | wall s (min, median, max) | CPU us a row | peak MB | wall, times ours |",
        "|---|---|---|---|---|",
    ]
    for tool in results:
        wall = differences(tool, "wall")
        cpu = statistics.median(differences(tool, "cpu")) / rows * 1e6
        ratios = [theirs / mine for theirs, mine in zip(wall, ours, strict=False)]
        peak = max(m.peak for m in results[tool]["full"])
        walls = f"{min(wall):.2f}, **{statistics.median(wall):.2f}**, {max(wall):.2f}"
        ratio = f"{statistics.median(ratios):.1f}"
        lines.append(f"| {tool} ({len(wall)} runs) | {walls} | {cpu:.2f} | {peak / 1e6:.0f} | {ratio} |")
    lines += ["", f"Whole commands, {workload.rows:,} rows, start-up included:", ""]
    lines += ["| tool | wall s | CPU s |", "|---|---|---|"]
    for tool, sizes in results.items():
        wall_s = statistics.median(m.wall for m in sizes["full"])
        cpu_s = statistics.median(m.cpu for m in sizes["full"])
        lines.append(f"| {tool} | {wall_s:.2f} | {cpu_s:.2f} |")
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Return a line on the machine and the versions."""
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())  # fmt: skip
    from importlib.metadata import version

    names = ("shardmill", "apache-beam", "pyarrow", "numpy", "isal", "crc32c")
    return (f"{model}, {os.cpu_count()} processors, {platform.system()} {platform.release()}, "
            f"Python {platform.python_version()}; " + ", ".join(f"{n} {version(n)}" for n in names))  # fmt: skip


def main() -> None:
    """Parse the arguments, run, print the tables; the raw figures go to `.work/raw/`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", action="append", choices=list(WORKLOADS), help="default: all")
    parser.add_argument("--peer", action="append", choices=[*PEERS, "none"], help="default: all that can do it")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--slow-runs", type=int, default=5, help="of the slow peers, on millions of rows")
    parser.add_argument("--work", type=Path, default=HERE / ".work", help="scratch folder: 20 GB")
    args = parser.parse_args()
    (args.work / "raw").mkdir(parents=True, exist_ok=True)
    print(machine(), "\n")
    for name in args.workload or WORKLOADS:
        workload = WORKLOADS[name]
        peers = [p.name for p in PEERS.values() if name in p.workloads and p.name in (args.peer or PEERS)]
        results = compare(workload, ["shardmill", *peers], args.runs, args.slow_runs, args.work)
        raw = {
            tool: {size: [asdict(m) for m in runs] for size, runs in sizes.items()} for tool, sizes in results.items()
        }
        (args.work / "raw" / f"{name}.json").write_text(json.dumps(raw, indent=1))
        print(tables(workload, results), flush=True)


if __name__ == "__main__":
    main()
