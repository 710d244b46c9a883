"""One launch, checked: what `launch.py` prepares and what times and computes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .device import Device
from .errors import UsageError
from .frontend.kernel_function import KernelFunction
from .interpreter.tensors import Tensor
from .ir.building.core_operations import product_rules
from .ir.passes.split_cores import SUB_VECTOR_CORES
from .ir.program import Op, Program
from .ir.types import AnyType
from .messages import WHAT_IF, Message, fault
from .numerics import numerics
from .precision.cast_table import cast_modes
from .precision.dtypes import DType, bfloat16, float16, float32, is_floating, named
from .products import Product
from .products.product import WHAT_IF_RATE, what_if_k


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
    """A floating type that the product lacks cannot be made inside a kernel either; formats are what-ifs."""
    storage = call.device.product.texts("dtypes.storage")
    for name, loc in call.program.floats.items():
        if name not in storage and not named(name).is_foreign:
            raise UsageError(
                f"{loc.file}:{loc.line}: {call.kernel.name} makes a value of {name}, which {call.device.product.name} "
                f"does not have; it has {', '.join(x for x in storage if is_floating(x))}"
            )


def what_ifs(call: Call) -> tuple[Message, ...]:
    """What the launch uses of number formats that its product does not have. It runs, and says by which rules and rates."""
    found = (*_lacking_types(call), *_lacking_products(call), *_lacking_roundings(call))
    return tuple(fault(f"{WHAT_IF}{text}") for text in dict.fromkeys(found))


def _lacking_types(call: Call) -> Iterator[str]:
    product = call.device.product
    storage = product.texts("dtypes.storage")
    for t, loc in call.program.foreign.items():
        if t.name not in storage:
            like = "int8" if t.bits <= 8 else "fp32"
            size = f"{t.bits} bits" if t.bits > 4 else "a byte, or half a byte"
            have = ", ".join(x for x in storage if is_floating(x) == t.is_floating())
            yield (
                f"{product.name} has no {_both_names(t)}, which {call.kernel.name} makes at {loc.file}:{loc.line}: values "
                f"by the rules of the format; {size} an element in memory; casts take the time of those between fp16 and "
                f"{like}, arithmetic is that of fp32 (assumed); it has {have}"
            )


def _lacking_products(call: Call) -> Iterator[str]:
    product, inputs = call.device.product, call.device.product.texts("dtypes.cube_inputs")
    for op in call.program.once(_unusual_products):
        a, b, acc = op.operand(0).number, op.operand(1).number, op.attrs.get("acc_format")
        place = f"(at {op.loc.file}:{op.loc.line})"
        if a is not b or any(t.is_foreign and t.name not in inputs for t in (a, b)):
            yield (
                f"the Cube of {product.name} does not multiply {_operands(a, b)} {place}: {_product_rules(call, op)}; it "
                f"takes {', '.join(inputs)}"
            )
        # An FP16 accumulator of FP16 products is documented for 910A and 310P (platform configuration, Mmad).
        halves = a is b is acc is float16 and "fp32" not in inputs
        if acc is not None and not halves:
            yield (
                f"the Cube of {product.name} does not accumulate in {_both_names(acc)} {place}: the accumulator is rounded "
                "to it after each step, and takes the time and the place of fp32"
            )


def _unusual_products(program: Program) -> list[Op]:
    """Those that some product may lack: of unlike operands, of formats, or with an accumulator in one."""
    return [
        op
        for op in program.of_kind("dot")
        if op.operand(0).number is not op.operand(1).number
        or op.operand(0).number.is_foreign
        or op.attrs.get("acc_format") is not None
    ]


def _product_rules(call: Call, op: Op) -> str:
    """By which rules a product that no Cube here has is computed and timed."""
    step = product_rules(numerics(call.device), op).products_per_step
    scales = "; scales apply to elements without rounding" if op.attrs.get("scaled") else ""
    return (
        f"products are exact, and the accumulator is rounded after every {step} of them{scales}; "
        f"{_rate(call.device.product, max(op.operand(0).number, op.operand(1).number, key=lambda t: t.bits))}"
    )


def _rate(product: Product, t: DType) -> str:
    """Of products whose wider operand is of that type."""
    own = f"cube.k_per_cycle.{t.name}"
    if product.has(own):
        return f"{product.integer(own)} of k a cycle ({own})"
    figure, k = product.figure(WHAT_IF_RATE), what_if_k(product, t.bits)
    if figure.overridden:
        return f"{k} of k a cycle ({WHAT_IF_RATE} = {figure.value}, chosen)"
    return f"{k} of k a cycle, as many bytes as of formats that it has ({WHAT_IF_RATE} = {figure.value}, assumed)"


def _operands(a: DType, b: DType) -> str:
    return _both_names(a) if a is b else f"{_both_names(a)} with {_both_names(b)}"


def _both_names(t: DType) -> str:
    """As kernels name it, and as its format is named."""
    return t.name if t.name == t.format.name else f"{t.name} ({t.format})"


def _lacking_roundings(call: Call) -> Iterator[str]:
    product = call.device.product
    for op in call.program.once(_rounding_casts):
        mode, source, target = op.attrs["rounding"], op.operand(0).dtype, op.results[0].dtype
        if mode not in cast_modes(product, source.name, target.name):
            more = ", and of an addition of the random bits (assumed)" if len(op.args) > 1 else ""
            yield (
                f"{product.name} does not cast {source} to {target} with {mode} (at {op.loc.file}:{op.loc.line}): values by "
                f"the rule, time as with the modes that it has{more}"
            )


def _rounding_casts(program: Program) -> list[Op]:
    """Those that name their mode and narrow."""
    return [
        op
        for op in program.of_kind("cast")
        if op.attrs.get("rounding") and _narrows(op.operand(0).dtype, op.results[0].dtype)
    ]


def _narrows(source: AnyType, target: AnyType) -> bool:
    """Whether a cast between the types of the vendor's table rounds at all."""
    return source is float32 and target in (float16, bfloat16)


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
