"""A gateway in front of a real server, which counts requests, and fails, delays or acts where a test says so.

client ──▶ gateway ──▶ moto's server or fake-gcs-server
              │
              └ rules: the first that answers decides; else the server does
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PASSED_ON = ("connection", "transfer-encoding", "content-length", "keep-alive", "date", "server")


@dataclass(frozen=True)
class Request:
    """A request as it came; `key` is the object's, decoded, where it reads one."""

    method: str
    path: str
    headers: dict[str, str]
    number: int

    @property
    def key(self) -> str:
        place = urllib.parse.urlsplit(self.path)
        parts = place.path.lstrip("/").split("/")
        if "/o/" in place.path:
            return urllib.parse.unquote(place.path.partition("/o/")[2])
        return urllib.parse.unquote("/".join(parts[1:]))

    @property
    def reads(self) -> bool:
        """Whether it reads an object's bytes."""
        if "/storage/v1/" in self.path:
            return self.method == "GET" and "alt=media" in self.path
        return self.method == "GET" and bool(self.key) and "list-type" not in self.path


Rule = Callable[[Request], int | None]
"""Returns a status to answer with, or None."""


@dataclass
class Gateway:
    """A gateway that is running: `sizes` are those of the answers to reads, `most_at_once` how many went at a time."""

    upstream: str
    url: str = ""
    rules: list[Rule] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    most_at_once: int = 0
    _at_once: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reads(self) -> list[Request]:
        return [request for request in self.requests if request.reads]

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, list[Any], bytes]:
        with self._lock:
            request = Request(method, path, headers, len(self.requests))
            self.requests.append(request)
            self._at_once += request.reads
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            for rule in self.rules:
                status = rule(request)
                if status is not None:
                    return status, [], _refusal(status)
            connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.upstream).netloc, timeout=300)
            headers = {name: value for name, value in headers.items() if name != "host"}
            connection.request(method, path, body, headers)
            with connection.getresponse() as response:
                data = response.read()
                kept = [pair for pair in response.getheaders() if pair[0].lower() not in PASSED_ON]
                if method == "HEAD":
                    kept.append(("Content-Length", response.headers.get("Content-Length", "0")))
            connection.close()
        finally:
            with self._lock:
                self._at_once -= request.reads
        if request.reads:
            self.sizes.append(len(data))
        return response.status, kept, data


def _refusal(status: int) -> bytes:
    code = {503: "SlowDown", 429: "TooManyRequests", 403: "AccessDenied"}.get(status, "Error")
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>secret-in-a-message</Message></Error>".encode()


@contextlib.contextmanager
def gateway_to(endpoint: str) -> Iterator[Gateway]:
    """Run a gateway to a server."""
    gateway = Gateway(endpoint)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # see `faulty_proxy`

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, headers, data = gateway.answer(
                self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body
            )
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(data)))
            elif not any(name == "Content-Length" for name, _ in headers):
                self.send_header("Content-Length", "0")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("do_"):
                return self._pass_on
            raise AttributeError(name)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    gateway.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield gateway
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
