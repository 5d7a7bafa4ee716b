"""Run the body of a command, and turn its end, error or interrupt into an exit code and a line for people.

An interrupt reaches a command in several ways: as KeyboardInterrupt, or, when it hit a worker, as whatever the engine
made of it. So the signal handlers note that there was one, and any error after it is the interrupt's.
"""

from __future__ import annotations

import io
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Self, TextIO

from ...transforms.errors import DamageError, RunError, ShardmillError, TooManyRejects, UsageError
from ...transforms.format.wording.hints import Add, Command
from ...transforms.stores.store_url import is_store_url
from ..outcomes.disk_errors import DiskError, disk_error
from ..screens.streams import OutputError, discard_output

if TYPE_CHECKING:
    from ..outcomes.summary import Count
    from ..screens.summary_screen import Screen

_GRACE_SECONDS: Final = 5.0
"""After an interrupt, threads of the engine that do not end by themselves are left behind after this time."""

_STUCK_SECONDS: Final = 10.0
"""A run on this machine that has not come back from an interrupt after this time is left by the process."""

_NAMES: Final = {signal.SIGINT: "Interrupted", signal.SIGTERM: "Terminated", signal.SIGHUP: "Hung up"}

_READER_GONE: Final = 128 + signal.SIGPIPE
"""`shardmill inspect ... | head`: the reader has seen enough. This is how the system's own tools end."""

Body = Callable[["Session"], int | None]
"""The body of a command; it may return an exit code, None is 0."""


class Session:
    """The tools of a command's body: the screen, and the watch over a run's staging folder.

    `detected` is what was detected in the data so far: an error may come of it, so it is shown before one; `next` are
    the lines after an error that say what to type next.
    """

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        from ..screens.summary_screen import Screen

        self.screen: Screen = Screen(as_json=as_json, quiet=quiet)
        self.staging: str | None = None
        self.detected: tuple[str, ...] = ()
        self.next: tuple[str, ...] = ()
        self.on_this_machine = True

    def watch(
        self, staging: str, notes: Sequence[str] = (), count: Count | None = None
    ) -> AbstractContextManager[object]:
        """Show the progress of a run on stderr while the context is open, and remember where its work is.

        A run whose work others `count` is on a cluster: an interrupt may take long to end it there.
        """
        self.staging = staging
        self.on_this_machine = count is None
        for note in notes:
            self.screen.note(note)
        if self.screen.quiet:
            return nullcontext()
        from ..outcomes.summary import Counted
        from ..screens.progress import ProgressWatcher

        return ProgressWatcher(staging, self.screen.err, count=count or Counted)


class _Interrupt:
    """Handles SIGINT, SIGTERM and SIGHUP while it is open: the first raises KeyboardInterrupt, the second ends at once.

    SIGHUP stays ignored under `nohup`.

    The exception may be raised anywhere in the engine. Beam's local runner waits forever for a worker that had not
    connected yet when the runner was closed; so what is stuck is left, by `session`, after some time.
    """

    def __init__(self, session: Session) -> None:
        self.signal: int | None = None
        self._session = session
        self._over = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _NAMES:
                if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.signal is not None:
            os._exit(128 + number)
        self.signal = number
        threading.Thread(target=self._leave_stuck, args=(number,), name="leave stuck", daemon=True).start()
        raise KeyboardInterrupt

    def _leave_stuck(self, number: int) -> None:
        if not self._over.wait(_STUCK_SECONDS) and self._session.on_this_machine:
            os._exit(_interrupted(self._session, number))


def run(body: Body, *, as_json: bool, quiet: bool, debug: bool) -> int:
    """Run the body of a command and return the exit code; any error that it raised has been reported."""
    session = Session(as_json=as_json, quiet=quiet)
    with _Interrupt(session) as interrupt, _muted_engine(interrupt, debug=debug):
        try:
            _check_working_folder()
            code = body(session) or 0
            session.screen.out.file.flush()
            return code
        except OutputError as error:
            return _output_failed(session, error)
        except BrokenPipeError as error:
            return _READER_GONE if _stdout_is_closed() else _unexpected(session, error, debug=debug)
        except KeyboardInterrupt as error:
            return _interrupted(session, interrupt.signal or signal.SIGINT, str(error))
        except ShardmillError as error:
            if interrupt.signal is not None:
                return _interrupted(session, interrupt.signal)
            session.screen.error(error, session.detected)
            _show_kept(session, error)
            for line in session.next:
                from ..screens.terminal import in_lines

                session.screen.err.print(in_lines(line), soft_wrap=True, highlight=False, markup=False)
            return error.exit_code
        except Exception as error:  # noqa: BLE001  (the last line of defence: it is reported)
            if interrupt.signal is not None or _wraps_interrupt(error):
                return _interrupted(session, interrupt.signal or signal.SIGINT)
            if (trouble := disk_error(error)) is not None and not debug:
                return _disk_failed(session, trouble)
            return _unexpected(session, error, debug=debug)


def _check_working_folder() -> None:
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("the working folder was removed: change to another one (cd)") from error


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


class _OfThisThread(io.TextIOBase):
    """A stream that keeps the text of the thread that made it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() == self._thread:
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


@contextmanager
def _muted_engine(interrupt: _Interrupt, *, debug: bool) -> Iterator[None]:
    """Hide what an engine itself prints to stderr: the tracebacks of its threads, at every error.

    The screen has its own handle of stderr. After an interrupt or a failure, the threads keep failing until the process
    ends.
    """
    before = sys.stderr
    if not debug:
        sys.stderr = _Nowhere()
    try:
        yield
    finally:
        if interrupt.signal is None:
            sys.stderr = before if debug else _OfThisThread(before)


def _stdout_is_closed() -> bool:
    """Return whether it was stdout's reader that went away; then what is left for it goes nowhere."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    closed = any(event & select.POLLERR for _, event in poll.poll(0))
    if closed:
        discard_output()
    return closed


def _output_failed(session: Session, error: OutputError) -> int:
    discard_output()
    screen = session.screen
    line = f"error: standard output cannot be written: {error}; "
    line += f"{screen.done}, only the summary is lost" if screen.done else "what was to be shown is lost or cut"
    screen.err.print(line, soft_wrap=True)
    return RunError.exit_code


def _wraps_interrupt(error: BaseException) -> bool:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt) or (isinstance(seen, RuntimeError) and "KeyboardInterrupt" in str(seen)):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _interrupted(session: Session, number: int, left: str = "") -> int:
    """Return what is left: what the run says of it, else what is seen in the dataset's folder."""
    _leave_soon(128 + number)
    line = f"{_NAMES[signal.Signals(number)]}: {left or _what_is_left(session.staging)}"
    session.screen.err.print(line, soft_wrap=True)
    return 128 + number


def _disk_failed(session: Session, trouble: DiskError) -> int:
    from ..screens.terminal import shown_path

    where = "" if trouble.path is None else f": {shown_path(trouble.path)}"
    left = "" if session.staging is None else f": {_what_is_left(session.staging)}"
    error = RunError(f"{trouble.words}{where}{left}; {trouble.fix}, and run the command again")
    session.screen.error(error)
    return error.exit_code


def _what_is_left(staging: str | None) -> str:
    if staging is None:
        return "nothing was committed"
    from ...transforms.dataset.storage.manifest_files import read_manifest
    from ..screens.terminal import shown_path

    try:
        manifest = read_manifest(os.path.dirname(os.path.dirname(staging)))
    except ShardmillError:  # there is no generation yet
        manifest = None
    is_there = is_store_url(staging) or os.path.isdir(staging)
    if manifest is not None and manifest.run.run_id == os.path.basename(staging):
        what = f"generation {manifest.generation} was committed before, and can be read"
        return f"{what}; the same command again finishes its publishing" if is_there else what
    if not is_there:
        return "nothing was committed"
    if is_store_url(staging):
        return f"nothing was committed; {_left_in_store(staging)}"
    return (
        f"nothing was committed; the staged work is in {shown_path(staging)} ({_size_of(staging)}); the same command "
        f"resumes it"
    )


def _show_kept(session: Session, error: ShardmillError) -> None:
    if session.staging is not None and is_store_url(session.staging):
        session.screen.err.print(_left_in_store(session.staging), soft_wrap=True, highlight=False)
        return
    if session.staging is not None and os.path.isdir(session.staging):
        from ...transforms.format.batches.rejects import may_be_left_out
        from ..prepare.staged_plan import START_OVER
        from ..screens.terminal import shown_path, what_may_go

        kept = "kept for resuming"
        counts = error.counts if isinstance(error, TooManyRejects) else {}
        if counts and may_be_left_out(
            counts["rejected"], counts["read"]
        ):  # raised when all rows were read: so many suffice
            use = f"the same command with {Add('--max-rejects', str(counts['rejected']))} resumes it"
        elif isinstance(error, DamageError):  # of what was staged: the same command would find it again
            use = START_OVER
        elif not counts and getattr(error, "again", True):
            use = "the same command resumes it"
        else:
            see = what_may_go(os.path.dirname(os.path.dirname(session.staging)))
            kept, use = "left behind", f"to run again when that is fixed starts over; {see}"
        line = f"{kept}: {_size_of(session.staging)} in {shown_path(session.staging)}; {use}"
        session.screen.err.print(line, soft_wrap=True, highlight=False)


def _left_in_store(staging: str) -> str:
    from ..screens.terminal import shown_path

    remove = Command("gc", shown_path(os.path.dirname(os.path.dirname(staging))), "--delete")
    return (
        f"what was staged is in {shown_path(staging)}, and is not used again: {remove} removes it when it is a week old"
    )


def _size_of(folder: str) -> str:
    """Return the bytes of all files below a folder, as people write them; threads may be at work there still."""
    from ...transforms.format.wording.printable import format_size

    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return format_size(total)


def _leave_soon(code: int) -> None:
    """End the process after the grace time, whatever threads still run."""

    def leave() -> None:
        threading.Event().wait(_GRACE_SECONDS)
        os._exit(code)

    threading.Thread(target=leave, name="leave", daemon=True).start()


def _unexpected(session: Session, error: Exception, *, debug: bool) -> int:
    from ...transforms.format.wording.printable import printable

    if debug:
        traceback.print_exception(error, file=sys.stderr)
    first = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {printable(first[0] if first else '')}"
    fix = "" if debug else "; --debug shows where"
    session.screen.err.print(
        f"error: unexpected {text}\nThis is a fault of Shardmill: please report it{fix}.", soft_wrap=True
    )
    if session.screen.as_json:
        session.screen.error_data({"type": type(error).__name__, "exit_code": 1, "message": text})
    return 1
