"""Random numbers of the task's process and of the answer's: the same seed gives the same inputs and weights in both."""

from __future__ import annotations

import random
import sys

import numpy as np

WEIGHTS_SEED = 0  # before a Model or ModelNew is made and called: parameters of other names begin alike


def seed_everything(seed: int) -> None:
    """Random numbers of Python, numpy and torch, where it is there, from here on."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (what tasks and answers draw from)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(
            seed
        )  # torch.manual_seed imports its compiler, and takes 2 ms each time


def random_state() -> tuple[bytes, ...]:
    """Where the random numbers of Python, numpy and torch stand: the same before and after what draws none."""
    torch = sys.modules.get("torch")
    own = [] if torch is None else [torch.default_generator.get_state().numpy().tobytes()]
    return (
        repr(random.getstate()).encode(),
        repr(np.random.get_state(legacy=False)["state"]).encode(),  # noqa: NPY002 (as above)
        *own,
    )
