"""All programs of a grid over values, in chunks that fit the cache; one by one where they talk to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..interpreter.coscheduling import Together
from ..interpreter.interpreter import DEFAULT_STEP_LIMIT
from ..interpreter.lanes import lanes
from ..interpreter.symbolic import wrap
from ..interpreter.tensors import Tensor
from ..interpreter.values import Pointers
from ..ir.passes.split_cores import SUB_VECTOR_CORES, has_sub_vectors
from ..ir.program import Program
from ..precision import dtypes as ty
from ..units.vector import Numerics
from .numpy_backend import ValueRun

# Elements of the largest tile times programs of a chunk: 128 Ki float32 values are 512 KiB, half of a 1 MiB L2 cache.
CHUNK_ELEMENTS = 1 << 17
# Products take so much longer than moving tiles that fewer walks, of more programs, gain more than the cache does.
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
    "atomic",
)


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


def runtime_arguments(program: Program, arguments: dict[str, Any]) -> dict[str, Any]:
    """Values of the parameters as the walker holds them."""
    out: dict[str, Any] = {}
    for name, v in program.params.items():
        x = arguments[name]
        if isinstance(x, Tensor):
            out[name] = Pointers(x, 0)
        elif v.dtype.is_floating():
            with np.errstate(over="ignore"):
                out[name] = np.full(1, x, v.dtype.held)  # type: ignore[union-attr]
        elif v.dtype == ty.uint64:
            out[name] = wrap(x, 64, True)
        else:
            out[name] = x
    return out


def program_order(program: Program, total: int, seed: int | None) -> np.ndarray:
    """The order in which programs come: ascending, or for a kernel with atomics a permutation that belongs to the seed."""
    if seed is None or not any(op.kind == "atomic" for op in program.walk()):
        return np.arange(total, dtype=np.int64)
    return np.random.Generator(np.random.PCG64(seed)).permutation(total)


def run_values(
    program: Program,
    grid: tuple[int, int, int],
    arguments: dict[str, Any],
    numerics: Numerics,
    *,
    one_by_one: bool = False,
    apart: bool = False,
    chunk: int | None = None,
    step_limit: int = DEFAULT_STEP_LIMIT,
    seed: int | None = None,
    waiting: frozenset[int] = frozenset(),
    progress: Callable[[int, int], None] | None = None,
) -> tuple[str, ...]:
    """Execute every program of `grid`; tensors among `arguments` are read and written in place. Gives warnings in words.

    `one_by_one` runs the programs one after another, each seeing what those before it wrote. `apart` walks the parts of the
    Cube and the Vector core side by side (see `interpreter/coscheduling.py`). `seed`: see `Device.atomic_seed`. `waiting`:
    see `ValueRun`.
    """
    total = grid[0] * grid[1] * grid[2]
    size = 1 if one_by_one else chunk or chunk_size(program)
    values = runtime_arguments(program, arguments)
    run: Together | ValueRun
    if apart:
        run = Together(program, lambda part: ValueRun(part, grid, numerics, step_limit))
    else:
        run = ValueRun(program, grid, numerics, step_limit, waiting)
    order = program_order(program, total, seed)
    for first in range(0, total, size):
        numbers = order[first : first + size]
        run.walk(numbers if isinstance(run, Together) else lanes(program, grid, numbers), values)
        if progress is not None:
            progress(min(first + size, total), total)
    walks = [run] if isinstance(run, ValueRun) else [w for w in run.walks.values() if isinstance(w, ValueRun)]
    return tuple(words for w in walks for words in w.found())
