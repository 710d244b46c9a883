"""What an operator gives back for a tiling: its launches in order, and what it is told to make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.jit_function import JitFunction
from ...simulator.precision import dtypes as ty
from ...simulator.precision.rounding import encode
from ...simulator.products import Product
from .tensors import Knobs, Tensor


@dataclass(frozen=True)
class Step:
    """One kernel launch: `arguments` by parameter name, launch keywords among them; `switches`: fields of `Device`."""

    kernel: JitFunction
    grid: int
    arguments: dict[str, Any]
    switches: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What to launch, in order. `tiling` holds every knob as really used, None for those that only other strategies have;
    `notes` are messages for the user.

    uses_cube: that this plan does, of an operator that can do without.
    """

    steps: tuple[Step, ...]
    outputs: dict[str, Tensor]
    tiling: dict[str, Any]
    notes: tuple[str, ...] = ()
    uses_cube: bool = False

    @property
    def used(self) -> dict[str, Any]:
        """The knobs that this plan has a use for."""
        return {n: x for n, x in self.tiling.items() if x is not None}


@dataclass(frozen=True)
class PlanContext:
    """What a plan needs to know of the run: the product, whether tensors hold data, outputs that are already there.

    room: part of UB and L0C that the rules of tilings may count on, see `fitting.py`.
    """

    product: Product
    values: bool
    given: Mapping[str, Tensor] = field(default_factory=dict)
    room: float = 1.0

    @property
    def ub_bytes(self) -> int:
        """What tiles may take of UB by the rules of an operator."""
        return int(self.product.ub_bytes * self.room)

    @property
    def l0c_bytes(self) -> int:
        """The same of L0C."""
        return int(self.product.l0c_bytes * self.room)

    def mark(self) -> int:
        """Where the memory stands that its tensors take; `release` takes back what came after."""
        return 0

    def release(self, mark: int) -> None:
        """Tensors of its own memory are as others: nothing to do."""

    def tensor(self, shape: tuple[int, ...], dtype: ty.DType) -> Tensor:
        """Output or workspace. Data starts as NaN, so that an element that no kernel writes is noticed."""
        if not self.values:
            return Shape(shape, dtype)
        if dtype.is_coded:
            return np.broadcast_to(encode(np.float32(np.nan), dtype.format), shape).copy()
        unwritten = np.nan if dtype.is_floating() else np.iinfo(dtype.storage).min
        return np.full(shape, unwritten, dtype.storage)

    def output(self, name: str, shape: tuple[int, ...], dtype: ty.DType) -> Tensor:
        """The output that was given under that name, or a new tensor."""
        return self.given[name] if name in self.given else self.tensor(shape, dtype)

    def cores(self, wanted: int | None) -> int:
        """Cores to use at most: all Vector cores of the product, or the knob `cores`, which cannot be more."""
        return cores_of(self.product, "vector", wanted)


def cores_of(product: Product, kind: str, wanted: int | None) -> int:
    """Cores to use at most: all of that kind ("vector" or "cube"), or the knob `cores`, which cannot be more."""
    have = int(getattr(product, f"{kind}_cores"))
    if wanted is not None and wanted > have:
        raise UsageError(f"tiling parameter 'cores' is {wanted}, {product.name} has {have} {kind} cores")
    return wanted or have


Made = tuple[list[Step], dict[str, Any]]  # launches, and every knob as used


def bank_switches(tiling: Knobs) -> dict[str, bool]:
    """The switches of a launch for the knob `banks`, which says how tiles are placed in UB."""
    return {"banks_apart": tiling["banks"] == "apart"}
