"""The words of the kernel language: `import ascendtile.simulator.language as tl`. Names and meaning are triton.language's.

Each family of words is one file; a word's docstring gives shapes, dtypes and allowed values. A new word is one function
under `@word` in the file of its family, listed here.
"""

from typing import TYPE_CHECKING, Any

from ..frontend.types import DType as dtype
from ..frontend.types import PointerType as pointer_type
from ..frontend.types import (
    bfloat16,
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
)
from ..frontend.words import constexpr as _constexpr
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
from .creation import arange, cast, full, zeros, zeros_like
from .debugging import static_assert, static_print
from .descriptors import load_tensor_descriptor, make_tensor_descriptor, store_tensor_descriptor
from .indexing import where
from .iterators import range_word as range
from .iterators import static_range
from .linear import dot
from .mathematics import (
    abs,
    cdiv,
    div_rn,
    exp,
    fdiv,
    log,
    maximum,
    minimum,
    rsqrt,
    sigmoid,
    sqrt,
    sqrt_rn,
)
from .memory import advance, load, make_block_ptr, store
from .programs import num_programs, program_id
from .reduction import max, min, sum
from .shapes import broadcast_to, expand_dims, permute, ravel, reshape, trans, view

if TYPE_CHECKING:
    constexpr = (
        Any  # in a kernel's source a parameter marked so is the value itself: a number, a string, a tuple
    )
else:
    constexpr = _constexpr

__all__ = [
    "abs",
    "advance",
    "arange",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "bfloat16",
    "broadcast_to",
    "cast",
    "cdiv",
    "constexpr",
    "div_rn",
    "dot",
    "dtype",
    "exp",
    "expand_dims",
    "fdiv",
    "float16",
    "float32",
    "float64",
    "full",
    "int1",
    "int8",
    "int16",
    "int32",
    "int64",
    "load",
    "load_tensor_descriptor",
    "log",
    "make_block_ptr",
    "make_tensor_descriptor",
    "max",
    "maximum",
    "min",
    "minimum",
    "num_programs",
    "permute",
    "pointer_type",
    "program_id",
    "range",
    "ravel",
    "reshape",
    "rsqrt",
    "sigmoid",
    "sqrt",
    "sqrt_rn",
    "static_assert",
    "static_print",
    "static_range",
    "store",
    "store_tensor_descriptor",
    "sum",
    "trans",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "view",
    "where",
    "zeros",
    "zeros_like",
]
