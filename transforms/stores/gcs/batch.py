"""Many removals in one request to Google Cloud Storage: a batch, which is answered call by call.

The client's own batches give their answers in no public way, and their calls no names by which answers could be known.
"""

from __future__ import annotations

import email
import re
import uuid
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

BATCH_CALLS: Final = 100

_SECONDS: Final = 60


def remove_batch(handle: Any, objects: Sequence[tuple[str, str | None]]) -> list[int]:
    """Remove objects of a bucket, by key, each if it is of a version (None: of any); return the status of each.

    `handle` is the client's bucket. A call that is not answered has the status 500: it is to be made again.
    """
    from google.api_core import exceptions

    errors: Any = exceptions
    boundary, client = uuid.uuid4().hex, handle.client
    calls = "".join(
        f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: <{number}>\r\n\r\n"
        f"DELETE {_path(handle.name, key, version)} HTTP/1.1\r\n\r\n\r\n"
        for number, (key, version) in enumerate(objects)
    )
    answer = client._http.request(  # with the client's credentials; no public way either
        "POST",
        f"{client._connection.API_BASE_URL}/batch/storage/v1",
        data=f"{calls}--{boundary}--\r\n".encode(),
        headers={"Content-Type": f"multipart/mixed; boundary={boundary}"},
        timeout=_SECONDS,
    )
    if answer.status_code != 200:
        raise errors.from_http_response(answer)
    statuses = [500] * len(objects)
    for number, status in _answers(answer.headers.get("Content-Type", ""), answer.content):
        statuses[number] = status
    return statuses


def _path(bucket: str, key: str, version: str | None) -> str:
    condition = "" if version is None else f"?ifGenerationMatch={version}"
    return f"/storage/v1/b/{quote(bucket, safe='')}/o/{quote(key, safe='')}{condition}"


def _answers(content_type: str, body: bytes) -> list[tuple[int, int]]:
    message = email.message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    found = []
    for part in message.walk():
        number = re.search(r"(\d+)>?$", part.get("Content-ID", ""))
        status = re.match(r"\s*HTTP/\S+ (\d{3})", "" if part.is_multipart() else str(part.get_payload()))
        if number and status:
            found.append((int(number[1]), int(status[1])))
    return found
