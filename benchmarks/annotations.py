"""Convert annotated pictures beside the way of TensorFlow's `create_coco_tf_record.py`, in turn: CPU, wall, memory.

    uv sync --group readers                                # TensorFlow, here or in another environment
    uv run --group readers python benchmarks/annotations.py --pictures 20000 --runs 3
    uv run --group readers python benchmarks/annotations.py --python ../readers/bin/python

COCO's own layout with eight objects with polygons a picture, no masks: pictures of 640 x 480 pixels, of which 50 are
different and the others are hard links to them. The script works in one process, and digests each file too; Shardmill
does not. It has one worker, then two.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from directions import coco
from measure import Measured, measure, warm_files, warm_memory

HERE = Path(__file__).parent


def commands(source: Path, out: Path, python: str) -> dict[str, list[str]]:
    ours = [sys.executable, "-m", "shardmill.pipelines", "convert", str(source), "-o", str(out), "--workers"]
    return {
        "TensorFlow's way": [python, str(HERE / "peers/coco_loop.py"), str(source), str(out)],
        "Shardmill, one worker": [*ours, "1"],
        "Shardmill, two workers": [*ours, "2"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="one that has TensorFlow")
    parser.add_argument("--work", type=Path, help="where inputs and outputs go for a while")
    options = parser.parse_args()
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory(prefix="shardmill-annotations-", dir=options.work) as folder:
        work = Path(folder)
        source, out = work / "coco", work / "out"
        coco(source, options.pictures, 8 * options.pictures)
        size = sum(path.stat().st_size for path in source.rglob("*.jpg"))
        found: dict[str, list[Measured]] = {}
        for _ in range(options.runs):
            for name, command in commands(source, out, options.python).items():
                warm_memory()
                warm_files(source)
                found.setdefault(name, []).append(measure(command, work / "log", env))
                shutil.rmtree(out)
    print(f"{options.pictures:,} pictures of {size / options.pictures / 1e3:.0f} KB, medians of {options.runs} runs\n")
    print("| tool | CPU | wall clock | peak | CPU, times | wall clock, times |\n" + "| --- " * 6 + "|")
    cpus, walls = ([getattr(one, what) for one in found["TensorFlow's way"]] for what in ("cpu", "wall"))
    for name, runs in found.items():
        cpu, wall, peak = (statistics.median(getattr(one, what) for one in runs) for what in ("cpu", "wall", "peak"))
        times = [
            statistics.median(theirs / ours for theirs, ours in zip(base, mine, strict=True))
            for base, mine in ((cpus, [one.cpu for one in runs]), (walls, [one.wall for one in runs]))
        ]
        print(f"| {name} | {cpu:.1f} s | {wall:.1f} s | {peak / 1e6:.0f} MB | {times[0]:.2f} | {times[1]:.2f} |")


if __name__ == "__main__":
    main()
