"""RmsNormGrad: gradient of RMS normalisation over the trailing axes (aclnnRmsNormGrad).

With x and dy as (R, D), gamma (D,), rstd (R,):

    xh = x * rstd;  t = dy * gamma;  c = mean(t * xh over D);  dx = (t - xh * c) * rstd;  dgamma = sum(dy * xh over R)

All arithmetic is FP32; dgamma is FP32. The sum over D halves rows down to 64 lanes and finishes with one in-register
tree, as the vendor's current kernels do (hicann/ops-nn, norm/rms_norm_grad).

Strategies: full_row keeps whole rows in UB and reads dy and x once. kept_row does so too, and loads, computes and stores
them in chunks of columns: longer rows fit. split_row sweeps twice over each block of rows: the first sweep makes c and
dgamma, the second reads dy and x again and makes dx. grid cuts rows among cores, too:
for fewer long rows than cores. vendor is the vendor's tiling: a row at a time up to 6080 columns,
several up to 640, above that chunks of 4096 columns, which read everything twice.

combine: dgamma over the rows of a core is a sum in UB, over cores atomic adds or a second launch; cube writes dy * xh out
and multiplies it by ones on the Cube. These products are FP32 whatever the type of the inputs, and so is dgamma by the
operator's document: cube_math_type counts as for FP32 operands. KEEP_DTYPE adds them in FP32, as the other ways do (it is
refused where the Cube takes no FP32); USE_HF32 and USE_FP16 round each of them first (float16 overflows beyond 65504).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .... import simulator as sim
from ....simulator.errors import RefusedError, UsageError
from ....simulator.interpreter.tensors import Shape
from ....simulator.jit_function import JitFunction
from ....simulator.precision.cube_math import Resolution
from ....simulator.precision.dtypes import float32
from ....simulator.products import Product
from ...operator.beyond import Beyond
from ...operator.declared import read_cases, read_parameters
from ...operator.draw import Draw
from ...operator.messages import TILING_FAILED, listed, refuse
from ...operator.operator import OnCube, Operator, by_name, offered_on
from ...operator.parallel import float64, in_chunks
from ...operator.plan import Plan, PlanContext, Step, bank_switches
from ...operator.tensors import (
    Arrays,
    Knobs,
    Options,
    Sizes,
    Tensor,
    Tensors,
    dims,
    dtype_name,
    dtype_of,
    reshaped,
)
from ...running.face import python_face
from ...shared.sums import sum_partials_step, zero_fill_step
from ..column_products import choose_tile, column_steps, operand, resolution
from .choice import TOGETHER, choose
from .grid import grid_steps, grid_tiling
from .space import bound_us, explored, fits
from .tiles import full_row_vendor, kept_row, split_row, split_row_vendor

# -- shapes ----------------------------------------------------------------------------------------------------------

# (dy and x, gamma) by architecture; rstd and dgamma are always float32.
TYPES = {
    2201: (
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float16", "float16"),
        ("float32", "float32"),
        ("bfloat16", "bfloat16"),
    ),
    2002: (("float16", "float16"), ("float32", "float32")),
}
INFERENCE = 2002  # the Atlas inference series: rows of at least one block, no infinities or NaN
BLOCK_BYTES = 32
MAX_RANK = 8


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    rows, cols = dims(sizes["rows"]), dims(sizes["cols"])
    return {
        "dy": sim.shape(rows + cols, dtype),
        "x": sim.shape(rows + cols, dtype),
        "rstd": sim.shape(rows, "float32"),
        "gamma": sim.shape(cols, dtype),
    }


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """dy and x of the run's distribution, gamma around 1, rstd that belongs to x (eps 1e-6)."""
    x = numbers.signal("x", shapes["x"])
    return {
        "dy": numbers.signal("dy", shapes["dy"]),
        "x": x,
        "rstd": rstd_of(x, shapes["rstd"].shape),
        "gamma": numbers.normal("gamma", shapes["gamma"], scale=0.1, center=1.0),
    }


def rstd_of(x: np.ndarray, shape: tuple[int, ...], eps: float = 1e-6) -> np.ndarray:
    """1 / sqrt(mean(x**2) + eps) of each row, fp32; `shape` is that of the rows."""
    count = int(np.prod(shape))
    rows = x.reshape(count, x.size // max(1, count))
    out = np.empty(count, np.float32)

    def one(start: int, stop: int) -> None:
        part = float64(rows[start:stop])
        out[start:stop] = 1 / np.sqrt(np.einsum("ij,ij->i", part, part) / max(1, part.shape[1]) + eps)

    in_chunks(count, _chunk_rows(rows.shape[1]), one)
    return out.reshape(shape)


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """The rules of the operator's page, in its order; gives warnings."""
    check_types(tensors, product)
    check_shapes(tensors)
    return check_inference(tensors, product)


def check_types(tensors: Tensors, product: Product) -> None:
    """The table of types; status 161002."""
    got = {n: dtype_name(x) for n, x in tensors.items()}
    if got["rstd"] != "float32":
        raise refuse(f"rms_norm_grad: rstd is {got['rstd']}; it must be float32")
    if got["dy"] != got["x"]:
        raise refuse(f"rms_norm_grad: dy is {got['dy']}, x is {got['x']}; they must be of one type")
    allowed = TYPES.get(product.integer("product.npu_arch"), ())
    if (got["x"], got["gamma"]) not in allowed:
        pairs = [f"x {a} with gamma {b}" for a, b in allowed]
        raise refuse(
            f"rms_norm_grad: x {got['x']} with gamma {got['gamma']} is not supported on {product.name}; "
            f"allowed are {listed(pairs)}"
        )
    for n, want in (("dx", got["x"]), ("dgamma", "float32")):
        if got.get(n, want) != want:
            raise refuse(f"rms_norm_grad: {n} is {got[n]}; it must be {want}")


def check_shapes(tensors: Tensors) -> None:
    """What the vendor's tiling refuses, in its order, status 561002; dx and dgamma are checked where they are given."""
    _check_ranks(tensors)
    x, gamma = tensors["x"].shape, tensors["gamma"].shape
    for n in ("dy", "dx"):
        if n in tensors and tensors[n].shape != x:
            raise _failed(f"{n} has shape {tensors[n].shape}, x has {x}; they must be equal")
    if x[-1] == 0:
        raise _failed(
            f"x has shape {x} and no elements; the operator refuses empty tensors, the last axis must not be 0"
        )
    rank = len(x) - len(gamma)
    _check_rstd(tensors["rstd"].shape, x, rank)
    for n in ("gamma", "dgamma"):
        if n in tensors and tensors[n].shape != x[rank:]:
            raise _failed(
                f"{n} has shape {tensors[n].shape}; it must be the last axes of x, {x[rank:]} of {x}"
            )
    if tensors["x"].size == 0:
        raise _failed(f"x has shape {x} and no elements; the operator refuses empty tensors")


def _failed(message: str) -> RefusedError:
    return refuse(f"rms_norm_grad: {message}", TILING_FAILED)


def _check_ranks(tensors: Tensors) -> None:
    ranks = {n: len(t.shape) for n, t in tensors.items()}
    for n in ("x", "gamma"):
        if not 1 <= ranks[n] <= MAX_RANK:
            raise _failed(f"{n} has rank {ranks[n]}; it must be from 1 to {MAX_RANK}")
    for n in ("gamma", "rstd"):
        if ranks[n] > ranks["x"]:
            raise _failed(f"{n} has rank {ranks[n]}, x has {ranks['x']}; {n} cannot have more axes than x")
    for n, like in (("dy", "x"), ("dx", "dy"), ("dgamma", "gamma")):
        if n in ranks and ranks[n] != ranks[like]:
            raise _failed(f"{n} has rank {ranks[n]}, {like} has {ranks[like]}; they must be equal")


def _check_rstd(rstd: tuple[int, ...], x: tuple[int, ...], rank: int) -> None:
    """rstd has the row axes of x; axes of length 1 may follow or be left out."""
    padded = rstd + (1,) * (len(x) - len(rstd))
    if padded[:rank] != x[:rank] or any(n != 1 for n in padded[rank:]):
        raise _failed(
            f"rstd has shape {rstd}; it must have the row axes of x, {x[:rank]}, optionally followed by axes of length 1"
        )


def check_inference(tensors: Tensors, product: Product) -> tuple[str, ...]:
    """Rules of the inference series, and warnings."""
    warnings = (
        ["x of rank 1: documented from rank 2 on; taken as one row"] if len(tensors["x"].shape) == 1 else []
    )
    if product.integer("product.npu_arch") == INFERENCE:
        for n in ("x", "gamma"):
            got = tensors[n].shape[-1] * dtype_of(tensors[n]).itemsize
            if got < BLOCK_BYTES:
                raise refuse(
                    f"rms_norm_grad on {product.name}: the last axis of {n} has {got} bytes; "
                    f"it must have at least {BLOCK_BYTES}",
                    TILING_FAILED,
                )
    return tuple(warnings)


GRID_COLUMNS = 16384  # from this length on cutting a row saves more than the second launch takes (simulated)

# -- tiling ----------------------------------------------------------------------------------------------------------

PARAMETERS = read_parameters(__file__, "rms_norm_grad")


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    x, gamma = tensors["x"], tensors["gamma"]
    outputs = {
        "dx": context.output("dx", x.shape, dtype_of(x)),
        "dgamma": context.output("dgamma", gamma.shape, float32),
    }
    if knobs["strategy"] == "grid" and knobs["combine"] == "cube":
        raise UsageError(
            "rms_norm_grad: combine cube is for full_row, kept_row and split_row; take atomic or two_phase"
        )
    if knobs["strategy"] == "grid" or _grid_pays(x, gamma, knobs):
        tiling = grid_tiling(x, gamma, knobs, context)
        steps = grid_steps(tensors, outputs["dx"], outputs["dgamma"], tiling, context)
        return Plan(tuple(steps), outputs, tiling)
    tiling = choose(x, gamma, knobs, context)
    row_count = x.size // gamma.size
    on_cube = tiling["combine"] == "cube"
    parts, before, target = None, list[Step](), outputs["dgamma"]
    if on_cube:
        parts, after = _on_cube(x, target, tiling, context)
    else:
        before, target, after = _combined(target, tiling, context)
    arguments = {
        **{f"{n}_ptr": tensor for n, tensor in tensors.items()},
        "dx_ptr": outputs["dx"],
        "dgamma_ptr": target,
        "row_count": row_count,
        "rows_per_core": -(-row_count // tiling["cores"]),
        "ROWS": tiling["rows"],
        "multibuffer": tiling["buffers"],
    }
    kernel, own = _kernel(tiling, gamma.size, dtype_of(x).itemsize)
    if tiling["strategy"] != "vendor":
        own["parts_ptr"] = parts
    main = Step(kernel, tiling["cores"], {**arguments, **own}, bank_switches(tiling))
    return Plan((*before, main, *after), outputs, tiling, uses_cube=on_cube)


def _grid_pays(x: Tensor, gamma: Tensor, knobs: Knobs) -> bool:
    """Whether auto cuts rows among cores: a single long one, for which one core would work and two launches cost less."""
    free = knobs["strategy"] == "auto" and knobs["combine"] != "cube" and knobs["cores"] is None
    return free and x.size == gamma.size and gamma.size >= GRID_COLUMNS


def _kernel(tiling: Knobs, length: int, itemsize: int) -> tuple[JitFunction, dict[str, Any]]:
    """The kernel of a tiling, and the arguments that only it has."""
    two_phase, strategy = tiling["combine"] == "two_phase", tiling["strategy"]
    if strategy in ("full_row", "kept_row"):
        # Two copies of dx with one buffer, too; with two they are the same, and both are one program.
        narrow = strategy == "kept_row" and itemsize == 2 and tiling["buffers"] <= 2
        own: dict[str, Any] = {"OUT_COPIES": 2 if narrow else 1, "TOGETHER": TOGETHER}
        return kept_row, {**own, "SIZES": (length, tiling["cols"]), "TWO_PHASE": two_phase}
    if strategy == "vendor" and tiling["cols"] == length:
        return full_row_vendor, {"COLS": tiling["cols"], "TWO_PHASE": two_phase}
    own = {
        "COLS": tiling["cols"],
        "row_length": length,
        "inverse_length": 1.0 / length,
        "part_stride": length if two_phase else 0,
    }
    return split_row_vendor if strategy == "vendor" else split_row, own


def _combined(dgamma: Tensor, tiling: Knobs, context: PlanContext) -> tuple[list[Step], Tensor, list[Step]]:
    """Launches before the main one, where it puts its parts of dgamma, launches after it."""
    cores = context.product.vector_cores
    if tiling["combine"] == "atomic":
        return [zero_fill_step(dgamma, cores)], dgamma, []
    parts = context.tensor((tiling["cores"], dgamma.size), float32)
    adds = tiling["strategy"] == "split_row" or (
        tiling["strategy"] == "vendor" and tiling["cols"] < dgamma.size
    )
    clear = [zero_fill_step(parts, cores)] if adds else []
    return clear, parts, [sum_partials_step(parts, dgamma, cores, tiling["buffers"])]


def _on_cube(
    x: Tensor, dgamma: Tensor, tiling: dict[str, Any], context: PlanContext
) -> tuple[Tensor, list[Step]]:
    """Where the main launch puts dy * xh, in the type that the Cube multiplies, and the launches that add it up.

    The products are FP32 values and dgamma is FLOAT32 by the operator's document: what a cubeMathType does to FP32 operands.
    """
    rows, cols = x.size // dgamma.size, dgamma.size
    if tiling["strategy"] == "vendor":
        raise UsageError(
            "rms_norm_grad: combine cube is not the vendor's; take atomic or two_phase with strategy vendor"
        )
    dtype, resolved = operand("rms_norm_grad", float32, context.product)
    tile = choose_tile(rows, cols, dtype.itemsize, tiling, context.product)
    tiling |= {"cube_rows": tile.rows, "cube_cols": tile.cols}
    parts = context.tensor((rows, cols), dtype)
    return parts, column_steps(parts, reshaped(dgamma, (cols,)), tile, resolved, dtype, context)


# -- reference -------------------------------------------------------------------------------------------------------


def formula(inputs: Arrays, options: Options) -> Arrays:
    """dx and dgamma in float64."""
    return _formula_seen(inputs, options, None)


def _resolve(tensors: Tensors, product: Product, mode: str) -> Resolution:
    return resolution(float32, product, mode)


def _formula_seen(
    inputs: Arrays, options: Options, seen: Callable[[np.ndarray], np.ndarray] | None
) -> Arrays:
    """The same with what combine cube adds up, dy * xh, rounded by `seen` to what the Cube multiplies."""
    shape = inputs["x"].shape
    gamma = float64(inputs["gamma"]).reshape(-1)
    x, dy = (inputs[n].reshape(-1, gamma.size) for n in ("x", "dy"))
    rstd = float64(inputs["rstd"]).reshape(-1, 1)
    dx = np.empty(x.shape)

    def one(start: int, stop: int) -> np.ndarray:
        part = float64(dy[start:stop])
        xh = float64(x[start:stop])
        xh *= rstd[start:stop]
        weighted = part * gamma
        c = np.einsum("ij,ij->i", weighted, xh)[:, None] / gamma.size
        sums: np.ndarray = seen(part * xh).sum(axis=0) if seen else np.einsum("ij,ij->j", part, xh)
        weighted -= np.multiply(xh, c, out=xh)
        np.multiply(weighted, rstd[start:stop], out=dx[start:stop])
        return sums

    dgamma = np.sum(in_chunks(len(x), _chunk_rows(gamma.size), one), axis=0)
    return {"dx": dx.reshape(shape), "dgamma": dgamma.reshape(inputs["gamma"].shape)}


def _chunk_rows(length: int) -> int:
    """Rows of a host chunk: 2**16 elements, 512 KiB in float64, at least 8 rows."""
    return max(8, (1 << 16) // max(1, length))


# -- the operator ----------------------------------------------------------------------------------------------------


DOC = """dx and dgamma of RMS normalisation, on a product.

x: L + T axes, 1 to 8 in all; gamma: T axes; rstd: L axes, float32, optionally followed by axes of length 1; dy as x.
dy and x are float16, bfloat16 or float32; gamma is of their type or float32. Outputs: dx (as x), dgamma (shape of
gamma, float32).

Beyond the operator's document: tensors that are not contiguous (a launch copies them first) and the Atlas A3 series;
newer documents have both. `notes` of the result say so. On 310P infinities and NaN are not supported: a warning."""

OPERATOR = Operator(
    name="rms_norm_grad",
    summary="gradient of RMS normalisation: dx and dgamma (aclnnRmsNormGrad)",
    required=("dy", "x", "rstd", "gamma"),
    main="x",
    fixed_dtypes={"rstd": "float32"},
    outputs=("dx", "dgamma"),
    sizes={
        "rows": "rows, or all axes of x before the normalised ones",
        "cols": "length of a row, or all normalised axes",
    },
    cases=read_cases(__file__, "rms_norm_grad"),
    parameters=PARAMETERS,
    doc=DOC,
    architectures=offered_on(2201, 2002),
    **by_name(describe, draw, check, plan, formula, explored, fits, bound_us),
    empty=True,
    accumulates="cols",
    scaled="dy",
    on_cube=OnCube("combine", "cube", _resolve, _formula_seen, ("dgamma",)),
    whole="dgamma sums over all rows, dx over whole rows",
    beyond=Beyond(a3=True, strided=True),
    finite_on=(INFERENCE,),
)


rms_norm_grad = python_face(OPERATOR, __name__)
