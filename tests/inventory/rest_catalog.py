"""Iceberg's REST protocol over loopback, as far as tables are read and committed to, before a catalog in SQLite."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadata

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
                return _table(table.metadata_location, table.metadata)
            case _:
                raise NoSuchTableError

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            url = urlsplit(self.path)
            self._answer(lambda path: answer(path, parse_qs(url.query).get("parent", [None])[0]))

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(lambda path: _commit(tables, path, content))

        def do_HEAD(self) -> None:
            self._answer(lambda path: answer(path, None), only_status=True)

        def _answer(self, work: Callable[[list[str]], dict[str, Any]], *, only_status: bool = False) -> None:
            path = [unquote(part) for part in urlsplit(self.path).path.removeprefix("/v1/").split("/")]
            status, body = _answered(work, path)
            content = b"" if only_status else json.dumps(body).encode()
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


def _answered(work: Callable[[list[str]], dict[str, Any]], path: list[str]) -> tuple[int, dict[str, Any]]:
    try:
        return 200, work(path)
    except CommitFailedException:
        return 409, {"error": {"message": "changed", "type": "CommitFailedException", "code": 409}}
    except (NoSuchNamespaceError, NoSuchTableError, FileNotFoundError):  # as Iceberg's own adapter answers
        return 404, {"error": {"message": "not here", "type": "NotFound", "code": 404}}
    except _RefusedError:
        return 400, {"error": {"message": "one level only", "type": "BadRequest", "code": 400}}


def _commit(tables: Catalog, path: list[str], body: bytes) -> dict[str, Any]:
    _, namespace, _, name = path
    table = tables.load_table((*_namespace(namespace), name))
    asked = CommitTableRequest.model_validate({"identifier": {"namespace": [], "name": name}, **json.loads(body)})
    done = tables.commit_table(table, asked.requirements, asked.updates)
    return _table(done.metadata_location, done.metadata)


def _table(location: str, metadata: TableMetadata) -> dict[str, Any]:
    return {"metadata-location": location, "metadata": json.loads(metadata.model_dump_json(by_alias=True))}


def _namespace(text: str) -> tuple[str, ...]:
    return tuple(unquote(part) for part in text.split(_SEPARATOR))
