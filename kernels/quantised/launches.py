"""The launches of a product of quantised numbers."""

from __future__ import annotations

from typing import Any

from ...simulator.precision import dtypes as ty
from ..operator.layout import up
from ..operator.plan import PlanContext, Step
from ..operator.tensors import Knobs, Tensor, Tensors, dtype_of
from .form import FLOAT, Form, Lengths
from .space import depth_of
from .tiles import finished_tiles, quantised_tiles, unpacked_tiles

FINISH_ROWS, FINISH_ELEMENTS = 16, 4096  # of a tile of `finished_tiles`
UNPACK_ROWS, UNPACK_COLUMNS = 64, 256  # of a tile of `unpacked_tiles`


def product_steps(
    tensors: Tensors, out: Tensor, form: Form, n: Lengths, tiling: dict[str, Any], context: PlanContext
) -> list[Step]:
    """All of them, in order. tiling: every knob; block_k and split_k become what is used."""
    steps: list[Step] = []
    used = dict(tensors)
    if tiling["scaling"] == "apart" and not form.x8:
        shape = (n.n, n.k) if form.transposed else (n.k, n.n)
        used["weight"] = context.tensor(shape, dtype_of(tensors["x"]))
        steps.append(_unpack(tensors, used["weight"], form, n, tiling, context))
        form = form._replace(weight=FLOAT, where="nowhere", group=0, offset=False, scale="none")
    tiling["block_k"] = depth_of(form, tiling["block_k"], n.k)
    part, parts = parts_of(form, n, tiling)
    tiling["split_k"] = parts
    in_parts = parts > 1 or (form.x8 and tiling["scaling"] == "apart")
    if not in_parts:
        where = "fixpipe" if form.x8 and tiling["scaling"] == "fixpipe" else form.where
        return [*steps, _product(used, out, form._replace(where=where), n, part, tiling)]
    kind = ty.int32 if form.x8 and not form.group else ty.float32
    sums = context.tensor((parts, n.m, n.n), kind)
    where = "nowhere" if form.x8 else form.where
    steps.append(_product(used, sums, form._replace(where=where, bias="none", tokens=False), n, part, tiling))
    return [*steps, _finish(used, sums, out, form, n, tiling, context)]


def parts_of(form: Form, n: Lengths, tiling: Knobs) -> tuple[int, int]:
    """(terms of a part, parts): whole steps of the sum, or whole groups of scales where they are not on the weights."""
    step = form.group if form.x8 and form.group else tiling["block_k"]
    part = up(-(-n.k // (tiling["split_k"] or 1)), step)
    return part, -(-n.k // part)


def pointers(tensors: Tensors) -> dict[str, Any]:
    """Arguments of the kernels by the inputs that they read; None for those that are not there."""
    names = {"x": "x", "w": "weight", "s": "scale", "o": "offset", "t": "token_scale", "b": "bias"}
    return {f"{letter}_ptr": tensors.get(name) for letter, name in names.items()}


def _product(tensors: Tensors, out: Tensor, form: Form, n: Lengths, part: int, tiling: Knobs) -> Step:
    bm, bn, bk = (tiling[f"block_{x}"] for x in "mnk")
    items = -(-n.m // bm) * -(-n.n // bn) * -(-n.k // part)
    even = not (n.m % bm or n.n % bn or n.k % part or part % bk)
    arguments = {
        **pointers(tensors),
        **{
            "out_ptr": out,
            "M": n.m,
            "N": n.n,
            "K": n.k,
            "items": items,
            "part": part,
            "band": tiling["band"],
        },
        **{"BM": bm, "BN": bn, "BK": bk, "FORM": form._replace(even=even), "multibuffer": tiling["buffers"]},
    }
    return Step(quantised_tiles, min(items, tiling["cores"]), arguments)


def _unpack(
    tensors: Tensors, out: Tensor, form: Form, n: Lengths, tiling: Knobs, context: PlanContext
) -> Step:
    rows, columns = depth_of(form, UNPACK_ROWS, n.k), min(UNPACK_COLUMNS, up(n.n, 32))
    items = -(-n.k // rows) * -(-n.n // columns)
    found = pointers(tensors)
    arguments = {
        **{name: found[name] for name in ("w_ptr", "s_ptr", "o_ptr")},
        **{"out_ptr": out, "N": n.n, "K": n.k, "items": items, "BK": rows, "BN": columns},
        "FORM": form._replace(even=not (n.k % rows or n.n % columns)),
        "multibuffer": tiling["buffers"],
    }
    return Step(unpacked_tiles, min(items, context.product.vector_cores), arguments)


def _finish(
    tensors: Tensors, sums: Tensor, out: Tensor, form: Form, n: Lengths, tiling: Knobs, context: PlanContext
) -> Step:
    columns = min(FINISH_ELEMENTS // FINISH_ROWS, up(n.n, 32))
    rows = min(n.m, FINISH_ELEMENTS // columns)
    items = -(-n.m // rows) * -(-n.n // columns)
    found = pointers(tensors)
    arguments = {
        **{name: found[name] for name in ("s_ptr", "t_ptr", "b_ptr")},
        **{"parts_ptr": sums, "out_ptr": out, "M": n.m, "N": n.n, "items": items, "PARTS": sums.shape[0]},
        **{"ROWS": rows, "COLS": columns, "multibuffer": tiling["buffers"]},
        "FORM": form._replace(even=not (n.m % rows or n.n % columns)),
    }
    return Step(finished_tiles, min(items, context.product.vector_cores), arguments)
