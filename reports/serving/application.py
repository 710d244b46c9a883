"""Everything that HTTP offers as one application: /v1 for programs, /mcp for agents, behind the token."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from . import plain_http
from .admission import Admission, App, guarded
from .desk import Desk
from .protocol import mcp_server
from .server_settings import MOST_BODY
from .tools.catalogue import failure, told

MOST_SESSIONS = 1000
PLACES = "POST /v1/TOOL, GET /v1/health, /v1/tools, /v1/schema, and /mcp"


def application(desk: Desk, access: Admission) -> App:
    """What uvicorn is given. The desk is the caller's to close."""
    sessions = StreamableHTTPSessionManager(
        app=mcp_server(desk), max_request_body_size=MOST_BODY, max_sessions=MOST_SESSIONS
    )

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    agents = Route("/mcp", StreamableHTTPASGIApp(sessions))
    handlers: Any = {404: _no_place, 405: _no_place, Exception: _fault}
    app = Starlette(routes=[*plain_http.routes(desk), agents], lifespan=lifespan, exception_handlers=handlers)
    app.router.redirect_slashes = False  # many clients do not follow with the body
    return guarded(app, access)


async def _fault(request: Request, error: Exception) -> Response:
    return plain_http.respond(told(error))


async def _no_place(request: Request, error: Exception) -> Response:
    return plain_http.respond(
        failure("not_found", f"nothing at {request.method} {request.url.path:.100}; there are {PLACES}")
    )
