"""`POST /api/v1/lineage`: the standard path of OpenLineage, for jobs that run with its listener.

Jobs are not browsers: whatever a web page could send is refused before its body is read.

1. No `Origin`: browsers add it to every post of a page.
2. The `Host` is one that was asked for: a page whose name resolves to loopback (DNS rebinding) still says its own.
3. With a token, `Authorization: Bearer …`, which is how OpenLineage's transports send an API key.
4. The body is JSON and says so: no form can.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.app.listen import store_event
from ebbtide.errors import EbbtideError

_MOST_BYTES = 16 << 20
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of loopback, for `hosts`."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can ask at this address. A name other than `localhost` may be anywhere."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def lineage_api(tide: Ebbtide, *, hosts: Collection[str] | None, token: str | None) -> FastAPI:
    """An application with the one route. Errors have one shape: `{"error": …, "hint": …}`.

    `hosts` are the names under which it is asked; None takes any, and is for when there is a token.
    """
    api = FastAPI(title="Ebbtide lineage", docs_url=None, redoc_url=None, openapi_url=None)

    @api.post("/api/v1/lineage", status_code=201)
    async def post_event(request: Request) -> JSONResponse:
        if (refused := _refused(request, hosts, token)) is not None:
            return refused
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return _error(413, "the event is too large", f"at most {_MOST_BYTES >> 20} MiB are read")
        try:
            path = await run_in_threadpool(store_event, tide.project, bytes(body))
        except EbbtideError as error:
            return _error(400, error.message, error.hint)
        return JSONResponse({"stored": path.name}, status_code=201)

    return api


def _refused(request: Request, hosts: Collection[str] | None, token: str | None) -> JSONResponse | None:
    """Why nothing of this request is read; None where it may be."""
    if "origin" in request.headers:
        return _error(403, "web pages may not post here", "post from the job itself")
    if hosts is not None and _name(request.headers.get("host", "")) not in hosts:
        return _error(403, "it is not known by this name", f"post to {' or '.join(sorted(hosts))}")
    if token is not None:
        said = request.headers.get("authorization", "").encode()
        if not hmac.compare_digest(said, f"Bearer {token}".encode()):
            return _error(401, "the token is missing or another one", "send `Authorization: Bearer TOKEN`")
    if request.headers.get("content-encoding", "identity") != "identity":
        return _error(415, "compressed events are not read", "switch the transport's compression off")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return _error(415, "only JSON is read", "send `Content-Type: application/json`")
    return None


def _name(host: str) -> str:
    """The name in a `Host`, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _error(status: int, message: str, hint: str | None) -> JSONResponse:
    return JSONResponse({"error": message, "hint": hint}, status_code=status)
