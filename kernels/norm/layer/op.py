# mypy: disable-error-code="no-untyped-def"
"""LayerNorm, forward: y, and the mean and rstd that its gradient takes (aclnnLayerNorm).

With x as (R, D), gamma and beta (D,): mean = mean(x over D); rstd = 1 / sqrt(mean((x - mean) ** 2 over D) + eps);
y = (x - mean) * rstd * gamma + beta. All arithmetic is FP32. Rows that fit stay in UB; longer ones are read twice, in chunks
of columns whose statistics are merged, so that no digits are lost where the mean is large beside the spread.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.interpreter.tensors import Shape
from ....simulator.products import Product
from ...operator.declared import read_cases
from ...operator.draw import Draw
from ...operator.layout import up
from ...operator.operator import Operator, by_name
from ...operator.parallel import float64, in_chunks
from ...operator.plan import Plan, PlanContext
from ...operator.tensors import Arrays, Knobs, Options, Sizes, Tensors, dims
from ...running.face import python_face
from ...shared.sums import row_sums
from ..norm_statistics import merged, tile_statistics
from ..rms.forward import OPERATOR as ROWS
from ..row_tiles import PARAMETERS, bound_us, check_rows, explored, fits, row_plan

NAME = "layer_norm"
EPS = 1e-5

# -- kernel ----------------------------------------------------------------------------------------------------------


@sim.jit
def shifted(y, beta):
    """y + beta for each row; beta None stands for zeros."""
    return y if beta is None else y + beta[None, :]


@sim.jit
def row_statistics(x_ptr, at, tile, col, alive, row_length, ROWS: tl.constexpr, COLS: tl.constexpr):
    """Mean and sum of squared deviations of ROWS rows from element `at` on, chunk by chunk."""
    count = 0.0
    mean, squares = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS,), tl.float32)
    for begin in range(0, row_length, COLS):
        mask = alive[:, None] & (col < row_length - begin)[None, :]
        x = tl.load(x_ptr + at + begin + tile, mask=mask, other=0.0).to(tl.float32)
        more = min(COLS, row_length - begin).to(tl.float32)
        tile_mean, tile_squares = tile_statistics(x, mask, 1.0 / more)
        count, mean, squares = merged(count, mean, squares, more, tile_mean, tile_squares)
    return mean, squares


@sim.jit
def layer_norm_rows(
    x_ptr, gamma_ptr, beta_ptr, y_ptr, mean_ptr, rstd_ptr, row_count, row_length, rows_per_core,
    inverse_length, eps,
    ROWS: tl.constexpr, COLS: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Rows of a core, ROWS at a time; WHOLE: COLS is the length of a row, which is then read once."""
    pid = tl.program_id(0)
    stop = min(pid * rows_per_core + rows_per_core, row_count)
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    tile = row[:, None] * row_length + col[None, :]
    beta = None
    if WHOLE:
        gamma = tl.load(gamma_ptr + col).to(tl.float32)[None, :]
        beta = None if beta_ptr is None else tl.load(beta_ptr + col).to(tl.float32)
    for first in range(pid * rows_per_core, stop, ROWS):
        alive = row < stop - first
        at = first * row_length
        if WHOLE:
            x = tl.load(x_ptr + at + tile, mask=alive[:, None], other=0.0).to(tl.float32)
            mean = row_sums(x) * inverse_length
            apart = x - mean[:, None]
            rstd = 1.0 / tl.sqrt(row_sums(apart * apart) * inverse_length + eps)
            y = shifted(apart * rstd[:, None] * gamma, beta)
            tl.store(y_ptr + at + tile, y.to(y_ptr.dtype.element_ty), mask=alive[:, None])
        else:
            mean, squares = row_statistics(x_ptr, at, tile, col, alive, row_length, ROWS, COLS)
            rstd = 1.0 / tl.sqrt(squares * inverse_length + eps)
            for begin in range(0, row_length, COLS):
                inside = col < row_length - begin
                mask = alive[:, None] & inside[None, :]
                x = tl.load(x_ptr + at + begin + tile, mask=mask, other=0.0).to(tl.float32)
                weight = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
                more = None
                if beta_ptr is not None:
                    more = tl.load(beta_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
                y = shifted((x - mean[:, None]) * rstd[:, None] * weight[None, :], more)
                tl.store(y_ptr + at + begin + tile, y.to(y_ptr.dtype.element_ty), mask=mask)
        tl.store(mean_ptr + first + row, mean, mask=alive)
        tl.store(rstd_ptr + first + row, rstd, mask=alive)


def chunk_bytes(cols: int, rows: int, itemsize: int, copies: int) -> int:
    """UB bytes of chunks of rows x cols, at most: x and y in their own type, FP32 tiles, gamma and beta."""
    cols = up(cols, 16)
    transfers = 2 * itemsize * copies if copies > 1 else 4
    return rows * cols * (transfers + 14) + (8 + 8 * copies) * cols + 256 * rows


# -- the operator ----------------------------------------------------------------------------------------------------


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    rows, cols = dims(sizes["rows"]), dims(sizes["cols"])
    vector = sim.shape(cols, dtype)
    return {"x": sim.shape(rows + cols, dtype), "gamma": vector, "beta": vector}


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """x of the run's distribution around 0.5, gamma around 1, beta around 0."""
    return {
        "x": numbers.signal("x", shapes["x"], center=0.5),
        "gamma": numbers.normal("gamma", shapes["gamma"], scale=0.1, center=1.0),
        "beta": numbers.normal("beta", shapes["beta"], scale=0.1),
    }


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """One type; gamma and beta have the last axes of x; no empty tensor."""
    check_rows(NAME, tensors, OPERATOR.dtypes_on(product), product)
    return ()


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    vectors, statistics = ("gamma", "beta"), ("mean", "rstd")
    return row_plan(layer_norm_rows, EPS, chunk_bytes, vectors, statistics, tensors, knobs, context)


def formula(inputs: Arrays, options: Options) -> Arrays:
    """y, mean and rstd in float64."""
    gamma = float64(inputs["gamma"]).reshape(-1)
    beta = float64(inputs["beta"]).reshape(-1) if "beta" in inputs else 0.0
    x = inputs["x"].reshape(-1, gamma.size)
    y: np.ndarray = np.empty(x.shape)
    mean: np.ndarray = np.empty(len(x))
    rstd: np.ndarray = np.empty(len(x))

    def one(start: int, stop: int) -> None:
        part = float64(x[start:stop])
        mean[start:stop] = part.mean(axis=1)
        part -= mean[start:stop, None]
        rstd[start:stop] = 1 / np.sqrt(np.einsum("ij,ij->i", part, part) / gamma.size + EPS)
        part *= rstd[start:stop, None]
        part *= gamma
        np.add(part, beta, out=y[start:stop])

    in_chunks(len(x), max(8, (1 << 16) // gamma.size), one)
    shape = inputs["x"].shape
    leading = shape[: len(shape) - inputs["gamma"].ndim]
    return {"y": y.reshape(shape), "mean": mean.reshape(leading), "rstd": rstd.reshape(leading)}


DOC = """y (as x), mean and rstd (the axes of x before those of gamma, float32) of layer normalisation with eps 1e-5.

x: float16, bfloat16 or float32; gamma, beta (None: zeros): the last axes of x, of the same type."""

OPERATOR = Operator(
    name=NAME,
    summary="layer normalisation: y, mean and rstd (aclnnLayerNorm)",
    required=("x", "gamma"),
    optional=("beta",),
    main="x",
    outputs=("y", "mean", "rstd"),
    sizes=ROWS.sizes,
    cases=read_cases(__file__, NAME),
    parameters=PARAMETERS,
    doc=DOC,
    **by_name(describe, draw, check, plan, formula, explored, fits, bound_us),
    accumulates="cols",
)


layer_norm = python_face(OPERATOR, __name__)
