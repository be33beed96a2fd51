"""A webhook on loopback that keeps what it gets and answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Webhook:
    """`answers` are the statuses of the first requests; every later one is 200."""

    answers: list[int] = field(default_factory=list)
    got: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/s3cret"


@contextmanager
def webhook(*answers: int) -> Iterator[Webhook]:
    found = Webhook([*answers])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            found.paths.append(self.path)
            status = found.answers.pop(0) if found.answers else 200
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
