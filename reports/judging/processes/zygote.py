"""Calls of functions in processes of their own, which are forked from one that has imported everything.

    with Zygote(torch=True) as zygote:
        reply = zygote.call("ascendtile.reports.judging.answering.main:answer", {"text": ...}, {}, Limits(wall_s=60))

The process that calls starts no child itself: it may have threads, and nothing of its memory is in a child.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import ascendtile

from ....simulator.errors import RunError, UsageError
from . import bubblewrap, messages
from .arrays import memory_file
from .limits import Limits, Reply, Status

START_SECONDS = 120.0
GRACE_SECONDS = 5.0  # beyond the wall time of a call: then it is the process that forks that hangs
OUTPUT_BYTES = 1 << 14  # of what was printed, the end
MOST_NOTICE = 1 << 16

# What a child knows of its surroundings. The seed of hashes is fixed: sets have one order, in every process.
PASSED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "TZ",
)
LIBRARIES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)  # the last: macOS
ONE_THREAD = dict.fromkeys(LIBRARIES, "1")
FIXED = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", **ONE_THREAD}

START = """
import sys
sys.path += [p for p in sys.argv[3:] if p not in sys.path]
import json
from ascendtile.reports.judging.processes.zygote_process import main
main(int(sys.argv[1]), **json.loads(sys.argv[2]))
"""


class NotStartedError(RunError):
    """The process that forks did not start."""


class Zygote:
    """A process that imports once and forks a child for each call.

    torch: whether it imports torch, which takes a second or two. modules: others that children need, of ours.
    folders: where else it may import from; children see them. cancel: ends its start, which then raises `NotStartedError`.
    kept_from: what children are kept from on this system, of "files", "network", "processes", "system calls" (sockets and
        the memory of other processes, by a filter).

    Calls may come from several threads at once. `close`, or the end of this process, ends everything.
    `UsageError`: torch is wanted and not there.
    """

    def __init__(
        self,
        torch: bool = False,
        modules: Sequence[str] = (),
        folders: Sequence[str | Path] = (),
        cancel: Cancellation | None = None,
    ) -> None:
        if not hasattr(os, "fork"):
            raise UsageError("this system has no fork, which judging needs: use Linux or macOS")
        self.lock = threading.Lock()
        self.errors = memory_file("errors")
        self.control, theirs = socket.socketpair()
        paths = [*map(str, folders), *_own_folders()]
        wrapper = bubblewrap.command(paths) if bubblewrap.is_needed() else []
        options = json.dumps({"torch": torch, "modules": list(modules), "wrapped": bool(wrapper)})
        with theirs:
            self.process = subprocess.Popen(
                [*wrapper, sys.executable, "-P", "-c", START, str(theirs.fileno()), options, *paths],
                env={**{k: v for k in PASSED if (v := os.environ.get(k))}, **FIXED},
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self.errors,
                stderr=self.errors,
                start_new_session=True,  # Ctrl-C is for the process that asks
            )
        try:
            with (cancel or Cancellation()).of(self.process.kill):
                self.kept_from: tuple[str, ...] = tuple(self._begun())
        except BaseException:
            self.close()
            raise

    def _begun(self) -> list[str]:
        """Wait until it has imported everything."""
        try:
            told, _ = messages.receive(self.control, MOST_NOTICE, clock.monotonic() + START_SECONDS)
        except messages.MessageError as e:
            raise NotStartedError(
                f"the process that forks did not start ({e}): {_end_of(self.errors)}"
            ) from None
        if told.get("kind") == "ModuleNotFoundError" and "'torch'" in told["error"]:
            raise UsageError("torch is not installed: pip install 'ascendtile[torch]'")
        if "error" in told:
            raise NotStartedError(f"the process that forks did not start: {told['trace']}")
        return list(told["kept_from"])

    def call(
        self,
        function: str,
        request: Mapping[str, Any],
        fds: Mapping[str, int] | None = None,
        limits: Limits | None = None,
        cancel: Cancellation | None = None,
    ) -> Reply:
        """Call `function` ("package.module:function"; name it yourself, never by what came from outside) in a new process.

        It is called with the request (what JSON has) and with fds by name, which are closed here by the caller, there with
        the process. It returns an answer (a dictionary, of what JSON has), or a pair of it and of files by name.
        When this returns nothing of the process, and of what it started, is left.
        """
        limits = limits or Limits()
        fds = fds or {}
        (work, work_there), (status, status_there) = socket.socketpair(), socket.socketpair()
        output = memory_file("output")
        try:
            with work, status, (cancel or Cancellation()).of(lambda: status.shutdown(socket.SHUT_WR)):
                with work_there, status_there:
                    asked = self._ask(
                        function, fds, limits, (work_there.fileno(), status_there.fileno(), output)
                    )
                if not asked:
                    return self._gone()
                deadline = clock.monotonic() + limits.wall_s + GRACE_SECONDS
                answered = _exchange(work, request, fds, limits.answer_bytes, deadline)
                if not isinstance(answered, messages.ClosedError):
                    deadline = clock.monotonic() + GRACE_SECONDS
                    with contextlib.suppress(OSError):
                        status.shutdown(socket.SHUT_WR)  # what is still there is not wanted any more
                end = self._end(status, deadline)
                return self._gone() if end is None else _reply(answered, end, output)
        finally:
            os.close(output)

    def _ask(self, function: str, fds: Mapping[str, int], limits: Limits, ends: tuple[int, int, int]) -> bool:
        """Ask for a child; False if nobody is there to fork it."""
        given = [os.fstat(fd).st_ino for fd in fds.values()]
        call = {"function": function, "limits": limits.to_json(), "given": given}
        with self.lock, contextlib.suppress(messages.MessageError):
            messages.send(self.control, call, ends, clock.monotonic() + GRACE_SECONDS)
            return True
        return False

    def _end(self, status: socket.socket, deadline: float) -> dict[str, Any] | None:
        """How its process ended; None if the one that forks ended before, or does not say."""
        with contextlib.suppress(messages.MessageError):
            return messages.receive(status, MOST_NOTICE, deadline)[0]
        return None

    def _gone(self) -> Reply:
        """One that hangs is ended: whoever has other calls there sees it, too."""
        self.close()
        return Reply("killed", reason="the process that forks has gone, or hangs", from_outside=True)

    @property
    def is_alive(self) -> bool:
        """Whether calls can still be made."""
        return self.process.poll() is None and self.control.fileno() >= 0

    def close(self) -> None:
        """End it and all children. Calls that still run are told so."""
        with self.lock:
            self.control.close()
            if self.errors >= 0:
                os.close(self.errors)
                self.errors = -1
        try:
            self.process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Zygote:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Cancellation:
    """Ends a call from another thread: `cancel()`. One that is over is left alone."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_cancelled = False
        self.actions: list[Callable[[], None]] = []

    def cancel(self) -> None:
        """End what runs, and what would begin."""
        with self.lock:
            self.is_cancelled = True
            for action in self.actions:
                with contextlib.suppress(OSError):
                    action()

    @contextlib.contextmanager
    def of(self, action: Callable[[], None]) -> Iterator[None]:
        """While this is open, cancelling does `action`."""
        with self.lock:
            self.actions.append(action)
        if self.is_cancelled:
            self.cancel()
        try:
            yield
        finally:
            with self.lock:
                self.actions.remove(action)


Answered = tuple[dict[str, Any], list[int]] | messages.MessageError


def _exchange(
    work: socket.socket, request: Mapping[str, Any], fds: Mapping[str, int], most_bytes: int, deadline: float
) -> Answered:
    """Request there, answer back; or what is wrong with it."""
    try:
        message = {"request": dict(request), "fds": list(fds)}
        messages.send(work, message, list(fds.values()), deadline)
        return messages.receive(work, most_bytes, deadline)
    except messages.MessageError as e:
        return e


def _reply(answered: Answered, end: dict[str, Any], output: int) -> Reply:
    figures = {"output": _end_of(output), **end.get("used", {})}
    if isinstance(answered, tuple):
        return _answer(*answered, figures)
    if isinstance(answered, messages.ClosedError) or end["status"] in ("time", "memory"):
        reason = end["reason"] or "left without an answer"
        status: Status = "crashed" if end["status"] == "ok" else end["status"]
        return Reply(status, reason=reason, from_outside=end.get("from_outside", False), **figures)
    return Reply("crashed", reason=str(answered), **figures)


def _answer(message: dict[str, Any], fds: list[int], figures: dict[str, Any]) -> Reply:
    answer, names = message.get("answer"), message.get("fds")
    if not isinstance(answer, dict) or not _names(names, len(fds)):
        messages.close_all(fds)
        return Reply(
            "crashed", reason="an answer is an object, with a name for each file beside it", **figures
        )
    if "raised" in answer:
        messages.close_all(fds)
        return Reply("crashed", answer, reason=f"{answer['raised']}: {answer.get('message')}", **figures)
    return Reply("ok", answer, dict(zip(cast(list[str], names), fds, strict=True)), **figures)


def _names(names: object, count: int) -> bool:
    """Whether these are as many different names."""
    return (
        isinstance(names, list)
        and all(isinstance(n, str) for n in names)
        and len({*names}) == count == len(names)
    )


def _end_of(fd: int) -> str:
    if fd < 0:
        return ""
    size = os.fstat(fd).st_size
    return os.pread(fd, OUTPUT_BYTES, max(0, size - OUTPUT_BYTES)).decode(errors="replace")


def _own_folders() -> list[str]:
    """Where a process that knows nothing of this one's paths finds what it must import."""
    found = [str(Path(p).parent) for p in ascendtile.__path__]
    for name in ("numpy", "torch"):
        module = sys.modules.get(name)
        if module is not None and module.__file__:
            found.append(str(Path(module.__file__).parent.parent))
    return found
