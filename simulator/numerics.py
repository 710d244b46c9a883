"""What numbers depend on, for one device: the value in force of each choice of `precision/numeric_switches.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from .device import TRITON_ASCEND, USUAL_RELEASE, Device
from .errors import UsageError
from .l2.state import told
from .precision.numeric_switches import FIXED, OF_PRODUCT, SWITCHES, block_k_of
from .precision.numerics_file import ChosenNumerics
from .units.cube_rules import CubeRules
from .units.vector import Numerics

_REGISTER = MappingProxyType(
    {"RNE": "RINT", "RNA": "ROUND", **{mode: mode for mode in ("RNZ", "TRUNC", "FLOOR", "CEIL", "ODD")}}
)


def choice(device: Device, name: str) -> Any:
    """The value of a choice in force: the user's, else the product's or the default."""
    if name in device.numerics:
        return device.numerics[name]
    if name in OF_PRODUCT:
        return device.product.text(f"numerics.{name}")
    return SWITCHES[name].default


def hf32_round(device: Device) -> str:
    """Rounding mode of HF32 operands as the Cube's rules name it."""
    chosen = choice(device, "hf32_round")
    return device.hf32_round if chosen is None else _REGISTER[chosen]


def switch_name(rounding: str) -> str:
    """The choice of `hf32_round` that sets a rounding of the Cube's rules: RNE for RINT."""
    return next(n for n, x in _REGISTER.items() if x == rounding)


def stated(device: Device) -> dict[str, str]:
    """Every choice described: its value, and whether the user made it or it is not published."""
    out = {name: _description(device, name) for name in SWITCHES}
    return {**out, **FIXED}


def _description(device: Device, name: str) -> str:
    value = choice(device, name)
    if name in device.numerics:
        chosen = device.numerics
        if isinstance(chosen, ChosenNumerics) and name in chosen.of_file:
            return f"{value} (file {chosen.file})"
        return f"{value} (chosen)"
    if name == "hf32_round":
        return (
            f"{switch_name(device.hf32_round)} in tl.dot; RNA in matmul (documented: its kernel sets mode 1)"
        )
    if name in OF_PRODUCT:
        figure = device.product.figure(f"numerics.{name}")
        return f"{value} (chosen)" if figure.overridden else _graded(value, figure.assumed)
    return _graded(value, SWITCHES[name].grade == "assumed")


def _graded(value: Any, assumed: bool) -> str:
    return f"{value} (assumed)" if assumed else str(value)


def numerics(device: Device) -> Numerics:
    """The choices in force, as the units take them."""
    chosen = {name: choice(device, name) for name in SWITCHES}
    chosen["hf32_round"] = switch_name(hf32_round(device))
    if chosen["fp16_accumulator"] == "on":
        _check_fp16_accumulator(device)
    return numerics_of(chosen, accumulate=device.accumulate, hf32=device.hf32)


def numerics_of(chosen: Mapping[str, Any], accumulate: str = "exact", hf32: bool = False) -> Numerics:
    """Choices by name, one for each of SWITCHES, as the units take them. accumulate, hf32: of the device."""
    return Numerics(
        sum_order=chosen["sum_order"],
        sum_tree=chosen["sum_tree"],
        repeat_bytes=int(chosen["sum_repeat_bytes"]),
        overflow=chosen["overflow_mode"],
        directed_overflow=chosen["directed_overflow"],
        to_integer=chosen["float_to_int_overflow"],
        cast_round=_REGISTER[chosen["cast_round"]],
        fused=chosen["fma_round"] == "once",
        fp32_subnormals=chosen["fp32_subnormals"],
        bf16_subnormals=_as_fp32(chosen, "bf16_subnormals"),
        fp16_subnormals=chosen["fp16_subnormals"],
        cube=_cube(chosen, accumulate),
        hf32=hf32,
        coarse=chosen["recip_rsqrt_model"] == "nine_bits",
    )


def _cube(chosen: Mapping[str, Any], accumulate: str) -> CubeRules:
    block_k = chosen["cube_block_k"]
    one = isinstance(block_k, int)
    return CubeRules(
        accumulate=accumulate,
        overflow=chosen["overflow_mode"],
        hf32_round=_REGISTER[chosen["hf32_round"]],
        hf32_grid={"11": "hf32", "10": "tf32"}[chosen["hf32_bits"]],
        fp32_subnormals=_as_fp32(chosen, "cube_subnormals"),
        bf16_subnormals=_as_fp32(chosen, "bf16_subnormals"),
        fp16_subnormals=chosen["fp16_subnormals"],
        hf32_subnormals="flush" if chosen["hf32_flush_subnormal_inputs"] == "on" else "keep",
        block_k=block_k if one else None,
        block_k_of=() if one or block_k == "per_format" else tuple(block_k_of(block_k).items()),
        block_round=_REGISTER[chosen["cube_block_round"]],
        block_sum=chosen["cube_block_sum"],
        k_order=chosen["cube_k_order"],
        accumulator="fp16" if chosen["fp16_accumulator"] == "on" else None,
    )


def _as_fp32(chosen: Mapping[str, Any], name: str) -> str:
    """The rule of a type for subnormal values, where it is not that of FP32."""
    return str(chosen["fp32_subnormals"] if chosen[name] == "as_fp32" else chosen[name])


def _check_fp16_accumulator(device: Device) -> None:
    """Documented for 910A and 310P, whose Cubes take no FP32 (platform configuration, Mmad)."""
    if "fp32" in device.product.texts("dtypes.cube_inputs"):
        raise UsageError(
            f"numerics fp16_accumulator: the Cube of {device.product.name} accumulates FP16 products in FP32; "
            "an FP16 accumulator is on ascend910a and ascend310p"
        )


# Fields of a device that are told in their own words, or that neither times nor values depend on.
_TOLD = {
    "product",
    "compiler",
    "compiler_version",
    "multibuffer",
    "cube_math_type",
    "accumulate",
    "numerics",
    "l2",
}
_TOLD |= {"hf32_round", "atomic_seed", "values", "time", "explain", "details", "timeline", "step_limit"}
_TOLD |= {"errors", "reference", "float64"}


def _unusual(device: Device) -> dict[str, Any]:
    """Further choices of the user that a run's numbers depend on; what is not there is as usual."""
    rest = [f for f in fields(device) if f.name not in _TOLD]
    given = {f.name: getattr(device, f.name) for f in rest if getattr(device, f.name) != f.default}
    return {name: list(x) if isinstance(x, tuple) else x for name, x in given.items()}


def options(device: Device) -> dict[str, Any]:
    """The choices that the numbers of a run depend on: the main ones always, others where they are not as usual."""
    return {
        "compiler": asked_for(device, TRITON_ASCEND),
        "multibuffer": device.multibuffer,
        "cube_math_type": device.cube_math_type,
        "accumulate": device.accumulate,
        "l2": told(device.l2),
        **stated(device),
        "atomic_order": _atomic_order(device.atomic_seed),
        **_unusual(device),
        **_errors(device),
    }


def _errors(device: Device) -> dict[str, str]:
    """What the errors of a run are against, where it has any."""
    if device.reference is not None:
        return {"errors": "against the reference that was given"}
    return {"errors": "against the same program in float64"} if device.errors else {}


def asked_for(device: Device, usual: str) -> str:
    """Who makes the code, and whether the user chose that: "ascendc", "triton-ascend 9.0 (chosen)"."""
    made = device.code_by(usual)
    chosen = device.compiler is not None or made not in (usual, f"{usual} {USUAL_RELEASE}")
    return f"{made} (chosen)" if chosen else made


def _atomic_order(seed: int | None) -> str:
    """Documented: the order between cores is not defined (Ascend C, SetAtomicAdd)."""
    chosen = "ascending program number" if seed is None else f"programs permuted by seed {seed}"
    return f"{chosen} (assumed: not defined on the device)"
