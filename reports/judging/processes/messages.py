"""Messages between processes: a length, JSON, and open files beside it. Nothing that is read can run.

A message may come from a hostile process: it has at most so many bytes and files, and all of it is there by a deadline.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct
import time as clock
from collections.abc import Sequence
from typing import Any

HEADER = struct.Struct("!Q")
MOST_FDS = 64  # of one message; the kernel takes 253
PIECE = 1 << 20  # bytes of one read: no more is reserved than has come
CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # macOS lacks it; nothing here is executed between


class MessageError(Exception):
    """What came is no message, is too large, or is not there in time."""


class ClosedError(MessageError):
    """The other side ended before a whole message was there."""


def send(sock: socket.socket, message: dict[str, Any], fds: Sequence[int], deadline: float) -> None:
    """Send it, with files beside it, by `deadline` (of time.monotonic). `MessageError` if the other side does not read."""
    data = json.dumps(message).encode()
    view = memoryview(HEADER.pack(len(data)) + data)
    beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    try:
        while view:
            _wait(sock, deadline)
            view = view[sock.sendmsg([view], beside) :]
            beside = []
    except TimeoutError:
        raise MessageError("the other side did not read in time") from None
    except OSError as e:
        raise ClosedError(f"the other side has gone ({e.strerror})") from None


def receive(
    sock: socket.socket, most_bytes: int, deadline: float, most_fds: int = MOST_FDS
) -> tuple[dict[str, Any], list[int]]:
    """The next message and its files, which are the caller's to close. `MessageError`: what is wrong with it."""
    fds: list[int] = []
    try:
        (length,) = HEADER.unpack(_read(sock, HEADER.size, deadline, fds, most_fds))
        if length > most_bytes:
            raise MessageError(f"a message has {length} bytes, at most {most_bytes} are read")
        return _parsed(_read(sock, length, deadline, fds, most_fds)), fds
    except BaseException:
        close_all(fds)
        raise


def close_all(fds: Sequence[int]) -> None:
    """Close these files."""
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


def _read(sock: socket.socket, size: int, deadline: float, fds: list[int], most_fds: int) -> bytearray:
    data = bytearray()
    while len(data) < size:
        try:
            _wait(sock, deadline)
            room = socket.CMSG_SPACE(array.array("i").itemsize * most_fds)
            piece, beside, flags, _ = sock.recvmsg(min(PIECE, size - len(data)), room, CLOEXEC)
        except TimeoutError:
            raise MessageError("no whole message came in time") from None
        except OSError as e:
            raise ClosedError(f"the other side has gone ({e.strerror})") from None
        for level, kind, content in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.extend(_numbers(content))
        if flags & socket.MSG_CTRUNC or len(fds) > most_fds:
            raise MessageError(f"a message has more than {most_fds} files")
        if not piece:
            raise ClosedError("the other side ended without a message")
        data += piece
    return data


def _wait(sock: socket.socket, deadline: float) -> None:
    sock.settimeout(max(1e-3, deadline - clock.monotonic()))


def _numbers(content: bytes) -> list[int]:
    numbers = array.array("i")
    numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
    return list(numbers)


def _parsed(data: bytearray) -> dict[str, Any]:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise MessageError(f"a message is no JSON ({type(e).__name__})") from None
    if not isinstance(message, dict):
        raise MessageError(f"a message is {type(message).__name__}, not an object")
    return message
