"""Who may ask over HTTP: whoever has the token, from a page of nobody else, with a body of bounded size.

A web page that a user opens can send requests to addresses of the user's own machine, also under a name of its own that it
makes mean 127.0.0.1 (DNS rebinding): such requests have a Host or an Origin that is not ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

from .server_settings import MOST_BODY
from .statuses import kind_of

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

PASS_OVER_BYTES, PASS_OVER_SECONDS = 64 << 20, 5.0
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Admission:
    """token: what every request must show. hosts: names of this server beside the loopback's, without port.

    addresses: whether any address of digits is one of its names, too, as where it listens beyond the loopback.
    """

    token: str
    hosts: tuple[str, ...] = ()
    addresses: bool = False

    def problem(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """Status and reason of a refusal; None where nothing speaks against the request."""
        named = [(n.decode("latin-1").lower(), v.decode("latin-1")) for n, v in headers]
        found = dict(named)
        twice = [n for n in ("host", "origin", "authorization") if sum(n == m for m, _ in named) > 1]
        if twice:
            return 400, f"the header {twice[0]} is given twice"
        if not self._is_ours(found.get("host", "")):
            return (
                421,
                f"Host {found.get('host', '')!r:.100} is not this server; use {LOOPBACK[0]}, or --host-name",
            )
        origin = found.get("origin")
        if origin is not None and not self._is_ours(origin.partition("://")[2]):
            return 403, f"Origin {origin!r:.100} is another site, which may not ask here"
        if not self._shows_token(found.get("authorization", "")):
            return 401, "no token, or a wrong one: send the header `Authorization: Bearer TOKEN`"
        length = found.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return 400, f"Content-Length {length!r:.40} is no number"
        return (413, too_large(f"{int(length)} bytes")) if int(length) > MOST_BODY else None

    def _is_ours(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return name.lower() in (*LOOPBACK, *self.hosts) or (self.addresses and _is_address(name))

    def _shows_token(self, header: str) -> bool:
        scheme, _, shown = header.partition(" ")
        right = hmac.compare_digest(shown.strip().encode(), self.token.encode())
        return scheme.lower() == "bearer" and right


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def too_large(size: str = "more") -> str:
    """What is said of a body of more than MOST_BODY bytes, of a size that was told or not."""
    return f"the body has {size}, at most {MOST_BODY} bytes are taken"


def guarded(app: App, access: Admission) -> App:
    """The app behind the rules: a refused request does not reach it."""

    async def inside(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await app(scope, receive, send)
            return
        problem = access.problem(scope["headers"])
        if problem is not None:
            await _pass_over(receive)
            await refuse(send, *problem)
            return
        await app(scope, receive, send)

    return inside


async def _pass_over(receive: Receive) -> None:
    """Read a body that nobody wants, up to a limit: many clients read no answer before all of it is sent."""
    seen, more = 0, True
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PASS_OVER_SECONDS):
            while more and seen < PASS_OVER_BYTES:
                message = await receive()
                seen += len(message.get("body", b""))
                more = message["type"] == "http.request" and message.get("more_body", False)


async def refuse(send: Send, status: int, reason: str) -> None:
    """Answer with an error as every other is told."""
    body = json.dumps({"error": {"kind": kind_of(status), "message": reason}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
