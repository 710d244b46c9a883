"""Phase 1 without the time of its kernels: most of these tests ask for statuses and values only."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ascendtile.kernels.aclnn import executor


@pytest.fixture(autouse=True)
def untimed(monkeypatch, request):
    """Every launch takes no time; `@pytest.mark.usefixtures("timed")` asks for the real one."""
    if "timed" not in request.fixturenames:
        monkeypatch.setattr(
            executor,
            "launches_of",
            lambda steps, machine: [
                SimpleNamespace(time_us=0.0, kernel=x.kernel.name, resources={}) for x in steps
            ],
        )


@pytest.fixture
def timed():
    """Launches have their simulated time."""
