"""Resize pictures to a short side of 256 at quality 95: Shardmill, Pillow's loop, and OpenCV as img2dataset uses it.

    uv run --with opencv-python-headless python benchmarks/resize.py            both sizes, five runs in turn
    uv run --with opencv-python-headless python benchmarks/resize.py --memory   peak memory, some of 50 megapixels

`imagenet` are JPEGs of 500 x 375 pixels and about 110 KB, `photo` of 4000 x 3000. Noise whose power falls with its
frequency, as that of photographs does, so that decoders have as much to do. The peers read a file, make it smaller, and
append the new file to one that is open: no record, no check, no CRC. Shardmill writes a dataset, with start-up left out
by a smaller run. CPU of all processes, with one worker; then the wall clock of two workers against one.
"""

from __future__ import annotations

import argparse
import io
import shutil
import statistics
import sys
from pathlib import Path
from typing import Final

import numpy as np
from measure import Measured, measure, warm_files, warm_memory
from PIL import Image

SHARDMILL: Final = str(Path(sys.executable).with_name("shardmill"))
SIDE: Final = 256
QUALITY: Final = 95
SIZES: Final = {"imagenet": ((500, 375), 92, 4_000, 500), "photo": ((4000, 3000), 90, 180, 30)}
"""By name: width and height, the quality of the files, and how many there are in the large and the small run."""

PICTURES: Final = 20


def photograph(width: int, height: int, seed: int) -> Image.Image:
    """Return noise whose spectrum is that of photographs, in three channels that are alike."""
    rng = np.random.default_rng(seed)
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
    frequency = np.sqrt(rows * rows + columns * columns)
    frequency[0, 0] = 1

    def noise(power: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        spectrum = np.fft.rfft2(rng.standard_normal((height, width))) / frequency**power
        return np.fft.irfft2(spectrum, s=(height, width))

    light = noise(1.15)
    pixels = np.stack([light + 0.35 * noise(1.3) for _ in range(3)], -1)
    pixels = (pixels - pixels.mean()) / pixels.std() * 55 + 120 + rng.standard_normal(pixels.shape) * 3
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def make(folder: Path, name: str) -> None:
    """Write the pictures of a size, in a folder for each run: some different ones, again and again."""
    (width, height), quality, large, small = SIZES[name]
    files = []
    for seed in range(PICTURES if name == "imagenet" else 3):
        memory = io.BytesIO()
        photograph(width, height, seed).save(memory, "JPEG", quality=quality)
        files.append(memory.getvalue())
    for run, count in (("large", large), ("small", small)):
        (folder / run).mkdir(parents=True)
        for number in range(count):
            (folder / run / f"{number:05d}.jpg").write_bytes(files[number % len(files)])


def target(width: int, height: int) -> tuple[int, int]:
    """Return the size of which the shorter side is 256."""
    scale = SIDE / min(width, height)
    return round(width * scale), round(height * scale)


def by_pillow(folder: Path, out: Path) -> None:
    """Resize as tutorials do."""
    with out.open("wb") as file:
        for path in sorted(folder.iterdir()):
            image = Image.open(path)
            small = image.convert("RGB").resize(target(*image.size), Image.Resampling.LANCZOS)
            memory = io.BytesIO()
            small.save(memory, "JPEG", quality=QUALITY)
            file.write(memory.getvalue())


def by_opencv(folder: Path, out: Path) -> None:
    """Resize as img2dataset does: INTER_AREA, JPEG of quality 95."""
    import cv2

    cv2.setNumThreads(1)
    with out.open("wb") as file:
        for path in sorted(folder.iterdir()):
            image = cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_UNCHANGED)
            small = cv2.resize(image, target(image.shape[1], image.shape[0]), interpolation=cv2.INTER_AREA)
            file.write(cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1].tobytes())


PEERS: Final = {"pillow": by_pillow, "opencv": by_opencv}


def run(tool: str, folder: Path, work: Path, workers: int = 1) -> Measured:
    """Run a tool over a folder, and measure it."""
    out = work / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--as", tool, str(folder), str(out)]
    if tool == "shardmill":
        command = [SHARDMILL, "convert", str(folder), "-o", str(out), "--quiet", "--workers", str(workers)]
        command += ["--set", f"image.resize={SIDE}", "--set", "input.layout=flat"]
    warm_memory()
    warm_files(folder)
    return measure(command, work / "log")


def compare(name: str, runs: int, work: Path) -> None:
    """Print the CPU of a picture by tool, and what a second worker gives."""
    folder = work / name
    if not (folder / "small").exists():
        make(folder, name)
    _, _, large, small = SIZES[name]
    cpu: dict[str, list[float]] = {tool: [] for tool in ("shardmill", *PEERS)}
    faster: list[float] = []
    for _ in range(runs):
        for tool, found in cpu.items():
            more, less = (run(tool, folder / size, work) for size in ("large", "small"))
            found.append((more.cpu - less.cpu) / (large - small) * 1e3)
            if tool == "shardmill":
                two = [run(tool, folder / size, work, workers=2).wall for size in ("large", "small")]
                faster.append((more.wall - less.wall) / (two[0] - two[1]))
    own = cpu["shardmill"]
    print(f"\n{name}: {large:,} pictures less {small:,}, medians of {runs}\n")
    print("| tool | ms of CPU | of ours |\n| --- | --: | --: |")
    for tool, found in cpu.items():
        ratio = statistics.median(other / ours for other, ours in zip(found, own, strict=True))
        print(f"| {tool} | {statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f}) | {ratio:.2f} |")
    print(f"\ntwo workers: {statistics.median(faster):.2f} times as fast ({min(faster):.2f} to {max(faster):.2f})")


def memory(work: Path) -> None:
    """Print the peak memory of two workers that resize pictures of which every fourth has 50 megapixels."""
    folder = work / "memory"
    if not folder.exists():
        folder.mkdir(parents=True)
        made = {}
        for (width, height), quality in (((4000, 3000), 90), ((8160, 6120), 85)):
            bytes_ = io.BytesIO()
            photograph(width, height, 1).save(bytes_, "JPEG", quality=quality)
            made[width] = bytes_.getvalue()
        for number in range(120):
            (folder / f"{number:03d}.jpg").write_bytes(made[8160 if number % 4 == 0 else 4000])
    done = run("shardmill", folder, work, workers=2)
    print(f"\npeak memory: {done.peak / 1e6:.0f} MB, {done.wall:.0f} s")


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--as", dest="tool", choices=PEERS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", choices=SIZES, action="append")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--work", type=Path, default=Path(__file__).with_name(".work") / "resize")
    parser.add_argument("paths", nargs="*", type=Path)
    args = parser.parse_args()
    if args.tool:
        PEERS[args.tool](*args.paths)
        return
    args.work.mkdir(parents=True, exist_ok=True)
    if args.memory:
        memory(args.work)
        return
    for name in args.size or SIZES:
        compare(name, args.runs, args.work)


if __name__ == "__main__":
    main()
