"""Arguments of a kernel that are several values: tensor descriptors made by the host, and tuples that hold tensors.

A launch cuts them into plain parameters (`x.base`, `x.shape[0]`, `x[1]` ...) and leaves, under the argument's own name, the
compile-time plan by which the compiler puts the values together again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...precision import dtypes as ty
from ..program import Value
from .blocks import DescriptorInKernel
from .builder import Builder


class ArgumentPlan(ABC):
    """How an argument is put together from parameters."""

    @abstractmethod
    def build(self, b: Builder, params: Mapping[str, Value]) -> Any:
        """What the kernel sees under the argument's name."""


@dataclass(frozen=True)
class ParameterPlan(ArgumentPlan):
    """One parameter."""

    name: str

    def build(self, b: Builder, params: Mapping[str, Value]) -> Any:
        return params[self.name]


@dataclass(frozen=True)
class ConstantPlan(ArgumentPlan):
    """A compile-time value; `kind` keeps 1, 1.0 and True apart."""

    value: Any
    kind: str

    def build(self, b: Builder, params: Mapping[str, Value]) -> Any:
        return self.value


@dataclass(frozen=True)
class TuplePlan(ArgumentPlan):
    """A tuple of plans; `names` is the type of a tuple whose entries have names."""

    items: tuple[ArgumentPlan, ...]
    names: type | None = None

    def build(self, b: Builder, params: Mapping[str, Value]) -> Any:
        parts = tuple(p.build(b, params) for p in self.items)
        return parts if self.names is None else self.names(*parts)


@dataclass(frozen=True)
class DescriptorPlan(ArgumentPlan):
    """A tensor descriptor: base, shape and strides are parameters, the block is a compile-time value."""

    name: str
    block: tuple[int, ...]
    padding: str

    def build(self, b: Builder, params: Mapping[str, Value]) -> Any:
        n = len(self.block)
        shape, strides = (
            tuple(b.cast(params[f"{self.name}.{what}[{k}]"], ty.int64) for k in range(n))
            for what in ("shape", "strides")
        )
        return DescriptorInKernel(
            params[f"{self.name}.base"], shape, strides, (0,) * n, self.block, self.padding
        )


def assembled(b: Builder, params: Mapping[str, Value], constants: Mapping[str, Any]) -> dict[str, Any]:
    """The names a kernel starts with."""
    parts = {n: x.build(b, params) if isinstance(x, ArgumentPlan) else x for n, x in constants.items()}
    return {**{n: v for n, v in params.items() if n.isidentifier()}, **parts}
