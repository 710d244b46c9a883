"""Fixtures of tests about time and buffers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ascendtile.simulator as sim


@pytest.fixture(scope="module")
def by_hand() -> Iterator[None]:
    """Buffers as an author of Ascend C places them, for what is a law of those and not of the vendor's compiler."""
    with sim.device(compiler="ascendc"):
        yield
