"""Evaluates what `instrument.py` has written while a launch runs, and tells what was used without having a value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ...interpreter.faults import place
from ...interpreter.state import InterpreterState
from ...interpreter.values import Affine, Pointers, take
from ...ir.program import Op, Program, Value
from ...messages import Message, fault
from ..access import Watcher
from .boxes import dense, is_full, within
from .instrument import DEFINED, instrumented
from .rules import RULES
from .taint import MIXING, Taint, is_source

MAYBE = ("load", "atomic", "select", "alloc")  # which have undefined elements or not, as masks will have it
MOST_PLACES = 3  # loads or buffers that one message names
# By the padding of a load: what has no value, for want of what, and what is known of it. Triton-Ascend's rule is that of
# `tl.load` in its python/triton/language/core.py.
_WITHOUT = {
    None: (
        "masked-out lanes",
        "other",
        "Triton leaves them undefined, and only Triton-Ascend's usual care_padding=True makes them 0",
    ),
    "random": (
        "masked-out lanes",
        "other",
        "with care_padding=False the device leaves in them what was there",
    ),
    "": ("elements outside of the block", "padding_option", "Triton leaves them undefined"),
}


class Used(NamedTuple):
    """What an operation uses without its having a value: of the first program, how many elements, and the first."""

    op: Op
    what: str
    program: str
    number: int
    element: str
    others: int


class UndefinedElements(Watcher):
    """The check of one program; `of` gives what a core's interpreter is to run in place of its part.

    silent: no faults are told; it is only known why an access or an assertion fails.
    """

    def __init__(self, program: Program, silent: bool = False) -> None:
        self.silent = silent
        self.taint = Taint(program)
        self.made = {r.id: op for op in program.walk() for r in op.results} if self.taint.values else {}
        self.arguments = _handed_in(program) if self.taint.values else {}
        self.dirty: set[int] = set()  # loads and selections (by id) of which some element was not defined
        self.used: dict[tuple[int, str], Used] = {}

    def of(self, part: Program) -> Program:
        """The whole or the part of one core with what says which elements are defined; itself where all are."""
        return instrumented(part, self.taint) if self.taint.values else part

    def evaluate(self, interpreter: InterpreterState, op: Op, args: list[Any]) -> Any:
        """The result of an operation of kind "defined"; None for what only asks."""
        if op.name == "required":
            self._require(interpreter, op, *args)
            return None
        found = RULES[op.name](op, *args)
        if op.name in (*MAYBE, "filled") and not is_full(found):
            self.dirty.add(op.attrs["of"].id)
        return found

    def _require(self, at: InterpreterState, op: Op, found: Any, mask: Any, pointer: Any) -> None:
        key = (op.attrs["of"].id, op.attrs["what"])
        if key in self.used or within(mask, found):
            return
        bad = ~dense(found) if mask is None else dense(mask) & ~dense(found)
        row = int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
        lanes, inner = bad[row], np.argwhere(np.atleast_1d(bad[row]))[0]
        number = int(at.programs[row if len(bad) > 1 else 0])
        element = _element(pointer, row, tuple(int(k) for k in inner)) if op.attrs["what"] == "value" else ""
        name = at.site(op).program(number)
        self.used[key] = Used(op.attrs["of"], op.attrs["what"], name, number, element, int(lanes.sum()) - 1)

    # -- messages ----------------------------------------------------------------------------------------------------

    def found(self) -> tuple[Message, ...]:
        """A fault for each use, at the load whose lanes they are, or at the use of what a buffer was not given."""
        return () if self.silent else tuple(self._message(u) for u in self.used.values())

    def behind(self, op: Op, what: str, program: int) -> str:
        """The sentence of what an operation of that program has used without a value; "" for nothing. what: see `used`."""
        use = self.used.get((op.id, what))
        return "" if use is None or use.number != program else self._message(use)

    def _message(self, use: Used) -> Message:
        sources = self._sources(use)
        loads = {place(s): (s, mixed) for s, mixed in sources if s.kind != "alloc"}
        if not loads:
            buffers = _first([f"{s.results[0].name} (line {s.loc.line})" for s, _ in sources])
            text = (
                f"{_doing(use, f'what was never written to {buffers}')}: on the device it holds what was there; write "
                "all of the buffer on every path, or use only the part that was written"
            )
            return fault(text, place(use.op), (use.number,))
        first = next(iter(loads))
        source, mixed = loads[first]
        them = (
            "them"
            if mixed is None
            else f"what the {mixed.name or mixed.kind} at line {mixed.loc.line} makes of them"
        )
        which = (
            "this load have"
            if len(loads) == 1
            else f"this load (or of those at {_first(list(loads)[1:])}) have"
        )
        if source.kind == "atomic":
            text = (
                f"masked-out lanes of this atomic_{source.name} give no old value, and {_doing(use, them)}: Triton leaves "
                "them undefined; take tl.where(mask, old, ...) before lanes are combined, or the same mask at the store"
            )
            return fault(text, first, (use.number,))
        lanes, way, why = _WITHOUT[source.attrs.get("padding")]
        text = (
            f"{lanes} of {which} no `{way}`, and {_doing(use, them)}: {why}; give "
            f"the load {way}=..., or take tl.where(mask, x, ...) before lanes are combined, or the same mask at the store"
        )
        return fault(text, first, (use.number,))

    def _sources(self, use: Used) -> list[tuple[Op, Op | None]]:
        """Loads and buffers that the value may come from, each with the operation nearest to it that mixes lanes."""
        at = {"address": use.op.args[:1], "mask": use.op.args[1 if use.op.kind == "load" else 2 :][:1]}
        first = at.get(use.what, use.op.args[1::2] if use.op.kind in ("store", "atomic") else use.op.args)
        if use.op.kind == "while":
            first = (*first, use.op.regions[0].yields[0])
        todo: list[tuple[Value, Op | None]] = [(v, None) for v in first if v is not None]
        seen: set[int] = set()
        out: dict[int, tuple[Op, Op | None]] = {}
        while todo:
            v, mixed = todo.pop(0)
            if v.id in seen or not self.taint.has(v):
                continue
            seen.add(v.id)
            op = self.made.get(v.id)
            if op is None:
                todo += [(x, mixed) for x in self.arguments.get(v.id, ())]
            elif op.kind in MAYBE and op.id not in self.dirty:
                continue
            elif is_source(op):
                out.setdefault(op.id, (op, mixed))
            else:
                inner = [(x, mixed) for r in op.regions for x in r.yields[-len(op.results) :]]
                mixed = op if op.kind in MIXING else mixed
                todo += [*((x, mixed) for x in op.args if x is not None), *inner]
        return list(out.values())


def instrument(part: Program, watchers: Iterable[Watcher]) -> Program:
    """What an interpreter of a program or part is to run for the watchers of its launch."""
    return next((w.of(part) for w in watchers if isinstance(w, UndefinedElements)), part)


def _handed_in(program: Program) -> dict[int, tuple[Value, ...]]:
    """Argument of a loop's body (by id) -> the values that it takes."""
    out: dict[int, tuple[Value, ...]] = {}
    for op in program.walk():
        if op.kind not in ("for", "while"):
            continue
        first, skip = (3, 1) if op.kind == "for" else (0, 0)
        for inner in op.regions:
            for k, a in enumerate(inner.args[skip:]):
                initial = op.args[first + k]
                out[a.id] = tuple(v for v in (initial, op.regions[-1].yields[k]) if v is not None)
    return out


def _element(pointer: Any, row: int, inner: tuple[int, ...]) -> str:
    """The element of the tensor that a lane of a program goes to."""
    if not isinstance(pointer, Pointers):
        return ""
    x = take(pointer.offsets, np.array([row]))
    x = x.elements() if isinstance(x, Affine) else np.atleast_1d(np.asarray(x))
    at = x[0][inner] if x.ndim > 1 else x[0]
    return f"element {int(at)} of {pointer.tensor.name!r}"


def _doing(use: Used, them: str) -> str:
    """What a program does with elements that have no value, where, and to how many."""
    op = use.op
    verb = {"store": "stores", "load": "loads"}.get(op.kind, f"makes an atomic_{op.name}")
    done = {
        "value": f"{verb} {them} to {use.element}"
        if op.kind == "store"
        else f"{verb} of {them} to {use.element}",
        "address": f"{verb} at addresses made of {them}",
        "mask": f"{verb} under a mask made of {them}",
        "condition": f"decides by {them} in `{op.kind}`",
    }
    more = f"; {use.others} more such elements in it" if use.others > 0 else ""
    return f"{use.program} {done[use.what]} (line {op.loc.line}{more})"


def _first(names: list[str]) -> str:
    more = f" and {len(names) - MOST_PLACES} more" if len(names) > MOST_PLACES else ""
    return f"{', '.join(names[:MOST_PLACES])}{more}"


__all__ = ["DEFINED", "UndefinedElements", "instrument"]
