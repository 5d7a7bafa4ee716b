"""The command line: what it costs to ask, what it imports, how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shardmill.pipelines.cli import split_beam_options
from shardmill.pipelines.commands import session as interrupts
from shardmill.transforms.dataset.storage.record_file import write_records
from shardmill.transforms.errors import ConfigError, ShardmillError, TooManyRejects

from ..examples import example_from_values
from .cpu_time import cpu_of_python, slowness

pytestmark = pytest.mark.engine

HELP_CPU_SECONDS = 0.35
HEAVY = ("apache_beam", "pandas")


def shardmill(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shardmill.pipelines", *args], capture_output=True, text=True, cwd=cwd, check=False
    )


def imported(args: list[str], names: tuple[str, ...], cwd: Path) -> list[str]:
    """Return which of some modules the command line with these arguments has imported in the end."""
    code = (
        "import sys\nfrom shardmill.pipelines.cli import main\n"
        f"try: main({args!r})\nexcept SystemExit: pass\n"
        f"print([n for n in {names!r} if n in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, check=True)
    names_found: list[str] = json.loads(done.stderr.splitlines()[-1].replace("'", '"'))
    return names_found


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    write_records(path, [example_from_values({"a": [1]}).SerializeToString()])
    return path


class TestCost:
    @pytest.mark.parametrize("args", [["--help"], ["convert", "--help"], ["--version"]])
    def test_help_and_version_answer_within_their_cpu_time(self, args: list[str]) -> None:
        spent, slow = [], []
        for _ in range(3):  # the least of three against the most: other processes take caches and turns
            seconds, done = cpu_of_python("-m", "shardmill.pipelines", *args)
            assert done.returncode == 0
            spent.append(seconds)
            slow.append(slowness())
        assert min(spent) < HELP_CPU_SECONDS * max(slow)

    @pytest.mark.parametrize("args", [["--help"], ["convert", "--help"], ["--version"]])
    def test_help_and_version_import_nothing_heavy(self, args: list[str], tmp_path: Path) -> None:
        names = (*HEAVY, "pydantic", "pyarrow", "numpy", "rich", "yaml")
        assert imported(args, names, tmp_path) == []

    @pytest.mark.thorough("six commands are started")
    def test_inspect_verify_init_and_config_errors_import_neither_beam_nor_pandas(self, records: Path) -> None:
        (records.parent / "c.yaml").write_text("nam: x")
        (records.parent / "a.csv").write_text("x\n1\n")
        for args in (
            ["inspect", "a.tfrecord"],
            ["verify", "a.tfrecord"],
            ["init", "a.csv", "-o", "-"],
            ["convert", "c.yaml"],
            ["convert", "gone.csv", "-o", "out"],
            ["append", "a.csv", "-o", "out"],
        ):
            assert imported(args, HEAVY, records.parent) == [], args

    def test_a_small_conversion_looks_for_cycles_a_few_times_and_not_hundreds(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("x\n1\n")
        count = "import gc; found = []; gc.callbacks.append(lambda *_: found.append(1))\n"
        count += "from shardmill.pipelines.__main__ import main\n"
        count += "try: main()\nfinally: print('looks', len(found))"
        command = [sys.executable, "-c", count, "convert", "a.csv", "-o", "out", "-q"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert int(done.stdout.split()[-1]) < 60, "each is a start and a stop; by Python's default there are over 1,000"

    def test_the_command_ends_when_all_is_called_at_exit_and_before_the_interpreter_is_taken_down(self) -> None:
        script = "import atexit, sys; sys.argv = ['shardmill', '--no-such']\n"
        script += "class Last:\n    def __del__(self): print('taken down')\n"
        script += "sys.modules['last'] = Last()\n"
        script += "from shardmill.pipelines.__main__ import main\n"
        script += "try: main()\nfinally: atexit.register(print, 'at exit', end='')"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "at exit")

    @pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted by what Linux shows of them")
    def test_the_command_starts_no_threads_that_wait_for_matrices_to_multiply(self) -> None:
        script = "import os, sys; sys.argv = ['shardmill', '--version']\n"
        script += "from shardmill.pipelines.__main__ import main\n"
        script += "try: main()\nexcept SystemExit: pass\n"
        script += "import numpy; print(len(os.listdir('/proc/self/task')))"
        env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
        done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
        assert done.stdout.split()[-1] == "1"


class TestAnswers:
    def test_the_version_is_that_of_the_package(self) -> None:
        done = shardmill("--version")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("shardmill 0.")

    @pytest.mark.parametrize(
        ("args", "hint"),
        [
            (["convrt", "a.csv"], "No such command 'convrt'. Did you mean 'convert'?"),
            (
                ["convert", "a.csv", "--shard-sise", "1"],
                "No such option: --shard-sise; did you mean --shard-size?",
            ),
            (["convert"], "Missing argument"),
            (["inspect", "x", "-n", "-1"], "greater than or equal to 0"),
        ],
    )
    def test_wrong_usage_exits_2_and_names_what_was_meant(self, args: list[str], hint: str) -> None:
        done = shardmill(*args)
        assert (done.returncode, done.stdout) == (2, "")
        assert hint in done.stderr

    def test_wrong_usage_with_json_is_a_document_as_any_other_error(self) -> None:
        done = shardmill("convert", "a.csv", "--json", "--shard-sise", "1")
        message = "No such option: --shard-sise; did you mean --shard-size?"
        assert (done.returncode, done.stderr) == (2, f"error: {message}\n")
        assert json.loads(done.stdout) == {"error": {"type": "UsageError", "exit_code": 2, "message": message}}

    def test_a_wrong_config_exits_2_with_its_lines_on_stderr_and_no_traceback(self, tmp_path: Path) -> None:
        (tmp_path / "c.yaml").write_text(
            "input: {format: csv, paths: [a.csv]}\noutput: {path: o, shard_size: 1M}\nnam: x\n"
        )
        done = shardmill("convert", "c.yaml", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.splitlines() == [
            "error: c.yaml: 2 problems",
            '  c.yaml:2:19: output.shard_size: "1M": "M" is not a unit of size; write 1MiB or 1MB',
            '  c.yaml:3:1: nam: unknown key; did you mean "name"?',
        ]

    def test_a_flag_that_is_wrong_is_named_as_it_was_typed(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("x\n1\n")
        done = shardmill("convert", "a.csv", "-o", "out", "--compression", "zip", "--workers", "x", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.splitlines() == [
            "error: config: 2 problems",
            '  --compression: output.compression: "zip" is not a choice; did you mean "gzip"? choices: none, gzip',
            '  --workers: runner.workers: "x" is not a number of workers (1 to 256) or auto',
        ]

    def test_a_path_that_matches_nothing_exits_2(self, tmp_path: Path) -> None:
        done = shardmill("convert", "gone/*.csv", "-o", "out", "--json", cwd=tmp_path)
        assert done.returncode == 2
        text = f"gone/*.csv: no such file or folder (looked in {tmp_path})"
        assert done.stderr == f"error: {text}\n"
        assert json.loads(done.stdout) == {"error": {"type": "ConfigError", "exit_code": 2, "message": text}}

    def test_inspect_prints_records_on_stdout(self, records: Path) -> None:
        done = shardmill("inspect", "a.tfrecord", "--json", cwd=records.parent)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout) == {"record": 0, "file": "a.tfrecord", "offset": 0, "features": {"a": [1]}}

    @pytest.mark.parametrize("json_flag", ["--json", ""])
    def test_a_reader_that_has_seen_enough_gets_no_traceback(self, records: Path, json_flag: str) -> None:
        write_records(records, [example_from_values({"a": [b"x" * 100]}).SerializeToString()] * 5000)
        command = f"{sys.executable} -m shardmill.pipelines inspect {records} -n 5000 {json_flag}"
        done = subprocess.run(
            ["bash", "-c", f"{command} | head -n 1; echo ${{PIPESTATUS[0]}}"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout.splitlines()[-1], done.stderr) == ("141", "")

    def test_verify_exits_3_with_the_place_of_the_damage(self, records: Path) -> None:
        assert shardmill("verify", str(records)).returncode == 0
        data = bytearray(records.read_bytes())
        data[14] ^= 1
        records.write_bytes(data)
        done = shardmill("verify", "a.tfrecord", cwd=records.parent)
        assert done.returncode == 3
        assert done.stdout.startswith("a.tfrecord record 0 at byte 0: ")
        assert "Traceback" not in done.stderr

    def test_init_writes_a_config_that_loads_and_never_over_another(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("x\n1\n")
        (tmp_path / "conf").mkdir()
        assert shardmill("init", "a.csv", "-o", "conf/a.yaml", cwd=tmp_path).returncode == 0
        done = shardmill("init", "a.csv", "-o", "conf/a.yaml", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr == "error: conf/a.yaml: already exists; give another name with -o, or -o -\n"

    def test_init_as_json_is_one_document_with_the_config(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("x\n1\n")
        for target, path in (("a.yaml", "a.yaml"), ("-", None)):
            done = shardmill("init", "a.csv", "-o", target, "--json", cwd=tmp_path)
            document = json.loads(done.stdout)
            assert (done.returncode, document["command"], document["path"]) == (0, "init", path)
            assert "paths: [a.csv]" in document["text"]


class TestBeamOptions:
    @pytest.mark.parametrize(
        ("args", "split"),
        [
            (["convert", "a", "--", "--x=1", "y"], (["convert", "a"], ["--x=1", "y"])),
            (["convert", "a"], (["convert", "a"], [])),
            (["convert", "a", "--"], (["convert", "a"], [])),
            (["inspect", "--", "-a"], (["inspect", "--", "-a"], [])),
            ([], ([], [])),
        ],
    )
    def test_what_stands_after_two_dashes_goes_to_beam(self, args: list[str], split: object) -> None:
        assert split_beam_options(args) == split


class TestEnds:
    def ended(
        self, body: interrupts.Body, capsys: pytest.CaptureFixture[str], *, debug: bool = False
    ) -> tuple[int, str]:
        code = interrupts.run(body, as_json=False, quiet=False, debug=debug)
        return code, capsys.readouterr().err

    @pytest.mark.parametrize("error", [ShardmillError("it"), ConfigError("it"), TooManyRejects("it")])
    def test_our_errors_are_their_text_and_their_exit_code(
        self, error: ShardmillError, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def body(_: interrupts.Session) -> None:
            raise error

        assert self.ended(body, capsys) == (error.exit_code, "error: it\n")

    def test_other_errors_are_one_line_and_a_traceback_on_request(self, capsys: pytest.CaptureFixture[str]) -> None:
        def body(_: interrupts.Session) -> None:
            raise LookupError("deep\x1b\nmore")

        code, text = self.ended(body, capsys)
        assert code == 1
        assert text == (
            "error: unexpected LookupError: deep\\x1b\n"
            "This is a fault of Shardmill: please report it; --debug shows where.\n"
        )
        assert "Traceback" in self.ended(body, capsys, debug=True)[1]

    def test_an_interrupt_in_a_worker_is_told_from_the_error_that_wraps_it(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def body(_: interrupts.Session) -> None:
            raise RuntimeError("Traceback ...\nKeyboardInterrupt [while running 'Stage parts']")

        def chained(_: interrupts.Session) -> None:
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt as error:
                raise ValueError("engine") from error

        for one in (body, chained):
            code, text = self.ended_in_a_process(one)
            assert (code, text) == (130, "Interrupted: nothing was committed\n")

    def ended_in_a_process(self, body: interrupts.Body) -> tuple[int, str]:
        """Run a body in a child: after an interrupt the process ends itself."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(write, 2)
            sys.stderr = os.fdopen(2, "w", closefd=False)
            code = interrupts.run(body, as_json=False, quiet=False, debug=False)
            sys.stderr.flush()
            os._exit(code)
        os.close(write)
        with os.fdopen(read) as stream:
            text = stream.read()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text

    @pytest.mark.parametrize(
        ("number", "code", "word"),
        [(signal.SIGINT, 130, "Interrupted"), (signal.SIGTERM, 143, "Terminated"), (signal.SIGHUP, 129, "Hung up")],
    )
    def test_a_signal_is_one_line_that_says_where_the_staged_work_lies(
        self, number: signal.Signals, code: int, word: str, tmp_path: Path
    ) -> None:
        script = (
            "import signal, sys, threading\n"
            "from shardmill.pipelines.commands import session as interrupts\n"
            "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # these tests may run under nohup
            "def body(session):\n"
            "    with session.watch('staged'):\n"
            "        print('ready', flush=True)\n"
            "        threading.Event().wait()\n"
            "sys.exit(interrupts.run(body, as_json=False, quiet=False, debug=False))\n"
        )
        (tmp_path / "staged").mkdir()
        child = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(number)
        _, text = child.communicate(timeout=300)
        assert (child.returncode, text) == (
            code,
            f"{word}: nothing was committed; the staged work is in staged (0 B); the same command resumes it\n",
        )

    @pytest.mark.parametrize(
        "command", [[sys.executable, "-m", "shardmill.pipelines"], [str(Path(sys.executable).parent / "shardmill")]]
    )
    def test_an_interrupt_while_modules_are_imported_is_one_line_too(self, command: list[str], tmp_path: Path) -> None:
        (tmp_path / "slow").mkdir()
        (tmp_path / "slow/typer.py").write_text(
            "import threading\nprint('importing', flush=True)\nthreading.Event().wait()\n"
        )
        heeding = (  # what a shell runs in the background ignores interrupts
            "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\nos.execv(sys.argv[1], sys.argv[1:])"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", heeding, *command, "convert", "a.csv", "-o", "out"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "slow")},
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "importing\n"
        child.send_signal(signal.SIGINT)
        _, text = child.communicate(timeout=300)
        assert (child.returncode, text) == (130, "Interrupted\n")

    def test_an_interrupt_after_the_commit_does_not_say_that_nothing_was_committed(self, dataset: Path) -> None:
        def interrupted(run_id: str, *, published: bool = False) -> tuple[int, str]:
            staging = dataset / ".staging" / run_id
            if published:
                shutil.rmtree(staging, ignore_errors=True)
            else:
                staging.mkdir(parents=True)

            def body(session: interrupts.Session) -> None:
                session.staging = str(staging)
                raise KeyboardInterrupt

            return self.ended_in_a_process(body)

        committed = (
            "Interrupted: generation 1 was committed before, and can be read; the same command again finishes its "
            "publishing\n"
        )
        assert interrupted("5f0c9b1e2a7d4c88") == (130, committed)
        assert interrupted("other")[1].startswith("Interrupted: nothing was committed; the staged work is in ")
        whole = "Interrupted: generation 1 was committed before, and can be read\n"
        assert interrupted("5f0c9b1e2a7d4c88", published=True) == (130, whole)
        assert interrupted("other", published=True) == (130, "Interrupted: nothing was committed\n")

    def test_a_thread_that_does_not_end_does_not_hold_an_interrupted_run(self, tmp_path: Path) -> None:
        script = (
            "import sys, threading\n"
            "from shardmill.pipelines.commands import session as interrupts\n"
            "interrupts._GRACE_SECONDS = 0.2\n"
            "def body(session):\n"
            "    threading.Thread(target=threading.Event().wait).start()\n"
            "    raise KeyboardInterrupt\n"
            "sys.exit(interrupts.run(body, as_json=False, quiet=False, debug=False))\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 130

    def test_an_interrupt_before_the_engines_workers_have_connected_ends_the_command(self, tmp_path: Path) -> None:
        """Beam's local runner, closed before its worker has connected, waits for it for ever."""
        script = (
            "import signal, sys\n"
            "from apache_beam.runners.portability.fn_api_runner import worker_handlers as handlers\n"
            "from shardmill.pipelines.commands import session as interrupts\n"
            "from shardmill.pipelines.cli import main\n"
            "from shardmill.transforms.format.splits import shard_plan as task_planning\n"
            "interrupts._STUCK_SECONDS = 0.2\n"
            "task_planning.MIN_TASK_BYTES = 60_000\n"
            "start = handlers.EmbeddedGrpcWorkerHandler.start_worker\n"
            "def interrupted(self):\n"
            "    start(self)\n"
            "    signal.raise_signal(signal.SIGINT)\n"
            "handlers.EmbeddedGrpcWorkerHandler.start_worker = interrupted\n"
            "main(['convert', 'a.npy', '-o', 'out', '--workers', '2', '--set', 'input.rows=true'])\n"
        )
        np.save(tmp_path / "a.npy", np.zeros((1000, 1000)))  # two tasks
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path
        )
        assert done.returncode == 130
        (line,) = (line for line in done.stderr.splitlines() if line.startswith("Interrupted"))
        assert line.startswith("Interrupted: nothing was committed; ")
