"""moto's server for S3, as a program: prints its port, and ends with its standard input.

Requests are answered one by one: moto looks whether a key is there and makes the object in two steps, S3 in one.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class QuietHandler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open, as those of S3 do

    def log(self, *_: object) -> None:
        pass


def main() -> None:
    logging.disable(logging.CRITICAL)
    app, lock = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def one_by_one(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with lock:
            return list(app(environ, start_response))

    server = make_server("127.0.0.1", 0, one_by_one, threaded=True, request_handler=QuietHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
