"""What is said of two accesses to one element that nothing orders."""

from __future__ import annotations

from ..interpreter.faults import place
from ..ir.program import Op
from ..messages import Message, fault, note
from .access import Access
from .core_clocks import SEATS
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

PIPES = "; a flag orders what its two pipes do: MTE2 loads, FIX of a Cube and MTE3 of a Vector core store"
SUB_BARRIER = 'sync_block_all("all_sub_vector", ...)'


def unordered(a: Access, met: Meeting, other: Op, way: str, names: set[str]) -> Message:
    """The message about two programs. way: the key of `WAYS_OUT`, "" for that of the two accesses.

    names: of the arguments that share the memory.
    """
    p, q = int(met.agent), int(a.programs[met.lane])
    sides = sorted(((p, other), (q, a.op)), key=lambda side: side[0])
    (p, one), (q, two) = sides
    element = _element(a, met, names)
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


def cores_unordered(
    a: Access, met: Meeting, other: Op, cores: tuple[str, str], how: str, names: set[str]
) -> Message:
    """The message about the two kinds of cores of a program. cores: names of that of `a` and of the other one.

    how: "compiler" where it orders them; "" where no flag passed, "flags" where some did, but set before; "earlier" where
    what is loaded was stored before, and stored again. names: of the arguments that share the memory.
    """
    program, (here, there) = met.agent // (2 * SEATS), cores
    what = (
        f"the {there} core {_does(other)} {_element(a, met, names)} (line {other.loc.line}) and the {here} core "
        f"{_does(a.op)} it (line {a.op.loc.line}), in program {program}"
    )
    if how == "compiler":
        text = f"{what}: they are ordered by flags that the compiler adds, unless disable_auto_inject_block_sync is set"
        return note(text, place(a.op), (program,))
    sides = (other, there), (a.op, here)
    overwritten = how == "earlier" and "load" in (a.op.kind, other.kind)
    then = _overwritten(*sides) if overwritten else _too_soon(*sides, how)
    return fault(f"{what}, without a flag between them: {then}{PIPES}", place(a.op), (program,))


def _overwritten(*sides: tuple[Op, str]) -> str:
    """What to do about a slot that is used again."""
    (read, reader), (stored, writer) = sorted(sides, key=lambda side: side[0].kind != "load")
    return (
        "what was stored there before is overwritten while it is still to be read, as on the device the store need not wait "
        f"for the load; let the {writer} core sync_block_wait for a flag back from the {reader} core before it stores there "
        f"again at line {stored.loc.line}, and the {reader} core sync_block_set it behind line {read.loc.line}"
    )


def _too_soon(one: tuple[Op, str], two: tuple[Op, str], how: str) -> str:
    """What to do about the first of two accesses; a load of what is stored above it in the source has come too early."""
    if one[0].kind == "load" and two[0].kind == "store" and two[0].id < one[0].id:
        one, two, how = two, one, ""
    (first, there), (second, here) = one, two
    way = _set_and_wait(first, there, second, here)
    if how == "flags":
        way = (
            f"the flags that the {here} core has waited for were set before line {first.loc.line}, by a pipe that does not "
            f"do it, or block another pipe than that of line {second.loc.line}; wait for one that is set behind it, by an "
            "event of its own"
        )
    if first.kind == "load" and second.kind == "store":
        way += f"; or, if what is stored is to be loaded, {_set_and_wait(second, here, first, there)}"
    return f"on the device the second need not wait for the first; {way}"


def _set_and_wait(first: Op, there: str, second: Op, here: str) -> str:
    return (
        f"let the {there} core sync_block_set behind line {first.loc.line} and the {here} core sync_block_wait before line "
        f"{second.loc.line}"
    )


def vector_cores_unordered(a: Access, met: Meeting, other: Op, names: set[str]) -> Message:
    """The message about the two Vector cores of a program. names: of the arguments that share the memory."""
    assert a.vector_cores is not None
    here, program = int(a.vector_cores[met.lane]), met.agent // (2 * SEATS)
    (p, one), (q, two) = sorted(((here, a.op), (1 - here, other)), key=lambda side: side[0])
    element = _element(a, met, names)
    if one.kind == two.kind == "store":
        what = f"vector cores {p} and {q} both store to {element}"
    else:
        what = f"vector core {p} {_does(one)} {element} and vector core {q} {_does(two)} it"
    return fault(
        f"{what} ({_lines(one, two)}), in program {program}, without a barrier between them: on the device "
        f"{_then(one, two)}; give each of them elements of its own by sub_vec_id, or put {SUB_BARRIER} between the two",
        place(a.op),
        (program,),
    )


def polled(a: Access) -> Message:
    """The message about a plain load that waits for what another program writes."""
    text = (
        f"program {int(a.programs[0])} waits with a plain load for what another program writes to {a.tensor.name!r} by an "
        "atomic: it is read anew here each time, but a compiler may read it once, or a cache answer; wait with "
        "tl.atomic_add(pointer, 0), or with volatile=True"
    )
    return note(text, place(a.op), (int(a.programs[0]),))


def _element(a: Access, met: Meeting, names: set[str]) -> str:
    others = " and ".join(repr(x) for x in sorted(names - {a.tensor.name}))
    shared = f" (which shares memory with {others})" if others else ""
    return f"element {met.element} of {a.tensor.name!r}{shared}"


def _way_out(one: Op, two: Op, way: str) -> str:
    kinds = {one.kind, two.kind}
    text = WAYS_OUT[way or ("load" if "load" in kinds else "store")]
    if kinds == {"store", "atomic"}:
        return f"if that gives back a lock or sets a flag, write it by tl.atomic_xchg(pointer, value); else {text}"
    if kinds == {"load", "atomic"}:
        return f"if any of its values will do, load it by tl.atomic_add(pointer, 0); else {text}"
    return text


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
