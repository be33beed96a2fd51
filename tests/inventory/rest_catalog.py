"""The reading half of Iceberg's REST protocol over loopback, in front of a pyiceberg catalog in a SQLite file."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

_SEPARATOR = "\x1f"


class _RefusedError(Exception):
    """An answer of its own, with a status."""


@contextmanager
def served(tables: Catalog, *, below: str = "listed") -> Iterator[tuple[str, list[str]]]:
    """The service's address, and the requests that it got so far.

    What lies below a namespace is `listed`; a service without nesting has it `ignored` (the top comes again), or
    `refused`.
    """
    asked: list[str] = []

    def answer(path: list[str], parent: str | None) -> dict[str, Any]:
        match path:
            case ["config"]:
                return {"defaults": {}, "overrides": {}}
            case ["namespaces"]:
                if parent and below == "refused":
                    raise _RefusedError
                inside = _namespace(parent) if parent and below == "listed" else ()
                return {"namespaces": [list(name) for name in sorted(tables.list_namespaces(inside))]}
            case ["namespaces", namespace, "tables"]:
                names = sorted(tables.list_tables(_namespace(namespace)))
                return {"identifiers": [{"namespace": list(name[:-1]), "name": name[-1]} for name in names]}
            case ["namespaces", namespace, "tables", name]:
                table = tables.load_table((*_namespace(namespace), name))
                metadata = json.loads(table.metadata.model_dump_json(by_alias=True))
                return {"metadata-location": table.metadata_location, "metadata": metadata}
            case _:
                raise NoSuchTableError

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            url = urlsplit(self.path)
            path = [unquote(part) for part in url.path.removeprefix("/v1/").split("/")]
            try:
                status, body = 200, answer(path, parse_qs(url.query).get("parent", [None])[0])
            except (NoSuchNamespaceError, NoSuchTableError, FileNotFoundError):  # as Iceberg's own adapter answers
                status, body = 404, {"error": {"message": "not here", "type": "NotFound", "code": 404}}
            except _RefusedError:
                status, body = 400, {"error": {"message": "one level only", "type": "BadRequest", "code": 400}}
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


def _namespace(text: str) -> tuple[str, ...]:
    return tuple(unquote(part) for part in text.split(_SEPARATOR))
