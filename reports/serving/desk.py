"""Where requests of all clients come in: checked here, done in a worker process, answered with plain data.

What a client sent is never run, imported or opened in this process. Whoever stops waiting ends the worker, too.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import tempfile
import time as clock
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from ...simulator.errors import UsageError
from ..judging.judge import MODULES, TORCH_MODULES
from ..judging.processes.limits import Reply
from ..judging.processes.pool import CancelledError, Job, Pool, QueueFullError
from ..judging.processes.zygote import Cancellation, NotStartedError
from . import checking
from .root_files import resolved
from .server_settings import ServerSettings
from .tools.catalogue import TOOLS, failure, told

WORK = "ascendtile.reports.serving.tools.catalogue:work"
LOADED = "ascendtile.reports.serving.tools.loaded"
REFUSED_AT_ONCE = 8  # threads for requests that find the queue full
TELL_SECONDS = 2.0

Answer = dict[str, Any]  # {"result": {...}} or {"error": {"kind": ..., "message": ...}}
Tell = Callable[[float, str], Awaitable[None]]


@dataclass
class ClientRequest:
    """One request: who sent it, the call that ends it, and since when it runs (None: it waits)."""

    client: str
    cancel: Cancellation
    began: float | None = None


class Desk:
    """Checks requests and has them done. `close` ends all workers."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        torch = settings.torch
        if torch is None:
            torch = importlib.util.find_spec("torch") is not None
        self.pool = Pool(
            settings.slots, settings.queue, torch, modules=(LOADED, *(TORCH_MODULES if torch else MODULES))
        )
        self.folder = Path(tempfile.mkdtemp(prefix="ascendtile-serve-"))
        self.threads = anyio.CapacityLimiter(self.pool.slots + settings.queue + REFUSED_AT_ONCE)

    async def answer(
        self, name: str, arguments: Mapping[str, Any], client: str, tell: Tell | None = None
    ) -> Answer:
        """Do what was asked. tell: told (seconds so far, text) now and then while it takes.

        kind of an error: "usage", "failed", "fault" as in `catalogue.work`; "time", "memory", "killed", "crashed" of
        the worker; "full": the queue; "closing": the server ends.
        """
        try:
            tool = checking.known(name)
            checking.check(tool, arguments)
            given = resolved(tool, arguments, self.settings.root)
        except UsageError as e:
            return failure("usage", str(e))
        asked = ClientRequest(client, Cancellation())
        async with self._telling(asked, tell):
            return await self._in_thread(asked, {"tool": name, "arguments": given})

    async def _in_thread(self, asked: ClientRequest, request: Mapping[str, Any]) -> Answer:
        call = partial(self._call, asked, request)
        try:
            answer: Answer = await anyio.to_thread.run_sync(
                call, abandon_on_cancel=True, limiter=self.threads
            )
            return answer
        finally:
            asked.cancel.cancel()  # over, or nobody waits for it any more

    def _call(self, asked: ClientRequest, request: Mapping[str, Any]) -> Answer:
        try:
            with self.pool.job(asked.client, asked.cancel) as job:
                asked.began = clock.monotonic()
                return self._done(job, request)
        except QueueFullError as e:
            return failure("full", str(e))
        except CancelledError as e:
            return failure("closing", str(e))
        except NotStartedError as e:
            return failure("fault", str(e))
        except Exception as e:
            return told(e)

    def _done(self, job: Job, request: Mapping[str, Any]) -> Answer:
        tool, arguments, limits = TOOLS[request["tool"]], request["arguments"], self.settings.limits
        if tool.directed is not None and tool.is_directed(arguments):
            return {"result": tool.directed(arguments, job, limits, self.folder)}
        reply = job.call(WORK, request, limits=limits)
        reply.close()
        return _answer(reply)

    @contextlib.asynccontextmanager
    async def _telling(self, asked: ClientRequest, tell: Tell | None) -> AsyncIterator[None]:
        if tell is None:
            yield
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._tell, asked, tell)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    async def _tell(self, asked: ClientRequest, tell: Tell) -> None:
        begin = clock.monotonic()
        while True:
            await anyio.sleep(TELL_SECONDS)
            text = "waiting for a free worker" if asked.began is None else "running"
            await tell(clock.monotonic() - begin, text)

    def state(self) -> dict[str, Any]:
        """Slots and queue, how many are taken, what workers are kept from (None: not yet known), and their limits."""
        taken, waiting = len(self.pool.taken), len(self.pool.queue)
        slots = {"slots": self.pool.slots, "running": taken, "queue": self.settings.queue, "waiting": waiting}
        zygote = self.pool.zygote
        kept_from = None if zygote is None else list(zygote.kept_from)
        return {**slots, "kept_from": kept_from, "limits": self.settings.limits.to_json()}

    def warm(self) -> tuple[str, ...]:
        """Start the process that workers are forked from; what workers are kept from on this system."""
        return self.pool.warm()

    def close(self) -> None:
        """End all workers."""
        self.pool.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _answer(reply: Reply) -> Answer:
    if reply.status != "ok":
        told = f"\n{reply.output}" if reply.output and reply.status == "crashed" else ""
        return failure(reply.status, f"{reply.reason}{told}")
    return reply.answer
