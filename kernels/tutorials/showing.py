"""What the demonstrations print: the error of an output against float64, and what the launches cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.record.run import Run


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest deviation relative to the largest value; infinite where something is no number."""
    deviation = float(np.abs(found.astype(np.float64) - expected).max())
    return deviation / float(np.abs(expected).max()) if np.isfinite(deviation) else float("inf")


def show(what: str, found: np.ndarray, expected: np.ndarray, *runs: Run) -> None:
    """A line for a result, then one for each launch: its time."""
    print(f"{what}: {list(found.shape)} {found.dtype}, error {error(found, expected):.1e}")
    costs(*runs)


def costs(*runs: Run) -> None:
    """A line for each launch."""
    for run in runs:
        print(f"    {run.name}: {run.time_us:.1f} us, {run.cycles:.0f} cycles")


def drawn(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Normal numbers, the same every time."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(dtype)
