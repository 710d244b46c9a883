"""What the judge and the answer's process say to each other.

The judge calls `reports.judging.answering.run:answer_calls(request, fds)`; request: `AnswerRequest` as JSON, fds: files in
memory with the arrays of the inputs ("first", and "second" for the second call). It answers with an `AnswerLog` as JSON, and
with one file, "outputs", that holds the arrays of all outputs. What comes from there is not trusted: it is decoded field by
field (`AnswerLog.from_json`), and it can only be wrong, never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...simulator.record.codec import Encoder, decode_plain
from .verdict import Cheat

# Why a call, or the loading of an answer, ended early.
NOT_LOADED, KERNEL, FIT = (
    "not_loaded",
    "kernel",
    "fit",
)  # the module or its class; a kernel's source; a buffer
NEEDS_VALUES, UNKNOWN, RAISED = "needs_values", "unknown", "raised"
REASONS = (NOT_LOADED, KERNEL, FIT, NEEDS_VALUES, UNKNOWN, RAISED)


@dataclass(frozen=True, kw_only=True)
class AnswerRequest:
    """What the answer's process is asked.

    text, name: the answer's source, and the file name that messages give. entry: the class or function in it; siblings:
    texts of the modules beside it that it imports. torch: whether tensors are torch's.
    device: options of `device_everywhere`; product is a name or `Product.to_dict()`.
    values: whether launches compute values; if not, each case is called once with zeros.
    init: `to_message` of (arguments, named arguments) of ModelNew. state: `to_message` of the `state_dict` of the task's
    Model. cases: `to_message` of (arguments, named arguments) of each case; arrays in the file "first". second: the same
    cases with other values, in the file "second": put into the memory of the first, before the answer is called again.
    trials: whether changes of the dearest launch are timed, for the suggestion.
    extra: whether a function that has more parameters than there are inputs gets the init arguments, too (AKG).
    """

    text: str
    name: str
    entry: str
    is_class: bool
    torch: bool
    values: bool
    init: dict[str, Any]
    cases: tuple[dict[str, Any], ...]
    second: tuple[dict[str, Any], ...] = ()
    state: dict[str, Any] | None = None
    siblings: dict[str, str] = field(default_factory=dict)
    device: dict[str, Any] = field(default_factory=dict)
    extra: bool = False
    trials: bool = True
    layouts: dict[str, dict[str, Any]] = field(default_factory=dict)  # of "first" and "second", see arrays.py
    sampled: bool = (
        False  # whether values at some positions are given after each call: see sampling/of_answer.py
    )

    def to_json(self) -> dict[str, Any]:
        """As plain data for JSON."""
        data: dict[str, Any] = Encoder({}).encode(self, AnswerRequest)
        return data

    @classmethod
    def from_json(cls, data: Any) -> AnswerRequest:
        """What `to_json` wrote."""
        found: AnswerRequest = decode_plain(data, cls, "")
        return found


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What ended a call, or the loading, early. name: the class of the exception with its module; line: of the answer.

    space, need_bytes, have_bytes: of a buffer that overflows (`BufferOverflowError`).
    """

    reason: str  # one of REASONS
    name: str
    text: str
    line: int | None = None
    space: str = ""
    need_bytes: int = 0
    have_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class LaunchLog:
    """Launches of one call that are alike. run: `run_json` of the dearest of them; time_us, cycles: of all together."""

    kernel: str
    grid: tuple[int, ...]
    count: int
    time_us: float
    cycles: float
    low_us: float | None = None
    high_us: float | None = None
    faults: tuple[str, ...] = ()
    run: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CallLog:
    """One call of the answer. outputs: `to_message` of what it returned, None where it did not return."""

    launches: tuple[LaunchLog, ...] = ()
    host_ops: tuple[dict[str, Any], ...] = ()
    outputs: dict[str, Any] | None = None
    ended: Ended | None = None
    not_sampled: str = ""  # why there are no values at positions, where they were asked for
    evidence: dict[str, Any] = field(
        default_factory=dict
    )  # what the guards saw, for the verdicts of `cheats`


@dataclass(frozen=True, kw_only=True)
class AnswerLog:
    """What the answer's process did: the calls of each case, or why it was not loaded."""

    calls: tuple[tuple[CallLog, ...], ...] = ()
    ended: Ended | None = None
    cheats: tuple[Cheat, ...] = ()
    suggestions: tuple[str, ...] = ()  # that were tried there, the best first
    layout: dict[str, Any] = field(default_factory=dict)  # of the file "outputs"

    def to_json(self) -> dict[str, Any]:
        """As plain data for JSON."""
        data: dict[str, Any] = Encoder({}).encode(self, AnswerLog)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AnswerLog:
        """What `to_json` wrote; `UsageError` names the field that does not fit."""
        found: AnswerLog = decode_plain(dict(data), cls, "")
        return found
