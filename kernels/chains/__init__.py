"""Chains of operators: their error with blame by operator and by line, their time, formats by tensor.

from ascendtile.kernels.chains import run_chain
run = run_chain("mlp", formats={"h": "fp16"}, product="ascend910b3", need={"bits": 10})
run.time_us, run.errors["y"].effective_bits, run.blame.by_step("y")
"""

from .assignment import Assignment, assigned
from .chain import Chain, ChainInput, ChainStep, ReshapedTensor
from .registry import chains, get_chain
from .results import ChainRun
from .running import run_chain

__all__ = [
    "Assignment", "Chain", "ChainInput", "ChainRun", "ChainStep", "ReshapedTensor", "assigned", "chains", "get_chain",
    "run_chain",
]  # fmt: skip
