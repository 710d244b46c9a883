"""Importing this makes one small launch, so that the modules which a launch imports late are there, and tables are read.

The process that forks does it once; its children then need 15 ms for a launch and not 300.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator import jit
from ...simulator import language as tl
from ...simulator.device import device
from ...simulator.triton_shim import installed
from ..facts.json_view import run_json

SIZE = 64
DEVICES = ("npu", "cuda")


@jit
def copied(x_ptr: Any, y_ptr: Any, SIZE: tl.constexpr) -> None:
    """y = x + 1 of one tile."""
    at = tl.arange(0, SIZE)
    tl.store(y_ptr + at, tl.load(x_ptr + at) + 1)


def launched(x: Any, y: Any) -> None:
    """A launch with values and time, and what is told of it."""
    with installed(DEVICES), device(values=True, time=True):
        run_json(copied[(1,)](x, y, SIZE=SIZE))


launched(np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32))
