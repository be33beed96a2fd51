"""A real S3 server (moto on loopback), and a way to it that loses answers."""

from __future__ import annotations

import re
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from moto.server import ThreadedMotoServer


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def options_of(endpoint: str) -> dict[str, str]:
    return {
        "s3.endpoint": endpoint,
        "s3.access-key-id": "t",
        "s3.secret-access-key": "t",
        "client.region": "us-east-1",
        "s3.region": "us-east-1",
    }


@contextmanager
def between(endpoint: str, change: Callable[[bytes], bytes]) -> Iterator[str]:
    """An address that passes every request on, and answers with what `change` makes of the server's answer."""

    class Passing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {key: value for key, value in self.headers.items() if key.lower() != "host"}
            headers["Content-Type"] = "application/xml"
            asked = urllib.request.Request(endpoint + self.path, body, headers, method="POST")  # noqa: S310
            with urllib.request.urlopen(asked) as answer:  # noqa: S310
                said = change(answer.read())
            self.send_response(200)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()


def without_answer_for(key: str) -> Callable[[bytes], bytes]:
    pattern = re.compile(rb"<Deleted>(?:(?!</Deleted>).)*<Key>" + re.escape(key.encode()) + rb"</Key>.*?</Deleted>")
    return lambda answer: pattern.sub(b"", answer)
