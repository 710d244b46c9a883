"""One case of a task, with all that is known of it once the answer was called."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .answer_log import FIT, KERNEL, NEEDS_VALUES, NOT_LOADED, UNKNOWN, CallLog, Ended
from .cheats.values import ValueFacts
from .pricing.operation import HostOp, HostTensor
from .verdict import (
    CHEAT,
    CORRECT,
    DEFERRED,
    FAILED,
    NO_FIT,
    NOT_COMPILED,
    SO_FAR,
    TIMED,
    WRONG,
    Cheat,
    ComparedOutput,
)

PLACE = re.compile(r"[^\s:]+:\d+")  # which a message begins with that says its own
BELOW = " Alive at the peak"  # of a buffer, line by line
ENDS = {
    NOT_LOADED: NOT_COMPILED,
    KERNEL: NOT_COMPILED,
    FIT: NO_FIT,
    NEEDS_VALUES: DEFERRED,
    UNKNOWN: DEFERRED,
}


@dataclass(frozen=True)
class CaseForm:
    """What a case is like: see `tasks.describing.described`. made: operations that made the inputs of all cases."""

    index: int
    arguments: dict[str, Any]
    outputs: tuple[HostTensor | None, ...] | None
    ops: tuple[HostOp, ...] | None
    inputs: tuple[HostTensor, ...]
    elements: int
    text: str
    made: tuple[HostOp, ...] | None = None
    returns_input: bool = False
    changes_input: bool = False

    @classmethod
    def of(cls, index: int, data: Mapping[str, Any], made: tuple[HostOp, ...] | None) -> CaseForm:
        """Of what the process of the task said."""
        ops, outputs = data["ops"], data["outputs"]
        return cls(
            index,
            data["arguments"],
            None if outputs is None else tuple(None if x is None else _tensor(x) for x in outputs),
            None if ops is None else tuple(map(HostOp.from_json, ops)),
            tuple(map(_tensor, data["inputs"])),
            data["elements"],
            data["text"],
            made,
            data["returns_input"],
            data["changes_input"],
        )

    @property
    def flops(self) -> int:
        """Of the products of the task's Model, as far as they are known."""
        return sum(op.flops for op in self.ops or ())


def _tensor(data: Any) -> HostTensor:
    shape, dtype = data
    return HostTensor(tuple(shape), dtype)


@dataclass(frozen=True)
class JudgedCase:
    """A case that was judged. calls: none where the answer's process did not get there, `ended` says why.

    outputs, values: None where values were not compared. sampled: whether they were looked at in some positions only.
    cheats: what speaks against the answer, whatever its values are.
    """

    form: CaseForm
    calls: tuple[CallLog, ...] = ()
    outputs: tuple[ComparedOutput, ...] | None = None
    values: ValueFacts | None = None
    cheats: tuple[Cheat, ...] = ()
    sampled: bool = False
    ended: Ended | None = None
    failed: str = ""  # what ended the answer's process from outside
    deferred: str = ""  # why the values are not known
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def end(self) -> Ended | None:
        """What ended the first call that did not return."""
        return self.ended or next((c.ended for c in self.calls if c.ended), None)

    @property
    def verdict(self) -> str:
        """Of this case alone."""
        if self.cheats:
            return CHEAT
        if self.failed:
            return FAILED
        if self.end is not None:
            return ENDS.get(self.end.reason, FAILED)
        if self.outputs is None:
            return DEFERRED if self.deferred else TIMED
        if not all(x.passed for x in self.outputs):
            return WRONG
        return SO_FAR if self.sampled else CORRECT

    @property
    def message(self) -> str:
        """Why, in a sentence; of what is right what its benchmark let pass, or "".

        One that did not return says the line in its answer, unless its text says it."""
        if self.cheats:
            return f"{self.cheats[0].name}: {self.cheats[0].message}"
        if self.failed or self.deferred:
            return self.failed or self.deferred
        if self.end is not None:
            text = first_line(self.end.text)
            place = f"line {self.end.line}: " if self.end.line and not PLACE.match(text) else ""
            return f"{place}{self.end.name.rpartition('.')[2]}: {text}"
        told = sorted((x for x in self.outputs or () if x.message), key=lambda x: x.passed)
        return told[0].message if told else ""


def first_line(text: str) -> str:
    """The first line that says something, without words on what stands below it."""
    found = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return found.partition(BELOW)[0]
