"""Why a run committed nothing.

A refusal is a value that goes down the pipeline, never an exception, which engines would only retry; it is also left
as `refusal.json` in the staging folder, beside the parts and `rejects.jsonl`.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

from ...errors import CommitError, RunError, ShardmillError, TooManyRejects
from ...format.wording.hints import Add

REFUSAL_FILE: Final = "refusal.json"

RefusalKind = Literal["failed", "rejects", "commit", "stale"]
"""`stale`: what an append was planned on has changed under it; planned again it may land."""

_ERRORS: Final[dict[str, type[ShardmillError]]] = {
    "failed": RunError,
    "rejects": TooManyRejects,
    "commit": CommitError,
    "stale": CommitError,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """What `kind` of refusal, in words, and how many rows were rejected, by code.

    `rejects` is the path of the reject lines, relative to the dataset's folder, None if there are none. `again` says
    of a run that failed, or lost its commit, that the same command may end it.
    """

    kind: RefusalKind
    message: str
    rows_read: int = 0
    rejected: int = 0
    by_code: dict[str, int] = field(default_factory=dict)
    rejects: str | None = None
    again: bool = False

    def error(self, path: str = "") -> ShardmillError:
        listed = ""
        if self.kind == "rejects" and self.rejects is not None:
            they, them = ("it is", "it") if self.rejected == 1 else ("they are", "them")
            listed = f"; {they} listed in {os.path.join(path, self.rejects)}"
            if self.rejected < self.rows_read:
                listed += f"; to leave {them} out: {Add('--max-rejects', str(self.rejected))}"
        error = _ERRORS[self.kind](f"{self.message}{listed}")
        if isinstance(error, RunError) and self.kind != "stale":
            error.again = self.again
        return error

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=True, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Refusal:
        return cls(**json.loads(data))
