"""Branches and loops. Where programs branch differently, each group goes on by itself; values are merged afterwards.

`self.active` holds the numbers of the programs that run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..ir.program import Op, Region, Value
from .faults import place
from .merging import merge
from .state import DataDependentError, Frame, InterpreterState
from .two_cores.endless import EndlessLoop
from .two_cores.spin import Waits
from .values import Opaque, take


class Flow(InterpreterState):
    """The part of the interpreter that follows control flow."""

    def hand_on(
        self, given: Sequence[Value | None], targets: Sequence[Sequence[Value]], frame: Frame
    ) -> None:
        """A loop or branch hands values on; see `IndexOverflows.hand_on`."""
        if self.overflows.begun:
            self.overflows.hand_on(given, targets, frame, self.programs)

    def look_at_decision(self, op: Op, frame: Frame) -> None:
        """Whether a branch or loop goes by a number that did not fit in its type."""
        if self.overflows.begun:
            self.overflows.decision(op, frame, self.programs)

    def truth(self, op: Op, x: Any) -> bool | np.ndarray:
        if isinstance(x, Opaque):
            raise DataDependentError(
                f"{place(op)}: the `{op.kind}` depends on loaded data, which a run without values does not have"
            )
        if not isinstance(x, np.ndarray):
            return bool(x)
        if x.all():
            return True
        return x if x.any() else False

    def op_if(self, op: Op, frame: Frame) -> None:
        self.look_at_decision(op, frame)
        x = self.truth(op, frame.get(op.operand(0)))
        then, other = op.regions
        if not isinstance(x, np.ndarray):
            taken = then if x else other
            inner = Frame(frame)  # its tiles are freed with it
            self.region(taken, inner)
            self.hand_on(taken.yields, [op.results], inner)
            self.branch_ends(op, taken)
            for r, y in zip(op.results, taken.yields, strict=True):
                frame.values[r.id] = inner.get(y)
            return
        parts = [(np.flatnonzero(x), then), (np.flatnonzero(~x), other)]
        results = [(index, self.subset(op, region, frame, index)) for index, region in parts]
        for k, r in enumerate(op.results):
            frame.values[r.id] = merge([(i, y[k]) for i, y in results], len(self.active))

    def subset(self, op: Op, region: Region, frame: Frame, index: np.ndarray) -> list[Any]:
        """Walk a branch for the programs at `index` of the active ones; gives what it yields."""
        before, self.active = self.active, self.active[index]
        inner = Frame(frame, index)
        self.region(region, inner)
        self.hand_on(region.yields, [op.results], inner)
        self.branch_ends(op, region)
        self.active = before
        return [inner.get(y) for y in region.yields]

    def step(self, op: Op) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            site, others = self.site(op), len(self.programs) - 1
            raise site.error(
                f"more than {self.step_limit} loop iterations (step_limit); the loop may never end "
                f"({site.program(self.programs[0])}{f' and {others} others' if others else ''} still in it). "
                "Raise it with sim.device(step_limit=...) if it is meant to"
            )

    def op_for(self, op: Op, frame: Frame) -> None:
        self.look_at_decision(op, frame)
        lower, upper, step = (frame.get(v) for v in op.args[:3] if v is not None)
        if any(isinstance(x, Opaque) for x in (lower, upper, step)):
            raise DataDependentError(
                f"{place(op)}: a loop bound depends on loaded data, which this run does not have"
            )
        if step == 0 if isinstance(step, int) else not step.all():
            site, zeros = self.site(op), np.atleast_1d(np.asarray(step) == 0)
            raise site.error(f"the step of the range is zero in {site.program(self.first_program(zeros))}")
        trip_counts = trip_count_of(lower, upper, step)
        carried = [frame.get(v) for v in op.args[3:] if v is not None]
        self.hand_on(op.args[3:], [op.regions[0].args[1:], op.results], frame)
        self.loop_begins(op)
        if isinstance(trip_counts, int):
            carried = self.iterations(op, frame, lower, step, 0, trip_counts, carried)
        else:
            carried = self.uneven_trip_counts(op, frame, lower, step, trip_counts, carried)
        self.loop_done(op)
        for r, x in zip(op.results, carried, strict=True):
            frame.values[r.id] = x

    def iterations(
        self, op: Op, frame: Frame, lower: Any, step: Any, first: int, last: int, carried: list[Any]
    ) -> list[Any]:
        body = op.regions[0]
        for k in range(first, last):
            self.step(op)
            self.iteration_begins(op, k)
            inner = Frame(frame)
            inner.values[body.args[0].id] = lower + k * step
            for a, x in zip(body.args[1:], carried, strict=True):
                inner.values[a.id] = x
            self.region(body, inner)
            self.hand_on(body.yields, [body.args[1:], op.results], inner)
            carried = [inner.get(y) for y in body.yields]
            self.iteration_ends(op)
        return carried

    def uneven_trip_counts(
        self, op: Op, frame: Frame, lower: Any, step: Any, trip_counts: np.ndarray, carried: list[Any]
    ) -> list[Any]:
        """Programs with different trip counts run side by side; each leaves after its own last iteration."""
        count = len(self.active)
        finished: list[tuple[np.ndarray, list[Any]]] = []
        index = np.arange(count)
        done = 0
        for stop in sorted(set(trip_counts.tolist())):
            if stop > done:
                carried = self.group_iterations(op, frame, index, lower, step, done, stop, carried, count)
                done = stop
            leaving = trip_counts[index] == stop
            finished.append((index[leaving], [take(x, np.flatnonzero(leaving)) for x in carried]))
            stay = np.flatnonzero(~leaving)
            carried = [take(x, stay) for x in carried]
            index = index[stay]
        return [merge([(i, xs[k]) for i, xs in finished], count) for k in range(len(carried))]

    def group_iterations(
        self,
        op: Op,
        frame: Frame,
        index: np.ndarray,
        lower: Any,
        step: Any,
        first: int,
        last: int,
        carried: list[Any],
        count: int,
    ) -> list[Any]:
        if len(index) == count:
            return self.iterations(op, frame, lower, step, first, last, carried)
        before, self.active = self.active, self.active[index]
        out = self.iterations(
            op, Frame(frame, index), take(lower, index), take(step, index), first, last, carried
        )
        self.active = before
        return out

    def op_while(self, op: Op, frame: Frame) -> None:
        carried = [frame.get(v) for v in op.args if v is not None]
        targets = [op.regions[0].args, op.regions[1].args, op.results]
        self.hand_on(op.args, targets, frame)
        self.loop_begins(op)
        count = len(self.active)
        index = np.arange(count)
        finished: list[tuple[np.ndarray, list[Any]]] = []
        all_active = self.active
        iteration = 0
        waits = Waits(self, op)
        while len(index):
            self.step(op)
            self.iteration_begins(op, iteration)
            spin = waits.look(iteration, carried, len(index))
            iteration += 1
            self.active = all_active[index]
            inner = frame if len(index) == count else Frame(frame, index)
            truth, condition = self.while_part(op, 0, inner, carried)
            self.look_at_decision(op, condition)
            going = self.truth(op, truth[0])
            if isinstance(going, np.ndarray) or not going:
                stop = ~going if isinstance(going, np.ndarray) else np.ones(len(index), bool)
                finished.append((index[stop], [take(x, np.flatnonzero(stop)) for x in carried]))
                stay = np.flatnonzero(~stop)
                carried = [take(x, stay) for x in carried]
                index = index[stay]
                if not len(index):
                    break
                self.active = all_active[index]
                inner = Frame(frame, index)
            carried, body = self.while_part(op, 1, inner, carried)
            self.hand_on(op.regions[1].yields, targets, body)
            if spin is not None and not waits.go_on(spin, inner, carried, len(index)):
                raise EndlessLoop(self, op, spin.condition, iteration - spin.iteration).error(
                    partial(self._once_more, op, inner, carried)
                )
            self.iteration_ends(op)
        self.active = all_active
        self.loop_done(op)
        for k, r in enumerate(op.results):
            frame.values[r.id] = merge([(i, xs[k]) for i, xs in finished], count)

    def _once_more(self, op: Op, frame: Frame, carried: list[Any]) -> None:
        for which in (0, 1):
            self.while_part(op, which, frame, carried)

    def while_part(self, op: Op, which: int, frame: Frame, carried: list[Any]) -> tuple[list[Any], Frame]:
        region = op.regions[which]
        inner = Frame(frame)
        for a, x in zip(region.args, carried, strict=True):
            inner.values[a.id] = x
        self.region(region, inner)
        return [inner.get(y) for y in region.yields], inner


def trip_count_of(lower: Any, upper: Any, step: Any) -> Any:
    """The trip count of a `for`: an int if it is the same in all programs, else one for each program."""
    if all(isinstance(x, int) for x in (lower, upper, step)):
        return len(range(lower, upper, step))
    span = np.asarray(upper - lower)
    found = np.maximum(0, -(-span // step))
    return int(found[0]) if found.ndim and (found == found[0]).all() else found
