"""What the judge calls in the answer's process: load it, call it twice a case, write down what it does.

The second call has other values in the same memory, so that what was kept by shape or address shows.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ....simulator import triton_shim
from ....simulator.call import Call
from ....simulator.device import Device, current_device, device_everywhere, using
from ....simulator.observers import watch, watch_calls
from ....simulator.triton_shim.scripts.collecting import Collector
from ..answer_log import NEEDS_VALUES, NOT_LOADED, RAISED, AnswerLog, AnswerRequest, CallLog, Ended
from ..cheats.evidence import CallEvidence, NarrowedValue, ReturnedTensor
from ..exchange import Arrays, from_message, is_tensor, to_message
from ..pricing.host_ops import classify, record_ops
from ..pricing.trying import DearestLaunch
from ..processes import packed, unpacked
from ..sampling.refusals import NotSampledError
from ..seeds import WEIGHTS_SEED, seed_everything
from ..tasks.loading import as_list
from .array_memory import ArrayMemory
from .endings import ended
from .fingerprints import JudgeState, is_same_device, replaced, snapshot
from .launches import launch_logs, narrow_tensors, narrowed_in
from .loading import entry_of, files_of, held_by, module_of
from .memory import TorchMemory
from .refusals import Guard
from .streams import Streams
from .tensors import named_leaves

DEVICES = ("npu", "cuda")
INPUTS = ("first", "second")  # files of arrays, by the call they are for
MOST_BYTES = 1 << 40
FEW_ELEMENTS = 1024  # of a tensor of 16 bits, which may be a table
OF_ZEROS = "the answer reads elements of tensors, which are zeros where only the time is asked"
Calls = tuple[tuple[CallLog, ...], ...]


def answer_calls(request: Mapping[str, Any], fds: Mapping[str, int]) -> tuple[dict[str, Any], dict[str, int]]:
    """The log of an answer, see `answer_log.py`, and the file "outputs" with the arrays of what it returned."""
    asked = AnswerRequest.from_json(request)
    if asked.torch:
        import torch

        torch.set_grad_enabled(False)
    given = {n: fd for n, fd in fds.items() if n in INPUTS}
    inputs = {n: unpacked(asked.layouts[n], fd, MOST_BYTES, writable=True) for n, fd in given.items()}
    before = {n: unpacked(asked.layouts[n], fd, MOST_BYTES) for n, fd in given.items()}
    answering = Answering(asked, inputs, before, _sampled_calls(asked, fds))
    with ExitStack() as blocks:
        for block in answering.blocks():
            blocks.enter_context(block)
        log = answering.log()
    layout, fd = packed(answering.outputs)
    return replace(log, layout=layout).to_json(), {"outputs": fd}


def _sampled_calls(asked: AnswerRequest, fds: Mapping[str, int]) -> Any:
    """`SampledCalls` where values are asked for at positions only."""
    if not asked.sampled:
        return None
    from ..sampling.of_answer import SampledCalls  # only here: it needs torch

    return SampledCalls(asked.layouts, fds)


@dataclass
class OneCall:
    """What is seen during one call. device: that its launches are to be on."""

    device: Device = field(default_factory=current_device)
    launches: Collector = field(default_factory=Collector)
    other_devices: dict[int, None] = field(default_factory=dict)
    narrowed: dict[NarrowedValue, None] = field(default_factory=dict)


class Answering:
    """One answer. inputs: arrays that it may write to, by the file they came in; before: what they were.

    sampling: what computes values at positions; None where all values are computed, or none.
    """

    def __init__(
        self,
        asked: AnswerRequest,
        inputs: Mapping[str, Arrays],
        before: Mapping[str, Arrays],
        sampling: Any = None,
    ) -> None:
        self.asked, self.inputs, self.before, self.sampling = asked, inputs, before, sampling
        self.outputs: Arrays = {}
        self.memory = (
            TorchMemory(asked.values, not (asked.values or asked.sampled))
            if asked.torch
            else ArrayMemory(asked.values)
        )
        self.streams = Streams()
        self.files = files_of(asked)
        self.seen, self.dearest = OneCall(), DearestLaunch()
        self.untouched: JudgeState

    def blocks(self) -> Iterator[Any]:
        """What is in force while the answer runs."""
        yield device_everywhere(**{**self.asked.device, "values": self.asked.values, "timeline": 0})
        yield triton_shim.installed(DEVICES)
        if self.sampling:
            yield self.sampling.watching()
        yield self.memory.watching()
        yield self.streams.watching()
        yield watch_calls(self._called)
        yield watch(lambda run: self.seen.launches.tell(run))

    def _called(self, call: Call) -> None:
        self.dearest.tell(call)
        if not is_same_device(call.device, self.seen.device):
            self.seen.other_devices[self._line()] = None
        self.memory.launched(call)
        self.streams.launched(self._line())
        self.seen.narrowed |= dict.fromkeys((*narrowed_in(call), *narrow_tensors(call, FEW_ELEMENTS)))

    def _line(self) -> int:
        frame: Any = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename in self.files:
                return int(frame.f_lineno)
            frame = frame.f_back
        return 0

    def log(self) -> AnswerLog:
        """Load and call it, under guard."""
        arrays = self.inputs.get("first", {})
        arrays = self.sampling.arrays(arrays) if self.sampling else arrays
        init, state = (
            from_message(x or {"plain": None}, arrays) for x in (self.asked.init, self.asked.state)
        )
        cases = [from_message(case, arrays) for case in self.asked.cases]
        functions, guard, self.untouched = snapshot(), Guard(self.files), JudgeState()
        disarm = guard.arm()
        try:
            calls, end = self._answered(init, state, cases)
        finally:
            disarm()
        return AnswerLog(calls=calls, ended=end, cheats=(*guard.cheats.values(), *replaced(functions)))

    def _answered(self, init: Any, state: Any, cases: list[Any]) -> tuple[Calls, Ended | None]:
        """The calls of every case, or what ended the loading."""
        try:
            module = module_of(self.asked)
            entry = entry_of(module, self.asked, init, state)
        except BaseException as e:
            return (), ended(e, self.files, NOT_LOADED)
        self.memory.know(held_by(module, entry))
        calls = [self._case(entry, k, case) for k, case in enumerate(cases)]
        return self.dearest.explained(calls) if self.asked.trials else tuple(calls), None

    def _case(self, entry: Callable[..., Any], k: int, case: Any) -> tuple[CallLog, ...]:
        first = list(_array_names(self.asked.cases[k]))
        was = self.before.get("first", {})
        logs = [self._call(entry, case, f"{k}.0", {n: was[n] for n in first if n in was}, True)]
        self.dearest.returned(k, logs[0])
        if self.asked.second and logs[0].ended is None:
            second = _array_names(self.asked.second[k])
            others = dict(zip(first, (self.before["second"][n] for n in second), strict=True))
            for name, values in others.items():
                self.inputs["first"][name][...] = values
            if self.sampling:
                self.sampling.refill()
            logs.append(self._call(entry, case, f"{k}.1", others, False))  # it takes the time of the first
        return tuple(logs)

    def _call(
        self, entry: Callable[..., Any], case: Any, path: str, before: Mapping[str, np.ndarray], timed: bool
    ) -> CallLog:
        """One call. before: what the arrays of the inputs held. timed: whether its launches are."""
        tensors = {n: x for n, x in named_leaves(dict(enumerate(case[0])) | case[1]) if is_tensor(x)}
        alive = set(threading.enumerate())
        how = replace(self.untouched.device, time=timed)
        self.seen = OneCall(how)
        self.streams.begin()
        self.memory.begin(list(tensors.values()))
        if self.sampling:
            self.sampling.begin()
        out, end = None, None
        with record_ops(self.asked.name) as ops, using(how):
            seed_everything(WEIGHTS_SEED)
            try:
                out = entry(*case[0], **case[1])
            except BaseException as e:
                end = self._without_values(ended(e, self.files))
        self.memory.counting = False
        evidence = CallEvidence(
            returned=() if end else tuple(self._returned(out, tensors)),
            narrowed=tuple(self.seen.narrowed),
            changed_inputs=self._changed(before) if self.asked.values else (),
            host_elements=self.memory.host_elements,
            unsynchronised=self.streams.unsynchronised,
            other_devices=tuple(self.seen.other_devices),
            tampered=self.untouched.changed(),
            threads=tuple(t.name for t in threading.enumerate() if t not in alive),
        )
        outputs = None
        try:
            outputs = None if end else self._outputs(out, path)
        except Exception as e:  # what is no tensor, or one without memory
            end = ended(e, self.files)
        end, refused = self._sampled(out, path, end)
        return CallLog(
            launches=launch_logs(self.seen.launches),
            host_ops=tuple(op.to_json() for op in ops if classify(op) != "view"),
            outputs=outputs,
            ended=end,
            not_sampled=refused,
            evidence=evidence.to_json(),
        )

    def _without_values(self, end: Ended) -> Ended:
        """What ended a call: nothing is wrong with one that read zeros where only the time is asked."""
        if self.asked.values or self.sampling or end.reason != RAISED or not self.memory.host_elements:
            return end
        return replace(end, reason=NEEDS_VALUES, text=f"{end.text}: {OF_ZEROS}")

    def _sampled(self, out: Any, path: str, end: Ended | None) -> tuple[Ended | None, str]:
        """Values at positions of what was returned: what ended their computation, and why there are none."""
        if self.sampling is None or (end and not self.sampling.refused):
            return end, ""
        try:
            call = "first" if path.endswith(".0") else "second"
            self.outputs |= self.sampling.values(as_list(out), call, path)
        except NotSampledError as e:
            return None, str(e)
        except BaseException as e:
            return ended(e, self.files), ""
        return end, ""

    def _returned(self, out: Any, tensors: dict[str, Any]) -> Iterator[ReturnedTensor]:
        for path, x in named_leaves(out):
            if is_tensor(x):
                yield self.memory.returned(path, x, tensors)

    def _changed(self, before: Mapping[str, np.ndarray]) -> tuple[str, ...]:
        """Names of input arrays whose bytes are no longer what they were."""
        now = self.inputs.get("first", {})
        return tuple(n for n, was in before.items() if n in now and now[n].tobytes() != was.tobytes())

    def _outputs(self, out: Any, path: str) -> dict[str, Any]:
        """What was returned, as plain tensors: copies, as the next call may write into the same memory."""
        arrays: Arrays | None = {} if self.asked.values else None
        message = to_message(out, arrays, path)
        self.outputs |= {n: x.copy() for n, x in (arrays or {}).items()}
        return message


def _array_names(message: Any) -> Iterator[str]:
    """Names of the arrays of a message, in order."""
    if isinstance(message, dict):
        if isinstance(name := message.get("array"), str):
            yield name
        for x in message.values():
            yield from _array_names(x)
    elif isinstance(message, list):
        for x in message:
            yield from _array_names(x)
