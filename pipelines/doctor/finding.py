"""A line of the report: what was looked for, what was found, what needs it, and how it gets there."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

State: TypeAlias = Literal["ok", "poor", "missing"]
"""`poor` is there, and does not do: a disk that is nearly full, a Java of another release."""

CORE: Final = "core"
"""What every command needs. The other needs are the names of engines, and the schemes of stores."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of the report.

    `need` says who needs it: `core`, an engine (`flink`, `dataflow`), a store (`s3`, `gs`), or nobody ("").
    """

    what: str
    state: State
    found: str
    needed_for: str
    fix: str = ""
    need: str = ""

    def to_json(self, needs: frozenset[str]) -> dict[str, Any]:
        return {**asdict(self), "required": self.need in needs}
