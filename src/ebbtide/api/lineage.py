"""`POST /api/v1/lineage`: the standard path of OpenLineage, for jobs that run with its listener."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from ebbtide.app.ebbtide import Ebbtide
from ebbtide.app.listen import store_event
from ebbtide.errors import EbbtideError

_MOST_BYTES = 16 << 20


def lineage_api(tide: Ebbtide) -> FastAPI:
    """An application with the one route. Errors have one shape: `{"error": …, "hint": …}`."""
    api = FastAPI(title="Ebbtide lineage", docs_url=None, redoc_url=None, openapi_url=None)

    @api.post("/api/v1/lineage", status_code=201)
    async def post_event(request: Request) -> JSONResponse:
        if request.headers.get("content-encoding", "identity") != "identity":
            return _error(415, "compressed events are not read", "switch the transport's compression off")
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


def _error(status: int, message: str, hint: str | None) -> JSONResponse:
    return JSONResponse({"error": message, "hint": hint}, status_code=status)
