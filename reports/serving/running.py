"""The server's life: it starts, serves until it is told to stop, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import uvicorn
from mcp.server.stdio import stdio_server

from ...simulator.errors import UsageError
from ..judging.processes.namespaces import FILES, NETWORK
from ..judging.processes.pool import CancelledError
from .admission import Admission, App
from .application import application
from .desk import Desk
from .protocol import answer_no_messages, mcp_server
from .server_settings import ServerSettings

BACKLOG, MOST_CONNECTIONS = 128, 512
STOP_SECONDS = 2  # for answers that are on their way
UNKEPT = "this system does not keep workers from {}: send it only code that may do what you may"
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve_stdio(settings: ServerSettings) -> None:
    """Serve one client over standard input and output, until one of them ends or a signal comes."""
    if sys.stdin is None or sys.stdout is None:
        raise UsageError(
            "--stdio speaks over standard input and output, and one of them is closed; take --http PORT"
        )
    desk = Desk(settings)
    _warm(desk)
    try:
        anyio.run(_stdio, desk)
    except* (BrokenPipeError, anyio.BrokenResourceError):
        pass  # the client has gone: what wrote to it, or what was about to, finds that first
    finally:
        desk.close()


async def _stdio(desk: Desk) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_until_signal, desk)
        async with stdio_server() as (lines, write):
            messages, read = anyio.create_memory_object_stream[Any](0)
            group.start_soon(answer_no_messages, lines, messages, write)
            server = mcp_server(desk)
            await server.run(read, write, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _until_signal(desk: Desk) -> None:
    """A thread waits for the next line of standard input, and nothing ends that wait: so the process ends itself."""
    with anyio.open_signal_receiver(*STOPS) as signals:
        async for _ in signals:
            closing = threading.Thread(target=desk.close, daemon=True)
            closing.start()
            closing.join(STOP_SECONDS)  # workers' process may be starting: it sees the end of this one, too
            sys.stderr.flush()
            os._exit(0)


def listening(host: str, port: int) -> socket.socket:
    """The socket, bound: port 0 takes one that is free. `UsageError` if that is not possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as e:
        raise UsageError(f"--http: cannot listen on {host} port {port}: {e.strerror or e}") from None


def serve_http(
    settings: ServerSettings, access: Admission, sock: socket.socket, ready: Callable[[], None]
) -> None:
    """Serve on the socket until Ctrl-C or SIGTERM. ready: called once requests are taken."""
    stop = threading.Event()
    with _signals(stop):
        _serve(Desk(settings), access, sock, ready, stop)
    sock.close()


def _serve(
    desk: Desk, access: Admission, sock: socket.socket, ready: Callable[[], None], stop: threading.Event
) -> None:
    server = uvicorn.Server(_config(application(desk, access)))

    def run() -> None:
        try:
            server.run(sockets=[sock])
        finally:
            stop.set()

    _warm(desk)
    thread = threading.Thread(target=run)  # not the first one: there uvicorn would take the signals
    thread.start()
    try:
        ready()  # the socket listens already: who comes early waits
        stop.wait()
    finally:
        desk.close()  # what runs is answered: the server ends
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # of streams that are open and cut now
        server.should_exit = True
        thread.join()


def _config(app: App) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="on",
        ws="none",
        log_level="error",  # whoever sends what is no HTTP would fill the log with warnings
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


@contextlib.contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """Signals that end a server set the event; as they were, afterwards."""
    before = [(number, signal.signal(number, lambda *_: stop.set())) for number in STOPS]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _warm(desk: Desk) -> None:
    """Workers' process starts while the first request is on its way; its failure is that request's."""

    def start() -> None:
        try:
            kept_from = desk.warm()
            if open_to := [x for x in (NETWORK, FILES) if x not in kept_from]:
                sys.stderr.write(f"ascendtile serve: {UNKEPT.format(' and '.join(open_to))}\n")
        except CancelledError:
            pass  # the server ends
        except Exception as e:
            sys.stderr.write(f"ascendtile serve: {e}\n")

    threading.Thread(target=start, daemon=True).start()
