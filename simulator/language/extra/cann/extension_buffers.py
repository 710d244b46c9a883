"""Moves between explicit buffers (buffer.py) and the address spaces that these lie in."""

from __future__ import annotations

import enum
from typing import Any

from ....ir.building import buffers
from ....ir.building.buffer_rules import AddressSpace as ascend_address_space
from ....ir.building.promotion import KernelError, describe
from ....ir.building.registry import Builder, builtin, unwrap
from ....ir.program import Value


class FixpipeDMAMode(enum.Enum):
    """How a product's fractals are laid out by `fixpipe`."""

    NZ2DN = "NZ2DN"
    NZ2ND = "NZ2ND"
    NZ2NZ = "NZ2NZ"


class FixpipeDualDstMode(enum.Enum):
    """How `fixpipe` shares a product between two Vector cores."""

    NO_DUAL = "NO_DUAL"
    COLUMN_SPLIT = "COLUMN_SPLIT"
    ROW_SPLIT = "ROW_SPLIT"


class FixpipePreQuantMode(enum.Enum):
    """Casts of `fixpipe`."""

    NO_QUANT = "NO_QUANT"
    F322BF16 = "F322BF16"
    F322F16 = "F322F16"
    S322I8 = "S322I8"


class FixpipePreReluMode(enum.Enum):
    """Activations of `fixpipe`."""

    LEAKY_RELU = "LEAKY_RELU"
    NO_RELU = "NO_RELU"
    NORMAL_RELU = "NORMAL_RELU"
    P_RELU = "P_RELU"


@builtin
def copy(b: Builder, src: Any, dst: Any) -> None:
    """What buffer `src` in UB holds, into buffer `dst` in UB (a vector copy) or L1 (as `to_buffer` goes there).

    Both of one shape and type. Triton-Ascend takes it for Ascend 950 only, which the Run says.
    """
    buffers.copy(b, "copy", src, dst, ("UB", "L1"))


@builtin
def copy_from_ub_to_l1(b: Builder, src: Any, dst: Any) -> None:
    """As `copy`, to L1 only."""
    buffers.copy(b, "copy_from_ub_to_l1", src, dst, ("L1",))


@builtin
def fixpipe(
    b: Builder,
    src: Value,
    dst: Any,
    dma_mode: Any = FixpipeDMAMode.NZ2ND,
    dual_dst_mode: Any = FixpipeDualDstMode.NO_DUAL,
) -> None:
    """A product straight from L0C into a buffer of UB: a path that only Ascend 950 has.

    The products here have none, so a launch refuses it: use the result of tl.dot, which goes through global memory.
    """
    modes = {"dma_mode": (dma_mode, FixpipeDMAMode), "dual_dst_mode": (dual_dst_mode, FixpipeDualDstMode)}
    buffers.fixpipe(b, src, dst, {name: _mode(name, *given) for name, given in modes.items()})


def _mode(name: str, x: Any, kind: type[enum.Enum]) -> str:
    x = unwrap(x)
    if not isinstance(x, kind):
        raise KernelError(f"fixpipe: {name} must be one of al.{kind.__name__}, got {describe(x)}")
    return str(x.value)


__all__ = [
    "FixpipeDMAMode", "FixpipeDualDstMode", "FixpipePreQuantMode", "FixpipePreReluMode",
    "ascend_address_space", "copy", "copy_from_ub_to_l1", "fixpipe",
]  # fmt: skip
