"""One engine in one process: `python -m side_by_side.worker triton|ascendtile` reads lines of JSON [case, again].

again: whether the run takes the arrays of the run before (an identical launch); else it takes other data, in memory that
no earlier launch of the case had. It answers with a line of JSON: CPU seconds of the launch alone (all threads of the
process), and the largest error of each output, relative to the output's largest value, against float64.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from .cases import CASES, Arrays, Case

Wrap = Callable[[np.ndarray], Any]


def load_triton() -> tuple[ModuleType, Wrap]:
    """Triton's interpreter: it is chosen by an environment variable that must be there before the import."""
    os.environ["TRITON_INTERPRET"] = "1"
    import torch
    import triton
    import triton.language as tl

    torch.set_num_threads(1)
    return engine(triton.jit, tl), torch.from_numpy


def load_ascendtile() -> tuple[ModuleType, Wrap]:
    import ascendtile.simulator as sim
    import ascendtile.simulator.language as tl

    return engine(sim.jit, tl), lambda array: array


def engine(jit: Any, tl: Any) -> ModuleType:
    module = ModuleType("engine")
    module.__dict__.update(jit=jit, tl=tl)
    return module


class Bench:
    """An engine, its kernels, and all data of the case that was asked for last."""

    def __init__(self, name: str) -> None:
        sys.modules["engine"], self.wrap = load_triton() if name == "triton" else load_ascendtile()
        self.kernels = importlib.import_module(".kernels", __package__)
        self.case: Case | None = None
        self.used: list[Arrays] = []  # kept alive: freed memory could come back under the same address
        self.expected: Arrays = {}

    def prepare(self, case: Case, again: bool) -> Arrays:
        """The arrays of a run; other data are those of the run before in reverse order."""
        if case is not self.case:
            self.case, self.used = case, []
        if not (again and self.used):
            before = self.used[-1] if self.used else case.arrays()
            self.used.append({k: x[::-1].copy() for k, x in before.items()})
            self.expected = case.expected(self.used[-1])
        return self.used[-1]

    def run_case(self, name: str, again: bool) -> dict[str, Any]:
        case = CASES[name]
        arrays = self.prepare(case, again)
        for output in self.expected:
            arrays[output].fill(np.nan)  # what an earlier run left must not pass as a result
        wrapped = {k: self.wrap(x) for k, x in arrays.items()}
        launch = getattr(self.kernels, case.kernel)[(case.grid,)]
        begin = time.process_time()
        launch(**wrapped, **case.arguments)
        seconds = time.process_time() - begin
        errors = {k: error(arrays[k], x) for k, x in self.expected.items()}
        return {"seconds": seconds, "errors": errors, "good": max(errors.values()) <= case.error}


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest deviation, relative to the largest value; infinite if anything is not a number."""
    deviation = np.abs(found.astype(np.float64) - expected).max()
    return float(deviation / np.abs(expected).max()) if np.isfinite(deviation) else float("inf")


def main() -> None:
    bench = Bench(sys.argv[1])
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(bench.run_case(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
