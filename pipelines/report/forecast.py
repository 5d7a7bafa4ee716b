"""What a run would take: a part of what `--dry-run` shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ...transforms.dataset.stage.max_rejects import may_be_left_out
from ...transforms.format.wording.hints import Add
from ...transforms.format.wording.printable import counted, printable_path
from ...transforms.format.wording.sizes import format_duration, format_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a sample of the rows says of the whole.

    rows            were converted, from so many `places`: a `share` of all, None where nobody knows how many there are
    cpu_seconds     of all processors
    seconds         of the clock; None where other machines work
    exact           all rows were sampled, and their bytes counted, which gzip compresses otherwise in a run
    splits_counted  each split has the records and bytes of the sample, which had all rows
    rejects         are expected of all rows; the run allows `allowed`
    disk_bytes      are taken at most on the disk of the output, where `free_bytes` are free (None: unknown)
    warnings        of pictures in the sample
    """

    rows: int
    places: int
    share: float | None
    cpu_seconds: float
    seconds: float | None
    workers: int
    exact: bool
    splits_counted: bool
    rejects: int
    allowed: int
    disk_bytes: int
    free_bytes: int | None
    warnings: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        return self.rejects > self.allowed

    def to_json(self) -> dict[str, Any]:
        """Return the member `forecast` of what `--dry-run --json` prints."""
        shown = {key: round(one, 3) if isinstance(one, float) else one for key, one in asdict(self).items()}
        del shown["warnings"]  # they are among those of the plan
        return {**shown, "fails": self.fails}

    def lines(self, path: str) -> Iterator[str]:
        """Yield the lines for people; `path` is the dataset's folder."""
        what = "all rows" if self.share == 1 else f"{counted(self.rows, 'row')} from {counted(self.places, 'place')}"
        part = "" if self.share in (None, 1) else f", {_percent(self.share or 0)} of the source"
        if self.share is None:
            sure = "the number of rows is a guess by the size of the files, and so are the sizes"
        elif self.exact:
            sure = "sizes are exact" if self.splits_counted else "sizes are exact in all, and estimates for each split"
        else:
            sure = "sizes are estimates"
        yield f"Sample: {what}{part}; {sure}"
        cpu = f"{_time(self.cpu_seconds)} of CPU"
        if self.seconds is None:
            yield f"Time:   {cpu}, as measured here; how long that takes, the cluster decides"
        else:
            yield f"Time:   about {_time(self.seconds)} with {counted(self.workers, 'worker')}; {cpu}"
        if self.free_bytes is not None and self.free_bytes < self.disk_bytes:
            needed = f"{format_size(self.disk_bytes)} needed, {format_size(self.free_bytes)} free"
            yield f"Disk:   too little room for {printable_path(path)}: {needed}"

    def reject_line(self) -> str:
        about = f"Expected in all: {'' if self.share == 1 else 'about '}{counted(self.rejects, 'reject')}"
        if not self.fails:
            return f"{about}; {self.allowed:,} are allowed"
        few = not self.share or may_be_left_out(self.rejects, round(self.rows / self.share))
        fix = f"; to allow them: {Add('--max-rejects', str(self.rejects))}" if few else ""
        return f"{about}, and max_rejects allows {self.allowed:,}: the run would fail{fix}"


def _percent(share: float) -> str:
    """Return a share as people write it.

    >>> _percent(0.031), _percent(0.25), _percent(0.00004)
    ('3.1 %', '25 %', 'less than 0.1 %')
    """
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{share * 100:.1f} %" if share < 0.1 else f"{share * 100:.0f} %"


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else format_duration(round(seconds))
