"""What the process of the task is asked: what its cases are like, their values, and whether an answer's outputs are right.

Each function takes and gives plain data for JSON, and files in memory by name; see processes/.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....simulator.errors import UsageError
from ....simulator.interpreter.tensors import as_array
from ....simulator.record.codec import Encoder
from ..cheats.values import value_facts
from ..exchange import Arrays, from_message, is_tensor, to_message
from ..processes.arrays import packed, unpacked
from ..verdict import ComparedOutput
from .comparing import compared_output, one_report
from .loading import Arguments, LoadedTask, as_list, copied, in_float64, is_floating, loaded_task, tensors_in
from .tolerances import EXACT, tolerance

MOST_BYTES = 1 << 36
SECOND = 1  # added to the seed for the values of the second call
Answer = tuple[dict[str, Any], dict[str, int]]


def values(request: dict[str, Any], fds: dict[str, int]) -> Answer:
    """Inputs of the cases `request["cases"]` for both calls, the init arguments and the state of Model."""
    numbers, files = request["cases"], {}
    answer: dict[str, Any] = {"layouts": {}}
    with loaded_task(request) as task:
        for k, name in enumerate(("first", "second")):
            arrays: Arrays = {}
            chosen = _chosen(task.cases(request["seed"] + k * SECOND), numbers)
            answer[name] = [
                to_message(list(c), arrays, f"case{n}") for n, c in zip(numbers, chosen, strict=True)
            ]
            if name == "first":
                answer["init"] = to_message(list(task.init()), arrays, "init")
                answer["state"] = _state(task, arrays)
            answer["layouts"][name], files[name] = packed(arrays)
    return answer, files


def _chosen(cases: Sequence[Arguments], numbers: Sequence[int]) -> list[Arguments]:
    return [cases[n] for n in numbers]


def _state(task: LoadedTask, arrays: Arrays) -> dict[str, Any] | None:
    model = task.model()
    if not hasattr(model, "state_dict"):
        return None
    return to_message(dict(model.state_dict()), arrays, "state")


class _Reference:
    """A Model in its own dtypes, and once more in float64 where it has one."""

    def __init__(self, task: LoadedTask) -> None:
        self.task = task
        self.model = task.model()
        self.exact: Any = copy.deepcopy(self.model)
        if hasattr(self.exact, "double"):
            self.exact = self.exact.double()

    def outputs(self, arguments: Arguments) -> Iterator[tuple[Any, Any]]:
        """Each output, in its own dtype and in float64; where the Model cannot do that, in its own dtype twice."""
        exact = self._in_float64(arguments)
        wanted = self.task.outputs(self.model, arguments)
        if len(exact) != len(wanted):
            exact = wanted
        for want, right in zip(wanted, exact, strict=True):
            yield want, right if self._same(want, right) else want

    def _in_float64(self, arguments: Arguments) -> list[Any]:
        args, named = copied(arguments)  # what is no floating tensor is not made anew below
        wide = ([in_float64(x) for x in args], {k: in_float64(x) for k, x in named.items()})
        try:
            return self.task.outputs(self.exact, wide)
        except UsageError:  # it asks for its dtype
            return []

    def habits(self, arguments: Arguments) -> dict[str, bool]:
        """Whether the Model returns memory of an input, or writes to one."""
        before = [_array(x).copy() for x in tensors_in([*arguments[0], *arguments[1].values()])]
        outputs = self.task.outputs(self.model, arguments)
        after = [_array(x) for x in tensors_in([*arguments[0], *arguments[1].values()])]
        returned = [_array(x) for x in outputs if is_tensor(x)]
        return {
            "returns_input": any(np.may_share_memory(x, y) for x in returned for y in after),
            "changes_input": any(x.tobytes() != y.tobytes() for x, y in zip(before, after, strict=True)),
        }

    @staticmethod
    def _same(want: Any, right: Any) -> bool:
        if not (is_tensor(want) and is_tensor(right)):
            return False
        return tuple(want.shape) == tuple(right.shape) and is_floating(want) and is_floating(right)


def judged(request: dict[str, Any], fds: dict[str, int]) -> Answer:
    """Errors of the outputs of an answer: of each case, each output over both calls.

    request: as of `values`, and benchmark, calls: of each case the `to_message` of the outputs of each call, layout: of the
    file "outputs".
    """
    arrays = unpacked(request["layout"], fds["outputs"], MOST_BYTES, writable=True)
    with loaded_task(request) as task:
        reference = _Reference(task)
        found: list[list[list[ComparedOutput]]] = [[] for _ in request["cases"]]
        seen: list[tuple[list[Any], list[Any]]] = [([], []) for _ in request["cases"]]
        for k in range(2):
            cases = _chosen(task.cases(request["seed"] + k * SECOND), request["cases"])
            for place, arguments in enumerate(cases):
                got = as_list(from_message(request["calls"][place][k], arrays))
                wanted = list(reference.outputs(arguments))
                found[place].append(_compared(got, wanted, request["benchmark"]))
                for kept, given in zip(seen[place], (got, [exact for _, exact in wanted]), strict=True):
                    kept.append([_array(x) if is_tensor(x) else None for x in given])
        habits = _habits(task, reference, request) if any(request["habits"]) else [{} for _ in seen]
    encode = Encoder({}).encode
    right = [all(x.passed for x in first) for first, _ in found]
    facts = [{**value_facts(*x, ok).to_json(), **h} for x, ok, h in zip(seen, right, habits, strict=True)]
    outputs = [[encode(x, ComparedOutput) for x in _over_calls(calls)] for calls in found]
    return {"outputs": outputs, "values": facts}, {}


def _habits(task: LoadedTask, reference: _Reference, request: dict[str, Any]) -> list[dict[str, bool]]:
    """What the Model does with its inputs, where the answer does something with them."""
    chosen = _chosen(task.cases(request["seed"]), request["cases"])
    return [reference.habits(x) if asked else {} for x, asked in zip(chosen, request["habits"], strict=True)]


def _compared(got: list[Any], wanted: list[tuple[Any, Any]], benchmark: str) -> list[ComparedOutput]:
    if len(got) != len(wanted):
        return [_wrong_count(len(got), len(wanted))]
    named = [(f"output {k}", *x) for k, x in enumerate(zip(got, wanted, strict=True))]
    return [_compare_one(name, x, pair, benchmark) for name, x, pair in named if pair[0] is not None]


def _wrong_count(got: int, wanted: int) -> ComparedOutput:
    words = f"{got} outputs were returned, the task's Model gives {wanted}"
    return _nothing("outputs", words)


def _nothing(name: str, message: str) -> ComparedOutput:
    """An output that cannot be compared."""
    return ComparedOutput(
        name=name, shape=(), dtype="", elements=0, checked=0, tolerance=EXACT, passed=False, message=message
    )


def _compare_one(name: str, got: Any, pair: tuple[Any, Any], benchmark: str) -> ComparedOutput:
    want, exact = (_array(x) for x in pair)
    if not is_tensor(got) and is_tensor(pair[0]):
        kind = "nothing" if got is None else f"a {type(got).__name__}"
        return _nothing(name, f"{name} is {kind}, the task's is a tensor")
    return compared_output(name, _array(got), want, exact, tolerance(benchmark, want.dtype.name))


def _array(value: Any) -> np.ndarray:
    """Any output as an array: a number is one of no dimension."""
    if not is_tensor(value):
        return np.asarray(value)
    found = as_array(
        "output", value.detach().resolve_neg().resolve_conj() if hasattr(value, "detach") else value
    )
    return np.asarray(found)


def _over_calls(calls: list[list[ComparedOutput]]) -> list[ComparedOutput]:
    """Each output once: its call that does not pass, or has the larger error."""
    fewest = min(calls, key=len)
    return [one_report([call[k] for call in calls]) for k in range(len(fewest))]
