"""What is said of cores that wait for each other for ever: who waits for whom, with pipes and the lines of both sides.

Also of flags that are set more often than they are waited for, which the counter of a flag does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import RunError
from ...ir.located_errors import at_line
from ...ir.program import Op, Program
from ..faults import place

MOST_AHEAD = 15  # what the counter of a flag holds (vendor's hardware constraints, A2)
Key = tuple[str, int]  # who sets, event


def hang(
    program: Program, number: int, waiting: Mapping[str, Op], over: Sequence[str], passed: Mapping[Key, int]
) -> RunError:
    """waiting: core -> where it waits; over: cores that have ended; passed: sets so far."""
    messages = [f"the {core} core {_awaits(program, op, passed)}" for core, op in waiting.items()]
    ended = [f"the {core} core has ended" for core in over]
    text = (
        f"{program.name}: hang in program {number}: {'; '.join([*messages, *ended])}. Nobody can go on: "
        f"{_way_out(program, waiting)}"
    )
    first, *rest = waiting.values()
    here = [at_line(op.loc, "waits here, too") for op in rest]
    ends = [at_line(op.loc, _what_it_sets(op)) for w in waiting.values() for op in sets_of(program, w)]
    return RunError("\n".join([at_line(first.loc, text), *here, *dict.fromkeys(ends)]))


def sets_of(program: Program, wait: Op) -> list[Op]:
    """The sets that can end a wait; those of an event that is data can end any."""
    if wait.kind != "sync" or wait.name != "wait":
        return []
    return [
        op
        for op in _sets(program, wait.attrs["sender"])
        if None in (op.attrs["event"], wait.attrs["event"]) or op.attrs["event"] == wait.attrs["event"]
    ]


def check_left_over(op: Op, event: int, left: int) -> None:
    """Raise `RunError` if a program ends with more sets of an event than its counter holds."""
    if left <= MOST_AHEAD:
        return
    sender, receiver = op.attrs["sender"], op.attrs["receiver"]
    message = (
        f"the {sender} core sets event {event} {left} times more often than the {receiver} core waits for it, and the "
        f"counter of a flag holds {MOST_AHEAD}; give the {receiver} core a sync_block_wait for each sync_block_set"
    )
    raise RunError(at_line(op.loc, message))


def _sets(program: Program, sender: str) -> list[Op]:
    return [
        op for op in program.walk() if op.kind == "sync" and op.name == "set" and op.attrs["sender"] == sender
    ]


def _awaits(program: Program, op: Op, passed: Mapping[Key, int]) -> str:
    """What a core waits for, on which pipe, and why it does not come."""
    if op.kind == "receive":
        return f"waits at {place(op)} for a tile of the other core"
    if op.name == "all":
        return f"waits at {place(op)} in sync_block_all({op.attrs['mode']!r}, {op.attrs['event']}) for the other core"
    event = "" if op.attrs["event"] is None else f" {op.attrs['event']}"
    return (
        f"waits on pipe {op.attrs['receiver_pipe']} at {place(op)} for event{event}, which the {op.attrs['sender']} core "
        f"does not set{_why(program, op, passed)}"
    )


def _why(program: Program, wait: Op, passed: Mapping[Key, int]) -> str:
    sender = wait.attrs["sender"]
    ends = sets_of(program, wait)
    if not ends:
        others = ", ".join(f"{op.attrs['event']} at {place(op)}" for op in _sets(program, sender))
        return f": no sync_block_set of it is in the kernel{f', only of event {others}' if others else ''}"
    at = " and ".join(f"on pipe {op.attrs['sender_pipe']} at {place(op)}" for op in ends)
    event = wait.attrs["event"]
    done = 0 if event is None else passed.get((sender, event), 0)
    return f" again: it did so {done} times, {at}" if done else f" yet: that is {at}"


def _way_out(program: Program, waiting: Mapping[str, Op]) -> str:
    flags = [op for op in waiting.values() if op.kind == "sync" and op.name == "wait"]
    if len(flags) > 1 and all(sets_of(program, op) for op in flags):
        return "let one of the two cores set its flag before it waits"
    if flags:
        return f"let the {flags[0].attrs['sender']} core set the event, as often as it is waited for"
    return "let both cores pass it"


def _what_it_sets(op: Op) -> str:
    event = op.attrs["event"]
    return "sets an event here" if event is None else f"event {event} is set here"


def missing_message(op: Op, here: int, total: int) -> str:
    """A barrier that only some programs reach."""
    return (
        f"hang: {here} of {total} programs reach sync_block_all({op.attrs['mode']!r}, {op.attrs['event']}) "
        "and wait there for the others; put it where every program passes"
    )
