"""The command line in this process, and records of one kernel that is timed once."""

from __future__ import annotations

import pytest

import ascendtile.simulator as sim

from ..reports.conftest import ascendtile, refused
from ..support.kernels import add

__all__ = ["ascendtile", "refused"]

N = 100_000


def time_add(block=4096, product="ascend910b3", **options):
    """The time of a kernel that adds two vectors."""
    with sim.device(product, values=False, **options):
        x = sim.shape((N,), "float16")
        return add[(-(-N // block),)](x, x, x, N, BLOCK=block)


@pytest.fixture(scope="session")
def small():
    return time_add(2048)


@pytest.fixture(scope="session")
def large():
    return time_add(4096)
