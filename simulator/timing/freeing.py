"""What single changes of a launch free of its buffers: each is placed, none is timed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..call import Call
from ..device import TRITON_ASCEND
from ..errors import AscendtileError
from ..record.run import Buffer
from .fitting import place_program

MOST_SIZES = 4
Change = tuple[str, dict[str, Any], int | None]  # words, compile-time values, copies


def with_freed(call: Call, buffers: Mapping[str, Buffer]) -> dict[str, Buffer]:
    """The buffers of a launch, each with what it needs after a change that makes it need less, the best one first."""
    found: dict[str, dict[str, int]] = {n: {} for n in buffers}
    for words, changed, copies in _changes(call):
        for n, need in _needs(call, changed, copies).items():
            if n in buffers and need < buffers[n].peak_bytes:
                found[n][words] = need
    return {
        n: replace(b, freed=dict(sorted(found[n].items(), key=lambda x: x[1]))) for n, b in buffers.items()
    }


def _changes(call: Call) -> Iterator[Change]:
    """Sizes only of users' kernels: those of a kernel of an operator are no knobs of it."""
    if call.device.multibuffer > 1:
        yield "without second copies", {}, 1
    sizes = [(n, x) for n, x in call.constants.items() if isinstance(x, int) and not isinstance(x, bool)]
    for name, x in sizes[:MOST_SIZES] if call.device.author == TRITON_ASCEND else ():
        if x > 1:
            smaller = 1 << (x - 1).bit_length() - 1
            yield f"with {name} {x} -> {smaller}", {name: smaller}, None


def _needs(call: Call, changed: dict[str, Any], copies: int | None) -> dict[str, int]:
    """Bytes of each buffer; nothing where the change is refused or does not fit either."""
    try:
        program = call.kernel.program(call.types, {**call.constants, **changed}) if changed else call.program
        _, placement = place_program(call, program, copies)
    except AscendtileError:
        return {}
    return {n: b.peak_bytes for n, b in placement.buffers.items()}
