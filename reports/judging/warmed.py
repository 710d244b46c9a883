"""Importing this makes one small launch, so that the modules which a launch imports late are there, and tables are read.

The process that forks does it once; its children then need 15 ms for a launch and not 300.
"""

from __future__ import annotations

import sysconfig
from typing import Any

import numpy as np

from ...simulator import jit
from ...simulator import language as tl
from ...simulator.call import Call
from ...simulator.device import device
from ...simulator.observers import watch_calls
from ...simulator.triton_shim import installed
from ..facts.json_view import run_json
from .answer_log import AnswerLog, AnswerRequest
from .answering.fingerprints import know
from .pricing.trying import explained
from .seeds import random_state

SIZE = 64
DEVICES = ("npu", "cuda")


@jit
def copied(x_ptr: Any, y_ptr: Any, SIZE: tl.constexpr) -> None:
    """y = x + 1 of one tile."""
    at = tl.arange(0, SIZE)
    tl.store(y_ptr + at, tl.load(x_ptr + at) + 1)


def launched(x: Any, y: Any) -> None:
    """A launch with values and time, and what is told and tried of it."""
    calls: list[Call] = []
    with installed(DEVICES), device(values=True, time=True), watch_calls(calls.append):
        run_json(copied[(1,)](x, y, SIZE=SIZE))
    explained(calls[0])


def exchanged() -> None:
    """What the annotations of messages are looked up for."""
    plain = {"plain": None}
    asked = AnswerRequest(
        text="", name="", entry="", is_class=False, torch=False, values=False, init=plain, cases=()
    )
    AnswerRequest.from_json(asked.to_json())
    AnswerLog.from_json(AnswerLog().to_json())


exchanged()
random_state()
sysconfig.get_paths()
launched(np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32))
know()
