"""Verdicts of cheats from the log of an answer's calls: what was launched, computed beside it, written and returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log2

from ....simulator.errors import UsageError
from ..answer_log import CallLog
from ..pricing.operation import HostOp, HostTensor, classify
from ..verdict import Cheat, ComparedOutput
from .evidence import CallEvidence
from .launch_sites import LaunchSite
from .values import ValueFacts

COMPUTED_SHARE = 0.01  # of the elements of the task's inputs and outputs that torch may compute with
FEW_ELEMENTS = 256  # which it always may
LEAST_BITS = 13.0  # of a result that is as good as FP32's although parts of it were narrow


@dataclass(frozen=True, kw_only=True)
class CaseFacts:
    """What the judge knows of a case. elements: of the task's inputs and outputs. inputs, outputs: of the task.

    ops: operations of the task's Model. sites: of the answer's text. values: None where none were compared. returns_input,
    changes_input: whether the task's Model is known to do so without values.
    """

    elements: int
    inputs: tuple[HostTensor, ...]
    ops: tuple[HostOp, ...] = ()
    sites: tuple[LaunchSite, ...] = ()
    values: ValueFacts | None = None
    compared: tuple[ComparedOutput, ...] = field(default=())
    time_us: float | None = None
    floor_us: float | None = None
    returns_input: bool = False
    changes_input: bool = False

    @property
    def few(self) -> float:
        """Elements that torch, or the host, may compute with."""
        return max(FEW_ELEMENTS, COMPUTED_SHARE * self.elements)

    @property
    def is_precise(self) -> bool:
        """Whether the task works in more than 16 bits throughout."""
        tensors = [*self.inputs, *(t for op in self.ops for t in op.outputs)]
        floating = [t.dtype for t in tensors if t.dtype.startswith(("float", "bfloat"))]
        return bool(floating) and all(x in ("float32", "float64") for x in floating)

    @property
    def is_unknown(self) -> bool:
        """Whether the task's Model was not run, neither with values nor without: what it does to its inputs nobody knows."""
        return not self.ops and self.values is None

    @property
    def is_constant(self) -> bool:
        """Whether the task only makes tensors that no input is in, as `torch.full` and `torch.zeros_like` do, or gives the
        same for other inputs; also where nothing is known of it, neither operations nor values."""
        if self.values is not None and self.values.steady:
            return True
        if not self.ops:
            return self.is_unknown
        reads = any(t in self.inputs for op in self.ops for t in op.inputs)
        return not reads or all(classify(op) == "create" for op in self.ops)


def judged_cheats(calls: Sequence[CallLog], case: CaseFacts) -> tuple[Cheat, ...]:
    """Cheats in the calls of one case, each name once, the most telling first."""
    found: dict[str, Cheat] = {}
    try:
        for cheat in _cheats(calls, case):
            found.setdefault(cheat.name, cheat)
    except UsageError as e:
        return (Cheat(name="harness_tampered", message="the log of a call is none", evidence=str(e)[:120]),)
    return tuple(found.values())


def _cheats(calls: Sequence[CallLog], case: CaseFacts) -> Iterator[Cheat]:
    done = [c for c in calls if c.ended is None]
    seen = [CallEvidence.from_json(c.evidence) for c in done]
    for k, (call, evidence) in enumerate(zip(done, seen, strict=True)):
        yield from _torch(call, case)
        yield from _host(evidence, case)
        yield from _launched(k, done, case)
        yield from _returned(call, evidence, case)
        yield from _around(evidence, case)
        yield from _narrow(evidence, case)
    if case.values is not None:
        yield from _values(case.values, bool(case.compared) and all(x.passed for x in case.compared))
    if case.time_us is not None and case.floor_us is not None and 0 < case.time_us < case.floor_us:
        yield Cheat(
            name="below_floor",
            message=f"takes {case.time_us:.3g} us, no kernel for the task can take less than {case.floor_us:.3g} us",
        )


def _torch(call: CallLog, case: CaseFacts) -> Iterator[Cheat]:
    ops = [op for op in map(HostOp.from_json, call.host_ops) if classify(op) == "compute"]
    elements = sum(op.elements for op in ops)
    if elements > case.few:
        most = max(ops, key=lambda op: (op.elements, op.name))
        share = f"{elements} elements of {case.elements}"
        yield Cheat(
            name="torch_compute",
            message=f"torch computes {most.base} ({share}; at most {case.few:.0f} may be torch's)",
            line=most.line or None,
            evidence=", ".join(sorted({op.base for op in ops}))[:120],
        )


def _host(evidence: CallEvidence, case: CaseFacts) -> Iterator[Cheat]:
    if evidence.host_elements > case.few:
        yield Cheat(
            name="host_compute",
            message=f"the host reads or makes {evidence.host_elements} elements of {case.elements}, "
            f"at most {case.few:.0f} may be its",
        )


def _launched(k: int, done: Sequence[CallLog], case: CaseFacts) -> Iterator[Cheat]:
    """A call without launches, or one that shows that the first, which is timed, left some out. k: its number."""
    first, now = (sum(x.count for x in done[n].launches) for n in (0, k))
    if now > first > 0:
        message = f"the second call launches {now} kernels, the first, which is timed, {first}"
        yield Cheat(name="harness_tampered", message=message)
    if done[k].launches or not case.elements:
        return
    if k and done[0].launches:
        yield Cheat(name="cached_output", message="the second call, with other values, launches no kernel")
    elif not case.sites:
        yield Cheat(name="no_kernel", message="no kernel is launched, and none is in the text")
    elif any(s.called and s.conditional for s in case.sites):
        line = next(s.line for s in case.sites if s.called and s.conditional)
        yield Cheat(
            name="ghost_branch", message="the kernel is not launched for the task's inputs", line=line
        )
    else:
        line = case.sites[0].line
        yield Cheat(name="forgotten_kernel", message="nothing reaches the launch of the kernel", line=line)


def _returned(call: CallLog, evidence: CallEvidence, case: CaseFacts) -> Iterator[Cheat]:
    facts = case.values or ValueFacts()
    tensors = [t for t in evidence.returned if t.elements]
    for t in tensors:
        if not t.plain:
            yield Cheat(name="lazy_output", message=f"returns a {t.kind.rpartition('.')[2]}, no plain tensor")
        if t.of_input is not None and not (facts.returns_input or case.returns_input or case.is_unknown):
            yield Cheat(name="returned_input", message=f"returns the memory of input {t.of_input}")
        if t.unwritten:
            name = "stale_buffer" if t.unwritten == t.elements else "partial_output"
            yield Cheat(
                name=name, message=f"nobody writes {t.unwritten} of {t.elements} elements of the output"
            )
    from_launch = [t for t in tensors if t.from_launch]
    if call.launches and tensors and not from_launch:
        yield Cheat(name="unused_kernel", message="no kernel writes what is returned")
    reads = any(t.from_inputs for t in from_launch)
    if case.inputs and from_launch and not reads and not case.is_constant:
        yield Cheat(name="constant_output", message="no kernel that writes the output reads an input")


def _around(evidence: CallEvidence, case: CaseFacts) -> Iterator[Cheat]:
    facts = case.values or ValueFacts()
    if evidence.changed_inputs and not (facts.changes_input or case.changes_input):
        yield Cheat(name="input_changed", message=f"writes to {len(evidence.changed_inputs)} of the inputs")
    if evidence.unsynchronised:
        line = evidence.unsynchronised[0]
        yield Cheat(
            name="stream_escape", message="launches on a stream that nobody waits for", line=line or None
        )
    for line in evidence.other_devices[:1]:
        yield Cheat(
            name="harness_tampered", message="launches on a device of its own choice", line=line or None
        )
    if evidence.tampered:
        yield Cheat(name="harness_tampered", message=evidence.tampered)
    if evidence.threads:
        yield Cheat(name="thread_escape", message="a thread goes on after the call")


def _narrow(evidence: CallEvidence, case: CaseFacts) -> Iterator[Cheat]:
    if not case.is_precise or not evidence.narrowed:
        return
    in_parts = any(n.remainder for n in evidence.narrowed)
    bits = min((b for x in case.compared if (b := _bits(x)) is not None), default=None)
    if in_parts and (bits is None or bits >= LEAST_BITS):
        return
    n = evidence.narrowed[0]
    measured = "" if bits is None else f"; the output has {bits:.1f} bits"
    yield Cheat(
        name="lower_precision",
        message=f"the task works in {case.inputs[0].dtype}, {n.kernel} computes in {n.target} ({n.use}){measured}",
        line=n.line or None,
    )


def _bits(x: ComparedOutput) -> float | None:
    """Bits that are right on the mean: by the mean error against the size of the worst element."""
    size = abs(x.want) if x.want else None
    return None if not size or not x.mean_abs else log2(size / x.mean_abs)


def _values(facts: ValueFacts, passed: bool) -> Iterator[Cheat]:
    if facts.unchanged:
        yield Cheat(
            name="cached_output",
            message=f"output {facts.unchanged[0]} has the same bits for other values in the same memory",
        )
    for k, share in enumerate(facts.filled):
        if share and passed:  # of what is wrong anyway, it may be an honest mistake
            message = f"{share:.0%} of output {k} are one number, the right ones differ"
            yield Cheat(name="partial_output" if share < 1 else "constant_output", message=message)
