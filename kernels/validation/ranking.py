"""Orders that must come out right: rows of the tables, the best first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RankingCase:
    """rows: ids, the best (least time, highest rate) first. only_first: the first must win, no more is published.

    ties: rows that may come out equal to the one before them, because what tells them apart is not modelled.
    """

    name: str
    rows: tuple[str, ...]
    source: str
    only_first: bool = False
    ties: tuple[str, ...] = ()


EX = "mirror-cann/asc-devkit examples/01_simd_cpp_api/05_best_practices"
CASES: tuple[RankingCase, ...] = (
    RankingCase(
        "add of 98 432, block 1024 before 512 and 256",
        ("ta633-add-1024", "ta633-add-512", "ta633-add-256"),
        "triton-lang/triton-ascend issue 633",
        only_first=True,
    ),
    RankingCase(  # steps 6 and 7: order of tiles for L2, which does not limit us there; tiling known to the compiler
        "matmul 8192 cubed, steps 8 (unit flag), 7, 6, 5, 4, 3, 2",
        tuple(f"asc-matmul8192-c{k}" for k in (8, 7, 6, 5, 4, 3, 2)),
        f"{EX}/01_matrix_compute/matmul_high_performance",
        ties=("asc-matmul8192-c6", "asc-matmul8192-c5"),
    ),
    RankingCase(
        "add 8192 x 8192, steps 6 (no bank conflicts), 5 (past L2), 4 (double buffer), 3, 2, 1",
        tuple(f"asc-add8192-c{k}" for k in (6, 5, 4, 3, 2, 1)),
        f"{EX}/00_vector_compute/add_high_performance",
    ),
)
