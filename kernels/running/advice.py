"""What a caller can change: where a tiling does not fit, knobs with which it does, or the sizes; else one knob at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...simulator.device import Device, device
from ...simulator.errors import AscendtileError, BufferOverflowError
from ...simulator.interpreter.tensors import Shape
from ...simulator.launch import fit
from ...simulator.products import Product
from ...simulator.timing.sizes_that_fit import sizes_that_fit
from ...simulator.trials.search import Trials, neighbours
from ..operator.operator import Operator
from ..operator.parameter import Parameter
from ..operator.plan import Plan, PlanContext
from ..operator.tensors import Knobs, Options
from .fitting import plan_that_fits
from .launching import call_of, timed_steps


@dataclass(frozen=True)
class Advice:
    """What the caller of an operator can change where a tiling does not fit.

    tensors: shapes of the inputs. used: the knobs as they were used; asked: those that the caller gave.
    """

    op: Operator
    tensors: Mapping[str, Shape]
    options: Options
    product: Product
    used: Mapping[str, Any]
    asked: Mapping[str, Any]

    def message(self, names: Collection[str]) -> str:
        """Sentences about the knobs of these names, never about the sizes of a kernel inside."""
        free = [n for n in self.asked if self._fits_without(n)]
        least = f"Without tiling {' or without '.join(f'{n}={self.asked[n]}' for n in free)} it fits."
        found = [self._knobs_that_fit(names), least if free else ""]
        if not any(found) and self.asked and self._fits_without(*self.asked):
            found = [f"Without tiling {', '.join(f'{n}={x}' for n, x in self.asked.items())} it fits."]
        return " ".join(x for x in found if x) or self._sizes()

    def _knobs_that_fit(self, names: Collection[str]) -> str:
        """A sentence with values of each knob that were tried and fit; empty if no single one helps."""
        found = []
        for p in self.op.parameters:
            now = self.used.get(p.name)
            if p.name not in names or p.kind != "int" or isinstance(now, bool) or not isinstance(now, int):
                continue
            if values := self._values_that_fit(p, now):
                found.append(f"{p.name}={' or '.join(map(str, values))} (now {now})")
        return f"Of {self.op.name}'s knobs, tried and fits: {'; or '.join(found)}." if found else ""

    def _values_that_fit(self, p: Parameter, now: int) -> list[int]:
        """As the operator really uses them."""
        used: dict[int, int | None] = {}

        def fits(n: int) -> bool:
            used[n] = self._used(p.name, n)
            return used[n] is not None

        sizes = sizes_that_fit(now, fits, max(p.low or 1, p.multiple)) if now > (p.low or 1) else []
        return sorted({x for n in sizes if (x := used[n]) is not None and x != now})

    def _used(self, name: str, value: int) -> int | None:
        """The value that the operator really uses when asked for `value` beside the other knobs, if everything then fits."""
        tiling = self._fitting({**self.asked, name: value})
        used = None if tiling is None else tiling.get(name)
        return used if isinstance(used, int) and used <= value else None

    def _fits_without(self, *names: str) -> bool:
        """Whether the operator's own choice fits in place of these knobs."""
        rest = {n: x for n, x in self.asked.items() if n not in names}
        return self._fitting(rest) is not None

    def _fitting(self, asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Every knob as used when these are asked for; None if that does not fit."""
        context = PlanContext(self.product, False)
        try:
            plan = plan_that_fits(self.op, self.tensors, self.options, self.op.read_tiling(asked), context)
            for step in plan.steps:
                fit(call_of(step))
        except AscendtileError:
            return None
        return plan.tiling

    def _sizes(self) -> str:
        given = ", ".join(f"{n} {list(x.shape)}" for n, x in self.tensors.items())
        return (
            f"Tried for {given} on {self.product.name}: what {self.op.name} chooses for less and less room, and each of "
            "its knobs alone at other values; none fits. Give several knobs at once, or make the tensors smaller."
        )


def numbers_of(e: BufferOverflowError) -> str:
    """The kernel, the buffer and both numbers, without the tiles that are alive."""
    return e.words.split(". Alive at the peak")[0]


def trials(
    op: Operator, tiling: Knobs, machine: Device, now_us: float, replan: Callable[[dict[str, Any]], Plan]
) -> Trials:
    """What was timed with one knob changed and the others as they were used, and what could not be.

    Numbers are doubled and halved while that helps, choices replaced by each other one. What the operator turns into the
    tiling that it was is left out, and so are knobs that it does not use here.
    """
    found = Trials()

    def time(name: str, value: Any) -> float | None:
        try:
            us = _time({**tiling, name: value}, tiling, replan)
        except AscendtileError as e:
            found.refuse(name, value, e)
            return None
        if us is not None:
            found.changes[f"{name} {tiling.get(name)} -> {value}"] = us
        return us

    with device(machine.product, values=False, time=True, timeline=0, explain=False, details=False):
        for p in op.parameters:
            now = tiling.get(p.name)
            if p.kind == "choice":
                for other in p.choices or ():
                    if other != now:
                        time(p.name, other)
            elif isinstance(now, int) and not isinstance(now, bool):
                list(neighbours(now, now_us, partial(time, p.name), partial(_takes, p)))
    return found


def _takes(p: Parameter, n: int) -> bool:
    return n >= max(1, p.low or 0) and (p.high is None or n <= p.high) and n % p.multiple == 0


def _time(
    tiling: dict[str, Any], used: Mapping[str, Any], replan: Callable[[dict[str, Any]], Plan]
) -> float | None:
    """None where the operator makes the tiling that is used of it."""
    plan = replan(tiling)
    return None if plan.tiling == dict(used) else sum(launch.time_us for launch in timed_steps(plan.steps))
