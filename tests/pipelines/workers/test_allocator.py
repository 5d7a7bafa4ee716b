from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.engine

_FAULTS = """
import resource, sys
if "keep" in sys.argv:
    from shardmill.pipelines.workers.process_start import keep_freed_memory
    keep_freed_memory()
assert "pyarrow" not in sys.modules
import threading
import numpy as np, pyarrow as pa

def batches(count):
    for _ in range(count):
        arrays = [np.ones(3 << 18) for _ in range(4)]  # 6 MiB each
        del arrays

def run():
    batches(3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    batches(10)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

worker = threading.Thread(target=run)
worker.start()
worker.join()
"""


def faults(*args: str, **env: str) -> int:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "MIMALLOC_"))}
    # numpy asks for huge pages where arrays are large: one fault for 2 MiB would blur the count
    plain["NUMPY_MADVISE_HUGEPAGE"] = "0"
    done = subprocess.run(
        [sys.executable, "-c", _FAULTS, *args], env=plain | env, check=True, capture_output=True, text=True
    )
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc's malloc is told to keep memory")
def test_the_next_batch_gets_the_memory_of_the_last_one() -> None:
    assert faults("keep") < faults() / 5


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc's malloc is told to keep memory")
def test_what_the_user_has_set_stands() -> None:
    assert faults("keep", MALLOC_TRIM_THRESHOLD_="131072", MALLOC_MMAP_THRESHOLD_="131072") > faults("keep") * 5


def test_arrow_is_told_before_it_is_imported() -> None:
    code = (
        "import os; from shardmill.pipelines.workers.process_start import keep_freed_memory as keep; keep(); "
        "print(os.environ['MIMALLOC_PURGE_DELAY'])"
    )
    for env, expected in (({}, "-1"), ({"MIMALLOC_PURGE_DELAY": "7"}, "7")):
        plain = {name: value for name, value in os.environ.items() if name != "MIMALLOC_PURGE_DELAY"}
        done = subprocess.run([sys.executable, "-c", code], env=plain | env, check=True, capture_output=True, text=True)
        assert done.stdout.strip() == expected


_CYCLE = """
import sys
if "rarely" in sys.argv:
    from shardmill.pipelines.workers.process_start import collect_rarely
    collect_rarely()

class Node:
    def __del__(self):
        print("searched")

node = Node()
node.itself = node
del node
"""


@pytest.mark.parametrize(("args", "said"), [((), "searched\n"), (("rarely",), "")])
def test_a_command_does_not_search_its_memory_for_cycles_when_it_ends(args: tuple[str, ...], said: str) -> None:
    command = [sys.executable, "-c", _CYCLE, *args]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == said
