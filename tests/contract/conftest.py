"""The command line as its user meets it: files in a folder, a command, a screen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from shardmill.pipelines.cli import main
from shardmill.transforms.dataset.reading.open_dataset import open_dataset
from shardmill.transforms.dataset.storage.manifest_files import read_manifest
from shardmill.transforms.format.wording.printable import counted

from ..command_line import Screen

Content = bytes | Callable[[Path], object]
"""What a file holds, or what makes it."""

PROGRESS = ("Planning ", "Converting ", "Finishing ")
"""How the lines begin that come every ten seconds: only a very busy machine sees one here."""


LEFT = {
    4: ("kept for resuming: ", r"the same command with --max-rejects \d+ resumes it"),
    1: (
        "left behind: ",
        "to run again when that is fixed starts over; to see what may go: shardmill gc out --older-than 0s",
    ),
}
"""The begin and end of the line on staged work: after too many rejects; after an unreadable file, or most rejected."""

KEPT = tuple(begins for begins, _ in LEFT.values())


@dataclass(frozen=True)
class Desk:
    """A working folder, in which commands are run in this process; each writes to `out`."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    def put(self, files: Mapping[str, Content]) -> None:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                content(path)

    def convert(self, *args: str) -> Screen:
        with pytest.raises(SystemExit) as ended:
            main(["convert", *args, "-o", "out", "--workers", "1"])
        code = ended.value.code
        assert isinstance(code, int)
        out, err = self.capsys.readouterr()
        shown = [line for line in err.splitlines(keepends=True) if not line.startswith((*PROGRESS, *KEPT))]
        runs = [path for path in self.root.glob("out/.staging/*") if path.is_dir()]
        kept = [line for line in err.splitlines() if line.startswith(KEPT)]
        for line, run in zip(kept, runs, strict=True):
            counts = re.search(r": (\d+) of (\d+) rows? \w+ rejected", err)
            most = counts is not None and 2 * int(counts[1]) > int(counts[2])
            begins, ends = LEFT[1 if most else code]
            assert re.fullmatch(rf"{begins}[\d.]+ [KM]?i?B in out/\.staging/{run.name}; {ends}", line), line
        return Screen(code, out, "".join(shown))

    def _lines(self, text: str) -> list[str]:
        return [" ".join(line.split()) for line in text.splitlines()]

    def records(self) -> list[dict[str, Any]]:
        """Return the records of all splits, without the features that are absent."""
        dataset = open_dataset(self.root / "out")
        rows = [row for split in dataset.splits for batch in dataset.batches(split) for row in batch.to_pylist()]
        return [{key: value for key, value in row.items() if value is not None} for row in rows]

    def inspect_json(self) -> dict[str, Any]:
        """Return the raw features of the first record."""
        with pytest.raises(SystemExit):
            main(["inspect", "out", "--json", "-n", "1"])
        features: dict[str, Any] = json.loads(self.capsys.readouterr().out)["features"]
        return features

    def assert_nothing_committed(self) -> None:
        out = self.root / "out"
        left = [path.relative_to(out).parts[0] for path in out.glob("*")]
        assert left in ([], [".staging"])

    def assert_refused(self, screen: Screen, code: int, message: str) -> None:
        """The command ended with one error and nothing else."""
        assert screen == Screen(code, "", f"error: {message.replace('$ROOT', str(self.root))}\n")
        self.assert_nothing_committed()

    def assert_rejected(self, args: Sequence[str], counts: str, lines: Sequence[str], wants_records: object) -> None:
        """The command fails by its rejects, and does what is wanted when it is called as its message says.

        `counts` are like "1 of 3 rows was rejected (BAD_TYPE 1)".
        """
        screen = self.convert(*args)
        rejected, read = (int(word) for word in counts.split()[:3:2])
        (run,) = (self.root / "out/.staging").iterdir()
        they, them = ("it is", "it") if rejected == 1 else ("they are", "them")
        leave = f"; to leave {them} out: --max-rejects {rejected}" if 2 * rejected <= read else ""
        assert screen.err.splitlines() == [
            f"error: {counts}, max_rejects is 0; nothing was committed; {they} listed in "
            f"out/.staging/{run.name}/rejects.jsonl{leave}",
            *(f"  {line}" for line in lines),
        ]
        assert (screen.code, screen.out) == (4, "")
        self.assert_nothing_committed()
        places = [json.loads(line) for line in (run / "rejects.jsonl").read_text().splitlines()]
        assert len(places) == rejected

        tasks = len(list(run.glob("tasks/*.json")))
        screen = self.convert(*args, "--max-rejects", str(rejected))
        tried_again = {"MISSING_FILE", "UNREADABLE"} & {error["code"] for place in places for error in place["errors"]}
        told = "" if tried_again else f"resuming: {tasks} of {counted(tasks, 'task')} already done\n"
        assert (screen.code, screen.err) == (0, told)
        assert "\n".join(f"  {line}" for line in lines[:20]) in screen.out
        manifest = read_manifest(str(self.root / "out"))
        assert manifest.counts.read == read == manifest.counts.written + rejected
        assert len((self.root / "out/rejects/00000001.jsonl").read_text().splitlines()) == rejected
        if callable(wants_records):
            wants_records(self.records())
        else:
            assert repr(self.records()) == repr(wants_records)

    def assert_accepted(self, args: Sequence[str], said: Sequence[str], wants_records: object) -> None:
        """The command ends well; `said` are lines of its screen (or of `--dry-run`), and all of its warnings."""
        reasons = [line for line in said if not line.startswith(("Warning", "Detected", "Read "))]
        planned = self.convert(*args, "--dry-run").out if reasons else ""
        screen = self.convert(*args)
        assert (screen.code, screen.err) == (0, "")
        lines = self._lines(screen.out)
        for line in said:
            assert line in lines + self._lines(planned)
        assert [line for line in lines if line.startswith("Warning")] == [
            line for line in said if line.startswith("Warning")
        ]
        if callable(wants_records):
            wants_records(self.records())
        else:
            assert repr(self.records()) == repr(wants_records)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, capsys)
