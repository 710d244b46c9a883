"""The builtins of the kernel language: `import ascendtile.simulator.language as tl`. Names and meaning: triton.language.

Each family is one file; the docstring of a builtin gives shapes, dtypes and allowed values. A new one is one function
under `@builtin` in the file of its family, listed here.
"""

import builtins
from typing import TYPE_CHECKING, Any

from ..ir.building.blocks import DescriptorInKernel as tensor_descriptor
from ..ir.building.registry import constexpr as _constexpr
from ..ir.program import Value as tensor
from ..ir.types import BlockType as block_type
from ..ir.types import PointerType as pointer_type
from ..precision.dtypes import (
    bfloat16,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)
from . import extra, math
from .atomics import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
)
from .creation import arange, cast, dtype, full, get_int_dtype, to_tensor, zeros, zeros_like
from .debugging import device_assert, device_print, static_assert, static_print
from .descriptors import load_tensor_descriptor, make_tensor_descriptor, store_tensor_descriptor
from .hints import (
    assume,
    condition,
    debug_barrier,
    inline_asm_elementwise,
    max_constancy,
    max_contiguous,
    multiple_of,
)
from .indexing import where
from .iterators import range_builtin as range
from .iterators import static_range
from .linear import dot
from .mathematics import (
    PropagateNan,
    abs,
    add,
    cdiv,
    ceil,
    clamp,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    fdiv,
    floor,
    fma,
    log,
    log2,
    maximum,
    minimum,
    mul,
    rsqrt,
    sigmoid,
    sin,
    softmax,
    sqrt,
    sqrt_rn,
    sub,
    umulhi,
)
from .memory import advance, load, make_block_ptr, store
from .programs import num_programs, program_id
from .random import (
    pair_uniform_to_normal,
    philox,
    philox_impl,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    randn4x,
    uint_to_uniform_float,
)
from .reduction import (
    argmax,
    argmin,
    associative_scan,
    bitonic_merge,
    cumprod,
    cumsum,
    histogram,
    max,
    min,
    reduce,
    reduce_or,
    sort,
    sum,
    topk,
    xor_sum,
)
from .scaled import dot_scaled
from .shapes import (
    broadcast,
    broadcast_to,
    cat,
    expand_dims,
    flip,
    gather,
    interleave,
    join,
    map_elementwise,
    permute,
    ravel,
    reshape,
    split,
    squeeze,
    swizzle2d,
    trans,
    unsqueeze,
    view,
)

TRITON_MAX_TENSOR_NUMEL = (
    1048576  # Triton's bound on the elements of a tile; here a tile is as large as its buffer
)
tuple: Any = builtins.tuple
slice: Any = builtins.slice


class const:
    """Annotation of a pointer that a kernel only reads; without effect."""


if TYPE_CHECKING:
    constexpr = (
        Any  # in a kernel's source a parameter marked so is the value itself: a number, a string, a tuple
    )
else:
    constexpr = _constexpr

__all__ = [
    "TRITON_MAX_TENSOR_NUMEL",
    "PropagateNan",
    "abs",
    "add",
    "advance",
    "arange",
    "argmax",
    "argmin",
    "associative_scan",
    "assume",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "bfloat16",
    "bitonic_merge",
    "block_type",
    "broadcast",
    "broadcast_to",
    "cast",
    "cat",
    "cdiv",
    "ceil",
    "clamp",
    "condition",
    "const",
    "constexpr",
    "cos",
    "cumprod",
    "cumsum",
    "debug_barrier",
    "device_assert",
    "device_print",
    "div_rn",
    "dot",
    "dot_scaled",
    "dtype",
    "erf",
    "exp",
    "exp2",
    "expand_dims",
    "extra",
    "fdiv",
    "flip",
    "float8e4b8",
    "float8e4b15",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "float16",
    "float32",
    "float64",
    "floor",
    "fma",
    "full",
    "gather",
    "get_int_dtype",
    "histogram",
    "inline_asm_elementwise",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "interleave",
    "join",
    "load",
    "load_tensor_descriptor",
    "log",
    "log2",
    "make_block_ptr",
    "make_tensor_descriptor",
    "map_elementwise",
    "math",
    "max",
    "max_constancy",
    "max_contiguous",
    "maximum",
    "min",
    "minimum",
    "mul",
    "multiple_of",
    "num_programs",
    "pair_uniform_to_normal",
    "permute",
    "philox",
    "philox_impl",
    "pointer_type",
    "program_id",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "range",
    "ravel",
    "reduce",
    "reduce_or",
    "reshape",
    "rsqrt",
    "sigmoid",
    "sin",
    "slice",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "sqrt_rn",
    "squeeze",
    "static_assert",
    "static_print",
    "static_range",
    "store",
    "store_tensor_descriptor",
    "sub",
    "sum",
    "swizzle2d",
    "tensor",
    "tensor_descriptor",
    "to_tensor",
    "topk",
    "trans",
    "tuple",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uint_to_uniform_float",
    "umulhi",
    "unsqueeze",
    "view",
    "void",
    "where",
    "xor_sum",
    "zeros",
    "zeros_like",
]


def __dir__() -> list[str]:
    return __all__
