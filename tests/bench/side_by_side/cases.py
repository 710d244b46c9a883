"""The cases: data, launch and float64 reference of each; numpy only, since both engines' workers import it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
CORES = 40  # programs of the kernels that take rows in turn
EPS = 1e-5


@dataclass(frozen=True)
class Case:
    """One launch. `arrays` gives inputs and outputs; `arguments` the rest of the call; `expected` float64 outputs.

    error: largest deviation allowed, relative to the largest value of the output.
    named: whether the case is one of those that the speed goal names.
    """

    name: str
    kernel: str
    grid: int
    arrays: Callable[[], Arrays]
    arguments: dict[str, Any]
    expected: Callable[[Arrays], Arrays]
    error: float = 1e-5
    named: bool = True


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def add_case(power: int, block: int) -> Case:
    n = 1 << power

    def arrays() -> Arrays:
        return {"x_ptr": drawn(1, n), "y_ptr": drawn(2, n), "out_ptr": np.empty(n, np.float32)}

    def expected(given: Arrays) -> Arrays:
        return {"out_ptr": given["x_ptr"].astype(np.float64) + given["y_ptr"]}

    return Case(
        f"add 2^{power}, block {block}", "add", n // block, arrays, {"n": n, "BLOCK": block}, expected
    )


def softmax_case(rows: int, columns: int) -> Case:
    def arrays() -> Arrays:
        return {"x_ptr": drawn(1, rows, columns), "out_ptr": np.empty((rows, columns), np.float32)}

    def expected(given: Arrays) -> Arrays:
        x = given["x_ptr"].astype(np.float64)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return {"out_ptr": e / e.sum(axis=1, keepdims=True)}

    return Case(
        f"softmax {rows}x{columns}",
        "softmax",
        min(CORES, rows),
        arrays,
        {"rows": rows, "columns": columns, "BLOCK": power_of_two(columns)},
        expected,
    )


def power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def matmul_case(size: int, bm: int, bn: int, bk: int, named: bool = True) -> Case:
    def arrays() -> Arrays:
        a, b = (drawn(s, size, size).astype(np.float16) for s in (1, 2))
        return {"a_ptr": a, "b_ptr": b, "c_ptr": np.empty((size, size), np.float16)}

    def expected(given: Arrays) -> Arrays:
        return {"c_ptr": given["a_ptr"].astype(np.float64) @ given["b_ptr"].astype(np.float64)}

    return Case(
        f"matmul {size} fp16 {bm}x{bn}x{bk}",
        "matmul",
        -(-size // bm) * -(-size // bn),
        arrays,
        {"M": size, "N": size, "K": size, "BM": bm, "BN": bn, "BK": bk, "GROUP": 8},
        expected,
        1e-3,
        named,
    )


def statistics(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and reciprocal deviation of each row, float64."""
    x = x.astype(np.float64)
    return x.mean(axis=1), 1 / np.sqrt(x.var(axis=1) + EPS)


def layer_norm_case(rows: int, columns: int) -> Case:
    def arrays() -> Arrays:
        return {
            "x_ptr": drawn(1, rows, columns) * 2 + 1,
            "w_ptr": drawn(2, columns),
            "b_ptr": drawn(3, columns),
            "y_ptr": np.empty((rows, columns), np.float32),
            "mean_ptr": np.empty(rows, np.float32),
            "rstd_ptr": np.empty(rows, np.float32),
        }

    def expected(given: Arrays) -> Arrays:
        x = given["x_ptr"].astype(np.float64)
        mean, rstd = statistics(x)
        y = (x - mean[:, None]) * rstd[:, None] * given["w_ptr"] + given["b_ptr"]
        return {"y_ptr": y, "mean_ptr": mean, "rstd_ptr": rstd}

    return Case(
        f"layer norm {rows}x{columns}",
        "layer_norm",
        rows,
        arrays,
        {"columns": columns, "eps": EPS, "BLOCK": power_of_two(columns)},
        expected,
    )


def layer_norm_backward_case(rows: int, columns: int) -> Case:
    programs = min(CORES, rows)

    def arrays() -> Arrays:
        x = drawn(1, rows, columns) * 2 + 1
        mean, rstd = (s.astype(np.float32) for s in statistics(x))
        return {
            "dy_ptr": drawn(2, rows, columns),
            "x_ptr": x,
            "w_ptr": drawn(3, columns),
            "mean_ptr": mean,
            "rstd_ptr": rstd,
            "dx_ptr": np.empty((rows, columns), np.float32),
            "dw_ptr": np.empty((programs, columns), np.float32),
            "db_ptr": np.empty((programs, columns), np.float32),
        }

    def expected(given: Arrays) -> Arrays:
        dy, rstd = given["dy_ptr"].astype(np.float64), given["rstd_ptr"].astype(np.float64)[:, None]
        xhat = (given["x_ptr"] - given["mean_ptr"].astype(np.float64)[:, None]) * rstd
        wdy = dy * given["w_ptr"]
        c1, c2 = ((v).mean(axis=1, keepdims=True) for v in (xhat * wdy, wdy))
        parts = [np.stack([v[p::programs].sum(axis=0) for p in range(programs)]) for v in (dy * xhat, dy)]
        return {"dx_ptr": (wdy - (xhat * c1 + c2)) * rstd, "dw_ptr": parts[0], "db_ptr": parts[1]}

    return Case(
        f"layer norm backward {rows}x{columns}",
        "layer_norm_backward",
        programs,
        arrays,
        {"rows": rows, "columns": columns, "BLOCK": power_of_two(columns)},
        expected,
    )


def rms_norm_case(rows: int, columns: int) -> Case:
    def arrays() -> Arrays:
        return {
            "x_ptr": drawn(1, rows, columns),
            "w_ptr": drawn(2, columns),
            "y_ptr": np.empty((rows, columns), np.float32),
            "rstd_ptr": np.empty(rows, np.float32),
        }

    def expected(given: Arrays) -> Arrays:
        x = given["x_ptr"].astype(np.float64)
        rstd = 1 / np.sqrt((x * x).mean(axis=1) + EPS)
        return {"y_ptr": x * rstd[:, None] * given["w_ptr"], "rstd_ptr": rstd}

    return Case(
        f"RMS norm {rows}x{columns}",
        "rms_norm",
        rows,
        arrays,
        {"columns": columns, "eps": EPS, "BLOCK": power_of_two(columns)},
        expected,
    )


def rms_norm_backward_case(rows: int, columns: int) -> Case:
    programs = min(CORES, rows)
    share = -(-rows // programs)

    def arrays() -> Arrays:
        x = drawn(1, rows, columns)
        rstd = 1 / np.sqrt((x.astype(np.float64) ** 2).mean(axis=1) + EPS)
        return {
            "dy_ptr": drawn(2, rows, columns),
            "x_ptr": x,
            "w_ptr": drawn(3, columns),
            "rstd_ptr": rstd.astype(np.float32),
            "dx_ptr": np.empty((rows, columns), np.float32),
            "dw_ptr": np.empty((programs, columns), np.float32),
        }

    def expected(given: Arrays) -> Arrays:
        dy, rstd = given["dy_ptr"].astype(np.float64), given["rstd_ptr"].astype(np.float64)[:, None]
        xhat, m = given["x_ptr"] * rstd, dy * given["w_ptr"]
        c = (m * xhat).mean(axis=1, keepdims=True)
        parts = [(dy * xhat)[p * share : p * share + share].sum(axis=0) for p in range(programs)]
        return {"dx_ptr": (m - xhat * c) * rstd, "dw_ptr": np.stack(parts)}

    return Case(
        f"RMS norm backward {rows}x{columns}",
        "rms_norm_backward",
        programs,
        arrays,
        {"rows": rows, "columns": columns, "BLOCK": power_of_two(columns)},
        expected,
    )


FULL = [
    add_case(20, 1024),
    add_case(22, 1024),
    add_case(24, 1024),
    add_case(24, 16384),
    softmax_case(4096, 1024),
    matmul_case(512, 64, 64, 32),
    matmul_case(1024, 64, 64, 32),
    matmul_case(1024, 128, 256, 64, named=False),
    layer_norm_case(4096, 2048),
    layer_norm_backward_case(4096, 2048),
    rms_norm_case(4096, 2048),
    rms_norm_backward_case(4096, 2048),
]

SMALL = [
    add_case(12, 1024),
    softmax_case(83, 100),
    matmul_case(100, 64, 64, 32),
    layer_norm_case(5, 200),
    layer_norm_backward_case(83, 200),
    rms_norm_case(5, 200),
    rms_norm_backward_case(83, 200),
]

CASES = {case.name: case for case in (*FULL, *SMALL)}
