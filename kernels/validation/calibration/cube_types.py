"""Operators of the Cube: products of matrices. What a profile does not tell enough of is named with the reason."""

from __future__ import annotations

from math import prod

from .mapping import FLOATS, Mapper, OpCall, Unmapped, maps, several, sizes, typed
from .profile import ProfiledTask, ProfiledTensor

CUBE_LAYOUTS = ("ND", "NCHW", "NHWC", "", "NULL")


@maps("MatMul", "MatMulV2", "MatMulV3", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "MatMulCommon")
def _matmul(task: ProfiledTask) -> OpCall:
    a, b = several(task.inputs, 2, "inputs")[:2]
    c = several(task.outputs, 1, "outputs")[0]
    (m, n, k), flags = _of_product(*(_matrix(x) for x in (a, b, c)))
    dtypes = f"{typed(a, FLOATS)},{typed(b, FLOATS)}->{typed(c, FLOATS)}"
    return OpCall("matmul", sizes((m, n, k)), dtypes, " ".join(("group=4", *flags)))


@maps("QuantBatchMatmulV3", "QuantBatchMatmul", "QuantMatmul")
def _quant_matmul(task: ProfiledTask) -> OpCall:
    a, b = several(task.inputs, 2, "inputs")[:2]
    c = several(task.outputs, 1, "outputs")[0]
    (m, n, k), flags = _of_product(*(_matrix(x) for x in (a, b, c)))
    dtypes = f"{typed(a, ('int8',))},{typed(b, ('int8',))}->{typed(c)}"
    return OpCall("quant_matmul", sizes((m, n, k)), dtypes, " ".join(("group=3", *flags)))


@maps("GroupedMatmul")
def _grouped(task: ProfiledTask) -> OpCall:
    """One tensor of rows, and weights of all groups."""
    x, w = several(task.inputs, 2, "inputs")[:2]
    if (
        w.shape is None
        or len(w.shape) != 3
        or x.shape is None
        or len(x.shape) != 2
        or x.format not in CUBE_LAYOUTS
    ):
        raise Unmapped("not one tensor of rows and one of all weights in ND")
    (rows, k), (groups, deep, n) = x.shape, w.shape
    if k != deep or rows < groups:
        raise Unmapped("weights that do not fit the rows, or fewer rows than groups")
    dtypes = f"{typed(x, FLOATS)},{typed(w, FLOATS)}->{x.dtype}"
    return OpCall("grouped_matmul", sizes((rows, n, k)), dtypes, f"groups={groups}")


def _matrix(operand: ProfiledTensor) -> tuple[int, int]:
    """Rows and columns of a matrix in ND; leading axes must be 1."""
    shape = operand.shape or ()
    if operand.format not in CUBE_LAYOUTS:
        raise Unmapped(f"an operand in {operand.format}")
    if len(shape) < 2 or prod(shape[:-2]) != 1:
        raise Unmapped("a batch of products, or an operand that is no matrix")
    return shape[-2], shape[-1]


def _of_product(
    a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]
) -> tuple[tuple[int, int, int], list[str]]:
    """M, N, K and which operands are transposed; where a square leaves it open, none is."""
    m, n = c
    ways = [(at, bt) for at in (False, True) for bt in (False, True)]
    for at, bt in ways:
        (m_a, k_a), (k_b, n_b) = a[::-1] if at else a, b[::-1] if bt else b
        if (m_a, n_b) == (m, n) and k_a == k_b:
            return (m, n, k_a), [*(["a=T"] if at else []), *(["b=T"] if bt else [])]
    raise Unmapped(f"shapes {sizes(a)} and {sizes(b)} do not give {sizes(c)}")


UNTOLD = {
    "a profile does not tell stride and padding": ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    "a profile does not tell layout and mask": ("FlashAttentionScore", "FlashAttentionScoreGrad"),
}


def _untold(reason: str) -> Mapper:
    def refuse(task: ProfiledTask) -> OpCall:
        raise Unmapped(reason)

    return refuse


for _reason, _types in UNTOLD.items():
    maps(*_types)(_untold(_reason))
