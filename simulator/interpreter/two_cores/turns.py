"""Which part of a launch runs now, where programs or cores wait for each other.

One part runs at a time, each in a thread of its own that hands over where it has to wait; so the order is always the same.
Parts of one team, the two cores of a program, go on for each other first. Where none of them can, programs begin that have
not yet, as long as a core is free for them; then others go on that have waited, the last one first. As long as nobody
waits all is done in the thread that called.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable

from ...ir.program import Op

Work = Callable[[], None]


class _Abandoned(BaseException):
    """Ends the thread of a part that was given up."""


class Waiter:
    """A part: work with a thread of its own. team: what the parts of one program have in common.

    hang: makes the error of a part that waits for others of its team, if they wait as well; None for one that waits for
    memory, in `program` at `op`. seen: how much had changed when it last looked there, -1 if it does not. hung: whether
    nobody can go on any more.
    """

    def __init__(self, team: object) -> None:
        self.team = team
        self.turn = threading.Semaphore(0)
        self.thread: threading.Thread | None = None
        self.met: Callable[[], bool] = lambda: True
        self.hang: Callable[[], Exception] | None = None
        self.op: Op | None = None
        self.program = self.seen = -1
        self.since = 0
        self.hung = False

    @property
    def begun(self) -> bool:
        return self.thread is None or self.thread.ident is not None


class Turns:
    """The parts of a launch. more: work of programs that may begin now; None if there is none, or no core free for it.

    left: how many programs have not begun.
    """

    def __init__(self, more: Callable[[], Work | None] = lambda: None, left: Callable[[], int] = int) -> None:
        self.more = more
        self.left = left
        self.main = self.now = Waiter(object())
        self.parts = [self.main]
        self.ended: list[
            threading.Thread | None
        ] = []  # threads of parts that are over, and may be on their last line
        self.changes = 0  # turns in which anything was done
        self.failed: BaseException | None = None
        self.abandoned = False

    def run(self, work: Work) -> None:
        """Do the work in this thread, and what follows from it in others, until all is over and no thread is left."""
        try:
            work()
            self.wait(lambda: len(self.parts) == 1)
        except _Abandoned:
            assert self.failed is not None
            raise self.failed from None
        finally:
            self._give_up()

    def spawn(self, work: Work, team: object | None = None) -> Waiter:
        """A part that runs when its turn comes; of the team that runs now if none is given."""
        part = Waiter(team or self.now.team)
        context = contextvars.copy_context()
        part.thread = threading.Thread(target=context.run, args=(self._thread, part, work), daemon=True)
        self.parts.append(part)
        return part

    def wait(self, met: Callable[[], bool], hang: Callable[[], Exception] | None = None) -> None:
        """Let others run until `met`."""
        if not met():
            self.changes += 1
            self._give_way(met, hang)

    def give_way(self) -> None:
        """Let the others of the team go on that have waited, if they can, and then this part."""
        if any(p.begun and p.met() for p in self._mates(self.now)):
            self.changes += 1
            self._give_way(lambda: True, None)

    def others_go_on(self, op: Op, program: int, again: bool) -> bool:
        """Let others go on until anything has changed, for a part that waits for what is in memory; False if nobody can.

        again: whether it has found nothing new since it was here before.
        """
        me = self.now
        self.changes += not again
        me.op, me.program, me.seen = op, program, self.changes
        self._give_way(lambda: me.hung or me.seen < self.changes, None)
        me.seen = -1
        return not me.hung

    @property
    def waiting(self) -> list[Waiter]:
        """Those that wait for memory, by program."""
        return sorted((p for p in self.parts if p.seen >= 0), key=lambda p: p.program)

    # -- who is next -------------------------------------------------------------------------------------------------

    def _give_way(self, met: Callable[[], bool], hang: Callable[[], Exception] | None) -> None:
        me = self.now
        me.met, me.hang, me.since = met, hang, self.changes
        self._check_abandoned()
        found = self._next(me)
        if found is not me:
            self._wake(found)
            me.turn.acquire()
            self._check_abandoned()
        me.hang = None

    def _check_abandoned(self) -> None:
        if self.abandoned:
            raise _Abandoned

    def _wake(self, part: Waiter) -> None:
        self.now = part
        if part.begun or part.thread is None:
            part.turn.release()
        else:
            part.thread.start()

    def _next(self, me: Waiter) -> Waiter:
        """Who goes on where that part stops. Raises the error of parts that wait for each other."""
        mates = [*self._mates(me), *([me] if me in self.parts else [])]
        ready = next((p for p in mates if p.met()), None)
        if ready is not None:
            return ready
        if mates and all(p.hang is not None for p in mates):
            raise mates[-1].hang()  # type: ignore[misc]
        work = self.more()
        if work is not None:
            return self.spawn(work, object())
        others = (p for p in self.parts if p.team is not me.team and p.met())
        found = max(others, key=lambda p: p.since, default=None)
        return found or self._hung()

    def _mates(self, me: Waiter) -> list[Waiter]:
        return [p for p in self.parts if p.team is me.team and p is not me]

    def _hung(self) -> Waiter:
        """Nobody can go on: the first program that waits says so."""
        first = self.waiting[0]
        first.hung = True
        return first

    # -- threads -----------------------------------------------------------------------------------------------------

    def _thread(self, part: Waiter, work: Work) -> None:
        try:
            self._check_abandoned()
            work()
            self._check_abandoned()
            self.parts.remove(part)
            self.ended.append(part.thread)
            self.changes += 1
            self._wake(self._next(part))
        except _Abandoned:
            return
        except BaseException as e:  # goes on in the thread that all began in
            self.failed, self.abandoned = e, True
            self.main.turn.release()

    def _give_up(self) -> None:
        self.abandoned = True
        begun = [p.thread for p in self.parts if p.begun]
        for p in self.parts:
            p.turn.release()
        for thread in (*begun, *self.ended):
            if thread is not None:
                thread.join()


__all__ = ["Turns", "Waiter"]
