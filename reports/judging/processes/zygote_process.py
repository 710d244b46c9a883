"""The process that forks a child for each call: it has imported what children need, runs nothing itself and has one thread.

It starts the children, watches what they hold, ends them with all that they started, and tells who asked why one ended.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time as clock
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from . import child, file_view, large_pages, messages, namespaces, system_calls, watching
from .limits import Limits
from .namespaces import CALLS, FILES, NETWORK, PROCESSES

TICK_SECONDS = 0.02  # between two looks at what children hold
MOST_CONTROL = 1 << 16  # bytes of a message of who started this
SEND_SECONDS = 1.0
CLOSE = 0.9  # of the limit of processor time: the kernel kills by its ticks, and what is told is measured otherwise


@dataclass
class Running:
    """A child. status: where who asked waits for its end, and ends it by closing."""

    pid: int
    limits: Limits
    status: socket.socket
    deadline: float
    folder: str
    before_bytes: int
    given: set[int]
    most_bytes: int = 0
    most_processes: int = 0
    ended_for: tuple[str, str] | None = None  # status and reason, of one that was killed here


def main(control_fd: int, torch: bool, modules: Sequence[str], wrapped: bool) -> None:
    """Until who started this closes `control_fd`. wrapped: whether bubblewrap keeps this process from files and network."""
    control = socket.socket(fileno=control_fd)
    try:
        kept_from = {FILES, NETWORK} if wrapped else _alone()
        kept_from |= {CALLS, NETWORK} if system_calls.are_filtered() else set()
        _import(torch, modules)
        _turn_to_files(kept_from)
    except BaseException as e:
        told = {
            "error": str(e) or type(e).__name__,
            "kind": type(e).__name__,
            "trace": traceback.format_exc(),
        }
        messages.send(control, told, (), clock.monotonic() + SEND_SECONDS)
        return
    gc.collect()
    gc.freeze()  # pages that children share stay shared
    large_pages.collapse()
    namespaces.control(namespaces.SET_SUBREAPER, 1)
    messages.send(control, {"kept_from": sorted(kept_from)}, (), clock.monotonic() + SEND_SECONDS)
    Zygotes(control, kept_from).run()


def _alone() -> set[str]:
    """Leave the network, other processes and files behind, as far as the system allows. What a child is kept from."""
    if not namespaces.LINUX:
        return set()
    if namespaces.succeeds(_everything_alone):
        _first_of_new_processes()
        return {NETWORK, PROCESSES, FILES}
    if namespaces.succeeds(namespaces.new_user):
        namespaces.new_user()
        return {NETWORK}
    return set()


def _everything_alone() -> None:
    _first_of_new_processes()
    file_view.enter(())


def _first_of_new_processes() -> None:
    """Go on as the first process of a new namespace. The one that was waits for it and leaves as it does."""
    namespaces.new_user()
    namespaces.unshare(namespaces.NEW_MOUNTS | namespaces.NEW_PIDS | namespaces.NEW_IPC)
    pid = os.fork()
    if pid:
        _wait_for(pid)
    namespaces.end_with_parent()
    namespaces.mount("none", "/", flags=namespaces.RECURSIVE | namespaces.PRIVATE)


def _wait_for(pid: int) -> None:
    """Keep no file open, so that an end is seen, and leave as that one does."""
    os.closerange(3, 1 << 10)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


def _import(torch: bool, modules: Sequence[str]) -> None:
    if torch:
        import_module("torch")
    for name in modules:
        import_module(name)


def _turn_to_files(kept_from: set[str]) -> None:
    if PROCESSES in kept_from:
        file_view.enter([*file_view.python_folders(), *sys.path])
        with contextlib.suppress(OSError):  # children make no namespaces of their own
            namespaces.write("/proc/sys/user/max_user_namespaces", "0")


class Zygotes:
    """The loop: calls come in, children end, limits are kept."""

    def __init__(self, control: socket.socket, kept_from: set[str]) -> None:
        self.control, self.kept_from = control, kept_from
        self.running: dict[int, Running] = {}
        self.selector = selectors.DefaultSelector()
        self.own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY) if PROCESSES in kept_from else -1

    def run(self) -> None:
        told, tell = socket.socketpair()
        for s in (told, tell):
            s.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
        self.selector.register(self.control, selectors.EVENT_READ)
        self.selector.register(told, selectors.EVENT_READ)
        try:
            while self._turn(told):
                pass
        finally:
            self._end_all()

    def _turn(self, told: socket.socket) -> bool:
        """One wait; False when who started this has gone."""
        for key, _ in self.selector.select(TICK_SECONDS if self.running else None):
            if key.fileobj is self.control:
                if not self._begin():
                    return False
            elif key.fileobj is told:
                with contextlib.suppress(BlockingIOError):
                    told.recv(1 << 12)
            else:
                self.selector.unregister(key.fileobj)
                self._kill(self.running[key.data], "killed", "who asked wanted it no longer")
        self._reap()
        self._keep_limits()
        return True

    def _begin(self) -> bool:
        """Start the child of the next call."""
        try:
            call, fds = messages.receive(self.control, MOST_CONTROL, clock.monotonic() + SEND_SECONDS)
        except messages.ClosedError:
            return False
        work, status = (socket.socket(fileno=fd) for fd in fds[:2])
        output = fds[2]
        try:
            with contextlib.suppress(Exception):  # a module that cannot be imported is told by the child
                import_module(call["function"].partition(":")[0])
            self._fork(call, work, status, output)
        except OSError as e:
            _tell(status, {"status": "crashed", "reason": f"no process could be started ({e.strerror})"})
        finally:
            work.close()
            os.close(output)
        return True

    def _fork(self, call: dict[str, Any], work: socket.socket, status: socket.socket, output: int) -> None:
        limits = Limits.from_json(call["limits"])
        if self.own_pids >= 0:
            namespaces.new_pids_for_children(self.own_pids)
        before = watching.held_bytes([os.getpid()], set(), 0)
        folder = "/tmp" if PROCESSES in self.kept_from else tempfile.mkdtemp(prefix="ascendtile-")
        pid = os.fork()
        if pid == 0:
            child.become(work, output, limits, call["function"], self.kept_from, folder)
        deadline = clock.monotonic() + limits.wall_s
        given = {*call["given"], os.fstat(output).st_ino}
        self.running[pid] = Running(pid, limits, status, deadline, folder, before, given)
        self.selector.register(status, selectors.EVENT_READ, pid)

    def _reap(self) -> None:
        while True:
            try:
                pid, ended, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.running:
                self._ended(self.running.pop(pid), ended, used.ru_utime + used.ru_stime)

    def _ended(self, done: Running, ended: int, cpu_s: float) -> None:
        if PROCESSES not in self.kept_from:  # else the kernel ended what it started
            with contextlib.suppress(OSError):
                os.killpg(done.pid, signal.SIGKILL)
            shutil.rmtree(done.folder, ignore_errors=True)
        with contextlib.suppress(KeyError):  # who asked closed it before
            self.selector.unregister(done.status)
        used = {"cpu_s": cpu_s, "memory_bytes": done.most_bytes, "processes": done.most_processes}
        _tell(done.status, {**_why(done, ended, cpu_s), "used": used})

    def _kill(self, which: Running, status: str, reason: str) -> None:
        which.ended_for = which.ended_for or (status, reason)
        for send, pid in ((os.killpg, which.pid), (os.kill, which.pid)):
            with contextlib.suppress(OSError):
                send(pid, signal.SIGKILL)

    def _keep_limits(self) -> None:
        now = clock.monotonic()
        for r in [r for r in self.running.values() if r.ended_for is None]:
            if now > r.deadline:
                self._kill(r, "time", f"took more than {r.limits.wall_s:g} s")
            else:
                self._keep_memory(r)
        self._end_strangers()

    def _keep_memory(self, r: Running) -> None:
        pids = watching.family(r.pid) if namespaces.LINUX else [r.pid]
        r.most_bytes = max(r.most_bytes, watching.held_bytes(pids, r.given, r.before_bytes))
        r.most_processes = max(r.most_processes, watching.threads(pids))
        if r.most_bytes > r.limits.memory_bytes:
            self._kill(r, "memory", f"held more than {r.limits.memory_bytes} bytes of memory")
        elif r.most_processes > r.limits.processes:
            self._kill(r, "killed", f"had more than {r.limits.processes} processes and threads at one time")

    def _end_strangers(self) -> None:
        """What a child left behind becomes a child of this process, where no namespace ended it."""
        if namespaces.LINUX and PROCESSES not in self.kept_from:
            for pid in set(watching.family(os.getpid())[1:]) - {
                p for r in self.running for p in watching.family(r)
            }:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def _end_all(self) -> None:
        for r in self.running.values():
            self._kill(r, "killed", "the process that forks was closed")
        self._end_strangers()


def _why(done: Running, ended: int, cpu_s: float) -> dict[str, Any]:
    """Status and reason of an end; "ok" is for who asked to find out, by the answer."""
    if done.ended_for:
        return dict(zip(("status", "reason"), done.ended_for, strict=True))
    code = os.waitstatus_to_exitcode(ended)
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu_s > CLOSE * done.limits.cpu_seconds):
        return {"status": "time", "reason": f"took more than {done.limits.cpu_seconds} s of processor time"}
    if code < 0:
        name = signal.Signals(-code).name
        outside = -code in (signal.SIGKILL, signal.SIGTERM)
        return {"status": "killed", "reason": f"was ended by {name}", "from_outside": outside}
    return {
        "status": "ok" if code == 0 else "crashed",
        "reason": f"left with exit status {code}" if code else "",
    }


def _tell(status: socket.socket, message: dict[str, Any]) -> None:
    with status, contextlib.suppress(messages.MessageError):
        messages.send(status, message, (), clock.monotonic() + SEND_SECONDS)
