"""Builtins between the cores of a split product: scopes, flags and barriers, the two Vector cores beside a Cube core.

A program of a kernel with matrix products runs on one Cube core (AIC) and its Vector cores (AIV) at the same time. Each
executes its own part of the source in order: what stands in a `scope`, else products with their loads and stores on the
Cube's core and everything else on the Vector core. A flag counts: a set adds one, a wait takes one and blocks its pipe
while there is none.

Products whose Cube and Vector share a core (core_model "coupled") have no such flags; a launch there is refused.
"""

from __future__ import annotations

import enum
from typing import Any

from ....ir.building.promotion import KernelError, Operand, describe
from ....ir.building.registry import Builder, builtin
from ....ir.operations import FREE, RECORDED, Operation, define
from ....ir.passes.split_cores import CORES, EVENTS, MODES, PIPES_OF, SUB_VECTOR_CORES, CoreScope
from ....ir.program import Value
from ....precision import dtypes as ty


class PIPE(enum.Enum):
    """The pipes of a core, as the flags name them; PIPE_ALL is all of a core's."""

    PIPE_S = "S"
    PIPE_V = "V"
    PIPE_M = "M"
    PIPE_MTE1 = "MTE1"
    PIPE_MTE2 = "MTE2"
    PIPE_MTE3 = "MTE3"
    PIPE_ALL = "ALL"
    PIPE_FIX = "FIX"


@builtin
def scope(b: Builder, core_mode: str, **attributes: Any) -> CoreScope:
    """`with scope(core_mode="cube"):` or "vector": the core on which the statements inside run; the innermost counts.

    Names assigned inside stay known after it. Further attributes (`disable_auto_sync`, `noinline`) steer the vendor's
    compiler; here an instruction always waits for the data it reads.
    """
    b.note_split_builtin("scope")
    return CoreScope(_one_of("scope", "core_mode", core_mode, CORES))


@builtin
def sync_block_set(
    b: Builder,
    sender: str,
    receiver: str,
    event_id: Operand,
    sender_pipe: PIPE | None = None,
    receiver_pipe: PIPE | None = None,
) -> None:
    """Count flag `event_id` of `receiver` up once all earlier work of `sender_pipe` on `sender` is done.

    sender, receiver: "cube" and "vector" or the other way round. event_id: 0 to 15, a number or an integer scalar.
    Without pipes the sender's is the one that writes to global memory (FIX of a Cube, MTE3 of a Vector core) and the
    receiver's is MTE2.
    """
    _flag(b, "set", sender, receiver, event_id, sender_pipe, receiver_pipe)


@builtin
def sync_block_wait(
    b: Builder,
    sender: str,
    receiver: str,
    event_id: Operand,
    sender_pipe: PIPE | None = None,
    receiver_pipe: PIPE | None = None,
) -> None:
    """Block `receiver_pipe` of `receiver` until `sender` has set flag `event_id`, and count it down.

    Arguments are those of the `sync_block_set` it waits for. A wait that no set ends is a `RunError` before anything else
    of the launch is reported.
    """
    _flag(b, "wait", sender, receiver, event_id, sender_pipe, receiver_pipe)


@builtin
def sync_block_all(b: Builder, mode: str, event_id: int) -> None:
    """A barrier: cores of the kind that `mode` names go on when all of them, of all programs, have come here.

    mode: "all", "all_cube", "all_vector", or "all_sub_vector" (the Vector cores of one program). event_id: 0 to 15.
    All programs must be on cores at once: a grid of more programs than cores is a `RunError`.
    """
    _one_of("sync_block_all", "mode", mode, MODES)
    _event("sync_block_all", event_id)
    if isinstance(event_id, Value):
        raise KernelError(
            f"sync_block_all: event_id must be a compile-time integer, got {describe(event_id)}"
        )
    b.note_split_builtin("sync_block_all")
    b.emit("sync", (None,), (), name="all", mode=mode, event=event_id)


@builtin
@define(Operation(FREE))
def sub_vec_id(b: Builder) -> Value:
    """Number of the Vector core beside its Cube core, 0 or 1: an int64 scalar.

    A kernel that asks for it runs its Vector part on both cores, over the same global memory; its Cube part runs once and
    must not depend on the number. Stores of the Vector part that do not depend on it are made by both, atomics too.
    """
    b.note_split_builtin("sub_vec_id")
    return b.emit_one("sub_vec_id", (), ty.int64, ())


@builtin
def sub_vec_num(b: Builder) -> int:
    """Vector cores beside each Cube core: 2 on all split products, a compile-time number."""
    b.note_split_builtin("sub_vec_num")
    return SUB_VECTOR_CORES


@define(Operation(RECORDED, effect=True), name="sync")
def _flag(
    b: Builder, name: str, sender: str, receiver: str, event_id: Operand, sender_pipe: Any, receiver_pipe: Any
) -> None:
    what = f"sync_block_{name}"
    _one_of(what, "sender", sender, CORES)
    _one_of(what, "receiver", receiver, CORES)
    if sender == receiver:
        raise KernelError(
            f"{what}: sender and receiver are both {sender!r}; flags go from cube to vector or from vector to cube"
        )
    _event(what, event_id)
    if sender_pipe is None and receiver_pipe is None:
        sender_pipe, receiver_pipe = (PIPE.PIPE_FIX if sender == "cube" else PIPE.PIPE_MTE3), PIPE.PIPE_MTE2
    own = sender if name == "set" else receiver
    if b.core and b.core != own:
        raise KernelError(f"{what}: the {own} core executes it, but it stands in scope(core_mode={b.core!r})")
    b.note_split_builtin(what)
    dynamic = isinstance(event_id, Value)
    b.emit(
        "sync",
        (event_id if isinstance(event_id, Value) else None,),
        (),
        name=name,
        sender=sender,
        receiver=receiver,
        event=None if dynamic else event_id,
        sender_pipe=_pipe(what, "sender_pipe", sender_pipe, sender),
        receiver_pipe=_pipe(what, "receiver_pipe", receiver_pipe, receiver),
        core=own,
    )


def _one_of(what: str, argument: str, given: Any, allowed: tuple[str, ...]) -> str:
    if not isinstance(given, str) or given not in allowed:
        raise KernelError(f"{what}: {argument} must be one of {', '.join(allowed)}, got {describe(given)}")
    return given


def _event(what: str, event_id: Operand) -> None:
    if isinstance(event_id, Value):
        if event_id.shape or event_id.is_pointer or not event_id.dtype.is_int():
            raise KernelError(f"{what}: event_id must be an integer scalar, got {describe(event_id)}")
    elif isinstance(event_id, bool) or not isinstance(event_id, int) or not 0 <= event_id < EVENTS:
        raise KernelError(f"{what}: event_id must be 0 to {EVENTS - 1}, got {describe(event_id)}")


def _pipe(what: str, argument: str, given: Any, core: str) -> str:
    if not isinstance(given, PIPE):
        raise KernelError(f"{what}: {argument} must be a PIPE, got {describe(given)}")
    if given.value not in PIPES_OF[core]:
        there = ", ".join(f"PIPE_{p}" for p in PIPES_OF[core])
        raise KernelError(f"{what}: {argument} is {given.name}, but the {core} core has {there}")
    return given.value


__all__ = [
    "PIPE", "scope", "sub_vec_id", "sub_vec_num", "sync_block_all", "sync_block_set", "sync_block_wait",
]  # fmt: skip
