"""The least time of a task: no kernel of a product can be faster, however it is written.

    launch + the largest of  bytes / rate of L2                    (all that is read or written passes it)
                             (bytes beyond L2) / rate of memory
                             products / rate of the Cube

launch: what one launch takes before and after its cores. Rates are the highest of the product's figures. What L2 holds, an
earlier launch may have left there, and a later one may write back: only what it has no room for counts, of inputs and of
outputs. A time below the floor is none of a kernel that does the task, so what is not certain is left out:

* Inputs count where every operation of the task needs all elements, and where random numbers alone were drawn for them:
  half of a symmetric matrix is enough, and of a triangular one nobody reads the zeros.
* Outputs count where the task computes as many elements; views of inputs are none.
* Products count where nothing after them but element-wise operations makes the result, so that no sum can go before them
  and no other order saves them; of a convolution one multiplication for each channel and result, as fast algorithms
  (Winograd, Fourier) save the others. Half of them are taken: Strassen's algorithm saves an eighth at each level
  (Strassen, Gaussian elimination is not optimal, 1969). Floating-point operands count as FP16, in which slices of FP32 are
  multiplied, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....simulator.products import Product
from ....simulator.timing.engine.machine import launch_overhead_us
from .names import ELEMENTWISE, JOINING, MOVES, PRODUCTS, RANDOM, WHOLE_VIEWS
from .operation import HostOp, HostTensor, classify

FAST_PRODUCTS = 0.5  # of the multiplications that are counted
BITS = {
    "bool": 8,
    "uint8": 8,
    "int8": 8,
    "int16": 16,
    "float16": 16,
    "bfloat16": 16,
    "int64": 64,
    "float64": 64,
}
INTEGERS = {"int8": "int8", "uint8": "int8"}


def floor_us(
    inputs: Sequence[HostTensor],
    outputs: Sequence[HostTensor],
    ops: Sequence[HostOp],
    product: Product,
    made: Sequence[HostOp] | None = None,
) -> float:
    """Least time in us of one call of a task, in as many launches as it may take.

    inputs: what a call is given; parameters of the task are none, as an answer may prepare them. outputs: what it returns.
    ops: what the task does, as recorded. made: how its inputs were made, as recorded; None: nobody knows, and none counts.
    """
    known = made is not None and _unknown_values(made) and all(map(_needs_all, ops))
    read = sum(map(nbytes, _read(inputs, ops))) if known else 0
    written = sum(map(nbytes, _written(outputs, ops)))
    flops, kind = _needed_products(ops) if known else (0, "fp16")
    return least_us(product, read, written, FAST_PRODUCTS * flops, kind)


def least_us(product: Product, read: int, written: int, flops: float = 0.0, kind: str = "fp16") -> float:
    """Of one launch that reads and writes so many bytes and makes so many products of a type of the Cube (2 for each)."""
    moved, room = read + written, product.integer("l2.size")
    beyond = max(0, read - room) + max(0, written - room)
    l2 = min(2 * product.l2_bytes_per_cycle, product.l2_mixed_bytes_per_cycle)
    cycles = max(moved / l2, beyond / product.hbm_bytes_per_cycle, flops / _cube_rate(product, kind))
    return launch_overhead_us(product) + product.cycles_to_us(cycles)


def _cube_rate(product: Product, kind: str) -> float:
    """Products of all Cube cores in a cycle, 2 for each multiplication."""
    key = f"cube.k_per_cycle.{kind}"
    depth = product.number(key if product.has(key) else "cube.k_per_cycle.fp16")
    return 2.0 * product.number("cube.m") * product.number("cube.n") * depth * product.cube_cores


def nbytes(t: HostTensor) -> int:
    """Of a tensor in memory; a type that is not known here counts 4 bytes."""
    return t.elements * BITS.get(t.dtype, 32) // 8


def _unknown_values(made: Sequence[HostOp]) -> bool:
    """Whether inputs are random numbers, or functions of one such number each."""
    computed = [op for op in made if classify(op) != "view" and op.bytes]
    alone = (op.base in RANDOM or (_elementwise(op) and len(op.inputs) == 1) for op in computed)
    views = all(op.base in WHOLE_VIEWS and not _repeats(op) for op in made if classify(op) == "view")
    return bool(computed) and all(alone) and views


def _elementwise(op: HostOp) -> bool:
    return op.base in MOVES or op.base.removesuffix("_") in ELEMENTWISE


def _repeats(op: HostOp) -> bool:
    return any(t.elements > max((x.elements for x in op.inputs), default=0) for t in op.outputs)


def _needs_all(op: HostOp) -> bool:
    """Whether a result depends on every element of the inputs. A mask is an input of which it does not."""
    if any(t.dtype == "bool" for t in op.inputs):
        return False
    if classify(op) == "create":
        return True
    if op.base in JOINING or op.base == "scaled_dot_product_attention":
        return _joins_all(op)
    return op.base in WHOLE_VIEWS or op.base in PRODUCTS or _elementwise(op)


def _joins_all(op: HostOp) -> bool:
    """A sum of one element, or its softmax, may say nothing of it; strides beyond the window leave elements out."""
    x, out = op.inputs[0], op.outputs[0]
    if op.base == "convolution":
        return _covers(op)
    if op.base == "scaled_dot_product_attention":
        return len(op.inputs) == 3 and op.inputs[0].shape[-2] == op.inputs[1].shape[-2] > 1
    if op.base in ("cat", "stack", "cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        return True
    if out.shape == x.shape:  # along an axis, which must have some elements
        return min(x.shape, default=0) > 1
    return out.elements < x.elements


def _covers(op: HostOp) -> bool:
    stride, _, dilation, transposed = op.options[-6:-2]
    window = op.inputs[1].shape[2:]
    inside = all(s <= k for s, k in zip(_each(stride, window), window, strict=True))
    return bool(transposed) or (inside and set(_each(dilation, window)) == {1} and not _crops(op))


def _crops(op: HostOp) -> bool:
    """Whether elements at the far end are left out, as the stride does not reach them."""
    x, w, out = op.inputs[0], op.inputs[1], op.outputs[0]
    stride, padding = (_each(op.options[k], w.shape[2:]) for k in (-6, -5))
    rows = zip(x.shape[2:], w.shape[2:], out.shape[2:], stride, padding, strict=True)
    return any((o - 1) * s + k - p < n for n, k, o, s, p in rows)


def _each(x: object, window: Sequence[int]) -> tuple[int, ...]:
    given = tuple(x) if isinstance(x, tuple) else (x,)
    return given * len(window) if len(given) == 1 else given


def _read(inputs: Sequence[HostTensor], ops: Sequence[HostOp]) -> list[HostTensor]:
    """Inputs that operations take; of several alike no more than one operation takes at once."""
    out: list[HostTensor] = []
    for t in dict.fromkeys(inputs):
        taken = max((op.inputs.count(t) for op in ops), default=0)
        out += [t] * min(inputs.count(t), taken)
    return out


def _written(outputs: Sequence[HostTensor], ops: Sequence[HostOp]) -> list[HostTensor]:
    """Outputs that may be results: the task computes as many elements of the type; each result is one output."""
    results = [t for op in ops if classify(op) in ("compute", "move") for t in op.outputs]
    out = []
    for t in sorted(outputs, key=lambda t: -t.elements):
        fitting = [r for r in results if r.dtype == t.dtype and r.elements >= t.elements]
        if fitting:
            results.remove(min(fitting, key=lambda r: r.elements))
            out.append(t)
    return out


def _needed_products(ops: Sequence[HostOp]) -> tuple[float, str]:
    """(2 for each multiplication that no order of additions saves, type in which it is fastest) of the last product."""
    if any(_repeats(op) for op in ops if classify(op) == "view"):
        return 0, "fp16"
    computed = [op for op in ops if classify(op) == "compute"]
    last = next((k for k in reversed(range(len(computed))) if not _elementwise(computed[k])), None)
    if last is None:
        return 0, "fp16"
    op = computed[last]
    kind = INTEGERS.get(op.inputs[0].dtype, "fp16")
    if op.base == "convolution":
        return op.flops / math.prod(op.inputs[1].shape[2:]), kind
    if op.base == "scaled_dot_product_attention":
        return op.flops / 2, kind
    return (op.flops if op.base in PRODUCTS else 0), kind
