"""Records of kernels that run on both Vector cores beside a Cube core (`sub_vec_id`).

A walk has two lanes a program, one for each Vector core. Here they become one program's records: what a Vector core does is
recorded once for each of them, on pipes and in buffers of its own, what the Cube does once. A tile that goes from the
Vector part into a product is sent by both, as the compiled code of both says so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from ..placement.memory_spaces import UB
from ..trace.recorder import Recorder, Redirected
from .context import Plan

CUBE_UNIT = "AIC"


class Pair:
    """Pipes and slots of two Vector cores beside each other: those of the first, and where the second has the same."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        pipes = plan.wiring.machine.pipes
        self.own = {p for p, spec in enumerate(pipes) if spec.unit != CUBE_UNIT}
        self.shift = len(self.own) // 2
        self.private = {s.number + k for s in plan.placement.slots if s.space == UB for k in range(s.copies)}

    def drains(self, first: dict[int, int]) -> dict[int, int]:
        """Slots that records wait on, by pipe, of both."""
        return {**first, **{p + self.shift: self.copy(s) for p, s in first.items() if p in self.own}}

    def slots(self, slots: tuple[int, ...], sub: int, pipe: int, reading: bool) -> tuple[int, ...]:
        """Slots as one Vector core has them; the Cube's side, and who waits in a barrier, mean those of both."""
        out: list[int] = []
        for s in slots:
            if not self._is_private(s):
                out.append(s)
            elif pipe in self.own and not (reading and self.plan.key_of(s) == ("arrived", "vector")):
                out.append(self.copy(s) if sub else s)
            else:
                out += (s, self.copy(s))
        return tuple(out)

    def _is_private(self, slot: int) -> bool:
        if slot in self.private:
            return True
        key = self.plan.key_of(slot)
        if key is None:
            return False
        return key[:2] in (("flag", "vector"), ("arrived", "vector")) or (
            key[0] == "drain" and key[1] in self.own
        )

    def copy(self, slot: int) -> int:
        return self.plan.extra_slot(("second", slot))


class SubRecorder(Redirected):
    """Takes records of `2 * programs` lanes and keeps those of `programs` programs.

    Lane numbers: 0 to programs - 1 for the first Vector core, `total` more for the second, as `run.lanes` has them.
    """

    def __init__(self, programs: int, total: int, plan: Plan) -> None:
        super().__init__(2 * programs)
        self.lanes = programs
        self.total = total
        self.plan = plan
        self.pair = Pair(plan)
        self.own, self.shift = self.pair.own, self.pair.shift
        self.kept = Recorder(programs)

    def add(self, pipe: int, line: int, **what: Any) -> None:
        if not self.kept.drains and self.drains:
            self.kept.drains = self.pair.drains(self.drains)
        active, amount = what.pop("active", None), what.pop("amount", 0)
        slots = {n: what.pop(n, ()) for n in ("reads", "writes", "clobbers")}
        for sub in (0, 1) if pipe in self.own else (0,):
            chosen = self._chosen(sub, active)
            if chosen is None:
                continue
            rows, mine = chosen
            part = (
                amount[rows] if isinstance(amount, np.ndarray) and amount.ndim and len(amount) > 1 else amount
            )
            moved: dict[str, Any] = {n: self.pair.slots(s, sub, pipe, n == "reads") for n, s in slots.items()}
            self.kept.add(pipe + sub * self.shift, line, amount=part, active=mine, **moved, **what)

    def _chosen(self, sub: int, active: np.ndarray | None) -> tuple[Any, np.ndarray | None] | None:
        """Rows of the lanes of one Vector core, and its programs (None for all); None if there is none."""
        if active is None:
            return slice(sub * self.lanes, (sub + 1) * self.lanes), None
        rows = np.flatnonzero((active >= self.total) == bool(sub))
        if not len(rows):
            return None
        return rows, None if len(rows) == self.lanes else active[rows] - sub * self.total

    def settle(self) -> None:
        self.kept.flag_slots = self.flag_slots
        self.kept.settle()

    @property
    def records(self) -> int:
        return self.kept.records

    def trace(self, slots: int, flags: Collection[int] = ()) -> Any:
        return self.kept.trace(slots, flags)


class BothLanes(Redirected):
    """Records of the Cube's part, walked with one lane a program, for a `SubRecorder`: what they ask of the Vector cores
    is asked of both.
    """

    def __init__(self, kept: SubRecorder) -> None:
        super().__init__(kept.lanes)
        self.all = kept

    def add(self, pipe: int, line: int, **what: Any) -> None:
        active, amount = what.pop("active", None), what.pop("amount", 0)
        if active is not None:
            active = np.concatenate([active, active + self.all.total])
        if isinstance(amount, np.ndarray) and amount.ndim and len(amount) > 1:
            amount = np.concatenate([amount, amount])
        self.all.add(pipe, line, active=active, amount=amount, **what)

    def settle(self) -> None:
        self.all.settle()


class TurnsRecorder(Redirected):
    """Takes the records of one Vector core and puts them on the pipes of two. `core`: whose turn it is, None for both."""

    def __init__(self, programs: int, plan: Plan) -> None:
        super().__init__(programs)
        self.pair = Pair(plan)
        self.wiring = plan.wiring
        self.core: int | None = None

    def _cores(self, pipe: int) -> tuple[int, ...]:
        if pipe not in self.pair.own:
            return (0,)
        if self.core is not None:
            return (self.core,)
        return (0,) if pipe == self.wiring.mte3 else (0, 1)

    def add(self, pipe: int, line: int, **what: Any) -> None:
        if self.drains and pipe in self.drains and len(self.drains) == len(self.pair.plan.drains):
            self.drains = self.pair.drains(self.drains)
        cores = self._cores(pipe)
        shift = self.pair.shift if pipe in self.pair.own else 0
        slots = {n: what.pop(n, ()) for n in ("reads", "writes", "clobbers")}
        channel = what.pop("channel", -1)
        for sub in cores:
            mine: dict[str, Any] = {n: self.pair.slots(s, sub, pipe, n == "reads") for n, s in slots.items()}
            again = (
                sub and len(cores) > 1 and channel == self.wiring.read[0]
            )  # the second core finds it in L2
            mine["channel"] = self.wiring.read[1] if again else channel
            super().add(pipe + sub * shift, line, **mine, **what)
