"""What is said of a `while` that never ends: what it waits for, why nobody changes that, and who waits as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import RunError
from ...ir.located_errors import at_line
from ...ir.pointer_roots import pointer_roots
from ...ir.program import Op
from ..flat_pointers import FlatMemory
from ..tensors import Tensor, overlap
from ..values import Affine, Opaque, Pointers, take
from .condition import WRITES, Condition, inside_of
from .turns import Waiter


class EndlessLoop:
    """A `while` of the programs that run. state: the interpreter. each: how many iterations change nothing together."""

    def __init__(self, state: Any, op: Op, condition: Condition, each: int) -> None:
        self.state, self.op, self.condition, self.each = state, op, condition, each

    def error(self, run_once: Callable[[], Any]) -> RunError:
        """What is waited for, and why nobody changes it. run_once: runs the condition and the body once more."""
        state, site = self.state, self.state.site(self.op)
        reads = self._reads(run_once)
        others = len(state.programs) - 1
        who = f"{site.program(state.programs[0])}{f' and {others} others' if others else ''}"
        why = "nothing that its condition depends on changes any more"
        if self.each > 1:
            why = f"what its condition depends on is the same again every {self.each} iterations"
        text = f"hang in {who}: the loop never ends, as {why}"
        if not reads:
            return RunError(at_line(self.op.loc, f"{text}. Let the loop change it until the condition fails"))
        op, pointer, got = reads[0]
        why, stores = self._why(pointer.tensor)
        what = f"it waits for {_element(pointer, got)}, {why}"
        here = [at_line(o.loc, "stores to it") for o in stores]
        read = [at_line(op.loc, "reads it")] if op.loc.line != self.op.loc.line else []
        lines = [*read, *dict.fromkeys(here), *(self._where_others_wait() if stores else ())]
        return RunError("\n".join([at_line(self.op.loc, f"{text}: {what}"), *lines]))

    def _reads(self, run_once: Callable[[], Any]) -> list[tuple[Op, Pointers, Any]]:
        """(operation, its pointer, what it gives) of each read that the condition depends on."""
        found: list[tuple[Op, Pointers, Any]] = []
        wanted = self.condition.reads
        before = {name: getattr(self.state, name) for name in ("load", "atomic")}

        def spied(name: str) -> Any:
            def read(op: Op, pointer: Pointers, *rest: Any) -> Any:
                got = before[name](op, pointer, *rest)
                if op.id in wanted:
                    found.append((op, pointer, got))
                return got

            return read

        vars(self.state).update({name: spied(name) for name in before})
        try:
            run_once()
        finally:
            for name in before:
                del vars(self.state)[name]
        return found

    def _why(self, tensor: Tensor) -> tuple[str, list[Op]]:
        """Why the memory does not change, and what could change it."""
        stores = self._stores(tensor)
        inside = any(o.kind in WRITES for o in inside_of(self.op))
        if not stores:
            where = " outside of the loop" if inside else ""
            return (
                f"and no program of the launch stores to it{where}: let one store to it before the wait",
                stores,
            )
        own = self.op.attrs.get("core")
        if any(o.attrs.get("core") not in (None, own) for o in stores):
            return (
                "and the other core stores to it, but nothing says when: without a flag that it waits for, a program is "
                "run in the order of its source. Let the cores pass one (sync_block_set, sync_block_wait)",
                stores,
            )
        return self._why_not_by_others(), stores

    def _why_not_by_others(self) -> str:
        state, left = self.state, 0 if self.state.turns is None else self.state.turns.left()
        if state.lanes_begun > len(state.active):
            return (
                "and those that could store to it have left the loop: programs that meet in al.sync_block_all, and the two "
                "Vector cores of one, are run in step here, and go on when the last one leaves it. Let them wait for each "
                "other in sync_block_all alone"
            )
        if left:
            return (
                f"and no core is free for a program that could store to it: those that have begun wait, and {left} have "
                "not. On the device, too, a program begins where another one has ended: start at most as many as there "
                "are cores and loop in them, or let programs wait for lower numbers only"
            )
        if self._others():
            return "and the programs that could store to it wait, too: let one of them store before it waits"
        return "and no program is left that could store to it: let one store to it before the wait"

    def _others(self) -> list[Waiter]:
        """Parts that wait for memory as well."""
        return [] if self.state.turns is None else self.state.turns.waiting

    def _where_others_wait(self) -> list[str]:
        at: dict[int, list[Waiter]] = {}
        for p in self._others():
            at.setdefault(id(p.op), []).append(p)
        name = self.state.site(self.op).program
        return [
            at_line(p.op.loc, f"{name(p.program)}{_and_others(more)} here")
            for p, *more in at.values()
            if p.op is not None
        ]

    def _stores(self, tensor: Tensor) -> list[Op]:
        exchange = self.state.exchange
        whole = self.state.program if exchange is None else exchange.whole
        anywhere = isinstance(tensor, FlatMemory)
        names = {t.name for t in self.state.known.given if anywhere or overlap(t, tensor)}
        roots, own = pointer_roots(whole), {o.id for o in inside_of(self.op)}
        return [
            o
            for o in whole.walk()
            if o.kind in WRITES
            and o.id not in own
            and not names.isdisjoint(roots.get(o.operand(0).id) or names)
        ]


def _element(pointer: Pointers, got: Any) -> str:
    """What is read, of the first program: "element 3 of 'flag', which is 0"."""
    at: Any = take(pointer.offsets, np.zeros(1, np.int64))
    at = np.asarray(at.elements() if isinstance(at, Affine) else at).reshape(-1)
    low, high = int(at.min()), int(at.max())
    where = "memory" if isinstance(pointer.tensor, FlatMemory) else repr(pointer.tensor.name)
    if len(at) > 1:
        return f"elements {low} to {high} of {where}"
    value = "" if isinstance(got, Opaque) else f", which is {np.asarray(got).reshape(-1)[0]}"
    return f"element {low} of {where}{value}"


def _and_others(more: Sequence[Waiter]) -> str:
    return f" and {len(more)} other{'s' if len(more) > 1 else ''} wait" if more else " waits"
