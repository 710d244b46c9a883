"""The builtins of the kernel language: `import ascendtile.simulator.language as tl`. Names and meaning: triton.language.

Each family is one file; the docstring of a builtin gives shapes, dtypes and allowed values. A new one is one function
under `@builtin` in the file of its family, listed here.
"""

import builtins as _builtins
import types as _types
import typing as _typing

from ..ir.building.blocks import DescriptorInKernel as _DescriptorInKernel
from ..ir.building.registry import constexpr as _constexpr
from ..ir.program import Value as _Value
from ..ir.types import BlockType as _BlockType
from ..ir.types import PointerType as _PointerType
from ..precision.dtypes import bfloat16 as bfloat16
from ..precision.dtypes import float8e4b8 as float8e4b8
from ..precision.dtypes import float8e4b15 as float8e4b15
from ..precision.dtypes import float8e4nv as float8e4nv
from ..precision.dtypes import float8e5 as float8e5
from ..precision.dtypes import float8e5b16 as float8e5b16
from ..precision.dtypes import float16 as float16
from ..precision.dtypes import float32 as float32
from ..precision.dtypes import float64 as float64
from ..precision.dtypes import int1 as int1
from ..precision.dtypes import int8 as int8
from ..precision.dtypes import int16 as int16
from ..precision.dtypes import int32 as int32
from ..precision.dtypes import int64 as int64
from ..precision.dtypes import uint8 as uint8
from ..precision.dtypes import uint16 as uint16
from ..precision.dtypes import uint32 as uint32
from ..precision.dtypes import uint64 as uint64
from ..precision.dtypes import void as void
from . import extra as extra
from . import math as math
from .creation import arange as arange
from .creation import cast as cast
from .creation import dtype as dtype
from .creation import full as full
from .creation import get_int_dtype as get_int_dtype
from .creation import to_tensor as to_tensor
from .creation import zeros as zeros
from .creation import zeros_like as zeros_like
from .descriptors import load_tensor_descriptor as load_tensor_descriptor
from .descriptors import make_tensor_descriptor as make_tensor_descriptor
from .descriptors import store_tensor_descriptor as store_tensor_descriptor
from .hints import assume as assume
from .hints import condition as condition
from .hints import debug_barrier as debug_barrier
from .hints import device_assert as device_assert
from .hints import device_print as device_print
from .hints import inline_asm_elementwise as inline_asm_elementwise
from .hints import max_constancy as max_constancy
from .hints import max_contiguous as max_contiguous
from .hints import multiple_of as multiple_of
from .hints import static_assert as static_assert
from .hints import static_print as static_print
from .iterators import num_programs as num_programs
from .iterators import program_id as program_id
from .iterators import range_builtin as _range
from .iterators import static_range as static_range
from .linear import dot as dot
from .linear import dot_scaled as dot_scaled
from .mathematics import PropagateNan as PropagateNan
from .mathematics import abs as abs
from .mathematics import add as add
from .mathematics import cdiv as cdiv
from .mathematics import ceil as ceil
from .mathematics import clamp as clamp
from .mathematics import cos as cos
from .mathematics import div_rn as div_rn
from .mathematics import erf as erf
from .mathematics import exp as exp
from .mathematics import exp2 as exp2
from .mathematics import fdiv as fdiv
from .mathematics import floor as floor
from .mathematics import fma as fma
from .mathematics import log as log
from .mathematics import log2 as log2
from .mathematics import maximum as maximum
from .mathematics import minimum as minimum
from .mathematics import mul as mul
from .mathematics import rsqrt as rsqrt
from .mathematics import sigmoid as sigmoid
from .mathematics import sin as sin
from .mathematics import softmax as softmax
from .mathematics import sqrt as sqrt
from .mathematics import sqrt_rn as sqrt_rn
from .mathematics import sub as sub
from .mathematics import umulhi as umulhi
from .memory import advance as advance
from .memory import atomic_add as atomic_add
from .memory import atomic_and as atomic_and
from .memory import atomic_cas as atomic_cas
from .memory import atomic_max as atomic_max
from .memory import atomic_min as atomic_min
from .memory import atomic_or as atomic_or
from .memory import atomic_xchg as atomic_xchg
from .memory import atomic_xor as atomic_xor
from .memory import load as load
from .memory import make_block_ptr as make_block_ptr
from .memory import store as store
from .random import pair_uniform_to_normal as pair_uniform_to_normal
from .random import philox as philox
from .random import philox_impl as philox_impl
from .random import rand as rand
from .random import rand4x as rand4x
from .random import randint as randint
from .random import randint4x as randint4x
from .random import randn as randn
from .random import randn4x as randn4x
from .random import uint_to_uniform_float as uint_to_uniform_float
from .reduction import argmax as argmax
from .reduction import argmin as argmin
from .reduction import associative_scan as associative_scan
from .reduction import bitonic_merge as bitonic_merge
from .reduction import cumprod as cumprod
from .reduction import cumsum as cumsum
from .reduction import histogram as histogram
from .reduction import max as max
from .reduction import min as min
from .reduction import reduce as reduce
from .reduction import reduce_or as reduce_or
from .reduction import sort as sort
from .reduction import sum as sum
from .reduction import topk as topk
from .reduction import xor_sum as xor_sum
from .shapes import broadcast as broadcast
from .shapes import broadcast_to as broadcast_to
from .shapes import cat as cat
from .shapes import expand_dims as expand_dims
from .shapes import flip as flip
from .shapes import gather as gather
from .shapes import interleave as interleave
from .shapes import join as join
from .shapes import map_elementwise as map_elementwise
from .shapes import permute as permute
from .shapes import ravel as ravel
from .shapes import reshape as reshape
from .shapes import split as split
from .shapes import squeeze as squeeze
from .shapes import swizzle2d as swizzle2d
from .shapes import trans as trans
from .shapes import unsqueeze as unsqueeze
from .shapes import view as view
from .shapes import where as where

# Triton's bound on the elements of a tile; here a tile is as large as its buffer.
TRITON_MAX_TENSOR_NUMEL = 1048576
tensor, tensor_descriptor = _Value, _DescriptorInKernel
block_type, pointer_type, range = _BlockType, _PointerType, _range
tuple: _typing.Any = _builtins.tuple
slice: _typing.Any = _builtins.slice


class const:
    """Annotation of a pointer that a kernel only reads; without effect."""


if _typing.TYPE_CHECKING:
    # in a kernel's source a parameter marked so is the value itself: a number, a string, a tuple
    constexpr = _typing.Any
else:
    constexpr = _constexpr

# All that is named above; submodules are not meant. No literal, so that type checkers go by the aliases.
globals()["__all__"] = [
    name
    for name, x in globals().items()
    if name[0] != "_" and (name in ("extra", "math") or not isinstance(x, _types.ModuleType))
]


def __dir__() -> list[str]:
    names: list[str] = globals()["__all__"]
    return names
