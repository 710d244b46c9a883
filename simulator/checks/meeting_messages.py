"""What is said of two accesses to one element that nothing orders."""

from __future__ import annotations

from ..interpreter.faults import place
from ..ir.program import Op
from ..messages import Message, fault, note
from .access import Access
from .memory_map import Meeting

WAYS_OUT = {
    "store": "give each of them elements of its own, or combine with an atomic",
    "load": "let one launch write what the next one reads, or write to another tensor",
    "atomic": "store before the atomic that tells the other program of it, and load after its own one",
    "number": "give each number elements of its own, combine with an atomic, or take a lock",
    "barrier": "a barrier orders what its kind of cores did and had heard of: let the core wait for the other one's flag "
    "before it, or take sync_block_all of mode 'all'",
    "relaxed": "store before the atomic that tells the other program of it, and load after its own one, both of "
    "sem='acq_rel': a relaxed one orders nothing else, nor one of scope='cta' "
    "other programs; 'acquire' and 'release' order one side",
}


def unordered(a: Access, met: Meeting, other: Op, way: str, names: set[str]) -> Message:
    """The message about two programs. way: the key of `WAYS_OUT`, "" for that of the two accesses.

    names: of the arguments that share the memory.
    """
    p, q = int(met.agent), int(a.programs[met.lane])
    sides = sorted(((p, other), (q, a.op)), key=lambda side: side[0])
    (p, one), (q, two) = sides
    element = f"element {met.element} of {a.tensor.name!r}{_shared(a.tensor.name, names)}"
    if met.equal:
        text = f"programs {p} and {q} both store the same value to {element} ({_lines(one, two)})"
        return note(f"{text}: legal, and one of them would do", place(one), (p, q))
    if p == q:
        text = (
            f"program {p} {_does(one)} {element} and {_does(two)} it with another number that an atomic handed out "
            f"({_lines(one, two)}), which another program may draw: on the device {_then(one, two)}"
        )
        return fault(f"{text}; {WAYS_OUT['number']}", place(one), (p,))
    if one.kind == two.kind == "store":
        text = (
            f"programs {p} and {q} both store to {element} ({_lines(one, two)}) without an atomic: on the device either "
            "value may stay"
        )
    else:
        text = (
            f"program {p} {_does(one)} {element} and program {q} {_does(two)} it ({_lines(one, two)}), and nothing says "
            f"which comes first: on the device {_then(one, two)}"
        )
    return fault(f"{text}; {_way_out(one, two, way)}", place(one), (p, q))


def _shared(name: str, names: set[str]) -> str:
    others = " and ".join(repr(x) for x in sorted(names - {name}))
    return f" (which shares memory with {others})" if others else ""


def _way_out(one: Op, two: Op, way: str) -> str:
    return WAYS_OUT[way or ("load" if "load" in (one.kind, two.kind) else "store")]


def _does(op: Op) -> str:
    if op.kind == "load":
        return "loads"
    return "stores to" if op.kind == "store" else f"updates (atomic_{op.name})"


def _then(one: Op, two: Op) -> str:
    loaded = "load" in (one.kind, two.kind)
    return "the load may give the value before or after" if loaded else "either value may stay"


def _lines(one: Op, two: Op) -> str:
    first, second = ((op.loc.file, op.loc.line) for op in (one, two))
    behind = f"{second[1]}" if first[0] == second[0] else ":".join(map(str, second))
    return f"line {first[1]}" if first == second else f"lines {first[1]} and {behind}"
