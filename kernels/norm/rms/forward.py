# mypy: disable-error-code="no-untyped-def"
"""RmsNorm, the forward of rms_norm_grad: y and the rstd that the gradient takes.

With x as (R, D), gamma (D,): rstd = 1 / sqrt(mean(x * x over D) + eps); y = x * rstd * gamma. All arithmetic is FP32. Rows
that fit stay in UB, and gamma for all iterations of a core; longer ones are read twice, in chunks of columns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.interpreter.tensors import Shape
from ....simulator.products import Product
from ...operator.draw import Draw
from ...operator.layout import up
from ...operator.operator import Operator, by_name
from ...operator.parallel import float64, in_chunks
from ...operator.plan import Plan, PlanContext
from ...operator.tensors import Arrays, Knobs, Options, Sizes, Tensors, dims
from ...running.face import python_face
from ...shared.sums import row_sums
from ..row_tiles import PARAMETERS, bound_us, check_rows, explored, fits, row_plan
from .op import OPERATOR as GRADIENT

NAME = "rms_norm"
EPS = 1e-6

# -- kernel ----------------------------------------------------------------------------------------------------------


@sim.jit
def rms_norm_rows(
    x_ptr, gamma_ptr, y_ptr, rstd_ptr, row_count, row_length, rows_per_core, inverse_length, eps,
    ROWS: tl.constexpr, COLS: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Rows of a core, ROWS at a time; WHOLE: COLS is the length of a row, which is then read once, and gamma too."""
    pid = tl.program_id(0)
    stop = min(pid * rows_per_core + rows_per_core, row_count)
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    tile = row[:, None] * row_length + col[None, :]
    if WHOLE:
        gamma = tl.load(gamma_ptr + col).to(tl.float32)[None, :]
    for first in range(pid * rows_per_core, stop, ROWS):
        alive = row < stop - first
        at = first * row_length
        if WHOLE:
            x = tl.load(x_ptr + at + tile, mask=alive[:, None], other=0.0).to(tl.float32)
            rstd = 1.0 / tl.sqrt(row_sums(x * x) * inverse_length + eps)
            y = x * rstd[:, None] * gamma
            tl.store(y_ptr + at + tile, y.to(y_ptr.dtype.element_ty), mask=alive[:, None])
        else:
            squares = tl.zeros((ROWS,), tl.float32)
            for begin in range(0, row_length, COLS):
                mask = alive[:, None] & (col < row_length - begin)[None, :]
                x = tl.load(x_ptr + at + begin + tile, mask=mask, other=0.0).to(tl.float32)
                squares += row_sums(x * x)
            rstd = 1.0 / tl.sqrt(squares * inverse_length + eps)
            for begin in range(0, row_length, COLS):
                inside = col < row_length - begin
                mask = alive[:, None] & inside[None, :]
                x = tl.load(x_ptr + at + begin + tile, mask=mask, other=0.0).to(tl.float32)
                weight = tl.load(gamma_ptr + begin + col, mask=inside, other=0.0).to(tl.float32)
                y = x * rstd[:, None] * weight[None, :]
                tl.store(y_ptr + at + begin + tile, y.to(y_ptr.dtype.element_ty), mask=mask)
        tl.store(rstd_ptr + first + row, rstd, mask=alive)


def chunk_bytes(cols: int, rows: int, itemsize: int, copies: int) -> int:
    """UB bytes of chunks of rows x cols, at most: x and y in their own type, FP32 tiles, gamma."""
    cols = up(cols, 16)
    transfers = 2 * itemsize * copies if copies > 1 else 4
    return rows * cols * (transfers + 12) + (4 + 4 * copies) * cols + 128 * rows


# -- the operator ----------------------------------------------------------------------------------------------------


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    rows, cols = dims(sizes["rows"]), dims(sizes["cols"])
    return {"x": sim.shape(rows + cols, dtype), "gamma": sim.shape(cols, dtype)}


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """x of the run's distribution, gamma around 1."""
    return {
        "x": numbers.signal("x", shapes["x"]),
        "gamma": numbers.normal("gamma", shapes["gamma"], scale=0.1, center=1.0),
    }


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """One type; gamma has the last axes of x; no empty tensor."""
    check_rows(NAME, tensors, OPERATOR.dtypes_on(product), product)
    return ()


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    return row_plan(rms_norm_rows, EPS, chunk_bytes, ("gamma",), ("rstd",), tensors, knobs, context)


def formula(inputs: Arrays, options: Options) -> Arrays:
    """y and rstd in float64."""
    gamma = float64(inputs["gamma"]).reshape(-1)
    x = inputs["x"].reshape(-1, gamma.size)
    y: np.ndarray = np.empty(x.shape)
    rstd: np.ndarray = np.empty(len(x))

    def one(start: int, stop: int) -> None:
        part = float64(x[start:stop])
        rstd[start:stop] = 1 / np.sqrt(np.einsum("ij,ij->i", part, part) / gamma.size + EPS)
        part *= rstd[start:stop, None]
        np.multiply(part, gamma, out=y[start:stop])

    in_chunks(len(x), max(8, (1 << 16) // gamma.size), one)
    shape = inputs["x"].shape
    return {"y": y.reshape(shape), "rstd": rstd.reshape(shape[: len(shape) - inputs["gamma"].ndim])}


CASES = ("llama3-8b", "llama3-70b", "deepseek-v3", "query-norm", "decode", "tiny")  # of the gradient
DOC = """y (as x) and rstd (the axes of x before those of gamma, float32) of RMS normalisation with eps 1e-6.

x: float16, bfloat16 or float32; gamma: the last axes of x, of the same type."""

OPERATOR = Operator(
    name=NAME,
    summary="RMS normalisation: y, and rstd for rms_norm_grad (aclnnRmsNorm)",
    required=("x", "gamma"),
    main="x",
    outputs=("y", "rstd"),
    sizes=GRADIENT.sizes,
    cases={n: GRADIENT.cases[n] for n in CASES},
    parameters=PARAMETERS,
    doc=DOC,
    architectures=GRADIENT.architectures,
    **by_name(describe, draw, check, plan, formula, explored, fits, bound_us),
    accumulates="cols",
)


rms_norm = python_face(OPERATOR, __name__)
