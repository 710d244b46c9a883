"""What a forked child does before and around the function that it is there for."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import time as clock
import traceback
from importlib import import_module
from typing import Any

from . import file_view, messages, namespaces, system_calls
from .limits import Limits

MOST_REQUEST = 1 << 30  # bytes: it comes from the process that asks, which is trusted
REQUEST_SECONDS = 60.0
MOST_FDS = 1 << 12  # numbers of files that the process that forks can have: two for each child
TRACEBACK = 20_000  # characters that are told


def become(
    work: socket.socket, output: int, limits: Limits, function: str, kept_from: set[str], folder: str
) -> None:
    """All of the life of a child; does not return. work: where the request comes from and the answer goes.

    folder: where it is, and where its temporary files go.
    """
    code = 1
    try:
        _alone(limits, kept_from, folder)
        _streams(output, work)
        _limit(limits)
        _serve(work, function, limits)
        code = 0
    except messages.MessageError:
        pass  # who asked has gone
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            _flush()
        os._exit(code)


def _alone(limits: Limits, kept_from: set[str], folder: str) -> None:
    """Nobody else's processes and files; no right to change that."""
    os.setsid()
    if namespaces.PROCESSES in kept_from:
        namespaces.unshare(namespaces.NEW_MOUNTS | namespaces.NEW_IPC)
        file_view.fresh_places(limits.written_bytes)
    os.environ.update(HOME=folder, TMPDIR=folder)
    os.chdir(folder)
    namespaces.give_up_capabilities()
    if namespaces.CALLS in kept_from:
        system_calls.refuse(others_are_seen=namespaces.PROCESSES not in kept_from)
    namespaces.end_with_parent()
    if namespaces.LINUX:
        with contextlib.suppress(OSError):
            namespaces.write("/proc/self/oom_score_adj", "1000")  # out of memory, this one goes first


def _streams(output: int, work: socket.socket) -> None:
    """No input; what is printed goes into a file of who asked; every other file of the parent is closed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    kept = work.fileno()
    os.closerange(3, kept)
    os.closerange(kept + 1, MOST_FDS)


def _limit(limits: Limits) -> None:
    """Limits of the kernel. One that the system sets lower stays."""
    wanted = {
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_NOFILE: limits.files,
        resource.RLIMIT_FSIZE: limits.written_bytes,
        resource.RLIMIT_CORE: 0,
    }
    for which, value in wanted.items():
        hard = resource.getrlimit(which)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (least, least))


def _serve(work: socket.socket, function: str, limits: Limits) -> None:
    message, fds = messages.receive(work, MOST_REQUEST, clock.monotonic() + REQUEST_SECONDS)
    answer, names, beside = _called(function, message["request"], dict(zip(message["fds"], fds, strict=True)))
    _flush()
    reply = {"answer": answer, "fds": names}
    messages.send(work, reply, beside, clock.monotonic() + limits.wall_s)


def _called(function: str, request: dict[str, Any], fds: dict[str, int]) -> tuple[Any, list[str], list[int]]:
    """Answer, names of files, files."""
    module, _, name = function.partition(":")
    try:
        found = getattr(import_module(module), name)(request, fds)
    except BaseException as e:  # SystemExit, too: a function that leaves is one that failed
        text = "".join(traceback.format_exception(e))[-TRACEBACK:]
        return {"raised": type(e).__name__, "message": str(e)[:TRACEBACK], "traceback": text}, [], []
    answer, beside = found if isinstance(found, tuple) else (found, {})
    return answer, list(beside), list(beside.values())


def _flush() -> None:
    import sys

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
