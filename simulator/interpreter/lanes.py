"""Which programs an interpreter runs, in which order, and how many at once.

A lane is one program, or one Vector core of a program that asks which one it is.
"""

from __future__ import annotations

import numpy as np

from ..ir.passes.split_cores import SUB_VECTOR_CORES, has_sub_vectors
from ..ir.program import Program

MOST_BYTES = 1 << 28  # of tiles whose addition waits: fewer programs run at once where theirs are more
# Elements of the largest tile times programs of a chunk: 128 Ki float32 values are 512 KiB, half of a 1 MiB L2 cache.
CHUNK_ELEMENTS = 1 << 17
# Products take so much longer than moving tiles that running more programs at once gains more than the cache does.
CHUNKS_OF_PRODUCTS = 16
MOVING = (
    "load",
    "for",
    "if",
    "cast",
    "splat",
    "broadcast",
    "expand_dims",
    "reshape",
    "permute",
    "extract_slice",
    "img2col",
    "atomic",
)


def lanes(program: Program, grid: tuple[int, int, int], numbers: np.ndarray) -> np.ndarray:
    """The lanes of programs `numbers`: the numbers, and for a kernel that asks for its Vector core
    (`sub_vec_id`) once more for the second one, as number + programs of the grid.
    """
    if not has_sub_vectors(program):
        return numbers
    total = grid[0] * grid[1] * grid[2]
    return np.concatenate([numbers + k * total for k in range(SUB_VECTOR_CORES)])


def chunk_size(program: Program) -> int:
    """Programs that are run at once."""
    largest = max(
        (r.numel for op in program.walk() for r in op.results if r.static.kind == "dense"), default=1
    )
    most = CHUNK_ELEMENTS * (CHUNKS_OF_PRODUCTS if multiplies_only(program) else 1)
    return max(1, most // largest // (SUB_VECTOR_CORES if has_sub_vectors(program) else 1))


def multiplies_only(program: Program) -> bool:
    """Whether tiles are multiplied by the Cube, and else only moved and cast."""
    kinds = {op.kind for op in program.walk() for r in op.results if r.shape and r.static.kind == "dense"}
    return "dot" in kinds and kinds <= {"dot", *MOVING}


def program_order(program: Program, total: int, seed: int | None) -> np.ndarray:
    """The order in which programs come: ascending, or for a kernel with atomics a permutation that belongs to the seed."""
    if seed is None or not any(op.kind == "atomic" for op in program.walk()):
        return np.arange(total, dtype=np.int64)
    return np.random.Generator(np.random.PCG64(seed)).permutation(total)


def programs_at_once(size: int, bytes_of_program: int) -> int:
    """At most `size` programs whose additions may wait at once."""
    return max(1, min(size, MOST_BYTES // max(1, bytes_of_program)))
