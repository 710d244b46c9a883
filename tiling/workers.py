"""Who evaluates the points: this process, a pool of processes, or a cluster. Results come in the order of the points."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import signal
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from typing import Any, Protocol
from urllib.parse import urlsplit

from ..simulator.errors import RunError, UsageError
from .evaluate import Evaluation, TilingProblem, engine_version
from .heartbeats import STOPPED_SECONDS, Heartbeats
from .kernel_problem import KernelProblem, imported, name_of
from .space.space import Point

PIECE = 4  # points of one task of a cluster: enough to hide the hand-over
NEIGHBOURS = (
    8  # points of one task of a process at most: those that are near share what an interpretation keeps
)
TASKS = 8  # of each process in a batch, at least, where there are so many points: so that all end together
TRIES = 3  # of a task whose worker dies
CONNECT_SECONDS = 10
SCHEMES = ("tcp", "tls", "ws", "wss")  # of addresses of dask.distributed that another machine can have


class Workers(Protocol):
    """Evaluates batches of points. note: a message for the user, empty if all is as asked."""

    note: str

    def evaluate(self, points: Sequence[Point]) -> Iterator[Evaluation]: ...

    def close(self) -> None: ...


class Here:
    """This process."""

    def __init__(self, problem: TilingProblem, note: str = "") -> None:
        self.problem, self.note = problem, note

    def evaluate(self, points: Sequence[Point]) -> Iterator[Evaluation]:
        yield from (self.problem.evaluate(p) for p in points)

    def close(self) -> None:
        """Nothing to give back."""


class Recording:
    """A context of multiprocessing that knows the processes it made."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.made: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.context, name)

    def Process(self, *args: Any, **named: Any) -> Any:
        process = self.context.Process(*args, **named)
        self.made.append(process)
        return process


class Processes:
    """A pool of processes on this machine. A process that dies costs a second and a third try, then an error.

    One that is stopped is killed after `timeout` seconds, and then is one that died.
    """

    note = ""

    def __init__(self, problem: TilingProblem, count: int, timeout: float = STOPPED_SECONDS) -> None:
        self.problem, self.count, self.timeout = problem, count, timeout
        self.pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Forked processes inherit the problem: a kernel or grid need not be importable by name. They inherit modules, too:
        # to import what times a launch takes each of them as long as ten evaluations.
        import_module("..simulator.timing.estimate", __package__)
        method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
        self.context = Recording(multiprocessing.get_context(method))
        self.beats = Heartbeats(self.context, self.count, self.timeout)
        pool_context: Any = self.context
        return ProcessPoolExecutor(
            self.count, pool_context, initializer=_begin, initargs=(self.problem, self.beats)
        )

    def evaluate(self, points: Sequence[Point]) -> Iterator[Evaluation]:
        left, tries = list(points), TRIES
        size = min(NEIGHBOURS, max(1, len(left) // (TASKS * self.count)))
        while left:
            try:
                for piece in [self.pool.submit(_evaluate_mine, x) for x in _pieces(left, size)]:
                    found = self._result(piece)
                    left, tries = left[len(found) :], TRIES
                    yield from found
            except BrokenProcessPool:
                tries -= 1
                if not tries:
                    raise RunError(
                        f"a worker process died {TRIES} times at the same points, the first is {left[0]}; "
                        "run with --workers 1 to see why"
                    ) from None
                self.close()
                self.pool = self._start()

    def _result(self, piece: Future[list[Evaluation]]) -> list[Evaluation]:
        """Waits for it, and for signs of life of all processes."""
        while True:
            try:
                return piece.result(self.beats.tick_seconds)
            except TimeoutError:
                if self.beats.kill_stopped():
                    self.note = (
                        f"a worker process gave no sign of life for {self.timeout:g} s: it was replaced, and its points "
                        "were evaluated again"
                    )

    def close(self) -> None:
        """Nothing of what the processes still do is wanted; one that is stopped could not even be asked to end."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        # Those that have not begun, too: a lock that a killed one held stays held.
        for process in self.context.made:
            if process.pid is not None:
                process.kill()


class Cluster:
    """A dask.distributed cluster. A worker that dies is replaced by another one for its points, by the scheduler.

    fallback: whether this process goes on where the scheduler is lost.
    """

    note = ""

    def __init__(self, problem: TilingProblem, address: str, fallback: bool = False) -> None:
        self.problem, self.address, self.fallback = problem, address, fallback
        if isinstance(problem, KernelProblem):
            name_of(problem.kernel)
        try:
            from distributed import Client
        except ImportError:
            raise UsageError(
                "a cluster needs dask.distributed: pip install 'ascendtile[cluster]', or give --workers a number"
            ) from None
        _knock(address)
        logging.getLogger("distributed.client").setLevel(
            logging.CRITICAL
        )  # what is lost is said here, without a stack trace
        try:
            connect: Any = Client
            self.client: Any = connect(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError) as e:  # TypeError: TLS without certificates
            raise _no_cluster(address, e) from None
        self._check()
        if isinstance(problem, KernelProblem):
            self._import(problem)

    def _import(self, problem: KernelProblem) -> None:
        """Workers and scheduler import the kernel by its name: what that misses is said here, dask has no message for it."""
        needed = problem.wanted()
        try:
            self.client.run(imported, *needed)
            self.client.run_on_scheduler(imported, *needed)
        except (ImportError, AttributeError) as e:
            self.client.close()
            raise UsageError(
                f"the cluster cannot import {needed[1]} ({type(e).__name__}: {e}); put it where scheduler and workers look "
                "for modules (PYTHONPATH) and start them again, or give workers a number of processes"
            ) from None

    def _check(self) -> None:
        """All workers must run this version: others would give other numbers."""
        found = self.client.run(engine_version)
        odd = [w for w, version in found.items() if version != engine_version()]
        if odd or not found:
            self.client.close()
            raise UsageError(
                f"worker {odd[0]} runs another version of ascendtile; install the same one everywhere and start "
                "`dask worker` again"
                if odd
                else "the cluster has no workers; start some with `dask worker` and the address of the scheduler"
            )

    def evaluate(self, points: Sequence[Point]) -> Iterator[Evaluation]:
        done = 0
        try:
            for found in self._results(points):
                done += 1
                yield found
        except (CancelledError, OSError, TimeoutError) as e:
            lost = f"the cluster at {self.address} was lost ({' '.join(str(e).split())[:100]})"
            if not self.fallback:
                raise RunError(
                    f"{lost}; what was stored before is safe: start it and run the same command again, or add --fallback "
                    "to go on here"
                ) from None
            self.note = f"{lost}: the rest ran in this process"
            yield from Here(self.problem).evaluate(points[done:])

    def _results(self, points: Sequence[Point]) -> Iterator[Evaluation]:
        from distributed import KilledWorker

        pieces = _pieces(points, PIECE)
        futures = [self.client.submit(_evaluate, self.problem, x, pure=False, retries=TRIES) for x in pieces]
        try:
            for future in futures:
                yield from future.result()
        except KilledWorker as e:
            raise RunError(f"the cluster lost every worker that tried some points: {e}") from None
        except (RuntimeError, ImportError) as e:  # of a scheduler, or a worker that came later
            raise UsageError(
                f"the cluster does not take the work: {' '.join(str(e).split())[:200]}; scheduler and workers need the same "
                "ascendtile, and the modules of the kernel and of its grid"
            ) from None
        finally:
            self.client.cancel(futures)

    def close(self) -> None:
        self.client.close()


class NoClusterError(UsageError):
    """Nobody answers at the address."""


def _knock(address: str) -> None:
    """See who answers before dask does, which tries again for a minute."""
    found = urlsplit(address)
    try:
        host, port = found.hostname, found.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise _no_workers(address)
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as e:
        raise _no_cluster(address, e) from None


def _no_cluster(address: str, e: Exception) -> NoClusterError:
    return NoClusterError(
        f"no cluster answers at {address} within {CONNECT_SECONDS} s ({type(e).__name__}: {' '.join(str(e).split())[:60]}); "
        "start one with `dask scheduler` and `dask worker`, give --workers a number of processes, or --fallback to go on "
        "here"
    )


@contextlib.contextmanager
def open_workers(
    problem: TilingProblem,
    workers: int | str,
    fallback: bool = False,
    timeout: float = STOPPED_SECONDS,
) -> Iterator[Workers]:
    """workers: 1 for this process, a number of processes, or the address of a cluster ("tcp://host:8786").

    fallback: whether a cluster that does not answer, or is lost, is replaced by this process. timeout: seconds without a
    sign of life after which a process of this machine is replaced; a cluster has a time of its own (`worker-ttl`).
    """
    made = _open(problem, workers, fallback, timeout)
    try:
        yield made
    finally:
        made.close()


def _open(problem: TilingProblem, workers: int | str, fallback: bool, timeout: float) -> Workers:
    if isinstance(workers, str) and workers.partition("://")[0] in SCHEMES:
        try:
            return Cluster(problem, workers, fallback)
        except NoClusterError:
            if not fallback:
                raise
            silent = f"no cluster answered at {workers} within {CONNECT_SECONDS} s"
            return Here(problem, f"{silent}: everything ran in this process")
    count = _count(workers)
    return Here(problem) if count == 1 else Processes(problem, count, timeout)


def _count(workers: int | str) -> int:
    with contextlib.suppress(ValueError, TypeError):
        if int(workers) >= 1:
            return int(workers)
    raise _no_workers(workers)


def _no_workers(given: int | str) -> UsageError:
    return UsageError(
        f"workers must be a number from 1, or an address such as tcp://host:8786, got {given!r}"
    )


def _pieces(points: Sequence[Point], size: int) -> list[list[Point]]:
    return [list(points[k : k + size]) for k in range(0, len(points), size)]


_mine: list[TilingProblem] = []


def _begin(problem: TilingProblem, beats: Heartbeats) -> None:
    """A new process of a pool: Ctrl-C is for the one that started it."""
    beats.begin()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _mine[:] = [problem]


def _evaluate_mine(points: list[Point]) -> list[Evaluation]:
    return _evaluate(_mine[0], points)


def _evaluate(problem: TilingProblem, points: list[Point]) -> list[Evaluation]:
    return [problem.evaluate(p) for p in points]
