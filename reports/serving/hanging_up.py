"""A client of HTTP that goes away ends the work that it asked for, whichever interface it asked through."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import anyio

from .tools.catalogue import failure

LOOK_SECONDS = 0.25


async def while_connected(request: Any, work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """The answer of `work`, which is cancelled once the client of the request (Starlette's; None: no HTTP) has gone."""
    answer = failure("closed", "the client has gone")
    async with anyio.create_task_group() as group:
        if request is not None:
            group.start_soon(_until_gone, request, group.cancel_scope)
        answer = await work
        group.cancel_scope.cancel()
    return answer


async def _until_gone(request: Any, scope: anyio.CancelScope) -> None:
    while not await request.is_disconnected():
        await anyio.sleep(LOOK_SECONDS)
    scope.cancel()
