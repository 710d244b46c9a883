"""Types of the tile program beside element types (`precision/dtypes.py`): pointers and tiles."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..errors import in_triton
from ..precision.dtypes import DType


@dataclass(frozen=True)
class BlockType:
    """Type of a tile: `element_ty` (also `scalar`) and `shape`; its other queries are those of the element type."""

    element_ty: DType | PointerType
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.shape:
            raise ValueError(
                f"a block type has one axis or more, got none; the type of a scalar is {self.element_ty} itself"
                f"{in_triton('0d block_type is forbidden')}"
            )

    def __repr__(self) -> str:
        return f"<[{', '.join(map(str, self.shape))}], {self.element_ty}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.element_ty, name)

    @property
    def scalar(self) -> DType | PointerType:
        return self.element_ty

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    def is_block(self) -> bool:
        return True

    def is_ptr(self) -> bool:
        return False

    def get_block_shapes(self) -> tuple[int, ...]:
        return self.shape


@dataclass(frozen=True)
class PointerType:
    """Pointer to elements of `element_ty`, a type or a pointer type, in global memory; a const one is read only."""

    element_ty: Any
    address_space: int = field(default=1, compare=False)
    const: bool = False

    def __repr__(self) -> str:
        return f"{'const_' if self.const else ''}pointer<{self.element_ty}>"

    @property
    def name(self) -> str:
        return repr(self)

    @property
    def scalar(self) -> PointerType:
        return self

    def is_ptr(self) -> bool:
        return True

    def is_block(self) -> bool:
        return False

    def is_floating(self) -> bool:
        return False

    def is_int(self) -> bool:
        return False

    def is_bool(self) -> bool:
        return False


class const:
    """Annotation of a pointer parameter that a kernel only reads: a store through it is an error."""


@dataclass(frozen=True)
class ConstexprType:
    """Type of a compile-time value, one of its own for each: `x.type` of a constexpr."""

    value: Any

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value!r}]"


AnyType = DType | PointerType
