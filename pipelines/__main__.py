"""The entry point of `shardmill` and `python -m shardmill.pipelines`: an interrupt is one line from the start on.

The imports of a command take a moment. Its own handler of signals, which says what is left, is set up after them.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> NoReturn:
    code: object = 1
    atexit.register(lambda: _end(code))  # before all others, so that it is called after them
    _fill_closed_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    # numpy's library starts threads that wait busily for matrices to multiply: nothing here has any
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from .workers.process_start import collect_rarely, hide_pandas_from_beam

    collect_rarely()
    hide_pandas_from_beam()
    from .cli import main as run

    try:
        run()
    except SystemExit as ended:
        code = ended.code
        raise


def _end(code: object) -> None:
    """End the process without taking the interpreter down, when its threads and what is called at exit have ended.

    A thread of gRPC that asks for the interpreter's lock while that is taken down ends the process by SIGABRT, in
    Python before 3.14 (https://github.com/python/cpython/issues/87135).
    """
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except OSError:
        code = 120  # as Python says it
    os._exit(code if isinstance(code, int) else int(code is not None))


def _fill_closed_streams() -> None:
    """Open what the caller has closed of stdin, stdout and stderr, as a file of a dataset would take its number.

    A write to stdout still fails with "Bad file descriptor"; what goes to stderr is lost.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # which takes the lowest number that is free
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _leave(number: int, _: FrameType | None) -> None:
    """End the process at once: outside of a command's body there is nothing to end in order."""
    os.write(2, b"Interrupted\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
