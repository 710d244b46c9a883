"""The builtins of the kernel language: `import ascendtile.simulator.language as tl`. Names and meaning: triton.language.

Each family is one file; the docstring of a builtin gives shapes, dtypes and allowed values. A new one is one function
under `@builtin` in the file of its family, named in its `__all__`.
"""

import builtins as _builtins
import types as _types
import typing as _typing

from ..ir.building.blocks import DescriptorInKernel as _DescriptorInKernel
from ..ir.building.registry import constexpr as _constexpr
from ..ir.program import Value as _Value
from ..ir.types import BlockType as _BlockType
from ..ir.types import ConstexprType as _ConstexprType
from ..ir.types import PointerType as _PointerType
from ..ir.types import const as _const
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
from .assembly import *
from .creation import *
from .descriptors import *
from .hints import *
from .iterators import *
from .iterators import range_builtin as _range
from .linear import *
from .mathematics import *
from .memory import *
from .random import *
from .reduction import *
from .scaled import *
from .shapes import *

# Triton's bound on the elements of a tile; here a tile is as large as its buffer.
TRITON_MAX_TENSOR_NUMEL = 1048576
tensor, tensor_descriptor = _Value, _DescriptorInKernel
block_type, const, constexpr_type, pointer_type, range = (
    _BlockType,
    _const,
    _ConstexprType,
    _PointerType,
    _range,
)
pi32_t = _PointerType(int32)
tuple: _typing.Any = _builtins.tuple
slice: _typing.Any = _builtins.slice


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
