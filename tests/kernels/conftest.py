"""Values without time: most of these tests look at numbers only."""

from __future__ import annotations

import functools

import pytest

from ascendtile.kernels import run_op


@pytest.fixture
def values():
    """`run_op` without time and without error reports."""
    return functools.partial(run_op, time=False, errors=False)
