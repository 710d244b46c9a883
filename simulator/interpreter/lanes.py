"""Lanes of a walk: one for each program, or one for each Vector core of a program that asks which one it is."""

from __future__ import annotations

import numpy as np

from ..ir.passes.split_cores import SUB_VECTOR_CORES, has_sub_vectors
from ..ir.program import Program


def lanes(program: Program, grid: tuple[int, int, int], numbers: np.ndarray) -> np.ndarray:
    """What a walk of programs `numbers` is given: the numbers, and for a kernel that asks for its Vector core
    (`sub_vec_id`) once more for the second one, as number + programs of the grid.
    """
    if not has_sub_vectors(program):
        return numbers
    total = grid[0] * grid[1] * grid[2]
    return np.concatenate([numbers + k * total for k in range(SUB_VECTOR_CORES)])
