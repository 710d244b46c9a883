"""The tools as plain HTTP, for curl and programs: `POST /v1/TOOL` with the arguments as JSON answers with the result.

    GET /v1/health   state of slots and queue      GET /v1/tools   the tools with their schemas
    GET /v1/schema   all of it as OpenAPI 3.1, the verdict's schema included

An error is {"error": {"kind": ..., "message": ...}}, its status by kind as in statuses.py.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import ascendtile

from .admission import too_large
from .desk import Desk
from .hanging_up import while_connected
from .server_settings import MOST_BODY
from .statuses import STATUS
from .tools.catalogue import TOOLS, failure

RETRY_SECONDS = 2
BODY_SECONDS = 30.0  # within which a body has to be here


class BadRequestError(Exception):
    """A request that is no JSON object of a tool's arguments."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def routes(desk: Desk) -> list[Route]:
    """Everything below /v1."""

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": ascendtile.__version__, **desk.state()})

    async def tools(request: Request) -> Response:
        return JSONResponse({"tools": [_listed(n) for n in TOOLS]})

    async def schema(request: Request) -> Response:
        return JSONResponse(openapi())

    async def call(request: Request) -> Response:
        return respond(await _called(desk, request))

    reads = [Route(f"/v1/{f.__name__}", f, methods=["GET"]) for f in (health, tools, schema)]
    return [*reads, Route("/v1/{tool}", call, methods=["POST"])]


async def _called(desk: Desk, request: Request) -> dict[str, Any]:
    name = request.path_params["tool"]
    if name not in TOOLS:
        return failure("not_found", f"no tool {name!r:.100}; there are {', '.join(TOOLS)}")
    try:
        arguments = await _arguments(request)
    except BadRequestError as e:
        return failure(e.kind, str(e))
    client = f"{request.client.host}:{request.client.port}" if request.client else ""
    return await while_connected(request, desk.answer(name, arguments, client))


async def _arguments(request: Request) -> dict[str, Any]:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise BadRequestError("media_type", "send JSON, with the header `Content-Type: application/json`")
    try:
        found = json.loads(await _body(request), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as e:
        raise BadRequestError("usage", f"the body is no JSON: {e}"[:300]) from None
    if not isinstance(found, dict):
        raise BadRequestError("usage", "the body must be one JSON object, the arguments of the tool by name")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON: of two values of one name nobody knows which is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(n for n, times in Counter(n for n, _ in pairs).items() if times > 1)
        raise ValueError(f"an object has {name!r:.100} twice")
    return found


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        with anyio.fail_after(BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_BODY:
                    raise BadRequestError("too_large", too_large())
    except TimeoutError:
        raise BadRequestError("body_time", f"the body was not here within {BODY_SECONDS:.0f} s") from None
    except ClientDisconnect:
        raise BadRequestError("closed", "the client has gone") from None
    return bytes(body)


def respond(answer: Mapping[str, Any]) -> Response:
    """A result with status 200, an error with that of its kind."""
    if "error" not in answer:
        return JSONResponse(answer["result"])
    kind = answer["error"]["kind"]
    later = {"Retry-After": str(RETRY_SECONDS)} if kind in ("full", "closing") else None
    return JSONResponse(dict(answer), STATUS[kind], later)


def _listed(name: str) -> dict[str, Any]:
    tool = TOOLS[name]
    return {"name": name, "title": tool.title, "description": tool.text, "input_schema": tool.schema}


@cache
def openapi() -> dict[str, Any]:
    """The interface as OpenAPI 3.1, whose schemas are JSON Schema."""
    verdict = json.loads((files("ascendtile.reports.judging") / "schema.json").read_text(encoding="utf-8"))
    schemas = {"Verdict": verdict, "Error": ERROR}
    security = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "ascendtile", "version": ascendtile.__version__},
        "security": [{"token": []}],
        "paths": {f"/v1/{name}": {"post": _operation(name)} for name in TOOLS},
        "components": {"schemas": schemas, "securitySchemes": security},
    }


def _operation(name: str) -> dict[str, Any]:
    tool = TOOLS[name]
    result: dict[str, Any] = {"type": "object"}
    if name == "judge":
        result = {"$ref": "#/components/schemas/Verdict"}
    errors = {
        "default": {"description": "an error", "content": _json({"$ref": "#/components/schemas/Error"})}
    }
    return {
        "operationId": name,
        "summary": tool.title,
        "description": tool.text,
        "requestBody": {"required": True, "content": _json(tool.schema)},
        "responses": {"200": {"description": "the result", "content": _json(result)}, **errors},
    }


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": dict(schema)}}


_TEXT = {"type": "string"}
_ERROR_BODY = {
    "type": "object",
    "properties": {"kind": _TEXT, "message": _TEXT},
    "required": ["kind", "message"],
}
ERROR = {"type": "object", "properties": {"error": _ERROR_BODY}, "required": ["error"]}
