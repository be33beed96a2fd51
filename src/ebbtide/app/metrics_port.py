"""The port at which `run --every` answers Prometheus: the numbers of that moment, and nothing else."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ebbtide.app.metrics import metrics_text
from ebbtide.config import Project
from ebbtide.errors import InputError, told

_logger = logging.getLogger(__name__)
_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 5.0
"""Seconds that somebody may take to say what they want."""


@contextmanager
def metrics_port(project: Project) -> Iterator[int | None]:
    """Answer for as long as the block lasts; gives the port. Nothing where the project names none."""
    asked = project.metrics
    if asked.port is None:
        yield None
        return
    server_class = _V6 if ":" in asked.host else ThreadingHTTPServer
    try:
        server = server_class((asked.host, asked.port), _handler(project))
    except OSError as error:
        hint = "name another one, `metrics: {host: …, port: …}`"
        raise InputError(f"no port for metrics at {asked.host}:{asked.port}: {error.strerror}", hint=hint) from None
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="ebbtide-metrics", daemon=True)
    thread.start()
    _logger.info("metrics are at port %s", server.server_port)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _V6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


def _handler(project: Project) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self._answer(404, "the numbers are at /metrics\n")
                return
            try:
                text = metrics_text(project, now=datetime.now(UTC))
            except Exception as error:  # whoever asks gets an answer, and asks again
                _logger.warning("no metrics: %s", told(error))
                self._answer(503, "the state does not answer\n")
                return
            self._answer(200, text)

        def _answer(self, status: int, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", _TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Who asked is nobody's business."""

    return Handler
