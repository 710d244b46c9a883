"""One launch, checked: what `launch.py` prepares and what times and computes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .device import Device
from .errors import UsageError
from .frontend.kernel_function import KernelFunction
from .interpreter.tensors import Tensor
from .ir.passes.split_cores import SUB_VECTOR_CORES
from .ir.program import Program
from .messages import Message
from .precision.dtypes import is_floating


@dataclass(frozen=True)
class Call:
    """One launch, checked: what is compiled, and with what it runs.

    grid_asks: arguments that the grid is a function of. again: makes the launch with other arguments, and with
    another grid, if that is not None.
    """

    kernel: KernelFunction
    grid: tuple[int, int, int]
    arguments: dict[str, Any]
    constants: dict[str, Any]
    types: dict[str, Any]
    device: Device
    warnings: tuple[Message, ...]
    grid_asks: tuple[str, ...] = ()
    again: Callable[[dict[str, Any], tuple[int, int, int] | None], Call] | None = None

    @functools.cached_property
    def program(self) -> Program:
        return self.kernel.program(self.types, self.constants)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Arguments that lie in global memory, by name."""
        return {n: x for n, x in self.arguments.items() if isinstance(x, Tensor)}

    @property
    def named_constants(self) -> dict[str, bool | int | float | str]:
        """The compile-time numbers and strings of the launch, as its record shows them.

        Of a `NamedTuple` these are its fields in upper case (`S.bm` is "BM"); where a launch has several of them, after the
        parameter's name ("IMAGE.BM").
        """
        tuples = [n for n, x in self.constants.items() if hasattr(x, "_asdict")]
        every: dict[str, Any] = {}
        for name, x in self.constants.items():
            before = f"{name}." if len(tuples) > 1 else ""
            fields = x._asdict() if name in tuples else {}
            every |= {before + n.upper(): y for n, y in fields.items()} or {name: x}
        return {n: x for n, x in every.items() if isinstance(x, bool | int | float | str)}


def describe_argument(x: Any) -> str:
    """How the record names an argument."""
    if isinstance(x, Tensor):
        return f"{x.dtype}{list(x.shape)}"
    return repr(x)


def check(call: Call) -> None:
    """Raise `UsageError` for a kernel that asks for what the product does not have."""
    _check_floats(call)
    _check_atomics(call)
    _check_cores(call)
    _check_elsewhere(call)


def _check_floats(call: Call) -> None:
    """A floating type that the product lacks cannot be made inside a kernel either."""
    storage = call.device.product.texts("dtypes.storage")
    for name, loc in call.program.floats.items():
        if name not in storage:
            raise UsageError(
                f"{loc.file}:{loc.line}: {call.kernel.name} makes a value of {name}, which {call.device.product.name} "
                f"does not have; it has {', '.join(x for x in storage if is_floating(x))}"
            )


def _check_atomics(call: Call) -> None:
    """Memory adds some types only; of integers the sign makes no difference. The vendor's compiler has those of 64 bits
    added by the core, on the products that it targets.
    """
    product = call.device.product
    if not product.has("dtypes.atomic_add"):
        return
    known = product.texts("dtypes.atomic_add")
    if product.core_model == "split":
        known = (*known, "int64")
    for op in call.program.of_kind("atomic"):
        if op.name == "add" and op.results[0].dtype.name.removeprefix("u") not in known:
            raise UsageError(
                f"{op.loc.file}:{op.loc.line}: {call.kernel.name} adds to {op.results[0].dtype} in memory, which "
                f"{product.name} cannot do atomically; it adds to {', '.join(known)}. Use one of them, or let one program "
                "add up what the others stored"
            )


def _check_cores(call: Call) -> None:
    """Flags between Cube and Vector cores are for products where the two are apart (hardware_sync_betweencore)."""
    product = call.device.product
    if product.core_model == "split" and product.aiv_per_aic == SUB_VECTOR_CORES:
        return
    for name, loc in call.program.split_builtins.items():
        raise UsageError(
            f"{loc.file}:{loc.line}: {call.kernel.name} uses {name}, which needs a Cube core with {SUB_VECTOR_CORES} Vector "
            f"cores beside it; {product.name} has {product.aiv_per_aic} ({product.core_model}). Take an ascend910b or "
            "ascend910c product"
        )


def _check_elsewhere(call: Call) -> None:
    """Builtins of the extension that need a path between buffers which no product here has."""
    for name, loc in call.program.only_elsewhere.items():
        raise UsageError(
            f"{loc.file}:{loc.line}: {call.kernel.name} uses {name}, from L0C straight to UB, which Ascend 950 alone can; "
            f"{call.device.product.name} cannot. Use the result of tl.dot as it is, which goes through global memory where "
            "it has to, or store it and load it again"
        )
