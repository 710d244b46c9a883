"""Time of operations of torch by what validation says of the vendor's kernels for them.

Of a large tensor two leading parts are simulated, out of memory; what is beyond takes as long for each row as between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import tomli

from ....simulator.errors import AscendtileError
from ....simulator.products import Product
from .operation import HostOp, HostTensor

NAMES: Mapping[str, Mapping[str, str]] = tomli.loads(
    Path(__file__).with_name("vendor.toml").read_text(encoding="utf-8")
)
DTYPES = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "int8": "int8",
    "int32": "int32",
    "bool": "uint8",
}
BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "int8": 1}  # of what is multiplied
SOURCE = "the vendor's {} as validation predicts it (ascendtile validate)"
LARGE_PART = 32 << 20  # bytes that the smaller part moves at least
MOST_MOVED, MOST_BY_TILES = 1 << 30, 8 << 30  # bytes of what is still simulated
LOOP, FULL = "loop", "cold changed=100"  # L2 as the same launch left it; as a long stream has filled it
TILE_ROWS, TILE_COLUMNS, TILE_DEPTH = 128, 256, 512  # of a product; the depth in bytes
ELEMENTS = 8192  # of a core, in whole such blocks, of what has no rows


class VendorKernel(NamedTuple):
    """A row of validation: its op, sizes of which the first may be cut, dtypes as "fp32,fp32->fp32", further settings.

    moved: bytes that tiles of all of it move, again and again where products read a tile for each other one. grain: of the
    first size, what gives all cores equal work; 0 where it has to be simulated whole.
    """

    op: str
    sizes: tuple[int, ...]
    dtypes: str
    moved: int
    grain: int
    cube: bool = False
    settings: str = ""


@lru_cache(maxsize=4096)
def vendor_us(op: HostOp, product: Product) -> tuple[float, str] | None:
    """Time in us with the launch, and its source; None where no kernel of validation does this, or none runs there."""
    kernel = kernel_of(op, product)
    try:
        if op.base == "convolution" and op.bytes <= MOST_MOVED:
            return _convolution_us(op, product), "convolution of ascendtile.kernels, tiled by its own rule"
        time = _time(kernel, product) if kernel and min(kernel.sizes) > 0 else None
    except AscendtileError:
        return None
    return None if kernel is None or time is None else (time, SOURCE.format(kernel.op))


def _time(kernel: VendorKernel, product: Product) -> float | None:
    rows, l2 = kernel.sizes[0], LOOP if kernel.moved <= product.integer("l2.size") else FULL
    if kernel.moved <= LARGE_PART or not kernel.grain:
        most = MOST_BY_TILES if kernel.cube else MOST_MOVED
        return _predicted(kernel, product, rows, l2) if kernel.moved <= most else None
    each = kernel.moved / rows
    first = kernel.grain * math.ceil(LARGE_PART / each / kernel.grain)
    if 2 * first >= rows or l2 == LOOP:
        return _predicted(kernel, product, rows, l2)
    if first * each > MOST_MOVED:
        return None
    short, long = (_predicted(kernel, product, n, l2) for n in (first, 2 * first))
    return long + (rows - 2 * first) * (long - short) / first


def _convolution_us(op: HostOp, product: Product) -> float:
    from ....kernels import run_op
    from ....simulator.interpreter.tensors import shape

    names = "stride", "padding", "dilation", "transposed", "output_padding", "groups"
    options = dict(zip(names, op.options[-len(names) :], strict=True))
    options["transposed"] = str(options["transposed"]).lower()
    inputs = {
        n: shape(t.shape, t.dtype) for n, t in zip(("input", "weight", "bias"), op.inputs, strict=False)
    }
    return run_op("convolution", inputs=inputs, options=options, product=product, values=False).time_us


def _predicted(kernel: VendorKernel, product: Product, rows: int, l2: str) -> float:
    from ....kernels.validation.registry import predict
    from ....kernels.validation.table import Row

    cores = product.cube_cores if kernel.cube else product.vector_cores
    shapes = "x".join(map(str, (rows, *kernel.sizes[1:])))
    tiling = f"cores={cores} l2={l2} code=warm {kernel.settings}".strip()
    row = Row(
        id=f"{kernel.op} of {shapes}", product=product.name, op=kernel.op, group="", shapes=shapes, dtypes=kernel.dtypes,
        tiling=tiling, measured=None, unit="us", fitted=False, trust="B", excluded="", source="", note="", table="kernels",
    )  # fmt: skip
    return predict(row, product).value


def kernel_of(op: HostOp, product: Product) -> VendorKernel | None:
    """The kernel of validation that does what an operation does; None where there is none."""
    if not op.outputs or not all(t.dtype in DTYPES for t in op.inputs):
        return None
    found = (make(op, product) for make in MAKERS)
    return next((k for k in found if k is not None), None)


def _flat(op: HostOp, product: Product, name: str, tensors: Sequence[HostTensor]) -> VendorKernel:
    inputs, out = ",".join(DTYPES[t.dtype] for t in tensors), op.outputs[0]
    grain = ELEMENTS * product.vector_cores
    return VendorKernel(
        name, (out.elements,), f"{inputs or DTYPES[out.dtype]}->{DTYPES[out.dtype]}", op.bytes, grain
    )


def _elementwise(op: HostOp, product: Product) -> VendorKernel | None:
    base, out = op.base.rstrip("_") if op.base != "copy_" else op.base, op.outputs[0]
    if out.dtype not in DTYPES:
        return None
    if op.base in NAMES["fills"]:
        return _flat(op, product, NAMES["fills"][op.base], ())
    if not op.inputs or any(t.shape != out.shape for t in op.inputs):
        return None
    if len(op.inputs) == 1 and base in NAMES["unary"]:
        return _flat(op, product, _unary(op, base), op.inputs)
    if len(op.inputs) != 2 or base not in NAMES["binary"]:
        return None
    name = NAMES["binary"][base]
    return _flat(op, product, name, op.inputs[1:] if name == "memcpy" else op.inputs)


def _transposed(op: HostOp, product: Product) -> VendorKernel | None:
    """A copy in another order of axes, whatever it casts beside."""
    kind = DTYPES[op.inputs[-1].dtype] if op.transposed else ""
    return VendorKernel("transpose", op.transposed, f"{kind}->{kind}", op.bytes, 0) if kind else None


def _unary(op: HostOp, base: str) -> str:
    if base == "gelu" and "tanh" in op.options:
        return "gelu"
    if base == "pow" and 2 in op.options:
        return "square"
    same = op.inputs[0].dtype == op.outputs[0].dtype
    return "memcpy" if base == "_to_copy" and same else NAMES["unary"][base]


def _rows(op: HostOp, product: Product) -> VendorKernel | None:
    name = NAMES["rows"].get(op.base)
    if name is None or not op.inputs[0].shape or not _along_last(op):
        return None
    shape = op.inputs[0].shape
    kind = DTYPES[op.inputs[0].dtype]
    normalised = _listed(op.options[0]) if name == "layernorm" else shape[-1:]
    cols = math.prod(normalised)
    sizes = math.prod(shape) // max(1, cols), cols
    return VendorKernel(name, sizes, f"{kind}->{kind}", op.bytes, product.vector_cores)


def _along_last(op: HostOp) -> bool:
    axis = op.options[0] if op.options else None
    rank = len(op.inputs[0].shape)
    return op.base == "native_layer_norm" or (isinstance(axis, int) and axis % rank == rank - 1)


def _listed(axes: Any) -> tuple[int, ...]:
    return tuple(axes) if isinstance(axes, tuple) else (axes,)


def _along(op: HostOp, product: Product) -> VendorKernel | None:
    """Reductions and scans along axes that lie together."""
    family = "reductions" if op.base in NAMES["reductions"] else "scans"
    name, x = NAMES[family].get(op.base), op.inputs[0] if op.inputs else HostTensor((), "")
    if name is None or not x.shape:
        return None
    axes = _axes(op, len(x.shape))
    if axes is None or axes[-1] - axes[0] != len(axes) - 1:
        return None
    parts = x.shape[: axes[0]], x.shape[axes[0] : axes[-1] + 1], x.shape[axes[-1] + 1 :]
    a, b, c = map(math.prod, parts)
    kind = DTYPES[x.dtype]
    if a == c == 1 and family == "reductions":
        return VendorKernel(name, (b,), f"{kind}->{kind}", op.bytes, ELEMENTS * product.vector_cores)
    way, sizes = ("rows", (a, b)) if c == 1 else ("columns", (b, c)) if a == 1 else ("middle", (a, b, c))
    grain = 1 if way == "columns" else product.vector_cores  # of columns each core has some, all rows long
    return VendorKernel(f"{name} {way}", sizes, f"{kind}->{kind}", op.bytes, grain)


def _axes(op: HostOp, rank: int) -> list[int] | None:
    """Which are reduced, in their order: all where the operation names none."""
    given = op.options[0] if op.options else None
    if given is None or given == () or (op.base in ("sum", "mean", "max", "min") and not op.options):
        return list(range(rank))
    axes = _listed(given)
    return sorted(a % rank for a in axes) if all(type(a) is int for a in axes) else None


def _products(op: HostOp, product: Product) -> VendorKernel | None:
    """Matrix products; a bias is added on the way out."""
    if op.base in ("mm", "bmm", "mv"):
        a, b = op.inputs[:2]
    elif op.base in ("addmm", "baddbmm", "addmv"):
        a, b = op.inputs[1:3]
    else:
        return None
    if DTYPES[a.dtype] not in BYTES:
        return None
    n, k = b.shape[-1] if len(b.shape) > 1 else 1, a.shape[-1]
    rows = math.prod(a.shape[:-1])
    kind = DTYPES[a.dtype]
    many = a.shape[0] if len(a.shape) == 3 else 1
    name, settings = ("matmul", "") if many == 1 else ("grouped_matmul", f"groups={many}")
    grain = TILE_ROWS * product.cube_cores if many == 1 else 0
    moved = max(op.bytes, _tiles(many, rows // max(1, many), n, k * BYTES[kind]))
    return VendorKernel(name, (rows, n, k), f"{kind},{kind}->{kind}", moved, grain, True, settings)


def _tiles(products: int, m: int, n: int, depth_bytes: int) -> int:
    """Bytes that tiles of products of m x n results load."""
    steps = -(-m // TILE_ROWS) * -(-n // TILE_COLUMNS) * -(-depth_bytes // TILE_DEPTH)
    return products * steps * (TILE_ROWS + TILE_COLUMNS) * TILE_DEPTH


def _attention(op: HostOp, product: Product) -> VendorKernel | None:
    if op.base != "scaled_dot_product_attention" or len(op.inputs) != 3:
        return None
    q, k, v = (t.shape for t in op.inputs)
    if q[-1] != v[-1] or DTYPES[op.inputs[0].dtype] not in BYTES:
        return None
    kind, causal = DTYPES[op.inputs[0].dtype], " causal=1" if True in op.options else ""
    settings = f"kv_heads={math.prod(k[:-2])}{causal}"
    sizes = math.prod(q[:-2]), q[-2], k[-2], q[-1]
    return VendorKernel("flash_attention", sizes, f"{kind}->{kind}", op.bytes, 0, True, settings)


def _group_norm(op: HostOp, product: Product) -> VendorKernel | None:
    if op.base != "native_group_norm":
        return None
    groups = op.outputs[1].elements
    kind = DTYPES[op.inputs[0].dtype]
    sizes = groups, op.inputs[0].elements // max(1, groups)
    return VendorKernel("groupnorm", sizes, f"{kind}->{kind}", op.bytes, product.vector_cores)


MAKERS: tuple[Callable[[HostOp, Product], VendorKernel | None], ...] = (
    _transposed, _elementwise, _rows, _along, _products, _attention, _group_norm,
)  # fmt: skip
