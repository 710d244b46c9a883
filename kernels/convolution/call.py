"""What a call of convolution backward says: tensors by shape, type and format, and attributes, any of which may be absent.

The host interface and the Python face both fill in a `ConvolutionCall`; `checks.py` reads it in the vendor's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..operator.parameter import Argument, Parameter, choice, flag, integer, integers
from ..operator.tensors import Options, Tensors, dtype_name

Ints = tuple[int, ...]


@dataclass(frozen=True)
class TensorView:
    """Shape, element type ("float16") and format ("NCHW"; None: that of the rank) of a tensor."""

    shape: Ints
    dtype: str
    format: str | None = None

    @property
    def empty(self) -> bool:
        return 0 in self.shape


@dataclass(frozen=True)
class ConvolutionCall:
    """Arguments of aclnnConvolutionBackward by their meaning. What the C face is given may be None, a null pointer, until
    `check_nulls` has passed.

    grad_output (N, Cout, *O), input (N, Cin, *S), weight (Cout, Cin/g, *k) or, transposed, (Cin, Cout/g, *k). The three
    results may be None where the mask does not ask for them.
    """

    grad_output: TensorView
    input: TensorView
    weight: TensorView
    stride: Ints
    padding: Ints
    dilation: Ints
    output_padding: Ints
    output_mask: tuple[bool, ...]
    bias_sizes: Ints | None = None
    transposed: bool = False
    groups: int = 1
    grad_input: TensorView | None = None
    grad_weight: TensorView | None = None
    grad_bias: TensorView | None = None

    @property
    def spatial(self) -> int:
        """Number of spatial axes."""
        return len(self.input.shape) - 2

    @property
    def wants(self) -> tuple[bool, bool, bool]:
        first, second, third = self.output_mask
        return bool(first), bool(second), bool(third)


INPUTS = ("grad_output", "input", "weight")
RESULTS = ("grad_input", "grad_weight", "grad_bias")


def call_of(tensors: Tensors, options: Options) -> ConvolutionCall:
    """The call of the Python face: attributes that are left out have the value that changes nothing."""
    views = {n: TensorView(tuple(tensors[n].shape), dtype_name(tensors[n])) for n in INPUTS}
    rank = len(views["input"].shape) - 2
    ones, zeros = (1,) * max(rank, 0), (0,) * max(rank, 0)
    attributes: dict[str, Any] = {
        "stride": _or(options["stride"], ones),
        "padding": _or(options["padding"], zeros),
        "dilation": _or(options["dilation"], ones),
        "output_padding": _or(options["output_padding"], zeros),
        "output_mask": tuple(bool(x) for x in options["output_mask"]),
        "bias_sizes": options["bias_sizes"],
        "transposed": options["transposed"] == "true",
        "groups": options["groups"],
    }
    call = ConvolutionCall(views["grad_output"], views["input"], views["weight"], **attributes)
    return replace(call, **result_views(call, options))


def result_views(call: ConvolutionCall, options: Options) -> dict[str, Any]:
    """What the results are, by default in the types of input, weight and grad_output."""
    channels = call.grad_output.shape[1:2] or (0,)
    sources = {
        "grad_input": (call.input.shape, call.input.dtype),
        "grad_weight": (call.weight.shape, call.weight.dtype),
        "grad_bias": (channels, call.grad_output.dtype),
    }
    mask = (*call.output_mask, False, False, False)
    found: dict[str, TensorView | None] = {}
    for wanted, (n, (shape, dtype)) in zip(mask, sources.items(), strict=False):
        name = options[f"{n}_dtype"]
        found[n] = TensorView(tuple(shape), dtype if name == "auto" else name) if wanted else None
    return found


def _or(given: Ints | None, default: Ints) -> Ints:
    return default if given is None else tuple(given)


def forward_arguments(op: str) -> tuple[Argument, ...]:
    """What the Python faces take of the forward convolution; one number stands for all spatial axes."""

    def transposed(given: Any, inputs: Mapping[str, Any]) -> dict[str, str]:
        return {"transposed": str(flag(op, "transposed", given)).lower()}

    return (
        _of_axes("stride", 1),
        _of_axes("padding", 0),
        _of_axes("dilation", 1),
        Argument("transposed", "bool", False, transposed),
        _of_axes("output_padding", 0),
        Argument("groups", "int", 1),
    )


def _of_axes(name: str, default: int) -> Argument:
    def read(given: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
        spatial = max(1, len(getattr(inputs["input"], "shape", (0, 0, 0))) - 2)
        return {name: (given,) * spatial if isinstance(given, int) else given}

    return Argument(name, "int | Sequence[int]", default, read)


def forward_options(transposed: str, least_groups: int | None) -> tuple[Parameter, ...]:
    """The same as options. transposed: help of that flag; least_groups: None where a check of its own tells."""
    return (
        integers("stride", None, None, "steps of the window; 1 unless given"),
        integers(
            "padding",
            None,
            None,
            "zeros around the input; 0 unless given; in 2D also top, bottom, left, right",
        ),
        integers("dilation", None, None, "distance of taps; 1 unless given"),
        choice("transposed", "false", ("false", "true"), transposed),
        integers("output_padding", None, None, "extra positions of a transposed output; 0 unless given"),
        integer("groups", 1, least_groups, None, "groups of channels"),
    )
