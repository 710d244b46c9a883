"""The checks of aclnnConvolutionBackward, in the order of the vendor's checker, each with its status code.

Order and codes: hicann/ops-nn, conv/convolution_backward/op_api (checkers). Sizes that do not belong together are refused
here for every rank at once (161002): the vendor's own check is for 3D only, in 1D and 2D an inner step fails later
(561103). So do values outside of the documented ranges here too, which only the kernels behind the interface refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import NoReturn

from ...simulator.errors import RefusedError
from ...simulator.precision.cube_math import (
    CubeInputs,
    Resolution,
    cube_inputs_of,
    resolve_convolution,
    resolve_split,
)
from ...simulator.precision.splits import SPLITS
from ...simulator.products import Product
from ..operator.messages import listed
from .call import INPUTS, RESULTS, ConvolutionCall, Ints, TensorView

NULLPTR, INVALID, INNER = 161001, 161002, 561103
MEANING = {NULLPTR: "null pointer", INVALID: "parameter invalid", INNER: "an inner step fails"}
FORMATS = {3: ("NCL", "ND"), 4: ("NCHW",), 5: ("NCDHW",)}
NAMES = {3: "3 (N, C, L)", 4: "4 (N, C, H, W)", 5: "5 (N, C, D, H, W)"}
MAX_DIM = 2**31 - 2
SPATIAL = {1: "L", 2: "HW", 3: "DHW"}
# Result -> the inputs whose higher type it has.
RESULT_SOURCES = {
    "grad_input": ("input", "grad_output"),
    "grad_weight": ("weight", "grad_output"),
    "grad_bias": ("grad_output",),
}


def refuse(status: int, reason: str) -> NoReturn:
    """Refuse with a status code."""
    message = f"convolution_backward: {reason}; refused with status {status} ({MEANING[status]})"
    raise RefusedError(message, status, reason)


def check_call(
    call: ConvolutionCall, product: Product, mode: str | int, result_types: bool = False
) -> tuple[str, ...]:
    """Raise `RefusedError` for the first check that fails; gives the warnings of the call.

    result_types: whether results must have the types of the document, as in the C face.
    """
    check_nulls(call)
    _dtypes(call, product)
    if result_types:
        _result_types(call)
    wide = "fp32" in cube_inputs_of(product)
    _formats(call, wide)
    _values(call)
    found = _mode(call, product, mode)
    if wide and (call.input.empty or call.weight.empty):
        _empty(call)
        _bias_sizes(call)
    else:
        _ranks_and_shapes(call)
        _lengths(call)
        _channels(call)
        _bias_sizes(call)
        if call.input.empty:
            refuse(
                INVALID,
                f"input has shape {call.input.shape} and no elements, which {product.name} does not take",
            )
        _sizes(call)
    _volumes(call, product, wide)
    if not is_empty(call):
        _ranges(call, wide)
    return () if found.warning is None else (f"cubeMathType: {found.warning}",)


def is_empty(call: ConvolutionCall) -> bool:
    """A call without anything to multiply."""
    return call.input.empty or call.weight.empty


# -- 1 to 3: what must be there ----------------------------------------------------------------------------------------


def check_nulls(call: ConvolutionCall) -> None:
    """161001 for what must be there."""
    for n in (*INPUTS, "stride", "padding", "dilation", "output_padding", "output_mask"):
        if getattr(call, n) is None:
            refuse(NULLPTR, f"{n} is null, it must be given")
    if len(call.output_mask) != 3:
        refuse(NULLPTR, f"output_mask has {len(call.output_mask)} elements, it must have 3")
    for n, wanted in zip(RESULTS, call.wants, strict=True):
        if wanted and getattr(call, n) is None:
            refuse(NULLPTR, f"{n} is null, but output_mask {call.wants} asks for it")


# -- 4 to 7: types, formats, values, mode ------------------------------------------------------------------------------


def _dtypes(call: ConvolutionCall, product: Product) -> None:
    wide = "fp32" in cube_inputs_of(product)
    allowed = ("float32", "float16", "bfloat16") if wide else ("float32", "float16")
    for n in (*INPUTS, *RESULTS):
        view = getattr(call, n)
        if view is not None and view.dtype not in allowed:
            refuse(INVALID, f"{n} is {view.dtype}, on {product.name} it must be of {listed(allowed, 'or')}")


def _result_types(call: ConvolutionCall) -> None:
    """Of the higher type of the two tensors that make a result; FLOAT16 with BFLOAT16 gives FLOAT."""
    for n, wanted in zip(RESULTS, call.wants, strict=True):
        sources = RESULT_SOURCES[n]
        kinds = [getattr(call, s).dtype for s in sources]
        want = higher(kinds)
        if wanted and (got := getattr(call, n).dtype) != want:
            rule = f"that of {sources[0]}" if len(sources) == 1 else f"the higher of {listed(sources)}"
            refuse(
                INVALID,
                f"{n} is {got}, its type must be {rule}, here {want} ({listed(kinds)} are the inputs')",
            )


def higher(kinds: Iterable[str]) -> str:
    """The type that element types are promoted to: "float32" of "float16" and "bfloat16"."""
    different = set(kinds)
    return different.pop() if len(different) == 1 else "float32"


def _formats(call: ConvolutionCall, wide: bool) -> None:
    for n in (*INPUTS, "grad_input", "grad_weight"):
        view: TensorView | None = getattr(call, n)
        if view is None:
            continue
        rank = len(view.shape)
        if rank not in FORMATS:
            refuse(INVALID, f"{n} has rank {rank}, it must be {listed(NAMES.values(), 'or')}")
        if view.format is not None and view.format not in FORMATS[rank]:
            refuse(
                INVALID,
                f"{n} has format {view.format}, at rank {rank} it must be {listed(FORMATS[rank], 'or')}",
            )
    bias = call.grad_bias
    if wide and bias is not None and bias.format not in (None, "ND") and not call.transposed:
        refuse(INVALID, f"grad_bias has format {bias.format}, it must be ND")


def _values(call: ConvolutionCall) -> None:
    _at_least("stride", call.stride, 1)
    _at_least("padding", call.padding, 0)
    _at_least("dilation", call.dilation, 1)
    if call.transposed:  # otherwise it has no effect
        _at_least("output_padding", call.output_padding, 0)
    if call.groups < 1:
        refuse(INVALID, f"groups is {call.groups}, it must be at least 1")


def _at_least(name: str, given: Ints, low: int) -> None:
    bad = [x for x in given if x < low]
    if bad:
        refuse(INVALID, f"{name} is {given}, every value of it must be at least {low}, {bad[0]} is not")


def resolve_mode(
    product: CubeInputs, kinds: Sequence[str], mode: str | int, rank: int = 2, terms: int = 0
) -> Resolution:
    """What a cubeMathType means for operands of these types, or a split of them. terms: of the longest sum, if known."""
    split = SPLITS.get(str(mode))
    if set(kinds) == {"int8"}:  # slices, whose launches add in INT32
        return Resolution("int8", outputs=tuple((n, "int32") for n in RESULTS[:2]), grade="A")
    if split is None:
        return resolve_convolution(product, kinds, mode, rank)
    found = resolve_split(product, kinds, split.name, terms)
    return replace(found, outputs=tuple((n, "fp32") for n in RESULTS[:2])) if found.ok else found


def longest_sum(call: ConvolutionCall) -> int:
    """Products of one element of grad_input, or of grad_weight, whichever has more."""
    w, narrow = call.weight.shape, call.input if call.transposed else call.grad_output
    channels = w[1] if call.transposed else w[0] // call.groups
    lengths = channels * prod(w[2:]), narrow.shape[0] * prod(narrow.shape[2:])
    return max((n for n, wanted in zip(lengths, call.wants, strict=False) if wanted), default=0)


def _mode(call: ConvolutionCall, product: Product, mode: str | int) -> Resolution:
    kinds = [getattr(call, n).dtype for n in INPUTS]
    terms = longest_sum(call)
    found = resolve_mode(product, kinds, mode, terms=terms)
    if not found.ok:
        types = ", ".join(f"{n} {k}" for n, k in zip(INPUTS, kinds, strict=True))
        known = (*range(4), *(SPLITS if isinstance(mode, str) else ()))  # the C face knows numbers only
        legal = [m for m in known if resolve_mode(product, kinds, m, terms=terms).ok]
        way = f"take cubeMathType {listed(legal, 'or')}" if legal else "take inputs of float16"
        refuse(INVALID, f"cubeMathType {mode} with {types} on {product.name}: {found.reason}; {way}")
    return found


# -- 9 to 13: shapes ---------------------------------------------------------------------------------------------------


def _ranks_and_shapes(call: ConvolutionCall) -> None:
    dy, x, w = call.grad_output, call.input, call.weight
    ranks = [len(v.shape) for v in (dy, x, w)]
    if len(set(ranks)) != 1:
        refuse(INVALID, f"grad_output, input and weight have ranks {ranks}, which must be equal")
    for n, v in (("grad_output", dy), ("weight", w)):
        if v.empty:
            refuse(INVALID, f"{n} has shape {v.shape} and no elements, it must have some")
    _result_shapes(call)


def _result_shapes(call: ConvolutionCall) -> None:
    dy, x, w = call.grad_output, call.input, call.weight
    expected = {"grad_input": x.shape, "grad_weight": w.shape, "grad_bias": dy.shape[1:2]}
    rules = {"grad_input": "input's", "grad_weight": "weight's", "grad_bias": "the channels of grad_output"}
    for n, wanted in zip(RESULTS, call.wants, strict=True):
        got = getattr(call, n)
        if wanted and tuple(got.shape) != tuple(expected[n]):
            refuse(INVALID, f"{n} has shape {got.shape}, it must be {rules[n]}, {expected[n]}")


def _lengths(call: ConvolutionCall) -> None:
    n = call.spatial
    two = (2, 4) if n == 2 else (n,)
    for name, allowed in (("stride", (n,)), ("dilation", (n,)), ("padding", two), ("output_padding", two)):
        given = getattr(call, name)
        if len(given) not in allowed:
            refuse(
                INVALID,
                f"{name} has {len(given)} values {given}, for {n} spatial axes it must have {listed(allowed, 'or')}",
            )


def _channels(call: ConvolutionCall) -> None:
    dy, x, w = (v.shape for v in (call.grad_output, call.input, call.weight))
    if call.transposed:
        _equal("input's channels", x[1], "weight's first axis", w[0])
        _grouped("grad_output", dy[1], w[1], call.groups)
        if x[1] % call.groups:
            refuse(INVALID, f"input has {x[1]} channels, which groups {call.groups} must divide")
        return
    _equal("grad_output's channels", dy[1], "weight's first axis", w[0])
    _grouped("input", x[1], w[1], call.groups)
    if dy[1] < call.groups or dy[1] % call.groups:
        refuse(INVALID, f"grad_output has {dy[1]} channels, which groups {call.groups} must divide")


def _equal(what: str, got: int, other: str, want: int) -> None:
    if got != want:
        refuse(INVALID, f"{what} are {got}, {other} is {want}; they must be equal")


def _grouped(name: str, channels: int, per_group: int, groups: int) -> None:
    here = f"{name} has {channels} channels, weight has {per_group} on its second axis"
    if channels % per_group:
        refuse(INVALID, f"{here}, which does not divide them")
    if channels // per_group != groups:
        refuse(INVALID, f"{here}: groups must be {channels // per_group}, it is {groups}")


def paddings(padding: Ints, spatial: int) -> tuple[tuple[int, int], ...]:
    """(before, after) for each axis: n values, or in 2D top, bottom, left, right."""
    if spatial == 2 and len(padding) == 4:
        return (padding[0], padding[1]), (padding[2], padding[3])
    return tuple((p, p) for p in padding)


def forward_sizes(call: ConvolutionCall) -> Ints:
    """Spatial sizes of the output of the forward convolution: what grad_output must have."""
    x, w = call.input.shape, call.weight.shape
    out = []
    for k in range(call.spatial):
        before, after = paddings(call.padding, call.spatial)[k]
        stride, reach = call.stride[k], call.dilation[k] * (w[k + 2] - 1)
        if call.transposed:
            extra = call.output_padding[k]
            out.append((x[k + 2] - 1) * stride - before - after + reach + extra + 1)
        else:
            out.append((x[k + 2] + before + after - reach - 1) // stride + 1)
    return tuple(out)


def _sizes(call: ConvolutionCall) -> None:
    """Batch, reach of the kernel and sizes of grad_output, for every number of axes."""
    dy, x, w = (v.shape for v in (call.grad_output, call.input, call.weight))
    late = "" if call.spatial == 3 else "; the vendor's library finds it in an inner step, with 561103"
    if dy[0] != x[0]:
        refuse(INVALID, f"grad_output has batch {dy[0]}, input has {x[0]}; they must be equal{late}")
    pads = paddings(call.padding, call.spatial)
    wide, name = (dy, "grad_output") if call.transposed else (x, "input")
    for k in range(call.spatial):
        reach = call.dilation[k] * (w[k + 2] - 1) + 1
        room = wide[k + 2] + sum(pads[k])
        if reach > room:
            axis = SPATIAL[call.spatial][k]
            refuse(
                INVALID,
                f"the kernel reaches over {reach} elements on axis {axis}, {name} with its padding has {room}; it must not "
                f"reach further{late}",
            )
    expected = forward_sizes(call)
    if dy[2:] != expected:
        refuse(
            INVALID, f"grad_output has spatial sizes {dy[2:]}, the forward convolution gives {expected}{late}"
        )


# -- 8 and 14: nothing to multiply -------------------------------------------------------------------------------------


def _empty(call: ConvolutionCall) -> None:
    x, w = call.input.shape, call.weight.shape
    if len(w) != len(x):
        refuse(INVALID, f"weight has rank {len(w)}, input has {len(x)}; they must be equal")
    no_batch = x[0] == 0
    no_channels = x[1] == 0 and w[1:2] == (0,) and not call.transposed
    if not (no_batch or no_channels):
        allowed = "an empty batch" if call.transposed else "an empty batch, or no channels in both"
        refuse(INVALID, f"input {x} with weight {w}: of empty tensors only {allowed} is taken")
    if not no_channels and 0 in w:
        refuse(INVALID, f"weight has shape {w} and no elements, it must have some")
    if call.transposed and not (w[0] > 0 and w[0] == x[1]):
        refuse(
            INVALID,
            f"input's channels are {x[1]}, weight's first axis is {w[0]}; they must be equal, and not 0",
        )
    if not call.transposed:
        _empty_reach(call, x, w)
    if call.wants[2] and call.bias_sizes is None:
        refuse(INVALID, "bias_sizes is null, an empty input with output_mask[2] needs it")


def _bias_sizes(call: ConvolutionCall) -> None:
    """The shape of the bias, where it is given."""
    w = call.weight.shape
    channels = (w[1] * call.groups if call.transposed else w[0],)
    if call.bias_sizes not in (None, channels):
        rule = "weight's second axis times groups" if call.transposed else "weight's first axis"
        refuse(INVALID, f"bias_sizes is {call.bias_sizes}, it must be {channels}, {rule}")


def _empty_reach(call: ConvolutionCall, x: Ints, w: Ints) -> None:
    for k, (before, after) in enumerate(paddings(call.padding, call.spatial)[: len(x) - 2]):
        reach = (call.dilation[k : k + 1] or (1,))[0] * (w[k + 2] - 1) + 1
        if x[k + 2] + before + after < reach:
            refuse(
                INVALID,
                f"the kernel reaches over {reach} elements on axis {SPATIAL[call.spatial][k]}, input with its padding has "
                f"{x[k + 2] + before + after}; it must not reach further",
            )


# -- 15: 3D; documented ranges -----------------------------------------------------------------------------------------


def _volumes(call: ConvolutionCall, product: Product, wide: bool) -> None:
    if call.spatial != 3:
        return
    if not wide:
        refuse(INVALID, f"input has 3 spatial axes, {product.name} takes 1 or 2")


def _ranges(call: ConvolutionCall, wide: bool) -> None:
    """Documented ranges of the A2 and A3 for a plain convolution; elsewhere only the lower ends, checked above."""
    if not wide or call.transposed:
        return
    for n in ("grad_output", "input"):
        _between(n, getattr(call, n).shape, 1, MAX_DIM)
    volume = call.spatial == 3
    last = slice(1, None) if volume else slice(None)
    _between("weight on its last axes", call.weight.shape[2:][last], 1, 255)
    if volume:
        _between("stride on H and W", call.stride[1:], 1, 63)
    else:
        _between("stride", call.stride, 1, MAX_DIM)
    _between("padding", call.padding[last], 0, 255)
    _between("dilation", call.dilation, 1, 255)
    if call.groups > 65535:
        refuse(INNER, f"groups is {call.groups}, it must be from 1 to 65535")


def _between(what: str, given: Iterable[int], low: int, high: int) -> None:
    values = tuple(given)
    bad = [x for x in values if not low <= x <= high]
    if bad:
        refuse(INNER, f"{what} is {values}, every value must be from {low} to {high}, {bad[0]} is not")
