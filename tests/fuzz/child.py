"""One process that feeds inputs to a target, under limits of time and memory, and reports as one line of JSON.

    python tests/fuzz/child.py TARGET SEED FIRST COUNT PROGRESS
    python tests/fuzz/child.py TARGET SEED NUMBER > input          that input, to look at

PROGRESS is a file into which the number of the input at work is written: it tells which one ended the process.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import random
import resource
import struct
import sys
import time
import traceback
from collections import Counter

import pyarrow as pa
from targets import target

MEMORY_BYTES = 1 << 30
SECONDS = 2.0
"""Of processor time, for one input: the machine may have other things to do."""

STUCK_SECONDS = 300
"""Of the clock: a process that hangs in C, where no exception reaches, is ended with all its stacks on stderr."""


def generator(name: str, seed: int, number: int) -> random.Random:
    return random.Random(f"{seed}:{name}:{number}")


def virtual_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * mmap.PAGESIZE


def main() -> int:
    name, seed, first = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    chosen = target(name)
    if len(sys.argv) == 4:
        sys.stdout.buffer.write(chosen.make(generator(name, seed, first)))
        return 0
    count = int(sys.argv[4])
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    for number in range(-20, 0):  # whatever is loaded or cached at first is not the inputs'
        chosen.check(chosen.make(generator(name, seed, number)))
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    limit = virtual_bytes() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    report = {"outcomes": Counter(), "slowest": 0.0, "slowest_input": first}
    with open(sys.argv[5], "r+b") as file, mmap.mmap(file.fileno(), 8) as progress:
        for number in range(first, first + count):
            struct.pack_into("<q", progress, 0, number)
            data = chosen.make(generator(name, seed, number))
            faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
            started = time.process_time()
            try:
                outcome = chosen.check(data)
            except BaseException:  # noqa: BLE001 - whatever it is: it is what is looked for
                sys.stdout.write(json.dumps({"failed": number, "error": traceback.format_exc()[-6000:]}) + "\n")
                return 1
            seconds = time.process_time() - started
            if seconds > SECONDS:
                sys.stdout.write(
                    json.dumps({"failed": number, "error": f"{seconds:.1f} s, over {SECONDS} s: {outcome}"}) + "\n"
                )
                return 1
            if seconds > report["slowest"]:
                report |= {"slowest": seconds, "slowest_input": number}
            report["outcomes"][outcome] += 1
    faulthandler.cancel_dump_traceback_later()
    report["peak_bytes"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) << 10
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
