"""As many jobs at a time as there are slots, a queue of bounded length, and another try where a process was killed.

    with Pool(slots=2, waiting=16, torch=True) as pool:
        reply = pool.call("package.module:function", {...})       # a job of one call
        with pool.job(client="ann") as job:                       # a job of several, at the same time if it likes
            job.call(...)

Calls are made by threads of whoever asks; the pool has none. Who waits gets the next slot in the order of arrival, but first
those whose client has the fewest jobs running: one client with many jobs does not keep others waiting.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from ....simulator.errors import RunError, UsageError
from ....simulator.record.recent import Recent
from .limits import Limits, Reply
from .zygote import Cancellation, NotStartedError, Zygote

TRIES = 2  # of a call whose process was killed by nobody's limit
MOST_KEPT = 64  # answers that are kept in a pool
MOST_LETTERS = 1 << 20  # of one of them, as JSON


class QueueFullError(RunError):
    """All slots are taken and as many jobs wait as may. waiting, most: how many do, how many may."""

    def __init__(self, waiting: int, most: int) -> None:
        super().__init__(f"queue is full: {waiting} waiting, at most {most}; try again later")
        self.waiting, self.most = waiting, most


class CancelledError(RunError):
    """A job that somebody cancelled while it waited or ran, or whose pool was closed."""


class Pool:
    """Slots for jobs over one process that forks, which is started with the first job and replaced when it dies.

    slots: jobs at one time, the cores of this machine if not given. waiting: jobs that may wait for a slot.
    torch, modules, folders: as for `Zygote`.
    """

    def __init__(
        self,
        slots: int | None = None,
        waiting: int = 16,
        torch: bool = False,
        modules: Sequence[str] = (),
        folders: Sequence[str | Path] = (),
    ) -> None:
        self.slots = _whole("slots", os.cpu_count() or 1 if slots is None else slots, 1)
        self.most_waiting = _whole("waiting", waiting, 0)
        self.begin = partial(Zygote, torch, modules, folders)
        self.changed = threading.Condition()
        self.starting = threading.Lock()
        self.running: Counter[str] = Counter()
        self.queue: list[Job] = []
        self.taken: set[Job] = set()
        self.zygote: Zygote | None = None
        self.kept: Recent[str] = Recent(MOST_KEPT)
        self.keeping = threading.Lock()
        self.is_closed = False
        self.closing = Cancellation()  # of the process that forks, while it starts

    def call(
        self,
        function: str,
        request: Mapping[str, Any],
        fds: Mapping[str, int] | None = None,
        limits: Limits | None = None,
        client: str = "",
        cancel: Cancellation | None = None,
    ) -> Reply:
        """A job of one call: `Job.call`."""
        with self.job(client, cancel) as job:
            return job.call(function, request, fds, limits)

    @contextlib.contextmanager
    def job(self, client: str = "", cancel: Cancellation | None = None) -> Iterator[Job]:
        """Wait for a slot, and keep it while this is open. Raises `QueueFullError`, `CancelledError`."""
        job = Job(self, client, cancel or Cancellation())
        with job.cancel.of(self._wake):
            self._enter(job)
            try:
                yield job
            finally:
                self._leave(job)

    def warm(self) -> tuple[str, ...]:
        """Start the process that forks now. What children are kept from, as `Zygote.kept_from`."""
        return self.alive().kept_from

    def alive(self) -> Zygote:
        """The process that forks, a new one if it died."""
        with self.starting:
            if self.is_closed:
                raise CancelledError("the pool is closed")
            if self.zygote is None or not self.zygote.is_alive:
                if self.zygote is not None:
                    self.zygote.close()
                self.zygote = self._begun()
            return self.zygote

    def _begun(self) -> Zygote:
        try:
            return self.begin(cancel=self.closing)
        except NotStartedError:
            if self.is_closed:
                raise CancelledError("the pool is closed") from None
            raise

    def close(self) -> None:
        """End everything: who waits or runs gets `CancelledError`."""
        self.is_closed = True
        self.closing.cancel()
        self._wake()
        for job in list(self.taken):
            job.cancel.cancel()
        with self.starting:
            if self.zygote is not None:
                self.zygote.close()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _wake(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def _enter(self, job: Job) -> None:
        with self.changed:
            if len(self.taken) == self.slots and len(self.queue) >= self.most_waiting:
                raise QueueFullError(len(self.queue), self.most_waiting)
            self.queue.append(job)
            try:
                self.changed.wait_for(lambda: self._is_over(job) or self._is_next(job))
                if self._is_over(job):
                    raise _over(self)
                self.taken.add(job)
                self.running[job.client] += 1
            finally:
                self.queue.remove(job)
                self.changed.notify_all()

    def _leave(self, job: Job) -> None:
        with self.changed:
            self.taken.discard(job)
            self.running -= Counter([job.client])
            self.changed.notify_all()

    def _is_over(self, job: Job) -> bool:
        return self.is_closed or job.cancel.is_cancelled

    def _is_next(self, job: Job) -> bool:
        if len(self.taken) >= self.slots:
            return False
        return min(self.queue, key=lambda j: self.running[j.client]) is job  # the first of those in order


class Job:
    """The right to run a job in a pool."""

    def __init__(self, pool: Pool, client: str, cancel: Cancellation) -> None:
        self.pool, self.client, self.cancel = pool, client, cancel

    def call(
        self,
        function: str,
        request: Mapping[str, Any],
        fds: Mapping[str, int] | None = None,
        limits: Limits | None = None,
    ) -> Reply:
        """As `Zygote.call`, tried again once where its process was killed from outside. Raises `CancelledError`."""
        for _ in range(TRIES):
            reply = self.pool.alive().call(function, request, fds, limits, self.cancel)
            if self.cancel.is_cancelled:
                reply.close()
                raise _over(self.pool)
            if not reply.from_outside:
                break
        return reply

    def keep(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keep what JSON has for later jobs of this pool, a number of such at most; what is long is not kept."""
        text = json.dumps(answer)
        if len(text) <= MOST_LETTERS:
            with self.pool.keeping:
                self.pool.kept.keep(key, text)

    def recalled(self, key: str) -> dict[str, Any] | None:
        """What a job of this pool kept under a key, if it is still there: a copy."""
        with self.pool.keeping:
            text = self.pool.kept.recall(key)
        return None if text is None else dict(json.loads(text))


def _over(pool: Pool) -> CancelledError:
    return CancelledError("the pool is closed" if pool.is_closed else "the job was cancelled")


def _whole(name: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} must be an integer from {least}, got {value!r}")
    return value
