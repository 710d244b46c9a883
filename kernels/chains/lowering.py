"""How one step of a chain runs: the type of its operator's inputs, and the casts before and behind it.

The operator gets the narrowest type that holds what every tensor it reads is stored in, and that gives results which hold
what those it makes are stored in; where there is no such type, the widest. A tensor of another type is cast by a launch when
it is read, which loses nothing, and what is to be stored in another type by a launch when it is made, which rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import simulator as sim
from ...simulator.device import CUBE_MATH_TYPES, device
from ...simulator.errors import RefusedError, UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.formats import get_format
from ...simulator.products import Product
from ..operator.formats import is_other
from ..operator.messages import listed
from ..operator.operator import Operator
from ..operator.plan import Plan, PlanContext
from ..operator.tensors import dtype_name
from .chain import ChainStep, ReshapedTensor, dims_of
from .storage import WIDTHS, AnyStorage, Storage, carriers, type_name

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class ChainCast:
    """A launch that brings a tensor into another type. reads: before the operator, else behind it. what_if: whether one of
    the two is a format that the product does not store. shape: of what is cast, the tensor or the scales of its blocks."""

    tensor: str
    source: str
    target: str
    reads: bool
    what_if: bool = False
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class LoweredStep:
    """A step in the formats and the mode of an assignment. dtype: of the operator's inputs. written: output -> its type."""

    step: ChainStep
    dtype: str
    mode: str
    casts: tuple[ChainCast, ...]
    written: Mapping[str, str]


@contextmanager
def naming_step(step: ChainStep) -> Iterator[None]:
    """What is refused inside names the step."""
    try:
        yield
    except RefusedError as e:
        raise RefusedError(f"step {step.name!r}: {e}", e.status, e.reason) from None
    except UsageError as e:
        raise UsageError(f"step {step.name!r}: {e}") from None


def input_shapes(step: ChainStep, shapes: Shapes, sizes: Mapping[str, int], dtype: str) -> dict[str, Shape]:
    """Inputs of the operator as shapes in a type. Raises `UsageError` for a view of another number of elements."""
    out = {}
    for n, given in step.inputs.items():
        tensor = given.tensor if isinstance(given, ReshapedTensor) else given
        shape = dims_of(given.shape, sizes) if isinstance(given, ReshapedTensor) else shapes[tensor]
        if np.prod(shape, dtype=np.int64) != np.prod(shapes[tensor], dtype=np.int64):
            raise UsageError(f"{tensor} has shape {shapes[tensor]}, which has other elements than {shape}")
        out[n] = sim.shape(shape, step.operator.input_dtype(n, dtype))
    return out


def planned(step: ChainStep, tensors: Mapping[str, Any], product: Product, mode: str) -> Plan:
    """The launches of a step for shapes. Raises `UsageError` for what the operator or the product refuses."""
    op = step.operator
    with device(product, cube_math_type=mode, values=False), naming_step(step):
        options = op.read_options(step.options)
        op.check(tensors, options, product)
        return op.plan(tensors, options, op.read_tiling(step.tiling), PlanContext(product, False))


def shapes_made(
    step: ChainStep, shapes: Shapes, sizes: Mapping[str, int], product: Product
) -> dict[str, tuple[int, ...]]:
    """Tensor -> shape of what a step makes of tensors of these shapes."""
    with naming_step(step):
        dtype = step.operator.dtypes_on(product)[0]
        tensors = input_shapes(step, shapes, sizes, dtype)
    made = planned(step, tensors, product, CUBE_MATH_TYPES[0]).outputs
    return {tensor: tuple(made[n].shape) for n, tensor in step.outputs.items()}


def lowered(
    step: ChainStep,
    shapes: Shapes,
    sizes: Mapping[str, int],
    storages: Mapping[str, AnyStorage],
    mode: str,
    product: Product,
) -> LoweredStep:
    """How a step runs with its tensors stored as `storages` says, in a cubeMathType."""
    candidates = _types_that_hold(step, step.operator, storages, product, mode)
    for dtype in candidates:
        plan = planned(step, input_shapes(step, shapes, sizes, dtype), product, mode)
        written = {n: dtype_name(plan.outputs[n]) for n in step.outputs}
        if dtype == candidates[-1] or all(
            storages[t].held_by(get_format(written[n])) for n, t in step.outputs.items()
        ):
            break
    return LoweredStep(step, dtype, mode, _casts(step, storages, dtype, written, shapes), written)


def _types_that_hold(
    step: ChainStep, op: Operator, storages: Mapping[str, AnyStorage], product: Product, mode: str
) -> tuple[str, ...]:
    """Types of the inputs that hold what is read, the narrowest first; a number format of all of them, where the operator
    takes it, is the narrowest."""
    with naming_step(step):
        here = op.dtypes_on(product)
        free = [t for n, t in zip(step.inputs, step.reads, strict=True) if n not in op.fixed_dtypes]
        sets = [carriers(storages[t], here) for t in free]
        found = tuple(d for d in WIDTHS if d in here and all(d in s for s in sets))
        own = {storages[t] for t in free}
        alike = own.pop() if len(own) == 1 else None
        if isinstance(alike, Storage) and op.formats and is_other(alike.fmt) and mode == CUBE_MATH_TYPES[0]:
            return (alike.name, *found)
        if not found:
            told = listed(f"{t} in {storages[t].name}" for t in dict.fromkeys(free))
            raise UsageError(f"no type of {op.name} on {product.name} ({listed(here)}) holds {told}")
        return found


def _casts(
    step: ChainStep,
    storages: Mapping[str, AnyStorage],
    dtype: str,
    written: Mapping[str, str],
    shapes: Shapes,
) -> tuple[ChainCast, ...]:
    """Those of each tensor that is read in another type than it is stored in, and of each that is stored in another one."""
    out: dict[ChainCast, None] = {}
    for n, t in zip(step.inputs, step.reads, strict=True):
        out |= dict.fromkeys(_cast(t, storages[t], step.operator.input_dtype(n, dtype), shapes[t], True))
    for n, t in step.outputs.items():
        out |= dict.fromkeys(_cast(t, storages[t], written[n], shapes[t], False))
    return tuple(out)


def _cast(
    tensor: str, storage: AnyStorage, other: str, shape: tuple[int, ...], reads: bool
) -> list[ChainCast]:
    """Launches between how a tensor is stored and another type: one, and one for the scales of its blocks."""
    out: list[ChainCast] = []
    for dtype, part in storage.types(shape).items():
        own, beside = type_name(dtype), "float32" if out else other
        source, target = (own, beside) if reads else (beside, own)
        if source != target:
            out.append(ChainCast(tensor, source, target, reads, storage.what_if, part))
    return out
