"""A witness of our own on loopback: C2SP tlog-witness, with its own memory of what it cosigned."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ebbtide.errors import EbbtideError, InputError, ProofError
from ebbtide.ledger.note import COSIGNATURE, Checkpoint, Note, Signer, VerifierKey
from ebbtide.ledger.tree import EMPTY_ROOT, verify_consistency
from ebbtide.model.canonical import base64_bytes


@dataclass(slots=True)
class Witness:
    """What a witness knows: its key, the keys of the logs, and the last checkpoint of each."""

    logs: dict[str, VerifierKey]
    signer: Signer = field(default_factory=lambda: Signer.generate("witness.example/w1", algorithm=COSIGNATURE))
    seen: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[bytes] = field(default_factory=list)
    time: int = 1_800_000_000
    answer: tuple[int, bytes] | None = None
    """Given instead of a right answer."""

    def add_checkpoint(self, body: bytes) -> tuple[int, bytes]:
        """The answer to one request, by the protocol."""
        self.asked.append(body)
        if self.answer:
            return self.answer
        head, _, rest = body.partition(b"\n\n")
        old_line, *proof = head.decode().split("\n")
        old_size = int(old_line.removeprefix("old "))
        note = Note.parse(rest)
        checkpoint = Checkpoint.parse(note.text)
        key = self.logs.get(checkpoint.origin)
        if key is None:
            return 404, b""
        try:
            note.verify([key])
        except EbbtideError:
            return 403, b""
        if old_size > checkpoint.size:
            return 400, b""
        size, root = self.seen.get(checkpoint.origin, (0, EMPTY_ROOT))
        if old_size != size:
            return 409, f"{size}\n".encode()
        try:
            if size:
                hashes = [base64_bytes(line) for line in proof]
                verify_consistency(size, root, checkpoint.size, checkpoint.root, hashes)
            elif proof:
                return 422, b""
        except (ProofError, InputError):
            return (409 if size == checkpoint.size else 422), f"{size}\n".encode()
        self.seen[checkpoint.origin] = (checkpoint.size, checkpoint.root)
        return 200, self.signer.cosign(note.text, time=self.time).line().encode()


@contextmanager
def serve(witness: Witness) -> Iterator[str]:
    """The witness behind HTTP on a free port of loopback; gives its submission prefix."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, content = witness.add_checkpoint(body) if self.path == "/w/add-checkpoint" else (404, b"")
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/w/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
