"""Tensor descriptors that the host makes and hands to a kernel: `TensorDescriptor.from_tensor(x, [64, 64])`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError


@dataclass
class TensorDescriptor:
    """A tensor and the block that a kernel loads or stores at a time.

    base: numpy array, torch CPU tensor or `Shape`. shape, strides (in elements) and block_shape: one integer per axis,
    one to five axes; the last stride must be 1. padding: "zero" or "nan", what a load gives outside of the tensor.
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"

    def __post_init__(self) -> None:
        rank = len(self.shape)
        if not 1 <= rank <= 5 or len(self.strides) != rank or len(self.block_shape) != rank:
            raise UsageError(
                f"TensorDescriptor: shape has {rank} entries, strides {len(self.strides)}, block_shape "
                f"{len(self.block_shape)}; all need one for each of one to five axes"
            )
        if int(self.strides[-1]) != 1:
            raise UsageError(
                f"TensorDescriptor: the last axis must be contiguous (stride 1), got {self.strides[-1]}"
            )
        if any(int(n) < 1 for n in self.block_shape):
            raise UsageError(
                f"TensorDescriptor: block sizes must be at least 1, got {list(self.block_shape)}"
            )
        if self.padding not in ("zero", "nan"):
            raise UsageError(f"TensorDescriptor: padding is 'zero' or 'nan', got {self.padding!r}")

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Sequence[int], padding: str = "zero") -> TensorDescriptor:
        """The descriptor of all of a tensor."""
        strides = (
            tensor.stride() if hasattr(tensor, "stride") else [s // tensor.itemsize for s in tensor.strides]
        )
        return TensorDescriptor(tensor, list(tensor.shape), list(strides), list(block_shape), padding)
