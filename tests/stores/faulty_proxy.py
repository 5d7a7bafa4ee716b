"""A proxy on loopback before a real server of a store, which fails as networks and busy stores do.

with faulty_proxy(endpoint) as proxy:
    proxy.faults.append(Fault("drop", method="PUT", path="manifests/"))      # the server acts, the reply is lost
    proxy.faults.append(Fault(503, times=3))                                  # it does not even hear of it
    proxy.faults.append(Fault("404 NoSuchUpload"))                            # as S3 says it; "late 404 ...": it acts
    proxy.faults.append(Fault("strip", times=10**9))                          # preconditions do not arrive
    proxy.strict = True                                                       # of copies and removals they are kept

fake-gcs-server keeps `ifGenerationMatch` where an object is uploaded, and not where one is copied (`rewriteTo`) or
removed; moto keeps `If-Match` where one object is removed, and not the ETags of many (`?delete`). A strict proxy does
as Google and Amazon say that they do, one such request at a time.
"""

from __future__ import annotations

import contextlib
import email
import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, urlencode, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

_TOLD = re.compile(r"(late )?([0-9]{3}) (\w+)")
_HOP = {"connection", "transfer-encoding", "keep-alive"}
_CONDITIONS = {"if-none-match", "if-match"}
_CONDITION_KEYS = {"ifGenerationMatch", "ifGenerationNotMatch"}


@dataclass
class Fault:
    """What happens to the next `times` requests of a method whose path and query hold some text."""

    what: str | int
    method: str = ""
    path: str = ""
    times: int = 1

    def takes(self, method: str, path: str) -> bool:
        if self.times > 0 and self.method in ("", method) and self.path in path:
            self.times -= 1
            return True
        return False


@dataclass
class Proxy:
    url: str
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[float, str, str]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    strict: bool = False

    def times_of(self, method: str, path: str) -> list[float]:
        return [at for at, m, p in self.requests if m == method and path in p]


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = urlsplit(endpoint)
        self.lock = threading.Lock()
        self.strictly = threading.Lock()
        self.proxy = Proxy(f"http://127.0.0.1:{self.server_port}")

    def handle_error(self, *_: object) -> None:
        pass  # a client went away, as it was made to


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for the one who asked to confirm its headers
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        what = self._fault()
        if isinstance(what, int):
            self._answer(what, [("Content-Type", "text/plain")], b"busy")
            return
        told = _TOLD.fullmatch(what or "")
        if told is not None:
            if told[1]:
                self._forward(body, strip=False)
            data = f"<Error><Code>{told[3]}</Code></Error>".encode()
            self._answer(int(told[2]), [("Content-Type", "application/xml")], data)
            return
        status, headers, data = self._forward(body, strip=what == "strip")
        if what == "drop":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self._answer(status, headers, data)

    def _fault(self) -> str | int | None:
        proxy = self.server.proxy
        with self.server.lock:
            proxy.requests.append((time.monotonic(), self.command, self.path))
            fault = next((fault for fault in proxy.faults if fault.takes(self.command, self.path)), None)
            if fault is None:
                return None
            proxy.failed.append((self.command, self.path))
            return fault.what

    def _forward(self, body: bytes, *, strip: bool) -> tuple[int, list[tuple[str, str]], bytes]:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP | {"expect"}}
        path = self.path
        if strip:
            headers = {k: v for k, v in headers.items() if k.lower() not in _CONDITIONS}
            base, _, query = path.partition("?")
            kept = [(k, v) for k, v in parse_qsl(query, keep_blank_values=True) if k not in _CONDITION_KEYS]
            path = f"{base}?{urlencode(kept)}" if kept else base
        if self.server.proxy.strict:
            with self.server.strictly:
                if "/rewriteTo/" in path or (self.command == "DELETE" and "/storage/v1/" in path):
                    return (412, [], b"{}") if self._fails(path) else self._ask(self.command, path, body, headers)
                if self.command == "POST" and path.endswith("?delete"):
                    return self._remove_each(path, body)
                if path.startswith("/batch/"):
                    return self._remove_batch(body)
        return self._ask(self.command, path, body, headers)

    def _fails(self, path: str) -> bool:
        """Return whether a write or removal wants another generation than its target has; 0 is that of none."""
        wanted = dict(parse_qsl(urlsplit(path).query)).get("ifGenerationMatch")
        target = urlsplit(path).path.rpartition("/rewriteTo/")[2].removeprefix("/storage/v1/")
        status, _, data = self._ask("GET", f"/storage/v1/{target}", b"", {})
        found = json.loads(data)["generation"] if status == 200 else "0"
        return wanted not in (None, found)

    def _remove_each(self, path: str, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Remove objects of S3 one by one, each if it has the ETag that is named."""
        errors = []
        for entry in ET.fromstring(body).findall("{*}Object"):
            key, etag = entry.findtext("{*}Key", ""), entry.findtext("{*}ETag")
            headers = {"Authorization": self.headers["Authorization"]} | ({"If-Match": etag} if etag else {})
            status, _, _ = self._ask("DELETE", f"{path.partition('?')[0]}/{quote(key)}", b"", headers)
            if status != 204:
                code = {404: "NoSuchKey", 412: "PreconditionFailed"}[status]
                errors.append(f"<Error><Key>{escape(key)}</Key><Code>{code}</Code></Error>")
        return 200, [("Content-Type", "application/xml")], f"<DeleteResult>{''.join(errors)}</DeleteResult>".encode()

    def _remove_batch(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Remove objects of GCS one by one, each if it is of the generation that is named."""
        answers = []
        for part in email.message_from_bytes(
            f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode() + body
        ).walk():
            if not part.is_multipart():
                path, name = str(part.get_payload()).split(" ", 2)[1], part["Content-ID"].replace("<", "<response-")
                status = 412 if self._fails(path) else self._ask("DELETE", path, b"", {})[0]
                headers = f"Content-Type: application/http\r\nContent-ID: {name}"
                answers.append(f"--x\r\n{headers}\r\n\r\nHTTP/1.1 {status} -\r\n\r\n\r\n")
        return 200, [("Content-Type", "multipart/mixed; boundary=x")], f"{''.join(answers)}--x--".encode()

    def _ask(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = self.server.upstream
        connection = http.client.HTTPConnection(str(upstream.hostname), upstream.port, timeout=300)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status)
        length = str(len(data))
        for name, value in headers:
            if name.lower() == "content-length":
                length = value  # of HEAD: that of what GET would give
            elif name.lower() not in _HOP:
                self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


for _method in ("GET", "PUT", "POST", "DELETE", "HEAD", "PATCH"):
    setattr(Handler, f"do_{_method}", Handler.pass_on)


@contextlib.contextmanager
def faulty_proxy(endpoint: str) -> Iterator[Proxy]:
    """Yield a proxy in front of a server."""
    server = Server(endpoint)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
